//! A FIFO of two places whose data comes a cycle after it is written.
//!
//! ```text
//!              ┌────────┐                    ┌───────── memory ─────────┐
//! write ───────┤register├─ comes ─┬──────────┤ write pointer, a cycle   │
//!              └────────┘         │          │ later       read pointer ├─ if it is stored ─┐
//! write_data ─────────────────────┼────┬─────┤                          │                   ├─> data
//! (of the write of the cycle      │    │     └──────────────────────────┘                   │
//!  before)                        │    └────────────────────────────────── if it is not ────┘
//! valid <── stored, or comes: a register
//! ready <── not full: a register                                                  <──── read
//! ```
//!
//! To its neighbours it is a [`Fifo`](super::fifo::Fifo), cycle for cycle, but for `write_data`.
//! The [switch](super::switch) knows late in a cycle who has won an output; with a cycle more it
//! has time to fetch the winner's packet, while the reader decides already by `valid`. A packet
//! that is read at once passes by the memory. `write` may come late in the cycle: each register is
//! one table behind it.
//!
//! ```text
//! cycle      0   1   2   3   4
//! write      ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! write_data      a   b
//! valid      ▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁
//! data            a   b
//! read       ▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁
//! ```

use crate::blocks::primitive::{LutRam, Register};
use rust_hdl::prelude::*;

/// A FIFO of two places.
#[derive(Clone, Debug, LogicBlock)]
pub struct LateFifo<T: Synth> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties it.
    pub reset: Signal<In, Bit>,
    /// Something is written, if it is ready.
    pub write: Signal<In, Bit>,
    /// The data of the previous cycle's write.
    pub write_data: Signal<In, T>,
    /// Not full.
    pub ready: Signal<Out, Bit>,
    /// Not empty.
    pub valid: Signal<Out, Bit>,
    /// Not empty in the next cycle, for readers that decide ahead.
    pub valid_next: Signal<Out, Bit>,
    /// The first packet, if valid.
    pub data: Signal<Out, T>,
    /// The first packet is the one that comes in this cycle, if valid.
    pub is_late: Signal<Out, Bit>,
    /// The first packet, if valid and not late: it is there early in the cycle.
    pub stored_data: Signal<Out, T>,
    /// Takes the first packet, if valid.
    pub read: Signal<In, Bit>,
    memory: LutRam<T, 1>,
    /// The data of a write comes in this cycle.
    pub(crate) comes: Register<Bit>,
    read_pointer: Register<Bits<1>>,
    write_pointer: Register<Bits<1>>,
    /// The first packet is in the memory.
    stored: Register<Bit>,
    pub(crate) not_empty: Register<Bit>,
    pub(crate) not_full: Register<Bit>,
    written: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    /// A packet of those that are there or come stays.
    stays: Signal<Local, Bit>,
    /// There is a second place; not so in a broken variant.
    pub(crate) two: Constant<Bit>,
}

impl<T: Synth> Default for LateFifo<T> {
    /// Empty.
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            write: Signal::default(),
            write_data: Signal::default(),
            ready: Signal::default(),
            valid: Signal::default(),
            valid_next: Signal::default(),
            data: Signal::default(),
            is_late: Signal::default(),
            stored_data: Signal::default(),
            read: Signal::default(),
            memory: LutRam::default(),
            comes: Register::default(),
            read_pointer: Register::default(),
            write_pointer: Register::default(),
            stored: Register::default(),
            not_empty: Register::default(),
            not_full: Register::new(true),
            written: Signal::default(),
            taken: Signal::default(),
            stays: Signal::default(),
            two: Constant::new(true),
        }
    }
}

impl<T: Synth> Logic for LateFifo<T> {
    #[hdl_gen]
    fn update(&mut self) {
        self.memory.clock.next = self.clock.val();
        self.comes.clock.next = self.clock.val();
        self.read_pointer.clock.next = self.clock.val();
        self.write_pointer.clock.next = self.clock.val();
        self.stored.clock.next = self.clock.val();
        self.not_empty.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.comes.reset.next = self.reset.val();
        self.read_pointer.reset.next = self.reset.val();
        self.write_pointer.reset.next = self.reset.val();
        self.stored.reset.next = self.reset.val();
        self.not_empty.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();

        self.ready.next = self.not_full.q.val();
        self.valid.next = self.not_empty.q.val();
        self.written.next = self.write.val() & self.not_full.q.val();
        self.taken.next = self.read.val() & self.not_empty.q.val();
        self.comes.d.next = self.written.val();
        self.stays.next = self.not_empty.q.val() & !(self.read.val() & self.not_full.q.val());
        // A packet that comes and stays is in the memory from the next cycle on.
        self.stored.d.next = self.stays.val();
        // Said so that the tools see it: what is never written to is never valid.
        self.not_empty.d.next = self.not_empty.q.val();
        if self.written.val() {
            self.not_empty.d.next = true;
        } else if self.read.val() & self.not_full.q.val() {
            self.not_empty.d.next = false;
        }
        self.valid_next.next = self.written.val() | self.stays.val();
        if self.written.val() {
            self.not_full.d.next = self.two.val() & (self.taken.val() | !self.not_empty.q.val());
        } else {
            self.not_full.d.next = self.not_full.q.val() | self.taken.val();
        }

        self.memory.write_enable.next = self.comes.q.val();
        self.memory.write_address.next = self.write_pointer.q.val();
        self.memory.write_data.next = self.write_data.val();
        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.comes.q.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() ^ 1;
        }
        self.memory.read_address.next = self.read_pointer.q.val();
        self.read_pointer.d.next = self.read_pointer.q.val();
        if self.taken.val() {
            self.read_pointer.d.next = self.read_pointer.q.val() ^ 1;
        }
        self.is_late.next = !self.stored.q.val();
        self.stored_data.next = self.memory.read_data.val();
        self.data.next = self.write_data.val();
        if self.stored.q.val() {
            self.data.next = self.memory.read_data.val();
        }
    }
}
