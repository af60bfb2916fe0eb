//! The flags that several commands share, as they are written; [`super::args`] reads them.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use terminal_size::terminal_size_of;

use super::noise::DisturbanceFlags;
use crate::progress::{self, Silent, Watch};
use crate::report::Format;
use crate::report::columns::Columns;
use crate::report::row::{self, Cell};
use crate::report::stop::Stop;
use crate::report::table;

/// The machine that is simulated.
#[derive(Args, Clone, Debug)]
pub struct MachineFlags {
    /// Machine, built in or a file (see `sme machines list`)
    #[arg(
        id = "machine",
        long = "machine",
        value_name = "NAME|FILE.toml",
        default_value = "sme-prototype"
    )]
    pub name: String,
    /// Override a machine constant, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
}

/// The seed of everything random.
#[derive(Args, Clone, Debug)]
pub struct SeedFlag {
    /// Seed of everything random
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_negative_numbers = true
    )]
    pub seed: String,
}

/// The experiment that is simulated.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is simulated")]
pub struct ExperimentFlags {
    /// The machine.
    #[command(flatten)]
    pub machine: MachineFlags,
    /// Barrier: flag-phase, flat, tree, dissemination, butterfly, pthread or counter
    #[arg(long, value_name = "NAME", default_value = "tree")]
    pub algorithm: String,
    /// Where flag-phase keeps its data: local (default), engine, remote or coherent; on a chip with
    /// message passing buffers, where any barrier does: buffer (default) or memory
    ///
    /// local and engine run on one node (its coherent memory; its memory behind its own engine),
    /// remote and coherent on two (all data in the first and through the engine; the first
    /// node's threads spin in their caches).
    #[arg(long, value_name = "NAME")]
    pub placement: Option<String>,
    /// Network, e.g. mesh:8x8, torus:4x4x4, fattree:16x3, dragonfly:4x8x4; in general mesh:WxH(xD),
    /// torus:WxH(xD), fattree:LINKSxLEVELS (links per switch, half of them up; levels of switches)
    /// or dragonfly:PxAxH(xG) (hosts per router, routers per group, global links per router,
    /// groups) [default: a mesh as square as the nodes allow, or what the machine's file says]
    #[arg(long, value_name = "SHAPE")]
    pub topology: Option<String>,
    /// Nodes: the first N positions of the topology [default: what --algorithm and --placement
    /// need, else all of --topology, else 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub nodes: Option<String>,
    /// Threads per node, one a core [default: every core of the machine's node]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub cores: Option<String>,
    /// Counted episodes; one more is simulated first and not counted
    #[arg(
        long,
        value_name = "N",
        default_value = "100",
        allow_negative_numbers = true
    )]
    pub episodes: String,
    /// What is drawn.
    #[command(flatten)]
    pub seed: SeedFlag,
    /// How threads are pinned: over the sockets first (scatter), or one socket after the other
    /// (compact)
    #[arg(long, value_name = "NAME", default_value = "scatter")]
    pub pin: String,
    /// How flags lie in memory: side by side with the phase (packed) or without it (split), or a
    /// cache line each (padded) [default: packed for flag-phase and pthread, else padded]
    #[arg(long, value_name = "NAME")]
    pub layout: Option<String>,
    /// Most notifications a node of the tree receives [default: 8]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub fan_in: Option<String>,
    /// How the tree is built
    ///
    /// The end of this text lists the shapes.
    #[arg(long, value_name = "NAME")]
    pub tree_shape: Option<String>,
    /// Which nodes the masters' ranks stand on
    ///
    /// The end of this text lists the mappings.
    #[arg(long, value_name = "NAME")]
    pub mapping: Option<String>,
    /// Gather and release each node's threads by a tree of this fan-in, too (tree only) [default:
    /// the threads notify their local master and spin on its phase]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub local_fan_in: Option<String>,
    /// Delay each arrival by a random time up to this (e.g. 500ns or 2us); see --skew-distribution
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0ns",
        allow_hyphen_values = true
    )]
    pub skew: String,
    /// What stands in for the nodes' engines: the cycle model, or their RTL, which gives the same
    /// results cycle by cycle and much later (cycle, rtl, verilated)
    #[arg(long, value_name = "NAME", default_value = "cycle")]
    pub engine: String,
    /// Threads of this computer that simulate one experiment; results do not depend on it
    #[arg(
        long,
        value_name = "THREADS",
        default_value = "1",
        allow_negative_numbers = true
    )]
    pub workers: String,
    /// How the simulator keeps nodes: readable (each thread a program of its own), compact (two
    /// bytes a thread; tree and dissemination) or auto; results do not depend on it
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub form: String,
    /// What disturbs the threads.
    #[command(flatten)]
    pub disturbance: DisturbanceFlags,
}

/// The flags that all programs have.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is simulated")]
pub struct ProgramFlags {
    /// The machine.
    #[command(flatten)]
    pub(super) machine: MachineFlags,
    /// Network (e.g. mesh:8x8, torus:4x4x4, fattree:16x3 or dragonfly:4x8x4) [default: a mesh as
    /// square as the memory nodes allow, or what the machine's file says]
    #[arg(long, value_name = "SHAPE")]
    pub(super) topology: Option<String>,
    /// Nodes whose cores run the program, a list such as 1,2,4 or 1..64*2: the first of the
    /// topology [default: 64]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    pub(super) nodes: Option<String>,
    /// Threads on each of them, one a core; a list [default: 4]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    pub(super) cores: Option<String>,
    /// Nodes whose memory holds the data, those of --nodes among them [default: 64, or as many as
    /// --nodes; all of --topology if that has fewer]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) memory_nodes: Option<String>,
    /// How the data is mapped: cached, or uncached, where every access goes through the engine
    #[arg(long, value_name = "NAME", default_value = "cached")]
    pub(super) memory: String,
    /// Which node has which piece of the data (--page): random, or block, a contiguous part each
    #[arg(long, value_name = "NAME", default_value = "random")]
    pub(super) placement: String,
    /// What a barrier does to memory: barrier (writes caches back and drops all copies), none, or
    /// writeback-only (keeps the copies) [default: barrier; none on machines whose nodes are
    /// coherent]
    #[arg(long, value_name = "NAME")]
    pub(super) coherence_point: Option<String>,
    /// The piece in which data is spread [default: a line of the caches, so that a thread's data
    /// lies on all nodes; with pages of 4KiB much of it lies on one, and the slowest thread
    /// decides]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(super) page: Option<String>,
    /// What is drawn.
    #[command(flatten)]
    pub(super) seed: SeedFlag,
    /// Threads of this computer; results do not depend on it [default: 1]
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    pub(super) workers: Option<String>,
    /// Compare the result with that of one thread of this computer (the default); exit status 1 if
    /// it is wrong
    #[arg(long, conflicts_with = "no_check")]
    pub(super) check: bool,
    /// Leave the comparison out
    #[arg(long)]
    pub(super) no_check: bool,
    /// Check every load: whether it returned the newest value that had happened before it. What did
    /// not is told below the table; with json and csv on stderr
    #[arg(long)]
    pub(super) stale: bool,
    /// Write a row for every stale load (--stale): CSV, or JSON lines if FILE ends in .json or
    /// .jsonl
    #[arg(long, value_name = "FILE", requires = "stale", help_heading = "Output")]
    pub(super) stale_list: Option<PathBuf>,
    /// Write a trace of all threads for ui.perfetto.dev: what each did and when, its phases,
    /// barriers and waits, and an arrow from the write of a flag to each who saw it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) timeline: Option<PathBuf>,
    /// Write the load of every link: CSV with
    /// from,to,channel,bytes,packets,busy_fraction,stall_fraction
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) link_load: Option<PathBuf>,
}

/// The format and the file of the results of a simulation.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Format and file
    #[command(flatten)]
    pub file: FileFlags,
    /// Leave out what depends on this computer: wall time, event rate, memory
    #[arg(long)]
    pub no_host: bool,
}

/// In which format and file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct FileFlags {
    /// Result format [default: by FILE's ending (.csv, .json, .jsonl), else table]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write the results to FILE, which appears whole or not at all
    ///
    /// It ends in .csv, .json or .jsonl, or in .txt for a table, unless --format says what it is.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Columns of the rows, such as machine,nodes [default: all]
    ///
    /// In their order; what depends on this computer is called host_wall_s and so on. A name that
    /// is no column is answered with all that are.
    #[arg(long, value_name = "NAMES")]
    pub columns: Option<String>,
}

/// The keys of the rows that a command will write, which are known before it does anything.
#[derive(Clone, Debug)]
pub struct Heading {
    /// The flat keys of a row.
    keys: Vec<String>,
    /// The columns that are asked for.
    columns: Option<Columns>,
    /// The keys of other rows in the same file.
    others: Vec<String>,
}

impl Heading {
    /// The same with further rows of these keys, which `--columns` does not concern.
    pub fn with_others(self, others: &[&str]) -> Self {
        let others = others.iter().map(|key| (*key).to_owned()).collect();
        Self { others, ..self }
    }

    /// The keys that stand in the file: those that `--columns` chooses, or all.
    ///
    /// # Errors
    /// [`Stop::Input`] for a column that the rows do not have.
    pub fn written(&self) -> Result<Vec<String>, Stop> {
        let mut written = match &self.columns {
            None => self.keys.clone(),
            Some(columns) => {
                let places = columns.places(&self.keys)?.into_iter();
                let keys = places.filter_map(|place| self.keys.get(place));
                keys.cloned().collect()
            }
        };
        written.extend(self.others.iter().cloned());
        Ok(written)
    }
}

impl FileFlags {
    /// The heading of rows with these keys; `with_host`, those of the host stand behind them.
    pub fn heading(&self, keys: &[impl AsRef<str>], with_host: bool) -> Heading {
        Heading {
            keys: row::flat_keys(keys.iter().map(AsRef::as_ref), with_host),
            columns: self.columns(),
            others: Vec::new(),
        }
    }

    /// `rows` under `heading` in the format and with the columns that are asked for. Cells beyond
    /// the heading are those of the host.
    pub fn rendered(
        &self,
        heading: &[impl AsRef<str>],
        rows: &[Vec<Cell>],
    ) -> Result<String, Stop> {
        let with_host = rows.iter().any(|row| row.len() > heading.len());
        let keys = row::flat_keys(heading.iter().map(AsRef::as_ref), with_host);
        match (self.columns(), self.format()) {
            (Some(columns), format) => columns.rendered(&keys, rows, format, self.width()),
            (None, Format::Table) => Ok(table::rows(&keys, rows, self.width())),
            (None, format) => Ok(row::rendered(heading, rows, format)),
        }
    }

    /// The same of rows behind others, if they are `continued`: CSV has its header once.
    pub fn continued(
        &self,
        heading: &[impl AsRef<str>],
        rows: &[Vec<Cell>],
        continued: bool,
    ) -> Result<String, Stop> {
        let text = self.rendered(heading, rows)?;
        match (continued, self.format(), text.split_once('\n')) {
            (true, Format::Csv, Some((_, records))) => Ok(records.to_owned()),
            _ => Ok(text),
        }
    }

    /// Whether results appear on a terminal.
    fn is_on_terminal(&self) -> bool {
        let output = self.output.as_deref();
        output.is_none_or(|path| path == Path::new("-")) && io::stdout().is_terminal()
    }

    /// The display of progress for a command whose rows appear one by one: rows on a terminal are
    /// progress enough, and a bar between them is in their way.
    pub fn watch(&self) -> Box<dyn Watch> {
        let rows_are_seen = self.is_on_terminal() && self.format() != Format::Table;
        match rows_are_seen {
            true => Box::new(Silent),
            false => progress::on_stderr(),
        }
    }

    /// The columns of the terminal on which the results appear, if they do on one.
    pub fn width(&self) -> Option<usize> {
        match self.is_on_terminal() {
            true => terminal_size_of(io::stdout()).map(|(width, _)| width.0.into()),
            false => None,
        }
    }

    /// The columns that are asked for.
    pub fn columns(&self) -> Option<Columns> {
        self.columns.as_deref().map(Columns::new)
    }

    /// The format that `--format` names, else that of the file's name, else a table.
    pub fn format(&self) -> Format {
        let ending = || self.output.as_deref().and_then(Format::of_file);
        self.format.or_else(ending).unwrap_or(Format::Table)
    }
}
