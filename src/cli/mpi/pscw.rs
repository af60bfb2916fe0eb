//! `sme mpi pscw`.

mod figures;

use std::path::PathBuf;

use clap::Args;
use sme_mpi::window::Synchronization;

use super::modes::ModeFlags;
use super::{Point, Points, WatchFlags, channel_of_mpi, jobs, most_ranks, rounds, unknown};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
use crate::messages::job::Job;
pub(super) use crate::messages::pscw::Pscw;
use crate::messages::pscw::{Outcome, Quartiles, ROUNDS};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi pscw`.
#[derive(Args, Clone, Debug)]
pub struct PscwFlags {
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
    /// Classes of synchronization: deferred or immediate, by messages, or trigger-only, in shared
    /// memory; all takes each that the machine can have [default: deferred and trigger-only, as far
    /// as the machine can have them]
    #[arg(long, value_name = "LIST")]
    sync: Option<String>,
    /// Targets of the one origin, such as 1..31; rank 0 is the origin, and each rank on the core of
    /// its number [default: 1 to 31, or all cores but one]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    targets: Option<String>,
    /// Rounds, which all count
    #[arg(
        long,
        value_name = "N",
        default_value = "1001",
        allow_negative_numbers = true
    )]
    rounds: String,
    /// Draw Fig. 4 and 5 of Christgau and Schnor: into this directory, with the published points,
    /// fig4.svg, the calls of trigger-only, and fig5.svg, origin and target of each class
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    modes: ModeFlags,
    #[command(flatten)]
    watch: WatchFlags,
}

impl PscwFlags {
    pub(super) fn read(&self) -> Result<Points<Pscw>, Stop> {
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        let most = most_ranks(&machine).saturating_sub(1).max(1);
        let all = format!("1..{}", most.min(31));
        let targets = self.targets.as_ref().unwrap_or(&all);
        let targets = read::counts("--targets", targets, 1, most, Values::Many)?;
        let rounds = rounds("--rounds", &self.rounds)?;
        let ranks = targets.iter().map(|targets| targets + 1).collect();
        let jobs = self
            .modes
            .apply(jobs((machine, library), ranks, self.watch.workers()?))?;
        let has_area = jobs.first().is_some_and(Job::has_area);
        let syncs = self.syncs(has_area)?;
        if syncs.contains(&Synchronization::TriggerOnly) && !has_area {
            let why = "trigger-only needs test-and-set registers, and a node for each rank";
            return Err(Stop::flag("--sync", why));
        }
        let mut points = Vec::new();
        for sync in syncs {
            points.extend(jobs.iter().cloned().map(|job| Pscw { job, sync, rounds }));
        }
        let points = Points::new(points, &self.watch, "--targets and --sync make")?;
        points.drawn(self.figures.as_deref(), &figures::FILES)
    }

    /// `--sync`, on a machine that has shared memory with locks or not.
    fn syncs(&self, has_area: bool) -> Result<Vec<Synchronization>, Stop> {
        const FLAG: &str = "--sync";
        let can = |sync: &Synchronization| has_area || *sync != Synchronization::TriggerOnly;
        let Some(text) = &self.sync else {
            let both = [Synchronization::Deferred, Synchronization::TriggerOnly];
            return Ok(both.into_iter().filter(can).collect());
        };
        let mut read = Vec::new();
        for word in read::words(FLAG, text, Values::Many)? {
            match (word, Synchronization::named(word)) {
                ("all", _) => read.extend(Synchronization::ALL.into_iter().filter(can)),
                (_, Some(sync)) => read.push(sync),
                (_, None) => {
                    let all = Synchronization::ALL.iter().map(|sync| sync.name());
                    return Err(unknown(FLAG, word, all.chain(["all"])));
                }
            }
        }
        Ok(read)
    }
}

impl Point for Pscw {
    const KEYS: &[&str] = &[
        "sync",
        "targets",
        "rounds",
        "start_us",
        "start_q1_us",
        "start_q3_us",
        "complete_us",
        "complete_q1_us",
        "complete_q3_us",
        "post_us",
        "post_q1_us",
        "post_q3_us",
        "wait_us",
        "wait_q1_us",
        "wait_q3_us",
        "origin_us",
        "target_us",
    ];

    const EXPLAINED: (&str, &str) = (ROUNDS, "the last round");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let mut cells = vec![
            Cell::text(self.sync),
            Cell::Count(self.targets().into()),
            Cell::Count(self.rounds.into()),
        ];
        for Quartiles { q1, median, q3 } in
            [outcome.start, outcome.complete, outcome.post, outcome.wait]
        {
            cells.extend([median, q1, q3].map(Cell::micros));
        }
        cells.extend([outcome.origin(), outcome.target()].map(Cell::micros));
        cells
    }

    fn draw(outcomes: &[(&Self, Outcome)]) -> Vec<(&'static str, crate::plot::Chart)> {
        figures::charts(outcomes)
    }
}
