//! `sme mpi spawn`.

use std::sync::Arc;

use clap::Args;

use super::{Point, Points, WatchFlags};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
use crate::messages::job::Job;
pub(super) use crate::messages::spawn::Spawn;
use crate::messages::spawn::{Outcome, SPAWNS};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi spawn`.
#[derive(Args, Clone, Debug)]
pub struct SpawnFlags {
    /// Machine description: built in (see `sme machines list`) or a file
    #[arg(
        long = "machine",
        value_name = "NAME|FILE.toml",
        default_value = "scc-800"
    )]
    machine: String,
    /// Override a machine constant, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Processes to start, such as 1,8,47 [default: 1 and all cores but one]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    processes: Option<String>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl SpawnFlags {
    pub(super) fn read(&self) -> Result<Points<Spawn>, Stop> {
        let machine = args::machine(&MachineFlags {
            name: self.machine.clone(),
            set: self.set.clone(),
        })?;
        let most = machine.shape().nodes.saturating_sub(1).max(1);
        let workers = self.watch.workers()?;
        let job = Job {
            workers,
            ..Job::managed(Arc::new(machine))
        };
        job.check()
            .map_err(|error| Stop::flag("--machine", error))?;
        let default = format!("1,{most}");
        let processes = self.processes.as_ref().unwrap_or(&default);
        let processes = read::counts("--processes", processes, 1, most, Values::Many)?;
        let points = processes.into_iter().map(|processes| Spawn {
            job: job.clone(),
            processes,
        });
        Points::new(points.collect(), &self.watch, "--processes makes")
    }
}

impl Point for Spawn {
    const KEYS: &[&str] = &["processes", "time_us", "start_us", "connect_us"];

    const EXPLAINED: (&str, &str) = (SPAWNS, "the call");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let times = [outcome.spawns, outcome.begins, outcome.connects];
        let mut cells = vec![Cell::Count(self.processes.into())];
        cells.extend(times.map(Cell::micros));
        cells
    }
}
