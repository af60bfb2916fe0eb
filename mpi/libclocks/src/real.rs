//! The functions of the C library that stand behind those here, each looked up when it is first
//! needed.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;
use std::{mem, process, ptr};

use crate::{Timespec, Timeval};

// SAFETY: this is the declaration of the C library on Linux.
unsafe extern "C" {
    fn dlsym(library: *const c_void, name: *const c_char) -> *mut c_void;
}

/// The libraries behind this one, in the order in which they were loaded.
const NEXT: *const c_void = ptr::without_provenance(usize::MAX);

/// A function by its name and type.
macro_rules! real {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $returns:ty;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The arguments are such as the C library demands.
        pub unsafe fn $name($($argument: $type),*) -> $returns {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
            type Function = unsafe extern "C" fn($($type),*) -> $returns;
            let mut found = FOUND.load(Relaxed);
            if found.is_null() {
                let name = concat!(stringify!($name), "\0");
                // SAFETY: the name is a string with an end.
                found = unsafe { dlsym(NEXT, name.as_ptr().cast()) };
                if found.is_null() {
                    // A program that calls it cannot have been loaded without it.
                    process::abort();
                }
                FOUND.store(found, Relaxed);
            }
            // SAFETY: the C library's function of this name has this type on Linux with 64-bit
            // words; the arguments are such as it demands, by the contract of this function.
            unsafe { mem::transmute::<*mut c_void, Function>(found)($($argument),*) }
        }
    )* };
}

real! {
    /// Reads a clock.
    clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    /// Reads the clock of the day.
    gettimeofday(time: *mut Timeval, zone: *mut [c_int; 2]) -> c_int;
    /// Reads the clock of the day, in seconds.
    time(time: *mut c_long) -> c_long;
    /// Reads the clock of a base.
    timespec_get(time: *mut Timespec, base: c_int) -> c_int;
    /// Sleeps for a time.
    nanosleep(wanted: *const Timespec, left: *mut Timespec) -> c_int;
    /// Sleeps for a time of a clock, or until it has come.
    clock_nanosleep(clock: c_int, flags: c_int, wanted: *const Timespec, left: *mut Timespec) -> c_int;
    /// Sleeps for so many microseconds.
    usleep(microseconds: c_uint) -> c_int;
    /// Sleeps for so many seconds.
    sleep(seconds: c_uint) -> c_uint;
}
