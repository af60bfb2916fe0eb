//! The traits that a family of machines must provide, and the machine of any family on which
//! programs run.
//!
//! A family reads its constants from a machine file ([`super::Machine`]) into a value that
//! implements [`Family`]. That says what the machine's [`Shape`] is and what its programs can ask
//! for, and builds a [`Readable`]: the machine with a program on every thread. The code that runs a
//! machine needs to know no more.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;

use sme_memory::{Capabilities, Memory, Place};

use super::shape::{Setup, Shape};
use crate::kernel::peers::{Alone, Peers};
use crate::kernel::thread::Programs;
use crate::kernel::window::Exchanged;
use crate::observe::calls::ThreadCall;
use crate::observe::energy::Energy;
use crate::observe::failure::Failure;
use crate::observe::gauge::Progress;
use crate::observe::log;
use crate::observe::path::{End, PathStep};
use crate::observe::spans::{Spans, ThreadSpan};
use crate::observe::staleness::{StaleLoad, StaleReport, TooManyThreads};
use crate::observe::timeline::{Arrow, Recorded, TooManyNodes, Wait};
use crate::observe::traffic::{CacheTraffic, LinkLoad, Traffic};
use crate::observe::unwritten::Unwritten;
use crate::parts::contract::ThreadMemory;
use crate::time::Time;

/// A machine of one family, by its constants.
pub trait Family: Any + fmt::Debug + Send + Sync {
    /// Its numbers.
    fn shape(&self) -> Shape;

    /// Its capabilities.
    fn capabilities(&self) -> Capabilities;

    /// The machine as `setup` wants it, shared with `peers`; `threads` gives the programs of a
    /// node's threads from their views of memory. Of a machine that several processes share, this
    /// process has a contiguous part of the positions.
    ///
    /// # Errors
    /// [`CannotBuild`] if the constants make no such machine.
    fn build(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Result<Box<dyn Readable>, CannotBuild>;
}

/// Gives the programs of a node's threads, each of which has one of these views of memory.
pub type NodeThreads<'a> = dyn FnMut(Vec<ThreadMemory>) -> Box<dyn Programs> + 'a;

/// Starts `program` with each of `memories`, its node and its number there.
pub fn started<F>(
    memories: Vec<ThreadMemory>,
    program: &mut impl FnMut(ThreadMemory, u32, u32) -> F,
) -> impl Iterator<Item = F> {
    let program = move |memory: ThreadMemory| {
        let (node, thread) = (memory.node(), memory.thread());
        program(memory, node, thread)
    };
    memories.into_iter().map(program)
}

/// A machine whose constants make none, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotBuild(pub String);

/// A machine with a program on every thread. Results of single nodes, links and threads are of this
/// process's only; sums are those of all processes, once a run has ended.
pub trait System {
    /// Runs until every program has ended, together with the `peers` with whom it was built, by
    /// `workers` threads of the host; `watch` is told now and then how far it has come. The outcome
    /// depends neither on `workers` nor on `peers`.
    ///
    /// # Errors
    /// [`Failure::Fault`] if an access could not be performed, [`Failure::Deadlock`] if threads
    /// wait for what can never happen, [`Failure::TooLong`] if the simulator's clock would
    /// overflow, [`Failure::Peers`] if a process has gone.
    fn run_among(
        &mut self,
        peers: &mut dyn Peers,
        workers: usize,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(), Failure>;

    /// The spans of all threads.
    fn spans(&self) -> &Spans;

    /// Traffic between nodes, of what counts.
    fn traffic(&self) -> Traffic;

    /// The load of every link, by from, to and channel.
    fn link_loads(&self) -> Vec<LinkLoad>;

    /// Simulated events.
    fn events(&self) -> u64;

    /// The time of the last event. The end of a quantum is an event, even if no thread waits for
    /// the core.
    fn end(&self) -> Time;

    /// Returns the traffic with other processes in the last run.
    fn exchanged(&self) -> Exchanged;

    /// Bytes of simulator state per simulated thread, of a run its peak.
    fn bytes_per_thread(&self) -> u64;
}

/// A machine that can be looked into: its memory, its threads one by one, what caused what.
pub trait Readable: System {
    /// Every span of every thread by node, in the order in which they ended there, if that was
    /// asked for.
    fn each_span(&self) -> Box<dyn Iterator<Item = (u32, &ThreadSpan)> + '_>;

    /// Every call of a library that a thread has left, by node, in the order in which they ended
    /// there, if every span was asked for.
    fn each_call(&self) -> Box<dyn Iterator<Item = (u32, &ThreadCall)> + '_>;

    /// Returns the traffic of caches of memory that nothing keeps coherent between nodes.
    fn cache_traffic(&self) -> CacheTraffic;

    /// The energy that all of it has taken until the last program ended, where its file has figures
    /// of power.
    fn energy(&self) -> Option<Energy>;

    /// Lets the memory of `place.node` hold `value` in the word at `place` from the beginning: as
    /// if a program had been loaded. If loads are to be checked, that must have been said before.
    fn preset(&mut self, place: Place, value: u64);

    /// Lets the next run keep when and by which threads the words at `places` were written last,
    /// for the report of a deadlock. Has no influence on what is simulated.
    fn keep_last_writes(&mut self, places: &[Place]);

    /// Returns the value of the word at `place` at its home: the one that a load there would bring.
    /// Stores that have not been performed, and what another node's caches have not written back,
    /// are not in it.
    fn at_home(&self, place: Place) -> u64;

    /// The number of words of which a cache still holds newer bytes than their homes, for each
    /// cache that does, and the first `most` of them by place: what has been stored and not written
    /// back.
    fn unwritten(&self, most: usize) -> (u64, Vec<Unwritten>);

    /// Lets the next run's loads be checked: see [`crate::observe::staleness`]. That costs time and
    /// memory of the host and has no influence on what is simulated.
    ///
    /// # Errors
    /// [`TooManyThreads`] if there are more than the checker tells apart.
    fn check_loads(&mut self) -> Result<(), TooManyThreads>;

    /// Tells the checker of loads, if there is one, that the word at `place` synchronizes threads
    /// as a flag does. Flags and atomic operations need no declaration.
    fn synchronizing(&mut self, place: Place);

    /// Lets `each` be told of every load that is stale, or stale but equal, if loads are checked.
    /// They come in the order of time, of equal times those of the first node first, of one node as
    /// it performed them.
    fn list_stale(&mut self, each: Box<dyn FnMut(&StaleLoad) + Send>);

    /// Returns the stale reads that were found, if loads were checked.
    fn stale_reads(&mut self) -> Option<StaleReport>;

    /// Lets the next run's waits be recorded, and the writes of flags that threads have seen. That
    /// costs time and memory of the host and has no influence on what is simulated.
    ///
    /// # Errors
    /// [`TooManyNodes`] if there are more than a timeline tells apart.
    fn record_timeline(&mut self) -> Result<(), TooManyNodes>;

    /// The waits of all threads, by node, in the order of their ends there, if they were recorded.
    fn waits(&self) -> Box<dyn Iterator<Item = &Wait> + '_>;

    /// From writes of flags to threads that saw them, in the order in which they were seen, if that
    /// was recorded.
    fn arrows(&self) -> &[Arrow];

    /// Lets the next run be traced from `from` on, for [`Self::critical_path`]. Tracing costs time
    /// and memory of the host and has no influence on what is simulated.
    fn trace_from(&mut self, from: Time);

    /// Returns the chain of causes by which `end` was reached as late as it was: contiguous steps
    /// from `start` to where the last thread reached it, the first step first. `name` names the
    /// variables at the places where they lie.
    ///
    /// The run must have been traced from a time before `start` on, so that what was under way then
    /// is known. Empty without a trace, and for an end that no thread has reached.
    fn critical_path(&self, end: End, start: Time, name: &dyn Fn(Place) -> String)
    -> Vec<PathStep>;
}

impl dyn Readable + '_ {
    /// [`System::run_among`] in one process.
    ///
    /// # Errors
    /// As there.
    pub fn run(&mut self, workers: usize, mut watch: impl FnMut(Progress)) -> Result<(), Failure> {
        self.run_among(&mut Alone, workers, &mut watch)
    }

    /// The recorded activity of the threads of a run, with flags named by `name`. Spans are there
    /// only if the machine was built to keep [each of them](super::Setup::with_each_span).
    pub fn recorded(&self, name: &dyn Fn(Place) -> String) -> Recorded {
        let named = |flag| log::lifetime(flag).unwrap_or_else(|| name(flag));
        let mut names = HashMap::new();
        for Arrow { flag, .. } in self.arrows() {
            names.entry(*flag).or_insert_with(|| named(*flag));
        }
        Recorded {
            spans: self.each_span().map(|(node, span)| (node, *span)).collect(),
            calls: self.each_call().map(|(node, call)| (node, *call)).collect(),
            waits: self.waits().copied().collect(),
            arrows: self.arrows().to_vec(),
            names,
            roles: HashMap::new(),
        }
    }
}
