//! A FIFO of two places whose outputs are all registers, the data too.
//!
//! ```text
//!             ┌────────────────────────┐
//! write_data ─┤ behind: taken in while ├─┐ if not ready
//!      │      │ ready                  │ ├─────> head: a register ──> data
//!      │      └────────────────────────┘ │        taken over while not valid, or on read
//!      └─────────────────────────────────┘ if ready
//! ready <── not full, a register       valid <── not empty, a register
//! ```
//!
//! To its neighbours it is a [`Fifo`](super::fifo::Fifo) of depth 2, cycle for cycle; that one,
//! which keeps what waits in a memory, is for many places. `write` decides little here: the writer
//! may know late in the cycle that it does.
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

use crate::blocks::primitive::{Kept, Register};
use rust_hdl::prelude::*;

/// A FIFO of two places.
#[derive(Clone, Debug, LogicBlock)]
pub struct SkidBuffer<T: Synth> {
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
    head: Kept<T>,
    behind: Kept<T>,
    pub(crate) not_empty: Register<Bit>,
    pub(crate) not_full: Register<Bit>,
    /// There is a second place; not so in a broken variant.
    pub(crate) two: Constant<Bit>,
}

impl<T: Synth> Default for SkidBuffer<T> {
    /// Empty.
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            write: Signal::default(),
            write_data: Signal::default(),
            ready: Signal::default(),
            valid: Signal::default(),
            data: Signal::default(),
            read: Signal::default(),
            head: Kept::default(),
            behind: Kept::default(),
            not_empty: Register::default(),
            not_full: Register::new(true),
            two: Constant::new(true),
        }
    }
}

impl<T: Synth> Logic for SkidBuffer<T> {
    #[hdl_gen]
    fn update(&mut self) {
        self.head.clock.next = self.clock.val();
        self.behind.clock.next = self.clock.val();
        self.not_empty.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.not_empty.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();

        self.ready.next = self.not_full.q.val();
        self.valid.next = self.not_empty.q.val();
        self.data.next = self.head.q.val();

        self.behind.enable.next = self.not_full.q.val();
        self.behind.d.next = self.write_data.val();
        self.head.enable.next = self.read.val() | !self.not_empty.q.val();
        if self.not_full.q.val() {
            self.head.d.next = self.write_data.val();
        } else {
            self.head.d.next = self.behind.q.val();
        }

        // Made from `read` and not from `head.enable`, which would do: placed among the packet's
        // bits, that table would take these two registers along.
        if self.read.val() {
            self.not_empty.d.next = self.write.val() | (self.two.val() & !self.not_full.q.val());
            self.not_full.d.next = self.two.val() | !(self.not_full.q.val() & self.write.val());
        } else {
            self.not_empty.d.next = self.write.val() | self.not_empty.q.val();
            self.not_full.d.next = self.not_full.q.val()
                & !(self.write.val() & (self.not_empty.q.val() | !self.two.val()));
        }
    }
}
