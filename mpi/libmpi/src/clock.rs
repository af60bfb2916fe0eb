//! The clock that programs read in place of the system's, if `sme mpi run --intercept-clocks` has
//! loaded the library that stands before the system's (`mpi/libclocks`): simulated time, for the
//! thread that has initialized the rank. Times are in nanoseconds.

use std::ffi::c_void;
use std::mem;
use std::process::id;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::call::{call_if_free, connected};
use crate::slot::{INITIALIZED, READS_CLOCK, Slot};
use crate::system;

/// The thread that has initialized the rank, once it has.
static INITIALIZER: AtomicUsize = AtomicUsize::new(0);

/// The time that was told last: a rank begins at one second.
static TOLD: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Offers simulated time to the library that stands before the system's clocks, if it is there.
pub fn offer() {
    let function = system::function(c"sme_offers_time");
    if function.is_null() {
        return;
    }
    type Offer = extern "C" fn(extern "C" fn(u64) -> u64);
    // SAFETY: the only function of this name takes a function of this type.
    let takes = unsafe { mem::transmute::<*mut c_void, Offer>(function) };
    takes(now_after);
}

/// Remembers the thread whose call has initialized the rank, if it is this one.
pub fn remember_initializer(slot: &Slot) {
    if INITIALIZER.load(Relaxed) == 0 && slot.state.load(Relaxed) >= INITIALIZED {
        INITIALIZER.store(system::thread(), Relaxed);
    }
}

/// Returns whether the calling thread has initialized the rank.
pub fn is_initializer() -> bool {
    INITIALIZER.load(Relaxed) == system::thread()
}

/// Sleeps for so many nanoseconds of simulated time, and returns that time then; 0 if the system's
/// clocks are right for the caller: before the rank is initialized, in other threads, and in a
/// process that the rank has forked.
///
/// Within a call, in a function of the program's or of a signal, the simulator is not asked: the
/// time that was told last goes on by a nanosecond.
extern "C" fn now_after(sleep_ns: u64) -> u64 {
    let is_simulated =
        is_initializer() && connected().is_some_and(|slot| slot.process.load(Relaxed) == id());
    if !is_simulated {
        return 0;
    }
    match call_if_free(READS_CLOCK, &[sleep_ns as usize]) {
        Some(now) => TOLD.fetch_max(now, Relaxed).max(now),
        None => {
            let step = sleep_ns.clamp(1, MOST_NS);
            TOLD.fetch_add(step, Relaxed).wrapping_add(step)
        }
    }
}

/// The longest sleep within a call: a few years of such do not overflow a clock.
const MOST_NS: u64 = 1 << 56;
