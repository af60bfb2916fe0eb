//! MPPAIPC on the simulated processor: the programs that also run on real threads, and what only a
//! network that takes time shows.

use std::sync::Arc;

use parking_lot::Mutex;
use sme::messages::processor::Core;
use sme_memory::{Network, NodeSet, Transfer};
use sme_mpi::mppaipc::portal::{Piece, WhenBusy};
use sme_mpi::mppaipc::{Hardware, Ipc, IpcError, Resources, Room};
use sme_sim::machine::{Machine, Setup};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

#[path = "../../mpi/tests/mppaipc/programs.rs"]
mod programs;

use programs::Wrong;

type Simulated = Ipc<ThreadMemory, Core>;

/// The library of a thread of a node of the built-in machine.
fn ipc(memory: ThreadMemory, machine: &Machine) -> Simulated {
    let hardware = Hardware {
        clusters: 16,
        tags: 256,
        channels: 8,
    };
    let room = Room {
        begin: 0,
        end: 1 << 20,
    };
    let resources = Arc::new(Resources::new(hardware, 1, room));
    let core = Core::new(memory.clone(), machine.shape().software);
    Ipc::new(memory, core, resources, 0)
}

/// Runs `program` on each of so many nodes by so many threads of this computer; the number of
/// cycles of 400 MHz that it takes.
fn run<F>(
    nodes: u32,
    workers: usize,
    program: impl Fn(Simulated) -> F + Clone + Send + Sync + 'static,
) -> f64
where
    F: Future<Output = Result<(), IpcError>> + Send + 'static,
{
    let machine = Arc::new(Machine::builtin("mppa256").unwrap());
    let setup = Setup::new(machine.shape(), nodes, 1);
    let of = Arc::clone(&machine);
    let each = move |memory: ThreadMemory, _, _| {
        let (program, ipc) = (program.clone(), ipc(memory.clone(), &of));
        async move {
            let all = Span::new("all", 0);
            memory.begin(all).await;
            program(ipc).await.unwrap();
            memory.end(all).await;
        }
    };
    let mut built = machine.build(setup, each).unwrap();
    built.run(workers, |_| {}).unwrap();
    let all = built.spans().called("all")[0];
    all.last_end.since(all.first_begin).as_us() * 400.0
}

fn none(wrong: &Wrong) {
    assert_eq!(wrong.all(), Vec::<String>::new());
}

/// Each program runs, and takes the same time on any number of workers.
#[test]
fn programs_run_as_on_real_threads() {
    let mut times = [Vec::new(), Vec::new()];
    for (times, workers) in times.iter_mut().zip([1, 2]) {
        let wrong = Wrong::default();
        for nodes in [2, 7, 16] {
            let arrived = Arc::new(Mutex::new(vec![0; nodes as usize]));
            let told = wrong.clone();
            times.push(run(nodes, workers, move |ipc| {
                let (arrived, told) = (Arc::clone(&arrived), told.clone());
                async move { programs::barrier(&ipc, (nodes, 5), &arrived, &told).await }
            }));
            for by_channel in [false, true] {
                let told = wrong.clone();
                times.push(run(nodes, workers, move |ipc| {
                    let told = told.clone();
                    async move { programs::collects(&ipc, (nodes, 3), by_channel, &told).await }
                }));
            }
            for credits in [1, 3] {
                let told = wrong.clone();
                times.push(run(nodes, workers, move |ipc| {
                    let told = told.clone();
                    async move { programs::serves(&ipc, (nodes, credits), 20, &told).await }
                }));
            }
        }
        let told = wrong.clone();
        times.push(run(2, workers, move |ipc| {
            let told = told.clone();
            async move { programs::meets(&ipc, &[0, 1, 8, 100, 511], &told).await }
        }));
        none(&wrong);
    }
    assert_eq!(times[0], times[1]);
}

/// Ho et al., Sec. I-B: a barrier of all clusters by the control network, in hardware for the most
/// part: it costs little more than the way.
#[test]
fn a_sync_of_all_clusters_is_as_fast_as_the_network() {
    let time = |rounds| {
        let arrived = Arc::new(Mutex::new(vec![0; 16]));
        run(16, 1, move |ipc| {
            let arrived = Arc::clone(&arrived);
            async move { programs::barrier(&ipc, (16, rounds), &arrived, &Wrong::default()).await }
        })
    };
    // Each comes up to ten stores late, of some ten cycles each.
    let each = (time(12) - time(1)) / 11.0;
    assert!((97.0..500.0).contains(&each), "{each}");
}

/// With eight writes under way the ninth is refused, or waits for one to leave.
#[test]
fn the_ninth_write_waits_or_is_told_to_try_again() {
    run(2, 1, |ipc| async move {
        let buffer = ipc.reserve("buffers", 64 << 10)?;
        let ready = ipc.sync_rx("/mppa/sync/[0..1]:1", 0b11).await?;
        let rx = ipc.portal_rx(&format!("/mppa/portal/{}:1", ipc.node()))?;
        let read = rx.aio_read(buffer, 64 << 10, 10).await?;
        ipc.sync_tx("/mppa/sync/[0..1]:1")?
            .write(1 << ipc.node())
            .await;
        ready.wait().await;
        if ipc.node() == 1 {
            rx.wait(read).await;
            return Ok(());
        }
        let tx = ipc.portal_tx("/mppa/portal/1:1")?;
        let piece = Piece {
            from: buffer,
            bytes: 64 << 10,
            offset: 0,
        };
        let mut writes = Vec::new();
        for _ in 0..8 {
            writes.push(tx.aio_write(piece, WhenBusy::TryAgain).await?);
        }
        let refused = tx.aio_write(piece, WhenBusy::TryAgain).await.map(|_| ());
        assert_eq!(refused, Err(IpcError::TryAgain("DMA channel")));
        assert_eq!(refused.unwrap_err().errno(), 11);
        writes.push(tx.aio_write(piece, WhenBusy::Wait).await?);
        for write in writes {
            ipc.wait_write(write).await;
        }
        // All are free again.
        let empty = Piece { bytes: 0, ..piece };
        let write = tx.aio_write(empty, WhenBusy::TryAgain).await?;
        ipc.wait_write(write).await;
        Ok(())
    });
}

/// A sender without credits is told to try again, until the receiver takes a message.
#[test]
fn a_sender_has_no_more_under_way_than_its_credits() {
    run(2, 1, |ipc| async move {
        let path = "/mppa/rqueue/0:1/1:2/3.120";
        let go = ipc.sync_rx("/mppa/sync/[0..1]:1", 1).await?;
        let next = ipc.sync_tx("/mppa/sync/[0..1]:1")?;
        if ipc.node() == 0 {
            let mut rx = ipc.rqueue_rx(path).await?;
            next.write(1).await;
            go.wait().await;
            // Node 1 has found out that it has none left.
            go.wait().await;
            let mut words = [0];
            for number in 0..4 {
                rx.read(&mut words).await;
                assert_eq!(words, [number]);
            }
            assert!(!rx.is_ready().await);
            return Ok(());
        }
        let tx = ipc.rqueue_tx(path).await?;
        go.wait().await;
        for number in 0..3 {
            tx.try_write(&[number], 8).await?;
        }
        assert_eq!(
            tx.try_write(&[3], 8).await,
            Err(IpcError::TryAgain("credit"))
        );
        next.write(1).await;
        tx.write(&[3]).await
    });
}

/// Without credits a queue overflows, and the run says where.
#[test]
fn a_queue_without_credits_overflows() {
    let machine = Machine::builtin("mppa256").unwrap();
    let setup = Setup::new(machine.shape(), 2, 1);
    let of = machine.clone();
    let each = move |memory: ThreadMemory, node, _| {
        let ipc = ipc(memory, &of);
        async move {
            if node == 0 {
                let _queue = ipc.rqueue_rx("/mppa/rqueue/0:1/1:1/2.120").await.unwrap();
                return;
            }
            let from = ipc.reserve("data", 128).unwrap();
            ipc.memory().delay(Time::from_ns(10_000)).await;
            for _ in 0..3 {
                let to = NodeSet::one(0);
                let transfer = Transfer {
                    to,
                    tag: 1,
                    offset: 0,
                    from,
                    bytes: 128,
                };
                ipc.memory().push(transfer).await;
            }
        }
    };
    let mut built = machine.build(setup, each).unwrap();
    let failure = built.run(1, |_| {}).unwrap_err().to_string();
    assert!(failure.contains("finds no free slot"), "{failure}");
}
