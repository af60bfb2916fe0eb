//! `sme validate`: every published figure beside the simulated one.
//!
//! Called by [`super::main`]; the work is that of [`crate::validate`]. A figure that is missed
//! without an entry in DEVIATIONS.md ends in exit status 1, after the rows are written.

use std::sync::Arc;

use clap::Args;
use sme_sim::machine::Machine;

use super::args;
use super::colour;
use super::flags::{Heading, MachineFlags, OutputFlags, SeedFlag};
use super::names;
use super::noise::{NoiseFlags, only_noise};
use super::read;
use crate::experiment::noise::Noise;
use crate::report::Format;
use crate::report::output::Output;
use crate::report::stop::{Stop, to_stderr};
use crate::validate::papers::On;
use crate::validate::papers::coherence::Coherent;
use crate::validate::papers::mppa::Clusters;
use crate::validate::papers::scc::Chip;
use crate::validate::papers::sme::simulator::Simulator;
use crate::validate::published::{self, PublishedError};
use crate::validate::{Identity, Report, Validation};

/// The flags of `sme validate`.
#[derive(Args, Clone, Debug)]
pub struct ValidateFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// Counted episodes of every barrier
    #[arg(
        long,
        value_name = "N",
        default_value = "100",
        allow_negative_numbers = true
    )]
    episodes: String,
    /// What is drawn.
    #[command(flatten)]
    seed: SeedFlag,
    /// Compare the figures of one paper only: sme, scc, rcce, scosco, impi, mppa or coherence
    #[arg(long, value_name = "NAME")]
    paper: Option<String>,
    /// Leave out the figures for which programs are run (the FFT, BT, LU, Linpack and transfers of
    /// messages): they take most of the time
    #[arg(long)]
    no_programs: bool,
    /// Leave out the figures for which 220,000 threads are simulated: of the others they take half
    /// of the time
    #[arg(long)]
    no_large: bool,
    /// Experiments simulated at the same time [default: the computer's threads]
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    workers: Option<String>,
    /// The disturbance of the threads of the barriers.
    #[command(flatten)]
    noise: NoiseFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// A validation whose flags fit together.
#[derive(Debug)]
pub struct ValidateRun {
    machine: Arc<Machine>,
    episodes: u32,
    seed: u64,
    paper: Option<String>,
    programs: bool,
    large: bool,
    workers: usize,
    noise: Option<Noise>,
    /// The keys of a row.
    keys: Vec<String>,
    output: OutputFlags,
}

/// The machines of the papers.
struct Machines {
    cluster: Arc<Machine>,
    chip: Chip,
    /// The SCC at the clocks of invasive MPI.
    invasive: Chip,
    clusters: Clusters,
    /// The coherent nodes: the given machine in the place of Intel's.
    nodes: Coherent,
}

impl ValidateRun {
    /// Reads the flags.
    pub fn read(flags: &ValidateFlags) -> Result<Self, Stop> {
        let machine = Arc::new(args::machine(&flags.machine)?);
        let seed = read::seed(&flags.seed.seed)?;
        let identity = Identity {
            on: On::new(&machine),
            episodes: read::episodes(&flags.episodes)?,
            seed,
            noise: only_noise(&flags.noise, seed)?,
        };
        Ok(Self {
            machine,
            episodes: identity.episodes,
            seed,
            noise: identity.noise,
            keys: identity.keys().map_err(failed)?,
            paper: flags.paper.as_deref().map(paper).transpose()?,
            programs: !flags.no_programs,
            large: !flags.no_large,
            workers: match &flags.workers {
                Some(text) => read::host_threads("--workers", text)?,
                None => read::all_host_threads(),
            },
            output: flags.output.clone(),
        })
    }

    /// The machines of the papers: the given one for those of its family, an SCC for invasive MPI
    /// if its cores have that paper's clock, and the built-in ones for the others.
    fn machines(&self) -> Result<Machines, Stop> {
        let built_in = |name| {
            let machine = Machine::builtin(name);
            machine
                .map(Arc::new)
                .map_err(|error| Stop::Failed(error.to_string()))
        };
        let given = || Arc::clone(&self.machine);
        let none = |name: &str| Stop::Failed(format!("machine {name} is of another family"));
        let (chip, clusters) = (Chip::new(given()), Clusters::new(given()));
        let chip_of = |name, chip: Option<Chip>| match chip {
            Some(chip) => Ok(chip),
            None => Chip::new(built_in(name)?).ok_or_else(|| none(name)),
        };
        let is_fast = chip.as_ref().is_some_and(Chip::is_invasive);
        let fast = is_fast.then(|| Chip::new(given())).flatten();
        let is_coherent = self.machine.shape().coherence.is_some();
        let is_other = chip.is_some() || clusters.is_some() || is_coherent;
        let intel = match is_coherent {
            true => given(),
            false => built_in("xeon-e5-2650")?,
        };
        let nodes = Coherent::new(intel, built_in("opteron-6272")?);
        Ok(Machines {
            cluster: match is_other {
                true => built_in("sme-prototype")?,
                false => given(),
            },
            chip: chip_of("scc", chip)?,
            invasive: chip_of("scc-800", fast)?,
            clusters: match clusters {
                Some(clusters) => clusters,
                None => Clusters::new(built_in("mppa256")?).ok_or_else(|| none("mppa256"))?,
            },
            nodes: nodes.map_err(|error| Stop::Failed(error.to_string()))?,
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.file.heading(&self.keys, false)
    }

    /// Simulates, compares, and writes the rows.
    pub fn run(&self) -> Result<(), Stop> {
        let Machines {
            cluster,
            chip,
            invasive,
            clusters,
            nodes,
        } = self.machines()?;
        let simulator = Simulator::new(cluster, self.episodes, self.seed)
            .map_err(|error| Stop::flag("--machine", error))?
            .with_noise(self.noise);
        let (simulator, chip, clusters, nodes) = match self.programs {
            true => (simulator, chip, clusters, nodes),
            false => (
                simulator.without_programs(),
                chip.without_programs(),
                clusters.without_programs(),
                nodes.without_programs(),
            ),
        };
        let simulator = match self.large {
            true => simulator,
            false => simulator.without_large(),
        };
        let mut output = Output::file_or_stdout(self.output.file.output.as_deref())?;
        let watch = self.output.file.watch();
        let mut validation = Validation {
            only: self.paper.clone(),
            ..simulator.validation(self.workers)
        };
        validation.identity.on = On::new(&self.machine);
        validation.papers.extend(chip.papers());
        validation.papers.push(invasive.invasive());
        validation.papers.push(clusters.paper());
        validation.papers.push(nodes.paper());
        let format = self.output.file.format();
        let is_table = format == Format::Table;
        let (mut told, mut written) = (0, Ok(()));
        // Rows that are not for people appear as soon as those of their paper are there.
        let mut tell = |report: &Report| {
            if !is_table && written.is_ok() && report.rows.len() > told {
                written = self
                    .lines(report, told)
                    .and_then(|lines| output.push_now(&lines));
                told = report.rows.len();
            }
        };
        let report = validation.run(watch.as_ref(), &mut tell);
        watch.end();
        let report = report.map_err(failed)?;
        tell(&report);
        written?;
        if is_table {
            let table = match self.output.file.columns {
                Some(_) => self
                    .output
                    .file
                    .rendered(&self.keys, &report.to_cells().1)?,
                None => report.to_table(),
            };
            output.push(&colour::verdicts(table, &output))?;
        }
        output.commit()?;
        if format != Format::Table {
            to_stderr(&report.summary());
        }
        for warning in report.warnings() {
            to_stderr(&format!("warning: {warning}\n"));
        }
        match report.fails() {
            true => Err(Stop::Failed(
                "a figure is missed without an entry in DEVIATIONS.md".into(),
            )),
            false => Ok(()),
        }
    }

    /// The rows of `report` from the one at place `first` on, as CSV or JSON lines.
    fn lines(&self, report: &Report, first: usize) -> Result<String, Stop> {
        let file = &self.output.file;
        match (file.columns.is_some(), file.format()) {
            (true, _) => {
                let (keys, rows) = report.to_cells();
                let rows = rows.get(first..).unwrap_or_default();
                file.continued(&keys, rows, first > 0)
            }
            (false, Format::Csv) => Ok(report.csv_from(first)),
            (false, _) => Ok(report.json_from(first)),
        }
    }
}

fn failed(error: PublishedError) -> Stop {
    Stop::Failed(error.to_string())
}

/// The key of the paper that `--paper` names.
fn paper(name: &str) -> Result<String, Stop> {
    let figures = published::built_in().map_err(failed)?;
    let known = published::papers(&figures);
    if known.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(Stop::flag("--paper", names::unknown(name, &known)))
    }
}
