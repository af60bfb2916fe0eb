//! A FIFO whose data comes a cycle after it is written.
//!
//! ```text
//!              ┌────────┐                    ┌───────── memory ─────────┐
//! write ───────┤register├─ comes ─┬──────────┤ write pointer, a cycle   │
//!              └────────┘         │          │ later       read pointer ├─ if it holds one ─┐
//! write_data ─────────────────────┼────┬─────┤                          │                   ├─> data
//! (of the write of the cycle      │    │     └──────────────────────────┘                   │
//!  before)                        │    └────────────────────────────────── if it is empty ──┘
//! valid <── not empty, or comes ──┤
//! ready <── place for one more, or if one comes for two: two registers          <──── read
//! ```
//!
//! To its neighbours it is a [`Fifo`](super::fifo::Fifo), cycle for cycle, but for `write_data`. The
//! [switch](super::switch) knows late in a cycle who has won an output; with a cycle more it has time
//! to fetch the winner's packet, while whoever reads here decides already by `valid`. A packet that
//! is read at once passes by the memory.
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

/// A FIFO of up to 2^A places; `C` = A + 1 bits count them.
#[derive(Clone, Debug, LogicBlock)]
pub struct LateFifo<T: Synth, const A: usize, const C: usize> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties it.
    pub reset: Signal<In, Bit>,
    /// Something is written, if it is ready.
    pub write: Signal<In, Bit>,
    /// What the cycle before has written.
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
    /// The data of a write comes in this cycle.
    pub(crate) comes: Register<Bit>,
    read_pointer: Register<Bits<A>>,
    write_pointer: Register<Bits<A>>,
    /// Packets in the memory, without the one that comes.
    count: Register<Bits<C>>,
    not_empty: Register<Bit>,
    not_full: Register<Bit>,
    /// There are two places.
    two_free: Register<Bit>,
    taken: Signal<Local, Bit>,
    /// The last place.
    last: Constant<Bits<A>>,
    /// One less than the places.
    almost: Constant<Bits<C>>,
    /// Two less than the places, if there are as many.
    two_left: Constant<Bits<C>>,
}

impl<T: Synth, const A: usize, const C: usize> LateFifo<T, A, C> {
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
            comes: Register::default(),
            read_pointer: Register::default(),
            write_pointer: Register::default(),
            count: Register::default(),
            not_empty: Register::default(),
            not_full: Register::new(true),
            two_free: Register::new(depth > 1),
            taken: Signal::default(),
            last: Constant::new((depth - 1).to_bits()),
            almost: Constant::new((depth - 1).to_bits()),
            two_left: Constant::new(depth.saturating_sub(2).to_bits()),
        }
    }
}

impl<T: Synth, const A: usize, const C: usize> Logic for LateFifo<T, A, C> {
    #[hdl_gen]
    fn update(&mut self) {
        self.memory.clock.next = self.clock.val();
        self.comes.clock.next = self.clock.val();
        self.read_pointer.clock.next = self.clock.val();
        self.write_pointer.clock.next = self.clock.val();
        self.count.clock.next = self.clock.val();
        self.not_empty.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.two_free.clock.next = self.clock.val();
        self.comes.reset.next = self.reset.val();
        self.read_pointer.reset.next = self.reset.val();
        self.write_pointer.reset.next = self.reset.val();
        self.count.reset.next = self.reset.val();
        self.not_empty.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();
        self.two_free.reset.next = self.reset.val();

        self.ready.next = self.not_full.q.val();
        if self.comes.q.val() {
            self.ready.next = self.two_free.q.val();
        }
        self.comes.d.next = self.write.val() & self.ready.val();
        self.valid.next = self.not_empty.q.val() | self.comes.q.val();
        self.taken.next = self.read.val() & self.valid.val();
        self.memory.read_address.next = self.read_pointer.q.val();
        self.data.next = self.write_data.val();
        if self.not_empty.q.val() {
            self.data.next = self.memory.read_data.val();
        }
        self.memory.write_enable.next = self.comes.q.val();
        self.memory.write_address.next = self.write_pointer.q.val();
        self.memory.write_data.next = self.write_data.val();

        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.comes.q.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() + 1;
            if self.write_pointer.q.val() == self.last.val() {
                self.write_pointer.d.next = 0.into();
            }
        }
        self.read_pointer.d.next = self.read_pointer.q.val();
        if self.taken.val() {
            self.read_pointer.d.next = self.read_pointer.q.val() + 1;
            if self.read_pointer.q.val() == self.last.val() {
                self.read_pointer.d.next = 0.into();
            }
        }

        self.count.d.next = self.count.q.val();
        self.not_empty.d.next = self.not_empty.q.val();
        self.not_full.d.next = self.not_full.q.val();
        self.two_free.d.next = self.two_free.q.val();
        if self.comes.q.val() & !self.taken.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.not_empty.d.next = true;
            self.not_full.d.next = self.count.q.val() != self.almost.val();
            self.two_free.d.next =
                self.two_free.q.val() & (self.count.q.val() != self.two_left.val());
        } else if self.taken.val() & !self.comes.q.val() {
            self.count.d.next = self.count.q.val() - 1;
            self.not_empty.d.next = self.count.q.val() != 1;
            self.not_full.d.next = true;
            self.two_free.d.next = self.not_full.q.val();
        }
    }
}
