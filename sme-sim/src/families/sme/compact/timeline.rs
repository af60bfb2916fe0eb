//! The pending events of one node's cores and memory, in order of time and, at one time, in the
//! order in which they were put in.
//!
//! Few are pending at a time, and nearly all are put in close to the end: so they simply stand in
//! order.

/// So many places an event is moved on one by one, before its place is looked for.
const NEAR: usize = 16;

/// A queue of events of type `u32`, by time in picoseconds.
#[derive(Debug, Default)]
pub struct Timeline {
    /// In order from `first` on; what stands before that has been taken.
    events: Vec<(u64, u32)>,
    first: usize,
}

impl Timeline {
    /// Returns the time of the next event; [`u64::MAX`] if there is none.
    #[inline]
    pub fn next_ps(&self) -> u64 {
        self.events.get(self.first).map_or(u64::MAX, |&(at, _)| at)
    }

    /// Returns the pending events, in order.
    pub fn pending(&self) -> &[(u64, u32)] {
        self.events.get(self.first..).unwrap_or_default()
    }

    /// Puts in what is due at `at_ps`.
    #[inline]
    pub fn push(&mut self, at_ps: u64, event: u32) {
        if self.events.len() == self.events.capacity() {
            self.make_room();
        }
        self.events.push((at_ps, event));
        let pending = &mut self.events[self.first..];
        let mut place = pending.len() - 1;
        let near = place.saturating_sub(NEAR);
        while place > near && pending[place - 1].0 > at_ps {
            pending[place] = pending[place - 1];
            place -= 1;
        }
        if place == near && near > 0 {
            let end = place;
            place = pending[..end].partition_point(|&(at, _)| at <= at_ps);
            pending.copy_within(place..end, place + 1);
        }
        pending[place] = (at_ps, event);
    }

    /// Makes room where much has been taken; else adds places.
    #[cold]
    fn make_room(&mut self) {
        if self.first > self.events.len() / 2 {
            self.events.drain(..self.first);
            self.first = 0;
        }
    }

    /// Takes the next event and when it is due.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let next = *self.events.get(self.first)?;
        self.first += 1;
        if self.first == self.events.len() {
            self.events.clear();
            self.first = 0;
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_as_they_were_put_in(
            acts in proptest::collection::vec((0u64..50, 0u8..4), 1..400),
        ) {
            let mut timeline = Timeline::default();
            let mut plain: Vec<(u64, u32)> = Vec::new();
            let mut now = 1_000;
            for (n, (after, pop)) in acts.into_iter().enumerate() {
                let at = now + after;
                timeline.push(at, n as u32);
                plain.push((at, n as u32));
                plain.sort_unstable();
                prop_assert_eq!(timeline.pending(), &plain[..]);
                if pop == 0 {
                    prop_assert_eq!(timeline.next_ps(), plain[0].0);
                    let first = plain.remove(0);
                    prop_assert_eq!(timeline.pop(), Some(first));
                    now = first.0;
                }
            }
            for event in plain {
                prop_assert_eq!(timeline.pop(), Some(event));
            }
            prop_assert_eq!((timeline.pop(), timeline.next_ps()), (None, u64::MAX));
        }
    }
}
