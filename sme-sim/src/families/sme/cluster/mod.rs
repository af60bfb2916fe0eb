//! A cluster of nodes with Shared Memory Engines.
//!
//! A node (`node`) is made of cores (`core`, `stores`, `operate`: how an operation is performed),
//! one coherent domain (`domain`), the way to the engine and back (`host`), the operating system's
//! part (`system`) and an engine ([`crate::families::sme::engine`]). [`Cluster`] builds nodes, runs programs on
//! them, and says what came out, or why it got stuck (`failure`).

pub(in crate::families::sme) mod agenda;
pub(in crate::families::sme) mod among;
pub(in crate::families::sme) mod caches;
pub(in crate::families::sme) mod constants;
pub(in crate::families::sme) mod core;
pub(in crate::families::sme) mod critical_path;
pub(in crate::families::sme) mod domain;
pub(in crate::families::sme) mod failure;
pub(in crate::families::sme) mod host;
pub(in crate::families::sme) mod log;
pub(in crate::families::sme) mod mark;
pub(in crate::families::sme) mod node;
pub(in crate::families::sme) mod operate;
pub(in crate::families::sme) mod pins;
pub(in crate::families::sme) mod record;
pub(in crate::families::sme) mod system;
pub(in crate::families::sme) mod trace;
pub(in crate::families::sme) mod watched;
pub(in crate::families::sme) mod way;

use std::future::Future;
use std::sync::Arc;

pub use caches::CacheTraffic;
pub use constants::{Pinning, Setup};
pub use critical_path::PathStep;
pub use failure::{Failure, LONGEST, Stuck};
pub use mark::Part;
pub use record::{EpisodeTimes, Traffic, Visit};
pub use watched::{Plugged, Watched};

use serde::{Deserialize, Serialize};
use sme_memory::Place;

use crate::families::sme::address::AddressSpace;
use crate::families::sme::engine::waves::Recorder;
use crate::families::sme::engine::{ChannelCounters, Design, DesignError, EngineModel, Inspect};
use crate::kernel::peers::{self, Alone, Peers};
use crate::kernel::thread::Program;
use crate::kernel::window::{self, Exchanged, Verdict};
use crate::observe::staleness::{Checker, StaleLoad, StaleReport, TooManyThreads};
use crate::parts::contract::{self, ThreadMemory};
use crate::parts::fabric::CHANNELS;
use crate::time::Time;
use among::{Among, Figures};
use constants::Constants;
use failure::Survey;
use log::Log;
use node::Node;
use record::Record;
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
pub struct Cluster<E = Watched> {
    nodes: Vec<Node<E>>,
    constants: Arc<Constants>,
    among: Among,
    checker: Option<Checker>,
}

/// One virtual channel of one directed link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

impl Cluster<Watched> {
    /// A cluster whose engines are cycle models. `program` gives the program of each thread from
    /// its view of memory, its node and its number there.
    ///
    /// # Errors
    /// [`DesignError`] if no engine can be built as the machine wants it.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
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
    pub fn with_plugged<F: Future<Output = ()> + Send + 'static>(
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
        engine: impl FnMut(u32) -> Plugged,
    ) -> Self {
        Self::among(&Alone, setup, program, engine)
    }

    /// The same, shared with `peers`: this process simulates a contiguous part of the positions. What
    /// is said of single nodes, links and threads is said of these only; figures in sum are those of
    /// all processes, once [`Self::run_among`] has ended.
    pub fn among<F: Future<Output = ()> + Send + 'static>(
        peers: &dyn Peers,
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
        mut engine: impl FnMut(u32) -> Plugged,
    ) -> Self {
        let (spec, hosts) = (setup.spec.clone(), setup.nodes);
        Self::build(peers, setup, program, |position| {
            Watched::new(engine(position), &spec, position, hosts)
        })
    }

    /// The load of every link, by from, to and channel.
    pub fn link_loads(&self) -> Vec<LinkLoad> {
        let nodes = self.nodes.iter().map(|node| {
            let links = node.engine().engine().counters().links;
            (node.me, links, node.record())
        });
        link_loads(&self.constants, self.end(), nodes)
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

impl<E: EngineModel> Cluster<E> {
    /// A cluster whose engine at each position is `engine(position)`.
    pub fn with_engines<F: Future<Output = ()> + Send + 'static>(
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
        engine: impl FnMut(u32) -> E,
    ) -> Self {
        Self::build(&Alone, setup, program, engine)
    }

    fn build<F: Future<Output = ()> + Send + 'static>(
        peers: &dyn Peers,
        setup: Setup,
        mut program: impl FnMut(ThreadMemory, u32, u32) -> F,
        mut engine: impl FnMut(u32) -> E,
    ) -> Self {
        let (nodes, threads, visits) = (setup.nodes, setup.threads, setup.visits);
        let among = Among::new(peers, setup.topology.positions());
        let constants = Arc::new(Constants::new(setup));
        let map: Arc<dyn AddressSpace> = Arc::new(constants.map);
        let nodes = (among.mine.clone())
            .map(|position| {
                let threads = if position < nodes { threads } else { 0 };
                let programs = (0..threads)
                    .map(|core| {
                        let memory = ThreadMemory::new(Arc::clone(&map), position, core);
                        Box::pin(program(memory, position, core)) as Program
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
            among,
            checker: None,
        }
    }

    /// Runs until every program has ended, with `workers` threads of the host; `watch` is told
    /// now and then how far it has come. The outcome does not depend on `workers`.
    ///
    /// # Errors
    /// [`Failure::Fault`] if an access could not be performed, [`Failure::Deadlock`] if threads
    /// wait for what can never happen, [`Failure::Overtaken`] if a thread left a barrier before
    /// the last had arrived, [`Failure::TooLong`] if the simulator's clock would overflow.
    pub fn run(&mut self, workers: usize, watch: impl FnMut(Progress)) -> Result<(), Failure> {
        self.run_among(&mut Alone, workers, watch)
    }

    /// The same together with the `peers` with whom the cluster was built: every process fails as
    /// all do. Loads cannot be checked, nor can the run be traced.
    ///
    /// # Errors
    /// Those of [`Self::run`], and [`Failure::Peers`].
    pub fn run_among(
        &mut self,
        peers: &mut dyn Peers,
        workers: usize,
        mut watch: impl FnMut(Progress),
    ) -> Result<(), Failure> {
        // What a run that panicked on this thread of the host has left there.
        drop(contract::take_back());
        let lookahead = self.constants.lookahead();
        // Long enough that most polling loads are answered meanwhile; looking costs host time.
        let own: u64 = self.nodes.iter().map(|n| n.cores.len() as u64).sum();
        let threads: u64 = peers::all(peers, own)?.into_iter().sum();
        let patience = Time::from_ns(1_000_000 + 1_000 * threads);
        let pause = match self.checker {
            Some(_) => patience.min(CHECKED_AT_ONCE),
            None => patience,
        };
        let mut before: Option<failure::Standstill> = None;
        let mut look_at = Time::ZERO;
        let checker = &mut self.checker;
        let mut look = |now, nodes: &[Node<E>], peers: &mut dyn Peers| {
            if let Some(checker) = checker {
                log::drain(nodes, checker);
                if now < look_at {
                    watch(Progress::of(now, &Survey::of(nodes)));
                    return Ok((Verdict::Continue, now + pause));
                }
            }
            look_at = now + patience;
            let survey = Survey::of(nodes).of_all(peers)?;
            watch(Progress::of(now, &survey));
            let faulty = survey.faulty;
            let state = survey.standstill();
            let same = state.as_ref().zip(before.as_ref());
            let stuck = same.is_some_and(|(state, before)| state.lasts_since(before));
            if stuck || faulty || failure::is_too_long(now) {
                return Ok((Verdict::Stop, now));
            }
            // The first of equal states is kept: looks are counted from there.
            if !same.is_some_and(|(state, before)| state.is_as(before)) {
                before = state;
            }
            Ok((Verdict::Continue, now + pause))
        };
        let (nodes, all) = (&mut self.nodes, self.among.positions);
        let ran = window::run_among(peers, all, nodes, lookahead, workers, &mut look);
        let (last, exchanged) = ran?;
        self.among.exchanged = exchanged;
        if let Some(checker) = &mut self.checker {
            log::drain(&self.nodes, checker);
        }
        let own = Figures::of(self.nodes.iter().map(|n| (n.record(), n.events)));
        self.among.tell(peers, own)?;
        watch(Progress::of(
            self.end(),
            &Survey::of(&self.nodes).of_all(peers)?,
        ));
        failure::within_time(last)?;
        self.check(peers)
    }

    fn check(&self, peers: &mut dyn Peers) -> Result<(), Failure> {
        if let Some(fault) = failure::first_fault(&self.nodes, peers)? {
            return Err(fault);
        }
        if let Some(deadlock) = failure::deadlock(&self.nodes, self.end(), peers)? {
            return Err(deadlock);
        }
        check_order(self.episodes())?;
        self.nodes.iter().for_each(|node| node.engine().ended());
        Ok(())
    }

    /// Arrivals and departures over all nodes, by episode, the warm-up first.
    pub fn episodes(&self) -> &[EpisodeTimes] {
        &self.among.all.episodes
    }

    /// Traffic over all nodes in the counted episodes.
    pub fn traffic(&self) -> Traffic {
        self.among.all.traffic
    }

    /// What was exchanged with other processes in the last run.
    pub fn exchanged(&self) -> Exchanged {
        self.among.exchanged
    }

    /// What went through the caches of memory behind the engine, over all nodes and all episodes.
    pub fn cache_traffic(&self) -> CacheTraffic {
        let mut all = CacheTraffic::default();
        for caches in self.nodes.iter().filter_map(|node| node.caches.as_ref()) {
            all += caches.traffic();
        }
        all
    }

    /// Lets the next run's loads be checked: see [`crate::observe::staleness`]. That costs time and memory of
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

    /// Lets `each` be told of every load that is stale, or stale but equal, if loads are checked:
    /// [`Checker::list`]. They come in the order of time, of equal times those of the first node
    /// first, of one node as it performed them; `workers` make no difference.
    pub fn list_stale(&mut self, each: impl FnMut(&StaleLoad) + Send + 'static) {
        if let Some(checker) = &mut self.checker {
            checker.list(each);
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
        let position = place.node.wrapping_sub(self.among.mine.start);
        if let Some(node) = self.nodes.get_mut(position as usize) {
            node.domain.preset(physical, value);
        }
    }

    /// What the word at `place` holds at its home: what a load there would bring. Stores that have
    /// not been performed, and what another node's caches have not written back, are not in it.
    pub fn at_home(&self, place: Place) -> u64 {
        let physical = self.constants.map.physical(place.offset);
        let position = place.node.wrapping_sub(self.among.mine.start);
        let node = self.nodes.get(position as usize);
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

    /// Simulated events: what happened at nodes, and whatever an engine gave out.
    pub fn events(&self) -> u64 {
        self.among.all.events
    }

    /// When the last event happened.
    pub fn end(&self) -> Time {
        self.among.all.end
    }
}

/// The load of every link of nodes, each with its engine's counters by port, and its record.
pub(super) fn link_loads<'a>(
    constants: &Constants,
    end: Time,
    nodes: impl Iterator<Item = (u32, Vec<[ChannelCounters; CHANNELS]>, &'a Record)>,
) -> Vec<LinkLoad> {
    let cycles = constants.engine_clock.first_edge_from(end).max(1) as f64;
    let mut loads = Vec::new();
    for (from, links, record) in nodes {
        for (port, channels) in links.iter().enumerate() {
            let Some((to, _)) = constants.topology.neighbour(from, port as u8) else {
                continue;
            };
            loads.extend(channels.iter().enumerate().map(|(channel, c)| {
                let (bytes, packets) = record.over_link(port as u8, channel as u8);
                LinkLoad {
                    from,
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

/// Whether in each episode nobody left before everybody had arrived.
pub(super) fn check_order(episodes: &[EpisodeTimes]) -> Result<(), Failure> {
    for (episode, times) in (0..).zip(episodes) {
        if times.first_departure < times.last_arrival {
            return Err(Failure::Overtaken {
                episode,
                first_departure: times.first_departure,
                last_arrival: times.last_arrival,
            });
        }
    }
    Ok(())
}

impl Progress {
    /// At `now`, when every node that takes part has begun `begun` episodes.
    pub(super) fn at(now: Time, begun: Option<u32>, events: u64) -> Self {
        Self {
            now,
            // In the one under way nobody may have left yet.
            episodes: begun.unwrap_or(0).saturating_sub(1),
            events,
        }
    }

    fn of(now: Time, survey: &Survey) -> Self {
        Self::at(now, survey.begun, survey.events)
    }
}
