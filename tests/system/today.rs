//! The machines of today, a pool of CXL devices and a pod of UALink accelerators, under the
//! commands that simulate programs; and what nodes that share a pool may not do.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Cacheable, Memory, Place, Route, Until};
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::address::FaultReason;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use crate::command::{cell, sme, stdout, text};

const MACHINES: [&str; 2] = ["cxl-pool", "ualink"];

#[test]
fn every_barrier_runs_for_any_number_of_workers() {
    for machine in MACHINES {
        for algorithm in ["flat", "tree", "dissemination", "butterfly"] {
            let of = |workers| {
                let flags = "--nodes 9 --cores 3 --episodes 3 --no-host --skew 2us";
                stdout(&format!(
                    "barrier --machine {machine} --algorithm {algorithm} {flags} --workers {workers}"
                ))
            };
            assert_eq!(of(1), of(2), "{machine} {algorithm}");
        }
        for (placement, nodes) in [("local", 1), ("remote", 2)] {
            let flags = "--algorithm flag-phase --cores 4 --episodes 3 --no-host";
            let flags = format!("{flags} --placement {placement} --nodes {nodes}");
            stdout(&format!("barrier --machine {machine} {flags}"));
        }
        stdout(&format!(
            "barrier --machine {machine} --algorithm pthread --nodes 1 --cores 4 --episodes 3 --no-host"
        ));
    }
}

/// A pool has no core that could spin on a flag in its cache: masters poll.
#[test]
fn masters_poll_a_pool_and_spin_on_a_node() {
    let loads = |machine| -> u64 {
        let output = stdout(&format!(
            "barrier --machine {machine} --nodes 8 --cores 2 --episodes 3 --no-host"
        ));
        cell(&output, "remote_loads").parse().unwrap()
    };
    assert_eq!(loads("ualink"), 0);
    assert!(loads("cxl-pool") > 0);
}

/// Of six ranks on three nodes; one on the same node is nearer than the others.
#[test]
fn messages_take_the_same_time_for_any_number_of_workers() {
    for machine in MACHINES {
        let job = format!("--machine {machine} --set node.cores_per_socket=1 --ranks 6 --no-host");
        let of = |workers| {
            let flags = format!("--sizes 8,1600 --rounds 2 --workers {workers}");
            stdout(&format!("mpi collective allreduce {job} {flags}"))
        };
        assert_eq!(of(1), of(2), "{machine}");
        let latency = |partner| -> f64 {
            let flags = format!("--sizes 1600 --partner {partner} --format csv");
            let output = stdout(&format!("mpi pingpong {job} {flags} --columns latency_us"));
            output.lines().last().unwrap().parse().unwrap()
        };
        assert!(1.5 * latency(1) < latency(5), "{machine}");
    }
}

#[test]
fn programs_are_right_through_the_caches_and_past_them() {
    for machine in MACHINES {
        for program in ["fft --log2n 8", "lu --n 64", "radix --keys 1000"] {
            for memory in ["cached", "uncached"] {
                let of = |workers| {
                    let flags = "--nodes 4 --cores 2 --no-host --stale";
                    stdout(&format!(
                        "{program} --machine {machine} --memory {memory} {flags} --workers {workers}"
                    ))
                };
                let output = of(1);
                assert_eq!(cell(&output, "correct"), "true", "{machine} {program}");
                assert_eq!(cell(&output, "stale_reads"), "0", "{machine} {program}");
                assert_eq!(output, of(2), "{machine} {program} {memory}");
            }
        }
    }
}

#[test]
fn without_coherence_points_a_result_is_wrong_and_loads_are_stale() {
    for machine in MACHINES {
        let output = sme(&format!(
            "fft --machine {machine} --log2n 10 --nodes 4 --cores 2 --coherence-point none --stale --no-host"
        ));
        assert_eq!(output.status.code(), Some(1), "{machine}");
        let said = text(&output.stderr);
        assert!(said.contains("the result is wrong"), "{machine}: {said}");
        let stale = cell(text(&output.stdout), "stale_reads");
        assert_ne!(stale, "0", "{machine}");
    }
}

#[test]
fn locks_give_way_to_one_thread_at_a_time() {
    for machine in MACHINES {
        for data in ["uncached", "line", "all"] {
            let output = stdout(&format!(
                "lock --machine {machine} --data {data} --nodes 5 --cores 2 --acquisitions 5 --no-host"
            ));
            assert_eq!(cell(&output, "acquisitions"), "50", "{machine} {data}");
        }
    }
}

/// Behind engines and through caches, what is seen is what the models allow, and all of it.
#[test]
fn litmus_tests_see_what_the_models_allow() {
    for machine in MACHINES {
        for memory in ["engine", "cached"] {
            let output = stdout(&format!(
                "litmus --machine {machine} --cycle PodWW,Rfe,PodRR,Fre --memory {memory} --runs 300"
            ));
            assert!(
                output.contains("0 forbidden seen"),
                "{machine} {memory}: {output}"
            );
        }
    }
}

/// A switch adds its delay to a load twice, once each way.
#[test]
fn a_switch_delays_each_packet_by_as_much_as_its_constant_says() {
    for machine in MACHINES {
        let of = |delay: &str, operation: &str| -> f64 {
            let output = stdout(&format!(
                "latency --machine {machine} --nodes 2 --hops 2 --set fabric.switch={delay} --format csv"
            ));
            let mut lines = output
                .lines()
                .map(|line| line.split(',').collect::<Vec<_>>());
            let heading = lines.next().unwrap();
            let column = |name| heading.iter().position(|of| *of == name).unwrap();
            let row = lines.find(|row| row[column("operation")] == operation);
            row.unwrap()[column("total_ns")].parse().unwrap()
        };
        for (operation, passes) in [("remote-load", 2.0), ("line-fill", 2.0)] {
            let added = of("300ns", operation) - of("100ns", operation);
            assert!((added - passes * 200.0).abs() < 0.01, "{machine}: {added}");
        }
    }
}

#[test]
fn no_row_of_theirs_is_validated() {
    for machine in MACHINES {
        let output = stdout(&format!(
            "latency --machine {machine} --nodes 4 --format csv"
        ));
        let rows: Vec<&str> = output.lines().skip(1).collect();
        assert!(!rows.is_empty());
        for row in rows {
            assert!(row.ends_with(",none"), "{row}");
        }
    }
}

#[test]
fn a_pod_has_a_switch_of_1024_ports() {
    let output = stdout(
        "barrier --machine ualink --algorithm dissemination --nodes 1024 --cores 1 --episodes 1 --no-host",
    );
    assert_eq!(cell(&output, "topology"), "fattree:1024x1");
    let refused = sme("barrier --machine ualink --nodes 1025 --cores 1 --episodes 1");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        text(&refused.stderr),
        "sme: --topology fattree:1024x1: its 1024 positions do not hold 1025 nodes\n"
    );
}

#[test]
fn what_a_pool_cannot_do_is_refused() {
    for (arguments, says) in [
        (
            "barrier --machine cxl-pool --form compact",
            "--form compact: only where nodes share no pool (pool.devices)",
        ),
        (
            "fft --machine cxl-pool --memory-nodes 8",
            "--memory-nodes: the pool of cxl-pool holds the data",
        ),
        (
            "barrier --machine cxl-pool --topology mesh:2x2 --nodes 1",
            "--topology mesh:2x2: its 4 positions do not hold 1 node and the 4 devices of the pool",
        ),
        (
            "barrier --machine sme-prototype --set pool.dram=50ns",
            "--set pool.dram=50ns: pool.dram: there is no device that has it: pool.devices is 0",
        ),
    ] {
        let output = sme(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let said = text(&output.stderr);
        assert_eq!(said, format!("sme: {says}\n"), "{arguments}");
    }
}

fn pool() -> Arc<Machine> {
    Arc::new(Machine::builtin("cxl-pool").unwrap())
}

/// Runs two hosts of one thread, and gives the reason for the fault with which it ends.
fn fault(reaches: fn(u32) -> (u32, Route)) -> Option<FaultReason> {
    let machine = pool();
    let setup = Setup::new(machine.shape(), 2, 1);
    let program = move |memory: ThreadMemory, node, _| async move {
        let (home, route) = reaches(node);
        let place = Place {
            node: home,
            offset: 64,
        };
        memory.load(memory.word(place, route)).await;
    };
    let mut machine = machine.build(setup, program).unwrap();
    match machine.run(1, |_| {}) {
        Err(Failure::Fault { reason, .. }) => Some(reason),
        Err(other) => panic!("{other}"),
        Ok(()) => None,
    }
}

#[test]
fn a_hosts_memory_is_its_own_and_the_pool_everybodys() {
    // Two hosts, then four devices.
    assert_eq!(fault(|node| (node, Route::Nearest)), None);
    assert_eq!(fault(|_| (2, Route::Nearest)), None);
    assert_eq!(fault(|_| (5, Route::Cached)), None);
    let not_shared = Some(FaultReason::NotShared);
    assert_eq!(fault(|node| (1 - node, Route::Nearest)), not_shared);
    assert_eq!(fault(|node| (node, Route::Global)), not_shared);
    assert_eq!(fault(|node| (1 - node, Route::Cached)), not_shared);
    assert_eq!(
        fault(|_| (6, Route::Nearest)),
        Some(FaultReason::NoSuchNode)
    );
}

/// A hand-over of data through the pool, by which of the steps of the contract it takes.
#[derive(Clone, Copy)]
struct HandOver {
    writes_back: bool,
    drops: bool,
}

const WHOLE: HandOver = HandOver {
    writes_back: true,
    drops: true,
};

/// The value that the reader sees: 7 if the hand-over is right.
fn seen(how: HandOver) -> u64 {
    let machine = pool();
    let setup = Setup::new(machine.shape(), 2, 1);
    let at = |offset| Place { node: 2, offset };
    let result = Arc::new(Mutex::new(0));
    let told = Arc::clone(&result);
    let program = move |memory: ThreadMemory, node, _| {
        let told = Arc::clone(&told);
        async move {
            let data = memory.word(at(1 << 12), Route::Cached);
            let flag = memory.flag(at(0), Route::Global);
            let warm = memory.flag(at(64), Route::Global);
            if node == 0 {
                memory.wait(warm, Until::Is(1)).await;
                memory.store(data, 7).await;
                if how.writes_back {
                    memory.flush(data).await;
                }
                // A load from a device comes back when all writes before it are performed there.
                memory.load(memory.word(at(1 << 12), Route::Global)).await;
                memory.set(flag, 1).await;
            } else {
                memory.load(data).await;
                memory.set(warm, 1).await;
                memory.wait(flag, Until::Is(1)).await;
                if how.drops {
                    memory.flush(data).await;
                }
                *told.lock() = memory.load(data).await;
            }
        }
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    *result.lock()
}

#[test]
fn a_hand_over_needs_each_of_its_steps() {
    assert_eq!(seen(WHOLE), 7);
    let writes_back = false;
    assert_eq!(
        seen(HandOver {
            writes_back,
            ..WHOLE
        }),
        0
    );
    let drops = false;
    assert_eq!(seen(HandOver { drops, ..WHOLE }), 0);
}

/// A flush and a fence say that a line is on its way, and not that it is there.
#[test]
fn a_flush_and_a_fence_do_not_wait_for_the_device() {
    let machine = pool();
    let setup = Setup::new(machine.shape(), 1, 1);
    let (sends, comes) = (Span::new("sends", 0), Span::new("comes", 0));
    let place = Place { node: 1, offset: 0 };
    let program = move |memory: ThreadMemory, _, _| async move {
        let data = memory.word(place, Route::Cached);
        memory.store(data, 7).await;
        memory.fence().await;
        memory.begin(sends).await;
        memory.flush(data).await;
        memory.fence().await;
        memory.end(sends).await;
        memory.begin(comes).await;
        memory.load(memory.word(place, Route::Global)).await;
        memory.end(comes).await;
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    let took = |name| {
        let span = machine.spans().called(name)[0];
        span.last_end.since(span.first_begin)
    };
    // To the device and back takes that long at least: the switch's 70 ns, and 80 ns of memory.
    let there_and_back = Time::from_ns(2 * 70 + 80);
    assert!(took("sends").times(2) < there_and_back, "{}", took("sends"));
    assert!(took("comes") > there_and_back, "{}", took("comes"));
    assert_eq!(machine.at_home(place), 7);
}
