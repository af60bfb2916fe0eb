//! The whole engine against the cycle model's, with hosts and neighbours that keep to the credits
//! and to nothing else: any node sends anything to any node, at the same time on every port.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use sme_sim::families::sme::engine::link_port::ARRIVAL_CYCLES;
use sme_sim::families::sme::engine::{
    self as cycle_model, Counters, Design, EngineModel, HtChannel, HtPacket, Input, Kind, Output,
    Packet,
};
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::{CHANNELS, Class, LINK_PORTS, Router, Topology};

use super::miswired::Miswired;
use super::source::{any_bits, below, chance};
use super::{BENCHES, Bench, EngineSite};
use crate::beat::DoublewordsBeat;
use crate::blocks::engine::{Engine, Unsupported};
use crate::blocks::turns::Turns;
use crate::device::{Clocked, Device, Port};
use crate::engine_pins::{
    BEGUN, CRC_ERROR, DROPPED_VALID, FAILED_VALID, HOST_IN_DATA, HOST_OUT_CREDIT, INPUTS,
    InputPins, LINK_IN_CREDIT, OutputPins, UNKNOWN_TAGS, VISIBLE, inputs_of, show, wrong_crcs,
};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

/// The name of the whole engine.
pub const ENGINE: &str = "engine";

/// Its parts with sizes.
const PARTS: [&str; 5] = ["ht_port", "requester", "completer", "switch", "link_port"];

pub(super) const BENCH: Bench = Bench {
    name: ENGINE,
    what: "the engine: its blocks, joined",
    faults: &[
        "one source tag less",
        "one node less",
        "one credit more",
        "links of half the bandwidth",
        "a mesh instead of a torus",
        "wrong packets of another link",
        "all bytes are written, against the host's mask",
        "a freed place of the host is told of as another's",
        "two links' credits are swapped",
        "what is dropped is told of as what fails",
    ],
    build,
    of,
};

impl EngineSite {
    /// In a cluster small enough that everything happens.
    ///
    /// The network and how long packets take a link follow from `seed` alone, so that a few seeds
    /// have all: at 624 MB/s, the prototype's, there is time to fetch a packet.
    fn any(seed: u64) -> Self {
        let random = &mut Pcg32::seed_from_u64(seed);
        let machine = Machine::builtin("sme-prototype").expect("it is built in");
        let mut spec = sme_sim::families::sme::of(&machine)
            .expect("an SME cluster")
            .clone();
        spec.node.private_bytes = 3 << 30;
        spec.node.shared_bytes = 1 << 20;
        spec.engine.tags = 1 + below(random, 8);
        spec.link.channel_credits = 1 + below(random, 6);
        spec.link.bytes_per_second = 156_000_000 * [4, 8, 24][(seed % 3) as usize];
        spec.host.posted_credits = 1 + below(random, 6);
        spec.host.nonposted_credits = 1 + below(random, 6);
        spec.host.response_credits = 1 + below(random, 6);
        let shape = ["torus:5x3", "torus:3x4x5", "mesh:3x3", "mesh:4x3x3"];
        let shape = shape[(seed % 4) as usize];
        let topology: Topology = shape.parse().expect("a topology");
        let hosts = topology.positions() - below(random, 2);
        let node = below(random, hosts);
        Self {
            spec,
            topology,
            hosts,
            node,
        }
    }
}

impl fmt::Display for EngineSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (engine, link, host) = (&self.spec.engine, &self.spec.link, &self.spec.host);
        write!(
            f,
            "node {} of {} in {}, {} tags, links of {} MB/s and {} credits, the host's {}, {} and {}",
            self.node,
            self.hosts,
            self.topology,
            engine.tags,
            link.bytes_per_second / 1_000_000,
            link.channel_credits,
            host.posted_credits,
            host.nonposted_credits,
            host.response_credits,
        )
    }
}

/// The engine of `site`, or one of its broken variants, `fault`.
///
/// # Errors
/// What the RTL cannot do, of a broken variant; see [`Unsupported`].
pub fn engine_of(site: &EngineSite, fault: Option<&str>) -> Result<Pair, Unsupported> {
    broken(site.clone(), fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let parts = BENCHES.iter().filter(|bench| PARTS.contains(&bench.name));
    let sizes = parts.map(|bench| (bench.name, (bench.of)(site, None).sizes));
    let sizes: Vec<String> = sizes
        .map(|(name, sizes)| format!("{name}: {sizes}"))
        .collect();
    Pair {
        sizes: sizes.join("; "),
        ..broken(site.clone(), fault).expect("a site whose engine was built already")
    }
}

fn build(seed: u64, fault: Option<&str>) -> Pair {
    broken(EngineSite::any(seed), fault).expect("few credits")
}

fn broken(site: EngineSite, fault: Option<&str>) -> Result<Pair, Unsupported> {
    let (mut spec, mut topology, mut hosts) =
        (site.spec.clone(), site.topology.clone(), site.hosts);
    match fault {
        Some("one source tag less") => spec.engine.tags = (spec.engine.tags - 1).max(1),
        Some("one node less") => hosts = (hosts - 1).max(1),
        Some("one credit more") => spec.link.channel_credits += 1,
        Some("links of half the bandwidth") => {
            spec.link.bytes_per_second = spec.link.bytes_per_second.div_ceil(2);
        }
        Some("a mesh instead of a torus") => {
            let mesh = site.topology.to_string().replace("torus", "mesh");
            topology = mesh.parse().expect("a topology");
        }
        _ => {}
    }
    let engine = Engine::new(&spec, &topology, hosts)?;
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("wrong packets of another link") => {
            outputs = |values| values[CRC_ERROR..][..LINK_PORTS].rotate_left(2);
        }
        Some("all bytes are written, against the host's mask") => {
            inputs = |values| values[HOST_IN_DATA].set(DoublewordsBeat::MASK, 32, u64::MAX);
        }
        Some("a freed place of the host is told of as another's") => {
            outputs = |values| {
                let freed = values[HOST_OUT_CREDIT].low();
                values[HOST_OUT_CREDIT] = (freed >> 1 | (freed & 1) << 2).into();
            };
        }
        Some("two links' credits are swapped") => {
            inputs = |values| values.swap(LINK_IN_CREDIT, LINK_IN_CREDIT + 1);
        }
        Some("what is dropped is told of as what fails") => {
            outputs = |values| values.swap(DROPPED_VALID, FAILED_VALID);
        }
        _ => {}
    }
    Ok(pair(engine, site, [inputs, outputs]))
}

/// `wires` change what reaches the RTL, and what it shows.
fn pair(engine: Engine, site: EngineSite, wires: [fn(&mut [Value]); 2]) -> Pair {
    let [inputs, outputs] = wires;
    let rtl = Clocked::new(engine);
    let model = Model::new(&site, &rtl);
    Pair {
        sizes: site.to_string(),
        rtl: Box::new(Miswired::new(rtl, inputs, outputs)),
        model: Box::new(model),
        traffic: Box::new(Load::new(site)),
    }
}

#[cfg(test)]
mod beside;

/// The cycle model on the same pins.
struct Model {
    engine: cycle_model::Engine,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    now: u64,
    counted: Counters,
    out: Vec<Output>,
    /// The links that have brought a wrong CRC in the cycles before: the cycle model gets sound
    /// packets only.
    wrong: VecDeque<[bool; LINK_PORTS]>,
}

impl Model {
    fn new(site: &EngineSite, rtl: &impl Device) -> Self {
        let design = Design::new(&site.spec, &site.topology, site.hosts);
        let design = Arc::new(design.expect("a machine that can be built"));
        Self {
            engine: cycle_model::Engine::with_design(&design, site.node),
            inputs: rtl.inputs(),
            outputs: rtl.outputs()[..VISIBLE].to_vec(),
            now: 0,
            counted: Counters::default(),
            out: Vec::new(),
            wrong: VecDeque::from([[false; LINK_PORTS]; ARRIVAL_CYCLES as usize]),
        }
    }
}

impl Device for Model {
    fn inputs(&self) -> Vec<Port> {
        self.inputs.clone()
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        for input in inputs_of(inputs) {
            self.engine.input(self.now, input);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.engine.step(self.now, &mut out);
        self.now += 1;
        self.show_all(&out, outputs);
        self.out = out;
        self.wrong.push_back(wrong_crcs(inputs));
        let wrong = self.wrong.pop_front().unwrap_or_default();
        for (port, wrong) in wrong.into_iter().enumerate() {
            outputs[CRC_ERROR + port] = wrong.into();
        }
    }
}

impl Model {
    /// Shows the engine's outputs, and the changes of its counters.
    fn show_all(&mut self, out: &[Output], outputs: &mut Vec<Value>) {
        outputs.clear();
        outputs.resize(self.outputs.len(), Value::default());
        out.iter().for_each(|output| show(output, outputs));
        let counters = self.engine.counters().clone();
        for port in 0..LINK_PORTS {
            let (now, before) = (&counters.links[port], &self.counted.links[port]);
            let begun = (0..CHANNELS)
                .filter(|&channel| now[channel].packets != before[channel].packets)
                .fold(0, |begun, channel| begun | 1u64 << channel);
            outputs[BEGUN + port] = begun.into();
        }
        let (now, before) = (&counters.faults, &self.counted.faults);
        let dropped = now.dropped_writes != before.dropped_writes;
        let failed = now.failed_reads != before.failed_reads;
        let unknown = now.unknown_tags - before.unknown_tags;
        outputs[DROPPED_VALID] = dropped.into();
        outputs[FAILED_VALID] = failed.into();
        outputs[UNKNOWN_TAGS] = unknown.into();
        self.counted = counters;
    }
}

/// Host and neighbours.
struct Load {
    site: EngineSite,
    router: Router,
    turns: Turns,
    pins: InputPins,
    /// Places left in the engine: of the host's channels, of each link's.
    host_credits: [u32; 3],
    link_credits: [[u32; CHANNELS]; LINK_PORTS],
    /// Credits that host and neighbours have not given back yet.
    owed_by_host: [u32; 3],
    owed_by_links: [[u32; CHANNELS]; LINK_PORTS],
    /// Tags of reads of the host's memory that wait for their answer.
    memory_reads: VecDeque<u8>,
    /// Reads that left over a link: tags that wait for a response.
    remote_reads: VecDeque<u8>,
    rates: Rates,
    /// Cycles for which the rates stay.
    left: u32,
    /// Phases so far.
    phases: u32,
    transactions: u64,
}

/// Chances in percent.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// A packet of the host.
    host: u32,
    /// A packet of each link.
    link: u32,
    /// If it is a response, that it comes.
    answer: u32,
    /// A credit of the host goes back, and of each link.
    host_credit: u32,
    link_credit: u32,
}

impl Rates {
    /// Now this is frequent, now that.
    fn any(random: &mut Random) -> Self {
        let [host, link, answer, host_credit, link_credit] =
            [0; 5].map(|_| [3, 20, 60, 100][below(random, 4) as usize]);
        Self {
            host,
            link,
            answer,
            host_credit,
            link_credit,
        }
    }

    /// Full load, and something is withheld until all of it is in use: answers, so that the tags
    /// run out, or credits.
    fn withholding(turn: u32) -> Self {
        let mut rates = Self {
            host: 100,
            link: 20,
            answer: 100,
            host_credit: 100,
            link_credit: 100,
        };
        match turn % 3 {
            0 => rates.answer = 0,
            1 => (rates.link, rates.link_credit) = (100, 0),
            _ => (rates.link, rates.host_credit) = (100, 0),
        }
        rates
    }
}

/// Cycles in which something is withheld, in every eighth phase: enough for the sizes that are
/// built.
const WITHHELD_CYCLES: u32 = 250;

impl Load {
    fn new(site: EngineSite) -> Self {
        let spec = &site.spec;
        Self {
            pins: InputPins::new(site.node, site.topology.coordinates(site.node)),
            host_credits: [
                spec.host.posted_credits,
                spec.host.nonposted_credits,
                spec.host.response_credits,
            ],
            link_credits: [[spec.link.channel_credits; CHANNELS]; LINK_PORTS],
            owed_by_host: [0; 3],
            owed_by_links: [[0; CHANNELS]; LINK_PORTS],
            memory_reads: VecDeque::new(),
            remote_reads: VecDeque::new(),
            rates: Rates::withholding(0),
            left: 0,
            phases: 0,
            transactions: 0,
            router: Router::new(&site.topology),
            turns: Turns::of(&site.topology),
            site,
        }
    }

    /// Learns from the engine's outputs in the cycle before.
    fn learn(&mut self, outputs: &[Value]) {
        let pins = OutputPins(outputs);
        if let Some(beat) = pins.host() {
            let packet = beat.packet(0);
            self.owed_by_host[packet.channel() as usize] += 1;
            if let HtPacket::Read { tag, .. } = packet {
                self.memory_reads.push_back(tag);
            }
            self.transactions += 1;
        }
        for (channel, credits) in self.host_credits.iter_mut().enumerate() {
            *credits += (pins.host_credit() >> channel & 1) as u32;
        }
        for port in 0..LINK_PORTS {
            if let Some((channel, beat)) = pins.link(port) {
                let packet = beat.packet(0);
                self.owed_by_links[port][usize::from(channel)] += 1;
                if packet.kind == Kind::ReadRequest && packet.source == self.site.node {
                    self.remote_reads.push_back(packet.tag);
                }
                self.transactions += 1;
            }
            let freed = pins.link_credit(port);
            for (channel, credits) in self.link_credits[port].iter_mut().enumerate() {
                *credits += (freed >> channel & 1) as u32;
            }
        }
    }

    fn address(&self, random: &mut Random) -> u64 {
        let spec = &self.site.spec.node;
        let node = match below(random, 4) {
            0 => self.site.node,
            _ => below(random, self.site.hosts),
        };
        let offset = (any_bits(random) % spec.shared_bytes) & !7;
        match below(random, 20) {
            0 => random.next_u64() & !7,
            1 => spec.global_base - 8,
            2 => spec.global_base + u64::from(self.site.hosts) * spec.shared_bytes,
            _ => spec.global_base + u64::from(node) * spec.shared_bytes + offset,
        }
    }

    fn of_host(&mut self, random: &mut Random) -> Option<HtPacket> {
        let (trace, enables) = (0, any_bits(random) as u8);
        let packet = match below(random, 3) {
            0 => HtPacket::Write {
                address: self.address(random),
                data: any_bits(random),
                enables,
                coherent: chance(random, 50),
                trace,
            },
            1 => HtPacket::Read {
                extra_words: 0,
                address: self.address(random),
                enables,
                tag: below(random, 32) as u8,
                trace,
            },
            _ => {
                if !chance(random, self.rates.answer) {
                    return None;
                }
                let tag = if chance(random, 5) {
                    // Usually the tag of no read; or of one that is not its turn.
                    below(random, 32) as u8
                } else {
                    self.memory_reads.pop_front()?
                };
                HtPacket::Response {
                    extra_words: 0,
                    data: any_bits(random),
                    single: chance(random, 30),
                    tag,
                    error: chance(random, 20),
                    trace,
                }
            }
        };
        Some(packet)
    }

    /// A packet that a neighbour at `port` may send on `channel`, if there are any.
    fn of_link(&mut self, random: &mut Random, port: u16, channel: u8) -> Option<Packet> {
        let answers = Class::of_channel(channel) == Class::Response;
        if answers && !chance(random, self.rates.answer) {
            return None;
        }
        let node = self.site.node;
        let beyond = below(random, self.site.topology.positions());
        let targets = if chance(random, 50) {
            [node; 2]
        } else {
            [beyond, node]
        };
        let here = self.router.here(node);
        let mut targets = targets.into_iter();
        let target = targets.find(|&to| self.turns.lead(&self.router, here, port, channel, to))?;
        let mut packet = Packet {
            data: any_bits(random),
            offset: 0,
            target,
            source: below(random, self.site.hosts),
            trace: 0,
            kind: Kind::ReadResponse,
            flag: false,
            tag: below(random, 32) as u8,
            enables: 0,
        };
        if answers {
            packet.flag = chance(random, 30);
            if chance(random, 20) {
                packet.kind = Kind::ErrorResponse;
            }
            if target == self.site.node && chance(random, 95) {
                packet.tag = self.remote_reads.pop_front().unwrap_or(packet.tag);
            }
        } else {
            packet.offset = (any_bits(random) % self.site.spec.node.shared_bytes) & !7;
            packet.enables = any_bits(random) as u8;
            if chance(random, 50) {
                packet.kind = Kind::ReadRequest;
                packet.data = 0;
            } else {
                packet.kind = Kind::PostedWrite;
                packet.flag = chance(random, 50);
                packet.tag = 0;
            }
        }
        Some(packet)
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if !outputs.is_empty() {
            self.learn(outputs);
        }
        if self.left == 0 {
            (self.rates, self.left) = if self.phases.is_multiple_of(8) {
                (Rates::withholding(self.phases / 8), WITHHELD_CYCLES)
            } else {
                (Rates::any(random), 1 + below(random, 100))
            };
            self.phases += 1;
        }
        self.left -= 1;
        let rates = self.rates;
        self.pins.clear();
        if chance(random, rates.host)
            && let Some(packet) = self.of_host(random)
        {
            let credits = &mut self.host_credits[packet.channel() as usize];
            if *credits > 0 {
                *credits -= 1;
                self.transactions += 1;
                self.pins.put(&Input::Host(packet));
                if chance(random, 10) {
                    let bits = [0, 1, 2, 22, 23, 24, 25, 26, 29];
                    let bit = bits[below(random, bits.len() as u32) as usize];
                    self.pins.spoil_command(bit);
                }
            } else if let HtPacket::Response { tag, .. } = packet {
                self.memory_reads.push_back(tag);
            }
        }
        for channel in HtChannel::ALL {
            let owed = &mut self.owed_by_host[channel as usize];
            if *owed > 0 && chance(random, rates.host_credit) {
                *owed -= 1;
                self.pins.put(&Input::HostCredit(channel));
            }
        }
        for port in 0..LINK_PORTS {
            let neighbour = self.site.topology.neighbour(self.site.node, port as u16);
            if neighbour.is_none() {
                continue;
            }
            let channel = below(random, CHANNELS as u32) as u8;
            if chance(random, rates.link)
                && self.link_credits[port][usize::from(channel)] > 0
                && let Some(packet) = self.of_link(random, port as u16, channel)
            {
                self.transactions += 1;
                self.pins.put(&Input::Link {
                    port: port as u16,
                    channel,
                    packet,
                });
                if chance(random, 3) {
                    // It is dropped: its place stays free, and a response comes another time.
                    self.pins.spoil_crc(port, below(random, 16) as usize);
                    if packet.class() == Class::Response && packet.target == self.site.node {
                        self.remote_reads.push_front(packet.tag);
                    }
                } else {
                    self.link_credits[port][usize::from(channel)] -= 1;
                }
            }
            for channel in 0..CHANNELS {
                if self.owed_by_links[port][channel] > 0 && chance(random, rates.link_credit) {
                    self.owed_by_links[port][channel] -= 1;
                    let (port, channel) = (port as u16, channel as u8);
                    self.pins.put(&Input::LinkCredit { port, channel });
                }
            }
        }
        inputs.extend_from_slice(self.pins.values());
        debug_assert_eq!(inputs.len(), INPUTS);
    }

    fn transactions(&self) -> u64 {
        self.transactions
    }
}
