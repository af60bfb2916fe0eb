//! A world that grows and shrinks, measured as Fig. 6 and 7 of Comprés et al. have it: a program
//! lets its world grow by other processes (MPI_Comm_infect), which then leave it
//! (MPI_Comm_retreat).

use std::sync::Arc;

use sme_mpi::process::manager::Kind;
use sme_sim::parts::contract::Span;
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed};
use super::programs::{self, Begin, INITIALIZES, Process};

/// The call that lets the world grow, at the ranks that were there before.
pub const INFECTS: &str = "infects";

/// The call that lets it shrink, at the ranks that stay.
pub const RETREATS: &str = "retreats";

/// The same call at the ranks that leave.
const LEAVES: &str = "leaves";

/// One program whose world grows and shrinks.
#[derive(Clone, Debug)]
pub struct Infect {
    /// The machine, whose cores all have daemons.
    pub job: Job,
    /// Processes at the begin, at least 1, which stay.
    pub parents: u32,
    /// Processes that come and leave, at least 1.
    pub processes: u32,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The time in which the world has grown, from the first rank that calls to the last that goes
    /// on, of those that were there before.
    pub infects: Time,
    /// From its begin until all processes that come execute their program.
    pub begins: Time,
    /// From then until they are in the world.
    pub initializes: Time,
    /// The time in which the world has shrunk, at the ranks that stay.
    pub retreats: Time,
    /// From the same begin until those that leave go on.
    pub leaves: Time,
    /// MPI_Init of the first processes, the longest.
    pub initializes_first: Time,
}

impl Infect {
    async fn process(self, process: Arc<Process>) -> Result<(), Error> {
        let Process {
            memory,
            mpi,
            member,
            ..
        } = &*process;
        let stays = member.begun().launch.port.is_none();
        if stays {
            let span = Span::new(INFECTS, 0);
            mpi.world().barrier().await?;
            memory.begin(span).await;
            let grown = mpi.infect(member, self.processes).await;
            memory.end(span).await;
            grown?;
        }
        // All begin with the next call at about the same time.
        mpi.world().barrier().await?;
        let span = Span::new(if stays { RETREATS } else { LEAVES }, 0);
        memory.begin(span).await;
        let shrunk = mpi.retreat(stays).await;
        memory.end(span).await;
        Ok(shrunk?)
    }
}

impl Measurement for Infect {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        // Of each process: MPI_Init, two barriers, both calls, MPI_Finalize.
        6 * (u64::from(self.parents) + u64::from(self.processes))
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let begin = Begin {
            core: 0,
            processes: self.parents,
            manager: Kind::Invasive,
        };
        let infect = self.clone();
        let process = move |process| infect.clone().process(process);
        let observed = programs::run(&self.job, observe, &[begin], process)?;
        let last = |name| programs::last(&observed, name);
        let (infects, begins) = (last(INFECTS), last(INITIALIZES));
        let (retreats, leaves) = (last(RETREATS), last(LEAVES));
        let first = observed.spans.called(INITIALIZES).iter();
        let mut first = first.map(|span| span.last_end.since(span.first_begin));
        let outcome = Outcome {
            infects: infects.last_end.since(infects.first_begin),
            begins: begins.last_begin.since(infects.first_begin),
            initializes: infects.last_end.since(begins.last_begin),
            retreats: retreats.last_end.since(retreats.first_begin),
            leaves: leaves.last_end.since(retreats.first_begin),
            initializes_first: first.find(|&time| time > Time::ZERO).unwrap_or(Time::ZERO),
        };
        Ok((outcome, observed))
    }
}
