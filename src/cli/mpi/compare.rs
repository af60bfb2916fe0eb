//! `sme mpi compare`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sme_sim::machine::Machine;

use super::{HEAD, MOST_RANKS, MpiJob, RANKS, head, rounds, stop};
use crate::cli::charts::Charts;
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read::{self, Values};
use crate::messages::compare::{Compared, Outcome};
use crate::paper::{BLUES, ORANGES};
use crate::plot::{Axis, Chart, Curve, Marks, Stroke, Symbol};
use crate::report::Format;
use crate::report::output::{self, Output};
use crate::report::row::{Cell, rendered};
use crate::report::stop::Stop;

/// The flags of `sme mpi compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareFlags {
    /// Machines: names, or files
    #[arg(long, value_name = "LIST", default_value = "sme-prototype,scc,mppa256")]
    machines: String,
    /// Ranks of each job, or as many as the machine has cores for
    #[arg(
        long,
        value_name = "N",
        default_value = "48",
        allow_negative_numbers = true
    )]
    ranks: String,
    /// Rounds of each ping-pong and barriers that count; two more come first
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        allow_negative_numbers = true
    )]
    rounds: String,
    /// Draw bandwidth over the sizes: compare.svg in this directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    file: FileFlags,
}

/// The file of the chart.
const FILE: &str = "compare.svg";

/// The largest bandwidths that Ho et al. quote in Sec. VII, of libraries on other chips, and their
/// own: MB/s.
const PUBLISHED: [(&str, &str, f64); 7] = [
    ("RCCE", "Intel SCC", 55.0),
    ("SCC-MPICH", "Intel SCC", 120.0),
    ("iRCCE", "Intel SCC", 150.0),
    ("rMPI", "MIT Raw", 150.0),
    ("Kang et al.", "Tile64", 250.0),
    ("MPPA-MPI", "Kalray MPPA-256", 1200.0),
    ("MVAPICH2", "Intel Xeon Phi", 9000.0),
];

/// The command whose flags fit together.
#[derive(Debug)]
pub(super) struct CompareRun {
    compared: Vec<Compared>,
    figures: Option<PathBuf>,
    file: FileFlags,
}

impl CompareFlags {
    pub(super) fn read(&self) -> Result<CompareRun, Stop> {
        let rounds = rounds("--rounds", &self.rounds)?;
        let flag = "--ranks";
        let ranks = read::counts(flag, &self.ranks, 2, MOST_RANKS.min(4 * RANKS), Values::One)?;
        let ranks = read::one(flag, ranks)?;
        let mut compared = Vec::new();
        for name in read::words("--machines", &self.machines, Values::Many)? {
            let machine = Machine::load(name);
            let machine = machine.map_err(|error| Stop::flag("--machines", error))?;
            let one = Compared::new(Arc::new(machine), ranks, rounds);
            one.job.check().map_err(stop)?;
            if one.job.ranks < 2 {
                let why = format!("{name} has one core, and a ping-pong needs two");
                return Err(Stop::flag("--machines", why));
            }
            one.holds().map_err(stop)?;
            compared.push(one);
        }
        if let Some(directory) = &self.figures {
            output::distinct(&[
                ("-o", self.file.output.as_deref()),
                ("--figures", Some(&directory.join(FILE))),
            ])?;
        }
        Ok(CompareRun {
            compared,
            figures: self.figures.clone(),
            file: self.file.clone(),
        })
    }
}

impl MpiJob for CompareRun {
    fn heading(&self) -> Option<Heading> {
        Some(self.file.heading(&keys(), false))
    }

    fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let charts = Charts::open(self.figures.as_deref(), [FILE.to_owned()])?;
        let mut outcomes = Vec::new();
        for one in &self.compared {
            outcomes.push((one, one.run().map_err(stop)?));
        }
        let format = self.file.format();
        output.push(&self.file.rendered(&keys(), &rows(&outcomes))?)?;
        if format == Format::Table {
            output.push(&format!("\n{}", published()))?;
        }
        if !charts.is_empty() {
            let drawn = chart(&outcomes).to_svg();
            let drawn = drawn.map_err(|error| Stop::Failed(error.to_string()))?;
            charts.write(&[(FILE.to_owned(), drawn)])?;
        }
        output.commit()
    }
}

/// The keys of a row.
fn keys() -> Vec<&'static str> {
    let keys = [
        "ranks",
        "latency_us",
        "bandwidth_mb_per_s",
        "bandwidth_size_bytes",
        "messages_per_s",
        "barrier_us",
    ];
    HEAD.iter().copied().chain(keys).collect()
}

fn rows(outcomes: &[(&Compared, Outcome)]) -> Vec<Vec<Cell>> {
    let rows = outcomes.iter().map(|(of, outcome)| {
        let (bytes, bandwidth) = outcome.best();
        let mut row = head(&of.job);
        row.extend([
            Cell::Count(of.job.ranks.into()),
            Cell::micros(outcome.latency),
            Cell::fraction(bandwidth),
            Cell::Count(bytes),
            Cell::Count((1e6 / outcome.send.as_us()) as u64),
            Cell::micros(outcome.barrier),
        ]);
        row
    });
    rows.collect()
}

/// The published figures.
fn published() -> String {
    let rows = PUBLISHED.map(|(library, chip, bandwidth)| {
        vec![
            Cell::text(library),
            Cell::text(chip),
            Cell::Count(bandwidth as u64),
        ]
    });
    let keys = ["published", "chip", "bandwidth_mb_per_s"];
    rendered(&keys, &rows, Format::Table)
}

/// Bandwidth over the sizes of messages, with the published ones at the right.
fn chart(outcomes: &[(&Compared, Outcome)]) -> Chart {
    let colours = [BLUES[3], ORANGES[3], (60, 140, 70), (130, 80, 160)];
    let curves = outcomes.iter().zip(colours.iter().cycle());
    let curves = curves.map(|((of, outcome), &colour)| Curve {
        group: "Simulated".into(),
        label: format!("{}, {}", of.job.machine.name(), of.job.library),
        points: (outcome.bandwidths.iter())
            .map(|&(bytes, bandwidth)| (bytes as f64, bandwidth))
            .collect(),
        colour,
        stroke: Stroke::Dotted,
    });
    let curves: Vec<Curve> = curves.collect();
    let largest = outcomes.iter().flat_map(|(_, outcome)| &outcome.bandwidths);
    let largest = largest.map(|&(bytes, _)| bytes).max().unwrap_or(1);
    let names = PUBLISHED.map(|(library, _, bandwidth)| format!("{library} {bandwidth:.0}"));
    Chart {
        title: "Bandwidth of MPI, machine by machine".into(),
        subtitle: "simulated: a ping-pong of the first and the last rank".into(),
        x: Axis::decades("Message [B]", &curves, |point| point.0),
        y: Axis::decades("Bandwidth [MB/s]", &curves, |point| point.1),
        curves,
        marks: vec![Marks {
            group: "Published".into(),
            label: "largest bandwidths".into(),
            points: PUBLISHED
                .map(|(.., bandwidth)| (largest as f64, bandwidth))
                .into(),
            symbol: Symbol::Diamond,
        }],
        caption: vec![
            format!("Published (Ho et al., Sec. VII): {}.", names.join(", ")),
            format!("sme {}.", env!("CARGO_PKG_VERSION")),
        ],
    }
}
