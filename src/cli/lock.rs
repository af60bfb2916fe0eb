//! `sme lock`: the hand-over of the cluster's lock, within a node and between nodes, as a row.
//!
//! Called by [`super::main`]; simulated by [`crate::lock`].

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use sme_barrier::lock::LockKind;
use sme_sim::machine::Machine;

use super::args;
use super::flags::{Heading, MachineFlags, OutputFlags, SeedFlag};
use super::memory;
use super::read::{self, MAX_NODES, Values};
use crate::lock::{Data, Error, HandOvers, LockPlan, LockReport};
use crate::progress;
use crate::report::output::Output;
use crate::report::row::{self, Cell, Host};
use crate::report::stop::{Stop, one_line};

/// The most acquisitions of a run: the simulator remembers each of them.
const MAX_ACQUISITIONS: u64 = 1 << 20;

/// The default of [`LockFlags::cores`], if the node has as many.
const CORES: u32 = 4;
/// The nodes, unless they are given or the machine has fewer.
const NODES: u32 = 4;

/// The flags of `sme lock`.
#[derive(Args, Clone, Debug)]
pub struct LockFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// Network (e.g. mesh:8x8, torus:4x4x4, fattree:16x3 or dragonfly:4x8x4) [default: a mesh as
    /// square as the nodes allow, or what the machine's file says]
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// Nodes: the first N positions of the topology [default: 4, or as many as there are]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    nodes: Option<String>,
    /// Threads per node, one a core [default: 4, or all cores of the node if it has fewer]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    cores: Option<String>,
    /// The lock: one lock a node and one between nodes (cohort), or a register (test-and-set)
    #[arg(long, value_name = "NAME")]
    lock: Option<String>,
    /// How often each thread acquires the lock
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        allow_negative_numbers = true
    )]
    acquisitions: String,
    /// Times that the cohort lock stays in a node before another gets it [default: 16]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    passes: Option<String>,
    /// How the data under the lock is reached: past the caches (uncached), or through caches of
    /// which the lock writes back and drops its line (line) or everything (all)
    #[arg(long, value_name = "NAME", default_value = "uncached")]
    data: String,
    /// What is drawn.
    #[command(flatten)]
    seed: SeedFlag,
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
}

/// The default lock on so many nodes of `machine`: the first whose needs it meets.
fn usual_lock(machine: &Machine, nodes: u32) -> LockKind {
    let needs = |lock: &LockKind| lock.needs().on_nodes(nodes);
    let meets = |lock: &&LockKind| machine.suffices("the lock", needs(lock)).is_ok();
    LockKind::ALL
        .iter()
        .find(meets)
        .copied()
        .unwrap_or(LockKind::Cohort)
}

/// A run whose flags fit together.
#[derive(Debug)]
pub struct LockRun {
    plan: LockPlan,
    /// Whether the rows say which lock it is.
    names_lock: bool,
    output: OutputFlags,
}

impl LockRun {
    /// Reads the flags.
    pub fn read(flags: &LockFlags) -> Result<Self, Stop> {
        let machine = Arc::new(args::machine(&flags.machine)?);
        let count = |flag, text: &str, least, most| {
            read::one(flag, read::counts(flag, text, least, most, Values::One)?)
        };
        let topology = flags.topology.as_ref().map(|text| {
            let topologies = read::topologies(text, Values::One)?;
            read::one("--topology", topologies)
        });
        let topology = topology.transpose()?;
        let most = topology
            .as_ref()
            .map_or(u32::MAX, |topology| topology.hosts());
        let nodes = match &flags.nodes {
            Some(text) => count("--nodes", text, 1, MAX_NODES)?,
            None => NODES.min(machine.shape().nodes).min(most),
        };
        let most_cores = args::cores_per_node(&machine);
        let usual = CORES.min(most_cores).to_string();
        let cores = flags.cores.as_ref().unwrap_or(&usual);
        let cores = count("--cores", cores, 1, most_cores)?;
        let acquisitions = count("--acquisitions", &flags.acquisitions, 1, u32::MAX)?;
        let lock = flags.lock.as_deref();
        let lock: Option<LockKind> = lock.map(|name| read::name("--lock", name)).transpose()?;
        let passes = match (lock, &flags.passes) {
            (Some(LockKind::TestAndSet), Some(_)) => {
                let only = "only the cohort lock is passed on within a node";
                return Err(Stop::flag("--passes", only));
            }
            (_, passes) => count("--passes", passes.as_deref().unwrap_or("16"), 0, u32::MAX)?,
        };
        let topology = topology.unwrap_or_else(|| machine.shape().topology(nodes));
        args::holds(&machine, &topology, nodes)?;
        let threads = u64::from(nodes) * u64::from(cores);
        let all = threads.saturating_mul(acquisitions.into());
        if all > MAX_ACQUISITIONS {
            return Err(Stop::flag(
                "--acquisitions",
                format!("{all} in all; at most {MAX_ACQUISITIONS}: fewer, or fewer threads"),
            ));
        }
        memory::enough(
            &format!("--nodes {nodes} --cores {cores} --topology {topology}"),
            machine.shape().footprint.of(&topology, threads, cores),
            memory::available(),
        )?;
        Ok(Self {
            plan: LockPlan {
                lock: lock.unwrap_or_else(|| usual_lock(&machine, nodes)),
                machine,
                topology,
                nodes,
                cores,
                acquisitions,
                passes,
                data: read::name::<Data>("--data", &flags.data)?,
                seed: read::seed(&flags.seed.seed)?,
                workers: read::host_threads("--workers", &flags.workers)?,
            },
            names_lock: lock.is_some(),
            output: flags.output.clone(),
        })
    }

    /// The keys of its row.
    pub fn heading(&self) -> Heading {
        let with_host = !self.output.no_host;
        self.output.file.heading(&self.keys(), with_host)
    }

    fn keys(&self) -> Vec<&'static str> {
        let lock = self.names_lock.then_some("lock");
        let keys = row::HEAD.iter().chain(HEADING).copied();
        keys.chain(lock).collect()
    }

    /// Simulates it, and writes its row.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.output.file.output.as_deref())?;
        let watch = progress::on_stderr();
        let threads = u64::from(self.plan.nodes) * u64::from(self.plan.cores);
        watch.begin("acquisitions", threads * u64::from(self.plan.acquisitions));
        let mut told = 0;
        let acquired = |count: u64| {
            watch.advance(count.saturating_sub(told));
            told = count;
        };
        let began = Instant::now();
        let ran = self.plan.run_watched(acquired);
        watch.end();
        let report = ran.map_err(|error| match error {
            Error::Cores(_)
            | Error::Lock(_)
            | Error::Lacks(_)
            | Error::Build(_)
            | Error::Memory(_) => Stop::Input(one_line(&error.to_string())),
            Error::Failure(_) | Error::Overlap { .. } | Error::Lost { .. } => {
                Stop::Failed(error.to_string())
            }
        })?;
        let mut row = self.row(&report);
        if !self.output.no_host {
            row.extend(Host::measured(began.elapsed(), report.events).cells());
        }
        output.push(&self.output.file.rendered(&self.keys(), &[row])?)?;
        output.commit()
    }

    fn row(&self, report: &LockReport) -> Vec<Cell> {
        let plan = &self.plan;
        let mut cells = row::head(&plan.machine, &plan.topology).to_vec();
        cells.extend([
            Cell::Count(plan.nodes.into()),
            Cell::Count(plan.cores.into()),
            Cell::Count(plan.acquisitions.into()),
            match plan.lock {
                LockKind::Cohort => Cell::Count(plan.passes.into()),
                LockKind::TestAndSet => Cell::Absent,
            },
            Cell::text(plan.data),
            Cell::Count(plan.seed),
        ]);
        cells.extend(spans(&report.within));
        cells.extend(spans(&report.across));
        cells.extend([
            Cell::Count(report.acquisitions),
            Cell::Count(report.remote_loads),
            Cell::Count(report.remote_stores),
            Cell::Count(report.events),
            Cell::micros(report.end),
        ]);
        if self.names_lock {
            cells.push(Cell::text(plan.lock));
        }
        cells
    }
}

/// Count, mean, shortest and longest; no times where there were none.
fn spans(of: &HandOvers) -> [Cell; 4] {
    let count = Cell::Count(of.count);
    match of.mean() {
        None => [count, Cell::Absent, Cell::Absent, Cell::Absent],
        Some(mean) => [
            count,
            Cell::micros(mean),
            Cell::micros(of.min),
            Cell::micros(of.max),
        ],
    }
}

const HEADING: &[&str] = &[
    "nodes",
    "cores_per_node",
    "acquisitions_per_thread",
    "passes",
    "data",
    "seed",
    "within_count",
    "within_mean_us",
    "within_min_us",
    "within_max_us",
    "across_count",
    "across_mean_us",
    "across_min_us",
    "across_max_us",
    "acquisitions",
    "remote_loads",
    "remote_stores",
    "events",
    "end_us",
];
