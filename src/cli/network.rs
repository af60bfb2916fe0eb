//! `sme network`: latency over offered load of a machine's fabric, a row for each load.
//!
//! Called by [`super::main`]; simulated by [`crate::network`].

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sme_sim::families::sme::traffic::{PACKET_BYTES, Pattern, Phases, TrafficError};
use sme_sim::time::Time;

use super::args;
use super::flags::{Heading, MachineFlags, OutputFlags, SeedFlag};
use super::list;
use super::memory;
use super::names;
use super::read::{self, Values};
use crate::network::{LOAD_UNITS, Load, LoadCurve, LoadPoint, NetworkError, NetworkPlan, chart};
use crate::report::Format;
use crate::report::output::Output;
use crate::report::row::{self, Cell, Host};
use crate::report::stop::{Stop, one_line};

/// Digits behind the point of a load.
const DECIMALS: u32 = LOAD_UNITS.ilog10();
/// The step of a range of loads that names none.
const DEFAULT_STEP: u32 = LOAD_UNITS / 20;
/// The least load.
const LEAST: u32 = LOAD_UNITS / 1_000;
/// Bytes of a packet that waits or has been measured.
const PER_PACKET: f64 = 32.0;

/// Positions of the network that is measured if none is given.
const POSITIONS: u32 = 64;

/// The flags of `sme network`.
#[derive(Args, Clone, Debug)]
pub struct NetworkFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// Network, with all its nodes (e.g. mesh:8x8, torus:4x4x4, fattree:4x3 or dragonfly:2x4x2)
    /// [default: the machine's own, of 64 positions]
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// Who sends to whom: uniform, transpose, tornado, bit-complement, neighbour; or a list
    #[arg(long, value_name = "NAMES", default_value = "uniform")]
    traffic: String,
    /// Offered loads, as fractions of the capacity: a list, or ranges with a step (0.05 where none
    /// is given), e.g. 0.1..0.6+0.02
    #[arg(
        long,
        value_name = "LOADS",
        default_value = "0.05..0.95",
        allow_negative_numbers = true
    )]
    load: String,
    /// Simulated time before the measurement
    #[arg(
        long,
        value_name = "TIME",
        default_value = "50us",
        allow_hyphen_values = true
    )]
    warmup: String,
    /// Measurement window: its packets are the measured ones
    #[arg(
        long,
        value_name = "TIME",
        default_value = "100us",
        allow_hyphen_values = true
    )]
    measure: String,
    /// Longest wait for measured packets (after the window)
    #[arg(
        long,
        value_name = "TIME",
        default_value = "200us",
        allow_hyphen_values = true
    )]
    drain: String,
    /// What is drawn.
    #[command(flatten)]
    seed: SeedFlag,
    /// Threads of this computer; results do not depend on it
    #[arg(
        long,
        value_name = "THREADS",
        default_value = "1",
        allow_negative_numbers = true
    )]
    workers: String,
    /// Draw latency over load into FILE, an SVG
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

/// A run whose flags fit together.
#[derive(Debug)]
pub struct NetworkRun {
    plan: NetworkPlan,
    /// Bytes per second of a node at capacity.
    capacity: f64,
    plot: Option<PathBuf>,
    output: OutputFlags,
}

impl NetworkRun {
    /// Reads the flags.
    pub fn read(flags: &NetworkFlags) -> Result<Self, Stop> {
        let machine = Arc::new(args::machine(&flags.machine)?);
        let topology = match &flags.topology {
            Some(text) => read::one("--topology", read::topologies(text, Values::One)?)?,
            None => machine.shape().network.holding(POSITIONS),
        };
        let phases = Phases {
            warmup: read::time("--warmup", &flags.warmup)?,
            measure: read::time("--measure", &flags.measure)?,
            drain: read::time("--drain", &flags.drain)?,
        };
        if phases.measure == Time::ZERO {
            return Err(Stop::flag(
                "--measure",
                "a window of no length has no packets",
            ));
        }
        let plan = NetworkPlan {
            machine,
            patterns: patterns(&flags.traffic)?,
            loads: loads(&flags.load)?,
            phases,
            seed: read::seed(&flags.seed.seed)?,
            workers: read::host_threads("--workers", &flags.workers)?,
            topology,
        };
        // Before what depends on the number of positions is built.
        let engines = plan.machine.shape().footprint.of(&plan.topology, 0, 0);
        let shown = format!("--topology {}", plan.topology);
        memory::enough(&shown, engines, memory::available())?;
        let (fabric, _) = plan.prepare().map_err(|error| match error {
            NetworkError::NoEngines(_) => Stop::flag("--machine", error),
            NetworkError::Traffic(TrafficError::Pattern(_)) => Stop::flag("--traffic", error),
            _ if flags.topology.is_none() => {
                let (name, own) = (plan.machine.name(), &plan.topology);
                Stop::Input(one_line(&format!(
                    "{name}, whose network is {own}: {error}"
                )))
            }
            _ => Stop::Input(one_line(&error.to_string())),
        })?;
        let all = [phases.warmup, phases.measure, phases.drain];
        let seconds: f64 = all.iter().map(|time| time.as_us() / 1e6).sum();
        let packets =
            fabric.capacity() / PACKET_BYTES as f64 * seconds * f64::from(plan.topology.hosts());
        // Saturates.
        let packets = (packets * PER_PACKET) as u64;
        memory::enough(
            &format!("{shown} for {:.0} µs", seconds * 1e6),
            engines.saturating_add(packets),
            memory::available(),
        )?;
        Ok(Self {
            plan,
            capacity: fabric.capacity(),
            plot: flags.plot.clone(),
            output: flags.output.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        let with_host = !self.output.no_host;
        self.output.file.heading(&keys(), with_host)
    }

    /// Simulates it, and writes rows and chart.
    pub fn run(&self) -> Result<(), Stop> {
        let mut rows = Output::file_or_stdout(self.output.file.output.as_deref())?;
        let heading = keys();
        let plot = self.plot.as_deref();
        let plot = plot.map(|path| Output::file("--plot", path)).transpose()?;
        let watch = self.output.file.watch();
        let file = &self.output.file;
        let is_table = file.format() == Format::Table;
        let (mut count, mut written) = (0, Ok(()));
        // Rows that are not for people appear with their curve, of which each has the saturation.
        let mut tell = |curve: &LoadCurve| {
            if !is_table && written.is_ok() {
                let cells = self.rows(curve);
                written = file
                    .continued(&heading, &cells, count > 0)
                    .and_then(|lines| rows.push_now(&lines));
                count += cells.len();
            }
        };
        let curves = self.plan.run(watch.as_ref(), &mut tell);
        watch.end();
        let curves = curves.map_err(|error| Stop::Failed(error.to_string()))?;
        written?;
        if is_table {
            let cells: Vec<Vec<Cell>> = curves.iter().flat_map(|curve| self.rows(curve)).collect();
            rows.push(&file.rendered(&heading, &cells)?)?;
            let lines: Vec<_> = curves
                .iter()
                .filter_map(LoadCurve::without_saturation)
                .collect();
            if !lines.is_empty() {
                rows.push(&format!("\n{}\n", lines.join("\n")))?;
            }
        }
        if let Some(mut plot) = plot {
            let svg = chart(&self.plan, &curves).to_svg();
            plot.push(&svg.map_err(|error| Stop::Failed(error.to_string()))?)?;
            plot.commit()?;
        }
        rows.commit()
    }

    fn rows(&self, curve: &LoadCurve) -> Vec<Vec<Cell>> {
        let points = curve.points.iter();
        points.map(|point| self.row(curve, point)).collect()
    }

    fn row(&self, curve: &LoadCurve, point: &LoadPoint) -> Vec<Cell> {
        let (plan, outcome) = (&self.plan, &point.outcome);
        let latencies = &outcome.latencies;
        // Without packets there is no latency.
        let latency = |time| match outcome.packets {
            0 => Cell::Absent,
            _ => Cell::nanos(time),
        };
        let mut cells = row::head(&plan.machine, &plan.topology).to_vec();
        cells.extend([
            Cell::Count(plan.topology.hosts().into()),
            Cell::text(curve.pattern),
            Cell::Count(plan.seed),
            Cell::micros(plan.phases.warmup),
            Cell::micros(plan.phases.measure),
            Cell::micros(plan.phases.drain),
            Cell::Count(PACKET_BYTES),
            Cell::fraction(self.capacity / 1e6),
            Cell::fraction(curve.bound),
            Cell::nanos(curve.zero_load_latency),
            curve.saturation().map_or(Cell::Absent, Cell::fraction),
            Cell::Fixed {
                units: point.load.0.into(),
                decimals: DECIMALS,
            },
            Cell::fraction(outcome.offered),
            Cell::fraction(outcome.accepted),
            latency(latencies.mean),
            latency(latencies.p50),
            latency(latencies.p99),
            latency(latencies.max),
            Cell::Count(outcome.packets),
            Cell::Count(outcome.undelivered),
            Cell::Truth(outcome.saturated),
            Cell::Count(outcome.events),
            Cell::micros(outcome.end),
        ]);
        if !self.output.no_host {
            cells.extend(Host::measured(point.wall, outcome.events).cells());
        }
        cells
    }
}

/// The keys of a row.
fn keys() -> Vec<&'static str> {
    [&row::HEAD[..], HEADING].concat()
}

const HEADING: &[&str] = &[
    "nodes",
    "traffic",
    "seed",
    "warmup_us",
    "measure_us",
    "drain_us",
    "packet_bytes",
    "capacity_mb_per_s",
    "bound_load",
    "zero_load_latency_ns",
    "saturation_load",
    "load",
    "offered_load",
    "accepted_load",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "packets",
    "undelivered",
    "saturated",
    "events",
    "end_us",
];

/// Reads `--traffic text`.
fn patterns(text: &str) -> Result<Vec<Pattern>, Stop> {
    let words = read::words("--traffic", text, Values::Many)?;
    let mut patterns = Vec::new();
    for word in words {
        let known = Pattern::ALL.map(Pattern::name);
        let found = Pattern::ALL.into_iter().find(|p| p.name() == word);
        let pattern = found.ok_or_else(|| Stop::flag("--traffic", names::unknown(word, &known)))?;
        if patterns.contains(&pattern) {
            return Err(Stop::flag("--traffic", format!("{word} is given twice")));
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}

/// Reads `--load text`: loads and ranges of them, separated by commas.
fn loads(text: &str) -> Result<Vec<Load>, Stop> {
    let refuse = |reason: String| Stop::flag(&format!("--load {text}"), reason);
    let words = list::words(text).map_err(|error| refuse(error.to_string()))?;
    let mut loads = Vec::new();
    for word in words {
        let (first, rest) = word.split_once("..").unwrap_or((word, word));
        let (last, step) = match rest.split_once('+') {
            Some((last, step)) if word.contains("..") => (last, units(step).map_err(&refuse)?),
            _ => (rest, DEFAULT_STEP),
        };
        let [first, last] = [first, last].map(|text| load(text).map_err(&refuse));
        let (first, last) = (first?, last?);
        if first > last {
            return Err(refuse(format!("the range {word} runs backwards")));
        }
        if step == 0 {
            let least = f64::from(1) / f64::from(LOAD_UNITS);
            return Err(refuse(format!("a range needs a step of at least {least}")));
        }
        loads.extend((first..=last).step_by(step as usize).map(Load));
    }
    let mut known = loads.clone();
    known.sort_unstable();
    match known.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(refuse(format!("{} is given twice", twice[0].fraction()))),
        None => Ok(loads),
    }
}

/// A load within its bounds, in units.
fn load(text: &str) -> Result<u32, String> {
    let load = units(text)?;
    let text = text.trim();
    if load < LEAST {
        let least = f64::from(LEAST) / f64::from(LOAD_UNITS);
        return Err(format!("{text} is too small; at least {least}"));
    }
    if load > LOAD_UNITS {
        return Err(format!("{text} is too large; at most 1, the capacity"));
    }
    Ok(load)
}

/// A decimal number in units; exact, without a detour over binary fractions.
fn units(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let no_number = || format!("'{text}' is not a fraction like 0.35");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(no_number());
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DECIMALS as usize {
        return Err(format!("'{text}' has more than {DECIMALS} decimals"));
    }
    let padded = format!("{fraction:0<width$}", width = DECIMALS as usize);
    // A text with more digits than a number can have is too large in any case.
    let whole: u32 = whole.parse().unwrap_or(u32::MAX);
    let fraction: u32 = padded.parse().map_err(|_| no_number())?;
    Ok(whole.saturating_mul(LOAD_UNITS).saturating_add(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> Vec<u32> {
        loads(text)
            .unwrap()
            .into_iter()
            .map(|load| load.0)
            .collect()
    }

    #[test]
    fn lists_of_loads() {
        assert_eq!(list("0.5"), [5_000]);
        assert_eq!(list("0.1,0.35,1"), [1_000, 3_500, 10_000]);
        assert_eq!(list("0.85..0.95"), [8_500, 9_000, 9_500]);
        assert_eq!(
            list("0.4..0.47+0.02, 0.001"),
            [4_000, 4_200, 4_400, 4_600, 10]
        );
        assert_eq!(list("0.05..0.95").len(), 19);
    }

    #[test]
    fn each_mistake_is_one_line() {
        for (text, reason) in [
            ("0", "0 is too small; at least 0.001"),
            ("-0.1", "'-0.1' is not a fraction like 0.35"),
            ("1.2", "1.2 is too large; at most 1, the capacity"),
            ("nan", "'nan' is not a fraction like 0.35"),
            ("inf", "'inf' is not a fraction like 0.35"),
            ("1e-3", "'1e-3' is not a fraction like 0.35"),
            (
                "99999999999999999999",
                "99999999999999999999 is too large; at most 1, the capacity",
            ),
            ("0.5.", "'0.5.' is not a fraction like 0.35"),
            ("0.12345", "'0.12345' has more than 4 decimals"),
            ("0.5..0.1", "the range 0.5..0.1 runs backwards"),
            ("0.1..0.5+0", "a range needs a step of at least 0.0001"),
            ("0.1,0.1", "0.1 is given twice"),
            ("0.1+0.1", "'0.1+0.1' is not a fraction like 0.35"),
        ] {
            let refused = Stop::Input(format!("--load {text}: {reason}"));
            assert_eq!(loads(text), Err(refused));
        }
        for text in ["", ",", "0.1,", "..", "0.1..", "..0.5"] {
            assert!(matches!(loads(text), Err(Stop::Input(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9.,+ e-]{0,24}", any in ".*") {
            for text in [text, any] {
                if let Ok(loads) = loads(&text) {
                    prop_assert!(loads.iter().all(|load| (LEAST..=LOAD_UNITS).contains(&load.0)));
                }
            }
        }
    }
}
