//! The functions of MPICH's that its library for C++ calls besides MPI's. They tell by which
//! function of that library the program's own are called, as C++ passes objects where C passes
//! handles.

use std::ffi::c_int;

use crate::call::call;
use crate::slot::{HANDLER_BY, KEY_BY, OPERATION_BY};

/// Performs an operation by a function that is given both vectors, the number of elements, the
/// datatype and the program's function.
#[unsafe(no_mangle)]
pub extern "C" fn MPII_Op_set_cxx(operation: c_int, by: usize) {
    call(OPERATION_BY, &[word(operation), by]);
}

/// Calls an error handler by a function that is given the kind of object, the addresses of its
/// handle and of the code, and the program's function.
#[unsafe(no_mangle)]
pub extern "C" fn MPII_Errhandler_set_cxx(handler: c_int, by: usize) {
    call(HANDLER_BY, &[word(handler), by]);
}

/// Copies and deletes the attributes of a key by functions that are given the program's function
/// first.
#[unsafe(no_mangle)]
pub extern "C" fn MPII_Keyval_set_proxy(key: c_int, copy_by: usize, delete_by: usize) {
    call(KEY_BY, &[word(key), copy_by, delete_by]);
}

/// A handle, or a number, as a word.
fn word(handle: c_int) -> usize {
    handle as u32 as usize
}
