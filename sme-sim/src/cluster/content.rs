//! The 64 bytes of a cache line, held sparsely: most lines that synchronize anything use one of
//! their eight words, and a million of them must fit.

/// Eight 64-bit words, zero where never written. Bytes are little-endian within a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// All zero.
    #[default]
    Zero,
    /// One word is not zero.
    One {
        /// Which word of the line.
        word: u8,
        /// Its value.
        value: u64,
    },
    /// Any.
    Full(Box<[u64; 8]>),
}

/// Some bytes of one aligned word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Which word of the line.
    pub word: u8,
    /// A bit for each byte.
    pub enables: u8,
    /// How many bytes a right-aligned value of them is to be moved up.
    offset: u8,
}

impl Bytes {
    /// The byte at `address`.
    #[inline]
    pub fn byte(address: u64) -> Self {
        let offset = (address % 8) as u8;
        Self {
            word: (address / 8 % 8) as u8,
            enables: 1 << offset,
            offset,
        }
    }

    /// The whole word at `address`.
    #[inline]
    pub fn word(address: u64) -> Self {
        Self::enabled(address, 0xff)
    }

    /// The bytes of the word at `address` that `enables` names, a bit each; a value of them stands
    /// where they do.
    #[inline]
    pub fn enabled(address: u64, enables: u8) -> Self {
        Self {
            word: (address / 8 % 8) as u8,
            enables,
            offset: 0,
        }
    }

    /// Whether these are all eight.
    #[inline]
    pub fn is_whole_word(self) -> bool {
        self.enables == 0xff
    }

    /// `value` of these bytes, moved to where they stand in their word.
    #[inline]
    pub fn place(self, value: u64) -> u64 {
        value << (8 * self.offset)
    }

    /// The value of these bytes in `word`.
    #[inline]
    pub fn pick(self, word: u64) -> u64 {
        (word & self.mask()) >> (8 * self.offset)
    }

    /// Bits that belong to the bytes, all ones.
    #[inline]
    fn mask(self) -> u64 {
        // Spreads the eight bits over eight bytes, and makes each that is not zero all ones.
        let spread = (u64::from(self.enables) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        let low = 0x7f7f_7f7f_7f7f_7f7f;
        let ones = (((spread & low) + low) | spread) & !low;
        (ones >> 7) * 0xff
    }
}

impl Content {
    /// The word numbered `word`.
    #[inline]
    pub fn word(&self, word: u8) -> u64 {
        match self {
            Content::Zero => 0,
            Content::One { word: held, value } => {
                if *held == word {
                    *value
                } else {
                    0
                }
            }
            Content::Full(words) => words[usize::from(word)],
        }
    }

    /// The value of `bytes`, right-aligned.
    #[inline]
    pub fn read(&self, bytes: Bytes) -> u64 {
        bytes.pick(self.word(bytes.word))
    }

    /// Replaces `bytes` by `value`, which is right-aligned.
    #[inline]
    pub fn write(&mut self, bytes: Bytes, value: u64) {
        let old = self.word(bytes.word);
        let mask = bytes.mask();
        let new = old & !mask | bytes.place(value) & mask;
        if new == old {
            return;
        }
        match self {
            Content::Full(words) => words[usize::from(bytes.word)] = new,
            Content::One { word, value } if *word == bytes.word => *value = new,
            Content::Zero => {
                *self = Content::One {
                    word: bytes.word,
                    value: new,
                }
            }
            Content::One { word, value } => {
                let mut words = Box::new([0; 8]);
                words[usize::from(*word)] = *value;
                words[usize::from(bytes.word)] = new;
                *self = Content::Full(words);
            }
        }
    }

    /// Bytes of memory held beside the value itself.
    pub fn bytes(&self) -> usize {
        match self {
            Content::Full(_) => 64,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_64_bytes(
            writes in proptest::collection::vec((0u64..64, any::<u8>(), any::<bool>()), 0..40),
        ) {
            let mut plain = [0u8; 64];
            let mut content = Content::default();
            for (address, value, wide) in writes {
                if wide {
                    let value = u64::from(value) * 0x0101_0101_0101_0101;
                    let at = (address / 8 * 8) as usize;
                    plain[at..at + 8].copy_from_slice(&value.to_le_bytes());
                    content.write(Bytes::word(address), value);
                } else {
                    plain[address as usize] = value;
                    content.write(Bytes::byte(address), u64::from(value));
                }
                for (at, &byte) in plain.iter().enumerate() {
                    prop_assert_eq!(content.read(Bytes::byte(at as u64)), u64::from(byte));
                }
            }
        }

        #[test]
        fn a_mask_has_the_enabled_bytes(enables: u8) {
            let bytes = Bytes::enabled(24, enables).mask().to_le_bytes();
            for (number, byte) in bytes.into_iter().enumerate() {
                prop_assert_eq!(byte, if enables >> number & 1 == 0 { 0 } else { 0xff });
            }
        }
    }
}
