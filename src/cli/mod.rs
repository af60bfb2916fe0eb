//! The commands: flags in, rows out.
//!
//! Called by the program's `main`. A command line is first read into a [`Job`], whose parts fit
//! together; only then is anything simulated or written. Results go to stdout or to files,
//! everything else to stderr; the exit status is 0 when done, 1 when the run failed, 2 for bad
//! input.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub mod args;
pub mod barrier;
mod charts;
pub mod coherence;
mod colour;
pub mod extrapolate;
pub mod fft;
pub mod fft_paper;
pub mod flags;
pub mod latency;
pub mod list;
pub mod litmus;
pub mod lock;
pub mod lu;
pub mod machines;
pub mod memory;
pub mod mpi;
pub mod names;
pub mod native;
pub mod network;
pub mod noise;
pub mod paths;
pub mod plot;
pub mod program;
pub mod program_row;
pub mod radix;
pub mod read;
pub mod rows;
pub mod rtl;
pub mod run;
pub mod sweep;
pub mod validate;
pub mod waves;

mod available;
mod help;
#[cfg(unix)]
mod signals;

use crate::report::output::Output;
use crate::report::stop::{Stop, one_line, to_stderr};
use crate::report::temporary;

use crate::distributed::{Crew, agreed};
use crate::progress;
use flags::Heading;

/// Does what `arguments` (the program's name first) ask for.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(status(arguments))
}

/// The same as [`main`], for a `main` in another language: returns the exit status.
pub fn status(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(feature = "mpi")]
    if let Some(status) = crate::distributed::mpi::launched(|crew| {
        let done = crate::distributed::run(arguments.clone(), crew, Job::run_shared);
        match crew.me() {
            0 => ended(done),
            // The status of the run is that of the first process: they have agreed.
            _ => 0,
        }
    }) {
        return status;
    }
    #[cfg(unix)]
    signals::watch();
    with_stack(move || ended(Job::read(arguments).and_then(|job| job.run())))
}

/// Bytes of stack that any job can do with.
pub const STACK_BYTES: usize = 16 << 20;

/// Does `job` on a stack of its own: the one that the program was started with may be of any size
/// (`ulimit -s`).
fn with_stack<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    match thread.spawn(job).map(std::thread::JoinHandle::join) {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            to_stderr(&format!("sme: no thread can be started: {error}\n"));
            std::process::exit(1)
        }
    }
}

/// Tells the user why a job stopped, if it did; returns the exit status.
fn ended(done: Result<(), Stop>) -> u8 {
    let stop = match done {
        Ok(()) => return 0,
        // A signal that ends the program has its own line, and takes files away meanwhile.
        Err(stop) => temporary::unless_ending(|| stop),
    };
    match &stop {
        Stop::Unread => {}
        Stop::Help(text) => {
            let mut stdout = Output::stdout();
            let shown = stdout.push(text).and_then(|()| stdout.commit());
            // A reader that closes the pipe has read enough; a full disk is told.
            return ended(shown);
        }
        Stop::Input(_) | Stop::Failed(_) => to_stderr(&format!("sme: {stop}\n")),
    }
    stop.status()
}

/// The job a command line asks for, ready to run.
#[derive(Debug)]
pub enum Job {
    /// `sme barrier`
    Barrier(Box<barrier::BarrierRun>),
    /// `sme sweep`
    Sweep(Box<sweep::Sweep>),
    /// `sme extrapolate`
    Extrapolate(Box<extrapolate::ExtrapolateRun>),
    /// `sme validate`
    Validate(validate::ValidateRun),
    /// `sme machines`
    Machines(machines::Machines),
    /// `sme rtl`
    Rtl(Box<rtl::Rtl>),
    /// `sme lock`
    Lock(Box<lock::LockRun>),
    /// `sme latency`
    Latency(Box<latency::LatencyRun>),
    /// `sme fft`
    Fft(Box<fft::FftRun>),
    /// `sme fft --paper`
    FftPaper(Box<fft_paper::FftPaper>),
    /// `sme lu`
    Lu(Box<lu::LuRun>),
    /// `sme radix`
    Radix(Box<radix::RadixRun>),
    /// `sme native`
    Native(native::NativeRun),
    /// `sme network`
    Network(Box<network::NetworkRun>),
    /// `sme litmus`
    Litmus(Box<litmus::LitmusRun>),
    /// `sme mpi`
    Mpi(Box<mpi::MpiRun>),
    /// `sme coherence`
    Coherence(Box<coherence::CoherenceRun>),
    /// `sme plot`
    Plot(Box<plot::PlotRun>),
    /// `sme run`
    Run(Box<run::RunJob>),
    /// No command: the paper's headline experiment.
    Paper,
}

impl Job {
    /// Reads `arguments`, the program's name first. Nothing is simulated or written.
    ///
    /// # Errors
    /// [`Stop::Input`] for flags that do not fit together, and for columns that the rows will not
    /// have.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Stop> {
        let mut command = command();
        let matches = command.try_get_matches_from_mut(arguments);
        let matches = matches.map_err(|error| stopped(&error))?;
        paths::check(&command, &matches)?;
        let line = CommandLine::from_arg_matches(&matches)
            .map_err(|error| stopped(&error.format(&mut command)))?;
        let job = Self::of(line.command)?;
        job.heading()
            .map_or(Ok(()), |heading| heading.written().map(drop))?;
        Ok(job)
    }

    fn of(command: Option<Command>) -> Result<Self, Stop> {
        match command {
            None => Ok(Self::Paper),
            Some(Command::Barrier(flags)) => {
                let run = barrier::BarrierRun::read(&flags)?;
                Ok(Self::Barrier(Box::new(run)))
            }
            Some(Command::Sweep(flags)) => Ok(Self::Sweep(Box::new(sweep::Sweep::read(&flags)?))),
            Some(Command::Extrapolate(flags)) => extrapolate::ExtrapolateRun::read(&flags)
                .map(|run| Self::Extrapolate(Box::new(run))),
            Some(Command::Validate(flags)) => {
                validate::ValidateRun::read(&flags).map(Self::Validate)
            }
            Some(Command::Machines(flags)) => {
                machines::Machines::read(flags.command).map(Self::Machines)
            }
            Some(Command::Rtl(flags)) => {
                rtl::Rtl::read(&flags.command).map(|rtl| Self::Rtl(Box::new(rtl)))
            }
            Some(Command::Lock(flags)) => {
                lock::LockRun::read(&flags).map(|run| Self::Lock(Box::new(run)))
            }
            Some(Command::Latency(flags)) => {
                latency::LatencyRun::read(&flags).map(|run| Self::Latency(Box::new(run)))
            }
            Some(Command::Litmus(flags)) => {
                litmus::LitmusRun::read(&flags).map(|run| Self::Litmus(Box::new(run)))
            }
            Some(Command::Fft(flags)) if flags.is_paper() => {
                fft_paper::FftPaper::read(&flags).map(|run| Self::FftPaper(Box::new(run)))
            }
            Some(Command::Fft(flags)) => {
                fft::FftRun::read(&flags).map(|run| Self::Fft(Box::new(run)))
            }
            Some(Command::Lu(flags)) => lu::LuRun::read(&flags).map(|run| Self::Lu(Box::new(run))),
            Some(Command::Radix(flags)) => {
                radix::RadixRun::read(&flags).map(|run| Self::Radix(Box::new(run)))
            }
            Some(Command::Native(flags)) => native::NativeRun::read(&flags).map(Self::Native),
            Some(Command::Mpi(flags)) => {
                mpi::MpiRun::read(&flags.command).map(|run| Self::Mpi(Box::new(run)))
            }
            Some(Command::Coherence(flags)) => coherence::CoherenceRun::read(&flags.command)
                .map(|run| Self::Coherence(Box::new(run))),
            Some(Command::Plot(flags)) => {
                plot::PlotRun::read(&flags).map(|run| Self::Plot(Box::new(run)))
            }
            Some(Command::Run(flags)) => {
                run::RunJob::read(&flags).map(|run| Self::Run(Box::new(run)))
            }
            Some(Command::Network(flags)) => {
                network::NetworkRun::read(&flags).map(|run| Self::Network(Box::new(run)))
            }
        }
    }

    /// The keys of its rows; none where it has no rows, or more than one kind of them.
    pub fn heading(&self) -> Option<Heading> {
        match self {
            Self::Barrier(run) => Some(run.heading()),
            Self::Sweep(sweep) => Some(sweep.heading()),
            Self::Extrapolate(run) => Some(run.heading()),
            Self::Validate(run) => Some(run.heading()),
            Self::Machines(machines) => Some(machines.heading()),
            Self::Rtl(rtl) => Some(rtl.heading()),
            Self::Lock(run) => Some(run.heading()),
            Self::Latency(run) => Some(run.heading()),
            Self::Fft(run) => Some(run.heading()),
            Self::Lu(run) => Some(run.heading()),
            Self::Radix(run) => Some(run.heading()),
            Self::Native(run) => Some(run.heading()),
            Self::Network(run) => Some(run.heading()),
            Self::Litmus(run) => Some(run.heading()),
            Self::Mpi(run) => run.heading(),
            Self::Coherence(run) => Some(run.heading()),
            Self::FftPaper(_) | Self::Plot(_) | Self::Run(_) | Self::Paper => None,
        }
    }

    /// Runs it together with the processes of `crew`.
    ///
    /// # Errors
    /// [`Stop`]; [`Stop::Input`] if only one process can do it.
    pub fn run_among(self, crew: &mut dyn Crew) -> Result<(), Stop> {
        match self {
            Self::Barrier(run) => run.run_among(crew),
            Self::Sweep(sweep) => sweep.run_among(crew),
            _ if crew.count() > 1 => Err(Stop::Input(
                "only sme barrier and sme sweep can be shared by several processes".into(),
            )),
            other => other.run(),
        }
    }

    /// Runs what `arguments` ask for, if all processes of `crew` have read the same.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::run_among`].
    pub fn run_shared(arguments: Vec<OsString>, crew: &mut dyn Crew) -> Result<(), Stop> {
        let job = agreed(crew, Self::read(arguments))?;
        job.run_among(crew)
    }

    /// Runs it.
    pub fn run(self) -> Result<(), Stop> {
        match self {
            Self::Barrier(run) => run.run(),
            Self::Sweep(sweep) => sweep.run(),
            Self::Extrapolate(run) => run.run(),
            Self::Validate(run) => run.run(),
            Self::Machines(machines) => machines.run(),
            Self::Rtl(rtl) => rtl.run(),
            Self::Lock(run) => run.run(),
            Self::Latency(run) => run.run(),
            Self::Fft(run) => run.run(),
            Self::FftPaper(run) => run.run(),
            Self::Lu(run) => run.run(),
            Self::Radix(run) => run.run(),
            Self::Native(run) => run.run(),
            Self::Network(run) => run.run(),
            Self::Litmus(run) => run.run(),
            Self::Mpi(run) => run.run(),
            Self::Coherence(run) => run.run(),
            Self::Plot(run) => run.run(),
            Self::Run(run) => run.run(),
            Self::Paper => paper(),
        }
    }
}

/// All commands with their flags, as command lines are read.
pub fn command() -> clap::Command {
    help::shortened(CommandLine::command())
}

/// Simulate machines whose memory is shared but not coherent, and the barriers that run on them
///
/// Without a command: simulate the barriers of the published cluster, 1 to 64 nodes of 1 to 16
/// threads, print the latencies beside the published ones, and write the table and the plot under
/// results/.
#[derive(Parser, Debug)]
#[command(name = "sme", version, disable_help_subcommand = true, after_long_help = help::PROGRAM)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Simulate one barrier experiment and print its row
    #[command(after_long_help = help::barrier())]
    Barrier(Box<barrier::BarrierFlags>),
    /// Simulate a row for every combination of lists of nodes, cores, seeds, constants, …
    #[command(after_long_help = help::sweep())]
    Sweep(Box<sweep::SweepFlags>),
    /// Fit the paper's Eq. 2 to a sweep, and predict the latency of larger clusters
    #[command(after_long_help = help::EXTRAPOLATE)]
    Extrapolate(Box<extrapolate::ExtrapolateFlags>),
    /// Compare every published figure with the simulated one
    #[command(after_long_help = help::VALIDATE)]
    Validate(Box<validate::ValidateFlags>),
    /// List the built-in machines, or show the constants of one
    #[command(after_long_help = help::MACHINES)]
    Machines(MachinesFlags),
    /// The engine in RTL: its Verilog, its lockstep with the cycle model, its size and clock
    #[command(after_long_help = help::RTL)]
    Rtl(RtlFlags),
    /// Measure what one load, store, miss, fill and barrier hop cost on a machine, and why
    #[command(after_long_help = help::LATENCY)]
    Latency(Box<latency::LatencyFlags>),
    /// Measure how long a lock takes to pass from one thread to the next
    #[command(after_long_help = help::LOCK)]
    Lock(Box<lock::LockFlags>),
    /// Run litmus tests: which outcomes do local, uncached and non-coherent memory show?
    #[command(after_long_help = help::LITMUS)]
    Litmus(Box<litmus::LitmusFlags>),
    /// Run the fast Fourier transform over memory that is not coherent between nodes
    #[command(after_long_help = help::fft())]
    Fft(Box<fft::FftFlags>),
    /// Run a blocked LU factorization over memory that is not coherent between nodes
    #[command(after_long_help = help::lu())]
    Lu(Box<lu::LuFlags>),
    /// Run a radix sort over memory that is not coherent between nodes
    #[command(after_long_help = help::radix())]
    Radix(Box<radix::RadixFlags>),
    /// Measure the barriers on this computer's real threads
    #[command(after_long_help = help::NATIVE)]
    Native(native::NativeFlags),
    /// Run MPI programs on a machine, and measure its messages and collective calls
    #[command(after_long_help = help::MPI)]
    Mpi(MpiFlags),
    /// Messages through shared memory from the view of cache coherence: measured, and predicted
    #[command(after_long_help = help::COHERENCE)]
    Coherence(CoherenceFlags),
    /// Measure latency over load in the network, under synthetic traffic
    #[command(after_long_help = help::NETWORK)]
    Network(Box<network::NetworkFlags>),
    /// Draw rows that any command wrote, as SVG, PDF or PNG
    #[command(after_long_help = help::PLOT)]
    Plot(Box<plot::PlotFlags>),
    /// Run an experiment file: rows, pictures, and the manifest from which it can be repeated
    #[command(after_long_help = help::RUN)]
    Run(run::RunFlags),
}

#[derive(clap::Args, Debug)]
struct MachinesFlags {
    #[command(subcommand)]
    command: machines::MachinesCommand,
}

#[derive(clap::Args, Debug)]
struct MpiFlags {
    #[command(subcommand)]
    command: mpi::MpiCommand,
}

#[derive(clap::Args, Debug)]
struct CoherenceFlags {
    #[command(subcommand)]
    command: coherence::CoherenceCommand,
}

#[derive(clap::Args, Debug)]
struct RtlFlags {
    #[command(subcommand)]
    command: rtl::RtlCommand,
}

/// Runs the default job: writes its files under `results/`, then prints its text.
fn paper() -> Result<(), Stop> {
    let mut output = Output::stdout();
    let watch = progress::on_stderr();
    let workers = read::all_host_threads();
    let text = crate::paper::run(Path::new("results"), workers, watch.as_ref());
    watch.end();
    output.push(&colour::verdicts(text?, &output))?;
    output.commit()
}

/// The answer of the parser of flags: help as it is, an error on one line.
fn stopped(error: &clap::Error) -> Stop {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return Stop::Help(text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return Stop::Input("a command is missing; see --help".into());
        }
        _ => {}
    }
    let said = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .map(|line| line.strip_prefix("error: ").unwrap_or(line))
        .map(|line| line.strip_prefix("tip: ").unwrap_or(line));
    // A list stands below a colon, an item a line.
    let joined = said.fold(String::new(), |mut joined, line| {
        match joined.rsplit("; ").next() {
            None | Some("") => {}
            Some(last) if last.ends_with(':') => joined.push(' '),
            Some(last) if last.contains(": ") && line.starts_with(['-', '<', '[']) => {
                joined.push_str(", ");
            }
            Some(_) => joined.push_str("; "),
        }
        joined + line
    });
    Stop::Input(one_line(&joined))
}

#[cfg(test)]
pub(crate) mod testing {
    //! Helpers that the tests of the commands share.

    use clap::Parser;
    use sme_sim::time::Time;

    use super::{Command, CommandLine, args, sweep};
    use crate::experiment::{Experiment, Outcome};

    /// The experiment of `sme barrier` with these flags.
    pub fn experiment(flags: &[&str]) -> Experiment {
        args::experiment(&sweep_flags(flags).experiment).unwrap()
    }

    /// The experiments of `sme sweep` with these flags.
    pub fn points(flags: &[&str]) -> Vec<Experiment> {
        args::points(&sweep_flags(flags).experiment).unwrap()
    }

    /// The flags of `sme sweep`.
    pub fn sweep_flags(flags: &[&str]) -> sweep::SweepFlags {
        let line = CommandLine::try_parse_from([&["sme", "sweep"], flags].concat());
        match line.unwrap().command {
            Some(Command::Sweep(flags)) => *flags,
            other => panic!("{other:?} is no sweep"),
        }
    }

    /// An outcome with these latencies, in picoseconds.
    pub fn outcome(latencies: &[u64]) -> Outcome {
        Outcome {
            latencies: latencies.iter().map(|&ps| Time::from_ps(ps)).collect(),
            remote_loads: 1,
            remote_stores: 2,
            link_bytes: 3,
            events: 4,
            end: Time::from_ps(5),
            per_thread: Vec::new(),
            link_load: Vec::new(),
            critical_path: Vec::new(),
            timeline: Default::default(),
            bytes_per_thread: 6,
        }
    }
}
