//! Functions of Fortran that programs name, and those of MPICH's modules `mpi_sizeofs` and
//! `mpi_constants`.

use super::{entries, give, number, word};

/// Functions for attributes that duplicates do not have, for those that they share, and for those
/// whose end means nothing.
macro_rules! attributes {
    ($($of:literal: $none:ident $same:ident $nothing:ident)*) => {
        $(
            #[doc = concat!("MPI_", $of, "NULL_COPY_FN: a duplicate has no such attribute.")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $none(
                _object: usize,
                _key: usize,
                _extra: usize,
                _value: usize,
                _copy: usize,
                flag: usize,
                error: usize,
            ) {
                give(flag, 0_i32);
                give(error, 0_i32);
            }

            #[doc = concat!("MPI_", $of, "DUP_FN: a duplicate has the same value.")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $same(
                _object: usize,
                _key: usize,
                _extra: usize,
                value: usize,
                copy: usize,
                flag: usize,
                error: usize,
            ) {
                // This library calls it, with values of the size of an address for every key.
                give(copy, word(value));
                give(flag, 1_i32);
                give(error, 0_i32);
            }

            #[doc = concat!("MPI_", $of, "NULL_DELETE_FN: nothing is done.")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $nothing(
                _object: usize,
                _key: usize,
                _value: usize,
                _extra: usize,
                error: usize,
            ) {
                give(error, 0_i32);
            }
        )*
    };
}

attributes! {
    "": mpi_null_copy_fn_ mpi_dup_fn_ mpi_null_delete_fn_
    "COMM_": mpi_comm_null_copy_fn_ mpi_comm_dup_fn_ mpi_comm_null_delete_fn_
    "TYPE_": mpi_type_null_copy_fn_ mpi_type_dup_fn_ mpi_type_null_delete_fn_
    "WIN_": mpi_win_null_copy_fn_ mpi_win_dup_fn_ mpi_win_null_delete_fn_
}

/// MPI_CONVERSION_FN_NULL: it is never called.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_(
    _user: usize,
    _datatype: usize,
    _count: usize,
    _file: usize,
    _position: usize,
    _extra: usize,
    error: usize,
) {
    give(error, 0_i32);
}

/// The procedures behind MPI_Sizeof, for a variable and for an array of a type.
macro_rules! sizes {
    ($($bytes:literal: $one:literal $many:literal)*) => {
        $(
            const _: () = {
                #[unsafe(export_name = concat!("__mpi_sizeofs_MOD_mpi_sizeof_", $one))]
                pub extern "C" fn one(_variable: usize, size: usize, error: usize) {
                    give(size, $bytes);
                    give(error, 0_i32);
                }

                #[unsafe(export_name = concat!("__mpi_sizeofs_MOD_mpi_sizeof_", $many))]
                pub extern "C" fn many(_array: usize, size: usize, error: usize) {
                    give(size, $bytes);
                    give(error, 0_i32);
                }
            };
        )*
    };
}

sizes! {
    1_i32: "ch" "chv"
    8_i32: "cx" "cxv"
    8_i32: "d" "dv"
    4_i32: "i" "iv"
    1_i32: "i1" "i1v"
    2_i32: "i2" "i2v"
    8_i32: "i8" "i8v"
    4_i32: "l" "lv"
    4_i32: "r" "rv"
}

/// The operators == and /= for handles that are derived types, each of one INTEGER.
macro_rules! operators {
    ($($of:literal)*) => {
        $(
            const _: () = {
                #[unsafe(export_name = concat!("__mpi_constants_MOD_", $of, "eq"))]
                pub extern "C" fn equal(left: usize, right: usize) -> i32 {
                    (number(left) == number(right)).into()
                }

                #[unsafe(export_name = concat!("__mpi_constants_MOD_", $of, "neq"))]
                pub extern "C" fn unequal(left: usize, right: usize) -> i32 {
                    (number(left) != number(right)).into()
                }
            };
        )*
    };
}

operators! {
    "comm" "datatype" "errhandler" "file" "group" "info" "message" "op" "request" "win"
}

entries! {
    /// MPI_F_sync_reg: the compiler takes it for a call that may change its argument.
    mpi_f_sync_reg_ pmpi_f_sync_reg_(_buffer) {}
}
