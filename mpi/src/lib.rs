//! MPI on machines whose memory is shared but not coherent.
//!
//! Three layers, as in MPICH. Each knows only the one below it:
//!
//! | Layer | What it does |
//! |---|---|
//! | MPI | communicators, datatypes, collectives, windows, errors |
//! | `device` | matching, protocols, progress |
//! | [`channel`] | bytes from rank to rank, through a machine's memory |
//!
//! A rank program is an `async` function. It runs on anything that a [`channel::Channel`] reaches: a
//! simulated machine, or [`wires`].
//!
//! So far there is point-to-point communication of all ranks ([`rank`]) with standard and synchronous
//! sends, eager and rendezvous; probes and cancelled receives. Beside it stands [`rcce`], a library of
//! its own.

pub mod channel;
mod device;
pub mod error;
pub mod group;
#[cfg(test)]
mod properties;
pub mod rank;
pub mod rcce;
pub mod scalar;
pub mod topology;
pub mod wires;
