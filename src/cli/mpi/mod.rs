//! `sme mpi`: what messages between cores cost.
//!
//! Called by [`super::main`]; simulated by [`crate::messages`]. Each command reads its flags into
//! points, of which every one is a simulation and a row.

mod borrow;
mod bt;
mod cg;
mod collective;
mod compare;
mod connect;
mod estimate;
mod hpl;
mod infect;
mod invade;
mod managed;
mod modes;
mod nas;
mod pingpong;
mod power;
mod pscw;
#[cfg(target_os = "linux")]
mod run;
mod simpson;
mod spawn;
mod tune;

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use sme_sim::machine::Machine;

use super::charts::Charts;
use super::flags::{Heading, OutputFlags};
use super::memory;
use super::names;
use super::read::{self, Values};
use crate::messages::Measurement;
use crate::messages::job::{Error, Job, Library, Observe};
use crate::plot::Chart;
use crate::progress;
use crate::report::Format;
use crate::report::calls::write_calls;
use crate::report::explain;
use crate::report::output::{self, Output};
use crate::report::row::{self, Cell, rendered};
use crate::report::stop::{self, Stop, one_line};
use crate::report::timeline;

/// `sme mpi …`
#[derive(Clone, Debug, Subcommand)]
pub enum MpiCommand {
    /// An MPI program as it is, compiled for MPICH or for MPI-5's interface, on a simulated machine
    #[cfg(target_os = "linux")]
    #[command(after_long_help = super::help::RUN_PROGRAM)]
    Run(Box<run::RunFlags>),
    /// Two ranks send each other a message in turn: latency and bandwidth by size
    #[command(after_long_help = super::help::PINGPONG)]
    Pingpong(Box<pingpong::PingPongFlags>),
    /// All ranks make a collective call: latency by size, ranks and algorithm
    #[command(after_long_help = super::help::collective())]
    Collective(Box<collective::CollectiveFlags>),
    /// One origin synchronizes with its targets (MPI_Win_start, complete, post, wait): medians by
    /// targets and class of synchronization
    #[command(after_long_help = super::help::PSCW)]
    Pscw(Box<pscw::PscwFlags>),
    /// The messages of a NAS Parallel Benchmark, with one core's computing time given: speed-up by
    /// ranks
    #[command(after_long_help = super::help::NAS)]
    Nas(Box<nas::NasFlags>),
    /// Which way of sending is best for messages of which lengths: by lines of cost, and simulated
    #[command(after_long_help = super::help::TUNE)]
    Tune(Box<tune::TuneFlags>),
    /// A program reserves cores of a chip with a process manager (MPI_Comm_invade): time by cores
    #[command(after_long_help = super::help::INVADE)]
    Invade(Box<invade::InvadeFlags>),
    /// A program borrows memory of other cores, apart from these: time by segments, and what a load
    /// of it takes
    #[command(after_long_help = super::help::BORROW)]
    Borrow(Box<borrow::BorrowFlags>),
    /// The world of a program grows by processes on other cores (MPI_Comm_infect): time by
    /// processes
    #[command(after_long_help = super::help::INFECT)]
    Infect(Box<infect::InfectFlags>),
    /// Processes leave that world again (MPI_Comm_retreat): time at those that stay, by processes
    #[command(after_long_help = super::help::RETREAT)]
    Retreat(Box<infect::InfectFlags>),
    /// A function is integrated by a program that grows and shrinks: the adaptive Simpson's method
    /// and the midpoint rule, time by levels of the tree
    #[command(after_long_help = super::help::SIMPSON)]
    Simpson(Box<simpson::SimpsonFlags>),
    /// The same integration with the cores that wait slowed down: time and energy by the divider of
    /// their clock
    #[command(after_long_help = super::help::POWER)]
    Power(Box<power::PowerFlags>),
    /// A system is solved by conjugate gradients, by a program that grows and shrinks and deals its
    /// vectors out again: time by phases
    #[command(after_long_help = super::help::CG)]
    Cg(Box<cg::CgFlags>),
    /// A NAS benchmark from the start of mpiexec on, with two process managers: time by processes
    #[command(after_long_help = super::help::BT)]
    Bt(Box<bt::BtFlags>),
    /// A program starts processes on other cores of such a chip (MPI_Comm_spawn): time by processes
    #[command(after_long_help = super::help::SPAWN)]
    Spawn(Box<spawn::SpawnFlags>),
    /// Two worlds of processes connect (MPI_Comm_accept, MPI_Comm_connect): time by their sizes
    #[command(after_long_help = super::help::CONNECT)]
    Connect(Box<connect::ConnectFlags>),
    /// Latency, bandwidth, message rate and barrier of MPI on several machines, side by side
    #[command(after_long_help = super::help::COMPARE)]
    Compare(Box<compare::CompareFlags>),
    /// High Performance Linpack: a dense system solved by LU factorization, its rate and residual
    #[command(after_long_help = super::help::HPL)]
    Hpl(Box<hpl::HplFlags>),
}

/// The flags that all commands have.
#[derive(Args, Clone, Debug)]
struct WatchFlags {
    /// Threads of this computer; results do not depend on it
    #[arg(
        long,
        value_name = "THREADS",
        default_value = "1",
        allow_negative_numbers = true
    )]
    workers: String,
    #[command(flatten)]
    output: OutputFlags,
    /// Show the critical path of the last round below its row; with json and csv on stderr
    #[arg(long, help_heading = "Output")]
    explain: bool,
    /// Write that path: at_ns,duration_ns,node,part,queued_for,what as CSV, or as JSON lines if
    /// FILE ends in .json or .jsonl
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    explain_to: Option<PathBuf>,
    /// Write every call of every rank, daemon and manager in one run: CSV with
    /// rank,call,begin_ns,end_ns,peer,bytes in the order of begin_ns. A file whose name ends with
    /// .pftrace has the calls and waits of every thread, and arrows from the writes of flags and
    /// signals to the threads that saw them, for https://ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    timeline: Option<PathBuf>,
}

impl WatchFlags {
    /// Whether the timeline is a trace of all threads.
    fn is_traced(&self) -> bool {
        is_trace(self.timeline.as_deref())
    }

    fn workers(&self) -> Result<usize, Stop> {
        read::host_threads("--workers", &self.workers)
    }
}

/// Returns whether the timeline in this file is a trace of all threads.
fn is_trace(timeline: Option<&Path>) -> bool {
    let extension = timeline.and_then(Path::extension);
    extension.is_some_and(|name| name == "pftrace")
}

/// A measurement, and the row that it gives.
trait Point: Measurement + fmt::Debug + Send + Sized + 'static {
    /// The columns behind those that name the machine.
    const KEYS: &[&str];

    /// The columns of a second table, of all points together.
    const BELOW: &[&str] = &[];

    /// The name of the spans whose last one `--explain` explains, and that in words.
    const EXPLAINED: (&str, &str);

    /// The ranks with which each rank exchanges messages, about.
    fn partners(&self) -> u32 {
        estimate::PARTNERS
    }

    /// Bytes of this computer that the data of its calls take, about.
    fn data_bytes(&self) -> u64 {
        0
    }

    /// The cells of its [`Self::KEYS`].
    fn cells(&self, outcome: &Self::Outcome) -> Vec<Cell>;

    /// The rows under [`Self::BELOW`]: what is read off all points.
    fn below(_outcomes: &[(&Self, Self::Outcome)]) -> Vec<Vec<Cell>> {
        Vec::new()
    }

    /// The charts of all points together, by the names of their files.
    fn draw(_outcomes: &[(&Self, Self::Outcome)]) -> Vec<(&'static str, Chart)> {
        Vec::new()
    }
}

/// Points whose flags fit together.
#[derive(Clone, Debug)]
struct Points<P> {
    points: Vec<P>,
    watch: WatchFlags,
    /// The directory of their charts.
    figures: Option<(PathBuf, Vec<String>)>,
}

/// A command whose flags fit together.
#[derive(Debug)]
pub struct MpiRun(Box<dyn MpiJob>);

/// The part of a command behind the reading of its flags.
trait MpiJob: fmt::Debug + Send {
    /// The keys of its rows, if it has rows.
    fn heading(&self) -> Option<Heading>;

    /// Simulates, and writes its rows.
    fn run(&self) -> Result<(), Stop>;
}

/// The most calls of a timeline.
const MOST_CALLS: u64 = 1 << 24;

/// The most calls of a trace, which has the waits within them, too.
const MOST_TRACED: u64 = 1 << 20;

/// The most ranks of a job.
const MOST_RANKS: u32 = 1 << 14;

/// The default number of ranks of a job: as many as the SCC has cores.
const RANKS: u32 = 48;

/// The most rounds: each is simulated.
const MOST_ROUNDS: u32 = 1 << 24;

/// Bytes of the largest buffer: it must fit the private memory of a core.
const MOST_BYTES: u64 = 64 << 20;

impl MpiRun {
    /// Reads the flags.
    pub fn read(command: &MpiCommand) -> Result<Self, Stop> {
        Ok(Self(match command {
            MpiCommand::Pingpong(flags) => Box::new(flags.read()?),
            MpiCommand::Collective(flags) => Box::new(flags.read()?),
            MpiCommand::Pscw(flags) => Box::new(flags.read()?),
            MpiCommand::Nas(flags) => Box::new(flags.read()?),
            MpiCommand::Hpl(flags) => Box::new(flags.read()?),
            MpiCommand::Invade(flags) => Box::new(flags.read()?),
            MpiCommand::Borrow(flags) => Box::new(flags.read()?),
            MpiCommand::Infect(flags) => Box::new(flags.read()?),
            MpiCommand::Retreat(flags) => Box::new(flags.read_retreat()?),
            MpiCommand::Simpson(flags) => Box::new(flags.read()?),
            MpiCommand::Power(flags) => Box::new(flags.read()?),
            MpiCommand::Bt(flags) => Box::new(flags.read()?),
            MpiCommand::Cg(flags) => Box::new(flags.read()?),
            MpiCommand::Spawn(flags) => Box::new(flags.read()?),
            MpiCommand::Connect(flags) => Box::new(flags.read()?),
            MpiCommand::Compare(flags) => Box::new(flags.read()?),
            MpiCommand::Tune(flags) => Box::new(flags.read()?),
            #[cfg(target_os = "linux")]
            MpiCommand::Run(flags) => Box::new(flags.read()?),
        }))
    }

    /// The keys of its rows, if it has rows.
    pub fn heading(&self) -> Option<Heading> {
        self.0.heading()
    }

    /// Simulates, and writes its rows.
    pub fn run(&self) -> Result<(), Stop> {
        self.0.run()
    }
}

/// The most ranks that `machine` has cores for.
fn most_ranks(machine: &Machine) -> u32 {
    Job::most_ranks(machine).min(MOST_RANKS)
}

/// Reads `--ranks`, of which there may be several if `values` says so; by default [`RANKS`], or all
/// cores of `machine` if it has fewer.
fn ranks(text: Option<&String>, machine: &Machine, values: Values) -> Result<Vec<u32>, Stop> {
    let most = most_ranks(machine);
    let all = most.min(RANKS).to_string();
    read::counts("--ranks", text.unwrap_or(&all), 2, most, values)
}

/// Reads `--channel`; by default that of MPI on `machine`.
fn channel(text: Option<&String>, machine: &Machine) -> Result<Library, Stop> {
    match text {
        Some(text) => read::name("--channel", text),
        None => Ok(Library::of_mpi(machine)),
    }
}

/// The same, without libraries that are not MPI.
fn channel_of_mpi(text: Option<&String>, machine: &Machine) -> Result<Library, Stop> {
    let library = channel(text, machine)?;
    match library.is_mpi() {
        true => Ok(library),
        false => Err(Stop::flag(
            "--channel",
            format!("{library} has no MPI calls"),
        )),
    }
}

/// Reads `--sizes`.
fn sizes(text: &str) -> Result<Vec<u64>, Stop> {
    let sizes = read::numbers("--sizes", text, 8, MOST_BYTES, Values::Many)?;
    match sizes.iter().find(|size| !size.is_multiple_of(8)) {
        None => Ok(sizes),
        Some(odd) => Err(Stop::flag(
            "--sizes",
            format!("{odd} is not a multiple of 8"),
        )),
    }
}

/// Reads the number of rounds that `flag` has.
fn rounds(flag: &str, text: &str) -> Result<u32, Stop> {
    let rounds = read::counts(flag, text, 1, MOST_ROUNDS, Values::One)?;
    read::one(flag, rounds)
}

/// Rates of one core \[10^9 floating-point operations per second\].
const RATES: RangeInclusive<f64> = 1e-6..=1e3;

/// Reads `--core-gflops`; by default one operation in the machine's `core.arithmetic`.
fn core_gflops(text: Option<&String>, machine: &Machine) -> Result<f64, Stop> {
    const FLAG: &str = "--core-gflops";
    let rate = match text {
        Some(text) => read::real(FLAG, text, &RATES)?,
        None => 1e-3 / machine.shape().arithmetic.as_us(),
    };
    match RATES.contains(&rate) {
        true => Ok(rate),
        false => {
            let why = "has to be given: the machine's core.arithmetic is no rate to go by";
            Err(Stop::flag(FLAG, why))
        }
    }
}

impl<P: Point> Points<P> {
    /// Of these points, which the flags with these names have made.
    fn new(points: Vec<P>, watch: &WatchFlags, of: &str) -> Result<Self, Stop> {
        let count = points.len();
        let available = memory::available();
        for point in &points {
            let ranks = point.job().ranks;
            let of_job = estimate::of_job(point.job(), point.partners());
            let needed = of_job.saturating_add(point.data_bytes());
            memory::enough(&format!("--ranks {ranks}"), needed, available)?;
            point.job().holds(point.data_end()).map_err(stop)?;
        }
        for (flag, given) in [
            ("--explain", watch.explain),
            (explain::FLAG, watch.explain_to.is_some()),
            (timeline::FLAG, watch.timeline.is_some()),
        ] {
            if given && count > 1 {
                return Err(Stop::flag(flag, format!("of one run; {of} {count}")));
            }
        }
        if let (Some(_), [point]) = (&watch.timeline, points.as_slice()) {
            let calls = point.calls().saturating_add(point.job().calls_beside());
            let (what, most) = match watch.is_traced() {
                true => ("calls in a trace", MOST_TRACED),
                false => ("rows", MOST_CALLS),
            };
            if calls > most {
                let why = format!("{calls} {what}; at most {most}: fewer --rounds");
                return Err(Stop::flag(timeline::FLAG, why));
            }
        }
        Ok(Self {
            points,
            watch: watch.clone(),
            figures: None,
        })
    }

    /// The same with charts in these files of a directory, if there is one.
    fn drawn(self, directory: Option<&Path>, files: &[&str]) -> Result<Self, Stop> {
        let Some(directory) = directory else {
            return Ok(self);
        };
        for name in files {
            let file = directory.join(name);
            output::distinct(&[
                ("-o", self.watch.output.file.output.as_deref()),
                (timeline::FLAG, self.watch.timeline.as_deref()),
                (explain::FLAG, self.watch.explain_to.as_deref()),
                ("--figures", Some(&file)),
            ])?;
        }
        let names = files.iter().map(|&name| name.to_owned());
        let figures = Some((directory.to_owned(), names.collect()));
        Ok(Self { figures, ..self })
    }

    /// The rows, and what depends on the host apart from them.
    fn written(&self, rows: Vec<(Vec<Cell>, [Cell; 2])>) -> Result<String, Stop> {
        let file = &self.watch.output.file;
        if self.watch.output.no_host {
            let rows: Vec<Vec<Cell>> = rows.into_iter().map(|(row, _)| row).collect();
            return file.rendered(&Self::keys(), &rows);
        }
        if file.format() == Format::Json && file.columns.is_none() {
            let (keys, format) = (Self::keys(), Format::Json);
            let line = |(row, host): (Vec<Cell>, [Cell; 2])| {
                let object = rendered(&keys, &[row], format);
                let open = object.trim_end().strip_suffix('}').unwrap_or_default();
                let host = rendered(&HOST_KEYS, &[host.to_vec()], format);
                format!("{open},\"host\":{}}}\n", host.trim_end())
            };
            return Ok(rows.into_iter().map(line).collect());
        }
        let rows: Vec<Vec<Cell>> = rows
            .into_iter()
            .map(|(row, host)| [row, host.to_vec()].concat())
            .collect();
        file.rendered(&Self::keys_with_host(), &rows)
    }

    /// The keys of a row.
    fn keys() -> Vec<String> {
        let keys = HEAD.iter().chain(P::KEYS).chain(&["messages"]);
        keys.map(|key| (*key).to_owned()).collect()
    }

    /// The same, and those of what depends on the host.
    fn keys_with_host() -> Vec<String> {
        let of_host = HOST_KEYS.map(|key| format!("host_{key}"));
        Self::keys().into_iter().chain(of_host).collect()
    }
}

impl<P: Point> MpiJob for Points<P> {
    fn heading(&self) -> Option<Heading> {
        let keys = match self.watch.output.no_host {
            true => Self::keys(),
            false => Self::keys_with_host(),
        };
        let file = &self.watch.output.file;
        let heading = file.heading(&keys, false);
        Some(match file.format() {
            Format::Json => heading.with_others(P::BELOW),
            // A file of rows has one kind of rows.
            Format::Csv | Format::Table => heading,
        })
    }

    fn run(&self) -> Result<(), Stop> {
        let file = &self.watch.output.file;
        let mut output = Output::file_or_stdout(file.output.as_deref())?;
        let (directory, names) = self
            .figures
            .as_ref()
            .map_or((None, &[][..]), |(directory, names)| {
                (Some(directory.as_path()), names.as_slice())
            });
        let charts = Charts::open(directory, names.iter().cloned())?;
        let open = |flag, path: &Option<PathBuf>| match path {
            Some(path) => Output::file(flag, path).map(Some),
            None => Ok(None),
        };
        let mut timeline = open(timeline::FLAG, &self.watch.timeline)?;
        let mut path = open(explain::FLAG, &self.watch.explain_to)?;
        let (explained, in_words) = P::EXPLAINED;
        let is_trace = self.watch.is_traced();
        let observe = Observe {
            calls: timeline.is_some() && !is_trace,
            timeline: is_trace,
            critical_path: (self.watch.explain || path.is_some()).then_some(explained),
            ..Observe::default()
        };
        let mut paths = String::new();
        let watch = progress::on_stderr();
        watch.begin("runs", self.points.len() as u64);
        let mut rows = Vec::with_capacity(self.points.len());
        let mut outcomes = Vec::with_capacity(self.points.len());
        for point in &self.points {
            let begin = Instant::now();
            let (outcome, observed) = point.observed(observe).map_err(stop)?;
            let messages = observed.messages;
            let mut row = head(point.job());
            row.extend(point.cells(&outcome));
            row.push(Cell::Count(messages));
            outcomes.push((point, outcome));
            rows.push((row, host(messages, begin.elapsed())));
            if let Some(output) = timeline.take() {
                match is_trace {
                    true => timeline::write(output, &observed.timeline)?,
                    false => write_calls(output, &observed.calls)?,
                }
            }
            if let (Some(output), Some(file)) = (path.take(), &self.watch.explain_to) {
                let format = Format::of_file(file).unwrap_or(Format::Csv);
                explain::write(output, &observed.critical_path, format)?;
            }
            if self.watch.explain {
                paths += &explain::critical_path(in_words, &observed.critical_path);
            }
            watch.advance(1);
        }
        watch.end();
        output.push(&self.written(rows)?)?;
        let format = file.format();
        let below = P::below(&outcomes);
        if !below.is_empty() {
            let below = rendered(P::BELOW, &below, format);
            match format {
                Format::Table => output.push(&format!("\n{below}"))?,
                Format::Json => output.push(&below)?,
                // A file of rows has one kind of rows.
                Format::Csv => stop::to_stderr(&below),
            }
        }
        match format {
            _ if paths.is_empty() => {}
            Format::Table => output.push(&format!("\n{paths}"))?,
            _ => stop::to_stderr(&paths),
        }
        if !charts.is_empty() {
            let mut drawn = Vec::new();
            for (name, chart) in P::draw(&outcomes) {
                let svg = chart.to_svg();
                let svg = svg.map_err(|error| Stop::Failed(error.to_string()))?;
                drawn.push((name.to_owned(), svg));
            }
            charts.write(&drawn)?;
        }
        output.commit()
    }
}

const HEAD: [&str; 5] = ["version", "machine", "machine_hash", "set", "channel"];

const HOST_KEYS: [&str; 2] = ["wall_s", "messages_per_s"];

fn head(job: &Job) -> Vec<Cell> {
    let topology = job.machine.shape().topology(job.nodes());
    let mut cells = row::head(&job.machine, &topology)[..4].to_vec();
    cells.push(Cell::text(job.library));
    cells
}

/// The line below a chart that names the machine and the channel.
fn caption(job: &Job) -> String {
    let set = match row::set(&job.machine) {
        set if set.is_empty() => set,
        set => format!(" with {set}"),
    };
    format!(
        "sme {}, {}{set} ({}), channel {}.",
        env!("CARGO_PKG_VERSION"),
        job.machine.name(),
        job.machine.hash(),
        job.library
    )
}

fn host(messages: u64, wall: Duration) -> [Cell; 2] {
    let seconds = wall.as_secs_f64();
    [
        Cell::fraction(seconds),
        Cell::Count((messages as f64 / seconds) as u64),
    ]
}

fn stop(error: Error) -> Stop {
    match error.is_of_input() {
        true => Stop::Input(one_line(&error.to_string())),
        false => Stop::Failed(error.to_string()),
    }
}

/// The complaint that `word` is none of the names that `flag` takes.
fn unknown<'a>(flag: &str, word: &str, known: impl Iterator<Item = &'a str>) -> Stop {
    let known: Vec<&str> = known.collect();
    Stop::flag(flag, names::unknown(word, &known))
}

/// The job of each of these numbers of ranks.
fn jobs((machine, library): (Machine, Library), ranks: Vec<u32>, workers: usize) -> Vec<Job> {
    let machine = Arc::new(machine);
    let job = |ranks| Job {
        workers,
        ..Job::new(Arc::clone(&machine), library, ranks)
    };
    ranks.into_iter().map(job).collect()
}
