//! A core: its caches, the memory that belongs to it, and how its operations begin.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sme_memory::{Capability, Register};

use super::access::Sends;
use super::contents::Contents;
use super::islands::Islands;
use super::layout::Chip;
use super::lut::{Lut, Target};
use super::mesh::Mesh;
use super::spec::SccSpec;
use super::spin::Spinner;
use super::transfer::Transfer;
use super::tune::Meter;
use crate::kernel::seldom::seldom;
use crate::machine::node::{Hardware, Message, Processor, Waiting};
use crate::observe::energy::{Change, Energy};
use crate::observe::last_writes::LastWrites;
use crate::observe::staleness::What as Told;
use crate::observe::survey::AtHome;
use crate::observe::traffic::CacheTraffic;
use crate::observe::unwritten::Dirty;
use crate::parts::address::{AddressSpace, CACHEABLE, FaultReason, TAGGED};
use crate::parts::cache::Cache;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

use super::space::SccSpace;
use super::way::At;

pub(super) type Cpu = Processor<Core>;

/// A core with half of its tile's buffer and registers, and its part of the memory behind a
/// controller.
pub(super) struct Core {
    pub(super) me: u32,
    pub(super) tile: u32,
    pub(super) spec: Arc<SccSpec>,
    pub(super) space: SccSpace,
    pub(super) mesh: Arc<Mutex<Mesh>>,
    pub(super) islands: Arc<Mutex<Islands>>,
    /// Whether any clock of the chip has changed.
    pub(super) tuned: Arc<AtomicBool>,
    pub(super) meter: Meter,
    /// The changes of its clock and voltage.
    pub(super) changes: Vec<Change>,
    pub(super) lut: Lut,
    /// By offset in its own numbering: its buffer, its parts of memory.
    pub(super) words: Contents,
    /// Whether its test-and-set register is taken.
    pub(super) taken: bool,
    /// Lines that are cached as usual, in both levels.
    pub(super) regular: Cache,
    /// Tagged lines, in the first level.
    pub(super) tagged: Cache,
    pub(super) gathered: Option<Gathered>,
    pub(super) spinners: Vec<Spinner>,
    pub(super) interrupted: bool,
    takers: Vec<u16>,
    /// Copies of blocks that are under way, by thread.
    pub(super) transfers: Vec<Transfer>,
    last_writes: Option<Box<LastWrites>>,
    pub(super) traffic: CacheTraffic,
}

/// The things that all cores of a chip share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) mesh: Arc<Mutex<Mesh>>,
    pub(super) islands: Arc<Mutex<Islands>>,
    /// Whether any clock has changed.
    pub(super) tuned: Arc<AtomicBool>,
}

/// The content of the write-combine buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    /// The number of the line.
    pub(super) line: u64,
    /// The bytes of its block that are gathered, a bit each.
    pub(super) mask: u64,
    pub(super) words: [u64; 8],
}

/// A later event of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Later {
    /// A thread reads a flag that has been written while it spun.
    Samples(u16),
    /// A thread goes on with copying a block.
    Moves(u16),
    /// A command of that core and its thread to the clock of the tile acts.
    Retunes(u32, u16),
    /// The same of one to the voltage of that island.
    Regulates(u32, u16, u32),
}

/// The mapping of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mapped {
    Uncached,
    Cached,
    Tagged,
}

/// The mapping and the core address that are in `address`.
pub(super) fn mapped(address: u64) -> (Mapped, u64) {
    let plain = address & !(CACHEABLE | TAGGED);
    match address - plain {
        0 => (Mapped::Uncached, plain),
        TAGGED => (Mapped::Tagged, plain),
        _ => (Mapped::Cached, plain),
    }
}

impl Core {
    pub(super) fn new(
        me: u32,
        space: SccSpace,
        spec: Arc<SccSpec>,
        Shared {
            mesh,
            islands,
            tuned,
        }: Shared,
    ) -> Self {
        Self {
            me,
            tile: Chip::tile_of(me),
            lut: Lut::new(&space.chip, me),
            words: Contents::new(space.chip.buffer_bytes),
            space,
            mesh,
            islands,
            tuned,
            meter: Meter::new(&spec),
            changes: Vec::new(),
            taken: false,
            regular: Cache::new(spec.caches),
            tagged: Cache::new(spec.tagged),
            gathered: None,
            spinners: Vec::new(),
            interrupted: false,
            takers: Vec::new(),
            transfers: Vec::new(),
            last_writes: None,
            traffic: CacheTraffic::default(),
            spec,
        }
    }

    /// The destination of the bytes at `address`.
    pub(super) fn target(&self, address: u64, bytes: Bytes) -> Result<Target, FaultReason> {
        if bytes.is_whole_word() && !address.is_multiple_of(8) {
            return Err(FaultReason::Misaligned);
        }
        self.lut.target(&self.space.chip, mapped(address).1)
    }

    /// Writes `bytes` of the word at `offset` of its own memory.
    pub(super) fn write(
        &mut self,
        cpu: &mut Cpu,
        offset: u64,
        (bytes, value): (Bytes, u64),
        by: (u32, u16),
    ) {
        self.words.write(offset, bytes, value, Some(by));
        if let Some(last_writes) = &mut self.last_writes {
            seldom(|| last_writes.wrote(offset, bytes, (cpu.now, by)));
        }
        cpu.wrote(offset & !7);
        self.was_written(cpu, offset & !7, bytes.enables);
    }

    /// Reads or clears the test-and-set register of another core, or its own.
    pub(super) fn register(&mut self, cpu: &mut Cpu, thread: u16, register: Register) {
        let Register { node, number } = register;
        if node >= self.space.chip.cores() || number > 0 {
            return cpu.refuse(thread, None, FaultReason::NoSuchRegister);
        }
        let operation = cpu.thread(thread).operation;
        let what = match operation {
            Operation::Clear(_) => {
                cpu.issues(thread);
                Sends::Clear
            }
            _ => Sends::TestAndSet,
        };
        let waiting = match operation {
            Operation::Take(..) => Waiting::Polls,
            _ => Waiting::Answer,
        };
        cpu.waits(thread, waiting);
        self.ask(cpu, thread, At::registers(node), what);
    }

    /// Gives the pending interrupt, if there is one, to the thread that has waited for it longest.
    pub(super) fn interrupts(&mut self, cpu: &mut Cpu) {
        if self.interrupted && !self.takers.is_empty() {
            self.interrupted = false;
            let thread = self.takers.remove(0);
            cpu.progress();
            cpu.done(thread, 0, self.spec.interrupt);
        }
    }

    /// Drops all tagged copies.
    fn invalidate_tagged(&mut self, cpu: &mut Cpu, thread: u16) {
        if cpu.is_logged() {
            let lines: Vec<u64> = self.tagged.lines().collect();
            for line in lines {
                self.tells_of_line(cpu, line, |line| Told::Dropped { line });
            }
        }
        self.tagged.clear();
        self.copies_changed(cpu);
        cpu.done(thread, 0, self.spec.invalidate);
    }

    /// Tells the checker of loads something about a line, where a place is there.
    pub(super) fn tells_of_line(
        &self,
        cpu: &mut Cpu,
        line: u64,
        what: impl FnOnce(sme_memory::Place) -> Told,
    ) {
        if !cpu.is_logged() {
            return;
        }
        let address = self.spec.line.address(line);
        if let Some((place, _)) = self.space.shared(self.me, address) {
            cpu.tell((self.me, 0), || what(place));
        }
    }
}

impl Hardware for Core {
    type Event = Later;
    type Message = Sends;

    fn begin(&mut self, cpu: &mut Cpu, thread: u16, operation: Operation) {
        match operation {
            Operation::Set(flag, value) => {
                self.store(cpu, thread, flag.0, (Bytes::byte(flag.0), value.into()));
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
            Operation::Put(..) | Operation::Get(..) | Operation::Copy(..) => {
                self.begin_transfer(cpu, thread);
            }
            Operation::TestAndSet(register)
            | Operation::Take(register, _)
            | Operation::Clear(register) => self.register(cpu, thread, register),
            Operation::Fence => match self.gathered {
                Some(_) => self.drain(cpu, thread),
                None => cpu.done(thread, 0, Time::ZERO),
            },
            Operation::InvalidateTagged => self.invalidate_tagged(cpu, thread),
            Operation::Flush(word) => self.flush(cpu, thread, word.0),
            Operation::WriteBack { .. } => self.write_all_back(cpu, thread),
            Operation::Interrupt(node) if node < self.space.chip.cores() => {
                cpu.issues(thread);
                cpu.waits(thread, Waiting::Answer);
                self.ask(cpu, thread, At::registers(node), Sends::Interrupt);
            }
            Operation::Interrupt(_) => cpu.refuse(thread, None, FaultReason::NoSuchNode),
            Operation::TakeInterrupt(_) => {
                self.takers.push(thread);
                cpu.waits(thread, Waiting::Watches);
                self.interrupts(cpu);
            }
            Operation::FetchAdd(..) | Operation::Swap(..) | Operation::CompareExchange(..) => {
                cpu.refuse(thread, None, FaultReason::Lacks(Capability::Atomics));
            }
            Operation::Now => cpu.tells_time(thread, self.spec.timestamp),
            Operation::SetDivider(divider) => self.commands_clock(cpu, thread, divider),
            Operation::SetVoltage(millivolts) => self.commands_voltage(cpu, thread, millivolts),
            Operation::Network => cpu.refuse(thread, None, FaultReason::Lacks(Capability::Network)),
            // Calls of the system, delays and marks do not come here.
            _ => cpu.done(thread, 0, Time::ZERO),
        }
    }

    fn abandons(&mut self, thread: u16) {
        self.takers.retain(|&taker| taker != thread);
        self.no_longer_spins(thread);
    }

    fn happens(&mut self, cpu: &mut Cpu, event: Later) {
        match event {
            Later::Samples(thread) => self.samples(cpu, thread),
            Later::Moves(thread) => {
                cpu.goes_on(thread);
                self.transfer(cpu, thread);
            }
            Later::Retunes(core, thread) => self.retunes(cpu, (core, thread)),
            Later::Regulates(core, thread, island) => self.regulates(cpu, (core, thread), island),
        }
    }

    fn arrives(&mut self, cpu: &mut Cpu, from: u32, message: Message<Sends>) {
        self.arrived(cpu, from, (message.thread, message.what));
    }

    fn word(&self, _: &Cpu, _: u64) -> Result<(u64, u64), FaultReason> {
        Err(FaultReason::Lacks(Capability::Futexes))
    }

    fn home(&self, _: &Cpu, address: u64) -> Option<(u32, u64)> {
        match self.target(address, Bytes::byte(address)).ok()? {
            Target::Buffer { node, offset } | Target::Memory { node, offset } => {
                Some((node, offset))
            }
            Target::Registers { .. } => None,
        }
    }

    fn copy(&self, _: &Cpu, _: u16, address: u64, bytes: Bytes) -> Option<u64> {
        let (mapped, plain) = mapped(address);
        let cache = match mapped {
            Mapped::Uncached => return None,
            Mapped::Cached => &self.regular,
            Mapped::Tagged => &self.tagged,
        };
        let view = cache.look(self.spec.line.number(plain))?;
        Some(bytes.pick(view.words[usize::from(bytes.word)]))
    }

    fn dirty(&self) -> Vec<Dirty> {
        let mut dirty = Vec::new();
        let gathered = self.gathered.iter().map(|g| (g.line, g.mask, g.words));
        let held = self
            .regular
            .held()
            .map(|view| (view.line, view.dirty, *view.words));
        for (line, mask, words) in held.chain(gathered) {
            for word in self.spec.line.words_of(line) {
                let enables = (mask >> (8 * word)) as u8;
                let address = self.spec.line.word_address(line, word);
                let place = self.space.shared(self.me, address).map(|(place, _)| place);
                if let Some(place) = place.filter(|_| enables != 0) {
                    dirty.push(Dirty {
                        core: None,
                        place,
                        enables,
                        cached: words[usize::from(word)],
                    });
                }
            }
        }
        dirty
    }

    fn at_home(&self, offset: u64, bytes: Bytes) -> AtHome {
        AtHome::of(
            self.words.get(offset),
            self.last_writes.as_deref(),
            offset,
            bytes,
        )
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

    fn energy(&self, cpu: &Cpu, until: Time) -> Option<Energy> {
        Some(self.taken(cpu, until))
    }

    fn bytes(&self) -> usize {
        let spinners = self.spinners.capacity() * size_of::<Spinner>();
        let transfers = self.transfers.capacity() * size_of::<Transfer>();
        let caches = self.regular.bytes() + self.tagged.bytes();
        self.words.heap_bytes() + spinners + transfers + caches + super::lut::BYTES
    }
}
