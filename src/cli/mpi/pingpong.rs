//! `sme mpi pingpong`.

use clap::Args;

use super::{Point, Points, WatchFlags, channel, jobs, ranks, rounds, sizes};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
use crate::messages::job::Library;
pub(super) use crate::messages::pingpong::PingPong;
use crate::messages::pingpong::{LAST, Outcome};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi pingpong`.
#[derive(Args, Clone, Debug)]
pub struct PingPongFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The channel that carries MPI's messages: sccmpb (RCKMPI's, through the SCC's message passing
    /// buffers), sccshm (through memory behind that chip), sections (through the nodes' shared
    /// memory), queues (through a network on chip); or rcce (RCCE's messages) [default: rcce on a
    /// chip with such buffers, queues on one with such networks, else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Ranks of the job, which fill one node after the other [default: all cores, at most
    /// 48]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// The rank that answers rank 0
    #[arg(
        long,
        value_name = "RANK",
        default_value = "1",
        allow_negative_numbers = true
    )]
    partner: String,
    /// Sizes of the message in bytes, multiples of 8, such as 32,64 or 32..4096*2
    #[arg(
        long,
        value_name = "LIST",
        default_value = "8..1048576*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// Rounds that count; two more come first
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        allow_negative_numbers = true
    )]
    rounds: String,
    #[command(flatten)]
    watch: WatchFlags,
}

impl PingPongFlags {
    pub(super) fn read(&self) -> Result<Points<PingPong>, Stop> {
        let machine = args::machine(&self.machine)?;
        let library = match &self.channel {
            None if machine.shape().buffer_bytes > 0 => Library::Rcce,
            text => channel(text.as_ref(), &machine)?,
        };
        let ranks = ranks(self.ranks.as_ref(), &machine, Values::One)?;
        let ranks = read::one("--ranks", ranks)?;
        let partner = read::counts("--partner", &self.partner, 1, ranks - 1, Values::One)?;
        let partner = read::one("--partner", partner)?;
        let rounds = rounds("--rounds", &self.rounds)?;
        let jobs = jobs((machine, library), vec![ranks], self.watch.workers()?);
        let mut points = Vec::new();
        for size_bytes in sizes(&self.sizes)? {
            points.extend(jobs.iter().cloned().map(|job| PingPong {
                job,
                partner,
                size_bytes,
                rounds,
            }));
        }
        Points::new(points, &self.watch, "--sizes are")
    }
}

impl Point for PingPong {
    const KEYS: &[&str] = &[
        "ranks",
        "partner",
        "size_bytes",
        "latency_us",
        "bandwidth_mb_per_s",
    ];

    const EXPLAINED: (&str, &str) = (LAST, "the last round");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        vec![
            Cell::Count(self.job.ranks.into()),
            Cell::Count(self.partner.into()),
            Cell::Count(self.size_bytes),
            Cell::micros(outcome.latency),
            Cell::fraction(self.bandwidth_mb_per_s(outcome)),
        ]
    }
}
