//! Passes over a buffer of cache lines: loads, stores, flushes, non-temporal stores; and copies.
//!
//! Called by the threads of `super::team`, which time them, and by `super::pair`. Each pass ends
//! with a fence, so that its stores have reached the caches when it returns. Flushes and
//! non-temporal stores are instructions of x86-64 that Rust gives no safe form.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::atomic::{Ordering, fence};

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// The words of one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line([u64; LINE_BYTES / 8]);

impl Line {
    /// A line of words that no other number gives.
    pub fn numbered(number: u64) -> Self {
        // An odd factor: a permutation of all words.
        let word = |at: usize| {
            (number.wrapping_mul(8).wrapping_add(at as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        Self(std::array::from_fn(word))
    }
}

/// Whether this processor's lines can be flushed, and stored past the caches. Miri has neither
/// instruction.
pub const HAS_FLUSH: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Reads every word; returns their sum, so that the compiler cannot leave a load out. The sums of
/// the words of a line are independent, for vector loads.
pub fn load(lines: &[Line]) -> u64 {
    let mut sums = [0u64; LINE_BYTES / 8];
    for line in black_box(lines) {
        for (sum, word) in sums.iter_mut().zip(line.0) {
            *sum = sum.wrapping_add(word);
        }
    }
    let sum = black_box(sums.into_iter().fold(0, u64::wrapping_add));
    fence(Ordering::SeqCst);
    sum
}

/// Writes every word.
pub fn store(lines: &mut [Line], value: u64) {
    let words = [black_box(value); LINE_BYTES / 8];
    for line in black_box(&mut *lines) {
        line.0 = words;
    }
    black_box(lines);
    fence(Ordering::SeqCst);
}

/// Takes every line out of all caches of the computer, and writes it back where it is modified.
/// Where there is no such instruction nothing happens ([`HAS_FLUSH`]).
pub fn flush(lines: &[Line]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in black_box(lines) {
        // SAFETY: CLFLUSH takes any address that may be read, as that of a line of a slice may, and
        // changes no byte. Every x86-64 processor has it: it came with SSE2.
        unsafe { std::arch::x86_64::_mm_clflush(std::ptr::from_ref(line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    black_box(lines);
    fence(Ordering::SeqCst);
}

/// Writes every word by non-temporal stores; by ordinary ones where there are none ([`HAS_FLUSH`]).
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub fn stream(lines: &mut [Line], value: u64) {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { stream_sse2(black_box(&mut *lines), black_box(value)) };
    black_box(lines);
    fence(Ordering::SeqCst);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse2")]
fn stream_sse2(lines: &mut [Line], value: u64) {
    use std::arch::x86_64::{__m128i, _mm_set1_epi64x, _mm_sfence, _mm_stream_si128};

    let pair = _mm_set1_epi64x(value.cast_signed());
    for line in lines {
        let words: *mut __m128i = std::ptr::from_mut(line).cast();
        for at in 0..LINE_BYTES / size_of::<__m128i>() {
            // SAFETY: a line is 64 bytes, aligned to 64, and borrowed mutably; the four vectors of
            // 16 bytes lie within it and are aligned, and any bytes make words. Non-temporal stores
            // are not ordered with others: nothing reads or writes the lines before the fence
            // below.
            unsafe { _mm_stream_si128(words.add(at), pair) };
        }
    }
    // Orders the non-temporal stores before everything that follows, for this thread and for those
    // that synchronize with it.
    _mm_sfence();
}

/// Writes every word: this processor has no non-temporal stores here.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub fn stream(lines: &mut [Line], value: u64) {
    store(lines, value);
}

/// Copies as many lines as both have, by ordinary stores: the C library's `memcpy`, as MPI
/// libraries do.
pub fn copy(from: &[Line], to: &mut [Line]) {
    let count = from.len().min(to.len());
    black_box(&mut to[..count]).copy_from_slice(black_box(&from[..count]));
    black_box(to);
}

/// [`copy`] by non-temporal stores; by ordinary ones where there are none ([`HAS_FLUSH`]).
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub fn copy_past_caches(from: &[Line], to: &mut [Line]) {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { copy_past_caches_sse2(black_box(from), black_box(&mut *to)) };
    black_box(to);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse2")]
fn copy_past_caches_sse2(from: &[Line], to: &mut [Line]) {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_sfence, _mm_stream_si128};

    for (from, to) in from.iter().zip(to) {
        let from: *const __m128i = std::ptr::from_ref(from).cast();
        let to: *mut __m128i = std::ptr::from_mut(to).cast();
        for at in 0..LINE_BYTES / size_of::<__m128i>() {
            // SAFETY: as in `stream_sse2` for the line that is written; the one that is read is
            // another, borrowed for as long, and as large and aligned.
            unsafe { _mm_stream_si128(to.add(at), _mm_load_si128(from.add(at))) };
        }
    }
    // As in `stream_sse2`.
    _mm_sfence();
}

/// [`copy`]: this processor has no non-temporal stores here.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub fn copy_past_caches(from: &[Line], to: &mut [Line]) {
    copy(from, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_see_what_passes_wrote() {
        let mut lines = vec![Line::default(); 5];
        assert_eq!(load(&lines), 0);
        store(&mut lines[..4], 3);
        assert_eq!(load(&lines), 4 * 8 * 3);
        assert_eq!(lines[4], Line::default());
        flush(&lines);
        assert_eq!(load(&lines), 4 * 8 * 3, "a flush changes nothing");
        stream(&mut lines[1..], 1 << 62);
        assert_eq!(lines[1], Line([1 << 62; 8]));
        assert_eq!(load(&lines[..1]), 24);
        assert_eq!(load(&lines[1..3]), 16u64.wrapping_mul(1 << 62));
        flush(&[]);
        stream(&mut [], 1);
    }

    #[test]
    fn copies_are_of_the_lines_that_both_have() {
        let from: Vec<Line> = (0..5).map(Line::numbered).collect();
        for copies in [copy, copy_past_caches] {
            let mut to = vec![Line::default(); 4];
            copies(&from[1..3], &mut to[1..]);
            assert_eq!(to, [Line::default(), from[1], from[2], Line::default()]);
            copies(&from, &mut to);
            assert_eq!(to, from[..4]);
            copies(&[], &mut to);
            assert_eq!(to, from[..4]);
        }
        let words: std::collections::HashSet<u64> = from.iter().flat_map(|line| line.0).collect();
        assert_eq!(words.len(), 40, "no word twice");
    }
}
