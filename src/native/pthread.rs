//! The barrier of POSIX threads, called through the C library: the reference of the paper's
//! Fig. 3.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use super::NativeError;

/// A pthread barrier that lives in one place until it is destroyed.
struct PthreadBarrier {
    // Boxed, for POSIX does not allow a barrier to be moved or copied.
    raw: Box<UnsafeCell<MaybeUninit<libc::pthread_barrier_t>>>,
}

// SAFETY: POSIX lets any thread wait on, and destroy, a barrier that another has initialized.
unsafe impl Send for PthreadBarrier {}
// SAFETY: the only operation by shared reference is `pthread_barrier_wait`, which POSIX defines
// for concurrent callers.
unsafe impl Sync for PthreadBarrier {}

impl PthreadBarrier {
    /// A barrier for `threads` threads.
    fn new(threads: usize) -> Result<Self, NativeError> {
        let refused = |code| NativeError::Pthread {
            threads,
            reason: io::Error::from_raw_os_error(code),
        };
        let count = libc::c_uint::try_from(threads).map_err(|_| refused(libc::EINVAL))?;
        let raw = Box::new(UnsafeCell::new(MaybeUninit::uninit()));
        // SAFETY: the pointer is to memory of the right size and alignment that no one else knows
        // yet; a null pointer asks for the default attributes.
        match unsafe { libc::pthread_barrier_init(raw.get().cast(), ptr::null(), count) } {
            0 => Ok(Self { raw }),
            code => Err(refused(code)),
        }
    }

    fn wait(&self) {
        // SAFETY: `new` has initialized the barrier, and it is destroyed only by `drop`, which
        // cannot run while it is borrowed.
        let code = unsafe { libc::pthread_barrier_wait(self.raw.get().cast()) };
        // POSIX: EINVAL is the only error, for a barrier that is not initialized.
        debug_assert!(code == 0 || code == libc::PTHREAD_BARRIER_SERIAL_THREAD);
    }
}

impl Drop for PthreadBarrier {
    fn drop(&mut self) {
        // SAFETY: initialized by `new`, destroyed once, and none waits: that would be a borrow.
        // A thread that has just returned from `wait` may be the last owner: POSIX allows a
        // barrier to be destroyed as soon as one's own wait has returned, because the call blocks
        // until the others have left.
        unsafe { libc::pthread_barrier_destroy(self.raw.get().cast()) };
    }
}

/// One wait for each thread of a barrier.
pub(super) fn waits(threads: usize) -> Result<Vec<impl FnMut() + Send>, NativeError> {
    let barrier = Arc::new(PthreadBarrier::new(threads)?);
    Ok((0..threads)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            move || barrier.wait()
        })
        .collect())
}
