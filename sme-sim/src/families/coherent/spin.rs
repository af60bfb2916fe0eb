//! Reads and waits. A thread that waits for a flag reads its copy of the line over and over, which
//! nothing else notices; when another core takes the line away, it reads it anew.

use super::access::Wants;
use super::socket::{Cpu, Socket};
use crate::machine::node::{Seen, Waiting};
use crate::parts::coherence::Event;
use crate::parts::contract::Operation;
use crate::time::Time;

impl Socket {
    /// `thread` looks at what it reads or waits for.
    pub(super) fn look(&mut self, cpu: &mut Cpu, thread: u16) {
        let mut takes = Time::ZERO;
        while let Some((address, bytes, _)) = cpu.looks_at(thread) {
            let line = match self.line(address, bytes) {
                Ok(line) => line,
                Err(reason) => return cpu.refuse(thread, Some(address), reason),
            };
            let wants = Wants::word(line, Event::Load);
            let core = self.core(cpu, thread);
            let mut chip = self.chip.lock();
            let made = chip.access(core, wants, cpu.now + takes);
            let spot = chip.lines.spot(line);
            let word = chip.lines.line(spot).words[usize::from(bytes.word)];
            drop(chip);
            takes = made.there.max(made.next).since(cpu.now);
            match cpu.sees(thread, bytes.pick(word), takes) {
                Seen::Done => return,
                Seen::Next => takes += self.spec.operation,
                Seen::Not => return self.spins(cpu, thread),
            }
        }
    }

    /// `thread` spins on the flag that it looks at, or on all those for any of which it waits.
    fn spins(&mut self, cpu: &mut Cpu, thread: u16) {
        let line = |address: u64| self.spec.first.line().number(address);
        let mut lines: Vec<u64> = match cpu.thread(thread).operation {
            Operation::WaitAny(flags, ..) => (0..flags.count)
                .map(|index| line(flags.at(index).0))
                .collect(),
            _ => (cpu.looks_at(thread).map(|(address, ..)| line(address)))
                .into_iter()
                .collect(),
        };
        lines.dedup();
        self.spins_on(cpu, thread, lines);
    }

    /// `thread` spins until one of `lines` is taken away.
    pub(super) fn spins_on(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        lines: impl IntoIterator<Item = u64>,
    ) {
        cpu.waits(thread, Waiting::Spins);
        let number = usize::from(thread);
        if self.spins.len() <= number {
            self.spins.resize(number + 1, Vec::new());
        }
        self.spins[number].extend(lines);
        let mut chip = self.chip.lock();
        for &line in &self.spins[number] {
            chip.watchers
                .entry(line)
                .or_default()
                .push((self.me, thread));
        }
    }

    /// `thread` spins no longer.
    pub(super) fn no_longer_spins(&mut self, thread: u16) {
        let Some(lines) = self.spins.get_mut(usize::from(thread)) else {
            return;
        };
        let mut chip = self.chip.lock();
        for line in lines.drain(..) {
            if let Some(watchers) = chip.watchers.get_mut(&line) {
                watchers.retain(|&spinner| spinner != (self.me, thread));
                if watchers.is_empty() {
                    chip.watchers.remove(&line);
                }
            }
        }
    }
}
