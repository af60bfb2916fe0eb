//! `sme mpi infect` and `sme mpi retreat`.

mod figures;

use std::path::PathBuf;

use clap::Args;

use super::managed::ProgramFlags;
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
use crate::messages::Measurement;
pub(super) use crate::messages::infect::Infect;
use crate::messages::infect::{INFECTS, Outcome, RETREATS};
use crate::messages::job::{Error, Job, Observe, Observed};
use crate::plot::Chart;
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of both.
#[derive(Args, Clone, Debug)]
pub struct InfectFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// Processes that come and leave, such as 1,8,47 [default: 1 and all cores that are left]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    processes: Option<String>,
    /// Processes at the start, which stay
    #[arg(
        long,
        value_name = "PROCESSES",
        default_value = "1",
        allow_negative_numbers = true
    )]
    parents: String,
    /// Draw Fig. 6 (infect) or Fig. 7 (retreat) of Comprés et al., with published bounds, into this
    /// directory: fig6.svg, fig7.svg
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl InfectFlags {
    pub(super) fn read(&self) -> Result<Points<Infect>, Stop> {
        let points = Points::new(self.points()?, &self.watch, "--processes makes")?;
        points.drawn(self.figures.as_deref(), &[figures::INFECT])
    }

    pub(super) fn read_retreat(&self) -> Result<Points<Retreat>, Stop> {
        let points = self.points()?.into_iter().map(Retreat).collect();
        let points = Points::new(points, &self.watch, "--processes makes")?;
        points.drawn(self.figures.as_deref(), &[figures::RETREAT])
    }

    fn points(&self) -> Result<Vec<Infect>, Stop> {
        let (job, cores) = self.program.job(&self.watch)?;
        let most = cores.saturating_sub(1).max(1);
        let parents = read::counts("--parents", &self.parents, 1, most, Values::One)?;
        let parents = read::one("--parents", parents)?;
        let most = cores.saturating_sub(parents).max(1);
        let default = format!("1,{most}");
        let processes = self.processes.as_ref().unwrap_or(&default);
        let processes = read::counts("--processes", processes, 1, most, Values::Many)?;
        let points = processes.into_iter().map(|processes| Infect {
            job: job.clone(),
            parents,
            processes,
        });
        Ok(points.collect())
    }
}

impl Point for Infect {
    const KEYS: &[&str] = &["parents", "processes", "time_us", "start_us", "init_us"];

    const EXPLAINED: (&str, &str) = (INFECTS, "the call");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let counts = [self.parents, self.processes];
        let times = [outcome.infects, outcome.begins, outcome.initializes];
        let counts = counts.map(|count| Cell::Count(count.into()));
        counts.into_iter().chain(times.map(Cell::micros)).collect()
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        vec![(figures::INFECT, figures::infect(outcomes))]
    }
}

/// The same, of which the call at the end is looked at.
#[derive(Clone, Debug)]
pub(super) struct Retreat(Infect);

impl Measurement for Retreat {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.0.job
    }

    fn calls(&self) -> u64 {
        self.0.calls()
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        self.0.observed(observe)
    }
}

impl Point for Retreat {
    const KEYS: &[&str] = &["parents", "processes", "time_us", "leave_us", "infect_us"];

    const EXPLAINED: (&str, &str) = (RETREATS, "the call");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let counts = [self.0.parents, self.0.processes];
        let times = [outcome.retreats, outcome.leaves, outcome.infects];
        let counts = counts.map(|count| Cell::Count(count.into()));
        counts.into_iter().chain(times.map(Cell::micros)).collect()
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        let outcomes: Vec<(&Infect, Outcome)> = (outcomes.iter())
            .map(|(run, outcome)| (&run.0, *outcome))
            .collect();
        vec![(figures::RETREAT, figures::retreat(&outcomes))]
    }
}
