//! One barrier on one machine, in either form.

use std::sync::Arc;

use proptest::prelude::*;
use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_barrier::{
    Barrier, Dissemination, DisseminationSpec, Extent, Layout, Mapping, Member, Ranks, Tree,
    TreeShape, TreeSpec,
};
use sme_memory::{Leader, Memory};
use sme_sim::families::sme;
use sme_sim::families::sme::cluster::{Cluster, Plugged};
use sme_sim::families::sme::compact::{CompactCluster, Skew};
use sme_sim::families::sme::engine::Design;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::machine::{Machine, Pinning, Setup, System};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::{EPISODE, SpanTimes};
use sme_sim::observe::traffic::{LinkLoad, Traffic};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::Topology;
use sme_sim::parts::noise::{Gaps, Lengths, Noise};
use sme_sim::time::Time;

use crate::stepped;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Tree { fan_in: u32, shape: TreeShape },
    Dissemination,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub machine: &'static str,
    pub overrides: Vec<(&'static str, &'static str)>,
    pub algorithm: Algorithm,
    pub topology: String,
    pub nodes: u32,
    pub cores: u32,
    pub mapping: Mapping,
    pub pinning: Pinning,
    pub last_episode: u32,
    pub most_skew: Time,
    pub seed: u64,
    pub noise: Option<Noise>,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub episodes: Vec<SpanTimes>,
    pub traffic: Traffic,
    /// From, to, channel, bytes, packets.
    pub links: Vec<(u32, u32, u32, u64, u64)>,
    pub events: u64,
    pub end: Time,
    pub quiet: bool,
}

fn links(loads: Vec<LinkLoad>) -> Vec<(u32, u32, u32, u64, u64)> {
    let link = |l: LinkLoad| (l.from, l.to, l.channel, l.bytes, l.packets);
    loads.into_iter().map(link).collect()
}

impl Case {
    pub fn readable(&self, workers: usize) -> Seen {
        match self.algorithm {
            Algorithm::Tree { fan_in, shape } => {
                self.run_readable(self.tree(fan_in, shape), workers)
            }
            Algorithm::Dissemination => self.run_readable(self.dissemination(), workers),
        }
    }

    /// The readable form, with engines that are stepped edge by edge.
    pub fn stepped(&self) -> Seen {
        let (seen, ended) = match self.algorithm {
            Algorithm::Tree { fan_in, shape } => {
                self.watch_plugged(self.tree(fan_in, shape), 1, stepped::engine)
            }
            Algorithm::Dissemination => {
                self.watch_plugged(self.dissemination(), 1, stepped::engine)
            }
        };
        ended.unwrap();
        seen
    }

    pub fn compact(&self, workers: usize) -> Seen {
        match self.algorithm {
            Algorithm::Tree { fan_in, shape } => {
                self.run_compact(self.tree(fan_in, shape), workers)
            }
            Algorithm::Dissemination => self.run_compact(self.dissemination(), workers),
        }
    }

    pub fn tree(&self, fan_in: u32, shape: TreeShape) -> Tree {
        Tree::new(TreeSpec {
            ranks: self.ranks(),
            cores: self.cores,
            fan_in,
            shape,
            layout: Layout::padded(self.line_bytes()),
        })
        .unwrap()
    }

    pub fn dissemination(&self) -> Dissemination {
        Dissemination::new(DisseminationSpec {
            ranks: self.ranks(),
            cores: self.cores,
            layout: Layout::padded(self.line_bytes()),
        })
        .unwrap()
    }

    fn line_bytes(&self) -> u32 {
        let machine = Machine::builtin(self.machine).unwrap();
        machine.with(&self.overrides).unwrap().shape().line_bytes
    }

    fn ranks(&self) -> Ranks {
        let topology: Topology = self.topology.parse().unwrap();
        let [width, height, depth] = topology.sizes();
        let extent = Extent {
            width,
            height,
            depth,
        };
        self.mapping.ranks(extent, self.nodes).unwrap()
    }

    pub fn setup(&self) -> (ClusterSpec, Setup) {
        let machine = Machine::builtin(self.machine).unwrap();
        let machine = machine.with(&self.overrides).unwrap();
        let setup = Setup::new(machine.shape(), self.nodes, self.cores)
            .on(self.topology.parse().unwrap())
            .pinned(self.pinning)
            .seeded(self.seed)
            .with_noise(self.noise);
        (sme::of(&machine).unwrap().clone(), setup)
    }

    fn late(&self) -> impl Fn(u32, u32, u32) -> Time + Send + Sync + use<> {
        let (most, seed) = (self.most_skew.as_ps(), self.seed);
        move |node, core, episode| {
            let stream = u64::from(node) << 32 | u64::from(core);
            let mut random = Pcg32::new(seed ^ u64::from(episode) << 32, stream);
            Time::from_ps(random.next_u64() % (most + 1))
        }
    }

    fn run_readable<B>(&self, barrier: B, workers: usize) -> Seen
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        let (seen, ended) = self.watch_readable(barrier, workers);
        ended.unwrap();
        seen
    }

    /// Runs the readable form and returns the outcome, however the run ended.
    pub fn watch_readable<B>(&self, barrier: B, workers: usize) -> (Seen, Result<(), Failure>)
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        self.watch_plugged(barrier, workers, Plugged::cycle)
    }

    fn watch_plugged<B>(
        &self,
        barrier: B,
        workers: usize,
        engine: impl Fn(&Arc<Design>, u32, u32) -> Plugged,
    ) -> (Seen, Result<(), Failure>)
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        let barrier = Arc::new(barrier);
        let late = Arc::new(self.late());
        let (last, skewed) = (self.last_episode, self.most_skew > Time::ZERO);
        let program = |memory: ThreadMemory, node, core| {
            let (barrier, late) = (Arc::clone(&barrier), Arc::clone(&late));
            async move {
                let mut local = B::Local::default();
                for episode in 0..=last {
                    if skewed {
                        memory.delay(late(node, core, episode)).await;
                    }
                    memory.begin(Span::new(EPISODE, episode)).await;
                    let me = Member { node, core };
                    barrier.wait(&memory, me, &mut local).await;
                    memory.end(Span::new(EPISODE, episode)).await;
                    if episode == 0 {
                        memory.counts().await;
                    }
                }
                let _ = memory.node();
            }
        };
        let ((spec, setup), hosts) = (self.setup(), self.nodes);
        let design = Arc::new(Design::new(&spec, &setup.topology, hosts).unwrap());
        let engine = |position| engine(&design, position, hosts);
        let mut cluster = Cluster::with_plugged(&spec, setup, program, engine);
        let ended = cluster.run(workers, |_| {});
        let seen = Seen {
            episodes: cluster.spans().called(EPISODE).to_vec(),
            traffic: cluster.traffic(),
            links: links(cluster.link_loads()),
            events: cluster.events(),
            end: cluster.end(),
            quiet: cluster.is_quiet(),
        };
        (seen, ended)
    }

    fn run_compact<L: Leader>(&self, leader: L, workers: usize) -> Seen {
        self.try_compact(leader, workers).unwrap()
    }

    pub fn try_compact<L: Leader>(&self, leader: L, workers: usize) -> Result<Seen, Failure> {
        let (seen, ended) = self.watch_compact(leader, workers);
        ended.map(|()| seen)
    }

    /// Runs the compact form and returns the outcome, however the run ended.
    pub fn watch_compact<L: Leader>(
        &self,
        leader: L,
        workers: usize,
    ) -> (Seen, Result<(), Failure>) {
        let (spec, setup) = self.setup();
        let design = Arc::new(Design::new(&spec, &setup.topology, setup.nodes).unwrap());
        let late = self.late();
        let skew = (self.most_skew > Time::ZERO).then(|| -> Box<Skew> { Box::new(late) });
        let engine = |position| Plugged::cycle(&design, position, self.nodes);
        let mut cluster =
            CompactCluster::new((&spec, setup), leader, self.last_episode, skew, engine).unwrap();
        let ended = cluster.run(workers, |_| {});
        let seen = Seen {
            episodes: cluster.spans().called(EPISODE).to_vec(),
            traffic: cluster.traffic(),
            links: links(cluster.link_loads()),
            events: cluster.events(),
            end: cluster.end(),
            quiet: cluster.is_quiet(),
        };
        (seen, ended)
    }
}

/// Barriers of at most `most` threads.
pub fn cases(most: u32) -> impl Strategy<Value = Case> {
    let algorithm = prop_oneof![
        3 => (2..10u32, prop::sample::select(TreeShape::ALL))
            .prop_map(|(fan_in, shape)| Algorithm::Tree { fan_in, shape }),
        2 => Just(Algorithm::Dissemination),
    ];
    let shape = (
        prop::sample::select(vec!["mesh", "torus"]),
        1..9u32,
        1..9u32,
        1..4u32,
        any::<prop::sample::Index>(),
    );
    let machine = prop_oneof![
        Just(("sme-prototype", vec![])),
        Just(("sme-asic", vec![])),
        Just(("sme-asic", vec![("core.store_buffer", "1")])),
        Just(("sme-asic", vec![("core.outstanding_misses", "1")])),
        Just(("sme-asic", vec![("coherence.occupancy", "300ns")])),
        Just(("sme-prototype", vec![("host.posted_credits", "1")])),
        Just(("sme-prototype", vec![("link.channel_credits", "1")])),
        Just(("sme-prototype", vec![("cache.line", "32 B")])),
        Just(("sme-asic", vec![("link.channel_credits", "2")])),
        Just(("sme-prototype", vec![("node.sockets", "8")])),
        Just(("sme-asic", vec![("node.cores_per_socket", "16")])),
    ];
    let rest = (
        1..65u32,
        prop::sample::select(Mapping::ALL),
        any::<bool>(),
        0..4u32,
        prop_oneof![Just(0), Just(1_000), 0..40_000u64],
        any::<u64>(),
        prop::option::weighted(0.3, 2..40u64),
    );
    (machine, algorithm, shape, rest).prop_map(move |(machine, algorithm, shape, rest)| {
        let (kind, width, height, depth, nodes) = shape;
        let (cores, mapping, scatter, last_episode, skew_ns, seed, noise_us) = rest;
        let noise = noise_us.map(|us| {
            let (period, duration) = (Time::from_ns(1_000 * us), Time::from_ns(100 * us));
            let noise = Noise::new(period, duration, Gaps::Exponential, Lengths::Constant, seed);
            noise.unwrap()
        });
        let positions = width * height * depth;
        let nodes = nodes.index(positions as usize) as u32 + 1;
        let (machine, overrides) = machine;
        let fit = match overrides.first() {
            Some(("node.sockets", _)) => 32,
            Some(("node.cores_per_socket", _)) => 64,
            _ => 16,
        };
        Case {
            machine,
            overrides,
            algorithm,
            topology: format!("{kind}:{width}x{height}x{depth}"),
            nodes,
            cores: cores.min(most / nodes).clamp(1, fit),
            mapping,
            pinning: if scatter {
                Pinning::Scatter
            } else {
                Pinning::Compact
            },
            last_episode,
            most_skew: Time::from_ns(skew_ns),
            seed,
            noise,
        }
    })
}
