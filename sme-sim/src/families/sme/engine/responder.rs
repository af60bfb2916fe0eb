//! The responder: sends what the host's memory answers back to the node that asked.
//!
//! ```text
//! memory's response (from the HyperTransport port) ─> origin from the completer's table ─> FIFO
//!                                                  FIFO ─> response (to the crossbar)
//! ```
//!
//! One response a cycle, in the order in which the host gives them. The requester is looked up on
//! the way into the FIFO, and with that the completer's tag goes back. A response with a tag that
//! no read holds is dropped there, and counted.

use super::completer::Origin;
use super::counters::Faults;
use super::ht::HtPacket;
use super::packet::{Kind, Packet};
use super::tags::Tags;
use super::wires::{CROSSBAR_RESPONDER, HT_RECEIVE_RESPONSE, HostFifos, PacketFifos, RESPONDER};

/// The responder. It has no registers of its own, apart from the FIFO; only its node's number.
#[derive(Clone, Debug)]
pub struct Responder {
    node: u32,
}

impl Responder {
    /// After reset, in node `node`.
    pub fn new(node: u32) -> Self {
        Self { node }
    }

    /// Makes the packet for an answer and frees its tag; `None` if no read held that tag.
    pub fn respond(&self, reads: &mut Tags<Origin>, answer: &HtPacket) -> Option<Packet> {
        let &HtPacket::Response {
            data,
            single,
            extra_words,
            tag,
            error,
            ..
        } = answer
        else {
            return None;
        };
        let origin = reads.free(tag)?;
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
            flag: single,
            tag: origin.tag,
            enables: extra_words,
        })
    }

    /// Input port: takes an answer from the HyperTransport port if there is one, and a place for
    /// it; whether it did.
    pub fn receive(
        &mut self,
        reads: &mut Tags<Origin>,
        host: &mut HostFifos,
        packets: &mut PacketFifos,
        faults: &mut Faults,
    ) -> bool {
        if !host.is_valid(HT_RECEIVE_RESPONSE) || !packets.is_ready(RESPONDER) {
            return false;
        }
        match self.respond(reads, &host.pop(HT_RECEIVE_RESPONSE)) {
            Some(packet) => packets.push(RESPONDER, packet, 0),
            None => faults.unknown_tags += 1,
        }
        true
    }

    /// One cycle, in which it offers the crossbar the first response; whether anything changed.
    pub fn step(&mut self, packets: &mut PacketFifos) -> bool {
        let goes = packets.is_valid(RESPONDER) && packets.is_ready(CROSSBAR_RESPONDER);
        if goes {
            packets.transfer(RESPONDER, CROSSBAR_RESPONDER, 0);
        }
        goes
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
                HT_RECEIVE_RESPONSE,
                HtPacket::Response {
                    data: 6,
                    single: false,
                    extra_words: 0,
                    tag,
                    error,
                    trace: 0,
                },
                0,
            );
        }
        // Dropped, taken in, passed on.
        for moves in [[true, false], [true, false], [false, true]] {
            host.latch();
            packets.latch();
            let sent = responder.step(&mut packets);
            let taken = responder.receive(&mut reads, &mut host, &mut packets, &mut faults);
            assert_eq!([taken, sent], moves);
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
