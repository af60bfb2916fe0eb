//! The plainest global address space: `node * shared_bytes + offset` names a byte of a node's
//! shared memory, from anywhere; with [`CACHEABLE`] set the same byte through the caches of one's
//! own node.

use sme_memory::{Place, Route};

use super::address::{AddressSpace, CACHEABLE, FaultReason, Way};
use super::line_size::LineSize;

/// Such an address space.
#[derive(Clone, Copy, Debug)]
pub struct GlobalSpace {
    /// Nodes of the machine.
    pub nodes: u32,
    /// Bytes of a node's shared memory.
    pub shared_bytes: u64,
    /// The length of a cache line.
    pub line: LineSize,
    /// Test-and-set registers of a node.
    pub registers: u32,
}

impl GlobalSpace {
    /// The place that `address` names, and whether it is reached through caches.
    ///
    /// # Errors
    /// [`FaultReason::NoSuchNode`] if it is beyond the last node's memory.
    pub fn place(&self, address: u64) -> Result<(Place, bool), FaultReason> {
        let plain = address & !CACHEABLE;
        let place = Place {
            node: u32::try_from(plain / self.shared_bytes).unwrap_or(u32::MAX),
            offset: plain % self.shared_bytes,
        };
        match place.node < self.nodes {
            true => Ok((place, plain != address)),
            false => Err(FaultReason::NoSuchNode),
        }
    }

    /// The address of `place`, past caches.
    pub fn plain(&self, place: Place) -> u64 {
        u64::from(place.node) * self.shared_bytes + place.offset
    }
}

impl AddressSpace for GlobalSpace {
    fn line(&self) -> LineSize {
        self.line
    }

    fn address(&self, _: u32, place: Place, route: Route) -> u64 {
        match route {
            Route::Nearest | Route::Global | Route::Tagged => self.plain(place),
            Route::Cached => CACHEABLE | self.plain(place),
        }
    }

    fn cached_place(&self, address: u64) -> Option<Place> {
        let (place, is_cached) = self.place(address).ok()?;
        is_cached.then_some(place)
    }

    fn shared(&self, node: u32, address: u64) -> Option<(Place, Way)> {
        let (place, is_cached) = self.place(address).ok()?;
        let way = match is_cached {
            true => Way::Cached,
            false if place.node == node => Way::Coherent,
            false => Way::Uncached,
        };
        Some((place, way))
    }

    fn registers(&self) -> u32 {
        self.registers
    }
}
