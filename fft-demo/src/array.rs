//! Arrays of 64-bit words in global memory: which node holds which part of them.
//!
//! A [`Pool`] hands out the nodes' shared partitions, granule by granule (a page, as an operating
//! system would). An [`Array`] is a table of granules, so that a program can find any word of it.
//! Sizes and indices count words unless they say bytes.

use std::ops::Range;

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_memory::{Memory, Place, Route, Word};
use thiserror::Error;

const WORD_BYTES: u64 = 8;

/// Over which nodes the granules of an array are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Every node has a contiguous part, in the order of the nodes.
    Block,
    /// Granules are dealt to all nodes in turn and then shuffled: each node has as many as any
    /// other, give or take one. Where in its node one lies is drawn with it: in the order of the
    /// array, neighbours would lie at nearly the same offset everywhere, and want the same sets of
    /// a cache.
    Random,
}

sme_barrier::names!(Placement, "placement", { Block => "block", Random => "random" });

/// The smallest granule, in bytes: programs keep together what lies within 64 bytes, on machines
/// with shorter lines, too.
pub const LEAST_GRANULE_BYTES: u64 = 64;

/// The reason why memory cannot be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// A granule is not a power of two of at least [`LEAST_GRANULE_BYTES`].
    #[error(
        "a granule of {bytes} bytes: it must be a power of two, {LEAST_GRANULE_BYTES} at least"
    )]
    Granule {
        /// The bytes asked for.
        bytes: u64,
    },
    /// There are no nodes to hold anything.
    #[error("no node holds memory")]
    NoNodes,
    /// The nodes' shared partitions are too small.
    #[error("the data does not fit: it takes {needed} bytes of each node's {available}")]
    Full {
        /// Bytes of a shared partition that would be taken.
        needed: u64,
        /// Bytes of it that there are.
        available: u64,
    },
    /// This computer has no memory for the table of an array's granules.
    #[error("{granules} granules of an array: this computer has no memory for their table")]
    Table {
        /// The granules of the array.
        granules: u64,
    },
}

/// The nodes' shared partitions, as far as they have not been handed out.
#[derive(Clone, Debug)]
pub struct Pool {
    granule_bytes: u64,
    /// The first node.
    first: u32,
    /// The first free byte of each node's shared partition.
    next: Vec<u64>,
    available: u64,
    random: Pcg32,
}

impl Pool {
    /// The memory of the first `nodes` nodes from byte `from` of their shared partitions to byte
    /// `to`, in granules of `granule_bytes`. `seed` decides what [`Placement::Random`] draws.
    ///
    /// # Errors
    /// [`ArrayError::Granule`], [`ArrayError::NoNodes`].
    pub fn new(
        nodes: u32,
        (from, to): (u64, u64),
        granule_bytes: u64,
        seed: u64,
    ) -> Result<Self, ArrayError> {
        Self::over(0..nodes, (from, to), granule_bytes, seed)
    }

    /// The same of any nodes that follow each other.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn over(
        nodes: Range<u32>,
        (from, to): (u64, u64),
        granule_bytes: u64,
        seed: u64,
    ) -> Result<Self, ArrayError> {
        if !granule_bytes.is_power_of_two() || granule_bytes < LEAST_GRANULE_BYTES {
            return Err(ArrayError::Granule {
                bytes: granule_bytes,
            });
        }
        if nodes.is_empty() {
            return Err(ArrayError::NoNodes);
        }
        Ok(Self {
            granule_bytes,
            first: nodes.start,
            next: vec![from.next_multiple_of(granule_bytes); nodes.len()],
            available: to,
            random: Pcg32::new(seed, 0xa7),
        })
    }

    /// `bytes` bytes at the same offset in every node's shared partition, for what is laid out
    /// alike in all of them: barriers and locks. Returns that offset.
    ///
    /// # Errors
    /// [`ArrayError::Full`] if a node has no room for them.
    pub fn reserve(&mut self, bytes: u64) -> Result<u64, ArrayError> {
        let offset = self.next.iter().copied().max().unwrap_or(0);
        let needed = bytes
            .checked_next_multiple_of(self.granule_bytes)
            .and_then(|bytes| bytes.checked_add(offset))
            .unwrap_or(u64::MAX);
        if needed > self.available {
            return Err(ArrayError::Full {
                needed,
                available: self.available,
            });
        }
        self.next.fill(needed);
        Ok(offset)
    }

    /// An array of `words` words. If there is an error the pool is as it was.
    ///
    /// # Errors
    /// [`ArrayError::Full`] if a node has no room for its part; [`ArrayError::Table`] if this
    /// computer has none for the table of its granules.
    pub fn array(&mut self, words: u64, placement: Placement) -> Result<Array, ArrayError> {
        // Fewer than its words, as a granule has several.
        let granules = words.div_ceil(self.granule_bytes / WORD_BYTES);
        let nodes = self.next.len() as u64;
        // The granules on the nodes before `node`: at most all, so that 64 bits hold them.
        let before = |node: u64| {
            let product = u128::from(node) * u128::from(granules);
            product.div_ceil(u128::from(nodes)) as u64
        };
        let share = |node: u64| match placement {
            Placement::Block => before(node + 1) - before(node),
            Placement::Random => granules / nodes + u64::from(node < granules % nodes),
        };
        for (node, &next) in self.next.iter().enumerate() {
            let bytes = share(node as u64).checked_mul(self.granule_bytes);
            let needed = bytes.and_then(|bytes| bytes.checked_add(next));
            let needed = needed.unwrap_or(u64::MAX);
            // A node that has no part of it may be full.
            if share(node as u64) > 0 && needed > self.available {
                return Err(ArrayError::Full {
                    needed,
                    available: self.available,
                });
            }
        }
        let mut places = Vec::new();
        let length = usize::try_from(granules).map_err(|_| ArrayError::Table { granules })?;
        let room = places.try_reserve_exact(length);
        room.map_err(|_| ArrayError::Table { granules })?;
        let mut take = |node: u64| {
            let next = &mut self.next[node as usize];
            places.push(Place {
                node: self.first + node as u32,
                offset: *next,
            });
            *next += self.granule_bytes;
        };
        match placement {
            Placement::Block => {
                let homes = (0..nodes).flat_map(|node| (0..share(node)).map(move |_| node));
                homes.for_each(&mut take);
            }
            Placement::Random => (0..granules).for_each(|granule| take(granule % nodes)),
        }
        if placement == Placement::Random {
            for last in (1..places.len()).rev() {
                let other = self.random.next_u64() % (last as u64 + 1);
                places.swap(last, other as usize);
            }
        }
        Ok(Array {
            granule_shift: self.granule_bytes.trailing_zeros(),
            granules: places.into(),
            words,
        })
    }
}

/// An array of 64-bit words, spread over the nodes.
#[derive(Clone, Debug)]
pub struct Array {
    granule_shift: u32,
    granules: Box<[Place]>,
    words: u64,
}

impl Array {
    /// Returns the number of words.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Words of a granule: the words from a multiple of it to the next lie side by side in the
    /// memory of one node, at addresses that follow each other.
    pub fn granule_words(&self) -> u64 {
        (1 << self.granule_shift) / WORD_BYTES
    }

    /// Returns the place of the word at `index`, which must be below [`Self::words`].
    #[inline]
    pub fn place(&self, index: u64) -> Place {
        debug_assert!(index < self.words, "word {index} of {}", self.words);
        let byte = index * WORD_BYTES;
        let granule = self.granules[(byte >> self.granule_shift) as usize];
        granule.plus(byte & ((1 << self.granule_shift) - 1))
    }

    /// Returns the index of the word that lies at `place`, if one does. Looks through the whole
    /// table.
    pub fn index(&self, place: Place) -> Option<u64> {
        let bytes = 1 << self.granule_shift;
        let holds = |granule: &Place| {
            let from = granule.offset;
            granule.node == place.node && (from..from + bytes).contains(&place.offset)
        };
        let granule = self.granules.iter().position(holds)?;
        let within = place.offset - self.granules[granule].offset;
        let index = ((granule as u64) << self.granule_shift | within) / WORD_BYTES;
        (index < self.words).then_some(index)
    }

    /// The address by which a thread reaches the word at `index`.
    #[inline]
    pub fn word<M: Memory>(&self, memory: &M, index: u64, route: Route) -> Word {
        memory.word(self.place(index), route)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn every_word_has_a_place_of_its_own_and_every_node_its_share(
            nodes in 1u32..7, sizes in proptest::collection::vec(1u64..300, 1..4), random: bool,
        ) {
            let placement = if random { Placement::Random } else { Placement::Block };
            let mut pool = Pool::new(nodes, (100, 1 << 20), 128, 7)?;
            let mut seen = HashSet::new();
            for words in sizes {
                let array = pool.array(words, placement)?;
                let mut granules = vec![0u64; nodes as usize];
                let reserved = pool.reserve(3 * 128)?;
                for node in 0..nodes {
                    for offset in (reserved..reserved + 3 * 128).step_by(8) {
                        let is_new = seen.insert(Place { node, offset });
                        prop_assert!(is_new);
                    }
                }
                for index in 0..words {
                    let place = array.place(index);
                    prop_assert_eq!(array.index(place), Some(index));
                    prop_assert!(seen.insert(place));
                    prop_assert!(place.offset >= 100 && place.node < nodes);
                    if index % 16 == 0 {
                        granules[place.node as usize] += 1;
                    }
                    if placement == Placement::Block && index > 0 {
                        prop_assert!(array.place(index - 1).node <= place.node);
                    }
                }
                let most = granules.iter().max().copied().unwrap_or(0);
                let least = granules.iter().min().copied().unwrap_or(0);
                prop_assert!(most - least <= 1, "{granules:?}");
            }
        }
    }

    #[test]
    fn lines_of_a_row_spread_over_the_sets_of_a_cache() {
        let (nodes, lines, sets) = (64, 1 << 15, 512);
        let mut pool = Pool::new(nodes, (0, 1 << 20), 64, 7).expect("a pool");
        let array = pool.array(lines * 8, Placement::Random).expect("room");
        for row in [0, lines / 2, lines - 256] {
            let set = |line| array.place((row + line) * 8).offset / 64 % sets;
            let taken: HashSet<u64> = (0..256).map(set).collect();
            // Of 512 sets, 256 balls hit 200 on average.
            assert!(taken.len() > 170, "{} sets from line {row}", taken.len());
        }
    }

    #[test]
    fn what_does_not_fit_takes_nothing_from_the_pool() {
        for placement in [Placement::Block, Placement::Random] {
            let mut pool = Pool::new(3, (0, 1024), 128, 7).expect("a pool");
            for (words, needed) in [
                (1 << 61, 1 << 63),
                (u64::MAX, u64::MAX),
                (1 << 40, (1 << 43) / 3 + 128),
                (3 * 128 + 1, 1152),
            ] {
                let refused = pool.array(words, placement).map(|array| array.words());
                let Err(ArrayError::Full {
                    needed: told,
                    available: 1024,
                }) = refused
                else {
                    panic!("{words} words: {refused:?}");
                };
                assert!(told <= needed && told > 1024, "{words} words: {told}");
            }
            let whole = pool.array(3 * 128, placement).expect("all is free");
            assert_eq!(whole.words(), 3 * 128);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut pool = Pool::new(2, (0, 256), 128, 0).expect("a pool of two nodes");
        let whole = pool.array(64, Placement::Block).expect("room");
        assert_eq!(whole.index(Place { node: 2, offset: 0 }), None);
        let full = pool.array(1, Placement::Block).map(|array| array.words());
        assert_eq!(
            full,
            Err(ArrayError::Full {
                needed: 384,
                available: 256
            })
        );
        assert!(Pool::new(2, (0, 256), 96, 0).is_err());
        assert!(Pool::new(0, (0, 256), 64, 0).is_err());
    }
}
