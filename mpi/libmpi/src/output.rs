//! The output of a program that is still in its buffers when the job ends.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;

use crate::system::function;

// SAFETY: this is the declaration of the C library.
unsafe extern "C" {
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Writes the output that is in the buffers of C, Python, C++ and GNU's Fortran. The others may
/// write to those of C, which are written at the end again. It waits for other threads that hold a
/// buffer, so that the likeliest ones come first, and all files that C has open last.
pub fn flush() {
    flush_standard();
    flush_python();
    flush_cxx();
    flush_fortran();
    flush_standard();
    // SAFETY: no stream stands for all that the program has open.
    unsafe { fflush(ptr::null_mut()) };
}

/// Writes the buffers of C's stdout and stderr.
fn flush_standard() {
    for name in [c"stdout", c"stderr"] {
        let variable = function(name).cast::<*mut c_void>();
        if !variable.is_null() {
            // SAFETY: the variable of this name is C's, and has one of its streams.
            unsafe { fflush(*variable) };
        }
    }
}

fn flush_python() {
    const PROGRAM: &CStr = c"try:
    import sys
    sys.stdout.flush()
    sys.stderr.flush()
except BaseException:
    pass
";
    let [is_initialized, ensure, run] = [
        function(c"Py_IsInitialized"),
        function(c"PyGILState_Ensure"),
        function(c"PyRun_SimpleString"),
    ];
    if [is_initialized, ensure, run].contains(&ptr::null_mut()) {
        return;
    }
    type Asks = extern "C" fn() -> c_int;
    type Runs = extern "C" fn(*const c_char) -> c_int;
    // SAFETY: the functions of these names are those of Python's C interface, all of which are
    // there; the state that PyGILState_Ensure gives is a number, and needed only to go on.
    let (is_initialized, ensure, run) = unsafe {
        (
            transmute::<*mut c_void, Asks>(is_initialized),
            transmute::<*mut c_void, Asks>(ensure),
            transmute::<*mut c_void, Runs>(run),
        )
    };
    if is_initialized() != 0 {
        ensure();
        run(PROGRAM.as_ptr());
    }
}

/// Writes the buffers of `std::cout` and `std::clog`, which are their own where the program has
/// separated C's from them.
fn flush_cxx() {
    let flush = function(c"_ZNSo5flushEv");
    for stream in [function(c"_ZSt4cout"), function(c"_ZSt4clog")] {
        if stream.is_null() || flush.is_null() {
            continue;
        }
        type Flush = extern "C" fn(*mut c_void) -> *mut c_void;
        // SAFETY: the names are those of the two streams and of their member function flush, which
        // takes no argument but the stream and returns it.
        let flush = unsafe { transmute::<*mut c_void, Flush>(flush) };
        flush(stream);
    }
}

fn flush_fortran() {
    let flush = function(c"_gfortran_flush_i4");
    if flush.is_null() {
        return;
    }
    type Flush = extern "C" fn(*const c_int);
    // SAFETY: the one function of this name is that of GNU's Fortran, which takes the address of a
    // unit's number, or none for all units.
    let flush = unsafe { transmute::<*mut c_void, Flush>(flush) };
    flush(ptr::null());
}
