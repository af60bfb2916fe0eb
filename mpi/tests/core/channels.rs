//! The channels through sections and through chunks, on real threads: what the wires' tests say of
//! messages holds there.

use std::sync::Mutex;

use sme_memory::Homes;
use sme_memory::native::{Native, Patience, Size, Thread, run};
use sme_mpi::channel::Channel;
use sme_mpi::channel::chunks::{Chunks, Ring};
use sme_mpi::channel::layout::{Layout, NoRoom, Reach};
use sme_mpi::channel::sections::Sections;
use sme_mpi::channel::transfers::Modes;
use sme_mpi::processor::Free;
use sme_mpi::rank::{Mpi, Source, Tag};

/// Runs `program` as each rank of `layout`, on threads of their own, each over its `channel`.
fn on_threads<C: Channel, F: Future<Output = ()>>(
    layout: Layout,
    channel: impl Fn(Thread, u32) -> C + Sync,
    program: impl Fn(Mpi<C>) -> F + Sync,
) {
    let ranks = layout.ranks;
    let size = Size {
        // Of a pool of at most three nodes, too.
        nodes: layout.node(ranks - 1) + 1 + 3,
        flag_bytes: layout.end(),
        word_bytes: layout.end(),
    };
    let memory = Native::new(size, Patience::for_threads(ranks as usize));
    std::thread::scope(|scope| {
        for me in 0..ranks {
            let memory = memory.thread(layout.node(me));
            let (channel, program) = (&channel, &program);
            scope.spawn(move || run(program(Mpi::new(channel(memory, me)))));
        }
    });
}

/// Through sections, or transfers where the layout has room for them.
fn sections(layout: Layout) -> impl Fn(Thread, u32) -> Sections<Thread, Free> {
    let modes = Modes {
        eager_bytes: Some(100),
        ..Modes::NORMAL
    };
    move |memory, me| {
        let channel = Sections::new(memory, Free, me, layout).unwrap();
        match layout.registered {
            0 => channel,
            _ => channel.with_transfers(modes),
        }
    }
}

/// All send to all, short and long messages, and each rank receives from any source.
async fn hears_from_everyone<C: Channel>(mpi: Mpi<C>, seen: &Mutex<Vec<u32>>) {
    let world = mpi.world();
    let (me, size) = (world.rank(), world.size());
    for words in [0usize, 1, 11, 300, 2_500] {
        let mut buffers = vec![vec![0u64; words]; size as usize];
        let mut receives = Vec::new();
        for buffer in &mut buffers {
            let tag = Tag::Is(words as i32);
            receives.push(world.ireceive(buffer, Source::Any, tag).await.unwrap());
        }
        for step in 0..size {
            let values: Vec<u64> = (0..words as u64).map(|word| value(me, word)).collect();
            world
                .send(&values, (me + step) % size, words as i32)
                .await
                .unwrap();
        }
        let mut senders = Vec::new();
        for mut receive in receives {
            senders.push(receive.wait().await.unwrap().source);
        }
        for (sender, buffer) in senders.iter().zip(&buffers) {
            assert!(
                (0..)
                    .zip(buffer)
                    .all(|(word, &is)| is == value(*sender, word))
            );
        }
        senders.sort_unstable();
        assert!(senders.into_iter().eq(0..size));
    }
    mpi.finalize().await.unwrap();
    mpi.vacate().await;
    assert_eq!(mpi.channel().unread(), []);
    seen.lock().unwrap().push(me);
}

/// The word that a rank sends at a place of a message.
fn value(rank: u32, word: u64) -> u64 {
    u64::from(rank) << 32 | word
}

#[test]
fn everyone_hears_from_everyone() {
    let buffers = [(2, 128), (3, 8192), (4, 512)];
    let buffers = buffers.map(|(ranks, bytes)| Layout::of_buffers(ranks, bytes));
    let (tagged, coherent) = (Reach::Tagged, Reach::Coherent);
    let memory = [
        ((2, 1), tagged),
        ((3, 2), coherent),
        ((5, 2), coherent),
        ((17, 16), coherent),
    ];
    let memory = memory.map(|(ranks, reach)| Layout::of_memory(ranks, 32, reach));
    let pools = [((2, 1), 1, 64), ((5, 2), 3, 32), ((40, 16), 2, 64)];
    let pools = pools.map(|((ranks, per_node), nodes, line_bytes)| {
        let first = u32::div_ceil(ranks, per_node);
        Layout::of_pool((ranks, per_node), Homes::Pool { first, nodes }, line_bytes)
    });
    let memory: Vec<Layout> = memory.into_iter().chain(pools).collect();
    // Some find no room for their data there.
    let registered = memory.iter().map(|layout| layout.with_registered(24_000));
    let registered: Vec<Layout> = registered.collect();
    for layout in buffers.into_iter().chain(memory).chain(registered) {
        let seen = Mutex::new(Vec::new());
        on_threads(layout, sections(layout), |mpi| {
            hears_from_everyone(mpi, &seen)
        });
        assert_eq!(seen.lock().unwrap().len(), layout.ranks as usize);
    }
}

/// Through rings of one chunk and of more, short chunks and chunks that hold a whole message, until
/// the counts of chunks begin again.
#[test]
fn everyone_hears_from_everyone_through_chunks() {
    for (placed, chunk_bytes, chunks) in [
        ((2, 1), 64, 1),
        ((3, 2), 128, 64),
        ((5, 2), 1024, 3),
        ((17, 16), 32 << 10, 8),
    ] {
        for is_at_sender in [false, true] {
            let ring = Ring::new(chunk_bytes, chunks, is_at_sender).unwrap();
            let layout = Layout::of_rings(placed, 32, ring.bytes());
            let seen = Mutex::new(Vec::new());
            let channel = |memory, me| Chunks::new(memory, Free, me, (layout, ring)).unwrap();
            on_threads(layout, channel, |mpi| hears_from_everyone(mpi, &seen));
            assert_eq!(seen.lock().unwrap().len(), layout.ranks as usize);
        }
    }
}

#[test]
fn flags_that_fill_the_buffers_are_refused() {
    let check = |ranks, bytes| Layout::of_buffers(ranks, bytes).check();
    assert_eq!(check(48, 8192), Ok(()));
    let (ranks, bytes) = (171, 8192);
    assert_eq!(check(170, bytes), Ok(()));
    assert_eq!(check(ranks, bytes), Err(NoRoom { ranks, bytes }));
    assert!(check(0, bytes).is_err());
    let ring = Ring::of_open_mpi(true);
    let layout = Layout::of_rings((2, 2), 0, ring.bytes() - 64);
    let size = Size {
        nodes: 1,
        flag_bytes: 8,
        word_bytes: 8,
    };
    let memory = Native::new(size, Patience::for_threads(1));
    let channel = Chunks::new(memory.thread(0), Free, 0, (layout, ring));
    assert!(channel.is_err());
}
