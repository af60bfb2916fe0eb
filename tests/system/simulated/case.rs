//! A barrier in some shape on some cluster, and a run of it.

use std::sync::Arc;

use proptest::prelude::*;
use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_barrier::{
    Algorithm, Barrier, BarrierSpec, Extent, Homes, Layout, Mapping, Member, Ranks, Spacing,
    TreeShape, Use, build,
};
use sme_memory::Route;
use sme_sim::families::sme::cluster::Cluster;
use sme_sim::machine::{Machine, Pinning, Readable, Setup, System};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::{EPISODE, Overtaken, SpanTimes, ThreadSpan, overtaken};
use sme_sim::observe::traffic::{LinkLoad, Traffic};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::{Topology, TopologyKind};
use sme_sim::time::Time;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Case {
    pub machine: &'static str,
    pub algorithm: Algorithm,
    pub topology: Topology,
    pub nodes: u32,
    pub cores: u32,
    pub pinning: Pinning,
    pub layout: Layout,
    /// Of the tree.
    pub fan_in: u32,
    pub shape: TreeShape,
    pub mapping: Mapping,
    /// Of flag-phase.
    pub home: u32,
    pub route: Route,
    /// Each arrival is up to so much later, in ns.
    pub skew: u64,
    pub episodes: u32,
    pub seed: u64,
    pub coherent_stores: bool,
    /// The sockets that share a node's memory: `coherence.homes`.
    pub homes: &'static str,
    pub workers: usize,
}

/// Everything that came out, besides what depends on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub episodes: Vec<SpanTimes>,
    pub visits: Vec<(u32, ThreadSpan)>,
    pub traffic: Traffic,
    pub links: Vec<LinkLoad>,
    pub events: u64,
    pub end: Time,
    pub quiet: bool,
}

/// Why nothing came out.
#[derive(Debug)]
pub enum Wrong {
    Failure(Failure),
    #[allow(dead_code, reason = "said where a test fails")]
    Overtaken(Overtaken),
}

impl Case {
    /// Builds the barrier and runs it.
    pub fn run(&self) -> Result<Ran, Wrong> {
        let spec = BarrierSpec {
            home: self.home,
            route: self.route,
            fan_in: self.fan_in,
            tree_shape: self.shape,
            ..BarrierSpec::new(self.algorithm, self.ranks(), self.cores, self.layout)
        };
        build(&spec, Simulated(self)).unwrap()
    }

    /// Runs `barrier` in place of the one that the case names.
    pub fn simulate<B>(&self, barrier: B) -> Result<Ran, Wrong>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        let barrier = Arc::new(barrier);
        let (last, skew, seed) = (self.episodes, self.skew, self.seed);
        let machine = Machine::builtin(self.machine).unwrap();
        let coherent = if self.coherent_stores { "yes" } else { "no" };
        let line = format!("{} B", self.layout.line_bytes);
        let machine = machine
            .with(&[
                ("uncached.coherent_stores", coherent),
                ("cache.line", &line),
                ("coherence.homes", self.homes),
            ])
            .unwrap();
        let setup = Setup::new(machine.shape(), self.nodes, self.cores)
            .on(self.topology.clone())
            .pinned(self.pinning)
            .seeded(self.seed)
            .with_each_span(true);
        let spec = sme_sim::families::sme::of(&machine).unwrap();
        let mut cluster = Cluster::new(spec, setup, |memory, node, core| {
            let barrier = Arc::clone(&barrier);
            async move {
                let me = Member { node, core };
                let mut random = Pcg32::new(seed, u64::from(node) << 16 | u64::from(core));
                let mut local = B::Local::default();
                for episode in 0..=last {
                    let late = u64::from(random.next_u32()) % (skew + 1);
                    memory.delay(Time::from_ns(late)).await;
                    memory.begin(Span::new(EPISODE, episode)).await;
                    barrier.wait(&memory, me, &mut local).await;
                    memory.end(Span::new(EPISODE, episode)).await;
                    if episode == 0 {
                        memory.counts().await;
                    }
                }
            }
        })
        .unwrap();
        let ended = cluster.run(self.workers, |_| {});
        ended.map_err(Wrong::Failure)?;
        let episodes = cluster.spans().called(EPISODE).to_vec();
        overtaken(&episodes).map_err(Wrong::Overtaken)?;
        Ok(Ran {
            episodes,
            visits: cluster
                .each_span()
                .map(|(node, &visit)| (node, visit))
                .collect(),
            traffic: cluster.traffic(),
            links: cluster.link_loads(),
            events: cluster.events(),
            end: cluster.end(),
            quiet: cluster.is_quiet(),
        })
    }

    fn ranks(&self) -> Ranks {
        let [width, height, depth] = self.topology.sizes();
        let extent = Extent {
            width,
            height,
            depth,
        };
        self.mapping.ranks(extent, self.nodes).unwrap()
    }
}

/// Simulates any barrier on the machine of a case.
struct Simulated<'a>(&'a Case);

impl Use<ThreadMemory> for Simulated<'_> {
    type Output = Result<Ran, Wrong>;

    fn barrier<B>(self, barrier: B, _bytes: u64) -> Result<Ran, Wrong>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        self.0.simulate(barrier)
    }
}

/// Meshes and tori of two and three dimensions, exactly as large as the nodes or larger.
fn topologies() -> impl Strategy<Value = Topology> {
    let shape = prop::sample::select(&[TopologyKind::Mesh, TopologyKind::Torus][..]);
    let sizes = prop_oneof![
        (1..8u32, 1..6u32).prop_map(|(x, y)| vec![x, y]),
        (1..5u32, 1..5u32, 1..4u32).prop_map(|(x, y, z)| vec![x, y, z]),
    ];
    (shape, sizes).prop_map(|(shape, sizes)| Topology::new(shape, &sizes).unwrap())
}

/// Cases with at most `most_nodes` nodes.
pub fn cases(most_nodes: u32) -> impl Strategy<Value = Case> {
    let places = topologies().prop_flat_map(move |topology| {
        let most = topology.positions().min(most_nodes);
        (Just(topology), 1..=most)
    });
    // Few threads are as telling as many, and sooner done.
    let cores = prop_oneof![3 => 1..=5u32, 1 => 1..=16u32];
    let machine = prop::sample::select(&["sme-prototype", "sme-asic"][..]);
    let pinning = prop::sample::select(&[Pinning::Scatter, Pinning::Compact][..]);
    // Of these machines: they have no registers.
    let algorithms = Algorithm::ALL.iter().copied();
    let algorithms = algorithms.filter(|&algorithm| algorithm != Algorithm::Counter);
    let algorithm = prop::sample::select(algorithms.collect::<Vec<_>>());
    let line_bytes = prop::sample::select(&[32u32, 64][..]);
    let spacing = prop::sample::select(Spacing::ALL);
    let layout = (spacing, line_bytes, 0..3u32).prop_map(|(spacing, line_bytes, line)| Layout {
        spacing,
        line_bytes,
        base: u64::from(line_bytes * line),
        homes: Homes::Own,
    });
    let homes = prop::sample::select(&["first", "lines", "pages"][..]);
    let tree = (
        2..=9u32,
        prop::sample::select(TreeShape::ALL),
        prop::sample::select(Mapping::ALL),
    );
    let route = prop::sample::select(&[Route::Nearest, Route::Global][..]);
    let skew = prop::sample::select(&[0, 100, 3_000, 30_000][..]);
    (
        (places, cores, machine, pinning, homes),
        (algorithm, layout, tree, any::<u32>(), route),
        (skew, 1..4u32, any::<u64>()),
    )
        .prop_map(|(where_, what, how)| {
            let ((topology, nodes), cores, machine, pinning, homes) = where_;
            let (algorithm, layout, (fan_in, shape, mapping), home, route) = what;
            let (skew, episodes, seed) = how;
            let nodes = match algorithm {
                Algorithm::Pthread => 1,
                // Its threads poll, each load of each of them simulated.
                Algorithm::FlagPhase => nodes.min(3),
                _ => nodes,
            };
            Case {
                machine,
                algorithm,
                topology,
                nodes,
                cores,
                pinning,
                layout,
                fan_in,
                shape,
                mapping,
                home: home % nodes,
                route,
                skew,
                episodes,
                seed,
                coherent_stores: true,
                homes,
                workers: 1,
            }
        })
}
