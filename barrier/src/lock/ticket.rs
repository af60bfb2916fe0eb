//! The lock within a node: a ticket for each thread that arrives, and a flag for each thread that
//! waits, so that every thread spins in its own cache and is served in the order of arrival: T. E.
//! Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", IEEE
//! Transactions on Parallel and Distributed Systems 1(1), 1990 (queueing in shared memory); J. M.
//! Mellor-Crummey and M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991 (the ticket lock).
//!
//! There are as many flags as threads: the ticket `t` waits at flag `t mod threads`, which changes
//! once a round. A flag is written by the holder of the ticket before: one thread at a time, each
//! after it has seen what the one before wrote. Every node has such a lock of its own.

use std::future::Future;

use sme_memory::{Atomic, Memory, Place, Until};

use super::{Lock, LockError};
use crate::layout::{Row, RowAllocator};
use crate::{Layout, Member};

/// Description of the locks within nodes.
#[derive(Clone, Copy, Debug)]
pub struct TicketSpec {
    /// Threads per node, at least 1.
    pub cores: u32,
    /// The layout of tickets and flags.
    pub layout: Layout,
}

/// A lock in each node, for that node's threads.
#[derive(Clone, Debug)]
pub struct Ticket {
    cores: u32,
    /// The next ticket.
    next: Row,
    /// The thread that waits here is served: a flag for each thread.
    served: Row,
    bytes: u64,
}

impl Ticket {
    /// Lays the locks out.
    ///
    /// # Errors
    /// If there is no thread or the layout is of no use.
    pub fn new(spec: TicketSpec) -> Result<Self, LockError> {
        let mut allocator = spec.layout.allocator()?;
        let lock = Self::planned(&mut allocator, spec.cores)?;
        let bytes = allocator.bytes()?;
        Ok(Self { bytes, ..lock })
    }

    /// Lays out the variables of `cores` threads per node, as a part of a larger lock.
    pub(super) fn planned(allocator: &mut RowAllocator, cores: u32) -> Result<Self, LockError> {
        if cores == 0 {
            return Err(LockError::NoThreads);
        }
        Ok(Self {
            cores,
            next: allocator.words(1)?,
            served: allocator.flags(cores)?,
            bytes: 0,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether another thread of the node has drawn a ticket after `ticket`, the holder's.
    pub(super) fn is_awaited<M: Memory>(
        &self,
        memory: &M,
        ticket: u64,
    ) -> impl Future<Output = bool> + Send {
        async move {
            let next = self.next.word(memory, memory.node(), 0);
            memory.load(next).await != ticket.wrapping_add(1)
        }
    }

    /// The flag at which `ticket` waits, and the value that serves it. Flags begin as 0, which
    /// serves the very first ticket only.
    fn turn(&self, ticket: u64) -> (u32, u8) {
        let cores = u64::from(self.cores);
        let index = (ticket % cores) as u32;
        let round = (ticket / cores) as u8 & 1;
        (index, round ^ u8::from(index != 0))
    }
}

impl<M: Atomic> Lock<M> for Ticket {
    /// The ticket.
    type Local = u64;

    fn acquire(
        &self,
        memory: &M,
        _me: Member,
        ticket: &mut u64,
    ) -> impl Future<Output = ()> + Send {
        async move {
            let next = self.next.word(memory, memory.node(), 0);
            *ticket = memory.fetch_add(next, 1).await;
            let (index, value) = self.turn(*ticket);
            let served = self.served.flag(memory, memory.node(), index);
            memory.wait(served, Until::Is(value)).await;
        }
    }

    fn release(
        &self,
        memory: &M,
        _me: Member,
        ticket: &mut u64,
    ) -> impl Future<Output = ()> + Send {
        async move {
            let (index, value) = self.turn(ticket.wrapping_add(1));
            let served = self.served.flag(memory, memory.node(), index);
            memory.set(served, value).await;
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        let node = place.node;
        if self.next.index(place).is_some() {
            return Some(format!("node {node}'s next ticket"));
        }
        let index = self.served.index(place)?;
        Some(format!("node {node}'s flag for ticket {index}"))
    }
}
