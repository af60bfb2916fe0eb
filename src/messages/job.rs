//! A job of ranks on a machine, over a message library: simulated, and what is observed of it.

use std::cmp::Reverse;
use std::future::Future;
use std::sync::Arc;

use sme_memory::{Capabilities, Capability, Lacks, Place};
use sme_mpi::channel::buffers::{self, Buffers, NoRoom};
use sme_mpi::channel::shared::Shared;
use sme_mpi::error::MpiError;
use sme_mpi::rank::Mpi;
use sme_mpi::rcce::{self, RcceError};
use sme_mpi::window;
use sme_sim::machine::{CannotBuild, Machine, Setup};
use sme_sim::observe::calls::ThreadCall;
use sme_sim::observe::failure::Failure;
use sme_sim::observe::path::PathStep;
use sme_sim::observe::spans::{SpanTimes, Spans};
use sme_sim::observe::words;
use sme_sim::parts::contract::{Span, ThreadMemory};

use super::processor::Core;

/// A message library, and the channel below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// [`sme_mpi::rcce`]
    Rcce,
    /// MPI over [`sme_mpi::channel::buffers`].
    Sccmpb,
}

sme_barrier::names!(Library, "channel", { Rcce => "rcce", Sccmpb => "sccmpb" });

impl Library {
    /// Whether it has MPI's calls.
    pub fn is_mpi(self) -> bool {
        self != Self::Rcce
    }
}

/// The library as a rank of a simulated machine has it.
pub type SimulatedMpi = Mpi<Buffers<ThreadMemory, Core>>;

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The library.
    pub library: Library,
    /// Ranks of the job, each on the core of its number.
    pub ranks: u32,
}

/// The things that may be observed of a job, without any influence on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe {
    /// Every call of every rank.
    pub calls: bool,
    /// The critical path of the last of the spans of this name, which have the numbers from 0; for it the
    /// job is simulated once more.
    pub critical_path: Option<&'static str>,
}

/// The things that were observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// All spans.
    pub spans: Spans,
    /// The calls, each with its rank, in the order of their begins, of equal ones by rank.
    pub calls: Vec<(u32, ThreadCall)>,
    /// The critical path: contiguous steps, the first one first.
    pub critical_path: Vec<PathStep>,
    /// Simulated events.
    pub events: u64,
}

/// A reason for which a job has no outcome.
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
    /// A call has failed.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// The data that came are not those that were sent.
    #[error("the data of {call} did not arrive at rank {rank} as they were sent")]
    Garbled {
        /// The call.
        call: &'static str,
        /// The rank at which they arrived.
        rank: u32,
    },
}

impl Error {
    /// Whether something is wrong with what was asked for, and not with the simulation.
    pub fn is_of_input(&self) -> bool {
        !matches!(self, Self::Failure(_) | Self::Mpi(_) | Self::Garbled { .. })
    }
}

impl Job {
    /// Whether the machine can run it.
    ///
    /// # Errors
    /// [`Error`]
    pub fn check(&self) -> Result<(), Error> {
        let bytes = self.machine.shape().buffer_bytes;
        if bytes == 0 {
            return Err(Error::NoBuffers(self.machine.name().to_owned()));
        }
        let needs = [Capability::Tagged, Capability::AnyFlag, Capability::Timer];
        let needs = Capabilities::of(&needs);
        self.machine.suffices("a message library", needs)?;
        match self.library {
            Library::Rcce => rcce::check(self.ranks, bytes)?,
            Library::Sccmpb => buffers::check(self.ranks, bytes)?,
        }
        Ok(())
    }

    /// Whether ranks share memory with locks beside the channel.
    pub fn has_area(&self) -> bool {
        let needs = Capabilities::of(&[Capability::TestAndSet]);
        self.machine.suffices("a window", needs).is_ok()
    }

    /// The core of a rank that has `memory`.
    pub(super) fn core(&self, memory: &ThreadMemory) -> Core {
        Core::new(memory.clone(), self.machine.shape().software)
    }

    /// The MPI library of rank `rank`.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn mpi(&self, memory: &ThreadMemory, rank: u32) -> Result<SimulatedMpi, Error> {
        let shape = self.machine.shape();
        let bytes = shape.buffer_bytes;
        let core = self.core(memory);
        let channel = Buffers::new(memory.clone(), core.clone(), (rank, self.ranks), bytes)?;
        let behind = shape.shared_bytes.saturating_sub(bytes);
        Ok(Mpi::new(match self.has_area() {
            true => channel.with_area(Shared::new(memory.clone(), core, bytes, behind)),
            false => channel,
        }))
    }

    /// Runs `program` as each rank.
    ///
    /// # Errors
    /// [`Error`]
    pub fn run<F>(
        &self,
        observe: Observe,
        program: impl Fn(ThreadMemory, u32) -> F,
    ) -> Result<Observed, Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.check()?;
        let program = |memory: ThreadMemory, rank, _| program(memory, rank);
        let setup = Setup::new(self.machine.shape(), self.ranks, 1).with_each_span(observe.calls);
        let mut machine = self.machine.build(setup.clone(), program)?;
        let ended = machine.run(1, |_| {});
        ended.map_err(|failure| failure.named(&|place| self.named(place)))?;
        let calls = machine.each_call().map(|(rank, call)| (rank, *call));
        let mut calls: Vec<(u32, ThreadCall)> = calls.collect();
        calls.sort_by_key(|&(rank, call)| (call.begin, rank, Reverse(call.end)));
        let spans = machine.spans().clone();
        let critical_path = match observe.critical_path {
            Some(name) => match spans.called(name) {
                [.., before, last] => {
                    let mut again = self.machine.build(setup, program)?;
                    // From a span earlier, so that whatever is under way at the beginning is known.
                    again.trace_from(before.first_begin);
                    again.run(1, |_| {})?;
                    let number = spans.called(name).len() as u32 - 1;
                    let variable = |place| self.variable(place);
                    again.critical_path(Span::new(name, number), last.first_begin, &variable)
                }
                _ => Vec::new(),
            },
            None => Vec::new(),
        };
        Ok(Observed {
            events: machine.events(),
            critical_path,
            spans,
            calls,
        })
    }

    /// The name of the library's variable at `place`, if it is one.
    fn named(&self, place: Place) -> Option<String> {
        match self.library {
            Library::Rcce => rcce::variable(place, self.ranks),
            Library::Sccmpb => {
                let bytes = self.machine.shape().buffer_bytes;
                match place.offset.checked_sub(bytes) {
                    None => buffers::variable(place, self.ranks, bytes),
                    Some(offset) => window::variable(Place { offset, ..place }, self.ranks),
                }
            }
        }
    }

    /// The same, or the place in words.
    fn variable(&self, place: Place) -> String {
        self.named(place).unwrap_or_else(|| words::place(place))
    }
}

/// The times of the only span called `name`.
pub(super) fn times(spans: &Spans, name: &str) -> SpanTimes {
    spans
        .called(name)
        .first()
        .copied()
        .unwrap_or(SpanTimes::NONE)
}
