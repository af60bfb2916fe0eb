//! Source tags: which reads are under way, and whose they are.
//!
//! The requester has one table for reads of other nodes, the completer one for reads of its own
//! node's memory. A read takes the lowest free tag and leaves its context in the table; its
//! response brings the tag back and finds the context.

/// Most tags of a table: packets carry five bits.
pub const MAX_TAGS: u32 = 32;

/// A table of source tags, each with a context `C`.
#[derive(Clone, Debug)]
pub struct Tags<C> {
    /// Bit by bit: the tag is free.
    free: u32,
    /// Bit by bit: the tag exists.
    all: u32,
    /// Contexts, as far as tags were ever in use.
    contexts: Vec<C>,
}

impl<C: Copy> Tags<C> {
    /// A table of `count` tags, `1..=32` (others are cut to that).
    pub fn new(count: u32) -> Self {
        let all = u32::MAX >> (MAX_TAGS - count.clamp(1, MAX_TAGS));
        Self {
            free: all,
            all,
            contexts: Vec::new(),
        }
    }

    /// The tag that the next read gets; `None` if all are in use.
    pub fn lowest_free(&self) -> Option<u8> {
        (self.free != 0).then(|| self.free.trailing_zeros() as u8)
    }

    /// Whether a read holds `tag`.
    pub fn is_used(&self, tag: u8) -> bool {
        u32::from(tag) < MAX_TAGS && (self.all & !self.free) >> tag & 1 == 1
    }

    /// Whether no read is under way.
    pub fn is_quiet(&self) -> bool {
        self.free == self.all
    }

    /// Gives the lowest free tag to a read; `None` if all are in use.
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

    /// Frees `tag` and gives the context of the read that held it; `None`, and nothing happens,
    /// if no read did.
    pub fn free(&mut self, tag: u8) -> Option<C> {
        let context = *self.context(tag)?;
        self.free |= 1 << tag;
        Some(context)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.contexts.capacity() * size_of::<C>()
    }
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
            for (number, (allocate, tag)) in steps.into_iter().enumerate() {
                prop_assert_eq!(tags.lowest_free().is_some(), oracle.len() < count as usize);
                if allocate {
                    let lowest = (0..count as u8).find(|tag| !oracle.contains_key(tag));
                    prop_assert_eq!(tags.allocate(number), lowest);
                    lowest.map(|tag| oracle.insert(tag, number));
                } else {
                    // A tag that is not in use is refused: unknown, or freed twice.
                    prop_assert_eq!(tags.context(tag), oracle.get(&tag));
                    prop_assert_eq!(tags.free(tag), oracle.remove(&tag));
                    prop_assert_eq!(tags.free(tag), None);
                }
                prop_assert_eq!(tags.is_quiet(), oracle.is_empty());
            }
        }
    }
}
