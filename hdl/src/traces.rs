//! The observer's marks of the packets inside an engine whose RTL knows none.
//!
//! The cycle model's packets carry a mark (`trace`) from which the simulator recognizes an access.
//! Hardware has nothing of the kind; so the marks wait here while the packets are inside. Three
//! facts make that exact: packets of one kind from one node to another never overtake each other, a
//! host's reads have different tags while they are under way, and the completer's observer outputs
//! tell in which order it takes packets of different nodes.

use std::collections::{BTreeMap, VecDeque};

use sme_sim::families::sme::engine::requester::RequesterSpec;
use sme_sim::families::sme::engine::{HtPacket, Kind, Packet};

/// Source, target and kind of packets that keep their order.
type Stream = (u32, u32, Kind);

/// The marks of one engine's packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    streams: BTreeMap<Stream, VecDeque<u32>>,
    /// Of the host's own reads, by its tag.
    host_reads: BTreeMap<u8, u32>,
    /// Of what the completer has taken and the host has not got yet: writes, reads.
    completing: [VecDeque<(u32, u32)>; 2],
    /// Of reads of the host's memory, by the completer's tag: who asked, and the mark.
    memory_reads: BTreeMap<u8, (u32, u32)>,
}

impl Traces {
    /// A packet comes from a link.
    pub fn link_in(&mut self, packet: &Packet, node: u32) {
        // An answer to the own node goes to the host under the mark of the host's read.
        let answer = matches!(packet.kind, Kind::ReadResponse | Kind::ErrorResponse);
        if !(answer && packet.target == node) {
            self.push(packet.source, packet.target, packet.kind, packet.trace);
        }
    }

    /// A packet comes from the host of `node`.
    pub fn host_in(&mut self, packet: &HtPacket, node: u32, spec: &RequesterSpec) {
        match *packet {
            HtPacket::Write { address, trace, .. } => {
                if let Some((target, _)) = spec.locate(address) {
                    self.push(node, target, Kind::PostedWrite, trace);
                }
            }
            HtPacket::Read {
                address,
                tag,
                trace,
                ..
            } => {
                self.host_reads.insert(tag, trace);
                if let Some((target, _)) = spec.locate(address) {
                    self.push(node, target, Kind::ReadRequest, trace);
                }
            }
            HtPacket::Response { tag, error, .. } => {
                let kind = if error {
                    Kind::ErrorResponse
                } else {
                    Kind::ReadResponse
                };
                if let Some((source, trace)) = self.memory_reads.remove(&tag)
                    && source != node
                {
                    self.push(node, source, kind, trace);
                }
            }
        }
    }

    /// The completer of `node` takes a request that came from `source`.
    pub fn completer_takes(&mut self, source: u32, node: u32, is_read: bool) {
        let kind = if is_read {
            Kind::ReadRequest
        } else {
            Kind::PostedWrite
        };
        let trace = self.pop(source, node, kind);
        self.completing[usize::from(is_read)].push_back((source, trace));
    }

    /// A packet leaves over a link; its mark.
    pub fn link_out(&mut self, packet: &Packet) -> u32 {
        self.pop(packet.source, packet.target, packet.kind)
    }

    /// A packet leaves to the host; its mark.
    pub fn host_out(&mut self, packet: &HtPacket) -> u32 {
        match *packet {
            HtPacket::Write { .. } => self.completing[0].pop_front().map(|(_, trace)| trace),
            HtPacket::Read { tag, .. } => self.completing[1].pop_front().map(|origin| {
                self.memory_reads.insert(tag, origin);
                origin.1
            }),
            HtPacket::Response { tag, .. } => self.host_reads.remove(&tag),
        }
        .unwrap_or_default()
    }

    fn push(&mut self, source: u32, target: u32, kind: Kind, trace: u32) {
        let stream = self.streams.entry((source, target, kind)).or_default();
        stream.push_back(trace);
    }

    /// 0 if there is none: then the RTL has made up a packet, which others find out.
    fn pop(&mut self, source: u32, target: u32, kind: Kind) -> u32 {
        let stream = (source, target, kind);
        let Some(traces) = self.streams.get_mut(&stream) else {
            return 0;
        };
        let trace = traces.pop_front().unwrap_or_default();
        if traces.is_empty() {
            self.streams.remove(&stream);
        }
        trace
    }
}
