//! Coherence protocols as tables: what each state of a copy of a line becomes by each event, and
//! what the cache does then. Every line has a home, which orders the transactions on it.
//!
//! * `tables`: MESI, MESIF and MOESI.
//! * [`mod@line`]: a line, its copies, and the transactions on it.
//! * [`summary`]: the same with the states of all copies in two bytes and a set.
//!
//! The states are those of Papamarcos and Patel (MESI), with Intel's *Forward*, the one shared copy
//! that answers others, and AMD's *Owned*, a shared copy that is newer than memory and answers
//! others (Putigny et al., Sec. III and IV-E). Nothing here takes time.
//!
//! That the tables are coherent is a test of every state that three caches and two lines can come
//! into, by transactions that are done at once (`line/tests.rs`) and by messages that are delivered
//! in any order (`messages.rs`).

pub mod line;
#[cfg(test)]
mod messages;
pub mod summary;
mod tables;

use std::fmt;

/// The state of a cache's copy of a line: the accesses that it permits, and its relation to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Read and write: the only copy, and newer than memory.
    Modified,
    /// Read: newer than memory, and others may have copies, which are the same.
    Owned,
    /// Read, and write without asking: the only copy, and the same as memory.
    Exclusive,
    /// Read: others may have copies, which are the same.
    Shared,
    /// The same, and this copy answers those who ask for one.
    Forward,
    /// Nothing: there is no copy.
    Invalid,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Modified,
        Self::Owned,
        Self::Exclusive,
        Self::Shared,
        Self::Forward,
        Self::Invalid,
    ];

    /// Its letter in the names of protocols.
    pub const fn letter(self) -> char {
        match self {
            Self::Modified => 'M',
            Self::Owned => 'O',
            Self::Exclusive => 'E',
            Self::Shared => 'S',
            Self::Forward => 'F',
            Self::Invalid => 'I',
        }
    }

    /// Returns whether the core may store without asking, as in every protocol here.
    #[inline]
    pub const fn is_writable(self) -> bool {
        matches!(self, Self::Modified | Self::Exclusive)
    }

    /// Returns whether the copy is newer than memory: it has to be written back when it goes.
    #[inline]
    pub const fn is_dirty(self) -> bool {
        matches!(self, Self::Modified | Self::Owned)
    }

    /// The state of the copy once memory is as new, if nothing else has changed.
    pub const fn clean(self) -> Self {
        match self {
            Self::Modified => Self::Exclusive,
            Self::Owned => Self::Shared,
            clean => clean,
        }
    }
}

/// An event at a cache, about its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Its core loads from the line.
    Load,
    /// Its core stores to the line.
    Store,
    /// The copy makes room for another line.
    Evict,
    /// The home says that another cache loads.
    OtherLoads,
    /// The home says that another cache stores.
    OtherStores,
    /// The home says that all copies are to go (`clflush`).
    Flush,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Load,
        Self::Store,
        Self::Evict,
        Self::OtherLoads,
        Self::OtherStores,
        Self::Flush,
    ];
}

/// The state that a copy has after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one.
    To(State),
    /// The first one if no other cache has a copy, else the second.
    Alone(State, State),
}

impl Next {
    /// The state, where the copy is the only one or not.
    #[inline]
    pub const fn when(self, is_alone: bool) -> State {
        match self {
            Self::To(next) => next,
            Self::Alone(alone, _) if is_alone => alone,
            Self::Alone(_, shared) => shared,
        }
    }
}

/// The things that a cache does at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The state after it.
    pub next: Next,
    /// Whether the cache asks the home first, which tells the others.
    pub asks: bool,
    /// Whether the cache gives the line to the requester.
    pub supplies: bool,
    /// Whether the cache writes the line to memory.
    pub writes_back: bool,
}

/// A protocol's table: rows by state and event, none where the event cannot come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table([[Option<Row>; Event::ALL.len()]; State::ALL.len()]);

impl Table {
    /// The row of a state and an event; none if copies of this protocol are never in that state, or
    /// the event does not come to one that is.
    pub fn row(&self, state: State, event: Event) -> Option<Row> {
        self.0[state as usize][event as usize]
    }

    /// The same table with another row.
    #[cfg(test)]
    pub fn with(&self, (state, event): (State, Event), row: Row) -> Self {
        let mut table = self.clone();
        table.0[state as usize][event as usize] = Some(row);
        table
    }

    /// The states in which copies may be.
    pub fn states(&self) -> impl Iterator<Item = State> {
        let all = State::ALL.into_iter();
        all.filter(|&state| self.row(state, Event::Load).is_some())
    }
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Modified, exclusive, shared, invalid.
    Mesi,
    /// The same with a shared copy that answers others: Intel's.
    Mesif,
    /// The same with a shared copy that is newer than memory: AMD's.
    Moesi,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mesi, Self::Mesif, Self::Moesi];

    /// Its table.
    pub fn table(self) -> &'static Table {
        match self {
            Self::Mesi => &tables::MESI,
            Self::Mesif => &tables::MESIF,
            Self::Moesi => &tables::MOESI,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mesi => "MESI",
            Self::Mesif => "MESIF",
            Self::Moesi => "MOESI",
        })
    }
}
