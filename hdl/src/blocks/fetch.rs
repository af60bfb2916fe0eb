//! What was read from a FIFO, a cycle after the read.
//!
//! ```text
//! write ───────┤register├─ comes ──┐    ┌──── memory ────┐
//!                                  ├────┤ write pointer  │
//! write_data ──────────────────────┘    │                ├──> data
//! (of the write of the cycle before)    │                │
//!                                  ┌────┤ read pointer   │
//! read ────────┤register├──────────┤    └────────────────┘
//!                                  └───────────────────────> valid
//! ```
//!
//! It stands beside a [`LateFifo`](super::late_fifo::LateFifo) and is told what that one takes in and
//! gives out. Whoever decides late in a cycle what it reads has a cycle more here to choose among the
//! packets, and none of them passes by a memory. In the cycle after a read the packet is there, even
//! if it came in the very cycle of the read; and it is there still: its place is next for the packet
//! that is as many behind it as there are places, which the FIFO takes in at the earliest in the
//! cycle after the read, so that it comes one later.
//!
//! ```text
//! cycle      0   1   2   3   4
//! write      ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! write_data      a   b
//! read       ▁▁▁▁▔▔▔▔▁▁▁▁▔▔▔▔▁▁▁▁
//! valid      ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▔▔▔▔
//! data                a       b
//! ```

use crate::blocks::primitive::{LutRam, Register, Stages};
use crate::blocks::resting::Rests;
use rust_hdl::prelude::*;

/// Beside a FIFO of up to 2^A places.
#[derive(Clone, Debug, LogicBlock)]
pub struct Fetch<T: Synth, const A: usize> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// The FIFO is emptied.
    pub reset: Signal<In, Bit>,
    /// The FIFO takes something in.
    pub write: Signal<In, Bit>,
    /// What it has taken in in the cycle before.
    pub write_data: Signal<In, T>,
    /// The FIFO gives something out.
    pub read: Signal<In, Bit>,
    /// It has in the cycle before.
    pub valid: Signal<Out, Bit>,
    /// What that was.
    pub data: Signal<Out, T>,
    memory: LutRam<T, A>,
    comes: Register<Bit>,
    write_pointer: Register<Bits<A>>,
    pub(crate) was_read: Stages<Bit>,
    read_pointer: Register<Bits<A>>,
}

impl<T: Synth, const A: usize> Default for Fetch<T, A> {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            write: Signal::default(),
            write_data: Signal::default(),
            read: Signal::default(),
            valid: Signal::default(),
            data: Signal::default(),
            memory: LutRam::default(),
            comes: Register::default(),
            write_pointer: Register::default(),
            was_read: Stages::new(1, false),
            read_pointer: Register::default(),
        }
    }
}

impl<T: Synth, const A: usize> Logic for Fetch<T, A> {
    #[hdl_gen]
    fn update(&mut self) {
        self.memory.clock.next = self.clock.val();
        self.comes.clock.next = self.clock.val();
        self.comes.reset.next = self.reset.val();
        self.write_pointer.clock.next = self.clock.val();
        self.write_pointer.reset.next = self.reset.val();
        self.was_read.clock.next = self.clock.val();
        self.was_read.reset.next = self.reset.val();
        self.read_pointer.clock.next = self.clock.val();
        self.read_pointer.reset.next = self.reset.val();

        self.comes.d.next = self.write.val();
        self.memory.write_enable.next = self.comes.q.val();
        self.memory.write_address.next = self.write_pointer.q.val();
        self.memory.write_data.next = self.write_data.val();
        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.comes.q.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() + 1;
        }

        self.was_read.d.next = self.read.val();
        self.memory.read_address.next = self.read_pointer.q.val();
        self.valid.next = self.was_read.q.val();
        self.data.next = self.memory.read_data.val();
        self.read_pointer.d.next = self.read_pointer.q.val();
        if self.was_read.q.val() {
            self.read_pointer.d.next = self.read_pointer.q.val() + 1;
        }
    }
}

impl<T: Synth, const A: usize> Rests for Fetch<T, A> {
    fn rests(&self) -> bool {
        let next = self.reset.next | self.write.next | self.read.next;
        let now = self.reset.val() | self.write.val() | self.read.val();
        !(next | now | self.comes.q.val() | self.was_read.q.val())
    }

    fn clock_is_high(&self) -> bool {
        self.clock.val().clk
    }
}
