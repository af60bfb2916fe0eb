//! MPI programs as they are: a process for each rank, whose calls are performed on the simulated
//! machine.
//!
//! * `interface`: the interface that a program was compiled for.
//! * `library`: the libraries that the processes find, carried within this program.
//! * `slots`: the memory that the simulator shares with them.
//! * `process`: a process, as its calls see it.
//! * `elsewhere`: processes that wait for something other than MPI.
//! * `files`: the files of this computer.
//! * `job`: the processes of a job, started and watched.

mod elsewhere;
mod files;
mod interface;
mod job;
mod library;
mod process;
mod slots;

use std::sync::Arc;

use sme_mpi::abi::program::Program;
use sme_mpi::abi::{Compute, serve};
use sme_sim::observe::staleness::StaleReport;

use job::Processes;
pub use job::{Start, Wrong};

use crate::messages::job::{Error, Job, Observe, Observed};

/// The failure of a run.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Of a process.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// Of a process, which may have read stale data.
    #[error("{wrong}\n{report}")]
    Stale {
        /// The failure.
        wrong: Wrong,
        /// The loads until then.
        report: Box<StaleReport>,
    },
    /// Of the simulation.
    #[error(transparent)]
    Simulation(#[from] Error),
}

/// Runs a program on the machine of `job`: `start` has as many ranks.
///
/// # Errors
/// [`Failed`]
pub fn run(
    job: &Job,
    start: &Start,
    compute: Compute,
    observe: Observe,
) -> Result<Observed, Failed> {
    job.check()?;
    let processes = Processes::start(start)?;
    let ranks: Vec<_> = (0..start.ranks)
        .map(|rank| Arc::new(processes.of(rank)))
        .collect();
    let ranks = Arc::new(ranks);
    let ran = job.run_mpi(observe, move |mpi, _| {
        let process = Arc::clone(&ranks[mpi.world().rank() as usize]);
        async move {
            let program: Arc<dyn Program> = Arc::clone(&process) as _;
            let interface = || process.interface();
            match serve(&mpi, program, interface, compute).await {
                true => Ok(()),
                false => Err(Error::Ended),
            }
        }
    });
    let wrong = processes.end(ran.is_err());
    match (wrong, ran) {
        // The stale loads may be why.
        (Some(wrong), Err(Error::Stale { report, .. })) => Err(Failed::Stale { wrong, report }),
        (Some(wrong), _) => Err(wrong.into()),
        (None, ran) => Ok(ran?),
    }
}
