//! The look-up table of a core: where an address goes. A core address has 32 bits; its upper eight
//! choose one of 256 entries, each for a segment of 16 MiB.
//!
//! | Segments | Lead to |
//! |---|---|
//! | `0x00` to `0x0f` | the core's private memory |
//! | `0x80 + n` | the part of shared memory of core `n` |
//! | `0xc0 + t` | the message passing buffer of tile `t`, one half for each of its cores |
//! | `0xe0 + t` | the configuration registers of tile `t` |
//! | `0xf8` | those of the core's own tile |
//!
//! Buffers and registers are where Intel's Linux maps them by default; the shared segments are one
//! for each core in place of one for each controller. Programs can change a table through its
//! registers.

use super::layout::{Chip, SEGMENT};
use crate::parts::address::FaultReason;

/// Entries of a table.
pub const ENTRIES: usize = 256;

/// Segments of a core's private memory.
pub const PRIVATE_SEGMENTS: u32 = 16;

/// The first segments of each kind.
pub const SHARED: u32 = 0x80;
pub const BUFFERS: u32 = 0xc0;
pub const REGISTERS: u32 = 0xe0;
pub const OWN_REGISTERS: u32 = 0xf8;

/// The first part of a controller's memory that is shared, in segments.
const SHARED_PART: u32 = 0x300;

/// Marks an offset in the memory of a node that no [`Place`](sme_memory::Place) names.
const PRIVATE: u64 = 1 << 40;
const BEHIND_BUFFER: u64 = 1 << 41;

/// Sub-destinations of a tile, as an entry numbers them.
const TO_REGISTERS: u32 = 2;
const TO_BUFFER: u32 = 3;
const TO_EAST: u32 = 4;
const TO_WEST: u32 = 6;

/// An entry as the hardware has it: 10 bits of address, 3 of sub-destination, 4 each of x and y,
/// and the bypass, which nothing here looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u32);

impl Entry {
    /// Leads nowhere: there is no tile at (15, 15).
    pub const UNUSED: Self = Self::new(0, 0, (15, 15));

    const fn new(part: u32, sub: u32, (x, y): (u32, u32)) -> Self {
        Self(part | sub << 10 | x << 13 | y << 17)
    }

    /// Decodes the bits of the register.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits as u32 & 0x3f_ffff)
    }

    /// Encodes it as the bits of the register.
    pub fn bits(self) -> u64 {
        self.0.into()
    }

    fn part(self) -> u32 {
        self.0 & 0x3ff
    }

    fn sub(self) -> u32 {
        self.0 >> 10 & 7
    }

    fn tile(self) -> (u32, u32) {
        (self.0 >> 13 & 15, self.0 >> 17 & 15)
    }
}

/// The destination of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The half of a message passing buffer that belongs to core `node`.
    Buffer {
        /// The core.
        node: u32,
        /// Bytes from its beginning.
        offset: u64,
    },
    /// Memory behind a controller.
    Memory {
        /// The core whose private or shared part it is.
        node: u32,
        /// An offset in that core's own numbering.
        offset: u64,
    },
    /// The configuration registers of a tile.
    Registers {
        /// The tile.
        tile: u32,
        /// Bytes from the first.
        offset: u64,
    },
}

/// The segment to which an entry leads.
#[derive(Clone, Copy, Debug)]
enum Leads {
    /// The buffer of the tile whose first core has this number.
    Buffer(u32),
    Registers(u32),
    /// The part of shared memory of a core.
    Shared(u32),
    /// A segment of a core's private memory, by the core and an offset in its own numbering.
    Private(u32, u64),
    Nowhere,
}

impl Leads {
    fn of(chip: &Chip, entry: Entry) -> Self {
        let Some(tile) = chip.tile_at(entry.tile()) else {
            return Self::Nowhere;
        };
        match entry.sub() {
            TO_REGISTERS => Self::Registers(tile),
            TO_BUFFER => Self::Buffer(2 * tile),
            sub @ (TO_EAST | TO_WEST) => {
                Self::behind(chip, entry, sub == TO_WEST).unwrap_or(Self::Nowhere)
            }
            _ => Self::Nowhere,
        }
    }

    /// The segment behind a controller at the left or right port of the entry's tile.
    fn behind(chip: &Chip, entry: Entry, west: bool) -> Option<Self> {
        let controller = chip.controller_behind(entry.tile(), west)?;
        let core = |number| chip.core_at_controller(controller, number);
        let part = entry.part();
        match part.checked_sub(SHARED_PART) {
            Some(number) => core(number).map(Self::Shared),
            None => {
                let segment = u64::from(part % PRIVATE_SEGMENTS);
                let core = core(part / PRIVATE_SEGMENTS)?;
                Some(Self::Private(core, PRIVATE | (segment * SEGMENT)))
            }
        }
    }
}

/// The table of one core.
#[derive(Clone, Debug)]
pub struct Lut {
    entries: Box<[Entry; ENTRIES]>,
    /// The segment to which each leads: they are looked at with every access.
    leads: Box<[Leads; ENTRIES]>,
}

/// Heap of a table, in bytes.
pub const BYTES: usize = ENTRIES * (size_of::<Entry>() + size_of::<Leads>());

impl Lut {
    /// The default table of `core`.
    pub fn new(chip: &Chip, core: u32) -> Self {
        let mut entries = Box::new([Entry::UNUSED; ENTRIES]);
        let mut set = |segment: u32, entry| entries[segment as usize] = entry;
        let memory = |of: u32, part: u32| {
            let controller = chip.controller(of);
            let sub = match chip.is_west(controller) {
                true => TO_WEST,
                false => TO_EAST,
            };
            Entry::new(part, sub, chip.controller_at(controller))
        };
        for segment in 0..PRIVATE_SEGMENTS {
            let part = chip.number_at_controller(core) * PRIVATE_SEGMENTS + segment;
            set(segment, memory(core, part));
        }
        for other in 0..chip.cores() {
            let part = SHARED_PART + chip.number_at_controller(other);
            set(SHARED + other, memory(other, part));
        }
        for tile in 0..chip.tiles() {
            set(
                BUFFERS + tile,
                Entry::new(0, TO_BUFFER, chip.position(tile)),
            );
            let registers = Entry::new(0, TO_REGISTERS, chip.position(tile));
            set(REGISTERS + tile, registers);
        }
        let own = Entry::new(0, TO_REGISTERS, chip.position(Chip::tile_of(core)));
        set(OWN_REGISTERS, own);
        let leads = Box::new(entries.map(|entry| Leads::of(chip, entry)));
        Self { entries, leads }
    }

    /// The entry numbered `number`.
    pub fn entry(&self, number: u8) -> Entry {
        self.entries[usize::from(number)]
    }

    /// Sets the entry numbered `number`.
    pub fn set(&mut self, chip: &Chip, number: u8, entry: Entry) {
        self.entries[usize::from(number)] = entry;
        self.leads[usize::from(number)] = Leads::of(chip, entry);
    }

    /// The destination of `address`.
    ///
    /// # Errors
    /// [`FaultReason::Entry`] if the entry leads to no memory of the chip,
    /// [`FaultReason::Unmapped`] if the address has more than 32 bits.
    pub fn target(&self, chip: &Chip, address: u64) -> Result<Target, FaultReason> {
        let number = address / SEGMENT;
        let leads = self.leads.get(number as usize);
        let offset = address % SEGMENT;
        let half = chip.buffer_bytes;
        Ok(match *leads.ok_or(FaultReason::Unmapped)? {
            Leads::Buffer(node) if offset < half => Target::Buffer { node, offset },
            Leads::Buffer(first) if offset < 2 * half => Target::Buffer {
                node: first + 1,
                offset: offset - half,
            },
            Leads::Registers(tile) => Target::Registers { tile, offset },
            Leads::Shared(node) => Target::Memory {
                node,
                offset: match offset < half {
                    true => BEHIND_BUFFER | offset,
                    false => offset,
                },
            },
            Leads::Private(node, first) => Target::Memory {
                node,
                offset: first | offset,
            },
            Leads::Buffer(_) | Leads::Nowhere => {
                return Err(FaultReason::Entry {
                    number: number as u8,
                    bits: self.entries[number as usize].0,
                });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chip() -> Chip {
        Chip::new(6, 4, 8 << 10)
    }

    #[test]
    fn buffers_and_registers_are_where_linux_maps_them() {
        let chip = chip();
        let lut = Lut::new(&chip, 17);
        let target = |address| lut.target(&chip, address).unwrap();
        let buffer = |node, offset| Target::Buffer { node, offset };
        assert_eq!(target(0xc000_0000), buffer(0, 0));
        assert_eq!(target(0xc500_2010), buffer(11, 0x10));
        let registers = |tile, offset| Target::Registers { tile, offset };
        assert_eq!(target(0xe300_0200), registers(3, 0x200));
        assert_eq!(target(0xf800_0400), registers(8, 0x400));
        let wrong = lut.target(&chip, 0x4000_0000);
        assert!(matches!(
            wrong,
            Err(FaultReason::Entry { number: 0x40, .. })
        ));
        let beyond = lut.target(&chip, 0xc000_4000);
        assert!(matches!(
            beyond,
            Err(FaultReason::Entry { number: 0xc0, .. })
        ));
    }

    proptest! {
        /// No two addresses of one core lead to the same byte, but for those of its own registers.
        #[test]
        fn a_table_maps_each_byte_once(core in 0u32..48, a: u32, b: u32) {
            let chip = chip();
            let lut = Lut::new(&chip, core);
            let of = |address: u32| lut.target(&chip, address.into());
            let is_own = |address: u32| address >> 24 == OWN_REGISTERS;
            if let (Ok(first), Ok(second)) = (of(a), of(b)) {
                prop_assert!(a == b || first != second || is_own(a) || is_own(b));
            }
        }

        /// An address is served or refused, with any content of its entry.
        #[test]
        fn any_entry_leads_somewhere_or_is_refused(bits: u64, address: u32) {
            let chip = chip();
            let mut lut = Lut::new(&chip, 0);
            lut.set(&chip, (address >> 24) as u8, Entry::from_bits(bits));
            match lut.target(&chip, address.into()) {
                Ok(Target::Buffer { node, offset }) => {
                    prop_assert!(node < 48 && offset < chip.buffer_bytes);
                }
                Ok(Target::Memory { node, .. }) => prop_assert!(node < 48),
                Ok(Target::Registers { tile, .. }) => prop_assert!(tile < 24),
                Err(reason) => {
                    let is_of_entry = matches!(reason, FaultReason::Entry { .. });
                    prop_assert!(is_of_entry);
                }
            }
        }
    }
}
