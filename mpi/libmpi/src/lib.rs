//! The library that MPI programs find under the name of `libmpi.so.12` (MPICH's interface) or
//! `libmpi_abi.so.1` (that of MPI-5.0) when `sme mpi run` starts them. It knows nothing of MPI:
//! each entry point hands its number and its arguments, as they are, to the simulator, which reads
//! and writes the process's memory and performs the call on the simulated machine.
//!
//! * `slot`: the memory that a process shares with the simulator.
//! * `call`: a call, from the process's side.
//! * `writes`: writes to the program's memory that are left to the process.
//! * `output`: the output in a program's buffers.
//! * `looks`: the looks of a program that the process makes by itself.
//! * `clock`: the clock that programs read in place of the system's.
//! * `own`: the few calls that need no simulator, and the names of data.
//! * `cxx`: the functions of MPICH's that its library for C++ calls.
//! * `entries`: all other entry points, generated from `mpi/facts/calls.txt`.
//! * `fortran`: the entry points for Fortran.
//!
//! The program `sme` carries this library within itself and is built without any other crate here,
//! so that it depends on nothing but the standard library.

pub mod call;
mod clock;
pub mod cxx;
mod entries {
    include!(concat!(env!("OUT_DIR"), "/entries.rs"));
}
pub mod fortran;
mod looks;
mod output;
pub mod own;
pub mod slot;
mod system;
mod writes;
