//! The format external32 (MPI-4.1, Sec. 14.5.2): data as every machine reads them. Values are
//! big-endian and have fixed sizes: `long` has 4 bytes, `wchar_t` 2, and `long double` is an IEEE
//! number of 128 bits.
//!
//! Both sides of a conversion are packed: values in type-map order without gaps, as [`super::pack`]
//! has them. An integer that is longer in memory loses its high bytes, as the standard demands.

use rustc_apfloat::ieee::{Quad, X87DoubleExtended};
use rustc_apfloat::{Float as _, FloatConvert as _};

use super::{Basic, Datatype, Number, counted, too_large};
use crate::error::Fault;

/// Bytes that `count` copies of `datatype` take in this format (MPI_Pack_external_size).
///
/// # Errors
/// [`crate::error::ErrorClass::Count`] if `count` is negative, and
/// [`crate::error::ErrorClass::Arg`] if they do not fit into 63 bits.
pub fn size(count: i64, datatype: &Datatype) -> Result<u64, Fault> {
    let size = counted("count", count)?.checked_mul(datatype.0.layout.shape.external);
    size.filter(|bytes| *bytes <= i64::MAX as u64)
        .ok_or_else(|| too_large("count"))
}

/// Converts the packed data of copies of `datatype` into this format; the bytes go behind those in
/// `out`. Bytes at the end that are less than a value are left out.
///
/// # Errors
/// [`crate::error::ErrorClass::Arg`] if a copy does not fit into 63 bits.
pub fn encode(packed: &[u8], datatype: &Datatype, out: &mut Vec<u8>) -> Result<(), Fault> {
    convert(packed, datatype, |number, width, left| {
        let (value, rest) = left.split_at_checked(number.size())?;
        for part in value.chunks_exact(number.part()) {
            match number.is_x87() {
                true => out.extend(quad(part).to_be_bytes()),
                false => out.extend(part[..width.min(part.len())].iter().rev()),
            }
        }
        Some(rest)
    })
}

/// Converts data of copies of `datatype` in this format into packed data as memory has them, which
/// go behind those in `out`. Bytes at the end that are less than a value are left out.
///
/// # Errors
/// As [`encode`].
pub fn decode(external: &[u8], datatype: &Datatype, out: &mut Vec<u8>) -> Result<(), Fault> {
    convert(external, datatype, |number, width, left| {
        let (value, rest) = left.split_at_checked(width)?;
        for part in value.chunks_exact(width.min(number.part())) {
            if number.is_x87() {
                out.extend(x87(part).to_le_bytes());
                continue;
            }
            let is_negative = part.first().is_some_and(|first| *first >= 0x80);
            let fill = if number.is_signed() && is_negative {
                0xff
            } else {
                0
            };
            out.extend(part.iter().rev());
            out.extend(std::iter::repeat_n(fill, number.part() - part.len()));
        }
        Some(rest)
    })
}

/// Lets `step` take the values of copies of `datatype` from the front of `bytes`, one after the
/// other, until there are too few: it is told the number and its bytes in this format.
fn convert(
    bytes: &[u8],
    datatype: &Datatype,
    mut step: impl FnMut(Number, usize, &[u8]) -> Option<&[u8]>,
) -> Result<(), Fault> {
    let mut left = bytes;
    while !left.is_empty() && datatype.size() > 0 {
        for run in datatype.elements(1)? {
            for _ in 0..run.count {
                for (number, width) in run.basic.external() {
                    match step(number, width, left) {
                        Some(rest) => left = rest,
                        None => return Ok(()),
                    }
                }
            }
        }
    }
    Ok(())
}

impl Basic {
    /// The numbers of a value, each with its bytes in this format.
    fn external(self) -> impl Iterator<Item = (Number, usize)> {
        let numbers = self.numbers().iter().enumerate();
        numbers.map(move |(place, &number)| {
            match (self, place) {
                (Self::Long | Self::UnsignedLong | Self::LongInt, 0) => (number, 4),
                // Characters of two bytes have no sign.
                (Self::Wchar, _) => (Number::U32, 2),
                _ => (number, number.size()),
            }
        })
    }

    /// Bytes of a value in this format: not more than in memory.
    pub(super) fn external_size(self) -> u64 {
        self.external().map(|(_, width)| width as u64).sum()
    }
}

impl Number {
    /// Returns whether its highest bit is its sign, as an integer.
    fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns whether it is of `long double`, which has 16 bytes here too.
    fn is_x87(self) -> bool {
        matches!(self, Self::X80 | Self::CX80)
    }
}

/// The bits of a `long double` as an IEEE number of 128 bits, which has all its values.
fn quad(bytes: &[u8]) -> u128 {
    let mut own = [0; 16];
    // The other 6 bytes in memory say nothing.
    own[..10].copy_from_slice(&bytes[..10]);
    let value = X87DoubleExtended::from_bits(u128::from_le_bytes(own));
    let converted: Quad = value.convert(&mut false).value;
    converted.to_bits()
}

/// The bits of the `long double` nearest to an IEEE number of 128 bits.
fn x87(bytes: &[u8]) -> u128 {
    let mut own = [0; 16];
    own.copy_from_slice(&bytes[..16]);
    let value = Quad::from_bits(u128::from_be_bytes(own));
    let converted: X87DoubleExtended = value.convert(&mut false).value;
    converted.to_bits()
}
