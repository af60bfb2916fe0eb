//! Asking for memory before it is needed. The nodes of a large machine are not in the computer's
//! caches: a loop over nodes prefetches the one after next before it handles the next, and so does
//! not wait for memory there.
#![allow(unsafe_code, reason = "the processor's instruction takes any address")]

use std::ops::Range;

/// Bytes that come together.
const LINE: usize = 64;

/// Asks for all of `place`. Nothing depends on it but time.
#[inline]
pub fn prefetch<T: ?Sized>(place: &T) {
    prefetch_part(place, 0..size_of_val(place));
}

/// Asks for these bytes of `place`.
#[inline]
pub fn prefetch_part<T: ?Sized>(place: &T, bytes: Range<usize>) {
    let first = std::ptr::from_ref(place)
        .cast::<u8>()
        .wrapping_add(bytes.start);
    let before = first.addr() % LINE;
    for offset in (0..before + bytes.len()).step_by(LINE) {
        line(first.wrapping_sub(before).wrapping_add(offset));
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction is part of every x86-64 processor. It reads and writes nothing that a
    // program can see and does not fault for any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// Other processors are left to themselves: their instruction is not in stable Rust.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn line(_: *const u8) {}
