//! MPPAIPC on real threads: barriers hold, windows collect, messages arrive in order, and what
//! cannot be is refused.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod programs;

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme_memory::native::{Native, Patience, Size, Thread, run};
use sme_mpi::mppaipc::{Hardware, Ipc, IpcError, Resources, Room};
use sme_mpi::processor::Free;

use programs::Wrong;

const CHIP: Hardware = Hardware {
    clusters: 16,
    tags: 256,
    channels: 8,
};

const MEMORY: u64 = 64 << 10;

/// Runs `program` on each of so many nodes, on threads of their own.
fn on_threads<F>(nodes: u32, program: impl Fn(Ipc<Thread, Free>) -> F + Sync)
where
    F: Future<Output = Result<(), IpcError>>,
{
    let size = Size {
        nodes,
        flag_bytes: MEMORY,
        word_bytes: MEMORY,
    };
    let memory = Native::new(size, Patience::for_threads(nodes as usize));
    std::thread::scope(|scope| {
        for node in 0..nodes {
            let room = Room {
                begin: 0,
                end: MEMORY,
            };
            let resources = Arc::new(Resources::new(CHIP, 1, room));
            let ipc = Ipc::new(memory.thread(node), Free, resources, 0);
            let program = &program;
            scope.spawn(move || run(program(ipc)).unwrap());
        }
    });
}

fn none(wrong: &Wrong) {
    assert_eq!(wrong.all(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn nobody_leaves_a_sync_before_all_have_come(nodes in 1u32..6, rounds in 1u32..12) {
        let (wrong, arrived) = (Wrong::default(), Mutex::new(vec![0; nodes as usize]));
        let (wrong, arrived) = (&wrong, &arrived);
        on_threads(nodes, |ipc| async move {
            programs::barrier(&ipc, (nodes, rounds), arrived, wrong).await
        });
        none(wrong);
    }

    #[test]
    fn a_portal_collects(nodes in 2u32..6, rounds in 1u32..6, by_channel: bool) {
        let wrong = &Wrong::default();
        on_threads(nodes, |ipc| async move {
            programs::collects(&ipc, (nodes, rounds), by_channel, wrong).await
        });
        none(wrong);
    }

    #[test]
    fn a_queue_keeps_the_order_of_each_sender(
        nodes in 2u32..6, credits in 1u32..5, messages in 0u64..40,
    ) {
        let wrong = &Wrong::default();
        on_threads(nodes, |ipc| async move {
            programs::serves(&ipc, (nodes, credits), messages, wrong).await
        });
        none(wrong);
    }

    #[test]
    fn the_ends_of_a_channel_meet(messages in prop::collection::vec(0u32..200, 0..6)) {
        let (wrong, messages) = (&Wrong::default(), &messages);
        on_threads(2, |ipc| async move { programs::meets(&ipc, messages, wrong).await });
        none(wrong);
    }
}

#[test]
fn what_cannot_be_opened_is_refused() {
    on_threads(1, |ipc| async move {
        let says = |refused: Result<(), IpcError>, errno: i32, message: &str| {
            let refused = refused.unwrap_err();
            assert_eq!(
                (refused.errno(), refused.to_string().as_str()),
                (errno, message)
            );
        };
        let open = |path: &str| ipc.portal_rx(path).map(|_| ());
        says(
            open("/mppa/portal/0"),
            22,
            "/mppa/portal/0: 0 is not NODES:TAG",
        );
        says(
            open("/mppa/portal/1:2"),
            1,
            "/mppa/portal/1:2 is no receiving end of a portal that node 0 can open",
        );
        open("/mppa/portal/0:2").unwrap();
        says(
            open("/mppa/portal/0:2"),
            16,
            "tag 2 of the data network is in use",
        );
        let sync = ipc.sync_rx("/mppa/sync/0:2", 1).await.map(|_| ());
        sync.unwrap();
        let sync = ipc.sync_rx("/mppa/sync/0:2", 1).await.map(|_| ());
        says(sync, 16, "tag 2 of the control network is in use");
        for _ in 0..255 {
            let _ = ipc.any_portal_rx().unwrap();
        }
        says(
            ipc.any_portal_rx().map(|_| ()),
            28,
            "all 256 receive tags are in use",
        );
        ipc.reserve("buffers", 60_000).unwrap();
        says(
            ipc.reserve("panels", 8_192).map(|_| ()),
            12,
            "panels of 8192 bytes: 5376 bytes of the node's memory are free",
        );
        let account = ipc.resources().account();
        let expected = [("flags", 64), ("mailboxes", 64), ("buffers", 60_032)];
        assert_eq!(account, expected);
        Ok(())
    });
}

/// A tag that was given back can be opened again, and each receive has one of its own.
#[test]
fn tags_are_given_back() {
    on_threads(1, |ipc| async move {
        let at = ipc.reserve("buffers", 64)?;
        for _ in 0..600 {
            let (one, other) = (ipc.any_portal_rx()?, ipc.any_portal_rx()?);
            assert_eq!((one.tag(), other.tag()), (255, 254));
            let read = one.aio_read(at, 64, 1).await?;
            let to = sme_memory::NodeSet::one(0);
            let piece = sme_mpi::mppaipc::portal::Piece {
                from: at,
                bytes: 8,
                offset: 8,
            };
            ipc.portal_to(to, one.tag()).pwrite(piece).await;
            one.wait(read).await;
            one.close();
            other.close();
        }
        Ok(())
    });
}
