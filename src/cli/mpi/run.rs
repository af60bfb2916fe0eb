//! `sme mpi run`: MPI programs as they are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use sme_mpi::abi::Compute;
use sme_mpi::abi::facts::CALLS;

use super::{HEAD, MpiJob, channel_of_mpi, estimate, head, is_trace, most_ranks, stop};
use crate::cli::args;
use crate::cli::flags::{Heading, MachineFlags};
use crate::cli::memory;
use crate::cli::read::{self, Values};
use crate::launch::{self, Failed, Start, Wrong};
use crate::messages::choice::CallChoice;
use crate::messages::job::{Job, Library, Observe};
use crate::report::Format;
use crate::report::calls::write_calls;
use crate::report::explain;
use crate::report::output::Output;
use crate::report::profile;
use crate::report::row::Cell;
use crate::report::stop::{Stop, to_stderr};
use crate::report::temporary;
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
    /// Ranks in all: those above -n have no process until others start one there (MPI_Comm_spawn).
    /// The channel's buffers are divided among all [default: as many as -n]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    universe: Option<String>,
    /// Time of the program's own computing: zero, so that only communication costs; fixed:TIME, so
    /// much after each call that takes time; declared, as the program says by sme_compute
    /// (include/sme.h); measured, what its thread takes here, or measured:FACTOR, so many times as
    /// much
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
    /// Show on stderr the critical path of a call: of the longest one but MPI_Finalize; with
    /// --explain=MPI_Recv of the longest MPI_Recv; with --explain=2:MPI_Recv of rank 2's longest;
    /// with --explain=2:MPI_Recv:5 of its fifth
    #[arg(
        long,
        value_name = "CALL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = "Output"
    )]
    explain: Option<String>,
    /// Write that path: at_ns,duration_ns,node,part,queued_for,what as CSV, or as JSON lines if
    /// FILE ends in .json or .jsonl
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    explain_to: Option<PathBuf>,
    /// Check every load of shared memory: whether it returned the newest value that had happened
    /// before it. What did not is told on stderr
    #[arg(long, help_heading = "Output")]
    stale: bool,
    /// Write the time of all calls by call, peer and size of the message (up to a power of two),
    /// summed over the ranks, the longest first: CSV, or JSON lines if FILE ends in .json or
    /// .jsonl; - shows it as a table on stderr
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
    explain: bool,
    explain_to: Option<PathBuf>,
    /// The call whose critical path is wanted, if one is.
    call: Option<CallChoice>,
    stale: bool,
}

impl RunFlags {
    pub(super) fn read(&self) -> Result<Run, Stop> {
        const RANKS: &str = "--ranks";
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        if self.stale && library == Library::Queues {
            let why = "the checker does not see what a network on chip writes to memory";
            return Err(Stop::flag(
                "--stale",
                format!("{why}, as of channel {library}"),
            ));
        }
        let most = most_ranks(&machine);
        let ranks = read::counts(RANKS, &self.ranks, 1, most, Values::One)?;
        let ranks = read::one(RANKS, ranks)?;
        let (flag, universe) = match &self.universe {
            None => (RANKS, ranks),
            Some(text) => {
                const UNIVERSE: &str = "--universe";
                let universe = read::counts(UNIVERSE, text, ranks, most, Values::One)?;
                (UNIVERSE, read::one(UNIVERSE, universe)?)
            }
        };
        let job = Job::new(Arc::new(machine), library, universe);
        memory::enough(flag, estimate::of_processes(&job), memory::available())?;
        let compute = compute(&self.compute)?;
        let call = match &self.explain {
            Some(text) if !text.is_empty() => Some(call(text, universe)?),
            None if self.explain_to.is_none() => None,
            _ => Some(CallChoice::default()),
        };
        Ok(Run {
            job,
            start: Start {
                command: self.command.clone(),
                ranks,
                universe,
                has_prefix: self.prefix,
                measures: matches!(compute, Compute::Measured(_)),
                intercepts_clocks: self.intercept_clocks,
            },
            compute,
            timeline: self.timeline.clone(),
            profile: self.profile.clone(),
            explain: self.explain.is_some(),
            explain_to: self.explain_to.clone(),
            call,
            stale: self.stale,
        })
    }
}

/// Returns whether a file is named `-`.
fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads `--explain`: CALL, RANK:CALL or RANK:CALL:N.
fn call(text: &str, ranks: u32) -> Result<CallChoice, Stop> {
    const FLAG: &str = "--explain";
    let words: Vec<&str> = text.split(':').collect();
    let (rank, name, number) = match *words {
        [name] => (None, name, None),
        [rank, name] => (Some(rank), name, None),
        [rank, name, number] => (Some(rank), name, Some(number)),
        _ => {
            let why = format!("{text} is neither CALL, RANK:CALL nor RANK:CALL:N");
            return Err(Stop::flag(FLAG, why));
        }
    };
    let mut known = CALLS.iter().map(|call| call.full_name.as_str());
    let known = known.find(|known| *known == name);
    let name = known.ok_or_else(|| Stop::flag(FLAG, format!("{name} is no call of MPI")))?;
    let number_of = |text, least, most| {
        let numbers = read::numbers(FLAG, text, least, most, Values::One)?;
        read::one(FLAG, numbers)
    };
    let rank = rank.map(|text| number_of(text, 0, u64::from(ranks) - 1));
    let number = number.map(|text| number_of(text, 1, u64::MAX));
    Ok(CallChoice {
        name: Some(name),
        rank: rank.transpose()?.map(|rank| rank as u32),
        number: number.transpose()?,
    })
}

impl Run {
    /// Says for which flags there is nothing to show after a run that has not ended well.
    fn shows_nothing(&self, stopped: &Stop) {
        let flags = [
            (timeline::FLAG, self.timeline.is_some()),
            ("--profile", self.profile.is_some()),
            ("--explain", self.call.is_some()),
        ];
        let given = flags.iter().filter(|(_, is_given)| *is_given);
        let given: Vec<&str> = given.map(|(flag, _)| *flag).collect();
        if matches!(stopped, Stop::Failed(_)) && !given.is_empty() {
            let given = given.join(", ");
            to_stderr(&format!(
                "sme: {given}: the run has not ended well, and nothing is shown\n"
            ));
        }
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
        Some(("fixed", time)) => Ok(Compute::Fixed(read::time(FLAG, time)?.as_ps())),
        _ => Err(Stop::flag(
            FLAG,
            format!("{text} is neither zero, fixed:TIME, declared, measured nor measured:FACTOR"),
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
        let path = open(explain::FLAG, &self.explain_to)?;
        let file = self.profile.clone().filter(|path| !is_dash(path));
        let profiled = open(profile::FLAG, &file)?;
        let is_trace = is_trace(self.timeline.as_deref());
        let observe = Observe {
            calls: self.profile.is_some() || output.is_some() && !is_trace,
            timeline: is_trace,
            critical_path: None,
            call: self.call,
            stale: self.stale,
        };
        let begin = Instant::now();
        let libraries = temporary::for_programs()?;
        let libraries = libraries.path();
        let observed = launch::run(&self.job, &self.start, libraries, self.compute, observe);
        let observed = observed.map_err(|failed| match failed {
            Failed::Wrong(wrong @ Wrong::NoProgram { .. }) => Stop::Input(wrong.to_string()),
            failed @ (Failed::Wrong(_) | Failed::Stale { .. }) => Stop::Failed(failed.to_string()),
            Failed::Simulation(error) => stop(error),
        });
        let observed = observed.inspect_err(|stopped| self.shows_nothing(stopped))?;
        if let Some(output) = output {
            match is_trace {
                true => timeline::write(output, &observed.timeline)?,
                false => write_calls(output, &observed.calls)?,
            }
        }
        if let (Some(output), Some(file), Some(_)) = (path, &self.explain_to, observed.explained) {
            let format = Format::of_file(file).unwrap_or(Format::Csv);
            explain::write(output, &observed.critical_path, format)?;
        }
        if let (Some(output), Some(path)) = (profiled, &self.profile) {
            let format = Format::of_file(path).unwrap_or(Format::Csv);
            let (heading, mut cells) = ([&HEAD[..], &["ranks"]].concat(), head(&self.job));
            cells.push(Cell::Count(self.job.ranks.into()));
            profile::write(output, (&heading, &cells), &observed.calls, format)?;
        }
        if self.profile.as_deref().is_some_and(is_dash) {
            to_stderr(&profile::table(&observed.calls));
        }
        if let (true, Some((rank, ended))) = (self.explain, observed.explained) {
            let whole = format!("{} of rank {rank}", ended.call);
            to_stderr(&format!(
                "\n{}\n",
                explain::critical_path(&whole, &observed.critical_path)
            ));
        }
        if let Some(report) = &observed.stale {
            to_stderr(&report.to_string());
        }
        let of = match self.job.ranks > self.start.ranks {
            true => format!(" of {}", self.job.ranks),
            false => String::new(),
        };
        to_stderr(&format!(
            "sme: {}{of} ranks on {}: {} messages, {:.1} s here\n",
            self.start.ranks,
            self.job.machine.name(),
            observed.messages,
            begin.elapsed().as_secs_f64()
        ));
        if self.call.is_some() && observed.explained.is_none() {
            let why = "the program has made no such call, or the library none with this name";
            return Err(Stop::Failed(format!("--explain: {why}")));
        }
        Ok(())
    }
}
