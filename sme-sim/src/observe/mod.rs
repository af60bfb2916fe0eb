//! What is seen of a run from outside, without any influence on it. Nothing here knows a family.
//!
//! * [`gauge`]: how far a run is.
//! * [`staleness`]: which loads of a run returned stale data, and which flush was missing.

pub mod gauge;
pub mod staleness;
