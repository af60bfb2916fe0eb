//! The crossbar against the cycle model's.

use rand_core::Rng;
use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::crossbar::Crossbar as CycleModel;
use sme_sim::families::sme::engine::wires::{
    COMPLETER, CROSSBAR_REQUESTER, CROSSBAR_RESPONDER, CROSSBAR_SWITCH_REQUEST,
    CROSSBAR_SWITCH_RESPONSE, DEPTH, PACKET_FIFOS, PacketFifos, REQUESTER_RESPONSE, switch_input,
};
use sme_sim::parts::fabric::{Class, HOST_PORT};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::PacketBeat;
use crate::blocks::crossbar::Crossbar;
use crate::blocks::primitive::Register;
use crate::device::{Clocked, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

/// Whether the requester's packet is for this node; after it, the responder's.
const STAYS: usize = 0;
/// The first of the senders' inputs.
const SENDERS: usize = 2;
/// The first of the readers' *ready* inputs.
const READERS: usize = 10;

/// The FIFOs of the inputs, in the order of the ports.
const INPUTS: [usize; 4] = [
    CROSSBAR_SWITCH_REQUEST,
    CROSSBAR_REQUESTER,
    CROSSBAR_SWITCH_RESPONSE,
    CROSSBAR_RESPONDER,
];
/// The FIFOs of the readers.
const OUTPUTS: [usize; 4] = [
    COMPLETER,
    REQUESTER_RESPONSE,
    switch_input(HOST_PORT, Class::Request.channel(false)),
    switch_input(HOST_PORT, Class::Response.channel(false)),
];

pub(super) const BENCH: Bench = Bench {
    name: "crossbar",
    what: "the on-chip crossbar: joins requester, completer, responder and switch",
    faults: &[
        "the switch goes first after reset",
        "another packet is given than is taken",
        "an input has a place less",
        "an input has a place less for targets",
        "requester and switch are swapped",
        "ignores that the switch is not ready",
        "requester and responder stay together",
        "a packet that stays goes away",
        "completer and requester share a ready",
        "data and valid of different outputs",
    ],
    build,
    of,
};

fn build(seed: u64, fault: Option<&str>) -> Pair {
    pair(seed as u32 % (1 << 20), fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    Pair {
        sizes: String::new(),
        ..pair(site.node, fault)
    }
}

/// For the node of this number.
fn pair(node: u32, fault: Option<&str>) -> Pair {
    let mut rtl = Crossbar::new();
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("the switch goes first after reset") => {
            rtl.requests.last_from_switch = Register::new(false);
            rtl.requests.last_from_own = Register::new(true);
        }
        Some("another packet is given than is taken") => {
            rtl.responses.last_from_own = Register::new(true);
        }
        Some("an input has a place less") => rtl.responses.own.two = Constant::new(false),
        Some("an input has a place less for targets") => {
            rtl.responses.targets.two = Constant::new(false);
        }
        Some("requester and switch are swapped") => {
            inputs = |values| {
                values.swap(SENDERS, SENDERS + 2);
                values.swap(SENDERS + 1, SENDERS + 3);
            };
            outputs = |values| values.swap(0, 1);
        }
        Some("ignores that the switch is not ready") => {
            inputs = |values| values[READERS + 2] = true.into();
        }
        Some("a packet that stays goes away") => inputs = |values| values[STAYS] = false.into(),
        Some("requester and responder stay together") => {
            inputs = |values| values[STAYS + 1] = values[STAYS];
        }
        Some("completer and requester share a ready") => {
            inputs = |values| values[READERS] = values[READERS + 1];
        }
        Some("data and valid of different outputs") => outputs = |values| values.swap(5, 9),
        _ => (),
    }
    let rtl = Clocked::new(rtl);
    let model = Model {
        crossbar: CycleModel::new(node),
        packets: depths(),
        comes: [false; 4],
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(Miswired::new(rtl, inputs, outputs)),
        model: Box::new(model),
        traffic: Box::new(Load::new(node)),
        sizes: format!("node {node}"),
    }
}

struct Model {
    crossbar: CycleModel,
    packets: PacketFifos,
    /// The senders that wrote in the cycle before what comes in this one: the switch's.
    comes: [bool; 4],
}

/// A reader's FIFO has one place, so that it is ready or not as the bench wants.
fn depths() -> PacketFifos {
    let mut depths = [DEPTH; PACKET_FIFOS];
    for fifo in OUTPUTS {
        depths[fifo] = 1;
    }
    PacketFifos::new(&depths)
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let data = |sender: usize| PacketBeat::of(inputs[SENDERS + 2 * sender + 1]).packet(0);
        for (sender, fifo) in INPUTS.into_iter().enumerate() {
            if std::mem::take(&mut self.comes[sender]) {
                self.packets.push(fifo, data(sender), 0);
            }
        }
        // The crossbar offers the packets that would move if every reader were ready.
        let (mut crossbar, mut packets) = (self.crossbar.clone(), self.packets.clone());
        packets.latch();
        outputs.clear();
        outputs.extend(INPUTS.map(|fifo| Value::from(packets.is_ready(fifo))));
        crossbar.step(&mut packets, |_, _| 0);
        packets.latch();
        for fifo in OUTPUTS {
            let offered = packets.is_valid(fifo).then(|| packets.pop(fifo));
            outputs.push(offered.is_some().into());
            let data = offered.map(|packet| PacketBeat::from(packet).value());
            outputs.push(data.unwrap_or_default());
        }

        let filler = PacketBeat::default().packet(0);
        for (reader, fifo) in OUTPUTS.into_iter().enumerate() {
            if !inputs[READERS + reader].bit(0) {
                self.packets.push(fifo, filler, 0);
            }
        }
        self.packets.latch();
        self.crossbar.step(&mut self.packets, |_, _| 0);
        for (sender, fifo) in INPUTS.into_iter().enumerate() {
            if inputs[SENDERS + 2 * sender].bit(0) && self.packets.is_ready(fifo) {
                if is_switch(sender) {
                    self.comes[sender] = true;
                } else {
                    self.packets.push(fifo, data(sender), 0);
                }
            }
        }
        for fifo in OUTPUTS {
            if self.packets.next_valid() >> fifo & 1 == 1 {
                self.packets.pop(fifo);
            }
        }
    }
}

/// Returns whether it is the switch, whose packets come a cycle after it offers them.
fn is_switch(sender: usize) -> bool {
    sender.is_multiple_of(2)
}

/// Bursts from each sender, and readers that are stuck for a while; every other packet goes to
/// the own node, some to nodes that differ in one bit, and the switch sends a few astray.
struct Load {
    node: u32,
    senders: [Source; 4],
    /// Their offers in the cycle before.
    before: [Value; 4],
    /// Of the senders, then of the readers, in percent.
    rates: [u32; 8],
}

impl Load {
    fn new(node: u32) -> Self {
        Self {
            node,
            senders: Default::default(),
            before: Default::default(),
            rates: [50; 8],
        }
    }

    fn packet(&self, random: &mut Random, from_switch: bool) -> Value {
        let target = match below(random, if from_switch { 16 } else { 4 }) {
            0 => random.next_u32() % (1 << 20),
            1 => self.node ^ 1 << below(random, 20),
            _ => self.node,
        };
        let mut packet = Value::default();
        packet.set(0, 64, any_bits(random));
        packet.set(64, 64, random.next_u64());
        packet.set(128, 32, random.next_u64());
        packet.set(104, 20, target.into());
        packet
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if chance(random, 3) {
            self.rates = std::array::from_fn(|_| below(random, 101));
        }
        // Whether a packet is for this node means nothing while there is none.
        inputs.extend([(); 2].map(|()| Value::from(chance(random, 50))));
        for sender in 0..4 {
            let ready = outputs.get(sender).is_some_and(|ready| ready.bit(0));
            self.senders[sender].ready(ready);
            if !self.senders[sender].is_offering() && chance(random, self.rates[sender]) {
                let packet = self.packet(random, is_switch(sender));
                self.senders[sender].offer(packet);
            }
            self.senders[sender].drive(Value::default(), inputs);
            let packet = SENDERS + 2 * sender + 1;
            if is_switch(sender) {
                std::mem::swap(&mut inputs[packet], &mut self.before[sender]);
            } else if self.senders[sender].is_offering() {
                let target = inputs[packet].get(104, 20);
                inputs[STAYS + sender / 2] = (target == u64::from(self.node)).into();
            }
        }
        for reader in 0..4 {
            inputs.push(chance(random, self.rates[4 + reader]).into());
        }
    }

    fn transactions(&self) -> u64 {
        self.senders.iter().map(|sender| sender.taken).sum()
    }
}
