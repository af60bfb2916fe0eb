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
    /// Bits that belong to the bytes, all ones.
    pub mask: u64,
    /// Where the lowest of them stands.
    pub shift: u8,
}

impl Bytes {
    /// The byte at `address`.
    #[inline]
    pub fn byte(address: u64) -> Self {
        let shift = (address % 8 * 8) as u8;
        Self {
            word: (address / 8 % 8) as u8,
            mask: 0xff << shift,
            shift,
        }
    }

    /// The whole word at `address`.
    #[inline]
    pub fn word(address: u64) -> Self {
        Self {
            word: (address / 8 % 8) as u8,
            mask: u64::MAX,
            shift: 0,
        }
    }

    /// The bytes of the word at `address` that `enables` names, a bit each.
    pub fn enabled(address: u64, enables: u8) -> Self {
        let mut mask = 0;
        for byte in 0..8 {
            if enables >> byte & 1 != 0 {
                mask |= 0xff << (8 * byte);
            }
        }
        Self {
            mask,
            ..Self::word(address)
        }
    }

    /// A bit for each byte.
    pub fn enables(self) -> u8 {
        (0..8).fold(0, |bits, byte| {
            bits | u8::from(self.mask >> (8 * byte) & 0xff != 0) << byte
        })
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
        (self.word(bytes.word) & bytes.mask) >> bytes.shift
    }

    /// Replaces `bytes` by `value`, which is right-aligned.
    #[inline]
    pub fn write(&mut self, bytes: Bytes, value: u64) {
        let old = self.word(bytes.word);
        let new = old & !bytes.mask | value << bytes.shift & bytes.mask;
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
        fn byte_enables_and_masks_are_the_same_thing(enables in 1u8..=255) {
            prop_assert_eq!(Bytes::enabled(24, enables).enables(), enables);
        }
    }
}
