//! The pending events of one node, in the order in which they happen.
//!
//! The order is (time, source node, the source's sequence number): it depends on what is
//! simulated only, never on when the host's threads put an event in.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::kernel::prefetch::prefetch;
use crate::time::Time;

/// A node acts fewer than 2^44 times in a run; 20 bits remain for the source.
const SEQUENCE_BITS: u32 = 44;

/// The place of an event in the order of a node's events: its time above, what caused it below. One
/// number, so that comparing needs no branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// After everything.
    pub const NEVER: Key = Key(u128::MAX);

    /// Of what the `sequence`-th act of `source` causes at `at`.
    #[inline]
    pub fn new(at: Time, source: u32, sequence: u64) -> Self {
        let order = u64::from(source) << SEQUENCE_BITS | (sequence & ((1 << SEQUENCE_BITS) - 1));
        Self(u128::from(at.as_ps()) << 64 | u128::from(order))
    }

    /// Returns the time of the event.
    #[inline]
    pub fn at(self) -> Time {
        Time::from_ps((self.0 >> 64) as u64)
    }
}

/// Pending events of one node.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// One of them, any: many nodes never have more, and need no memory besides their own.
    one: Option<Pending<E>>,
    heap: BinaryHeap<Pending<E>>,
}

#[derive(Debug)]
struct Pending<E> {
    at: Time,
    /// The lower half of its [`Key`], kept in halves since a whole one would be aligned to 16
    /// bytes.
    order: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// A queue with nothing in it.
    pub fn new() -> Self {
        Self {
            one: None,
            heap: BinaryHeap::new(),
        }
    }

    /// Adds what `source` caused by its `sequence`-th act.
    pub fn push(&mut self, at: Time, source: u32, sequence: u64, event: E) {
        let order = Key::new(at, source, sequence).0 as u64;
        let pending = Pending { at, order, event };
        if self.one.is_none() {
            self.one = Some(pending);
            return;
        }
        if self.heap.len() == self.heap.capacity() {
            // Not twice as much: there are as many queues as nodes, and they soon have their size.
            self.heap.reserve_exact((self.heap.len() / 8).max(1));
        }
        self.heap.push(pending);
    }

    /// Returns the time of the first event; [`Time::NEVER`] where there is none.
    pub fn next(&self) -> Time {
        let one = self.one.as_ref().map_or(Time::NEVER, |one| one.at);
        self.heap.peek().map_or(one, |first| one.min(first.at))
    }

    /// Returns the place of the first event in the order; [`Key::NEVER`] where there is none.
    #[inline]
    pub fn next_key(&self) -> Key {
        let one = self.one.as_ref().map_or(Key::NEVER, Pending::key);
        self.heap.peek().map_or(one, |first| one.min(first.key()))
    }

    /// Takes the first event.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let first = self.heap.peek();
        let one = (self.one).take_if(|one| first.is_none_or(|first| one.key() < first.key()));
        let first = one.or_else(|| self.heap.pop())?;
        Some((first.at, first.event))
    }

    /// Moves events: each to the time that `to` says for it, if it says one.
    pub fn moves(&mut self, mut to: impl FnMut(Time, &E) -> Option<Time>) {
        let mut moved = |pending: &mut Pending<E>| {
            pending.at = to(pending.at, &pending.event).unwrap_or(pending.at);
        };
        self.one.iter_mut().for_each(&mut moved);
        let mut all = std::mem::take(&mut self.heap).into_vec();
        all.iter_mut().for_each(moved);
        self.heap = all.into();
    }

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        usize::from(self.one.is_some()) + self.heap.len()
    }

    /// Returns whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.one.is_none() && self.heap.is_empty()
    }

    /// Asks for the first of them, where they do not stand in the queue itself.
    #[inline]
    pub fn prefetch(&self) {
        let few = self.heap.len().min(4);
        prefetch(&self.heap.as_slice()[..few]);
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Pending<E>>()
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Pending<E> {
    #[inline]
    fn key(&self) -> Key {
        Key(u128::from(self.at.as_ps()) << 64 | u128::from(self.order))
    }
}

impl<E> PartialEq for Pending<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Pending<E> {}

impl<E> PartialOrd for Pending<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Pending<E> {
    /// The earliest is the greatest, because the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order_however_they_were_put_in(
            mut events in proptest::collection::vec((0u64..50, 0u32..4), 0..100),
        ) {
            let mut numbered: Vec<(u64, u32, u32)> = events
                .drain(..)
                .enumerate()
                .map(|(n, (at, source))| (at, source, n as u32))
                .collect();
            let mut queue = EventQueue::new();
            for &(at, source, n) in numbered.iter().rev() {
                queue.push(Time::from_ps(at), source, u64::from(n), (at, source, n));
            }
            numbered.sort_unstable();
            let taken: Vec<_> = std::iter::from_fn(|| queue.pop().map(|(_, e)| e)).collect();
            prop_assert_eq!(taken, numbered);
        }

        #[test]
        fn moved_events_come_in_order(
            events in proptest::collection::vec((0u64..50, 0u64..50, any::<bool>()), 0..100),
        ) {
            let mut queue = EventQueue::new();
            for (number, &(at, to, moves)) in (0..).zip(&events) {
                queue.push(Time::from_ps(at), 0, number, (number, moves.then_some(to)));
            }
            queue.moves(|_, &(_, to)| to.map(Time::from_ps));
            let taken: Vec<_> = std::iter::from_fn(|| queue.pop())
                .map(|(at, (number, _))| (at.as_ps(), number))
                .collect();
            let mut expected: Vec<(u64, u64)> = (0..)
                .zip(&events)
                .map(|(number, &(at, to, moves))| (if moves { to } else { at }, number))
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(taken, expected);
        }
    }
}
