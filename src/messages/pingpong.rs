//! Ping-pong: two ranks send each other a message in turn, the rest of the job being idle. Half of a round
//! is the latency, and the message over it the bandwidth.
//!
//! The message lies at the same place of each rank's own memory in every round, so that it is in the
//! caches as far as it fits: after two rounds that do not count.

use std::cmp::Reverse;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Capabilities, Capability, Lacks, Own, Place};
use sme_mpi::channel::Processor;
use sme_mpi::channel::buffers::{self, Buffers, NoRoom};
use sme_mpi::rank::{Mpi, Source, Tag};
use sme_mpi::rcce::{self, Rcce, RcceError};
use sme_sim::machine::{CannotBuild, Machine, Setup};
use sme_sim::observe::calls::ThreadCall;
use sme_sim::observe::failure::Failure;
use sme_sim::observe::path::PathStep;
use sme_sim::observe::spans::SpanTimes;
use sme_sim::observe::words;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::processor::Core;

/// The library whose messages are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// [`sme_mpi::rcce`]
    Rcce,
    /// MPI over [`sme_mpi::channel::buffers`].
    Sccmpb,
}

sme_barrier::names!(Library, "channel", { Rcce => "rcce", Sccmpb => "sccmpb" });

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

/// The things that may be observed of a ping-pong, without any influence on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe {
    /// Every call of every rank.
    pub calls: bool,
    /// The critical path of the last round, for which all rounds are simulated once more.
    pub critical_path: bool,
}

/// A ping-pong, and what was observed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its outcome.
    pub outcome: Outcome,
    /// The calls, each with its rank, in the order of their begins, of equal ones by rank.
    pub calls: Vec<(u32, ThreadCall)>,
    /// The critical path: contiguous steps, the first one first.
    pub critical_path: Vec<PathStep>,
}

/// A reason for which a ping-pong has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot do what the library needs.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The machine has no message passing buffers.
    #[error("the channels need message passing buffers, which machine {0} does not have")]
    NoBuffers(String),
    /// The library cannot be set up.
    #[error(transparent)]
    Rcce(#[from] RcceError),
    /// The channel has no room.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
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

/// The last round; the one before has the number 0.
const LAST: Span = Span::new("last rounds", 1);

/// The tag of MPI's messages.
const TAG: i32 = 0;

/// The address of RCCE's message in each rank's own memory: away from its beginning.
const MESSAGE: Own = Own(1 << 20);

impl PingPong {
    /// Simulates it.
    ///
    /// # Errors
    /// [`Error`]
    pub fn run(&self) -> Result<Outcome, Error> {
        let observed = self.observed(Observe::default())?;
        Ok(observed.outcome)
    }

    /// The same, with what `observe` asks for.
    ///
    /// # Errors
    /// [`Error`]
    pub fn observed(&self, observe: Observe) -> Result<Observed, Error> {
        let bytes = self.machine.shape().buffer_bytes;
        if bytes == 0 {
            return Err(Error::NoBuffers(self.machine.name().to_owned()));
        }
        let needs = [Capability::Tagged, Capability::AnyFlag, Capability::Timer];
        let needs = Capabilities::of(&needs);
        self.machine.suffices("a message library", needs)?;
        let ranks = self.ranks;
        let software = self.machine.shape().software;
        match self.library {
            Library::Rcce => {
                // Each rank would find out the same.
                rcce::check(ranks, bytes)?;
                self.measure(observe, move |memory, rank, course| async move {
                    let core = Core::new(memory.clone(), software);
                    if let Ok(rcce) = Rcce::new(memory.clone(), rank, ranks, bytes) {
                        course.run(&OverRcce(rcce, core), &memory).await;
                    }
                })
            }
            Library::Sccmpb => {
                buffers::check(ranks, bytes)?;
                self.measure(observe, move |memory, rank, course| async move {
                    let core = Core::new(memory.clone(), software);
                    let channel = Buffers::new(memory.clone(), core, (rank, ranks), bytes);
                    if let Ok(channel) = channel {
                        course.run(&OverMpi(Mpi::new(channel)), &memory).await;
                    }
                })
            }
        }
    }

    /// Runs `program` as each rank; it is told the rank's course.
    fn measure<F>(
        &self,
        observe: Observe,
        program: impl Fn(ThreadMemory, u32, Course) -> F,
    ) -> Result<Observed, Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let garbled: Arc<Mutex<Option<u32>>> = Arc::default();
        let program = |memory: ThreadMemory, rank, _| {
            let course = Course {
                rank,
                partner: self.partner,
                words: (self.size_bytes / 8) as usize,
                rounds: self.rounds,
                garbled: Arc::clone(&garbled),
            };
            program(memory, rank, course)
        };
        let setup = Setup::new(self.machine.shape(), self.ranks, 1).with_each_span(observe.calls);
        let mut machine = self.machine.build(setup.clone(), program)?;
        let ended = machine.run(1, |_| {});
        ended.map_err(|failure| failure.named(&|place| self.named(place)))?;
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
        let mut calls: Vec<(u32, ThreadCall)> = machine
            .each_call()
            .map(|(rank, call)| (rank, *call))
            .collect();
        calls.sort_by_key(|&(rank, call)| (call.begin, rank, Reverse(call.end)));
        let critical_path = match machine.spans().called(LAST.name) {
            &[before, last] if observe.critical_path => {
                let mut again = self.machine.build(setup, program)?;
                // From a round earlier, so that whatever is under way at the beginning is known.
                again.trace_from(before.first_begin);
                again.run(1, |_| {})?;
                let name = |place| self.variable(place);
                again.critical_path(LAST, last.first_begin, &name)
            }
            _ => Vec::new(),
        };
        let outcome = Outcome {
            latency: Time::from_ps(all / (2 * u64::from(self.rounds))),
            messages: 2 * u64::from(WARM_UP + self.rounds),
            events: machine.events(),
        };
        Ok(Observed {
            outcome,
            calls,
            critical_path,
        })
    }

    /// The name of the library's variable at `place`, if it is one.
    fn named(&self, place: Place) -> Option<String> {
        match self.library {
            Library::Rcce => rcce::variable(place, self.ranks),
            Library::Sccmpb => {
                let bytes = self.machine.shape().buffer_bytes;
                buffers::variable(place, self.ranks, bytes)
            }
        }
    }

    /// The same, or the place in words.
    fn variable(&self, place: Place) -> String {
        self.named(place).unwrap_or_else(|| words::place(place))
    }

    /// The number of calls of all its ranks.
    pub fn calls(&self) -> u64 {
        4 * u64::from(WARM_UP + self.rounds)
    }

    /// The bandwidth of an outcome, in MB/s: 10^6 bytes a second.
    pub fn bandwidth_mb_per_s(&self, outcome: &Outcome) -> f64 {
        self.size_bytes as f64 / outcome.latency.as_us()
    }
}

/// The course of one rank.
struct Course {
    rank: u32,
    partner: u32,
    words: usize,
    rounds: u32,
    /// The sender of a message that did not arrive as it was sent.
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
            let late = late.map(|number| Span::new(LAST.name, number));
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
                self.garbled.lock().get_or_insert(other);
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

struct OverMpi(Mpi<Buffers<ThreadMemory, Core>>);

impl Messages for OverMpi {
    async fn send(&self, to: u32, words: &[u64]) {
        // The rank exists, and so does the tag; else nothing arrives, and the run ends with a report.
        let _ = self.0.world().send(words, to, TAG).await;
    }

    async fn receive(&self, from: u32, words: &mut [u64]) {
        let _ = self
            .0
            .world()
            .receive(words, Source::Rank(from), Tag::Is(TAG))
            .await;
    }
}
