//! The errors of jobs.

use sme_memory::Lacks;
use sme_mpi::channel::layout::NoRoom;
use sme_mpi::error::MpiError;
use sme_mpi::mppaipc::IpcError;
use sme_mpi::process::death::{Death, Ending};
use sme_mpi::rcce::RcceError;
use sme_sim::machine::CannotBuild;
use sme_sim::observe::failure::Failure;
use sme_sim::observe::staleness::{StaleReport, TooManyThreads};
use sme_sim::observe::timeline::TooManyNodes;

use super::{Kill, Library};

/// A reason for which a job has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot do what the library needs.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The machine does not have a core for each rank, or there is no rank.
    #[error("{ranks} ranks: a job on machine {machine} has 1 to {most}")]
    Ranks {
        /// The ranks asked for.
        ranks: u32,
        /// The most that there can be.
        most: u32,
        /// The machine.
        machine: String,
    },
    /// The library does not have MPI's calls, which the program makes.
    #[error("channel {0} has no MPI calls: choose another, or what Library::of_mpi returns")]
    NotMpi(Library),
    /// The machine has no message passing buffers.
    #[error("{0} needs message passing buffers, which machine {1} does not have")]
    NoBuffers(Library, String),
    /// The message passing buffers have no room for what a process manager keeps there.
    #[error("machine {0} has no message passing buffers, or none with room for a process manager")]
    NoManager(String),
    /// A process has died, and its manager has ended its program.
    #[error("{}", died(death, [why.as_deref(), then.as_deref()], ending))]
    Died {
        /// The process.
        death: Death,
        /// The error with which it has ended, if it was not killed.
        why: Option<Box<Error>>,
        /// The end of its program.
        ending: Ending,
        /// The error with which the other programs have ended, if they have not ended well.
        then: Option<Box<Error>>,
    },
    /// There was no process to be killed.
    #[error("no process runs on {} {} at {} ms", .1, .0.core, .0.at.as_us() / 1e3)]
    Spared(Kill, &'static str),
    /// All programs have ended, and cores, or nodes, are not free.
    #[error("{1}s {0:?} are reserved when all programs have ended")]
    Reserved(Vec<u32>, &'static str),
    /// All programs have ended, and memory is lent.
    #[error("memory of {1}s {0:?} is lent when all programs have ended")]
    Lent(Vec<u32>, &'static str),
    /// Nodes do not reach each other's memory.
    #[error(
        "{0} needs memory of each node that the others reach; nodes of machine {1} share a pool's"
    )]
    PoolOnly(&'static str, String),
    /// The nodes' shared memory has no room for the channel.
    #[error("the channel takes {needed} bytes of a node's {there} bytes of shared memory")]
    NoMemory {
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are there.
        there: u64,
    },
    /// The library cannot be set up.
    #[error(transparent)]
    Rcce(#[from] RcceError),
    /// The channel has no room.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// A rank's data do not fit into its node's memory.
    #[error("a rank's data end at byte {end} of its node's memory, which has {there}")]
    NoRoomForData {
        /// The byte behind them.
        end: u64,
        /// Bytes of the memory.
        there: u64,
    },
    /// Connectors of the network on chip cannot be opened.
    #[error(transparent)]
    Ipc(#[from] IpcError),
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// There are too many nodes for a timeline.
    #[error("--timeline: {0}")]
    Timeline(#[from] TooManyNodes),
    /// There are too many threads for the checker of loads.
    #[error("--stale: {0}")]
    Checker(#[from] TooManyThreads),
    /// It has no outcome, and its loads were checked until then.
    #[error("{why}\n{report}")]
    Stale {
        /// The reason.
        why: Box<Error>,
        /// The loads.
        report: Box<StaleReport>,
    },
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// A call has failed.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// The data that came are not those that were sent.
    #[error("the data of {call} did not arrive at rank {rank} as they were sent")]
    Garbled {
        /// The call.
        call: &'static str,
        /// The rank at which they arrived.
        rank: u32,
    },
    /// A rank's process has ended before its program did.
    #[error("a process has ended before its program did")]
    Ended,
    /// A solution is wrong, though all data arrived as they were sent.
    #[error("the solution is wrong: its scaled residual is {0:.3}, that of a right one below 16")]
    Residual(f64),
}

impl Error {
    /// Returns whether something is wrong with what was asked for, and not with the simulation.
    pub fn is_of_input(&self) -> bool {
        match self {
            Self::Failure(_)
            | Self::Mpi(_)
            | Self::Garbled { .. }
            | Self::Ended
            | Self::Residual(_) => false,
            Self::Died { why, .. } => why.as_ref().is_some_and(|why| why.is_of_input()),
            Self::Stale { why, .. } => why.is_of_input(),
            _ => true,
        }
    }

    /// The same with the loads until then, if they were checked and some were stale.
    pub(super) fn with_stale(self, report: Option<StaleReport>) -> Self {
        match report.filter(|report| report.stale_reads > 0) {
            Some(report) => Self::Stale {
                why: Box::new(self),
                report: Box::new(report),
            },
            None => self,
        }
    }
}

/// A death in words.
fn died(death: &Death, [why, then]: [Option<&Error>; 2], ending: &Ending) -> String {
    let why = match why {
        None => String::new(),
        // Its rank has been named.
        Some(Error::Mpi(why)) => {
            let (call, argument, text, class) = (why.call, why.argument, &why.text, why.class);
            format!(": {call}: {argument}: {text} ({class})")
        }
        Some(why) => format!(": {why}"),
    };
    let then = then.map_or_else(String::new, |then| format!("; then {then}"));
    format!("{death}{why}; {ending}{then}")
}
