//! The primitives that the native memory takes from its platform: atomics, a lock, a condition
//! variable, a yield. Built with `--cfg loom` they come from loom, which runs a test under every
//! interleaving and every memory order that the language allows; otherwise from the standard
//! library and parking_lot. Everything that threads share in [`super`] goes through here.

#[cfg(not(loom))]
pub(super) use platform::*;

#[cfg(loom)]
pub(super) use checked::*;

#[cfg(not(loom))]
mod platform {
    pub(in super::super) use std::hint::spin_loop;
    pub(in super::super) use std::sync::atomic::{AtomicU8, AtomicU64, fence};
    pub(in super::super) use std::thread::{spawn, yield_now};

    /// parking_lot's lock and condition variable: one byte and one word, no poisoning.
    pub(in super::super) struct Monitor<T> {
        state: parking_lot::Mutex<T>,
        changed: parking_lot::Condvar,
    }

    impl<T> Monitor<T> {
        pub(in super::super) fn new(state: T) -> Self {
            Self {
                state: parking_lot::Mutex::new(state),
                changed: parking_lot::Condvar::new(),
            }
        }

        /// Locks, then sleeps (unlocked) for as long as `before` says so, each time after the
        /// state may have changed.
        pub(in super::super) fn wait_while(&self, mut before: impl FnMut(&mut T) -> bool) {
            let mut state = self.state.lock();
            while before(&mut state) {
                self.changed.wait(&mut state);
            }
        }

        /// Locks, changes the state, and lets the sleepers look again if `change` asks for it.
        pub(in super::super) fn change<R>(&self, change: impl FnOnce(&mut T) -> (R, bool)) -> R {
            let mut state = self.state.lock();
            let (result, changed) = change(&mut state);
            if changed {
                self.changed.notify_all();
            }
            result
        }
    }
}

#[cfg(loom)]
mod checked {
    pub(in super::super) use loom::hint::spin_loop;
    pub(in super::super) use loom::sync::atomic::{AtomicU8, AtomicU64, fence};
    pub(in super::super) use loom::thread::{spawn, yield_now};

    pub(in super::super) struct Monitor<T> {
        state: loom::sync::Mutex<T>,
        changed: loom::sync::Condvar,
    }

    // loom's lock has std's interface; loom has no poisoned locks: a panic ends the execution.
    #[allow(clippy::unwrap_used)]
    impl<T> Monitor<T> {
        pub(in super::super) fn new(state: T) -> Self {
            Self {
                state: loom::sync::Mutex::new(state),
                changed: loom::sync::Condvar::new(),
            }
        }

        pub(in super::super) fn wait_while(&self, mut before: impl FnMut(&mut T) -> bool) {
            let mut state = self.state.lock().unwrap();
            while before(&mut state) {
                state = self.changed.wait(state).unwrap();
            }
        }

        pub(in super::super) fn change<R>(&self, change: impl FnOnce(&mut T) -> (R, bool)) -> R {
            let mut state = self.state.lock().unwrap();
            let (result, changed) = change(&mut state);
            if changed {
                self.changed.notify_all();
            }
            result
        }
    }
}
