//! The entry points that programs in Fortran call: those of MPICH's `mpif.h` and its module `mpi`
//! for gfortran, whose names end with an underscore.
//!
//! Every argument is an address. Numbers and handles, which are ints, are read there; statuses and
//! arrays are laid out as in C; a logical value is 0 or 1. Texts have no 0 at their end, and blanks
//! there say nothing; their lengths come behind all other arguments. Places of no data, such as
//! MPI_IN_PLACE, are told by their addresses: they are variables of common blocks.
//!
//! * `text`: texts, read and written.
//! * `own`: calls that take other arguments than in C.
//! * `attributes`: attributes, whose values are numbers in Fortran.
//! * `spawn`: calls that start processes.
//! * `functions`: functions that programs name, and those of MPICH's modules.
//! * `f08`: what MPICH's library for the module `mpi_f08` needs.
//! * the rest is generated from `mpi/facts/calls.txt`.

mod attributes;
mod f08;
mod functions;
mod own;
mod spawn;
mod text;

mod generated {
    use super::text::{Room, Text};
    use super::{UNDEFINED, from_one, give, number, place, word};

    include!(concat!(env!("OUT_DIR"), "/fortran.rs"));
}

use std::sync::atomic::{AtomicI32, AtomicU8};

use crate::own::{UNWEIGHTED, WEIGHTS_EMPTY};

/// The number that stands for none (MPI_UNDEFINED).
const UNDEFINED: i32 = -32766;

// A program that names these common blocks has them itself, and the loader lets this library use
// the program's. Their contents are neither read nor written.

/// The variables MPI_BOTTOM, MPI_IN_PLACE and MPI_STATUS_IGNORE, which is 5 long.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static mpipriv1_: [AtomicI32; 7] = [const { AtomicI32::new(0) }; 7];

/// The variables MPI_STATUSES_IGNORE, which is 5 long, and MPI_ERRCODES_IGNORE.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static mpipriv2_: [AtomicI32; 6] = [const { AtomicI32::new(0) }; 6];

/// The texts MPI_ARGVS_NULL and MPI_ARGV_NULL, of one character each.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static mpiprivc_: [AtomicU8; 2] = [const { AtomicU8::new(b' ') }; 2];

/// The variable MPI_UNWEIGHTED.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static mpifcmb5_: AtomicI32 = AtomicI32::new(0);

/// The variable MPI_WEIGHTS_EMPTY.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static mpifcmb9_: AtomicI32 = AtomicI32::new(0);

/// The value that C has for a place: the address itself, unless it is that of a variable that
/// stands for something else.
fn place(at: usize) -> usize {
    let first = (&raw const mpipriv1_) as usize;
    let second = (&raw const mpipriv2_) as usize;
    let texts = (&raw const mpiprivc_) as usize;
    let known = [
        (first, 0),
        (first + 4, usize::MAX),
        (first + 8, 1),
        (second, 1),
        (second + 20, 0),
        (texts, 0),
        (texts + 1, 0),
        ((&raw const mpifcmb5_) as usize, UNWEIGHTED),
        ((&raw const mpifcmb9_) as usize, WEIGHTS_EMPTY),
    ];
    let known = known.iter().find(|(address, _)| *address == at);
    known.map_or(at, |&(_, value)| value)
}

/// The number, or the handle, at an address.
fn number(at: usize) -> usize {
    // SAFETY: the program gives the address of an INTEGER, as the call demands.
    unsafe { (at as *const i32).read_unaligned() as usize }
}

/// The address, or the large number, at an address.
fn word(at: usize) -> usize {
    // SAFETY: the program gives the address of an INTEGER of 8 bytes, as the call demands.
    unsafe { (at as *const usize).read_unaligned() }
}

/// Writes a value to where the program wants it.
fn give<T>(at: usize, value: T) {
    // SAFETY: the program gives the address of a variable of this size, as the call demands.
    unsafe { (at as *mut T).write_unaligned(value) };
}

/// Counts from 1 what a call has counted from 0: so many indices, and none of MPI_UNDEFINED ones.
fn from_one(at: usize, count: i32) {
    for i in 0..usize::try_from(count).unwrap_or(0) {
        let place = at + 4 * i;
        let index = number(place) as i32;
        if index != UNDEFINED {
            give(place, index + 1);
        }
    }
}

/// An entry point and its twin for profiling, neither of which calls the other one: a program may
/// have one of its own under the first name.
macro_rules! entries {
    ($(
        $(#[$doc:meta])*
        $name:ident $twin:ident ($($argument:ident),*) $(-> $returns:ty)? $does:block
    )*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: usize),*) $(-> $returns)? $does

            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $twin($($argument: usize),*) $(-> $returns)? $does
        )*
    };
}
use entries;
