//! The flags of commands on a chip whose cores have daemons.

use std::sync::Arc;

use clap::Args;
use sme_mpi::process::command::MOST_CORES;
use sme_sim::machine::{Dimension, Limits, Machine};
use sme_sim::observe::energy::Energy;

use super::{WatchFlags, caption};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
use crate::messages::job::{Job, Kill};
use crate::paper::BLUES;
use crate::plot::{Axis, Chart, Curve, Marks, Scaling, Stroke};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// Nodes of a cluster where no flag says otherwise: those of the prototype.
const NODES: u32 = 64;

/// The times at which a process may be killed, up to a thousand seconds.
const KILLS: Limits = Limits::new(Dimension::Time, 0, 1_000_000_000_000_000);

/// The machine.
#[derive(Args, Clone, Debug)]
pub(super) struct ManagedFlags {
    /// Machine, built in or a file (see `sme machines list`)
    #[arg(
        id = "machine",
        long = "machine",
        value_name = "NAME|FILE.toml",
        default_value = "scc-800"
    )]
    machine: String,
    /// Override a machine constant, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Nodes of a cluster, each with a daemon: they take the place of a chip's cores [default: 64]
    #[arg(long, value_name = "NODES", allow_negative_numbers = true)]
    nodes: Option<String>,
}

/// The machine, for programs under managers.
#[derive(Args, Clone, Debug)]
pub(super) struct ProgramFlags {
    #[command(flatten)]
    managed: ManagedFlags,
    /// Kill the process on this core at this time (7@50ms is after 50 ms); its manager ends the
    /// program
    #[arg(long, value_name = "CORE@TIME", allow_hyphen_values = true)]
    kill: Option<String>,
}

impl ManagedFlags {
    /// The machine, and its cores.
    pub(super) fn job(&self, watch: &WatchFlags) -> Result<(Job, u32), Stop> {
        let machine = args::machine(&MachineFlags {
            name: self.machine.clone(),
            set: self.set.clone(),
        })?;
        let workers = watch.workers()?;
        let job = Job {
            workers,
            ..self.daemons(Arc::new(machine))?
        };
        job.check()
            .map_err(|error| Stop::flag("--machine", error))?;
        let cores = job.ranks;
        Ok((job, cores))
    }

    /// The daemons of all cores of a chip, or of some nodes of a cluster.
    fn daemons(&self, machine: Arc<Machine>) -> Result<Job, Stop> {
        let is_chip = machine.shape().buffer_bytes > 0;
        if is_chip && self.nodes.is_some() {
            let why = "is for clusters; all cores of a chip have daemons";
            return Err(Stop::flag("--nodes", why));
        }
        if is_chip {
            return Ok(Job::managed(machine));
        }
        let most = MOST_CORES.min(Job::most_ranks(&machine));
        let nodes = match &self.nodes {
            None => NODES.min(most),
            Some(text) => {
                let nodes = read::counts("--nodes", text, 2, most.max(2), Values::One)?;
                read::one("--nodes", nodes)?
            }
        };
        Ok(Job::managed_cluster(machine, nodes))
    }
}

impl ProgramFlags {
    /// The machine, with the process that is to be killed, and its cores.
    pub(super) fn job(&self, watch: &WatchFlags) -> Result<(Job, u32), Stop> {
        let (job, cores) = self.managed.job(watch)?;
        let kill = self.kill.as_ref().map(|kill| read_kill(kill, cores));
        let kill = kill.transpose()?;
        Ok((Job { kill, ..job }, cores))
    }
}

/// The process that `text` wants killed, on one of so many cores.
fn read_kill(text: &str, cores: u32) -> Result<Kill, Stop> {
    let Some((core, at)) = text.split_once('@') else {
        return Err(Stop::flag(
            "--kill",
            "needs a core and a time, as in 7@50ms",
        ));
    };
    let core = read::counts("--kill", core, 0, cores - 1, Values::One)?;
    Ok(Kill {
        core: read::one("--kill", core)?,
        at: read::time_within("--kill", at, KILLS)?,
    })
}

/// A figure of the energy of a run, where the machine has figures of power.
pub(super) fn energy(energy: Option<&Energy>, of: fn(&Energy) -> f64) -> Cell {
    energy.map_or(Cell::Absent, |energy| Cell::real(of(energy)))
}

/// The curve of what was simulated.
pub(super) fn simulated(label: &str, points: impl Iterator<Item = (f64, f64)>) -> Vec<Curve> {
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    vec![Curve {
        group: "Simulated".into(),
        label: label.into(),
        points,
        colour: BLUES[3],
        stroke: Stroke::Dotted,
    }]
}

/// A chart as a figure of Comprés et al. has it, of runs of which this is the first's job.
pub(super) fn chart(
    job: Option<&Job>,
    [title, figure]: [&str; 2],
    axes: [(&str, Scaling); 2],
    (curves, marks): (Vec<Curve>, Vec<Marks>),
) -> Chart {
    let [x, y] = axes.map(|(label, scaling)| Axis {
        label: label.into(),
        ticks: Vec::new(),
        scaling,
    });
    let name = job.map_or("", |job| job.machine.name());
    Chart {
        title: title.into(),
        subtitle: format!("{name}, simulated (cf. Comprés et al., {figure})"),
        x,
        y,
        curves,
        marks,
        caption: job.map(caption).into_iter().collect(),
    }
}
