//! Messages between the cores of a simulated machine, measured.
//!
//! Called by `sme mpi` and by [`crate::validate`]; calls `sme-mpi` for the libraries and `sme-sim` for
//! the machine.

pub mod collective;
pub mod job;
pub mod pingpong;
pub mod processor;
pub mod pscw;
