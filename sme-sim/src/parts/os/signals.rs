//! Signals between the threads of a node (POSIX real-time signals): they queue at their thread,
//! each with a value, and a thread that waits for one sleeps.

use std::collections::VecDeque;

use crate::time::Time;

/// The signals of a node's threads.
#[derive(Debug, Default)]
pub struct Signals {
    /// By thread, of those that have ever been sent or have awaited one.
    queues: Vec<Queue>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    came: VecDeque<u64>,
    /// When the thread that waits is asleep.
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

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let came: usize = self.queues.iter().map(|queue| queue.came.capacity()).sum();
        self.queues.capacity() * size_of::<Queue>() + came * size_of::<u64>()
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
    }
}
