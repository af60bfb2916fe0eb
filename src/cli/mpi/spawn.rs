//! `sme mpi spawn`.

use std::path::PathBuf;

use clap::Args;

use super::managed::{ProgramFlags, chart as chart_of, simulated};
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::spawn::Spawn;
use crate::messages::spawn::{Outcome, SPAWNS};
use crate::plot::{Chart, Marks, Scaling, Symbol};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The file of the chart.
const FILE: &str = "fig5-init.svg";

/// The published time of MPI_Init of one process [ms].
const PUBLISHED: (f64, f64) = (1.0, 12.5);

/// The flags of `sme mpi spawn`.
#[derive(Args, Clone, Debug)]
pub struct SpawnFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// Processes to start, such as 1,8,47 [default: 1 and all cores but one]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    processes: Option<String>,
    /// Draw Fig. 5b of Comprés et al.: into this directory, with the published time of one process,
    /// fig5-init.svg
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
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
        let points = Points::new(points.collect(), &self.watch, "--processes makes")?;
        points.drawn(self.figures.as_deref(), &[FILE])
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

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        let points = outcomes.iter().map(|(run, outcome)| {
            let time_ms = outcome.initializes.as_us() * 1e-3;
            (f64::from(run.processes), time_ms)
        });
        let curves = simulated("MPI_Init", points);
        let marks = vec![Marks {
            group: "Published".into(),
            label: "one process".into(),
            points: vec![PUBLISHED],
            symbol: Symbol::Diamond,
        }];
        let axes = [
            ("Processes that are started", Scaling::Linear),
            ("Time [ms]", Scaling::Linear),
        ];
        let titles = ["Processes begin: MPI_Init", "Fig. 5 (b)"];
        let job = outcomes.first().map(|(run, _)| &run.job);
        vec![(FILE, chart_of(job, titles, axes, (curves, marks)))]
    }
}
