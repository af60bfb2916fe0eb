//! MPI on machines whose memory is shared but not coherent.
//!
//! Three layers, as in MPICH. Each knows only the one below it:
//!
//! | Layer | What it does |
//! |---|---|
//! | MPI | communicators, datatypes, collectives, windows, errors |
//! | device | matching, protocols, progress |
//! | [`channel`] | bytes from rank to rank, through a machine's memory |
//!
//! A rank program is an `async` function. It runs on whatever a [`channel::Channel`] reaches: a simulated
//! machine, or the wires of this crate's tests.

pub mod channel;
pub mod error;
pub mod rcce;
