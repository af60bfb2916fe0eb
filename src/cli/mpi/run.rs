//! `sme mpi run`: MPI programs as they are.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use sme_mpi::abi::Compute;

use super::{HEAD, MpiJob, channel_of_mpi, head, is_trace, kept_of_pairs, most_ranks, stop};
use crate::cli::args;
use crate::cli::flags::{Heading, MachineFlags};
use crate::cli::memory;
use crate::cli::read::{self, Values};
use crate::launch::{self, Failed, Start, Wrong};
use crate::messages::job::{Job, Observe};
use crate::report::Format;
use crate::report::calls::write_calls;
use crate::report::output::Output;
use crate::report::profile;
use crate::report::row::Cell;
use crate::report::stop::{Stop, to_stderr};
use crate::report::timeline;

/// The flags of `sme mpi run`.
#[derive(Args, Clone, Debug)]
pub struct RunFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The channel that carries the messages: see `sme mpi pingpong --help` [default: that of MPI
    /// on the machine]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Ranks, each a process here
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value = "2",
        allow_negative_numbers = true
    )]
    ranks: String,
    /// Time of the program's own computing: zero, so that only communication costs; declared, as
    /// the program says by sme_compute (include/sme.h); measured, what its thread takes here, or
    /// measured:FACTOR, so many times as much
    #[arg(long, value_name = "HOW", default_value = "zero")]
    compute: String,
    /// Let the clocks that programs read (clock_gettime, gettimeofday, time) tell the time of
    /// MPI_Wtime, and sleep and nanosleep take simulated time, in the thread that has called
    /// MPI_Init, from then on
    #[arg(long)]
    intercept_clocks: bool,
    /// Begin each line of output with the rank that wrote it
    #[arg(long, help_heading = "Output")]
    prefix: bool,
    /// Write every call of every rank: CSV with rank,call,begin_ns,end_ns,peer,bytes in the order
    /// of begin_ns. A file whose name ends with .pftrace has the calls and waits of every thread,
    /// for https://ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    timeline: Option<PathBuf>,
    /// Write the time of all calls by call, peer and size of the message (up to a power of two),
    /// summed over the ranks, the longest first: CSV, or JSON lines if FILE ends in .json or .jsonl
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    profile: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// A run whose flags fit together.
#[derive(Debug)]
pub(super) struct Run {
    job: Job,
    start: Start,
    compute: Compute,
    timeline: Option<PathBuf>,
    profile: Option<PathBuf>,
}

impl RunFlags {
    pub(super) fn read(&self) -> Result<Run, Stop> {
        const RANKS: &str = "--ranks";
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        let most = most_ranks(&machine);
        let ranks = read::counts(RANKS, &self.ranks, 1, most, Values::One)?;
        let ranks = read::one(RANKS, ranks)?;
        let job = Job::new(Arc::new(machine), library, ranks);
        memory::enough(RANKS, kept_of_pairs(&job), memory::available())?;
        let compute = compute(&self.compute)?;
        Ok(Run {
            job,
            start: Start {
                command: self.command.clone(),
                ranks,
                has_prefix: self.prefix,
                measures: matches!(compute, Compute::Measured(_)),
                intercepts_clocks: self.intercept_clocks,
            },
            compute,
            timeline: self.timeline.clone(),
            profile: self.profile.clone(),
        })
    }
}

/// Reads `--compute`.
fn compute(text: &str) -> Result<Compute, Stop> {
    const FLAG: &str = "--compute";
    match text.split_once(':') {
        None if text == "zero" => Ok(Compute::Zero),
        None if text == "declared" => Ok(Compute::Declared),
        None if text == "measured" => Ok(Compute::Measured(1.0)),
        Some(("measured", factor)) => {
            let factor = read::real(FLAG, factor, &(1e-6..=1e6))?;
            Ok(Compute::Measured(factor))
        }
        _ => Err(Stop::flag(
            FLAG,
            format!("{text} is neither zero, declared, measured nor measured:FACTOR"),
        )),
    }
}

impl MpiJob for Run {
    /// The program's output is its own.
    fn heading(&self) -> Option<Heading> {
        None
    }

    fn run(&self) -> Result<(), Stop> {
        let open = |flag, path: &Option<PathBuf>| match path {
            Some(path) => Output::file(flag, path).map(Some),
            None => Ok(None),
        };
        let output = open(timeline::FLAG, &self.timeline)?;
        let profiled = open(profile::FLAG, &self.profile)?;
        let is_trace = is_trace(self.timeline.as_deref());
        let observe = Observe {
            calls: profiled.is_some() || output.is_some() && !is_trace,
            timeline: is_trace,
            critical_path: None,
        };
        let begin = Instant::now();
        let observed = launch::run(&self.job, &self.start, self.compute, observe);
        let observed = observed.map_err(|failed| match failed {
            Failed::Wrong(wrong @ Wrong::NoProgram { .. }) => Stop::Input(wrong.to_string()),
            Failed::Wrong(wrong) => Stop::Failed(wrong.to_string()),
            Failed::Simulation(error) => stop(error),
        })?;
        if let Some(output) = output {
            match is_trace {
                true => timeline::write(output, &observed.timeline)?,
                false => write_calls(output, &observed.calls)?,
            }
        }
        if let (Some(output), Some(path)) = (profiled, &self.profile) {
            let format = Format::of_file(path).unwrap_or(Format::Csv);
            let (heading, mut cells) = ([&HEAD[..], &["ranks"]].concat(), head(&self.job));
            cells.push(Cell::Count(self.job.ranks.into()));
            profile::write(output, (&heading, &cells), &observed.calls, format)?;
        }
        to_stderr(&format!(
            "sme: {} ranks on {}: {} messages, {:.1} s here\n",
            self.job.ranks,
            self.job.machine.name(),
            observed.messages,
            begin.elapsed().as_secs_f64()
        ));
        Ok(())
    }
}
