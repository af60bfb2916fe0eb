//! The switch against the cycle model's.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::switch::Switch as Specification;
use sme_sim::families::sme::engine::wires::{
    CROSSBAR_SWITCH_REQUEST, CROSSBAR_SWITCH_RESPONSE, DEPTH, PACKET_FIFOS, PacketFifos,
    SWITCH_OUTPUTS, switch_input, switch_output,
};
use sme_sim::parts::fabric::{CHANNELS, HOST_PORT, LINK_PORTS, Router, Topology};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::router::{any_target, any_topology};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::PacketBeat;
use crate::blocks::MAX_PLACES;
use crate::blocks::primitive::Stages;
use crate::blocks::primitive::buffers::INPUTS;
use crate::blocks::switch::Switch;
use crate::blocks::turns::Turns;
use crate::device::Clocked;
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "switch",
    what: "the switch: six link ports and the host port, four virtual channels each",
    faults: &[
        "one place less",
        "another input begins",
        "responses look at the requests' places",
        "datelines forgotten",
        "x and y swapped",
        "a link's places not looked at",
        "no turn from x to y",
        "the way of what is received is another's, which arrives",
        "the way of what is received is that of a packet before",
        "what arrives is told of by another link",
    ],
    build,
    of,
};

// The ports, by their places in the lists.
const ARRIVING: usize = 3;
const RECEIVE_VALID: usize = ARRIVING + 2 * LINK_PORTS;
const RECEIVE_DATA: usize = RECEIVE_VALID + LINK_PORTS;
const REQUEST: usize = RECEIVE_DATA + LINK_PORTS;
const RESPONSE: usize = REQUEST + 2;
const TRANSMIT_READY: usize = RESPONSE + 2;
const OUT_READY: usize = TRANSMIT_READY + LINK_PORTS;
const CREDIT: usize = 2;

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let mut random = Pcg32::seed_from_u64(seed ^ 0x7377_6974);
    let topology = any_topology(seed);
    let here = below(&mut random, topology.positions());
    let credits = [2, 5, 1, 16, 3, MAX_PLACES][(seed % 6) as usize];
    pair(topology, here, credits, fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let credits = site.spec.link.channel_credits as u16;
    Pair {
        sizes: format!(
            "{}, {credits} places a virtual channel of a link",
            site.topology
        ),
        ..pair(site.topology.clone(), site.node, credits, fault)
    }
}

/// At the position `here`.
fn pair(topology: Topology, here: u32, credits: u16, fault: Option<&str>) -> Pair {
    let mut switch = match fault {
        Some("one place less") => Switch::new(&topology, credits.max(2) - 1),
        Some("another input begins") => Switch::with(&topology, credits, 3, Turns::of(&topology)),
        Some("no turn from x to y") => {
            let mut turns = Turns::of(&topology);
            turns.into[2..4]
                .iter_mut()
                .for_each(|inputs| *inputs &= !0xff);
            Switch::with(&topology, credits, INPUTS - 1, turns)
        }
        _ => Switch::new(&topology, credits),
    };
    match fault {
        Some("responses look at the requests' places") => {
            for output in &mut switch.outputs {
                output.requests = Constant::new(!Bits::from(0));
                output.responses = Constant::new(0.into());
            }
        }
        Some("the way of what is received is another's, which arrives") => {
            switch.ways = std::array::from_fn(|_| Stages::new(0, 0.into()));
        }
        Some("the way of what is received is that of a packet before") => {
            switch.ways = std::array::from_fn(|_| Stages::new(2, 0.into()));
        }
        Some("datelines forgotten") => {
            switch
                .arrived
                .fill(Constant::new(u64::from(HOST_PORT).into()));
        }
        _ => (),
    }
    let rtl = Clocked::new(switch);
    let router = Router::new(&topology);
    let mut depths = [1; PACKET_FIFOS];
    depths[..switch_input(HOST_PORT, 0)].fill(credits);
    depths[switch_input(HOST_PORT, 0)..SWITCH_OUTPUTS].fill(DEPTH);
    let model = Model {
        switch: Specification::new(router.here(here)),
        router,
        fifos: PacketFifos::new(&depths),
        before: Default::default(),
    };
    let inputs: fn(&mut [Value]) = match fault {
        Some("x and y swapped") => |inputs| inputs.swap(0, 1),
        Some("what arrives is told of by another link") => {
            |inputs| inputs[ARRIVING..][..2 * LINK_PORTS].rotate_left(1)
        }
        Some("a link's places not looked at") => |inputs| inputs[TRANSMIT_READY] = 15.into(),
        _ => |_| (),
    };
    let sizes = format!("{topology}, node {here}, {credits} places a virtual channel");
    let load = Load {
        turns: Turns::of(&topology),
        router: Router::new(&topology),
        topology,
        here,
        credits: [[credits; CHANNELS]; LINK_PORTS],
        host: Default::default(),
        arriving: Default::default(),
        received: 0,
        arrive: [0; LINK_PORTS + 2],
        ready: [0; LINK_PORTS + 1],
        hot: None,
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: match fault {
            Some(_) => Box::new(Miswired::new(rtl, inputs, |_| ())),
            None => Box::new(rtl),
        },
        model: Box::new(model),
        traffic: Box::new(load),
        sizes,
    }
}

/// The FIFOs behind the switch have one place each, which a packet without a sender fills in the
/// cycles in which the reader is not ready.
struct Model {
    switch: Specification,
    router: Router,
    fifos: PacketFifos,
    /// The packets that left in the cycle before, by port, and by class for the host: they come in
    /// this one.
    before: [Value; LINK_PORTS + 2],
}

impl Model {
    fn receive(&mut self, port: u16, channel: u8, data: Value) {
        let packet = PacketBeat::from_value(data).packet(0);
        let output = self
            .switch
            .output(&self.router, port, channel, packet.target);
        self.fifos.push(switch_input(port, channel), packet, output);
    }

    /// Returns the packet written into a FIFO behind the switch.
    fn sent(&mut self, fifo: usize, ready: bool) -> Option<Value> {
        if !ready {
            self.fifos.pop(fifo);
            return None;
        }
        let written = self.fifos.next_valid() >> fifo & 1 == 1;
        written.then(|| PacketBeat::from(self.fifos.pop(fifo)).value())
    }
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let host_fifos = [CROSSBAR_SWITCH_REQUEST, CROSSBAR_SWITCH_RESPONSE];
        let ready = |port: usize, channel: usize| match port {
            0..LINK_PORTS => inputs[TRANSMIT_READY + port].bit(channel),
            _ => inputs[OUT_READY + channel / 2].bit(0),
        };
        let links = || (0..LINK_PORTS).flat_map(|p| (0..CHANNELS).map(move |c| (p, c)));
        let host = [(LINK_PORTS, 0), (LINK_PORTS, 2)];
        let behind = |port: usize, channel: usize| match port {
            0..LINK_PORTS => switch_output(port as u16, channel as u8),
            _ => host_fifos[channel / 2],
        };

        for (port, channel) in links().chain(host) {
            if !ready(port, channel) {
                let filler = PacketBeat::default().packet(0);
                self.fifos.push(behind(port, channel), filler, 0);
            }
        }
        self.fifos.latch();
        let accepts = [0, 2].map(|channel| self.fifos.is_ready(switch_input(HOST_PORT, channel)));
        let freed = u64::from(self.switch.step(&mut self.fifos).freed);

        let mut valid = [0u64; LINK_PORTS + 1];
        let mut data = [Value::default(); LINK_PORTS + 2];
        for (port, channel) in links().chain(host) {
            let packet = self.sent(behind(port, channel), ready(port, channel));
            if let Some(packet) = packet {
                valid[port] |= 1 << channel;
                let second = port == LINK_PORTS && channel == 2;
                data[port + usize::from(second)] = packet;
            }
        }

        for (port, channel) in links() {
            if inputs[RECEIVE_VALID + port].bit(channel) {
                self.receive(port as u16, channel as u8, inputs[RECEIVE_DATA + port]);
            }
        }
        for (index, at) in [REQUEST, RESPONSE].into_iter().enumerate() {
            if inputs[at].bit(0) && accepts[index] {
                self.receive(HOST_PORT, 2 * index as u8, inputs[at + 1]);
            }
        }

        std::mem::swap(&mut data, &mut self.before);
        outputs.clear();
        outputs.extend(accepts.map(Value::from));
        outputs.extend((0..LINK_PORTS).map(|port| Value::from(freed >> (4 * port) & 15)));
        outputs.extend(valid[..LINK_PORTS].iter().copied().map(Value::from));
        outputs.extend(&data[..LINK_PORTS]);
        for class in 0..2 {
            outputs.push((valid[LINK_PORTS] >> (2 * class) & 1).into());
            outputs.push(data[LINK_PORTS + class]);
        }
    }
}

/// Links that hold credits, a host that holds what it offers, and readers that are ready or not:
/// each with its own odds, which change now and then; so now all send at once, now all to one
/// target, now one output is stuck. Packets come only where there are any, and take the turns that
/// there are.
struct Load {
    topology: Topology,
    router: Router,
    turns: Turns,
    here: u32,
    credits: [[u16; CHANNELS]; LINK_PORTS],
    host: [Source; 2],
    /// By link, the channel of what arrives, one-hot, and the packet: it is received in the next
    /// cycle.
    arriving: [(u64, Value); LINK_PORTS],
    /// Packets from links.
    received: u64,
    /// Percent of the cycles in which a link or the host sends.
    arrive: [u32; LINK_PORTS + 2],
    /// Percent of the cycles in which a virtual channel behind an output has a place.
    ready: [u32; LINK_PORTS + 1],
    /// The target of all packets.
    hot: Option<u32>,
}

impl Load {
    /// A packet for a channel of a port; whether there is one.
    fn packet(&self, random: &mut Random, port: u16, channel: u8) -> (Value, bool) {
        let any = any_target(random, &self.topology, self.here);
        let wanted = self.hot.filter(|_| chance(random, 90)).unwrap_or(any);
        let targets = [wanted, any, self.here];
        let target = targets.into_iter().find(|&target| {
            let here = self.router.here(self.here);
            (self.turns).lead(&self.router, here, port, channel, target)
        });
        let mut packet = Value::default();
        packet.set(0, 64, any_bits(random));
        packet.set(64, 64, random.next_u64());
        packet.set(128, 32, random.next_u64());
        packet.set(104, 20, target.unwrap_or(any).into());
        (packet, target.is_some())
    }

    fn change(&mut self, random: &mut Random) {
        let mut odds = || match below(random, 4) {
            0 => 0,
            1 => 100,
            _ => below(random, 101),
        };
        self.arrive.fill_with(&mut odds);
        self.ready.fill_with(&mut odds);
        match below(random, 6) {
            0 => self.arrive.fill(100),
            1 => self.ready.fill(100),
            2 => (self.arrive, self.ready) = ([100; 8], [100; 7]),
            _ => (),
        }
        let target = any_target(random, &self.topology, self.here);
        self.hot = chance(random, 30).then_some(target);
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if outputs.is_empty() || chance(random, 2) {
            self.change(random);
        }
        let out = |port: usize| outputs.get(port).copied().unwrap_or_default();
        for (port, channels) in self.credits.iter_mut().enumerate() {
            let freed = out(CREDIT + port);
            let places = channels.iter_mut().enumerate();
            places.for_each(|(channel, places)| *places += u16::from(freed.bit(channel)));
        }
        for (index, source) in self.host.iter_mut().enumerate() {
            source.ready(out(index).bit(0));
        }

        let coordinates = self.topology.coordinates(self.here);
        inputs.extend(coordinates.map(u64::from).map(Value::from));
        let received = self.arriving;
        for port in 0..LINK_PORTS {
            let channel = below(random, CHANNELS as u32) as usize;
            let (packet, possible) = self.packet(random, port as u16, channel as u8);
            let sends = possible && chance(random, self.arrive[port]);
            let sends = sends && self.credits[port][channel] > 0;
            self.credits[port][channel] -= u16::from(sends);
            self.received += u64::from(sends);
            self.arriving[port] = (u64::from(sends) << channel, packet);
        }
        let target = |packet: Value| PacketBeat::from_value(packet).get_value_target();
        inputs.extend(self.arriving.map(|(on, _)| Value::from(on)));
        inputs.extend(
            self.arriving
                .map(|(_, packet)| Value::from_bits(target(packet))),
        );
        inputs.extend(received.map(|(on, _)| Value::from(on)));
        inputs.extend(received.map(|(_, packet)| packet));
        for index in 0..2 {
            let (idle, possible) = self.packet(random, HOST_PORT, 2 * index as u8);
            let offers = possible && chance(random, self.arrive[LINK_PORTS + index]);
            if offers && !self.host[index].is_offering() {
                self.host[index].offer(idle);
            }
            self.host[index].drive(idle, inputs);
        }
        for port in 0..LINK_PORTS {
            let mut channel =
                |ready, channel| ready | u64::from(chance(random, self.ready[port])) << channel;
            inputs.push((0..CHANNELS).fold(0, &mut channel).into());
        }
        for _ in 0..2 {
            inputs.push(chance(random, self.ready[LINK_PORTS]).into());
        }
    }

    fn transactions(&self) -> u64 {
        self.received + self.host[0].taken + self.host[1].taken
    }
}
