//! The channel through sections, on real threads: what the wires' tests say of messages
//! holds there.

use std::sync::Mutex;

use sme_memory::native::{Native, Patience, Size, Thread, run};
use sme_mpi::channel::Free;
use sme_mpi::channel::sections::{Layout, NoRoom, Reach, Sections};
use sme_mpi::channel::transfers::Modes;
use sme_mpi::rank::{Mpi, Source, Tag};

type OnSections = Mpi<Sections<Thread, Free>>;

/// Runs `program` as each rank of `layout`, on threads of their own.
fn on_threads<F: Future<Output = ()>>(layout: Layout, program: impl Fn(OnSections) -> F + Sync) {
    let modes = Modes {
        eager_bytes: Some(100),
        ..Modes::NORMAL
    };
    let ranks = layout.ranks;
    let size = Size {
        nodes: layout.node(ranks - 1) + 1,
        flag_bytes: layout.end(),
        word_bytes: layout.end(),
    };
    let memory = Native::new(size, Patience::for_threads(ranks as usize));
    std::thread::scope(|scope| {
        for me in 0..ranks {
            let memory = memory.thread(layout.node(me));
            let channel = Sections::new(memory, Free, me, layout).unwrap();
            let channel = match layout.registered {
                0 => channel,
                _ => channel.with_transfers(modes),
            };
            let program = &program;
            scope.spawn(move || run(program(Mpi::new(channel))));
        }
    });
}

/// All send to all, short and long messages, and each receives from anyone.
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
    // Some find no room for their data there.
    let registered = memory.map(|layout| layout.with_registered(24_000));
    for layout in buffers.into_iter().chain(memory).chain(registered) {
        let ranks = layout.ranks;
        let seen = Mutex::new(Vec::new());
        on_threads(layout, |mpi| {
            let seen = &seen;
            async move {
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
                        let values = vec![u64::from(me) << 32 | words as u64; words];
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
                        let value = u64::from(*sender) << 32 | words as u64;
                        assert!(buffer.iter().all(|&word| word == value));
                    }
                    senders.sort_unstable();
                    assert!(senders.into_iter().eq(0..size));
                }
                mpi.finalize().await.unwrap();
                seen.lock().unwrap().push(me);
            }
        });
        assert_eq!(seen.lock().unwrap().len(), ranks as usize);
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
}
