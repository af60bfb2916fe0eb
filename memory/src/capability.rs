//! The capabilities of a machine's memory. Each is a trait of the contract. A machine declares a
//! set of them ([`Capabilities`]), an algorithm states the set that it needs, and an error names
//! both where one is missing ([`Lacks`]).
//!
//! A type that has a capability for certain implements its trait, and the compiler refuses an
//! algorithm that needs another. A simulated thread's view of memory implements all of them, for
//! which machine it is on is only known when it runs: there it is asked before the run.

use std::fmt;

use thiserror::Error;

/// One thing that a memory can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Words and flags ([`Memory`](crate::Memory)): every machine has them.
    Words,
    /// Words and flags of other nodes.
    Remote,
    /// Caches that nothing keeps coherent between nodes, and flushes
    /// ([`Cacheable`](crate::Cacheable)).
    Caching,
    /// Atomic operations on coherent memory ([`Atomic`](crate::Atomic)).
    Atomics,
    /// Sleeping on a word ([`Futex`](crate::Futex)).
    Futexes,
    /// Registers of one bit that a read sets ([`TestAndSet`](crate::TestAndSet)).
    TestAndSet,
    /// Threads that start others ([`Spawn`](crate::Spawn)).
    Threads,
    /// Waits for any of many flags ([`AnyFlag`](crate::AnyFlag)).
    AnyFlag,
    /// Lines that are tagged as message buffers ([`Tagged`](crate::Tagged)).
    Tagged,
    /// Interrupts between nodes ([`Interrupts`](crate::Interrupts)).
    Interrupts,
    /// The time ([`Timer`](crate::Timer)).
    Timer,
    /// A network on chip ([`Network`](crate::Network)).
    Network,
    /// An operating system that ends threads ([`Processes`](crate::Processes)).
    Processes,
    /// Clocks and voltages that programs change ([`Scaling`](crate::Scaling)).
    Scaling,
    /// Look-up tables that programs change ([`Tables`](crate::Tables)).
    Tables,
}

impl Capability {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Words,
        Self::Remote,
        Self::Caching,
        Self::Atomics,
        Self::Futexes,
        Self::TestAndSet,
        Self::Threads,
        Self::AnyFlag,
        Self::Tagged,
        Self::Interrupts,
        Self::Timer,
        Self::Network,
        Self::Processes,
        Self::Scaling,
        Self::Tables,
    ];

    /// The name in tables and messages, in the plural.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Words => "words and flags",
            Self::Remote => "loads and stores of other nodes' memory",
            Self::Caching => "cached remote memory",
            Self::Atomics => "atomic operations",
            Self::Futexes => "futexes",
            Self::TestAndSet => "test-and-set registers",
            Self::Threads => "threads that start others",
            Self::AnyFlag => "waits for any of many flags",
            Self::Tagged => "tagged lines",
            Self::Interrupts => "interrupts between nodes",
            Self::Timer => "a timer",
            Self::Network => "a network on chip between memories",
            Self::Processes => "an operating system that ends threads",
            Self::Scaling => "clocks and voltages that programs change",
            Self::Tables => "look-up tables that programs change",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u16);

impl Capabilities {
    /// The capabilities of every machine with memory that all nodes share: words and flags, those
    /// of other nodes included.
    pub const LEAST: Self = Self::of(&[]);

    /// These and the [least](Self::LEAST).
    pub const fn of(these: &[Capability]) -> Self {
        let mut bits = 1 << Capability::Words as u16 | 1 << Capability::Remote as u16;
        let mut index = 0;
        while index < these.len() {
            bits |= 1 << these[index] as u16;
            index += 1;
        }
        Self(bits)
    }

    /// These and those of `other`.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These but for `capability`.
    pub const fn without(self, capability: Capability) -> Self {
        Self(self.0 & !(1 << capability as u16))
    }

    /// Those of these that threads on so many nodes need: on one node, not other nodes' memory.
    pub const fn on_nodes(self, nodes: u32) -> Self {
        match nodes {
            1 => self.without(Capability::Remote),
            _ => self,
        }
    }

    /// Returns whether `capability` is one of them.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u16 != 0
    }

    /// Those that are in the set.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        let all = Capability::ALL.iter().copied();
        all.filter(move |&capability| self.has(capability))
    }

    /// The machine called `machine`, which has these, has all that `what` needs.
    ///
    /// ```
    /// use sme_memory::{Capabilities, Capability};
    ///
    /// let machine = Capabilities::of(&[Capability::Atomics]);
    /// let lock = Capabilities::of(&[Capability::TestAndSet]);
    /// let lacks = machine.suffice("simple", "a test-and-set lock", lock).unwrap_err();
    /// assert_eq!(
    ///     lacks.to_string(),
    ///     "a test-and-set lock needs test-and-set registers, which machine simple does not have"
    /// );
    /// ```
    ///
    /// # Errors
    /// [`Lacks`] names the first that it does not have.
    pub fn suffice(self, machine: &str, what: &str, needs: Self) -> Result<(), Lacks> {
        match needs.iter().find(|&need| !self.has(need)) {
            None => Ok(()),
            Some(capability) => Err(Lacks {
                what: what.to_owned(),
                capability,
                machine: machine.to_owned(),
            }),
        }
    }
}

/// A machine that does not have what an algorithm needs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} needs {capability}, which machine {machine} does not have")]
pub struct Lacks {
    /// The algorithm.
    pub what: String,
    /// The missing capability.
    pub capability: Capability,
    /// The machine, by its name.
    pub machine: String,
}
