//! The address space as programs see it. A [`Place`] below the size of a core's message passing
//! buffer is in that buffer, one above in the core's part of shared memory. Bits above the 32 of a
//! core address say how a page is mapped: cached, as tagged lines, or past the caches.

use sme_memory::{Place, Route};

use super::layout::{Chip, SEGMENT};
use super::lut::{BUFFERS, Entry, REGISTERS, SHARED};
use super::registers::table_entry;
use crate::parts::address::{AddressSpace, CACHEABLE, TAGGED, Way};
use crate::parts::line_size::LineSize;

/// Such an address space, as the default look-up tables make it.
#[derive(Clone, Copy, Debug)]
pub struct SccSpace {
    pub chip: Chip,
    pub line: LineSize,
}

impl SccSpace {
    /// The core address of `place`.
    pub fn core_address(&self, place: Place) -> u64 {
        let node = u64::from(place.node);
        match place.offset < self.chip.buffer_bytes {
            true => {
                let tile = u64::from(BUFFERS) + node / 2;
                tile * SEGMENT + node % 2 * self.chip.buffer_bytes + place.offset
            }
            false => (u64::from(SHARED) + node) * SEGMENT + place.offset,
        }
    }

    /// The place that a core address names.
    fn place(&self, address: u64) -> Option<Place> {
        let bytes = self.chip.buffer_bytes;
        let (segment, offset) = (u32::try_from(address / SEGMENT).ok()?, address % SEGMENT);
        let buffer = segment.checked_sub(BUFFERS);
        if let Some(tile) = buffer.filter(|&tile| tile < self.chip.tiles()) {
            let node = 2 * tile + u32::from(offset >= bytes);
            let offset = offset % bytes;
            return (address % SEGMENT < 2 * bytes).then_some(Place { node, offset });
        }
        let node = segment.checked_sub(SHARED)?;
        (node < self.chip.cores() && offset >= bytes).then_some(Place { node, offset })
    }
}

impl AddressSpace for SccSpace {
    fn address(&self, _: u32, place: Place, route: Route) -> u64 {
        let address = self.core_address(place);
        match route {
            Route::Nearest | Route::Global => address,
            Route::Cached => CACHEABLE | address,
            Route::Tagged => TAGGED | address,
        }
    }

    fn cached_place(&self, address: u64) -> Option<Place> {
        let core_address = address & !(CACHEABLE | TAGGED);
        (core_address != address).then(|| self.place(core_address))?
    }

    fn shared(&self, node: u32, address: u64) -> Option<(Place, Way)> {
        let core_address = address & !(CACHEABLE | TAGGED);
        let place = self.place(core_address)?;
        let is_own_buffer = place.node == node && place.offset < self.chip.buffer_bytes;
        let way = match core_address == address {
            false => Way::Cached,
            true if is_own_buffer => Way::Coherent,
            true => Way::Uncached,
        };
        Some((place, way))
    }

    fn line(&self) -> LineSize {
        self.line
    }

    /// One per core.
    fn registers(&self) -> u32 {
        1
    }

    fn moves_blocks(&self) -> bool {
        true
    }

    fn table_entry(&self, node: u32, entry: u32) -> Option<u64> {
        let offset = table_entry(node, u8::try_from(entry).ok()?);
        Some(u64::from(REGISTERS + Chip::tile_of(node)) * SEGMENT + offset)
    }

    fn unused_entry(&self) -> u64 {
        Entry::UNUSED.bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_address_names_the_place_that_it_was_made_for(
            node in 0u32..48,
            offset in prop_oneof![0u64..8 << 10, 0u64..SEGMENT],
            me in 0u32..48,
        ) {
            let space = SccSpace {
                chip: Chip::new(6, 4, 8 << 10),
                line: LineSize::new(32).expect("one of the four"),
            };
            let place = Place { node, offset };
            for route in [Route::Nearest, Route::Global, Route::Cached, Route::Tagged] {
                let address = space.address(me, place, route);
                let shared = space.shared(me, address);
                prop_assert_eq!(shared.map(|(place, _)| place), Some(place));
                let is_cached = matches!(route, Route::Cached | Route::Tagged);
                prop_assert_eq!(space.cached_place(address), is_cached.then_some(place));
            }
        }
    }
}
