//! The workloads of chips with networks between their memories: transfers, MPPAIPC, and small runs
//! of the program on one cluster.

use std::sync::Arc;

use sme::messages::processor::Core;
use sme_memory::{
    Blocks, Cacheable, Memory, Network, NodeSet, Own, Place, Receives, Route, Timer, Transfer,
    Until,
};
use sme_mpi::mppaipc::{Hardware, Ipc, Resources, Room};
use sme_sim::machine::Setup;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::{Workload, machine, of_command, one_core};

/// Small runs of the program on a chip with networks between its memories.
const ON_NETWORKS: [&str; 4] = [
    "mpi pingpong --between io,cc15 --mode normal,lazy --sizes 64,4096 --rounds 2",
    "mpi pingpong --ranks 2 --sizes 64,256,8192 --rounds 2",
    "barrier --nodes 1 --episodes 3",
    "fft --log2n 8 --nodes 1 --memory-nodes 1 --memory uncached",
];

pub(super) fn workloads() -> Vec<Box<Workload>> {
    let library: [Box<Workload>; 4] = [
        Box::new(networked),
        Box::new(connected),
        Box::new(beyond_the_ends),
        Box::new(one_core),
    ];
    let commands = ON_NETWORKS.map(|command| -> Box<Workload> {
        Box::new(move |name, set| of_command(command, name, set))
    });
    library.into_iter().chain(commands).collect()
}

/// Transfers of clusters and of a subsystem, alone and many at once, accesses of several cores, and
/// the ends of memory, of tags and of channels.
fn networked(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let nodes = machine.shape().nodes;
    let threads = 12.min(machine.shape().cores);
    let setup = Setup::new(machine.shape(), nodes, threads);
    let program = move |memory: ThreadMemory, node, thread| networked_thread(memory, node, thread);
    let mut machine = machine.build(setup, program).unwrap();
    let ended = machine.run(1, |_| {});
    let steps = machine.spans().called("step");
    format!("{ended:?} {steps:?} {}", machine.end().as_ps())
}

/// A message of a queue and one of a channel, with the library's own work.
fn connected(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let software = machine.shape().software;
    let setup = Setup::new(machine.shape(), 2, 1);
    let program = move |memory: ThreadMemory, node, _| async move {
        let hardware = Hardware {
            clusters: 16,
            tags: 128,
            channels: 4,
        };
        let room = Room {
            begin: 0,
            end: 1 << 20,
        };
        let resources = Arc::new(Resources::new(hardware, 1, room));
        let core = Core::new(memory.clone(), software);
        let ipc = Ipc::new(memory.clone(), core, resources, 0);
        let queue = "/mppa/rqueue/0:1/1:1/4.120";
        let channel = "/mppa/channel/0:2/1:2";
        let at = ipc.reserve("data", 64).unwrap();
        let step = Span::new("step", node);
        if node == 0 {
            let mut rx = ipc.rqueue_rx(queue).await.unwrap();
            let link = ipc.channel_rx(channel).unwrap();
            memory.begin(step).await;
            rx.take_callback(&mut [0]).await;
            link.read(at, 64).await;
        } else {
            let tx = ipc.rqueue_tx(queue).await.unwrap();
            let link = ipc.channel_tx(channel).await.unwrap();
            memory.delay(Time::from_ns(10_000)).await;
            memory.begin(step).await;
            tx.write(&[1; 15]).await.unwrap();
            link.write(at, 64).await.unwrap();
        }
        memory.end(step).await;
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    format!("{:?}", machine.spans().called("step"))
}

/// The outcomes of accesses to the first word behind the memory of a cluster and of a subsystem,
/// and of the first tag and channel that an interface does not have.
fn beyond_the_ends(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let outcome = |beyond: u32| {
        let program = move |memory: ThreadMemory, node, _| async move {
            let at = |offset| memory.word(Place { node, offset }, Route::Nearest);
            let tells = memory.flag(Place { node, offset: 0 }, Route::Nearest);
            let transfer = Transfer {
                to: NodeSet::one(1),
                tag: 0,
                offset: 0,
                from: at(8),
                bytes: 8,
            };
            match (beyond, node) {
                (0, 0) => {
                    memory.load(at(2 << 20)).await;
                }
                (1, 16) => {
                    memory.load(at(4 << 30)).await;
                }
                (2, 0) => {
                    memory
                        .push(Transfer {
                            tag: 256,
                            ..transfer
                        })
                        .await
                }
                (3, 0) => memory.start(8, transfer, (tells, None)).await,
                _ => {}
            }
        };
        let setup = Setup::new(machine.shape(), 17, 1);
        let mut machine = machine.build(setup, program).unwrap();
        format!("{:?}", machine.run(1, |_| {}))
    };
    (0..4).map(outcome).collect()
}

/// The course of one thread of it: its steps one after the other, at times of their own.
async fn networked_thread(memory: ThreadMemory, node: u32, thread: u32) {
    /// The I/O subsystem.
    const NORTH: u32 = 16;
    let steps = async |step: u32, is_mine: bool| {
        if let Some(ahead) = u64::from(step * 100_000).checked_sub(memory.now().await) {
            memory.delay(Time::from_ns(ahead)).await;
        }
        if is_mine {
            memory.begin(Span::new("step", step)).await;
        }
        is_mine
    };
    let ends = async |step: u32| memory.end(Span::new("step", step)).await;
    let at = |offset: u64| memory.word(Place { node, offset }, Route::Nearest);
    let cached = |offset: u64| memory.word(Place { node, offset }, Route::Cached);
    let tells = memory.flag(
        Place {
            node,
            offset: 64 * u64::from(thread),
        },
        Route::Nearest,
    );
    let send = |to: u32, bytes: u32| Transfer {
        to: NodeSet::one(to),
        tag: 255,
        offset: 0,
        from: at(8192),
        bytes,
    };
    let wait = async || {
        memory.wait(tells, Until::Is(1)).await;
        memory.set(tells, 0).await;
    };
    if thread == 0 {
        let buffer = Receives::Buffer {
            at: at(65_536),
            bytes: 32_768,
            transfers: 1 << 20,
            tells,
            event: None,
        };
        memory.open(255, buffer).await;
    }
    if steps(1, (node, thread) == (0, 0)).await {
        let words = cached(8192);
        memory
            .push(Transfer {
                from: words,
                ..send(15, 1024)
            })
            .await;
        ends(1).await;
    }
    if steps(2, (node, thread) == (0, 0)).await {
        memory.start(7, send(15, 4096), (tells, None)).await;
        wait().await;
        ends(2).await;
    }
    if steps(3, (node, thread) == (NORTH, 0)).await {
        memory.push(send(15, 1024)).await;
        memory.start(0, send(15, 4096), (tells, None)).await;
        wait().await;
        ends(3).await;
    }
    // Bursts of all clusters, to one and through the middle.
    if steps(4, node < NORTH && thread == 0).await {
        memory.start(0, send(5, 8192), (tells, None)).await;
        wait().await;
        memory
            .start(0, send((node + 7) % 16, 8192), (tells, None))
            .await;
        wait().await;
        ends(4).await;
    }
    if steps(5, (node, thread) == (0, 0)).await {
        memory.signal(NodeSet::one(15), 3, 1).await;
        ends(5).await;
    }
    // Lines of a set, of which the last does not fit; then they are dropped.
    if steps(6, (node, thread) == (0, 0)).await {
        for _ in 0..2 {
            for line in 0..3 {
                memory.load(cached(16_384 + 4096 * line)).await;
            }
        }
        for _ in 0..2 {
            for word in 0..1024 {
                memory.load(cached(32_768 + 8 * word)).await;
            }
        }
        memory.flush(cached(32_768)).await;
        ends(6).await;
    }
    if steps(7, (node, thread) == (0, 0)).await {
        memory.write_back_invalidate().await;
        ends(7).await;
    }
    if steps(8, (node, thread) == (0, 0)).await {
        memory.copy(Own(16_384), Own(20_480), 64).await;
        ends(8).await;
    }
    // Many cores at once, in all banks and in two.
    if steps(9, node == 0 || node == NORTH).await {
        for round in 0..8 {
            memory.load(at(8 * (u64::from(thread) + 8 * round))).await;
            memory.load(at(128 * round)).await;
            memory.load(at(128 * round + 64)).await;
        }
        ends(9).await;
    }
    if steps(10, (node, thread) == (0, 0)).await {
        memory.load(at((2 << 20) - 8)).await;
        ends(10).await;
    }
    if steps(11, (node, thread) == (NORTH, 0)).await {
        memory.load(at((4 << 30) - 8)).await;
        ends(11).await;
    }
}
