//! MPI programs as they are: a process for each rank, whose calls are performed on the simulated
//! machine.
//!
//! * `interface`: the interface that a program was compiled for.
//! * `library`: the libraries that the processes find, carried within this program.
//! * `slots`: the memory that the simulator shares with them.
//! * `memory`: the memory of a process.
//! * `process`: a process, as its calls see it.
//! * `desk`: processes that compute, and their calls that concern their rank alone.
//! * `elsewhere`: processes that wait for something other than MPI.
//! * `files`: the files of this computer.
//! * `job`: the processes of a job, started and watched.
//! * `prefix`: their output, with the rank before each line.
//! * `part`: programs that processes have started.

mod desk;
mod elsewhere;
mod files;
mod interface;
mod job;
mod library;
mod memory;
mod part;
mod prefix;
mod process;
mod slots;

use std::path::Path;
use std::sync::Arc;

use sme_mpi::abi::program::Program;
use sme_mpi::abi::{Compute, serve};
use sme_mpi::channel::Channel;
use sme_mpi::rank::Begun;
use sme_sim::observe::staleness::StaleReport;

use job::{Processes, Shared};
pub use job::{Start, Wrong};

use crate::job::{Error, Job, Observe, Observed, SimulatedMpi};

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

/// Runs a program on the machine of `job`, which has the ranks of the universe of `start`. The
/// empty directory `libraries` takes what its processes load; the caller removes it.
///
/// # Errors
/// [`Failed`]
pub fn run(
    job: &Job,
    start: &Start,
    libraries: &Path,
    compute: Compute,
    observe: Observe,
) -> Result<Observed, Failed> {
    job.check()?;
    let processes = Processes::start(start, libraries)?;
    let shared = Arc::clone(processes.shared());
    let begin = start.ranks;
    let ran = job.run_mpi(observe, move |mpi, _| {
        let shared = Arc::clone(&shared);
        async move {
            // Without ranks on standby there is none to tell of the end.
            match begin == mpi.channel().ranks() {
                true => lives(&mpi, &shared, compute, None).await,
                false => goes_on(&mpi, &shared, compute, begin).await,
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

/// Performs the calls of a rank's process until it ends.
async fn lives(
    mpi: &SimulatedMpi,
    shared: &Arc<Shared>,
    compute: Compute,
    begun: Option<Begun>,
) -> Result<(), Error> {
    let process = Arc::new(shared.process(mpi.channel().rank()));
    let program: Arc<dyn Program> = Arc::clone(&process) as _;
    let interface = || process.interface();
    match serve(mpi, program, interface, compute, begun).await {
        true => Ok(()),
        false => Err(Error::Ended),
    }
}

/// The same for one process after the other, of a job in which the first `begin` ranks have one
/// from the beginning and the others are on standby, until no rank has one.
async fn goes_on(
    mpi: &SimulatedMpi,
    shared: &Arc<Shared>,
    compute: Compute,
    begin: u32,
) -> Result<(), Error> {
    mpi.begins_among(begin);
    let rank = mpi.channel().rank();
    let (mut has_process, mut begun) = (rank < begin, None);
    loop {
        if !has_process {
            begun = mpi.stands_by().await;
            if begun.is_none() {
                return Ok(());
            }
        }
        lives(mpi, shared, compute, begun.take()).await?;
        has_process = false;
        if shared.leaves(&[rank]) {
            mpi.dismisses().await;
            return Ok(());
        }
    }
}
