//! Every barrier, in random shapes and under random schedules, keeps its promise.

use proptest::prelude::*;
use sme_barrier::{
    Algorithm, Barrier, BarrierSpec, Extent, FlagPhase, FlagPhaseSpec, Homes, Layout, Mapping,
    Ranks, Spacing, TreeShape, Use, build,
};
use sme_memory::Route;

use crate::checker::{Run, check_with_pool};
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
    /// Nodes of a pool, if there is one.
    pub pool: u32,
    pub run: Run,
}

impl Case {
    /// Builds the barrier and runs it.
    pub fn check(&self) -> Result<Traffic, Failure> {
        let &Self {
            cores, pool, run, ..
        } = self;
        let layout = self.layout.at(match pool {
            0 => Homes::Own,
            nodes => Homes::Pool {
                first: self.nodes,
                nodes,
            },
        });
        // The node whose memory holds the data of all threads.
        let home = match layout.homes {
            Homes::Pool { first, nodes }
                if matches!(self.algorithm, Algorithm::FlagPhase | Algorithm::Counter) =>
            {
                first + self.home % nodes
            }
            _ => self.home % self.nodes,
        };
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
                home,
                route: self.route,
                layout,
            });
            let barrier = barrier.unwrap();
            return check_with_pool(&barrier, (&threads, pool), barrier.bytes(), run);
        }
        let mut spec = BarrierSpec {
            home,
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
        build(&spec, Checked { threads, pool, run }).unwrap()
    }
}

/// Checks any barrier.
struct Checked {
    /// Of each node.
    threads: Vec<u32>,
    pool: u32,
    run: Run,
}

impl Use<TestMemory> for Checked {
    type Output = Result<Traffic, Failure>;

    fn barrier<B: Barrier<TestMemory> + 'static>(
        self,
        barrier: B,
        bytes: u64,
    ) -> Result<Traffic, Failure> {
        check_with_pool(&barrier, (&self.threads, self.pool), bytes, self.run)
    }
}

fn layouts() -> impl Strategy<Value = Layout> {
    let spacing = prop::sample::select(Spacing::ALL);
    (spacing, 3..8u32, 0..3u64).prop_map(|(spacing, log, lines)| Layout {
        spacing,
        line_bytes: 1 << log,
        base: lines << log,
        homes: Homes::Own,
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
    let pools = prop_oneof![2 => Just(0), 1 => 1..=5u32];
    let places = (meshes(), 1..=6u32, any::<u32>(), pools);
    let choices = (algorithm, 2..=9u32, shape, mapping, route);
    (places, choices, layouts(), runs()).prop_map(|(places, choices, layout, run)| {
        let ((extent, nodes), cores, home, pool) = places;
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
            pool,
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
        pool: 0,
        run: Run {
            episodes: 5,
            skew: 10,
            seed: 7,
        },
    };
    assert_eq!(case.check(), case.check());
}

/// Where there is a pool, a barrier whose nodes are told things in their own memory is refused.
#[test]
fn a_barrier_that_does_not_use_the_pool_is_caught() {
    let ranks = Mapping::Rows.ranks(Extent::plane(3, 1), 3).unwrap();
    for algorithm in [
        Algorithm::Flat,
        Algorithm::Tree,
        Algorithm::Dissemination,
        Algorithm::Butterfly,
    ] {
        let outcome = |homes| {
            let layout = Layout::packed(64).at(homes);
            let spec = BarrierSpec::new(algorithm, ranks.clone(), 2, layout);
            let run = Run {
                episodes: 2,
                skew: 3,
                seed: 1,
            };
            let threads = vec![2; 3];
            let checked = Checked {
                threads,
                pool: 1,
                run,
            };
            build(&spec, checked).unwrap()
        };
        let pool = Homes::Pool { first: 3, nodes: 1 };
        assert!(outcome(pool).is_ok(), "{algorithm}");
        let refused = Failure::Illegal("the memory of another host");
        assert_eq!(outcome(Homes::Own), Err(refused), "{algorithm}");
    }
}
