//! `sme mpi spawn`.

use clap::Args;

use super::managed::ProgramFlags;
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::spawn::Spawn;
use crate::messages::spawn::{Outcome, SPAWNS};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi spawn`.
#[derive(Args, Clone, Debug)]
pub struct SpawnFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// Processes to start, such as 1,8,47 [default: 1 and all cores but one]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    processes: Option<String>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl SpawnFlags {
    pub(super) fn read(&self) -> Result<Points<Spawn>, Stop> {
        let (job, cores) = self.program.job(&self.watch)?;
        let most = cores.saturating_sub(1).max(1);
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
    const KEYS: &[&str] = &["processes", "time_us", "start_us", "init_us"];

    const EXPLAINED: (&str, &str) = (SPAWNS, "the call");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let times = [outcome.spawns, outcome.begins, outcome.initializes];
        let mut cells = vec![Cell::Count(self.processes.into())];
        cells.extend(times.map(Cell::micros));
        cells
    }
}
