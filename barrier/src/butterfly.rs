//! The butterfly barrier: E. D. Brooks III, "The Butterfly Barrier", International Journal of
//! Parallel Programming 15(4), 1986; flags with parity and sense as in the dissemination barrier,
//! so that they need no reset.
//!
//! Among the local masters: in round k ranks that differ in bit k notify each other; after log2
//! nodes rounds every master has heard of every other. Inside a node threads are gathered before
//! and released after; with one thread per node nothing but the published algorithm is left.
//!
//! Where the number of nodes is not a power of two it is rounded up to one, N, as Brooks does, and
//! an existing rank stands in for each missing one: rank i for i + N/2. It takes both parts in
//! each round. An exchange between two missing ranks would repeat the one of their stand-ins, and
//! the last round of a stand-in would be with itself: these are left out.

use std::future::Future;

use sme_memory::{Flag, Memory, Place, Until};

use crate::episode::Episode;
use crate::layout::Row;
use crate::local::{NodeVariables, flip};
use crate::{Barrier, Layout, Member, Ranks, SpecError};

/// Description of a butterfly barrier.
#[derive(Clone, Debug)]
pub struct ButterflySpec {
    /// The order of the nodes.
    pub ranks: Ranks,
    /// Threads per node.
    pub cores: u32,
    /// The layout of flags and phases.
    pub layout: Layout,
}

/// The butterfly barrier.
#[derive(Clone, Debug)]
pub struct Butterfly {
    ranks: Ranks,
    local: NodeVariables,
    rounds: u32,
    /// Parts a rank may have to take: its own, and that of a missing rank.
    parts: u32,
    /// Of each node: a flag for each parity, round and part.
    flags: Row,
    bytes: u64,
}

/// The exchange of one part in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchange {
    /// The rank to notify, which notifies as well.
    with: u32,
    /// The part in which that rank takes it.
    part: u32,
}

/// A rank's own part.
const OWN: u32 = 0;
/// The part of the missing rank for which it stands in.
const MISSING: u32 = 1;

impl Butterfly {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread or the layout is of no use.
    pub fn new(spec: ButterflySpec) -> Result<Self, SpecError> {
        let mut allocator = spec.layout.allocator()?;
        let nodes = spec.ranks.nodes();
        let rounds = u64::from(nodes).next_power_of_two().trailing_zeros();
        let parts = if nodes.is_power_of_two() { 1 } else { 2 };
        Ok(Self {
            local: NodeVariables::new(&mut allocator, spec.cores)?,
            rounds,
            parts,
            flags: allocator.shared_flags(2 * rounds * parts, nodes)?,
            bytes: allocator.bytes()?,
            ranks: spec.ranks,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Rounds among the masters: ⌈log2 nodes⌉.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Returns the exchange of `rank` in `round` in one of its parts, if there is one.
    fn exchange(&self, rank: u32, part: u32, round: u32) -> Option<Exchange> {
        let nodes = u64::from(self.ranks.nodes());
        let half = (1 << self.rounds) / 2;
        let rank = u64::from(rank);
        let played = if part == OWN { rank } else { rank + half };
        let partner = played ^ (1 << round);

        if part == MISSING {
            let stands_in = rank < half && played >= nodes;
            return (stands_in && partner >= half && partner < nodes).then_some(Exchange {
                with: partner as u32,
                part: OWN,
            });
        }
        if partner < nodes {
            return Some(Exchange {
                with: partner as u32,
                part: OWN,
            });
        }
        let stand_in = partner - half;
        (stand_in != rank).then_some(Exchange {
            with: stand_in as u32,
            part: MISSING,
        })
    }

    /// The flag by which `node` is notified in a round and part.
    fn flag<M: Memory>(&self, memory: &M, node: u32, parity: u32, round: u32, part: u32) -> Flag {
        let index = (parity * self.rounds + round) * self.parts + part;
        self.flags.flag(memory, node, index)
    }
}

impl<M: Memory> Barrier<M> for Butterfly {
    type Local = Episode;

    fn wait(&self, memory: &M, me: Member, local: &mut Episode) -> impl Future<Output = ()> + Send {
        let episode = local.next();
        self.local.with_master(memory, me.core, move || async move {
            self.local.gather(memory, episode.phase()).await;

            let rank = self.ranks.rank(memory.node());
            let parity = episode.parity();
            for round in 0..self.rounds {
                for part in 0..self.parts {
                    if let Some(other) = self.exchange(rank, part, round) {
                        let node = self.ranks.node(other.with);
                        let theirs = self.flag(memory, node, parity, round, other.part);
                        memory.set(theirs, episode.sense()).await;
                    }
                }
                for part in 0..self.parts {
                    if self.exchange(rank, part, round).is_some() {
                        let mine = self.flag(memory, memory.node(), parity, round, part);
                        memory.wait(mine, Until::Is(episode.sense())).await;
                    }
                }
            }

            if self.local.has_slaves() {
                memory
                    .set(self.local.phase(memory), flip(episode.phase()))
                    .await;
            }
        })
    }

    fn variable(&self, place: Place) -> Option<String> {
        self.local.variable(place).or_else(|| {
            let (node, index) = self.flags.find(place)?;
            let round = index / self.parts % self.rounds;
            Some(format!("node {node}'s flag of round {round}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn butterfly(nodes: u32) -> Butterfly {
        let spec = ButterflySpec {
            ranks: Ranks::rows(nodes).unwrap(),
            cores: 1,
            layout: Layout::packed(64),
        };
        Butterfly::new(spec).unwrap()
    }

    proptest! {
        #[test]
        fn exchanges_are_mutual_and_reach_everybody(nodes in 1..70u32) {
            let barrier = butterfly(nodes);
            let mut heard: Vec<u128> = (0..nodes).map(|rank| 1 << rank).collect();
            for round in 0..barrier.rounds {
                let before = heard.clone();
                for rank in 0..nodes {
                    for part in 0..barrier.parts {
                        let Some(other) = barrier.exchange(rank, part, round) else { continue };
                        prop_assert_ne!(other.with, rank);
                        let back = barrier.exchange(other.with, other.part, round);
                        prop_assert_eq!(back, Some(Exchange { with: rank, part }));
                        heard[rank as usize] |= before[other.with as usize];
                    }
                }
            }
            prop_assert!(heard.iter().all(|&ranks| ranks.count_ones() == nodes));
        }
    }
}
