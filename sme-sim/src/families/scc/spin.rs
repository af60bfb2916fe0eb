//! Reads and waits. A thread that waits for a flag in its own core's buffer reads it over and over,
//! which nothing else notices: it sleeps here until the flag has been written, and sees that when
//! it would have read it next. One that waits for a flag elsewhere sends one read after the other.
//! One whose flag is in a cache reads the copy until something drops it.

use sme_memory::{Flag, Flags, Until};

use super::access::Sends;
use super::core::{Core, Cpu, Later, Mapped, mapped};
use super::spec::accesses;
use crate::machine::node::{Seen, Waiting};
use crate::observe::trace::Cause;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

/// A thread that spins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spinner {
    thread: u16,
    on: On,
}

#[derive(Clone, Copy, Debug)]
enum On {
    /// On a copy in its caches.
    Copy,
    /// On a row of flags in its core's buffer, whose first it read at that time.
    Buffer {
        row: Row,
        since: Time,
        /// The time at which it sees that one of them has been written, and the cause of that.
        samples: Option<(Time, Cause)>,
    },
}

/// Flags in the buffer by offset, which are read in their order.
#[derive(Clone, Copy, Debug)]
struct Row {
    offset: u64,
    stride: u64,
    count: u64,
}

impl Row {
    /// The turns, within a round, of the flags that lie in `bytes`.
    fn turns(self, bytes: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        let stride = self.stride.max(1);
        let index = |offset: u64| offset.saturating_sub(self.offset).div_ceil(stride);
        let range = index(bytes.start)..index(bytes.end).min(self.count);
        range
    }
}

impl Core {
    /// `thread` looks at what it reads or waits for.
    pub(super) fn look(&mut self, cpu: &mut Cpu, thread: u16) {
        self.look_after(cpu, thread, Time::ZERO);
    }

    /// Looks at the flags of a row in the core's own buffer, for any of which `thread` waits or
    /// asks; whether there are such. The same comes out as from looking at one after the other.
    fn looks_at_row(&mut self, cpu: &mut Cpu, thread: u16) -> bool {
        let (flags, first, until) = match cpu.thread(thread).operation {
            Operation::WaitAny(flags, until, _) => (flags, 0, until),
            Operation::FindAny(flags, first, until) => (flags, u64::from(first), until),
            _ => return false,
        };
        let (_, plain) = mapped(flags.first.0);
        let is_covered = self.gathered.is_some();
        let Some(offset) = self.in_own_buffer(flags.first.0).filter(|_| !is_covered) else {
            return false;
        };
        let (stride, count) = (u64::from(flags.stride), u64::from(flags.count));
        let last = offset + stride * (count - 1);
        if plain != flags.first.0 || last >= self.space.chip.buffer_bytes {
            return false;
        }
        let first = first % count;
        let words = &self.words;
        let find = |numbers| match until {
            Until::Is(wanted) => words.find_byte((offset, stride), numbers, |it| it == wanted),
            Until::IsNot(old) => words.find_byte((offset, stride), numbers, |it| it != old),
        };
        let found = find(first..count).or_else(|| find(0..first));
        // All of them have been read, where none was found.
        let number = found.unwrap_or((first + count - 1) % count);
        let turn = (number + count - first) % count;
        let offset = offset + stride * number;
        let value = Bytes::byte(offset).pick(self.words.get(offset).0);
        let takes = self.spec.repeated(self.spec.buffer.0, turn + 1);
        cpu.is_at(thread, turn as u32);
        if cpu.sees(thread, value, takes) == Seen::Not {
            self.spin(cpu, thread, (Mapped::Uncached, cpu.now));
        }
        true
    }

    /// The same, when it has read something else for so long.
    fn look_after(&mut self, cpu: &mut Cpu, thread: u16, mut takes: Time) {
        if takes == Time::ZERO && self.looks_at_row(cpu, thread) {
            return;
        }
        // The first of the flags of a round is read then.
        let mut since = cpu.now + takes;
        while let Some((address, bytes, until)) = cpu.looks_at(thread) {
            let (mapped, plain) = mapped(address);
            let line = self.spec.line.number(plain);
            if self.gathered.is_some_and(|gathered| gathered.line == line) {
                return self.drain(cpu, thread);
            }
            if self.reads_register(cpu, thread, plain) {
                return;
            }
            let at = match self.at(address, bytes) {
                Err(reason) => return cpu.refuse(thread, Some(address), reason),
                Ok(at) => at,
            };
            let cache = match mapped {
                Mapped::Uncached => None,
                Mapped::Cached => Some(&mut self.regular),
                Mapped::Tagged => Some(&mut self.tagged),
            };
            let own = self.space.chip.buffer_bytes;
            let (word, longer) = match cache {
                Some(cache) => match cache.load(line, bytes.word.into()) {
                    Some((word, level)) => {
                        self.traffic.hits += 1;
                        (word, self.spec.load_hit(level, accesses(bytes)))
                    }
                    None => return self.fetch(cpu, thread, (plain, mapped), takes),
                },
                None => match self.in_own_buffer(plain) {
                    Some(offset) => {
                        debug_assert!(offset < own);
                        let count = if bytes.is_whole_word() { 2 } else { 1 };
                        let longer = self.spec.repeated(self.spec.buffer.0, count);
                        (self.words.get(offset).0, longer)
                    }
                    None => {
                        let polls = until.map_or(Waiting::Answer, |_| Waiting::Polls);
                        cpu.waits(thread, polls);
                        return self.ask_after(cpu, thread, (at, takes), Sends::Read(at, bytes));
                    }
                },
            };
            takes += longer;
            match cpu.sees(thread, bytes.pick(word), takes) {
                Seen::Done => return,
                Seen::Next => {
                    takes += self.spec.operation;
                    if let Operation::WaitAll(..) = cpu.thread(thread).operation {
                        since = cpu.now + takes;
                    }
                }
                Seen::Not => return self.spin(cpu, thread, (mapped, since)),
            }
        }
    }

    fn spin(&mut self, cpu: &mut Cpu, thread: u16, (mapped, since): (Mapped, Time)) {
        let row = |flags: Flags| {
            let offset = self.in_own_buffer(flags.first.0);
            offset.map(|offset| Row {
                offset,
                stride: flags.stride.into(),
                count: flags.count.into(),
            })
        };
        let one = |first: Flag| Flags {
            first,
            stride: 1,
            count: 1,
        };
        let row = match cpu.thread(thread).operation {
            Operation::WaitAny(flags, ..) => row(flags),
            _ => cpu
                .looks_at(thread)
                .and_then(|(address, ..)| row(one(Flag(address)))),
        };
        let (waiting, on) = match (mapped, row) {
            (Mapped::Uncached, Some(row)) => {
                let samples = None;
                (
                    Waiting::Watches,
                    On::Buffer {
                        row,
                        since,
                        samples,
                    },
                )
            }
            _ => (Waiting::Spins, On::Copy),
        };
        cpu.waits(thread, waiting);
        self.spinners.push(Spinner { thread, on });
    }

    /// Bytes of the word at `offset` of the core's own memory have been written: finds out when
    /// threads that spin there see it.
    pub(super) fn was_written(&mut self, cpu: &mut Cpu, offset: u64, enables: u8) {
        if offset >= self.space.chip.buffer_bytes || self.spinners.is_empty() {
            return;
        }
        let first = offset + u64::from(enables.trailing_zeros());
        let last = offset + 8 - u64::from(enables.leading_zeros());
        for number in 0..self.spinners.len() {
            self.plan(cpu, number, first..last);
        }
    }

    /// Plans when the spinner of that number reads one of its flags that lie in `bytes`.
    fn plan(&mut self, cpu: &mut Cpu, number: usize, bytes: std::ops::Range<u64>) {
        let read = self.spec.buffer.0 + self.spec.operation;
        let Spinner { thread, on } = &mut self.spinners[number];
        let On::Buffer {
            row,
            since,
            samples,
        } = on
        else {
            return;
        };
        let round = read.times(row.count).as_ps();
        let seen = row.turns(bytes).map(|turn| {
            let begin = *since + read.times(turn);
            let rounds = cpu.now.since(begin).as_ps().div_ceil(round);
            Time::from_ps(begin.as_ps() + rounds * round)
        });
        if let Some(at) = seen.min()
            && samples.is_none_or(|(planned, _)| at < planned)
        {
            *samples = Some((at, cpu.cause()));
            cpu.later(at, Later::Samples(*thread));
        }
    }

    /// `thread` reads a flag that has been written while it spun.
    pub(super) fn samples(&mut self, cpu: &mut Cpu, thread: u16) {
        let is_due = |spinner: &Spinner| match spinner.on {
            On::Buffer {
                samples: Some((at, _)),
                ..
            } => spinner.thread == thread && at == cpu.now,
            _ => false,
        };
        let Some(number) = self.spinners.iter().position(is_due) else {
            return;
        };
        let On::Buffer {
            row,
            since,
            samples: Some((_, cause)),
        } = self.spinners[number].on
        else {
            return;
        };
        cpu.caused_by(cause);
        let read = self.spec.buffer.0 + self.spec.operation;
        let turn = cpu.now.since(since).as_ps() / read.as_ps() % row.count;
        cpu.is_at(thread, turn as u32);
        let Some((address, bytes, _)) = cpu.looks_at(thread) else {
            return;
        };
        let offset = self.in_own_buffer(address).unwrap_or_default();
        let value = bytes.pick(self.words.get(offset).0);
        match cpu.sees(thread, value, self.spec.buffer.0) {
            Seen::Done => drop(self.spinners.swap_remove(number)),
            // The next of those that must all hold is read after this one.
            Seen::Next if matches!(cpu.thread(thread).operation, Operation::WaitAll(..)) => {
                self.spinners.swap_remove(number);
                self.look_after(cpu, thread, read);
            }
            // It was written once more, or with another value: the others are seen when they are
            // read.
            Seen::Next | Seen::Not => {
                if let On::Buffer { samples, .. } = &mut self.spinners[number].on {
                    *samples = None;
                }
                self.plan_again(cpu, number);
            }
        }
    }

    /// Plans anew when the spinner of that number reads a flag that would end its wait.
    fn plan_again(&mut self, cpu: &mut Cpu, number: usize) {
        let Spinner { thread, on } = self.spinners[number];
        let On::Buffer { row, .. } = on else {
            return;
        };
        let (Operation::Wait(_, until, _)
        | Operation::WaitAll(_, until, _)
        | Operation::WaitAny(_, until, _)) = cpu.thread(thread).operation
        else {
            return;
        };
        for index in 0..row.count {
            let offset = row.offset + index * row.stride;
            let value = Bytes::byte(offset).pick(self.words.get(offset).0);
            if until.holds(value as u8) {
                self.plan(cpu, number, offset..offset + 1);
            }
        }
    }

    /// The clock is another from now on: threads that spin begin a round.
    pub(super) fn spins_anew(&mut self, cpu: &mut Cpu) {
        for number in 0..self.spinners.len() {
            if let On::Buffer { since, samples, .. } = &mut self.spinners[number].on {
                (*since, *samples) = (cpu.now, None);
                self.plan_again(cpu, number);
            }
        }
    }

    /// `thread` spins no longer.
    pub(super) fn no_longer_spins(&mut self, thread: u16) {
        self.spinners.retain(|spinner| spinner.thread != thread);
    }

    /// Copies have been dropped or stored into: threads that spin on them look again.
    pub(super) fn copies_changed(&mut self, cpu: &mut Cpu) {
        let on_copy = |spinner: &mut Spinner| matches!(spinner.on, On::Copy);
        let again: Vec<Spinner> = self.spinners.extract_if(.., on_copy).collect();
        for spinner in again {
            self.look(cpu, spinner.thread);
        }
    }
}
