//! Ping-pong: two ranks send each other a message in turn, the rest of the job being idle. Half of
//! a round is the latency, and the message over it the bandwidth.
//!
//! The message lies at the same place of each rank's own memory in every round, so that it is in
//! the caches as far as it fits: after two rounds that do not count.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::Own;
use sme_mpi::buffer::{Buffer, BufferMut};
use sme_mpi::channel::Processor;
use sme_mpi::rank::{Source, Tag};
use sme_mpi::rcce::Rcce;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::job::{Error, Job, Library, Observe, Observed, SimulatedMpi, times};
use super::processor::Core;
use super::{Measurement, WARM_UP};

/// A ping-pong.
#[derive(Clone, Debug)]
pub struct PingPong {
    /// The machine, the library and the ranks.
    pub job: Job,
    /// The rank that answers rank 0; not 0.
    pub partner: u32,
    /// Bytes of the message, a multiple of eight.
    pub size_bytes: u64,
    /// Rounds that count, at least 1.
    pub rounds: u32,
}

/// The outcome of a ping-pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The mean of half a round.
    pub latency: Time,
}

/// The rounds that count.
const ROUNDS: Span = Span::new("rounds", 0);

/// The last round has the number 1, the one before 0.
pub const LAST: &str = "last rounds";

/// The tag of MPI's messages.
const TAG: i32 = 0;

/// The address of the message in each rank's own memory: away from its beginning.
const MESSAGE: Own = Own(1 << 20);

impl PingPong {
    /// The bandwidth of an outcome, in MB/s: 10^6 bytes a second.
    pub fn bandwidth_mb_per_s(&self, outcome: &Outcome) -> f64 {
        self.size_bytes as f64 / outcome.latency.as_us()
    }
}

impl Measurement for PingPong {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        4 * u64::from(WARM_UP + self.rounds)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let job = &self.job;
        let bytes = job.machine.shape().buffer_bytes;
        let garbled: Arc<Mutex<Option<u32>>> = Arc::default();
        let mut observed = job.run(observe, |memory, rank| {
            let course = Course {
                rank,
                partner: self.partner,
                words: (self.size_bytes / 8) as usize,
                rounds: self.rounds,
                garbled: Arc::clone(&garbled),
            };
            let job = job.clone();
            async move {
                // Whether the library can be set up has been checked.
                if job.library == Library::Rcce {
                    if let Ok(rcce) = Rcce::new(memory.clone(), rank, job.ranks, bytes) {
                        let core = job.core(&memory);
                        course.run(&OverRcce(rcce, core), &memory).await;
                    }
                } else if let Ok(mpi) = job.mpi(&memory, rank) {
                    course.run(&OverMpi(mpi), &memory).await;
                }
            }
        })?;
        if let Some(rank) = *garbled.lock() {
            let call = "the ping-pong";
            return Err(Error::Garbled { call, rank });
        }
        let rounds = times(&observed.spans, ROUNDS.name);
        let all = rounds.last_end.since(rounds.first_begin).as_ps();
        let outcome = Outcome {
            latency: Time::from_ps(all / (2 * u64::from(self.rounds))),
        };
        observed.messages = 2 * u64::from(WARM_UP + self.rounds);
        Ok((outcome, observed))
    }
}

/// The course of one rank.
struct Course {
    rank: u32,
    partner: u32,
    words: usize,
    rounds: u32,
    /// The rank to which a message did not come as it was sent.
    garbled: Arc<Mutex<Option<u32>>>,
}

/// A library, as one rank uses it.
trait Messages: Sync {
    fn send(&self, to: u32, words: &[u64]) -> impl Future<Output = ()> + Send;

    fn receive(&self, from: u32, words: &mut [u64]) -> impl Future<Output = ()> + Send;
}

impl Course {
    async fn run(self, library: &impl Messages, memory: &ThreadMemory) {
        let other = match self.rank {
            0 => self.partner,
            rank if rank == self.partner => 0,
            _ => return,
        };
        let sent: Vec<u64> = (0..self.words as u64).map(|word| word << 8 | 1).collect();
        let mut came = vec![0; self.words];
        let rounds = WARM_UP + self.rounds;
        for round in 0..rounds {
            if self.rank == 0 && round == WARM_UP {
                memory.begin(ROUNDS).await;
            }
            // There are two rounds at least.
            let late = (round + 2).checked_sub(rounds).filter(|_| self.rank == 0);
            let late = late.map(|number| Span::new(LAST, number));
            if let Some(span) = late {
                memory.begin(span).await;
            }
            came.fill(0);
            if self.rank == 0 {
                library.send(other, &sent).await;
                library.receive(other, &mut came).await;
            } else {
                library.receive(other, &mut came).await;
                library.send(other, &came).await;
            }
            if came != sent {
                self.garbled.lock().get_or_insert(self.rank);
            }
            if let Some(span) = late {
                memory.end(span).await;
            }
        }
        if self.rank == 0 {
            memory.end(ROUNDS).await;
        }
    }
}

struct OverRcce(Rcce<ThreadMemory>, Core);

impl Messages for OverRcce {
    async fn send(&self, to: u32, words: &[u64]) {
        let call = "RCCE_send";
        self.1
            .enters(call, Some(to), size_of_val(words) as u64)
            .await;
        self.0.send(to, words, Some(MESSAGE)).await;
        self.1.leaves(call).await;
    }

    async fn receive(&self, from: u32, words: &mut [u64]) {
        let call = "RCCE_recv";
        self.1
            .enters(call, Some(from), size_of_val(words) as u64)
            .await;
        self.0.receive(from, words, Some(MESSAGE)).await;
        self.1.leaves(call).await;
    }
}

struct OverMpi(SimulatedMpi);

impl Messages for OverMpi {
    async fn send(&self, to: u32, words: &[u64]) {
        // The rank exists, and so does the tag; else nothing arrives, and the run ends with a
        // report.
        let words = Buffer::from(words).at(MESSAGE.0);
        let _ = self.0.world().send(words, to, TAG).await;
    }

    async fn receive(&self, from: u32, words: &mut [u64]) {
        let words = BufferMut::from(words).at(MESSAGE.0);
        let source = Source::Rank(from);
        let _ = self.0.world().receive(words, source, Tag::Is(TAG)).await;
    }
}
