//! A ring of chunks in memory that two threads share, each chunk with a flag that says whose it is.
//!
//! Called by [`super::pair`]. A chunk is handed over by its flag: who sees the state that it waits
//! for has the chunk alone, until it sets the next state. Bytes are copied by ordinary loads and
//! stores, which Rust lets two threads do to one place only by `unsafe`.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::slice;
use std::sync::atomic::AtomicBool;

use super::MeasureError;
use super::lines::{LINE_BYTES, Line};
use super::spin::Word;

/// Chunks of equal size, one behind the other, and their flags.
#[derive(Debug)]
pub struct Ring {
    lines: Box<[UnsafeCell<Line>]>,
    flags: Vec<Word>,
    lines_of_chunk: usize,
}

// SAFETY: the lines are accessed in `pass` only, whose callers promise that no two of them pass the
// same state of a chunk, and which shows there that no two then have it at the same time. Flags are
// atomic.
unsafe impl Sync for Ring {}

impl Ring {
    /// `chunks` chunks of `lines_of_chunk` lines, all empty: state 0. The calling thread touches
    /// their pages.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn new(chunks: usize, lines_of_chunk: usize) -> Result<Self, MeasureError> {
        let none = |count: usize, bytes: usize| MeasureError::Memory(count.saturating_mul(bytes));
        let count = chunks.saturating_mul(lines_of_chunk);
        let mut lines = Vec::new();
        lines
            .try_reserve_exact(count)
            .map_err(|_| none(count, LINE_BYTES))?;
        // A page of zeros may not be there before it is written to.
        lines.resize_with(count, || UnsafeCell::new(Line::numbered(u64::MAX)));
        let mut flags = Vec::new();
        flags
            .try_reserve_exact(chunks)
            .map_err(|_| none(chunks, size_of::<Word>()))?;
        flags.resize_with(chunks, Word::default);
        Ok(Self {
            lines: lines.into_boxed_slice(),
            flags,
            lines_of_chunk,
        })
    }

    /// Waits until chunk `slot` is in `state`, lets `work` have its first `count` lines, or all if
    /// there are fewer, and brings it into the next state.
    ///
    /// # Safety
    /// Each state of a chunk is passed once at most, whichever threads call this.
    ///
    /// # Errors
    /// The thread that was to bring the chunk into `state` is gone.
    ///
    /// # Panics
    /// There is no such chunk.
    pub unsafe fn pass(
        &self,
        slot: usize,
        state: u64,
        count: usize,
        is_gone: &AtomicBool,
        work: impl FnOnce(&mut [Line]),
    ) -> Result<(), MeasureError> {
        let flag = &self.flags[slot];
        let begin = slot * self.lines_of_chunk;
        let cells = &self.lines[begin..][..count.min(self.lines_of_chunk)];
        flag.wait(state, is_gone)?;
        let first = UnsafeCell::raw_get(cells.as_ptr());
        // SAFETY: a cell has the layout of what it holds, and these follow one another in one
        // allocation, which `self` keeps. None else has a reference to them now: a chunk leaves a
        // state only where `pass` of that state ends, each state is passed once, and no other call
        // sees its own state while the flag has this one. Chunks do not overlap. What the call
        // before has written happens before this: it has set the flag by a release, which the wait
        // has acquired.
        let lines = unsafe { slice::from_raw_parts_mut(first, cells.len()) };
        work(lines);
        flag.set(state + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::*;

    /// Chunks go to and fro between two threads that write and read all of their bytes.
    #[test]
    fn a_chunk_is_handed_over_with_its_bytes() {
        const TURNS: u64 = if cfg!(miri) { 20 } else { 2_000 };
        let ring = Ring::new(3, 2).unwrap();
        let never = AtomicBool::new(false);
        let fills = |turn: u64| {
            let work = |lines: &mut [Line]| {
                assert_eq!(lines.len(), 2);
                lines.fill(Line::numbered(turn));
            };
            // SAFETY: even states are passed here, each in one of the turns of its chunk.
            unsafe { ring.pass(turn as usize % 3, turn / 3 * 2, 9, &never, work) }.unwrap();
        };
        let empties = |turn: u64| {
            let work = |lines: &mut [Line]| assert_eq!(lines, [Line::numbered(turn); 1]);
            // SAFETY: odd states are passed here, each in one of the turns of its chunk.
            unsafe { ring.pass(turn as usize % 3, turn / 3 * 2 + 1, 1, &never, work) }.unwrap();
        };
        thread::scope(|scope| {
            scope.spawn(|| (0..TURNS).for_each(fills));
            scope.spawn(|| (0..TURNS).for_each(empties));
        });
    }

    #[test]
    fn a_thread_that_is_gone_is_not_waited_for() {
        let ring = Ring::new(1, 1).unwrap();
        let gone = AtomicBool::new(false);
        gone.store(true, Ordering::Release);
        // SAFETY: nothing else passes a state.
        let passed = unsafe { ring.pass(0, 1, 1, &gone, |_| panic!("it is not there")) };
        assert!(matches!(passed, Err(MeasureError::Panicked)));
        assert!(matches!(
            Ring::new(usize::MAX, 2),
            Err(MeasureError::Memory(_))
        ));
    }
}
