//! Signals between the threads of a node (POSIX real-time signals): they queue at their thread,
//! each with a value, and a thread that waits for one sleeps.

use std::collections::VecDeque;

use crate::time::Time;

/// The signals of a node's threads.
#[derive(Debug, Default)]
pub struct Signals {
    /// By thread, of those that have ever been sent or have awaited one.
    queues: Vec<Queue>,
    /// Those that are to come at a time, for which thread and with which value, in the order in
    /// which they were asked for.
    alarms: Vec<(Time, u16, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    came: VecDeque<u64>,
    /// The time at which the thread that waits is asleep.
    asleep: Option<Time>,
}

impl Signals {
    fn of(&mut self, thread: u16) -> &mut Queue {
        let number = usize::from(thread);
        if self.queues.len() <= number {
            self.queues.resize(number + 1, Queue::default());
        }
        &mut self.queues[number]
    }

    /// A signal comes for `thread`, which is to be woken for it if it has waited: when it is
    /// asleep.
    pub fn comes(&mut self, thread: u16, value: u64) -> Option<Time> {
        let queue = self.of(thread);
        queue.came.push_back(value);
        queue.asleep.take()
    }

    /// The oldest signal of `thread`; without one it waits, and is asleep at `asleep`.
    pub fn takes(&mut self, thread: u16, asleep: Time) -> Option<u64> {
        let queue = self.of(thread);
        let taken = queue.came.pop_front();
        if taken.is_none() {
            queue.asleep = Some(asleep);
        }
        taken
    }

    /// The oldest signal of a thread that was woken for one.
    pub fn taken(&mut self, thread: u16) -> Option<u64> {
        self.of(thread).came.pop_front()
    }

    /// `thread` waits no longer.
    pub fn forgets(&mut self, thread: u16) {
        self.of(thread).asleep = None;
    }

    /// `thread` is to be sent a signal at `at`.
    pub fn sets_alarm(&mut self, at: Time, thread: u16, value: u64) {
        self.alarms.push((at, thread, value));
    }

    /// Returns whether signals are to come at a time.
    pub fn awaits_alarm(&self) -> bool {
        !self.alarms.is_empty()
    }

    /// `thread` has ended: the signals that it has asked for do not come.
    pub fn forgets_alarms(&mut self, thread: u16) {
        self.alarms.retain(|&(_, of, _)| of != thread);
    }

    /// The value of the signal that `thread` is to be sent `now`, if there is one.
    pub fn alarm(&mut self, now: Time, thread: u16) -> Option<u64> {
        let is_due = |&(at, of, _): &(Time, u16, u64)| (at, of) == (now, thread);
        let due = self.alarms.iter().position(is_due)?;
        Some(self.alarms.remove(due).2)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let came: usize = self.queues.iter().map(|queue| queue.came.capacity()).sum();
        self.queues.capacity() * size_of::<Queue>()
            + self.alarms.capacity() * size_of::<(Time, u16, u64)>()
            + came * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_queue_and_wake_once() {
        let (mut signals, asleep) = (Signals::default(), Time::from_ns(5));
        assert_eq!(signals.comes(3, 7), None, "the thread does not wait");
        assert_eq!(signals.comes(3, 8), None);
        let taken = [(); 3].map(|()| signals.takes(3, asleep));
        assert_eq!(taken, [Some(7), Some(8), None]);
        assert_eq!(signals.comes(3, 9), Some(asleep));
        assert_eq!(signals.comes(3, 10), None, "it is awake already");
        assert_eq!(signals.taken(3), Some(9));
        assert_eq!(
            (signals.takes(2, asleep), signals.takes(3, asleep)),
            (None, Some(10))
        );
        signals.forgets(2);
        assert_eq!(signals.comes(2, 1), None, "it waits no longer");
    }

    #[test]
    fn alarms_come_once_at_their_time() {
        let (mut signals, ns) = (Signals::default(), Time::from_ns);
        for (at, thread, value) in [(5, 1, 10), (5, 2, 20), (5, 1, 11), (4, 1, 12)] {
            signals.sets_alarm(ns(at), thread, value);
        }
        let alarms = [4, 4, 5, 5, 5].map(|at| signals.alarm(ns(at), 1));
        assert_eq!(alarms, [Some(12), None, Some(10), Some(11), None]);
        assert!(signals.awaits_alarm());
        signals.forgets_alarms(2);
        assert_eq!(signals.alarm(ns(5), 2), None, "it has ended");
        assert!(!signals.awaits_alarm());
    }
}
