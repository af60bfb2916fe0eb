//! A protocol checker that can sit around any engine, of any implementation.
//!
//! [`Checked`] passes everything through and keeps its own account of what must come out: each
//! packet once, unaltered or translated as the address map and the source tags demand, in order
//! within its flow; and never a packet without a credit nor a credit without a packet. It shares no
//! code with the blocks, and costs memory and time: it is for tests and debug builds.

mod flows;
mod violation;

pub use violation::Violation;

use super::credit_checker::{CreditChecker, Wire};
use super::ht::HtPacket;
use super::model::{EngineModel, Input, Output, Shortcuts, Transit};
use super::packet::{Kind, Packet};
use crate::families::sme::spec::ClusterSpec;
use crate::parts::fabric::CHANNELS;
use flows::{Expected, FlowKey, Flows, Reader};
use rustc_hash::FxHashMap;

/// An engine under observation.
#[derive(Debug)]
pub struct Checked<E> {
    engine: E,
    map: Map,
    link_credits: [u32; CHANNELS],
    /// Of the host, and of those links that have been used.
    wires: FxHashMap<Wire, CreditChecker>,
    /// Credits for the engine that it has not sampled: the edges at which it does, wires, channels.
    coming: Vec<(u64, Wire, u8)>,
    flows: Flows,
    /// Responses to the host, in any order.
    answers: Vec<Output>,
    /// The holders of the engine's tags: of reads in the network, and of reads of the host's
    /// memory.
    network_reads: FxHashMap<u8, Reader>,
    memory_reads: FxHashMap<u8, Reader>,
    violation: Option<Violation>,
}

/// The address map, as the machine file gives it.
#[derive(Clone, Copy, Debug)]
struct Map {
    node: u32,
    hosts: u32,
    global_base: u64,
    shared_bytes: u64,
    private_bytes: u64,
}

impl<E: EngineModel> Checked<E> {
    /// Observes `engine`, which is that of node (or switch) `node` among `hosts` nodes.
    pub fn new(engine: E, spec: &ClusterSpec, node: u32, hosts: u32) -> Self {
        let host = [
            spec.host.posted_credits,
            spec.host.nonposted_credits,
            spec.host.response_credits,
        ];
        let mut wires = FxHashMap::default();
        for wire in [Wire::FromHost, Wire::ToHost] {
            wires.insert(wire, CreditChecker::new(wire, &host));
        }
        let map = Map {
            node,
            hosts,
            global_base: spec.node.global_base,
            shared_bytes: spec.node.shared_bytes,
            private_bytes: spec.node.private_bytes,
        };
        Self {
            engine,
            map,
            link_credits: [spec.link.channel_credits; CHANNELS],
            wires,
            coming: Vec::new(),
            flows: Flows::default(),
            answers: Vec::new(),
            network_reads: FxHashMap::default(),
            memory_reads: FxHashMap::default(),
            violation: None,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The first violation so far.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Nothing is under way any more: everything must be out, and every credit back.
    ///
    /// # Errors
    /// The first violation.
    pub fn finish(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        let answers = self.answers.iter().copied();
        let missing: Vec<Output> = self.flows.expected().chain(answers).collect();
        if let Some(&first) = missing.first() {
            return Err(Violation::Lost {
                missing: first,
                others: missing.len() - 1,
            });
        }
        let mut wires = self.wires.clone();
        for &(_, wire, channel) in &self.coming {
            let checker = wires.entry(wire);
            let checker = checker.or_insert_with(|| CreditChecker::new(wire, &self.link_credits));
            checker.credit(channel)?;
        }
        wires.values().try_for_each(CreditChecker::finish)
    }

    fn note(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    fn packet_on(&mut self, wire: Wire, channel: u8) {
        let result = self.wire(wire).packet(channel);
        self.note(result);
    }

    fn credit_on(&mut self, wire: Wire, channel: u8) {
        let result = self.wire(wire).credit(channel);
        self.note(result);
    }

    /// Makes the credits that were sampled before edge `cycle` available to its outputs.
    fn samples_credits(&mut self, cycle: u64) {
        let sampled = self.coming.extract_if(.., |&mut (edge, ..)| edge < cycle);
        for (_, wire, channel) in sampled.collect::<Vec<_>>() {
            self.credit_on(wire, channel);
        }
    }

    fn wire(&mut self, wire: Wire) -> &mut CreditChecker {
        let of_link = || CreditChecker::new(wire, &self.link_credits);
        self.wires.entry(wire).or_insert_with(of_link)
    }

    /// A host's access: what must come out for it.
    fn expect_access(&mut self, packet: HtPacket) {
        let node = self.map.node;
        match packet {
            HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace,
            } => {
                let Some((target, offset)) = self.map.locate(address) else {
                    return;
                };
                let kind = Kind::PostedWrite;
                let request = Packet {
                    data,
                    offset,
                    target,
                    source: node,
                    trace,
                    kind,
                    flag: coherent,
                    tag: 0,
                    enables,
                };
                self.expect_request(request, None);
            }
            HtPacket::Read {
                address,
                enables,
                extra_words,
                tag,
                trace,
            } => {
                let Some((target, offset)) = self.map.locate(address) else {
                    self.answers.push(Output::Host(HtPacket::Response {
                        data: HtPacket::answer(enables, u64::MAX),
                        single: HtPacket::is_single(enables),
                        extra_words,
                        tag,
                        error: true,
                        trace,
                    }));
                    return;
                };
                let kind = Kind::ReadRequest;
                let request = Packet {
                    data: 0,
                    offset,
                    target,
                    source: node,
                    trace,
                    kind,
                    flag: extra_words != 0,
                    tag: 0,
                    enables: match extra_words {
                        0 => enables,
                        _ => extra_words,
                    },
                };
                self.expect_request(request, Some(Reader::Host { tag, trace }));
            }
            HtPacket::Response {
                data,
                single,
                extra_words,
                tag,
                error,
                ..
            } => match self.memory_reads.remove(&tag) {
                Some(Reader::Host { tag, trace }) => {
                    self.answers.push(Output::Host(HtPacket::Response {
                        data,
                        single,
                        extra_words,
                        tag,
                        error,
                        trace,
                    }));
                }
                Some(Reader::Node { source, tag, trace }) => {
                    let kind = if error {
                        Kind::ErrorResponse
                    } else {
                        Kind::ReadResponse
                    };
                    self.expect_through(Packet {
                        data,
                        offset: 0,
                        target: source,
                        source: node,
                        trace,
                        kind,
                        flag: single,
                        tag,
                        enables: extra_words,
                    });
                }
                None => {}
            },
        }
    }

    /// A request of this node's host, to itself or to the network.
    fn expect_request(&mut self, request: Packet, reader: Option<Reader>) {
        let key = FlowKey::of(&request);
        if request.target == self.map.node {
            let output = self.access(request);
            self.flows.expect_at_host(key, Expected { output, reader });
        } else {
            let output = in_network(Packet { tag: 0, ..request });
            self.flows.expect(key, Expected { output, reader });
        }
    }

    /// A packet that arrived over a link.
    fn expect_arrived(&mut self, packet: Packet) {
        if packet.target != self.map.node {
            return self.expect_through(packet);
        }
        match packet.kind {
            Kind::PostedWrite | Kind::ReadRequest => {
                let Packet {
                    source, tag, trace, ..
                } = packet;
                let reader = (packet.kind == Kind::ReadRequest).then_some(Reader::Node {
                    source,
                    tag,
                    trace,
                });
                let output = self.access(packet);
                let key = FlowKey::of(&packet);
                self.flows.expect_at_host(key, Expected { output, reader });
            }
            Kind::ReadResponse | Kind::ErrorResponse => {
                if let Some(Reader::Host { tag, trace }) = self.network_reads.remove(&packet.tag) {
                    self.answers.push(Output::Host(HtPacket::Response {
                        data: packet.data,
                        single: packet.flag,
                        extra_words: packet.enables,
                        tag,
                        error: packet.kind == Kind::ErrorResponse,
                        trace,
                    }));
                }
            }
        }
    }

    fn expect_through(&mut self, packet: Packet) {
        let output = in_network(packet);
        let expected = Expected {
            output,
            reader: None,
        };
        self.flows.expect(FlowKey::of(&packet), expected);
    }

    /// A request to this node, as its host must see it; tag 0.
    fn access(&self, request: Packet) -> Output {
        let Packet {
            data,
            enables,
            flag: coherent,
            trace,
            ..
        } = request;
        let address = self.map.private_bytes + request.offset;
        Output::Host(match request.kind {
            Kind::PostedWrite => HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace,
            },
            _ => HtPacket::Read {
                address,
                enables: if coherent { 0xff } else { enables },
                // Of a read, the flag says that it is long.
                extra_words: if coherent { enables } else { 0 },
                tag: 0,
                trace,
            },
        })
    }

    /// Something came out.
    fn check(&mut self, cycle: u64, output: Output) {
        match output {
            Output::HostCredit(channel) => self.credit_on(Wire::FromHost, channel as u8),
            Output::LinkCredit { port, channel } => self.credit_on(Wire::FromLink(port), channel),
            Output::Link {
                port,
                channel,
                packet,
            } => {
                self.packet_on(Wire::ToLink(port), channel);
                let own_read = packet.kind == Kind::ReadRequest && packet.source == self.map.node;
                let bare = if own_read {
                    Packet { tag: 0, ..packet }
                } else {
                    packet
                };
                match self.flows.take(in_network(bare), FlowKey::of(&packet)) {
                    Ok(Some(reader)) => {
                        self.network_reads.insert(packet.tag, reader);
                    }
                    Ok(None) => {}
                    Err(expected) => self.unexpected(cycle, output, expected),
                }
            }
            Output::Host(packet) => {
                self.packet_on(Wire::ToHost, packet.channel() as u8);
                if let HtPacket::Response { .. } = packet {
                    match self.answers.iter().position(|answer| *answer == output) {
                        Some(index) => drop(self.answers.swap_remove(index)),
                        None => self.unexpected(cycle, output, self.answers.first().copied()),
                    }
                    return;
                }
                let bare = match packet {
                    HtPacket::Read {
                        address,
                        enables,
                        extra_words,
                        trace,
                        ..
                    } => HtPacket::Read {
                        address,
                        enables,
                        extra_words,
                        tag: 0,
                        trace,
                    },
                    other => other,
                };
                match (self.flows.take_at_host(Output::Host(bare)), packet) {
                    (Ok(Some(reader)), HtPacket::Read { tag, .. }) => {
                        self.memory_reads.insert(tag, reader);
                    }
                    (Ok(_), _) => {}
                    (Err(expected), _) => self.unexpected(cycle, output, expected),
                }
            }
        }
    }

    fn unexpected(&mut self, cycle: u64, found: Output, expected: Option<Output>) {
        self.note(Err(Violation::Unexpected {
            cycle,
            found,
            expected,
        }));
    }
}

impl<E: EngineModel> EngineModel for Checked<E> {
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        match input {
            Input::Host(packet) => {
                self.packet_on(Wire::FromHost, packet.channel() as u8);
                self.expect_access(packet);
            }
            Input::HostCredit(channel) => {
                self.coming.push((cycle, Wire::ToHost, channel as u8));
            }
            Input::Link {
                port,
                channel,
                packet,
            } => {
                self.packet_on(Wire::FromLink(port), channel);
                self.expect_arrived(packet);
            }
            Input::LinkCredit { port, channel } => {
                self.coming.push((cycle, Wire::ToLink(port), channel));
            }
        }
        self.engine.input(cycle, input);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.samples_credits(cycle);
        let before = out.len();
        self.engine.step(cycle, out);
        for output in &out[before..] {
            self.check(cycle, *output);
        }
    }
}

impl<E: Shortcuts> Shortcuts for Checked<E> {
    fn foresee(&mut self, out: &mut Vec<(u64, Output)>) {
        let before = out.len();
        self.engine.foresee(out);
        for &(cycle, output) in &out[before..] {
            self.check(cycle, output);
        }
    }

    fn transit(&mut self, cycle: u64, port: u16, channel: u8, packet: &Packet) -> Option<Transit> {
        let transit = self.engine.transit(cycle, port, channel, packet)?;
        self.samples_credits(transit.freed);
        self.packet_on(Wire::FromLink(port), channel);
        self.expect_arrived(*packet);
        self.check(transit.freed, Output::LinkCredit { port, channel });
        let Transit {
            port,
            channel,
            delivered,
            ..
        } = transit;
        let packet = *packet;
        self.check(
            delivered,
            Output::Link {
                port,
                channel,
                packet,
            },
        );
        Some(transit)
    }

    fn late_credit(&mut self, port: u16, channel: u8) -> bool {
        let taken = self.engine.late_credit(port, channel);
        if taken {
            self.credit_on(Wire::ToLink(port), channel);
        }
        taken
    }

    fn prefetch(&self, coming: &Input) {
        self.engine.prefetch(coming);
    }

    fn awaits_link_credits(&self) -> bool {
        self.engine.awaits_link_credits()
    }
}

impl Map {
    fn locate(&self, address: u64) -> Option<(u32, u64)> {
        let beyond = address.checked_sub(self.global_base)?;
        let node = u32::try_from(beyond / self.shared_bytes)
            .ok()
            .filter(|&node| node < self.hosts)?;
        Some((node, beyond % self.shared_bytes))
    }
}

/// A packet on some link; which one and which channel is routing's affair.
fn in_network(packet: Packet) -> Output {
    Output::Link {
        port: 0,
        channel: 0,
        packet,
    }
}

#[cfg(test)]
mod tests;
