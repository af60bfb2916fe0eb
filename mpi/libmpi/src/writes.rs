//! Writes to the program's memory that the simulator leaves to the process, which needs no system
//! call for them.

use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::slot::Slot;

/// Makes the writes that the process has got with the turn.
pub fn make(slot: &Slot) {
    let end = slot.writes_end.load(Relaxed) as usize;
    if end == 0 {
        return;
    }
    let mut words = slot.writes.iter().take(end).map(|word| word.load(Relaxed));
    while let (Some(address), Some(bytes)) = (words.next(), words.next()) {
        let last = (address + bytes) as usize;
        for at in (address as usize..last).step_by(size_of::<u64>()) {
            let word = words.next().unwrap_or_default().to_ne_bytes();
            let bytes = word.len().min(last - at);
            // SAFETY: the program gives the address of memory for these bytes, as the call demands
            // that the process is in. If there is none, the process gets the signal for that, as it
            // would in any library.
            unsafe { ptr::copy_nonoverlapping(word.as_ptr(), at as *mut u8, bytes) };
        }
    }
    slot.writes_end.store(0, Release);
}
