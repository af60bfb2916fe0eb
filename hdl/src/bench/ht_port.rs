//! The HyperTransport port against the cycle model's.

use rand_core::Rng;
use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::ht_port::{HtPort as CycleModel, HtPortSpec};
use sme_sim::families::sme::engine::wires::{
    DEPTH, HOST_FIFOS, HT_RECEIVE, HT_RECEIVE_RESPONSE, HT_TRANSMIT, HostFifos, REQUESTER_POSTED,
};
use sme_sim::families::sme::engine::{HtChannel, HtPacket, Kind};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::{DoublewordsBeat, HtBeat};
use crate::blocks::arbiter::RoundRobin;
use crate::blocks::credits::Credits;
use crate::blocks::fifo::Fifo;
use crate::blocks::ht_port::HtPort;
use crate::blocks::primitive::Register;
use crate::blocks::read_order::ReadOrder;
use crate::device::{Clocked, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "ht_port",
    what: "the HyperTransport port: receive buffers, transmit FIFOs and their credits",
    faults: &[
        "the host has a place more",
        "a receive buffer has a place less",
        "a transmit FIFO has a place less",
        "responses go first after reset",
        "another packet is sent than is taken",
        "a packet is sent with another's data",
        "a read passes a write on its way to the host",
        "reads wait for a write too many",
        "a read passes a write that is queued",
        "a read counts a write that came later",
        "error responses are lost",
        "error responses are taken for data",
        "what is no access is one of the node's own memory",
        "a byte mask is always that of the first eight bytes",
        "address extensions have another command",
        "reads go to the host as not coherent",
        "credits of writes and reads are swapped",
        "requester and responder share a ready",
    ],
    build,
    of,
};

/// Credits of posted writes, reads and responses take turns.
const CREDITS: [[u16; 3]; 5] = [[2, 1, 3], [32, 32, 32], [1, 1, 1], [5, 17, 8], [3, 4, 2]];

/// Writes that were counted before the first cycle of every other run: the counters soon overflow.
const COUNTED: u16 = u16::MAX - 100;

/// Input `host_data`, and `host_valid` before it.
const HOST_DATA: usize = 1;
/// The first of the inputs `posted_ready`, `nonposted_ready`, `memory_ready`.
const READERS: usize = 3;
/// The first of the inputs `write_valid`, `write_data`, and so on.
const WRITERS: usize = 6;
/// The first of the outputs `write_ready`, `read_ready`, `answer_ready`.
const READY: usize = 8;
/// Output `host_out_valid`.
const HOST_OUT: usize = 11;

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let credits = CREDITS[(seed % CREDITS.len() as u64) as usize];
    let counted = if seed % 2 == 1 { COUNTED } else { 0 };
    pair(credits, counted, fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let host = &site.spec.host;
    let credits = [
        host.posted_credits,
        host.nonposted_credits,
        host.response_credits,
    ];
    let credits = credits.map(|places| places as u16);
    let [posted, nonposted, responses] = credits;
    Pair {
        sizes: format!(
            "{posted} places for posted writes, {nonposted} for reads, {responses} for responses"
        ),
        ..pair(credits, 0, fault)
    }
}

/// After `counted` writes.
fn pair(credits: [u16; 3], counted: u16, fault: Option<&str>) -> Pair {
    let count = |more: u16| Register::new(u64::from(counted.wrapping_add(more)).into());
    let mut rtl = HtPort::new(credits);
    (rtl.received, rtl.queued) = (count(0), count(0));
    rtl.order = ReadOrder::after(counted);
    let [mut inputs, mut outputs]: [fn(&mut [Value]); 2] = [|_| (), |_| ()];
    match fault {
        Some("the host has a place more") => {
            rtl.places[1] = Credits::new(credits[1] + 1);
        }
        Some("a receive buffer has a place less") => {
            rtl.receive[0] = Fifo::new(usize::from(credits[0] - 1).max(1));
        }
        Some("a transmit FIFO has a place less") => rtl.transmit[2].two = Constant::new(false),
        Some("responses go first after reset") => {
            rtl.arbiter = RoundRobin::new(1);
            rtl.choosers = [0, 2].map(RoundRobin::new);
        }
        Some("another packet is sent than is taken") => rtl.choosers[0] = RoundRobin::new(0),
        Some("a packet is sent with another's data") => rtl.choosers[1] = RoundRobin::new(2),
        Some("a read passes a write on its way to the host") => {
            rtl.order = ReadOrder::after(counted.wrapping_add(1));
        }
        Some("reads wait for a write too many") => rtl.order.gone_next = count(0),
        Some("a read passes a write that is queued") => rtl.queued = count(u16::MAX),
        Some("a read counts a write that came later") => rtl.received = count(1),
        Some("error responses are lost") => {
            inputs = |values| {
                let packet = DoublewordsBeat::from_value(values[HOST_DATA]);
                if packet.fields().get_value_kind() == 3 {
                    values[HOST_DATA - 1] = false.into();
                }
            };
        }
        Some("error responses are taken for data") => {
            rtl.decoder.error_response = Constant::new((Kind::ReadResponse as u64).into());
        }
        Some("what is no access is one of the node's own memory") => {
            rtl.decoder.nowhere = Constant::new(0.into());
        }
        Some("a byte mask is always that of the first eight bytes") => {
            inputs = |values| {
                let first = DoublewordsBeat::MASK;
                let mask = values[HOST_DATA].get(first, 8);
                for word in 0..4 {
                    values[HOST_DATA].set(first + 8 * word, 8, mask);
                }
            };
        }
        Some("address extensions have another command") => {
            rtl.encoder.extension = Constant::new(0b11_1111.into());
        }
        Some("reads go to the host as not coherent") => {
            let mut read = rtl.encoder.sized_read.val();
            read.set_value_coherent(0.into());
            rtl.encoder.sized_read = Constant::new(read);
        }
        Some("credits of writes and reads are swapped") => {
            outputs = |values| {
                let credit = values[0].low();
                values[0] = (credit & 4 | credit >> 1 & 1 | (credit & 1) << 1).into();
            };
        }
        Some("requester and responder share a ready") => {
            inputs = |values| values[READERS] = values[READERS + 2];
        }
        _ => (),
    }
    let rtl = Miswired::new(Clocked::new(rtl), inputs, outputs);
    let mut model = Model {
        spec: HtPortSpec { credits },
        port: CycleModel::new(&HtPortSpec { credits }),
        fifos: fifos(credits),
    };
    model.count(counted);
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(rtl),
        model: Box::new(model),
        traffic: Box::new(Load {
            credits: credits.map(u32::from),
            // All three at once want to be the first.
            writes: [100; 3],
            ..Load::default()
        }),
        sizes: format!(
            "credits for {} writes, {} reads, {} responses; {counted} writes went before",
            credits[0], credits[1], credits[2]
        ),
    }
}

/// The readers have a place each, taken or not, as their *ready* input says.
fn fifos(credits: [u16; 3]) -> HostFifos {
    let mut depths = [1; HOST_FIFOS];
    depths[HT_RECEIVE..HT_RECEIVE + 3].copy_from_slice(&credits);
    depths[HT_TRANSMIT..HT_TRANSMIT + 3].fill(DEPTH);
    HostFifos::new(&depths)
}

/// The cycle model's port.
struct Model {
    spec: HtPortSpec,
    port: CycleModel,
    fifos: HostFifos,
}

impl Model {
    /// Lets `writes` pass in both directions, and a response at the end, so that everything but
    /// the counters is as after reset.
    fn count(&mut self, writes: u16) {
        let write = HtBeat::from(HtPacket::Write {
            address: 0,
            data: 0,
            enables: 0,
            coherent: false,
            trace: 0,
        });
        let response = HtBeat::from(HtPacket::Response {
            extra_words: 0,
            data: 0,
            single: false,
            tag: 0,
            error: false,
            trace: 0,
        });
        let beats = (0..writes).map(|_| write).chain([response]);
        for packet in beats.map(|beat| beat.packet(0)) {
            let channel = packet.channel();
            self.port.receive(packet, &mut self.fifos);
            self.port.queue(packet, &mut self.fifos);
            self.fifos.latch();
            self.forward(true);
            self.port.transmit(&mut self.fifos);
            self.port.credit(channel, &self.spec);
            self.empty_readers();
        }
    }

    /// The channels whose first packet goes on, bit by bit; the responder takes its own.
    fn forward(&mut self, memory_ready: bool) -> u8 {
        let mut freed = self.port.forward(&mut self.fifos);
        if memory_ready && self.fifos.is_valid(HT_RECEIVE_RESPONSE) {
            self.fifos.pop(HT_RECEIVE_RESPONSE);
            freed |= 4;
        }
        freed
    }

    fn empty_readers(&mut self) {
        for reader in REQUESTER_POSTED..REQUESTER_POSTED + 2 {
            if self.fifos.next_valid() >> reader & 1 == 1 {
                self.fifos.pop(reader);
            }
        }
    }
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let taken = HtBeat::default().packet(0);
        for reader in 0..2 {
            if !inputs[READERS + reader].bit(0) {
                self.fifos.push(REQUESTER_POSTED + reader, taken, 0);
            }
        }
        self.fifos.latch();

        outputs.clear();
        outputs.push(Value::default());
        for channel in 0..3 {
            let fifo = HT_RECEIVE + channel;
            let valid = self.fifos.is_valid(fifo);
            let first = valid.then(|| HtBeat::from(*self.fifos.head(fifo)));
            outputs.push(valid.into());
            outputs.push(first.unwrap_or_default().value());
            if channel == HtChannel::NonPosted as usize {
                let before = if valid { self.fifos.side(fifo) } else { 0 };
                outputs.push(u64::from(before).into());
            }
        }
        let ready: [bool; 3] =
            std::array::from_fn(|channel| self.fifos.is_ready(HT_TRANSMIT + channel));
        outputs.extend(ready.map(Value::from));
        outputs[0] = u64::from(self.forward(inputs[READERS + 2].bit(0))).into();
        let sent = self.port.transmit(&mut self.fifos);
        outputs.push(sent.is_some().into());
        outputs.push(sent.map(DoublewordsBeat::from).unwrap_or_default().value());
        self.empty_readers();

        // A read that comes with a write is the first of the two.
        for channel in [1, 0, 2] {
            let [valid, data] = [0, 1].map(|port| inputs[WRITERS + 2 * channel + port]);
            if valid.bit(0) && ready[channel] {
                self.port.queue(HtBeat::of(data).packet(0), &mut self.fifos);
            }
        }
        if inputs[HOST_DATA - 1].bit(0) {
            let packet = DoublewordsBeat::of(inputs[HOST_DATA]).doublewords();
            self.port.receive(packet.decode(), &mut self.fifos);
        }
        for channel in HtChannel::ALL {
            if inputs[HOST_DATA + 1].bit(channel as usize) {
                self.port.credit(channel, &self.spec);
            }
        }
    }
}

/// A packet of `channel` with anything in it.
pub(super) fn any_packet(random: &mut Random, channel: HtChannel) -> HtPacket {
    let address = any_bits(random);
    let data = any_bits(random);
    let enables = random.next_u32() as u8;
    let tag = below(random, 32) as u8;
    let [flag, single] = [50, 30].map(|percent| chance(random, percent));
    let trace = 0;
    match channel {
        HtChannel::Posted => HtPacket::Write {
            address,
            data,
            enables,
            coherent: flag,
            trace,
        },
        HtChannel::NonPosted => HtPacket::Read {
            extra_words: 0,
            address,
            enables,
            tag,
            trace,
        },
        HtChannel::Response => HtPacket::Response {
            extra_words: 0,
            data,
            single,
            tag,
            error: flag,
            trace,
        },
    }
}

/// A packet of `channel` in doublewords, or what is nearly one.
fn any_doublewords(random: &mut Random, channel: HtChannel) -> DoublewordsBeat {
    let mut doublewords = any_packet(random, channel).encode();
    let (mask, bits) = (random.next_u32(), any_bits(random));
    match below(random, 8) {
        0 => doublewords.mask = mask,
        // Everything but the upper half of what it says that it is, which leaves the channel.
        1 => doublewords.command = doublewords.command & 0x38 | bits & !0x38,
        // Another size.
        2 => doublewords.command ^= bits & (0xf << 22 | 1 << 26 | 0b111),
        // A packet that is no access.
        3 if channel == HtChannel::NonPosted => {
            doublewords.command &= !0x3f;
            doublewords.command |= [0b00_0000, 0b00_1101, 0b11_1101][below(random, 3) as usize];
        }
        3 if channel == HtChannel::Posted => {
            doublewords.command &= !0x3f;
            doublewords.command |= [0b11_1010, 0b11_1100, 0b10_0101][below(random, 3) as usize];
        }
        _ => {}
    }
    doublewords.into()
}

/// The host sends while it has credits and gives them back when it likes; every reader and writer
/// is now busy, now slow.
#[derive(Default)]
struct Load {
    /// The packets that the host may still send.
    credits: [u32; 3],
    /// Credits that the host has not given back.
    held: [u32; 3],
    writers: [Source; 3],
    /// In percent: the host sends, gives a credit back, of each channel.
    host: [u32; 3],
    returns: [u32; 3],
    readers: [u32; 3],
    writes: [u32; 3],
    sent: u64,
}

impl Load {
    fn observe(&mut self, outputs: &[Value]) {
        if outputs.is_empty() {
            return;
        }
        for channel in 0..3 {
            self.credits[channel] += u32::from(outputs[0].bit(channel));
            self.writers[channel].ready(outputs[READY + channel].bit(0));
        }
        if outputs[HOST_OUT].bit(0) {
            let packet = DoublewordsBeat::of(outputs[HOST_OUT + 1]).doublewords();
            self.held[packet.channel() as usize] += 1;
            self.sent += 1;
        }
    }
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        self.observe(outputs);
        for loads in [
            &mut self.host,
            &mut self.returns,
            &mut self.readers,
            &mut self.writes,
        ] {
            for load in loads {
                if chance(random, 2) {
                    *load = below(random, 121).saturating_sub(10).min(100);
                }
            }
        }

        let channel = HtChannel::ALL[below(random, 3) as usize];
        let index = channel as usize;
        let sends = self.credits[index] > 0 && chance(random, self.host[index]);
        self.credits[index] -= u32::from(sends);
        inputs.push(sends.into());
        inputs.push(any_doublewords(random, channel).value());

        let mut returned = 0;
        for channel in 0..3 {
            if self.held[channel] > 0 && chance(random, self.returns[channel]) {
                self.held[channel] -= 1;
                returned |= 1 << channel;
            }
        }
        inputs.push(Value::from(returned));
        inputs.extend(self.readers.map(|load| Value::from(chance(random, load))));
        for channel in HtChannel::ALL {
            let writer = &mut self.writers[channel as usize];
            let packet = HtBeat::from(any_packet(random, channel)).value();
            if !writer.is_offering() && chance(random, self.writes[channel as usize]) {
                writer.offer(packet);
            }
            writer.drive(packet, inputs);
        }
    }

    fn transactions(&self) -> u64 {
        self.sent
    }
}
