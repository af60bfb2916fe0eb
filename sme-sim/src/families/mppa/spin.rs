//! Reads and waits. A thread that waits for a flag in memory reads it over and over, which nothing
//! else notices: it sleeps here until the flag has been written, and then reads it once more. One
//! whose flag is in its core's cache reads the copy until something drops it.

use super::cluster::{Cluster, Cpu};
use crate::machine::node::{Seen, Waiting};
use crate::parts::contract::Operation;

/// A thread that waits for a row of flags in memory, by their offsets, to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    thread: u16,
    first: u64,
    stride: u64,
    count: u64,
}

impl Waiter {
    /// Returns whether one of its flags is in the word at `offset`.
    fn is_in(&self, offset: u64) -> bool {
        let index = match self.stride {
            0 => 0,
            stride => offset.saturating_sub(self.first).div_ceil(stride),
        };
        let flag = self.first + index * self.stride;
        index < self.count && flag & !7 == offset
    }
}

impl Cluster {
    /// `thread` looks at what it reads or waits for.
    pub(super) fn look(&mut self, cpu: &mut Cpu, thread: u16) {
        let mut at = cpu.now;
        while let Some((address, bytes, _)) = cpu.looks_at(thread) {
            let long = if bytes.is_whole_word() { 8 } else { 1 };
            let found = match self.find(address, long) {
                Err(reason) => return cpu.refuse(thread, Some(address), reason),
                Ok(found) => found,
            };
            let (word, there) = self.loads(cpu, thread, found, at);
            at = there;
            match cpu.sees(thread, bytes.pick(word), at.since(cpu.now)) {
                Seen::Done => return,
                Seen::Next => {}
                Seen::Not => return self.spins(cpu, thread, found),
            }
        }
    }

    /// `thread` spins on the flag at an offset, or on all flags for any of which it waits.
    fn spins(&mut self, cpu: &mut Cpu, thread: u16, (offset, is_cached): (u64, bool)) {
        if is_cached {
            // Nothing but this thread drops the copy.
            return cpu.waits(thread, Waiting::Spins);
        }
        cpu.waits(thread, Waiting::Watches);
        let (first, stride, count) = match cpu.thread(thread).operation {
            // All flags of the row have been found in memory.
            Operation::WaitAny(flags, ..) => {
                let first = self.find(flags.first.0, 1).map_or(offset, |found| found.0);
                (first, flags.stride.into(), flags.count.into())
            }
            _ => (offset, 0, 1),
        };
        self.waiters.push(Waiter {
            thread,
            first,
            stride,
            count,
        });
    }

    /// `thread` spins no longer.
    pub(super) fn no_longer_spins(&mut self, thread: u16) {
        self.waiters.retain(|waiter| waiter.thread != thread);
    }

    /// The word at `offset` has been written: those who wait for it look again.
    pub(super) fn was_written(&mut self, cpu: &mut Cpu, offset: u64) {
        if self.waiters.is_empty() {
            return;
        }
        let waits = |waiter: &mut Waiter| waiter.is_in(offset);
        let again: Vec<Waiter> = self.waiters.extract_if(.., waits).collect();
        for Waiter { thread, .. } in again {
            self.look(cpu, thread);
        }
    }
}
