//! Invading cores, measured as Fig. 4 of Comprés et al. has it: a program on core 0 reserves others
//! and gives them back.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::Spawn;
use sme_mpi::process::command::{Command, Program};
use sme_mpi::process::daemon::Daemon;
use sme_mpi::process::invade::Wish;
use sme_mpi::process::sigmod::Sigmod;
use sme_mpi::processor::{Processor, Work};
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed};
use super::processor::Core;

/// The program, by its core.
const PROGRAM: Program = 0;

/// Rounds before the one that is measured: daemons have begun then.
const WARM_UP: u32 = 1;

/// The measured calls, which are spans of the numbers 0 and 1: the critical path begins at the
/// first.
pub const INVADES: &str = "invades";

const RELEASES: &str = "gives back";

/// One program that invades.
#[derive(Clone, Debug)]
pub struct Invade {
    /// The machine, whose cores all have daemons.
    pub job: Job,
    /// Cores that the program is to have, its own included, at least 2.
    pub cores: u32,
    /// Whether their numbers have to follow each other.
    pub contiguous: bool,
    /// Whether cores near the memory controllers that serve them are preferred.
    pub near_memory: bool,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The cores that were granted, in the order of their numbers.
    pub granted: Vec<u32>,
    /// The time of the call that reserves.
    pub invades: Time,
    /// The time in which the cores are given back.
    pub releases: Time,
}

impl Invade {
    /// The cores that it takes, the ones that it likes best first.
    fn candidates(&self) -> Vec<u32> {
        let mut candidates: Vec<u32> = (1..self.job.board().cores).collect();
        if self.near_memory {
            let hops = &self.job.machine.shape().memory_hops;
            candidates.sort_by_key(|&core| hops.get(core as usize));
        }
        candidates
    }

    /// The program; the cores that it was granted at last.
    async fn course(&self, memory: ThreadMemory, core: Core) -> Vec<u32> {
        let board = self.job.board();
        let sigmod = Sigmod::new(memory.clone(), core.clone(), board);
        let wish = Wish {
            least: self.cores - 1,
            most: self.cores - 1,
            candidates: self.candidates(),
            contiguous: self.contiguous,
        };
        let (rounds, mut granted) = (WARM_UP + 2, Vec::new());
        for round in 0..rounds {
            let span = |name| Span::new(name, round.saturating_sub(WARM_UP));
            let counts = round >= WARM_UP;
            if counts {
                memory.begin(span(INVADES)).await;
            }
            core.enters("MPI_Comm_invade", None, 0).await;
            core.work(&[(Work::Call, 1)]).await;
            let held = sigmod.invade(PROGRAM, &wish).await;
            core.leaves("MPI_Comm_invade").await;
            if counts {
                memory.end(span(INVADES)).await;
                memory.begin(span(RELEASES)).await;
            }
            sigmod.release(PROGRAM, &held).await;
            granted = held;
            if counts {
                memory.end(span(RELEASES)).await;
            }
        }
        let all: Vec<u32> = (0..board.cores).collect();
        sigmod.all(&all, Command::Stop).await;
        granted
    }
}

impl Measurement for Invade {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        u64::from(WARM_UP + 2)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let granted: Arc<Mutex<Vec<u32>>> = Arc::default();
        let observed = self.job.run(observe, |memory, rank| {
            let (invade, granted) = (self.clone(), Arc::clone(&granted));
            async move {
                let (board, core) = (invade.job.board(), invade.job.core(&memory));
                let holder = (rank == 0).then_some(PROGRAM);
                let daemon = Daemon::start(memory.clone(), core, board, holder).await;
                if rank == 0 {
                    let program = |memory: ThreadMemory| async move {
                        let core = invade.job.core(&memory);
                        let cores = invade.course(memory, core).await;
                        *granted.lock() = cores;
                    };
                    memory.spawn(None, program).await;
                }
                Ok(daemon.run().await)
            }
        })?;
        let last = |name| {
            let span = observed.spans.called(name).last().copied();
            let span = span.unwrap_or(SpanTimes::NONE);
            span.last_end.since(span.first_begin)
        };
        let outcome = Outcome {
            granted: std::mem::take(&mut granted.lock()),
            invades: last(INVADES),
            releases: last(RELEASES),
        };
        Ok((outcome, observed))
    }
}
