//! The completer against the cycle model's, with its table of reads.

use rand_core::Rng;
use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::completer::{Completer as CycleModel, CompleterSpec, Origin};
use sme_sim::families::sme::engine::ht_port::{HtPort, HtPortSpec};
use sme_sim::families::sme::engine::wires::{
    COMPLETER, DEPTH, HOST_FIFOS, HT_TRANSMIT, HostFifos, PACKET_FIFOS, PacketFifos,
};
use sme_sim::families::sme::engine::{HtPacket, Kind};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::{HtBeat, PacketBeat};
use crate::blocks::completer::Completer;
use crate::blocks::primitive::Displace;
use crate::blocks::tags::TagTable;
use crate::device::{Clocked, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "completer",
    what: "the completer: carries requests of the network out on its node's memory",
    faults: &[
        "one tag less",
        "the FIFO has a place less",
        "the partition begins 8 bytes later",
        "writes and responses are confused",
        "reads leave as writes",
        "write and read share a ready",
        "the responder frees nothing",
        "origins lose their highest bit",
        "every origin is its own node",
        "no origin is its own node",
        "requests come from another node",
        "a request that waits for a tag is not seen",
        "tags return unseen",
    ],
    build,
    of,
};

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let shared_base = [1 << 30, 0, 0x1_2345_6780, (1 << 62) + 24][(seed % 4) as usize];
    let node = (seed as u32).wrapping_mul(0x9e37_79b9) >> 12;
    pair(shared_base, node, fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let shared_base = site.spec.node.private_bytes;
    Pair {
        sizes: format!("shared partition from 0x{shared_base:x} on"),
        ..pair(shared_base, site.node, fault)
    }
}

/// For the node of this number, whose shared partition begins there.
fn pair(shared_base: u64, node: u32, fault: Option<&str>) -> Pair {
    let mut rtl = Completer::new(shared_base);
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("one tag less") => rtl.reads = TagTable::new(31),
        Some("the FIFO has a place less") => rtl.requests.two = Constant::new(false),
        Some("the partition begins 8 bytes later") => {
            rtl.address = Displace::new(shared_base + 8);
        }
        Some("writes and responses are confused") => {
            rtl.posted_write = Constant::new((Kind::ReadResponse as u64).into());
        }
        Some("reads leave as writes") => {
            rtl.read_request = Constant::new((Kind::PostedWrite as u64).into());
        }
        Some("write and read share a ready") => {
            inputs = |values| values[WRITE_READY] = values[READ_READY];
        }
        Some("the responder frees nothing") => inputs = |values| values[FREE] = false.into(),
        Some("origins lose their highest bit") => {
            outputs = |values| values[SOURCE] = Value::from(values[SOURCE].get(0, 19));
        }
        Some("every origin is its own node") => outputs = |values| values[STAYS] = true.into(),
        Some("no origin is its own node") => outputs = |values| values[STAYS] = false.into(),
        Some("requests come from another node") => outputs = |values| values[FROM].set(0, 1, 0),
        Some("a request that waits for a tag is not seen") => {
            outputs = |values| values[WAITS] = (values[1].bit(0) || values[3].bit(0)).into();
        }
        Some("tags return unseen") => outputs = |values| values[RETURNS] = false.into(),
        _ => (),
    }
    let rtl = Clocked::new(rtl);
    let mut depths = [DEPTH; HOST_FIFOS];
    depths[HT_TRANSMIT..HT_TRANSMIT + 3].fill(1);
    let model = Model {
        completer: CycleModel::new(),
        spec: CompleterSpec { shared_base },
        packets: PacketFifos::new(&[DEPTH; PACKET_FIFOS]),
        host: HostFifos::new(&depths),
        port: HtPort::new(&HtPortSpec { credits: [32; 3] }),
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(Miswired::new(rtl, inputs, outputs)),
        model: Box::new(model),
        traffic: Box::new(Load {
            node,
            ..Load::default()
        }),
        sizes: format!("node {node}, its shared partition begins at {shared_base:#x}"),
    }
}

/// Some of the inputs.
const WRITE_READY: usize = 2;
const READ_READY: usize = 3;
const FREE: usize = 5;
const NODE: usize = 6;
/// Some of the outputs.
const SOURCE: usize = 6;
const STAYS: usize = 8;
const WAITS: usize = 9;
const FROM: usize = 10;
const RETURNS: usize = 11;

/// Ports: request_valid, request_data, write_ready, read_ready, origin_lookup, origin_free, node;
/// request_ready, write_valid, write_data, read_valid, read_data, origin_used, origin_source,
/// origin_tag, origin_stays, request_waits, request_source, tag_returns.
struct Model {
    completer: CycleModel,
    spec: CompleterSpec,
    packets: PacketFifos,
    /// The transmit FIFOs have one place, so that they are ready or not as the bench wants.
    host: HostFifos,
    port: HtPort,
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let lookup = inputs[4].low() as u8;
        for (fifo, ready) in [(HT_TRANSMIT, WRITE_READY), (HT_TRANSMIT + 1, READ_READY)] {
            if !inputs[ready].bit(0) {
                self.host.push(fifo, HtBeat::default().packet(0), 0);
            }
        }
        self.packets.latch();
        self.host.latch();
        let returns = self.completer.reads.latch();

        let ready = self.packets.is_ready(COMPLETER);
        let offer = self.completer.offers(&self.spec, &self.packets);
        let origin = self.completer.reads.context(lookup).copied();
        let offered = |write: bool| {
            offer
                .filter(|packet| matches!(packet, HtPacket::Write { .. }) == write)
                .map(|packet| HtBeat::from(packet).value())
        };
        outputs.clear();
        outputs.push(ready.into());
        for write in [true, false] {
            outputs.push(offered(write).is_some().into());
            outputs.push(offered(write).unwrap_or_default());
        }
        outputs.push(origin.is_some().into());
        outputs.push(origin.map_or(0, |origin| origin.source.into()).into());
        outputs.push(origin.map_or(0, |origin| origin.tag.into()).into());
        let stays = |origin: Origin| u64::from(origin.source) == inputs[NODE].low();
        outputs.push(origin.is_some_and(stays).into());
        let first = self.packets.is_valid(COMPLETER);
        let first = first.then(|| self.packets.head(COMPLETER));
        outputs.push(first.is_some().into());
        outputs.push(first.map_or(0, |request| request.source.into()).into());
        outputs.push(returns.into());

        self.completer.step(
            &self.spec,
            &mut self.packets,
            &mut self.host,
            &mut self.port,
        );
        if inputs[FREE].bit(0) && origin.is_some() {
            self.completer.reads.free(lookup);
        }
        if inputs[0].bit(0) && ready {
            let packet = PacketBeat::of(inputs[1]).packet(0);
            self.packets.push(COMPLETER, packet, 0);
        }
        for fifo in [HT_TRANSMIT, HT_TRANSMIT + 1] {
            if self.host.next_valid() >> fifo & 1 == 1 {
                self.host.pop(fifo);
            }
        }
    }
}

/// Requests, some of them no requests at all; readers that are ready now and then; tags that are
/// freed in bursts, twice, and without being in use.
#[derive(Default)]
struct Load {
    node: u32,
    source: Source,
    requests: u32,
    writes: u32,
    ready: [u32; 2],
    frees: u32,
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        self.source
            .ready(outputs.first().is_some_and(|ready| ready.bit(0)));
        if chance(random, 2) {
            self.requests = below(random, 101);
            self.writes = below(random, 101);
            self.ready = [below(random, 101), below(random, 101)];
            // Often none, so that the table fills up.
            self.frees = below(random, 101).saturating_sub(40);
        }
        if !self.source.is_offering() && chance(random, self.requests) {
            self.source.offer(request(random, self.node, self.writes));
        }
        self.source.drive(Value::default(), inputs);
        for percent in self.ready {
            inputs.push(chance(random, percent).into());
        }
        inputs.push(u64::from(below(random, 32)).into());
        inputs.push(chance(random, self.frees).into());
        inputs.push(u64::from(self.node).into());
    }

    fn transactions(&self) -> u64 {
        self.source.taken
    }
}

/// A request, often of the own `node` or of one that differs in one bit; one of twenty packets is
/// none.
fn request(random: &mut Random, node: u32, writes: u32) -> Value {
    let kind = if chance(random, 5) {
        Kind::ReadResponse as u64 + u64::from(below(random, 2))
    } else if chance(random, writes) {
        Kind::PostedWrite as u64
    } else {
        Kind::ReadRequest as u64
    };
    let mut packet = Value::default();
    for (name, width, offset) in PacketBeat::FIELDS {
        let bits = match *name {
            "kind" => kind,
            "data" | "offset" => any_bits(random),
            "source" => match below(random, 4) {
                0 => node.into(),
                1 => (node ^ 1 << below(random, 20)).into(),
                _ => random.next_u64(),
            },
            _ => random.next_u64(),
        };
        packet.set(*offset, *width, bits);
    }
    PacketBeat::of(packet).carried().value()
}
