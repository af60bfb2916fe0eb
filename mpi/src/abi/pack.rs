//! Packing and unpacking, as data lie in memory or in the format external32.

use std::sync::Arc;

use super::arguments::{Arguments, Out};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::datatype::{external, pack};
use crate::error::ErrorClass;

/// The only format that the calls for other machines have.
const FORMAT: &str = "external32";

impl Rank {
    /// MPI_Pack_size, MPI_Pack_external_size.
    pub(super) fn pack_size(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let is_external = is_external(a)?;
        let (count, datatype) = (a.count()?, a.datatype()?);
        let bytes = match is_external {
            true => external::size(count, &datatype)?,
            false => {
                a.skip();
                pack::pack_size(count, &datatype)?
            }
        };
        let out = a.out();
        a.put(out, bytes as i64)?;
        SUCCESS
    }

    /// MPI_Pack, MPI_Pack_external.
    pub(super) fn packs(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let is_external = is_external(a)?;
        let given = a.buffer()?;
        let (to, room, position) = (a.address(), a.count()?, a.out());
        let at = self.position(a, position)?;
        let mut bytes = given.buffer().packed()?;
        if is_external {
            let mut converted = Vec::new();
            external::encode(&bytes, &given.datatype, &mut converted)?;
            bytes = converted;
        }
        let end = end(at, bytes.len() as i64, (room, "outsize"))?;
        self.write(to.wrapping_add(at as u64), &bytes)?;
        a.put(position, end)?;
        SUCCESS
    }

    /// MPI_Unpack, MPI_Unpack_external.
    pub(super) fn unpacks(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let is_external = is_external(a)?;
        let (from, size, position) = (a.address(), a.count()?, a.out());
        let at = self.position(a, position)?;
        let given = a.buffer()?;
        let mut room = given.room();
        let bytes = match is_external {
            true => external::size(given.count, &given.datatype)?,
            false => room.bytes(),
        };
        let end = end(at, bytes as i64, (size, "insize"))?;
        let mut packed = self.read(from.wrapping_add(at as u64), bytes as usize)?;
        if is_external {
            let mut converted = Vec::new();
            external::decode(&packed, &given.datatype, &mut converted)?;
            packed = converted;
        }
        room.unpack(&packed)?;
        a.put(position, end)?;
        SUCCESS
    }

    /// The position that a call finds and moves on.
    fn position(&self, a: &Arguments<'_>, position: Out) -> Result<i64, Failure> {
        let width = a.width_of(position);
        let numbers = self.numbers(position.address, 1, width)?;
        Ok(numbers.first().copied().unwrap_or_default())
    }
}

/// Returns whether the call is one for another format than memory's, and takes its name.
fn is_external(a: &mut Arguments<'_>) -> Result<bool, Failure> {
    if !a.call.name.contains("_external") {
        return Ok(false);
    }
    match a.string()? {
        name if name == FORMAT => Ok(true),
        name => {
            let text = format!("datarep: {name} is not {FORMAT}");
            Err(Failure::new(ErrorClass::Arg, text))
        }
    }
}

/// The position behind `bytes` bytes from `at` on, which must be in a buffer of `size`.
fn end(at: i64, bytes: i64, (size, argument): (i64, &str)) -> Result<i64, Failure> {
    let end = at.saturating_add(bytes);
    match at >= 0 && end <= size {
        true => Ok(end),
        false => {
            let text = format!("{argument}: byte {end} of {size}");
            Err(Failure::new(ErrorClass::Truncate, text))
        }
    }
}
