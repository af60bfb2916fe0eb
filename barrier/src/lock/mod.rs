//! Locks: mutual exclusion in the style of the barriers, over the same contract.
//!
//! | Lock | Source | For |
//! |---|---|---|
//! | [`Ticket`] | Anderson 1990, Mellor-Crummey and Scott 1991 | the threads of a node, atomic operations |
//! | [`Tournament`] | Peterson 1981, Yang and Anderson 1995 | nodes, loads and stores only |
//! | [`Cohort`] | Dice, Marathe and Shavit 2012 | all threads of the cluster |
//! | [`TestAndSetLock`] | Howard et al. 2010 | all threads, test-and-set registers |
//!
//! Fröning et al. have barriers only and no atomic transaction over the engine (Sec. IV). A lock is
//! built from a description, which is checked there, and shared by all its threads; its variables
//! lie at the same offsets in the shared partition of every node, begin as zero, and take `bytes()`
//! bytes. [`Coherence`] says what a lock between nodes must do for the data that it protects.

mod coherence;
mod cohort;
mod test_and_set;
mod ticket;
mod tournament;

use std::future::Future;

use sme_memory::{Capabilities, Capability, Memory, Place};
use thiserror::Error;

pub use coherence::{Coherence, Copies};
pub use cohort::{Cohort, CohortSpec};
pub use test_and_set::{TestAndSetLock, TestAndSetSpec};
pub use ticket::{Ticket, TicketSpec};
pub use tournament::{Tournament, TournamentSpec};

use crate::{Member, SpecError};

/// The locks for all threads of a machine, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// [`Cohort`]
    Cohort,
    /// [`TestAndSetLock`]
    TestAndSet,
}

crate::names!(LockKind, "lock", { Cohort => "cohort", TestAndSet => "test-and-set" });

impl LockKind {
    /// The capabilities that the lock takes, not counting its [coherence](Coherence::needs).
    pub fn needs(self) -> Capabilities {
        match self {
            LockKind::Cohort => Capabilities::of(&[Capability::Atomics]),
            LockKind::TestAndSet => Capabilities::of(&[Capability::TestAndSet]),
        }
    }
}

/// A lock: at most one thread is between its [`acquire`](Self::acquire) and its
/// [`release`](Self::release).
pub trait Lock<M: Memory>: Send + Sync {
    /// The state of a thread from acquiring the lock to releasing it.
    type Local: Default + Send;

    /// Ends when the thread has the lock.
    ///
    /// Every thread passes its own `memory`, the same `me` and the same `local` each time, and
    /// releases the lock before it acquires it again.
    ///
    /// # Panics
    /// May panic if `me` is not a member of the lock.
    fn acquire(
        &self,
        memory: &M,
        me: Member,
        local: &mut Self::Local,
    ) -> impl Future<Output = ()> + Send;

    /// Gives the lock away, which the thread has.
    fn release(
        &self,
        memory: &M,
        me: Member,
        local: &mut Self::Local,
    ) -> impl Future<Output = ()> + Send;

    /// Returns the name of the variable at `place`, for readers of a trace; `None` where the lock
    /// has none.
    fn variable(&self, place: Place) -> Option<String>;
}

/// A description from which no lock can be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LockError {
    /// No node takes part.
    #[error("a lock needs a node: give at least 1")]
    NoNodes,
    /// A node takes part without a thread.
    #[error("a lock needs a thread in each of its nodes: give at least 1 a node")]
    NoThreads,
    /// The protected data lies on a node that does not exist.
    #[error("the protected data lies on node {home}, but there are only {nodes}: give lower homes")]
    Home {
        /// The node that was named.
        home: u32,
        /// Nodes that take part.
        nodes: u32,
    },
    /// The lock's data cannot be laid out.
    #[error(transparent)]
    Layout(#[from] SpecError),
}
