//! Looks that the process makes without the simulator: calls like the last one, which has found
//! nothing. The simulator makes up for them at the next call.

use std::slice;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::slot::Slot;

/// The requests that the last look was for, as one number.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A call with these arguments has ended: if the process may make looks like it, its requests are
/// remembered.
pub fn remember(slot: &Slot, arguments: &[usize]) {
    if slot.looks_left.load(Relaxed) > 0 {
        REQUESTS.store(requests(slot, arguments), Relaxed);
    }
}

/// Makes a call without the simulator, if the process may; returns whether it has.
pub fn is_made(slot: &Slot, number: u32, arguments: &[usize]) -> bool {
    let left = slot.looks_left.load(Relaxed);
    if left == 0 || slot.number.load(Relaxed) != number {
        return false;
    }
    let mut before = slot.values.iter().map(|word| word.load(Relaxed));
    let are_same = arguments
        .iter()
        .all(|&argument| before.next() == Some(argument as u64));
    if !are_same || REQUESTS.load(Relaxed) != requests(slot, arguments) {
        return false;
    }
    slot.looks_left.store(left - 1, Relaxed);
    slot.looks.fetch_add(1, Relaxed);
    for [at, value] in &slot.looks_write {
        let Some(&address) = arguments.get(at.load(Relaxed) as usize) else {
            continue;
        };
        let place = address as *mut u32;
        // SAFETY: the program gives the address of a number of 32 bits, as the call demands; the
        // simulator has written to it in the same call before.
        unsafe { place.write_unaligned(value.load(Relaxed)) };
    }
    true
}

/// The requests that a call with these arguments is for, as one number (FNV-1a). It is a look, or
/// has the arguments of one, for which the simulator has given leave.
fn requests(slot: &Slot, arguments: &[usize]) -> u64 {
    let argument = slot.looks_for.load(Relaxed);
    let begin = 0xcbf2_9ce4_8422_2325;
    let bytes = slot.looks_for_bytes.load(Relaxed) as usize;
    let Some(&address) = arguments.get(argument as usize).filter(|_| bytes > 0) else {
        return begin;
    };
    // SAFETY: the program gives the address of so many bytes of requests, as the call demands; the
    // simulator has read them there in a call with the same arguments.
    let requests = unsafe { slice::from_raw_parts(address as *const u8, bytes) };
    requests.iter().fold(begin, |all, &byte| {
        (all ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
