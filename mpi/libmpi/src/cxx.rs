//! The functions of MPICH's that its library for C++ calls besides MPI's. They name the proxies of
//! that library for functions of the program's, as C++ passes objects where C passes handles. That
//! for keys is looked for by MPICH's library for Fortran as well.

use std::ffi::c_int;

use crate::call::call;
use crate::slot::{HANDLER_PROXY, KEY_PROXIES, OPERATION_PROXY};

/// Names the proxy for the function of an operation: it is given both vectors, the number of
/// elements, the datatype and the program's function.
#[unsafe(no_mangle)]
pub extern "C" fn MPII_Op_set_cxx(operation: c_int, proxy: usize) {
    call(OPERATION_PROXY, &[word(operation), proxy]);
}

/// Names the proxy for an error handler: it is given the kind of object, the addresses of its
/// handle and of the code, and the program's function.
#[unsafe(no_mangle)]
pub extern "C" fn MPII_Errhandler_set_cxx(handler: c_int, proxy: usize) {
    call(HANDLER_PROXY, &[word(handler), proxy]);
}

/// Names the proxies for the functions that copy and delete the attributes of a key: they are given
/// the program's function first.
#[unsafe(no_mangle)]
pub extern "C" fn MPII_Keyval_set_proxy(key: c_int, copy: usize, delete: usize) {
    call(KEY_PROXIES, &[word(key), copy, delete]);
}

/// A handle, or a number, as a word.
fn word(handle: c_int) -> usize {
    handle as u32 as usize
}
