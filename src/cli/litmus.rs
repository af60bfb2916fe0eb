//! `sme litmus`: litmus tests on the simulated cluster, and what they show, as litmus7 prints it.
//!
//! Called by [`super::main`]; run by [`crate::litmus`]. Every file is read, and fits the machine,
//! before anything is simulated. Nothing in the output depends on this computer.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use sme_fft_demo::litmus::{Cycle, Histogram, MOST_BYTES, Report, Seen, Test, Verdict, parse};

use super::args;
use super::flags::{FileFlags, Heading, MachineFlags};
use super::read::{self, MAX_NODES, Values};
use crate::litmus::{Exploration, LitmusError, MemoryKind, Setting, Spread};
use crate::progress::{self, Watch};
use crate::report::Format;
use crate::report::output::Output;
use crate::report::row::{self, Cell};
use crate::report::stop::{Stop, one_line};

/// The most nodes of a litmus test's machine: each run builds all of them.
const MOST_NODES: u32 = if MAX_NODES < 1_024 { MAX_NODES } else { 1_024 };
/// The most threads of the critical cycles that `--cycles` lists.
const MOST_CYCLE_THREADS: u32 = 3;
/// The most runs of a test.
const MAX_RUNS: u32 = 100_000_000;

/// The flags of `sme litmus`.
#[derive(Args, Clone, Debug)]
pub struct LitmusFlags {
    /// Litmus tests in the format of herd7 and litmus7 for X86
    #[arg(value_name = "FILE", required_unless_present_any = ["cycles", "cycle"])]
    files: Vec<PathBuf>,
    /// The tests of all critical cycles of so many threads, 2 or 3
    #[arg(
        long,
        value_name = "THREADS",
        allow_negative_numbers = true,
        help_heading = "Tests"
    )]
    cycles: Option<String>,
    /// The test of this critical cycle, by the names that diy has for its edges: 'PodWR Fre PodWR
    /// Fre'
    #[arg(long, value_name = "EDGES", help_heading = "Tests")]
    cycle: Vec<String>,
    /// Print the tests in their format instead of running them
    #[arg(long, help_heading = "Tests")]
    print: bool,
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
    /// The node of each location: in the order in which the file names them, again from the first
    /// where there are more locations [default: they take turns, location i lies at node i + r,
    /// modulo the nodes, in the r-th round of ten runs]
    #[arg(
        long,
        value_name = "NODES",
        allow_negative_numbers = true,
        help_heading = "What is simulated"
    )]
    homes: Option<String>,
    /// Runs of each test, each with another timing
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
    tests: Vec<Tried>,
    setting: Setting,
    print: bool,
    output: FileFlags,
}

/// A test, and the file that it is from, where it is from one.
#[derive(Debug)]
struct Tried {
    path: Option<PathBuf>,
    test: Arc<Test>,
}

impl Tried {
    /// The beginning of complaints about it.
    fn name(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => self.test.name.clone(),
        }
    }
}

/// The outcomes of all tests together.
#[derive(Default)]
struct Sum {
    tests: usize,
    /// Tests that are too large for a search.
    unknown: usize,
    allowed: usize,
    unseen: usize,
    forbidden: usize,
}

impl Sum {
    fn add(&mut self, report: &Report<'_>) {
        self.tests += 1;
        self.allowed += report.with_verdict(Verdict::Allowed);
        self.forbidden += report.with_verdict(Verdict::Forbidden);
        match report.unseen() {
            Ok(unseen) => {
                self.allowed += unseen.len();
                self.unseen += unseen.len();
            }
            Err(_) => self.unknown += 1,
        }
    }

    fn text(&self, model: &str) -> String {
        let Self {
            tests,
            unknown,
            allowed,
            unseen,
            forbidden,
        } = self;
        let unknown = match unknown {
            0 => String::new(),
            count => format!("; {count} tests too large for a search"),
        };
        let seen = allowed - unseen;
        format!(
            "\nAll {tests} tests, model {model}: {allowed} outcomes allowed, {seen} seen, \
             {unseen} unseen; {forbidden} forbidden seen{unknown}\n"
        )
    }
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
        let mut tests = Vec::new();
        for path in &flags.files {
            let test = Arc::new(test(path)?);
            let path = Some(path.clone());
            tests.push(Tried { path, test });
        }
        let mut cycles = Vec::new();
        for edges in &flags.cycle {
            let cycle = Cycle::parse(edges);
            let flag = format!("--cycle '{}'", edges.escape_debug());
            cycles.push(cycle.map_err(|error| Stop::flag(&flag, error))?);
        }
        if let Some(text) = &flags.cycles {
            for threads in read::counts("--cycles", text, 2, MOST_CYCLE_THREADS, Values::Many)? {
                cycles.extend(Cycle::all(threads as usize));
            }
        }
        tests.extend(cycles.iter().map(|cycle| Tried {
            path: None,
            test: Arc::new(cycle.test()),
        }));
        for tried in &tests {
            let fits = setting.check(&tried.test);
            fits.map_err(|unfit| Stop::flag(&tried.name(), unfit))?;
        }
        Ok(Self {
            tests,
            setting,
            print: flags.print,
            output: flags.output.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.heading(HEADING, false)
    }

    /// Runs the tests, and writes what each has shown.
    pub fn run(&self) -> Result<(), Stop> {
        let has_columns = self.output.columns.is_some();
        let mut output = Output::file_or_stdout(self.output.output.as_deref())?;
        if self.print {
            let tests: Vec<String> = self.tests.iter().map(|t| t.test.to_string()).collect();
            output.push(&tests.join("\n"))?;
            return output.commit();
        }
        let watch = progress::on_stderr();
        let runs = u64::from(self.setting.runs);
        watch.begin("runs", runs.saturating_mul(self.tests.len() as u64));
        let (mut tables, mut rows) = (String::new(), Vec::new());
        let mut sum = Sum::default();
        for (number, tried) in self.tests.iter().enumerate() {
            let explored = self.explore(&tried.test, watch.as_ref());
            let (exploration, histogram) = explored.map_err(|error| {
                watch.end();
                let reason = one_line(&error.to_string());
                Stop::Failed(reason).at(&one_line(&tried.name()))
            })?;
            let model = self.setting.model_name();
            let allowed = exploration.behaviours();
            let report = Report::new(&tried.test, &histogram, model, allowed);
            sum.add(&report);
            match self.output.format() {
                Format::Table if !has_columns => {
                    let apart = if number > 0 { "\n" } else { "" };
                    let mut table = format!("{apart}{report}");
                    if sum.tests == self.tests.len() && sum.tests > 1 {
                        table.push_str(&sum.text(model));
                    }
                    // A file is begun at the end: an interruption leaves nothing of it.
                    match output.is_file() {
                        true => tables.push_str(&table),
                        false => output.push_now(&table)?,
                    }
                }
                _ => rows.extend(self.rows(tried, &report)),
            }
        }
        watch.end();
        match self.output.format() {
            Format::Table if !has_columns => output.push(&tables)?,
            _ => output.push(&self.output.rendered(HEADING, &rows)?)?,
        }
        output.commit()
    }

    /// Runs `test` as often as asked for; `watch` is told of every run.
    fn explore(
        &self,
        test: &Arc<Test>,
        watch: &dyn Watch,
    ) -> Result<(Exploration<'_>, Histogram), LitmusError> {
        let exploration = Exploration::new(&self.setting, test)?;
        let mut histogram = Histogram::default();
        for run in 0..self.setting.runs {
            histogram.count(exploration.run(run)?);
            watch.advance(1);
        }
        Ok((exploration, histogram))
    }

    /// A row for each line of the histogram, and for each outcome that is allowed and unseen.
    fn rows(&self, tried: &Tried, report: &Report<'_>) -> Vec<Vec<Cell>> {
        let setting = &self.setting;
        let test = &tried.test;
        let allowed = report.with_verdict(Verdict::Allowed) as u64;
        let (allowed, unseen) = match report.unseen() {
            Ok(unseen) => {
                let count = unseen.len() as u64;
                (Cell::Count(allowed + count), Cell::Count(count))
            }
            Err(_) => (Cell::Absent, Cell::Absent),
        };
        let homes = setting.homes.iter().flatten().map(u32::to_string);
        let (positive, negative) = report.observations();
        let of_test = vec![
            Cell::text(env!("CARGO_PKG_VERSION")),
            Cell::text(setting.machine.name()),
            Cell::text(setting.machine.hash()),
            Cell::text(row::set(&setting.machine)),
            match &tried.path {
                Some(path) => Cell::text(path.display()),
                None => Cell::Absent,
            },
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
            Cell::text(setting.model_name()),
            allowed,
            unseen,
        ];
        let with_state = |seen: &Seen| {
            let of_state = [
                Cell::text(report.state_text(seen)),
                Cell::text(if seen.marked { "*" } else { ":" }),
                Cell::Count(seen.count),
                Cell::text(seen.verdict),
            ];
            of_test.iter().cloned().chain(of_state).collect()
        };
        let unseen = report.unseen().unwrap_or_default();
        report.seen().iter().chain(unseen).map(with_state).collect()
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
    "model",
    "outcomes_allowed",
    "outcomes_unseen",
    "state",
    "mark",
    "count",
    "model_verdict",
];
