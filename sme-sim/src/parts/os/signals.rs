//! Signals between the threads of a node (POSIX real-time signals): they queue at their thread, each
//! with a value, and a thread that waits for one sleeps.

use std::collections::VecDeque;

/// The signals of a node's threads.
#[derive(Debug, Default)]
pub struct Signals {
    /// By thread, of those that have ever sent or awaited one.
    queues: Vec<Queue>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    came: VecDeque<u64>,
    is_awaited: bool,
}

impl Signals {
    fn of(&mut self, thread: u16) -> &mut Queue {
        let number = usize::from(thread);
        if self.queues.len() <= number {
            self.queues.resize(number + 1, Queue::default());
        }
        &mut self.queues[number]
    }

    /// A signal comes for `thread`; whether that is to be woken for it.
    pub fn comes(&mut self, thread: u16, value: u64) -> bool {
        let queue = self.of(thread);
        queue.came.push_back(value);
        std::mem::take(&mut queue.is_awaited)
    }

    /// The oldest signal of `thread`; without one it waits.
    pub fn takes(&mut self, thread: u16) -> Option<u64> {
        let queue = self.of(thread);
        let taken = queue.came.pop_front();
        queue.is_awaited = taken.is_none();
        taken
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
        let mut signals = Signals::default();
        assert!(!signals.comes(3, 7), "nobody waits");
        assert!(!signals.comes(3, 8));
        assert_eq!((signals.takes(3), signals.takes(3)), (Some(7), Some(8)));
        assert_eq!(signals.takes(3), None);
        assert!(signals.comes(3, 9));
        assert!(!signals.comes(3, 10), "it is awake already");
        assert_eq!(signals.takes(3), Some(9));
        assert_eq!((signals.takes(2), signals.takes(3)), (None, Some(10)));
    }
}
