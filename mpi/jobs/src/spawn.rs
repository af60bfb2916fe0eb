//! Starting processes, measured: a program of one process on core 0 starts others, and is connected
//! to them (MPI_Comm_spawn).

use std::sync::Arc;

use sme_mpi::process::manager::Kind;
use sme_sim::parts::contract::Span;
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed};
use super::programs::{self, Begin, INITIALIZES, Process};

/// The call.
pub const SPAWNS: &str = "spawns";

/// One program that starts processes.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The machine, whose cores all have daemons.
    pub job: Job,
    /// Processes, at least 1, one on each core but the program's.
    pub processes: u32,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The time of the call.
    pub spawns: Time,
    /// From its begin until all processes execute their program: cores reserved, processes forked.
    pub begins: Time,
    /// From then until they are there and connected.
    pub initializes: Time,
}

impl Spawn {
    async fn process(self, process: Arc<Process>) -> Result<(), Error> {
        let Process {
            memory,
            mpi,
            member,
            ..
        } = &*process;
        if let Some(parent) = mpi.parent() {
            return Ok(parent.disconnect().await?);
        }
        let span = Span::new(SPAWNS, 0);
        memory.begin(span).await;
        let children = mpi.world().spawn(member, self.processes, 0).await;
        memory.end(span).await;
        Ok(children?.disconnect().await?)
    }
}

impl Measurement for Spawn {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        // Of each process: MPI_Init, connecting, MPI_Comm_disconnect, MPI_Finalize.
        4 + 4 * u64::from(self.processes)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let begin = Begin {
            core: 0,
            processes: 1,
            manager: Kind::Invasive,
        };
        let spawn = self.clone();
        let process = move |process| spawn.clone().process(process);
        let observed = programs::run(&self.job, observe, &[begin], process)?;
        let last = |name| programs::last(&observed, name);
        let (spawns, begins) = (last(SPAWNS), last(INITIALIZES));
        let outcome = Outcome {
            spawns: spawns.last_end.since(spawns.first_begin),
            begins: begins.last_begin.since(spawns.first_begin),
            initializes: spawns.last_end.since(begins.last_begin),
        };
        Ok((outcome, observed))
    }
}
