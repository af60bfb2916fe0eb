//! Nodes of hundreds of cores by the hundred thousand: the cluster in compact form.
//!
//! The same machine as [`crate::families::sme::cluster`] in its readable form, to the picosecond,
//! for barriers whose nodes have one thread that leads and others that follow ([`Leader`]): the
//! same transactions on the same lines in the same order, the same packets over the same engine,
//! switches and links. The difference lies in what the simulator keeps. A node's cores and memory
//! are two bytes per thread while nothing happens to them (`rest`), and are simulated from one rest
//! to the next (`run`) in working memory that a worker has once (`work`), some of it twice
//! (`checkpoint`); between nodes everything is as it was (`node`). That both forms give the same
//! times is a test (`tests/compact`); that every transaction on a line here leaves what the [table
//! of MOESI](crate::parts::coherence) says is another (`work/tests.rs`).

mod checkpoint;
mod event;
mod first;
mod followers;
mod following;
mod node;
mod plan;
mod rest;
mod run;
mod set;
mod stuck;
mod timeline;
mod work;

use std::sync::Arc;

use sme_memory::Leader;

pub use plan::{NotCompact, Skew};

use super::cluster::constants::Constants;
use super::cluster::watched::{Plugged, Watched};
use super::cluster::{did, link_loads};
use super::engine::Inspect;
use super::spec::ClusterSpec;
use crate::kernel::peers::{Alone, Peers};
use crate::kernel::window::{self, Exchanged, Verdict};
use crate::machine::family::System;
use crate::machine::shape::Setup;
use crate::observe::among::{Among, Figures, all_stuck};
use crate::observe::failure::{self, Failure};
use crate::observe::gauge::{Gauge, Progress};
use crate::observe::spans::{Reached, Spans};
use crate::observe::stuck::LISTED;
use crate::observe::traffic::{LinkLoad, Traffic};
use crate::time::Time;
use node::CompactNode;
use plan::RunPlan;

/// Simulated time after which the watcher of a run is told of its progress.
const TOLD_EVERY: Time = Time::from_ns(10_000);

/// A cluster in compact form, in which a barrier runs.
pub struct CompactCluster<L: Leader> {
    nodes: Vec<CompactNode<L>>,
    among: Among,
    plan: Arc<RunPlan<L>>,
}

impl<L: Leader> CompactCluster<L> {
    /// A cluster into whose positions `engine(position)` is plugged, and on which the barrier of
    /// `leader` runs in episodes 0 to `last_episode`. Every thread begins an episode as late as
    /// `skew` says.
    ///
    /// # Errors
    /// [`NotCompact`] if the barrier's flags are not one in each cache line.
    pub fn new(
        machine: (&ClusterSpec, Setup),
        leader: L,
        last_episode: u32,
        skew: Option<Box<Skew>>,
        engine: impl FnMut(u32) -> Plugged,
    ) -> Result<Self, NotCompact> {
        Self::among(&Alone, machine, leader, last_episode, skew, engine)
    }

    /// The same, shared with `peers`: see [`Cluster::among`](super::cluster::Cluster::among).
    ///
    /// # Errors
    /// [`NotCompact`]
    pub fn among(
        peers: &dyn Peers,
        (spec, setup): (&ClusterSpec, Setup),
        leader: L,
        last_episode: u32,
        skew: Option<Box<Skew>>,
        mut engine: impl FnMut(u32) -> Plugged,
    ) -> Result<Self, NotCompact> {
        let (hosts, threads) = (setup.nodes, setup.threads);
        let among = Among::new(peers, setup.topology.positions());
        let constants = Arc::new(Constants::new(spec.clone(), setup));
        let plan = Arc::new(RunPlan::new(
            leader,
            constants,
            threads,
            last_episode,
            skew,
        )?);
        let nodes = (among.mine.clone())
            .map(|position| {
                let engine = Watched::new(engine(position), spec, position, hosts);
                CompactNode::new(position, &plan, engine, position < hosts)
            })
            .collect();
        Ok(Self { nodes, among, plan })
    }

    /// Returns whether nothing is under way any more: so it is after a run that ended well.
    pub fn is_quiet(&self) -> bool {
        let sum = |of: fn(&CompactNode<L>) -> u64| self.nodes.iter().map(of).sum::<u64>();
        sum(|n| n.posted) == sum(|n| n.performed)
            && (self.nodes.iter()).all(|n| n.is_quiet() && n.engine().engine().is_quiet())
    }

    /// Returns a gauge of the run's progress that another thread of the host can read meanwhile.
    pub fn gauge(&self) -> Arc<Gauge> {
        Arc::clone(&self.plan.gauge)
    }

    /// [`System::run_among`] in one process.
    ///
    /// # Errors
    /// As there.
    pub fn run(&mut self, workers: usize, mut watch: impl FnMut(Progress)) -> Result<(), Failure> {
        self.run_among(&mut Alone, workers, &mut watch)
    }

    /// Returns whether every thread has ended.
    fn check_ended(&self, peers: &mut dyn Peers) -> Result<(), Failure> {
        let (mut stuck, mut waiting) = (Vec::new(), 0);
        for node in self.nodes.iter().filter(|node| node.unfinished() > 0) {
            waiting += u64::from(node.unfinished());
            if stuck.len() < LISTED {
                stuck.extend(node.stuck(LISTED - stuck.len()));
            }
        }
        let more = waiting - stuck.len() as u64;
        let (stuck, more) = all_stuck(peers, stuck, more)?;
        if stuck.is_empty() {
            return Ok(());
        }
        let at = self.end();
        Err(Failure::Deadlock { at, stuck, more })
    }
}

impl<L: Leader> System for CompactCluster<L> {
    /// `watch` is told of this process's nodes.
    fn run_among(
        &mut self,
        peers: &mut dyn Peers,
        workers: usize,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(), Failure> {
        let lookahead = self.plan.constants.lookahead();
        let look = |now, nodes: &[CompactNode<L>], _: &mut dyn Peers| {
            watch(progress(now, nodes));
            let verdict = match failure::is_too_long(now) {
                true => Verdict::Stop,
                false => Verdict::Continue,
            };
            Ok((verdict, now + TOLD_EVERY))
        };
        let (nodes, all) = (&mut self.nodes, self.among.positions);
        let ran = window::run_among(peers, all, nodes, lookahead, workers, look);
        let (last, exchanged) = ran?;
        self.among.exchanged = exchanged;
        failure::within_time(last)?;
        self.nodes.iter_mut().for_each(CompactNode::settle);
        let mut own = Figures::default();
        for node in &self.nodes {
            did(&node.record, node.events, &mut own);
        }
        self.among.tell(peers, own)?;
        watch(progress(self.end(), &self.nodes));
        self.check_ended(peers)?;
        self.nodes.iter().for_each(|node| node.engine().ended());
        Ok(())
    }

    /// Those of [`EPISODE`](crate::observe::spans::EPISODE).
    fn spans(&self) -> &Spans {
        &self.among.all.spans
    }

    fn traffic(&self) -> Traffic {
        self.among.all.traffic
    }

    fn link_loads(&self) -> Vec<LinkLoad> {
        let loads = self.nodes.iter().flat_map(|node| {
            let links = node.engine().engine().counters().links;
            let of = (node.me, links, &node.record);
            link_loads(&self.plan.constants, self.end(), of)
        });
        let mut loads: Vec<LinkLoad> = loads.collect();
        loads.sort_by_key(|load| (load.from, load.to, load.channel));
        loads
    }

    /// Counts events as the readable form does.
    fn events(&self) -> u64 {
        self.among.all.events
    }

    fn end(&self) -> Time {
        self.among.all.end
    }

    fn exchanged(&self) -> Exchanged {
        self.among.exchanged
    }

    /// Counts what the readable form counts, at the end of a run. While nodes run ahead of their
    /// packets each has its cores and memory twice; the working memory of the workers is not
    /// counted.
    fn bytes_per_thread(&self) -> u64 {
        let bytes = self
            .nodes
            .iter()
            .map(|n| n.bytes() + n.engine().engine().state_bytes() + window::BYTES_PER_NODE);
        let hosts = self.nodes.iter().filter(|n| n.rest().is_some()).count() as u64;
        let threads = hosts * u64::from(self.plan.form.threads);
        bytes.sum::<usize>() as u64 / threads.max(1)
    }
}

fn progress<L: Leader>(now: Time, nodes: &[CompactNode<L>]) -> Progress {
    let mut reached = Reached::default();
    for node in nodes {
        node.record.spans.sums.reached(&mut reached);
    }
    Progress {
        now,
        events: nodes.iter().map(|n| n.events).sum(),
        reached,
    }
}
