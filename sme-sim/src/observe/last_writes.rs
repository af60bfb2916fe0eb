//! The last writes of a few words of a node's memory, for the report of a deadlock
//! ([`super::stuck`]).
//!
//! A run keeps none. One that ends in a deadlock is run again, and then keeps those of the words
//! that its threads wait on: [`crate::machine::explained`].

use rustc_hash::FxHashMap;

use crate::parts::line::Bytes;
use crate::time::Time;

/// The time at which a write took effect at home, and node and number of the thread that wrote.
pub type Write = (Time, (u32, u16));

/// The last write of each byte of some words, by the words' addresses in their node's numbering.
#[derive(Debug, Default)]
pub struct LastWrites(FxHashMap<u64, [Option<Write>; 8]>);

impl LastWrites {
    /// Of the words that hold `addresses`, none of which has been written so far.
    pub fn of(addresses: impl Iterator<Item = u64>) -> Self {
        Self(addresses.map(|at| (at & !7, [None; 8])).collect())
    }

    /// `bytes` of the line that has `address` have been written.
    pub fn wrote(&mut self, address: u64, bytes: Bytes, write: Write) {
        if let Some(word) = self.0.get_mut(&word_of(address, bytes)) {
            for (byte, last) in word.iter_mut().enumerate() {
                if bytes.enables & (1 << byte) != 0 {
                    *last = Some(write);
                }
            }
        }
    }

    /// The last write of any of `bytes` of the line that has `address`: none if there was none.
    /// `None` if the word is not one of these.
    pub fn last(&self, address: u64, bytes: Bytes) -> Option<Option<Write>> {
        let word = self.0.get(&word_of(address, bytes))?;
        let written = (0..)
            .zip(word)
            .filter(|(byte, _)| bytes.enables & (1 << byte) != 0);
        Some(
            written
                .filter_map(|(_, last)| *last)
                .max_by_key(|&(at, _)| at),
        )
    }
}

/// The address of the word that has `bytes`.
fn word_of(address: u64, bytes: Bytes) -> u64 {
    (address & !63) + 8 * u64::from(bytes.word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_last_write_of_its_own() {
        let mut writes = LastWrites::of([0x1009, 0x1040].into_iter());
        let (first, second) = ((Time::from_ns(1), (0, 1)), (Time::from_ns(2), (3, 4)));
        writes.wrote(0x1000, Bytes::word(0x1008), first);
        writes.wrote(0x1000, Bytes::byte(0x100a), second);
        let last = |writes: &LastWrites, at| writes.last(at & !63, Bytes::byte(at));
        assert_eq!(last(&writes, 0x1009), Some(Some(first)));
        assert_eq!(last(&writes, 0x100a), Some(Some(second)));
        assert_eq!(writes.last(0x1000, Bytes::word(0x1008)), Some(Some(second)));
        assert_eq!(last(&writes, 0x1040), Some(None));
        // Nothing is kept of other words.
        writes.wrote(0x1000, Bytes::word(0x1010), first);
        assert_eq!(last(&writes, 0x1010), None);
    }
}
