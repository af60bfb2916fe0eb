//! A lock over a test-and-set register: for machines whose memory has no atomic operations and
//! whose nodes share registers of one bit, as the Intel SCC's (Howard et al., "A 48-Core IA-32
//! Message-Passing Processor with DVFS in 45 nm CMOS", ISSCC 2010). A thread reads the register
//! until it finds it clear; the order of acquisition is not controlled. One register serves all
//! threads of all nodes.

use std::future::Future;

use sme_memory::{Cacheable, Place, Register, TestAndSet};

use super::{Coherence, Lock, LockError};
use crate::layout::Row;
use crate::{Layout, Member};

/// Description of a lock over a register.
#[derive(Clone, Debug)]
pub struct TestAndSetSpec {
    /// Nodes, at least 1.
    pub nodes: u32,
    /// The register, of one of them.
    pub register: Register,
    /// The coherence protocol for the protected data.
    pub coherence: Coherence,
    /// The layout of the words that coherence needs.
    pub layout: Layout,
}

/// A lock over a register.
#[derive(Clone, Debug)]
pub struct TestAndSetLock {
    register: Register,
    coherence: Coherence,
    /// In each node a word that is only loaded: a load from a home waits for earlier posted writes.
    probe: Row,
    bytes: u64,
}

impl TestAndSetLock {
    /// Lays the lock out.
    ///
    /// # Errors
    /// If there is no node, the register or the data belongs to none, or the layout is of no use.
    pub fn new(spec: TestAndSetSpec) -> Result<Self, LockError> {
        let nodes = spec.nodes;
        if nodes == 0 {
            return Err(LockError::NoNodes);
        }
        let mut data = spec.coherence.all_homes();
        let elsewhere = data.find(|&home| !spec.layout.homes.has(home, nodes));
        drop(data);
        let register = Some(spec.register.node).filter(|&node| node >= nodes);
        if let Some(home) = elsewhere.or(register) {
            return Err(LockError::Home { home, nodes });
        }
        let mut allocator = spec.layout.allocator()?;
        Ok(Self {
            register: spec.register,
            coherence: spec.coherence,
            probe: allocator.words(1)?,
            bytes: allocator.bytes()?,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<M: TestAndSet + Cacheable> Lock<M> for TestAndSetLock {
    type Local = ();

    fn acquire(&self, memory: &M, _: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        async move {
            memory.take(self.register).await;
            self.coherence.begin(memory).await;
        }
    }

    fn release(&self, memory: &M, _: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        async move {
            let word_at = |home| self.probe.place(home, 0);
            self.coherence.end(memory, word_at).await;
            memory.clear(self.register).await;
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        self.probe.index(place)?;
        Some(format!("node {}'s probe", place.node))
    }
}
