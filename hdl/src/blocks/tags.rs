//! The table of source tags: which reads are under way, and whose they are.
//!
//! ```text
//!             ┌─────────────── contexts ───────────────┐
//! new_context ┤ write address            read address  ├────> found
//!             └──────┬──────────────────────────┬──────┘
//! lowest <───────────┤                          ├─────────── lookup
//!           lowest bit that is set       bit of that number
//!             ┌──────┴──────────────────────────┴──────┐
//! available <─┤ unused: a register, bit by bit         ├────> used
//!             └─── clear ───────────────────── set ────┘
//! allocate ──────────┘                          └─────────── free
//! ```
//!
//! The requester has one for reads of other nodes, the completer one for reads of its own node's
//! memory. A read takes the lowest free tag and leaves its context; its response looks the
//! context up and frees the tag. All outputs follow the registers as they were at the beginning of
//! the cycle: a tag that is freed in a cycle can be allocated in the next, and found from the
//! cycle after its allocation on. Both can happen in one cycle. `allocate` without a free tag does
//! nothing, and so does `free` of a tag that no read holds.
//!
//! ```text
//! cycle       0   1   2   3   4
//! allocate    ▔▔▔▔▔▔▔▔▁▁▁▁▔▔▔▔▁▁▁▁
//! new_context  a   b       c
//! lowest       0   1   2   0   2
//! lookup       0   0   0   1   0
//! used        ▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔
//! found            a   a   b   c
//! free        ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁
//! ```

use crate::blocks::primitive::{LowestBit, LutRam, Register};
use rust_hdl::prelude::*;
use sme_sim::engine::tags::MAX_TAGS;

/// A table of up to 32 tags with contexts of `W` bits.
#[derive(Clone, Debug, LogicBlock)]
pub struct TagTable<const W: usize> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Frees all tags.
    pub reset: Signal<In, Bit>,
    /// Gives `lowest` to a read, if available.
    pub allocate: Signal<In, Bit>,
    /// Its context. (`context` alone is a keyword of SystemVerilog.)
    pub new_context: Signal<In, Bits<W>>,
    /// The tag that is looked up.
    pub lookup: Signal<In, Bits<5>>,
    /// Frees `lookup`, if used.
    pub free: Signal<In, Bit>,
    /// A tag is free.
    pub available: Signal<Out, Bit>,
    /// The lowest free tag, if available; else 0.
    pub lowest: Signal<Out, Bits<5>>,
    /// A read holds `lookup`.
    pub used: Signal<Out, Bit>,
    /// Its context, if used.
    pub found: Signal<Out, Bits<W>>,
    contexts: LutRam<Bits<W>, 5>,
    /// Bit by bit: the tag is free.
    pub(crate) unused: Register<Bits<32>>,
    /// Bit by bit: a read holds the tag.
    held: Signal<Local, Bits<32>>,
    pub(crate) first: LowestBit,
    /// Which bit is cleared.
    cleared: Signal<Local, Bits<32>>,
    /// Which bit is set.
    freed: Signal<Local, Bits<32>>,
    /// Bit by bit: the tag exists.
    pub(crate) all: Constant<Bits<32>>,
    pub(crate) one: Constant<Bits<32>>,
}

impl<const W: usize> TagTable<W> {
    /// With `count` tags, `1..=32` (others are cut to that), all of them free.
    pub fn new(count: u32) -> Self {
        let all: Bits<32> = u64::from(u32::MAX >> (MAX_TAGS - count.clamp(1, MAX_TAGS))).into();
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            allocate: Signal::default(),
            new_context: Signal::default(),
            lookup: Signal::default(),
            free: Signal::default(),
            available: Signal::default(),
            lowest: Signal::default(),
            used: Signal::default(),
            found: Signal::default(),
            contexts: LutRam::default(),
            unused: Register::new(all),
            held: Signal::default(),
            first: LowestBit::default(),
            cleared: Signal::default(),
            freed: Signal::default(),
            all: Constant::new(all),
            one: Constant::new(1.into()),
        }
    }
}

impl<const W: usize> Logic for TagTable<W> {
    #[hdl_gen]
    fn update(&mut self) {
        self.contexts.clock.next = self.clock.val();
        self.unused.clock.next = self.clock.val();
        self.unused.reset.next = self.reset.val();

        self.first.bits.next = self.unused.q.val();
        self.available.next = self.unused.q.val() != 0;
        self.lowest.next = self.first.number.val();

        self.held.next = self.all.val() ^ self.unused.q.val();
        self.used.next = self.held.val().get_bit(self.lookup.val().index());
        self.contexts.read_address.next = self.lookup.val();
        self.found.next = self.contexts.read_data.val();

        self.cleared.next = 0.into();
        if self.allocate.val() {
            self.cleared.next = self.first.first.val();
        }
        self.contexts.write_enable.next = self.allocate.val() & (self.unused.q.val() != 0);
        self.contexts.write_address.next = self.first.number.val();
        self.contexts.write_data.next = self.new_context.val();
        self.freed.next = 0.into();
        if self.free.val() {
            self.freed.next = (self.one.val() << self.lookup.val()) & self.all.val();
        }
        // A tag that is free already is no longer so if it is allocated in this cycle.
        self.unused.d.next = (self.unused.q.val() | self.freed.val()) ^ self.cleared.val();
    }
}
