//! The global address space: who holds a byte, and what an access outside it is.
//!
//! Physical addresses of a node count from 0: the private partition first, the shared partition
//! above it. From `global_base` on, an address is global: `base + node * shared_bytes + offset`
//! names a byte of `node`'s shared partition (Fröning et al., Sec. III-A). With the bit
//! [`CACHEABLE`] set it names the same byte, reached through the caches of one's own node: what a
//! processor reads in the attributes of a page stands in the address here. Units: bytes.
//!
//! Where the nodes share a pool of devices, these are numbered behind the nodes, and the nodes'
//! parts of the global address space are empty.

use sme_memory::{Place, Route};

pub use crate::parts::address::{AddressSpace, CACHEABLE, FaultReason, Way};
use crate::parts::line_size::LineSize;

/// The partition of the address space, the same for every node of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// Those that hold memory: nodes, and behind them the devices of a pool.
    pub nodes: u32,
    /// The first of them whose memory has global addresses.
    pub first_shared: u32,
    /// Bytes of each node's private partition.
    pub private_bytes: u64,
    /// Bytes of each node's shared partition.
    pub shared_bytes: u64,
    /// The first global address.
    pub global_base: u64,
    /// The length of a cache line.
    pub line: LineSize,
}

/// The target of an address, seen from one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The node's own memory, cached and coherent, at this physical address.
    Local(u64),
    /// Memory behind the engine.
    Global(Place),
    /// The same, through the node's caches.
    Cached(Place),
}

impl AddressSpace for AddressMap {
    fn line(&self) -> LineSize {
        self.line
    }

    fn devices(&self) -> u32 {
        match self.has_pool() {
            true => self.nodes - self.first_shared,
            false => 0,
        }
    }

    #[inline]
    fn address(&self, node: u32, place: Place, route: Route) -> u64 {
        let global = self.global_base + u64::from(place.node) * self.shared_bytes + place.offset;
        match route {
            Route::Nearest if place.node == node => self.private_bytes + place.offset,
            Route::Nearest | Route::Global | Route::Tagged => global,
            Route::Cached => CACHEABLE | global,
        }
    }

    fn cached_place(&self, address: u64) -> Option<Place> {
        match self.target(address) {
            Ok(Target::Cached(place)) => Some(place),
            _ => None,
        }
    }

    fn shared(&self, node: u32, address: u64) -> Option<(Place, Way)> {
        match self.target(address).ok()? {
            Target::Global(place) => Some((place, Way::Uncached)),
            Target::Cached(place) => Some((place, Way::Cached)),
            Target::Local(physical) => {
                let offset = physical.checked_sub(self.private_bytes)?;
                Some((Place { node, offset }, Way::Coherent))
            }
        }
    }
}

impl AddressMap {
    /// Returns whether the memory that nodes share is that of a pool's devices.
    #[inline]
    pub fn has_pool(&self) -> bool {
        self.first_shared > 0
    }

    /// Returns the target of `address`.
    #[inline]
    pub fn target(&self, address: u64) -> Result<Target, FaultReason> {
        if address < self.global_base {
            if address < self.private_bytes + self.shared_bytes {
                return Ok(Target::Local(address));
            }
            return Err(FaultReason::Unmapped);
        }
        let global = address & !CACHEABLE;
        let Some(beyond) = global.checked_sub(self.global_base) else {
            return Err(FaultReason::Unmapped);
        };
        let node = beyond / self.shared_bytes;
        if node >= u64::from(self.nodes) {
            return Err(FaultReason::NoSuchNode);
        }
        if node < u64::from(self.first_shared) {
            return Err(FaultReason::NotShared);
        }
        let place = Place {
            node: node as u32,
            offset: beyond % self.shared_bytes,
        };
        Ok(if address == global {
            Target::Global(place)
        } else {
            Target::Cached(place)
        })
    }

    /// The physical address of a shared byte in its own node.
    #[inline]
    pub fn physical(&self, offset: u64) -> u64 {
        self.private_bytes + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAP: AddressMap = AddressMap {
        nodes: 5,
        first_shared: 0,
        private_bytes: 1 << 20,
        shared_bytes: 1 << 16,
        global_base: 1 << 40,
        line: LineSize::B64,
    };

    proptest! {
        #[test]
        fn a_place_is_found_again_by_its_address(
            here in 0u32..5, node in 0u32..5, offset in 0u64..1 << 16,
        ) {
            let place = Place { node, offset };
            let global = MAP.address(here, place, Route::Global);
            prop_assert_eq!(MAP.target(global), Ok(Target::Global(place)));
            let cached = MAP.address(here, place, Route::Cached);
            prop_assert_eq!(MAP.target(cached), Ok(Target::Cached(place)));
            let nearest = MAP.target(MAP.address(here, place, Route::Nearest));
            if here == node {
                prop_assert_eq!(nearest, Ok(Target::Local(MAP.physical(offset))));
            } else {
                prop_assert_eq!(nearest, Ok(Target::Global(place)));
            }
        }
    }

    #[test]
    fn an_address_outside_faults() {
        assert_eq!(
            MAP.target((1 << 20) + (1 << 16)),
            Err(FaultReason::Unmapped)
        );
        assert_eq!(
            MAP.target((1 << 40) + (5 << 16)),
            Err(FaultReason::NoSuchNode)
        );
        assert_eq!(MAP.target(u64::MAX), Err(FaultReason::NoSuchNode));
        let pooled = AddressMap {
            first_shared: 3,
            ..MAP
        };
        let of = |node, route| {
            let place = Place { node, offset: 64 };
            pooled.target(pooled.address(2, place, route))
        };
        assert_eq!(of(2, Route::Nearest), Ok(Target::Local((1 << 20) + 64)));
        for route in [Route::Global, Route::Cached] {
            assert_eq!(of(2, route), Err(FaultReason::NotShared));
            assert!(of(3, route).is_ok());
        }
        assert_eq!(of(1, Route::Nearest), Err(FaultReason::NotShared));
        assert_eq!(MAP.target(CACHEABLE), Err(FaultReason::Unmapped));
    }
}
