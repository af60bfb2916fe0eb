//! `sme coherence measure`.

use std::collections::BTreeSet;

use clap::Args;

use super::host::{self, Host, stopped};
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::memory;
use crate::cli::read::{self, Values};
use crate::coherence::measure::cpus::Cpus;
use crate::coherence::measure::lines::LINE_BYTES;
use crate::coherence::measure::run::{MeasurementPlan, Report, measure};
use crate::coherence::table::{HEADING, Row};
use crate::coherence::transition::{Curve, Transition};
use crate::progress;
use crate::report::output::Output;
use crate::report::stop::{Stop, to_stderr};

/// The flags of `sme coherence measure`.
#[derive(Args, Clone, Debug)]
pub struct MeasureFlags {
    /// CPUs, the one that is timed first, as Linux numbers them [default: the first that the
    /// process may use, two on other cores of its socket, and two on another socket]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    cores: Option<String>,
    /// Sizes of the buffer in bytes (multiples of 64)
    #[arg(
        long,
        value_name = "LIST",
        default_value = "16384..8388608*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// How often each row is measured
    #[arg(
        long,
        value_name = "N",
        default_value = "21",
        allow_negative_numbers = true
    )]
    repetitions: String,
    /// Which accesses are measured, such as LMM,SHS [default: all]
    #[arg(long, value_name = "NAMES")]
    transitions: Option<String>,
    /// The machine's name in the rows [default: what the system calls the processor]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    #[command(flatten)]
    file: FileFlags,
}

/// The largest buffer (bytes).
const MOST_BYTES: u64 = 1 << 32;

/// A measurement whose flags fit together.
#[derive(Debug)]
pub(super) struct MeasureRun {
    host: Host,
    sizes: Vec<usize>,
    repetitions: u32,
    transitions: Vec<Transition>,
    file: FileFlags,
}

impl MeasureFlags {
    pub(super) fn read(&self) -> Result<MeasureRun, Stop> {
        Ok(MeasureRun {
            host: Host::read(self.cores.as_deref(), self.name.as_deref())?,
            sizes: sizes(&self.sizes)?,
            repetitions: read::repetitions(&self.repetitions)?,
            transitions: self.transitions.as_deref().map_or(Ok(Vec::new()), named)?,
            file: self.file.clone(),
        })
    }
}

/// Reads `--sizes text`: each once.
fn sizes(text: &str) -> Result<Vec<usize>, Stop> {
    let flag = "--sizes";
    let list = read::numbers(flag, text, LINE_BYTES as u64, MOST_BYTES, Values::Many)?;
    let mut sizes = BTreeSet::new();
    for size in list {
        if !size.is_multiple_of(LINE_BYTES as u64) {
            let reason = format!("{size} is not a multiple of {LINE_BYTES}");
            return Err(Stop::flag(flag, reason));
        }
        let size = usize::try_from(size).map_err(|error| Stop::flag(flag, error))?;
        if !sizes.insert(size) {
            return Err(Stop::flag(flag, format!("{size} is given twice")));
        }
    }
    Ok(sizes.into_iter().collect())
}

/// Reads `--transitions text`.
fn named(text: &str) -> Result<Vec<Transition>, Stop> {
    let flag = "--transitions";
    let words = read::words(flag, text, Values::Many)?.into_iter();
    let read = |word: &str| word.parse().map_err(|error| Stop::flag(flag, error));
    words.map(read).collect()
}

impl MeasureRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let largest = self.sizes.last().copied().unwrap_or_default();
        memory::enough(
            &format!("--sizes {largest}"),
            largest as u64,
            memory::available(),
        )?;
        let plan = MeasurementPlan {
            machine: self.host.name(),
            cpus: self.host.cpus()?,
            sizes: self.sizes.clone(),
            repetitions: self.repetitions,
            transitions: self.transitions.clone(),
        };
        begun(&plan.cpus);
        let watch = progress::on_stderr();
        let report = measure(&plan, watch.as_ref()).map_err(stopped)?;
        told(&report, &plan.cpus);
        if report.rows.is_empty() {
            return Err(Stop::Failed("nothing was measured".into()));
        }
        let rows: Vec<_> = report.rows.iter().map(Row::cells).collect();
        output.push(&self.file.rendered(&HEADING, &rows)?)?;
        output.commit()
    }
}

/// Says on stderr which CPUs are used.
fn begun(cpus: &Cpus) {
    let mut text = format!("CPU {} is timed", cpus.measuring.id);
    for &cpu in &cpus.holders {
        let place = host::place(cpus.measuring, cpu);
        text += &format!("; CPU {} prepares ({place})", cpu.id);
    }
    to_stderr(&(text + "\n"));
    host::warn_if_unoptimized();
}

/// Says on stderr what the rows do not: round trips, and what is missing.
fn told(report: &Report, cpus: &Cpus) {
    host::tell_round_trips(cpus.measuring, &report.round_trips);
    for (reason, curves) in &report.unmeasurable {
        let names: Vec<String> = curves.iter().map(Curve::to_string).collect();
        to_stderr(&format!("not measured: {}: {reason}\n", names.join(", ")));
    }
    for row in &report.dropped {
        to_stderr(&format!(
            "dropped: {} at {} bytes: {}\n",
            row.curve, row.buffer_bytes, row.reason
        ));
    }
}
