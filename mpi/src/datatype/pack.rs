//! Moves data between memory and messages (MPI-4.1, Sec. 5.2), and counts what a message holds
//! (MPI-4.1, Sec. 3.2.5 and 5.1.11).
//!
//! A packed message is the data in type-map order without gaps: a receive with another datatype of
//! the same signature can unpack it. `memory` is a piece of memory; displacement 0 lies at `origin`
//! in it. [`super::external`] converts packed data into the format external32.

use std::ops::Range;

use super::layout::Arrangement;
use super::{Datatype, counted, too_large};
use crate::error::{ErrorClass, Fault};

/// Appends the data of `count` copies of `datatype` to `out` (MPI_Pack). Without data nothing is
/// read, and `origin` may lie anywhere.
///
/// # Errors
/// [`ErrorClass::Buffer`] if data lie outside `memory`, [`ErrorClass::Count`] if `count` is
/// negative, [`ErrorClass::Arg`] if the copies do not fit into 63 bits, [`ErrorClass::NoMem`] if
/// `out` cannot grow so far: overlapping data may be larger than memory. Then `out` is as before.
pub fn pack(
    memory: &[u8],
    origin: usize,
    count: i64,
    datatype: &Datatype,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let Some(within) = window(memory.len(), origin, count, datatype, "inbuf")? else {
        return Ok(());
    };
    if datatype.is_contiguous() {
        out.extend_from_slice(&memory[within]);
        return Ok(());
    }
    let bytes = size_of_copies(count, datatype)?;
    out.try_reserve(bytes as usize).map_err(|_| {
        let text = format!("no memory for {bytes} bytes");
        Fault::new(ErrorClass::NoMem, "outbuf", text)
    })?;
    for block in datatype.blocks(count)? {
        let begins = origin.wrapping_add_signed(block.displacement as isize);
        out.extend_from_slice(&memory[begins..begins + block.bytes]);
    }
    Ok(())
}

/// Fills the data of `count` copies of `datatype` from `packed`; returns the bytes used
/// (MPI_Unpack).
///
/// A shorter message fills the data that it reaches, and every byte of them: a message may end
/// inside a predefined value. Bytes of a longer one are left over. Gaps keep their content. The
/// whole of `count` copies must lie in `memory`, even if the message is shorter.
///
/// # Errors
/// As [`pack`], except for [`ErrorClass::NoMem`]. Then `memory` is as before.
pub fn unpack(
    packed: &[u8],
    memory: &mut [u8],
    origin: usize,
    count: i64,
    datatype: &Datatype,
) -> Result<usize, Fault> {
    let Some(within) = window(memory.len(), origin, count, datatype, "outbuf")? else {
        return Ok(0);
    };
    if datatype.is_contiguous() {
        let bytes = packed.len().min(within.len());
        memory[within.start..within.start + bytes].copy_from_slice(&packed[..bytes]);
        return Ok(bytes);
    }
    let mut left = packed;
    for block in datatype.blocks(count)? {
        let (now, later) = left.split_at(block.bytes.min(left.len()));
        let begins = origin.wrapping_add_signed(block.displacement as isize);
        memory[begins..begins + now.len()].copy_from_slice(now);
        left = later;
        if left.is_empty() {
            break;
        }
    }
    Ok(packed.len() - left.len())
}

/// Bytes that `count` copies of `datatype` take in a message (MPI_Pack_size).
///
/// # Errors
/// [`ErrorClass::Count`] if `count` is negative, [`ErrorClass::Arg`] if they do not fit into 63
/// bits.
pub fn pack_size(count: i64, datatype: &Datatype) -> Result<u64, Fault> {
    size_of_copies(count, datatype)
}

/// Copies of `datatype` in a message of so many bytes (MPI_Get_count; MPI-4.1, Sec. 3.2.5). `None`
/// stands for MPI_UNDEFINED: the last copy is not whole.
pub fn get_count(bytes: u64, datatype: &Datatype) -> Option<u64> {
    match datatype.0.layout.shape.bytes {
        0 => (bytes == 0).then_some(0),
        size => bytes.is_multiple_of(size).then_some(bytes / size),
    }
}

/// Predefined values in a message of so many bytes, received with `datatype` (MPI_Get_elements;
/// MPI-4.1, Sec. 5.1.11). `None` stands for MPI_UNDEFINED: the last value is not whole.
///
/// A pair counts as two values: MPI-4.1, Sec. 6.9.4, defines it as a structure of two.
pub fn get_elements(bytes: u64, datatype: &Datatype) -> Option<u64> {
    let mut shape = &*datatype.0.layout.shape;
    if shape.bytes == 0 {
        return (bytes == 0).then_some(0);
    }
    let mut elements = (bytes / shape.bytes).checked_mul(shape.elements)?;
    let mut left = bytes % shape.bytes;
    while left > 0 {
        match &shape.arrangement {
            Arrangement::Run { basic, .. } => {
                let size = basic.size() as u64;
                elements += left / size * basic.numbers().len() as u64;
                left %= size;
                for (_, number) in basic.fields() {
                    if left >= number.size() as u64 {
                        left -= number.size() as u64;
                        elements += 1;
                    } else {
                        return (left == 0).then_some(elements);
                    }
                }
            }
            Arrangement::Repeat { of, .. } => {
                elements += left / of.bytes * of.elements;
                left %= of.bytes;
                shape = of;
            }
            Arrangement::Parts(parts) => {
                let mut parts = parts.iter();
                shape = loop {
                    let (_, part) = parts.next()?;
                    if left < part.bytes {
                        break part;
                    }
                    left -= part.bytes;
                    elements += part.elements;
                };
            }
        }
    }
    Some(elements)
}

fn size_of_copies(count: i64, datatype: &Datatype) -> Result<u64, Fault> {
    let size = counted("count", count)?.checked_mul(datatype.0.layout.shape.bytes);
    size.filter(|bytes| *bytes <= i64::MAX as u64)
        .ok_or_else(|| too_large("count"))
}

/// The part of memory that all data lie in; `None` if there are none.
fn window(
    length: usize,
    origin: usize,
    count: i64,
    datatype: &Datatype,
    argument: &'static str,
) -> Result<Option<Range<usize>>, Fault> {
    let Some((low, high)) = datatype.span(count)? else {
        return Ok(None);
    };
    let at = |displacement: i64| {
        let index = origin as i128 + i128::from(displacement);
        usize::try_from(index).ok().filter(|index| *index <= length)
    };
    match (at(low), at(high)) {
        (Some(begins), Some(ends)) => Ok(Some(begins..ends)),
        _ => {
            let text = format!(
                "data at displacements {low} to {high} from byte {origin} exceed a memory of {length} bytes"
            );
            Err(Fault::new(ErrorClass::Buffer, argument, text))
        }
    }
}
