//! Reads and waits. A thread that waits for a flag in memory reads it over and over, which nothing
//! else notices: it sleeps here until the flag has been written, and then reads it once more. One
//! whose flag is in its core's cache reads the copy until something drops it.

use super::cluster::{Cluster, Cpu};
use crate::machine::node::{Seen, Waiting};
use crate::parts::contract::Operation;

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

    /// `thread` spins on the word at an offset, or on those of all flags for any of which it waits.
    fn spins(&mut self, cpu: &mut Cpu, thread: u16, (offset, is_cached): (u64, bool)) {
        if is_cached {
            // Nothing but this thread drops the copy.
            return cpu.waits(thread, Waiting::Spins);
        }
        cpu.waits(thread, Waiting::Watches);
        let Operation::WaitAny(flags, ..) = cpu.thread(thread).operation else {
            return self.waiters.push((offset & !7, thread));
        };
        for index in 0..flags.count {
            if let Ok((offset, _)) = self.find(flags.at(index).0, 1) {
                self.waiters.push((offset & !7, thread));
            }
        }
    }

    /// The word at `offset` has been written: those who wait for it look again.
    pub(super) fn was_written(&mut self, cpu: &mut Cpu, offset: u64) {
        if self.waiters.is_empty() {
            return;
        }
        let waits = |&mut (on, _): &mut (u64, u16)| on == offset;
        let mut again: Vec<_> = self.waiters.extract_if(.., waits).collect();
        again.dedup();
        for (_, thread) in again {
            self.waiters.retain(|&(_, waiter)| waiter != thread);
            self.look(cpu, thread);
        }
    }
}
