//! Windows (MPI-4.1, Ch. 12): memory of each rank that others reach with one-sided calls, and the
//! calls that say when.
//!
//! * `epoch`: which calls may follow which.
//! * `access`: one access to a window's memory, and `memory`, where that is: here, or in a process
//!   outside.
//! * `messages`: windows whose calls are messages, as in MPICH: the target takes part inside its
//!   own calls.
//! * `trigger`: windows in shared memory past the caches, as in SCOSCo: the target takes no part.
//!
//! The calls are those of [`crate::rank::windows`].

pub(crate) mod access;
pub(crate) mod epoch;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod trigger;

pub use memory::Memory;
pub use trigger::variable;

/// The way in which the synchronizing calls of a window work (Christgau and Schnor, Sec. III and
/// Table I).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronization {
    /// Messages. No call that begins an epoch waits for another rank, but for the lock of the own
    /// memory, and accesses to others leave at the end of the epoch.
    #[default]
    Deferred,
    /// Messages; the call that begins an access epoch waits for its targets, and accesses leave at
    /// once.
    Immediate,
    /// Shared memory. No call that begins an epoch waits for another rank; an access waits for its
    /// target.
    TriggerOnly,
    /// The same with a flaw, for tests.
    Flawed(Flaw),
}

/// The flaws that a trigger-only window must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The origin resets its match vector without its lock, as Algorithm 2 reads at first sight: a
    /// post that comes between its load and its store is lost.
    ResetsUnlocked,
    /// The origin keeps its match vector in its caches: when that copy is written back, a post that
    /// memory has meanwhile is lost (Sec. IV-B2).
    CachesVector,
}

impl Synchronization {
    /// All that are for use.
    pub const ALL: [Self; 3] = [Self::Deferred, Self::Immediate, Self::TriggerOnly];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deferred => "deferred",
            Self::Immediate => "immediate",
            Self::TriggerOnly => "trigger-only",
            Self::Flawed(_) => "flawed",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl std::fmt::Display for Synchronization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
