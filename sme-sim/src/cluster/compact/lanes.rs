//! The pending events of one node's cores and memory, in order of time and, at one time, in the order
//! in which they were put in.
//!
//! Nearly all of them are due a constant after what causes them, and there are few such constants: so
//! each has a *lane*, a queue that is in order by itself, and the next event is the earliest head of a
//! lane. What has no lane, or does not fit at its end, goes into a heap, which is one lane more. Times
//! are picoseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bits of a key for its lane.
const LANE_BITS: u32 = 5;
/// Bits for the order of events at one time.
const ORDER_BITS: u32 = 15;
const BELOW_TIME: u32 = LANE_BITS + ORDER_BITS;
/// So many events are put in before the order is counted anew.
const MOST_ORDER: u64 = 1 << ORDER_BITS;
/// An event this far ahead of the last one has no key: 17 s.
const MOST_TIME: u64 = 1 << (u64::BITS - BELOW_TIME);
/// The key of no event.
const NONE: u64 = u64::MAX;
/// Leaves of the tree of heads.
const LEAVES: usize = 1 << LANE_BITS;
/// The most lanes: one is the heap's, and the last is left over, so that no key is [`NONE`].
pub const MOST_LANES: usize = (1 << LANE_BITS) - 2;
/// The heap's lane.
const HEAP: usize = MOST_LANES;

/// A queue of events of type `u32`.
#[derive(Debug)]
pub struct Lanes {
    /// Keys and events. A key is the time since the origin, the order, and the lane.
    lanes: Vec<VecDeque<(u64, u32)>>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// A tree of which the leaves are the keys of the lanes' first events and every other node is the
    /// lesser of its two children, 2n and 2n + 1: at 1 the least of all.
    heads: [u64; 2 * LEAVES],
    order: u64,
    origin_ps: u64,
    /// When the last event taken was due.
    now_ps: u64,
    /// What has no key: when, which was put in first, and what.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_order: u64,
}

impl Lanes {
    /// With `lanes` lanes, at most [`MOST_LANES`], empty.
    pub fn new(lanes: usize) -> Self {
        debug_assert!(lanes <= MOST_LANES);
        Self {
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            heap: BinaryHeap::new(),
            heads: [NONE; 2 * LEAVES],
            order: 0,
            origin_ps: 0,
            now_ps: 0,
            far: BinaryHeap::new(),
            far_order: 0,
        }
    }

    /// From now on times are at least `origin_ps`. Only when nothing is pending.
    pub fn begin(&mut self, origin_ps: u64) {
        debug_assert!(self.next_ps() == u64::MAX);
        (self.origin_ps, self.now_ps) = (origin_ps, origin_ps);
        self.order = 0;
    }

    /// What is pending, in order, with its times; none if that is more than `most` or far away.
    pub fn pending(&self, most: usize) -> Option<Box<[(u64, u32)]>> {
        let count = self.lanes.iter().map(VecDeque::len).sum::<usize>() + self.heap.len();
        if count > most || !self.far.is_empty() {
            return None;
        }
        let in_lanes = self.lanes.iter().flatten().copied();
        let on_heap = self.heap.iter().map(|&Reverse(pending)| pending);
        let mut pending: Vec<(u64, u32)> = in_lanes.chain(on_heap).collect();
        pending.sort_unstable();
        for (key, _) in &mut pending {
            *key = self.origin_ps + (*key >> BELOW_TIME);
        }
        Some(pending.into())
    }

    /// When the next event is due; [`u64::MAX`] if there is none.
    #[inline]
    pub fn next_ps(&self) -> u64 {
        let near = match self.first() {
            NONE => u64::MAX,
            key => self.origin_ps + (key >> BELOW_TIME),
        };
        match self.far.peek() {
            None => near,
            Some(&Reverse((at, ..))) => near.min(at),
        }
    }

    /// Puts in what is due at `at_ps`, preferably at the end of `lane`.
    #[inline]
    pub fn push(&mut self, lane: usize, at_ps: u64, event: u32) {
        let Some(key) = self.key(at_ps) else {
            return self.push_far(at_ps, event);
        };
        let key = key | lane as u64;
        let queue = &mut self.lanes[lane];
        match queue.back() {
            None => self.lower_head(lane, key),
            Some(&(last, _)) if last > key => return self.push_on_heap(key, event),
            Some(_) => {}
        }
        self.lanes[lane].push_back((key, event));
    }

    /// Puts in what is due at `at_ps` and has no lane.
    #[inline]
    pub fn push_rest(&mut self, at_ps: u64, event: u32) {
        match self.key(at_ps) {
            Some(key) => self.push_on_heap(key, event),
            None => self.push_far(at_ps, event),
        }
    }

    fn push_on_heap(&mut self, key: u64, event: u32) {
        let key = key >> LANE_BITS << LANE_BITS | HEAP as u64;
        self.heap.push(Reverse((key, event)));
        if key < self.heads[LEAVES + HEAP] {
            self.lower_head(HEAP, key);
        }
    }

    #[cold]
    fn push_far(&mut self, at_ps: u64, event: u32) {
        self.far.push(Reverse((at_ps, self.far_order, event)));
        self.far_order += 1;
    }

    /// Takes the next event and when it is due.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        if !self.far.is_empty()
            && let Some(far) = self.pop_far()
        {
            return Some(far);
        }
        let key = self.first();
        if key == NONE {
            return None;
        }
        let lane = (key & ((1 << LANE_BITS) - 1)) as usize;
        let event = if let Some(queue) = self.lanes.get_mut(lane) {
            let (_, event) = queue.pop_front()?;
            let next = queue.front().map_or(NONE, |&(key, _)| key);
            self.raise_head(lane, next);
            event
        } else {
            let Reverse((_, event)) = self.heap.pop()?;
            let next = self.heap.peek().map_or(NONE, |&Reverse((key, _))| key);
            self.raise_head(HEAP, next);
            event
        };
        self.now_ps = self.origin_ps + (key >> BELOW_TIME);
        Some((self.now_ps, event))
    }

    /// The least key of all.
    #[inline]
    fn first(&self) -> u64 {
        self.heads[1]
    }

    /// The first event of a lane has this key, lower than the one before it had.
    #[inline]
    fn lower_head(&mut self, lane: usize, key: u64) {
        for level in 0..=LANE_BITS {
            let head = &mut self.heads[(LEAVES + lane) >> level];
            *head = key.min(*head);
        }
    }

    /// The first event of a lane has this key, higher than the one before it had.
    #[inline]
    fn raise_head(&mut self, lane: usize, key: u64) {
        let mut least = key;
        for level in 0..LANE_BITS {
            let node = (LEAVES + lane) >> level;
            self.heads[node] = least;
            least = least.min(self.heads[node ^ 1]);
        }
        self.heads[1] = least;
    }

    /// The key of what is put in for `at_ps`, its lane left out; none if that is too far away.
    #[inline]
    fn key(&mut self, at_ps: u64) -> Option<u64> {
        if self.order == MOST_ORDER || at_ps - self.origin_ps >= MOST_TIME {
            self.begin_again();
        }
        let after = at_ps - self.origin_ps;
        if after >= MOST_TIME {
            return None;
        }
        let key = (after << ORDER_BITS | self.order) << LANE_BITS;
        self.order += 1;
        Some(key)
    }

    /// The first of what was too far away, if nothing is due before: it was put in before whatever is
    /// due at the same time.
    #[cold]
    fn pop_far(&mut self) -> Option<(u64, u32)> {
        let &Reverse((at, _, event)) = self.far.peek()?;
        if self.next_ps() < at {
            return None;
        }
        self.far.pop();
        self.now_ps = at;
        Some((at, event))
    }

    /// Counts order anew, and time from the last event taken: nothing is put in for an earlier one.
    #[cold]
    fn begin_again(&mut self) {
        let passed = self.now_ps - self.origin_ps;
        let mut pending: Vec<(u64, u32)> = Vec::new();
        for queue in &mut self.lanes {
            pending.extend(queue.drain(..));
        }
        pending.extend(self.heap.drain().map(|Reverse(pending)| pending));
        pending.sort_unstable();
        self.heads = [NONE; 2 * LEAVES];
        (self.origin_ps, self.order) = (self.now_ps, 0);
        for (key, event) in pending {
            let lane = (key & ((1 << LANE_BITS) - 1)) as usize;
            let after = (key >> BELOW_TIME) - passed;
            let key = (after << ORDER_BITS | self.order) << LANE_BITS;
            self.order += 1;
            if lane == HEAP {
                self.push_on_heap(key, event);
                continue;
            }
            let key = key | lane as u64;
            if self.lanes[lane].is_empty() {
                self.lower_head(lane, key);
            }
            self.lanes[lane].push_back((key, event));
        }
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
        lanes.push(0, 3 * MOST_TIME, 3);
        lanes.push(0, 3 * MOST_TIME - 1, 4);
        assert_eq!(lanes.pop(), Some((MOST_TIME + 5, 2)));
        assert_eq!(lanes.next_ps(), 3 * MOST_TIME - 1);
        assert_eq!(lanes.pop(), Some((3 * MOST_TIME - 1, 4)));
        lanes.push(0, 3 * MOST_TIME, 5);
        assert_eq!(lanes.pop(), Some((3 * MOST_TIME, 3)));
        assert_eq!(lanes.pop(), Some((3 * MOST_TIME, 5)));
        assert_eq!(lanes.pop(), None);
    }
}
