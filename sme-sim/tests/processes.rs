//! A cluster shared by several processes (threads of this one, which exchange bytes): the same
//! times, figures and reports as in one.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

#[path = "cluster/programs.rs"]
#[allow(dead_code)]
mod programs;

use std::sync::Arc;

use proptest::prelude::*;
use sme_memory::{Cacheable, Memory, Place, Route, Until};
use sme_sim::families::sme::cluster::{Cluster, Plugged};
use sme_sim::families::sme::engine::Design;
use sme_sim::kernel::peers::{Connected, Peers, collected, connected};
use sme_sim::machine::{Readable, System};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::{EPISODE, Spans, overtaken};
use sme_sim::observe::traffic::{LinkLoad, Traffic};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use programs::{Program, Setting, cluster, nothing, place, setup, setup_with, word};

/// The program that all threads run.
type Threads = fn(ThreadMemory, u32, u32) -> Program;

/// The outcome of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    failure: Option<String>,
    spans: Spans,
    traffic: Traffic,
    events: u64,
    end: Time,
    links: Vec<LinkLoad>,
}

impl Outcome {
    /// Of a run of `cluster` that has `ended` so; its links are `links`.
    fn of(cluster: &Cluster, ended: Result<(), Failure>, links: Vec<LinkLoad>) -> Self {
        let held = overtaken(cluster.spans().called(EPISODE));
        let failure = ended.err().map(|failure| failure.to_string());
        Self {
            failure: failure.or(held.err().map(|early| early.to_string())),
            spans: cluster.spans().clone(),
            traffic: cluster.traffic(),
            events: cluster.events(),
            end: cluster.end(),
            links,
        }
    }
}

fn in_one(setting: Setting, threads: Threads) -> Outcome {
    let mut cluster = cluster(setting, threads).unwrap();
    cluster.keep_last_writes(&awaited());
    let ended = cluster.run(1, |_| {});
    Outcome::of(&cluster, ended, cluster.link_loads())
}

/// The flags for which [`stuck`] threads wait.
fn awaited() -> [Place; 6] {
    std::array::from_fn(|node| place(0, 64 * (1 + node as u64)))
}

/// The cluster, shared with `peers`.
fn shared(peers: &dyn Peers, setting: &Setting, threads: Threads) -> Cluster {
    let Setting { spec, setup } = setting;
    let design = Arc::new(Design::new(spec, &setup.topology, setup.nodes).unwrap());
    let engine = |position| Plugged::cycle(&design, position, setup.nodes);
    Cluster::among(peers, (spec, setup.clone()), threads, engine)
}

/// Of every process.
fn in_many(setting: &Setting, threads: Threads, processes: usize, workers: usize) -> Vec<Outcome> {
    let process = |mut peers: Connected| {
        let mut cluster = shared(&peers, setting, threads);
        cluster.keep_last_writes(&awaited());
        let ended = cluster.run_among(&mut peers, workers, &mut |_| {});
        let links = collected(&mut peers, cluster.link_loads()).unwrap();
        Outcome::of(&cluster, ended, links)
    };
    std::thread::scope(|scope| {
        let process = &process;
        let threads: Vec<_> = connected(processes)
            .into_iter()
            .map(|peers| scope.spawn(move || process(peers)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Checks that the outcome is the same in any number of processes; returns why it failed.
fn same(setting: Setting, threads: Threads, processes: std::ops::Range<usize>) -> Option<String> {
    let alone = in_one(setting.clone(), threads);
    for processes in processes {
        let workers = 1 + processes % 2;
        for (me, mut outcome) in in_many(&setting, threads, processes, workers)
            .into_iter()
            .enumerate()
        {
            if me > 0 {
                assert!(outcome.links.is_empty());
                outcome.links.clone_from(&alone.links);
            }
            assert_eq!(outcome, alone, "process {me} of {processes}");
        }
    }
    alone.failure
}

/// Every thread stores to the next node's flag and waits for its own, three times; thread 0 also
/// loads from afar.
fn ring(memory: ThreadMemory, node: u32, core: u32) -> Program {
    Box::pin(async move {
        let nodes = 6;
        let offset = 64 * (1 + u64::from(core));
        let own = memory.flag(place(node, offset), Route::Nearest);
        let next = memory.flag(place((node + 1) % nodes, offset), Route::Nearest);
        memory.counts().await;
        memory.begin(Span::new(EPISODE, 0)).await;
        let mut seen = 0;
        for round in 1u8..4 {
            memory.set(next, round).await;
            if core == 0 {
                let far = memory.word(place((node + 3) % nodes, 8), Route::Global);
                memory.load(far).await;
            }
            // The node before may be rounds ahead.
            while seen < round {
                seen = memory.wait(own, Until::IsNot(seen)).await;
            }
        }
        memory
            .delay(Time::from_ns(5_000 + 100 * u64::from(node)))
            .await;
        memory.end(Span::new(EPISODE, 0)).await;
    })
}

/// Every thread loads from lines of all nodes through its caches and changes some of them; what it
/// has seen shows in how long it takes.
fn fills(memory: ThreadMemory, node: u32, core: u32) -> Program {
    Box::pin(async move {
        memory.counts().await;
        let mut sum = u64::from(node + core);
        for step in 0..16 {
            let at = 8 * ((sum + u64::from(7 * step)) % 16);
            let word = memory.word(place((node + step) % 6, at), Route::Cached);
            sum = 3 * sum + memory.load(word).await;
            sum %= 1009;
            if step % 3 == 0 {
                memory.store(word, sum).await;
            }
            if step % 4 == 3 {
                memory.write_back_invalidate().await;
            }
            memory.delay(Time::from_ns(sum)).await;
        }
    })
}

/// Nodes 1 and later wait for flags of node 0, through the engine, that never change again; node 0
/// for one in its cache.
fn stuck(memory: ThreadMemory, node: u32, core: u32) -> Program {
    Box::pin(async move {
        let flag = memory.flag(place(0, 64 * u64::from(1 + node)), Route::Nearest);
        match (node, core) {
            (0, _) => {
                for waiter in 1..6 {
                    let flag = memory.flag(place(0, 64 * (1 + waiter)), Route::Nearest);
                    memory.set(flag, 7).await;
                }
                memory.wait(flag, Until::Is(9)).await;
            }
            _ => drop(memory.wait(flag, Until::Is(8)).await),
        }
    })
}

/// One thread looks where no node is, while the others work.
fn fault(memory: ThreadMemory, node: u32, core: u32) -> Program {
    if (node, core) != (4, 1) {
        return ring(memory, node, core);
    }
    Box::pin(async move {
        memory.delay(Time::from_ns(3_000)).await;
        let nowhere = word(&memory, 99, 8);
        memory.load(nowhere).await;
    })
}

/// A thread leaves before another comes.
fn hasty(memory: ThreadMemory, node: u32, core: u32) -> Program {
    if core > 0 {
        return nothing();
    }
    Box::pin(async move {
        memory
            .delay(Time::from_ns(1_000 * (1 + u64::from(node))))
            .await;
        memory.begin(Span::new(EPISODE, 0)).await;
        memory.end(Span::new(EPISODE, 0)).await;
    })
}

#[test]
fn any_number_of_processes_gives_the_same() {
    // With more processes than positions too.
    assert_eq!(same(setup("mesh:3x2", 6, 2), ring, 1..9), None);
    for payload in ["8 B", "16 B", "64 B"] {
        let setting = setup_with(&[("uncached.load_payload", payload)], "mesh:3x2", 6, 2);
        assert_eq!(same(setting, fills, 2..5), None);
    }
    // Some positions have a switch only.
    assert_eq!(same(setup("torus:2x2x2", 6, 2), ring, 2..5), None);
}

#[test]
fn who_waits_on_what_is_reported_alike() {
    let report = same(setup("mesh:3x2", 6, 4), stuck, 2..5).unwrap();
    assert!(report.starts_with("deadlock: at "), "{report}");
    assert!(report.contains("24 threads wait"), "{report}");
    assert_eq!(report.lines().count(), 1 + 1 + 1 + 5, "{report}");
    let remote = "node 1 cores 0 to 3, 4 threads, each polls through the engine";
    let line = report.lines().find(|line| line.contains(remote)).unwrap();
    assert!(line.contains("memory at home holds 7") || line.contains("holds 7, memory"));
    assert!(line.contains("last written by node 0 core "), "{line}");
    assert!(line.ends_with(" ns") && !line.contains("never"), "{line}");
    assert_eq!(report.matches("never written").count(), 1, "{report}");
}

#[test]
fn faults_and_broken_barriers_are_reported_alike() {
    let report = same(setup("mesh:3x2", 6, 2), fault, 2..5).unwrap();
    assert!(report.starts_with("fault: node 4 core 1 at "), "{report}");
    let report = same(setup("mesh:3x2", 6, 2), hasty, 2..5).unwrap();
    assert!(report.starts_with("the barrier does not hold: in episode 0"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn any_shape(width in 2u32..5, height in 2u32..4, threads in 1u32..5, processes in 2usize..5) {
        prop_assume!(width * height >= 6);
        let setup = setup(&format!("mesh:{width}x{height}"), 6, threads);
        prop_assert_eq!(same(setup, ring, processes..processes + 1), None);
    }
}

/// A process that misses another says which.
#[test]
fn a_process_that_is_gone_is_named() {
    let mut two = connected(2);
    drop(two.pop());
    let mut peers = two.pop().unwrap();
    let setup = setup("mesh:3x2", 6, 2);
    let mut cluster = shared(&peers, &setup, ring as Threads);
    let failure = cluster.run_among(&mut peers, 1, &mut |_| {}).unwrap_err();
    assert!(matches!(failure, Failure::Peers(_)));
    assert_eq!(failure.to_string(), "process 1 has ended before the others");
    assert_eq!(peers.count(), 2);
}
