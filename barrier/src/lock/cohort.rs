//! The lock of the whole cluster: a lock within each node, and one between nodes that belongs to
//! the node and not to the thread: D. Dice, V. J. Marathe, N. Shavit, "Lock Cohorting: A General
//! Technique for Designing NUMA Locks", PPoPP 2012.
//!
//! A thread takes its node's lock first. If its node does not have the other, it takes that too.
//! The releasing thread passes both on within the node, as long as another thread waits there and
//! not too many passes have been made in a row; then the lock goes to another node, and only then
//! is memory made coherent ([`Coherence`]).

use std::future::Future;

use sme_memory::{Atomic, Cacheable, Memory, Place, Word};

use super::{Coherence, Lock, LockError, Ticket, Tournament};
use crate::layout::Row;
use crate::{Layout, Member};

/// Description of a lock of the cluster.
#[derive(Clone, Debug)]
pub struct CohortSpec {
    /// Nodes, at least 1.
    pub nodes: u32,
    /// Threads per node, at least 1.
    pub cores: u32,
    /// The most passes within a node before the lock is given to another; 0 makes every hand-over
    /// one between nodes.
    pub passes: u32,
    /// The coherence actions for the protected data.
    pub coherence: Coherence,
    /// The layout of the variables.
    pub layout: Layout,
}

/// A lock of the cluster.
#[derive(Clone, Debug)]
pub struct Cohort {
    within: Ticket,
    between: Tournament,
    passes: u64,
    coherence: Coherence,
    /// The passes of each node since it got the lock; 0 for a node that does not have it.
    passed: Row,
    /// The node that had the lock last, plus 1; at the home of the last match only.
    last: Row,
    /// In each node a word that is only loaded: a load from a home waits for earlier posted writes.
    probe: Row,
    bytes: u64,
}

impl Cohort {
    /// Lays the lock out.
    ///
    /// # Errors
    /// If there is no node or no thread, the data lies elsewhere, or the layout is of no use.
    pub fn new(spec: CohortSpec) -> Result<Self, LockError> {
        let CohortSpec {
            nodes, coherence, ..
        } = spec;
        let homes = spec.layout.homes;
        if let Some(home) = coherence.all_homes().find(|&home| !homes.has(home, nodes)) {
            return Err(LockError::Home { home, nodes });
        }
        let mut allocator = spec.layout.allocator()?;
        Ok(Self {
            within: Ticket::planned(&mut allocator, spec.cores)?,
            between: Tournament::planned(&mut allocator, nodes)?,
            passes: spec.passes.into(),
            passed: allocator.words(1)?,
            last: allocator.shared_words(1, nodes)?,
            probe: allocator.words(1)?,
            bytes: allocator.bytes()?,
            coherence,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The words of loads and stores that order what threads of different nodes do: a checker of
    /// races must be told of them. Within a node that is done by atomic operations and flags.
    pub fn synchronizing(&self) -> impl Iterator<Item = Place> + use<> {
        self.between.synchronizing()
    }

    fn passed<M: Memory>(&self, memory: &M) -> Word {
        self.passed.word(memory, memory.node(), 0)
    }

    fn last<M: Memory>(&self, memory: &M) -> Word {
        self.last.word(memory, self.between.final_home(), 0)
    }

    /// The node has the lock: it drops its copies, unless no other node had the lock meanwhile.
    fn begin<M: Cacheable>(&self, memory: &M) -> impl Future<Output = ()> + Send {
        async move {
            if !self.coherence.depends_on_last() {
                return;
            }
            let last = memory.load(self.last(memory)).await;
            if last != u64::from(memory.node()) + 1 {
                self.coherence.begin(memory).await;
            }
        }
    }

    /// The node is about to lose the lock. The word that says so has the same home as the last
    /// match, so it has been performed before the claim to that is gone.
    fn end<M: Cacheable>(&self, memory: &M) -> impl Future<Output = ()> + Send {
        async move {
            let word_at = |home| self.probe.place(home, 0);
            self.coherence.end(memory, word_at).await;
            if self.coherence.depends_on_last() {
                let me = u64::from(memory.node()) + 1;
                memory.store(self.last(memory), me).await;
            }
        }
    }
}

impl<M: Atomic + Cacheable> Lock<M> for Cohort {
    /// The ticket within the node.
    type Local = u64;

    fn acquire(&self, memory: &M, me: Member, ticket: &mut u64) -> impl Future<Output = ()> + Send {
        async move {
            self.within.acquire(memory, me, ticket).await;
            if memory.load(self.passed(memory)).await == 0 {
                self.between.acquire(memory, me, &mut ()).await;
                self.begin(memory).await;
            }
        }
    }

    fn release(&self, memory: &M, me: Member, ticket: &mut u64) -> impl Future<Output = ()> + Send {
        async move {
            let passed = memory.load(self.passed(memory)).await;
            if passed < self.passes && self.within.is_awaited(memory, *ticket).await {
                memory.store(self.passed(memory), passed + 1).await;
                // The holder's writes past the caches have left its core before the next one's
                // accesses do.
                memory.fence().await;
            } else {
                self.end(memory).await;
                self.between.release(memory, me, &mut ()).await;
                memory.store(self.passed(memory), 0).await;
            }
            self.within.release(memory, me, ticket).await;
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        let node = place.node;
        if self.passed.index(place).is_some() {
            return Some(format!("node {node}'s passes"));
        }
        if self.last.index(place).is_some() {
            return Some("the last holder".to_owned());
        }
        if self.probe.index(place).is_some() {
            return Some(format!("node {node}'s probe"));
        }
        let within = Lock::<M>::variable(&self.within, place);
        within.or_else(|| Lock::<M>::variable(&self.between, place))
    }
}
