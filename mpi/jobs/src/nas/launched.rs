//! BT as a user sees it, from the begin of `mpiexec` on (Comprés et al., Sec. 4): processes are
//! created, initialize their library, and solve.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_mpi::process::manager::Kind;
use sme_sim::time::Time;

use super::solver::Solver;
use super::{Class, Kernel, NasRun, Outcome, STEPS, bt};
use crate::Measurement;
use crate::endpoint::Endpoint;
use crate::job::{Error, Job, Observe, Observed};
use crate::programs::{self, Begin, INITIALIZES, Process, RUNS};

/// A benchmark with a manager, on a machine whose cores all have daemons.
#[derive(Clone, Debug)]
pub struct Launched {
    /// The benchmark, of [`Kernel::Bt`]; its job has so many ranks as there are processes.
    pub run: NasRun,
    /// The machine.
    pub job: Job,
    /// The manager.
    pub manager: Kind,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchedOutcome {
    /// From the begin of the manager until all processes have initialized their library.
    pub starts: Time,
    /// The steps.
    pub steps: Outcome,
}

impl Launched {
    /// That of so many processes on the machine of `job`, of which one core needs so many seconds
    /// for the whole benchmark, and so many steps are simulated.
    pub fn new(
        job: Job,
        manager: Kind,
        (class, processes): (Class, u32),
        (core_seconds, steps): (f64, u32),
    ) -> Self {
        let ranks = Job {
            ranks: processes,
            ..job.clone()
        };
        let run = NasRun {
            job: ranks,
            kernel: Kernel::Bt,
            class,
            core_seconds,
            steps,
        };
        Self { run, job, manager }
    }

    /// From the begin of the manager to the end of the last step of the whole benchmark \[s\].
    pub fn seconds(&self, outcome: &LaunchedOutcome) -> f64 {
        outcome.starts.as_us() / 1e6 + self.run.seconds(&outcome.steps)
    }

    async fn process(self, process: Arc<Process>, longest: Arc<Mutex<Time>>) -> Result<(), Error> {
        let rank = process.mpi.world().rank();
        let endpoint = Endpoint::Mpi(Arc::clone(&process.mpi));
        let mut solver = Solver::new(&self.run, (endpoint, process.memory.clone()), rank);
        bt::run(&mut solver).await?;
        let done = solver.done()?;
        let mut longest = longest.lock();
        *longest = done.computes.max(*longest);
        Ok(())
    }
}

impl Measurement for Launched {
    type Outcome = LaunchedOutcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn data_end(&self) -> u64 {
        self.run.data_end()
    }

    fn calls(&self) -> u64 {
        self.run.calls()
    }

    fn observed(&self, observe: Observe) -> Result<(LaunchedOutcome, Observed), Error> {
        debug_assert_eq!(self.run.kernel, Kernel::Bt);
        let begin = Begin {
            core: 0,
            processes: self.run.job.ranks,
            manager: self.manager,
        };
        let longest: Arc<Mutex<Time>> = Arc::default();
        let process = {
            let (launched, longest) = (self.clone(), Arc::clone(&longest));
            move |process| launched.clone().process(process, Arc::clone(&longest))
        };
        let observed = programs::run(&self.job, observe, &[begin], process)?;
        let computes = *longest.lock();
        let runs = programs::last(&observed, RUNS);
        let initializes = programs::last(&observed, INITIALIZES);
        let outcome = LaunchedOutcome {
            starts: initializes.last_end.since(runs.first_begin),
            steps: self.run.outcome(observed.spans.called(STEPS), computes),
        };
        Ok((outcome, observed))
    }
}
