//! Source tags: which reads are under way, and whose they are.
//!
//! The requester has one table for reads of other nodes, the completer one for reads of its own
//! node's memory. A read takes the lowest free tag and leaves its context in the table; its
//! response brings the tag back and finds the context. From the next cycle on no read holds the
//! tag, and from the one after that another may take it: the table's search for the lowest has a
//! register in front.

/// Most tags of a table: packets carry five bits.
pub const MAX_TAGS: u32 = 32;

/// No tag.
const NONE: u8 = u8::MAX;

/// A table of source tags, each with a context `C`.
#[derive(Clone, Debug)]
pub struct Tags<C> {
    /// Bit by bit: the tag is free.
    free: u32,
    /// The number of tags.
    count: u8,
    /// The tag that came back in this cycle, or [`NONE`].
    freed: u8,
    /// The one that came back in the cycle before, and is searched for in this one.
    returning: u8,
    /// Contexts, as far as tags were ever in use.
    contexts: Vec<C>,
}

impl<C: Copy> Tags<C> {
    /// A table of `count` tags, `1..=32` (others are cut to that).
    pub fn new(count: u32) -> Self {
        let count = count.clamp(1, MAX_TAGS) as u8;
        Self {
            free: all(count),
            count,
            freed: NONE,
            returning: NONE,
            contexts: Vec::new(),
        }
    }

    /// Begins a cycle; whether a tag that is not free in it will be in the next. It must be called
    /// in the cycle after one in which a tag came back; in others it may be left out.
    pub fn latch(&mut self) -> bool {
        self.free |= bit(self.returning);
        self.returning = std::mem::replace(&mut self.freed, NONE);
        self.returning != NONE
    }

    /// The tag that the next read gets; `None` if none is free.
    pub fn lowest_free(&self) -> Option<u8> {
        (self.free != 0).then(|| self.free.trailing_zeros() as u8)
    }

    /// Returns whether a read holds `tag`.
    pub fn is_used(&self, tag: u8) -> bool {
        let not_held = self.free | bit(self.freed) | bit(self.returning);
        tag < self.count && not_held & bit(tag) == 0
    }

    /// Returns whether no read is under way.
    pub fn is_quiet(&self) -> bool {
        self.free | bit(self.freed) | bit(self.returning) == all(self.count)
    }

    /// Gives the lowest free tag to a read; `None` if none is free.
    pub fn allocate(&mut self, context: C) -> Option<u8> {
        let tag = self.lowest_free()?;
        self.free &= self.free - 1;
        match self.contexts.get_mut(usize::from(tag)) {
            Some(place) => *place = context,
            // Tags are taken lowest first, so the next one new is the next in the list.
            None => self.contexts.push(context),
        }
        Some(tag)
    }

    /// The context of the read that holds `tag`; `None` if there is none.
    pub fn context(&self, tag: u8) -> Option<&C> {
        if self.is_used(tag) {
            self.contexts.get(usize::from(tag))
        } else {
            None
        }
    }

    /// Takes `tag` back and gives the context of the read that held it; `None`, and nothing
    /// happens, if no read did. At most one tag comes back in a cycle.
    pub fn free(&mut self, tag: u8) -> Option<C> {
        let context = *self.context(tag)?;
        debug_assert_eq!(self.freed, NONE, "one tag a cycle");
        self.freed = tag;
        Some(context)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.contexts.capacity() * size_of::<C>()
    }
}

/// The bit of `tag` in a mask of them; 0 for [`NONE`].
fn bit(tag: u8) -> u32 {
    1u32.checked_shl(tag.into()).unwrap_or(0)
}

/// The mask of `count` tags, 1 to [`MAX_TAGS`].
fn all(count: u8) -> u32 {
    u32::MAX >> (MAX_TAGS - u32::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map_that_hands_out_the_lowest_key(
            count in 1u32..=32,
            steps in prop::collection::vec((any::<bool>(), 0u8..40), 0..200),
        ) {
            let mut tags = Tags::new(count);
            let mut oracle = BTreeMap::new();
            // The tag that came back in the cycle before.
            let mut returning = None;
            for (number, (allocate, tag)) in steps.into_iter().enumerate() {
                prop_assert_eq!(tags.latch(), returning.is_some());
                // A tag that is not in use is refused: unknown, or freed twice.
                prop_assert_eq!(tags.context(tag), oracle.get(&tag));
                let free = |tag: &u8| !oracle.contains_key(tag) && Some(*tag) != returning;
                let lowest = (0..count as u8).find(free);
                prop_assert_eq!(tags.lowest_free(), lowest);
                let freed = tags.free(tag);
                prop_assert_eq!(freed, oracle.remove(&tag));
                prop_assert_eq!(tags.free(tag), None);
                if allocate {
                    prop_assert_eq!(tags.allocate(number), lowest);
                    lowest.map(|tag| oracle.insert(tag, number));
                }
                returning = freed.map(|_| tag);
                prop_assert_eq!(tags.is_quiet(), oracle.is_empty());
            }
        }
    }
}
