//! The requester: turns the host's loads and stores into network packets.
//!
//! ```text
//! posted writes ─────┐
//!                    ├─> request  (to the crossbar)
//! reads ─> tag table ┘
//! network response ──┬─> response (to the HyperTransport port)
//! failed read ───────┘
//! ```
//!
//! A global address names a node and an offset in its shared partition:
//! `global_base + node · shared_bytes + offset`. A read takes the lowest free source tag and waits
//! while there is none; writes pass it meanwhile, while a read passes no write that came before
//! it. If a write and a read can go, they take turns. A network response gives the tag back and
//! goes to the host under the host's own tag. An address of no node fails: a read is answered with
//! an error (when no network response wants the port), a write is dropped in one cycle; both are
//! counted.

use super::counters::Faults;
use super::ht::HtPacket;
use super::ht_port::{HtPort, overtakes_none};
use super::packet::{Kind, Packet};
use super::tags::Tags;
use super::wires::{
    CROSSBAR_REQUESTER, HT_TRANSMIT, HostFifos, PacketFifos, REQUESTER_NONPOSTED, REQUESTER_POSTED,
    REQUESTER_RESPONSE,
};

/// The constants of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequesterSpec {
    /// First global address.
    pub global_base: u64,
    /// log2 of the bytes of a node's shared partition.
    pub shared_bits: u32,
    /// Nodes that have a host: `0..hosts`.
    pub hosts: u32,
    /// Source tags.
    pub tags: u32,
}

impl RequesterSpec {
    /// The node and the offset of a global address; `None` if there is nothing.
    pub fn locate(&self, address: u64) -> Option<(u32, u64)> {
        let global = address.checked_sub(self.global_base)?;
        let node = global >> self.shared_bits;
        (node < u64::from(self.hosts))
            .then(|| (node as u32, global & ((1 << self.shared_bits) - 1)))
    }
}

/// The holder of a source tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadContext {
    /// The observer's mark.
    pub trace: u32,
    /// The host's source tag.
    pub host_tag: u8,
}

/// Registers, apart from the FIFOs.
#[derive(Clone, Debug)]
pub struct Requester {
    node: u32,
    tags: Tags<ReadContext>,
    /// Posted writes that have left, modulo 2^16.
    written: u16,
    /// Whether the last request was a read.
    last_was_read: bool,
}

/// The request of an input's first packet.
enum Wish<T> {
    Nothing,
    Send(T),
    /// Its address is no node's.
    Fail(u64),
}

impl Requester {
    /// After reset, in node `node`.
    pub fn new(spec: &RequesterSpec, node: u32) -> Self {
        Self {
            node,
            tags: Tags::new(spec.tags),
            written: 0,
            last_was_read: true,
        }
    }

    /// Begins a cycle, as [`Tags::latch`].
    pub fn latch(&mut self) -> bool {
        self.tags.latch()
    }

    /// Port `request`: what is offered to the crossbar in this cycle.
    pub fn request(&self, spec: &RequesterSpec, host: &HostFifos) -> Option<Packet> {
        match (self.write(spec, host), self.read(spec, host)) {
            (Wish::Send(write), Wish::Send(_)) if self.last_was_read => Some(write),
            (_, Wish::Send((read, _))) => Some(read),
            (Wish::Send(write), _) => Some(write),
            _ => None,
        }
    }

    /// Port `response`: what is offered to the HyperTransport port in this cycle.
    pub fn response(
        &self,
        spec: &RequesterSpec,
        host: &HostFifos,
        packets: &PacketFifos,
    ) -> Option<HtPacket> {
        if packets.is_valid(REQUESTER_RESPONSE) {
            let packet = packets.head(REQUESTER_RESPONSE);
            let context = self.tags.context(packet.tag)?;
            return Some(HtPacket::Response {
                data: packet.data,
                single: packet.flag,
                extra_words: packet.extra_words(),
                tag: context.host_tag,
                error: packet.kind == Kind::ErrorResponse,
                trace: context.trace,
            });
        }
        match (
            self.read(spec, host),
            host.is_valid(REQUESTER_NONPOSTED)
                .then(|| *host.head(REQUESTER_NONPOSTED)),
        ) {
            (
                Wish::Fail(_),
                Some(HtPacket::Read {
                    enables,
                    extra_words,
                    tag,
                    trace,
                    ..
                }),
            ) => Some(HtPacket::Response {
                data: HtPacket::answer(enables, u64::MAX),
                single: HtPacket::is_single(enables),
                extra_words,
                tag,
                error: true,
                trace,
            }),
            _ => None,
        }
    }

    /// One cycle; whether anything changed.
    pub fn step(
        &mut self,
        spec: &RequesterSpec,
        host: &mut HostFifos,
        packets: &mut PacketFifos,
        port: &mut HtPort,
        faults: &mut Faults,
    ) -> bool {
        // Both ports' offers come from the registers as they were; only then do these change.
        let request = self
            .request(spec, host)
            .filter(|_| packets.is_ready(CROSSBAR_REQUESTER));
        let response_ready = host.is_ready(HT_TRANSMIT + 2);
        let response = self
            .response(spec, host, packets)
            .filter(|_| response_ready);
        // A dropped request waits for the port, too, as in the RTL.
        let unknown = response_ready
            && packets.is_valid(REQUESTER_RESPONSE)
            && !self.tags.is_used(packets.head(REQUESTER_RESPONSE).tag);
        let dropped = match self.write(spec, host) {
            Wish::Fail(address) => Some(address),
            _ => None,
        };
        let failed = match self.read(spec, host) {
            Wish::Fail(address) => Some(address),
            _ => None,
        };
        if let Some(packet) = request {
            self.send(packet, host);
            packets.push(CROSSBAR_REQUESTER, packet, 0);
        }
        if let Some(address) = dropped {
            host.pop(REQUESTER_POSTED);
            self.written = self.written.wrapping_add(1);
            faults.dropped_writes += 1;
            faults.first_dropped_write.get_or_insert(address);
        }
        if unknown {
            packets.pop(REQUESTER_RESPONSE);
            faults.unknown_tags += 1;
        }
        if let Some(packet) = response {
            if packets.is_valid(REQUESTER_RESPONSE) {
                let answered = packets.pop(REQUESTER_RESPONSE);
                self.tags.free(answered.tag);
            } else {
                host.pop(REQUESTER_NONPOSTED);
                faults.failed_reads += 1;
                faults.first_failed_read = faults.first_failed_read.or(failed);
            }
            port.queue(packet, host);
        }
        request.is_some() || response.is_some() || dropped.is_some() || unknown
    }

    /// Returns whether no read is under way.
    pub fn is_quiet(&self) -> bool {
        self.tags.is_quiet()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.tags.heap_bytes()
    }

    fn send(&mut self, packet: Packet, host: &mut HostFifos) {
        self.last_was_read = packet.kind == Kind::ReadRequest;
        if !self.last_was_read {
            host.pop(REQUESTER_POSTED);
            self.written = self.written.wrapping_add(1);
        } else if let HtPacket::Read { tag, trace, .. } = host.pop(REQUESTER_NONPOSTED) {
            let own = self.tags.allocate(ReadContext {
                trace,
                host_tag: tag,
            });
            debug_assert_eq!(own, Some(packet.tag), "the tag offered is the tag taken");
        }
    }

    fn write(&self, spec: &RequesterSpec, host: &HostFifos) -> Wish<Packet> {
        if !host.is_valid(REQUESTER_POSTED) {
            return Wish::Nothing;
        }
        let &HtPacket::Write {
            address,
            data,
            enables,
            coherent,
            trace,
        } = host.head(REQUESTER_POSTED)
        else {
            return Wish::Nothing;
        };
        let Some((target, offset)) = spec.locate(address) else {
            return Wish::Fail(address);
        };
        let kind = Kind::PostedWrite;
        Wish::Send(Packet {
            data,
            offset,
            target,
            source: self.node,
            trace,
            kind,
            flag: coherent,
            tag: 0,
            enables,
        })
    }

    fn read(&self, spec: &RequesterSpec, host: &HostFifos) -> Wish<(Packet, ReadContext)> {
        if !host.is_valid(REQUESTER_NONPOSTED)
            || !overtakes_none(self.written, host.side(REQUESTER_NONPOSTED))
        {
            return Wish::Nothing;
        }
        let &HtPacket::Read {
            address,
            enables,
            extra_words,
            tag: host_tag,
            trace,
        } = host.head(REQUESTER_NONPOSTED)
        else {
            return Wish::Nothing;
        };
        let Some((target, offset)) = spec.locate(address) else {
            return Wish::Fail(address);
        };
        let Some(tag) = self.tags.lowest_free() else {
            return Wish::Nothing;
        };
        let (kind, source) = (Kind::ReadRequest, self.node);
        let packet = Packet {
            data: 0,
            offset,
            target,
            source,
            trace,
            kind,
            flag: extra_words > 0,
            tag,
            enables: if extra_words > 0 {
                extra_words
            } else {
                enables
            },
        };
        Wish::Send((packet, ReadContext { trace, host_tag }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ht_port::HtPortSpec;
    use super::super::wires::{HOST_FIFOS, PACKET_FIFOS};
    use super::*;

    const SPEC: RequesterSpec = RequesterSpec {
        global_base: 1 << 40,
        shared_bits: 20,
        hosts: 3,
        tags: 8,
    };

    struct Bench {
        requester: Requester,
        port: HtPort,
        host: HostFifos,
        packets: PacketFifos,
        faults: Faults,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                requester: Requester::new(&SPEC, 1),
                port: HtPort::new(&HtPortSpec { credits: [8; 3] }),
                host: HostFifos::new(&[8; HOST_FIFOS]),
                packets: PacketFifos::new(&[16; PACKET_FIFOS]),
                faults: Faults::default(),
            }
        }

        fn step(&mut self) -> bool {
            self.host.latch();
            self.packets.latch();
            let returns = self.requester.latch();
            let Self {
                requester,
                port,
                host,
                packets,
                faults,
            } = self;
            returns | requester.step(&SPEC, host, packets, port, faults)
        }

        fn write(&mut self, address: u64) {
            let write = HtPacket::Write {
                address,
                data: 0,
                enables: 255,
                coherent: false,
                trace: 0,
            };
            self.host.push(REQUESTER_POSTED, write, 0);
        }

        /// A read that came after `before` writes.
        fn read(&mut self, tag: u8, before: u16) {
            let read = HtPacket::Read {
                address: SPEC.global_base,
                enables: 255,
                extra_words: 0,
                tag,
                trace: 0,
            };
            self.host.push(REQUESTER_NONPOSTED, read, before);
        }
    }

    #[test]
    fn writes_and_reads_take_turns() {
        let mut bench = Bench::new();
        for tag in 0..4 {
            bench.write(SPEC.global_base + 8);
            bench.read(tag, 0);
        }
        while bench.step() {}
        let kinds: Vec<Kind> = (0..8)
            .map(|_| bench.packets.pop(CROSSBAR_REQUESTER).kind)
            .collect();
        assert_eq!(kinds, [Kind::PostedWrite, Kind::ReadRequest].repeat(4));
    }

    #[test]
    fn a_dropped_write_counts_as_one_that_has_left() {
        let mut bench = Bench::new();
        bench.write(0);
        bench.read(5, 1);
        assert!(
            bench.step() && bench.packets.next_valid() == 0,
            "the read waits for the write"
        );
        assert!(bench.step() && bench.packets.next_valid() != 0);
        assert_eq!(
            (
                bench.faults.dropped_writes,
                bench.faults.first_dropped_write
            ),
            (1, Some(0))
        );
    }

    #[test]
    fn responses_come_back_under_the_hosts_tag_whatever_their_order() {
        let mut bench = Bench::new();
        for tag in [30, 20] {
            bench.read(tag, 0);
        }
        while bench.step() {}
        let requests = [(); 2].map(|()| bench.packets.pop(CROSSBAR_REQUESTER));
        for (request, kind) in requests
            .iter()
            .rev()
            .zip([Kind::ErrorResponse, Kind::ReadResponse])
        {
            bench
                .packets
                .push(REQUESTER_RESPONSE, Packet { kind, ..*request }, 0);
        }
        // And once more: the tag is free by then.
        bench.packets.push(
            REQUESTER_RESPONSE,
            Packet {
                kind: Kind::ReadResponse,
                ..requests[0]
            },
            0,
        );
        while bench.step() {}
        let mut answer = || match bench.host.pop(HT_TRANSMIT + 2) {
            HtPacket::Response { tag, error, .. } => (tag, error),
            other => panic!("{other:?}"),
        };
        assert_eq!([answer(), answer()], [(20, true), (30, false)]);
        assert_eq!(bench.faults.unknown_tags, 1);
        assert!(bench.requester.is_quiet());
    }

    #[test]
    fn addresses_name_a_node_and_an_offset() {
        let end = SPEC.global_base + (3 << 20);
        assert_eq!(SPEC.locate(SPEC.global_base), Some((0, 0)));
        assert_eq!(SPEC.locate(end - 8), Some((2, (1 << 20) - 8)));
        for outside in [0, SPEC.global_base - 1, end, u64::MAX] {
            assert_eq!(SPEC.locate(outside), None);
        }
    }
}
