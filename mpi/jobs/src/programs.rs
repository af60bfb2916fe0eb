//! Programs whose processes come and go, on a machine whose cores all have daemons.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use sme_memory::{Memory as _, Spawn as _};
use sme_mpi::channel::sections::Sections;
use sme_mpi::error::MpiError;
use sme_mpi::process::Exit;
use sme_mpi::process::command::{Command, Held, Program};
use sme_mpi::process::daemon::Daemon;
use sme_mpi::process::death::{Cause, Ending};
use sme_mpi::process::lending::KEPT;
use sme_mpi::process::manager::{Kind, Manager};
use sme_mpi::process::member::Member;
use sme_mpi::process::module::Registered;
use sme_mpi::process::sigmod::Sigmod;
use sme_mpi::process::start::{Begun, Files};
use sme_mpi::processor::{Processor, Work};
use sme_mpi::rank::Mpi;
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};

use super::channel::SimulatedChannel;
use super::job::{Error, Job, Kill, Observe, Observed, SimulatedMpi};
use super::processor::Core;
use super::segments::lendable;

/// From when a process begins its program until its library is there: MPI_Init.
pub const INITIALIZES: &str = "initializes";

/// From when a manager begins until the processes that it starts at first end.
pub const RUNS: &str = "runs";

/// The name of a process's life in timelines.
const PROCESS: &str = "process";

/// Looks at cores that are to be free until one counts as lost.
const LOOKS: u32 = 1_000;

/// A program: the core on which it begins, and its processes at the begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// The core, whose number is the program's.
    pub core: Program,
    /// Processes, at least 1.
    pub processes: u32,
    /// Its manager.
    pub manager: Kind,
}
/// A process of a program, whose library has begun.
pub struct Process {
    /// Its thread's memory.
    pub memory: ThreadMemory,
    /// Its way to the manager and to daemons.
    pub member: Member<ThreadMemory, Core>,
    /// Its library.
    pub mpi: Arc<SimulatedMpi>,
}

impl Process {
    /// Lets the world grow to `wanted` ranks, as far as there are cores (MPI_Comm_invade,
    /// MPI_Comm_infect); whether it has grown. All ranks of the world call it.
    ///
    /// # Errors
    /// Those of [`Mpi::infect`].
    pub async fn grows(&self, wanted: u32) -> Result<bool, Error> {
        let world = self.mpi.world();
        let mut reserved = [0];
        if wanted > world.size() && world.rank() == 0 {
            reserved[0] = self.member.invade(wanted - world.size()).await;
        }
        world.broadcast(&mut reserved, 0).await?;
        if reserved[0] > 0 {
            self.mpi.infect(&self.member, reserved[0]).await?;
        }
        Ok(reserved[0] > 0)
    }
}

/// The things that have gone wrong in a run.
#[derive(Default)]
struct Wrong {
    /// The first error of a manager, or about cores.
    error: Option<Error>,
    /// The errors with which processes have ended, by core, and which was the first.
    failed: BTreeMap<u32, Error>,
    first: Option<u32>,
    /// The ends of programs whose processes have died.
    endings: Vec<Ending>,
}

impl Wrong {
    /// The process on `core` ends with an error.
    fn fails(&mut self, core: u32, error: Error) {
        self.first.get_or_insert(core);
        self.failed.entry(core).or_insert(error);
    }

    /// The outcome of a run that has ended as `ran` says and was to kill a process, if it was; of
    /// its deaths `files` tell.
    fn outcome(
        mut self,
        files: &Files,
        (kill, unit): (Option<Kill>, &'static str),
        ran: Result<Observed, Error>,
    ) -> Result<Observed, Error> {
        let deaths = files.deaths();
        let mut endings = self.endings.into_iter();
        let first = endings.find_map(|ending| {
            let mut deaths = deaths.iter();
            Some((deaths.find(|death| death.core == ending.core)?, ending))
        });
        if let Some((death, ending)) = first {
            let why = match death.cause {
                Cause::Killed => None,
                Cause::Failed => self.failed.remove(&death.core).map(Box::new),
            };
            return Err(Error::Died {
                death: death.clone(),
                why,
                ending,
                then: self.error.or(ran.err()).map(Box::new),
            });
        }
        let failed = self.first.and_then(|core| self.failed.remove(&core));
        if let Some(error) = failed.or(self.error) {
            return Err(error);
        }
        let observed = ran?;
        match kill.filter(|kill| deaths.iter().all(|death| death.core != kill.core)) {
            Some(spared) => Err(Error::Spared(spared, unit)),
            None => Ok(observed),
        }
    }
}

/// The things that all processes of a run share.
#[derive(Clone)]
struct Run<P> {
    job: Job,
    files: Files,
    process: P,
    messages: Arc<AtomicU64>,
    wrong: Arc<Mutex<Wrong>>,
    /// Managers that run.
    programs: Arc<AtomicUsize>,
}

impl<P, F> Run<P>
where
    P: Fn(Arc<Process>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    fn sigmod(&self, memory: &ThreadMemory) -> Sigmod<ThreadMemory, Core> {
        Sigmod::new(memory.clone(), self.job.core(memory), self.job.board())
    }

    /// The daemon of the core that has `memory`, and a manager if one of `begins` is there.
    async fn core(self, memory: ThreadMemory, begins: Arc<[Begin]>) -> u64 {
        let core = memory.node();
        let begin = begins.iter().find(|begin| u32::from(begin.core) == core);
        let holder = begin.map(|begin| begin.core);
        let own = self.job.core(&memory);
        let daemon = Daemon::start(memory.clone(), own, self.job.board(), holder).await;
        let image = {
            let run = self.clone();
            move |memory: ThreadMemory, begun: Begun| {
                Box::pin(run.clone().process(memory, begun)) as _
            }
        };
        let daemon = daemon.with_image(self.files.clone(), Arc::new(image));
        let daemon = daemon.with_segments(lendable(&self.job));
        let daemon = match &self.job.machine.shape().domains {
            Some(domains) => daemon.with_domains(Arc::new(domains.clone())),
            None => daemon,
        };
        if let Some(kill) = self.job.kill.filter(|kill| kill.core == core) {
            daemon.is_struck_after(kill.at.as_ps() / 1_000).await;
        }
        if let Some(&begin) = begin {
            let (run, registered) = (self, daemon.registered());
            let manager = move |memory| run.manager(memory, begin, registered);
            memory.spawn(None, manager).await;
        }
        daemon.run().await
    }

    /// A manager; when all have ended the daemons end.
    async fn manager(self, memory: ThreadMemory, begin: Begin, registered: Registered) {
        // All daemons are there.
        let all: Vec<u32> = (0..self.job.board().cores).collect();
        self.sigmod(&memory).survey(&all).await;
        let manager = Manager::new(
            self.sigmod(&memory),
            (begin.core, begin.manager),
            self.files.clone(),
            &registered,
        );
        let span = Span::new(RUNS, begin.core.into());
        memory.begin(span).await;
        let ran = manager.run(begin.processes).await;
        memory.end(span).await;
        match ran {
            Ok(None) => {}
            Ok(Some(ending)) => self.wrong.lock().endings.push(ending),
            Err(fault) => {
                let error = fault.at(0, "mpiexec").into();
                self.wrong.lock().error.get_or_insert(error);
            }
        }
        if self.programs.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        let sigmod = self.sigmod(&memory);
        // The core of the last process is free soon after its manager has heard of its end.
        let mut left = all.clone();
        for _ in 0..LOOKS {
            let held = sigmod.survey(&left).await;
            let mut held = held.iter();
            left.retain(|_| held.next() != Some(&Held(None)));
            if left.is_empty() {
                break;
            }
            memory.give_way().await;
        }
        if !left.is_empty() {
            let error = Error::Reserved(left, self.job.board().alert.unit());
            self.wrong.lock().error.get_or_insert(error);
        }
        if self.files.have_borrowed() {
            let count = lendable(&self.job);
            let free = all.iter().zip(sigmod.survey_memory(&all).await);
            let lenders = free.filter(|&(_, free)| free != count.saturating_sub(KEPT));
            let lenders: Vec<u32> = lenders.map(|(&core, _)| core).collect();
            if !lenders.is_empty() {
                let error = Error::Lent(lenders, self.job.board().alert.unit());
                self.wrong.lock().error.get_or_insert(error);
            }
        }
        sigmod.all(&all, Command::Stop).await;
    }

    /// A process, from the execution of its program to its end.
    async fn process(self, memory: ThreadMemory, begun: Begun) -> Exit {
        let (wrong, core) = (Arc::clone(&self.wrong), memory.node());
        let own = self.job.core(&memory);
        own.enters(PROCESS, None, 0).await;
        let ended = self.lives(memory, begun).await;
        own.leaves(PROCESS).await;
        match ended {
            Ok(()) => Exit::Done,
            Err(error) => {
                wrong.lock().fails(core, error);
                Exit::Failed
            }
        }
    }

    async fn lives(self, memory: ThreadMemory, begun: Begun) -> Result<(), Error> {
        let core = self.job.core(&memory);
        core.work(&[(Work::Exec, 1)]).await;
        let span = Span::new(INITIALIZES, begun.launch.birth);
        memory.begin(span).await;
        let channel = Sections::new(memory.clone(), core, memory.node(), self.job.layout())?;
        if begun.after_death {
            channel.clears().await;
        }
        let channel = SimulatedChannel::Sections(Box::new(channel));
        let member = Member::new(self.sigmod(&memory), begun, self.files.clone());
        let mpi: Result<Mpi<_>, MpiError> = member.initialize(channel).await;
        memory.end(span).await;
        let process = Arc::new(Process {
            memory,
            member,
            mpi: Arc::new(mpi?),
        });
        (self.process)(Arc::clone(&process)).await?;
        process.member.release().await;
        process.mpi.finalize().await?;
        process.mpi.vacate().await;
        let messages = process.mpi.messages();
        self.messages.fetch_add(messages, Ordering::Relaxed);
        Ok(())
    }
}

/// Runs programs, each of which begins on a core of its own; `process` is what each process does
/// between MPI_Init and MPI_Finalize.
///
/// # Errors
/// [`Error::Died`] for the first program one of whose processes dies, another [`Error`] if the run
/// fails otherwise.
pub fn run<P, F>(
    job: &Job,
    observe: Observe,
    begins: &[Begin],
    process: P,
) -> Result<Observed, Error>
where
    P: Fn(Arc<Process>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let begins: Arc<[Begin]> = begins.into();
    // Programs share files outside of the simulated memory: what they find there would depend on
    // which of several threads is faster.
    let job = &Job {
        workers: 1,
        ..job.clone()
    };
    let last: Mutex<Option<Run<P>>> = Mutex::new(None);
    let ran = job.run(observe, |memory, core| {
        // The first core is the first to be set up: another simulation begins with it.
        let run = match core {
            0 => Run {
                job: job.clone(),
                files: Files::default(),
                process: process.clone(),
                messages: Arc::default(),
                wrong: Arc::default(),
                programs: Arc::new(AtomicUsize::new(begins.len())),
            },
            _ => last
                .lock()
                .clone()
                .expect("cores are set up in their order"),
        };
        *last.lock() = Some(run.clone());
        let begins = Arc::clone(&begins);
        async move { Ok(run.core(memory, begins).await) }
    });
    let Some(run) = last.into_inner() else {
        return ran;
    };
    let wrong = std::mem::take(&mut *run.wrong.lock());
    let mut observed = wrong.outcome(&run.files, (job.kill, job.board().alert.unit()), ran)?;
    observed.messages = run.messages.load(Ordering::Relaxed);
    Ok(observed)
}

/// The times of the last span of this name.
pub(super) fn last(observed: &Observed, name: &'static str) -> SpanTimes {
    let span = observed.spans.called(name).last().copied();
    span.unwrap_or(SpanTimes::NONE)
}
