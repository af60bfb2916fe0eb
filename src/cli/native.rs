//! `sme native`: the barriers on this computer's real threads.
//!
//! Called by [`super::main`]; measured by [`crate::native`]. Times in nanoseconds a barrier. Every
//! figure depends on this computer, so there is nothing that `--no-host` could leave.

use std::time::Duration;

use clap::Args;
use sme_barrier::Algorithm;
use sme_barrier::native::{MOST_THREADS, Options};
use sme_sim::time::Time;

use super::flags::{FileFlags, Heading};
use super::read;
use crate::native::{Latency, NativeError, NativePlan, NativeReport};
use crate::progress;
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::{Stop, one_line};

/// The flags of `sme native`.
#[derive(Args, Clone, Debug)]
pub struct NativeFlags {
    /// Numbers of threads, a list such as 2,4 or 2..16*2
    #[arg(
        long,
        value_name = "THREADS",
        default_value = "2..16*2",
        allow_negative_numbers = true
    )]
    threads: String,
    /// Barrier: flag-phase, flat, tree, dissemination, butterfly, pthread or counter; where it
    /// tells nodes from threads, every thread is a node
    #[arg(long, value_name = "NAME", default_value = "flag-phase")]
    algorithm: String,
    /// Most notifications a thread of the tree receives [default: 8]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    fan_in: Option<String>,
    /// How flags lie in memory: side by side with the phase (packed) or without it (split), or a
    /// cache line each (padded)
    #[arg(long, value_name = "NAME", default_value = "padded")]
    layout: String,
    /// How often each barrier is measured; they take turns
    #[arg(
        long,
        value_name = "N",
        default_value = "11",
        allow_negative_numbers = true
    )]
    repetitions: String,
    /// About how long one turn lasts
    #[arg(
        long,
        value_name = "TIME",
        default_value = "20ms",
        allow_hyphen_values = true
    )]
    turn: String,
    #[command(flatten)]
    output: FileFlags,
}

/// A measurement whose flags fit together.
#[derive(Clone, Debug)]
pub struct NativeRun {
    plan: NativePlan,
    output: FileFlags,
}

impl NativeRun {
    /// Reads the flags.
    pub fn read(flags: &NativeFlags) -> Result<Self, Stop> {
        let algorithm = read::name("--algorithm", &flags.algorithm)?;
        let mut options = Options {
            algorithm,
            spacing: read::name("--layout", &flags.layout)?,
            ..Options::default()
        };
        if let Some(text) = &flags.fan_in {
            if algorithm != Algorithm::Tree {
                return Err(Stop::flag(
                    "--fan-in",
                    format!("--algorithm {algorithm} does not use it"),
                ));
            }
            options.fan_in = read::fan_in(text)?;
        }
        let turn = read::time("--turn", &flags.turn)?;
        if turn == Time::ZERO {
            return Err(Stop::flag("--turn", "a turn must take some time"));
        }
        Ok(Self {
            plan: NativePlan {
                threads: read::threads("--threads", &flags.threads, MOST_THREADS)?,
                options,
                repetitions: read::repetitions(&flags.repetitions)?,
                turn: Duration::from_nanos(turn.as_ps().div_ceil(1_000)),
            },
            output: flags.output.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.heading(HEADING, false)
    }

    /// Measures, and writes a row for each number of threads.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.output.output.as_deref())?;
        let watch = progress::on_stderr();
        let mut told = None;
        let measured = NativeReport::measure(&self.plan, |done, total| {
            match told {
                None => watch.begin("turns", total),
                Some(before) => watch.advance(done.saturating_sub(before)),
            }
            told = Some(done);
        });
        watch.end();
        let report = measured.map_err(|error| match error {
            NativeError::Barrier(_) | NativeError::Threads { .. } => Stop::flag("--threads", error),
            other => Stop::Failed(one_line(&other.to_string())),
        })?;
        output.push(&self.output.rendered(HEADING, &self.rows(&report))?)?;
        output.commit()
    }

    fn rows(&self, report: &NativeReport) -> Vec<Vec<Cell>> {
        let options = &self.plan.options;
        let latency = |latency: Option<Latency>| {
            let times = latency.map(|l| [l.median_ns, l.min_ns, l.max_ns]);
            times.map_or([Cell::Absent, Cell::Absent, Cell::Absent], |t| t.map(nanos))
        };
        let rows = report.rows.iter().map(|row| {
            let mut cells = vec![
                Cell::text(env!("CARGO_PKG_VERSION")),
                Cell::text(options.algorithm),
                match options.algorithm {
                    Algorithm::Tree => Cell::Count(options.fan_in.into()),
                    _ => Cell::Absent,
                },
                Cell::text(options.spacing),
                Cell::Count(report.processors as u64),
                Cell::Count(row.threads as u64),
                nanos(report.round_trip.median_ns),
            ];
            cells.extend(latency(Some(row.sme)));
            cells.extend(latency(Some(row.std)));
            cells.extend(latency(row.pthread));
            cells
        });
        rows.collect()
    }
}

const HEADING: &[&str] = &[
    "version",
    "algorithm",
    "fan_in",
    "layout",
    "processors",
    "threads",
    "round_trip_median_ns",
    "sme_median_ns",
    "sme_min_ns",
    "sme_max_ns",
    "std_median_ns",
    "std_min_ns",
    "std_max_ns",
    "pthread_median_ns",
    "pthread_min_ns",
    "pthread_max_ns",
];

/// To a tenth of a nanosecond.
fn nanos(ns: f64) -> Cell {
    Cell::Fixed {
        units: (ns * 10.0).round() as u64,
        decimals: 1,
    }
}
