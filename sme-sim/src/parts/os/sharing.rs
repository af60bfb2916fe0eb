//! Threads that share the cores of a node: which of them runs where, and when another has its turn.
//!
//! A core is given to one of its threads at a time, in turn, for at least a quantum as long as
//! others want it. A thread is taken off its core at the end of an operation, or while it waits for
//! something; what it has asked the hardware for goes on meanwhile, and it hears of it when it has
//! its core again. A thread that waits for the system itself (sleeps, or joins another) gives its
//! core away at once. Each change takes the system some time.
//!
//! A thread that an interrupt or a signal has woken is *urgent*: it has its core at once, in the
//! middle of what another thread executes there, and keeps it until it waits again. The other goes on
//! then, and needs as much longer.
//!
//! A thread stays on the core on which it was started. Not modelled: the effect of a switch on the
//! contents of caches, and the time that a spinning thread takes from the others while it has no
//! core.

use std::collections::VecDeque;

use crate::time::Time;

/// The costs of sharing a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// From when a thread gives its core away, or has it taken away, until the next runs.
    pub switch: Time,
    /// How long a thread has its core at least while others want it.
    pub quantum: Time,
}

/// The threads of a node and its cores.
#[derive(Debug)]
pub struct Sharing {
    costs: Costs,
    cores: Vec<Core>,
    threads: Vec<Thread>,
}

#[derive(Clone, Debug, Default)]
struct Core {
    /// The thread that has it.
    has: Option<u16>,
    /// Since when, a switch included.
    since: Time,
    /// Threads that want it, in their order.
    want: VecDeque<u16>,
    /// Threads that have been started on it and have not ended.
    alive: u32,
    /// A check is scheduled for the end of the quantum.
    is_timed: bool,
    /// Urgent threads that want it, in their order.
    urgent: VecDeque<u16>,
    /// Whether it is an urgent one that has it.
    is_urgent: bool,
    /// The thread from which urgent ones have taken it.
    put_off: Option<PutOff>,
    /// The time by which the current operation of the thread that has it ends later.
    owed: Time,
    /// The time from which that thread has it back.
    back_at: Time,
}

/// A thread whose core was taken away in the middle of an operation.
#[derive(Clone, Copy, Debug)]
struct PutOff {
    thread: u16,
    since: Time,
    /// It executes, and does not wait for the hardware.
    executes: bool,
    /// The time at which its operation would have ended.
    came: Option<Time>,
}

#[derive(Clone, Debug)]
struct Thread {
    core: u16,
    has_ended: bool,
    /// Those that wait for its end.
    joined_by: Vec<u16>,
}

/// A thread that has got a core, and when it runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Which thread.
    pub thread: u16,
    /// When.
    pub at: Time,
}

/// Whether a thread that wants to go on may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has its core, and goes on at once.
    Now,
    /// Another has the core: it will be told.
    Later,
    /// It has waited its turn out, or used its quantum up: this one is next.
    Given(Next),
}

/// The result of a check whether a quantum is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimesOut {
    /// The core stays with who has it.
    Stays,
    /// It is not over yet: look again then.
    Later(Time),
    /// It is, and this one is next.
    Given(Next),
}

impl Sharing {
    /// Of a node of so many `cores`, on the first of which `threads` run already, one on each.
    pub fn new(threads: u16, cores: u16, costs: Costs) -> Self {
        let mut sharing = Self {
            costs,
            cores: vec![Core::default(); usize::from(cores.max(threads))],
            threads: Vec::new(),
        };
        for thread in 0..threads {
            let core = &mut sharing.cores[usize::from(thread)];
            core.has = Some(thread);
            core.alive = 1;
            sharing.threads.push(Thread {
                core: thread,
                has_ended: false,
                joined_by: Vec::new(),
            });
        }
        sharing
    }

    /// How many cores there are.
    pub fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    /// The core on which `thread` runs.
    pub fn core_of(&self, thread: u16) -> u16 {
        self.threads[usize::from(thread)].core
    }

    /// The thread that has `core`.
    pub fn has(&self, core: u16) -> Option<u16> {
        self.cores[usize::from(core)].has
    }

    /// The core with the fewest threads, the first of them.
    pub fn least_used(&self) -> u16 {
        let cores = (0..).zip(&self.cores);
        cores
            .min_by_key(|(_, core)| core.alive)
            .map_or(0, |(number, _)| number)
    }

    /// A thread is started on `core`, which the node has: its number. It [wants](Self::wants) its
    /// core from now on.
    pub fn start(&mut self, core: u16) -> u16 {
        self.cores[usize::from(core)].alive += 1;
        self.threads.push(Thread {
            core,
            has_ended: false,
            joined_by: Vec::new(),
        });
        (self.threads.len() - 1) as u16
    }

    /// `thread` wants to go on.
    pub fn wants(&mut self, now: Time, thread: u16) -> Turn {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        match core.has {
            Some(has) if has == thread => {
                if core.is_urgent {
                    return Turn::Now;
                }
                let owed = std::mem::take(&mut core.owed);
                if owed > Time::ZERO {
                    let at = now + owed;
                    return Turn::Given(Next { thread, at });
                }
                if now < core.back_at {
                    let at = core.back_at;
                    return Turn::Given(Next { thread, at });
                }
                if core.want.is_empty() || now < core.since + self.costs.quantum {
                    return Turn::Now;
                }
                core.want.push_back(thread);
                core.next(now, self.costs).map_or(Turn::Later, Turn::Given)
            }
            Some(_) => {
                match &mut core.put_off {
                    Some(put_off) if put_off.thread == thread => put_off.came = Some(now),
                    _ => core.want.push_back(thread),
                }
                Turn::Later
            }
            None => {
                core.want.push_back(thread);
                core.next(now, self.costs).map_or(Turn::Later, Turn::Given)
            }
        }
    }

    /// `thread`, which is urgent, wants to go on; `executes` says whether the thread that has its core
    /// does, or waits for the hardware.
    pub fn wants_at_once(&mut self, now: Time, thread: u16, executes: bool) -> Turn {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        match core.has {
            Some(has) if has == thread => {}
            Some(_) if core.is_urgent => {
                core.urgent.push_back(thread);
                return Turn::Later;
            }
            Some(has) => {
                core.put_off = Some(PutOff {
                    thread: has,
                    since: now,
                    executes,
                    came: None,
                });
            }
            None => core.since = now,
        }
        core.has = Some(thread);
        core.is_urgent = true;
        Turn::Now
    }

    /// `thread`, which has its core, lets the others run first; who is next, perhaps itself.
    pub fn gives_way(&mut self, now: Time, thread: u16) -> Option<Next> {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        core.want.push_back(thread);
        if core.has != Some(thread) {
            core.is_put_off_no_longer(thread);
            return None;
        }
        core.next(now, self.costs)
    }

    /// `thread` waits for the system, and gives its core away; who is next.
    pub fn blocks(&mut self, now: Time, thread: u16) -> Option<Next> {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        if core.has != Some(thread) {
            core.is_put_off_no_longer(thread);
            return None;
        }
        core.next(now, self.costs)
    }

    /// `thread` waits until `other` has ended; whether it has to.
    pub fn joins(&mut self, thread: u16, other: u16) -> bool {
        let other = &mut self.threads[usize::from(other)];
        if !other.has_ended {
            other.joined_by.push(thread);
        }
        !other.has_ended
    }

    /// Whether there is a thread of that number.
    pub fn knows(&self, thread: u32) -> bool {
        (thread as usize) < self.threads.len()
    }

    /// Marks `thread` as ended, and returns the threads that wait for its end. It still has its
    /// core.
    pub fn ends(&mut self, thread: u16) -> Vec<u16> {
        let thread = &mut self.threads[usize::from(thread)];
        thread.has_ended = true;
        self.cores[usize::from(thread.core)].alive -= 1;
        std::mem::take(&mut thread.joined_by)
    }

    /// The time of the next [check](Self::times_out) of the quantum on `core`, if none is
    /// scheduled. Must be called after every change.
    pub fn timer(&mut self, now: Time, core: u16) -> Option<Time> {
        let core = &mut self.cores[usize::from(core)];
        if core.is_timed || core.is_urgent || core.want.is_empty() || core.has.is_none() {
            return None;
        }
        core.is_timed = true;
        Some(now.max(core.since + self.costs.quantum))
    }

    /// Checks whether the quantum on `core` is over, at the time that [`Self::timer`] has given;
    /// `waits` says whether the thread that has the core waits for something. A thread that
    /// executes keeps its core to the end of its operation.
    pub fn times_out(&mut self, now: Time, core: u16, waits: bool) -> TimesOut {
        let core = &mut self.cores[usize::from(core)];
        core.is_timed = false;
        if core.has.is_none() || core.is_urgent || core.want.is_empty() {
            return TimesOut::Stays;
        }
        let over = core.since + self.costs.quantum;
        if now < over {
            core.is_timed = true;
            return TimesOut::Later(over);
        }
        match waits {
            true => core
                .next(now, self.costs)
                .map_or(TimesOut::Stays, TimesOut::Given),
            false => TimesOut::Stays,
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let queues = |core: &Core| core.want.capacity() + core.urgent.capacity();
        let queues: usize = self.cores.iter().map(queues).sum();
        let joined: usize = (self.threads.iter()).map(|t| t.joined_by.capacity()).sum();
        self.cores.capacity() * size_of::<Core>()
            + self.threads.capacity() * size_of::<Thread>()
            + (queues + joined) * size_of::<u16>()
    }
}

impl Core {
    /// The core goes to the next that wants it.
    fn next(&mut self, now: Time, costs: Costs) -> Option<Next> {
        let before = self.has;
        if let Some(thread) = self.urgent.pop_front() {
            self.has = Some(thread);
            self.is_urgent = true;
            return Some(Next { thread, at: now });
        }
        self.is_urgent = false;
        if let Some(put_off) = self.put_off.take() {
            return self.goes_back(now + costs.switch, put_off);
        }
        self.owed = Time::ZERO;
        self.has = self.want.pop_front();
        let thread = self.has?;
        // Nothing has to be changed for who has it already.
        let at = if before == Some(thread) {
            now
        } else {
            now + costs.switch
        };
        self.since = at;
        Some(Next { thread, at })
    }

    /// The core goes back at `at` to the thread from which it was taken, which may have to be told.
    fn goes_back(&mut self, at: Time, put_off: PutOff) -> Option<Next> {
        let PutOff {
            thread,
            since,
            executes,
            came,
        } = put_off;
        (self.has, self.back_at) = (Some(thread), at);
        let taken = at.since(since);
        self.since += taken;
        if executes {
            self.owed += taken;
        }
        let end = came?;
        // What executed goes on from where it was.
        let at = match executes {
            true => end + std::mem::take(&mut self.owed),
            false => at,
        };
        Some(Next { thread, at })
    }

    /// `thread`, if the core was taken from it, waits for the system now, or lets others run first.
    fn is_put_off_no_longer(&mut self, thread: u16) {
        self.put_off.take_if(|put_off| put_off.thread == thread);
    }
}

#[cfg(test)]
mod tests {
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
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            (0..40u64).prop_map(Act::Executes),
            (0..400u64).prop_map(Act::Waits),
            (0..90u64).prop_map(Act::Sleeps),
            Just(Act::GivesWay),
            (0..6u16).prop_map(Act::Joins),
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
        /// Whether each is urgent when it has slept, and sleeps.
        is_urgent: Vec<(bool, bool)>,
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
            let is_back = !state.is_urgent && state.put_off.is_none();
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
            let (is_urgent, slept) = self.is_urgent[number];
            self.is_urgent[number].1 = false;
            let turn = match is_urgent && slept {
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
                false => self.sharing.wants(now, thread),
            };
            let goes_on =
                matches!(turn, Turn::Given(next) if next.thread == thread && next.at > now);
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
                    let is_urgent = self.sharing.cores[usize::from(core)].is_urgent;
                    let free = (!is_urgent).then_some(span);
                    self.executes[usize::from(thread)] = Some((now, free));
                    self.push(now + span, Event::Resume(thread));
                }
                Act::Waits(span) => {
                    self.waits[usize::from(thread)] = true;
                    self.push(now + Time::from_ps(span), Event::Resume(thread));
                }
                Act::Sleeps(span) => {
                    self.is_urgent[usize::from(thread)].1 = true;
                    self.push(now + Time::from_ps(span), Event::Resume(thread));
                    let next = self.sharing.blocks(now, thread);
                    self.leaves(now, thread);
                    self.given(next);
                }
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
            let costs = Costs { switch: Time::from_ps(switch), quantum: Time::from_ps(quantum) };
            let sharing = Sharing::new(running, cores, costs);
            let cores = sharing.cores();
            let mut machine = Machine {
                sharing,
                waits: vec![false; programs.len()],
                programs: programs.iter().map(|(acts, ..)| acts.clone()).collect(),
                executes: vec![None; programs.len()],
                is_urgent: programs.iter().map(|&(.., is_urgent)| (is_urgent, false)).collect(),
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
                            TimesOut::Later(at) => machine.push(at, Event::Timer(core)),
                            TimesOut::Given(next) => {
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
                // What puts another off lies within the time by which that takes longer.
                let is_within = tenures.iter().any(|&(of, begin, end)| {
                    of == core && begin <= from && to <= end
                });
                prop_assert!(is_within || !free.iter().any(|one| overlaps(&one)), "{}", thread);
            }
        }
    }
}
