//! `sme mpi pingpong`.

mod figures;
mod fits;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use sme_sim::machine::Machine;

use super::modes::ModeFlags;
use super::{Point, Points, WatchFlags, channel, jobs, most_ranks, ranks, rounds, sizes};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::list::MAX_LENGTH;
use crate::cli::read::{self, Values};
use crate::messages::SendCall;
use crate::messages::job::{Job, Library};
pub(super) use crate::messages::pingpong::PingPong;
use crate::messages::pingpong::{LAST, Outcome, Way};
use crate::plot::Chart;
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
    /// memory), registered (the same, long data straight into the receiver's buffer), chunks
    /// (through rings in that memory, as Open MPI), queues (through a network on chip); or rcce
    /// (RCCE's messages) [default: rcce on a chip with such buffers, queues on one with such
    /// networks, chunks where all memory is coherent, else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Ranks of the job; they fill one node after the other [default: all cores, at most 48]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// The rank that answers rank 0 [default: 1]
    #[arg(long, value_name = "RANK", allow_negative_numbers = true)]
    partner: Option<String>,
    /// Who begins and who answers, e.g. cc0,io: on a chip with networks between its memories, two
    /// of cc0, cc1 and so on, the clusters, and io, a subsystem whose rank is outside the world
    #[arg(long, value_name = "A,B", conflicts_with_all = ["ranks", "partner"])]
    between: Option<String>,
    /// The call by which both send: send, or isend and a wait
    #[arg(long, value_name = "LIST", default_value = "send")]
    call: String,
    /// The way of all messages: normal (when the receive is there), eager (at once), and through
    /// channel queues lazy (copied, and sent by the resource manager) and dma (when the receive is
    /// there, by a DMA channel) [default: by their lengths]
    #[arg(long, value_name = "LIST")]
    mode: Option<String>,
    /// Sizes of the message in bytes (multiples of 8, such as 32,64 or 32..4096*2)
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
    /// Draw throughput, latency and message rate over the sizes: throughput.svg, latency.svg and
    /// rate.svg in this directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    modes: ModeFlags,
    #[command(flatten)]
    watch: WatchFlags,
}

/// An end of a ping-pong on a chip with clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cluster(u32),
    Io,
}

impl FromStr for End {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "io" => Ok(Self::Io),
            cluster => {
                let number = cluster.strip_prefix("cc").ok_or(())?;
                number.parse().map(Self::Cluster).map_err(|_| ())
            }
        }
    }
}

impl PingPongFlags {
    pub(super) fn read(&self) -> Result<Points<PingPong>, Stop> {
        let machine = args::machine(&self.machine)?;
        let library = match &self.channel {
            None if machine.shape().buffer_bytes > 0 => Library::Rcce,
            text => channel(text.as_ref(), &machine)?,
        };
        let (of, (first, partner)) = self.ends(&machine, library)?;
        let rounds = rounds("--rounds", &self.rounds)?;
        let calls: Vec<SendCall> = read::names("--call", &self.call, Values::Many)?;
        if !library.is_mpi() && calls != [SendCall::Send] {
            let why = format!("{library} has no MPI calls");
            return Err(Stop::flag("--call", why));
        }
        let ways = self.ways(library)?;
        let sizes = sizes(&self.sizes)?;
        let count = calls.len().saturating_mul(ways.len());
        if count.saturating_mul(sizes.len()) > MAX_LENGTH {
            let why = format!("with --call and --mode more than {MAX_LENGTH} runs");
            return Err(Stop::flag("--sizes", why));
        }
        let workers = self.watch.workers()?;
        let jobs = self
            .modes
            .apply(jobs((machine, library), vec![of.ranks], workers))?;
        let mut points = Vec::new();
        for job in &jobs {
            for &call in &calls {
                for &way in &ways {
                    let job = Job {
                        has_io: of.has_io,
                        modes: way.map_or(job.modes, Way::modes),
                        ..job.clone()
                    };
                    points.extend(sizes.iter().map(|&size_bytes| PingPong {
                        job: job.clone(),
                        first,
                        partner,
                        call,
                        way,
                        size_bytes,
                        rounds,
                    }));
                }
            }
        }
        let points = Points::new(points, &self.watch, "--sizes, --call and --mode are")?;
        points.drawn(self.figures.as_deref(), &figures::FILES)
    }

    /// The ranks of the job, and the two that send.
    fn ends(&self, machine: &Machine, library: Library) -> Result<(Ranks, (u32, u32)), Stop> {
        const FLAG: &str = "--between";
        let Some(text) = &self.between else {
            let ranks = ranks(self.ranks.as_ref(), machine, Values::One)?;
            let ranks = read::one("--ranks", ranks)?;
            let partner = self.partner.as_deref().unwrap_or("1");
            let partner = read::counts("--partner", partner, 1, ranks - 1, Values::One)?;
            let partner = read::one("--partner", partner)?;
            let has_io = false;
            return Ok((Ranks { ranks, has_io }, (0, partner)));
        };
        if library != Library::Queues {
            let why = format!("with channel {library} ranks have numbers: --partner names one");
            return Err(Stop::flag(FLAG, why));
        }
        let ranks = most_ranks(machine);
        let ends: Vec<Result<End, ()>> = text.split(',').map(End::from_str).collect();
        let [Ok(first), Ok(second)] = ends[..] else {
            let why = format!("{text} is not two of cc0 to cc{} and io", ranks - 1);
            return Err(Stop::flag(FLAG, why));
        };
        let rank = |end| match end {
            End::Cluster(number) if number < ranks => Ok(number),
            End::Cluster(number) => {
                let why = format!("there is no cc{number}, the last is cc{}", ranks - 1);
                Err(Stop::flag(FLAG, why))
            }
            // The rank behind those of the clusters.
            End::Io => Ok(ranks),
        };
        let (first, second) = (rank(first)?, rank(second)?);
        if first == second {
            return Err(Stop::flag(FLAG, format!("{text} are the same")));
        }
        let has_io = first.max(second) == ranks;
        Ok((Ranks { ranks, has_io }, (first, second)))
    }

    fn ways(&self, library: Library) -> Result<Vec<Option<Way>>, Stop> {
        let Some(text) = &self.mode else {
            return Ok(vec![None]);
        };
        if let Some(flag) = self.modes.of_ways() {
            let why = format!("sends all messages one way: {flag} says nothing then");
            return Err(Stop::flag("--mode", why));
        }
        let ways: Vec<Way> = read::names("--mode", text, Values::Many)?;
        if let Some(way) = ways.iter().find(|way| !way.is_of(library)) {
            let why = format!("channel {library} has no mode {way}");
            return Err(Stop::flag("--mode", why));
        }
        Ok(ways.into_iter().map(Some).collect())
    }
}

/// The ranks of a job.
struct Ranks {
    ranks: u32,
    has_io: bool,
}

/// The name of a rank: of a cluster, of a subsystem, or its number.
fn name(job: &Job, rank: u32) -> String {
    match job.library {
        Library::Queues if rank == job.ranks => "io".to_owned(),
        Library::Queues => format!("cc{rank}"),
        _ => rank.to_string(),
    }
}

/// The name of a way.
fn way(way: Option<Way>) -> &'static str {
    way.map_or("auto", |way| way.name())
}

impl Point for PingPong {
    const KEYS: &[&str] = &[
        "ranks",
        "partner",
        "between",
        "call",
        "mode",
        "size_bytes",
        "latency_us",
        "bandwidth_mb_per_s",
        "send_us",
        "answer_us",
    ];
    const BELOW: &[&str] = &fits::KEYS;

    const EXPLAINED: (&str, &str) = (LAST, "the last round");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let ends = [self.first, self.partner].map(|rank| name(&self.job, rank));
        let (send, answer) = outcome.sends;
        vec![
            Cell::Count(self.job.ranks.into()),
            Cell::Count(self.partner.into()),
            Cell::text(ends.join(",")),
            Cell::text(self.call),
            Cell::text(way(self.way)),
            Cell::Count(self.size_bytes),
            Cell::micros(outcome.latency),
            Cell::fraction(self.bandwidth_mb_per_s(outcome)),
            Cell::micros(send),
            Cell::micros(answer),
        ]
    }

    fn below(outcomes: &[(&Self, Outcome)]) -> Vec<Vec<Cell>> {
        fits::table(outcomes)
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, Chart)> {
        figures::charts(outcomes)
    }
}
