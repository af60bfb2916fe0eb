//! Memory throughput by cache state, and the model of two-copy messages that is built on it
//! (B. Putigny, B. Ruelle, B. Goglin: *Analysis of MPI Shared-Memory Communication Performance from
//! a Cache Coherence Perspective*).
//!
//! * [`transition`]: the accesses that are measured, by the paper's abbreviations (LHM, SHS, …).
//! * [`table`]: their throughput by buffer size, as JSON lines.
//! * [`model`]: Eq. 1 to 3, from a table to the throughput of a message.
//!
//! Called by `sme coherence`. A microbenchmark, simulated or on this computer, writes a table; the
//! model reads it and knows nothing of where it came from.

pub mod model;
pub mod table;
pub mod transition;
