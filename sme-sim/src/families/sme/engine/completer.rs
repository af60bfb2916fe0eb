//! The completer: carries requests of the network out on its node's memory.
//!
//! ```text
//! request (from the crossbar) ─┬─> write (posted, to the HyperTransport port)
//!                              └─> read  (non-posted, with a source tag of the completer's own)
//! ```
//!
//! One request a cycle, strictly in the order of arrival: a read never passes a write. A write's
//! coherent bit goes with it, and makes the host probe its caches. A read takes the lowest free
//! tag of the completer's table, where its origin waits for the [responder](super::responder);
//! without a free tag, requests wait.

use super::ht::{HtChannel, HtPacket};
use super::ht_port::HtPort;
use super::packet::Kind;
use super::tags::{MAX_TAGS, Tags};
use super::wires::{COMPLETER, HT_TRANSMIT, HostFifos, PacketFifos};

/// The constants of a completer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleterSpec {
    /// Physical address, in the node, of the first byte of its shared partition: it lies above
    /// the private one.
    pub shared_base: u64,
}

/// The requester that waits for a read of this node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The node that asked.
    pub source: u32,
    /// The observer's mark.
    pub trace: u32,
    /// The source tag of the requester.
    pub tag: u8,
}

/// Registers, apart from the FIFO.
#[derive(Clone, Debug)]
pub struct Completer {
    /// Reads of the host's memory under way; the responder frees them.
    pub reads: Tags<Origin>,
}

impl Completer {
    /// After reset. The table has all 32 tags that HyperTransport's five bits can name.
    pub fn new() -> Self {
        Self {
            reads: Tags::new(MAX_TAGS),
        }
    }

    /// Ports `write` and `read`: what is offered to the HyperTransport port in this cycle.
    pub fn offers(&self, spec: &CompleterSpec, packets: &PacketFifos) -> Option<HtPacket> {
        if !packets.is_valid(COMPLETER) {
            return None;
        }
        let packet = packets.head(COMPLETER);
        let address = spec.shared_base + packet.offset;
        let (enables, trace) = (packet.enables, packet.trace);
        if packet.kind == Kind::PostedWrite {
            return Some(HtPacket::Write {
                address,
                data: packet.data,
                enables,
                coherent: packet.flag,
                trace,
            });
        }
        let tag = self.reads.lowest_free()?;
        let extra_words = packet.extra_words();
        Some(HtPacket::Read {
            address,
            enables: if extra_words > 0 { 0xff } else { enables },
            extra_words,
            tag,
            trace,
        })
    }

    /// One cycle; whether anything changed.
    pub fn step(
        &mut self,
        spec: &CompleterSpec,
        packets: &mut PacketFifos,
        host: &mut HostFifos,
        port: &mut HtPort,
    ) -> bool {
        let Some(access) = self.offers(spec, packets) else {
            return false;
        };
        let channel = access.channel();
        if !host.is_ready(HT_TRANSMIT + channel as usize) {
            return false;
        }
        let packet = packets.pop(COMPLETER);
        if channel == HtChannel::NonPosted {
            self.reads.allocate(Origin {
                source: packet.source,
                trace: packet.trace,
                tag: packet.tag,
            });
        }
        port.queue(access, host);
        true
    }
}

impl Default for Completer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ht_port::HtPortSpec;
    use super::super::packet::Packet;
    use super::super::wires::{DEPTH, HOST_FIFOS, PACKET_FIFOS};
    use super::*;

    #[test]
    fn requests_are_carried_out_in_order_and_wait_for_a_tag() {
        let spec = CompleterSpec {
            shared_base: 1 << 30,
        };
        let mut completer = Completer::new();
        let mut port = HtPort::new(&HtPortSpec { credits: [64; 3] });
        let mut depths = [DEPTH; HOST_FIFOS];
        depths[HT_TRANSMIT..HT_TRANSMIT + 3].fill(64);
        let mut host = HostFifos::new(&depths);
        let mut packets = PacketFifos::new(&[64; PACKET_FIFOS]);
        let (data, target, flag, tag, enables) = (5, 0, true, 17, 255);
        let reads = [Kind::ReadRequest; MAX_TAGS as usize + 1];
        for (number, kind) in [Kind::PostedWrite]
            .into_iter()
            .chain(reads)
            .chain([Kind::PostedWrite])
            .enumerate()
        {
            let (offset, source, trace) = (number as u64 * 8, number as u32, number as u32);
            packets.push(
                COMPLETER,
                Packet {
                    data,
                    offset,
                    target,
                    source,
                    trace,
                    kind,
                    flag,
                    tag,
                    enables,
                },
                0,
            );
        }
        let mut run = |completer: &mut Completer, host: &mut HostFifos| {
            (0..64)
                .filter(|_| {
                    packets.latch();
                    host.latch();
                    completer.reads.latch();
                    completer.step(&spec, &mut packets, host, &mut port)
                })
                .count()
        };
        assert_eq!(
            run(&mut completer, &mut host),
            1 + 32,
            "the last read has no tag, and the write waits behind it"
        );
        let write = HtPacket::Write {
            address: 1 << 30,
            data,
            enables,
            coherent: flag,
            trace: 0,
        };
        assert_eq!(host.pop(HT_TRANSMIT), write);
        assert_eq!(
            completer.reads.free(3),
            Some(Origin {
                source: 4,
                trace: 4,
                tag
            })
        );
        assert_eq!(run(&mut completer, &mut host), 2);
        assert_eq!(
            completer.reads.context(3),
            Some(&Origin {
                source: 33,
                trace: 33,
                tag
            })
        );
        // The last write came after 33 reads; the first of them after one write.
        assert_eq!(host.side(HT_TRANSMIT + 1), 1);
    }
}
