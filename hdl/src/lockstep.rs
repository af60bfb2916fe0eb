//! Two devices under the same traffic, every output compared in every cycle.

pub mod random;
pub mod shortest;
pub mod text;
pub mod vcd;

use std::collections::VecDeque;

use random::{Random, Words};

use crate::device::{Device, Port, validity};
use crate::value::Value;

/// Cycles kept before a mismatch.
pub const HISTORY_CYCLES: usize = 200;

/// The source of inputs, cycle by cycle.
pub trait Traffic {
    /// The inputs of the next cycle, in the order of the device's ports. `outputs` are those of
    /// the cycle before, empty in the first: who offered something sees there whether it was
    /// taken. With words of zero nothing is sent, and no reader is ready.
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>);

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
    /// The sizes that the seed has chosen, for people: "5 places".
    pub sizes: String,
}

/// The values on the ports in a cycle.
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
    /// The output that differs.
    pub port: Port,
    /// The value of the RTL.
    pub rtl: Value,
    /// The value of the model.
    pub model: Value,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Cycles that were compared.
    pub cycles: u64,
    /// Packets, credits and the like that went in or came out.
    pub transactions: u64,
    /// The first difference; the run ended there.
    pub mismatch: Option<Mismatch>,
    /// The last [`HISTORY_CYCLES`] cycles, or as many as were asked for.
    pub history: VecDeque<Cycle>,
    /// The words that the traffic has drawn in each cycle.
    pub words: Vec<Words>,
}

impl Outcome {
    /// Adds a cycle to the history, in the place of the oldest where it is long enough.
    fn remember(&mut self, most: usize, [inputs, rtl, model]: [&[Value]; 3]) {
        let full = self.history.len() == most;
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
        self.compare(cycles, Random::seeded(seed), HISTORY_CYCLES)
    }

    /// Runs for as many cycles as there are `words` for, or until an output differs; the traffic
    /// draws these. At most `history` cycles are kept.
    pub fn replay(&mut self, words: Vec<Words>, history: usize) -> Outcome {
        self.compare(words.len() as u64, Random::replay(words), history)
    }

    fn compare(&mut self, cycles: u64, mut random: Random, history: usize) -> Outcome {
        let ports = self.model.outputs();
        let validity = validity(&ports);
        let (mut inputs, mut rtl, mut model) = (Vec::new(), Vec::new(), Vec::new());
        let mut outcome = Outcome {
            cycles: 0,
            transactions: 0,
            mismatch: None,
            history: VecDeque::new(),
            words: Vec::new(),
        };
        for cycle in 0..cycles {
            inputs.clear();
            random.begin_cycle();
            self.traffic.inputs(&mut random, &model, &mut inputs);
            self.rtl.cycle(&inputs, &mut rtl);
            self.model.cycle(&inputs, &mut model);
            outcome.cycles += 1;
            outcome.remember(history, [&inputs, &rtl, &model]);
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
        outcome.words = random.drawn();
        outcome
    }
}
