//! `sme mpi connect`.

use std::path::PathBuf;

use clap::Args;

use super::managed::{ManagedFlags, chart as chart_of, simulated};
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::connect::Connect;
use crate::messages::connect::{CONNECTS, Outcome};
use crate::plot::{Chart, Scaling};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The file of the chart.
const FILE: &str = "fig5-connect.svg";

/// Ranks of the world that accepts, where no flag says otherwise.
const PARENTS: [u32; 4] = [1, 8, 16, 24];

/// The flags of `sme mpi connect`.
#[derive(Args, Clone, Debug)]
pub struct ConnectFlags {
    #[command(flatten)]
    managed: ManagedFlags,
    /// Ranks of the world that accepts; the other has the cores that are left [default: of 1, 8, 16
    /// and 24 those that leave any]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    parents: Option<String>,
    /// Ranks of the world that connects, at most [default: all cores that are left]
    #[arg(long, value_name = "RANKS", allow_negative_numbers = true)]
    children: Option<String>,
    /// Draw Fig. 5 (a) of Comprés et al. into this directory: fig5-connect.svg
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl ConnectFlags {
    pub(super) fn read(&self) -> Result<Points<Connect>, Stop> {
        let (job, cores) = self.managed.job(&self.watch)?;
        let most = cores.saturating_sub(1).max(1);
        let parents = match &self.parents {
            None => PARENTS.into_iter().filter(|ranks| *ranks <= most).collect(),
            Some(parents) => read::counts("--parents", parents, 1, most, Values::Many)?,
        };
        let children = match &self.children {
            None => most,
            Some(children) => {
                let children = read::counts("--children", children, 1, most, Values::One)?;
                read::one("--children", children)?
            }
        };
        let points = parents.into_iter().map(|parents| Connect {
            job: job.clone(),
            parents,
            children: children.min(cores - parents),
        });
        let points = Points::new(points.collect(), &self.watch, "--parents makes")?;
        points.drawn(self.figures.as_deref(), &[FILE])
    }
}

impl Point for Connect {
    const KEYS: &[&str] = &["parents", "children", "time_us"];

    const EXPLAINED: (&str, &str) = (CONNECTS, "the calls");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        vec![
            Cell::Count(self.parents.into()),
            Cell::Count(self.children.into()),
            Cell::micros(outcome.connects),
        ]
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        let points = outcomes.iter();
        let points =
            points.map(|(run, outcome)| (f64::from(run.parents), outcome.connects.as_us()));
        let curves = simulated("accept and connect", points);
        let axes = [
            ("Ranks of the world that accepts", Scaling::Linear),
            ("Time [µs]", Scaling::Linear),
        ];
        let titles = ["Two worlds connect: accept and connect", "Fig. 5 (a)"];
        let job = outcomes.first().map(|(run, _)| &run.job);
        vec![(FILE, chart_of(job, titles, axes, (curves, Vec::new())))]
    }
}
