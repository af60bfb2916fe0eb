//! `sme litmus`: litmus tests on the simulated cluster, and what they show, as litmus7 prints it.
//!
//! Called by [`super::main`]; run by [`crate::litmus`]. Every file is read, and fits the machine,
//! before anything is simulated. Nothing in the output depends on this computer.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use sme_fft_demo::litmus::{MOST_BYTES, Report, Test, parse};

use super::args;
use super::flags::{FileFlags, MachineFlags};
use super::read::{self, MAX_NODES, Values};
use crate::litmus::{MemoryKind, Setting, Spread};
use crate::progress;
use crate::report::Format;
use crate::report::output::Output;
use crate::report::row::{self, Cell, rendered};
use crate::report::stop::{Stop, one_line};

/// The most nodes of a litmus test's machine: each run builds all of them.
const MOST_NODES: u32 = if MAX_NODES < 1_024 { MAX_NODES } else { 1_024 };
/// The most runs of a test.
const MAX_RUNS: u32 = 100_000_000;

/// The flags of `sme litmus`.
#[derive(Args, Clone, Debug)]
pub struct LitmusFlags {
    /// Litmus tests in the format of herd7 and litmus7 for X86
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Through what the threads reach the locations: one node's coherent memory (local), uncached
    /// behind the engine (engine), behind the engine through caches that are not coherent between
    /// nodes (cached)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "local",
        help_heading = "What is simulated"
    )]
    memory: String,
    /// Where the threads are: one-node or one-per-node [default: one-node with local memory, else
    /// one-per-node]
    #[arg(long, value_name = "NAME", help_heading = "What is simulated")]
    spread: Option<String>,
    /// Nodes of the machine [default: as many as the test has threads, at least 2]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "What is simulated"
    )]
    nodes: Option<String>,
    /// The node that holds each location, in the order in which the file names them, again from the
    /// first where there are more locations [default: they take turns, location i lies at node i + r,
    /// modulo the nodes, in the r-th round of ten runs]
    #[arg(
        long,
        value_name = "NODES",
        allow_negative_numbers = true,
        help_heading = "What is simulated"
    )]
    homes: Option<String>,
    /// How often each test is run, each time with another timing
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        allow_negative_numbers = true,
        help_heading = "What is simulated"
    )]
    runs: String,
    /// Seed of all timings
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_negative_numbers = true,
        help_heading = "What is simulated"
    )]
    seed: String,
    /// The machine.
    #[command(flatten, next_help_heading = "What is simulated")]
    machine: MachineFlags,
    #[command(flatten)]
    output: FileFlags,
}

/// Tests that have been read and fit the machine.
#[derive(Debug)]
pub struct LitmusRun {
    tests: Vec<(PathBuf, Arc<Test>)>,
    setting: Setting,
    output: FileFlags,
}

impl LitmusRun {
    /// Reads the flags and the files.
    pub fn read(flags: &LitmusFlags) -> Result<Self, Stop> {
        let count = |flag, text: &str, least, most| {
            read::one(flag, read::counts(flag, text, least, most, Values::One)?)
        };
        let memory = read::name("--memory", &flags.memory)?;
        let spread = match (&flags.spread, memory) {
            (Some(text), _) => read::name("--spread", text)?,
            (None, MemoryKind::Local) => Spread::OneNode,
            (None, _) => Spread::OnePerNode,
        };
        let nodes = flags.nodes.as_deref();
        let homes = flags.homes.as_deref();
        let setting = Setting {
            machine: Arc::new(args::machine(&flags.machine)?),
            memory,
            spread,
            nodes: nodes
                .map(|text| count("--nodes", text, 1, MOST_NODES))
                .transpose()?,
            homes: homes
                .map(|text| read::counts("--homes", text, 0, MOST_NODES - 1, Values::Many))
                .transpose()?,
            runs: count("--runs", &flags.runs, 1, MAX_RUNS)?,
            seed: read::seed(&flags.seed)?,
        };
        let read = |path: &PathBuf| {
            let test = test(path)?;
            let fits = setting.check(&test);
            fits.map_err(|unfit| complaint(path, unfit))?;
            Ok((path.clone(), Arc::new(test)))
        };
        Ok(Self {
            tests: flags.files.iter().map(read).collect::<Result<_, Stop>>()?,
            setting,
            output: flags.output.clone(),
        })
    }

    /// Runs the tests, and writes what each has shown.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.output.output.as_deref())?;
        let watch = progress::on_stderr();
        let runs = u64::from(self.setting.runs);
        watch.begin("runs", runs.saturating_mul(self.tests.len() as u64));
        let (mut tables, mut rows) = (String::new(), Vec::new());
        for (number, (path, test)) in self.tests.iter().enumerate() {
            let histogram = self.setting.run(test, watch.as_ref()).map_err(|error| {
                watch.end();
                let reason = one_line(&error.to_string());
                Stop::Failed(reason).at(&one_line(&path.display().to_string()))
            })?;
            let report = Report::new(test, &histogram);
            match self.output.format() {
                Format::Table => {
                    let apart = if number > 0 { "\n" } else { "" };
                    let table = format!("{apart}{report}");
                    // A file is begun at the end: an interruption leaves nothing of it.
                    match output.is_file() {
                        true => tables.push_str(&table),
                        false => output.push_now(&table)?,
                    }
                }
                _ => rows.extend(self.rows(path, test, &report)),
            }
        }
        watch.end();
        match self.output.format() {
            Format::Table => output.push(&tables)?,
            format => output.push(&rendered(HEADING, &rows, format))?,
        }
        output.commit()
    }

    /// A row for each line of the histogram.
    fn rows(&self, path: &Path, test: &Test, report: &Report<'_>) -> Vec<Vec<Cell>> {
        let setting = &self.setting;
        let homes = setting.homes.iter().flatten().map(u32::to_string);
        let (positive, negative) = report.observations();
        let of_test = vec![
            Cell::text(env!("CARGO_PKG_VERSION")),
            Cell::text(setting.machine.name()),
            Cell::text(setting.machine.hash()),
            Cell::text(row::set(&setting.machine)),
            Cell::text(path.display()),
            Cell::text(&test.name),
            Cell::text(setting.memory),
            Cell::text(setting.spread),
            Cell::Count(setting.nodes_for(test).into()),
            match &setting.homes {
                Some(_) => Cell::text(homes.collect::<Vec<_>>().join(" ")),
                None => Cell::Absent,
            },
            Cell::Count(setting.runs.into()),
            Cell::Count(setting.seed),
            Cell::text(test.condition_text()),
            Cell::text(if report.is_validated() { "Ok" } else { "No" }),
            Cell::text(report.observation()),
            Cell::Count(positive),
            Cell::Count(negative),
        ];
        let with_state = |seen| {
            let of_state = [
                Cell::text(report.state_text(seen)),
                Cell::text(if seen.marked { "*" } else { ":" }),
                Cell::Count(seen.count),
            ];
            of_test.iter().cloned().chain(of_state).collect()
        };
        report.seen().iter().map(with_state).collect()
    }
}

/// The test in the file at `path`; what is wrong with it is said with line and column.
fn test(path: &Path) -> Result<Test, Stop> {
    let mut bytes = Vec::new();
    // One byte more than the parser takes, so that it can refuse; and no more than that of a file
    // that never ends.
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| complaint(path, format!("cannot be read: {error}")))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The limit may have cut a character.
        Err(error) if error.as_bytes().len() > MOST_BYTES => "x".repeat(MOST_BYTES + 1),
        Err(_) => return Err(complaint(path, "is no text in UTF-8")),
    };
    // An editor may have put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    parse(text).map_err(|error| complaint(path, error))
}

fn complaint(path: &Path, reason: impl std::fmt::Display) -> Stop {
    Stop::flag(&path.display().to_string(), reason)
}

const HEADING: &[&str] = &[
    "version",
    "machine",
    "machine_hash",
    "set",
    "file",
    "test",
    "memory",
    "spread",
    "nodes",
    "homes",
    "runs",
    "seed",
    "condition",
    "verdict",
    "observation",
    "positive",
    "negative",
    "state",
    "mark",
    "count",
];
