//! Random programs of threads that share cores: who executes when, and for how long.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The next act of a thread.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Executes for so long.
    Executes(u64),
    /// Waits for the hardware for so long.
    Waits(u64),
    /// Sleeps for so long.
    Sleeps(u64),
    GivesWay,
    /// Waits for the end of this thread, if it is one of those before.
    Joins(u16),
    /// Waits for the hardware until another thread acts or ends.
    Polls,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0..40u64).prop_map(Act::Executes),
        (0..400u64).prop_map(Act::Waits),
        (0..90u64).prop_map(Act::Sleeps),
        Just(Act::GivesWay),
        (0..6u16).prop_map(Act::Joins),
        Just(Act::Polls),
    ];
    prop::collection::vec(act, 0..12)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Resume(u16),
    Timer(u16),
}

/// A machine that has nothing but threads.
struct Machine {
    sharing: Sharing,
    programs: Vec<Vec<Act>>,
    /// Whether each waits for the hardware.
    waits: Vec<bool>,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    /// Core, thread, begin and end of each execution, and its span without interruptions, where
    /// it may be interrupted.
    executed: Vec<(u16, u16, Time, Time, Option<Time>)>,
    /// Begin and span of those that are under way, by thread.
    executes: Vec<Option<(Time, Option<Time>)>>,
    /// Whether each is urgent when it has slept.
    is_urgent: Vec<bool>,
    polls: Vec<u16>,
    /// Core, begin and end of the time for which an urgent thread put another off.
    tenures: Vec<(u16, Time, Time)>,
    ended: Vec<u16>,
}

impl Machine {
    fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    /// The core of `thread` has gone on to another, perhaps back.
    fn leaves(&mut self, now: Time, thread: u16) {
        let core = self.sharing.core_of(thread);
        let state = &self.sharing.cores[usize::from(core)];
        let is_back = state.urgent_since.is_none() && state.put_off.is_none();
        let open = self
            .tenures
            .iter_mut()
            .find(|t| t.0 == core && t.2 == Time::NEVER);
        if let Some(tenure) = open.filter(|_| is_back) {
            tenure.2 = now + self.sharing.costs.switch;
        }
    }

    fn given(&mut self, next: Option<Next>) {
        if let Some(Next { thread, at }) = next {
            self.push(at, Event::Resume(thread));
        }
    }

    fn arm(&mut self, now: Time, thread: u16) {
        let core = self.sharing.core_of(thread);
        if let Some(at) = self.sharing.timer(now, core) {
            self.push(at, Event::Timer(core));
        }
    }

    fn resume(&mut self, now: Time, thread: u16) {
        let number = usize::from(thread);
        self.waits[number] = false;
        let core = self.sharing.core_of(thread);
        let had = self.sharing.has(core);
        let turn = match self.sharing.becomes_urgent(thread) {
            true => {
                let executes = had.is_some_and(|had| !self.waits[usize::from(had)]);
                let turn = self.sharing.wants_at_once(now, thread, executes);
                let put_off = self.sharing.cores[usize::from(core)].put_off;
                if turn == Turn::Now && put_off.is_some_and(|put_off| put_off.since == now) {
                    let is_new = |t: &&(u16, Time, Time)| t.0 == core && t.2 == Time::NEVER;
                    if !self.tenures.iter().any(|t| is_new(&t)) {
                        self.tenures.push((core, now, Time::NEVER));
                    }
                }
                turn
            }
            false => {
                let turn = self.sharing.wants(now, thread);
                if had == Some(thread) {
                    self.leaves(now, thread);
                }
                turn
            }
        };
        let goes_on = matches!(turn, Turn::Given(next) if next.thread == thread && next.at > now);
        if had == Some(thread)
            && !goes_on
            && let Some((begin, span)) = self.executes[number].take()
        {
            self.executed.push((core, thread, begin, now, span));
        }
        match turn {
            Turn::Now => self.acts(now, thread),
            Turn::Later => {}
            Turn::Given(next) => self.given(Some(next)),
        }
        self.arm(now, thread);
    }

    fn acts(&mut self, now: Time, thread: u16) {
        for poller in std::mem::take(&mut self.polls) {
            self.push(now, Event::Resume(poller));
        }
        let program = &mut self.programs[usize::from(thread)];
        let Some(act) = program.pop() else {
            self.ended.push(thread);
            for waiter in self.sharing.ends(thread) {
                self.push(now, Event::Resume(waiter));
            }
            let next = self.sharing.blocks(now, thread);
            self.leaves(now, thread);
            return self.given(next);
        };
        match act {
            Act::Executes(span) => {
                let span = Time::from_ps(span);
                let core = self.sharing.core_of(thread);
                let is_urgent = self.sharing.cores[usize::from(core)].urgent_since.is_some();
                let free = (!is_urgent).then_some(span);
                self.executes[usize::from(thread)] = Some((now, free));
                self.push(now + span, Event::Resume(thread));
            }
            Act::Waits(span) => {
                self.waits[usize::from(thread)] = true;
                self.push(now + Time::from_ps(span), Event::Resume(thread));
            }
            Act::Sleeps(span) => {
                if self.is_urgent[usize::from(thread)] {
                    self.sharing.is_urgent_when_woken(thread);
                }
                self.push(now + Time::from_ps(span), Event::Resume(thread));
                let next = self.sharing.blocks(now, thread);
                self.leaves(now, thread);
                self.given(next);
            }
            Act::Polls if self.ended.len() + 1 < self.programs.len() => {
                self.waits[usize::from(thread)] = true;
                self.polls.push(thread);
            }
            Act::Polls => self.push(now, Event::Resume(thread)),
            Act::GivesWay => {
                let next = self.sharing.gives_way(now, thread);
                self.leaves(now, thread);
                self.given(next);
            }
            Act::Joins(other) => {
                if other < thread && self.sharing.joins(thread, other) {
                    let next = self.sharing.blocks(now, thread);
                    self.leaves(now, thread);
                    self.given(next);
                } else {
                    self.push(now, Event::Resume(thread));
                }
            }
        }
    }
}

proptest! {
    /// For any programs, all threads end, and no two execute on one core at the same time: an
    /// execution takes longer by the time for which urgent threads had its core, and by no more.
    #[test]
    fn a_core_is_one_threads_at_a_time(
        (running, cores) in (1..4u16, 1..4u16),
        programs in prop::collection::vec((acts(), any::<bool>(), any::<bool>()), 4..9),
        (switch, quantum) in (0..9u64, 1..50u64),
    ) {
        let mut programs = programs;
        let polls = |(acts, ..): &(Vec<Act>, bool, bool)| acts.iter().any(|act| matches!(act, Act::Polls));
        if programs.iter().any(polls) {
            // One that is joined might poll in vain.
            let acts = programs.iter_mut().flat_map(|(acts, ..)| acts);
            acts.filter(|act| matches!(act, Act::Joins(_))).for_each(|act| *act = Act::GivesWay);
        }
        let costs = Costs { switch: Time::from_ps(switch), quantum: Time::from_ps(quantum) };
        let sharing = Sharing::new(running, cores, costs);
        let cores = sharing.cores();
        let mut machine = Machine {
            sharing,
            waits: vec![false; programs.len()],
            programs: programs.iter().map(|(acts, ..)| acts.clone()).collect(),
            executes: vec![None; programs.len()],
            is_urgent: programs.iter().map(|&(.., is_urgent)| is_urgent).collect(),
            polls: Vec::new(),
            tenures: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            executed: Vec::new(),
            ended: Vec::new(),
        };
        for (thread, (_, on_last, _)) in (0..).zip(&programs) {
            if thread >= running {
                let least = machine.sharing.least_used();
                let core = if *on_last { cores - 1 } else { least };
                prop_assert_eq!(machine.sharing.start(core), thread);
            }
            machine.push(Time::ZERO, Event::Resume(thread));
        }
        let mut steps = 0;
        while let Some(((now, _), event)) = machine.events.pop_first() {
            steps += 1;
            prop_assert!(steps < 100_000, "they do not come to an end");
            match event {
                Event::Resume(thread) => machine.resume(now, thread),
                Event::Timer(core) => {
                    let has = machine.sharing.has(core);
                    let waits = has.is_some_and(|has| machine.waits[usize::from(has)]);
                    match machine.sharing.times_out(now, core, waits) {
                        TimesOut::Stays => {}
                        TimesOut::GoesBack => {
                            machine.leaves(now, has.unwrap_or_default());
                            machine.arm(now, has.unwrap_or_default());
                        }
                        TimesOut::Later(at) => machine.push(at, Event::Timer(core)),
                        TimesOut::Given(next) => {
                            machine.leaves(now, next.thread);
                            machine.given(Some(next));
                            machine.arm(now, next.thread);
                        }
                    }
                }
            }
        }
        prop_assert_eq!(machine.ended.len(), programs.len());
        machine.executed.sort_by_key(|&(core, _, from, to, _)| (core, from, to));
        let tenures = &machine.tenures;
        for &(core, thread, from, to, span) in &machine.executed {
            let Some(span) = span else { continue };
            let within = |&&(of, begin, end): &&(u16, Time, Time)| {
                of == core && begin >= from && end <= to
            };
            let put_off: u64 = (tenures.iter().filter(within))
                .map(|&(_, begin, end)| end.since(begin).as_ps())
                .sum();
            let took = to.since(from).as_ps();
            prop_assert_eq!(took, span.as_ps() + put_off, "{} on {}: {:?}", thread, core, tenures);
        }
        type Execution = (u16, u16, Time, Time, Option<Time>);
        let (free, urgent): (Vec<Execution>, Vec<Execution>) =
            machine.executed.iter().partition(|executed| executed.4.is_some());
        for pair in free.windows(2).chain(urgent.windows(2)) {
            let ((core, _, _, end, _), (next_core, _, begin, ..)) = (pair[0], pair[1]);
            prop_assert!(core != next_core || end <= begin, "{:?}", pair);
        }
        for &(core, thread, from, to, _) in &urgent {
            let overlaps = |&&(of, _, begin, end, _): &&Execution| {
                of == core && begin < to && from < end
            };
            // An urgent thread executes within the time by which it makes the other one later.
            let is_within = tenures.iter().any(|&(of, begin, end)| {
                of == core && begin <= from && to <= end
            });
            prop_assert!(is_within || !free.iter().any(|one| overlaps(&one)), "{}", thread);
        }
    }
}
