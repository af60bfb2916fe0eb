//! Nodes of more than 64 cores: sets of cores, queues and draws that small nodes do not need.

use sme_memory::{Atomic, Memory, Route, Until};

use crate::programs::{Program, Setting, cluster, nothing, ns, place, run, setup_with, word};
use sme_sim::machine::Readable;

/// The largest node there can be.
const CORES: u32 = 1_023;

fn wide(nodes: u32) -> Setting {
    let constants = [("node.sockets", "11"), ("node.cores_per_socket", "93")];
    setup_with(&constants, "mesh:2x1", nodes, CORES)
}

/// All cores spin on one line, and all of them see it change: each is told by one that was.
#[test]
fn a_store_reaches_every_spinning_core() {
    let outcome = run(wide(1), |memory, _, core| {
        Box::pin(async move {
            let phase = memory.flag(place(0, 0), Route::Nearest);
            let flag = |core| memory.flag(place(0, 64 + 8 * u64::from(core)), Route::Nearest);
            if core == CORES - 1 {
                for other in 0..core {
                    memory.wait(flag(other), Until::Is(1)).await;
                }
                memory.set(phase, 1).await;
            } else {
                memory.set(flag(core), 1).await;
                memory.wait(phase, Until::Is(1)).await;
            }
        })
    });
    assert_eq!(outcome, Ok(()));
}

/// A store from another node invalidates what the caches of all cores hold.
#[test]
fn a_remote_store_reaches_every_spinning_core() {
    let outcome = run(wide(2), |memory, node, core| -> Program {
        match (node, core) {
            (0, _) => Box::pin(async move {
                let phase = memory.flag(place(0, 0), Route::Nearest);
                memory.wait(phase, Until::Is(1)).await;
            }),
            (_, 0) => Box::pin(async move {
                let phase = memory.flag(place(0, 0), Route::Nearest);
                memory.delay(ns(500_000)).await;
                memory.set(phase, 1).await;
            }),
            _ => nothing(),
        }
    });
    assert_eq!(outcome, Ok(()));
}

/// All cores want one line at once: more transactions wait for it than a byte can count, and each
/// takes effect once.
#[test]
fn updates_of_all_cores_add_up() {
    let mut cluster = cluster(wide(1), |memory, _, core| {
        Box::pin(async move {
            memory
                .fetch_add(word(&memory, 0, 0), 1 + u64::from(core))
                .await;
            memory.fetch_add(word(&memory, 0, 0), 1).await;
        })
    })
    .unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    let sum = u64::from(CORES) * (u64::from(CORES) + 1) / 2 + u64::from(CORES);
    assert_eq!(cluster.at_home(place(0, 0)), sum);
    assert!(cluster.is_quiet());
}

/// The last core of the largest node is named by its own number, which is not taken for the mark of
/// no core.
#[test]
fn the_last_core_is_named() {
    let setup = setup_with(
        &[("node.sockets", "11"), ("node.cores_per_socket", "93")],
        "mesh:1x1",
        1,
        CORES,
    );
    let failure = run(setup, |memory, _, core| -> Program {
        match core {
            0 => Box::pin(async move {
                let flag = memory.flag(place(0, 0), Route::Nearest);
                memory.wait(flag, Until::Is(2)).await;
            }),
            core if core == CORES - 1 => Box::pin(async move {
                let flag = memory.flag(place(0, 0), Route::Nearest);
                memory.set(flag, 1).await;
            }),
            _ => nothing(),
        }
    })
    .unwrap_err()
    .to_string();
    assert!(
        failure.ends_with("last written by node 0 core 1022"),
        "{failure}"
    );
}
