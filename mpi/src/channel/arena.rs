//! A part of a node's memory, given out by the piece: the first hole that is large enough.

use std::collections::BTreeMap;

/// The part.
#[derive(Debug)]
pub(in crate::channel) struct Arena {
    begin: u64,
    bytes: u64,
    /// The pieces that are taken: offsets and lengths.
    taken: BTreeMap<u64, u64>,
}

impl Arena {
    /// So many bytes from there on.
    pub(in crate::channel) fn new(begin: u64, bytes: u64) -> Self {
        Self {
            begin,
            bytes,
            taken: BTreeMap::new(),
        }
    }

    /// Takes a piece, of whole words and at least one; none if no hole is large enough.
    pub(in crate::channel) fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(8)?;
        let mut hole = 0;
        for (&offset, &taken) in &self.taken {
            if offset - hole >= bytes {
                break;
            }
            hole = offset + taken;
        }
        if self.bytes.saturating_sub(hole) < bytes {
            return None;
        }
        self.taken.insert(hole, bytes);
        Some(self.begin + hole)
    }

    /// Gives a piece back; whether it was one.
    pub(in crate::channel) fn give(&mut self, at: u64) -> bool {
        let offset = at.checked_sub(self.begin);
        offset.is_some_and(|offset| self.taken.remove(&offset).is_some())
    }

    /// Returns whether it begins a piece that is taken.
    pub(in crate::channel) fn holds(&self, at: u64) -> bool {
        let offset = at.checked_sub(self.begin);
        offset.is_some_and(|offset| self.taken.contains_key(&offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_lie_apart_and_inside(steps in prop::collection::vec((any::<bool>(), 0_u64..40), 0..60)) {
            let mut arena = Arena::new(1000, 128);
            let mut pieces: Vec<(u64, u64)> = Vec::new();
            for (gives, number) in steps {
                if gives && !pieces.is_empty() {
                    let (at, _) = pieces.swap_remove(number as usize % pieces.len());
                    prop_assert!(arena.holds(at));
                    prop_assert!(arena.give(at));
                    prop_assert!(!arena.give(at));
                } else if let Some(at) = arena.take(number) {
                    let end = at + number.max(1);
                    prop_assert!(at >= 1000 && end <= 1128 && at.is_multiple_of(8));
                    prop_assert!(pieces.iter().all(|&(begin, before)| end <= begin || before <= at));
                    pieces.push((at, end));
                } else {
                    // Holes that are all too small: each is between pieces, or at the ends.
                    let long = number.max(1).next_multiple_of(8);
                    let mut taken = pieces.clone();
                    taken.sort_unstable();
                    let mut hole = 1000;
                    for (at, end) in taken {
                        prop_assert!(at - hole < long);
                        hole = end.next_multiple_of(8);
                    }
                    prop_assert!(1128 - hole < long);
                }
            }
        }
    }
}
