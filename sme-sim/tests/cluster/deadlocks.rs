//! A run in which threads wait for what can never happen ends, and says who waits on what.

use std::collections::BTreeMap;

use sme_memory::{Atomic, Cacheable, Flags, Futex, Memory, Route, Until};
use sme_sim::machine::{Pinning, Readable};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::stuck::Stuck;
use sme_sim::time::Time;

use crate::programs::{cluster, nothing, ns, place, run, setup, setup_with, word};

fn stuck(outcome: Result<(), Failure>) -> Vec<Stuck> {
    match outcome {
        Err(Failure::Deadlock { stuck, .. }) => stuck,
        other => panic!("no deadlock: {other:?}"),
    }
}

/// The report without its time, which depends on the machine's constants.
fn report(outcome: Result<(), Failure>) -> String {
    match outcome {
        Err(failure @ Failure::Deadlock { at, .. }) => {
            failure.to_string().replacen(&at.to_string(), "TIME", 1)
        }
        other => panic!("no deadlock: {other:?}"),
    }
}

/// The line of this file that ends with the comment `marker`.
fn line_of(marker: &str) -> usize {
    let mut lines = include_str!("deadlocks.rs").lines();
    let found = lines.position(|line| line.ends_with(&format!("// {marker}")));
    1 + found.expect("a line with this comment")
}

#[test]
fn a_wait_in_the_cache_is_reported_with_both_values() {
    let stuck = stuck(run(setup("mesh:1x1", 1, 3), |memory, _, core| {
        Box::pin(async move {
            let flag = memory.flag(place(0, 128), Route::Nearest);
            match core {
                0 => memory.set(flag, 3).await,
                1 => drop(memory.wait(flag, Until::Is(5)).await),
                _ => {}
            }
        })
    }));
    assert_eq!(stuck.len(), 1);
    assert_eq!(
        (stuck[0].node, stuck[0].core, &*stuck[0].doing),
        (0, 1, "spins in its cache")
    );
    let awaited = stuck[0].awaited.clone().unwrap();
    let spec = setup("mesh:1x1", 1, 1).spec;
    assert_eq!(awaited.address, spec.node.private_bytes + 128);
    assert_eq!(awaited.until, Some(Until::Is(5)));
    assert_eq!(awaited.cached, Some(3));
    assert_eq!(awaited.writer, Some((0, 0)));
}

#[test]
fn a_wait_through_the_engine_is_reported_with_the_value_at_home() {
    // All sixteen threads of the waiting node poll: none of them may be missing in the report.
    let stuck = stuck(run(setup("mesh:2x1", 2, 16), |memory, node, core| {
        Box::pin(async move {
            let flag = memory.flag(place(0, 64), Route::Nearest);
            match (node, core) {
                (0, 5) => memory.set(flag, 7).await,
                (1, _) => drop(memory.wait(flag, Until::IsNot(7)).await),
                _ => {}
            }
        })
    }));
    let spec = setup("mesh:1x1", 1, 1).spec;
    let named: Vec<_> = stuck.iter().map(|s| (s.node, s.core)).collect();
    // Threads that looked before the store saw 0 and went on.
    assert!(named.iter().all(|&(node, _)| node == 1) && named.len() >= 8);
    for thread in &stuck {
        let awaited = thread.awaited.clone().unwrap();
        assert_eq!(thread.doing, "polls through the engine");
        assert_eq!(awaited.address, spec.node.global_base + 64);
        assert_eq!((awaited.at_home, awaited.cached), (7, None));
        assert_eq!(awaited.writer, Some((0, 5)));
    }
}

#[test]
fn a_sleeper_whom_nobody_wakes_is_reported() {
    let stuck = stuck(run(setup("mesh:1x1", 1, 2), |memory, _, core| {
        Box::pin(async move {
            let word = word(&memory, 0, 8);
            match core {
                0 => drop(memory.swap(word, 300).await),
                _ => {
                    memory.delay(ns(5_000)).await;
                    memory.futex_wait(word, 300).await;
                }
            }
        })
    }));
    assert_eq!(stuck.len(), 1);
    assert_eq!((stuck[0].core, &*stuck[0].doing), (1, "sleeps on a futex"));
    assert_eq!(stuck[0].awaited.clone().unwrap().writer, Some((0, 0)));
}

/// Every kind of wait at once: each thread is named, in order, with what it waits on.
#[test]
fn the_report_reads_like_this() {
    let program = |memory: sme_sim::parts::contract::ThreadMemory, node, core| {
        Box::pin(async move {
            let flag = memory.flag(place(0, 64), Route::Nearest);
            match (node, core) {
                (0, 0) => {
                    memory.set(flag, 1).await;
                    // The second of three flags is the one that is never set.
                    memory
                        .set(memory.flag(place(0, 128), Route::Nearest), 1)
                        .await;
                    let flags = Flags {
                        first: memory.flag(place(0, 128), Route::Nearest),
                        stride: 64,
                        count: 3,
                    };
                    memory.wait_all(flags, Until::IsNot(0)).await; // spins
                }
                (0, 1) => memory.futex_wait(word(&memory, 0, 256), 0).await, // sleeps
                (1, 0) => {
                    memory.delay(ns(10_000)).await;
                    memory.wait(flag, Until::Is(2)).await; // polls
                }
                _ => {}
            }
        }) as crate::programs::Program
    };
    let file = "sme-sim/tests/cluster/deadlocks.rs";
    let [spins, sleeps, polls] = ["spins", "sleeps", "polls"].map(line_of);
    let expected = format!(
        "\
deadlock: at TIME nothing can happen any more, and 3 threads wait
  node 0 core 0 spins in its cache at byte 192 of node 0 (0x2000000c0) until it is not 0, in {file}:{spins}: \
memory at home holds 0, its cache 0; never written
  node 0 core 1 sleeps on a futex at byte 256 of node 0 (0x200000100), in {file}:{sleeps}: memory at home \
holds 0, its cache nothing; never written
behind them, for what threads above wrote last:
  node 1 core 0 polls through the engine at byte 64 of node 0 (0x10000000040) until it is 2, in {file}:{polls}: \
a cache at home holds 1, memory 0, its cache nothing; last written by node 0 core 0"
    );
    assert_eq!(report(run(setup("mesh:2x1", 2, 2), program)), expected);
}

/// Flags of one line, of which one is written by several threads, one once, and one never: each has
/// a last write of its own, if that is kept.
#[test]
fn the_last_write_of_each_flag_is_told_with_its_time() {
    let run = |kept: bool| {
        let setting = setup("mesh:2x1", 2, 3);
        let mut cluster = cluster(setting, |memory, node, core| {
            Box::pin(async move {
                let flag = |offset| memory.flag(place(0, offset), Route::Nearest);
                match (node, core) {
                    (0, 0) => memory.set(flag(0), 1).await,
                    (0, 1) => {
                        memory.delay(ns(20_000)).await;
                        memory.set(flag(1), 1).await;
                    }
                    (1, 0) => {
                        memory.delay(ns(40_000)).await;
                        memory.set(flag(0), 3).await;
                    }
                    (0, _) => {
                        let (first, stride, count) = (flag(0), 1, 3);
                        let all = Flags {
                            first,
                            stride,
                            count,
                        };
                        memory.wait_all(all, Until::IsNot(0)).await;
                    }
                    (1, 1) => drop(memory.wait(flag(0), Until::Is(7)).await),
                    (1, _) => drop(memory.wait(flag(1), Until::Is(7)).await),
                    _ => {}
                }
            }) as crate::programs::Program
        })
        .unwrap();
        if kept {
            cluster.keep_last_writes(&[0, 1, 2].map(|offset| place(0, offset)));
        }
        let written = |thread: &Stuck| {
            let awaited = thread.awaited.as_ref().expect("it waits");
            let offset = awaited.place.expect("in shared memory").1;
            (offset, (awaited.writer, awaited.written_at))
        };
        let outcome = cluster.run(1, |_| {});
        let told: BTreeMap<_, _> = stuck(outcome).iter().map(written).collect();
        told
    };
    // The line's last writer, whichever flag it wrote.
    let line = (Some((1, 0)), None);
    assert_eq!(
        run(false),
        BTreeMap::from([(0, line), (1, line), (2, line)])
    );
    let told = run(true);
    let (by, at) = told[&0];
    assert_eq!(by, Some((1, 0)));
    let at = at.expect("it is kept");
    assert!(at > ns(40_000) && at < ns(42_000), "{at}");
    let (by, at) = told[&1];
    assert_eq!(by, Some((0, 1)));
    let at = at.expect("it is kept");
    assert!(at > ns(20_000) && at < ns(21_000), "{at}");
    assert_eq!(told[&2], (None, None));
}

/// A compare-exchange that finds another value does not write.
#[test]
fn a_compare_exchange_that_fails_is_no_write() {
    for (expected, by) in [(9, (0, 0)), (300, (0, 1))] {
        let stuck = stuck(run(setup("mesh:1x1", 1, 3), move |memory, _, core| {
            Box::pin(async move {
                let word = word(&memory, 0, 8);
                memory.delay(ns(5_000 * u64::from(core))).await;
                match core {
                    0 => drop(memory.swap(word, 300).await),
                    1 => drop(memory.compare_exchange(word, expected, 300).await),
                    _ => memory.futex_wait(word, 300).await,
                }
            })
        }));
        assert_eq!(stuck[0].awaited.clone().unwrap().writer, Some(by));
    }
}

/// A flag that another node has written in its cache, where it stays.
#[test]
fn a_value_that_was_not_written_back_is_said_to_be_that() {
    let program = |written_back: bool| {
        run(setup("mesh:2x1", 2, 1), move |memory, node, _| {
            Box::pin(async move {
                let flag = place(0, 64);
                if node == 0 {
                    let flag = memory.flag(flag, Route::Nearest);
                    memory.wait(flag, Until::Is(5)).await;
                    return;
                }
                let flag = memory.word(flag, Route::Cached);
                memory.store(flag, 5).await;
                if written_back {
                    memory.flush(flag).await;
                }
            })
        })
    };
    assert_eq!(program(true), Ok(()));
    let outcome = program(false);
    let report = report(outcome.clone());
    assert!(
        report.ends_with(
            "memory at home holds 0, its cache 0; never written; the cache of node 1 core 0 holds \
             5, which is not written back"
        ),
        "{report}"
    );
    let awaited = stuck(outcome)[0].awaited.clone().unwrap();
    assert_eq!(awaited.place, Some((0, 64)));
    assert_eq!(awaited.unwritten, Some((1, Some(0), 5)));
}

#[test]
fn a_long_report_names_some_and_counts_the_rest() {
    let text = |alike| {
        report(run(setup("mesh:2x1", 2, 16), move |memory, node, core| {
            Box::pin(async move {
                let offset = if alike { 0 } else { 64 * u64::from(core) };
                let flag = memory.flag(place(node, offset), Route::Nearest);
                memory.wait(flag, Until::Is(1)).await;
            })
        }))
    };
    let different = text(false);
    assert!(different.contains("and 32 threads wait\n"), "{different}");
    assert_eq!(different.lines().count(), 1 + 16 + 1, "{different}");
    assert!(different.ends_with("\n  and 16 more"), "{different}");
    // Those that wait alike are one line for each node.
    let alike = text(true);
    assert!(alike.contains("and 32 threads wait\n"), "{alike}");
    assert_eq!(alike.lines().count(), 1 + 2, "{alike}");
    let begin =
        "\n  node 1 cores 0 to 15, 16 threads, each spins in its cache at byte 0 of node 1 ";
    assert!(alike.contains(begin), "{alike}");
}

/// However slow a part of the machine is, waiting for it is not a deadlock, not even while other
/// threads poll.
#[test]
fn slow_is_not_stuck() {
    for constant in [
        ("os.resume", "20 ms"),
        ("os.sleep", "20 ms"),
        ("os.wake", "20 ms"),
        ("os.system_call", "20 ms"),
        ("coherence.dram", "1 ms"),
        ("coherence.probe", "1 ms"),
        ("host.delay", "1 ms"),
        ("host.bridge", "1 ms"),
        ("link.wire", "1 ms"),
        ("uncached.turnaround", "1 ms"),
    ] {
        let outcome = run(
            setup_with(&[constant], "mesh:2x1", 2, 2),
            |memory, node, core| {
                let event = word(&memory, 0, 0);
                let end = memory.flag(place(1, 64), Route::Nearest);
                match (node, core) {
                    (0, 0) => Box::pin(async move {
                        while memory.load(event).await == 0 {
                            memory.futex_wait(event, 0).await;
                        }
                        memory.set(end, 1).await;
                    }),
                    (0, 1) => Box::pin(async move {
                        memory.delay(ns(40_000_000)).await;
                        memory.swap(event, 1).await;
                        memory.futex_wake(event, 1).await;
                    }),
                    // One spins in its cache, one polls through its own engine.
                    (1, core) => Box::pin(async move {
                        let route = [Route::Nearest, Route::Global][core as usize];
                        let end = memory.flag(place(1, 64), route);
                        memory.wait(end, Until::Is(1)).await;
                    }),
                    _ => nothing(),
                }
            },
        );
        assert_eq!(outcome, Ok(()), "{constant:?}");
    }
}

/// A store that is still in its core's buffer when the thread calls the operating system is
/// performed before any thread is woken: the kernel's own locks see to that.
#[test]
fn no_wake_is_lost_to_a_buffered_store() {
    for delay in (0..12_000).step_by(400) {
        let outcome = run(setup("mesh:1x1", 1, 2), |memory, _, core| {
            let event = word(&memory, 0, 0);
            Box::pin(async move {
                if core == 0 {
                    while memory.load(event).await == 0 {
                        memory.futex_wait(event, 0).await;
                    }
                } else {
                    memory.delay(ns(delay)).await;
                    memory.store(event, 1).await;
                    memory.futex_wake(event, 1).await;
                }
            })
        });
        assert_eq!(outcome, Ok(()), "after {delay} ns");
    }
}

/// There are 32 source tags: sockets that hold them all must not keep the others out for ever.
#[test]
fn more_loads_than_tags_share_them() {
    let constants = [
        ("node.cores_per_socket", "16"),
        ("uncached.outstanding_loads_per_socket", "16"),
    ];
    let setup = setup_with(&constants, "mesh:2x1", 2, 64);
    let setup = setup.with(|setup| setup.pinned(Pinning::Compact));
    let outcome = run(setup, |memory, node, core| {
        Box::pin(async move {
            if node == 1 {
                return;
            }
            let mine = memory.flag(place(1, 64 * u64::from(core)), Route::Nearest);
            let next = memory.flag(place(1, 64 * u64::from((core + 1) % 64)), Route::Nearest);
            if core == 63 {
                memory.read(next).await;
                memory.set(next, 1).await;
            } else {
                memory.wait(mine, Until::Is(1)).await;
                memory.set(next, 1).await;
            }
        })
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_run_that_the_simulators_clock_cannot_hold_ends_before_it_overflows() {
    let mut setup = setup("mesh:1x1", 1, 1);
    setup.spec.coherence.dram = Time::from_ps(1 << 60);
    let outcome = run(setup, |memory, _, _| {
        Box::pin(async move {
            for line in 1..30 {
                memory
                    .load(memory.word(place(0, 64 * line), Route::Nearest))
                    .await;
            }
        })
    });
    let Err(failure @ Failure::TooLong { .. }) = outcome else {
        panic!("it has not been stopped: {outcome:?}");
    };
    assert_eq!(
        failure.to_string(),
        "the run has come to 53 days of simulated time and stops there: let it do less, or make the \
         machine's constants faster"
    );
}
