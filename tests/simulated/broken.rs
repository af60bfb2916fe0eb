//! Barriers with one fault each, and sound ones on a machine that breaks them: every run must end
//! with a failure that says so, and soon.

use std::future::Future;

use sme_barrier::{Algorithm, Barrier, Layout, Mapping, Member, TreeShape};
use sme_memory::{Flag, Flags, Memory, Place, Route, Until};
use sme_sim::cluster::{Failure, Pinning};

use crate::case::{Case, Ran};

fn flag<M: Memory>(memory: &M, node: u32, offset: u32) -> Flag {
    let offset = u64::from(offset);
    memory.flag(Place { node, offset }, Route::Nearest)
}

/// Flags in one's own node, a line each.
fn flags<M: Memory>(memory: &M, offset: u32, count: u32) -> Flags {
    Flags {
        first: flag(memory, memory.node(), offset),
        stride: 64,
        count,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeFault {
    None,
    SkipsAChild,
    SkipsAThread,
    ThreadLeavesBeforeRelease,
    MasterLeavesBeforeRelease,
    PhaseNeverFlipped,
    ChildNotReleased,
    NotifiesBeforeGathering,
}

/// A binary heap of masters. In each node: the phase at 0, its threads' flags from 64 on, its two
/// children's from 4096 on.
struct Heap {
    nodes: u32,
    cores: u32,
    fault: TreeFault,
}

impl<M: Memory> Barrier<M> for Heap {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        let has = |fault| self.fault == fault;
        async move {
            let phase = flag(memory, me.node, 0);
            let mine = memory.read(phase).await;
            let (changed, next) = (Until::IsNot(mine), 1 - mine);
            if me.core > 0 {
                memory.set(flag(memory, me.node, 64 * me.core), next).await;
                if !has(TreeFault::ThreadLeavesBeforeRelease) {
                    memory.wait(phase, changed).await;
                }
                return;
            }
            let notify = async || {
                if let Some(above) = me.node.checked_sub(1) {
                    let there = flag(memory, above / 2, 4096 + 64 * (above % 2));
                    memory.set(there, next).await;
                }
            };
            if has(TreeFault::NotifiesBeforeGathering) {
                notify().await;
            }
            let skip = u32::from(has(TreeFault::SkipsAThread));
            let threads = flags(memory, 64, self.cores - 1).skip(skip);
            memory.wait_all(threads, changed).await;
            let children = (2 * me.node + 1..self.nodes).take(2);
            let skip = u32::from(has(TreeFault::SkipsAChild));
            let below = flags(memory, 4096, children.len() as u32).skip(skip);
            memory.wait_all(below, changed).await;
            if !has(TreeFault::NotifiesBeforeGathering) {
                notify().await;
            }
            if me.node > 0 && !has(TreeFault::MasterLeavesBeforeRelease) {
                memory.wait(phase, changed).await;
            }
            let told = if has(TreeFault::PhaseNeverFlipped) {
                mine
            } else {
                next
            };
            let skip = usize::from(has(TreeFault::ChildNotReleased));
            for child in children.skip(skip) {
                memory.set(flag(memory, child, 0), told).await;
            }
            if me.node == 0 {
                memory.set(phase, told).await;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundsFault {
    None,
    OneRoundShort,
    WaitsBeforeItNotifies,
    SenseNeverReversed,
}

/// Dissemination among one thread a node; flags of the two parities from 0 and from 2048 on.
struct Rounds {
    nodes: u32,
    fault: RoundsFault,
}

impl<M: Memory> Barrier<M> for Rounds {
    type Local = u32;

    fn wait(&self, memory: &M, me: Member, local: &mut u32) -> impl Future<Output = ()> + Send {
        let has = |fault| self.fault == fault;
        let episode = *local;
        *local += 1;
        async move {
            let sense = if has(RoundsFault::SenseNeverReversed) {
                1
            } else {
                1 - (episode / 2 % 2) as u8
            };
            let rounds = self.nodes.next_power_of_two().trailing_zeros();
            for round in 0..rounds - u32::from(has(RoundsFault::OneRoundShort)) {
                let offset = 2048 * (episode % 2) + 64 * round;
                let partner = (me.node + (1 << round)) % self.nodes;
                let mine = flag(memory, me.node, offset);
                if has(RoundsFault::WaitsBeforeItNotifies) {
                    memory.wait(mine, Until::Is(sense)).await;
                }
                memory.set(flag(memory, partner, offset), sense).await;
                memory.wait(mine, Until::Is(sense)).await;
            }
        }
    }
}

fn case(nodes: u32, cores: u32, seed: u64) -> Case {
    Case {
        machine: "sme-prototype",
        algorithm: Algorithm::Tree,
        topology: "mesh:3x3".parse().unwrap(),
        nodes,
        cores,
        pinning: Pinning::Scatter,
        layout: Layout::padded(64),
        fan_in: 2,
        shape: TreeShape::Heap,
        mapping: Mapping::Rows,
        home: 0,
        route: Route::Nearest,
        // So long that whoever is last comes long after all others, and often enough.
        skew: 400_000,
        episodes: 24,
        seed,
        coherent_stores: true,
        workers: 1,
    }
}

/// It must be found, and within some episodes' time: the report comes a few ms later at most.
fn assert_found(what: impl std::fmt::Debug, outcome: Result<Ran, Failure>) {
    match outcome {
        Err(Failure::Overtaken { .. }) => {}
        Err(Failure::Deadlock { at, stuck }) => {
            assert!(at.as_us() < 30_000.0, "{what:?}: only at {at}");
            assert!(!stuck.is_empty());
        }
        other => panic!("{what:?}: {other:?}"),
    }
}

const SEEDS: u64 = 4;

#[test]
fn faults_of_a_tree_are_found() {
    let run = |fault, seed| {
        let case = case(7, 3, seed);
        case.simulate(Heap {
            nodes: case.nodes,
            cores: case.cores,
            fault,
        })
    };
    for seed in 0..SEEDS {
        assert!(run(TreeFault::None, seed).unwrap().quiet);
        for fault in [
            TreeFault::SkipsAChild,
            TreeFault::SkipsAThread,
            TreeFault::ThreadLeavesBeforeRelease,
            TreeFault::MasterLeavesBeforeRelease,
            TreeFault::PhaseNeverFlipped,
            TreeFault::ChildNotReleased,
            TreeFault::NotifiesBeforeGathering,
        ] {
            assert_found((fault, seed), run(fault, seed));
        }
    }
}

#[test]
fn faults_of_a_dissemination_barrier_are_found() {
    for nodes in [2, 5, 8] {
        let run = |fault, seed| case(nodes, 1, seed).simulate(Rounds { nodes, fault });
        for seed in 0..SEEDS {
            assert!(run(RoundsFault::None, seed).unwrap().quiet);
            for fault in [
                RoundsFault::OneRoundShort,
                RoundsFault::WaitsBeforeItNotifies,
                RoundsFault::SenseNeverReversed,
            ] {
                assert_found((nodes, fault, seed), run(fault, seed));
            }
        }
    }
}

/// Without the *coherent* bit a store from another node leaves copies as they are: every barrier
/// whose threads spin in their caches stands still, with the news in memory and not in the cache.
#[test]
fn sound_barriers_stand_still_where_stores_do_not_probe() {
    for algorithm in [
        Algorithm::Flat,
        Algorithm::Tree,
        Algorithm::Dissemination,
        Algorithm::Butterfly,
        Algorithm::FlagPhase,
    ] {
        for nodes in [2, 4] {
            let stale = Case {
                algorithm,
                coherent_stores: false,
                skew: 5_000,
                ..case(nodes, 4, 1)
            };
            let Err(Failure::Deadlock { stuck, .. }) = stale.run() else {
                panic!("{algorithm:?} on {nodes} nodes");
            };
            let old = stuck.iter().any(|thread| {
                thread.awaited.as_ref().is_some_and(|awaited| {
                    let until = awaited.until.unwrap();
                    let holds = |value: u64| until.holds(value as u8);
                    holds(awaited.at_home) && awaited.cached.is_some_and(|copy| !holds(copy))
                })
            });
            assert!(old, "{algorithm:?} on {nodes} nodes: {stuck:?}");
        }
    }
}

/// Loads through the engine are not cached, and nothing goes stale: flag-phase with all its data
/// behind the engine needs no coherent stores.
#[test]
fn polling_through_the_engine_needs_no_probes() {
    let polling = Case {
        algorithm: Algorithm::FlagPhase,
        route: Route::Global,
        coherent_stores: false,
        episodes: 4,
        ..case(2, 4, 1)
    };
    assert!(polling.run().unwrap().quiet);
}
