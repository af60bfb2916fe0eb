//! `sme mpi collective`.

use clap::Args;
use sme_mpi::collective::choice::{Algorithm, Collective, algorithms, suits};

use super::estimate::PARTNERS;
use super::modes::ModeFlags;
use super::{
    MOST_BYTES, Point, Points, WatchFlags, channel_of_mpi, jobs, ranks, rounds, sizes, unknown,
};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
pub(super) use crate::messages::collective::CollectiveRun;
use crate::messages::collective::{CALLS, Outcome};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi collective`.
#[derive(Args, Clone, Debug)]
pub struct CollectiveFlags {
    /// The call: see below
    #[arg(value_name = "CALL")]
    call: String,
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The channel that carries the messages: sccmpb (RCKMPI's, through the SCC's message passing
    /// buffers), sccshm (through memory behind that chip), sections (through the nodes' shared
    /// memory), registered (the same, long data straight into the receiver's buffer), chunks
    /// (through rings in that memory, as Open MPI), or queues (through a network on chip) [default:
    /// sccmpb on a chip with such buffers, queues on one with such networks, chunks where all
    /// memory is coherent, else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Algorithms, such as ring,bruck: those of the call are below; auto takes what the library
    /// chooses, all takes each
    #[arg(long, value_name = "LIST", default_value = "auto")]
    algorithm: String,
    /// Ranks of the job; they fill one node after the other, such as 2..48*2 [default: all cores,
    /// at most 48]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// Sizes in bytes, multiples of 8, such as 32,64 or 32..4096*2: of the message of a bcast, of
    /// the operands of a reduction or scan, of one block of the others. A barrier has none
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    sizes: Option<String>,
    /// Calls that count; two more come first
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        allow_negative_numbers = true
    )]
    rounds: String,
    #[command(flatten)]
    modes: ModeFlags,
    #[command(flatten)]
    watch: WatchFlags,
}

/// The default of `--sizes`.
const SIZES: &str = "8..32768*4";

impl CollectiveFlags {
    pub(super) fn read(&self) -> Result<Points<CollectiveRun>, Stop> {
        let collective = self.collective()?;
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        let ranks = ranks(self.ranks.as_ref(), &machine, Values::Many)?;
        let rounds = rounds("--rounds", &self.rounds)?;
        let sizes = match (&self.sizes, collective) {
            (None, Collective::Barrier) => vec![0],
            (Some(_), Collective::Barrier) => {
                return Err(Stop::flag("--sizes", "a barrier has no data"));
            }
            (given, _) => sizes(given.as_deref().unwrap_or(SIZES))?,
        };
        let algorithms = self.algorithms(collective)?;
        let suits = |algorithm: &Option<Algorithm>, ranks| {
            algorithm.is_none_or(|algorithm| suits(collective, algorithm, ranks))
        };
        let mut points = Vec::new();
        for job in self
            .modes
            .apply(jobs((machine, library), ranks, self.watch.workers()?))?
        {
            for &size_bytes in &sizes {
                let own = algorithms.iter().filter(|one| suits(one, job.ranks));
                points.extend(own.map(|&algorithm| CollectiveRun {
                    job: job.clone(),
                    collective,
                    algorithm,
                    size_bytes,
                    rounds,
                }));
            }
        }
        let bytes = points.iter().map(CollectiveRun::buffer_bytes).max();
        if let Some(bytes) = bytes.filter(|&bytes| bytes > MOST_BYTES) {
            let why = format!("the blocks of all ranks are {bytes} bytes; at most {MOST_BYTES}");
            return Err(Stop::flag("--sizes", why));
        }
        if points.is_empty() {
            let why = "recursive-doubling needs a power of two; no number of --ranks is one";
            return Err(Stop::flag("--algorithm", why));
        }
        let of = "--ranks, --sizes and --algorithm make";
        Points::new(points, &self.watch, of)
    }

    fn collective(&self) -> Result<Collective, Stop> {
        let all = Collective::ALL.iter().map(|one| one.name());
        Collective::named(&self.call).ok_or_else(|| unknown("CALL", &self.call, all))
    }

    fn algorithms(&self, collective: Collective) -> Result<Vec<Option<Algorithm>>, Stop> {
        const FLAG: &str = "--algorithm";
        let own = algorithms(collective);
        let mut read = Vec::new();
        for word in read::words(FLAG, &self.algorithm, Values::Many)? {
            match (word, own.iter().find(|one| one.name() == word)) {
                ("auto", _) => read.push(None),
                ("all", _) => read.extend(own.iter().copied().map(Some)),
                (_, Some(&algorithm)) => read.push(Some(algorithm)),
                (_, None) => {
                    let own = own.iter().map(|one| one.name());
                    return Err(unknown(FLAG, word, own.chain(["auto", "all"])));
                }
            }
        }
        Ok(read)
    }
}

impl Point for CollectiveRun {
    const KEYS: &[&str] = &[
        "collective",
        "algorithm",
        "ranks",
        "size_bytes",
        "latency_us",
    ];

    const EXPLAINED: (&str, &str) = (CALLS, "the last call");

    fn partners(&self) -> u32 {
        match (self.collective, self.algorithm) {
            (_, Some(Algorithm::Bruck)) => PARTNERS,
            (Collective::Alltoall, _) => self.job.ranks,
            (Collective::ReduceScatter, Some(Algorithm::Pairwise) | None) => self.job.ranks,
            _ => PARTNERS,
        }
    }

    fn data_bytes(&self) -> u64 {
        // Data sent, received and expected, and the library's copy.
        self.buffer_bytes()
            .saturating_mul(4 * u64::from(self.job.ranks))
    }

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        vec![
            Cell::text(self.collective),
            Cell::text(self.algorithm()),
            Cell::Count(self.job.ranks.into()),
            Cell::Count(self.size_bytes),
            Cell::micros(outcome.latency),
        ]
    }
}
