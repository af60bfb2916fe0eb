//! `sme mpi simpson`.

mod figures;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use sme_sim::observe::energy::Energy;
use sme_sim::time::Time;

use super::managed::{ProgramFlags, energy};
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::simpson::Simpson;
use crate::messages::simpson::{Outcome, WHOLE_RUN, exact};
use crate::plot::Chart;
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// Differences that the criterion may allow.
const TOLERANCES: RangeInclusive<f64> = 1e-6..=1e6;

/// The most points of a leaf.
const MOST_POINTS: u64 = 100_000_000;

/// The flags of an integration.
#[derive(Args, Clone, Debug)]
pub(super) struct IntegrationFlags {
    /// Tolerance of an interval: it is halved until Simpson's rule differs from that of its halves
    /// by at most 15 times this
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "0.02",
        allow_negative_numbers = true
    )]
    tolerance: String,
    /// Points of the midpoint rule in a last interval
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "1000000",
        allow_negative_numbers = true
    )]
    points: String,
}

impl IntegrationFlags {
    /// The tolerance, and the points.
    pub(super) fn read(&self) -> Result<(f64, u64), Stop> {
        let tolerance = read::real("--tolerance", &self.tolerance, &TOLERANCES)?;
        let points = read::numbers("--points", &self.points, 1, MOST_POINTS, Values::One)?;
        Ok((tolerance, read::one("--points", points)?))
    }
}

/// The flags of `sme mpi simpson`.
#[derive(Args, Clone, Debug)]
pub struct SimpsonFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// Variants: serial, by one process, or invasive, by a world that grows and shrinks
    #[arg(long, value_name = "LIST", default_value = "serial,invasive")]
    variant: String,
    #[command(flatten)]
    integration: IntegrationFlags,
    /// Draw Fig. 8 of Comprés et al. into this directory: fig8-tree.svg, fig8-processes.svg
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl SimpsonFlags {
    pub(super) fn read(&self) -> Result<Points<Simpson>, Stop> {
        let (job, _) = self.program.job(&self.watch)?;
        let (tolerance, points) = self.integration.read()?;
        let variants = read::names("--variant", &self.variant, Values::Many)?;
        let runs = variants.into_iter().map(|variant| Simpson {
            job: job.clone(),
            variant,
            tolerance,
            points,
            waiting: None,
        });
        let runs = Points::new(runs.collect(), &self.watch, "--variant makes")?;
        runs.drawn(
            self.figures.as_deref(),
            &[figures::TREE, figures::PROCESSES],
        )
    }
}

/// A time in seconds.
pub(super) fn seconds(time: Time) -> Cell {
    Cell::real(time.as_us() * 1e-6)
}

impl Point for Simpson {
    const KEYS: &[&str] = &[
        "variant",
        "tolerance",
        "points",
        "leaves",
        "processes_max",
        "time_s",
        "total_s",
        "energy_j",
        "integral",
        "exact",
    ];
    const BELOW: &[&str] = &[
        "variant",
        "level",
        "intervals",
        "leaves",
        "processes",
        "begin_s",
        "end_s",
    ];

    const EXPLAINED: (&str, &str) = (WHOLE_RUN, "the integration");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let most = outcome.levels.iter().map(|level| level.processes).max();
        let leaves = outcome.levels.iter().flat_map(|level| &level.leaves);
        vec![
            Cell::text(self.variant),
            Cell::text(self.tolerance),
            Cell::Count(self.points),
            Cell::Count(leaves.filter(|leaf| **leaf).count() as u64),
            Cell::Count(most.unwrap_or(0).into()),
            seconds(outcome.time),
            seconds(outcome.total),
            energy(outcome.energy.as_ref(), Energy::total_j),
            // The last digits differ with the computer's exponential.
            Cell::Number(format!("{:.3}", outcome.result)),
            Cell::Number(format!("{:.3}", exact())),
        ]
    }

    fn below(outcomes: &[(&Self, Outcome)]) -> Vec<Vec<Cell>> {
        let mut rows = Vec::new();
        for (run, outcome) in outcomes {
            for (number, level) in outcome.levels.iter().enumerate() {
                let leaves = level.leaves.iter().filter(|leaf| **leaf);
                rows.push(vec![
                    Cell::text(run.variant),
                    Cell::Count(number as u64),
                    Cell::Count(level.intervals.len() as u64),
                    Cell::Count(leaves.count() as u64),
                    Cell::Count(level.processes.into()),
                    seconds(level.begin),
                    seconds(level.end),
                ]);
            }
        }
        rows
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        vec![
            (figures::TREE, figures::tree(outcomes)),
            (figures::PROCESSES, figures::processes(outcomes)),
        ]
    }
}
