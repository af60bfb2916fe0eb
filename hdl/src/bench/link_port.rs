//! The link port against the cycle model's; its CRC against the bytes of [`Packet::encode`].
//!
//! [`Packet::encode`]: sme_sim::families::sme::engine::Packet::encode

use std::collections::VecDeque;

use rand_core::Rng;
use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::Kind;
use sme_sim::families::sme::engine::link_port::{
    ARRIVAL_CYCLES, LinkPort as CycleModel, LinkPortSpec, Step,
};
use sme_sim::families::sme::engine::wires::{DEPTH, PACKET_FIFOS, PacketFifos, switch_output};
use sme_sim::parts::fabric::CHANNELS;

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::PacketBeat;
use crate::blocks::MAX_PLACES;
use crate::blocks::crc::PacketCrc;
use crate::blocks::link_port::LinkPort;
use crate::blocks::primitive::{Register, Stages};
use crate::device::{Clocked, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

/// The one of the six ports that the cycle model's block plays.
const PORT: u16 = 0;

/// Bandwidth, in bytes for every two cycles: from one cycle a packet to 48. On three of these links
/// there is time to fetch a packet that has begun.
const BANDWIDTHS: [u64; 6] = [8, 48, 1, 32, 16, 12];

pub(super) const BENCH: Bench = Bench {
    name: "link_port",
    what: "a link port: serializes packets, takes part in the link's credits, checks CRCs",
    faults: &[
        "a credit more than places",
        "a credit less than places",
        "a long packet takes a cycle more",
        "short and long packets are confused",
        "the winner's number has one bit",
        "a channel has a place less",
        "a channel begins after reset",
        "the transmitter's CRC begins with zeros",
        "the receiver's CRC begins with zeros",
        "the highest bit of the CRC is not seen",
        "credits of two channels are swapped",
        "wrong packets are received",
        "the channel's lower bit is stuck",
        "what arrives goes through no register before it is checked",
        "what arrives goes through two registers before it is checked",
        "a packet's register is forgotten",
        "the CRC's register is forgotten",
        "a sound packet's register is forgotten",
        "a wrong packet is told of at once",
        "a register of the credits is forgotten",
        "credits go through three registers",
        "a packet is fetched in the cycle in which it begins",
        "a packet is fetched a cycle too late",
        "a packet that has just come is looked for in the memory",
        "packets are fetched, and timed as if not",
        "packets are not fetched, and timed as if",
        "a packet of one cycle leaves its FIFO unnoticed",
    ],
    build,
    of,
};

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let bandwidth = BANDWIDTHS[(seed % 6) as usize];
    let credits = [2, 5, 1, 16, 3, MAX_PLACES][(seed % 6) as usize];
    pair(LinkPortSpec::new(bandwidth, 2, credits), credits, fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let spec = &site.spec;
    let credits = spec.link.channel_credits as u16;
    let (bandwidth, clock) = (spec.link.bytes_per_second, spec.engine.clock.hz());
    let spec = LinkPortSpec::new(bandwidth, clock, credits);
    let (short, long) = (spec.cycles(16), spec.cycles(24));
    Pair {
        sizes: format!(
            "{credits} credits a virtual channel, {short} cycles for 16 bytes, {long} for 24"
        ),
        ..pair(spec, credits, fault)
    }
}

fn pair(spec: LinkPortSpec, credits: u16, fault: Option<&str>) -> Pair {
    let (short, long) = (spec.cycles(16), spec.cycles(24));
    let mut rtl = match fault {
        Some("a credit more than places") => LinkPort::new(credits + 1, short, long),
        Some("a credit less than places") => LinkPort::new(credits.max(2) - 1, short, long),
        Some("a long packet takes a cycle more") => LinkPort::new(credits, short, long + 1),
        Some("short and long packets are confused") => LinkPort::new(credits, long, short),
        _ => LinkPort::new(credits, short, long),
    };
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("the winner's number has one bit") => rtl.arbiter.turn._mask = 1,
        Some("a channel has a place less") => rtl.fifos[2].two = Constant::new(false),
        Some("a channel begins after reset") => rtl.may_begin[2] = Register::new(true),
        Some("the transmitter's CRC begins with zeros") => {
            rtl.out_crc = PacketCrc::with_initial(0);
        }
        Some("the receiver's CRC begins with zeros") => rtl.in_crc = PacketCrc::with_initial(0),
        Some("the highest bit of the CRC is not seen") => {
            inputs = |values| {
                let right = crc(PacketBeat::of(values[5]));
                values[6].set(15, 1, u64::from(right >> 15));
            };
        }
        Some("credits of two channels are swapped") => {
            inputs = |values| {
                let [one, two] = [1, 2].map(|channel| values[2].get(channel, 1));
                values[2].set(1, 1, two);
                values[2].set(2, 1, one);
            };
        }
        Some("wrong packets are received") => {
            outputs = |values| {
                if values[7].bit(0) {
                    values[5] = Value::from(1);
                }
            };
        }
        Some("the channel's lower bit is stuck") => inputs = |values| values[4].set(0, 1, 0),
        Some("what arrives goes through no register before it is checked") => arrive(&mut rtl, 0),
        Some("what arrives goes through two registers before it is checked") => arrive(&mut rtl, 2),
        Some("a packet's register is forgotten") => {
            rtl.arrived_data = Stages::new(0, PacketBeat::default());
        }
        Some("the CRC's register is forgotten") => {
            rtl.difference = Stages::new(0, 0.into());
        }
        Some("a sound packet's register is forgotten") => {
            rtl.accepted_data = Stages::new(0, PacketBeat::default());
        }
        Some("a wrong packet is told of at once") => rtl.wrong = Stages::new(0, false),
        Some("a register of the credits is forgotten") => rtl.returned = Stages::new(1, 0.into()),
        Some("credits go through three registers") => rtl.returned = Stages::new(3, 0.into()),
        Some("a packet is fetched in the cycle in which it begins") => {
            rtl.fetch.was_read = Stages::new(0, 0.into());
        }
        Some("a packet is fetched a cycle too late") => {
            rtl.fetch.was_read = Stages::new(2, 0.into());
        }
        Some("a packet that has just come is looked for in the memory") => {
            rtl.fetch.late = Constant::new(0.into());
        }
        Some("packets are fetched, and timed as if not") => rtl.late = Constant::new(true),
        Some("packets are not fetched, and timed as if") => rtl.late = Constant::new(false),
        Some("a packet of one cycle leaves its FIFO unnoticed") => {
            rtl.several = Constant::new(true);
        }
        _ => (),
    }
    let rtl = Clocked::new(rtl);
    let model = Model {
        port: CycleModel::new(&spec),
        spec,
        fifos: PacketFifos::new(&[DEPTH; PACKET_FIFOS]),
        cycle: 0,
        comes: 0,
        arriving: VecDeque::from([Arrived::default(); ARRIVAL_CYCLES as usize]),
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(Miswired::new(rtl, inputs, outputs)),
        model: Box::new(model),
        traffic: Box::new(Load::new(credits, long)),
        sizes: format!(
            "{credits} places a channel, packets take the link for {short} or {long} cycles"
        ),
    }
}

/// Lets packets go through `count` registers when they arrive.
fn arrive(rtl: &mut LinkPort, count: usize) {
    rtl.arrived = Stages::new(count, false);
    rtl.arrived_on = Stages::new(count, 0.into());
    rtl.arrived_data = Stages::new(count, PacketBeat::default());
    rtl.difference = Stages::new(count, 0.into());
}

/// The CRC of the bytes on the link.
fn crc(packet: PacketBeat) -> u16 {
    packet.packet(0).crc()
}

struct Model {
    port: CycleModel,
    spec: LinkPortSpec,
    fifos: PacketFifos,
    cycle: u64,
    /// The channels whose FIFO the cycle before has written, bit by bit: what, comes in this one.
    comes: u8,
    /// The packets that the link brought in the cycles before: the cycle model leaves it to the
    /// caller to let them count later.
    arriving: VecDeque<Arrived>,
}

/// The inputs from the link in a cycle.
#[derive(Clone, Copy, Default)]
struct Arrived {
    /// The channel of a packet, one-hot.
    on: u64,
    /// The same of one that is sound.
    sound: u64,
    wrong: bool,
    packet: PacketBeat,
    /// The channels with a credit.
    credits: Value,
}

impl Arrived {
    fn new(inputs: &[Value]) -> Self {
        let packet = PacketBeat::of(inputs[5]);
        let is_sound = u64::from(crc(packet)) == inputs[6].low();
        let comes = inputs[3].bit(0);
        Self {
            on: u64::from(comes) << inputs[4].low(),
            sound: u64::from(comes && is_sound) << inputs[4].low(),
            wrong: comes && !is_sound,
            packet,
            credits: inputs[2],
        }
    }
}

impl Model {
    /// The channels for which this holds, bit by bit.
    fn channels(holds: impl Fn(usize) -> bool) -> u8 {
        (0..CHANNELS).fold(0, |bits, channel| {
            bits | u8::from(holds(channel)) << channel
        })
    }
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let fifo = |channel: usize| switch_output(PORT, channel as u8);
        for channel in (0..CHANNELS).filter(|channel| self.comes >> channel & 1 == 1) {
            if self.fifos.next_valid() >> fifo(channel) & 1 == 0 {
                self.port.starts_waiting(channel as u8, self.cycle - 1);
            }
            let packet = PacketBeat::of(inputs[1]).packet(0);
            self.fifos.push(fifo(channel), packet, 0);
        }
        self.fifos.latch();
        let ready = Self::channels(|channel| self.fifos.is_ready(fifo(channel)));
        let waiting = Self::channels(|channel| self.fifos.is_valid(fifo(channel)));
        let Step { began, delivered } =
            (self.port).step(PORT, self.cycle, waiting, &self.spec, &mut self.fifos);
        let begun = began.map_or(0, |(channel, _)| 1u8 << channel);
        let begun_write = began.is_some_and(|(_, c)| c.bytes == Kind::PostedWrite.bytes());
        let delivers = delivered.is_some();
        let (channel, sent) = delivered.map_or((0, PacketBeat::default()), |(channel, held)| {
            let sent = PacketBeat::from(*self.fifos.held(&held));
            self.fifos.release(held);
            (channel, sent)
        });
        let arrived = self.arriving.pop_front().unwrap_or_default();
        outputs.clear();
        outputs.extend([
            u64::from(ready).into(),
            delivers.into(),
            u64::from(channel).into(),
            sent.value(),
            u64::from(crc(sent)).into(),
            arrived.sound.into(),
            arrived.packet.value(),
            arrived.wrong.into(),
            u64::from(begun).into(),
            u64::from(waiting).into(),
            begun_write.into(),
        ]);
        let arriving = self.arriving.back().copied().unwrap_or_default();
        self.arriving.push_back(Arrived::new(inputs));
        outputs.push(arriving.on.into());
        outputs.push(u64::from(arriving.packet.packet(0).target).into());

        self.comes = ready & Self::channels(|channel| inputs[0].bit(channel));
        for channel in 0..CHANNELS {
            if arrived.credits.bit(channel) {
                self.port.credit(channel as u8, &self.spec);
            }
        }
        self.cycle += 1;
    }
}

/// Packets of all kinds; a receiver that returns places now quickly, now slowly, on several
/// channels at once, and at times none on some of them until all are taken; and arriving packets a
/// quarter of which has a wrong CRC.
#[derive(Default)]
struct Load {
    /// Cycles after which all places of all channels are taken, if none is returned.
    until_full: u64,
    /// Cycles for which the rates stay.
    left: u64,
    /// Places that the receiver has not returned.
    taken: [u32; CHANNELS],
    transmit_rate: u32,
    return_rates: [u32; CHANNELS],
    arrival_rate: u32,
    transactions: u64,
}

fn packet(random: &mut Random) -> Value {
    let mut packet = Value::default();
    packet.set(0, 64, any_bits(random));
    packet.set(64, 64, any_bits(random));
    packet.set(128, 32, any_bits(random));
    packet.set(144, 2, random.next_u64());
    PacketBeat::of(packet).carried().value()
}

impl Load {
    /// For a port of so many places per channel, and packets that take the link for `long` cycles
    /// at most.
    fn new(credits: u16, long: u64) -> Self {
        let packets = u64::from(credits) * CHANNELS as u64;
        Self {
            // A fifth more: the FIFO of the winner may be empty.
            until_full: (packets * long * 6 / 5).min(1000),
            ..Self::default()
        }
    }

    /// Draws the pace of everything from now on, and its duration.
    fn change(&mut self, random: &mut Random, withholds: bool) {
        let any = |random: &mut Random| below(random, 101);
        self.arrival_rate = any(random);
        if withholds {
            self.left = self.until_full;
            self.transmit_rate = 100;
            self.return_rates = std::array::from_fn(|_| 50 * below(random, 2));
        } else {
            self.left = 1 + u64::from(below(random, 100));
            self.transmit_rate = any(random);
            self.return_rates = std::array::from_fn(|_| any(random));
        }
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if let [_, sent, _, _, _, received, _, crc_error, begun, ..] = outputs {
            for channel in 0..CHANNELS {
                self.taken[channel] += u32::from(begun.bit(channel));
            }
            let events = [sent, received, crc_error];
            let happened = events.iter().filter(|event| ***event != Value::default());
            self.transactions += happened.count() as u64;
        }
        if self.left == 0 {
            let withholds = outputs.is_empty() || below(random, 4) == 3;
            self.change(random, withholds);
        }
        self.left -= 1;

        let transmits = chance(random, self.transmit_rate);
        inputs.push((u64::from(transmits) << below(random, 4)).into());
        inputs.push(packet(random));
        let mut returned = 0u64;
        for channel in 0..CHANNELS {
            if self.taken[channel] > 0 && chance(random, self.return_rates[channel]) {
                self.taken[channel] -= 1;
                returned |= 1 << channel;
            }
        }
        inputs.push(returned.into());

        let arriving = packet(random);
        let right = crc(PacketBeat::of(arriving));
        let arriving_crc = match below(random, 8) {
            1 => right ^ 1 << below(random, 16),
            2 => random.next_u32() as u16,
            _ => right,
        };
        inputs.push(chance(random, self.arrival_rate).into());
        inputs.push(u64::from(below(random, 4)).into());
        inputs.push(arriving);
        inputs.push(u64::from(arriving_crc).into());
    }

    fn transactions(&self) -> u64 {
        self.transactions
    }
}
