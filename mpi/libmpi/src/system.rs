//! The functions of the C library that a process needs to share memory with the simulator.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::slot::{SLOT_BYTES, Slot};

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

/// The answer of dladdr about an address.
#[repr(C)]
struct Found {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

// SAFETY: these are the declarations of the C library on Linux with 64-bit words.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn _exit(status: c_int) -> !;
    fn dladdr(address: *const c_void, found: *mut Found) -> c_int;
    fn dlsym(library: *const c_void, name: *const c_char) -> *mut c_void;
    safe fn pthread_self() -> usize;
    pub safe fn malloc(bytes: usize) -> *mut c_void;
    pub fn free(address: *mut c_void);
}

#[cfg(target_arch = "x86_64")]
const FUTEX: c_long = 202;
/// The number in the kernel's common table, which all but the oldest architectures have.
#[cfg(not(target_arch = "x86_64"))]
const FUTEX: c_long = 98;

#[cfg(target_arch = "x86_64")]
const GETTID: c_long = 186;
/// As above.
#[cfg(not(target_arch = "x86_64"))]
const GETTID: c_long = 178;

const FUTEX_WAIT: c_int = 0;
const FUTEX_WAKE: c_int = 1;
const READ_AND_WRITE: c_int = 3;
const SHARED: c_int = 1;
const THREAD_CPUTIME: c_int = 3;
const SET_PARENT_DEATH_SIGNAL: c_int = 1;
const SET_PTRACER: c_int = 0x5961_6d61;
const KILL: usize = 9;

/// Sleeps while `word` is `value`, or for a shorter time.
pub fn sleep_while(word: &AtomicU32, value: u32) {
    // SAFETY: the address is that of a word which lives as long as the process; without a time the
    // kernel reads nothing else.
    unsafe {
        syscall(
            FUTEX,
            word.as_ptr(),
            FUTEX_WAIT,
            value,
            ptr::null::<Timespec>(),
        )
    };
}

/// Wakes who sleeps on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { syscall(FUTEX, word.as_ptr(), FUTEX_WAKE, 1) };
}

/// Maps the slot of this number in the shared memory `file`, for as long as the process lives.
pub fn map(file: &File, number: usize) -> Option<&'static Slot> {
    let offset = c_long::try_from(number.checked_mul(SLOT_BYTES)?).ok()?;
    // SAFETY: the kernel chooses the place of a new mapping, so that nothing else is there.
    let at = unsafe {
        mmap(
            ptr::null_mut(),
            SLOT_BYTES,
            READ_AND_WRITE,
            SHARED,
            file.as_raw_fd(),
            offset,
        )
    };
    // SAFETY: a mapping that is there begins at a page, has SLOT_BYTES bytes, which a slot fits
    // into, and is never unmapped; a slot consists of atomic words, for which every value is right.
    (at as isize != -1).then(|| unsafe { &*at.cast::<Slot>() })
}

/// The time for which this thread has computed since it began, in nanoseconds.
pub fn computed_ns() -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the place is that of a time.
    unsafe { clock_gettime(THREAD_CPUTIME, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Lets the process end with its parent, and its memory be read by the simulator.
pub fn belongs_to_parent() {
    // SAFETY: these options take numbers.
    unsafe {
        prctl(SET_PARENT_DEATH_SIGNAL, KILL);
        prctl(SET_PTRACER, usize::MAX);
    }
}

/// Ends the process without calling the program's functions for exit.
pub fn end(status: c_int) -> ! {
    // SAFETY: it takes a number.
    unsafe { _exit(status) }
}

/// The calling thread, by a number that no other has while it lives, and that is not 0.
pub fn thread() -> usize {
    pthread_self()
}

/// The calling thread, by the system's number.
pub fn thread_number() -> u32 {
    // SAFETY: the call takes nothing, and cannot fail.
    unsafe { syscall(GETTID) as u32 }
}

/// The address of a function of this name among all that programs find, or null.
pub fn function(name: &CStr) -> *mut c_void {
    // SAFETY: the first argument means the libraries of the whole program; the name has an end.
    unsafe { dlsym(ptr::null(), name.as_ptr()) }
}

/// Returns whether this library has been loaded under a name that begins like this.
pub fn is_loaded_as(begin: &str) -> bool {
    let mut found = Found {
        file: ptr::null(),
        base: ptr::null_mut(),
        name: ptr::null(),
        address: ptr::null_mut(),
    };
    // SAFETY: the address is that of a function here; the place is that of what is found.
    let is_found = unsafe { dladdr(is_loaded_as as *const c_void, &raw mut found) } != 0;
    if !is_found || found.file.is_null() {
        return false;
    }
    // SAFETY: the loader's name of a library is a string that stays as long as the library.
    let path = unsafe { CStr::from_ptr(found.file) };
    let name = path.to_bytes().rsplit(|&byte| byte == b'/').next();
    name.is_some_and(|name| name.starts_with(begin.as_bytes()))
}
