//! Places and addresses: a node's number and an offset in its memory. Cores reach their own node's
//! memory only, past their caches or through them.

use sme_memory::{Place, Route};

use crate::parts::address::{AddressSpace, CACHEABLE, FaultReason, Way};
use crate::parts::line_size::LineSize;

/// Test-and-set registers of a node: words that an instruction loads and clears.
pub(super) const REGISTERS: u32 = 64;

/// The lowest bit of the node's number in an address.
const NODE: u32 = 40;

/// The address space of a chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct MppaSpace {
    /// Clusters and subsystems.
    pub nodes: u32,
    /// The length of a cache line.
    pub line: LineSize,
}

impl MppaSpace {
    /// The offset in the memory of `node` that `address` names there, and whether it is reached
    /// through a core's cache.
    pub fn own(&self, node: u32, address: u64) -> Result<(u64, bool), FaultReason> {
        let plain = address & !CACHEABLE;
        let is_cached = plain != address;
        let offset = plain & ((1 << NODE) - 1);
        match plain >> NODE {
            number if number == u64::from(node) => Ok((offset, is_cached)),
            number if number < u64::from(self.nodes) => Err(FaultReason::Foreign),
            _ => Err(FaultReason::NoSuchNode),
        }
    }

    fn place(&self, address: u64) -> Option<Place> {
        let plain = address & !CACHEABLE;
        let node = u32::try_from(plain >> NODE).ok()?;
        let offset = plain & ((1 << NODE) - 1);
        (node < self.nodes).then_some(Place { node, offset })
    }
}

impl AddressSpace for MppaSpace {
    fn line(&self) -> LineSize {
        self.line
    }

    fn address(&self, _: u32, place: Place, route: Route) -> u64 {
        let plain = u64::from(place.node) << NODE | place.offset & ((1 << NODE) - 1);
        match route {
            Route::Cached => CACHEABLE | plain,
            Route::Nearest | Route::Global | Route::Tagged => plain,
        }
    }

    fn cached_place(&self, address: u64) -> Option<Place> {
        (address & CACHEABLE != 0).then(|| self.place(address))?
    }

    fn shared(&self, node: u32, address: u64) -> Option<(Place, Way)> {
        let place = self.place(address)?;
        let way = match address & CACHEABLE != 0 {
            true => Way::Cached,
            false => Way::Coherent,
        };
        (place.node == node).then_some((place, way))
    }

    fn registers(&self) -> u32 {
        REGISTERS
    }

    fn moves_blocks(&self) -> bool {
        true
    }
}
