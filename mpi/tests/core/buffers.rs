//! The channel through message passing buffers, on real threads: what the wires' tests say of messages
//! holds there.

use std::sync::Mutex;

use sme_memory::native::{Native, Patience, Size, Thread, run};
use sme_mpi::channel::buffers::{Buffers, NoRoom, check};
use sme_mpi::channel::{Processor, Work};
use sme_mpi::rank::{Mpi, Source, Tag};

/// A processor on which work takes no time.
struct Free;

impl Processor for Free {
    async fn work(&self, _: Work, _: u32) {}
    async fn enters(&self, _: &'static str, _: Option<u32>, _: u64) {}
    async fn leaves(&self, _: &'static str) {}
}

type OnBuffers = Mpi<Buffers<Thread, Free>>;

/// Runs `program` as each of `ranks` ranks, on threads of their own, with buffers of so many bytes.
fn on_threads<F: Future<Output = ()>>(
    (ranks, bytes): (u32, u64),
    program: impl Fn(OnBuffers) -> F + Sync,
) {
    let size = Size {
        nodes: ranks,
        flag_bytes: bytes,
        word_bytes: bytes,
    };
    let memory = Native::new(size, Patience::for_threads(ranks as usize));
    std::thread::scope(|scope| {
        for me in 0..ranks {
            let channel = Buffers::new(memory.thread(me), Free, (me, ranks), bytes).unwrap();
            let program = &program;
            scope.spawn(move || run(program(Mpi::new(channel))));
        }
    });
}

/// All send to all, short and long messages, and each receives from anyone.
#[test]
fn everyone_hears_from_everyone() {
    for (ranks, bytes) in [(2, 128), (3, 8192), (4, 512)] {
        let seen = Mutex::new(Vec::new());
        on_threads((ranks, bytes), |mpi| {
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
    assert_eq!(check(48, 8192), Ok(()));
    let (ranks, bytes) = (171, 8192);
    assert_eq!(check(170, bytes), Ok(()));
    assert_eq!(check(ranks, bytes), Err(NoRoom { ranks, bytes }));
    assert!(check(0, bytes).is_err());
}
