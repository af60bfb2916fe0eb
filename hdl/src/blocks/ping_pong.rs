//! A FIFO of two places in a memory: who reads moves a pointer on, and no packet.
//!
//! ```text
//!                     ┌───────── memory ──────────┐
//! write_data ─────────┤ write pointer             │
//! ready ─ write enable┤              read pointer ├──> data
//!   ^                 └───────────────────────────┘
//!   │ a register: not full     valid <── not empty, a register           <── read
//! ```
//!
//! To its neighbours it is a [`Fifo`](super::fifo::Fifo) of depth 2, cycle for cycle. In a
//! [`SkidBuffer`](super::skid_buffer::SkidBuffer) the first packet stands in a register, where its
//! reader has it at the beginning of the cycle; but `read` is the enable of each of its bits, and
//! those lie where their readers are, all over the FPGA. Here `data` comes through the memory, and
//! `read` may be known late: it ends at four registers, as `write` does. The offered data is
//! written whenever there is a place, whether it is `write`n or not.
//!
//! ```text
//! cycle      0   1   2   3   4   5
//! write      ▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! write_data  a   b   c
//! ready      ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔   c is not taken
//! valid      ▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁
//! data            a   a   a   b
//! read       ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁
//! ```

use crate::blocks::primitive::{LutRam, Register};
use rust_hdl::prelude::*;

/// A FIFO of two places.
#[derive(Clone, Debug, LogicBlock)]
pub struct PingPong<T: Synth> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties it.
    pub reset: Signal<In, Bit>,
    /// Offers `write_data`.
    pub write: Signal<In, Bit>,
    /// The data to write, if it is ready.
    pub write_data: Signal<In, T>,
    /// Not full.
    pub ready: Signal<Out, Bit>,
    /// Not empty.
    pub valid: Signal<Out, Bit>,
    /// Not empty in the next cycle, for readers that decide ahead.
    pub valid_next: Signal<Out, Bit>,
    /// The first packet, if valid.
    pub data: Signal<Out, T>,
    /// Takes the first packet, if valid.
    pub read: Signal<In, Bit>,
    memory: LutRam<T, 1>,
    write_pointer: Register<Bits<1>>,
    read_pointer: Register<Bits<1>>,
    pub(crate) not_empty: Register<Bit>,
    pub(crate) not_full: Register<Bit>,
    /// There is a second place; not so in a broken variant.
    pub(crate) two: Constant<Bit>,
}

impl<T: Synth> Default for PingPong<T> {
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
            read: Signal::default(),
            memory: LutRam::default(),
            write_pointer: Register::default(),
            read_pointer: Register::default(),
            not_empty: Register::default(),
            not_full: Register::new(true),
            two: Constant::new(true),
        }
    }
}

impl<T: Synth> Logic for PingPong<T> {
    #[hdl_gen]
    fn update(&mut self) {
        self.memory.clock.next = self.clock.val();
        self.write_pointer.clock.next = self.clock.val();
        self.read_pointer.clock.next = self.clock.val();
        self.not_empty.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.write_pointer.reset.next = self.reset.val();
        self.read_pointer.reset.next = self.reset.val();
        self.not_empty.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();

        self.ready.next = self.not_full.q.val();
        self.valid.next = self.not_empty.q.val();
        self.memory.write_enable.next = self.not_full.q.val();
        self.memory.write_address.next = self.write_pointer.q.val();
        self.memory.write_data.next = self.write_data.val();
        self.memory.read_address.next = self.read_pointer.q.val();
        self.data.next = self.memory.read_data.val();

        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.write.val() & self.not_full.q.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() ^ 1;
        }
        self.read_pointer.d.next = self.read_pointer.q.val();
        if self.read.val() & self.not_empty.q.val() {
            self.read_pointer.d.next = self.read_pointer.q.val() ^ 1;
        }
        if self.read.val() {
            self.valid_next.next = self.write.val() | (self.two.val() & !self.not_full.q.val());
            self.not_full.d.next = self.two.val() | !(self.not_full.q.val() & self.write.val());
        } else {
            self.valid_next.next = self.write.val() | self.not_empty.q.val();
            self.not_full.d.next = self.not_full.q.val()
                & !(self.write.val() & (self.not_empty.q.val() | !self.two.val()));
        }
        self.not_empty.d.next = self.valid_next.val();
    }
}
