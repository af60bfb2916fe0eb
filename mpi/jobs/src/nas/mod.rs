//! The solvers BT and LU of the NAS Parallel Benchmarks (D. Bailey et al., *The NAS Parallel
//! Benchmarks*, 1994; R. van der Wijngaart, *NPB version 2.4*, 2002) as their messages: each rank
//! packs the faces of its part of the grid, exchanges them with its neighbours and unpacks them, as
//! the programs do, and computes in between for as long as a single core needs for so many points.
//!
//! That time, of one core for the whole benchmark, is given, and so is how it divides among the
//! phases. Messages, the copies to pack and unpack them, and the time that ranks wait are
//! simulated.

mod bt;
mod grid;
mod launched;
mod lu;
mod solver;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_sim::machine::Machine;
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::Span;
use sme_sim::time::Time;

use super::Measurement;
use super::endpoint::Endpoint;
use super::job::{Error, Job, Observe, Observed};
pub use launched::{Launched, LaunchedOutcome};
use solver::Solver;

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Block tridiagonal systems along each axis in turn.
    Bt,
    /// Successive over-relaxation: two sweeps of planes through the grid.
    Lu,
}

sme_barrier::names!(Kernel, "kernel", {
    Bt => "bt",
    Lu => "lu",
});

/// The size of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Sample.
    S,
    /// Workstation.
    W,
    /// The smallest for parallel machines.
    A,
    /// The next.
    B,
}

sme_barrier::names!(Class, "class", {
    S => "S",
    W => "W",
    A => "A",
    B => "B",
});

/// The reason for which a benchmark does not run with so many ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongRanks {
    /// BT divides the grid into as many parts along each axis.
    #[error("bt has a square number of ranks, not {0}")]
    NoSquare(u32),
    /// LU halves the grid.
    #[error("lu has a power of two of ranks, not {0}")]
    NoPower(u32),
    /// The parts of the grid are too thin.
    #[error("{0} ranks leave parts of fewer than {LEAST} points along an axis")]
    TooMany(u32),
}

/// Points along an axis that each part of the grid has at least: faces are two points deep.
const LEAST: u32 = 3;

impl Kernel {
    /// Points along each axis of the grid, and steps of the whole benchmark.
    pub fn size(self, class: Class) -> (u32, u32) {
        match (self, class) {
            (Self::Bt, Class::S) => (12, 60),
            (Self::Bt, Class::W) => (24, 200),
            (Self::Bt, Class::A) => (64, 200),
            (Self::Bt, Class::B) => (102, 200),
            (Self::Lu, Class::S) => (12, 50),
            (Self::Lu, Class::W) => (33, 300),
            (Self::Lu, Class::A) => (64, 250),
            (Self::Lu, Class::B) => (102, 250),
        }
    }

    /// The time that a core of the SCC at 533 MHz needs for all steps of class A \[s\], as
    /// measured: the time with RCCE on one core under Linux.
    pub fn core_seconds(self) -> f64 {
        match self {
            Self::Bt => 2088.9,
            Self::Lu => 3053.1,
        }
    }

    /// The same of another class on cores of this machine: by the points of the grid, the steps and
    /// the clock, \[s\].
    pub fn scaled_seconds(self, class: Class, machine: &Machine) -> f64 {
        let work = |class| {
            let (points, steps) = self.size(class);
            f64::from(points).powi(3) * f64::from(steps)
        };
        let clock = 533.0 / machine.megahertz("core.clock").unwrap_or(533.0);
        self.core_seconds() * work(class) / work(Class::A) * clock
    }

    /// Returns whether it runs with so many ranks.
    ///
    /// # Errors
    /// [`WrongRanks`]
    pub fn check(self, class: Class, ranks: u32) -> Result<(), WrongRanks> {
        let parts = match self {
            Self::Bt if ranks.isqrt().pow(2) != ranks => return Err(WrongRanks::NoSquare(ranks)),
            Self::Bt => ranks.isqrt(),
            Self::Lu if !ranks.is_power_of_two() => return Err(WrongRanks::NoPower(ranks)),
            Self::Lu => lu::columns(ranks),
        };
        match parts > 0 && self.size(class).0 / parts >= LEAST {
            true => Ok(()),
            false => Err(WrongRanks::TooMany(ranks)),
        }
    }
}

/// A benchmark on a machine.
#[derive(Clone, Debug)]
pub struct NasRun {
    /// The machine, the library and the ranks, for which [`Kernel::check`] has held.
    pub job: Job,
    /// Which benchmark.
    pub kernel: Kernel,
    /// Its size.
    pub class: Class,
    /// The time that one core needs for all steps \[s\].
    pub core_seconds: f64,
    /// Steps that are simulated and count, at least 1.
    pub steps: u32,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The mean time of a step.
    pub step: Time,
    /// The part of it in which the rank that computes longest computes.
    pub computes: Time,
}

/// The steps of all ranks, numbered from 0.
pub const STEPS: &str = "steps";

/// Steps before those that count.
const WARM_UP: u32 = 1;

impl NasRun {
    /// The time of all steps of the benchmark \[s\].
    pub fn seconds(&self, outcome: &Outcome) -> f64 {
        let (_, steps) = self.kernel.size(self.class);
        f64::from(steps) * outcome.step.as_us() / 1e6
    }

    /// The time of one core over that.
    pub fn speedup(&self, outcome: &Outcome) -> f64 {
        self.core_seconds / self.seconds(outcome)
    }

    /// The outcome of these steps, all that were simulated, in which no rank has computed for
    /// longer than `computes`.
    fn outcome(&self, steps: &[SpanTimes], computes: Time) -> Outcome {
        let ends = |number: u32| {
            let times = steps.get(number as usize);
            times.map_or(Time::ZERO, |times| times.last_end)
        };
        let all = ends(self.all_steps() - 1).since(ends(WARM_UP - 1));
        Outcome {
            step: Time::from_ps(all.as_ps() / u64::from(self.steps)),
            computes: Time::from_ps(computes.as_ps() / u64::from(self.all_steps())),
        }
    }

    /// All steps that are simulated.
    fn all_steps(&self) -> u32 {
        WARM_UP + self.steps
    }
}

impl Measurement for NasRun {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn data_end(&self) -> u64 {
        let (points, _) = self.kernel.size(self.class);
        match self.kernel {
            Kernel::Bt => bt::data_end(points, self.job.ranks),
            Kernel::Lu => lu::data_end(points, self.job.ranks),
        }
    }

    fn calls(&self) -> u64 {
        let (points, _) = self.kernel.size(self.class);
        let of_step = match self.kernel {
            Kernel::Bt => bt::most_calls(self.job.ranks),
            Kernel::Lu => lu::most_calls(points),
        };
        let of_rank = of_step * u64::from(self.all_steps()) + 1;
        of_rank.saturating_mul(self.job.ranks.into())
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let longest: Arc<Mutex<Time>> = Arc::default();
        let observed = self.job.run(observe, |memory, rank| {
            let (run, longest) = (self.clone(), Arc::clone(&longest));
            async move {
                let endpoint = Endpoint::new(&run.job, &memory, rank).await?;
                let mut solver = Solver::new(&run, (endpoint, memory), rank);
                match run.kernel {
                    Kernel::Bt => bt::run(&mut solver).await?,
                    Kernel::Lu => lu::run(&mut solver).await?,
                }
                let done = solver.finish().await?;
                let mut longest = longest.lock();
                *longest = done.computes.max(*longest);
                Ok(done.messages)
            }
        })?;
        let computes = *longest.lock();
        let outcome = self.outcome(observed.spans.called(STEPS), computes);
        Ok((outcome, observed))
    }
}

/// Step `number`.
fn step(number: u32) -> Span {
    Span::new(STEPS, number)
}
