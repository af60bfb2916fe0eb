//! `sme mpi bt`.

mod figures;

use std::path::PathBuf;

use clap::Args;
use sme_mpi::process::manager::Kind;

use super::managed::ProgramFlags;
use super::nas::{SECONDS, ranks};
use super::{Point, Points, WatchFlags, rounds, unknown};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::nas::Launched;
use crate::messages::nas::{Class, Kernel, LaunchedOutcome, STEPS};
use crate::plot::Chart;
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi bt`.
#[derive(Args, Clone, Debug)]
pub struct BtFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// The size of the benchmark: S, W, A or B
    #[arg(long, value_name = "CLASS", default_value = "W")]
    class: String,
    /// Seconds that one core needs for all steps of the benchmark [default: those of the SCC for
    /// class A, by points and by clock]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    core_seconds: Option<String>,
    /// Managers: ipm, through message passing buffers, or mpd, over SSH and TCP/IP
    #[arg(long, value_name = "LIST", default_value = "mpd,ipm")]
    manager: String,
    /// Processes, squares, such as 1,4,36 [default: squares up to 36]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    processes: Option<String>,
    /// Steps that are simulated and count; one more comes first
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        allow_negative_numbers = true
    )]
    steps: String,
    /// Draw Fig. 3 of Comprés et al. into this directory: fig3.svg
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl BtFlags {
    pub(super) fn read(&self) -> Result<Points<Launched>, Stop> {
        let kernel = Kernel::Bt;
        let (job, cores) = self.program.job(&self.watch)?;
        let class: Class = read::name("--class", &self.class)?;
        let core_seconds = match &self.core_seconds {
            None => kernel.scaled_seconds(class, &job.machine),
            Some(text) => read::real("--core-seconds", text, &SECONDS)?,
        };
        let steps = rounds("--steps", &self.steps)?;
        let given = ("--processes", self.processes.as_ref());
        let all = ranks(given, (kernel, class), cores)?;
        let mut points = Vec::new();
        for manager in self.managers()? {
            for &processes in &all {
                let of = (class, processes);
                points.push(Launched::new(
                    job.clone(),
                    manager,
                    of,
                    (core_seconds, steps),
                ));
            }
        }
        let points = Points::new(points, &self.watch, "--manager and --processes make")?;
        points.drawn(self.figures.as_deref(), &[figures::FILE])
    }

    fn managers(&self) -> Result<Vec<Kind>, Stop> {
        const FLAG: &str = "--manager";
        let words = read::words(FLAG, &self.manager, Values::Many)?;
        let kinds = words.into_iter().map(|word| {
            let all = Kind::ALL.iter().map(|kind| kind.name());
            Kind::named(word).ok_or_else(|| unknown(FLAG, word, all))
        });
        kinds.collect()
    }
}

impl Point for Launched {
    const KEYS: &[&str] = &[
        "class",
        "core_s",
        "steps",
        "manager",
        "processes",
        "start_s",
        "solve_s",
        "total_s",
    ];

    const EXPLAINED: (&str, &str) = (STEPS, "the last step");

    fn cells(&self, outcome: &LaunchedOutcome) -> Vec<Cell> {
        vec![
            Cell::text(self.run.class),
            Cell::fraction(self.run.core_seconds),
            Cell::Count(self.run.steps.into()),
            Cell::text(self.manager),
            Cell::Count(self.run.job.ranks.into()),
            Cell::fraction(outcome.starts.as_us() / 1e6),
            Cell::fraction(self.run.seconds(&outcome.steps)),
            Cell::fraction(self.seconds(outcome)),
        ]
    }

    fn draw(outcomes: &[(&Self, LaunchedOutcome)]) -> Vec<(&'static str, Chart)> {
        vec![(figures::FILE, figures::chart(outcomes))]
    }
}
