//! The configuration registers of a tile: a test-and-set register and a look-up table for each of
//! its two cores. They have addresses, as memory has: a load of a test-and-set register returns 1
//! to the one that takes it, a store releases it, and a store to a table changes where its core's
//! addresses go.

use super::access::Sends;
use super::core::{Core, Cpu};
use super::lut::{ENTRIES, Target};
use super::way::At;
use crate::machine::node::Waiting;
use crate::parts::address::FaultReason;
use crate::parts::line::Bytes;

/// Offsets of the test-and-set registers of the tile's cores.
const TEST_AND_SET: [u64; 2] = [0x200, 0x400];

/// Offsets of their look-up tables, whose entries are eight bytes apart.
const TABLES: [u64; 2] = [0x800, 0x1000];

/// The offset of an entry of the table of `core` among the registers of its tile.
pub(super) fn table_entry(core: u32, entry: u8) -> u64 {
    TABLES[core as usize % 2] + 8 * u64::from(entry)
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    TestAndSet,
    Entry(u8),
}

/// The core to which the register at `offset` of `tile` belongs, and which register it is.
///
/// # Errors
/// [`FaultReason::NoSuchRegister`] if there is none.
pub(super) fn which(tile: u32, offset: u64) -> Result<(u32, Kind), FaultReason> {
    for (core, (register, table)) in (0..).zip(TEST_AND_SET.into_iter().zip(TABLES)) {
        let node = 2 * tile + core;
        if offset == register {
            return Ok((node, Kind::TestAndSet));
        }
        let entry = offset.wrapping_sub(table);
        if entry.is_multiple_of(8) && entry / 8 < ENTRIES as u64 {
            return Ok((node, Kind::Entry((entry / 8) as u8)));
        }
    }
    Err(FaultReason::NoSuchRegister)
}

impl Core {
    /// The register that `address` names, if it does not name memory.
    fn register_at(&self, address: u64) -> Option<Result<(u32, Kind), FaultReason>> {
        match self.target(address, Bytes::byte(address)) {
            Ok(Target::Registers { tile, offset }) => Some(which(tile, offset)),
            _ => None,
        }
    }

    /// Reads the register at `address` for `thread`, if there is one; a register is no memory.
    pub(super) fn reads_register(&mut self, cpu: &mut Cpu, thread: u16, address: u64) -> bool {
        let what = |kind| match kind {
            Kind::TestAndSet => Sends::TestAndSet,
            Kind::Entry(number) => Sends::ReadEntry(number),
        };
        self.asks_register(cpu, thread, address, Waiting::Polls, what)
    }

    /// Writes it.
    pub(super) fn writes_register(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        address: u64,
        value: u64,
    ) -> bool {
        let what = |kind| match kind {
            Kind::TestAndSet => Sends::Clear,
            Kind::Entry(number) => Sends::WriteEntry(number, value),
        };
        self.asks_register(cpu, thread, address, Waiting::Answer, what)
    }

    fn asks_register(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        address: u64,
        waiting: Waiting,
        what: impl FnOnce(Kind) -> Sends,
    ) -> bool {
        match self.register_at(address) {
            None => return false,
            Some(Err(reason)) => cpu.refuse(thread, Some(address), reason),
            Some(Ok((node, kind))) => {
                cpu.waits(thread, waiting);
                self.ask(cpu, thread, At::registers(node), what(kind));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_where_the_drivers_find_them() {
        assert_eq!(which(3, 0x200), Ok((6, Kind::TestAndSet)));
        assert_eq!(which(3, 0x400), Ok((7, Kind::TestAndSet)));
        assert_eq!(which(0, 0x800 + 8 * 0xc0), Ok((0, Kind::Entry(0xc0))));
        assert_eq!(which(23, 0x1000 + 8 * 255), Ok((47, Kind::Entry(255))));
        for none in [0, 0x208, 0x804, 0x1800] {
            assert_eq!(which(0, none), Err(FaultReason::NoSuchRegister));
        }
    }
}
