//! Accesses that leave the core: each goes to where its target is, is served there, and comes back.
//! A core has one at a time, stores included; only lines that a cache had to give up leave without
//! an answer.

use serde::{Deserialize, Serialize};
use sme_memory::Place;

use super::core::{Core, Cpu, Gathered, Mapped};
use super::layout::{Chip, SEGMENT};
use super::lut::Entry;
use super::mesh::Mesh;
use super::way::{At, Latency, Site};
use crate::machine::node::{Hardware, Seen, Waiting};
use crate::observe::staleness::What as Told;
use crate::parts::address::AddressSpace;
use crate::parts::cache::Held;
use crate::parts::coherence::State;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

/// A line as its core names it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) line: u64,
    pub(super) mapped: Mapped,
}

/// Some bytes of the aligned 64 around a line: a bit for each in the mask.
type Written = (u64, [u64; 8]);

/// Messages between cores. All but the last four ask for something. A line has its own place in the
/// host's memory, as messages are moved often and few have one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Sends {
    Read(At, Bytes),
    ReadLine(At, Copied),
    Write(At, Bytes, u64),
    WriteLine(At, Box<Written>),
    /// The content of the write-combine buffer.
    Drain(At, Box<Written>),
    /// A line that had to make room: nothing waits for it.
    GivesUp(At, Box<Written>),
    TestAndSet,
    Clear,
    Interrupt,
    ReadEntry(u8),
    WriteEntry(u8, u64),
    /// A command to the clock of the core's tile.
    Divider(u32),
    /// A command to the voltage of that island \[mV\].
    Voltage(u32, u32),
    /// The core's clock or voltage has changed.
    Changed,
    Answer(u64),
    Drained,
    Line(Copied, Box<[u64; 8]>),
}

impl Sends {
    /// Returns whether memory moves a whole line for it.
    fn is_of_line(&self) -> bool {
        match self {
            Sends::ReadLine(_, copied) => copied.mapped != Mapped::Uncached,
            Sends::Drain(..) | Sends::GivesUp(..) => true,
            _ => false,
        }
    }

    /// Bytes of data on the way there.
    fn bytes(&self, line: u64) -> u64 {
        match self {
            Sends::Write(..)
            | Sends::WriteLine(..)
            | Sends::WriteEntry(..)
            | Sends::Divider(_)
            | Sends::Voltage(..) => 4,
            Sends::Drain(..) | Sends::GivesUp(..) => line,
            _ => 0,
        }
    }
}

impl Core {
    /// Sends `what` on behalf of `thread`, which waits for the answer if there is one.
    pub(super) fn ask(&mut self, cpu: &mut Cpu, thread: u16, at: At, what: Sends) {
        self.ask_after(cpu, thread, (at, Time::ZERO), what);
    }

    /// The same, when the core has first worked for some time.
    pub(super) fn ask_after(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        (at, owed): (At, Time),
        what: Sends,
    ) {
        let of_line = what.is_of_line();
        let before = match at.times {
            0 | 1 => Time::ZERO,
            times => {
                let one = self.alone(at, of_line);
                self.spec.repeated(one, u64::from(times)) - one
            }
        };
        let out = self.latency(at, self.tile, of_line).out;
        let sets_out = cpu.now + owed + before + out;
        let flits = self.spec.flits(what.bytes(self.spec.line.bytes()));
        let way = (self.tile, self.tile_of(at));
        let arrives = self.mesh.lock().travels(sets_out, way, flits);
        if at.node != self.me {
            let line = self.spec.line.bytes();
            match what {
                Sends::Read(..) | Sends::TestAndSet | Sends::ReadEntry(_) => {
                    cpu.loads_remotely(thread, 4);
                }
                Sends::ReadLine(..) => cpu.loads_remotely(thread, line),
                _ => cpu.posts(thread, what.bytes(line)),
            }
        }
        cpu.send(at.node, arrives, thread, what);
    }

    /// Core `from` has sent `what`, on behalf of its `thread` or of one of this core's.
    pub(super) fn arrived(&mut self, cpu: &mut Cpu, from: u32, (thread, what): (u16, Sends)) {
        let (by, me) = ((from, thread), self.me);
        let here = |offset| Place { node: me, offset };
        match what {
            Sends::Read(at, bytes) => {
                cpu.traces("is read", by, here(at.offset), Some(at.offset & !7));
                let value = bytes.pick(self.words.get(at.offset).0);
                self.answers(cpu, by, (at, 4), Sends::Answer(value));
            }
            Sends::ReadLine(at, copied) => {
                cpu.traces("is fetched", by, here(at.offset), Some(at.offset));
                if copied.mapped != Mapped::Uncached && at.offset < SEGMENT {
                    cpu.tell(by, || Told::Filled {
                        line: here(at.offset),
                    });
                }
                let words = Box::new(self.words.block(at.offset));
                self.answers(
                    cpu,
                    by,
                    (at, self.spec.line.bytes()),
                    Sends::Line(copied, words),
                );
            }
            Sends::Write(at, bytes, value) => {
                cpu.traces("is written", by, here(at.offset), None);
                self.performed(cpu, from, at.offset, bytes.of_block());
                self.write(cpu, at.offset, (bytes, value), by);
                self.answers(cpu, by, (at, 0), Sends::Answer(0));
            }
            Sends::WriteLine(at, written) => {
                cpu.traces("is written", by, here(at.offset), None);
                self.write_line(cpu, by, at.offset, *written);
                self.answers(cpu, by, (at, 0), Sends::Answer(0));
            }
            Sends::Drain(at, written) => {
                cpu.traces("is written", by, here(at.offset), None);
                self.write_line(cpu, by, at.offset, *written);
                self.answers(cpu, by, (at, 0), Sends::Drained);
            }
            Sends::GivesUp(at, written) => {
                cpu.traces("is written back", by, here(at.offset), None);
                self.write_line(cpu, by, at.offset, *written);
                let busy = self.latency(at, Chip::tile_of(from), true).busy;
                self.serve(&mut self.mesh.lock(), cpu.now, at, busy);
            }
            Sends::TestAndSet => {
                cpu.traces("(register) is read", by, here(0), None);
                let was_clear = !std::mem::replace(&mut self.taken, true);
                self.answers(
                    cpu,
                    by,
                    (At::registers(me), 4),
                    Sends::Answer(was_clear.into()),
                );
            }
            Sends::Clear => {
                cpu.traces("(register) is cleared", by, here(0), None);
                self.performs(cpu, from);
                self.taken = false;
                self.answers(cpu, by, (At::registers(me), 0), Sends::Answer(0));
            }
            Sends::Interrupt => {
                cpu.traces("(core) is interrupted", by, here(0), None);
                self.performs(cpu, from);
                self.interrupted = true;
                self.interrupts(cpu);
                self.answers(cpu, by, (At::registers(me), 0), Sends::Answer(0));
            }
            Sends::ReadEntry(number) => {
                cpu.traces("(table) is read", by, here(0), None);
                let bits = self.lut.entry(number).bits();
                self.answers(cpu, by, (At::registers(me), 4), Sends::Answer(bits));
            }
            Sends::WriteEntry(number, bits) => {
                cpu.traces("(table) is written", by, here(0), None);
                self.performs(cpu, from);
                self.lut
                    .set(&self.space.chip, number, Entry::from_bits(bits));
                self.answers(cpu, by, (At::registers(me), 0), Sends::Answer(0));
            }
            Sends::Divider(divider) => {
                cpu.traces("(clock) is commanded", by, here(0), None);
                self.takes_divider(cpu, by, divider);
            }
            Sends::Voltage(island, millivolts) => {
                cpu.traces("(regulator) is commanded", by, here(0), None);
                self.takes_voltage(cpu, by, (island, millivolts));
            }
            Sends::Changed => self.has_changed(cpu),
            Sends::Answer(value) => {
                self.traces_end(cpu, "comes", thread, from);
                self.answered(cpu, thread, value);
            }
            Sends::Drained => {
                self.traces_end(cpu, "has left", thread, from);
                self.goes_on(cpu, thread);
            }
            Sends::Line(copied, words) => {
                self.traces_end(cpu, "comes", thread, from);
                self.takes_in(cpu, thread, copied, *words);
                self.goes_on(cpu, thread);
            }
        }
    }

    /// The time at which an access that comes to `at`, here, now begins to be served.
    fn serve(&self, mesh: &mut Mesh, now: Time, at: At, busy: Time) -> Time {
        match at.site {
            Site::Memory => {
                let controller = self.space.chip.controller(self.me);
                mesh.at_controller(now, controller, busy)
            }
            _ => mesh.at_port(now, self.tile, busy),
        }
    }

    /// Answers `by` with `what`, which carries so many bytes.
    pub(super) fn answers(
        &mut self,
        cpu: &mut Cpu,
        by: (u32, u16),
        (at, bytes): (At, u64),
        what: Sends,
    ) {
        let to = Chip::tile_of(by.0);
        let is_line = match what {
            Sends::Line(copied, _) => copied.mapped != Mapped::Uncached,
            Sends::Drained => true,
            _ => false,
        };
        let Latency {
            back, there, busy, ..
        } = self.latency(at, to, is_line);
        let busy = busy.times(u64::from(at.times.max(1)));
        let flits = self.spec.flits(bytes);
        let way = (self.tile_of(at), to);
        let mut mesh = self.mesh.lock();
        let begins = self.serve(&mut mesh, cpu.now, at, busy);
        let is_back = mesh.travels(begins + there, way, flits) + back;
        drop(mesh);
        cpu.send(by.0, is_back, by.1, what);
    }

    /// A write of core `from` is performed here.
    fn performs(&self, cpu: &mut Cpu, from: u32) {
        if from != self.me {
            cpu.performed();
        }
        cpu.progress();
    }

    /// The same, of these bytes of a line: the checker of loads is told.
    fn performed(&self, cpu: &mut Cpu, by_node: u32, offset: u64, bytes: u64) {
        self.performs(cpu, by_node);
        let node = self.me;
        let line = Place { node, offset };
        // Private memory is its core's business.
        if offset >= SEGMENT {
            return;
        }
        cpu.tell((node, 0), || Told::Performed {
            line,
            bytes,
            by_node,
        });
    }

    fn write_line(
        &mut self,
        cpu: &mut Cpu,
        by: (u32, u16),
        offset: u64,
        (mask, words): (u64, [u64; 8]),
    ) {
        self.performed(cpu, by.0, offset, mask);
        let block = offset & !63;
        for (at, value) in (0..64).step_by(8).zip(words) {
            let bytes = Bytes::enabled(at, (mask >> at) as u8);
            if bytes.enables != 0 {
                self.write(cpu, block + at, (bytes, value), by);
            }
        }
    }

    /// Traces the end of what `thread` has asked of core `node`.
    fn traces_end(&self, cpu: &mut Cpu, what: &'static str, thread: u16, node: u32) {
        if cpu.is_traced() {
            let place = self.asked(cpu, thread, node);
            cpu.traces(what, (self.me, thread), place, None);
        }
    }

    /// The place that `thread` has asked core `node` about.
    #[cold]
    fn asked(&self, cpu: &Cpu, thread: u16, node: u32) -> Place {
        let offset = 0;
        let address = match cpu.thread(thread).operation {
            Operation::Set(flag, _) => Some(flag.0),
            Operation::Store(word, ..) | Operation::Put(word, ..) | Operation::Get(word, ..) => {
                Some(word.0)
            }
            _ => cpu.looks_at(thread).map(|(address, ..)| address),
        };
        let shared = address.and_then(|address| self.space.shared(self.me, address));
        shared.map_or(Place { node, offset }, |(place, _)| place)
    }

    /// `thread` has the answer to what it has asked for.
    fn answered(&mut self, cpu: &mut Cpu, thread: u16, value: u64) {
        cpu.has_looked(thread);
        match cpu.thread(thread).operation {
            Operation::Take(register, _) if value == 0 && !cpu.is_killed(thread) => {
                self.register(cpu, thread, register);
            }
            Operation::Set(..)
            | Operation::Store(..)
            | Operation::TestAndSet(_)
            | Operation::Take(..)
            | Operation::Clear(_)
            | Operation::Interrupt(_)
            | Operation::SetDivider(_)
            | Operation::SetVoltage(_) => cpu.done(thread, value, Time::ZERO),
            Operation::Put(..) | Operation::Get(..) | Operation::Copy(..) => {
                self.transfer(cpu, thread);
            }
            _ => {
                if cpu.sees(thread, value, Time::ZERO) != Seen::Done {
                    self.look(cpu, thread);
                }
            }
        }
    }

    /// The way is free for the operation of `thread`: a line has come, or the write-combine buffer
    /// is empty.
    fn goes_on(&mut self, cpu: &mut Cpu, thread: u16) {
        match cpu.thread(thread).operation {
            Operation::Put(..) | Operation::Get(..) | Operation::Copy(..) => {
                self.transfer(cpu, thread);
            }
            operation => self.begin(cpu, thread, operation),
        }
    }

    /// Empties the write-combine buffer, and then goes on with the operation of `thread`.
    pub(super) fn drain(&mut self, cpu: &mut Cpu, thread: u16) {
        let Some(Gathered { line, mask, words }) = self.gathered.take() else {
            return self.goes_on(cpu, thread);
        };
        let address = self.spec.line.address(line);
        match self.at(address, Bytes::byte(address)) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok(at) => {
                self.tells_of_line(cpu, line, |line| Told::WroteBack {
                    line,
                    bytes: mask,
                    old: 0,
                });
                self.traffic.write_backs += 1;
                cpu.waits(thread, Waiting::Answer);
                let transfer = self.transfers.get_mut(usize::from(thread));
                let owed =
                    transfer.map_or(Time::ZERO, |transfer| std::mem::take(&mut transfer.owed));
                let what = Sends::Drain(at, Box::new((mask, words)));
                self.ask_after(cpu, thread, (at, owed), what);
            }
        }
    }

    /// Asks for a line that `thread` needs.
    pub(super) fn fetch(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        (address, mapped): (u64, Mapped),
        owed: Time,
    ) {
        let line = self.spec.line.number(address);
        let start = self.spec.line.address(line);
        match self.at(start, Bytes::byte(start)) {
            Err(reason) => cpu.refuse(thread, Some(address), reason),
            Ok(at) => {
                self.traffic.fills += 1;
                cpu.waits(thread, Waiting::Answer);
                let copied = Copied { line, mapped };
                self.ask_after(cpu, thread, (at, owed), Sends::ReadLine(at, copied));
            }
        }
    }

    /// Asks for words of a line past the caches.
    pub(super) fn fetch_past(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        (at, line): (At, u64),
        owed: Time,
    ) {
        cpu.waits(thread, Waiting::Answer);
        let mapped = Mapped::Uncached;
        let copied = Copied { line, mapped };
        self.ask_after(cpu, thread, (at, owed), Sends::ReadLine(at, copied));
    }

    /// A line has come. A line that has to make room is written back.
    fn takes_in(&mut self, cpu: &mut Cpu, thread: u16, copied: Copied, words: [u64; 8]) {
        let Copied { line, mapped } = copied;
        cpu.progress();
        let evicted = match mapped {
            Mapped::Uncached => {
                let operation = cpu.thread(thread).operation;
                return self.has_piece(thread, line, words, operation);
            }
            Mapped::Tagged => self.tagged.insert(line, State::Exclusive, words, 0),
            Mapped::Cached => self.regular.insert(line, State::Exclusive, words, 0),
        };
        if let Some(held) = evicted {
            self.gives_up(cpu, thread, held);
        }
    }

    /// Writes back what was newer in a line that the cache no longer has.
    pub(super) fn gives_up(&mut self, cpu: &mut Cpu, thread: u16, held: Held) {
        let Held {
            line, words, dirty, ..
        } = held;
        let address = self.spec.line.address(line);
        if dirty != 0
            && let Ok(at) = self.at(address, Bytes::byte(address))
        {
            self.tells_of_line(cpu, line, |line| Told::WroteBack {
                line,
                bytes: dirty,
                old: 0,
            });
            self.traffic.write_backs += 1;
            let what = Sends::GivesUp(at, Box::new((dirty, words)));
            self.ask(cpu, thread, at, what);
        }
        self.tells_of_line(cpu, line, |line| Told::Dropped { line });
        self.copies_changed(cpu);
    }
}
