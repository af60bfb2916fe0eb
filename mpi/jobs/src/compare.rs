//! One program on several machines, side by side: a ping-pong and a barrier of the same MPI.

use std::sync::Arc;

use sme_mpi::collective::choice::Collective;
use sme_sim::machine::Machine;
use sme_sim::time::Time;

use super::collective::CollectiveRun;
use super::job::{Error, Job, Library};
use super::pingpong::{PingPong, data_end};
use super::{Measurement, SendCall};

/// A machine with MPI over its own channel.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The job: rank 0 and the last one send to each other, and all ranks meet.
    pub job: Job,
    /// Rounds of each ping-pong, and barriers.
    pub rounds: u32,
}

/// The measured times and bandwidths.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Half of a round of the shortest message.
    pub latency: Time,
    /// The time of the call that sends such a message.
    pub send: Time,
    /// Bytes, and MB/s \[10^6 bytes per second\].
    pub bandwidths: Vec<(u64, f64)>,
    /// A barrier of all ranks.
    pub barrier: Time,
}

/// The sizes of the messages, in bytes, as far as they fit into memory.
const SIZES: [u64; 9] = [
    8,
    64,
    512,
    4 << 10,
    16 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
];

impl Compared {
    /// MPI on `machine` with so many ranks, or as many as it has cores for.
    pub fn new(machine: Arc<Machine>, most_ranks: u32, rounds: u32) -> Self {
        let library = Library::of_mpi(&machine);
        let ranks = Job::most_ranks(&machine).min(most_ranks);
        let job = Job::new(machine, library, ranks);
        Self { job, rounds }
    }

    /// Returns whether the machine's memory has room for the shortest message.
    ///
    /// # Errors
    /// [`Error::NoRoomForData`]
    pub fn holds(&self) -> Result<(), Error> {
        self.job.holds(data_end(&self.job, SIZES[0]))
    }

    /// Simulates it.
    ///
    /// # Errors
    /// [`Error`]
    pub fn run(&self) -> Result<Outcome, Error> {
        let Self { job, rounds } = self;
        let mut outcome = Outcome {
            latency: Time::ZERO,
            send: Time::ZERO,
            bandwidths: Vec::new(),
            barrier: Time::ZERO,
        };
        for size_bytes in SIZES {
            if job.holds(data_end(job, size_bytes)).is_err() {
                break;
            }
            let run = PingPong {
                job: job.clone(),
                first: 0,
                partner: job.ranks - 1,
                call: SendCall::Send,
                way: None,
                size_bytes,
                rounds: *rounds,
            };
            let found = run.run()?;
            if outcome.bandwidths.is_empty() {
                (outcome.latency, outcome.send) = (found.latency, found.sends.0);
            }
            let bandwidth = run.bandwidth_mb_per_s(&found);
            outcome.bandwidths.push((size_bytes, bandwidth));
        }
        let barrier = CollectiveRun {
            job: job.clone(),
            collective: Collective::Barrier,
            algorithm: None,
            size_bytes: 0,
            rounds: *rounds,
        };
        outcome.barrier = barrier.run()?.latency;
        Ok(outcome)
    }
}

impl Outcome {
    /// The largest bandwidth, and the bytes of the message.
    pub fn best(&self) -> (u64, f64) {
        let all = self.bandwidths.iter().copied();
        all.fold(
            (0, 0.0),
            |best, one| if one.1 > best.1 { one } else { best },
        )
    }
}
