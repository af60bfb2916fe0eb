//! `sme mpi hpl`.

use std::ops::RangeInclusive;

use clap::Args;
use sme_sim::machine::Machine;
use sme_sim::time::Time;

use super::{Point, Points, WatchFlags, channel_of_mpi, jobs, most_ranks};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
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
    /// What one core computes, in 10^9 floating-point operations a second [default: one operation in
    /// the machine's core.arithmetic]
    #[arg(long, value_name = "GFLOPS", allow_negative_numbers = true)]
    core_gflops: Option<String>,
    /// The channel that carries MPI's messages: sccmpb, sccshm, sections or queues [default: sccmpb
    /// on a chip with message passing buffers, queues on one with networks between its memories,
    /// else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    #[command(flatten)]
    watch: WatchFlags,
}

/// The most unknowns: this computer solves the system.
const MOST_UNKNOWNS: u32 = 1 << 14;

/// What a core may compute \[10^9 operations a second\].
const RATES: RangeInclusive<f64> = 1e-6..=1e6;

impl HplFlags {
    pub(super) fn read(&self) -> Result<Points<HplRun>, Stop> {
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        let core_gflops = self.core_gflops(&machine)?;
        let n = read::counts("--n", &self.n, 1, MOST_UNKNOWNS, Values::Many)?;
        let nb = read::counts("--nb", &self.nb, 1, MOST_UNKNOWNS, Values::Many)?;
        let most = most_ranks(&machine);
        let side = |flag, text: &str, most| {
            read::one(flag, read::counts(flag, text, 1, most, Values::One)?)
        };
        let p = side("--p", &self.p, most)?;
        let q = side("--q", &self.q, most)?;
        let ranks = p.saturating_mul(q);
        if ranks > most {
            let why =
                format!("{p} x {q} ranks are more than the {most} that the machine has cores for");
            return Err(Stop::flag("--q", why));
        }
        let jobs = jobs((machine, library), vec![ranks], self.watch.workers()?);
        let mut points = Vec::new();
        for job in jobs {
            for &n in &n {
                points.extend(nb.iter().map(|&nb| HplRun {
                    job: job.clone(),
                    n,
                    nb,
                    grid: (p, q),
                    core_gflops,
                    #[cfg(test)]
                    loses_panels: false,
                }));
            }
        }
        Points::new(points, &self.watch, "--n and --nb are")
    }

    fn core_gflops(&self, machine: &Machine) -> Result<f64, Stop> {
        const FLAG: &str = "--core-gflops";
        match &self.core_gflops {
            None => match machine.shape().arithmetic {
                Time::ZERO => {
                    let why = "has to be given: an operation takes no time on this machine";
                    Err(Stop::flag(FLAG, why))
                }
                one => Ok(1e-3 / one.as_us()),
            },
            Some(text) => match text.parse() {
                Ok(rate) if RATES.contains(&rate) => Ok(rate),
                _ => {
                    let (least, most) = (RATES.start(), RATES.end());
                    let why = format!("{text} is not a number from {least} to {most}");
                    Err(Stop::flag(FLAG, why))
                }
            },
        }
    }
}

impl Point for HplRun {
    const KEYS: &[&str] = &[
        "n",
        "nb",
        "p",
        "q",
        "core_gflops",
        "time_ms",
        "gflops",
        "residual",
    ];

    const EXPLAINED: (&str, &str) = (ALL, "the run");

    fn data_bytes(&self) -> u64 {
        // The matrix, and a copy of a part of it on its way.
        16 * u64::from(self.n) * (u64::from(self.n) + 1)
    }

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let (p, q) = self.grid;
        vec![
            Cell::Count(self.n.into()),
            Cell::Count(self.nb.into()),
            Cell::Count(p.into()),
            Cell::Count(q.into()),
            Cell::fraction(self.core_gflops),
            Cell::fraction(outcome.time.as_us() / 1e3),
            Cell::fraction(self.gflops(outcome)),
            Cell::fraction(outcome.residual),
        ]
    }
}
