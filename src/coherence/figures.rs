//! The figures of the paper that show throughputs: what each of their lines is, simulated or
//! predicted, and what the text says of it.
//!
//! Drawn by `sme coherence curves`. The paper prints no numbers with its curves: the published
//! lines are the factors of its text, times a simulated line. Throughputs are 10^9 bytes per
//! second.

use std::num::NonZero;

use super::bench::{Bench, BenchError};
use super::model::{self, Chunks, Flush, Ports, PredictError, Prediction};
use super::point::{Node, What};
use super::table::{Row, Table, TableError};
use super::transfer::{Direction, Home, Transfer};
use super::transition::{
    Access, CoreDistance, Curve, Holder, LocalCopy, State, Transition, TransitionError, Variant,
};

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its number in the paper.
    pub number: u32,
    /// Its title: the accesses or transfers that it shows.
    pub title: &'static str,
    /// The node that it was measured on.
    pub node: Node,
    /// The thing whose size the x axis has: `buffer` or `message`.
    pub size_of: &'static str,
    /// Its lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, unique within a figure.
    pub name: &'static str,
    /// Where its throughputs come from.
    pub source: Source,
}

/// Where throughputs come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A simulation.
    Simulated(What),
    /// The model of a message (Eq. 1 to 3), from simulated accesses.
    Message(Overlap),
    /// The model of the receiver's copy, from simulated accesses.
    Copy(Ports),
    /// The paper's text: a line of this figure, by its index, so many times; over these sizes in
    /// bytes.
    Published {
        /// The index.
        of: usize,
        /// The factor.
        times: f64,
        /// The smallest size.
        from: u64,
        /// The largest.
        to: u64,
    },
}

/// The overlap of the two copies of a message (Fig. 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Not at all.
    Sequential,
    /// By Eq. 1.
    Pipelined,
    /// All along.
    Parallel,
}

impl Source {
    /// Returns the word for it in tables: `simulated`, `predicted` or `published`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulated(_) => "simulated",
            Self::Message(_) | Self::Copy(_) => "predicted",
            Self::Published { .. } => "published",
        }
    }

    /// The experiments that it takes.
    fn needs(self) -> Vec<What> {
        let passes = |steps: &[Transition]| {
            let pass = |&step| What::Pass(Curve::plain(step, CoreDistance::Socket));
            steps.iter().map(pass).collect()
        };
        match self {
            Self::Simulated(what) => vec![what],
            Self::Message(_) => passes(&STEPS),
            Self::Copy(_) => passes(&STEPS[2..]),
            Self::Published { .. } => Vec::new(),
        }
    }
}

/// The accesses of a message (Table II).
const STEPS: [Transition; 4] = [
    Transition::LHM,
    Transition::SHS,
    Transition::LMM,
    Transition::SHM,
];

/// Why a line has no throughput.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The simulated accesses are no table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The model does not say.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// The message has no bytes.
    #[error("a message of no bytes")]
    Empty,
}

impl Figure {
    /// The experiments that it takes, each once.
    pub fn needs(&self) -> Vec<What> {
        let mut all: Vec<What> = Vec::new();
        for what in self.lines.iter().flat_map(|line| line.source.needs()) {
            if !all.contains(&what) {
                all.push(what);
            }
        }
        all
    }

    /// Returns whether a machine can have it.
    ///
    /// # Errors
    /// [`BenchError::Lacks`] if it has no such core, or no such state of a line.
    pub fn fits(&self, bench: &Bench) -> Result<(), BenchError> {
        self.needs().into_iter().try_for_each(|what| match what {
            What::Pass(curve) => bench.has(curve),
            What::ReceiverCopy(holder) | What::SenderCopy(holder, _) => bench.has_other(holder),
            What::Transfer(transfer) => bench.has_other(transfer.placement.into()),
        })
    }

    /// The throughput of each line at one size, from those of the experiments, in the order of
    /// [`Self::needs`]; none where a published line does not go that far.
    ///
    /// # Errors
    /// [`FigureError`]
    pub fn rates(&self, bytes: u64, measured: &[f64]) -> Result<Vec<Option<f64>>, FigureError> {
        let needs = self.needs();
        let of = |what: What| {
            let found = needs.iter().position(|&known| known == what);
            found.and_then(|index| measured.get(index).copied())
        };
        let mut rates: Vec<Option<f64>> = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let rate = match line.source {
                Source::Simulated(what) => of(what),
                Source::Message(overlap) => {
                    let passes = line.source.needs().into_iter().map(of);
                    match passes.collect::<Option<Vec<f64>>>() {
                        Some(passes) => Some(message(overlap, bytes, &passes)?),
                        None => None,
                    }
                }
                Source::Copy(ports) => match line.source.needs()[..] {
                    [load, store] => of(load)
                        .zip(of(store))
                        .map(|(load, store)| ports.copy_gb_per_s(load, store)),
                    _ => None,
                },
                Source::Published {
                    of,
                    times,
                    from,
                    to,
                } => {
                    let is_there = (from..=to).contains(&bytes);
                    let base = rates.get(of).copied().flatten();
                    base.filter(|_| is_there).map(|base| times * base)
                }
            };
            rates.push(rate);
        }
        Ok(rates)
    }
}

/// The prediction for a message in chunks of Open MPI's, from the throughputs of [`STEPS`].
fn message(overlap: Overlap, bytes: u64, passes: &[f64]) -> Result<f64, FigureError> {
    let rows = STEPS.iter().zip(passes).map(|(&step, &rate)| {
        let curve = Curve::plain(step, CoreDistance::Socket);
        Row::new("simulated", curve, bytes, rate)
    });
    let table = Table::new(rows.collect::<Vec<_>>())?;
    let size = |bytes| NonZero::new(bytes).ok_or(FigureError::Empty);
    let chunk = Transfer::of_open_mpi(CoreDistance::Socket, bytes).chunk_bytes;
    let chunks = Chunks::new(size(bytes)?, size(chunk)?);
    let Prediction {
        sequential_gb_per_s,
        parallel_gb_per_s,
        pipelined_gb_per_s,
        ..
    } = model::Transfer::of_paper(CoreDistance::Socket).predict(&table, chunks)?;
    Ok(match overlap {
        Overlap::Sequential => sequential_gb_per_s,
        Overlap::Pipelined => pipelined_gb_per_s,
        Overlap::Parallel => parallel_gb_per_s,
    })
}

/// All sizes, of a statement of the text that is not limited to some.
const ALL: (u64, u64) = (0, u64::MAX);

fn simulated(name: &'static str, what: What) -> Line {
    let source = Source::Simulated(what);
    Line { name, source }
}

fn pass(name: &'static str, curve: Curve) -> Line {
    simulated(name, What::Pass(curve))
}

fn transfer(name: &'static str, transfer: Transfer) -> Line {
    simulated(name, What::Transfer(transfer))
}

fn published(name: &'static str, of: usize, times: f64, (from, to): (u64, u64)) -> Line {
    let source = Source::Published {
        of,
        times,
        from,
        to,
    };
    Line { name, source }
}

/// All figures with throughputs.
///
/// # Errors
/// [`TransitionError`] if one is of a curve that there is not.
pub fn all() -> Result<Vec<Figure>, TransitionError> {
    Ok(vec![
        misses()?,
        model_of_message(),
        model_of_copy(),
        reuse(),
        remote_flush()?,
        past_alone(),
        past_whole(),
        shared_flush()?,
        owned(),
        direction(),
    ])
}

fn misses() -> Result<Figure, TransitionError> {
    let mut lines = Vec::new();
    for (name, access, state) in [
        ("load, modified", Access::Load, State::Modified),
        ("load, exclusive", Access::Load, State::Exclusive),
        ("load, shared", Access::Load, State::Shared),
        ("load, in memory", Access::Load, State::Invalid),
        ("store, modified", Access::Store, State::Modified),
        ("store, exclusive", Access::Store, State::Exclusive),
        ("store, shared", Access::Store, State::Shared),
        ("store, in memory", Access::Store, State::Invalid),
    ] {
        let miss = Transition::new(access, LocalCopy::Miss, state)?;
        lines.push(pass(name, Curve::plain(miss, CoreDistance::Socket)));
    }
    Ok(Figure {
        number: 2,
        title: "Loads and stores that miss, within a socket",
        node: Node::Intel,
        size_of: "buffer",
        lines,
    })
}

fn model_of_message() -> Figure {
    let line = |name, overlap| Line {
        name,
        source: Source::Message(overlap),
    };
    Figure {
        number: 4,
        title: "The model of a message, and the transfer",
        node: Node::Intel,
        size_of: "message",
        lines: vec![
            line("parallel", Overlap::Parallel),
            line("pipelined", Overlap::Pipelined),
            line("sequential", Overlap::Sequential),
            transfer("transfer", Transfer::of_open_mpi(CoreDistance::Socket, 8)),
        ],
    }
}

fn model_of_copy() -> Figure {
    let line = |name, ports| Line {
        name,
        source: Source::Copy(ports),
    };
    let on_socket = |transition| Curve::plain(transition, CoreDistance::Socket);
    Figure {
        number: 5,
        title: "The receiver's copy, and its accesses",
        node: Node::Intel,
        size_of: "buffer",
        lines: vec![
            pass("load", on_socket(Transition::LMM)),
            pass("store", on_socket(Transition::SHM)),
            line("parallel", Ports::Separate),
            line("sequential", Ports::Shared),
            simulated("copy", What::ReceiverCopy(Holder::Socket)),
            published("0.8 x parallel", 2, 0.8, (0, 128 << 10)),
            published("1.1 x sequential", 3, 1.1, (256 << 10, u64::MAX)),
        ],
    }
}

fn reuse() -> Figure {
    let line = |name, reuses| {
        let plain = Transfer::of_open_mpi(CoreDistance::Socket, 8);
        transfer(name, Transfer { reuses, ..plain })
    };
    Figure {
        number: 6,
        title: "Buffers of the application that are used again",
        node: Node::Intel,
        size_of: "message",
        lines: vec![
            line("both", (true, true)),
            line("receiver's", (false, true)),
            line("sender's", (true, false)),
            line("none", (false, false)),
        ],
    }
}

fn remote_flush() -> Result<Figure, TransitionError> {
    let plain = Curve::plain(Transition::LMM, CoreDistance::Remote);
    Ok(Figure {
        number: 8,
        title: "Loads that miss modified lines, across sockets",
        node: Node::Intel,
        size_of: "buffer",
        lines: vec![
            pass("not flushed", plain),
            pass("flushed", plain.with(Variant::Flushed)?),
            published("1.1 x not flushed", 0, 1.1, ALL),
            published("2 x not flushed", 0, 2.0, ALL),
        ],
    })
}

fn past_alone() -> Figure {
    let line = |name, flush| simulated(name, What::SenderCopy(Holder::Remote, flush));
    Figure {
        number: 9,
        title: "The sender's copy, across sockets",
        node: Node::Intel,
        size_of: "buffer",
        lines: vec![
            line("plain", Flush::None),
            line("with clflush", Flush::Sender),
            line("non-temporal", Flush::NonTemporal),
            published("0.7 x plain", 0, 0.7, ALL),
        ],
    }
}

fn past_whole() -> Figure {
    let line = |name, flush, home| {
        let plain = Transfer::of_open_mpi(CoreDistance::Remote, 8);
        let with = Transfer {
            flush,
            home,
            ..plain
        };
        transfer(name, with)
    };
    Figure {
        number: 10,
        title: "Transfers with non-temporal stores, across sockets",
        node: Node::Intel,
        size_of: "message",
        lines: vec![
            line("plain", Flush::None, Home::Sender),
            line("non-temporal, at sender", Flush::NonTemporal, Home::Sender),
            line(
                "non-temporal, at receiver",
                Flush::NonTemporal,
                Home::Receiver,
            ),
            published("0.5 x plain", 0, 0.5, ALL),
        ],
    }
}

fn shared_flush() -> Result<Figure, TransitionError> {
    let plain = Curve::plain(Transition::SHS, CoreDistance::Remote);
    let large = (128 << 10, u64::MAX);
    Ok(Figure {
        number: 12,
        title: "Stores that hit shared lines, across sockets",
        node: Node::Intel,
        size_of: "buffer",
        lines: vec![
            pass("not flushed", plain),
            pass("flushed", plain.with(Variant::Flushed)?),
            published("1.05 x not flushed", 0, 1.05, large),
            published("1.1 x not flushed", 0, 1.1, large),
        ],
    })
}

fn owned() -> Figure {
    let on_socket = |transition| Curve::plain(transition, CoreDistance::Socket);
    Figure {
        number: 13,
        title: "Stores that hit, within a die",
        node: Node::Amd,
        size_of: "buffer",
        lines: vec![
            pass("modified", on_socket(Transition::SHM)),
            pass("shared", on_socket(Transition::SHS)),
            pass("owned", on_socket(Transition::SHO)),
            published("shared / 3", 1, 1.0 / 3.0, ALL),
        ],
    }
}

fn direction() -> Figure {
    let line = |name, direction| {
        let plain = Transfer::of_open_mpi(CoreDistance::Socket, 8);
        transfer(name, Transfer { direction, ..plain })
    };
    Figure {
        number: 14,
        title: "Transfers by the direction of a ring, within a die",
        node: Node::Amd,
        size_of: "message",
        lines: vec![
            line("the same way", Direction::Same),
            line("alternating", Direction::Alternating),
            published("1.05 x the same way", 0, 1.05, ALL),
            published("1.5 x the same way", 0, 1.5, ALL),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn figures_are_those_of_the_paper_and_their_lines_are_told_apart() {
        let all = all().unwrap();
        let numbers: Vec<u32> = all.iter().map(|figure| figure.number).collect();
        assert_eq!(numbers, [2, 4, 5, 6, 8, 9, 10, 12, 13, 14]);
        for figure in &all {
            let names: BTreeSet<&str> = figure.lines.iter().map(|line| line.name).collect();
            assert_eq!(names.len(), figure.lines.len(), "{}", figure.title);
        }
    }

    /// Every line is what its experiments say: Fig. 4 by Eq. 1 with one chunk and with two, Fig. 5
    /// with its factors.
    #[test]
    fn lines_follow_from_experiments() {
        let all = all().unwrap();
        let of = |number| all.iter().find(|figure| figure.number == number).unwrap();
        let figure = of(4);
        let measured: Vec<f64> = (figure.needs().iter())
            .map(|what| match what {
                What::Pass(curve) if curve.transition() == Transition::LHM => 8.0,
                What::Pass(curve) if curve.transition() == Transition::SHS => 4.0,
                What::Pass(_) => 2.0,
                _ => 1.5,
            })
            .collect();
        let rates = figure.rates(32 << 10, &measured).unwrap();
        let sequential = 1.0 / (1.0 / 4.0 + 1.0 / 2.0);
        assert_eq!(
            rates,
            [Some(2.0), Some(sequential), Some(sequential), Some(1.5)]
        );
        let rates = figure.rates(64 << 10, &measured).unwrap();
        let two = 2.0 / (1.0 / 4.0 + 1.0 / 2.0 + 1.0 / 2.0);
        assert_eq!(rates[1], Some(two));
        let measured = [6.0, 3.0, 2.5];
        let rates = of(5).rates(64 << 10, &measured).unwrap();
        let expected = [6.0, 3.0, 3.0, 2.0, 2.5, 0.8 * 3.0];
        assert_eq!(rates[..6], expected.map(Some));
        assert_eq!(rates[6], None);
        let rates = of(5).rates(1 << 20, &measured).unwrap();
        assert_eq!(rates[5..], [None, Some(1.1 * 2.0)]);
    }
}
