//! The FIFO against the cycle model's.

use rand_core::Rng;
use sme_sim::families::sme::engine::fifo::Fifos;

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{Source, any_bits, below, chance};
use super::{Bench, EngineSite};
use crate::beat::PacketBeat;
use crate::blocks::fifo::Fifo;
use crate::device::{Clocked, Pins, Wire};
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

type Rtl = Fifo<PacketBeat, 3, 4>;

pub(super) const BENCH: Bench = Bench {
    name: "fifo",
    what: "a FIFO with registered full and empty",
    faults: &[
        "one place more",
        "one place less",
        "is ready when it is full",
        "gives up a packet that is not read",
        "forgets that a packet is read",
        "gives a packet's data from the neighbouring wires",
    ],
    build,
    of,
};

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let depth = 2 + (seed % 6) as u16;
    let rtl = Rtl::new(places(depth, fault).into());
    wired(rtl, depth, false, wires(fault))
}

/// The places of the RTL in the place of one with `depth`.
fn places(depth: u16, fault: Option<&str>) -> u16 {
    match fault {
        Some("one place more") => depth + 1,
        Some("one place less") => depth - 1,
        _ => depth,
    }
}

/// The functions that change a block's inputs, and its outputs.
type Wires = [fn(&mut [Value]); 2];

fn wires(fault: Option<&str>) -> Wires {
    let [mut inputs, mut outputs]: Wires = [|_| (), |_| ()];
    match fault {
        Some("is ready when it is full") => outputs = |values| values[0] = true.into(),
        Some("gives up a packet that is not read") => inputs = |values| values[2] = true.into(),
        Some("forgets that a packet is read") => inputs = |values| values[2] = false.into(),
        Some("gives a packet's data from the neighbouring wires") => {
            outputs = |values| {
                let data = values[2].get(0, 64);
                values[2].set(0, 64, data.rotate_left(1));
            };
        }
        _ => {}
    }
    [inputs, outputs]
}

/// Builds a FIFO of as many places as the HyperTransport port has for writes, each for a packet of
/// the network.
fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let depth = site.spec.host.posted_credits as u16;
    let rtl = Fifo::<PacketBeat, 5, 6>::new(places(depth, fault).into());
    Pair {
        sizes: format!(
            "{depth} places of 160 bits (in the engine, of the HyperTransport port, of 144)"
        ),
        ..wired(rtl, depth, false, wires(fault))
    }
}

/// A block with a FIFO's ports, and the cycle model's FIFO of `depth` places. If `late`, what is
/// written comes a cycle after the write.
pub(super) fn against_model<B: Pins + 'static>(rtl: B, depth: u16, late: bool) -> Pair {
    wired(rtl, depth, late, [|_| (); 2])
}

fn wired<B: Pins + 'static>(rtl: B, depth: u16, late: bool, wires: Wires) -> Pair {
    let [inputs, outputs] = wires;
    let rtl = Miswired::new(Clocked::new(rtl), inputs, outputs);
    let model = Model {
        fifo: Fifos::new(&[depth]),
        late,
        comes: false,
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(rtl),
        model: Box::new(model),
        traffic: Box::new(Load {
            late,
            ..Load::default()
        }),
        sizes: format!("{depth} places"),
    }
}

/// Ports: write, write_data, read; ready, valid, data.
struct Model {
    fifo: Fifos<PacketBeat, 1>,
    late: bool,
    /// Whether the data of the previous cycle's write arrives in this one.
    comes: bool,
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let [write, data, read] = [0, 1, 2].map(|port| inputs[port]);
        if std::mem::take(&mut self.comes) {
            self.fifo.push(0, PacketBeat::of(data), 0);
        }
        self.fifo.latch();
        let (ready, valid) = (self.fifo.is_ready(0), self.fifo.is_valid(0));
        outputs.clear();
        outputs.extend([ready, valid].map(Value::from));
        outputs.push(if valid {
            self.fifo.head(0).value()
        } else {
            Value::default()
        });
        if read.bit(0) && valid {
            self.fifo.pop(0);
        }
        let written = write.bit(0) && ready;
        self.comes = written && self.late;
        if written && !self.late {
            self.fifo.push(0, PacketBeat::of(data), 0);
        }
    }
}

/// Bursts: now more is written than read, now the other way round.
#[derive(Default)]
struct Load {
    source: Source,
    writes: u32,
    reads: u32,
    late: bool,
    /// The offer of the cycle before.
    before: Value,
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        self.source
            .ready(outputs.first().is_some_and(|ready| ready.bit(0)));
        if chance(random, 3) {
            (self.writes, self.reads) = (below(random, 101), below(random, 101));
        }
        if !self.source.is_offering() && chance(random, self.writes) {
            let mut packet = Value::default();
            packet.set(0, 64, any_bits(random));
            packet.set(64, 64, random.next_u64());
            packet.set(128, 32, random.next_u64());
            self.source.offer(packet);
        }
        self.source.drive(Value::default(), inputs);
        if self.late
            && let Some(data) = inputs.last_mut()
        {
            std::mem::swap(data, &mut self.before);
        }
        inputs.push(chance(random, self.reads).into());
    }

    fn transactions(&self) -> u64 {
        self.source.taken
    }
}
