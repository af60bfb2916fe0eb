//! The barriers by name, for command lines and tables.

use crate::names::names;

/// The algorithm of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// [`FlagPhase`](crate::FlagPhase).
    FlagPhase,
    /// [`Flat`](crate::Flat).
    Flat,
    /// [`Tree`](crate::Tree).
    Tree,
    /// [`Dissemination`](crate::Dissemination).
    Dissemination,
    /// [`Butterfly`](crate::Butterfly).
    Butterfly,
    /// [`Pthread`](crate::Pthread).
    Pthread,
}

names!(Algorithm, "algorithm", {
    FlagPhase => "flag-phase",
    Flat => "flat",
    Tree => "tree",
    Dissemination => "dissemination",
    Butterfly => "butterfly",
    Pthread => "pthread",
});
