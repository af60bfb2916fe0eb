//! The hardware of a node: its memory, its copies of what lies in others', and what they ask of it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sme_memory::{Capability, Place, Register};

use super::spec::IdealSpec;
use crate::machine::node::{Hardware, Message, Processor, Seen, Waiting};
use crate::observe::last_writes::LastWrites;
use crate::observe::staleness::What as Told;
use crate::observe::survey::AtHome;
use crate::observe::traffic::CacheTraffic;
use crate::observe::unwritten::Dirty;
use crate::parts::address::{CACHEABLE, FaultReason};
use crate::parts::cache::unlimited::{Block, Mask, Unlimited};
use crate::parts::contract::Operation;
use crate::parts::global::GlobalSpace;
use crate::parts::line::Bytes;
use crate::parts::memory::Words;
use crate::time::Time;

type Cpu = Processor<Memory>;

pub(super) struct Memory {
    me: u32,
    space: GlobalSpace,
    spec: Arc<IdealSpec>,
    /// Its own shared memory, by offset.
    words: Words,
    registers: Vec<bool>,
    copies: Unlimited,
    /// Lines on their way, and who waits for each.
    fills: FxHashMap<u64, Vec<u16>>,
    /// Threads that spin, each on the word at an address.
    spinners: Vec<(u64, u16)>,
    /// Whether an interrupt is pending, and the threads that wait for one.
    interrupted: bool,
    takers: Vec<u16>,
    /// Those of a few words, in the run that explains a deadlock.
    last_writes: Option<Box<LastWrites>>,
    traffic: CacheTraffic,
}

/// Messages between nodes. Offsets are in the receiver's memory, except in answers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Sends {
    Write(u64, Bytes, u64),
    Read(u64, Bytes),
    Fetch(u64),
    WriteBack(u64, Mask, Block),
    TestAndSet(u32),
    Clear(u32),
    Interrupt,
    Answer(u64),
    Line(u64, Block),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NoEvent {}

/// The target of an address.
enum At {
    /// To the node's own memory.
    Own(u64),
    /// To another node's.
    Far(Place),
    /// To the copy of this line, which lies at this place.
    Copy(u64, Place),
}

impl Memory {
    pub(super) fn new(me: u32, space: GlobalSpace, spec: Arc<IdealSpec>) -> Self {
        Self {
            me,
            space,
            words: Words::default(),
            registers: vec![false; spec.registers as usize],
            copies: Unlimited::new(spec.line),
            fills: FxHashMap::default(),
            spinners: Vec::new(),
            interrupted: false,
            takers: Vec::new(),
            last_writes: None,
            traffic: CacheTraffic::default(),
            spec,
        }
    }

    fn find(&self, address: u64, bytes: Bytes) -> Result<At, FaultReason> {
        if bytes.is_whole_word() && !address.is_multiple_of(8) {
            return Err(FaultReason::Misaligned);
        }
        Ok(match self.space.place(address)? {
            (place, true) => At::Copy(self.copies.line(address), place),
            (place, false) if place.node == self.me => At::Own(place.offset),
            (place, false) => At::Far(place),
        })
    }

    /// The offset of a word that must lie in the node's own memory.
    fn own(&self, address: u64) -> Result<u64, FaultReason> {
        match self.find(address, Bytes::word(address))? {
            At::Own(offset) => Ok(offset),
            At::Far(_) | At::Copy(..) => Err(FaultReason::NotAtomic),
        }
    }

    /// Sends `what` to `node`. To itself a question and its answer together take as long as an
    /// access.
    fn send(&self, cpu: &mut Cpu, node: u32, thread: u16, what: Sends) {
        let asks = matches!(
            what,
            Sends::Read(..) | Sends::Fetch(_) | Sends::TestAndSet(_)
        );
        let takes = match (node == self.me, asks) {
            (false, _) => self.spec.remote,
            (true, true) => self.spec.local,
            (true, false) => Time::ZERO,
        };
        cpu.send(node, cpu.now + takes, thread, what);
    }

    /// `thread` looks at what it reads or waits for.
    fn look(&mut self, cpu: &mut Cpu, thread: u16) {
        while let Some((address, bytes, until)) = cpu.looks_at(thread) {
            let word = match self.find(address, bytes) {
                Err(reason) => return cpu.refuse(thread, Some(address), reason),
                Ok(At::Own(offset)) => self.words.get(offset).0,
                Ok(At::Copy(line, place)) => {
                    let Some(word) = self.copies.word(address) else {
                        return self.fetch(cpu, thread, line, place);
                    };
                    self.traffic.hits += 1;
                    word
                }
                Ok(At::Far(place)) => {
                    let polls = until.map_or(Waiting::Answer, |_| Waiting::Polls);
                    cpu.waits(thread, polls);
                    cpu.loads_remotely(thread, 8);
                    return self.send(cpu, place.node, thread, Sends::Read(place.offset, bytes));
                }
            };
            match cpu.sees(thread, bytes.pick(word), self.spec.local) {
                Seen::Done => return,
                Seen::Next => {}
                Seen::Not => return self.spin(cpu, thread, address),
            }
        }
    }

    /// `thread` spins on the word at `address`, or on those of all flags for any of which it waits.
    fn spin(&mut self, cpu: &mut Cpu, thread: u16, address: u64) {
        cpu.waits(thread, Waiting::Spins);
        match cpu.thread(thread).operation {
            Operation::WaitAny(flags, ..) => {
                let words = (0..flags.count).map(|index| (flags.at(index).0 & !7, thread));
                self.spinners.extend(words);
            }
            _ => self.spinners.push((address & !7, thread)),
        }
    }

    /// Lets the threads that spin on `address` look again: the word has changed, or its copy is
    /// gone.
    fn changed(&mut self, cpu: &mut Cpu, address: u64) {
        let spins = |&mut (on, _): &mut (u64, u16)| on == address;
        let mut again: Vec<_> = self.spinners.extract_if(.., spins).collect();
        again.dedup();
        for (_, thread) in again {
            self.spinners.retain(|&(_, spinner)| spinner != thread);
            self.look(cpu, thread);
        }
    }

    fn store(&mut self, cpu: &mut Cpu, thread: u16, (address, bytes, value): (u64, Bytes, u64)) {
        let takes = match self.find(address, bytes) {
            Err(reason) => return cpu.refuse(thread, Some(address), reason),
            Ok(At::Own(offset)) => {
                self.write(cpu, offset, bytes, value, (self.me, thread));
                self.spec.local
            }
            Ok(At::Far(place)) => {
                let what = Sends::Write(place.offset, bytes, value);
                self.post(cpu, (place.node, 8), thread, what);
                Time::ZERO
            }
            Ok(At::Copy(line, place)) => {
                if !self.copies.store(address, bytes, value) {
                    return self.fetch(cpu, thread, line, place);
                }
                self.traffic.hits += 1;
                self.changed(cpu, address & !7);
                self.spec.local
            }
        };
        cpu.progress();
        cpu.done(thread, 0, takes);
    }

    fn post(&self, cpu: &mut Cpu, (node, bytes): (u32, u64), thread: u16, what: Sends) {
        cpu.posts(thread, bytes);
        self.send(cpu, node, thread, what);
    }

    /// Writes `bytes` of the word at `offset` of its own memory.
    fn write(&mut self, cpu: &mut Cpu, offset: u64, bytes: Bytes, value: u64, by: (u32, u16)) {
        self.words.write(offset, bytes, value, Some(by));
        if let Some(last_writes) = &mut self.last_writes {
            last_writes.wrote(offset, bytes, (cpu.now, by));
        }
        let (node, offset) = (self.me, offset & !7);
        cpu.wrote(offset);
        self.changed(cpu, self.space.plain(Place { node, offset }));
    }

    /// Performs the atomic `operation` on the word at `address`.
    fn update(&mut self, cpu: &mut Cpu, thread: u16, address: u64, operation: Operation) {
        match self.own(address) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok(offset) => {
                let (before, bytes) = (self.words.get(offset).0, Bytes::word(offset));
                self.write(
                    cpu,
                    offset,
                    bytes,
                    operation.updates(before),
                    (self.me, thread),
                );
                cpu.progress();
                cpu.done(thread, before, self.spec.local);
            }
        }
    }

    /// Gives the pending interrupt, if there is one, to the thread that has waited for it longest.
    fn interrupts(&mut self, cpu: &mut Cpu) {
        if self.interrupted && !self.takers.is_empty() {
            self.interrupted = false;
            let thread = self.takers.remove(0);
            cpu.progress();
            cpu.done(thread, 0, self.spec.local);
        }
    }

    /// Asks the node of `register` to read it, or to clear it.
    fn register(&mut self, cpu: &mut Cpu, thread: u16, register: Register, waits: Option<Waiting>) {
        let Register { node, number } = register;
        if node >= self.space.nodes || number >= self.spec.registers {
            return cpu.refuse(thread, None, FaultReason::NoSuchRegister);
        }
        match waits {
            None => {
                self.post(cpu, (node, 0), thread, Sends::Clear(number));
                cpu.done(thread, 0, Time::ZERO);
            }
            Some(waits) => {
                cpu.waits(thread, waits);
                cpu.loads_remotely(thread, 0);
                self.send(cpu, node, thread, Sends::TestAndSet(number));
            }
        }
    }

    /// `thread` needs a line that lies at `place`, and goes on when it is there.
    fn fetch(&mut self, cpu: &mut Cpu, thread: u16, line: u64, place: Place) {
        cpu.waits(thread, Waiting::Answer);
        if let Some(waiting) = self.fills.get_mut(&line) {
            return waiting.push(thread);
        }
        self.fills.insert(line, vec![thread]);
        self.traffic.fills += 1;
        cpu.loads_remotely(thread, self.spec.line.bytes());
        let what = Sends::Fetch(self.copies.line(place.offset));
        self.send(cpu, place.node, thread, what);
    }

    /// Writes the copy of `line` back, and drops it if that is asked for.
    fn write_back(&mut self, cpu: &mut Cpu, thread: u16, line: u64, drops: bool) {
        let Ok((home, _)) = self.space.place(line) else {
            return;
        };
        if let Some((words, bytes)) = self.copies.clean(line, drops) {
            self.traffic.write_backs += 1;
            let (line, old) = (home, 0);
            cpu.tell((self.me, thread), || Told::WroteBack { line, bytes, old });
            let back = Sends::WriteBack(home.offset, bytes, words);
            self.post(cpu, (home.node, self.spec.line.bytes()), thread, back);
        }
        if drops {
            for word in 0..u64::from(self.spec.line.words()) {
                self.changed(cpu, line + 8 * word);
            }
        }
    }
}

impl Hardware for Memory {
    type Event = NoEvent;
    type Message = Sends;

    fn begin(&mut self, cpu: &mut Cpu, thread: u16, operation: Operation) {
        match operation {
            Operation::Set(flag, value) => {
                self.store(cpu, thread, (flag.0, Bytes::byte(flag.0), value.into()));
            }
            Operation::Store(word, value, _) => {
                self.store(cpu, thread, (word.0, Bytes::word(word.0), value));
            }
            Operation::FetchAdd(word, _)
            | Operation::Swap(word, _)
            | Operation::CompareExchange(word, ..) => self.update(cpu, thread, word.0, operation),
            Operation::TestAndSet(register) => {
                self.register(cpu, thread, register, Some(Waiting::Answer));
            }
            Operation::Take(register, _) => {
                self.register(cpu, thread, register, Some(Waiting::Polls));
            }
            Operation::Clear(register) => self.register(cpu, thread, register, None),
            // By whichever address the line is named; one's own coherent memory has none.
            Operation::Flush(word) => match self.find(word.0, Bytes::word(word.0)) {
                Err(reason) => cpu.refuse(thread, Some(word.0), reason),
                Ok(_) => {
                    self.write_back(cpu, thread, self.copies.line(CACHEABLE | word.0), true);
                    cpu.done(thread, 0, self.spec.local);
                }
            },
            Operation::WriteBack { invalidate } => {
                for line in self.copies.lines() {
                    self.write_back(cpu, thread, line, invalidate);
                }
                if invalidate {
                    cpu.tell((self.me, thread), || Told::DroppedAll);
                }
                self.traffic.flush_time += self.spec.system.system_call + self.spec.write_back;
                cpu.done(thread, 0, Time::ZERO);
            }
            Operation::Read(_)
            | Operation::Wait(..)
            | Operation::WaitAll(..)
            | Operation::WaitAny(..)
            | Operation::FindAny(..)
            | Operation::Load(..) => self.look(cpu, thread),
            Operation::Interrupt(node) if node < self.space.nodes => {
                self.post(cpu, (node, 0), thread, Sends::Interrupt);
                cpu.done(thread, 0, Time::ZERO);
            }
            Operation::Interrupt(_) => cpu.refuse(thread, None, FaultReason::NoSuchNode),
            Operation::TakeInterrupt(_) => {
                self.takers.push(thread);
                cpu.waits(thread, Waiting::Spins);
                self.interrupts(cpu);
            }
            Operation::Now => cpu.tells_time(thread, Time::ZERO),
            Operation::Network => cpu.refuse(thread, None, FaultReason::Lacks(Capability::Network)),
            Operation::SetDivider(_) | Operation::SetVoltage(_) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Scaling));
            }
            // A fence: posted stores leave at once. Calls of the system do not come here.
            _ => cpu.done(thread, 0, Time::ZERO),
        }
    }

    fn abandons(&mut self, thread: u16) {
        self.takers.retain(|&taker| taker != thread);
        self.spinners.retain(|&(_, spinner)| spinner != thread);
    }

    fn happens(&mut self, _: &mut Cpu, event: NoEvent) {
        match event {}
    }

    fn arrives(&mut self, cpu: &mut Cpu, from: u32, message: Message<Sends>) {
        let Message { thread, what, .. } = message;
        let (by, node) = ((from, thread), self.me);
        let here = |offset| Place { node, offset };
        match what {
            Sends::Write(offset, bytes, value) => {
                cpu.traces("is written", by, here(offset), None);
                self.performed(cpu, from, offset, bytes.of_block());
                self.write(cpu, offset, bytes, value, by);
            }
            Sends::WriteBack(offset, mask, words) => {
                cpu.traces("is written back", by, here(offset), None);
                self.performed(cpu, from, offset, mask);
                for (at, value) in (0..).step_by(8).zip(words) {
                    let bytes = Bytes::enabled(at, (mask >> at) as u8);
                    if bytes.enables != 0 {
                        self.write(cpu, (offset & !63) + at, bytes, value, by);
                    }
                }
            }
            Sends::Read(offset, bytes) => {
                cpu.traces("is read", by, here(offset), Some(offset & !7));
                let value = bytes.pick(self.words.get(offset).0);
                self.send(cpu, from, thread, Sends::Answer(value));
            }
            Sends::Fetch(offset) => {
                cpu.traces("is fetched", by, here(offset), Some(offset));
                let line = here(offset);
                cpu.tell(by, || Told::Filled { line });
                self.send(
                    cpu,
                    from,
                    thread,
                    Sends::Line(offset, self.words.block(offset)),
                );
            }
            Sends::TestAndSet(number) => {
                cpu.traces("(register) is read", by, here(number.into()), None);
                let before = std::mem::replace(&mut self.registers[number as usize], true);
                self.send(cpu, from, thread, Sends::Answer((!before).into()));
            }
            Sends::Clear(number) => {
                cpu.performed();
                self.registers[number as usize] = false;
            }
            Sends::Interrupt => {
                cpu.performed();
                self.interrupted = true;
                self.interrupts(cpu);
            }
            Sends::Answer(value) => {
                let asked = self.asked(cpu, thread, from);
                cpu.traces("comes", (node, thread), asked, None);
                self.answered(cpu, thread, value);
            }
            Sends::Line(offset, words) => {
                let asked = Place { node: from, offset };
                cpu.traces("comes", (node, thread), asked, None);
                let line = CACHEABLE | self.space.plain(Place { node: from, offset });
                self.copies.fill(line, words);
                cpu.progress();
                for thread in self.fills.remove(&line).unwrap_or_default() {
                    self.begin(cpu, thread, cpu.thread(thread).operation);
                }
            }
        }
    }

    fn word(&self, _: &Cpu, address: u64) -> Result<(u64, u64), FaultReason> {
        let offset = self.own(address)?;
        Ok((offset, self.words.get(offset).0))
    }

    fn home(&self, _: &Cpu, address: u64) -> Option<(u32, u64)> {
        let (place, _) = self.space.place(address).ok()?;
        Some((place.node, place.offset))
    }

    fn copy(&self, _: &Cpu, _: u16, address: u64, bytes: Bytes) -> Option<u64> {
        self.copies.word(address).map(|word| bytes.pick(word))
    }

    fn dirty(&self) -> Vec<Dirty> {
        let dirty = self.copies.dirty().into_iter();
        let placed = dirty.filter_map(|(address, enables, cached)| {
            let (place, _) = self.space.place(address).ok()?;
            Some(Dirty {
                core: None,
                place,
                enables,
                cached,
            })
        });
        placed.collect()
    }

    fn at_home(&self, offset: u64, bytes: Bytes) -> AtHome {
        let kept = self.last_writes.as_deref();
        AtHome::of(self.words.get(offset), kept, offset, bytes)
    }

    fn keep_last_writes(&mut self, offsets: &[u64]) {
        self.last_writes = Some(Box::new(LastWrites::of(offsets.iter().copied())));
    }

    fn preset(&mut self, offset: u64, value: u64) {
        self.words.write(offset, Bytes::word(offset), value, None);
    }

    fn cache_traffic(&self) -> CacheTraffic {
        self.traffic
    }

    fn bytes(&self) -> usize {
        let spinners = self.spinners.capacity() * size_of::<(u64, u16)>();
        let held = self.words.heap_bytes() + self.copies.heap_bytes();
        held + spinners + self.registers.capacity()
    }
}

impl Memory {
    /// Counts a posted write of node `by_node` as performed, and tells the checker of loads.
    fn performed(&self, cpu: &mut Cpu, by_node: u32, offset: u64, bytes: u64) {
        cpu.performed();
        let node = self.me;
        let line = Place { node, offset };
        cpu.tell((node, 0), || Told::Performed {
            line,
            bytes,
            by_node,
        });
    }

    /// The place that `thread` has asked `node` for, or a register by its number.
    fn asked(&self, cpu: &Cpu, thread: u16, node: u32) -> Place {
        let register = match cpu.thread(thread).operation {
            Operation::Take(register, _) | Operation::TestAndSet(register) => Some(register),
            _ => None,
        };
        let offset = register.map_or(0, |register| register.number.into());
        let awaited = cpu.looks_at(thread);
        let place = awaited.and_then(|(address, ..)| self.space.place(address).ok());
        place.map_or(Place { node, offset }, |(place, _)| place)
    }

    /// `thread` has the answer to what it has asked another node.
    fn answered(&mut self, cpu: &mut Cpu, thread: u16, value: u64) {
        cpu.has_looked(thread);
        let operation = cpu.thread(thread).operation;
        match operation {
            Operation::Take(register, _) if value == 0 && !cpu.is_killed(thread) => {
                self.register(cpu, thread, register, Some(Waiting::Polls));
            }
            Operation::Take(..) | Operation::TestAndSet(_) => cpu.done(thread, value, Time::ZERO),
            _ if cpu.sees(thread, value, Time::ZERO) != Seen::Done => self.look(cpu, thread),
            _ => {}
        }
    }
}
