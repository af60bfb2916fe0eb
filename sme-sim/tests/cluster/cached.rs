//! Memory behind the engine that is cached: copies that go stale, and what brings them up to date.

use std::sync::{Arc, Mutex};

use sme_memory::{Cacheable, Memory, Place, Route, Until, Word};
use sme_sim::machine::Readable;
use sme_sim::machine::System;
use sme_sim::observe::failure::Failure;
use sme_sim::observe::traffic::CacheTraffic;
use sme_sim::parts::contract::ThreadMemory;

use crate::programs::{Program, cluster, nothing, ns, place, run, setup, setup_with};

fn cached(memory: &ThreadMemory, place: Place) -> Word {
    memory.word(place, Route::Cached)
}

type Seen = Arc<Mutex<Vec<u64>>>;

/// Values of `uncached.load_payload`.
const PAYLOADS: [&str; 4] = ["8 B", "16 B", "32 B", "64 B"];

/// Returns the values that a program has seen.
fn seen(seen: &Seen) -> Vec<u64> {
    seen.lock().unwrap().clone()
}

/// Node 0 reads a word of node 1's three times, while node 2 stores to it past all caches;
/// `between` the second and the third it flushes its copy.
fn reads(flush: bool) -> Vec<u64> {
    let log = Seen::default();
    let outcome = run(setup("mesh:3x1", 3, 1), |memory, node, _| -> Program {
        let log = Arc::clone(&log);
        match node {
            0 => Box::pin(async move {
                let word = cached(&memory, place(1, 128));
                for turn in 0..3 {
                    let value = memory.load(word).await;
                    log.lock().unwrap().push(value);
                    memory.delay(ns(20_000)).await;
                    if turn == 1 && flush {
                        memory.flush(word).await;
                    }
                }
            }),
            2 => Box::pin(async move {
                memory.delay(ns(10_000)).await;
                let word = memory.word(place(1, 128), Route::Global);
                memory.store(word, 7).await;
            }),
            _ => nothing(),
        }
    });
    assert_eq!(outcome, Ok(()));
    seen(&log)
}

/// Returns what a thread sees that loads and stores in its caches, when it ends, and the traffic of
/// its caches; if it `nests`, it simulates another machine in the midst of that.
fn beside_another_run(nests: bool) -> (Vec<u64>, sme_sim::time::Time, CacheTraffic) {
    let log = Seen::default();
    let kept = Arc::clone(&log);
    let machine = cluster(setup("mesh:2x1", 2, 1), move |memory, node, _| -> Program {
        let log = Arc::clone(&kept);
        if node != 0 {
            return nothing();
        }
        Box::pin(async move {
            let words = [128, 136].map(|offset| cached(&memory, place(1, offset)));
            for turn in 0..4 {
                if turn == 2 && nests {
                    let (seen, ..) = beside_another_run(false);
                    assert_eq!(seen, [0, 1, 2, 3]);
                }
                memory.store(words[0], turn).await;
                memory.store(words[1], turn).await;
                let value = memory.load(words[0]).await;
                log.lock().unwrap().push(value);
                // From here on words are used in the cache, in place.
                memory.fence().await;
            }
        })
    });
    let mut machine = machine.unwrap();
    machine.run(1, |_| {}).unwrap();
    (seen(&log), machine.end(), machine.cache_traffic())
}

#[test]
fn a_program_may_simulate_another_machine() {
    let alone = beside_another_run(false);
    assert_eq!(alone.0, [0, 1, 2, 3]);
    assert_eq!(beside_another_run(true), alone);
}

#[test]
fn a_copy_is_stale_until_it_is_flushed() {
    assert_eq!(reads(false), [0, 0, 0]);
    assert_eq!(reads(true), [0, 0, 7]);
}

/// Copies of a line that node 0 fetches again and again, one read after the other, from word
/// `first` on, while node 1 writes 1, 2, 3 and so on to all words of it, from the first word to the
/// last.
fn copies_of_a_changing_line(payload: &str, first: u64) -> Vec<[u64; 8]> {
    let constants = [
        ("uncached.load_payload", payload),
        ("cache.fill_requests", "1"),
    ];
    let log = Arc::new(Mutex::new(Vec::new()));
    let outcome = run(
        setup_with(&constants, "mesh:2x1", 2, 1),
        |memory, node, _| -> Program {
            let log = Arc::clone(&log);
            match node {
                0 => Box::pin(async move {
                    let word = |nth| cached(&memory, place(1, 64 + 8 * (nth % 8)));
                    for _ in 0..12 {
                        let mut copy = [0; 8];
                        for nth in first..first + 8 {
                            copy[nth as usize % 8] = memory.load(word(nth)).await;
                        }
                        log.lock().unwrap().push(copy);
                        memory.flush(word(0)).await;
                    }
                }),
                _ => Box::pin(async move {
                    for value in 1..30_000 {
                        for nth in 0..8 {
                            let word = memory.word(place(1, 64 + 8 * nth), Route::Nearest);
                            memory.store(word, value).await;
                        }
                    }
                }),
            }
        },
    );
    assert_eq!(outcome, Ok(()));
    Arc::try_unwrap(log).unwrap().into_inner().unwrap()
}

/// The words of one read are those of one moment: of two that are written in turns, the second is
/// never newer. Those of two reads are not.
#[test]
fn each_read_of_a_fill_sees_one_moment() {
    let ordered = |words: &[u64]| {
        words
            .windows(2)
            .all(|two| (0..=1).contains(&(two[0] as i64 - two[1] as i64)))
    };
    for (payload, words) in PAYLOADS.into_iter().zip([1, 2, 4, 8]) {
        for first in [0, 5] {
            let copies = copies_of_a_changing_line(payload, first);
            assert!(copies[11][0] > copies[0][0], "{payload}: nothing changes");
            for copy in &copies {
                assert!(copy.chunks(words).all(ordered), "{payload}: {copy:?}");
                // The read with the word that was wanted was the first, the others followed in
                // turn.
                let mut reads = copy.chunks(words).collect::<Vec<_>>();
                reads.rotate_left(first as usize / words);
                assert!(
                    reads.is_sorted_by(|before, after| before[0] < after[0]),
                    "{payload} from {first}: {copy:?}"
                );
            }
            assert_eq!(
                copies.iter().all(|copy| ordered(copy)),
                words == 8,
                "{payload}"
            );
        }
    }
}

/// The view of node 0 of a line at its own memory and at node 1's, word by word from word `first`
/// on, and the loads that this took.
fn lines_seen(payload: &str, words: u64, first: u64) -> (Vec<u64>, u64) {
    let line = format!("{} B", 8 * words);
    let constants = [("uncached.load_payload", payload), ("cache.line", &*line)];
    let log = Seen::default();
    let program = |memory: ThreadMemory, node, _| -> Program {
        let log = Arc::clone(&log);
        match node {
            0 => Box::pin(async move {
                memory.counts().await;
                for (home, nth) in [0, 1]
                    .into_iter()
                    .flat_map(|home| (0..words).map(move |nth| (home, nth)))
                {
                    let word = cached(&memory, place(home, 64 + 8 * ((first + nth) % words)));
                    let value = memory.load(word).await;
                    log.lock().unwrap().push(value);
                }
            }),
            _ => nothing(),
        }
    };
    let mut cluster = cluster(setup_with(&constants, "mesh:2x1", 2, 1), program).unwrap();
    for offset in (0..192).step_by(8) {
        cluster.preset(place(0, offset), offset);
        cluster.preset(place(1, offset), 1000 + offset);
    }
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    assert!(cluster.is_quiet());
    assert_eq!(cluster.cache_traffic().fills, 2);
    (seen(&log), cluster.traffic().remote_loads)
}

/// A fill brings the words of memory, whichever is wanted first, in as many loads as it takes.
#[test]
fn a_fill_of_any_payload_brings_the_whole_line() {
    for words in [4, 8] {
        for (payload, each) in PAYLOADS.into_iter().zip([1, 2, 4, 8]) {
            for first in 0..if each <= words { words } else { 0 } {
                let line =
                    |from: u64| (0..words).map(move |nth| from + 64 + 8 * ((first + nth) % words));
                let expected: Vec<u64> = line(0).chain(line(1000)).collect();
                assert_eq!(
                    lines_seen(payload, words, first),
                    (expected, 2 * words / each)
                );
            }
        }
    }
}

/// One node stores to its copy; memory at home afterwards, and the traffic.
fn store_and(
    end: impl Fn(ThreadMemory, Word) -> Program + Copy + Send + 'static,
) -> (u64, CacheTraffic) {
    let mut cluster = cluster(setup("mesh:2x1", 2, 1), |memory, node, _| -> Program {
        match node {
            0 => Box::pin(async move {
                let word = cached(&memory, place(1, 8));
                memory.store(word, 5).await;
                memory.fence().await;
                assert_eq!(memory.load(word).await, 5);
                end(memory, word).await;
            }),
            _ => nothing(),
        }
    })
    .unwrap();
    cluster.preset(place(1, 8), 1);
    cluster.preset(place(1, 16), 2);
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    assert!(cluster.is_quiet());
    assert_eq!(cluster.at_home(place(1, 16)), 2);
    (cluster.at_home(place(1, 8)), cluster.cache_traffic())
}

#[test]
fn a_store_stays_in_the_cache_until_it_is_written_back() {
    let (home, traffic) = store_and(|_, _| nothing());
    assert_eq!((home, traffic.fills, traffic.write_backs), (1, 1, 0));
    let (home, traffic) = store_and(|m, word| Box::pin(async move { m.flush(word).await }));
    assert_eq!((home, traffic.write_backs, traffic.displaced), (5, 1, 0));
    let (home, traffic) = store_and(|m, _| Box::pin(async move { m.write_back().await }));
    assert_eq!((home, traffic.write_backs), (5, 1));
    assert!(traffic.flush_time > ns(2_000));
    let all = |m: ThreadMemory, word| -> Program {
        Box::pin(async move {
            m.write_back_invalidate().await;
            assert_eq!(m.load(word).await, 5);
        })
    };
    let (home, traffic) = store_and(all);
    assert_eq!((home, traffic.fills), (5, 2));
}

/// Two nodes write neighbouring words of one line, which a third holds, and write them back.
fn neighbours(writeback: &str) -> (u64, u64) {
    let setup = setup_with(&[("cache.writeback", writeback)], "mesh:3x1", 3, 1);
    let mut cluster = cluster(setup, |memory, node, _| -> Program {
        match node {
            0 | 2 => Box::pin(async move {
                let word = cached(&memory, place(1, 8 * u64::from(node)));
                memory.store(word, 5 + u64::from(node)).await;
                memory.fence().await;
                memory.delay(ns(20_000 * u64::from(node))).await;
                memory.flush(word).await;
            }),
            _ => nothing(),
        }
    })
    .unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    (cluster.at_home(place(1, 0)), cluster.at_home(place(1, 16)))
}

#[test]
fn whole_lines_written_back_lose_what_others_wrote() {
    assert_eq!(neighbours("mask"), (5, 7));
    assert_eq!(neighbours("line"), (0, 7));
}

#[test]
fn a_full_set_displaces_lines_which_are_written_back() {
    let small = [
        ("cache.l1_size", "128 B"),
        ("cache.l1_ways", "2"),
        ("cache.l2_size", "256 B"),
        ("cache.l2_ways", "2"),
    ];
    let mut cluster = cluster(
        setup_with(&small, "mesh:2x1", 2, 1),
        |memory, node, _| -> Program {
            match node {
                0 => Box::pin(async move {
                    for line in 0..16 {
                        let word = cached(&memory, place(1, 64 * line));
                        memory.store(word, 100 + line).await;
                    }
                    memory.fence().await;
                    for line in (0..16).rev() {
                        let word = cached(&memory, place(1, 64 * line));
                        assert_eq!(memory.load(word).await, 100 + line);
                    }
                }),
                _ => nothing(),
            }
        },
    )
    .unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    let traffic = cluster.cache_traffic();
    assert_eq!((traffic.write_backs, traffic.displaced), (16, 16));
    assert_eq!(traffic.fills, 16 + 12, "{traffic:?}");
    for line in 0..16 {
        assert_eq!(cluster.at_home(place(1, 64 * line)), 100 + line);
    }
}

/// All cores of a node count up in turns in one word and see each other's stores.
#[test]
fn a_node_is_coherent_with_itself() {
    let threads = 8;
    let outcome = run(setup("mesh:2x1", 2, threads), |memory, node, core| {
        if node != 0 {
            return nothing();
        }
        let word = cached(&memory, place(1, 64));
        Box::pin(async move {
            let mut turns = 0;
            while turns < 5 {
                let value = memory.load(word).await;
                if value % u64::from(threads) == u64::from(core) {
                    memory.store(word, value + 1).await;
                    turns += 1;
                }
            }
        })
    });
    assert_eq!(outcome, Ok(()));
}

/// A flag that is cached is spun on for ever when another node sets it, and ends the wait when a
/// core of the same node does.
fn spin_on_cached_flag(setter: u32) -> Result<(), Failure> {
    run(setup("mesh:2x1", 2, 2), |memory, node, core| {
        let flag = memory.flag(place(1, 64), Route::Cached);
        match (node, core) {
            (0, 0) => Box::pin(async move {
                memory.wait(flag, Until::IsNot(0)).await;
            }),
            (node, 1) if node == setter => Box::pin(async move {
                memory.delay(ns(20_000)).await;
                memory.set(flag, 9).await;
            }),
            _ => nothing(),
        }
    })
}

#[test]
fn a_cached_flag_of_another_node_never_changes() {
    assert_eq!(spin_on_cached_flag(0), Ok(()));
    let failure = spin_on_cached_flag(1).unwrap_err().to_string();
    let expected = "1 thread waits\n  node 0 core 0 spins in its cache at byte 64 of node 1 (0x4000010100000040) until \
                    it is not 0, in sme-sim/tests/cluster/cached.rs:";
    assert!(failure.contains(expected), "{failure}");
    let expected = ": memory at home holds 0, its cache 0; never written; the cache of node 1 core 1 holds 9, \
                    which is not written back";
    assert!(failure.ends_with(expected), "{failure}");
}

/// The outcome of a program with hits, misses, transfers and flushes does not depend on workers.
#[test]
fn the_same_happens_with_any_number_of_workers() {
    let run = |payload, workers| {
        let setup = setup_with(&[("uncached.load_payload", payload)], "mesh:2x2", 4, 4)
            .with(|setup| setup.seeded(3));
        let log = Seen::default();
        let mut cluster = cluster(setup, |memory, node, core| -> Program {
            let log = Arc::clone(&log);
            Box::pin(async move {
                let mut sum = 0;
                for step in 0..60 {
                    let at = u64::from(node * 37 + core * 11 + step * 7);
                    let word = cached(&memory, place((node + step) % 4, at % 32 * 8));
                    sum += memory.load(word).await;
                    memory.store(word, sum + u64::from(step)).await;
                    if step % 13 == 0 {
                        memory.flush(word).await;
                    }
                }
                if core == 0 {
                    memory.write_back_invalidate().await;
                }
                log.lock()
                    .unwrap()
                    .push(u64::from(node * 4 + core) << 48 | sum);
            })
        })
        .unwrap();
        assert_eq!(cluster.run(workers, |_| {}), Ok(()));
        let mut log = seen(&log);
        log.sort_unstable();
        let homes: Vec<u64> = (0..4)
            .flat_map(|node| (0..32).map(move |word| place(node, word * 8)))
            .map(|place| cluster.at_home(place))
            .collect();
        (
            cluster.end(),
            cluster.events(),
            cluster.cache_traffic(),
            log,
            homes,
        )
    };
    for payload in PAYLOADS {
        assert_eq!(run(payload, 1), run(payload, 3), "{payload}");
    }
}
