//! The pending events of one node's cores and memory, in order of time and, at one time, in the order
//! in which they were put in.
//!
//! Nearly all of them are due a constant after what causes them, and there are few such constants: so
//! each has a *lane*, a queue that is in order by itself, and the next event is the earliest head of a
//! lane. What has no lane, or does not fit at its end, goes into a heap. Times are picoseconds since
//! the [origin](Lanes::begin).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bits of a key for the order of events at one time.
const ORDER_BITS: u32 = 20;
/// So many events are put in before the order is counted anew.
const MOST_ORDER: u64 = 1 << ORDER_BITS;
/// An event this far ahead of the last one does not fit: 17 s.
const MOST_TIME: u64 = 1 << (u64::BITS - ORDER_BITS);

/// A queue of events of type `u32`.
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: Vec<VecDeque<(u64, u32)>>,
    /// The key of each lane's first event, and last of all the heap's; none is [`u64::MAX`].
    heads: Vec<u64>,
    /// The smallest of them, and whose it is.
    first: (u64, usize),
    rest: BinaryHeap<Reverse<(u64, u32)>>,
    order: u64,
    origin_ps: u64,
    /// When the last event taken was due.
    now_ps: u64,
}

impl Lanes {
    /// With `lanes` lanes, empty.
    pub fn new(lanes: usize) -> Self {
        Self {
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            heads: vec![u64::MAX; lanes + 1],
            first: (u64::MAX, 0),
            rest: BinaryHeap::new(),
            order: 0,
            origin_ps: 0,
            now_ps: 0,
        }
    }

    /// From now on times are at least `origin_ps`. Only when nothing is pending.
    pub fn begin(&mut self, origin_ps: u64) {
        debug_assert!(self.next_ps() == u64::MAX);
        (self.origin_ps, self.now_ps) = (origin_ps, origin_ps);
        self.order = 0;
    }

    /// When the next event is due; [`u64::MAX`] if there is none.
    #[inline]
    pub fn next_ps(&self) -> u64 {
        match self.first.0 {
            u64::MAX => u64::MAX,
            key => self.origin_ps + (key >> ORDER_BITS),
        }
    }

    /// Puts in what is due at `at_ps`, preferably at the end of `lane`.
    #[inline]
    pub fn push(&mut self, lane: usize, at_ps: u64, event: u32) {
        let key = self.key(at_ps);
        let queue = &mut self.lanes[lane];
        match queue.back() {
            None => {
                self.heads[lane] = key;
                self.first = self.first.min((key, lane));
            }
            Some(&(last, _)) if last > key => return self.push_key_to_rest(key, event),
            Some(_) => {}
        }
        queue.push_back((key, event));
    }

    /// Puts in what is due at `at_ps` and has no lane.
    #[inline]
    pub fn push_rest(&mut self, at_ps: u64, event: u32) {
        let key = self.key(at_ps);
        self.push_key_to_rest(key, event);
    }

    fn push_key_to_rest(&mut self, key: u64, event: u32) {
        self.rest.push(Reverse((key, event)));
        if let Some(head) = self.heads.last_mut() {
            *head = key.min(*head);
        }
        self.first = self.first.min((key, self.lanes.len()));
    }

    /// Takes the next event and when it is due.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let (key, lane) = self.first;
        if key == u64::MAX {
            return None;
        }
        let event = if let Some(queue) = self.lanes.get_mut(lane) {
            let (_, event) = queue.pop_front()?;
            self.heads[lane] = queue.front().map_or(u64::MAX, |&(key, _)| key);
            event
        } else {
            let Reverse((_, event)) = self.rest.pop()?;
            self.heads[lane] = self.rest.peek().map_or(u64::MAX, |&Reverse((key, _))| key);
            event
        };
        self.find_first();
        self.now_ps = self.origin_ps + (key >> ORDER_BITS);
        Some((self.now_ps, event))
    }

    /// Looks at all heads. Keys are distinct but for those of empty lanes.
    #[inline]
    fn find_first(&mut self) {
        let mut first = (u64::MAX, 0);
        for (lane, &key) in self.heads.iter().enumerate() {
            if key < first.0 {
                first = (key, lane);
            }
        }
        self.first = first;
    }

    #[inline]
    fn key(&mut self, at_ps: u64) -> u64 {
        if self.order == MOST_ORDER || at_ps - self.origin_ps >= MOST_TIME {
            self.begin_again();
        }
        debug_assert!(at_ps - self.origin_ps < MOST_TIME);
        let key = (at_ps - self.origin_ps) << ORDER_BITS | self.order;
        self.order += 1;
        key
    }

    /// Counts order anew, and time from the last event taken: nothing is put in for an earlier one.
    #[cold]
    fn begin_again(&mut self) {
        let origin = self.now_ps;
        let passed = (origin - self.origin_ps) << ORDER_BITS;
        let mut pending: Vec<(u64, usize, u32)> = Vec::new();
        for (lane, queue) in self.lanes.iter_mut().enumerate() {
            pending.extend(queue.drain(..).map(|(key, event)| (key, lane, event)));
        }
        let heap = self.lanes.len();
        let rest = self.rest.drain();
        pending.extend(rest.map(|Reverse((key, event))| (key, heap, event)));
        pending.sort_unstable();
        self.heads.fill(u64::MAX);
        self.first = (u64::MAX, 0);
        (self.origin_ps, self.order) = (origin, 0);
        for (key, lane, event) in pending {
            let at = (key - passed) >> ORDER_BITS;
            let key = at << ORDER_BITS | self.order;
            self.order += 1;
            if let Some(queue) = self.lanes.get_mut(lane) {
                if queue.is_empty() {
                    self.heads[lane] = key;
                }
                queue.push_back((key, event));
            } else {
                self.push_key_to_rest(key, event);
            }
        }
        self.find_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_as_they_were_put_in(
            acts in proptest::collection::vec((0usize..4, 0u64..50, any::<bool>()), 1..300),
            again_every in 1u64..40,
        ) {
            let mut lanes = Lanes::new(3);
            lanes.begin(1_000);
            let mut plain: Vec<(u64, u32)> = Vec::new();
            let mut now = 1_000;
            for (n, (lane, after, pop)) in acts.into_iter().enumerate() {
                let at = now + after;
                match lane {
                    3 => lanes.push_rest(at, n as u32),
                    lane => lanes.push(lane, at, n as u32),
                }
                plain.push((at, n as u32));
                if (n as u64).is_multiple_of(again_every) {
                    lanes.begin_again();
                }
                if pop {
                    plain.sort_unstable();
                    prop_assert_eq!(lanes.next_ps(), plain[0].0);
                    let first = plain.remove(0);
                    prop_assert_eq!(lanes.pop(), Some(first));
                    now = first.0;
                }
            }
            plain.sort_unstable();
            for event in plain {
                prop_assert_eq!(lanes.pop(), Some(event));
            }
            prop_assert_eq!(lanes.pop(), None);
        }
    }

    #[test]
    fn a_time_far_away_fits_once_the_others_have_passed() {
        let mut lanes = Lanes::new(1);
        lanes.begin(0);
        lanes.push(0, MOST_TIME - 1, 1);
        assert_eq!(lanes.pop(), Some((MOST_TIME - 1, 1)));
        lanes.push(0, MOST_TIME + 5, 2);
        assert_eq!(lanes.pop(), Some((MOST_TIME + 5, 2)));
    }
}
