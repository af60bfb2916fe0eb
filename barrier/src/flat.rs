//! The flat barrier with local masters and disseminated phase: H. Fröning et al., "Highly Scalable
//! Barriers for Future High-Performance Computing Clusters", Sec. V-B, *flat* in Fig. 8.
//!
//! One thread per node, the local master, stands for its node; the master of rank 0 is the global
//! master and checks one flag per node. Every node has a phase of its own, so that all spin in
//! their caches and no remote load is left: 2 (nodes - 1) remote stores per episode.

use std::future::Future;

use sme_memory::{Memory, Place, Route, Until};

use crate::layout::Row;
use crate::local::{NodeVariables, flip};
use crate::{Barrier, Layout, Member, Ranks, SpecError};

/// Description of a flat barrier.
#[derive(Clone, Debug)]
pub struct FlatSpec {
    /// The nodes: the global master is thread 0 of the node of rank 0, which releases the others
    /// in the order of their ranks.
    pub ranks: Ranks,
    /// Threads per node.
    pub cores: u32,
    /// The layout of flags and phases.
    pub layout: Layout,
}

/// The flat barrier.
#[derive(Clone, Debug)]
pub struct Flat {
    ranks: Ranks,
    local: NodeVariables,
    /// At the global master: a flag for each other node.
    nodes: Row,
    bytes: u64,
}

impl Flat {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread or the layout is of no use.
    pub fn new(spec: FlatSpec) -> Result<Self, SpecError> {
        let mut allocator = spec.layout.allocator()?;
        Ok(Self {
            local: NodeVariables::releasing(&mut allocator, spec.cores, spec.ranks.nodes())?,
            // Only the row of the global master is used.
            nodes: allocator.shared_flags(spec.ranks.nodes() - 1, spec.ranks.nodes())?,
            bytes: allocator.bytes()?,
            ranks: spec.ranks,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<M: Memory> Barrier<M> for Flat {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        self.local.with_master(memory, me.core, move || async move {
            let my_phase = memory.read(self.local.phase(memory)).await;
            self.local.gather(memory, my_phase).await;

            let others = self.ranks.nodes() - 1;
            let rank = self.ranks.rank(memory.node());
            if rank == 0 {
                let flags = self
                    .nodes
                    .flags(memory, memory.node(), others, Route::Nearest);
                memory.wait_all(flags, Until::IsNot(my_phase)).await;
                for other in 1..=others {
                    let release = self.local.release_of(memory, self.ranks.node(other));
                    memory.set(release, flip(my_phase)).await;
                }
            } else {
                let flag = self.nodes.flag(memory, self.ranks.node(0), rank - 1);
                memory.set(flag, flip(my_phase)).await;
                self.local.master_released(memory, my_phase).await;
            }
            if rank == 0 || self.local.is_relayed() {
                memory.set(self.local.phase(memory), flip(my_phase)).await;
            }
        })
    }

    fn variable(&self, place: Place) -> Option<String> {
        self.local.variable(place).or_else(|| {
            let node = self.ranks.node(self.nodes.index(place)? + 1);
            Some(format!("node {node}'s flag"))
        })
    }
}
