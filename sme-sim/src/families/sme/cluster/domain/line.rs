//! One line of memory and the copies of it: who holds which bytes, and in which MOESI state.
//!
//! Nothing here takes time: the functions are what a transaction does to its line at the moment
//! its home controller starts it. What the copies hold, and what memory, is told by [`Images`].

use super::{NONE, Update};
#[cfg(test)]
use crate::parts::coherence::State;
use crate::parts::core_set::{CoreSet, MOST_CORES, Role, Roles};
use crate::parts::line::{Bytes, Images};
use crate::time::Time;

/// One line of memory and the copies of it.
#[derive(Debug)]
pub(super) struct Line {
    /// Address of its first byte, in lines.
    pub(super) number: u64,
    pub(super) images: Images,
    /// Who has a copy, spins on it, fetches one.
    pub(super) roles: Roles,
    pub(super) free_at: Time,
    /// Transactions that wait for their turn, newest first, and how many: a core has two at most
    /// (a read and a store), the bridge one for each of the engine's tags and a store.
    pub(super) waiting: u32,
    pub(super) waiting_count: u16,
    pub(super) owner: Owner,
}

// A node has as many lines as threads, or more.
const _: () = assert!(size_of::<Line>() == 72);
// Transactions that wait for a line can be counted.
const _: () = assert!(2 * MOST_CORES + 64 <= u16::MAX as u32);

/// Who answers probes: the core in M, O or E, if there is one; and whether memory is older than its
/// copy (M, O).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u16);

impl Owner {
    const DIRTY: u16 = 1 << 15;
    /// Memory is as new as any copy, and answers itself.
    pub(super) const NOBODY: Owner = Owner(Owner::DIRTY - 1);

    /// `core`, whose copy is as memory is.
    pub(super) fn clean(core: u16) -> Self {
        Owner(core)
    }

    /// `core`, whose copy is newer.
    pub(super) fn dirty(core: u16) -> Self {
        Owner(core | Self::DIRTY)
    }

    /// Whether it is `core`.
    #[inline]
    pub(super) fn is(self, core: u16) -> bool {
        self.0 & !Self::DIRTY == core
    }

    /// Whether memory is older than the copies.
    #[inline]
    pub(super) fn is_dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }
}

impl Line {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            images: Images::new(NONE),
            roles: Roles::default(),
            free_at: Time::ZERO,
            waiting: NONE,
            waiting_count: 0,
            owner: Owner::NOBODY,
        }
    }

    /// Whether `core` may write: it has the only copy, and is known to.
    #[inline]
    pub(super) fn is_owned_alone(&self, core: u16) -> bool {
        self.owner.is(core) && self.alone(core)
    }

    /// Whether `core` has the only copy.
    pub(super) fn alone(&self, core: u16) -> bool {
        self.roles.is_only(Role::Holds, core) && !self.images.any_stale()
    }

    /// The newest value of `bytes`.
    pub(super) fn newest(&self, bytes: Bytes) -> u64 {
        if self.owner.is_dirty() {
            self.images.copies(bytes)
        } else {
            self.images.memory(bytes)
        }
    }

    /// What `core` may do with its copy.
    #[cfg(test)]
    pub(super) fn state(&self, core: u16) -> State {
        let stale = self.images.stale(core, Bytes::byte(0)).is_some();
        if !self.roles.has(Role::Holds, core) {
            return if stale { State::Shared } else { State::Invalid };
        }
        let (owner, alone) = (self.owner.is(core), self.alone(core));
        match (owner, alone, self.owner.is_dirty()) {
            (true, true, true) => State::Modified,
            (true, false, true) => State::Owned,
            (true, true, false) => State::Exclusive,
            _ => State::Shared,
        }
    }

    /// Gives `core` a copy: from the owner if memory is older, from memory otherwise.
    pub(super) fn share(&mut self, core: u16) {
        self.images.refresh(core);
        if self.roles.is_empty(Role::Holds) {
            self.images.fetch();
            self.owner = Owner::clean(core);
        } else if !self.owner.is_dirty() {
            if !self.images.are_equal() {
                let mut left_behind = self.roles.take(Role::Holds);
                left_behind.remove(core);
                self.images.leave_behind(left_behind);
                self.images.fetch();
            }
            self.owner = Owner::NOBODY;
        }
        self.roles.insert(Role::Holds, core);
    }

    /// Gives `core` the only copy, to write to; returns who lost theirs.
    pub(super) fn take(&mut self, core: u16) -> CoreSet {
        if !self.owner.is_dirty() {
            self.images.fetch();
        }
        let mut dropped = self.roles.take(Role::Holds);
        self.roles.insert(Role::Holds, core);
        self.images.drop_stale(&mut dropped);
        dropped.remove(core);
        self.owner = Owner::dirty(core);
        dropped
    }

    /// Writes the newest bytes back and leaves no copy; returns who lost theirs.
    pub(super) fn drop_copies(&mut self) -> CoreSet {
        if self.owner.is_dirty() {
            self.images.write_back();
        }
        let mut dropped = self.roles.take(Role::Holds);
        self.images.drop_stale(&mut dropped);
        self.owner = Owner::NOBODY;
        dropped
    }

    /// Writes to the only copy, which is that of `core`.
    pub(super) fn write(&mut self, core: u16, bytes: Bytes, value: u64) {
        self.images.write_copies(bytes, value);
        self.owner = Owner::dirty(core);
    }

    /// Updates the bytes of the only copy, which is that of `core`; the value before. `expected` is
    /// for a compare-exchange.
    pub(super) fn update(
        &mut self,
        core: u16,
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
        self.write(core, bytes, after);
        before
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.images.heap_bytes() + self.roles.heap_bytes()
    }
}
