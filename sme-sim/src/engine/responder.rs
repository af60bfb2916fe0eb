//! The responder: sends what the host's memory answers back to the node that asked.
//!
//! ```text
//! memory's response (from the HyperTransport port) ─> origin from the completer's table
//!                                                  ─> response (to the crossbar)
//! ```
//!
//! One response a cycle, in the order in which the host gives them. The completer's tag is free
//! from the next cycle on. A response with a tag that no read holds is dropped and counted.

use super::completer::Origin;
use super::counters::Faults;
use super::ht::HtPacket;
use super::packet::{Kind, Packet};
use super::tags::Tags;
use super::wires::{CROSSBAR_RESPONDER, HostFifos, PacketFifos, RESPONDER};

/// It has no registers of its own, apart from the FIFO; only its node's number.
#[derive(Clone, Debug)]
pub struct Responder {
    node: u32,
}

impl Responder {
    /// After reset, in node `node`.
    pub fn new(node: u32) -> Self {
        Self { node }
    }

    /// Port `response`: what is offered to the crossbar in this cycle.
    pub fn offers(&self, reads: &Tags<Origin>, host: &HostFifos) -> Option<Packet> {
        if !host.is_valid(RESPONDER) {
            return None;
        }
        let &HtPacket::Response { data, tag, error, .. } = host.head(RESPONDER) else {
            return None;
        };
        let origin = reads.context(tag)?;
        Some(Packet {
            data,
            offset: 0,
            target: origin.source,
            source: self.node,
            trace: origin.trace,
            kind: if error { Kind::ErrorResponse } else { Kind::ReadResponse },
            coherent: false,
            tag: origin.tag,
            enables: 0,
        })
    }

    /// One cycle; whether anything changed.
    pub fn step(
        &mut self,
        reads: &mut Tags<Origin>,
        host: &mut HostFifos,
        packets: &mut PacketFifos,
        faults: &mut Faults,
    ) -> bool {
        if !host.is_valid(RESPONDER) {
            return false;
        }
        let offered = self.offers(reads, host);
        if offered.is_some() && !packets.is_ready(CROSSBAR_RESPONDER) {
            return false;
        }
        if let HtPacket::Response { tag, .. } = host.pop(RESPONDER) {
            reads.free(tag);
        }
        match offered {
            Some(packet) => packets.push(CROSSBAR_RESPONDER, packet, 0),
            None => faults.unknown_tags += 1,
        }
        true
    }
}
