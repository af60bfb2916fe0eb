//! What every memory must do, as one suite: small programs over the contract that say what they found, for
//! native memory and for each simulated machine alike. Cases come by capability; a machine runs those of the
//! capabilities that it has.
//!
//! * `cases`: the programs.
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

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Cacheable, Capabilities, Capability, Futex, Spawn, TestAndSet};

/// Nodes of the machine on which a case runs.
pub const NODES: u32 = 2;

/// Threads with which each node begins; each may start one more.
pub const THREADS: u32 = 2;

/// Bytes of a node's memory that cases use.
pub const BYTES: u64 = 4096;

/// A memory with every trait of the contract; what its machine does not have, no case asks of it.
pub trait Whole: Cacheable + Futex + TestAndSet + Spawn + Clone + 'static {}

impl<M: Cacheable + Futex + TestAndSet + Spawn + Clone + 'static> Whole for M {}

/// What a thread runs.
pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A machine under test.
pub trait Machine {
    /// A thread's view of its memory.
    type Memory: Whole;

    /// What it has.
    fn capabilities(&self) -> Capabilities;

    /// Runs `program` to its end on memory that is all zero, [`THREADS`] threads on each of [`NODES`] nodes;
    /// it is told each thread's view of memory, its node and its number there.
    ///
    /// # Errors
    /// How the run has failed, in words: a deadlock, a fault.
    fn run(&self, program: &mut dyn FnMut(Self::Memory, u32, u32) -> Program)
    -> Result<(), String>;
}

/// What the threads of a case have found wrong.
#[derive(Clone, Debug, Default)]
pub struct Found(Arc<Mutex<Vec<String>>>);

impl Found {
    /// `what` was `found`; it must be `expected`.
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
    /// Its name: what must hold, in one sentence.
    pub name: &'static str,
    /// What a machine must have.
    pub needs: Capability,
    /// What each thread runs.
    program: fn(M, u32, u32, Found) -> Program,
}

impl<M: Whole> Case<M> {
    /// Runs the case on `machine`, which has what it needs.
    ///
    /// # Errors
    /// What was wrong, in one line or as the machine reports it.
    pub fn run(&self, machine: &impl Machine<Memory = M>) -> Result<(), String> {
        let found = Found::default();
        machine
            .run(&mut |memory, node, thread| (self.program)(memory, node, thread, found.clone()))?;
        found.first().map_or(Ok(()), Err)
    }
}

/// Every case, those of one capability side by side.
pub fn cases<M: Whole>() -> Vec<Case<M>> {
    cases::all()
}

/// A case, and what [was wrong](Case::run).
pub type Outcome<M> = (Case<M>, Result<(), String>);

/// Runs all cases for which `machine` has what they need.
pub fn check<T: Machine>(machine: &T) -> Vec<Outcome<T::Memory>> {
    let has = machine.capabilities();
    let cases = cases().into_iter().filter(|case| has.has(case.needs));
    let run = |case: Case<T::Memory>| {
        let outcome = case.run(machine);
        (case, outcome)
    };
    cases.map(run).collect()
}
