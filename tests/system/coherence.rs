//! A barrier as coherence point: what leaving out one of its steps lets through.

use std::pin::Pin;
use std::sync::Arc;

use sme_barrier::{
    Barrier, CoherencePoint, Coherent, CoherentSpec, Layout, Mapping, Member, Tree, TreeShape,
    TreeSpec,
};
use sme_memory::{Memory, Place, Route};
use sme_sim::machine::Machine;
use sme_sim::machine::Setup;
use sme_sim::observe::spans::{EPISODE, overtaken};
use sme_sim::observe::staleness::{Cause, StaleReport};
use sme_sim::parts::contract::{Span, ThreadMemory};

type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

const NODES: u32 = 4;
const CORES: u32 = 2;
/// Words that are handed over, one a line.
const WORDS: u64 = 48;

fn barrier(point: CoherencePoint, cached: bool) -> Coherent<Tree> {
    let extent = sme_barrier::Extent {
        width: 2,
        height: 2,
        depth: 1,
    };
    let tree = Tree::new(TreeSpec {
        ranks: Mapping::SubMesh.ranks(extent, NODES).unwrap(),
        cores: CORES,
        fan_in: 8,
        shape: TreeShape::Heap,
        layout: Layout::padded(64),
    })
    .unwrap();
    let layout = Layout {
        base: tree.bytes(),
        ..Layout::padded(64)
    };
    Coherent::new(CoherentSpec {
        barrier: tree,
        point,
        cached,
        homes: 0..NODES,
        cores: CORES,
        layout,
    })
    .unwrap()
}

/// In each of three rounds one node writes words of node 3's memory and, after the barrier, all
/// read them; a second barrier separates the rounds. Memory takes writes slowly.
fn rounds(barrier: Coherent<Tree>, route: Route) -> StaleReport {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let machine = machine.with(&[("host.bridge", "900 ns")]).unwrap();
    let setup = Setup::new(machine.shape(), NODES, CORES).on("mesh:2x2".parse().unwrap());
    let base = barrier.bytes();
    let barrier = Arc::new(barrier);
    let program = |memory: ThreadMemory, node, core| -> Program {
        let barrier = Arc::clone(&barrier);
        Box::pin(async move {
            let me = Member { node, core };
            let mut local = Default::default();
            let place = |index| Place {
                node: 3,
                offset: base + 64 * index,
            };
            for round in 0..3u32 {
                if (round, 1) == (node, core) {
                    for index in 0..WORDS {
                        let word = memory.word(place(index), route);
                        memory.store(word, u64::from(round) * 100 + index).await;
                    }
                }
                for part in 0..2 {
                    let span = Span::new(EPISODE, 2 * round + part);
                    memory.begin(span).await;
                    barrier.wait(&memory, me, &mut local).await;
                    memory.end(span).await;
                    if part == 0 {
                        for index in (0..WORDS).rev() {
                            memory.load(memory.word(place(index), route)).await;
                        }
                    }
                }
            }
        })
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.check_loads().unwrap();
    assert_eq!(machine.run(1, |_| {}), Ok(()));
    assert_eq!(overtaken(machine.spans().called(EPISODE)), Ok(()));
    machine.stale_reads().unwrap()
}

fn causes(report: &StaleReport) -> Vec<Cause> {
    let mut causes: Vec<Cause> = report.findings.iter().map(|found| found.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    causes
}

#[test]
fn nothing_is_stale_after_a_barrier_that_is_a_coherence_point() {
    for (route, cached) in [(Route::Global, false), (Route::Cached, true)] {
        let report = rounds(barrier(CoherencePoint::Barrier, cached), route);
        assert!(report.is_clean(), "{route:?}: {report}");
        // And what the barriers read back: six barriers, in each node from each.
        let expected = 3 * u64::from(NODES * CORES) * WORDS + u64::from(6 * NODES * NODES);
        assert_eq!(report.loads, expected);
        assert_eq!(report.racing_loads, 0, "{report}");
    }
}

#[test]
fn a_barrier_that_does_nothing_leaves_copies_stale() {
    let report = rounds(barrier(CoherencePoint::None, true), Route::Cached);
    let causes = causes(&report);
    assert!(causes.contains(&Cause::NotWrittenBack), "{report}");
}

#[test]
fn a_barrier_that_only_writes_back_leaves_old_copies() {
    let report = rounds(barrier(CoherencePoint::WritebackOnly, true), Route::Cached);
    assert_eq!(causes(&report), [Cause::NotInvalidated], "{report}");
}

#[test]
fn without_the_read_back_a_posted_write_is_overtaken() {
    for (route, cached) in [(Route::Global, false), (Route::Cached, true)] {
        let barrier = barrier(CoherencePoint::Barrier, cached).without_read_back();
        let report = rounds(barrier, route);
        assert_eq!(causes(&report), [Cause::InFlight], "{route:?}: {report}");
    }
}
