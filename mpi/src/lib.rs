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
//! A rank program is an `async` function. It runs on anything that a [`channel::Channel`] reaches:
//! a simulated machine, or [`wires`].
//!
//! * [`rank`]: the calls, for programs in Rust: start there.
//! * [`buffer`], [`datatype`], [`op`]: the data of a call, and reductions.
//! * [`comm`], [`group`], [`topology`]: communicators, their ranks, and the neighbours of a rank.
//! * [`window`]: one-sided communication.
//! * [`mod@file`]: views of files, and accesses through them.
//! * [`attributes`], [`info`]: what programs attach to communicators, and hand to the library.
//! * [`collective`]: collective algorithms, one per file, and the choice among them.
//! * [`process`]: daemons, and the reservation of cores.
//! * [`processor`]: the work of the library, which keeps the processor of its rank busy.
//! * [`abi`]: the calls as programs in C make them.
//!
//! Beside it stand [`rcce`] and [`mppaipc`], libraries of their own.

pub mod abi;
pub mod attributes;
pub mod buffer;
pub mod channel;
pub mod collective;
pub mod comm;
pub mod datatype;
mod device;
pub mod error;
pub mod file;
pub mod group;
pub mod info;
pub mod mppaipc;
mod names;
pub mod op;
mod peers;
pub mod process;
pub mod processor;
#[cfg(test)]
mod properties;
pub mod rank;
pub mod rcce;
pub mod topology;
pub mod window;
pub mod wires;
