//! The barriers by name, for command lines and tables, and what each needs.

use sme_memory::{Capabilities, Capability};

/// The algorithm of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// [`FlagPhase`](crate::FlagPhase): one master looks at every thread's flag.
    FlagPhase,
    /// [`Flat`](crate::Flat): local masters, one global master, disseminated phase.
    Flat,
    /// [`Tree`](crate::Tree): local masters in a tree.
    Tree,
    /// [`Dissemination`](crate::Dissemination), among the nodes' masters.
    Dissemination,
    /// [`Butterfly`](crate::Butterfly), among the nodes' masters.
    Butterfly,
    /// [`Pthread`](crate::Pthread): lock, counter and futex, as in the C library; one node only.
    Pthread,
    /// [`Counter`](crate::Counter): the same over a test-and-set register, on any nodes.
    Counter,
}

crate::names!(Algorithm, "algorithm", {
    FlagPhase => "flag-phase",
    Flat => "flat",
    Tree => "tree",
    Dissemination => "dissemination",
    Butterfly => "butterfly",
    Pthread => "pthread",
    Counter => "counter",
});

impl Algorithm {
    /// The capabilities that the machine must have.
    pub fn needs(self) -> Capabilities {
        match self {
            Algorithm::FlagPhase
            | Algorithm::Flat
            | Algorithm::Tree
            | Algorithm::Dissemination
            | Algorithm::Butterfly => Capabilities::LEAST,
            Algorithm::Counter => Capabilities::of(&[Capability::TestAndSet]),
            Algorithm::Pthread => Capabilities::of(&[Capability::Atomics, Capability::Futexes]),
        }
    }
}
