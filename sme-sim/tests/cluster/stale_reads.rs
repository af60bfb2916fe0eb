//! The checker of stale reads on the machine: each way to forget a flush is named, and a program
//! that forgets none is not.

use sme_memory::{Cacheable, Flag, Memory, Route, Until};
use sme_sim::machine::Readable;
use sme_sim::machine::System;
use sme_sim::observe::staleness::{Cause, StaleReport};
use sme_sim::parts::contract::ThreadMemory;

use crate::programs::{Program, cluster, ns, place, setup, setup_with};

/// The step that a hand-over leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Forgets {
    Nothing,
    WriteBack,
    Invalidate,
}

/// The flag at the beginning of the memory of `node`.
fn flag(memory: &ThreadMemory, node: u32) -> Flag {
    memory.flag(place(node, 0), Route::Nearest)
}

/// Node 0 writes a word of node 2's memory that node 1 has read, and hands it over to node 1.
fn hand_over(forgets: Forgets, route: Route) -> StaleReport {
    let setup = setup("mesh:3x1", 3, 1);
    let mut cluster = cluster(setup, |memory, node, _| -> Program {
        let word = memory.word(place(2, 128), route);
        Box::pin(async move {
            match node {
                0 => {
                    memory.wait(flag(&memory, 0), Until::Is(1)).await;
                    memory.store(word, 7).await;
                    if forgets != Forgets::WriteBack {
                        memory.flush(word).await;
                    }
                    memory.load(memory.word(place(2, 64), Route::Global)).await;
                    memory.set(flag(&memory, 1), 1).await;
                }
                1 => {
                    memory.load(word).await;
                    memory.set(flag(&memory, 0), 1).await;
                    memory.wait(flag(&memory, 1), Until::Is(1)).await;
                    if forgets != Forgets::Invalidate {
                        memory.flush(word).await;
                    }
                    memory.load(word).await;
                }
                _ => {}
            }
        })
    })
    .unwrap();
    cluster.check_loads().unwrap();
    cluster.preset(place(2, 128), 3);
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    cluster.stale_reads().unwrap()
}

#[test]
fn a_missing_flush_is_found_and_named() {
    let report = hand_over(Forgets::Nothing, Route::Cached);
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.loads, report.racing_loads), (3, 0));
    for (forgets, cause) in [
        (Forgets::WriteBack, Cause::NotWrittenBack),
        (Forgets::Invalidate, Cause::NotInvalidated),
    ] {
        let report = hand_over(forgets, Route::Cached);
        assert_eq!(report.stale_reads, 1, "{forgets:?}: {report}");
        let [stale] = &report.findings[..] else {
            panic!("{report}");
        };
        assert_eq!(stale.cause, cause);
        assert_eq!((stale.seen, stale.newer), (3, 7));
        assert_eq!((stale.reader.node, stale.home, stale.offset), (1, 2, 128));
        let written = stale.written.as_ref().unwrap();
        assert_eq!(written.by.node, 0);
        for source in [&stale.source, &written.source] {
            assert!(source.as_ref().unwrap().file.ends_with("stale_reads.rs"));
        }
    }
}

/// Without caches nothing is to be flushed, and what was posted may still be on its way.
#[test]
fn uncached_memory_needs_only_the_read_back() {
    assert!(hand_over(Forgets::Nothing, Route::Global).is_clean());
    assert!(hand_over(Forgets::WriteBack, Route::Global).is_clean());
}

/// Node 0 stores to node 3, whose bridge others keep busy, and sets a flag of node 1 that a thread
/// of node 3 polls: its own memory may be older than that.
#[test]
fn without_a_read_back_a_store_is_still_on_its_way() {
    let run = |reads_back: bool| {
        let setup = setup_with(&[("host.bridge", "900 ns")], "mesh:2x2", 4, 2);
        let mut cluster = cluster(setup, |memory, node, core| -> Program {
            Box::pin(async move {
                let word = memory.word(place(3, 128), Route::Nearest);
                match (node, core) {
                    (1 | 2, _) => {
                        for turn in 0..10 {
                            let at = 1024 + 64 * u64::from(node * 2 + core);
                            let noise = memory.word(place(3, at), Route::Global);
                            memory.store(noise, turn).await;
                        }
                    }
                    (0, 0) => {
                        memory.delay(ns(500)).await;
                        memory.store(word, 7).await;
                        if reads_back {
                            memory.load(memory.word(place(3, 64), Route::Global)).await;
                        }
                        let flag = memory.flag(place(1, 0), Route::Nearest);
                        memory.set(flag, 1).await;
                    }
                    (3, 0) => {
                        let flag = memory.flag(place(1, 0), Route::Global);
                        memory.wait(flag, Until::Is(1)).await;
                        memory.load(word).await;
                    }
                    _ => {}
                }
            })
        })
        .unwrap();
        cluster.check_loads().unwrap();
        assert_eq!(cluster.run(1, |_| {}), Ok(()));
        cluster.stale_reads().unwrap()
    };
    let report = run(true);
    assert!(report.is_clean(), "{report}");
    let report = run(false);
    assert_eq!(report.stale_reads, 1, "{report}");
    assert_eq!(report.findings[0].cause, Cause::InFlight, "{report}");
}

/// Checking changes nothing of what is simulated, and finds the same with any number of workers.
#[test]
fn checking_has_no_influence() {
    let run = |checked: bool, workers| {
        let mut cluster = cluster(setup("mesh:2x2", 4, 4), |memory, node, core| {
            let program: Program = Box::pin(async move {
                for step in 0..40 {
                    let at = u64::from(node * 5 + core * 3 + step) % 16;
                    let word = memory.word(place(step % 4, 64 + at * 8), Route::Cached);
                    let value = memory.load(word).await;
                    memory.store(word, value + 1).await;
                    if step % 7 == 0 {
                        memory.flush(word).await;
                    }
                }
            });
            program
        })
        .unwrap();
        if checked {
            cluster.check_loads().unwrap();
        }
        assert_eq!(cluster.run(workers, |_| {}), Ok(()));
        let report = cluster.stale_reads().map(|report| report.to_string());
        (
            (cluster.end(), cluster.events(), cluster.cache_traffic()),
            report,
        )
    };
    let (plain, none) = run(false, 1);
    assert_eq!(none, None);
    let (checked, report) = run(true, 1);
    assert_eq!(plain, checked);
    assert_eq!(run(true, 3), (checked, report));
}
