//! Clocks and voltages that programs change, as on the Intel SCC: nodes are grouped into *tiles*
//! with a clock, and tiles into *islands* with a voltage. Machines with fixed ones do not have it.

use std::future::Future;

use thiserror::Error;

use crate::Memory;

/// The least divider of a tile's clock.
pub const LEAST_DIVIDER: u32 = 2;

/// The largest.
pub const MOST_DIVIDER: u32 = 16;

/// A clock that is too fast for a voltage: a command that would lead there is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "tile {tile} cannot run at {:.3} MHz with {:.3} V",
    f64::from(*.kilohertz) / 1e3,
    f64::from(*.millivolts) / 1e3
)]
pub struct Refused {
    /// The tile whose clock it is, one of 256.
    pub tile: u32,
    /// The clock, less than 2^32 kHz.
    pub kilohertz: u32,
    /// The voltage, less than 2^16 mV.
    pub millivolts: u32,
}

/// The tiles that have a clock of their own, and the islands that have a voltage of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    /// The tile of each node.
    pub tiles: Vec<u32>,
    /// The island of each node.
    pub islands: Vec<u32>,
    /// The divider with which all tiles begin, at the machine's clock.
    pub divider: u32,
    /// The voltage with which all islands begin \[mV\].
    pub millivolts: u32,
    /// The lowest voltage \[mV\] for each divider, from [`LEAST_DIVIDER`] on.
    pub least_millivolts: Vec<u32>,
}

impl Domains {
    /// The lowest voltage \[mV\] at which tiles run with that divider; that to begin with if there
    /// is no such divider.
    pub fn voltage_of(&self, divider: u32) -> u32 {
        let index = divider.checked_sub(LEAST_DIVIDER);
        let least = index.and_then(|index| self.least_millivolts.get(index as usize));
        least.copied().unwrap_or(self.millivolts)
    }
}

const REFUSED: u64 = 1 << 63;

impl Refused {
    /// A result as the 64 bits that a machine answers with.
    pub fn to_answer(result: Result<(), Self>) -> u64 {
        result.map_or_else(
            |refused| {
                let Self {
                    tile,
                    kilohertz,
                    millivolts,
                } = refused;
                let voltage = u64::from(millivolts & 0xffff);
                REFUSED | u64::from(tile & 0xff) << 48 | u64::from(kilohertz) << 16 | voltage
            },
            |()| 0,
        )
    }

    /// The result that an answer is.
    ///
    /// # Errors
    /// The answer is one.
    pub fn from_answer(answer: u64) -> Result<(), Self> {
        match answer & REFUSED {
            0 => Ok(()),
            _ => Err(Self {
                tile: (answer >> 48) as u32 & 0xff,
                kilohertz: (answer >> 16) as u32,
                millivolts: answer as u32 & 0xffff,
            }),
        }
    }
}

/// Memory of a node whose clock and voltage programs change. They act on the node's whole tile, or
/// island: whether others may be slowed is for the programs to agree on.
pub trait Scaling: Memory {
    /// Lets the clock of this node's tile be the global clock by `divider`, from [`LEAST_DIVIDER`]
    /// to [`MOST_DIVIDER`] (RCCE_set_frequency_divider). Ends when that acts; operations that have
    /// begun before end as they would have, but for computing, which goes on at the new clock.
    ///
    /// # Errors
    /// [`Refused`] if the voltage of the tile does not allow that clock.
    fn set_divider(&self, divider: u32) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Lets the voltage of this node's island be `millivolts` (RCCE_iset_power and RCCE_wait_power
    /// of the voltage alone). Ends when it is; until then all goes on at the old one. The chip has
    /// one regulator, which takes one command after the other.
    ///
    /// # Errors
    /// [`Refused`] if the clock of a tile of the island is too fast for that voltage.
    fn set_voltage(&self, millivolts: u32) -> impl Future<Output = Result<(), Refused>> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_were_written() {
        let refused = Refused {
            tile: 23,
            kilohertz: 799_500,
            millivolts: 700,
        };
        for result in [Ok(()), Err(refused)] {
            assert_eq!(Refused::from_answer(Refused::to_answer(result)), result);
        }
        let text = "tile 23 cannot run at 799.500 MHz with 0.700 V";
        assert_eq!(refused.to_string(), text);
    }
}
