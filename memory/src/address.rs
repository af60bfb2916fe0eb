//! Locations and addresses. All offsets and addresses count bytes.

/// A location in the shared partition of one node's memory, the same for every thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The node whose memory holds the location (its home).
    pub node: u32,
    /// Byte offset into that node's shared partition.
    pub offset: u64,
}

impl Place {
    /// The location `bytes` further on in the same node's shared partition.
    pub const fn plus(self, bytes: u64) -> Self {
        Self {
            node: self.node,
            offset: self.offset + bytes,
        }
    }
}

/// The memory that holds the variables of a node by which threads of other nodes tell it something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Homes {
    /// The node's own.
    Own,
    /// Memory of nodes without threads, which all others reach and none of them caches coherently:
    /// a pool. Variables of node n lie in that of node `first + n % nodes`; those that only the
    /// threads of one node use stay in its own memory.
    Pool {
        /// The first node of the pool.
        first: u32,
        /// Nodes of the pool, at least 1.
        nodes: u32,
    },
}

impl Homes {
    /// Returns whether the memory of `node` holds what `nodes` nodes share.
    pub const fn has(self, node: u32, nodes: u32) -> bool {
        match self {
            Self::Own => node < nodes,
            Self::Pool { first, nodes } => node >= first && node - first < nodes,
        }
    }

    /// The node whose memory holds the variables of `node`, and how many other nodes have theirs
    /// before them there.
    pub const fn locate(self, node: u32) -> (u32, u32) {
        match self {
            Self::Own => (node, 0),
            Self::Pool { first, nodes } => (first + node % nodes, node / nodes),
        }
    }

    /// The node whose variables lie in the memory of `home`, with those of `before` other nodes
    /// before them, if there is one.
    pub const fn owner(self, (home, before): (u32, u32)) -> Option<u32> {
        match self {
            Self::Own if before == 0 => Some(home),
            Self::Pool { first, nodes } if self.has(home, 0) => match before.checked_mul(nodes) {
                Some(behind) => behind.checked_add(home - first),
                None => None,
            },
            _ => None,
        }
    }
}

/// By which of its addresses a thread reaches a location. Another node's memory has only global
/// ones, one past the caches and one through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// One's own memory like any other local memory, cached and coherent; another node's by its
    /// global address.
    Nearest,
    /// Always by the global address, one's own memory too (a loopback access). Not cached: every
    /// access goes to the memory it names.
    Global,
    /// By the global address through the caches of one's own node, which keep a copy that no
    /// other node invalidates or updates: see [`Cacheable`](crate::Cacheable).
    Cached,
    /// As a line that is tagged as a message buffer: see [`Tagged`](crate::Tagged). Where a machine
    /// has none, the same as [`Route::Global`].
    Tagged,
}

/// Address of a synchronization variable: one byte, one writer at a time, values `0..=127`. Where
/// threads take turns at writing it, something else orders them, such as a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flag(pub u64);

/// Address of an aligned 64-bit word of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub u64);

/// A register of one bit ([`TestAndSet`](crate::TestAndSet)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register {
    /// The node that it belongs to.
    pub node: u32,
    /// The number of the register among those of that node, from 0.
    pub number: u32,
}

/// A row of flags in the memory of one node: `first`, `first + stride`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The first flag.
    pub first: Flag,
    /// Bytes from one flag to the next: 1 when packed, a cache line when padded.
    pub stride: u32,
    /// The number of flags.
    pub count: u32,
}

impl Flags {
    /// The flag at `index`, which must be below `count`.
    pub fn at(&self, index: u32) -> Flag {
        debug_assert!(index < self.count, "flag {index} of {}", self.count);
        Flag(self.first.0 + u64::from(index) * u64::from(self.stride))
    }

    /// The flags from `index` on; none where `index` is past the end.
    pub fn skip(&self, index: u32) -> Self {
        Self {
            first: Flag(self.first.0 + u64::from(index) * u64::from(self.stride)),
            stride: self.stride,
            count: self.count.saturating_sub(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_owner_of_a_place_is_the_node_that_is_located_there(
            node in 0..u32::MAX / 2,
            first in 0..1000_u32,
            nodes in 1..1000_u32,
        ) {
            for homes in [Homes::Own, Homes::Pool { first, nodes }] {
                prop_assert_eq!(homes.owner(homes.locate(node)), Some(node));
            }
            let pool = Homes::Pool { first, nodes };
            prop_assert_eq!(pool.owner((first + nodes, node)), None);
            prop_assert_eq!(Homes::Own.owner((node, 1)), None);
        }
    }
}
