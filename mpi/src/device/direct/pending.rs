//! The sends of a rank as its server has them.

use std::sync::Arc;

use super::Ready;
use crate::channel::transfers::{Outbound, Started};
use crate::device::Device;
use crate::device::packet::{Header, Kind};

/// The sends of a rank that wait for places, as its server has them.
#[derive(Clone, Debug)]
pub struct Pending(pub(crate) Arc<Device>);

impl Pending {
    /// A packet has come `from` a rank; whether it tells of a place, and the rank itself need not
    /// see it.
    pub(crate) fn hears(&self, from: u32, header: Header) -> bool {
        let is_told = matches!(header.kind, Kind::Place | Kind::Matches | Kind::TakeBack);
        if is_told {
            self.0.state.lock().hears(from, header, true);
        }
        is_told
    }

    /// The next transfer to start.
    pub(crate) fn next(&self) -> Option<Ready> {
        self.0.next_served()
    }

    /// The data of one have left for rank `to`.
    pub(crate) fn pushed(&self, to: u32, ready: &Ready, pushed: Result<(), Outbound>) {
        self.0.pushed(to, ready, pushed);
    }

    /// A DMA channel sends them.
    pub(crate) fn started(&self, ready: &Ready, started: Result<Started, Outbound>) {
        self.0.started(ready, started);
    }
}
