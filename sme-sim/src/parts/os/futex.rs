//! Threads that sleep until another thread wakes them (Linux `futex(2)`).
//!
//! A waker pays for each thread that it wakes, one after another; a woken thread runs again only
//! when it has been scheduled, and no sooner than it has gone to sleep altogether.

use std::collections::VecDeque;

use crate::parts::tables;
use crate::time::Time;

/// Sleeping threads of one node, oldest first: on which word `W`, which thread, and when it is
/// asleep.
#[derive(Debug)]
pub struct Sleepers<W> {
    queue: VecDeque<(W, u16, Time)>,
}

/// A thread that is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// The thread.
    pub thread: u16,
    /// When its waker has done with it.
    pub called: Time,
    /// The time at which it has been scheduled.
    pub at: Time,
}

impl<W> Default for Sleepers<W> {
    fn default() -> Self {
        let queue = VecDeque::new();
        Self { queue }
    }
}

impl<W: PartialEq> Sleepers<W> {
    /// `thread` goes to sleep on `word`, and is asleep at `asleep`.
    pub fn sleeps(&mut self, word: W, thread: u16, asleep: Time) {
        self.queue.push_back((word, thread, asleep));
    }

    /// Wakes at most `most` of those who sleep on `word`, the first who came first: each costs the
    /// waker `wake` from `now` on, and is scheduled `resume` later.
    pub fn wake(
        &mut self,
        now: Time,
        word: &W,
        most: u32,
        (wake, resume): (Time, Time),
    ) -> Vec<Woken> {
        let mut woken = Vec::new();
        self.queue.retain(|(of, thread, asleep)| {
            if woken.len() as u64 >= u64::from(most) || of != word {
                return true;
            }
            let called = now + wake.times(woken.len() as u64 + 1);
            woken.push(Woken {
                thread: *thread,
                called,
                at: called.max(*asleep) + resume,
            });
            false
        });
        woken
    }

    /// `thread` sleeps no longer.
    pub fn forgets(&mut self, thread: u16) {
        self.queue.retain(|&(_, sleeper, _)| sleeper != thread);
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        tables::queue_bytes(&self.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_came_are_woken_first() {
        let ns = Time::from_ns;
        let mut sleepers = Sleepers::default();
        for (word, thread, asleep) in [(8, 0, 5), (16, 1, 5), (8, 2, 90), (8, 3, 5)] {
            sleepers.sleeps(word, thread, ns(asleep));
        }
        let woken = sleepers.wake(ns(50), &8, 2, (ns(10), ns(3)));
        let first = Woken {
            thread: 0,
            called: ns(60),
            at: ns(63),
        };
        // The second is not asleep before 90 ns.
        let second = Woken {
            thread: 2,
            called: ns(70),
            at: ns(93),
        };
        assert_eq!(woken, [first, second]);
        assert_eq!(sleepers.wake(ns(50), &8, 9, (ns(1), ns(1))).len(), 1);
        assert_eq!(sleepers.wake(ns(50), &8, 9, (ns(1), ns(1))), []);
        assert_eq!(sleepers.wake(ns(50), &16, 9, (ns(1), ns(1)))[0].thread, 1);
    }
}
