//! The contract between a shared-memory program and the memory it runs on.
//!
//! A program is written once, as `async` Rust over [`Memory`], and runs on real threads
//! ([`native`]), where every operation completes in place, and on simulated machines, where an
//! operation suspends the program until the machine has performed it. This crate knows neither
//! the programs nor the machines.
//!
//! Two kinds of data are told apart by type, because real hardware and real threads treat them
//! differently:
//!
//! * a [`Flag`] is one byte that one thread at a time writes and others wait for: the phase and the
//!   flags of a barrier. Its value has seven bits; the eighth is the waiter's own (natively it says
//!   that a thread sleeps on the flag).
//! * a [`Word`] is an aligned 64-bit word of ordinary data.
//!
//! Addresses are bytes. A [`Place`] names a location independently of who looks at it; a thread
//! turns it into the address by which *it* reaches the location with [`Memory::flag`] and
//! [`Memory::word`].

mod address;
mod capability;
pub mod conformance;
mod contract;
mod messages;
pub mod native;
mod network;
mod passes;
mod scaling;
mod steps;
mod tables;

pub use address::{Flag, Flags, Homes, Place, Register, Route, Word};
pub use capability::{Capabilities, Capability, Lacks};
pub use contract::{
    Atomic, Cacheable, Futex, Memory, Processes, Spawn, TestAndSet, ThreadId, Until,
};
pub use messages::{AnyFlag, Blocks, Interrupts, Own, Tagged, Timer};
pub use network::{Gathers, Mailbox, Network, NodeSet, Receives, Transfer};
pub use passes::{Passes, Stores, word_by_word};
pub use scaling::{Domains, LEAST_DIVIDER, MOST_DIVIDER, Refused, Scaling};
pub use steps::{FlagRow, Followers, Leader, Step};
pub use tables::{Segments, Tables};
