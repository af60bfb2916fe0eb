//! The requester against the cycle model's.

use rand_core::Rng;
use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::ht_port::{HtPort, HtPortSpec};
use sme_sim::families::sme::engine::requester::{Requester as CycleModel, RequesterSpec};
use sme_sim::families::sme::engine::wires::{
    CROSSBAR_REQUESTER, DEPTH, HOST_FIFOS, HT_TRANSMIT, HostFifos, PACKET_FIFOS, PacketFifos,
    REQUESTER_NONPOSTED, REQUESTER_POSTED, REQUESTER_RESPONSE,
};
use sme_sim::families::sme::engine::{Faults, HtPacket, Kind};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::{HtBeat, PacketBeat};
use crate::blocks::address_decoder::AddressDecoder;
use crate::blocks::primitive::Register;
use crate::blocks::read_order::ReadOrder;
use crate::blocks::requester::Requester;
use crate::blocks::tags::TagTable;
use crate::device::{Clocked, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "requester",
    what: "the requester: turns the host's loads and stores into network packets",
    faults: &[
        "the first turn is a read's",
        "another request is given than is taken",
        "a read is sent that may not go",
        "a tag more",
        "a tag less",
        "a read passes a write",
        "a read waits for a write too many",
        "writes go to a node that is not there",
        "addresses of reads begin a partition late",
        "reads go to a node that is not there",
        "failed reads are answered without an error",
        "FIFO of reads has a place less",
        "ignores that the crossbar is not ready",
        "ignores that the HyperTransport port is not ready",
        "every request is for its own node",
        "no request is for its own node",
        "tags return unseen",
    ],
    build,
    of,
};

/// Machines that take turns: the first global address, log2 of a partition's bytes, nodes, tags.
const MACHINES: [(u64, u32, u32, u32); 5] = [
    (1 << 40, 20, 3, 8),
    (1 << 40, 30, 64, 32),
    (1 << 30, 12, 1, 1),
    (1 << 50, 40, 1 << 20, 5),
    (3 << 32, 32, 1000, 17),
];

/// Writes that had left before the first cycle of every other run: the counter soon overflows.
const WRITTEN: u16 = u16::MAX - 100;

/// Inputs: the HyperTransport port's.
const POSTED: usize = 0;
const NONPOSTED: usize = 2;
const BEFORE: usize = 4;
/// Inputs: the crossbar's, and the readers'.
const RESPONSE: usize = 5;
const REQUEST_READY: usize = 7;
const ANSWER_READY: usize = 8;
/// Output `request_valid`; behind it data, and whether it stays.
const REQUEST: usize = 3;
/// Output `answer_valid`.
const ANSWER: usize = 6;
/// Output `tag_returns`.
const RETURNS: usize = 13;

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let (global_base, shared_bits, hosts, tags) = MACHINES[(seed % MACHINES.len() as u64) as usize];
    let spec = RequesterSpec {
        global_base,
        shared_bits,
        hosts,
        tags,
    };
    let node = (seed as u32).wrapping_mul(0x9e37_79b9) % hosts;
    let written = if seed % 2 == 1 { WRITTEN } else { 0 };
    pair(spec, node, written, fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let (global_base, shared_bits) = (site.spec.node.global_base, site.shared_bits());
    let (hosts, tags) = (site.hosts, site.spec.engine.tags);
    let spec = RequesterSpec {
        global_base,
        shared_bits,
        hosts,
        tags,
    };
    Pair {
        sizes: format!(
            "{hosts} partitions of 2^{shared_bits} bytes from 0x{global_base:x} on, {tags} tags"
        ),
        ..pair(spec, site.node, 0, fault)
    }
}

/// For the node of this number, after `written` writes.
fn pair(spec: RequesterSpec, node: u32, written: u16, fault: Option<&str>) -> Pair {
    let RequesterSpec {
        global_base,
        shared_bits,
        hosts,
        tags,
    } = spec;
    let order = |more: u16| ReadOrder::after(written.wrapping_add(more));
    let mut rtl = Requester::new(global_base, shared_bits, hosts, tags);
    rtl.order = order(0);
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("the first turn is a read's") => {
            rtl.last_was_read = Register::new(false);
            rtl.last_was_write = Register::new(true);
        }
        Some("another request is given than is taken") => {
            rtl.last_was_write = Register::new(true);
        }
        Some("a read is sent that may not go") => rtl.order.not_allowed = Register::default(),
        Some("a tag more") => rtl.tags = TagTable::new(tags + 1),
        Some("a tag less") => rtl.tags = TagTable::new(tags - 1),
        Some("a read passes a write") => rtl.order = order(1),
        Some("a read waits for a write too many") => rtl.order = order(u16::MAX),
        Some("writes go to a node that is not there") => {
            let hosts = (hosts + 1).min(1 << 20);
            rtl.decoders[0] = AddressDecoder::new(global_base, shared_bits, hosts);
        }
        Some("addresses of reads begin a partition late") => {
            let base = global_base + (1 << shared_bits);
            rtl.decoders[1] = AddressDecoder::new(base, shared_bits, hosts);
        }
        Some("reads go to a node that is not there") => {
            let hosts = (hosts + 1).min(1 << 20);
            rtl.decoders[1] = AddressDecoder::new(global_base, shared_bits, hosts);
        }
        Some("failed reads are answered without an error") => {
            let mut refusal = rtl.refusal.val();
            refusal.set_value_kind(2.into());
            rtl.refusal = Constant::new(refusal);
        }
        Some("FIFO of reads has a place less") => rtl.requests[1].two = Constant::new(false),
        Some("ignores that the crossbar is not ready") => {
            inputs = |values| values[REQUEST_READY] = true.into();
        }
        Some("ignores that the HyperTransport port is not ready") => {
            inputs = |values| values[ANSWER_READY] = true.into();
        }
        Some("every request is for its own node") => {
            outputs = |values| values[REQUEST + 2] = true.into();
        }
        Some("no request is for its own node") => {
            outputs = |values| values[REQUEST + 2] = false.into();
        }
        Some("tags return unseen") => outputs = |values| values[RETURNS] = false.into(),
        _ => (),
    }
    let rtl = Miswired::new(Clocked::new(rtl), inputs, outputs);
    let mut model = Model::new(spec, node);
    model.let_writes_leave(written);
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(rtl),
        model: Box::new(model),
        traffic: Box::new(Load {
            spec,
            node,
            offered: written,
            before: written,
            sources: Default::default(),
            // A write and a read want the first turn.
            offers: [100, 100, 50],
            readers: [50; 2],
            was_ready: false,
            under_way: Vec::new(),
            cycle: 0,
            moved: 0,
        }),
        sizes: format!(
            "node {node} of {hosts}, 2^{shared_bits} bytes each from {global_base:#x} on, {tags} tags; \
             {written} writes went before"
        ),
    }
}

/// The cycle model's requester. Its readers have a place each, taken or not, as their *ready*
/// input says.
struct Model {
    spec: RequesterSpec,
    node: u32,
    requester: CycleModel,
    port: HtPort,
    host: HostFifos,
    packets: PacketFifos,
}

impl Model {
    fn new(spec: RequesterSpec, node: u32) -> Self {
        let mut host = [DEPTH; HOST_FIFOS];
        host[HT_TRANSMIT + 2] = 1;
        let mut packets = [DEPTH; PACKET_FIFOS];
        packets[CROSSBAR_REQUESTER] = 1;
        Self {
            spec,
            node,
            requester: CycleModel::new(&spec, node),
            port: HtPort::new(&HtPortSpec { credits: [1; 3] }),
            host: HostFifos::new(&host),
            packets: PacketFifos::new(&packets),
        }
    }

    /// Lets `writes` to no node pass, which changes nothing but the counter.
    fn let_writes_leave(&mut self, writes: u16) {
        for _ in 0..writes {
            let nowhere = HtPacket::Write {
                address: self.spec.global_base - 1,
                data: 0,
                enables: 0,
                coherent: false,
                trace: 0,
            };
            self.host.push(REQUESTER_POSTED, nowhere, 0);
            self.host.latch();
            self.step();
        }
    }

    fn step(&mut self) -> Faults {
        let mut faults = Faults::default();
        self.requester.step(
            &self.spec,
            &mut self.host,
            &mut self.packets,
            &mut self.port,
            &mut faults,
        );
        faults
    }
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        if !inputs[REQUEST_READY].bit(0) {
            let taken = PacketBeat::default().packet(0);
            self.packets.push(CROSSBAR_REQUESTER, taken, 0);
        }
        if !inputs[ANSWER_READY].bit(0) {
            let taken = HtBeat::default().packet(0);
            self.host.push(HT_TRANSMIT + 2, taken, 0);
        }
        self.host.latch();
        self.packets.latch();
        let returns = self.requester.latch();

        let ready = [
            self.host.is_ready(REQUESTER_POSTED),
            self.host.is_ready(REQUESTER_NONPOSTED),
            self.packets.is_ready(REQUESTER_RESPONSE),
        ];
        let request = self.requester.request(&self.spec, &self.host);
        let answer = self
            .requester
            .response(&self.spec, &self.host, &self.packets);
        let faults = self.step();
        outputs.clear();
        outputs.extend(ready.map(Value::from));
        outputs.push(request.is_some().into());
        outputs.push(request.map(PacketBeat::from).unwrap_or_default().value());
        outputs.push(
            request
                .is_some_and(|packet| packet.target == self.node)
                .into(),
        );
        outputs.push(answer.is_some().into());
        outputs.push(answer.map(HtBeat::from).unwrap_or_default().value());
        for address in [faults.first_dropped_write, faults.first_failed_read] {
            outputs.push(address.is_some().into());
            outputs.push(address.unwrap_or_default().into());
        }
        outputs.push(faults.unknown_tags.into());
        outputs.push(returns.into());

        if self.packets.next_valid() >> CROSSBAR_REQUESTER & 1 == 1 {
            self.packets.pop(CROSSBAR_REQUESTER);
        }
        if self.host.next_valid() >> (HT_TRANSMIT + 2) & 1 == 1 {
            self.host.pop(HT_TRANSMIT + 2);
        }
        for (input, fifo, ready) in [
            (POSTED, REQUESTER_POSTED, ready[0]),
            (NONPOSTED, REQUESTER_NONPOSTED, ready[1]),
        ] {
            if inputs[input].bit(0) && ready {
                let packet = HtBeat::of(inputs[input + 1]).packet(0);
                self.host.push(fifo, packet, inputs[BEFORE].low() as u16);
            }
        }
        if inputs[RESPONSE].bit(0) && ready[2] {
            let packet = PacketBeat::of(inputs[RESPONSE + 1]).packet(0);
            self.packets.push(REQUESTER_RESPONSE, packet, 0);
        }
    }
}

/// Writes and reads, some of them to no node; reads come behind some of the writes that were
/// offered before, or wait for one to come. Responses come in any order, some to tags that no read
/// holds.
struct Load {
    spec: RequesterSpec,
    node: u32,
    /// Writes that were offered, modulo 2^16.
    offered: u16,
    /// Of the read that is offered.
    before: u16,
    /// Writes, reads, responses.
    sources: [Source; 3],
    /// In percent, of each.
    offers: [u32; 3],
    /// In percent: crossbar and HyperTransport port are ready.
    readers: [u32; 2],
    /// The crossbar was ready in the last cycle.
    was_ready: bool,
    /// Tags of reads that were sent.
    under_way: Vec<u64>,
    cycle: u32,
    moved: u64,
}

/// Of every thousand cycles these are the last, in which reads come as they can and no response
/// does: all tags of a machine are in use before half of them are over.
const WITHHELD_CYCLES: u32 = 300;

impl Load {
    fn address(&self, random: &mut Random) -> u64 {
        let (base, bits) = (self.spec.global_base, self.spec.shared_bits);
        let partition = |node: u32| base + (u64::from(node) << bits);
        let at_edge = u64::from(below(random, 17)).wrapping_sub(8);
        match below(random, 16) {
            0 => at_edge,
            1 => base.wrapping_add(at_edge),
            2 => partition(self.spec.hosts).wrapping_add(at_edge),
            3 => any_bits(random),
            4 | 5 => partition(self.node) + u64::from(below(random, 8)),
            6..9 => partition(below(random, self.spec.hosts)).wrapping_add(at_edge),
            _ => {
                let offset = random.next_u64() & ((1 << bits) - 1);
                partition(below(random, self.spec.hosts)) + offset
            }
        }
    }

    fn write(&mut self, random: &mut Random) -> Value {
        self.offered = self.offered.wrapping_add(1);
        let write = HtPacket::Write {
            address: self.address(random),
            data: any_bits(random),
            enables: random.next_u32() as u8,
            coherent: chance(random, 50),
            trace: 0,
        };
        HtBeat::from(write).value()
    }

    fn read(&mut self, random: &mut Random) -> Value {
        let offered = self.offered;
        self.before = match below(random, 8) {
            0 => offered.wrapping_add(1),
            1..3 => offered.wrapping_sub(below(random, 100) as u16),
            _ => offered,
        };
        let read = HtPacket::Read {
            extra_words: 0,
            address: self.address(random),
            enables: random.next_u32() as u8,
            tag: below(random, 32) as u8,
            trace: 0,
        };
        HtBeat::from(read).value()
    }

    /// Nothing, if no read is under way.
    fn response(&mut self, random: &mut Random) -> Option<Value> {
        let tag = if chance(random, 10) {
            below(random, 32).into()
        } else if self.under_way.is_empty() {
            return None;
        } else {
            let read = below(random, self.under_way.len() as u32);
            self.under_way.swap_remove(read as usize)
        };
        let mut packet = PacketBeat::of(Value::from(any_bits(random)));
        let kind = Kind::ReadResponse as u64 + u64::from(chance(random, 20));
        packet.set_value_kind(kind.into());
        packet.set_value_tag(tag.into());
        packet.set_value_target(u64::from(self.node).into());
        packet.set_value_source(u64::from(below(random, self.spec.hosts)).into());
        Some(packet.value())
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if !outputs.is_empty() {
            for (source, ready) in self.sources.iter_mut().zip(outputs) {
                source.ready(ready.bit(0));
            }
            let request = PacketBeat::of(outputs[REQUEST + 1]);
            if outputs[REQUEST].bit(0) && self.was_ready {
                self.moved += 1;
                if request.get_value_kind() == Kind::ReadRequest as u64 {
                    self.under_way.push(request.get_value_tag().into());
                }
            }
            self.moved += u64::from(outputs[ANSWER].bit(0));
        }
        for load in self.offers.iter_mut().chain(&mut self.readers) {
            if chance(random, 2) {
                *load = below(random, 121).saturating_sub(10).min(100);
            }
        }

        let withheld = self.cycle % 1000 >= 1000 - WITHHELD_CYCLES;
        let (offers, readers) = if withheld {
            ([20, 100, 0], [100, self.readers[1]])
        } else {
            (self.offers, self.readers)
        };
        self.cycle += 1;

        // The read first: of what is offered in the same cycle, it waits for no write.
        for index in [1, 0, 2] {
            if !self.sources[index].is_offering() && chance(random, offers[index]) {
                let packet = match index {
                    0 => Some(self.write(random)),
                    1 => Some(self.read(random)),
                    _ => self.response(random),
                };
                if let Some(packet) = packet {
                    self.sources[index].offer(packet);
                }
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            source.drive(Value::from(random.next_u64()), inputs);
            if index == 1 {
                inputs.push(u64::from(self.before).into());
            }
        }
        self.was_ready = chance(random, readers[0]);
        inputs.push(self.was_ready.into());
        inputs.push(chance(random, readers[1]).into());
        inputs.push(u64::from(self.node).into());
    }

    fn transactions(&self) -> u64 {
        self.moved
    }
}
