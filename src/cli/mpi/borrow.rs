//! `sme mpi borrow`.

use clap::Args;

use super::managed::ManagedFlags;
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::borrow::Borrow;
use crate::messages::borrow::{BORROWS, Outcome};
use crate::plot::Chart;
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// Segments where no flag says otherwise.
const SEGMENTS: [u32; 4] = [1, 4, 12, 48];

/// The flags of `sme mpi borrow`.
#[derive(Args, Clone, Debug)]
pub struct BorrowFlags {
    #[command(flatten)]
    managed: ManagedFlags,
    /// Segments of memory for the program [default: of 1,4,12,48 those that are there]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    segments: Option<String>,
    /// First core or node that is asked for memory; the others follow in the order of their numbers
    #[arg(
        long,
        value_name = "LIST",
        default_value = "1",
        allow_negative_numbers = true
    )]
    from: String,
    #[command(flatten)]
    watch: WatchFlags,
}

impl BorrowFlags {
    pub(super) fn read(&self) -> Result<Points<Borrow>, Stop> {
        let (job, cores) = self.managed.job(&self.watch)?;
        let most = Borrow::most(&job);
        if most == 0 {
            let why = "MPI and the daemons leave no memory of its nodes to be lent";
            return Err(Stop::flag("--machine", why));
        }
        let segments = match &self.segments {
            Some(text) => read::counts("--segments", text, 1, most, Values::Many)?,
            None => SEGMENTS.into_iter().filter(|&one| one <= most).collect(),
        };
        let from = read::counts("--from", &self.from, 1, cores - 1, Values::Many)?;
        let points = from.iter().flat_map(|&from| {
            let job = &job;
            segments.iter().map(move |&segments| Borrow {
                job: job.clone(),
                segments,
                from,
            })
        });
        Points::new(points.collect(), &self.watch, "--segments and --from make")
    }
}

impl Point for Borrow {
    const KEYS: &[&str] = &[
        "segments",
        "from",
        "lenders",
        "time_us",
        "map_us",
        "own_load_ns",
        "borrowed_load_ns",
        "return_us",
    ];

    const EXPLAINED: (&str, &str) = (BORROWS, "the last call that borrows");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let mut lenders: Vec<u32> = outcome.leases.iter().map(|lease| lease.core).collect();
        lenders.dedup();
        vec![
            Cell::Count(self.segments.into()),
            Cell::Count(self.from.into()),
            Cell::Count(lenders.len() as u64),
            Cell::micros(outcome.borrows),
            Cell::micros(outcome.maps),
            Cell::real(outcome.loads_own.as_ns()),
            Cell::real(outcome.loads_borrowed.as_ns()),
            Cell::micros(outcome.returns),
        ]
    }

    fn draw(_: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        Vec::new()
    }
}
