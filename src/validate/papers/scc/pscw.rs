//! The figures of Christgau and Schnor: the synchronization of one-sided communication on the SCC,
//! by messages and in shared memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use sme_mpi::window::Synchronization;
use sme_sim::machine::Machine;

use super::{Estimator, Finding, Point};
use crate::fit;
use crate::messages::Measurement;
use crate::messages::job::{Job, Library};
use crate::messages::pscw::{Outcome, Pscw};

/// Rounds of each run. The paper has 1001, whose medians differ by less than 0.1 % here.
const ROUNDS: u32 = 101;

/// The most targets.
const MOST_TARGETS: u32 = 31;

/// One of the four calls, or what a target needs for both of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// MPI_Win_start
    Start,
    /// MPI_Win_complete
    Complete,
    /// MPI_Win_post
    Post,
    /// MPI_Win_wait
    Wait,
    /// The sum of a target's two.
    Target,
}

/// The median of a call over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    sync: Synchronization,
    targets: u32,
    which: Which,
}

impl Call {
    /// The simulation's time, about.
    pub(super) fn cost(self) -> u64 {
        u64::from(ROUNDS * self.targets) * 8
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sync,
            targets,
            which,
        } = self;
        write!(
            f,
            "{which:?} of {sync} synchronization with {targets} targets"
        )
    }
}

/// Of a class of synchronization with so many targets.
type Key = (&'static str, u32);

/// The outcome of a run, when there is one.
type Ran = Arc<OnceLock<Result<Outcome, String>>>;

/// Runs of which several calls are read off.
#[derive(Default)]
pub struct Runs(Mutex<HashMap<Key, Ran>>);

impl Runs {
    /// The time of `call` on `machine` [us].
    pub(super) fn time(&self, machine: &Arc<Machine>, call: Call) -> Result<f64, String> {
        let key = (call.sync.name(), call.targets);
        let ran = Arc::clone(self.0.lock().entry(key).or_default());
        let outcome = ran.get_or_init(|| {
            let run = Pscw {
                job: Job::new(Arc::clone(machine), Library::Sccmpb, call.targets + 1),
                sync: call.sync,
                rounds: ROUNDS,
            };
            run.run().map_err(|error| error.to_string())
        });
        let outcome = outcome.clone()?;
        let time = match call.which {
            Which::Start => outcome.start.median,
            Which::Complete => outcome.complete.median,
            Which::Post => outcome.post.median,
            Which::Wait => outcome.wait.median,
            Which::Target => outcome.target(),
        };
        Ok(time.as_us())
    }
}

fn call(sync: Synchronization, targets: u32, which: Which) -> Point {
    Point::Pscw(Call {
        sync,
        targets,
        which,
    })
}

/// The estimator of a figure.
pub(super) fn estimator(id: &str) -> Option<Estimator<Point>> {
    match id {
        "scosco.fig5.scosco.13_targets" => Some(of_target(Synchronization::TriggerOnly)),
        "scosco.fig5.rckmpi.13_targets" => Some(of_target(Synchronization::Deferred)),
        "scosco.speedup" => Some(speedup()),
        "scosco.fig4.shapes" => Some(shapes()),
        _ => None,
    }
}

/// The synchronization time of 13 targets, the labels of Fig. 5 [us].
fn of_target(sync: Synchronization) -> Estimator<Point> {
    Estimator::single(call(sync, 13, Which::Target), 1.0)
}

/// The synchronization time of so many targets, by messages and in shared memory.
fn both(targets: u32) -> [Point; 2] {
    [Synchronization::Deferred, Synchronization::TriggerOnly]
        .map(|sync| call(sync, targets, Which::Target))
}

/// The smallest factor between messages and shared memory, from 2 targets on.
fn speedup() -> Estimator<Point> {
    Estimator::new(
        || (2..=MOST_TARGETS).flat_map(both).collect(),
        |measured| {
            let factor = |targets| {
                let [slow, fast] = both(targets).map(|point| measured.microseconds(point));
                Ok(slow? / fast?)
            };
            let all: Result<Vec<f64>, String> = (2..=MOST_TARGETS).map(factor).collect();
            Ok(Finding::of(all?.into_iter().fold(f64::INFINITY, f64::min)))
        },
    )
}

const CALLS: [Which; 4] = [Which::Start, Which::Post, Which::Complete, Which::Wait];

/// A call of trigger-only synchronization for each number of targets.
fn curve(which: Which) -> impl Iterator<Item = Point> {
    (1..=MOST_TARGETS).map(move |targets| call(Synchronization::TriggerOnly, targets, which))
}

/// The most targets up to which START and POST are flat and COMPLETE and WAIT are straight lines.
fn shapes() -> Estimator<Point> {
    Estimator::new(
        || CALLS.into_iter().flat_map(curve).collect(),
        |measured| {
            let medians = |which| -> Result<Vec<f64>, String> {
                let points = curve(which);
                points.map(|point| measured.microseconds(point)).collect()
            };
            let [start, post, complete, wait] = CALLS.map(medians);
            let (start, post, complete, wait) = (start?, post?, complete?, wait?);
            let holds = |most: &usize| {
                is_flat(&start[..*most])
                    && is_flat(&post[..*most])
                    && is_straight(&complete[..*most])
                    && is_straight(&wait[..*most])
            };
            let most = (3..=MOST_TARGETS as usize).take_while(holds).last();
            Ok(Finding::of(most.unwrap_or(0) as f64))
        },
    )
}

/// Returns whether the largest is below 1.2 times the smallest.
fn is_flat(times: &[f64]) -> bool {
    let largest = times.iter().copied().fold(0.0, f64::max);
    let smallest = times.iter().copied().fold(f64::INFINITY, f64::min);
    largest < 1.2 * smallest
}

/// Returns whether a straight line over 1, 2, … has a coefficient of determination of at least
/// 0.99.
fn is_straight(times: &[f64]) -> bool {
    let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(times.iter().copied()).collect();
    fit::line(&points).is_ok_and(|line| line.r_squared >= 0.99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let line: Vec<f64> = (1..=31).map(|k| 3.0 + 2.0 * f64::from(k)).collect();
        let bent: Vec<f64> = (1..=31).map(|k| f64::from(k * k)).collect();
        assert!(is_straight(&line) && !is_straight(&bent) && !is_flat(&line));
        assert!(is_flat(&[1.0, 1.19, 1.1]) && !is_flat(&[1.0, 1.2]));
    }
}
