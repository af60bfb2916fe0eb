//! `sme fft --paper`: which runs the paper's Fig. 12 and 13 take.
//!
//! Called by [`super::main`]; they are simulated, printed and drawn by `figures`.

mod figures;

use std::path::Path;

use super::fft::{FftFlags, FftTask};
use super::flags::{FileFlags, OutputFlags, ProgramFlags};
use super::memory;
use super::program::{Plan, Task};
use super::read;
use crate::program::Mapped;
use crate::progress::{self, Watch};
use crate::report::output::Output;
use crate::report::stop::Stop;
use figures::Figure;

/// Default binary logarithm of the number of points: a thread for each of 128 rows.
const LOG2N: u32 = 14;
/// The network of the paper's cluster, and its nodes, over all of which it spreads the data.
const TOPOLOGY: &str = "mesh:8x8";
const MEMORY_NODES: &str = "64";
/// On how many nodes it runs.
const NODES: &str = "1..64*2";
/// With how many threads on each.
const CORES: &str = "1..8*2";

/// The runs of both figures.
#[derive(Debug)]
pub struct FftPaper {
    figures: Vec<Figure>,
    task: FftTask,
    workers: usize,
}

impl FftPaper {
    /// Reads the flags, of which the parser has refused those that the figures leave no choice of.
    pub fn read(flags: &FftFlags) -> Result<Self, Stop> {
        let task = FftTask::random(flags.log2n()?.unwrap_or(LOG2N));
        let available = memory::available();
        let mut figures = Vec::with_capacity(2);
        for mapped in [Mapped::Uncached, Mapped::Cached] {
            let figure = figure(&flags.program, mapped, &task)?;
            figure.plan().fits(&task, available)?;
            figures.push(figure);
        }
        let workers = match &flags.program.workers {
            Some(workers) => read::host_threads("--workers", workers)?,
            None => read::all_host_threads(),
        };
        let programs = figures.iter().flat_map(|figure| figure.plan().programs());
        let needed = programs.map(|program| memory::needed_by(program, &task.needs(program)));
        let needed: Vec<u64> = needed.collect();
        Ok(Self {
            workers: memory::jobs_that_fit(workers, &needed, available),
            figures,
            task,
        })
    }

    /// Simulates, writes the files under `results/`, and prints the tables.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::stdout();
        let watch = progress::on_stderr();
        let text = self.into_directory(Path::new("results"), self.workers, watch.as_ref());
        output.push(&text?)?;
        output.commit()
    }

    /// The same on `workers` threads of the host, with its files in `directory`; returns what to
    /// print.
    pub fn into_directory(
        &self,
        directory: &Path,
        workers: usize,
        watch: &dyn Watch,
    ) -> Result<String, Stop> {
        figures::run(&self.figures, &self.task, directory, workers, watch)
    }
}

fn figure(flags: &ProgramFlags, mapped: Mapped, task: &FftTask) -> Result<Figure, Stop> {
    let given = |flag: &Option<String>, default: &str| {
        Some(flag.clone().unwrap_or_else(|| default.to_owned()))
    };
    let flags = ProgramFlags {
        topology: Some(TOPOLOGY.into()),
        memory_nodes: Some(MEMORY_NODES.into()),
        nodes: given(&flags.nodes, NODES),
        cores: given(&flags.cores, CORES),
        memory: mapped.to_string(),
        // There are enough runs for all of them.
        workers: None,
        ..flags.clone()
    };
    let rows = OutputFlags {
        file: FileFlags {
            format: None,
            output: None,
            columns: None,
        },
        no_host: true,
    };
    let plan = Plan::read(&flags, rows)?;
    if !plan.programs().iter().any(|program| program.nodes == 1) {
        let nodes = flags.nodes.unwrap_or_default();
        return Err(Stop::flag(
            &format!("--nodes {nodes}"),
            "with --paper, 1 is among them: speed-up is against one node",
        ));
    }
    let figure = Figure::new(plan, task);
    match figure.plan().programs() {
        [] => Err(Stop::flag(
            &format!("--log2n {}", task.log2n()),
            format!(
                "the matrix has {} rows, fewer than a node of --cores has threads",
                task.rows()
            ),
        )),
        _ => Ok(figure),
    }
}
