//! One line of memory and the copies of it: who holds which bytes, and in which state.
//!
//! Nothing here takes time: the functions are what a transaction does to its line at the moment its
//! home controller starts it. The next states, who answers and whether memory is written are rows
//! of the [protocol's](protocol) table, performed on a [`Summary`]. [`Images`] has the contents of
//! the copies and of memory.
//!
//! A copy that missed an update which did not probe is no part of that: it is as it was until it is
//! taken away. The protocol takes it for none, a test for a shared one.

use super::{NONE, Update};
use crate::families::sme::cluster::protocol;
use crate::parts::coherence::Event;
#[cfg(test)]
use crate::parts::coherence::State;
use crate::parts::coherence::line::{Effect, Source};
use crate::parts::coherence::summary::Summary;
use crate::parts::core_set::{CoreSet, MOST_CORES, Role, Roles};
use crate::parts::line::{Bytes, Images};
use crate::time::Time;

/// One line of memory and the copies of it.
#[derive(Debug)]
pub(super) struct Line {
    /// Address of its first byte, in lines.
    pub(super) number: u64,
    pub(super) images: Images,
    /// The cores that have a copy, spin on it, or fetch one.
    pub(super) roles: Roles,
    pub(super) free_at: Time,
    /// Transactions that wait for their turn, newest first, and how many: a core has two at most
    /// (a read and a store), the bridge one for each of the engine's tags and a store.
    pub(super) waiting: u32,
    pub(super) waiting_count: u16,
    /// The state of each copy, with those who hold one.
    pub(super) copies: Summary,
}

// A node has as many lines as threads, or more.
const _: () = assert!(size_of::<Line>() == 72);
// Transactions that wait for a line can be counted.
const _: () = assert!(2 * MOST_CORES + 64 <= u16::MAX as u32);

impl Line {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            images: Images::new(NONE),
            roles: Roles::default(),
            free_at: Time::ZERO,
            waiting: NONE,
            waiting_count: 0,
            copies: Summary::SHARED,
        }
    }

    /// A load or a store at `core`, as the table says.
    #[inline]
    fn access(&mut self, core: u16, event: Event) -> Effect<CoreSet> {
        let effect = (self.copies).access(protocol::table(), &mut self.roles, core, event);
        effect.expect("the table has rows of loads and stores for every state")
    }

    /// Returns whether `core` may store without asking; if so, its copy is in the state after that.
    #[inline]
    pub(super) fn stores_at_once(&mut self, core: u16) -> bool {
        let hits = (self.copies).hits(protocol::table(), &mut self.roles, core, Event::Store);
        hits.expect("the table has rows of stores for every state")
    }

    /// The newest value of `bytes`.
    pub(super) fn newest(&self, bytes: Bytes) -> u64 {
        if self.copies.is_dirty() {
            self.images.copies(bytes)
        } else {
            self.images.memory(bytes)
        }
    }

    /// Returns the state of `core`'s copy.
    #[cfg(test)]
    pub(super) fn state(&self, core: u16) -> State {
        match self.copies.state(&self.roles, core) {
            State::Invalid if self.images.stale(core, Bytes::byte(0)).is_some() => State::Shared,
            state => state,
        }
    }

    /// Gives `core` a copy: from the one that answers, from memory otherwise.
    pub(super) fn share(&mut self, core: u16) {
        self.images.refresh(core);
        if self.access(core, Event::Load).source != Some(Source::Memory) {
            return;
        }
        // Other copies may have missed an update of memory.
        if !self.roles.is_only(Role::Holds, core) && !self.images.are_equal() {
            let mut left_behind = self.roles.take(Role::Holds);
            left_behind.remove(core);
            self.images.leave_behind(left_behind);
            self.roles.insert(Role::Holds, core);
        }
        self.images.fetch();
    }

    /// Gives `core` the only copy, to write to; returns who lost theirs.
    pub(super) fn take(&mut self, core: u16) -> CoreSet {
        // Memory is read meanwhile, and is as new as any copy, or newer.
        if !self.copies.is_dirty() {
            self.images.fetch();
        }
        let mut dropped = self.access(core, Event::Store).dropped;
        self.images.drop_stale(&mut dropped);
        dropped.remove(core);
        dropped
    }

    /// Writes the newest bytes back and leaves no copy; returns who lost theirs.
    pub(super) fn drop_copies(&mut self) -> CoreSet {
        let effect = self.copies.flush(protocol::table(), &mut self.roles);
        let effect = effect.expect("the table has rows of flushes for every state");
        if effect.written_back.is_some() {
            self.images.write_back();
        }
        let mut dropped = effect.dropped;
        self.images.drop_stale(&mut dropped);
        dropped
    }

    /// Writes to the only copy, whose core may store.
    #[inline]
    pub(super) fn write(&mut self, bytes: Bytes, value: u64) {
        self.images.write_copies(bytes, value);
    }

    /// Updates the bytes of the only copy, whose core may store; the value before. `expected` is
    /// for a compare-exchange.
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
        self.write(bytes, after);
        before
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.images.heap_bytes() + self.roles.heap_bytes()
    }
}
