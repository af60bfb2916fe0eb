//! Memory throughput by cache state, and the model of two-copy messages that is built on it
//! (B. Putigny, B. Ruelle, B. Goglin: *Analysis of MPI Shared-Memory Communication Performance from
//! a Cache Coherence Perspective*).
//!
//! * [`transition`]: the accesses that are measured, by the paper's abbreviations (LHM, SHS, …).
//! * [`mod@bench`]: their microbenchmarks on simulated machines.
//! * [`table`]: their throughput by buffer size, as JSON lines.
//! * [`transfer`]: the two-copy transfer on simulated machines.
//! * [`measure`]: that table, measured on this computer.
//! * [`point`], [`figures`]: experiments, and the figures of the paper that are made of them.
//! * [`tune`]: the settings of a library that are best by it, and by transfers.
//! * [`compare`]: a message by the model, by the transfer and by MPI.
//! * [`model`]: Eq. 1 to 3, from a table to the throughput of a message.
//!
//! Called by `sme coherence`. A microbenchmark, simulated or on this computer, writes a table; the
//! model reads it and knows nothing of where it came from.

pub mod bench;
pub mod compare;
pub mod figures;
pub mod measure;
pub mod model;
pub mod point;
pub mod table;
pub mod transfer;
pub mod transition;
pub mod tune;
