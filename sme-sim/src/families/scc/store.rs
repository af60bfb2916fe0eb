//! Stores and flushes. A store past the caches, or to a line that no cache has, ends when it has
//! been performed: caches make no room for what is stored. Tagged stores gather in the
//! write-combine buffer.

use super::access::Sends;
use super::core::{Core, Cpu, Gathered, Mapped, mapped};
use super::spec::accesses;
use crate::machine::node::Waiting;
use crate::observe::staleness::What as Told;
use crate::parts::cache::Level;
use crate::parts::line::Bytes;
use crate::time::Time;

impl Core {
    /// `thread` stores `value` into `bytes` of the word at `address`.
    pub(super) fn store(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        address: u64,
        (bytes, value): (Bytes, u64),
    ) {
        let (mapped, plain) = mapped(address);
        let line = self.spec.line.number(plain);
        let is_tagged_copy = mapped == Mapped::Tagged && self.tagged.look(line).is_some();
        if self.must_drain(mapped, line, is_tagged_copy) {
            return self.drain(cpu, thread);
        }
        if self.writes_register(cpu, thread, plain, value) {
            return;
        }
        let at = match self.at(address, bytes) {
            Err(reason) => return cpu.refuse(thread, Some(address), reason),
            Ok(at) => at,
        };
        match mapped {
            Mapped::Tagged if is_tagged_copy => self.update_tagged(line, bytes, value),
            Mapped::Tagged => {
                self.gather(line, bytes, value);
                cpu.progress();
                let takes = self.spec.gathering(bytes);
                return cpu.done(thread, 0, takes.since(self.spec.operation));
            }
            Mapped::Cached => {
                if let Some(level) = self.stores_into_copy(line, bytes, value) {
                    self.copies_changed(cpu);
                    cpu.progress();
                    return cpu.done(thread, 0, self.spec.store_hit(level, accesses(bytes)));
                }
            }
            Mapped::Uncached => {
                if let Some(offset) = self.in_own_buffer(plain) {
                    self.write(cpu, offset, (bytes, value), (self.me, thread));
                    cpu.progress();
                    let count = if bytes.is_whole_word() { 2 } else { 1 };
                    return cpu.done(thread, 0, self.spec.repeated(self.spec.buffer.0, count));
                }
            }
        }
        cpu.issues(thread);
        if mapped != Mapped::Uncached {
            self.tells_of_line(cpu, line, |line| Told::WroteBack {
                line,
                bytes: bytes.of_block(),
                old: 0,
            });
        }
        cpu.waits(thread, Waiting::Answer);
        self.ask(cpu, thread, at, Sends::Write(at, bytes, value));
    }

    /// Returns whether the write-combine buffer has to be emptied before a store to `line`, which
    /// hits a tagged copy or does not.
    pub(super) fn must_drain(&self, mapped: Mapped, line: u64, hits: bool) -> bool {
        let gathers_on = mapped == Mapped::Tagged && !hits;
        self.gathered
            .is_some_and(|gathered| gathered.line != line || !gathers_on)
    }

    /// Stores into a tagged copy, which is not newer than memory: the store goes there, too.
    pub(super) fn update_tagged(&mut self, line: u64, bytes: Bytes, value: u64) {
        let (word, value) = (bytes.word.into(), bytes.place(value));
        self.tagged.store(line, word, bytes.enables, value);
        self.tagged.clean(line);
    }

    /// Adds to the write-combine buffer, which is empty or holds something of `line`.
    pub(super) fn gather(&mut self, line: u64, bytes: Bytes, value: u64) {
        let gathered = self.gathered.get_or_insert(Gathered {
            line,
            mask: 0,
            words: [0; 8],
        });
        gathered.mask |= bytes.of_block();
        let word = &mut gathered.words[usize::from(bytes.word)];
        *word = bytes.merge(*word, value);
    }

    /// Stores into a copy in the caches, if there is one; which level had it.
    pub(super) fn stores_into_copy(
        &mut self,
        line: u64,
        bytes: Bytes,
        value: u64,
    ) -> Option<Level> {
        let (word, value) = (bytes.word.into(), bytes.place(value));
        let level = self
            .regular
            .store_around(line, word, bytes.enables, value)?;
        self.traffic.hits += 1;
        Some(level)
    }

    /// Writes the line of the word at `address` back and drops its copies. There is no instruction
    /// for it: other lines are read until all ways of its set hold those, so all lines of the set
    /// go.
    pub(super) fn flush(&mut self, cpu: &mut Cpu, thread: u16, address: u64) {
        if self.gathered.is_some() {
            return self.drain(cpu, thread);
        }
        let (_, plain) = mapped(address);
        if let Err(reason) = self.at(plain, Bytes::byte(plain)) {
            return cpu.refuse(thread, Some(address), reason);
        }
        let line = self.spec.line.number(plain);
        let lines: Vec<u64> = self.regular.lines_of_set(line).collect();
        self.drop_lines(cpu, thread, &lines);
        if let Some(held) = self.tagged.remove(line) {
            self.gives_up(cpu, thread, held);
        }
        let ways = u64::from(self.spec.caches.l2_ways());
        cpu.done(thread, 0, self.dummy_reads(ways));
    }

    /// Writes all lines back and drops them: the first level by WBINVD, whose time has passed, the
    /// second by reading as many other lines as it holds.
    pub(super) fn write_all_back(&mut self, cpu: &mut Cpu, thread: u16) {
        if self.gathered.is_some() {
            return self.drain(cpu, thread);
        }
        let lines: Vec<u64> = self.regular.lines().collect();
        self.drop_lines(cpu, thread, &lines);
        let all = self.spec.caches.l2_sets() * self.spec.caches.l2_ways();
        let takes = self.dummy_reads(all.into());
        self.traffic.flush_time += self.spec.system.system_call + self.spec.wbinvd + takes;
        cpu.done(thread, 0, takes);
    }

    fn drop_lines(&mut self, cpu: &mut Cpu, thread: u16, lines: &[u64]) {
        for &line in lines {
            if let Some(held) = self.regular.remove(line) {
                self.gives_up(cpu, thread, held);
            }
        }
    }

    /// The time of reading so many lines of the core's private memory. They are not in the way of
    /// others.
    fn dummy_reads(&self, lines: u64) -> Time {
        match self.at(0, Bytes::byte(0)) {
            Ok(at) => self.spec.repeated(self.alone(at, true), lines),
            Err(_) => Time::ZERO,
        }
    }
}
