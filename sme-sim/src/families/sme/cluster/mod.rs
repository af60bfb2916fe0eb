//! A cluster of nodes with Shared Memory Engines.
//!
//! A node (`node`) is made of parts, each with its own state:
//!
//! * `core`: the cores, and what each is doing; [`crate::parts::store_buffer`]: their store
//!   buffers.
//! * `domain`: the node's memory, kept coherent in all its caches.
//! * `caches`: the cores' caches of memory behind the engine.
//! * `slots`: the slots and tags of loads from there.
//! * `bridge`: what other nodes do to this one's memory.
//! * `way`: the host link, and the engine behind it ([`super::engine`], `watched`).
//! * `message`: what goes from node to node.
//! * `here`: what all of them share, the agenda and the record among it.
//!
//! The node joins them (`operate`, `uncached`, `cached`), and is the host of an operating system
//! (`system`). The view of a node from outside is in `survey`; [`Cluster`] builds nodes.

pub(in crate::families::sme) mod agenda;
pub(in crate::families::sme) mod bridge;
pub(in crate::families::sme) mod cached;
pub(in crate::families::sme) mod caches;
pub(in crate::families::sme) mod constants;
pub(in crate::families::sme) mod core;
pub(in crate::families::sme) mod critical_path;
pub(in crate::families::sme) mod domain;
pub(in crate::families::sme) mod here;
pub(in crate::families::sme) mod homes;
pub(in crate::families::sme) mod latencies;
pub(in crate::families::sme) mod log;
pub(in crate::families::sme) mod mark;
pub(in crate::families::sme) mod message;
pub(in crate::families::sme) mod node;
pub(in crate::families::sme) mod operate;
pub(in crate::families::sme) mod pins;
pub(in crate::families::sme) mod protocol;
pub(in crate::families::sme) mod record;
pub(in crate::families::sme) mod slots;
pub(in crate::families::sme) mod survey;
pub(in crate::families::sme) mod system;
pub(in crate::families::sme) mod trace;
pub(in crate::families::sme) mod transaction;
pub(in crate::families::sme) mod uncached;
pub(in crate::families::sme) mod watched;
pub(in crate::families::sme) mod way;

use std::future::Future;
use std::sync::Arc;

pub use watched::{Plugged, Watched};

use super::engine::waves::Recorder;
use super::engine::{ChannelCounters, Design, DesignError, Inspect};
use super::spec::ClusterSpec;
use crate::kernel::peers::{Alone, Peers};
use crate::kernel::thread::programs;
use crate::machine::family::{NodeThreads, System, started};
use crate::machine::nodes::{Apart, Nodes};
use crate::machine::shape::Setup;
use crate::observe::among::{Among, Figures};
use crate::observe::failure::Failure;
use crate::observe::gauge::Progress;
use crate::observe::traffic::LinkLoad;
use crate::parts::address::Space;
use crate::parts::contract::ThreadMemory;
use crate::parts::fabric::CHANNELS;
use crate::time::Time;
use constants::Constants;
use here::Here;
use node::Node;
use record::Record;

/// A cluster with a program on every thread.
pub type Cluster = Nodes<Node>;

impl Cluster {
    /// A cluster whose engines are cycle models. `program` gives the program of each thread from
    /// its view of memory, its node and its number there.
    ///
    /// # Errors
    /// [`DesignError`] if no engine can be built as the machine wants it.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        spec: &ClusterSpec,
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
    ) -> Result<Self, DesignError> {
        let hosts = spec.hosts(setup.nodes);
        let design = Arc::new(Design::new(spec, &setup.topology, hosts)?);
        Ok(Self::with_plugged(spec, setup, program, |position| {
            Plugged::cycle(&design, position, hosts)
        }))
    }

    /// A cluster into whose positions `engine(position)` is plugged.
    pub fn with_plugged<F: Future<Output = ()> + Send + 'static>(
        spec: &ClusterSpec,
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
        engine: impl FnMut(u32) -> Plugged,
    ) -> Self {
        Self::among(&Alone, (spec, setup), program, engine)
    }

    /// The same, shared with `peers`: this process simulates a contiguous part of the positions.
    /// Results of single nodes, links and threads are of these only; figures in sum are those of
    /// all processes, once [`Self::run_among`] has ended.
    pub fn among<F: Future<Output = ()> + Send + 'static>(
        peers: &dyn Peers,
        (spec, setup): (&ClusterSpec, Setup),
        mut program: impl FnMut(ThreadMemory, u32, u32) -> F,
        engine: impl FnMut(u32) -> Plugged,
    ) -> Self {
        let mut threads = |memories: Vec<ThreadMemory>| programs(started(memories, &mut program));
        Self::with_threads(peers, (spec, setup), &mut threads, engine)
    }

    /// The same, with what `threads` gives each node's threads to do.
    pub fn with_threads(
        peers: &dyn Peers,
        (spec, setup): (&ClusterSpec, Setup),
        threads: &mut NodeThreads<'_>,
        mut engine: impl FnMut(u32) -> Plugged,
    ) -> Self {
        let (nodes, count, each_span) = (setup.nodes, setup.threads, setup.each_span);
        let hosts = spec.hosts(nodes);
        let among = Among::new(peers, setup.topology.positions());
        let constants = Arc::new(Constants::new(spec.clone(), setup));
        let space = Space::new(constants.map);
        Nodes::of(
            among,
            (Apart::AtLeast(constants.lookahead()), constants.room),
            Arc::clone(&space),
            |position| {
                let count = if position < nodes { count } else { 0 };
                let memory = |core| ThreadMemory::new(Arc::clone(&space), position, core);
                let programs = threads((0..count).map(memory).collect());
                Node::new(
                    position,
                    Arc::clone(&constants),
                    programs,
                    Watched::new(engine(position), spec, position, hosts),
                    each_span,
                )
            },
        )
    }

    /// Returns whether nothing is under way any more: every posted store has been performed, every
    /// buffer, slot and queue is empty, every credit is back. So it is after a run that ended well.
    pub fn is_quiet(&self) -> bool {
        let sum = |of: fn(&Here) -> u64| self.nodes.iter().map(|n| of(&n.here)).sum::<u64>();
        sum(|here| here.posted) == sum(|here| here.performed)
            && (self.nodes.iter()).all(|n| n.is_quiet() && n.engine().engine().is_quiet())
    }

    /// Lets `waves` record the ports of the engines it has chosen, of any implementation. It has no
    /// influence on what is simulated; the caller that runs the cluster also calls
    /// [`Recorder::write_until`].
    pub fn record_waves(&mut self, waves: &Recorder) {
        for node in &mut self.nodes {
            if let Some(tap) = waves.tap(node.here.me) {
                node.record_waves(tap);
            }
        }
    }

    /// [`System::run_among`] in one process.
    ///
    /// # Errors
    /// As there.
    pub fn run(&mut self, workers: usize, mut watch: impl FnMut(Progress)) -> Result<(), Failure> {
        self.run_among(&mut Alone, workers, &mut watch)
    }
}

/// The load of every link that leaves a node, given with its engine's counters by port, and its
/// record.
pub(super) fn link_loads(
    constants: &Constants,
    end: Time,
    (from, links, record): (u32, Vec<[ChannelCounters; CHANNELS]>, &Record),
) -> Vec<LinkLoad> {
    let cycles = constants.engine_clock.first_edge_from(end).max(1) as f64;
    let mut loads = Vec::new();
    for (port, channels) in (0..).zip(&links) {
        let Some((to, _)) = constants.topology.neighbour(from, port) else {
            continue;
        };
        loads.extend((0..).zip(channels).map(|(channel, counters)| {
            let (bytes, packets) = record.over_link(port, channel as u8);
            LinkLoad {
                from,
                to,
                channel,
                bytes,
                packets,
                busy_fraction: counters.busy_cycles as f64 / cycles,
                stall_fraction: counters.stall_cycles as f64 / cycles,
            }
        }));
    }
    loads
}

/// Adds to `figures` what a node has done, by its record and the number of its events.
pub(super) fn did(record: &Record, events: u64, figures: &mut Figures) {
    figures.add(&record.spans.sums, record.traffic, (events, record.last));
}
