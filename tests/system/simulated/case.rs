//! A barrier in some shape on some cluster, and a run of it.

use std::sync::Arc;

use proptest::prelude::*;
use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_barrier::{
    Algorithm, Barrier, Butterfly, ButterflySpec, Dissemination, DisseminationSpec, Extent,
    FlagPhase, FlagPhaseSpec, Flat, FlatSpec, Layout, Mapping, Member, Pthread, PthreadSpec, Ranks,
    Spacing, Tree, TreeShape, TreeSpec,
};
use sme_memory::Route;
use sme_sim::families::sme::cluster::{
    Cluster, EpisodeTimes, Failure, LinkLoad, Pinning, Setup, Traffic, Visit,
};
use sme_sim::machine::Machine;
use sme_sim::parts::contract::{Note, ThreadMemory};
use sme_sim::parts::fabric::{Shape, Topology};
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
    pub workers: usize,
}

/// Everything that came out, besides what depends on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub episodes: Vec<EpisodeTimes>,
    pub visits: Vec<(u32, Visit)>,
    pub traffic: Traffic,
    pub links: Vec<LinkLoad>,
    pub events: u64,
    pub end: Time,
    pub quiet: bool,
}

impl Case {
    /// Builds the barrier and runs it.
    pub fn run(&self) -> Result<Ran, Failure> {
        let (cores, layout) = (self.cores, self.layout);
        match self.algorithm {
            Algorithm::FlagPhase => {
                let spec = FlagPhaseSpec {
                    threads: vec![cores; self.nodes as usize],
                    home: self.home,
                    route: self.route,
                    layout,
                };
                self.simulate(FlagPhase::new(spec).unwrap())
            }
            Algorithm::Flat => {
                let ranks = self.ranks();
                let spec = FlatSpec {
                    ranks,
                    cores,
                    layout,
                };
                self.simulate(Flat::new(spec).unwrap())
            }
            Algorithm::Tree => {
                let spec = TreeSpec {
                    ranks: self.ranks(),
                    cores,
                    fan_in: self.fan_in,
                    shape: self.shape,
                    layout,
                };
                self.simulate(Tree::new(spec).unwrap())
            }
            Algorithm::Dissemination => {
                let ranks = self.ranks();
                let spec = DisseminationSpec {
                    ranks,
                    cores,
                    layout,
                };
                self.simulate(Dissemination::new(spec).unwrap())
            }
            Algorithm::Butterfly => {
                let ranks = self.ranks();
                let spec = ButterflySpec {
                    ranks,
                    cores,
                    layout,
                };
                self.simulate(Butterfly::new(spec).unwrap())
            }
            Algorithm::Pthread => {
                let spec = PthreadSpec {
                    node: 0,
                    threads: cores,
                    layout,
                };
                self.simulate(Pthread::new(spec).unwrap())
            }
        }
    }

    /// Runs `barrier` in place of the one that the case names.
    pub fn simulate<B>(&self, barrier: B) -> Result<Ran, Failure>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        let barrier = Arc::new(barrier);
        let (last, skew, seed) = (self.episodes, self.skew, self.seed);
        let mut cluster = Cluster::new(self.setup(), |memory, node, core| {
            let barrier = Arc::clone(&barrier);
            async move {
                let me = Member { node, core };
                let mut random = Pcg32::new(seed, u64::from(node) << 16 | u64::from(core));
                let mut local = B::Local::default();
                for episode in 0..=last {
                    let late = u64::from(random.next_u32()) % (skew + 1);
                    memory.delay(Time::from_ns(late)).await;
                    memory.note(Note::Arrive(episode)).await;
                    barrier.wait(&memory, me, &mut local).await;
                    memory.note(Note::Leave(episode)).await;
                }
            }
        })
        .unwrap();
        cluster.run(self.workers, |_| {})?;
        Ok(Ran {
            episodes: cluster.episodes().to_vec(),
            visits: cluster
                .visits()
                .map(|(node, &visit)| (node, visit))
                .collect(),
            traffic: cluster.traffic(),
            links: cluster.link_loads(),
            events: cluster.events(),
            end: cluster.end(),
            quiet: cluster.is_quiet(),
        })
    }

    fn setup(&self) -> Setup {
        Setup {
            spec: Machine::builtin(self.machine).unwrap().cluster().clone(),
            topology: self.topology.clone(),
            nodes: self.nodes,
            threads: self.cores,
            pinning: self.pinning,
            seed: self.seed,
            coherent_stores: self.coherent_stores,
            visits: true,
            noise: None,
        }
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

/// Meshes and tori of two and three dimensions, exactly as large as the nodes or larger.
fn topologies() -> impl Strategy<Value = Topology> {
    let shape = prop::sample::select(&[Shape::Mesh, Shape::Torus][..]);
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
    let algorithm = prop::sample::select(Algorithm::ALL);
    let layout = (prop::sample::select(Spacing::ALL), 0..3u64).prop_map(|(spacing, line)| Layout {
        spacing,
        line_bytes: 64,
        base: 64 * line,
    });
    let tree = (
        2..=9u32,
        prop::sample::select(TreeShape::ALL),
        prop::sample::select(Mapping::ALL),
    );
    let route = prop::sample::select(&[Route::Nearest, Route::Global][..]);
    let skew = prop::sample::select(&[0, 100, 3_000, 30_000][..]);
    (
        (places, cores, machine, pinning),
        (algorithm, layout, tree, any::<u32>(), route),
        (skew, 1..4u32, any::<u64>()),
    )
        .prop_map(|(where_, what, how)| {
            let ((topology, nodes), cores, machine, pinning) = where_;
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
                workers: 1,
            }
        })
}
