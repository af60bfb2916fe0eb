//! Places and addresses: all memory is coherent, whichever socket it belongs to and by whichever
//! route.

use sme_memory::{Place, Route};

use crate::parts::address::{AddressSpace, FaultReason, Way};
use crate::parts::global::GlobalSpace;
use crate::parts::line_size::LineSize;

/// The address space of a machine; a socket is a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoherentSpace(pub GlobalSpace);

impl CoherentSpace {
    /// The place that `address` names.
    ///
    /// # Errors
    /// [`FaultReason::NoSuchNode`] if it is beyond the last socket's memory.
    pub(super) fn place(&self, address: u64) -> Result<Place, FaultReason> {
        match self.0.place(address)? {
            (place, false) => Ok(place),
            (_, true) => Err(FaultReason::NoSuchNode),
        }
    }
}

impl AddressSpace for CoherentSpace {
    fn line(&self) -> LineSize {
        self.0.line
    }

    fn address(&self, _: u32, place: Place, _: Route) -> u64 {
        self.0.plain(place)
    }

    fn cached_place(&self, _: u64) -> Option<Place> {
        None
    }

    fn shared(&self, _: u32, address: u64) -> Option<(Place, Way)> {
        Some((self.place(address).ok()?, Way::Coherent))
    }

    fn registers(&self) -> u32 {
        self.0.registers
    }

    fn moves_blocks(&self) -> bool {
        true
    }

    fn makes_passes(&self) -> bool {
        true
    }
}
