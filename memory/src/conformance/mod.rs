//! The conformance suite of memories: small programs over the contract that report violations. The
//! same suite runs on native memory and on every simulated machine. Each case belongs to a
//! capability, and a machine runs the cases of the capabilities that it has.
//!
//! * `cases`: the programs; `messages`: those for layers of messages; `network`: those for
//!   networks on chip.
//!
//! ```
//! use sme_memory::conformance::{Machine, check};
//! use sme_memory::native::{Native, OnThreads};
//!
//! for (case, outcome) in check(&OnThreads) {
//!     assert_eq!(outcome, Ok(()), "{}", case.name);
//! }
//! ```

mod cases;
mod messages;
mod network;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    AnyFlag, Blocks, Cacheable, Capabilities, Capability, Futex, Interrupts, Network, Passes,
    Spawn, Tagged, TestAndSet, Timer,
};

/// Nodes of the machine on which a case runs.
pub const NODES: u32 = 2;

/// Threads with which each node begins; each may start one more.
pub const THREADS: u32 = 2;

/// Bytes of a node's memory that cases use.
pub const BYTES: u64 = 4096;

/// A memory with every trait of the contract. No case uses a capability that its machine lacks.
pub trait Whole:
    Cacheable
    + Futex
    + TestAndSet
    + Spawn
    + Blocks
    + Passes
    + AnyFlag
    + Tagged
    + Interrupts
    + Timer
    + Network
    + Clone
    + 'static
{
}

impl<M> Whole for M where
    M: Cacheable
        + Futex
        + TestAndSet
        + Spawn
        + Blocks
        + Passes
        + AnyFlag
        + Tagged
        + Interrupts
        + Timer
        + Network
        + Clone
        + 'static
{
}

/// The program of a thread.
pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A machine under test.
pub trait Machine {
    /// A thread's view of its memory.
    type Memory: Whole;

    /// Its capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Runs `program` to its end on memory that is all zero, [`THREADS`] threads on each of
    /// [`NODES`] nodes; it is told each thread's view of memory, its node and its number there.
    ///
    /// # Errors
    /// The failure of the run, in words: a deadlock, a fault.
    fn run(&self, program: &mut dyn FnMut(Self::Memory, u32, u32) -> Program)
    -> Result<(), String>;
}

/// The violations that the threads of a case have found.
#[derive(Clone, Debug, Default)]
pub struct Found(Arc<Mutex<Vec<String>>>);

impl Found {
    /// Records a violation if `found` is not `expected`; `what` names the value.
    pub fn compare<T: PartialEq + fmt::Debug>(&self, what: &str, found: T, expected: T) {
        if found != expected {
            let wrong = format!("{what}: {found:?} instead of {expected:?}");
            // A thread that panicked meanwhile has left a whole list behind.
            let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            list.push(wrong);
        }
    }

    fn first(&self) -> Option<String> {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.first().cloned()
    }
}

/// A case.
#[derive(Debug)]
pub struct Case<M> {
    /// The property under test, in one sentence.
    pub name: &'static str,
    /// The capability that the case uses.
    pub needs: Capability,
    /// Whether threads reach the other node's memory by loads and stores.
    pub is_far: bool,
    /// The program of each thread.
    program: fn(M, u32, u32, Found) -> Program,
}

impl<M: Whole> Case<M> {
    /// Runs the case on `machine`, which has what it needs.
    ///
    /// # Errors
    /// The first violation, or the failure that the machine reports.
    pub fn run(&self, machine: &impl Machine<Memory = M>) -> Result<(), String> {
        let found = Found::default();
        machine
            .run(&mut |memory, node, thread| (self.program)(memory, node, thread, found.clone()))?;
        found.first().map_or(Ok(()), Err)
    }
}

/// All cases, grouped by capability.
pub fn cases<M: Whole>() -> Vec<Case<M>> {
    cases::all()
}

/// A case and the [result of its run](Case::run).
pub type Outcome<M> = (Case<M>, Result<(), String>);

/// Runs every case that `machine` has the capabilities for.
pub fn check<T: Machine>(machine: &T) -> Vec<Outcome<T::Memory>> {
    let has = machine.capabilities();
    let can = |case: &Case<T::Memory>| {
        has.has(case.needs) && (!case.is_far || has.has(Capability::Remote))
    };
    let cases = cases().into_iter().filter(can);
    let run = |case: Case<T::Memory>| {
        let outcome = case.run(machine);
        (case, outcome)
    };
    cases.map(run).collect()
}
