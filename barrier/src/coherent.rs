//! A barrier that is also the point at which memory becomes coherent: H. Fröning et al., "Highly
//! Scalable Barriers for Future High-Performance Computing Clusters", Sec. VII.
//!
//! Between the last arrival and the first departure every cache in the cluster is written back and
//! invalidated. A posted write is not acknowledged, so each node's local master, when all threads
//! of its node have arrived:
//!
//! 1. writes the node's caches back ([`Cacheable::write_back_invalidate`], which drops all copies
//!    too: no thread fetches a line again before it is released);
//! 2. loads one word from each node that holds shared data, past the caches: what was posted to
//!    that node before, by whichever thread of this one, has been performed when the load returns;
//! 3. enters the barrier in earnest, where its threads wait already, touching nothing shared.
//!
//! Where data is not cached only the second step is left. Any [`Barrier`] will do.

use std::future::Future;
use std::ops::Range;

use sme_memory::{Cacheable, Place, Route, Until};

use crate::layout::Row;
use crate::{Barrier, Layout, Member, SpecError};

/// The coherence point of a barrier: its action on memory that is not kept coherent between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoherencePoint {
    /// Everything written before it can be read after it.
    Barrier,
    /// Nothing: copies stay in the caches, newer and older than memory.
    None,
    /// Caches are written back, and keep their copies.
    WritebackOnly,
}

crate::names!(CoherencePoint, "coherence point", {
    Barrier => "barrier",
    None => "none",
    WritebackOnly => "writeback-only",
});

/// Description of a barrier with a coherence point.
#[derive(Clone, Debug)]
pub struct CoherentSpec<B> {
    /// The barrier, whose data lies elsewhere.
    pub barrier: B,
    /// Its action on memory.
    pub point: CoherencePoint,
    /// Whether shared data is cached.
    pub cached: bool,
    /// Nodes that hold shared data.
    pub homes: Range<u32>,
    /// Threads per node.
    pub cores: u32,
    /// The layout of its own flags.
    pub layout: Layout,
}

/// A barrier with a coherence point.
#[derive(Clone, Debug)]
pub struct Coherent<B> {
    barrier: B,
    write_back: bool,
    read_back: bool,
    invalidate: bool,
    homes: Range<u32>,
    slaves: u32,
    /// In each node: a flag for each thread but the local master.
    flags: Row,
    /// In each node a word that is only loaded: a load from a home waits for earlier posted writes.
    probe: Row,
    bytes: u64,
}

impl<B> Coherent<B> {
    /// Lays its own flags out.
    ///
    /// # Errors
    /// If there is no thread, or the layout is of no use.
    pub fn new(spec: CoherentSpec<B>) -> Result<Self, SpecError> {
        let slaves = spec.cores.checked_sub(1).ok_or(SpecError::NoThreads)?;
        let mut allocator = spec.layout.allocator()?;
        let acts = spec.point != CoherencePoint::None;
        Ok(Self {
            barrier: spec.barrier,
            write_back: acts && spec.cached,
            read_back: acts,
            invalidate: spec.point == CoherencePoint::Barrier,
            homes: spec.homes,
            slaves,
            flags: allocator.flags(slaves)?,
            probe: allocator.words(1)?,
            bytes: allocator.bytes()?,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The same without the second step: wrong, since a posted write may still be on its way. It is
    /// there for tests that this is found out.
    pub fn without_read_back(mut self) -> Self {
        self.read_back = false;
        self
    }

    /// Makes memory coherent, as the local master, when its node has arrived.
    async fn make_coherent<M: Cacheable>(&self, memory: &M) {
        if self.write_back && self.invalidate {
            memory.write_back_invalidate().await;
        } else if self.write_back {
            memory.write_back().await;
        }
        if self.read_back {
            // The masters start at different homes, lest all read back from one at the same time.
            let homes = self.homes.len() as u32;
            for turn in 0..homes {
                let home = self.homes.start + (memory.node() + turn) % homes;
                let word = memory.word(self.probe.place(home, 0), Route::Global);
                memory.load(word).await;
            }
        }
    }
}

/// The state of a thread in a [`Coherent`] barrier.
#[derive(Clone, Debug, Default)]
pub struct CoherentLocal<L> {
    phase: u8,
    inner: L,
}

impl<M: Cacheable, B: Barrier<M>> Barrier<M> for Coherent<B> {
    type Local = CoherentLocal<B::Local>;

    fn wait(
        &self,
        memory: &M,
        me: Member,
        local: &mut Self::Local,
    ) -> impl Future<Output = ()> + Send {
        async move {
            local.phase ^= 1;
            if me.core == 0 {
                let flags = (self.flags).flags(memory, me.node, self.slaves, Route::Nearest);
                memory.wait_all(flags, Until::Is(local.phase)).await;
                self.make_coherent(memory).await;
            } else {
                // The stores of this thread have left its core when the local master sees this.
                memory.fence().await;
                let flag = self.flags.flag(memory, me.node, me.core - 1);
                memory.set(flag, local.phase).await;
            }
            self.barrier.wait(memory, me, &mut local.inner).await;
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        if let Some(slave) = self.flags.index(place) {
            return Some(format!("node {} core {}'s arrival", place.node, slave + 1));
        }
        if self.probe.index(place).is_some() {
            return Some(format!("node {}'s probe", place.node));
        }
        self.barrier.variable(place)
    }
}
