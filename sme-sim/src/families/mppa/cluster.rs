//! A node: its cores' caches, its memory, its network interface, and how operations begin.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Capability, Register};

use super::interface::{Interfaces, Sends};
use super::links::Links;
use super::send::Push;
use super::space::{MppaSpace, REGISTERS};
use super::spec::MppaSpec;
use super::spin::Waiter;
use super::store::Store;
use crate::machine::node::{Hardware, Message, Processor, Waiting};
use crate::observe::last_writes::LastWrites;
use crate::observe::survey::AtHome;
use crate::observe::traffic::CacheTraffic;
use crate::parts::address::FaultReason;
use crate::parts::cache::Cache;
use crate::parts::coherence::State;
use crate::parts::contract::{Near, NetworkCall, Operation};
use crate::parts::line::Bytes;
use crate::time::Time;

pub(super) type Cpu = Processor<Cluster>;

/// The networks, which all nodes share.
#[derive(Debug)]
pub(super) struct Networks {
    pub data: Mutex<Links>,
    pub control: Mutex<Links>,
}

/// A compute cluster or an I/O subsystem.
pub(super) struct Cluster {
    pub(super) me: u32,
    pub(super) spec: Arc<MppaSpec>,
    pub(super) space: MppaSpace,
    pub(super) networks: Arc<Networks>,
    pub(super) store: Store,
    /// Of each core.
    caches: Vec<Cache>,
    registers: Vec<bool>,
    /// Threads that want a register, in the order in which they came.
    takers: Vec<(u32, u16)>,
    /// Threads that wait for flags in memory.
    pub(super) waiters: Vec<Waiter>,
    pub(super) interfaces: Interfaces,
    /// Transfers that threads push, by thread.
    pub(super) pushes: Vec<Option<Push>>,
    last_writes: Option<Box<LastWrites>>,
    pub(super) traffic: CacheTraffic,
}

/// A later event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Later {
    /// The next packet of a thread's push is complete.
    Pushes(u16),
    /// The next packet of a DMA channel has been read.
    Reads(u16),
    /// The last packet of a channel has left.
    Sent(u16),
}

impl Cluster {
    pub(super) fn new(
        me: u32,
        space: MppaSpace,
        spec: Arc<MppaSpec>,
        networks: Arc<Networks>,
    ) -> Self {
        let serving = match spec.layout.side(me) {
            None => spec.memory.0,
            Some(_) => spec.memory.1,
        };
        let interfaces = spec.layout.interfaces(me);
        Self {
            me,
            space,
            networks,
            store: Store::new(serving),
            caches: vec![Cache::new(spec.cache); spec.cores as usize],
            registers: vec![false; REGISTERS as usize],
            takers: Vec::new(),
            waiters: Vec::new(),
            interfaces: Interfaces::new(interfaces, &spec.data),
            pushes: Vec::new(),
            last_writes: None,
            traffic: CacheTraffic::default(),
            spec,
        }
    }

    /// The offset in memory of the bytes at `address`, and whether they are reached through the
    /// cache.
    pub(super) fn find(&self, address: u64, bytes: u64) -> Result<(u64, bool), FaultReason> {
        let found = self.space.own(self.me, address)?;
        let end = found.0.checked_add(bytes);
        match end {
            _ if bytes >= 8 && !found.0.is_multiple_of(8) => Err(FaultReason::Misaligned),
            Some(end) if end <= self.store.serving.bytes => Ok(found),
            _ => Err(FaultReason::Unmapped),
        }
    }

    fn cache(&mut self, cpu: &Cpu, thread: u16) -> &mut Cache {
        let core = usize::from(cpu.core_of(thread)) % self.caches.len();
        &mut self.caches[core]
    }

    /// A core loads the word at `offset` from `at` on; its value, and when it is there.
    pub(super) fn loads(
        &mut self,
        cpu: &Cpu,
        thread: u16,
        (offset, is_cached): (u64, bool),
        at: Time,
    ) -> (u64, Time) {
        if !is_cached {
            return (
                self.store.words.get(offset).0,
                self.store.serves(cpu.now, at, offset & !7, 1),
            );
        }
        let line = self.spec.line.number(offset);
        let word = u32::from(Bytes::word(offset & !7).word);
        let hit = self.spec.hit;
        if let Some((value, _)) = self.cache(cpu, thread).load(line, word) {
            self.traffic.hits += 1;
            return (value, at + hit);
        }
        self.traffic.fills += 1;
        let start = self.spec.line.start(offset);
        let words = u64::from(self.spec.line.words());
        let there = self.store.serves(cpu.now, at, start, words);
        self.fills(cpu, thread, offset);
        (self.store.words.get(offset).0, there)
    }

    /// The cache of the thread's core takes in the line at `offset`, as memory has it.
    fn fills(&mut self, cpu: &Cpu, thread: u16, offset: u64) {
        let line = self.spec.line.number(offset);
        let block = self.store.words.block(offset);
        // Stores go through to memory: nothing is ever written back.
        self.cache(cpu, thread)
            .insert(line, State::Exclusive, block, 0);
    }

    /// A core stores: into its copy of the line, if it has one, and through to memory.
    fn store(&mut self, cpu: &mut Cpu, thread: u16, address: u64, (bytes, value): (Bytes, u64)) {
        let long = if bytes.is_whole_word() { 8 } else { 1 };
        match self.find(address, long) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok((offset, _)) => {
                self.updates_copy(cpu, thread, offset, (bytes, value));
                self.write(cpu, offset, (bytes, value), (self.me, thread));
                let there = self.store.serves(cpu.now, cpu.now, offset & !7, 1);
                let busy = there - self.store.serving.access;
                cpu.progress();
                cpu.done(thread, 0, busy.since(cpu.now));
            }
        }
    }

    fn updates_copy(&mut self, cpu: &Cpu, thread: u16, offset: u64, (bytes, value): (Bytes, u64)) {
        let line = self.spec.line.number(offset);
        let cache = self.cache(cpu, thread);
        cache.store(line, bytes.word.into(), bytes.enables, value);
        cache.clean(line);
    }

    /// Writes bytes of the word at `offset` of memory, past all caches.
    pub(super) fn write(
        &mut self,
        cpu: &mut Cpu,
        offset: u64,
        (bytes, value): (Bytes, u64),
        by: (u32, u16),
    ) {
        self.store.write(offset, bytes, value, by);
        if let Some(last_writes) = &mut self.last_writes {
            last_writes.wrote(offset, bytes, (cpu.now, by));
        }
        cpu.wrote(offset & !7);
        self.was_written(cpu, offset & !7);
    }

    /// Data of the program that lie in memory already, in next to no time.
    fn lies(&mut self, cpu: &mut Cpu, thread: u16, address: u64, count: u32) {
        match self.find(address, 8 * u64::from(count)) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok((offset, _)) => {
                let block = std::mem::take(cpu.block(thread));
                for (offset, &value) in (offset..).step_by(8).zip(&block) {
                    let word = (Bytes::word(offset), value);
                    self.updates_copy(cpu, thread, offset, word);
                    self.write(cpu, offset, word, (self.me, thread));
                }
                *cpu.block(thread) = block;
                cpu.answers(thread, 0);
            }
        }
    }

    /// The same as the program would load them: what its core's cache holds, and it takes in what
    /// it does not.
    fn sees_block(&mut self, cpu: &mut Cpu, thread: u16, address: u64, count: u32) {
        match self.find(address, 8 * u64::from(count)) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok((offset, is_cached)) => {
                let mut block = std::mem::take(cpu.block(thread));
                block.clear();
                for offset in (offset..).step_by(8).take(count as usize) {
                    let line = self.spec.line.number(offset);
                    let word = Bytes::word(offset).word.into();
                    let home = self.store.words.get(offset).0;
                    let copy = match is_cached {
                        true => self.cache(cpu, thread).load(line, word),
                        false => None,
                    };
                    if is_cached && copy.is_none() {
                        self.fills(cpu, thread, offset);
                    }
                    block.push(copy.map_or(home, |(value, _)| value));
                }
                *cpu.block(thread) = block;
                cpu.answers(thread, 0);
            }
        }
    }

    /// A loop that copies a block between memory and registers, or within memory.
    fn copies(&mut self, cpu: &mut Cpu, thread: u16, (address, count): (u64, u32), gets: bool) {
        let (offset, is_cached) = match self.find(address, 8 * u64::from(count)) {
            Err(reason) => return cpu.refuse(thread, Some(address), reason),
            Ok(found) => found,
        };
        let mut at = cpu.now;
        let mut block = std::mem::take(cpu.block(thread));
        if gets {
            block.clear();
            block.resize(count as usize, 0);
        }
        for (offset, value) in (offset..).step_by(8).zip(block.iter_mut()) {
            if gets {
                (*value, at) = self.loads(cpu, thread, (offset, is_cached), at);
            } else {
                let word = (Bytes::word(offset), *value);
                self.updates_copy(cpu, thread, offset, word);
                self.write(cpu, offset, word, (self.me, thread));
            }
            at += self.spec.copy;
        }
        *cpu.block(thread) = block;
        cpu.done(thread, 0, at.since(cpu.now));
    }

    /// A loop that copies within memory, by addresses from 0 in it.
    fn copies_own(&mut self, cpu: &mut Cpu, thread: u16, (from, to): (Near, Near), count: u32) {
        let (Some(from), Some(to)) = (from.own(), to.own()) else {
            return cpu.done(thread, 0, Time::ZERO);
        };
        let end = |at: u64| at.checked_add(8 * u64::from(count));
        let room = Some(self.store.serving.bytes);
        if end(from.0) > room || end(to.0) > room || end(from.0).is_none() || end(to.0).is_none() {
            return cpu.refuse(thread, Some(from.0.max(to.0)), FaultReason::Unmapped);
        }
        let mut at = cpu.now;
        for word in 0..u64::from(count) {
            let (value, there) = self.loads(cpu, thread, (from.0 + 8 * word, true), at);
            let offset = to.0 + 8 * word;
            let word = (Bytes::word(offset), value);
            self.updates_copy(cpu, thread, offset, word);
            self.write(cpu, offset, word, (self.me, thread));
            at = there + self.spec.copy;
        }
        cpu.done(thread, 0, at.since(cpu.now));
    }

    fn drops_line(&mut self, cpu: &mut Cpu, thread: u16, address: u64) {
        match self.find(address, 1) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok((offset, _)) => {
                let line = self.spec.line.number(offset);
                self.cache(cpu, thread).remove(line);
                cpu.done(thread, 0, self.spec.drops.0);
            }
        }
    }

    /// An instruction that loads a word and clears it, as a register that reading sets.
    fn register(&mut self, cpu: &mut Cpu, thread: u16, Register { node, number }: Register) {
        if node != self.me {
            return cpu.refuse(thread, None, FaultReason::Foreign);
        }
        let access = self.store.serving.access;
        let Some(is_taken) = self.registers.get_mut(number as usize) else {
            return cpu.refuse(thread, None, FaultReason::NoSuchRegister);
        };
        match cpu.thread(thread).operation {
            Operation::Clear(_) => {
                let next = self.takers.iter().position(|&(wanted, _)| wanted == number);
                *is_taken = next.is_some();
                cpu.progress();
                cpu.done(thread, 0, Time::ZERO);
                if let Some(next) = next {
                    let (_, taker) = self.takers.remove(next);
                    cpu.done(taker, 0, access);
                }
            }
            Operation::Take(..) if *is_taken => {
                self.takers.push((number, thread));
                cpu.waits(thread, Waiting::Watches);
            }
            _ => {
                let was_taken = std::mem::replace(is_taken, true);
                cpu.done(thread, (!was_taken).into(), access);
            }
        }
    }

    fn asks_network(&mut self, cpu: &mut Cpu, thread: u16) {
        let Some(call) = cpu.take_network_call(thread) else {
            return cpu.done(thread, 0, Time::ZERO);
        };
        let asked = match call {
            NetworkCall::Open(tag, receives) => self.opens(tag, receives),
            NetworkCall::Close(tag) => self.interfaces.close(tag),
            NetworkCall::Push(transfer) => return self.begins_push(cpu, thread, transfer),
            NetworkCall::Start(channel, transfer, tells) => {
                self.begins_channel(cpu, (thread, channel), transfer, tells)
            }
            NetworkCall::Listen(tag, mailbox) => self.listens(cpu, thread, (tag, mailbox)),
            NetworkCall::Signal(nodes, tag, bits) => {
                return self.signals(cpu, thread, nodes, (tag, bits));
            }
        };
        match asked {
            // A store to a register of the interface.
            Ok(()) => cpu.done(thread, 0, Time::ZERO),
            Err(reason) => cpu.refuse(thread, None, reason),
        }
    }
}

impl Hardware for Cluster {
    type Event = Later;
    type Message = Sends;

    fn begin(&mut self, cpu: &mut Cpu, thread: u16, operation: Operation) {
        match operation {
            Operation::Set(flag, value) => {
                let byte = (Bytes::byte(flag.0), value.into());
                self.store(cpu, thread, flag.0, byte);
            }
            Operation::Store(word, value, _) => {
                self.store(cpu, thread, word.0, (Bytes::word(word.0), value));
            }
            Operation::Read(_)
            | Operation::Load(..)
            | Operation::Wait(..)
            | Operation::WaitAll(..)
            | Operation::WaitAny(..)
            | Operation::FindAny(..) => self.look(cpu, thread),
            Operation::Put(to, count, near, _) if near.is_in_place() => {
                self.lies(cpu, thread, to.0, count);
            }
            Operation::Get(from, count, near, _) if near.is_in_place() => {
                self.sees_block(cpu, thread, from.0, count);
            }
            Operation::Put(to, count, ..) => self.copies(cpu, thread, (to.0, count), false),
            Operation::Get(from, count, ..) => self.copies(cpu, thread, (from.0, count), true),
            Operation::Copy(from, to, count) => self.copies_own(cpu, thread, (from, to), count),
            Operation::TestAndSet(register)
            | Operation::Take(register, _)
            | Operation::Clear(register) => self.register(cpu, thread, register),
            Operation::Flush(word) => self.drops_line(cpu, thread, word.0),
            Operation::WriteBack { invalidate } => {
                if invalidate {
                    self.cache(cpu, thread).clear();
                }
                cpu.done(thread, 0, Time::ZERO);
            }
            Operation::Network => self.asks_network(cpu, thread),
            Operation::Now => cpu.tells_time(thread, Time::ZERO),
            Operation::FetchAdd(..) | Operation::Swap(..) | Operation::CompareExchange(..) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Atomics));
            }
            Operation::InvalidateTagged => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Tagged));
            }
            Operation::Interrupt(_) | Operation::TakeInterrupt(_) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Interrupts));
            }
            Operation::SetDivider(_) | Operation::SetVoltage(_) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Scaling));
            }
            // A fence: stores are performed as they are asked for. Calls of the system, delays and
            // marks do not come here.
            _ => cpu.done(thread, 0, Time::ZERO),
        }
    }

    fn abandons(&mut self, thread: u16) {
        self.takers.retain(|&(_, taker)| taker != thread);
        self.no_longer_spins(thread);
    }

    fn happens(&mut self, cpu: &mut Cpu, event: Later) {
        match event {
            Later::Pushes(thread) => self.pushes_packet(cpu, thread),
            Later::Reads(channel) => self.sends_packet(cpu, channel),
            Later::Sent(channel) => self.has_sent(cpu, channel),
        }
    }

    fn arrives(&mut self, cpu: &mut Cpu, from: u32, message: Message<Sends>) {
        self.arrived(cpu, (from, message.thread), message.what);
    }

    fn word(&self, _: &Cpu, _: u64) -> Result<(u64, u64), FaultReason> {
        Err(FaultReason::Lacks(Capability::Futexes))
    }

    fn home(&self, _: &Cpu, address: u64) -> Option<(u32, u64)> {
        let (offset, _) = self.find(address, 1).ok()?;
        Some((self.me, offset))
    }

    fn copy(&self, cpu: &Cpu, thread: u16, address: u64, bytes: Bytes) -> Option<u64> {
        let (offset, is_cached) = self.find(address, 1).ok()?;
        let core = usize::from(cpu.core_of(thread)) % self.caches.len();
        let view = self.caches[core].look(self.spec.line.number(offset))?;
        is_cached.then(|| bytes.pick(view.words[usize::from(bytes.word)]))
    }

    fn at_home(&self, offset: u64, bytes: Bytes) -> AtHome {
        let kept = self.last_writes.as_deref();
        AtHome::of(self.store.words.get(offset), kept, offset, bytes)
    }

    fn keep_last_writes(&mut self, offsets: &[u64]) {
        self.last_writes = Some(Box::new(LastWrites::of(offsets.iter().copied())));
    }

    fn preset(&mut self, offset: u64, value: u64) {
        let word = Bytes::word(offset);
        self.store.words.write(offset, word, value, None);
    }

    fn cache_traffic(&self) -> CacheTraffic {
        self.traffic
    }

    fn bytes(&self) -> usize {
        let caches: usize = self.caches.iter().map(Cache::bytes).sum();
        self.store.words.heap_bytes() + caches + self.interfaces.bytes()
    }
}
