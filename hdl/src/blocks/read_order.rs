//! The order of reads and writes: the first of some waiting reads may go if it passes no write that
//! came before it.
//!
//! ```text
//! writes_before, fails ─┬──────────────> of the one that is offered ─┐
//!                       ├─ behind ─────> of the second ──────────────┤ six differences
//!                       └─ first ──────> of the first ───────────────┤ and their signs
//! write_goes ──> gone: writes that have gone, and one more ──────────┘
//!                                                          │
//! read_moves, write_goes, ready ── which of them ──────────┼─ register ─> may_read
//!                                                          └─ register ─> may_fail
//! ```
//!
//! It stands beside a FIFO of two reads. Each read comes with the number of writes before it,
//! modulo 2^16, and may go when as many have gone, that is, when the difference has its highest bit
//! clear. The reader of the FIFO decides by that and by much else, so that it is a register, and so
//! is whether there is a first read at all, and one that fails. Three reads can be the first in the
//! next cycle, and a write more has gone or not: the differences of all six are there before it is
//! known which it will be.
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
    /// The read is one that fails.
    pub fails: Signal<In, Bit>,
    /// Of that read: the writes before it.
    pub writes_before: Signal<In, Bits<16>>,
    /// The first read goes, or there is none.
    pub read_moves: Signal<In, Bit>,
    /// A write goes.
    pub write_goes: Signal<In, Bit>,
    /// There is a first read, so many writes have gone as came before it, and it does not fail.
    pub may_read: Signal<Out, Bit>,
    /// The same, and it fails.
    pub may_fail: Signal<Out, Bit>,
    /// Not `may_read`, from a register of its own: what chooses a packet need not lie with what
    /// moves the reads on.
    pub may_not_read: Signal<Out, Bit>,
    /// The value of `may_read` in the next cycle, for readers that decide ahead.
    pub may_read_next: Signal<Out, Bit>,
    /// Of the first read.
    first: Kept<Bits<16>>,
    first_fails: Kept<Bit>,
    /// Of the second.
    behind: Kept<Bits<16>>,
    behind_fails: Kept<Bit>,
    /// Writes that have gone.
    gone: Register<Bits<16>>,
    /// One more.
    pub(crate) gone_next: Register<Bits<16>>,
    allowed: Register<Bit>,
    pub(crate) not_allowed: Register<Bit>,
    failing: Register<Bit>,
    /// The read that comes first if the first one goes, the one that is offered, or, if the FIFO is
    /// full, the second, fails.
    fails_next: Signal<Local, Bit>,
    /// The writes before it.
    before_next: Signal<Local, Bits<16>>,
    /// `gone`, and one more, less the writes before the first read.
    ahead: [Signal<Local, Bits<16>>; 2],
    /// Less those before the second.
    ahead_behind: [Signal<Local, Bits<16>>; 2],
    /// Less those before the one that is offered.
    ahead_offered: [Signal<Local, Bits<16>>; 2],
    /// If no write goes, and if one does: the first read is in time.
    in_time: [Signal<Local, Bit>; 2],
    /// The same in the next cycle: there is a next read, and it is.
    next_in_time: [Signal<Local, Bit>; 2],
    /// There is a first read in the next cycle, and it is in time.
    goes: Signal<Local, Bit>,
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
            fails: Signal::default(),
            writes_before: Signal::default(),
            read_moves: Signal::default(),
            write_goes: Signal::default(),
            may_read: Signal::default(),
            may_fail: Signal::default(),
            may_not_read: Signal::default(),
            may_read_next: Signal::default(),
            first: Kept::default(),
            first_fails: Kept::default(),
            behind: Kept::default(),
            behind_fails: Kept::default(),
            gone: count(0),
            gone_next: count(1),
            allowed: Register::default(),
            not_allowed: Register::new(true),
            failing: Register::default(),
            fails_next: Signal::default(),
            before_next: Signal::default(),
            ahead: Default::default(),
            ahead_behind: Default::default(),
            ahead_offered: Default::default(),
            in_time: Default::default(),
            next_in_time: Default::default(),
            goes: Signal::default(),
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
        self.first_fails.clock.next = self.clock.val();
        self.behind_fails.clock.next = self.clock.val();
        self.allowed.clock.next = self.clock.val();
        self.not_allowed.clock.next = self.clock.val();
        self.failing.clock.next = self.clock.val();
        self.gone.reset.next = self.reset.val();
        self.gone_next.reset.next = self.reset.val();
        self.allowed.reset.next = self.reset.val();
        self.not_allowed.reset.next = self.reset.val();
        self.failing.reset.next = self.reset.val();

        self.gone.d.next = self.gone.q.val();
        self.gone_next.d.next = self.gone_next.q.val();
        if self.write_goes.val() {
            self.gone.d.next = self.gone_next.q.val();
            self.gone_next.d.next = self.gone_next.q.val() + 1;
        }
        self.behind.enable.next = self.ready.val();
        self.behind.d.next = self.writes_before.val();
        self.behind_fails.enable.next = self.ready.val();
        self.behind_fails.d.next = self.fails.val();
        self.before_next.next = self.behind.q.val();
        self.fails_next.next = self.behind_fails.q.val();
        if self.ready.val() {
            self.before_next.next = self.writes_before.val();
            self.fails_next.next = self.fails.val();
        }
        self.first.enable.next = self.read_moves.val();
        self.first.d.next = self.before_next.val();
        self.first_fails.enable.next = self.read_moves.val();
        self.first_fails.d.next = self.fails_next.val();

        self.ahead[0].next = self.gone.q.val() - self.first.q.val();
        self.ahead[1].next = self.gone_next.q.val() - self.first.q.val();
        self.ahead_behind[0].next = self.gone.q.val() - self.behind.q.val();
        self.ahead_behind[1].next = self.gone_next.q.val() - self.behind.q.val();
        self.ahead_offered[0].next = self.gone.q.val() - self.writes_before.val();
        self.ahead_offered[1].next = self.gone_next.q.val() - self.writes_before.val();
        self.in_time[0].next = !self.ahead[0].val().get_bit(15);
        self.in_time[1].next = !self.ahead[1].val().get_bit(15);
        if self.ready.val() {
            self.next_in_time[0].next = self.comes.val() & !self.ahead_offered[0].val().get_bit(15);
            self.next_in_time[1].next = self.comes.val() & !self.ahead_offered[1].val().get_bit(15);
        } else {
            self.next_in_time[0].next = !self.ahead_behind[0].val().get_bit(15);
            self.next_in_time[1].next = !self.ahead_behind[1].val().get_bit(15);
        }
        if self.read_moves.val() {
            self.goes.next = self.next_in_time[0].val();
            if self.write_goes.val() {
                self.goes.next = self.next_in_time[1].val();
            }
            self.may_read_next.next = self.goes.val() & !self.fails_next.val();
            self.failing.d.next = self.goes.val() & self.fails_next.val();
        } else {
            self.goes.next = self.in_time[0].val();
            if self.write_goes.val() {
                self.goes.next = self.in_time[1].val();
            }
            self.may_read_next.next = self.goes.val() & !self.first_fails.q.val();
            self.failing.d.next = self.goes.val() & self.first_fails.q.val();
        }
        self.allowed.d.next = self.may_read_next.val();
        self.not_allowed.d.next = !self.may_read_next.val();
        self.may_fail.next = self.failing.q.val();
        self.may_read.next = self.allowed.q.val();
        self.may_not_read.next = self.not_allowed.q.val();
    }
}
