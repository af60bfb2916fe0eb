//! Numerical integration by a program that grows and shrinks (Comprés et al., Sec. 6), and by one
//! process, numerically real.
//!
//! The tree of intervals is walked level by level. At each level the world has a process for each
//! interval, as far as there are cores: it grows before a level that is wider, and shrinks before
//! one that is narrower. A process evaluates the criterion for its intervals and integrates those
//! that are leaves; then all hear which intervals are halved.

mod tree;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::Memory as _;
use sme_mpi::op::Op;
use sme_mpi::process::command::Command;
use sme_mpi::process::manager::Kind;
use sme_sim::observe::energy::Energy;
use sme_sim::parts::contract::Span;
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed};
use super::programs::{self, Begin, Process, RUNS};
pub use tree::{Interval, POINTS, TOLERANCE, WHOLE, exact};

/// Cycles for a point of the midpoint rule at which the function is an exponential: fitted to the
/// published time of the serial version, 11.932 s.
pub const EXPONENTIAL_CYCLES: f64 = 264.5;

/// Cycles for a point at which it is 1: assumed.
pub const CONSTANT_CYCLES: f64 = 50.0;

/// From the begin of a level to that of the next, at rank 0.
pub const LEVELS: &str = "level";

/// The way in which it is integrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// By one process.
    Serial,
    /// By a world that grows and shrinks.
    Invasive,
}

sme_barrier::names!(Variant, "variant", {
    Serial => "serial",
    Invasive => "invasive",
});

/// One integration.
#[derive(Clone, Debug)]
pub struct Simpson {
    /// The machine, whose cores all have daemons.
    pub job: Job,
    /// The way.
    pub variant: Variant,
    /// Of the criterion.
    pub tolerance: f64,
    /// Points of the midpoint rule in each leaf, at least 1.
    pub points: u64,
    /// The clock and voltage that processes want while they have nothing to do in a level; without
    /// them these stay as they are.
    pub waiting: Option<Slow>,
}

/// A clock and a voltage of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The divider of the clock.
    pub divider: u8,
    /// The voltage in tenths of a volt; none if it is not to be changed.
    pub tenths: Option<u8>,
}

/// A level of the tree, as it was walked.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its intervals.
    pub intervals: Vec<Interval>,
    /// Those that are leaves.
    pub leaves: Vec<bool>,
    /// Processes of the world.
    pub processes: u32,
    /// From the program's begin until it began: then the world has these processes.
    pub begin: Time,
    /// From the program's begin until all its intervals were done.
    pub end: Time,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The integral.
    pub result: f64,
    /// From the program's begin, MPI_Init done, until it has the result.
    pub time: Time,
    /// From when the manager begins until all processes have ended.
    pub total: Time,
    /// The levels, the root first.
    pub levels: Vec<Level>,
    /// The energy of the machine until the last program ended; none where the machine has no
    /// figures of power.
    pub energy: Option<Energy>,
}

/// The findings of rank 0.
#[derive(Debug, Default)]
struct Found {
    result: f64,
    levels: Vec<Level>,
}

/// From the program's begin until it has the result, at rank 0.
pub const WHOLE_RUN: &str = "integrates";

impl Simpson {
    async fn process(self, process: Arc<Process>, found: Arc<Mutex<Found>>) -> Result<(), Error> {
        let (mpi, memory) = (&process.mpi, &process.memory);
        let came = process.member.begun().launch.port.is_some();
        let mut level = 0;
        let mut intervals = vec![WHOLE];
        let mut sum = 0.0;
        if came {
            (level, intervals) = self.hears(&process).await?;
        } else {
            memory.begin(Span::new(WHOLE_RUN, 0)).await;
        }
        loop {
            let world = mpi.world();
            let is_first = world.rank() == 0;
            let processes = world.size();
            if is_first {
                memory.begin(Span::new(LEVELS, level)).await;
            }
            let mut leaves = vec![0_u8; intervals.len()];
            let mut integral = 0.0;
            let own = world.rank() as usize..intervals.len();
            for number in own.step_by(processes as usize) {
                let interval = intervals[number];
                // Five values of the function, of which the cost is not counted.
                if interval.is_leaf(self.tolerance) {
                    leaves[number] = 1;
                    integral += self.integrates(&process, interval).await;
                }
            }
            let waits = self.wish_while_waiting(&intervals, &leaves);
            if let Some(Slow { divider, tenths }) = waits {
                wishes(&process, Command::Tune, divider).await;
                if let Some(tenths) = tenths {
                    wishes(&process, Command::Supply, tenths).await;
                }
            }
            // Each is a leaf, or not, of one process; of the others it is not.
            let (mut all_leaves, mut all) = (vec![0_u8; intervals.len()], [0.0]);
            world.allreduce(&leaves, &mut all_leaves, &Op::Max).await?;
            world.allreduce(&[integral], &mut all, &Op::Sum).await?;
            if waits.is_some() {
                wishes(&process, Command::Tune, 0).await;
            }
            sum += all[0];
            let leaves: Vec<bool> = all_leaves.iter().map(|&leaf| leaf != 0).collect();
            let halved = intervals.iter().zip(&leaves).filter(|(_, leaf)| !**leaf);
            let next: Vec<Interval> = halved.flat_map(|(interval, _)| interval.halves()).collect();
            if is_first {
                memory.end(Span::new(LEVELS, level)).await;
                let done = Level {
                    intervals: std::mem::take(&mut intervals),
                    leaves,
                    processes,
                    begin: Time::ZERO,
                    end: Time::ZERO,
                };
                found.lock().levels.push(done);
            }
            intervals = next;
            level += 1;
            if intervals.is_empty() {
                if is_first {
                    found.lock().result = sum;
                    memory.end(Span::new(WHOLE_RUN, 0)).await;
                }
                return Ok(());
            }
            if self.variant == Variant::Invasive
                && !self.resizes(&process, level, &intervals).await?
            {
                return Ok(());
            }
        }
    }

    /// Returns the wish of a process in a level in which it has no leaf, if others have one.
    fn wish_while_waiting(&self, intervals: &[Interval], own_leaves: &[u8]) -> Option<Slow> {
        let is_leaf = |interval: &Interval| interval.is_leaf(self.tolerance);
        self.waiting
            .filter(|_| own_leaves.iter().all(|&leaf| leaf == 0) && intervals.iter().any(is_leaf))
    }

    /// Gives the world a process for each of `intervals`, as far as there are cores; whether this
    /// one stays in it.
    async fn resizes(
        &self,
        process: &Process,
        level: u32,
        intervals: &[Interval],
    ) -> Result<bool, Error> {
        let mpi = &process.mpi;
        let (size, wanted) = (mpi.world().size(), intervals.len() as u32);
        if wanted < size {
            let stays = mpi.world().rank() < wanted;
            mpi.retreat(stays).await?;
            return Ok(stays);
        }
        if wanted > size && process.grows(wanted).await? {
            self.tells(process, level, intervals).await?;
        }
        Ok(true)
    }

    /// Rank 0 tells all ranks of the level; those that were there before know it.
    async fn tells(
        &self,
        process: &Process,
        level: u32,
        intervals: &[Interval],
    ) -> Result<(), Error> {
        let world = process.mpi.world();
        let mut head = [u64::from(level), intervals.len() as u64];
        world.broadcast(&mut head, 0).await?;
        let ends = intervals.iter();
        let mut ends: Vec<f64> = ends.flat_map(|one| [one.from, one.to]).collect();
        Ok(world.broadcast(&mut ends, 0).await?)
    }

    /// The other side of it, of a rank that has come.
    async fn hears(&self, process: &Process) -> Result<(u32, Vec<Interval>), Error> {
        let world = process.mpi.world();
        let mut head = [0_u64; 2];
        world.broadcast(&mut head, 0).await?;
        let mut ends = vec![0.0; 2 * head[1] as usize];
        world.broadcast(&mut ends, 0).await?;
        let (ends, _) = ends.as_chunks();
        let intervals = ends.iter().map(|&[from, to]| Interval { from, to });
        Ok((head[0] as u32, intervals.collect()))
    }

    /// The midpoint rule on a leaf.
    async fn integrates(&self, process: &Process, leaf: Interval) -> f64 {
        let constant = leaf.constant_points(self.points);
        let exponential = self.points - constant;
        let cycles = constant as f64 * CONSTANT_CYCLES + exponential as f64 * EXPONENTIAL_CYCLES;
        // Chips with daemons have such a clock.
        let megahertz = self.job.machine.megahertz("core.clock").unwrap_or(1.0);
        let time = Time::from_ps((cycles / megahertz * 1e6).round() as u64);
        process.memory.delay(time).await;
        leaf.midpoint(self.points)
    }
}

/// Tells the daemon of a process's core what the program wants of its clock, or its voltage.
/// Another process of its tile, or its island, may want something else: then nothing changes.
async fn wishes(process: &Process, command: Command, setting: u8) {
    let (member, core) = (&process.member, process.memory.node());
    let program = member.begun().program;
    let wish = (command, setting);
    member.sigmod.wishes(program, &[core], wish).await;
}

impl Measurement for Simpson {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        // Of each core at each level: two reductions, three broadcasts, a change of the world.
        let levels = 1 << 6;
        8 * levels * u64::from(self.job.board().cores)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let begin = Begin {
            core: 0,
            processes: 1,
            manager: Kind::Invasive,
        };
        let found: Arc<Mutex<Found>> = Arc::default();
        let process = {
            let (simpson, found) = (self.clone(), Arc::clone(&found));
            move |process| simpson.clone().process(process, Arc::clone(&found))
        };
        let observed = programs::run(&self.job, observe, &[begin], process)?;
        let found = std::mem::take(&mut *found.lock());
        let whole = programs::last(&observed, WHOLE_RUN);
        let total = programs::last(&observed, RUNS);
        let spans = observed.spans.called(LEVELS);
        let levels = found.levels.into_iter().zip(spans);
        let levels = levels.map(|(level, span)| Level {
            begin: span.first_begin.since(whole.first_begin),
            end: span.last_end.since(whole.first_begin),
            ..level
        });
        let outcome = Outcome {
            result: found.result,
            time: whole.last_end.since(whole.first_begin),
            total: total.last_end.since(total.first_begin),
            levels: levels.collect(),
            energy: observed.energy.clone(),
        };
        Ok((outcome, observed))
    }
}
