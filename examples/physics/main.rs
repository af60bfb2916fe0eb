//! Options of a machine file for mechanisms that could be otherwise than the prototype's model has
//! them: the published figures with each of them and with several together, and the scatter of
//! these figures over seeds, quiet, with an operating system's noise and with skew. Writes
//! docs/physics.md.
//!
//! `cargo run --release --example physics > docs/physics.md`
//!
//! With `figures` or `seeds` on the command line it is that table alone.

mod text;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;

use sme::barrier::{Mapping, TreeShape};
use sme::experiment::noise::{Noise, NoiseGaps, NoiseLengths, noise};
use sme::experiment::{DEFAULT_MAPPING, DEFAULT_TREE_SHAPE};
use sme::latency::remote_load_latency;
use sme::progress::{Silent, Watch, on_stderr};
use sme::report::stop::exit_code;
use sme::sim::machine::Machine;
use sme::sim::time::Time;
use sme::validate::Report;
use sme::validate::deviations::Deviations;
use sme::validate::measure::{Point as _, over};
use sme::validate::papers::sme::estimator as estimator_of;
use sme::validate::papers::sme::points::Point;
use sme::validate::papers::sme::simulator::Simulator;
use sme::validate::published::{self, Figure, Kind};
use sme::validate::verdict::Verdict;

const MACHINE: &str = "sme-prototype";
/// The machine of the second row of loads.
const ASIC: &str = "sme-asic";
/// As many as `sme validate` counts.
const EPISODES: u32 = 100;
const SEED: u64 = 1;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;
/// The time that the operating system takes from each core, in nanoseconds.
const NOISE_PERIOD_NS: u64 = 100_000_000;
const NOISE_DURATION_NS: u64 = 10_000;
/// Each arrival of a thread is late by up to so much, in nanoseconds.
const SKEW_NS: u64 = 200;

/// A machine that is otherwise, and its trees.
struct Options {
    /// The heading of the column.
    name: &'static str,
    set: &'static [(&'static str, &'static str)],
    trees: (TreeShape, Mapping),
}

const PIPELINED: (&str, &str) = ("host.bridge_writes", "pipelined");
const KEPT_TIME: (&str, &str) = ("link.serdes", "173ns");
const CUT_THROUGH: (&str, &str) = ("link.forwarding", "cut-through");
const LINES: (&str, &str) = ("coherence.homes", "lines");
const PAGES: (&str, &str) = ("coherence.homes", "pages");
const OCCUPANCY: (&str, &str) = ("coherence.occupancy", "76ns");
const HEAP: (TreeShape, Mapping) = (DEFAULT_TREE_SHAPE, DEFAULT_MAPPING);
const GROUPS: (TreeShape, Mapping) = (TreeShape::Groups, Mapping::Rows);

const fn options(
    name: &'static str,
    set: &'static [(&'static str, &'static str)],
    trees: (TreeShape, Mapping),
) -> Options {
    Options { name, set, trees }
}

/// The columns of the first table: as it is, then one option each.
const SINGLE: [Options; 8] = [
    options("as it is", &[], HEAP),
    options("`bridge_writes` pipelined", &[PIPELINED], HEAP),
    options("`serdes` 173 ns", &[KEPT_TIME], HEAP),
    options("`forwarding` cut-through", &[CUT_THROUGH], HEAP),
    options("`homes` lines", &[LINES], HEAP),
    options("`homes` pages", &[PAGES], HEAP),
    options("`occupancy` 76 ns", &[OCCUPANCY], HEAP),
    options("groups, rows", &[], GROUPS),
];

/// Those of the second: several together.
const TOGETHER: [Options; 8] = [
    options("pipelined, cut-through", &[PIPELINED, CUT_THROUGH], HEAP),
    options("pipelined, 76 ns", &[PIPELINED, OCCUPANCY], HEAP),
    options("cut-through, lines", &[CUT_THROUGH, LINES], HEAP),
    options("groups, rows, 76 ns", &[OCCUPANCY], GROUPS),
    options("groups, rows, pipelined", &[PIPELINED], GROUPS),
    options("groups, rows, cut-through", &[CUT_THROUGH], GROUPS),
    options(
        "groups, rows, 76 ns, pipelined",
        &[OCCUPANCY, PIPELINED],
        GROUPS,
    ),
    options("groups, rows, 76 ns, lines", &[OCCUPANCY, LINES], GROUPS),
];

fn main() -> ExitCode {
    exit_code(document())
}

fn document() -> Result<(), Box<dyn Error>> {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = only.iter().map(String::as_str).collect();
    let watch = on_stderr();
    match words[..] {
        [] => print!(
            "{}{}{}{}{}",
            text::ABOVE,
            figures(watch.as_ref())?,
            text::BETWEEN,
            seeds(watch.as_ref())?,
            text::BELOW
        ),
        ["figures"] => print!("{}", figures(watch.as_ref())?),
        ["seeds"] => print!("{}", seeds(watch.as_ref())?),
        _ => return Err("only `figures` or `seeds`".into()),
    }
    Ok(())
}

/// The figures of the paper that the machine under validation decides, without those for which
/// programs or hundreds of thousands of threads run.
fn judged_figures() -> Result<Vec<Figure>, String> {
    let figures = published::built_in().map_err(|error| error.to_string())?;
    let judged = figures.into_iter().filter(|figure| {
        let is_left_out = |point: &Point| point.is_program() || point.is_large();
        let barriers = estimator_of(&figure.id).is_some_and(|of| !of.any(is_left_out));
        figure.kind != Kind::Derived && barriers
    });
    Ok(judged.collect())
}

/// Disturbances of the threads.
#[derive(Clone, Copy, Default)]
struct Jitter {
    noise: Option<Noise>,
    skew: Time,
}

/// The report of `sme validate` on these figures.
fn report(
    figures: &[Figure],
    options: &Options,
    seed: u64,
    Jitter { noise, skew }: Jitter,
) -> Result<Report, String> {
    let machine = machine(MACHINE, options)?;
    let simulator = Simulator::new(Arc::new(machine), EPISODES, seed);
    let simulator = simulator.map_err(|error| error.to_string())?;
    let (shape, mapping) = options.trees;
    let simulator = simulator.with_trees(shape, mapping).with_noise(noise);
    let simulator = simulator.with_skew(skew);
    let validation = simulator.validation(1);
    Ok(validation.compare(figures.to_vec(), &Deviations::default(), &Silent))
}

fn machine(name: &str, options: &Options) -> Result<Machine, String> {
    let machine = Machine::builtin(name).map_err(|error| error.to_string())?;
    match options.set.is_empty() {
        true => Ok(machine),
        false => machine.with(options.set).map_err(|error| error.to_string()),
    }
}

// --------------------------------------------------------------------------- figures × options

/// The outcome of an option.
struct Column {
    report: Report,
    /// A load from a neighbour's memory on the ASIC's machine file.
    asic_load: Time,
}

/// Both tables, and which figures each set of options gives another verdict.
fn figures(watch: &dyn Watch) -> Result<String, String> {
    let figures = judged_figures()?;
    let all: Vec<&Options> = SINGLE.iter().chain(&TOGETHER).collect();
    watch.begin("machines", all.len() as u64);
    let columns = over(
        &all,
        available_parallelism().map_or(1, usize::from),
        |_| 1,
        |options| -> Result<Column, String> {
            let report = report(&figures, options, SEED, Jitter::default())?;
            let load = remote_load_latency(&machine(ASIC, options)?, false);
            watch.advance(1);
            Ok(Column {
                report,
                asic_load: load.map_err(|error| error.to_string())?,
            })
        },
    );
    watch.end();
    let columns = columns.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (single, together) = columns.split_at(SINGLE.len());
    let base = &single[0];
    let hash = &base.report.identity.on.machine_hash;
    let heading = format!("Machine `{MACHINE}` ({hash}), {EPISODES} episodes, seed {SEED}.\n\n");
    let first = table(&SINGLE, single, base);
    let second = table(&TOGETHER, together, base);
    let flips = flips(&all, &columns, base);
    Ok([heading, first, text::TOGETHER.to_owned(), second, flips].concat())
}

/// A row for each figure, a column for each set of options: the simulated value, and a verdict that
/// is not that of the machine as it is.
fn table(options: &[Options], columns: &[Column], base: &Column) -> String {
    let heads: Vec<&str> = options.iter().map(|options| options.name).collect();
    let mut text = format!(
        "| figure | published | {} |\n| --- | ---: |{}\n",
        heads.join(" | "),
        " ---: |".repeat(heads.len())
    );
    for (number, row) in base.report.rows.iter().enumerate() {
        let figure = &row.figure;
        let cells: Vec<String> = columns
            .iter()
            .map(|column| {
                let of = &column.report.rows[number];
                let value = shown(of.simulated);
                match of.verdict == row.verdict {
                    true => value,
                    false => format!("**{value}** {}", of.verdict.name()),
                }
            })
            .collect();
        let (id, published) = (&figure.id, figure.written());
        let unit = unit(figure);
        text.push_str(&format!(
            "| `{id}`{unit} | {published} | {} |\n",
            cells.join(" | ")
        ));
    }
    let loads = columns
        .iter()
        .map(|column| shown(Some(column.asic_load.as_ns())));
    let loads: Vec<String> = loads.collect();
    text.push_str(&format!(
        "| `{ASIC}`: a load from a neighbour [ns] | 534 | {} |\n",
        loads.join(" | ")
    ));
    text
}

/// Which figures have another verdict, a line for each set of options.
fn flips(options: &[&Options], columns: &[Column], base: &Column) -> String {
    let mut text = text::FLIPS.to_owned();
    let misses = |verdict: Verdict| verdict == Verdict::Deviates;
    for (options, column) in options.iter().zip(columns).skip(1) {
        let both = || base.report.rows.iter().zip(&column.report.rows);
        let named = |gone: bool| {
            let turned = both()
                .filter(|(was, is)| misses(was.verdict) == gone && misses(is.verdict) != gone);
            let ids: Vec<String> = turned
                .map(|(was, _)| format!("`{}`", was.figure.id))
                .collect();
            match ids.is_empty() {
                true => "nothing".to_owned(),
                false => ids.join(", "),
            }
        };
        text.push_str(&format!(
            "| {} | {} | {} |\n",
            options.name,
            named(true),
            named(false)
        ));
    }
    text
}

// ------------------------------------------------------------------------------------------- seeds

/// The kinds of jitter over which the seeds are repeated, and the headings of their columns.
const JITTERS: [&str; 3] = ["", "noise: ", "skew: "];

fn jitter(kind: usize, seed: u64) -> Result<Jitter, String> {
    Ok(match kind {
        0 => Jitter::default(),
        1 => Jitter {
            noise: Some(noise_of(seed)?),
            ..Jitter::default()
        },
        _ => Jitter {
            skew: Time::from_ns(SKEW_NS),
            ..Jitter::default()
        },
    })
}

/// The figures over seeds, with each kind of jitter.
fn seeds(watch: &dyn Watch) -> Result<String, String> {
    let figures = judged_figures()?;
    let runs: Vec<(u64, usize)> = (0..JITTERS.len())
        .flat_map(|kind| SEEDS.map(move |seed| (seed, kind)))
        .collect();
    watch.begin("seeds", runs.len() as u64);
    let reports = over(
        &runs,
        available_parallelism().map_or(1, usize::from),
        |_| 1,
        |&(seed, kind)| {
            let report = report(&figures, &SINGLE[0], seed, jitter(kind, seed)?);
            watch.advance(1);
            report
        },
    );
    watch.end();
    let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of_kind = runs.len() / JITTERS.len();
    let heads = JITTERS.map(|kind| format!(" {kind}mean | min | max | verdicts |"));
    let mut text = format!(
        "Machine `{MACHINE}` ({}), {EPISODES} episodes, seeds {} to {}; noise of {} us in every {} ms of \
         each core; skew of each arrival, uniform up to {SKEW_NS} ns.\n\n\
         | figure | published |{}\n\
         | --- | ---: |{}\n",
        reports[0].identity.on.machine_hash,
        SEEDS.start(),
        SEEDS.end(),
        NOISE_DURATION_NS / 1_000,
        NOISE_PERIOD_NS / 1_000_000,
        heads.concat(),
        " ---: | ---: | ---: | --- |".repeat(JITTERS.len()),
    );
    for (number, figure) in figures.iter().enumerate() {
        let (id, published) = (&figure.id, figure.written());
        let unit = unit(figure);
        let scatters = reports.chunks(of_kind).map(|kind| scatter(kind, number));
        let scatters: Vec<String> = scatters.collect();
        text.push_str(&format!(
            "| `{id}`{unit} | {published} | {} |\n",
            scatters.join(" | ")
        ));
    }
    Ok(text)
}

fn noise_of(seed: u64) -> Result<Noise, String> {
    let noise = noise(
        Time::from_ns(NOISE_PERIOD_NS),
        Time::from_ns(NOISE_DURATION_NS),
        NoiseGaps::Periodic,
        NoiseLengths::Constant,
        seed,
    );
    noise.map_err(|error| error.to_string())
}

/// Mean, least and most of a row over reports, and which verdicts it gets how often.
fn scatter(reports: &[Report], number: usize) -> String {
    let rows = || reports.iter().map(|report| &report.rows[number]);
    let values: Vec<f64> = rows().filter_map(|row| row.simulated).collect();
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    let verdicts = Verdict::ALL.into_iter().filter_map(|verdict| {
        let times = rows().filter(|row| row.verdict == verdict).count();
        match times {
            0 => None,
            _ if times == reports.len() => Some(verdict.name().to_owned()),
            _ => Some(format!("**{times}** {}", verdict.name())),
        }
    });
    let verdicts: Vec<String> = verdicts.collect();
    format!(
        "{} | {} | {} | {}",
        shown(Some(mean)),
        shown(least),
        shown(most),
        verdicts.join(", ")
    )
}

/// Four significant digits.
fn shown(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| {
        let digits = 3 - value.abs().max(0.01).log10().floor() as i64;
        format!("{value:.*}", digits.max(0) as usize)
    })
}

fn unit(figure: &Figure) -> String {
    match figure.unit.as_str() {
        "1" => String::new(),
        unit => format!(" [{unit}]"),
    }
}
