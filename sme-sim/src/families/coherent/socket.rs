//! A socket: how the operations of its threads begin.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sme_memory::{Capability, Register};

use super::access::Wants;
use super::chip::{Chip, REGISTERS};
use super::pass::Passage;
use super::space::CoherentSpace;
use super::spec::CoherentSpec;
use crate::machine::node::{Hardware, Message, Processor, Waiting};
use crate::observe::last_writes::LastWrites;
use crate::observe::survey::AtHome;
use crate::parts::address::{AddressSpace, FaultReason};
use crate::parts::coherence::Event;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

pub(super) type Cpu = Processor<Socket>;

/// A socket: its threads' operations under way; its caches and its memory are in the chip.
pub(super) struct Socket {
    pub(super) me: u32,
    pub(super) space: CoherentSpace,
    pub(super) spec: Arc<CoherentSpec>,
    pub(super) chip: Arc<Mutex<Chip>>,
    /// Passes that are under way, by thread.
    pub(super) passes: Vec<Passage>,
    /// The lines that a thread spins on, by thread.
    pub(super) spins: Vec<Vec<u64>>,
}

/// From one socket to a thread of another, or of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Sends {
    /// A line that it spins on is another's.
    Taken,
}

/// A later event of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Later {
    /// A thread goes on with a pass.
    Passes(u16),
}

impl Socket {
    pub(super) fn new(
        me: u32,
        space: CoherentSpace,
        spec: Arc<CoherentSpec>,
        chip: Arc<Mutex<Chip>>,
    ) -> Self {
        Self {
            me,
            space,
            spec,
            chip,
            passes: Vec::new(),
            spins: Vec::new(),
        }
    }

    /// The number of a thread's core over the whole machine.
    pub(super) fn core(&self, cpu: &Cpu, thread: u16) -> u32 {
        self.me * self.spec.cores + u32::from(cpu.core_of(thread))
    }

    /// The line of `bytes` at `address`.
    pub(super) fn line(&self, address: u64, bytes: Bytes) -> Result<u64, FaultReason> {
        if bytes.is_whole_word() && !address.is_multiple_of(8) {
            return Err(FaultReason::Misaligned);
        }
        if address & REGISTERS == 0 {
            self.space.place(address)?;
        }
        Ok(self.space.line().number(address))
    }

    /// Writes `bytes` of the word at `address`; that can be seen from `at` on.
    fn write(
        &self,
        cpu: &mut Cpu,
        thread: u16,
        (address, bytes, value): (u64, Bytes, u64),
        at: Time,
    ) {
        let line = self.space.line().number(address);
        let mut chip = self.chip.lock();
        let spot = chip.lines.spot(line);
        let record = chip.lines.line(spot);
        let word = &mut record.words[usize::from(bytes.word)];
        *word = bytes.merge(*word, value);
        record.writer = Some((self.me, thread));
        let woken = chip.watchers.remove(&line);
        if let Ok(place) = self.space.place(address)
            && let Some(last_writes) = &mut chip.last_writes[place.node as usize]
        {
            last_writes.wrote(place.offset, bytes, (cpu.now, (self.me, thread)));
        }
        drop(chip);
        cpu.wrote(address & !7);
        cpu.progress();
        for (node, spinner) in woken.unwrap_or_default() {
            cpu.send(node, at, spinner, Sends::Taken);
        }
    }

    /// A store, which waits in the core's buffers for its line; the thread goes on.
    fn store(&mut self, cpu: &mut Cpu, thread: u16, (address, bytes, value): (u64, Bytes, u64)) {
        let line = match self.line(address, bytes) {
            Ok(line) => line,
            Err(reason) => return cpu.refuse(thread, Some(address), reason),
        };
        let wants = Wants::word(line, Event::Store);
        let core = self.core(cpu, thread);
        let mut chip = self.chip.lock();
        let made = chip.access(core, wants, cpu.now);
        let stored = &mut chip.cores[core as usize].stored;
        // Stores are performed in their order.
        *stored = made.there.max(made.next).max(*stored);
        let seen = *stored;
        drop(chip);
        self.write(cpu, thread, (address, bytes, value), seen);
        cpu.done(thread, 0, made.next.since(cpu.now));
    }

    /// An atomic operation: it waits for all earlier stores, and nothing of the thread goes on
    /// beside it. The word before, and how long it takes.
    fn updates(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        address: u64,
        update: impl FnOnce(u64) -> u64,
    ) -> Result<(u64, Time), FaultReason> {
        let bytes = Bytes::word(address);
        let line = self.line(address, bytes)?;
        let wants = Wants::word(line, Event::Store);
        let core = self.core(cpu, thread);
        let mut chip = self.chip.lock();
        let begin = cpu.now.max(chip.cores[core as usize].stored);
        let made = chip.access(core, wants, begin);
        let end = made.there.max(made.next) + self.spec.atomic;
        let spot = chip.lines.spot(line);
        let record = chip.lines.line(spot);
        record.ready = record.ready.max(end);
        let before = record.words[usize::from(bytes.word)];
        drop(chip);
        let after = update(before);
        // Threads that spin see no other value, and nothing has got further.
        if after != before {
            self.write(cpu, thread, (address, bytes, after), end);
        }
        Ok((before, end.since(cpu.now)))
    }

    fn update(&mut self, cpu: &mut Cpu, thread: u16, address: u64, operation: Operation) {
        match self.updates(cpu, thread, address, |before| operation.updates(before)) {
            Ok((before, takes)) => cpu.done(thread, before, takes),
            Err(reason) => cpu.refuse(thread, Some(address), reason),
        }
    }

    /// The word that stands for `register`.
    fn register_word(&self, register: Register) -> Result<u64, FaultReason> {
        let Register { node, number } = register;
        if node >= self.spec.sockets || number >= self.spec.registers {
            return Err(FaultReason::NoSuchRegister);
        }
        let line = u64::from(node) * self.spec.shared_bytes
            + self.space.line().bytes() * u64::from(number);
        Ok(REGISTERS | line)
    }

    /// Tests and sets, takes or clears a register.
    fn register(&mut self, cpu: &mut Cpu, thread: u16, register: Register) {
        let operation = cpu.thread(thread).operation;
        let word = match self.register_word(register) {
            Ok(word) => word,
            Err(reason) => return cpu.refuse(thread, None, reason),
        };
        if let Operation::Clear(_) = operation {
            return self.store(cpu, thread, (word, Bytes::word(word), 0));
        }
        match self.updates(cpu, thread, word, |_| 1) {
            Err(reason) => cpu.refuse(thread, None, reason),
            Ok((1, _)) if matches!(operation, Operation::Take(..)) && !cpu.is_killed(thread) => {
                self.spins_on(cpu, thread, [self.space.line().number(word)]);
            }
            Ok((before, takes)) => cpu.done(thread, (before == 0).into(), takes),
        }
    }

    /// Every store of the thread is performed.
    fn fence(&self, cpu: &mut Cpu, thread: u16) {
        let core = self.core(cpu, thread) as usize;
        let stored = self.chip.lock().cores[core].stored;
        cpu.done(thread, 0, stored.since(cpu.now));
    }

    fn flush(&mut self, cpu: &mut Cpu, thread: u16, address: u64) {
        let line = match self.line(address, Bytes::byte(address)) {
            Ok(line) => line,
            Err(reason) => return cpu.refuse(thread, Some(address), reason),
        };
        let core = self.core(cpu, thread);
        let mut chip = self.chip.lock();
        let at = chip.place(core);
        let begin = cpu.now.max(chip.cores[core as usize].stored);
        let end = chip.flushes(at, line, begin);
        drop(chip);
        cpu.done(thread, 0, end.since(cpu.now));
    }

    /// All lines that caches of the socket hold go to memory. No instruction of these machines
    /// writes them back and keeps them.
    fn write_back(&mut self, cpu: &mut Cpu, thread: u16) {
        let core = self.core(cpu, thread);
        let mut chip = self.chip.lock();
        let at = chip.place(core);
        let lines = chip.lines_of(at.socket);
        let mut end = cpu.now.max(chip.cores[core as usize].stored);
        for line in lines {
            end = end.max(chip.drops_everywhere(at, line, cpu.now));
        }
        drop(chip);
        cpu.done(thread, 0, end.since(cpu.now));
    }
}

impl Hardware for Socket {
    type Event = Later;
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
            Operation::TestAndSet(register)
            | Operation::Take(register, _)
            | Operation::Clear(register) => self.register(cpu, thread, register),
            Operation::Read(_)
            | Operation::Load(..)
            | Operation::Wait(..)
            | Operation::WaitAll(..)
            | Operation::WaitAny(..)
            | Operation::FindAny(..) => self.look(cpu, thread),
            Operation::Put(..)
            | Operation::Get(..)
            | Operation::Copy(..)
            | Operation::Sum(..)
            | Operation::Fill(..)
            | Operation::FillPast(..)
            | Operation::CopyWords(..)
            | Operation::CopyPast(..)
            | Operation::FlushWords(..) => {
                self.begins_pass(cpu, thread);
            }
            Operation::Fence => self.fence(cpu, thread),
            Operation::Flush(word) => self.flush(cpu, thread, word.0),
            Operation::WriteBack { .. } => self.write_back(cpu, thread),
            Operation::Now => cpu.tells_time(thread, Time::ZERO),
            Operation::Network => cpu.refuse(thread, None, FaultReason::Lacks(Capability::Network)),
            Operation::InvalidateTagged => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Tagged));
            }
            Operation::Interrupt(_) | Operation::TakeInterrupt(_) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Interrupts));
            }
            Operation::SetDivider(_) | Operation::SetVoltage(_) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Scaling));
            }
            // Calls of the system, delays and marks do not come here.
            _ => cpu.done(thread, 0, Time::ZERO),
        }
    }

    fn abandons(&mut self, thread: u16) {
        self.no_longer_spins(thread);
    }

    fn happens(&mut self, cpu: &mut Cpu, event: Later) {
        match event {
            Later::Passes(thread) => {
                cpu.goes_on(thread);
                self.passes_on(cpu, thread);
            }
        }
    }

    fn arrives(&mut self, cpu: &mut Cpu, _: u32, message: Message<Sends>) {
        let Message { thread, what, .. } = message;
        match what {
            Sends::Taken if cpu.thread(thread).waiting == Waiting::Spins => {
                self.no_longer_spins(thread);
                match cpu.thread(thread).operation {
                    Operation::Take(register, _) => self.register(cpu, thread, register),
                    _ => self.look(cpu, thread),
                }
            }
            Sends::Taken => {}
        }
    }

    /// Threads sleep on words of their own socket's memory: each has an operating system of its
    /// own.
    fn word(&self, _: &Cpu, address: u64) -> Result<(u64, u64), FaultReason> {
        let place = self.space.place(address)?;
        if place.node != self.me {
            return Err(FaultReason::SleepsElsewhere);
        }
        if !address.is_multiple_of(8) {
            return Err(FaultReason::Misaligned);
        }
        Ok((
            place.offset,
            self.at_home(place.offset, Bytes::word(address)).newest,
        ))
    }

    fn home(&self, _: &Cpu, address: u64) -> Option<(u32, u64)> {
        let place = self.space.place(address).ok()?;
        Some((place.node, place.offset))
    }

    /// Coherent copies hold what a load would bring.
    fn copy(&self, _: &Cpu, _: u16, _: u64, _: Bytes) -> Option<u64> {
        None
    }

    fn at_home(&self, offset: u64, bytes: Bytes) -> AtHome {
        let address = u64::from(self.me) * self.spec.shared_bytes + offset;
        let chip = self.chip.lock();
        let record = chip.lines.look(self.space.line().number(address));
        let word = record.map_or((0, None), |record| {
            (record.words[usize::from(bytes.word)], record.writer)
        });
        let kept = chip.last_writes[self.me as usize].as_deref();
        AtHome::of(word, kept, offset, bytes)
    }

    fn keep_last_writes(&mut self, offsets: &[u64]) {
        let kept = LastWrites::of(offsets.iter().copied());
        self.chip.lock().last_writes[self.me as usize] = Some(Box::new(kept));
    }

    fn preset(&mut self, offset: u64, value: u64) {
        let address = u64::from(self.me) * self.spec.shared_bytes + offset;
        let mut chip = self.chip.lock();
        let spot = chip.lines.spot(self.space.line().number(address));
        chip.lines.line(spot).words[usize::from(Bytes::word(address).word)] = value;
    }

    fn bytes(&self) -> usize {
        // One of the sockets counts what they share.
        let shared = if self.me == 0 {
            self.chip.lock().bytes()
        } else {
            0
        };
        shared + self.passes.capacity() * size_of::<Passage>()
    }
}
