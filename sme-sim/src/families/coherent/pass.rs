//! Passes over many lines: sums, fills, copies and flushes of blocks, and the copies that layers of
//! messages ask for, whose own side is the core's own memory. Each is a loop that the core executes
//! out of order: it begins an access as soon as its port and a place to wait for the line are free,
//! and waits for data only at the end.

use sme_memory::Own;

use super::access::Wants;
use super::chip::{PRIVATE, PRIVATE_BYTES};
use super::socket::{Cpu, Later, Sends, Socket};
use crate::kernel::site::WaitSite;
use crate::machine::node::Waiting;
use crate::observe::staleness::What as Told;
use crate::parts::address::{AddressSpace, FaultReason};
use crate::parts::coherence::Event;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

/// A pass on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Passage {
    accesses: WordAccesses,
    /// The words that have been dealt with.
    done: u32,
    /// The words of the piece that goes on, once they are loaded.
    loaded: Option<[u64; 8]>,
    /// The time at which all that was begun is over.
    end: Time,
    /// The time at which the words of the piece are there.
    there: Time,
    sum: u64,
    /// The words of a program that are not in memory.
    block: Vec<u64>,
}

/// The accesses of a pass to each of its words.
#[derive(Clone, Copy, Debug, Default)]
struct WordAccesses {
    words: u32,
    /// The address from which the pass loads them.
    from: Option<u64>,
    /// The address from which the pass stores them.
    to: Option<u64>,
    past_caches: bool,
    /// The value that the pass stores.
    value: Option<u64>,
    flushes: bool,
    /// Whether the pass stores words of the block, or loads words into it.
    has_block: bool,
    site: Option<WaitSite>,
}

impl WordAccesses {
    fn of(operation: Operation, own: impl Fn(Own) -> u64) -> Self {
        let none = Self::default();
        match operation {
            Operation::Put(to, words, near, site) => Self {
                words,
                from: near.own().map(own),
                to: Some(to.0),
                has_block: true,
                site: Some(site),
                ..none
            },
            Operation::Get(from, words, near, site) => Self {
                words,
                from: Some(from.0),
                to: near.own().map(own),
                has_block: true,
                site: Some(site),
                ..none
            },
            Operation::Copy(from, to, words) => Self {
                words,
                from: from.own().map(&own),
                to: to.own().map(&own),
                ..none
            },
            Operation::Sum(from, words, site) => Self {
                words,
                from: Some(from.0),
                site: Some(site),
                ..none
            },
            Operation::Fill(to, value, words, site)
            | Operation::FillPast(to, value, words, site) => Self {
                words,
                to: Some(to.0),
                past_caches: matches!(operation, Operation::FillPast(..)),
                value: Some(value),
                site: Some(site),
                ..none
            },
            Operation::CopyWords(from, to, words, site)
            | Operation::CopyPast(from, to, words, site) => Self {
                words,
                from: Some(from.0),
                to: Some(to.0),
                past_caches: matches!(operation, Operation::CopyPast(..)),
                site: Some(site),
                ..none
            },
            Operation::FlushWords(at, words, site) => Self {
                words,
                from: Some(at.0),
                flushes: true,
                site: Some(site),
                ..none
            },
            _ => none,
        }
    }

    /// The words from number `done` on that share a line on both sides.
    fn piece(&self, done: u32) -> u32 {
        let in_line = |first: Option<u64>| match first {
            Some(first) => 8 - (first / 8 + u64::from(done)) as u32 % 8,
            None => 8,
        };
        let left = self.words - done;
        left.min(in_line(self.from)).min(in_line(self.to))
    }
}

/// A piece of a pass: words that share a line on both sides.
#[derive(Clone, Copy)]
struct Piece {
    /// The number of the first within the pass.
    first: u32,
    count: u32,
}

impl Piece {
    /// The addresses of its words on a side that begins at `start`.
    fn addresses(self, start: u64) -> impl Iterator<Item = u64> {
        let first = start + 8 * u64::from(self.first);
        (first..).step_by(8).take(self.count as usize)
    }

    /// Their numbers in the block.
    fn numbers(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

impl Socket {
    /// Begins what `thread` has asked for.
    pub(super) fn begins_pass(&mut self, cpu: &mut Cpu, thread: u16) {
        let number = usize::from(thread);
        if self.passes.len() <= number {
            self.passes.resize(number + 1, Passage::default());
        }
        let operation = cpu.thread(thread).operation;
        let core = u64::from(self.core(cpu, thread));
        let own = |Own(at)| PRIVATE | (core * PRIVATE_BYTES + at % PRIVATE_BYTES);
        let accesses = WordAccesses::of(operation, own);
        let pass = &mut self.passes[number];
        let mut block = std::mem::take(&mut pass.block);
        match operation {
            Operation::Put(..) => std::mem::swap(&mut block, cpu.block(thread)),
            Operation::Get(_, count, ..) => {
                block.clear();
                block.resize(count as usize, 0);
            }
            _ => {}
        }
        *pass = Passage {
            accesses,
            block,
            end: cpu.now,
            ..Passage::default()
        };
        cpu.waits(thread, Waiting::Answer);
        self.passes_on(cpu, thread);
    }

    /// Goes on until the core has to wait.
    pub(super) fn passes_on(&mut self, cpu: &mut Cpu, thread: u16) {
        let number = usize::from(thread);
        loop {
            let Passage { accesses, done, .. } = self.passes[number];
            if done >= accesses.words {
                return self.ends_pass(cpu, thread);
            }
            let piece = Piece {
                first: done,
                count: accesses.piece(done),
            };
            match self.passes_piece(cpu, thread, piece) {
                Ok(None) => {
                    let pass = &mut self.passes[number];
                    (pass.done, pass.loaded) = (done + piece.count, None);
                }
                Ok(Some(again)) => return cpu.later(again, Later::Passes(thread)),
                Err((address, reason)) => return cpu.refuse(thread, Some(address), reason),
            }
        }
    }

    fn ends_pass(&mut self, cpu: &mut Cpu, thread: u16) {
        let core = self.core(cpu, thread) as usize;
        let pass = &mut self.passes[usize::from(thread)];
        let has_stored = pass.accesses.to.is_some();
        let mut end = pass.end;
        if has_stored {
            end = end.max(self.chip.lock().cores[core].stored);
        }
        std::mem::swap(&mut pass.block, cpu.block(thread));
        let sum = pass.sum;
        cpu.progress();
        cpu.done(thread, sum, end.since(cpu.now));
    }

    /// Deals with a piece; the time at which to go on, if it cannot yet.
    fn passes_piece(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        piece: Piece,
    ) -> Result<Option<Time>, (u64, FaultReason)> {
        let number = usize::from(thread);
        let accesses = self.passes[number].accesses;
        if let (Some(from), None) = (accesses.from, self.passes[number].loaded) {
            let again = match accesses.flushes {
                true => self.flushes_piece(cpu, thread, piece, from)?,
                false => self.loads_piece(cpu, thread, piece, from)?,
            };
            if again.is_some() {
                return Ok(again);
            }
        }
        match accesses.to {
            Some(to) => self.stores_piece(cpu, thread, piece, to),
            None => Ok(None),
        }
    }

    fn loads_piece(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        piece: Piece,
        from: u64,
    ) -> Result<Option<Time>, (u64, FaultReason)> {
        let core = self.core(cpu, thread);
        let wants = self.wants(piece, from, Event::Load)?;
        let mut chip = self.chip.lock();
        let made = match chip.tries(core, wants, cpu.now) {
            Ok(made) => made,
            Err(later) => return Ok(Some(later)),
        };
        let spot = chip.lines.spot(wants.line);
        let words = chip.lines.line(spot).words;
        drop(chip);
        let pass = &mut self.passes[usize::from(thread)];
        (pass.there, pass.end) = (made.there, pass.end.max(made.there).max(made.next));
        let is_own = from & PRIVATE != 0;
        let mut loaded = [0; 8];
        for ((address, to), number) in piece.addresses(from).zip(&mut loaded).zip(piece.numbers()) {
            *to = words[usize::from(Bytes::word(address).word)];
            pass.sum = pass.sum.wrapping_add(*to);
            match (pass.accesses.has_block, is_own) {
                // Of a program's own memory only times are simulated.
                (true, true) => *to = pass.block[number],
                (true, false) => pass.block[number] = *to,
                (false, _) => {}
            }
        }
        pass.loaded = Some(loaded);
        self.tells_words(cpu, thread, (piece, from, &loaded), false);
        Ok(None)
    }

    fn stores_piece(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        piece: Piece,
        to: u64,
    ) -> Result<Option<Time>, (u64, FaultReason)> {
        let core = self.core(cpu, thread);
        let number = usize::from(thread);
        let wants = self.wants(piece, to, Event::Store)?;
        let accesses = self.passes[number].accesses;
        let mut chip = self.chip.lock();
        let made = match accesses.past_caches {
            true => chip.tries_past(core, wants, cpu.now),
            false => chip.tries(core, wants, cpu.now),
        };
        let made = match made {
            Ok(made) => made,
            Err(later) => return Ok(Some(later)),
        };
        let pass = &mut self.passes[number];
        let stored = &mut chip.cores[core as usize].stored;
        *stored = (*stored).max(made.there).max(made.next).max(pass.there);
        let seen = *stored;
        let mut words = pass.loaded.unwrap_or_default();
        for (word, number) in words.iter_mut().zip(piece.numbers()) {
            if let Some(value) = accesses.value {
                *word = value;
            } else if accesses.has_block && accesses.from.is_none() {
                *word = pass.block[number];
            }
        }
        pass.end = pass.end.max(seen);
        let spot = chip.lines.spot(wants.line);
        let line = chip.lines.line(spot);
        for (address, value) in piece.addresses(to).zip(words) {
            line.words[usize::from(Bytes::word(address).word)] = value;
        }
        line.writer = Some((self.me, thread));
        let woken = chip.watchers.remove(&wants.line);
        drop(chip);
        for (node, spinner) in woken.unwrap_or_default() {
            cpu.send(node, seen, spinner, Sends::Taken);
        }
        self.tells_words(cpu, thread, (piece, to, &words), true);
        Ok(None)
    }

    fn flushes_piece(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        piece: Piece,
        at: u64,
    ) -> Result<Option<Time>, (u64, FaultReason)> {
        let core = self.core(cpu, thread);
        let line = self.wants(piece, at, Event::Load)?.line;
        let mut chip = self.chip.lock();
        let stored = chip.cores[core as usize].stored;
        let begin = cpu.now.max(chip.cores[core as usize].port).max(stored);
        if begin > cpu.now {
            return Ok(Some(begin));
        }
        let place = chip.place(core);
        let end = chip.flushes(place, line, begin);
        // Flushes do not overlap.
        chip.cores[core as usize].port = end;
        let pass = &mut self.passes[usize::from(thread)];
        pass.end = pass.end.max(end);
        Ok(None)
    }

    fn wants(&self, piece: Piece, start: u64, event: Event) -> Result<Wants, (u64, FaultReason)> {
        let first = start + 8 * u64::from(piece.first);
        let line = match first & PRIVATE {
            0 => (self.line(first, Bytes::word(first))).map_err(|reason| (first, reason))?,
            _ => self.space.line().number(first),
        };
        Ok(Wants {
            line,
            event,
            words: piece.count,
        })
    }

    /// Tells the checker of loads that words of a piece were loaded, or stored.
    fn tells_words(
        &self,
        cpu: &mut Cpu,
        thread: u16,
        (piece, start, words): (Piece, u64, &[u64; 8]),
        stores: bool,
    ) {
        let site = self.passes[usize::from(thread)].accesses.site;
        let Some(site) = site.filter(|_| cpu.is_logged()) else {
            return;
        };
        for (address, value) in piece.addresses(start).zip(words) {
            if let Some((word, way)) = self.space.shared(self.me, address) {
                let told = Told::access(word, *value, site.site(), way, stores);
                cpu.tell((self.me, thread), || told);
            }
        }
    }
}
