//! Runs episodes of a barrier and checks that no thread leaves one before all have arrived in it.

use std::sync::atomic::{AtomicU32, Ordering};

use sme_barrier::{Barrier, Member};
use sme_memory::Memory;

use crate::memory::{Failure, TestMemory, Traffic, run};

/// The length of a run, and the source of its order.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Episodes.
    pub episodes: u32,
    /// Steps by which a thread may be late in each.
    pub skew: usize,
    /// The seed of the scheduler's choices.
    pub seed: u64,
}

/// Runs a barrier that needs `bytes` of each node among `threads[node]` threads per node.
pub fn check<B: Barrier<TestMemory>>(
    barrier: &B,
    threads: &[u32],
    bytes: u64,
    how: Run,
) -> Result<Traffic, Failure> {
    check_with_pool(barrier, (threads, 0), bytes, how)
}

/// The same with a pool of so many nodes behind those with threads, which then reach their own
/// memory and that of the pool only.
pub fn check_with_pool<B: Barrier<TestMemory>>(
    barrier: &B,
    (threads, pool): (&[u32], u32),
    bytes: u64,
    how: Run,
) -> Result<Traffic, Failure> {
    let count: u32 = threads.iter().sum();
    let arrived: Vec<AtomicU32> = (0..how.episodes).map(|_| AtomicU32::new(0)).collect();
    let arrived = &arrived;
    run(
        (threads, pool),
        bytes,
        how.seed,
        |memory, core| async move {
            let node = memory.node();
            let me = Member { node, core };
            let mut local = B::Local::default();
            for (episode, arrived) in (0..).zip(arrived) {
                memory.idle(how.skew).await;
                arrived.fetch_add(1, Ordering::Relaxed);
                barrier.wait(&memory, me, &mut local).await;
                if arrived.load(Ordering::Relaxed) != count {
                    let thread = memory.thread();
                    memory.world().fail(Failure::LeftEarly { thread, episode });
                }
            }
        },
    )
}
