//! Threads that wait for one another: they spin, so that their cores stay awake, and yield after a
//! while, for there may be more threads than CPUs.
//!
//! Called by [`super::team`], [`super::ring`] and [`super::pair`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::MeasureError;

/// Turns of a spinning thread before it yields.
const PATIENCE: u32 = 1_000;

/// A word in cache lines of its own: two of 64 bytes, because some processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Word(pub AtomicU64);

impl Word {
    /// Waits for `turn` and makes it the next.
    pub fn hand_over(&self, turn: u64) {
        let mut turns = 0;
        while self
            .0
            .compare_exchange_weak(turn, turn + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            wait_a_turn(&mut turns);
        }
    }

    /// Waits until the word is `value`, and sees what was written before it became that.
    ///
    /// # Errors
    /// The thread that was to make it so is gone.
    pub fn wait(&self, value: u64, is_gone: &AtomicBool) -> Result<(), MeasureError> {
        spin_until(|| self.0.load(Ordering::Acquire) == value, is_gone)
    }

    /// Makes the word `value`, behind everything that this thread has written.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
}

/// Marks a thread's end when it is dropped, a panic's too.
#[derive(Debug)]
pub struct Gone<'t>(pub &'t AtomicBool);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Spins until `is_there`.
///
/// # Errors
/// The thread that was to bring it about is gone.
pub fn spin_until(is_there: impl Fn() -> bool, is_gone: &AtomicBool) -> Result<(), MeasureError> {
    let mut turns = 0;
    while !is_there() {
        if turns > PATIENCE && is_gone.load(Ordering::Acquire) && !is_there() {
            return Err(MeasureError::Panicked);
        }
        wait_a_turn(&mut turns);
    }
    Ok(())
}

fn wait_a_turn(turns: &mut u32) {
    std::hint::spin_loop();
    *turns = turns.saturating_add(1);
    if *turns > PATIENCE {
        thread::yield_now();
    }
}
