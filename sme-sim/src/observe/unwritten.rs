//! Words that a cache holds newer than their homes do: what a program has stored and not written
//! back. Once the program has ended nothing brings them home, and what reads there reads old
//! values.

use std::fmt;

use sme_memory::Place;

use crate::parts::line::Bytes;

/// A word that a cache of memory of another node, or of its own behind its engine, has written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// The core with the cache; none where a node has one for all its cores.
    pub core: Option<u16>,
    /// The word.
    pub place: Place,
    /// The bytes of it that were written, a bit each from the lowest.
    pub enables: u8,
    /// The word as the cache has it.
    pub cached: u64,
}

/// A word of which a cache holds newer bytes than its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The node with the cache.
    pub node: u32,
    /// The core with the cache; none where the node has one for all its cores.
    pub core: Option<u16>,
    /// The word.
    pub place: Place,
    /// The word as the cache has it.
    pub cached: u64,
    /// The word as its home has it.
    pub at_home: u64,
}

impl Dirty {
    /// The word, if its home, which has `at_home`, holds other bytes.
    pub fn unwritten(self, node: u32, at_home: u64) -> Option<Unwritten> {
        let Dirty {
            core,
            place,
            enables,
            cached,
        } = self;
        let written = Bytes::enabled(place.offset, enables);
        (written.pick(cached) != written.pick(at_home)).then_some(Unwritten {
            node,
            core,
            place,
            cached,
            at_home,
        })
    }
}

impl Unwritten {
    /// In a few words; `name` names the word at a place.
    pub fn named(&self, name: &dyn Fn(Place) -> String) -> String {
        let Unwritten {
            place,
            cached,
            at_home,
            ..
        } = *self;
        format!(
            "{} is {cached:#x} in {} and {at_home:#x} at home",
            name(place),
            self.holder()
        )
    }

    /// The cache, in words.
    fn holder(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            write!(f, "the cache of node {}", self.node)?;
            self.core.map_or(Ok(()), |core| write!(f, " core {core}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_bytes_that_differ_count() {
        let dirty = Dirty {
            core: Some(3),
            place: Place {
                node: 2,
                offset: 64,
            },
            enables: 0b10,
            cached: 0x1122,
        };
        assert_eq!(dirty.unwritten(1, 0x1133), None);
        let unwritten = dirty.unwritten(1, 0x2222).expect("the second byte differs");
        assert_eq!(
            unwritten.named(&crate::observe::words::place),
            "byte 64 of node 2 is 0x1122 in the cache of node 1 core 3 and 0x2222 at home"
        );
    }
}
