//! `sme mpi`: what messages between cores cost.
//!
//! Called by [`super::main`]; simulated by [`crate::messages`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use super::args;
use super::flags::{MachineFlags, OutputFlags};
use super::read::{self, Values};
use crate::messages::pingpong::{Error, Library, Observe, Outcome, PingPong};
use crate::progress;
use crate::report::Format;
use crate::report::calls::write_calls;
use crate::report::explain;
use crate::report::output::Output;
use crate::report::row::{self, Cell, rendered};
use crate::report::stop::{self, Stop, one_line};
use crate::report::timeline;

/// `sme mpi …`
#[derive(Clone, Debug, Subcommand)]
pub enum MpiCommand {
    /// Two ranks send each other a message in turn: latency and bandwidth by size
    #[command(after_help = super::help::PINGPONG)]
    Pingpong(Box<PingPongFlags>),
}

/// The flags of `sme mpi pingpong`.
#[derive(Args, Clone, Debug)]
pub struct PingPongFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The library that carries the messages: rcce (RCCE), or sccmpb (MPI over RCKMPI's SCCMPB)
    #[arg(long, value_name = "NAME", default_value = "rcce")]
    channel: String,
    /// Ranks of the job, each on the core of its number [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// The rank that answers rank 0
    #[arg(
        long,
        value_name = "RANK",
        default_value = "1",
        allow_negative_numbers = true
    )]
    partner: String,
    /// Sizes of the message in bytes, multiples of 8, such as 32,64 or 32..4096*2
    #[arg(
        long,
        value_name = "LIST",
        default_value = "8..1048576*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// Rounds that count; two more come first
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        allow_negative_numbers = true
    )]
    rounds: String,
    #[command(flatten)]
    output: OutputFlags,
    /// Show the critical path of the last round of one size, below the row of a table; with json and
    /// csv on stderr
    #[arg(long, help_heading = "Output")]
    explain: bool,
    /// Write every call of every rank in a run of one size: CSV with
    /// rank,call,begin_ns,end_ns,peer,bytes in the order of begin_ns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    timeline: Option<PathBuf>,
}

/// A command whose flags fit together.
#[derive(Debug)]
pub struct MpiRun {
    runs: Vec<PingPong>,
    output: OutputFlags,
    explain: bool,
    timeline: Option<PathBuf>,
}

/// The most calls of a timeline.
const MOST_CALLS: u64 = 1 << 24;

/// The most rounds: each is simulated.
const MOST_ROUNDS: u32 = 1 << 24;

/// Bytes of the largest message: it must fit the private memory of a core.
const MOST_BYTES: u64 = 64 << 20;

impl MpiRun {
    /// Reads the flags.
    pub fn read(command: &MpiCommand) -> Result<Self, Stop> {
        let MpiCommand::Pingpong(flags) = command;
        let machine = Arc::new(args::machine(&flags.machine)?);
        let library: Library = read::name("--channel", &flags.channel)?;
        let shape = machine.shape();
        let count = |flag, text: &str, least, most| {
            read::one(flag, read::counts(flag, text, least, most, Values::One)?)
        };
        let all = shape.nodes.to_string();
        let ranks = flags.ranks.as_ref().unwrap_or(&all);
        let ranks = count("--ranks", ranks, 2, shape.nodes)?;
        let partner = count("--partner", &flags.partner, 1, ranks - 1)?;
        let rounds = count("--rounds", &flags.rounds, 1, MOST_ROUNDS)?;
        let sizes = read::numbers("--sizes", &flags.sizes, 8, MOST_BYTES, Values::Many)?;
        if let Some(odd) = sizes.iter().find(|size| !size.is_multiple_of(8)) {
            return Err(Stop::flag(
                "--sizes",
                format!("{odd} is not a multiple of 8"),
            ));
        }
        for (flag, given) in [
            ("--explain", flags.explain),
            (timeline::FLAG, flags.timeline.is_some()),
        ] {
            if given && sizes.len() > 1 {
                let count = sizes.len();
                return Err(Stop::flag(flag, format!("of one run; --sizes are {count}")));
            }
        }
        let run = |size_bytes| PingPong {
            machine: Arc::clone(&machine),
            library,
            ranks,
            partner,
            size_bytes,
            rounds,
        };
        let runs: Vec<PingPong> = sizes.into_iter().map(run).collect();
        if let (Some(_), [run]) = (&flags.timeline, runs.as_slice()) {
            let calls = run.calls();
            if calls > MOST_CALLS {
                let why = format!("{calls} rows; at most {MOST_CALLS}: fewer --rounds");
                return Err(Stop::flag(timeline::FLAG, why));
            }
        }
        Ok(Self {
            runs,
            output: flags.output.clone(),
            explain: flags.explain,
            timeline: flags.timeline.clone(),
        })
    }

    /// Simulates, and writes a row for each size.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.output.file.output.as_deref())?;
        let mut timeline = match &self.timeline {
            Some(path) => Some(Output::file(timeline::FLAG, path)?),
            None => None,
        };
        let observe = Observe {
            calls: timeline.is_some(),
            critical_path: self.explain,
        };
        let mut paths = String::new();
        let watch = progress::on_stderr();
        watch.begin("sizes", self.runs.len() as u64);
        let mut rows = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let begin = Instant::now();
            let observed = run.observed(observe).map_err(|error| match error {
                Error::Failure(_) | Error::Garbled(_) => Stop::Failed(error.to_string()),
                _ => Stop::Input(one_line(&error.to_string())),
            })?;
            let outcome = observed.outcome;
            rows.push((cells(run, &outcome), host(&outcome, begin.elapsed())));
            if let Some(output) = timeline.take() {
                write_calls(output, &observed.calls)?;
            }
            if self.explain {
                paths += &explain::critical_path("the last round", &observed.critical_path);
            }
            watch.advance(1);
        }
        watch.end();
        output.push(&self.written(rows))?;
        match self.output.file.format() {
            _ if paths.is_empty() => {}
            Format::Table => output.push(&format!("\n{paths}"))?,
            _ => stop::to_stderr(&paths),
        }
        output.commit()
    }

    /// The rows, and what depends on the host apart from them.
    fn written(&self, rows: Vec<(Vec<Cell>, [Cell; 2])>) -> String {
        let format = self.output.file.format();
        if self.output.no_host {
            let rows: Vec<Vec<Cell>> = rows.into_iter().map(|(row, _)| row).collect();
            return rendered(&KEYS, &rows, format);
        }
        if format == Format::Json {
            let line = |(row, host): (Vec<Cell>, [Cell; 2])| {
                let object = rendered(&KEYS, &[row], format);
                let open = object.trim_end().strip_suffix('}').unwrap_or_default();
                let host = rendered(&HOST_KEYS, &[host.to_vec()], format);
                format!("{open},\"host\":{}}}\n", host.trim_end())
            };
            return rows.into_iter().map(line).collect();
        }
        let of_host = HOST_KEYS.map(|key| format!("host_{key}"));
        let keys: Vec<String> = KEYS
            .iter()
            .map(|key| (*key).to_owned())
            .chain(of_host)
            .collect();
        let rows: Vec<Vec<Cell>> = rows
            .into_iter()
            .map(|(row, host)| [row, host.to_vec()].concat())
            .collect();
        rendered(&keys, &rows, format)
    }
}

const KEYS: [&str; 11] = [
    "version",
    "machine",
    "machine_hash",
    "set",
    "channel",
    "ranks",
    "partner",
    "size_bytes",
    "latency_us",
    "bandwidth_mb_per_s",
    "messages",
];

const HOST_KEYS: [&str; 2] = ["wall_s", "messages_per_s"];

fn cells(run: &PingPong, outcome: &Outcome) -> Vec<Cell> {
    let head = row::head(&run.machine, &run.machine.shape().topology(run.ranks));
    let mut cells = head[..4].to_vec();
    cells.extend([
        Cell::text(run.library),
        Cell::Count(run.ranks.into()),
        Cell::Count(run.partner.into()),
        Cell::Count(run.size_bytes),
        Cell::micros(outcome.latency),
        Cell::fraction(run.bandwidth_mb_per_s(outcome)),
        Cell::Count(outcome.messages),
    ]);
    cells
}

fn host(outcome: &Outcome, wall: Duration) -> [Cell; 2] {
    let seconds = wall.as_secs_f64();
    [
        Cell::fraction(seconds),
        Cell::Count((outcome.messages as f64 / seconds) as u64),
    ]
}
