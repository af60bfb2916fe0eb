//! What is seen of a run from outside, without any influence on it. Nothing here knows a family.
//!
//! * [`among`]: what several processes tell each other of a run that they share.
//! * [`failure`]: why a run did not end well.
//! * [`gauge`]: how far a run is.
//! * [`path`]: what made something take as long as it did.
//! * [`spans`]: when threads were in what.
//! * [`staleness`]: which loads of a run returned stale data, and which flush was missing.
//! * [`traffic`]: what went over the network and through caches.

pub mod among;
pub mod failure;
pub mod gauge;
pub mod path;
pub mod spans;
pub mod staleness;
pub mod traffic;
