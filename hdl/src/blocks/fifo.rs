//! A FIFO with registered full and empty.
//!
//! ```text
//!                 ┌──────────────── memory ───────────────┐
//! write_data ──┬──┤ write pointer      the second packet  ├─ if there are two ─┬─> head ──> data
//!              │  └───────────────────────────────────────┘                    │
//!              └────────────────────────────────────────────── if not ─────────┘
//! write, read ──> count ──> valid = not empty, ready = not full: registers
//! ```
//!
//! The first packet stands in a register, so that its reader has the whole cycle for it; the place
//! in the memory that it came to holds it, too, until it is taken.
//!
//! Every wire between two blocks ends in one, or in one of two places, a
//! [`SkidBuffer`](super::skid_buffer::SkidBuffer), [`PingPong`](super::ping_pong::PingPong) or
//! [`LateFifo`](super::late_fifo::LateFifo), which belongs to the block that reads it. `valid` and
//! `ready` are registers: what is written in a cycle is offered in the next, and a place freed in a
//! cycle can be written in the next. Writes while it is not ready and reads while it is not valid
//! do nothing. A FIFO of depth 2 carries a packet every cycle:
//!
//! ```text
//! cycle      0   1   2   3   4
//! write      ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! write_data  a   b
//! valid      ▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁
//! data            a   b
//! read       ▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁
//! ```

use crate::blocks::primitive::{Kept, LutRam, Register};
use rust_hdl::prelude::*;

/// A FIFO of up to 2^A places; `C` = A + 1 bits count them.
#[derive(Clone, Debug, LogicBlock)]
pub struct Fifo<T: Synth, const A: usize, const C: usize> {
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
    /// The first packet, if valid.
    pub data: Signal<Out, T>,
    /// Takes the first packet, if valid.
    pub read: Signal<In, Bit>,
    memory: LutRam<T, A>,
    /// The first packet.
    head: Kept<T>,
    /// The second packet's place.
    second: Register<Bits<A>>,
    write_pointer: Register<Bits<A>>,
    count: Register<Bits<C>>,
    not_empty: Register<Bit>,
    not_full: Register<Bit>,
    /// There is a second packet.
    two: Register<Bit>,
    written: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    /// The last place.
    last: Constant<Bits<A>>,
    /// One less than the places.
    almost: Constant<Bits<C>>,
}

impl<T: Synth, const A: usize, const C: usize> Fifo<T, A, C> {
    /// Empty, with `depth` places, 1 to 2^A.
    pub fn new(depth: usize) -> Self {
        assert!(C == A + 1 && (1..=1 << A).contains(&depth));
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            write: Signal::default(),
            write_data: Signal::default(),
            ready: Signal::default(),
            valid: Signal::default(),
            data: Signal::default(),
            read: Signal::default(),
            memory: LutRam::default(),
            head: Kept::default(),
            second: Register::new(usize::from(depth > 1).to_bits()),
            write_pointer: Register::default(),
            count: Register::default(),
            not_empty: Register::default(),
            not_full: Register::new(true),
            two: Register::default(),
            written: Signal::default(),
            taken: Signal::default(),
            last: Constant::new((depth - 1).to_bits()),
            almost: Constant::new((depth - 1).to_bits()),
        }
    }
}

impl<T: Synth, const A: usize, const C: usize> Logic for Fifo<T, A, C> {
    #[hdl_gen]
    fn update(&mut self) {
        self.memory.clock.next = self.clock.val();
        self.head.clock.next = self.clock.val();
        self.second.clock.next = self.clock.val();
        self.two.clock.next = self.clock.val();
        self.write_pointer.clock.next = self.clock.val();
        self.count.clock.next = self.clock.val();
        self.not_empty.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.second.reset.next = self.reset.val();
        self.two.reset.next = self.reset.val();
        self.write_pointer.reset.next = self.reset.val();
        self.count.reset.next = self.reset.val();
        self.not_empty.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();

        self.ready.next = self.not_full.q.val();
        self.valid.next = self.not_empty.q.val();
        self.data.next = self.head.q.val();
        self.memory.read_address.next = self.second.q.val();
        self.head.enable.next = self.read.val() | !self.not_empty.q.val();
        self.head.d.next = self.write_data.val();
        if self.two.q.val() {
            self.head.d.next = self.memory.read_data.val();
        }
        self.written.next = self.write.val() & self.not_full.q.val();
        self.taken.next = self.read.val() & self.not_empty.q.val();
        self.memory.write_enable.next = self.written.val();
        self.memory.write_address.next = self.write_pointer.q.val();
        self.memory.write_data.next = self.write_data.val();

        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.written.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() + 1;
            if self.write_pointer.q.val() == self.last.val() {
                self.write_pointer.d.next = 0.into();
            }
        }
        self.second.d.next = self.second.q.val();
        if self.taken.val() {
            self.second.d.next = self.second.q.val() + 1;
            if self.second.q.val() == self.last.val() {
                self.second.d.next = 0.into();
            }
        }

        self.count.d.next = self.count.q.val();
        self.not_empty.d.next = self.not_empty.q.val();
        self.not_full.d.next = self.not_full.q.val();
        self.two.d.next = self.two.q.val();
        if self.written.val() & !self.taken.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.not_empty.d.next = true;
            self.not_full.d.next = self.count.q.val() != self.almost.val();
            self.two.d.next = self.not_empty.q.val();
        } else if self.taken.val() & !self.written.val() {
            self.count.d.next = self.count.q.val() - 1;
            self.not_full.d.next = true;
            self.not_empty.d.next = self.count.q.val() != 1;
            self.two.d.next = self.two.q.val() & (self.count.q.val() != 2);
        }
    }
}
