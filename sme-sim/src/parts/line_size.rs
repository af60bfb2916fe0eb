//! The length of a cache line: which line a byte lies in, and which of its bytes are whose.
//!
//! Lines shorter than 64 bytes are kept in the words of the aligned block of 64 bytes around them,
//! so that a word has the same number in a [`Bytes`](super::line::Bytes), a cache and a checker,
//! however long the lines of the machine are.

use std::ops::Range;

/// Bytes of the aligned block in which the words of a line are numbered.
const BLOCK_BYTES: u64 = 64;

/// The length of a cache line: 8, 16, 32 or 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineSize {
    /// The binary logarithm of the bytes.
    log: u32,
}

impl LineSize {
    /// Lines of 64 bytes.
    pub const B64: Self = Self { log: 6 };

    /// Lines of so many bytes, if there are such.
    pub fn new(bytes: u64) -> Option<Self> {
        let is_one = bytes.is_power_of_two() && (8..=BLOCK_BYTES).contains(&bytes);
        is_one.then_some(Self {
            log: bytes.trailing_zeros(),
        })
    }

    /// Bytes of a line.
    #[inline]
    pub const fn bytes(self) -> u64 {
        1 << self.log
    }

    /// 64-bit words of a line.
    #[inline]
    pub const fn words(self) -> u8 {
        1 << (self.log - 3)
    }

    /// The number of the line that holds the byte at `address`.
    #[inline]
    pub const fn number(self, address: u64) -> u64 {
        address >> self.log
    }

    /// The address of the first byte of line `number`.
    #[inline]
    pub const fn address(self, number: u64) -> u64 {
        number << self.log
    }

    /// The address of the first byte of the line that holds `address`.
    #[inline]
    pub const fn start(self, address: u64) -> u64 {
        self.address(self.number(address))
    }

    /// The words of line `number`, numbered as in its block.
    #[inline]
    pub fn words_of(self, number: u64) -> Range<u8> {
        let first = (self.address(number) / 8 % 8) as u8;
        first..first + self.words()
    }

    /// The address of word `word` of the block that holds line `number`.
    #[inline]
    pub const fn word_address(self, number: u64, word: u8) -> u64 {
        self.address(number) / BLOCK_BYTES * BLOCK_BYTES + 8 * word as u64
    }

    /// A bit for each byte of the block that holds line `number`: set for those of the line.
    #[inline]
    pub fn bytes_of(self, number: u64) -> u64 {
        let words = self.words_of(number);
        u64::MAX >> (64 - self.bytes()) << (8 * words.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against bytes, one by one.
        #[test]
        fn a_line_is_made_of_the_bytes_that_have_its_number(
            log in 3u32..=6, address in 0u64..1 << 61,
        ) {
            let size = LineSize::new(1 << log).expect("one of the four");
            let number = size.number(address);
            let block = address / 64 * 64;
            for byte in block..block + 64 {
                let is_in = byte / (1 << log) == address / (1 << log);
                prop_assert_eq!(size.number(byte) == number, is_in);
                prop_assert_eq!(size.bytes_of(number) >> (byte - block) & 1 == 1, is_in);
                let word = (byte / 8 % 8) as u8;
                prop_assert_eq!(size.words_of(number).contains(&word), is_in);
                prop_assert_eq!(size.word_address(number, word), byte / 8 * 8);
            }
            prop_assert_eq!(size.start(address), address / (1 << log) * (1 << log));
            prop_assert_eq!(u64::from(size.words()) * 8, size.bytes());
        }
    }

    #[test]
    fn there_are_lines_of_four_lengths() {
        let lengths = (0..1000).filter_map(LineSize::new).map(LineSize::bytes);
        assert_eq!(lengths.collect::<Vec<_>>(), [8, 16, 32, 64]);
    }
}
