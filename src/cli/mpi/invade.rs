//! `sme mpi invade`.

mod figures;

use std::path::PathBuf;

use clap::Args;

use super::managed::ManagedFlags;
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::invade::Invade;
use crate::messages::invade::{INVADES, Outcome};
use crate::plot::Chart;
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi invade`.
#[derive(Args, Clone, Debug)]
pub struct InvadeFlags {
    #[command(flatten)]
    managed: ManagedFlags,
    /// Cores for the program, its own included, such as 2,8,48 [default: 2 to all]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    cores: Option<String>,
    /// Their numbers have to follow each other: all cores are surveyed before they are reserved
    #[arg(long)]
    contiguous: bool,
    /// Prefer cores near their memory controllers (to those with the lowest numbers)
    #[arg(long, conflicts_with = "contiguous")]
    near_memory: bool,
    /// Draw Fig. 4 of Comprés et al.: into this directory, with the published bound, fig4.svg
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl InvadeFlags {
    pub(super) fn read(&self) -> Result<Points<Invade>, Stop> {
        let (job, all) = self.managed.job(&self.watch)?;
        if self.near_memory && job.machine.shape().memory_hops.is_empty() {
            let why = "memory is equally near to all nodes of this machine";
            return Err(Stop::flag("--near-memory", why));
        }
        let default = format!("2..{all}");
        let cores = self.cores.as_ref().unwrap_or(&default);
        let cores = read::counts("--cores", cores, 2, all, Values::Many)?;
        let points = cores.into_iter().map(|cores| Invade {
            job: job.clone(),
            cores,
            contiguous: self.contiguous,
            near_memory: self.near_memory,
        });
        let points = Points::new(points.collect(), &self.watch, "--cores makes")?;
        points.drawn(self.figures.as_deref(), &[figures::FILE])
    }
}

impl Point for Invade {
    const KEYS: &[&str] = &[
        "cores",
        "contiguous",
        "near_memory",
        "granted",
        "memory_hops",
        "time_us",
        "release_us",
    ];

    const EXPLAINED: (&str, &str) = (INVADES, "the last invasion");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        vec![
            Cell::Count(self.cores.into()),
            Cell::text(self.contiguous),
            Cell::text(self.near_memory),
            // Its own, too.
            Cell::Count(outcome.granted.len() as u64 + 1),
            memory_hops(self, outcome),
            Cell::micros(outcome.invades),
            Cell::micros(outcome.releases),
        ]
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        vec![(figures::FILE, figures::chart(outcomes))]
    }
}

/// The mean distance of all cores of the program to the controllers that serve them, on a chip that
/// has such.
fn memory_hops(run: &Invade, outcome: &Outcome) -> Cell {
    let hops = &run.job.machine.shape().memory_hops;
    if hops.is_empty() {
        return Cell::Absent;
    }
    // Core 0 is its own.
    let cores = [0].into_iter().chain(outcome.granted.iter().copied());
    let hops = cores.filter_map(|core| hops.get(core as usize).copied());
    let sum: u32 = hops.sum();
    Cell::real(f64::from(sum) / (outcome.granted.len() + 1) as f64)
}
