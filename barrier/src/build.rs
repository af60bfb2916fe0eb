//! Any barrier by its name: [`build`] has the one list of what each algorithm is made from.
//!
//! The use of the barrier depends on its type, which only this list knows: it is a [`Use`].

use sme_memory::{Futex, Leader, Route, TestAndSet};

use crate::{
    Algorithm, Barrier, Butterfly, ButterflySpec, Counter, CounterSpec, Dissemination,
    DisseminationSpec, FlagPhase, FlagPhaseSpec, Flat, FlatSpec, Homes, Layout, NodeTree,
    NodeTreeSpec, Pthread, PthreadSpec, Ranks, SpecError, Tree, TreeShape, TreeSpec,
};

/// The specification of a barrier: its algorithm, and all parameters that any of them needs.
#[derive(Clone, Debug)]
pub struct BarrierSpec {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The nodes that take part, in the order of their ranks.
    pub ranks: Ranks,
    /// Threads of each.
    pub cores: u32,
    /// The layout of flags, phases and words.
    pub layout: Layout,
    /// [`Algorithm::FlagPhase`], [`Algorithm::Pthread`], [`Algorithm::Counter`]: the node whose
    /// memory holds the data, and of the second the threads.
    pub home: u32,
    /// [`Algorithm::FlagPhase`]: by which address the threads of the home reach the data.
    pub route: Route,
    /// [`Algorithm::Tree`]: most notifications that a node receives.
    pub fan_in: u32,
    /// [`Algorithm::Tree`]: how the ranks form a tree.
    pub tree_shape: TreeShape,
    /// [`Algorithm::Tree`]: the fan-in of a tree within each node, if there is one ([`NodeTree`]).
    pub local_fan_in: Option<u32>,
}

impl BarrierSpec {
    /// The barrier of `cores` threads on each node of `ranks`, as the paper has it where that says
    /// so.
    pub fn new(algorithm: Algorithm, ranks: Ranks, cores: u32, layout: Layout) -> Self {
        Self {
            algorithm,
            ranks,
            cores,
            layout,
            home: 0,
            route: Route::Nearest,
            fan_in: 8,
            tree_shape: TreeShape::Heap,
            local_fan_in: None,
        }
    }
}

/// A use of a barrier of any type. It takes `bytes` bytes of each node's shared
/// partition, from its beginning, that must be zero at first.
pub trait Use<M: Futex + TestAndSet>: Sized {
    /// The result for the barrier that is built.
    type Output;

    /// Does it.
    fn barrier<B: Barrier<M> + 'static>(self, barrier: B, bytes: u64) -> Self::Output;

    /// Does it with a barrier that can also be told step by step: one whose nodes have all their
    /// variables in their own memory.
    fn leader<B: Barrier<M> + Leader + Clone + 'static>(
        self,
        barrier: B,
        bytes: u64,
    ) -> Self::Output {
        self.barrier(barrier, bytes)
    }
}

/// Builds the barrier that `spec` describes and hands it to `user`.
///
/// # Errors
/// [`SpecError`] if there is no such barrier.
pub fn build<M, U>(spec: &BarrierSpec, user: U) -> Result<U::Output, SpecError>
where
    M: Futex + TestAndSet,
    U: Use<M>,
{
    let BarrierSpec {
        ref ranks,
        cores,
        layout,
        home,
        route,
        fan_in,
        tree_shape,
        ..
    } = *spec;
    let ranks = ranks.clone();
    Ok(match spec.algorithm {
        Algorithm::FlagPhase => {
            let barrier = FlagPhase::new(FlagPhaseSpec {
                threads: vec![cores; ranks.nodes() as usize],
                home,
                route,
                layout,
            })?;
            let bytes = barrier.bytes();
            user.barrier(barrier, bytes)
        }
        Algorithm::Flat => {
            let barrier = Flat::new(FlatSpec {
                ranks,
                cores,
                layout,
            })?;
            let bytes = barrier.bytes();
            user.barrier(barrier, bytes)
        }
        Algorithm::Tree => {
            let tree = TreeSpec {
                ranks,
                cores,
                fan_in,
                shape: tree_shape,
                layout,
            };
            let Some(local_fan_in) = spec.local_fan_in else {
                let barrier = Tree::new(tree)?;
                let bytes = barrier.bytes();
                return Ok(led(user, layout.homes, barrier, bytes));
            };
            let barrier = NodeTree::new(NodeTreeSpec {
                among: tree,
                local_fan_in,
            })?;
            let bytes = barrier.bytes();
            user.barrier(barrier, bytes)
        }
        Algorithm::Dissemination => {
            let barrier = Dissemination::new(DisseminationSpec {
                ranks,
                cores,
                layout,
            })?;
            let bytes = barrier.bytes();
            led(user, layout.homes, barrier, bytes)
        }
        Algorithm::Butterfly => {
            let barrier = Butterfly::new(ButterflySpec {
                ranks,
                cores,
                layout,
            })?;
            let bytes = barrier.bytes();
            user.barrier(barrier, bytes)
        }
        Algorithm::Counter => {
            let threads = ranks.nodes().checked_mul(cores);
            let barrier = Counter::new(CounterSpec {
                threads: threads.ok_or(SpecError::TooManyThreads)?,
                home,
                layout,
            })?;
            let bytes = barrier.bytes();
            user.barrier(barrier, bytes)
        }
        Algorithm::Pthread => {
            let barrier = Pthread::new(PthreadSpec {
                node: home,
                threads: cores,
                layout,
            })?;
            let bytes = barrier.bytes();
            user.barrier(barrier, bytes)
        }
    })
}

/// Hands a barrier to `user` that can be told step by step if each node has its variables itself.
fn led<M, U, B>(user: U, homes: Homes, barrier: B, bytes: u64) -> U::Output
where
    M: Futex + TestAndSet,
    U: Use<M>,
    B: Barrier<M> + Leader + Clone + 'static,
{
    match homes {
        Homes::Own => user.leader(barrier, bytes),
        Homes::Pool { .. } => user.barrier(barrier, bytes),
    }
}
