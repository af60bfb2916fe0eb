//! Barriers for machines whose memory is shared but not coherent between nodes.
//!
//! Every algorithm is written once, as `async` Rust over the contract of `sme-memory`, and reads
//! like its published pseudo-code; it runs on real threads and on simulated machines alike. The
//! crate knows neither.
//!
//! | Barrier | Source | Remote stores per episode |
//! |---|---|---|
//! | [`FlagPhase`] | Fröning et al., Sec. IV-A, listing | its flag from each thread behind an engine, and loads |
//! | [`Flat`] | Fröning et al., Sec. V-B | 2 (nodes - 1) |
//! | [`Tree`] | Fröning et al., Sec. V-B | 2 (nodes - 1) |
//! | [`Dissemination`] | Hensgen, Finkel, Manber 1988 | nodes ⌈log2 nodes⌉ |
//! | [`Butterfly`] | Brooks 1986 | nodes log2 nodes, for a power of two |
//! | [`Pthread`] | NPTL 2010 | none: one node only |
//!
//! A barrier is built from a description (`TreeSpec`, …), which is checked there and nowhere else,
//! and is then shared by all its threads. Its variables lie at the same offsets in the shared
//! partition of every node ([`Layout`]), begin as zero, and take `bytes()` bytes. Which node has
//! which place among the masters is a table ([`Ranks`]) that a [`Mapping`] computes.
//!
//! Locks, which the paper leaves to future work, are in [`lock`].

#![allow(
    clippy::manual_async_fn,
    reason = "an `async fn` keeps its arguments twice: 152 bytes a waiting thread, not 96"
)]

mod algorithm;
mod build;
mod butterfly;
mod coherent;
mod counter;
mod dissemination;
mod episode;
mod error;
mod flag_phase;
mod flat;
mod layout;
mod local;
pub mod lock;
mod mapping;
mod names;
pub mod native;
mod node_tree;
mod pthread;
mod shape;
mod tree;

use std::future::Future;

use sme_memory::{Memory, Place};

pub use algorithm::Algorithm;
pub use build::{BarrierSpec, Use, build};
pub use butterfly::{Butterfly, ButterflySpec};
pub use coherent::{CoherencePoint, Coherent, CoherentLocal, CoherentSpec};
pub use counter::{Counter, CounterSpec};
pub use dissemination::{Dissemination, DisseminationSpec, DisseminationState};
pub use episode::Episode;
pub use error::SpecError;
pub use flag_phase::{FlagPhase, FlagPhaseSpec};
pub use flat::{Flat, FlatSpec};
pub use layout::{Layout, Spacing};
pub use mapping::{Extent, Mapping, Ranks};
pub use names::UnknownName;
pub use node_tree::{NodeTree, NodeTreeSpec};
pub use pthread::{Pthread, PthreadSpec};
pub use shape::TreeShape;
pub use sme_memory::Homes;
pub use tree::{Tree, TreeSpec, TreeState};

/// A thread's place among those that take part in a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The node it runs on.
    pub node: u32,
    /// Its number in its node; 0 is the node's local master.
    pub core: u32,
}

/// A barrier: no thread leaves an episode before all have arrived in it.
///
/// It orders what the threads of *one* node did before against what they do after. Stores to
/// *other* nodes may still be on their way: making those visible is a protocol of its own, run
/// before the barrier.
pub trait Barrier<M: Memory>: Send + Sync {
    /// The state of a thread from one episode to the next.
    type Local: Default + Send;

    /// Takes part in one episode: ends when every member has called it as often as this one.
    ///
    /// Every thread passes its own `memory`, the same `me` and the same `local` each time, and ends
    /// one episode before it begins the next.
    ///
    /// # Panics
    /// May panic if `me` is not a member of the barrier.
    fn wait(
        &self,
        memory: &M,
        me: Member,
        local: &mut Self::Local,
    ) -> impl Future<Output = ()> + Send;

    /// Returns the name of the variable at `place`, for readers of a trace; `None` where the
    /// barrier has no variable or gives it no name.
    fn variable(&self, place: Place) -> Option<String> {
        let _ = place;
        None
    }
}
