//! One line of memory and the copies of it: who holds which bytes, and in which MOESI state.
//!
//! Nothing here takes time: the functions are what a transaction does to its line at the moment
//! its home controller starts it. The copies that are kept coherent are equal, so the line has one
//! image of them; copies that an update from outside did not probe stay behind as they were.

use thin_vec::ThinVec;

use super::NONE;
use crate::cluster::content::{Bytes, Content};
use crate::cluster::cores::CoreSet;
use crate::time::Time;

const NOBODY: u16 = u16::MAX;

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
    /// Replaces if the word holds this.
    CompareExchange(u64),
}

/// One line of memory and the copies of it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) memory: Content,
    /// What `holders` have; meaningless where there are none.
    pub(super) copies: Content,
    /// Cores whose copies missed an update, and what they still hold.
    pub(super) stale: ThinVec<(CoreSet, Content)>,
    pub(super) holders: CoreSet,
    /// Cores that spin on their copy.
    pub(super) spinners: CoreSet,
    /// Cores with a read under way.
    pub(super) fetching: CoreSet,
    /// Who answers probes: the core in M, O or E.
    pub(super) owner: u16,
    pub(super) home: u8,
    /// Memory is older than the copies.
    pub(super) dirty: bool,
    pub(super) release_pending: bool,
    pub(super) free_at: Time,
    /// Transactions that wait for their turn, newest first, and how many.
    pub(super) waiting: u32,
    pub(super) waiting_count: u32,
    pub(super) writer: u32,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            memory: Content::Zero,
            copies: Content::Zero,
            stale: ThinVec::new(),
            holders: CoreSet::NONE,
            spinners: CoreSet::NONE,
            fetching: CoreSet::NONE,
            owner: NOBODY,
            home: 0,
            dirty: false,
            release_pending: false,
            free_at: Time::ZERO,
            waiting: NONE,
            waiting_count: 0,
            writer: NONE,
        }
    }

    /// Whether `core` has the only copy.
    pub(super) fn alone(&self, core: u16) -> bool {
        self.holders == CoreSet::only(core) && self.stale.is_empty()
    }

    pub(super) fn newest(&self) -> &Content {
        if self.dirty {
            &self.copies
        } else {
            &self.memory
        }
    }

    /// What `core` may do with its copy.
    #[cfg(test)]
    pub(super) fn state(&self, core: u16) -> State {
        let stale = self.stale.iter().any(|(cores, _)| cores.has(core));
        if !self.holders.has(core) {
            return if stale { State::Shared } else { State::Invalid };
        }
        match (self.owner == core, self.alone(core), self.dirty) {
            (true, true, true) => State::Modified,
            (true, false, true) => State::Owned,
            (true, true, false) => State::Exclusive,
            _ => State::Shared,
        }
    }

    /// Gives `core` a copy: from the owner if memory is older, from memory otherwise.
    pub(super) fn share(&mut self, core: u16) {
        for (cores, _) in &mut self.stale {
            cores.remove(core);
        }
        self.stale.retain(|(cores, _)| !cores.is_empty());
        if self.holders.is_empty() {
            self.copies = self.memory.clone();
            self.owner = core;
            self.dirty = false;
        } else if !self.dirty {
            if self.copies != self.memory {
                let old = std::mem::replace(&mut self.copies, self.memory.clone());
                let left_behind = self.holders.without(CoreSet::only(core));
                if !left_behind.is_empty() {
                    self.stale.push((left_behind, old));
                }
                self.holders = CoreSet::NONE;
            }
            self.owner = NOBODY;
        }
        self.holders.insert(core);
    }

    /// Gives `core` the only copy; returns who lost theirs.
    pub(super) fn take(&mut self, core: u16) -> CoreSet {
        if !self.dirty {
            self.copies = self.memory.clone();
        }
        let mut dropped = self.holders;
        for (cores, _) in self.stale.drain(..) {
            for stale in cores.iter() {
                dropped.insert(stale);
            }
        }
        dropped.remove(core);
        self.holders = CoreSet::only(core);
        self.owner = core;
        dropped
    }

    /// Writes the newest bytes back and leaves no copy; returns who lost theirs.
    pub(super) fn drop_copies(&mut self) -> CoreSet {
        if self.dirty {
            self.memory = std::mem::take(&mut self.copies);
            self.dirty = false;
        }
        let mut dropped = self.holders;
        for (cores, _) in self.stale.drain(..) {
            for stale in cores.iter() {
                dropped.insert(stale);
            }
        }
        self.holders = CoreSet::NONE;
        self.owner = NOBODY;
        dropped
    }

    /// Updates the bytes of the only copy; the value before.
    pub(super) fn update(&mut self, bytes: Bytes, update: Update, operand: u64) -> u64 {
        let before = self.copies.read(bytes);
        let after = match update {
            Update::Add => before.wrapping_add(operand),
            Update::Swap => operand,
            Update::CompareExchange(expected) if before == expected => operand,
            Update::CompareExchange(_) => before,
        };
        self.copies.write(bytes, after);
        self.dirty = true;
        before
    }
}
