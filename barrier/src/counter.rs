//! The PThread barrier for machines whose memory has no atomic operations: the lock is a
//! test-and-set register, as on the Intel SCC, and waiters read the event over and over, since
//! nothing wakes sleepers across cores. A lock, a counter of those that have arrived, and an event
//! that the last of them changes.
//!
//! Unlike [`Pthread`](crate::Pthread) the lock is free while threads leave: the counter has begun
//! anew then, and a thread that has left the episode cannot end the next one without the others.

use std::future::Future;

use sme_memory::{Place, Register, Route, TestAndSet, Until};

use crate::layout::Row;
use crate::{Barrier, Layout, Member, SpecError};

/// Description of a counter barrier.
#[derive(Clone, Debug)]
pub struct CounterSpec {
    /// Threads, of all nodes.
    pub threads: u32,
    /// The node whose memory holds counter and event, and whose register is the lock.
    pub home: u32,
    /// Their places.
    pub layout: Layout,
}

/// A counter under a test-and-set register.
#[derive(Clone, Debug)]
pub struct Counter {
    threads: u32,
    home: u32,
    event: Row,
    counter: Row,
    bytes: u64,
}

impl Counter {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread or the layout is of no use.
    pub fn new(spec: CounterSpec) -> Result<Self, SpecError> {
        if spec.threads == 0 {
            return Err(SpecError::NoThreads);
        }
        let mut allocator = spec.layout.allocator()?;
        Ok(Self {
            threads: spec.threads,
            home: spec.home,
            event: allocator.flags(1)?,
            counter: allocator.words(1)?,
            bytes: allocator.bytes()?,
        })
    }

    /// Bytes of the home's shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<M: TestAndSet> Barrier<M> for Counter {
    /// The event's value in the episode before: 0 or 1.
    type Local = u8;

    fn wait(&self, memory: &M, _: Member, local: &mut u8) -> impl Future<Output = ()> + Send {
        let before = *local;
        *local = 1 - before;
        async move {
            let lock = Register {
                node: self.home,
                number: 0,
            };
            let event = memory.flag(self.event.place(self.home, 0), Route::Global);
            let counter = memory.word(self.counter.place(self.home, 0), Route::Global);
            memory.take(lock).await;
            let arrived = memory.load(counter).await + 1;
            if arrived == u64::from(self.threads) {
                memory.store(counter, 0).await;
                memory.set(event, 1 - before).await;
                memory.clear(lock).await;
            } else {
                memory.store(counter, arrived).await;
                memory.clear(lock).await;
                memory.wait(event, Until::IsNot(before)).await;
            }
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        if self.event.index(place).is_some() {
            return Some("the event".to_owned());
        }
        self.counter.index(place)?;
        Some("the counter".to_owned())
    }
}
