//! A cluster of nodes with Shared Memory Engines.
//!
//! A node (`node`) is made of cores (`core`, `stores`, `operate`: how an operation is performed),
//! one coherent domain (`domain`), the way to the engine and back (`host`), the operating system's
//! part (`system`) and an engine ([`crate::engine`]). [`Cluster`] builds nodes, runs programs on
//! them, and says what came out, or why it got stuck (`failure`).

mod agenda;
mod caches;
mod constants;
mod content;
mod core;
mod cores;
mod critical_path;
mod domain;
mod failure;
mod host;
mod log;
mod mark;
mod node;
pub mod noise;
mod operate;
pub(crate) mod pins;
mod record;
mod stores;
mod system;
mod tables;
mod trace;
mod watched;
mod way;

use std::future::Future;
use std::sync::Arc;

pub use caches::CacheTraffic;
pub use constants::{Pinning, Setup};
pub use critical_path::PathStep;
pub use failure::{Failure, Stuck};
pub use mark::Part;
pub use record::{EpisodeTimes, Traffic, Visit};
pub use watched::{Plugged, Watched};

use sme_memory::Place;

use crate::engine::waves::Recorder;
use crate::engine::{Design, DesignError, EngineModel, Inspect};
use crate::kernel::thread::{self, ThreadMemory};
use crate::kernel::window::{self, Verdict};
use crate::staleness::{Checker, StaleReport, TooManyThreads};
use crate::time::Time;
use constants::Constants;
use log::Log;
use node::Node;
use trace::Trace;

/// Simulated time after which the checker of loads is told what has happened meanwhile: short, since
/// that takes memory.
const CHECKED_AT_ONCE: Time = Time::from_ns(20_000);

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Episodes that every thread has left, the warm-up included.
    pub episodes: u32,
    /// Events so far.
    pub events: u64,
}

/// A cluster with a program on every thread.
pub struct Cluster<F, E = Watched> {
    nodes: Vec<Node<F, E>>,
    constants: Arc<Constants>,
    end: Time,
    checker: Option<Checker>,
}

/// One virtual channel of one directed link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLoad {
    /// Position the link leaves.
    pub from: u32,
    /// Position it leads to.
    pub to: u32,
    /// Virtual channel.
    pub channel: u32,
    /// Bytes sent in the counted episodes.
    pub bytes: u64,
    /// Packets sent in the counted episodes.
    pub packets: u64,
    /// Share of the run's time, warm-up included, in which the link was taken by this channel.
    pub busy_fraction: f64,
    /// Share of the run's time in which the channel's first packet waited for the link or a credit.
    pub stall_fraction: f64,
}

impl<F: Future<Output = ()> + Send> Cluster<F, Watched> {
    /// A cluster whose engines are cycle models. `program` gives the program of each thread from
    /// its view of memory, its node and its number there.
    ///
    /// # Errors
    /// [`DesignError`] if no engine can be built as the machine wants it.
    pub fn new(
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
    ) -> Result<Self, DesignError> {
        let hosts = setup.nodes;
        let design = Arc::new(Design::new(&setup.spec, &setup.topology, hosts)?);
        Ok(Self::with_plugged(setup, program, |position| {
            Plugged::cycle(&design, position, hosts)
        }))
    }

    /// A cluster into whose positions `engine(position)` is plugged.
    pub fn with_plugged(
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
        mut engine: impl FnMut(u32) -> Plugged,
    ) -> Self {
        let (spec, hosts) = (setup.spec.clone(), setup.nodes);
        Self::with_engines(setup, program, |position| {
            Watched::new(engine(position), &spec, position, hosts)
        })
    }

    /// The load of every link, by from, to and channel.
    pub fn link_loads(&self) -> Vec<LinkLoad> {
        let cycles = self.constants.engine_clock.first_edge_from(self.end).max(1) as f64;
        let mut loads = Vec::new();
        for node in &self.nodes {
            for (port, channels) in node.engine().engine().counters().links.iter().enumerate() {
                let neighbour = self.constants.topology.neighbour(node.me, port as u8);
                let Some((to, _)) = neighbour else {
                    continue;
                };
                loads.extend(channels.iter().enumerate().map(|(channel, c)| {
                    let (bytes, packets) = node.record().over_link(port as u8, channel as u8);
                    LinkLoad {
                        from: node.me,
                        to,
                        channel: channel as u32,
                        bytes,
                        packets,
                        busy_fraction: c.busy_cycles as f64 / cycles,
                        stall_fraction: c.stall_cycles as f64 / cycles,
                    }
                }));
            }
        }
        loads.sort_by_key(|load| (load.from, load.to, load.channel));
        loads
    }

    /// Whether nothing is under way any more: every posted store has been performed, every buffer,
    /// slot and queue is empty, every credit is back. So it is after a run that ended well.
    pub fn is_quiet(&self) -> bool {
        let sum = |of: fn(&host::Bridge) -> u64| self.nodes.iter().map(|n| of(&n.bridge)).sum();
        let (posted, performed): (u64, u64) = (sum(|b| b.posted), sum(|b| b.performed));
        posted == performed
            && self
                .nodes
                .iter()
                .all(|n| n.is_quiet() && n.engine().engine().is_quiet())
    }

    /// Bytes of simulator state per simulated thread, of a run its peak: nothing here is given back
    /// before the end. Counted is whatever there is for each node and each thread: programs, cores,
    /// caches and memory, events, engines; the heap by its capacity, without what the allocator adds
    /// to each piece. Not counted are what all share (the machine's constants, the barrier), the
    /// messages between nodes during one window, checkers of debug builds, traces, and the results:
    /// the times of each episode.
    pub fn bytes_per_thread(&self) -> u64 {
        let threads: usize = self.nodes.iter().map(|n| n.cores.len()).sum();
        let bytes: usize = self
            .nodes
            .iter()
            .map(|n| n.bytes() + n.engine().engine().state_bytes() + window::BYTES_PER_NODE)
            .sum();
        (bytes / threads.max(1)) as u64
    }
}

impl<F: Future<Output = ()> + Send, E: EngineModel> Cluster<F, E> {
    /// A cluster whose engine at each position is `engine(position)`.
    pub fn with_engines(
        setup: Setup,
        mut program: impl FnMut(ThreadMemory, u32, u32) -> F,
        mut engine: impl FnMut(u32) -> E,
    ) -> Self {
        let (nodes, threads, visits) = (setup.nodes, setup.threads, setup.visits);
        let positions = setup.topology.positions();
        let constants = Arc::new(Constants::new(setup));
        let map = Arc::new(constants.map);
        let nodes = (0..positions)
            .map(|position| {
                let threads = if position < nodes { threads } else { 0 };
                let programs = (0..threads)
                    .map(|core| {
                        let memory = ThreadMemory::new(Arc::clone(&map), position, core);
                        program(memory, position, core)
                    })
                    .collect();
                Node::new(
                    position,
                    Arc::clone(&constants),
                    programs,
                    engine(position),
                    visits,
                )
            })
            .collect();
        Self {
            nodes,
            constants,
            end: Time::ZERO,
            checker: None,
        }
    }

    /// Runs until every program has ended, with `workers` threads of the host; `watch` is told
    /// now and then how far it has come. The outcome does not depend on `workers`.
    ///
    /// # Errors
    /// [`Failure::Fault`] if an access could not be performed, [`Failure::Deadlock`] if threads
    /// wait for what can never happen, [`Failure::Overtaken`] if a thread left a barrier before
    /// the last had arrived.
    pub fn run(&mut self, workers: usize, mut watch: impl FnMut(Progress)) -> Result<(), Failure> {
        // What a run that panicked on this thread of the host has left there.
        drop(thread::take_back());
        let lookahead = self.constants.lookahead();
        // Long enough that most polling loads are answered meanwhile; looking costs host time.
        let threads: u64 = self.nodes.iter().map(|n| n.cores.len() as u64).sum();
        let patience = Time::from_ns(1_000_000 + 1_000 * threads);
        let pause = match self.checker {
            Some(_) => patience.min(CHECKED_AT_ONCE),
            None => patience,
        };
        let mut before: Option<failure::Standstill> = None;
        let mut look_at = Time::ZERO;
        let checker = &mut self.checker;
        self.end = window::run(&mut self.nodes, lookahead, workers, |now, nodes| {
            watch(progress(now, nodes));
            if let Some(checker) = checker {
                log::drain(nodes, checker);
                if now < look_at {
                    return (Verdict::Continue, now + pause);
                }
            }
            look_at = now + patience;
            let state = failure::standstill(nodes);
            let same = state.as_ref().zip(before.as_ref());
            let stuck = same.is_some_and(|(state, before)| state.lasts_since(before));
            if stuck || nodes.iter().any(|n| n.fault.is_some()) {
                return (Verdict::Stop, now);
            }
            // The first of equal states is kept: looks are counted from there.
            if !same.is_some_and(|(state, before)| state.is_as(before)) {
                before = state;
            }
            (Verdict::Continue, now + pause)
        });
        if let Some(checker) = &mut self.checker {
            log::drain(&self.nodes, checker);
        }
        watch(progress(self.end, &self.nodes));
        self.check()
    }

    fn check(&self) -> Result<(), Failure> {
        if let Some(fault) = failure::first_fault(&self.nodes) {
            return Err(fault);
        }
        if self.nodes.iter().any(|n| n.threads.unfinished() > 0) {
            return Err(failure::deadlock(&self.nodes, self.end));
        }
        for (episode, times) in self.episodes().into_iter().enumerate() {
            if times.first_departure < times.last_arrival {
                return Err(Failure::Overtaken {
                    episode: episode as u32,
                    first_departure: times.first_departure,
                    last_arrival: times.last_arrival,
                });
            }
        }
        self.nodes.iter().for_each(|node| node.engine().ended());
        Ok(())
    }

    /// Arrivals and departures over all nodes, by episode, the warm-up first.
    pub fn episodes(&self) -> Vec<EpisodeTimes> {
        let count = self.nodes.iter().map(|n| n.record().episodes.len()).max();
        let mut all = vec![EpisodeTimes::NONE; count.unwrap_or(0)];
        for node in &self.nodes {
            for (sum, times) in all.iter_mut().zip(&node.record().episodes) {
                *sum = sum.and(*times);
            }
        }
        all
    }

    /// Traffic over all nodes in the counted episodes.
    pub fn traffic(&self) -> Traffic {
        let mut all = Traffic::default();
        for traffic in self.nodes.iter().map(|n| n.record().traffic) {
            all.remote_loads += traffic.remote_loads;
            all.remote_stores += traffic.remote_stores;
            all.link_bytes += traffic.link_bytes;
        }
        all
    }

    /// What went through the caches of memory behind the engine, over all nodes and all episodes.
    pub fn cache_traffic(&self) -> CacheTraffic {
        let mut all = CacheTraffic::default();
        for caches in self.nodes.iter().filter_map(|node| node.caches.as_ref()) {
            all += caches.traffic();
        }
        all
    }

    /// Lets the next run's loads be checked: see [`crate::staleness`]. That costs time and memory of
    /// the host and has no influence on what is simulated.
    ///
    /// # Errors
    /// [`TooManyThreads`] if there are more than the checker tells apart.
    pub fn check_loads(&mut self) -> Result<(), TooManyThreads> {
        let hosts = self.nodes.iter().filter(|node| !node.cores.is_empty());
        let threads = self.nodes.first().map_or(0, |node| node.cores.len()) as u32;
        self.checker = Some(Checker::new(hosts.count() as u32, threads)?);
        for node in &mut self.nodes {
            node.log = Some(Box::new(Log::new(threads)));
        }
        Ok(())
    }

    /// Tells the checker of loads, if there is one, that the word at `place` synchronizes threads as
    /// a flag does: [`Checker::synchronizing`]. Flags and atomic operations need no declaration.
    pub fn synchronizing(&mut self, place: Place) {
        if let Some(checker) = &mut self.checker {
            checker.synchronizing(place);
        }
    }

    /// What was found, if loads were checked.
    pub fn stale_reads(&mut self) -> Option<StaleReport> {
        self.checker.take().map(Checker::finish)
    }

    /// Lets the memory of `place.node` hold `value` in the word at `place` from the beginning: as if
    /// a program had been loaded. No copy of it may have been made yet. If loads are to be checked,
    /// that must have been said before.
    pub fn preset(&mut self, place: Place, value: u64) {
        let physical = self.constants.map.physical(place.offset);
        if let Some(checker) = &mut self.checker {
            checker.initial(place, value);
        }
        if let Some(node) = self.nodes.get_mut(place.node as usize) {
            node.domain.preset(physical, value);
        }
    }

    /// What the word at `place` holds at its home: what a load there would bring. Stores that have
    /// not been performed, and what another node's caches have not written back, are not in it.
    pub fn at_home(&self, place: Place) -> u64 {
        let physical = self.constants.map.physical(place.offset);
        let node = self.nodes.get(place.node as usize);
        node.map_or(0, |node| node.domain.word(physical))
    }

    /// Every visit to a barrier by node, in the order of departure there, if that was asked for.
    pub fn visits(&self) -> impl Iterator<Item = (u32, &Visit)> {
        self.nodes
            .iter()
            .flat_map(|n| n.record().visits().map(|v| (n.me, v)))
    }

    /// Lets `waves` record the ports of the engines it has chosen, whatever they are made of. It has
    /// no influence on what is simulated; [`Recorder::write_until`] is for whoever runs the cluster.
    pub fn record_waves(&mut self, waves: &Recorder) {
        for node in &mut self.nodes {
            if let Some(tap) = waves.tap(node.me) {
                node.record_waves(tap);
            }
        }
    }

    /// Lets the next run be traced from `from` on, for [`Self::critical_path`]. Tracing costs time
    /// and memory of the host and has no influence on what is simulated.
    pub fn trace_from(&mut self, from: Time) {
        for node in &mut self.nodes {
            let trace = Trace::new(&self.constants, node.me, node.cores.len(), from);
            node.agenda.set_trace(trace);
        }
    }

    /// What made `episode` (the warm-up is 0) take as long as it did: contiguous steps from the
    /// last departure of the episode before to its own, the first step first. Variables are called
    /// what `name` calls the places where they lie.
    ///
    /// The run must have been traced from the last departure of the episode before the one before,
    /// or from an earlier time. Empty without a trace, and for an episode that has not ended.
    pub fn critical_path(&self, episode: u32, name: &dyn Fn(Place) -> String) -> Vec<PathStep> {
        let departures: Vec<Time> = self.episodes().iter().map(|e| e.last_departure).collect();
        let before = (episode as usize).checked_sub(1);
        let start = before.map_or(Some(Time::ZERO), |before| departures.get(before).copied());
        match start {
            Some(start) => critical_path::critical_path(&self.nodes, episode, start, name),
            None => Vec::new(),
        }
    }

    /// Simulated events: what happened at nodes, and clock edges at which an engine did something.
    pub fn events(&self) -> u64 {
        self.nodes.iter().map(|n| n.events).sum()
    }

    /// When the last event happened, to within a window.
    pub fn end(&self) -> Time {
        self.end
    }
}

fn progress<F: Future<Output = ()>, E: EngineModel>(now: Time, nodes: &[Node<F, E>]) -> Progress {
    // Not of nodes whose threads take no part; where one has not come yet, no episode has ended.
    let episodes = nodes
        .iter()
        .map(|n| n.record().episodes.len())
        .filter(|&episodes| episodes > 0)
        .min();
    Progress {
        now,
        episodes: episodes.unwrap_or(0).saturating_sub(1) as u32,
        events: nodes.iter().map(|n| n.events).sum(),
    }
}
