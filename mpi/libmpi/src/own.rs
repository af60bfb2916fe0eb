//! The calls that need no simulator, and the data that programs find by their names.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::{call, connected};
use crate::clock::is_initializer;
use crate::entries::ALLOC_MEM;
use crate::slot::{COMPUTES, FINALIZED, INITIALIZED};
use crate::system;

/// A call under its two names.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident $twin:ident ($($argument:ident: $type:ty),*) -> $returns:ty $does:block)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $type),*) -> $returns $does

            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $twin($($argument: $type),*) -> $returns { $name($($argument),*) }
        )*
    };
}

/// Returns whether the rank has come so far.
fn has(state: u32) -> c_int {
    let reached = connected().map_or(0, |slot| slot.state.load(Relaxed));
    (reached >= state).into()
}

/// Writes a value of a call to where the program wants it.
fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the program gives the address of a variable of this type, as the call demands.
        unsafe { place.write(value) };
    }
}

calls! {
    /// The sum of an address and a displacement.
    MPI_Aint_add PMPI_Aint_add(base: usize, displacement: usize) -> usize {
        base.wrapping_add(displacement)
    }

    /// The displacement of an address from another one.
    MPI_Aint_diff PMPI_Aint_diff(address: usize, base: usize) -> usize {
        address.wrapping_sub(base)
    }

    /// The address of a place in memory.
    MPI_Get_address PMPI_Get_address(location: usize, address: *mut usize) -> c_int {
        give(address, location);
        0
    }

    /// The address of a place in memory, as MPI-1 has it.
    MPI_Address PMPI_Address(location: usize, address: *mut usize) -> c_int {
        give(address, location);
        0
    }

    /// Allocates memory.
    MPI_Alloc_mem PMPI_Alloc_mem(bytes: usize, _info: usize, place: *mut *mut c_void) -> c_int {
        let allocated = match isize::try_from(bytes) {
            Ok(_) => system::malloc(bytes.max(1)),
            // Less than none: the number is signed.
            Err(_) => ptr::null_mut(),
        };
        if allocated.is_null() {
            // The simulator raises the error.
            return call(ALLOC_MEM, &[bytes]) as c_int;
        }
        give(place, allocated);
        0
    }

    /// Frees memory that MPI_Alloc_mem has allocated.
    MPI_Free_mem PMPI_Free_mem(base: usize) -> c_int {
        // SAFETY: the program gives back what malloc gave it.
        unsafe { system::free(base as *mut c_void) };
        0
    }

    /// Tells whether MPI_Init has returned.
    MPI_Initialized PMPI_Initialized(flag: *mut c_int) -> c_int {
        give(flag, has(INITIALIZED));
        0
    }

    /// Tells whether MPI_Finalize has returned.
    MPI_Finalized PMPI_Finalized(flag: *mut c_int) -> c_int {
        give(flag, has(FINALIZED));
        0
    }

    /// Tells whether the calling thread has called MPI_Init.
    MPI_Is_thread_main PMPI_Is_thread_main(flag: *mut c_int) -> c_int {
        give(flag, is_initializer().into());
        0
    }

    /// Controls profiling: there is none.
    MPI_Pcontrol PMPI_Pcontrol(_level: c_int) -> c_int {
        0
    }
}

/// Declares that the program computes for so many seconds (`include/sme.h`).
#[unsafe(no_mangle)]
pub extern "C" fn sme_compute(seconds: f64) {
    call(COMPUTES, &[seconds.to_bits() as usize]);
}

/// The function for attributes that duplicates share (MPI_COMM_DUP_FN) in MPICH's interface.
#[unsafe(no_mangle)]
pub extern "C" fn MPIR_Dup_fn(
    _object: usize,
    _key: c_int,
    _extra: usize,
    value: usize,
    copy: *mut usize,
    flag: *mut c_int,
) -> c_int {
    give(copy, value);
    give(flag, 1);
    0
}

/// A word that programs find by its name, and never change.
#[repr(transparent)]
#[derive(Debug)]
pub struct Word(pub usize);

/// The weights of a graph without weights, in MPICH's interface.
pub const UNWEIGHTED: usize = 10;

/// The weights of a rank without edges, in MPICH's interface.
pub const WEIGHTS_EMPTY: usize = 11;

/// The weights of a graph without weights.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: Word = Word(UNWEIGHTED);

/// The weights of a rank without edges.
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: Word = Word(WEIGHTS_EMPTY);

/// All handles of a session of the tool interface.
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: Word = Word(1);

/// The status that is not wanted, in Fortran.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Word = Word(1);

/// The statuses that are not wanted, in Fortran.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Word = Word(1);
