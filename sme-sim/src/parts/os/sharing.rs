//! Threads that share the cores of a node: which of them runs where, and when another has its turn.
//!
//! A core is given to one of its threads at a time, in turn, for at least a quantum as long as
//! others want it. A thread is taken off its core at the end of an operation, or while it waits for
//! something; what it has asked the hardware for goes on meanwhile, and it hears of it when it has
//! its core again. A thread that waits for the system itself (sleeps, or joins another) gives its
//! core away at once. Each change takes the system some time.
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
                if core.want.is_empty() || now < core.since + self.costs.quantum {
                    return Turn::Now;
                }
                core.want.push_back(thread);
                core.next(now, self.costs).map_or(Turn::Later, Turn::Given)
            }
            Some(_) => {
                core.want.push_back(thread);
                Turn::Later
            }
            None => {
                core.want.push_back(thread);
                core.next(now, self.costs).map_or(Turn::Later, Turn::Given)
            }
        }
    }

    /// `thread`, which has its core, lets the others run first; who is next, perhaps itself.
    pub fn gives_way(&mut self, now: Time, thread: u16) -> Option<Next> {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        core.want.push_back(thread);
        core.next(now, self.costs)
    }

    /// `thread` waits for the system, and gives its core away; who is next.
    pub fn blocks(&mut self, now: Time, thread: u16) -> Option<Next> {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        if core.has != Some(thread) {
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
        if core.is_timed || core.want.is_empty() || core.has.is_none() {
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
        if core.has.is_none() || core.want.is_empty() {
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
        let queues: usize = self.cores.iter().map(|core| core.want.capacity()).sum();
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
        /// Thread, core, begin and end of each execution.
        executed: Vec<(u16, u16, Time, Time)>,
        ended: Vec<u16>,
    }

    impl Machine {
        fn push(&mut self, at: Time, event: Event) {
            self.sequence += 1;
            self.events.insert((at, self.sequence), event);
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
            self.waits[usize::from(thread)] = false;
            match self.sharing.wants(now, thread) {
                Turn::Now => self.acts(now, thread),
                Turn::Later => {}
                Turn::Given(next) => self.given(Some(next)),
            }
            self.arm(now, thread);
        }

        fn acts(&mut self, now: Time, thread: u16) {
            let core = self.sharing.core_of(thread);
            let program = &mut self.programs[usize::from(thread)];
            let Some(act) = program.pop() else {
                self.ended.push(thread);
                for waiter in self.sharing.ends(thread) {
                    self.push(now, Event::Resume(waiter));
                }
                let next = self.sharing.blocks(now, thread);
                return self.given(next);
            };
            match act {
                Act::Executes(span) => {
                    let end = now + Time::from_ps(span);
                    self.executed.push((core, thread, now, end));
                    self.push(end, Event::Resume(thread));
                }
                Act::Waits(span) => {
                    self.waits[usize::from(thread)] = true;
                    self.push(now + Time::from_ps(span), Event::Resume(thread));
                }
                Act::Sleeps(span) => {
                    self.push(now + Time::from_ps(span), Event::Resume(thread));
                    let next = self.sharing.blocks(now, thread);
                    self.given(next);
                }
                Act::GivesWay => {
                    let next = self.sharing.gives_way(now, thread);
                    self.given(next);
                }
                Act::Joins(other) => {
                    if other < thread && self.sharing.joins(thread, other) {
                        let next = self.sharing.blocks(now, thread);
                        self.given(next);
                    } else {
                        self.push(now, Event::Resume(thread));
                    }
                }
            }
        }
    }

    proptest! {
        /// For any programs, all threads end, and no two execute on one core at the same time.
        #[test]
        fn a_core_is_one_threads_at_a_time(
            (running, cores) in (1..4u16, 1..4u16),
            programs in prop::collection::vec((acts(), any::<bool>()), 4..9),
            (switch, quantum) in (0..9u64, 1..50u64),
        ) {
            let costs = Costs { switch: Time::from_ps(switch), quantum: Time::from_ps(quantum) };
            let sharing = Sharing::new(running, cores, costs);
            let cores = sharing.cores();
            let mut machine = Machine {
                sharing,
                waits: vec![false; programs.len()],
                programs: programs.iter().map(|(acts, _)| acts.clone()).collect(),
                events: BTreeMap::new(),
                sequence: 0,
                executed: Vec::new(),
                ended: Vec::new(),
            };
            for (thread, (_, on_last)) in (0..).zip(&programs) {
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
            machine.executed.sort_by_key(|&(core, _, from, to)| (core, from, to));
            for pair in machine.executed.windows(2) {
                let ((core, _, _, end), (next_core, _, begin, _)) = (pair[0], pair[1]);
                prop_assert!(core != next_core || end <= begin, "{:?}", pair);
            }
        }
    }
}
