//! The tree barrier with a tree in each node keeps its promise, takes as many stores as it says,
//! and the checker finds what can be wrong inside the node.

use std::future::Future;

use proptest::prelude::*;
use sme_barrier::{
    Barrier, Extent, Layout, Mapping, Member, NodeTree, NodeTreeSpec, Ranks, SpecError, TreeShape,
    TreeSpec,
};
use sme_memory::{Memory, Until};

use crate::checker::{Run, check};
use crate::episodes::cases;
use crate::faulty::{flag, flags};
use crate::memory::Failure;

fn spec(ranks: Ranks, cores: u32, fan_in: u32, local_fan_in: u32, layout: Layout) -> NodeTreeSpec {
    NodeTreeSpec {
        among: TreeSpec {
            ranks,
            cores,
            fan_in,
            shape: TreeShape::Heap,
            layout,
        },
        local_fan_in,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nobody_leaves_before_all_have_arrived_and_all_leave(
        case in cases(),
        cores in 1..14u32,
        local_fan_in in 2..6u32,
    ) {
        let nodes = case.nodes.min(12);
        let ranks = case.mapping.ranks(case.extent, nodes).unwrap();
        let mut spec = spec(ranks, cores, case.fan_in, local_fan_in, case.layout);
        spec.among.shape = case.shape;
        let barrier = NodeTree::new(spec).unwrap();
        let threads = vec![cores; nodes as usize];
        let outcome = check(&barrier, &threads, barrier.bytes(), case.run);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
        let (nodes, cores) = (u64::from(nodes), u64::from(cores));
        let episodes = u64::from(case.run.episodes);
        let traffic = outcome.unwrap();
        prop_assert_eq!(traffic.remote_reads, 0);
        prop_assert_eq!(traffic.remote_sets, 2 * (nodes - 1) * episodes);
        // Up and down each edge of the nodes' trees, and the root's own phase.
        prop_assert_eq!(traffic.local_sets, (2 * nodes * (cores - 1) + 1) * episodes);
    }
}

#[test]
fn what_makes_no_tree_is_refused() {
    let ranks = || Mapping::Rows.ranks(Extent::plane(2, 1), 2).unwrap();
    let build = |cores, local_fan_in| {
        let spec = spec(ranks(), cores, 8, local_fan_in, Layout::padded(64));
        NodeTree::new(spec).map(drop)
    };
    assert_eq!(build(4, 1), Err(SpecError::FanIn { fan_in: 1 }));
    assert_eq!(build(0, 2), Err(SpecError::NoThreads));
    assert_eq!(build(1, u32::MAX), Ok(()));
}

/// A fault of a tree within one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NotifiesBeforeGathering,
    SkipsAChild,
    ReleasesAllButTheLast,
    LeavesBeforeRelease,
}

/// A binary tree of threads of one node, released as it was gathered.
struct Faulty {
    cores: u32,
    fault: Option<Fault>,
}

impl<M: Memory> Barrier<M> for Faulty {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        const LINE: u32 = 64;
        const RELEASED: u32 = 4096;
        let has = |fault| self.fault == Some(fault);
        async move {
            let released = |core: u32| flag(memory, 0, RELEASED + LINE * core);
            let mine = memory.read(released(me.core)).await;
            let (changed, next) = (Until::IsNot(mine), 1 - mine);
            let notify = async || {
                if me.core > 0 {
                    memory.set(flag(memory, 0, LINE * me.core), next).await;
                }
            };
            if has(Fault::NotifiesBeforeGathering) {
                notify().await;
            }
            let children = (2 * me.core + 1..self.cores).take(2);
            let skip = u32::from(has(Fault::SkipsAChild));
            let below = flags(memory, LINE * (2 * me.core + 1), children.len() as u32).skip(skip);
            memory.wait_all(below, changed).await;
            if !has(Fault::NotifiesBeforeGathering) {
                notify().await;
            }
            if me.core == 0 {
                memory.set(released(0), next).await;
            } else if !has(Fault::LeavesBeforeRelease) {
                memory.wait(released(me.core), changed).await;
            }
            let last = has(Fault::ReleasesAllButTheLast).then_some(self.cores - 1);
            for child in children.filter(|child| Some(*child) != last) {
                memory.set(released(child), next).await;
            }
        }
    }
}

#[test]
fn faults_within_a_node_are_found() {
    let cores = 7;
    let first_failure = |fault| {
        (0..300).find_map(|seed| {
            let skew = [0, 2, 40][seed as usize % 3];
            let episodes = 4;
            let how = Run {
                episodes,
                skew,
                seed,
            };
            check(&Faulty { cores, fault }, &[cores], 8192, how).err()
        })
    };
    assert_eq!(first_failure(None), None);
    for fault in [
        Fault::NotifiesBeforeGathering,
        Fault::SkipsAChild,
        Fault::ReleasesAllButTheLast,
        Fault::LeavesBeforeRelease,
    ] {
        let found = first_failure(Some(fault));
        let known = matches!(
            found,
            Some(Failure::LeftEarly { .. } | Failure::Deadlock { .. })
        );
        assert!(known, "{fault:?}: {found:?}");
    }
}
