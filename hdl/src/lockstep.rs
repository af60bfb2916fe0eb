//! Two devices under the same traffic, every output compared in every cycle.

pub mod shortest;
pub mod vcd;

use std::collections::VecDeque;

use rand_core::SeedableRng;
use rand_pcg::Pcg32;

use crate::device::{Device, Port, validity};
use crate::value::Value;

/// Cycles kept before a mismatch.
pub const HISTORY_CYCLES: usize = 200;

/// What is put on the inputs, cycle by cycle.
pub trait Traffic {
    /// The inputs of the next cycle, in the order of the device's ports. `outputs` are those of
    /// the cycle before, empty in the first: who offered something sees there whether it was
    /// taken.
    fn inputs(&mut self, random: &mut Pcg32, outputs: &[Value], inputs: &mut Vec<Value>);

    /// Packets, credits and the like that went in or came out so far.
    fn transactions(&self) -> u64;
}

/// A block's RTL, its cycle model, and traffic for both.
pub struct Pair {
    /// The RTL.
    pub rtl: Box<dyn Device>,
    /// The cycle model. The last of the RTL's outputs, which are there for observers, may be
    /// missing here; they are not compared.
    pub model: Box<dyn Device>,
    /// The traffic.
    pub traffic: Box<dyn Traffic>,
}

/// What was on the ports in a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// On the inputs.
    pub inputs: Vec<Value>,
    /// On the RTL's outputs.
    pub rtl: Vec<Value>,
    /// On the model's outputs.
    pub model: Vec<Value>,
}

/// An output that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// In which cycle, from 0.
    pub cycle: u64,
    /// Which output.
    pub port: Port,
    /// What the RTL shows.
    pub rtl: Value,
    /// What the model shows.
    pub model: Value,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Cycles that were compared.
    pub cycles: u64,
    /// Packets, credits and the like that went in or came out.
    pub transactions: u64,
    /// The first difference; the run ended there.
    pub mismatch: Option<Mismatch>,
    /// The last [`HISTORY_CYCLES`] cycles.
    pub history: VecDeque<Cycle>,
}

impl Outcome {
    /// Adds a cycle to the history, in the place of the oldest where it is long enough.
    fn remember(&mut self, inputs: &[Value], rtl: &[Value], model: &[Value]) {
        let full = self.history.len() == HISTORY_CYCLES;
        let oldest = full.then(|| self.history.pop_front()).flatten();
        let mut cycle = oldest.unwrap_or_default();
        for (kept, values) in [
            (&mut cycle.inputs, inputs),
            (&mut cycle.rtl, rtl),
            (&mut cycle.model, model),
        ] {
            kept.clear();
            kept.extend_from_slice(values);
        }
        self.history.push_back(cycle);
    }
}

impl Pair {
    /// Runs for `cycles`, or until an output differs. The same seed gives the same traffic.
    pub fn run(&mut self, cycles: u64, seed: u64) -> Outcome {
        let mut random = Pcg32::seed_from_u64(seed);
        let ports = self.model.outputs();
        let validity = validity(&ports);
        let (mut inputs, mut rtl, mut model) = (Vec::new(), Vec::new(), Vec::new());
        let mut outcome = Outcome {
            cycles: 0,
            transactions: 0,
            mismatch: None,
            history: VecDeque::new(),
        };
        for cycle in 0..cycles {
            inputs.clear();
            self.traffic.inputs(&mut random, &model, &mut inputs);
            self.rtl.cycle(&inputs, &mut rtl);
            self.model.cycle(&inputs, &mut model);
            outcome.cycles += 1;
            outcome.remember(&inputs, &rtl, &model);
            let differs = (0..ports.len()).find(|&port| {
                let means_anything =
                    validity[port].is_none_or(|valid| model[valid] != Value::default());
                means_anything && rtl[port] != model[port]
            });
            if let Some(port) = differs {
                outcome.mismatch = Some(Mismatch {
                    cycle,
                    port: ports[port].clone(),
                    rtl: rtl[port],
                    model: model[port],
                });
                break;
            }
        }
        outcome.transactions = self.traffic.transactions();
        outcome
    }
}
