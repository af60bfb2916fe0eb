//! Copies of blocks between a thread's own memory and shared memory: a loop of loads and stores of
//! 32 bits, line by line of the shared side; and copies within the own memory. That is the core's
//! private memory, which its caches hold as usual; no data are there, only times depend on it.

use sme_memory::Own;

use super::access::Sends;
use super::core::{Core, Cpu, Later, Mapped, mapped};
use crate::kernel::seldom::seldom;
use crate::kernel::thread::Site;
use crate::machine::node::Waiting;
use crate::observe::staleness::What as Told;
use crate::parts::address::{AddressSpace, FaultReason};
use crate::parts::contract::{Near, Operation};
use crate::parts::line::Bytes;
use crate::time::Time;

/// A block on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    words: Vec<u64>,
    /// The number of words that have been copied.
    done: u32,
    /// The own side of the next piece has been dealt with.
    is_ready: bool,
    /// The time that the core has worked since it last waited.
    pub(super) owed: Time,
}

/// Accesses of a word that a message library copies.
const HALVES: u32 = 2;

/// Accesses of a word that a program copies within its own memory: a double, through a register.
const WHOLE: u32 = 1;

/// Words of the own memory that share a line.
#[derive(Clone, Copy)]
struct Stretch {
    /// The address of the first.
    at: u64,
    count: u32,
    /// Accesses of each.
    accesses: u32,
}

impl Stretch {
    /// The addresses of the words.
    fn words(self) -> impl Iterator<Item = u64> {
        (self.at..).step_by(8).take(self.count as usize)
    }
}

/// Words that share a line at the shared side.
#[derive(Clone, Copy)]
struct Piece {
    /// The address of the first, with its mapping.
    address: u64,
    /// The words of the block: the first of them.
    first: u32,
    count: u32,
}

impl Core {
    /// Begins what `thread` has asked for.
    pub(super) fn begin_transfer(&mut self, cpu: &mut Cpu, thread: u16) {
        let number = usize::from(thread);
        if self.transfers.len() <= number {
            self.transfers.resize(number + 1, Transfer::default());
        }
        let transfer = &mut self.transfers[number];
        (transfer.done, transfer.is_ready, transfer.owed) = (0, false, Time::ZERO);
        match cpu.thread(thread).operation {
            Operation::Get(_, count, ..) => {
                transfer.words.clear();
                transfer.words.resize(count as usize, 0);
            }
            Operation::Put(..) => std::mem::swap(&mut transfer.words, cpu.block(thread)),
            _ => {}
        }
        self.transfer(cpu, thread);
    }

    /// Goes on until the core has to wait.
    pub(super) fn transfer(&mut self, cpu: &mut Cpu, thread: u16) {
        let number = usize::from(thread);
        loop {
            let (start, count, own, stores) = match cpu.thread(thread).operation {
                Operation::Put(to, count, near, _) => (to.0, count, near, true),
                Operation::Get(from, count, near, _) => (from.0, count, near, false),
                Operation::Copy(from, to, count) => {
                    return self.copy_own(cpu, thread, (from, to), count);
                }
                _ => return,
            };
            let done = self.transfers[number].done;
            if done >= count {
                let owed = std::mem::take(&mut self.transfers[number].owed);
                std::mem::swap(&mut self.transfers[number].words, cpu.block(thread));
                return cpu.done(thread, 0, owed);
            }
            let address = start + 8 * u64::from(done);
            let plain = mapped(address).1;
            let line_end = self.spec.line.start(plain) + self.spec.line.bytes();
            let in_line = ((line_end - plain) / 8) as u32;
            let piece = Piece {
                address,
                first: done,
                count: in_line.min(count - done),
            };
            let near = own.own().map(|Own(near)| near + 8 * u64::from(done));
            let moved = match stores {
                true => self.put_piece(cpu, thread, piece, near),
                false => self.get_piece(cpu, thread, piece, near),
            };
            match moved {
                Ok(Moved::Waits) => return,
                Ok(Moved::GoesOn) => {}
                Err(reason) => return cpu.refuse(thread, Some(address), reason),
            }
        }
    }

    /// Goes on with a copy of so many words within the own memory, until the core has to wait.
    fn copy_own(&mut self, cpu: &mut Cpu, thread: u16, (from, to): (Near, Near), count: u32) {
        let number = usize::from(thread);
        let (Some(Own(from)), Some(Own(to))) = (from.own(), to.own()) else {
            return cpu.done(thread, 0, Time::ZERO);
        };
        loop {
            let done = self.transfers[number].done;
            if done >= count {
                let owed = std::mem::take(&mut self.transfers[number].owed);
                return cpu.done(thread, 0, owed);
            }
            let (from, to) = (from + 8 * u64::from(done), to + 8 * u64::from(done));
            let line_end = self.spec.line.start(to) + self.spec.line.bytes();
            let piece = (count - done).min(((line_end - to) / 8) as u32);
            let stretch = |at| Stretch {
                at,
                count: piece,
                accesses: WHOLE,
            };
            if self.loads_own(cpu, thread, stretch(from)) {
                return;
            }
            let copy = self.spec.copy.times(piece.into());
            let transfer = &mut self.transfers[number];
            transfer.owed += copy;
            transfer.done = done + piece;
            if self.stores_own(cpu, thread, stretch(to)) {
                return;
            }
        }
    }

    fn put_piece(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        piece: Piece,
        near: Option<u64>,
    ) -> Result<Moved, FaultReason> {
        let number = usize::from(thread);
        if !self.transfers[number].is_ready {
            if let Some(near) = near
                && self.loads_own(cpu, thread, piece.beside(near))
            {
                return Ok(Moved::Waits);
            }
            self.transfers[number].is_ready = true;
        }
        let (mapped, plain) = mapped(piece.address);
        let line = self.spec.line.number(plain);
        let at = self.at(piece.address, Bytes::word(plain))?;
        let is_tagged_copy = mapped == Mapped::Tagged && self.tagged.look(line).is_some();
        if self.must_drain(mapped, line, is_tagged_copy) {
            self.drain(cpu, thread);
            return Ok(Moved::Waits);
        }
        let own = self
            .in_own_buffer(plain)
            .filter(|_| mapped == Mapped::Uncached);
        if own.is_some() && self.catches_up(cpu, thread) {
            return Ok(Moved::Waits);
        }
        self.tells_words(cpu, thread, piece, true);
        let (mut mask, mut block) = (0, [0; 8]);
        let mut goes_past = mapped == Mapped::Uncached || is_tagged_copy;
        for (address, index) in (plain..).step_by(8).zip(piece.words()) {
            let (bytes, value) = (Bytes::word(address), self.transfers[number].words[index]);
            mask |= bytes.of_block();
            block[usize::from(bytes.word)] = value;
            match mapped {
                Mapped::Tagged if is_tagged_copy => self.update_tagged(line, bytes, value),
                Mapped::Tagged => {
                    self.gather(line, bytes, value);
                    self.transfers[number].owed += self.spec.gathering(bytes);
                }
                Mapped::Cached => match self.stores_into_copy(line, bytes, value) {
                    Some(level) => {
                        self.transfers[number].owed +=
                            self.spec.store_hit(level, HALVES) + self.spec.operation;
                    }
                    None => goes_past = true,
                },
                Mapped::Uncached => {}
            }
        }
        let copy = self.spec.copy.times(2 * u64::from(piece.count));
        let transfer = &mut self.transfers[number];
        (transfer.done, transfer.is_ready) = (piece.first + piece.count, false);
        transfer.owed += copy;
        if let Some(offset) = own {
            let by = (self.me, thread);
            for (offset, index) in (offset..).step_by(8).zip(piece.words()) {
                let value = self.transfers[number].words[index];
                self.write(cpu, offset, (Bytes::word(offset), value), by);
            }
            let takes = self
                .spec
                .repeated(self.spec.buffer.0, 2 * u64::from(piece.count));
            self.transfers[number].owed += takes + self.spec.operation;
            return Ok(Moved::GoesOn);
        }
        if !goes_past {
            return Ok(Moved::GoesOn);
        }
        if mapped != Mapped::Uncached {
            self.tells_of_line(cpu, line, |line| Told::WroteBack {
                line,
                bytes: mask,
                old: 0,
            });
        }
        let owed = std::mem::take(&mut self.transfers[number].owed);
        let at = at.repeated(2 * piece.count);
        cpu.waits(thread, Waiting::Answer);
        let what = Sends::WriteLine(at, Box::new((mask, block)));
        self.ask_after(cpu, thread, (at, owed), what);
        Ok(Moved::Waits)
    }

    fn get_piece(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        piece: Piece,
        near: Option<u64>,
    ) -> Result<Moved, FaultReason> {
        let number = usize::from(thread);
        let (mapped, plain) = mapped(piece.address);
        let line = self.spec.line.number(plain);
        if !self.transfers[number].is_ready {
            let at = self.at(piece.address, Bytes::word(plain))?;
            if self.gathered.is_some_and(|gathered| gathered.line == line) {
                self.drain(cpu, thread);
                return Ok(Moved::Waits);
            }
            if mapped == Mapped::Uncached && self.in_own_buffer(plain).is_none() {
                let owed = std::mem::take(&mut self.transfers[number].owed);
                self.fetch_past(cpu, thread, (at.repeated(2 * piece.count), line), owed);
                return Ok(Moved::Waits);
            }
            if mapped == Mapped::Uncached && self.catches_up(cpu, thread) {
                return Ok(Moved::Waits);
            }
            for (address, index) in (plain..).step_by(8).zip(piece.words()) {
                let bytes = Bytes::word(address);
                let cache = match mapped {
                    Mapped::Uncached => None,
                    Mapped::Cached => Some(&mut self.regular),
                    Mapped::Tagged => Some(&mut self.tagged),
                };
                let loaded = match cache {
                    None => {
                        let offset = self.in_own_buffer(address).unwrap_or_default();
                        let takes = self.spec.repeated(self.spec.buffer.0, 2);
                        Some((self.words.get(offset).0, takes))
                    }
                    Some(cache) => cache
                        .load(line, bytes.word.into())
                        .map(|(word, level)| (word, self.spec.load_hit(level, HALVES))),
                };
                let Some((word, takes)) = loaded else {
                    let owed = std::mem::take(&mut self.transfers[number].owed);
                    self.fetch(cpu, thread, (plain, mapped), owed);
                    return Ok(Moved::Waits);
                };
                let transfer = &mut self.transfers[number];
                transfer.words[index] = word;
                transfer.owed += takes + self.spec.operation;
            }
            self.transfers[number].is_ready = true;
        }
        self.tells_words(cpu, thread, piece, false);
        let copy = self.spec.copy.times(2 * u64::from(piece.count));
        let transfer = &mut self.transfers[number];
        (transfer.done, transfer.is_ready) = (piece.first + piece.count, false);
        transfer.owed += copy;
        match near {
            Some(near) if self.stores_own(cpu, thread, piece.beside(near)) => Ok(Moved::Waits),
            _ => Ok(Moved::GoesOn),
        }
    }

    /// A piece has come past the caches.
    pub(super) fn has_piece(
        &mut self,
        thread: u16,
        line: u64,
        block: [u64; 8],
        operation: Operation,
    ) {
        let Operation::Get(from, count, ..) = operation else {
            return;
        };
        let transfer = &mut self.transfers[usize::from(thread)];
        for index in transfer.done..count {
            let address = mapped(from.0 + 8 * u64::from(index)).1;
            if self.spec.line.number(address) != line {
                break;
            }
            transfer.words[index as usize] = block[usize::from(Bytes::word(address).word)];
        }
        transfer.is_ready = true;
    }

    /// Lets the time pass that the core owes; whether there was any. The copy then goes on.
    fn catches_up(&mut self, cpu: &mut Cpu, thread: u16) -> bool {
        let owed = std::mem::take(&mut self.transfers[usize::from(thread)].owed);
        if owed == Time::ZERO {
            return false;
        }
        cpu.waits(thread, Waiting::Answer);
        cpu.later(cpu.now + owed, Later::Moves(thread));
        true
    }

    /// Loads words of the own memory; whether a line has to be fetched first.
    fn loads_own(&mut self, cpu: &mut Cpu, thread: u16, stretch: Stretch) -> bool {
        let number = usize::from(thread);
        let mut takes = Time::ZERO;
        for address in stretch.words() {
            let bytes = Bytes::word(address);
            let line = self.spec.line.number(address);
            match self.regular.load(line, bytes.word.into()) {
                Some((_, level)) => takes += self.spec.load_hit(level, stretch.accesses),
                None => {
                    let owed = std::mem::take(&mut self.transfers[number].owed);
                    self.fetch(cpu, thread, (address, Mapped::Cached), owed);
                    return true;
                }
            }
        }
        self.transfers[number].owed += takes;
        false
    }

    /// Stores words of the own memory; whether that has to be waited for, since no cache has the
    /// line.
    fn stores_own(&mut self, cpu: &mut Cpu, thread: u16, stretch: Stretch) -> bool {
        let number = usize::from(thread);
        let mut missed: Option<(u64, u64, u32)> = None;
        for address in stretch.words() {
            let bytes = Bytes::word(address);
            match self.stores_into_copy(self.spec.line.number(address), bytes, 0) {
                Some(level) => {
                    self.transfers[number].owed += self.spec.store_hit(level, stretch.accesses);
                }
                None => {
                    let (_, mask, times) = missed.get_or_insert((address, 0, 0));
                    *mask |= bytes.of_block();
                    *times += stretch.accesses;
                }
            }
        }
        let Some((address, mask, times)) = missed else {
            return false;
        };
        let Ok(at) = self.at(address, Bytes::word(address)) else {
            return false;
        };
        let owed = std::mem::take(&mut self.transfers[number].owed);
        let at = at.repeated(times);
        cpu.waits(thread, Waiting::Answer);
        self.ask_after(
            cpu,
            thread,
            (at, owed),
            Sends::WriteLine(at, Box::new((mask, [0; 8]))),
        );
        true
    }

    /// Tells the checker of loads, if there is one, that words of a piece were loaded, or stored.
    fn tells_words(&self, cpu: &mut Cpu, thread: u16, piece: Piece, stores: bool) {
        if cpu.is_logged() {
            seldom(|| self.tells_each(cpu, thread, piece, stores));
        }
    }

    /// Tells the checker of loads the same.
    fn tells_each(&self, cpu: &mut Cpu, thread: u16, piece: Piece, stores: bool) {
        let site: Site = match cpu.thread(thread).operation {
            Operation::Put(.., site) | Operation::Get(.., site) => site.site(),
            _ => return,
        };
        for (address, index) in (piece.address..).step_by(8).zip(piece.words()) {
            let value = self.transfers[usize::from(thread)].words[index];
            if let Some((word, way)) = self.space.shared(self.me, address) {
                let told = Told::access(word, value, site, way, stores);
                cpu.tell((self.me, thread), || told);
            }
        }
    }
}

/// The state of a piece after an attempt to move it.
enum Moved {
    /// The core waits for something.
    Waits,
    GoesOn,
}

impl Piece {
    /// The own side of it, from `near` on.
    fn beside(self, near: u64) -> Stretch {
        Stretch {
            at: near,
            count: self.count,
            accesses: HALVES,
        }
    }

    fn words(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}
