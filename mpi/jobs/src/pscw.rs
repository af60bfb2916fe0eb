//! The synchronization of one-sided communication, measured as Algorithm 3 of Christgau and Schnor
//! has it: rank 0 starts an access epoch to all others and completes it, these post and wait, over
//! and over, without an access and without a barrier.
//!
//! The time of a call is from its begin to its end. All rounds count.

use sme_mpi::group::Group;
use sme_mpi::window::Synchronization;
use sme_sim::observe::quantile::nearest_rank;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed, SimulatedMpi};

/// The rounds of one origin and its targets.
#[derive(Clone, Debug)]
pub struct Pscw {
    /// The machine, the library, and the ranks: one more than targets.
    pub job: Job,
    /// The class of synchronization.
    pub sync: Synchronization,
    /// Rounds, at least 1.
    pub rounds: u32,
}

/// Times of a call in all rounds, and of a target's calls at all targets: values that occurred, by
/// nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quartiles {
    /// A quarter is not above it.
    pub q1: Time,
    /// Half is not.
    pub median: Time,
    /// Three quarters are not.
    pub q3: Time,
}

/// The times of the four calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of MPI_Win_start.
    pub start: Quartiles,
    /// Of MPI_Win_complete.
    pub complete: Quartiles,
    /// Of MPI_Win_post.
    pub post: Quartiles,
    /// Of MPI_Win_wait.
    pub wait: Quartiles,
}

/// The rounds of the origin, numbered from 0.
pub const ROUNDS: &str = "rounds";

impl Quartiles {
    fn of(mut times: Vec<Time>) -> Self {
        times.sort_unstable();
        Self {
            q1: nearest_rank(&times, 25),
            median: nearest_rank(&times, 50),
            q3: nearest_rank(&times, 75),
        }
    }
}

impl Outcome {
    /// The time of synchronization at the origin: the sum of its two medians (t_o of Fig. 5).
    pub fn origin(&self) -> Time {
        self.start.median + self.complete.median
    }

    /// The same at a target (t_t).
    pub fn target(&self) -> Time {
        self.post.median + self.wait.median
    }
}

impl Pscw {
    /// Targets.
    pub fn targets(&self) -> u32 {
        self.job.ranks - 1
    }

    async fn course(&self, mpi: &SimulatedMpi, memory: &ThreadMemory) -> Result<(), Error> {
        let world = mpi.world();
        let window = world.allocate_window(0, 1, self.sync).await?;
        let all = world.handle().group();
        // Rank 0 is there.
        let origin = all.incl(&[0]).unwrap_or(Group::empty());
        let targets = all.excl(&[0]).unwrap_or(Group::empty());
        for round in 0..self.rounds {
            if world.rank() == 0 {
                let span = Span::new(ROUNDS, round);
                memory.begin(span).await;
                window.start(&targets).await?;
                window.complete().await?;
                memory.end(span).await;
            } else {
                window.post(&origin).await?;
                window.wait().await?;
            }
        }
        window.free().await?;
        Ok(mpi.finalize().await?)
    }
}

impl Measurement for Pscw {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        // The window is made and freed, and the library finalized.
        (2 * u64::from(self.rounds) + 3) * u64::from(self.job.ranks)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let watched = Observe {
            calls: true,
            ..observe
        };
        let run = self.clone();
        let observed = self.job.run_mpi(watched, move |mpi, memory| {
            let run = run.clone();
            async move { run.course(&mpi, &memory).await }
        })?;
        let times = |name: &str| {
            let calls = observed.calls.iter().map(|(_, call)| call);
            let calls = calls.filter(|call| call.call.name == name);
            Quartiles::of(calls.map(|call| call.end.since(call.begin)).collect())
        };
        let outcome = Outcome {
            start: times("MPI_Win_start"),
            complete: times("MPI_Win_complete"),
            post: times("MPI_Win_post"),
            wait: times("MPI_Win_wait"),
        };
        Ok((outcome, observed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_times_that_occurred() {
        let times = |all: &[u64]| Quartiles::of(all.iter().map(|&ns| Time::from_ns(ns)).collect());
        let of = |q1, median, q3| Quartiles {
            q1: Time::from_ns(q1),
            median: Time::from_ns(median),
            q3: Time::from_ns(q3),
        };
        assert_eq!(times(&[]), Quartiles::default());
        assert_eq!(times(&[7]), of(7, 7, 7));
        assert_eq!(times(&[4, 2, 3, 1]), of(1, 2, 3));
        assert_eq!(times(&[5, 4, 2, 3, 1]), of(2, 3, 4));
    }
}
