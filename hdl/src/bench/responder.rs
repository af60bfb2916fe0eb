//! The responder against the cycle model's, beside a completer's table of reads.

use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::completer::Origin;
use sme_sim::families::sme::engine::responder::Responder as CycleModel;
use sme_sim::families::sme::engine::tags::{MAX_TAGS, Tags};
use sme_sim::families::sme::engine::wires::{
    CROSSBAR_RESPONDER, DEPTH, PACKET_FIFOS, PacketFifos, RESPONDER,
};
use sme_sim::families::sme::engine::{HtPacket, Kind};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::{HtBeat, PacketBeat};
use crate::blocks::responder::Responder;
use crate::device::{Clocked, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "responder",
    what: "the responder: sends what the node's memory answers back to the node that asked",
    faults: &[
        "the FIFO has a place less",
        "what stays has a place less",
        "errors are unknown",
        "read requests and read responses are confused",
        "source and target are swapped",
        "ignores that the crossbar is not ready",
        "every tag is known",
        "the tag is not freed",
        "sends the memory's tag",
        "every response is for its own node",
        "no response is for its own node",
    ],
    build,
    of,
};

fn build(seed: u64, fault: Option<&str>) -> Pair {
    pair((seed as u32).wrapping_mul(0x9e37_79b9) >> 12, fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    Pair {
        sizes: String::new(),
        ..pair(site.node, fault)
    }
}

/// For the node of this number.
fn pair(node: u32, fault: Option<&str>) -> Pair {
    let mut rtl = Responder::new();
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("the FIFO has a place less") => rtl.responses.two = Constant::new(false),
        Some("what stays has a place less") => rtl.stays.two = Constant::new(false),
        Some("errors are unknown") => {
            rtl.error_response = Constant::new((Kind::ReadResponse as u64).into());
        }
        Some("read requests and read responses are confused") => {
            rtl.read_response = Constant::new((Kind::ReadRequest as u64).into());
        }
        Some("source and target are swapped") => inputs = |values| values.swap(NODE, SOURCE),
        Some("ignores that the crossbar is not ready") => {
            inputs = |values| values[READY] = true.into();
        }
        Some("every tag is known") => inputs = |values| values[USED] = true.into(),
        Some("the tag is not freed") => outputs = |values| values[FREE] = false.into(),
        Some("sends the memory's tag") => {
            inputs = |values| values[TAG] = HtBeat::of(values[MEMORY]).get_value_tag().value();
        }
        Some("every response is for its own node") => {
            outputs = |values| values[STAYS] = true.into();
        }
        Some("no response is for its own node") => outputs = |values| values[STAYS] = false.into(),
        _ => (),
    }
    let rtl = Clocked::new(rtl);
    let mut depths = [DEPTH; PACKET_FIFOS];
    depths[CROSSBAR_RESPONDER] = 1;
    let model = Model {
        node,
        responder: CycleModel::new(node),
        packets: PacketFifos::new(&depths),
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(Miswired::new(rtl, inputs, outputs)),
        model: Box::new(model),
        traffic: Box::new(Load::new(node)),
        sizes: format!("node {node}"),
    }
}

/// Inputs: the node's number, whether the memory answers and what, whether the crossbar is ready,
/// and what the table says of the answer's tag.
const NODE: usize = 0;
const VALID: usize = 1;
const MEMORY: usize = 2;
const READY: usize = 3;
const USED: usize = 4;
const SOURCE: usize = 5;
const TAG: usize = 6;
/// Some of the outputs, in the order memory_ready, response_valid, response_data, response_stays,
/// origin_lookup, origin_free, unknown_tag.
const STAYS: usize = 3;
const FREE: usize = 5;

struct Model {
    node: u32,
    responder: CycleModel,
    /// The crossbar's FIFO has one place, so that it is ready or not as the bench wants.
    packets: PacketFifos,
}

impl Model {
    /// A table that says of `tag` what the inputs say, and nothing of the others.
    fn reads(tag: u8, inputs: &[Value]) -> Tags<Origin> {
        let origin = Origin {
            source: inputs[SOURCE].low() as u32,
            trace: 0,
            tag: inputs[TAG].low() as u8,
        };
        let mut reads = Tags::new(MAX_TAGS);
        if inputs[USED].bit(0) {
            while reads.allocate(origin) != Some(tag) {}
            for other in 0..tag {
                reads.free(other);
                reads.latch();
            }
        }
        reads
    }
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        if !inputs[READY].bit(0) {
            let packet = PacketBeat::default().packet(0);
            self.packets.push(CROSSBAR_RESPONDER, packet, 0);
        }
        self.packets.latch();

        let ready = self.packets.is_ready(RESPONDER);
        let offer = self.packets.is_valid(RESPONDER);
        let offer = offer.then(|| *self.packets.head(RESPONDER));
        let beat = HtBeat::of(inputs[MEMORY]);
        let tag = u64::from(beat.get_value_tag()) as u8;
        let answer = (inputs[VALID].bit(0) && ready).then(|| beat.packet(0));
        let mut reads = Self::reads(tag, inputs);
        let response = answer.and_then(|answer| self.responder.respond(&mut reads, &answer));
        outputs.clear();
        outputs.push(ready.into());
        outputs.push(offer.is_some().into());
        outputs.push(offer.map_or(Value::default(), |packet| PacketBeat::from(packet).value()));
        outputs.push(
            offer
                .is_some_and(|packet| packet.target == self.node)
                .into(),
        );
        outputs.push(u64::from(tag).into());
        let answers = answer.is_some_and(|packet| matches!(packet, HtPacket::Response { .. }));
        outputs.push(answers.into());
        outputs.push((answer.is_some() && response.is_none()).into());

        self.responder.step(&mut self.packets);
        if let Some(response) = response {
            self.packets.push(RESPONDER, response, 0);
        }
        if self.packets.next_valid() >> CROSSBAR_RESPONDER & 1 == 1 {
            self.packets.pop(CROSSBAR_RESPONDER);
        }
    }
}

/// Reads under way in a table beside the responder, and a memory that answers them, other tags
/// now and then, some twice; an answer that is none; a table that now and then says anything. Of
/// the nodes that asked, many are the own one.
struct Load {
    node: u32,
    reads: Tags<Origin>,
    source: Source,
    /// The tag of what is offered.
    offered: u8,
    answers: u32,
    wrong: u32,
    ready: u32,
}

impl Load {
    fn new(node: u32) -> Self {
        Self {
            node,
            reads: Tags::new(MAX_TAGS),
            source: Source::default(),
            offered: 0,
            answers: 50,
            wrong: 5,
            ready: 50,
        }
    }

    /// Follows the changes of the table in the cycle before.
    fn follow(&mut self, outputs: &[Value]) {
        self.reads.latch();
        self.source.ready(outputs[0].bit(0));
        if outputs[FREE].bit(0) {
            self.reads.free(self.offered);
        }
    }

    /// Any node; the own one often, and nodes that differ from it in one bit.
    fn asker(&self, random: &mut Random) -> u32 {
        match below(random, 4) {
            0 => self.node,
            1 => self.node ^ 1 << below(random, 20),
            _ => below(random, 1 << 20),
        }
    }

    fn offer(&mut self, random: &mut Random) {
        let mut tag = below(random, MAX_TAGS) as u8;
        while chance(random, 100 - self.wrong) && !self.reads.is_used(tag) {
            tag = below(random, MAX_TAGS) as u8;
        }
        let kind = match below(random, 20) {
            0 => Kind::PostedWrite,
            1 => Kind::ReadRequest,
            2..8 => Kind::ErrorResponse,
            _ => Kind::ReadResponse,
        };
        // A write carries no tag.
        self.offered = if kind == Kind::PostedWrite { 0 } else { tag };
        let mut answer = Value::default();
        for (name, width, offset) in HtBeat::FIELDS {
            let bits = match *name {
                "kind" => kind as u64,
                "tag" => self.offered.into(),
                _ => any_bits(random),
            };
            answer.set(*offset, *width, bits);
        }
        self.source.offer(answer);
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if !outputs.is_empty() {
            self.follow(outputs);
        }
        if chance(random, 2) {
            self.answers = below(random, 101);
            self.wrong = 1 + below(random, 20);
            self.ready = below(random, 101);
        }
        if chance(random, 60) {
            self.reads.allocate(Origin {
                source: self.asker(random),
                trace: 0,
                tag: below(random, MAX_TAGS) as u8,
            });
        }
        if !self.source.is_offering() && chance(random, self.answers) {
            self.offer(random);
        }
        let mut used = self.reads.is_used(self.offered);
        let (mut source, mut tag) = (self.asker(random), below(random, MAX_TAGS) as u8);
        if chance(random, 5) {
            used = chance(random, 50);
        } else if let Some(origin) = self.reads.context(self.offered) {
            (source, tag) = (origin.source, origin.tag);
        }
        inputs.push(u64::from(self.node).into());
        self.source.drive(Value::default(), inputs);
        inputs.push(chance(random, self.ready).into());
        inputs.push(used.into());
        inputs.push(u64::from(source).into());
        inputs.push(u64::from(tag).into());
        inputs.push((source == self.node).into());
    }

    fn transactions(&self) -> u64 {
        self.source.taken
    }
}
