//! The module `mpi_f08`. Its entry points are in MPICH's own library for Fortran, which unpacks
//! array descriptors and makes the calls of C. Here is what that library takes from MPICH's library
//! for C besides MPI: entry points with functions of Fortran's or with attributes, data, and
//! functions that MPICH has for itself (MPICH 4.0.2; the names belong to that version). One of
//! these stands with those for C++, in `cxx`.

use std::ffi::c_int;
use std::io::Write as _;
use std::sync::Once;
use std::sync::atomic::AtomicI32;

use super::{attributes, entries, give, own};
use crate::own::{UNWEIGHTED, WEIGHTS_EMPTY, Word};

/// The results that the program does not ask for: `ierror` is optional.
static UNASKED: AtomicI32 = AtomicI32::new(0);

/// Returns the address of a result, or that of a variable for results that are not wanted.
fn given(error: usize) -> usize {
    match error {
        0 => UNASKED.as_ptr() as usize,
        error => error,
    }
}

// The functions that these are given are called with the addresses of handles, which are structures
// with an INTEGER, and with statuses laid out as C's: as those of the module `mpi`.
entries! {
    /// MPI_Comm_create_keyval.
    mpi_comm_create_keyval_f08_ pmpir_comm_create_keyval_f08_(copy, delete, key, extra, error) {
        attributes::pmpi_comm_create_keyval_(copy, delete, key, extra, given(error));
    }

    /// MPI_Type_create_keyval.
    mpi_type_create_keyval_f08_ pmpir_type_create_keyval_f08_(copy, delete, key, extra, error) {
        attributes::pmpi_type_create_keyval_(copy, delete, key, extra, given(error));
    }

    /// MPI_Win_create_keyval.
    mpi_win_create_keyval_f08_ pmpir_win_create_keyval_f08_(copy, delete, key, extra, error) {
        attributes::pmpi_win_create_keyval_(copy, delete, key, extra, given(error));
    }

    /// MPI_Comm_set_attr.
    mpi_comm_set_attr_f08_ pmpir_comm_set_attr_f08_(comm, key, value, error) {
        attributes::pmpi_comm_set_attr_(comm, key, value, given(error));
    }

    /// MPI_Type_set_attr.
    mpi_type_set_attr_f08_ pmpir_type_set_attr_f08_(datatype, key, value, error) {
        attributes::pmpi_type_set_attr_(datatype, key, value, given(error));
    }

    /// MPI_Win_set_attr.
    mpi_win_set_attr_f08_ pmpir_win_set_attr_f08_(win, key, value, error) {
        attributes::pmpi_win_set_attr_(win, key, value, given(error));
    }

    /// MPI_Comm_get_attr.
    mpi_comm_get_attr_f08_ pmpir_comm_get_attr_f08_(comm, key, value, flag, error) {
        attributes::pmpi_comm_get_attr_(comm, key, value, flag, given(error));
    }

    /// MPI_Type_get_attr.
    mpi_type_get_attr_f08_ pmpir_type_get_attr_f08_(datatype, key, value, flag, error) {
        attributes::pmpi_type_get_attr_(datatype, key, value, flag, given(error));
    }

    /// MPI_Win_get_attr.
    mpi_win_get_attr_f08_ pmpir_win_get_attr_f08_(win, key, value, flag, error) {
        attributes::pmpi_win_get_attr_(win, key, value, flag, given(error));
    }

    /// MPI_Grequest_start.
    mpi_grequest_start_f08_ pmpir_grequest_start_f08_(query, free, cancel, extra, request, error) {
        own::pmpi_grequest_start_(query, free, cancel, extra, request, given(error));
    }
}

/// MPI_STATUS_IGNORE of the module.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUS_IGNORE_OBJ: [AtomicI32; 5] = [const { AtomicI32::new(0) }; 5];

/// MPI_STATUSES_IGNORE of the module.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [AtomicI32; 5] = [const { AtomicI32::new(0) }; 5];

/// MPI_STATUS_IGNORE of the module, for programs in C.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: &[AtomicI32; 5] = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;

/// MPI_STATUSES_IGNORE of the module, for programs in C.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: &[AtomicI32; 5] = &MPIR_F08_MPI_STATUSES_IGNORE_OBJ;

/// MPI_UNWEIGHTED of C, which MPICH's library for Fortran has under this name.
#[unsafe(no_mangle)]
pub static MPIR_C_MPI_UNWEIGHTED: Word = Word(UNWEIGHTED);

/// MPI_WEIGHTS_EMPTY of C, which MPICH's library for Fortran has under this name.
#[unsafe(no_mangle)]
pub static MPIR_C_MPI_WEIGHTS_EMPTY: Word = Word(WEIGHTS_EMPTY);

/// Functions that MPICH has and this library has not. A loader that looks for all names at the
/// start must find those that MPICH's library for Fortran has.
macro_rules! absent {
    ($($name:ident)*) => {
        $(
            /// Says once that it is not supported, and returns the error of that.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                static SAID: Once = Once::new();
                let text = concat!("sme mpi: ", stringify!($name), " is not supported");
                // Without a standard error, it goes unsaid.
                SAID.call_once(|| drop(writeln!(std::io::stderr(), "{text}")));
                UNSUPPORTED
            }
        )*
    };
}

/// The class of calls that are not supported (MPI_ERR_UNSUPPORTED_OPERATION).
const UNSUPPORTED: c_int = 44;

// MPICH's entry points that make these calls are replaced: by those above, and by those for
// `mpif.h`.
absent! {
    MPII_Comm_get_attr MPII_Comm_set_attr MPII_Type_get_attr MPII_Type_set_attr MPII_Win_get_attr
    MPII_Win_set_attr MPII_Grequest_set_lang_f77
}

// Extensions of MPICH's: fault tolerance, and error codes that are deleted.
absent! {
    MPIX_Comm_agree PMPIX_Comm_agree
    MPIX_Comm_failure_ack PMPIX_Comm_failure_ack
    MPIX_Comm_failure_get_acked PMPIX_Comm_failure_get_acked
    MPIX_Comm_revoke PMPIX_Comm_revoke
    MPIX_Comm_shrink PMPIX_Comm_shrink
    MPIX_Delete_error_class PMPIX_Delete_error_class
    MPIX_Delete_error_code PMPIX_Delete_error_code
    MPIX_Delete_error_string PMPIX_Delete_error_string
}

// Calls that ask for the support of GPUs, of which there are none.
entries! {
    /// MPIX_Query_cuda_support.
    MPIX_Query_cuda_support PMPIX_Query_cuda_support() -> c_int { 0 }

    /// MPIX_Query_hip_support.
    MPIX_Query_hip_support PMPIX_Query_hip_support() -> c_int { 0 }

    /// MPIX_Query_ze_support.
    MPIX_Query_ze_support PMPIX_Query_ze_support() -> c_int { 0 }

    /// MPIX_GPU_query_support.
    MPIX_GPU_query_support PMPIX_GPU_query_support(_kind, is_supported) -> c_int {
        give(is_supported, 0_i32);
        0
    }
}
