//! The costs of cache coherence for MPI in shared memory (Putigny et al.): throughputs by cache
//! state, copies and transfers, on the two nodes of the paper.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use sme_sim::machine::Machine;

use super::{Estimator, EstimatorOf, Figures, Finding, Fit, On, Paper};
use crate::coherence::bench::{Bench, BenchError};
use crate::coherence::model::{self, Chunks, Flush};
use crate::coherence::point::{Node, What, sizes};
use crate::coherence::table::{Row, Table};
use crate::coherence::transfer::{Direction, Home, Transfer};
use crate::coherence::transition::{CoreDistance, Curve, Holder, Transition, Variant};
use crate::validate::measure::{self, Measurements, Simulate};

/// One experiment, on one of the nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    node: Node,
    what: What,
    bytes: u64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.what, self.bytes)
    }
}

impl measure::Point for Point {
    fn cost(&self) -> u64 {
        self.what.cost(self.bytes)
    }

    fn is_program(&self) -> bool {
        matches!(self.what, What::Transfer(_))
    }

    fn is_large(&self) -> bool {
        false
    }
}

/// The experiments on the two nodes.
pub struct Coherent {
    intel: Bench,
    amd: Bench,
    programs: bool,
}

impl Coherent {
    /// On these machines.
    ///
    /// # Errors
    /// [`BenchError`] if one of them is not coherent.
    pub fn new(intel: Arc<Machine>, amd: Arc<Machine>) -> Result<Self, BenchError> {
        Ok(Self {
            intel: Bench::new(intel)?,
            amd: Bench::new(amd)?,
            programs: true,
        })
    }

    /// A node's machine.
    fn bench(&self, node: Node) -> &Bench {
        match node {
            Node::Intel => &self.intel,
            Node::Amd => &self.amd,
        }
    }

    /// The same without the figures for which transfers are run.
    pub fn without_programs(mut self) -> Self {
        self.programs = false;
        self
    }

    /// The figures on these nodes, as a paper among others.
    pub fn paper(&self) -> Box<dyn Paper + '_> {
        let machines = [&self.intel, &self.amd].map(|bench| bench.machine().fitted());
        let constants = machines.into_iter().flatten();
        let fitted = constants.map(|fitted| Fit::constant(&fitted.name(), &fitted.fitted_to));
        let chunk = Transfer::of_open_mpi(CoreDistance::Socket, 8).chunk_bytes as f64;
        Box::new(Figures {
            on: ("coherence", On::new(self.intel.machine())),
            estimator: Box::new(estimator) as Box<EstimatorOf<Point>>,
            simulate: self,
            fitted: fitted.collect(),
            inputs: vec![("coherence.chunk.openmpi", chunk)],
            machine_of: Some(Box::new(|point| On::new(self.bench(point.node).machine()))),
            programs: self.programs,
            large: true,
        })
    }
}

impl Simulate<Point> for Coherent {
    fn microseconds(&self, point: &Point) -> Result<f64, String> {
        let gb_per_s = point.what.gb_per_s(self.bench(point.node), point.bytes);
        let gb_per_s = gb_per_s.map_err(|error| error.to_string())?;
        Ok(point.bytes as f64 / gb_per_s / 1e3)
    }
}

/// Throughputs of points that were measured.
struct Rates<'a>(&'a Measurements<Point>);

impl Rates<'_> {
    /// In 10^9 bytes per second.
    fn of(&self, point: Point) -> Result<f64, String> {
        Ok(point.bytes as f64 / self.0.microseconds(point)? / 1e3)
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn pass(node: Node, curve: Curve, bytes: u64) -> Point {
    let what = What::Pass(curve);
    Point { node, what, bytes }
}

/// A pass on the Intel node within a socket.
fn in_socket(transition: Transition, bytes: u64) -> Point {
    pass(
        Node::Intel,
        Curve::plain(transition, CoreDistance::Socket),
        bytes,
    )
}

/// The same across sockets, with the other's copy flushed before or not.
fn across(transition: Transition, variant: Variant, bytes: u64) -> Point {
    let plain = Curve::plain(transition, CoreDistance::Remote);
    pass(Node::Intel, plain.with(variant).unwrap_or(plain), bytes)
}

fn transfer(node: Node, transfer: Transfer) -> Point {
    Point {
        node,
        what: What::Transfer(transfer),
        bytes: transfer.message_bytes,
    }
}

fn copy(what: What, bytes: u64) -> Point {
    let node = Node::Intel;
    Point { node, what, bytes }
}

fn geometric_mean(values: impl IntoIterator<Item = Result<f64, String>>) -> Result<f64, String> {
    let values: Vec<f64> = values.into_iter().collect::<Result<_, _>>()?;
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    Ok((logarithms / values.len().max(1) as f64).exp())
}

fn extremes(values: impl IntoIterator<Item = Result<f64, String>>) -> Result<(f64, f64), String> {
    let values: Vec<f64> = values.into_iter().collect::<Result<_, _>>()?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    Ok((least, most))
}

/// The estimator of a figure.
fn estimator(id: &str) -> Option<Estimator<Point>> {
    Some(match id {
        "coherence.large.receiver" => faster(Transition::LMM, Transition::SHM),
        "coherence.large.sender" => faster(Transition::LHM, Transition::SHS),
        "coherence.copy.small" => Estimator::new(copy_points, copy_share),
        "coherence.reuse" => Estimator::new(reuse_points, reuse),
        "coherence.lmm_flush" => flush(Transition::LMM, 64 * KIB, |gains| {
            let (least, most) = extremes(gains)?;
            let all = format!("{:.2} to {:.2} times as fast", least, most);
            Ok(Finding::of(least - 1.0).provided(most <= 2.0, all))
        }),
        "coherence.shs_flush" => flush(Transition::SHS, 128 * KIB, |gains| {
            let mean = geometric_mean(gains)?;
            let most = format!("{mean:.2} times as fast, at most 1.15");
            Ok(Finding::of(mean - 1.0).provided(mean <= 1.15, most))
        }),
        "coherence.nt_store" => Estimator::new(past_points, past),
        "coherence.owned_store.socket" => Estimator::new(owned_points, owned),
        "coherence.alternate" => Estimator::new(alternate_points, alternate),
        "coherence.model_window" => Estimator::new(window_points, window),
        _ => return None,
    })
}

/// The faster of a copy's load and store, large messages.
fn faster(load: Transition, store: Transition) -> Estimator<Point> {
    let large = || sizes(512 * KIB, 2 * MIB);
    Estimator {
        points: Box::new(move || {
            let both = move |bytes| [in_socket(load, bytes), in_socket(store, bytes)];
            large().flat_map(both).collect()
        }),
        find: Box::new(move |measured| {
            let rates = Rates(measured);
            let of = |bytes| {
                let load = rates.of(in_socket(load, bytes))?;
                Ok(load.max(rates.of(in_socket(store, bytes))?))
            };
            Ok(Finding::of(geometric_mean(large().map(of))?))
        }),
    }
}

fn copy_sizes() -> [(u64, u64); 2] {
    [(32 * KIB, 128 * KIB), (512 * KIB, 4 * MIB)]
}

fn copy_points() -> Vec<Point> {
    let all = copy_sizes()
        .into_iter()
        .flat_map(|(from, to)| sizes(from, to));
    let of = |bytes| {
        let whole = copy(What::ReceiverCopy(Holder::Socket), bytes);
        [
            in_socket(Transition::LMM, bytes),
            in_socket(Transition::SHM, bytes),
            whole,
        ]
    };
    all.flat_map(of).collect()
}

/// The receiver's copy over the throughputs of its load and its store.
fn copy_share(measured: &Measurements<Point>) -> Result<Finding, String> {
    let rates = Rates(measured);
    let parts = |bytes| {
        let load = rates.of(in_socket(Transition::LMM, bytes))?;
        let store = rates.of(in_socket(Transition::SHM, bytes))?;
        let whole = rates.of(copy(What::ReceiverCopy(Holder::Socket), bytes))?;
        Ok::<_, String>((load, store, whole))
    };
    let [small, large] = copy_sizes().map(|(from, to)| sizes(from, to));
    let parallel = geometric_mean(small.map(|bytes| {
        let (load, store, whole) = parts(bytes)?;
        Ok(whole / load.min(store))
    }))?;
    let sequential = geometric_mean(large.map(|bytes| {
        let (load, store, whole) = parts(bytes)?;
        Ok(whole * (1.0 / load + 1.0 / store))
    }))?;
    let met = (sequential / 1.1 - 1.0).abs() <= 0.1;
    let what = format!("large copies have {sequential:.2} times the sequential throughput (1.10)");
    Ok(Finding::of(parallel).provided(met, what))
}

const BOTH: [CoreDistance; 2] = [CoreDistance::Socket, CoreDistance::Remote];

fn reused(placement: CoreDistance, reuses: (bool, bool), bytes: u64) -> Point {
    let plain = Transfer::of_open_mpi(placement, bytes);
    transfer(Node::Intel, Transfer { reuses, ..plain })
}

fn reuse_points() -> Vec<Point> {
    let which = [(true, false), (false, true)];
    let of = |holder| {
        let points = move |bytes| which.map(|reuses| reused(holder, reuses, bytes));
        sizes(64 * KIB, 4 * MIB).flat_map(points)
    };
    BOTH.into_iter().flat_map(of).collect()
}

/// The throughput with the receiver's buffer reused over that with the sender's.
fn reuse(measured: &Measurements<Point>) -> Result<Finding, String> {
    let rates = Rates(measured);
    let of = |holder| {
        let rates = &rates;
        let ratio = move |bytes| {
            let receiver = rates.of(reused(holder, (false, true), bytes))?;
            Ok(receiver / rates.of(reused(holder, (true, false), bytes))?)
        };
        sizes(64 * KIB, 4 * MIB).map(ratio)
    };
    let (least, most) = extremes(BOTH.into_iter().flat_map(of))?;
    Ok(Finding::of(least).noting(format!("at most {most:.2} times")))
}

type Gains = Vec<Result<f64, String>>;

/// The gain by a remote flush, over sizes of at least `from`.
fn flush(
    transition: Transition,
    from: u64,
    find: fn(Gains) -> Result<Finding, String>,
) -> Estimator<Point> {
    let all = move || sizes(from, 4 * MIB);
    let both = move |bytes| {
        [Variant::Plain, Variant::Flushed].map(|variant| across(transition, variant, bytes))
    };
    Estimator {
        points: Box::new(move || all().flat_map(both).collect()),
        find: Box::new(move |measured| {
            let rates = Rates(measured);
            let gain = |bytes| {
                let [plain, flushed] = both(bytes).map(|point| rates.of(point));
                Ok(flushed? / plain?)
            };
            find(all().map(gain).collect())
        }),
    }
}

fn past_alone(flush: Flush, bytes: u64) -> Point {
    copy(What::SenderCopy(Holder::Remote, flush), bytes)
}

fn past_whole(flush: Flush, home: Home, bytes: u64) -> Point {
    let plain = Transfer::of_open_mpi(CoreDistance::Remote, bytes);
    let with = Transfer {
        flush,
        home,
        ..plain
    };
    transfer(Node::Intel, with)
}

const HOMES: [Home; 2] = [Home::Sender, Home::Receiver];

fn past_points() -> Vec<Point> {
    let ways = [Flush::None, Flush::NonTemporal];
    let alone = sizes(64 * KIB, MIB).flat_map(|bytes| ways.map(|way| past_alone(way, bytes)));
    let whole = sizes(256 * KIB, MIB).flat_map(|bytes| {
        let of = move |home| ways.map(move |way| past_whole(way, home, bytes));
        HOMES.into_iter().flat_map(of)
    });
    alone.chain(whole).collect()
}

/// The costs of non-temporal stores to the sender's copy, and to the whole transfer.
fn past(measured: &Measurements<Point>) -> Result<Finding, String> {
    let rates = Rates(measured);
    let alone = geometric_mean(sizes(64 * KIB, MIB).map(|bytes| {
        let past = rates.of(past_alone(Flush::NonTemporal, bytes))?;
        Ok(past / rates.of(past_alone(Flush::None, bytes))?)
    }))?;
    let mut finding = Finding::of(1.0 - alone);
    for home in HOMES {
        let whole = geometric_mean(sizes(256 * KIB, MIB).map(|bytes| {
            let past = rates.of(past_whole(Flush::NonTemporal, home, bytes))?;
            Ok(past / rates.of(past_whole(Flush::None, home, bytes))?)
        }))?;
        let met = (whole - 0.5).abs() <= 0.125;
        let what =
            format!("with chunks at the {home} a transfer has {whole:.2} of its throughput (0.5)");
        finding = finding.provided(met, what);
    }
    Ok(finding)
}

fn owned_curves(placement: CoreDistance) -> [Curve; 2] {
    [Transition::SHS, Transition::SHO].map(|transition| Curve::plain(transition, placement))
}

fn owned_points() -> Vec<Point> {
    let places = [CoreDistance::Socket, CoreDistance::Remote];
    let curves = places.into_iter().flat_map(owned_curves);
    let of = |curve| sizes(64 * KIB, MIB).map(move |bytes| pass(Node::Amd, curve, bytes));
    curves.flat_map(of).collect()
}

/// A store to a shared copy over one to an owned copy.
fn owned(measured: &Measurements<Point>) -> Result<Finding, String> {
    let rates = Rates(measured);
    let ratio = |placement| {
        geometric_mean(sizes(64 * KIB, MIB).map(|bytes| {
            let of = |curve| rates.of(pass(Node::Amd, curve, bytes));
            let [shared, owned] = owned_curves(placement).map(of);
            Ok(shared? / owned?)
        }))
    };
    let remote = ratio(CoreDistance::Remote)?;
    let met = (remote / 4.0 - 1.0).abs() <= 0.25;
    let what = format!("between sockets {remote:.2} times (4)");
    Ok(Finding::of(ratio(CoreDistance::Socket)?).provided(met, what))
}

fn directed(node: Node, direction: Direction, bytes: u64) -> Point {
    let plain = Transfer::of_open_mpi(CoreDistance::Socket, bytes);
    transfer(node, Transfer { direction, ..plain })
}

fn directed_sizes() -> impl Iterator<Item = u64> + Clone {
    sizes(16 * KIB, 4 * MIB)
}

fn alternate_points() -> Vec<Point> {
    let of = |node| {
        let both = move |bytes| {
            let directions = [Direction::Same, Direction::Alternating];
            directions.map(|direction| directed(node, direction, bytes))
        };
        directed_sizes().flat_map(both)
    };
    [Node::Intel, Node::Amd].into_iter().flat_map(of).collect()
}

/// The gain by alternating direction.
fn alternate(measured: &Measurements<Point>) -> Result<Finding, String> {
    let rates = Rates(measured);
    let gains = |node| {
        let of = |bytes| {
            let other = rates.of(directed(node, Direction::Alternating, bytes))?;
            Ok(other / rates.of(directed(node, Direction::Same, bytes))?)
        };
        directed_sizes()
            .map(of)
            .collect::<Result<Vec<f64>, String>>()
    };
    let mut intel = gains(Node::Intel)?;
    intel.sort_by(f64::total_cmp);
    let median = intel[intel.len() / 2];
    let (least, most) = extremes(gains(Node::Amd)?.into_iter().map(Ok))?;
    Ok(Finding::of(most - 1.0)
        .provided(
            most <= 1.55,
            format!("at most {most:.2} times as fast (1.5)"),
        )
        .provided(least <= 1.1, format!("at least {least:.2} times (1.05)"))
        .provided(
            (median - 1.0).abs() <= 0.05,
            format!("on Intel {median:.2} times, the median"),
        ))
}

const STEPS: [Transition; 4] = [
    Transition::LHM,
    Transition::SHS,
    Transition::LMM,
    Transition::SHM,
];

fn window_sizes() -> impl Iterator<Item = u64> + Clone {
    sizes(32 * KIB, 32 * MIB)
}

fn window_transfer(bytes: u64) -> Point {
    transfer(
        Node::Intel,
        Transfer::of_open_mpi(CoreDistance::Socket, bytes),
    )
}

fn window_points() -> Vec<Point> {
    let of = |bytes| {
        let steps = STEPS.map(|transition| in_socket(transition, bytes));
        steps.into_iter().chain([window_transfer(bytes)])
    };
    window_sizes().flat_map(of).collect()
}

/// The number of sizes at which the model is right and should not be, or the other way round.
fn window(measured: &Measurements<Point>) -> Result<Finding, String> {
    let rates = Rates(measured);
    let mut rows = Vec::new();
    for bytes in window_sizes() {
        for transition in STEPS {
            let curve = Curve::plain(transition, CoreDistance::Socket);
            let rate = rates.of(in_socket(transition, bytes))?;
            rows.push(Row::new("xeon-e5-2650", curve, bytes, rate));
        }
    }
    let table = Table::new(rows).map_err(|error| error.to_string())?;
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for bytes in window_sizes() {
        let message = NonZero::new(bytes).ok_or("a message of no bytes")?;
        let chunk = NonZero::new(32 * KIB).ok_or("a chunk of no bytes")?;
        let paper = model::Transfer::of_paper(CoreDistance::Socket);
        let predicted = paper.predict(&table, Chunks::new(message, chunk));
        let predicted = predicted
            .map_err(|error| error.to_string())?
            .pipelined_gb_per_s;
        let error = predicted / rates.of(window_transfer(bytes))? - 1.0;
        match (256 * KIB..=16 * MIB).contains(&bytes) {
            true => inside.push(error),
            false => outside.push(error),
        }
    }
    let greatest = outside
        .iter()
        .fold(0.0_f64, |most, error| most.max(error.abs()));
    let wrong_outside = outside.iter().filter(|error| error.abs() > 0.25).count();
    let wrong_inside = inside.iter().filter(|&&error| error <= greatest).count();
    let shown = |errors: &[f64]| {
        let errors = errors
            .iter()
            .map(|error| format!("{:+.0} %", 100.0 * error));
        errors.collect::<Vec<_>>().join(", ")
    };
    Ok(Finding::of((wrong_outside + wrong_inside) as f64)
        .noting(format!("errors from 256 KiB to 16 MiB: {}", shown(&inside)))
        .noting(format!(
            "and at 32, 64, 128 KiB and 32 MiB: {}",
            shown(&outside)
        )))
}
