//! Ping-pong: two ranks send each other a message in turn, the rest of the job being idle. Half of a round
//! is the latency, and the message over it the bandwidth.
//!
//! The message lies at the same place of each rank's own memory in every round, so that it is in the
//! caches as far as it fits: after two rounds that do not count.

use std::sync::Arc;

use sme_memory::{Capabilities, Capability, Lacks, Own};
use sme_mpi::rcce::{self, Rcce, RcceError};
use sme_sim::machine::{CannotBuild, Machine, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

/// The library whose messages are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// [`sme_mpi::rcce`]
    Rcce,
}

sme_barrier::names!(Library, "channel", { Rcce => "rcce" });

/// A ping-pong.
#[derive(Clone, Debug)]
pub struct PingPong {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The library.
    pub library: Library,
    /// Ranks of the job, each on the core of its number.
    pub ranks: u32,
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
    /// Messages of the run, those that do not count included.
    pub messages: u64,
    /// Simulated events.
    pub events: u64,
}

/// Why a ping-pong has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot do what the library needs.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The machine has no message passing buffers.
    #[error("RCCE needs message passing buffers, which machine {0} does not have")]
    NoBuffers(String),
    /// The library cannot be set up.
    #[error(transparent)]
    Rcce(#[from] RcceError),
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// A message did not arrive as it was sent.
    #[error("the message of rank {0} did not arrive as it was sent")]
    Garbled(u32),
}

/// Rounds that do not count.
const WARM_UP: u32 = 2;

/// The rounds that count.
const ROUNDS: Span = Span::new("rounds", 0);

/// Where the message lies in each rank's own memory: away from its beginning.
const MESSAGE: Own = Own(1 << 20);

impl PingPong {
    /// Simulates it.
    ///
    /// # Errors
    /// [`Error`]
    pub fn run(&self) -> Result<Outcome, Error> {
        let Library::Rcce = self.library;
        let needs = Capabilities::of(&[Capability::Tagged]);
        self.machine.suffices("RCCE", needs)?;
        let shape = self.machine.shape();
        let (ranks, bytes) = (self.ranks, shape.buffer_bytes);
        if bytes == 0 {
            return Err(Error::NoBuffers(self.machine.name().to_owned()));
        }
        let (partner, rounds) = (self.partner, self.rounds);
        let words = (self.size_bytes / 8) as usize;
        // Each rank would find out the same.
        rcce::check(ranks, bytes)?;
        let garbled: Arc<parking_lot::Mutex<Option<u32>>> = Arc::default();
        let program = |memory: ThreadMemory, rank, _| {
            let garbled = Arc::clone(&garbled);
            async move {
                let Ok(rcce) = Rcce::new(memory, rank, ranks, bytes) else {
                    return;
                };
                let sent: Vec<u64> = (0..words as u64).map(|word| word << 8 | 1).collect();
                let mut came = vec![0; words];
                for round in 0..WARM_UP + rounds {
                    if rank == 0 && round == WARM_UP {
                        rcce.memory().begin(ROUNDS).await;
                    }
                    came.fill(0);
                    if rank == 0 {
                        rcce.send(partner, &sent, Some(MESSAGE)).await;
                        rcce.receive(partner, &mut came, Some(MESSAGE)).await;
                    } else if rank == partner {
                        rcce.receive(0, &mut came, Some(MESSAGE)).await;
                        rcce.send(0, &came, Some(MESSAGE)).await;
                    }
                    if (rank == 0 || rank == partner) && came != sent {
                        garbled.lock().get_or_insert(partner - rank);
                    }
                }
                if rank == 0 {
                    rcce.memory().end(ROUNDS).await;
                }
            }
        };
        let setup = Setup::new(shape, ranks, 1);
        let mut machine = self.machine.build(setup, program)?;
        machine.run(1, |_| {})?;
        if let Some(rank) = *garbled.lock() {
            return Err(Error::Garbled(rank));
        }
        let spans = machine.spans().called(ROUNDS.name);
        let SpanTimes {
            first_begin,
            last_end,
            ..
        } = spans.first().copied().unwrap_or(SpanTimes::NONE);
        let all = last_end.since(first_begin).as_ps();
        Ok(Outcome {
            latency: Time::from_ps(all / (2 * u64::from(rounds))),
            messages: 2 * u64::from(WARM_UP + rounds),
            events: machine.events(),
        })
    }

    /// The bandwidth of an outcome, in MB/s: 10^6 bytes a second.
    pub fn bandwidth_mb_per_s(&self, outcome: &Outcome) -> f64 {
        self.size_bytes as f64 / outcome.latency.as_us()
    }
}
