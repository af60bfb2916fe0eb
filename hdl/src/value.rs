//! The value on a port in a cycle: up to 192 bits of any meaning.

use rust_hdl::bits::Bits;
use std::fmt;

/// Bits of the widest port.
pub const MAX_BITS: usize = 192;

/// A port's bits, bit 0 the lowest; those beyond its width are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value([u64; 3]);

impl Value {
    /// The `width` bits (at most 64) from bit `offset` on.
    pub fn get(&self, offset: usize, width: usize) -> u64 {
        let (word, shift) = (offset / 64, offset % 64);
        let mut bits = self.0[word] >> shift;
        if shift + width > 64 {
            bits |= self.0[word + 1] << (64 - shift);
        }
        bits & mask(width)
    }

    /// Replaces the `width` bits (at most 64) from bit `offset` on.
    pub fn set(&mut self, offset: usize, width: usize, bits: u64) {
        let (word, shift, mask) = (offset / 64, offset % 64, mask(width));
        let bits = bits & mask;
        self.0[word] = self.0[word] & !(mask << shift) | bits << shift;
        if shift + width > 64 {
            let high = 64 - shift;
            self.0[word + 1] = self.0[word + 1] & !(mask >> high) | bits >> high;
        }
    }

    /// One bit.
    pub fn bit(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    /// The lowest 64 bits.
    pub fn low(&self) -> u64 {
        self.0[0]
    }

    /// Converts it to rust-hdl's bits; those beyond `N` are cut off.
    pub fn bits<const N: usize>(&self) -> Bits<N> {
        if N <= 32 {
            return self.get(0, N).into();
        }
        let bits: [bool; N] = std::array::from_fn(|index| self.bit(index));
        Bits::Long(bits.into())
    }

    /// From what rust-hdl has.
    pub fn from_bits<const N: usize>(bits: Bits<N>) -> Self {
        match bits {
            Bits::Short(_) => Self::from(u64::from(bits)),
            Bits::Long(_) => {
                let mut value = Self::default();
                for index in 0..N {
                    value.0[index / 64] |= u64::from(bits.get_bit(index)) << (index % 64);
                }
                value
            }
        }
    }
}

fn mask(width: usize) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - width)
    }
}

impl From<u64> for Value {
    fn from(bits: u64) -> Self {
        Self([bits, 0, 0])
    }
}

impl From<bool> for Value {
    fn from(bit: bool) -> Self {
        Self::from(u64::from(bit))
    }
}

/// Hexadecimal, as `$readmemh` takes it.
impl fmt::LowerHex for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, middle, high] = self.0;
        if high != 0 {
            write!(f, "{high:x}{middle:016x}{low:016x}")
        } else if middle != 0 {
            write!(f, "{middle:x}{low:016x}")
        } else {
            write!(f, "{low:x}")
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{self:x}")
    }
}
