//! The PThread barrier, the reference of H. Fröning et al., "Highly Scalable Barriers for Future
//! High-Performance Computing Clusters", Fig. 3: as the Native POSIX Thread Library had it in 2010
//! (glibc, `nptl/sysdeps/pthread/pthread_barrier_wait.c`, described by its comments), with the
//! futex mutex of U. Drepper, "Futexes Are Tricky", 2004, *mutex2*.
//!
//! A lock, a counter of those inside, and an event that the last to arrive increments. The lock is
//! not released by who took it last: it is kept until the last thread has left, so that no thread
//! enters the next episode while others are still on their way out of this one. One node only, for
//! it needs atomic operations.

use std::future::Future;

use sme_memory::{Futex, Memory, Place, Word};

use crate::layout::Row;
use crate::{Barrier, Layout, Member, SpecError};

/// Description of a PThread barrier.
#[derive(Clone, Copy, Debug)]
pub struct PthreadSpec {
    /// The node whose threads take part and whose memory holds the data.
    pub node: u32,
    /// Threads.
    pub threads: u32,
    /// The layout of lock, counter and event; NPTL has them in one structure, that is packed.
    pub layout: Layout,
}

/// The PThread barrier.
#[derive(Clone, Debug)]
pub struct Pthread {
    node: u32,
    threads: u32,
    words: Row,
    bytes: u64,
}

/// States of the lock.
const FREE: u64 = 0;
const TAKEN: u64 = 1;
const TAKEN_AND_AWAITED: u64 = 2;

impl Pthread {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread or the layout is of no use.
    pub fn new(spec: PthreadSpec) -> Result<Self, SpecError> {
        if spec.threads == 0 {
            return Err(SpecError::NoThreads);
        }
        let mut allocator = spec.layout.allocator()?;
        Ok(Self {
            node: spec.node,
            threads: spec.threads,
            words: allocator.words(3)?,
            bytes: allocator.bytes()?,
        })
    }

    /// Bytes of the node's shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn event<M: Memory>(&self, memory: &M) -> Word {
        self.words.word(memory, self.node, 0)
    }

    fn lock<M: Memory>(&self, memory: &M) -> Word {
        self.words.word(memory, self.node, 1)
    }

    fn inside<M: Memory>(&self, memory: &M) -> Word {
        self.words.word(memory, self.node, 2)
    }
}

impl<M: Futex> Barrier<M> for Pthread {
    type Local = ();

    fn wait(&self, memory: &M, _me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        async move {
            acquire(memory, self.lock(memory)).await;
            let inside = memory.load(self.inside(memory)).await + 1;
            memory.store(self.inside(memory), inside).await;

            if inside == u64::from(self.threads) {
                memory.fetch_add(self.event(memory), 1).await;
                memory.futex_wake(self.event(memory), u32::MAX).await;
            } else {
                let event = memory.load(self.event(memory)).await;
                release(memory, self.lock(memory)).await;
                loop {
                    memory.futex_wait(self.event(memory), event).await;
                    if memory.load(self.event(memory)).await != event {
                        break;
                    }
                }
            }

            let left = memory
                .fetch_add(self.inside(memory), 1u64.wrapping_neg())
                .await;
            if left == 1 {
                release(memory, self.lock(memory)).await;
            }
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        let names = ["the event", "the lock", "the counter"];
        let name = names.get(self.words.index(place)? as usize)?;
        Some((*name).to_owned())
    }
}

/// Takes the lock, asleep where it is taken.
fn acquire<M: Futex>(memory: &M, lock: Word) -> impl Future<Output = ()> + Send {
    async move {
        if memory.compare_exchange(lock, FREE, TAKEN).await == FREE {
            return;
        }
        // From here on the lock is marked as awaited, even if it is then taken by this thread:
        // there may be more who sleep.
        while memory.swap(lock, TAKEN_AND_AWAITED).await != FREE {
            memory.futex_wait(lock, TAKEN_AND_AWAITED).await;
        }
    }
}

/// Frees the lock and wakes one who sleeps on it.
fn release<M: Futex>(memory: &M, lock: Word) -> impl Future<Output = ()> + Send {
    async move {
        if memory.swap(lock, FREE).await == TAKEN_AND_AWAITED {
            memory.futex_wake(lock, 1).await;
        }
    }
}
