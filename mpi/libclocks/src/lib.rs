//! The library that `sme mpi run --intercept-clocks` loads into each process before all others: its
//! functions stand before the C library's that read clocks or sleep. Until the library of MPI
//! programs (`mpi/libmpi`) offers simulated time they call the C library's; so they do where that
//! library has none for the caller.
//!
//! Clocks of the time for which the processor has computed stay the system's.
//!
//! * `real`: the functions of the C library.

mod real;

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

/// A time, as `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

/// A time, as `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Timeval {
    seconds: c_long,
    microseconds: c_long,
}

/// Sleeps for so many nanoseconds and reads the simulated clock, in nanoseconds; 0 where the caller
/// has no simulated time.
type Simulated = extern "C" fn(u64) -> u64;

/// That function, once the process has offered it.
static SIMULATED: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

const SECOND_NS: u64 = 1_000_000_000;
const CLOCK_REALTIME: c_int = 0;
/// The clocks that tell the time: REALTIME, MONOTONIC, MONOTONIC_RAW, REALTIME_COARSE,
/// MONOTONIC_COARSE, BOOTTIME, REALTIME_ALARM, BOOTTIME_ALARM and TAI.
const CLOCKS: [c_int; 9] = [CLOCK_REALTIME, 1, 4, 5, 6, 7, 8, 9, 11];
const TIMER_ABSTIME: c_int = 1;
const TIME_UTC: c_int = 1;

/// Offers simulated time: the library of MPI programs calls this.
#[unsafe(no_mangle)]
pub extern "C" fn sme_offers_time(simulated: Simulated) {
    SIMULATED.store(simulated as *mut c_void, Release);
}

/// The simulated time after a sleep, in nanoseconds, if the caller has it.
fn simulated(sleep_ns: u64) -> Option<u64> {
    let function = SIMULATED.load(Acquire);
    if function.is_null() {
        return None;
    }
    // SAFETY: only `sme_offers_time` stores an address, that of a function of this type.
    let function = unsafe { std::mem::transmute::<*mut c_void, Simulated>(function) };
    Some(function(sleep_ns)).filter(|&ns| ns > 0)
}

/// The same of a clock that has a place to write to.
fn simulated_of<T>(clock: c_int, place: *mut T) -> Option<u64> {
    let is_told = CLOCKS.contains(&clock) && !place.is_null();
    is_told.then(|| simulated(0)).flatten()
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        seconds: (ns / SECOND_NS) as c_long,
        nanoseconds: (ns % SECOND_NS) as c_long,
    }
}

/// The nanoseconds of a time that a program wants to sleep for; none if that is no time.
fn nanoseconds(wanted: *const Timespec) -> Option<u64> {
    if wanted.is_null() {
        return None;
    }
    // SAFETY: the program gives the address of a time, as the call demands.
    let wanted = unsafe { wanted.read() };
    let seconds = u64::try_from(wanted.seconds).ok()?;
    let rest = u64::try_from(wanted.nanoseconds).ok()?;
    (rest < SECOND_NS).then(|| seconds.saturating_mul(SECOND_NS).saturating_add(rest))
}

/// Reads a clock.
///
/// # Safety
/// `time` is null or the address of a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    match simulated_of(clock, time) {
        // SAFETY: by the contract of this function; it is not null.
        Some(ns) => unsafe { time.write(timespec(ns)) },
        // SAFETY: by the contract of this function.
        None => return unsafe { real::clock_gettime(clock, time) },
    }
    0
}

/// Reads the clock of the day; its zone is no longer in use.
///
/// # Safety
/// `time` is null or the address of a time, `zone` null or the address of two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut Timeval, zone: *mut [c_int; 2]) -> c_int {
    let Some(ns) = simulated_of(CLOCK_REALTIME, time) else {
        // SAFETY: by the contract of this function.
        return unsafe { real::gettimeofday(time, zone) };
    };
    let Timespec {
        seconds,
        nanoseconds,
    } = timespec(ns);
    let microseconds = nanoseconds / 1000;
    // SAFETY: by the contract of this function; `time` is not null.
    unsafe {
        time.write(Timeval {
            seconds,
            microseconds,
        });
    }
    if !zone.is_null() {
        // SAFETY: by the contract of this function.
        unsafe { zone.write([0; 2]) };
    }
    0
}

/// Reads the clock of the day, in seconds.
///
/// # Safety
/// `time` is null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(time: *mut c_long) -> c_long {
    let Some(ns) = simulated(0) else {
        // SAFETY: by the contract of this function.
        return unsafe { real::time(time) };
    };
    let seconds = timespec(ns).seconds;
    if !time.is_null() {
        // SAFETY: by the contract of this function.
        unsafe { time.write(seconds) };
    }
    seconds
}

/// Reads the clock of a base, as C11 has it.
///
/// # Safety
/// `time` is null or the address of a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timespec_get(time: *mut Timespec, base: c_int) -> c_int {
    let ns = (base == TIME_UTC).then(|| simulated_of(CLOCK_REALTIME, time));
    let Some(ns) = ns.flatten() else {
        // SAFETY: by the contract of this function.
        return unsafe { real::timespec_get(time, base) };
    };
    // SAFETY: by the contract of this function; it is not null.
    unsafe { time.write(timespec(ns)) };
    base
}

/// Sleeps for a time, always to its end: it leaves alone the time that would be left.
///
/// # Safety
/// `wanted` and `left` are null or addresses of times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(wanted: *const Timespec, left: *mut Timespec) -> c_int {
    match nanoseconds(wanted).and_then(simulated) {
        Some(_) => 0,
        // SAFETY: by the contract of this function.
        None => unsafe { real::nanosleep(wanted, left) },
    }
}

/// Sleeps for a time of a clock, or until it has come.
///
/// # Safety
/// `wanted` and `left` are null or addresses of times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    wanted: *const Timespec,
    left: *mut Timespec,
) -> c_int {
    let wanted_ns = nanoseconds(wanted).filter(|_| CLOCKS.contains(&clock));
    let slept = wanted_ns.and_then(|ns| match flags & TIMER_ABSTIME {
        0 => simulated(ns),
        _ => simulated(0).and_then(|now| match ns.saturating_sub(now) {
            0 => Some(now),
            rest => simulated(rest),
        }),
    });
    match slept {
        Some(_) => 0,
        // SAFETY: by the contract of this function.
        None => unsafe { real::clock_nanosleep(clock, flags, wanted, left) },
    }
}

/// Sleeps for so many microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn usleep(microseconds: c_uint) -> c_int {
    match simulated(u64::from(microseconds) * 1000) {
        Some(_) => 0,
        // SAFETY: the function takes a number.
        None => unsafe { real::usleep(microseconds) },
    }
}

/// Sleeps for so many seconds; those that are left.
#[unsafe(no_mangle)]
pub extern "C" fn sleep(seconds: c_uint) -> c_uint {
    match simulated(u64::from(seconds) * SECOND_NS) {
        Some(_) => 0,
        // SAFETY: the function takes a number.
        None => unsafe { real::sleep(seconds) },
    }
}
