//! Starting processes, measured: a program of one process on core 0 starts others, and is connected
//! to them (MPI_Comm_spawn).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sme_memory::{Memory as _, Spawn as _};
use sme_mpi::channel::sections::Sections;
use sme_mpi::channel::{Processor, Work};
use sme_mpi::process::command::{Command, Held, Program};
use sme_mpi::process::daemon::Daemon;
use sme_mpi::process::sigmod::Sigmod;
use sme_mpi::process::start::{Launch, Launches, Starts};
use sme_mpi::rank::Mpi;
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Measurement;
use super::channel::SimulatedChannel;
use super::job::{Error, Job, Observe, Observed, SimulatedMpi};
use super::processor::Core;

/// The program, by its core.
const PROGRAM: Program = 0;

/// The call.
pub const SPAWNS: &str = "spawns";

/// The time at which a process has initialized its library, messages apart.
const BEGINS: &str = "begins";

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
    /// From its begin until all processes are there: reserved, forked, executed, initialized.
    pub begins: Time,
    /// From then until they are connected.
    pub connects: Time,
}

/// The things that the processes of a run share, and its numbers.
#[derive(Clone, Default)]
struct Shared {
    launches: Launches,
    messages: Arc<AtomicU64>,
}

impl Spawn {
    /// The library of a process in a world of these cores.
    fn mpi(&self, memory: &ThreadMemory, world: &[u32]) -> Result<SimulatedMpi, Error> {
        let (core, layout) = (self.job.core(memory), self.job.layout());
        let channel = Sections::new(memory.clone(), core, memory.node(), layout)?;
        let channel = SimulatedChannel::Sections(Box::new(channel));
        Ok(Mpi::within(channel, world, 0)?)
    }

    /// The program that starts the others.
    async fn parent(&self, memory: ThreadMemory, shared: &Shared) -> Result<(), Error> {
        let mpi = self.mpi(&memory, &[PROGRAM.into()])?;
        let board = self.job.board();
        let sigmod = Sigmod::new(memory.clone(), self.job.core(&memory), board);
        let others: Vec<u32> = (1..board.cores).collect();
        let starter = Starts {
            sigmod: &sigmod,
            program: PROGRAM,
            candidates: others.clone(),
            launches: Arc::clone(&shared.launches),
        };
        let world = mpi.world();
        // All daemons are there.
        sigmod.survey(&others).await;
        let span = Span::new(SPAWNS, 0);
        memory.begin(span).await;
        let children = world.spawn(&starter, self.processes, 0).await;
        memory.end(span).await;
        let children = children?;
        children.disconnect().await?;
        mpi.finalize().await?;
        // The cores of processes that have ended are free.
        while sigmod
            .survey(&others)
            .await
            .iter()
            .any(|held| *held != Held(None))
        {
            memory.give_way().await;
        }
        shared.messages.fetch_add(mpi.messages(), Ordering::Relaxed);
        Ok(())
    }

    /// A process that was started.
    async fn child(
        &self,
        (memory, core): (ThreadMemory, Core),
        launch: Launch,
        shared: &Shared,
    ) -> Result<(), Error> {
        let span = Span::new(BEGINS, 0);
        core.work(&[(Work::Exec, 1), (Work::Init, 1)]).await;
        memory.begin(span).await;
        memory.end(span).await;
        let mpi = self.mpi(&memory, &launch.world)?;
        // MPI_Init ends when all of its world are there.
        mpi.world().barrier().await?;
        let parent = mpi.world().connect(&launch.port, 0).await?;
        parent.disconnect().await?;
        mpi.finalize().await?;
        shared.messages.fetch_add(mpi.messages(), Ordering::Relaxed);
        Ok(())
    }
}

/// The first error of any process.
type Wrong = Arc<parking_lot::Mutex<Option<Error>>>;

impl Measurement for Spawn {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        // Those of the program, and four of each process.
        3 + 4 * u64::from(self.processes)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let shared = Shared::default();
        let wrong = Wrong::default();
        let ran = self.job.run(observe, |memory, rank| {
            let (spawn, shared, wrong) = (self.clone(), shared.clone(), Arc::clone(&wrong));
            async move {
                let (board, core) = (spawn.job.board(), spawn.job.core(&memory));
                let holder = (rank == 0).then_some(PROGRAM);
                let daemon = Daemon::start(memory.clone(), core, board, holder).await;
                let image = {
                    let (spawn, shared, wrong) = (spawn.clone(), shared.clone(), wrong.clone());
                    move |memory: ThreadMemory, launch| {
                        let (spawn, shared, wrong) =
                            (spawn.clone(), shared.clone(), Arc::clone(&wrong));
                        let core = spawn.job.core(&memory);
                        let process = async move {
                            let ended = spawn.child((memory, core), launch, &shared).await;
                            if let Err(error) = ended {
                                wrong.lock().get_or_insert(error);
                            }
                        };
                        Box::pin(process) as _
                    }
                };
                let daemon = daemon.with_image(Arc::clone(&shared.launches), Arc::new(image));
                if rank == 0 {
                    let program = move |memory: ThreadMemory| async move {
                        let ended = spawn.parent(memory.clone(), &shared).await;
                        if let Err(error) = ended {
                            wrong.lock().get_or_insert(error);
                        }
                        let core = spawn.job.core(&memory);
                        let sigmod = Sigmod::new(memory, core, spawn.job.board());
                        let all: Vec<u32> = (0..spawn.job.board().cores).collect();
                        sigmod.all(&all, Command::Stop).await;
                    };
                    memory.spawn(None, program).await;
                }
                daemon.run().await;
                Ok(0)
            }
        });
        if let Some(error) = wrong.lock().take() {
            return Err(error);
        }
        let mut observed = ran?;
        observed.messages = shared.messages.load(Ordering::Relaxed);
        let last = |name| {
            let span = observed.spans.called(name).last().copied();
            span.unwrap_or(SpanTimes::NONE)
        };
        let (spawns, begins) = (last(SPAWNS), last(BEGINS));
        let outcome = Outcome {
            spawns: spawns.last_end.since(spawns.first_begin),
            begins: begins.last_begin.since(spawns.first_begin),
            connects: spawns.last_end.since(begins.last_begin),
        };
        Ok((outcome, observed))
    }
}
