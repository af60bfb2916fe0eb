//! Threads that share the cores of a node: which of them runs where, and when another has its turn.
//!
//! A core is given to one of its threads at a time, in turn, for at least a quantum as long as
//! others want it. A thread is taken off its core at the end of an operation, or while it waits for
//! something; what it has asked the hardware for goes on meanwhile, and it hears of it when it has
//! its core again. A thread that waits for the system itself (sleeps, or joins another) gives its
//! core away at once. Each change takes the system some time.
//!
//! A thread that an interrupt or a signal has woken is *urgent*: it has its core at once, in the
//! middle of what another thread executes there, and keeps it until it sleeps again, for a quantum
//! at most. The other goes on then, and needs as much longer.
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
    /// The least time for which a thread keeps its core while others want it.
    pub quantum: Time,
}

/// The threads of a node and its cores.
#[derive(Debug)]
pub struct Sharing {
    pub(super) costs: Costs,
    cores: Vec<Core>,
    threads: Vec<Thread>,
}

#[derive(Clone, Debug, Default)]
struct Core {
    /// The thread that has it.
    has: Option<u16>,
    /// Since when some thread has had it, if one has.
    busy_since: Time,
    /// The time before for which some thread had it.
    was_busy: Time,
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
    /// Since when an urgent one has it, if that is who has it.
    urgent_since: Option<Time>,
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
    /// Whether the thread executes, and does not wait for the hardware.
    executes: bool,
    /// The time at which its operation would have ended.
    came: Option<Time>,
}

#[derive(Clone, Debug)]
struct Thread {
    core: u16,
    /// Whether the thread sleeps, and is urgent when it is woken.
    is_urgent: bool,
    has_ended: bool,
    /// Those that wait for its end.
    joined_by: Vec<u16>,
}

/// A thread that has got a core, and when it runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The thread.
    pub thread: u16,
    /// The time.
    pub at: Time,
}

/// The permission of a thread that wants to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The thread has its core, and goes on at once.
    Now,
    /// Another has the core: it will be told.
    Later,
    /// The thread has waited its turn out, or used its quantum up: this one is next.
    Given(Next),
}

/// The result of a check whether a quantum is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimesOut {
    /// The core stays with who has it.
    Stays,
    /// The quantum is not over yet: look again then.
    Later(Time),
    /// The quantum is over, and this thread is next.
    Given(Next),
    /// The quantum is over, and the thread from which an urgent one had taken the core goes on by
    /// itself.
    GoesBack,
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
                is_urgent: false,
                has_ended: false,
                joined_by: Vec::new(),
            });
        }
        sharing
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    /// The core on which `thread` runs.
    pub fn core_of(&self, thread: u16) -> u16 {
        self.threads[usize::from(thread)].core
    }

    /// The time that all cores have been some thread's by `now`.
    pub fn busy(&self, now: Time) -> Time {
        let busy = self.cores.iter().map(|core| core.busy(now));
        busy.fold(Time::ZERO, |all, one| all + one)
    }

    /// Since when `thread` has lacked its core in the middle of what it executes, if it does.
    pub fn put_off_since(&self, thread: u16) -> Option<Time> {
        let put_off = self.cores[usize::from(self.core_of(thread))].put_off?;
        (put_off.thread == thread && put_off.executes).then_some(put_off.since)
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
            is_urgent: false,
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
                if let Some(at) = core.ends_later(now) {
                    return Turn::Given(Next { thread, at });
                }
                if !core.is_wanted() || now < core.over(self.costs) {
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

    /// `thread`, which sleeps, is urgent when it is woken.
    pub fn is_urgent_when_woken(&mut self, thread: u16) {
        self.threads[usize::from(thread)].is_urgent = true;
    }

    /// Returns whether `thread` is urgent, and has not been until now.
    pub fn becomes_urgent(&mut self, thread: u16) -> bool {
        std::mem::take(&mut self.threads[usize::from(thread)].is_urgent)
    }

    /// `thread`, which is urgent, wants to go on; `executes` says whether the thread that has its
    /// core does, or waits for the hardware.
    pub fn wants_at_once(&mut self, now: Time, thread: u16, executes: bool) -> Turn {
        let core = &mut self.cores[usize::from(self.threads[usize::from(thread)].core)];
        match core.has {
            Some(has) if has == thread => {}
            Some(_) if core.urgent_since.is_some() => {
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
        core.gives(now, Some(thread));
        core.urgent_since = Some(now);
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

    /// Returns whether there is a thread of that number.
    pub fn knows(&self, thread: u32) -> bool {
        (thread as usize) < self.threads.len()
    }

    /// Marks `thread` as ended, and returns the threads that wait for its end. It still has its
    /// core, if it had it, but does not want it.
    pub fn ends(&mut self, thread: u16) -> Vec<u16> {
        let number = thread;
        let thread = &mut self.threads[usize::from(thread)];
        thread.has_ended = true;
        let core = &mut self.cores[usize::from(thread.core)];
        core.alive -= 1;
        core.want.retain(|&other| other != number);
        core.urgent.retain(|&other| other != number);
        std::mem::take(&mut thread.joined_by)
    }

    /// `thread` does not wait for the end of another any longer.
    pub fn forgets(&mut self, thread: u16) {
        for other in &mut self.threads {
            other.joined_by.retain(|&waiter| waiter != thread);
        }
    }

    /// The time of the next [check](Self::times_out) of the quantum on `core`, if none is
    /// scheduled. Must be called after every change.
    pub fn timer(&mut self, now: Time, core: u16) -> Option<Time> {
        let core = &mut self.cores[usize::from(core)];
        if core.is_timed || !core.is_wanted() || core.has.is_none() {
            return None;
        }
        core.is_timed = true;
        Some(now.max(core.over(self.costs)))
    }

    /// Checks whether the quantum on `core` is over, at the time that [`Self::timer`] has given;
    /// `waits` says whether the thread that has the core waits for something. A thread that
    /// executes keeps its core to the end of its operation.
    pub fn times_out(&mut self, now: Time, core: u16, waits: bool) -> TimesOut {
        let core = &mut self.cores[usize::from(core)];
        core.is_timed = false;
        if core.has.is_none() || !core.is_wanted() {
            return TimesOut::Stays;
        }
        let over = core.over(self.costs);
        if now < over {
            core.is_timed = true;
            return TimesOut::Later(over);
        }
        match waits {
            true => core
                .next(now, self.costs)
                .map_or(TimesOut::GoesBack, TimesOut::Given),
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
    /// Gives the core to that thread from now on.
    fn gives(&mut self, now: Time, next: Option<u16>) {
        match (self.has, next) {
            (None, Some(_)) => self.busy_since = now,
            (Some(_), None) => self.was_busy += now.since(self.busy_since),
            _ => {}
        }
        self.has = next;
    }

    /// The time that it has been some thread's by `now`.
    fn busy(&self, now: Time) -> Time {
        let since = self.has.map_or(now, |_| self.busy_since);
        self.was_busy + now.since(since)
    }

    /// Returns whether others want it.
    fn is_wanted(&self) -> bool {
        !self.want.is_empty() || !self.urgent.is_empty() || self.put_off.is_some()
    }

    /// The end of the quantum of the thread that has it.
    fn over(&self, costs: Costs) -> Time {
        self.urgent_since.unwrap_or(self.since) + costs.quantum
    }

    /// The time until which the thread that has it is to go on with an operation that would have
    /// ended now, if urgent ones had not taken the core meanwhile.
    fn ends_later(&mut self, now: Time) -> Option<Time> {
        if self.urgent_since.is_some() {
            return None;
        }
        match std::mem::take(&mut self.owed) {
            Time::ZERO => (now < self.back_at).then_some(self.back_at),
            owed => Some(now + owed),
        }
    }

    /// The core goes to the next that wants it.
    fn next(&mut self, now: Time, costs: Costs) -> Option<Next> {
        let before = self.has;
        if let Some(thread) = self.urgent.pop_front() {
            self.gives(now, Some(thread));
            self.urgent_since = Some(now);
            return Some(Next { thread, at: now });
        }
        self.urgent_since = None;
        if let Some(put_off) = self.put_off.take() {
            return self.goes_back(now + costs.switch, put_off);
        }
        self.owed = Time::ZERO;
        let next = self.want.pop_front();
        self.gives(now, next);
        let thread = next?;
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
        // An execution goes on from where it was interrupted.
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
mod tests;
