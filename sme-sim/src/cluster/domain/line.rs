//! One line of memory and the copies of it: who holds which bytes, and in which MOESI state.
//!
//! Nothing here takes time: the functions are what a transaction does to its line at the moment
//! its home controller starts it. What the copies hold, and what memory, is told by [`Images`].

use super::NONE;
use crate::cluster::content::{Bytes, Images};
use crate::cluster::cores::CoreSet;
use crate::time::Time;

const NOBODY: u8 = u8::MAX;

/// What a core may do with its copy.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Read and write; memory is older.
    Modified,
    /// Read; must answer probes, for memory is older; others may hold copies.
    Owned,
    /// Read and write; memory is equal.
    Exclusive,
    /// Read.
    Shared,
    /// Nothing: there is no copy.
    Invalid,
}

/// An atomic update of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Adds.
    Add,
    /// Replaces.
    Swap,
    /// Replaces if the word holds what the core [expects](super::Domain::expect).
    CompareExchange,
}

/// One line of memory and the copies of it.
#[derive(Debug)]
pub(super) struct Line {
    /// Address of its first byte, in lines.
    pub(super) number: u64,
    pub(super) images: Images,
    /// Cores whose copies are kept coherent.
    pub(super) holders: CoreSet,
    /// Cores that spin on their copy.
    pub(super) spinners: CoreSet,
    /// Cores with a read under way.
    pub(super) fetching: CoreSet,
    pub(super) free_at: Time,
    /// Transactions that wait for their turn, newest first, and how many: a core has two at most
    /// (a read and a store), the bridge one for each of the engine's tags and a store.
    pub(super) waiting: u32,
    pub(super) waiting_count: u8,
    /// Who answers probes: the core in M, O or E.
    pub(super) owner: u8,
    /// Memory is older than the copies.
    pub(super) dirty: bool,
    pub(super) release_pending: bool,
}

// A node has a line for every flag.
const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            images: Images::new(NONE),
            holders: CoreSet::NONE,
            spinners: CoreSet::NONE,
            fetching: CoreSet::NONE,
            free_at: Time::ZERO,
            waiting: NONE,
            waiting_count: 0,
            owner: NOBODY,
            dirty: false,
            release_pending: false,
        }
    }

    /// The socket whose memory controller it belongs to: all memory that is simulated is the first
    /// one's.
    pub(super) fn home(&self) -> u8 {
        0
    }

    /// Whether `core` may write: it has the only copy, and is known to.
    #[inline]
    pub(super) fn is_owned_alone(&self, core: u16) -> bool {
        u16::from(self.owner) == core && self.alone(core)
    }

    /// Whether `core` has the only copy.
    pub(super) fn alone(&self, core: u16) -> bool {
        self.holders == CoreSet::only(core) && !self.images.any_stale()
    }

    /// The newest value of `bytes`.
    pub(super) fn newest(&self, bytes: Bytes) -> u64 {
        if self.dirty {
            self.images.copies(bytes)
        } else {
            self.images.memory(bytes)
        }
    }

    /// What `core` may do with its copy.
    #[cfg(test)]
    pub(super) fn state(&self, core: u16) -> State {
        let stale = self.images.stale(core, Bytes::byte(0)).is_some();
        if !self.holders.has(core) {
            return if stale { State::Shared } else { State::Invalid };
        }
        match (u16::from(self.owner) == core, self.alone(core), self.dirty) {
            (true, true, true) => State::Modified,
            (true, false, true) => State::Owned,
            (true, true, false) => State::Exclusive,
            _ => State::Shared,
        }
    }

    /// Gives `core` a copy: from the owner if memory is older, from memory otherwise.
    pub(super) fn share(&mut self, core: u16) {
        self.images.refresh(core);
        if self.holders.is_empty() {
            self.images.fetch();
            self.owner = core as u8;
            self.dirty = false;
        } else if !self.dirty {
            if !self.images.are_equal() {
                let left_behind = self.holders.without(CoreSet::only(core));
                self.images.leave_behind(left_behind);
                self.images.fetch();
                self.holders = CoreSet::NONE;
            }
            self.owner = NOBODY;
        }
        self.holders.insert(core);
    }

    /// Gives `core` the only copy; returns who lost theirs.
    pub(super) fn take(&mut self, core: u16) -> CoreSet {
        if !self.dirty {
            self.images.fetch();
        }
        let mut dropped = self.holders;
        self.images.drop_stale(&mut dropped);
        dropped.remove(core);
        self.holders = CoreSet::only(core);
        self.owner = core as u8;
        dropped
    }

    /// Writes the newest bytes back and leaves no copy; returns who lost theirs.
    pub(super) fn drop_copies(&mut self) -> CoreSet {
        if self.dirty {
            self.images.write_back();
            self.dirty = false;
        }
        let mut dropped = self.holders;
        self.images.drop_stale(&mut dropped);
        self.holders = CoreSet::NONE;
        self.owner = NOBODY;
        dropped
    }

    /// Updates the bytes of the only copy; the value before. `expected` is for a compare-exchange.
    pub(super) fn update(
        &mut self,
        bytes: Bytes,
        update: Update,
        operand: u64,
        expected: u64,
    ) -> u64 {
        let before = self.images.copies(bytes);
        let after = match update {
            Update::Add => before.wrapping_add(operand),
            Update::Swap => operand,
            Update::CompareExchange if before == expected => operand,
            Update::CompareExchange => before,
        };
        self.images.write_copies(bytes, after);
        self.dirty = true;
        before
    }
}
