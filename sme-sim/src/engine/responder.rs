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
        let &HtPacket::Response {
            data, tag, error, ..
        } = host.head(RESPONDER)
        else {
            return None;
        };
        let origin = reads.context(tag)?;
        Some(Packet {
            data,
            offset: 0,
            target: origin.source,
            source: self.node,
            trace: origin.trace,
            kind: if error {
                Kind::ErrorResponse
            } else {
                Kind::ReadResponse
            },
            coherent: false,
            tag: origin.tag,
            enables: 0,
        })
    }

    /// One cycle, in which `offered` is what [`Responder::offers`] gave before the completer took
    /// a tag; whether anything changed.
    pub fn step(
        &mut self,
        offered: Option<Packet>,
        reads: &mut Tags<Origin>,
        host: &mut HostFifos,
        packets: &mut PacketFifos,
        faults: &mut Faults,
    ) -> bool {
        // What is dropped waits for the crossbar, too, as the RTL does.
        if !host.is_valid(RESPONDER) || !packets.is_ready(CROSSBAR_RESPONDER) {
            return false;
        }
        let answer = host.pop(RESPONDER);
        match offered {
            Some(packet) => {
                if let HtPacket::Response { tag, .. } = answer {
                    reads.free(tag);
                }
                packets.push(CROSSBAR_RESPONDER, packet, 0);
            }
            None => faults.unknown_tags += 1,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::wires::{DEPTH, HOST_FIFOS, PACKET_FIFOS};
    use super::*;

    #[test]
    fn errors_go_back_as_errors_and_unknown_tags_nowhere() {
        let mut reads = Tags::new(32);
        let mut host = HostFifos::new(&[DEPTH; HOST_FIFOS]);
        let mut packets = PacketFifos::new(&[DEPTH; PACKET_FIFOS]);
        let mut faults = Faults::default();
        let mut responder = Responder::new(4);
        let tag = reads
            .allocate(Origin {
                source: 9,
                trace: 77,
                tag: 21,
            })
            .expect("all are free");
        for (tag, error) in [(tag + 1, false), (tag, true)] {
            host.push(
                RESPONDER,
                HtPacket::Response {
                    data: 6,
                    tag,
                    error,
                    trace: 0,
                },
                0,
            );
        }
        for _ in 0..2 {
            host.latch();
            packets.latch();
            let offered = responder.offers(&reads, &host);
            assert!(responder.step(offered, &mut reads, &mut host, &mut packets, &mut faults));
        }
        packets.latch();
        let packet = packets.pop(CROSSBAR_RESPONDER);
        assert_eq!(
            (packet.kind, packet.source, packet.target),
            (Kind::ErrorResponse, 4, 9)
        );
        assert_eq!((packet.tag, packet.trace, packet.data), (21, 77, 6));
        assert_eq!(packets.next_valid(), 0);
        assert_eq!(faults.unknown_tags, 1);
        assert!(reads.is_quiet());
    }
}
