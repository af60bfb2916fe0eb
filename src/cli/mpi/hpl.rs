//! `sme mpi hpl`.

use clap::Args;

use super::modes::ModeFlags;
use super::{Point, Points, WatchFlags, channel_of_mpi, core_gflops, jobs, most_ranks};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::list::MAX_LENGTH;
use crate::cli::read::{self, Values};
pub(super) use crate::messages::hpl::HplRun;
use crate::messages::hpl::{ALL, Outcome};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi hpl`.
#[derive(Args, Clone, Debug)]
pub struct HplFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// Unknowns
    #[arg(
        long,
        value_name = "LIST",
        default_value = "256",
        allow_negative_numbers = true
    )]
    n: String,
    /// Columns of a block
    #[arg(
        long,
        value_name = "LIST",
        default_value = "16",
        allow_negative_numbers = true
    )]
    nb: String,
    /// Rows of the grid of ranks
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        allow_negative_numbers = true
    )]
    p: String,
    /// Columns of the grid of ranks
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        allow_negative_numbers = true
    )]
    q: String,
    /// Look-ahead: panels that are factorized and sent before the rest of the matrix is updated, 0
    /// or 1
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    depth: String,
    /// The rate of one core, in 10^9 floating-point operations per second [default: one operation
    /// in the machine's core.arithmetic]
    #[arg(long, value_name = "GFLOPS", allow_negative_numbers = true)]
    core_gflops: Option<String>,
    /// The channel that carries MPI's messages: sccmpb, sccshm, sections, registered, chunks or
    /// queues [default: sccmpb on a chip with message passing buffers, queues on one with networks
    /// between its memories, chunks where all memory is coherent, else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    #[command(flatten)]
    modes: ModeFlags,
    #[command(flatten)]
    watch: WatchFlags,
}

/// The most unknowns: this computer solves the system.
const MOST_UNKNOWNS: u32 = 1 << 14;

/// The longest that one core may compute for all \[s\]: more than a hundred days.
const MOST_SECONDS: f64 = 1e7;

impl HplFlags {
    pub(super) fn read(&self) -> Result<Points<HplRun>, Stop> {
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        let core_gflops = core_gflops(self.core_gflops.as_ref(), &machine)?;
        let n = read::counts("--n", &self.n, 1, MOST_UNKNOWNS, Values::Many)?;
        let nb = read::counts("--nb", &self.nb, 1, MOST_UNKNOWNS, Values::Many)?;
        if n.len().saturating_mul(nb.len()) > MAX_LENGTH {
            let why = format!("with --n more than {MAX_LENGTH} runs");
            return Err(Stop::flag("--nb", why));
        }
        let most_n = f64::from(n.iter().copied().max().unwrap_or(1));
        // Some more than HPL counts, which leaves out what is of the order of n^2 nb.
        if 2.0 * most_n.powi(2) * (most_n + 1.0) / (core_gflops * 1e9) > MOST_SECONDS {
            let why = format!("a core would compute {most_n} unknowns for more than 100 days");
            return Err(Stop::flag("--core-gflops", why));
        }
        let most = most_ranks(&machine);
        let side = |flag, text: &str, most| {
            read::one(flag, read::counts(flag, text, 1, most, Values::One)?)
        };
        let p = side("--p", &self.p, most)?;
        let q = side("--q", &self.q, most)?;
        let depth = read::counts("--depth", &self.depth, 0, 1, Values::One)?;
        let depth = read::one("--depth", depth)?;
        let ranks = p.saturating_mul(q);
        if ranks > most {
            let why =
                format!("{p} x {q} ranks are more than the {most} that the machine has cores for");
            return Err(Stop::flag("--q", why));
        }
        let jobs =
            self.modes
                .apply(jobs((machine, library), vec![ranks], self.watch.workers()?))?;
        let mut points = Vec::new();
        for job in jobs {
            for &n in &n {
                points.extend(nb.iter().map(|&nb| HplRun {
                    job: job.clone(),
                    n,
                    nb,
                    grid: (p, q),
                    depth,
                    core_gflops,
                }));
            }
        }
        Points::new(points, &self.watch, "--n and --nb are")
    }
}

impl Point for HplRun {
    const KEYS: &[&str] = &[
        "n",
        "nb",
        "p",
        "q",
        "depth",
        "core_gflops",
        "time_ms",
        "gflops",
        "residual",
    ];

    const EXPLAINED: (&str, &str) = (ALL, "the run");

    fn data_bytes(&self) -> u64 {
        let (p, q) = (u64::from(self.grid.0), u64::from(self.grid.1));
        let (n, width) = (u64::from(self.n), u64::from(self.nb.min(self.n)));
        let panel = 4 * width * (width + n / p + width + 1);
        let rows = 4 * width * (n / q + width + 1);
        // The matrix, and of each rank a panel and rows that are swapped, with copies on their way.
        8 * (n * (n + 1) + p * q * (panel + rows))
    }

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let (p, q) = self.grid;
        vec![
            Cell::Count(self.n.into()),
            Cell::Count(self.nb.into()),
            Cell::Count(p.into()),
            Cell::Count(q.into()),
            Cell::Count(self.depth.into()),
            Cell::fraction(self.core_gflops),
            Cell::fraction(outcome.time.as_us() / 1e3),
            Cell::fraction(self.gflops(outcome)),
            Cell::fraction(outcome.residual),
        ]
    }
}
