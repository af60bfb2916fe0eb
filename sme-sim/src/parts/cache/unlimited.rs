//! Copies of lines in a cache that never displaces one: a line stays until it is dropped, however
//! stale.

use rustc_hash::FxHashMap;

use crate::parts::line::Bytes;
use crate::parts::line_size::LineSize;

/// Bytes of a line's words, a bit each: byte `n` of the line's 64-byte block is bit `n`.
pub type Mask = u64;

/// The words of the 64-byte block that holds a line.
pub type Block = [u64; 8];

/// The copies.
#[derive(Debug)]
pub struct Unlimited {
    size: LineSize,
    /// By the line's address, with the bytes that are newer than memory.
    lines: FxHashMap<u64, (Block, Mask)>,
}

impl Unlimited {
    /// None yet, of lines of this `size`.
    pub fn new(size: LineSize) -> Self {
        let lines = FxHashMap::default();
        Self { size, lines }
    }

    /// The address of the line that holds `address`.
    pub fn line(&self, address: u64) -> u64 {
        self.size.start(address)
    }

    /// The aligned word around `address` in the copy of its line, if there is one.
    pub fn word(&self, address: u64) -> Option<u64> {
        let (words, _) = self.lines.get(&self.line(address))?;
        Some(words[usize::from(Bytes::word(address).word)])
    }

    /// Stores into the copy; whether there is one.
    pub fn store(&mut self, address: u64, bytes: Bytes, value: u64) -> bool {
        let line = self.line(address);
        let Some((words, dirty)) = self.lines.get_mut(&line) else {
            return false;
        };
        let word = &mut words[usize::from(bytes.word)];
        *word = bytes.merge(*word, value);
        *dirty |= bytes.of_block();
        true
    }

    /// The line at `line` has come.
    pub fn fill(&mut self, line: u64, words: Block) {
        self.lines.insert(line, (words, 0));
    }

    /// Drops or cleans the line at `line`; returns the words and the mask to write back, if any are
    /// dirty.
    pub fn clean(&mut self, line: u64, drops: bool) -> Option<(Block, Mask)> {
        let (words, dirty) = match drops {
            true => self.lines.remove(&line)?,
            false => {
                let (words, dirty) = self.lines.get_mut(&line)?;
                (*words, std::mem::take(dirty))
            }
        };
        (dirty != 0).then_some((words, dirty))
    }

    /// The words that have bytes newer than memory, in order: address, these bytes, and the word.
    pub fn dirty(&self) -> Vec<(u64, u8, u64)> {
        let mut dirty = Vec::new();
        for line in self.lines() {
            let (words, mask) = self.lines[&line];
            for (word, value) in (0..8).zip(words) {
                let enables = (mask >> (8 * word)) as u8;
                if enables != 0 {
                    dirty.push(((line & !63) + 8 * word, enables, value));
                }
            }
        }
        dirty
    }

    /// The addresses of all lines, in order.
    pub fn lines(&self) -> Vec<u64> {
        let mut lines: Vec<u64> = self.lines.keys().copied().collect();
        lines.sort_unstable();
        lines
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<(u64, Block, Mask)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against bytes, one by one.
        #[test]
        fn a_copy_holds_what_was_filled_and_stored(
            line_bytes in prop_oneof![Just(32u64), Just(64)],
            stores in prop::collection::vec((0..64u64, any::<bool>(), any::<u64>()), 0..20),
            drops: bool,
        ) {
            let size = LineSize::new(line_bytes).expect("one of the lengths");
            let mut copies = Unlimited::new(size);
            let mut plain = [7u8; 64];
            let mut dirty = 0;
            let line = copies.line(40);
            prop_assert!(!copies.store(40, Bytes::word(40), 1));
            copies.fill(line, [0x0707_0707_0707_0707; 8]);
            for (at, wide, value) in stores {
                let (at, bytes, len) = match wide {
                    true => (at & !7, Bytes::word(at), 8),
                    false => (at, Bytes::byte(at), 1),
                };
                let held = copies.line(at) == line;
                prop_assert_eq!(copies.store(at, bytes, value), held);
                if held {
                    let at = at as usize;
                    plain[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
                    dirty |= ((1u64 << len) - 1) << at;
                }
            }
            for at in line..line + line_bytes {
                let word = copies.word(at).map(|word| Bytes::byte(at).pick(word));
                prop_assert_eq!(word, Some(plain[at as usize].into()));
            }
            let back = copies.clean(line, drops);
            prop_assert_eq!(back.map_or(0, |(_, mask)| mask), dirty);
            prop_assert_eq!(copies.clean(line, drops), None);
            prop_assert_eq!(copies.lines().is_empty(), drops);
        }
    }
}
