//! Caches really go stale: a store that does not probe leaves copies as they are.

use std::sync::{Arc, Mutex};

use sme_memory::{Memory, Route, Until};
use sme_sim::observe::failure::Failure;

use crate::programs::{Program, Setting, nothing, ns, place, run, setup, setup_with};

fn incoherent(topology: &str, nodes: u32, threads: u32) -> Setting {
    setup_with(
        &[("uncached.coherent_stores", "no")],
        topology,
        nodes,
        threads,
    )
}

/// A core spins on its copy of a flag that another node sets.
fn spin_on_a_copy(setup: Setting) -> Result<(), Failure> {
    run(setup, |memory, node, core| {
        let flag = memory.flag(place(0, 64), Route::Nearest);
        match (node, core) {
            (0, 1) => Box::pin(async move {
                memory.wait(flag, Until::IsNot(0)).await; // spins
            }),
            (1, 0) => Box::pin(async move {
                memory.delay(ns(20_000)).await;
                memory.set(flag, 9).await;
            }),
            _ => nothing(),
        }
    })
}

#[test]
fn a_core_that_spins_on_a_stale_copy_spins_for_ever() {
    assert_eq!(spin_on_a_copy(setup("mesh:2x1", 2, 2)), Ok(()));
    let failure = spin_on_a_copy(incoherent("mesh:2x1", 2, 2)).unwrap_err();
    let Failure::Deadlock { at, .. } = failure else {
        panic!("{failure}");
    };
    let wait = include_str!("stale.rs")
        .lines()
        .position(|line| line.ends_with("// spins"));
    let line = wait.map_or(0, |line| line + 1);
    let expected = format!(
        "deadlock: at {at} nothing can happen any more, and 1 thread waits\n  \
         node 0 core 1 spins in its cache at byte 64 of node 0 (0x200000040) until it is not 0, in \
         sme-sim/tests/cluster/stale.rs:{line}: memory at home holds 9, its cache 0; last written by node 1 core 0"
    );
    assert_eq!(failure.to_string(), expected);
}

/// Returns the values that loads of one word see while another node stores to it.
fn loads(setup: Setting, refetch: bool) -> Vec<u64> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let outcome = run(setup, |memory, node, core| -> Program {
        let word = memory.word(place(0, 0), Route::Nearest);
        let neighbour = memory.word(place(0, 8), Route::Nearest);
        let seen = Arc::clone(&seen);
        match (node, core) {
            (0, 0) => Box::pin(async move {
                for _ in 0..3 {
                    let value = memory.load(word).await;
                    seen.lock().unwrap().push(value);
                    memory.delay(ns(10_000)).await;
                }
            }),
            // A sibling's store to the same line takes the copy away.
            (0, 1) if refetch => Box::pin(async move {
                memory.delay(ns(15_000)).await;
                memory.store(neighbour, 1).await;
            }),
            (1, 0) => Box::pin(async move {
                memory.delay(ns(4_000)).await;
                memory.store(word, 5).await;
            }),
            _ => nothing(),
        }
    });
    assert_eq!(outcome, Ok(()));
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[test]
fn a_stale_copy_lasts_until_it_is_invalidated() {
    assert_eq!(loads(setup("mesh:2x1", 2, 2), false), [0, 5, 5]);
    assert_eq!(loads(incoherent("mesh:2x1", 2, 2), false), [0, 0, 0]);
    assert_eq!(loads(incoherent("mesh:2x1", 2, 2), true), [0, 0, 5]);
}

/// A core that has modified a line writes the whole of it back: what came from outside meanwhile,
/// without probing, is lost.
#[test]
fn an_update_from_outside_is_lost_under_a_modified_line() {
    let seen = Arc::new(Mutex::new(None));
    let outcome = run(incoherent("mesh:2x1", 2, 2), |memory, node, core| {
        let word = memory.word(place(0, 0), Route::Nearest);
        let neighbour = memory.word(place(0, 8), Route::Nearest);
        let seen = Arc::clone(&seen);
        match (node, core) {
            (0, 0) => Box::pin(async move { memory.store(neighbour, 1).await }),
            (1, 0) => Box::pin(async move {
                memory.delay(ns(4_000)).await;
                memory.store(word, 5).await;
            }),
            (0, 1) => Box::pin(async move {
                memory.delay(ns(20_000)).await;
                let values = (memory.load(word).await, memory.load(neighbour).await);
                *seen.lock().unwrap() = Some(values);
            }),
            _ => nothing(),
        }
    });
    assert_eq!(outcome, Ok(()));
    assert_eq!(*seen.lock().unwrap(), Some((0, 1)));
}
