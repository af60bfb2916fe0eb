//! A kernel's thread and its team: its view of memory, its number, the team's barrier.

use std::future::Future;

use sme_memory::Cacheable;

/// One thread of a team that runs a kernel together. Numbers count threads.
pub trait Team: Send {
    /// The thread's view of memory.
    type Memory: Cacheable;

    /// The thread's view of memory.
    fn memory(&self) -> &Self::Memory;

    /// The thread's number in the team, from 0; those of one node follow each other.
    fn number(&self) -> u32;

    /// Returns the number of threads.
    fn size(&self) -> u32;

    /// The team's barrier: ends when all have called it as often as this thread, and everything
    /// written before it can be read after it (which is what a coherence point is for).
    fn barrier(&mut self) -> impl Future<Output = ()> + Send;

    /// Takes the time of `operations` floating-point or integer operations on registers.
    fn compute(&mut self, operations: u32) -> impl Future<Output = ()> + Send;
}
