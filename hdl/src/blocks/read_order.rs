//! Whether the first of some waiting reads may go: no read passes a write that came before it.
//!
//! ```text
//! writes_before ─┬───────── if ready ────────┬─> of the next read ─┬─ of the first ─┐
//!                └─ behind: of the second ───┘                     └────────────────┤
//!                                                                                   v
//! write_goes ──> gone: writes that have gone, and one more ──────────────> four differences
//!                                                                                   │ sign of one
//! read_moves, write_goes ── which one ──────────────────────────────────────────────┤
//!                                                                                   └─ register ─> may_read
//! ```
//!
//! It stands beside a FIFO of two reads. Each read comes with the number of writes before it, modulo
//! 2^16, and may go when as many have gone, that is, when the difference has its highest bit clear.
//! Whoever reads the FIFO decides by that and by much else, so that it is a register: there are two
//! reads that can be the first in the next cycle, and a write more that has gone or not, and the
//! differences of all four are there before it is known which it will be. Whether there is a first
//! read at all is in the same register.
//!
//! ```text
//! cycle          0   1   2   3   4
//! ready         ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔     the FIFO takes what is offered
//! comes         ▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! writes_before  1                       a read comes in cycle 0, after one write
//! read_moves    ▔▔▔▔▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔     there is none in cycle 0; it goes in cycle 3
//! write_goes    ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁
//! may_read      ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁
//! ```

use crate::blocks::primitive::{Kept, Register};
use rust_hdl::prelude::*;

/// The order of reads behind writes.
#[derive(Clone, Debug, LogicBlock)]
pub struct ReadOrder {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// As many writes have gone as in the beginning.
    pub reset: Signal<In, Bit>,
    /// The FIFO is not full: the read that is offered to it is kept, if there is one.
    pub ready: Signal<In, Bit>,
    /// There is one.
    pub comes: Signal<In, Bit>,
    /// Of that read: the writes before it.
    pub writes_before: Signal<In, Bits<16>>,
    /// The first read goes, or there is none.
    pub read_moves: Signal<In, Bit>,
    /// A write goes.
    pub write_goes: Signal<In, Bit>,
    /// There is a first read, and so many writes have gone as came before it.
    pub may_read: Signal<Out, Bit>,
    /// Of the first read.
    first: Kept<Bits<16>>,
    /// Of the second.
    behind: Kept<Bits<16>>,
    /// Writes that have gone.
    gone: Register<Bits<16>>,
    /// One more.
    pub(crate) gone_next: Register<Bits<16>>,
    allowed: Register<Bit>,
    /// There is a read that comes first if the first one goes: the one that is offered, or, if the
    /// FIFO is full, the second.
    follows: Signal<Local, Bit>,
    /// Of that read.
    before_next: Signal<Local, Bits<16>>,
    /// `gone`, and one more, less the writes before the first read.
    ahead: [Signal<Local, Bits<16>>; 2],
    /// Less those before the next.
    ahead_next: [Signal<Local, Bits<16>>; 2],
}

impl ReadOrder {
    /// So many writes have gone, modulo 2^16, and there is no read.
    pub fn after(writes: u16) -> Self {
        let count = |more: u16| Register::new(u64::from(writes.wrapping_add(more)).into());
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            ready: Signal::default(),
            comes: Signal::default(),
            writes_before: Signal::default(),
            read_moves: Signal::default(),
            write_goes: Signal::default(),
            may_read: Signal::default(),
            first: Kept::default(),
            behind: Kept::default(),
            gone: count(0),
            gone_next: count(1),
            allowed: Register::default(),
            follows: Signal::default(),
            before_next: Signal::default(),
            ahead: Default::default(),
            ahead_next: Default::default(),
        }
    }
}

impl Logic for ReadOrder {
    #[hdl_gen]
    fn update(&mut self) {
        self.first.clock.next = self.clock.val();
        self.behind.clock.next = self.clock.val();
        self.gone.clock.next = self.clock.val();
        self.gone_next.clock.next = self.clock.val();
        self.allowed.clock.next = self.clock.val();
        self.gone.reset.next = self.reset.val();
        self.gone_next.reset.next = self.reset.val();
        self.allowed.reset.next = self.reset.val();

        self.gone.d.next = self.gone.q.val();
        self.gone_next.d.next = self.gone_next.q.val();
        if self.write_goes.val() {
            self.gone.d.next = self.gone_next.q.val();
            self.gone_next.d.next = self.gone_next.q.val() + 1;
        }
        self.behind.enable.next = self.ready.val();
        self.behind.d.next = self.writes_before.val();
        self.before_next.next = self.behind.q.val();
        if self.ready.val() {
            self.before_next.next = self.writes_before.val();
        }
        self.follows.next = self.comes.val() | !self.ready.val();
        self.first.enable.next = self.read_moves.val();
        self.first.d.next = self.before_next.val();

        self.ahead[0].next = self.gone.q.val() - self.first.q.val();
        self.ahead[1].next = self.gone_next.q.val() - self.first.q.val();
        self.ahead_next[0].next = self.gone.q.val() - self.before_next.val();
        self.ahead_next[1].next = self.gone_next.q.val() - self.before_next.val();
        if self.read_moves.val() {
            if self.write_goes.val() {
                self.allowed.d.next = self.follows.val() & !self.ahead_next[1].val().get_bit(15);
            } else {
                self.allowed.d.next = self.follows.val() & !self.ahead_next[0].val().get_bit(15);
            }
        } else if self.write_goes.val() {
            self.allowed.d.next = !self.ahead[1].val().get_bit(15);
        } else {
            self.allowed.d.next = !self.ahead[0].val().get_bit(15);
        }
        self.may_read.next = self.allowed.q.val();
    }
}
