//! Every barrier, in random shapes and under random schedules, keeps its promise.

use proptest::prelude::*;
use sme_barrier::{
    Algorithm, Barrier, BarrierSpec, Extent, FlagPhase, FlagPhaseSpec, Layout, Mapping, Ranks,
    Spacing, TreeShape, Use, build,
};
use sme_memory::Route;

use crate::checker::{Run, check};
use crate::memory::{Failure, TestMemory, Traffic};

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
        if self.algorithm == Algorithm::FlagPhase {
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
            return check(&barrier, &threads, barrier.bytes(), run);
        }
        let mut spec = BarrierSpec {
            home: self.home % self.nodes,
            fan_in: self.fan_in,
            tree_shape: self.shape,
            ..BarrierSpec::new(self.algorithm, ranks, cores, layout)
        };
        let mut threads = threads;
        if self.algorithm == Algorithm::Pthread {
            spec.cores *= 3;
            threads.fill(0);
            threads[spec.home as usize] = spec.cores;
        }
        build(&spec, Checked { threads, run }).unwrap()
    }
}

/// Checks any barrier.
struct Checked {
    /// Of each node.
    threads: Vec<u32>,
    run: Run,
}

impl Use<TestMemory> for Checked {
    type Output = Result<Traffic, Failure>;

    fn barrier<B: Barrier<TestMemory> + 'static>(
        self,
        barrier: B,
        bytes: u64,
    ) -> Result<Traffic, Failure> {
        check(&barrier, &self.threads, bytes, self.run)
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
