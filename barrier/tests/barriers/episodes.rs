//! Every barrier, in random shapes and under random schedules, keeps its promise.

use proptest::prelude::*;
use sme_barrier::{
    Algorithm, Butterfly, ButterflySpec, Dissemination, DisseminationSpec, Extent, FlagPhase,
    FlagPhaseSpec, Flat, FlatSpec, Layout, Mapping, Pthread, PthreadSpec, Ranks, Spacing, Tree,
    TreeShape, TreeSpec,
};
use sme_memory::Route;

use crate::checker::{Run, check};
use crate::memory::{Failure, Traffic};

/// A barrier and a run of it.
#[derive(Clone, Debug)]
pub struct Case {
    pub algorithm: Algorithm,
    pub extent: Extent,
    pub nodes: u32,
    pub cores: u32,
    pub fan_in: u32,
    pub shape: TreeShape,
    pub mapping: Mapping,
    pub route: Route,
    pub home: u32,
    pub layout: Layout,
    pub run: Run,
}

impl Case {
    /// Builds the barrier and runs it.
    pub fn check(&self) -> Result<Traffic, Failure> {
        let &Self {
            cores, layout, run, ..
        } = self;
        let ranks: Ranks = self.mapping.ranks(self.extent, self.nodes).unwrap();
        let threads = vec![cores; self.nodes as usize];
        match self.algorithm {
            Algorithm::FlagPhase => {
                let mut threads = threads;
                // The last node may have fewer threads, or none.
                if let [_, .., last] = &mut threads[..] {
                    *last = self.fan_in % (cores + 1);
                }
                let barrier = FlagPhase::new(FlagPhaseSpec {
                    threads: threads.clone(),
                    home: self.home % self.nodes,
                    route: self.route,
                    layout,
                });
                let barrier = barrier.unwrap();
                check(&barrier, &threads, barrier.bytes(), run)
            }
            Algorithm::Flat => {
                let spec = FlatSpec {
                    ranks,
                    cores,
                    layout,
                };
                let barrier = Flat::new(spec).unwrap();
                check(&barrier, &threads, barrier.bytes(), run)
            }
            Algorithm::Tree => {
                let barrier = Tree::new(TreeSpec {
                    ranks,
                    cores,
                    fan_in: self.fan_in,
                    shape: self.shape,
                    layout,
                });
                let barrier = barrier.unwrap();
                check(&barrier, &threads, barrier.bytes(), run)
            }
            Algorithm::Dissemination => {
                let spec = DisseminationSpec {
                    ranks,
                    cores,
                    layout,
                };
                let barrier = Dissemination::new(spec).unwrap();
                check(&barrier, &threads, barrier.bytes(), run)
            }
            Algorithm::Butterfly => {
                let spec = ButterflySpec {
                    ranks,
                    cores,
                    layout,
                };
                let barrier = Butterfly::new(spec).unwrap();
                check(&barrier, &threads, barrier.bytes(), run)
            }
            Algorithm::Pthread => {
                let node = self.home % self.nodes;
                let mut threads = vec![0; self.nodes as usize];
                threads[node as usize] = cores * 3;
                let spec = PthreadSpec {
                    node,
                    threads: cores * 3,
                    layout,
                };
                let barrier = Pthread::new(spec).unwrap();
                check(&barrier, &threads, barrier.bytes(), run)
            }
        }
    }
}

fn layouts() -> impl Strategy<Value = Layout> {
    let spacing = prop::sample::select(Spacing::ALL);
    (spacing, 3..8u32, 0..3u64).prop_map(|(spacing, log, lines)| Layout {
        spacing,
        line_bytes: 1 << log,
        base: lines << log,
    })
}

fn runs() -> impl Strategy<Value = Run> {
    let skew = prop::sample::select(&[0, 3, 100][..]);
    (1..6u32, skew, any::<u64>()).prop_map(|(episodes, skew, seed)| Run {
        episodes,
        skew,
        seed,
    })
}

/// A mesh and how many nodes stand on it.
fn meshes() -> impl Strategy<Value = (Extent, u32)> {
    let extents = (1..8u32, 1..6u32, 1..3u32).prop_map(|(width, height, depth)| Extent {
        width,
        height,
        depth,
    });
    extents.prop_flat_map(|extent| {
        let most = extent.positions().min(40) as u32;
        (Just(extent), 1..=most)
    })
}

pub fn cases() -> impl Strategy<Value = Case> {
    let algorithm = prop::sample::select(Algorithm::ALL);
    let shape = prop::sample::select(TreeShape::ALL);
    let mapping = prop::sample::select(Mapping::ALL);
    let route = prop::sample::select(&[Route::Nearest, Route::Global][..]);
    let places = (meshes(), 1..=6u32, any::<u32>());
    let choices = (algorithm, 2..=9u32, shape, mapping, route);
    (places, choices, layouts(), runs()).prop_map(|(places, choices, layout, run)| {
        let ((extent, nodes), cores, home) = places;
        let (algorithm, fan_in, shape, mapping, route) = choices;
        Case {
            algorithm,
            extent,
            nodes,
            cores,
            fan_in,
            shape,
            mapping,
            route,
            home,
            layout,
            run,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn nobody_leaves_before_all_have_arrived_and_all_leave(case in cases()) {
        let outcome = case.check();
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
    }
}

#[test]
fn a_run_is_repeated_exactly_by_its_seed() {
    let case = Case {
        algorithm: Algorithm::Pthread,
        extent: Extent::plane(1, 1),
        nodes: 1,
        cores: 4,
        fan_in: 2,
        shape: TreeShape::Heap,
        mapping: Mapping::Rows,
        route: Route::Nearest,
        home: 0,
        layout: Layout::packed(64),
        run: Run {
            episodes: 5,
            skew: 10,
            seed: 7,
        },
    };
    assert_eq!(case.check(), case.check());
}
