//! Waveforms of engines' ports ([`crate::observe::waves`]).
//!
//! [`Recorded`], a decorator of [`EngineModel`](super::EngineModel), writes down what passes an
//! engine's ports, be it a cycle model or RTL. The signals, called as the RTL's ports, are in
//! [`signals`].
//!
//! In a cluster a pin takes one packet per edge. Another driver of an engine may present several
//! packets, or several credits, on one port in one cycle, which they share.
//!
//! A packet or credit takes at most 64 bytes until it is written; a cluster has them written every
//! millisecond of simulated time (and another microsecond for each thread).

mod recorded;
pub mod signals;

pub use recorded::{Passed, Recorded};

use crate::observe::waves;

/// The recorder of the engines of a cluster.
pub type Recorder = waves::Recorder<Passed>;
/// The record that the decorator of an engine writes.
pub type Tap = waves::Tap<Passed>;
