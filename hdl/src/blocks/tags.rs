//! The table of source tags: which reads are under way, and whose they are.
//!
//! ```text
//!             ┌─────────────── contexts ───────────────┐
//! new_context ┤ write address            read address  ├────> found
//!             └──────┬──────────────────────────┬──────┘
//! lowest <───────────┤                          ├───────────── lookup
//! available <── lowest and any: registers       │
//!                ↑ next: what returns,    bit of that number
//!                │ or the lowest of the rest    │
//!             ┌──┴────────────────────┐  ┌──────┴────────┐
//!             │ rest: a register, bit │  │ unused: like- ├───> used
//!             │ by bit: free, but not │  │ wise, with    │      │
//!             │ the lowest            │  │ the lowest    │      │
//!             └─ clear ───────── set ─┘  └─ clear ─ set ─┘      │
//! allocate ──────┴───────────────│───────────┘      ├─────────(and)── free
//!                                └── returning: a ──┘
//! returns <──────────────────────┘    register
//! ```
//!
//! The requester has one for reads of other nodes, the completer one for reads of its own node's
//! memory. A read takes the lowest free tag and leaves its context; its response looks the context
//! up and frees the tag. All outputs follow the registers as they were at the beginning of the
//! cycle: a tag can be found from the cycle after its allocation on. One that is freed is held by
//! no read from the next cycle on, and can be allocated in the one after that: `lookup` comes late
//! and from afar, so that the search for the lowest begins at a register. `allocate` without a free
//! tag does nothing, and so does `free` of a tag that no read holds.
//!
//! A block that wants a tag decides by `available` and sends `lowest` on in the same cycle, a long
//! way. Hence both are registers, and while the lowest tag waits in them, the table looks for the
//! one after it among the `rest`: what `allocate` decides at the end of the cycle is only which of
//! two numbers that are there already comes next.
//!
//! ```text
//! cycle       0   1   2   3   4   5
//! allocate    ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁
//! new_context  a   b           c
//! lowest       0   1   2   2   0   2
//! lookup       0   0   0   1   0   0
//! used        ▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁▔▔▔▔
//! found            a   a   b       c
//! free        ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! returns     ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁
//! ```

use crate::blocks::primitive::{Lower, LowestInGroups, LutRam, OneHot, Register, Stages};
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::tags::MAX_TAGS;

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
    /// A tag that was freed in the cycle before can be allocated in the next.
    pub returns: Signal<Out, Bit>,
    contexts: LutRam<Bits<W>, 5>,
    /// Bit by bit: the tag is free.
    pub(crate) unused: Register<Bits<32>>,
    /// The free tags without the lowest, bit by bit.
    pub(crate) rest: Register<Bits<32>>,
    /// Of each four of the rest: one is free.
    pub(crate) groups: Register<Bits<8>>,
    /// The lowest free tag; 0 if there is none.
    number: Register<Bits<5>>,
    /// There is one.
    any: Register<Bit>,
    /// The tag that `lookup` was in the cycle before.
    pub(crate) returning: Stages<Bits<5>>,
    /// A tag was freed that is not the lowest free one yet, and none of the rest.
    pub(crate) is_returning: Stages<Bit>,
    /// Bit by bit: a read holds the tag.
    held: Signal<Local, Bits<32>>,
    /// Of the rest.
    pub(crate) second: LowestInGroups,
    /// Of `number`.
    first: OneHot,
    /// Of `lookup`.
    pub(crate) looked_up: OneHot,
    /// Of `returning`.
    pub(crate) returning_one: OneHot,
    /// `returning` and `number`.
    compared: Lower,
    /// The lowest free tag is taken.
    taken: Signal<Local, Bit>,
    /// The returning tag is lower than `number`.
    lower: Signal<Local, Bit>,
    /// The tag is lower than all of the rest.
    lower_than_rest: Signal<Local, Bit>,
    /// The bit that is cleared.
    cleared: Signal<Local, Bits<32>>,
    /// The bit of `unused` that is set.
    given_back: Signal<Local, Bits<32>>,
    /// The bit of the rest that is set, unless it becomes the lowest.
    returning_bit: Signal<Local, Bits<32>>,
    /// Its group.
    returning_group: Signal<Local, Bits<8>>,
    /// Bit by bit: the tag exists.
    pub(crate) all: Constant<Bits<32>>,
}

impl<const W: usize> TagTable<W> {
    /// With `count` tags, `1..=32` (others are cut to that), all of them free.
    pub fn new(count: u32) -> Self {
        let all: Bits<32> = u64::from(u32::MAX >> (MAX_TAGS - count.clamp(1, MAX_TAGS))).into();
        let rest = all & !Bits::<32>::from(1);
        let groups = (0..8).filter(|group| (rest >> (4 * group) & 15).any());
        let groups = groups
            .fold(0, |groups, group| groups | 1u64 << group)
            .into();
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
            returns: Signal::default(),
            contexts: LutRam::default(),
            unused: Register::new(all),
            rest: Register::new(rest),
            groups: Register::new(groups),
            number: Register::default(),
            any: Register::new(true),
            returning: Stages::new(1, 0.into()),
            is_returning: Stages::new(1, false),
            held: Signal::default(),
            second: LowestInGroups::default(),
            first: OneHot::default(),
            looked_up: OneHot::default(),
            returning_one: OneHot::default(),
            compared: Lower::default(),
            taken: Signal::default(),
            lower: Signal::default(),
            lower_than_rest: Signal::default(),
            cleared: Signal::default(),
            given_back: Signal::default(),
            returning_bit: Signal::default(),
            returning_group: Signal::default(),
            all: Constant::new(all),
        }
    }
}

impl<const W: usize> Logic for TagTable<W> {
    #[hdl_gen]
    fn update(&mut self) {
        self.contexts.clock.next = self.clock.val();
        self.unused.clock.next = self.clock.val();
        self.rest.clock.next = self.clock.val();
        self.groups.clock.next = self.clock.val();
        self.number.clock.next = self.clock.val();
        self.any.clock.next = self.clock.val();
        self.returning.clock.next = self.clock.val();
        self.is_returning.clock.next = self.clock.val();
        self.unused.reset.next = self.reset.val();
        self.rest.reset.next = self.reset.val();
        self.groups.reset.next = self.reset.val();
        self.number.reset.next = self.reset.val();
        self.any.reset.next = self.reset.val();
        self.returning.reset.next = self.reset.val();
        self.is_returning.reset.next = self.reset.val();

        self.available.next = self.any.q.val();
        self.lowest.next = self.number.q.val();
        self.taken.next = self.allocate.val() & self.any.q.val();
        self.contexts.write_enable.next = self.taken.val();
        self.contexts.write_address.next = self.number.q.val();
        self.contexts.write_data.next = self.new_context.val();

        self.held.next = self.all.val() ^ self.unused.q.val();
        self.used.next = self.held.val().get_bit(self.lookup.val().index());
        self.contexts.read_address.next = self.lookup.val();
        self.found.next = self.contexts.read_data.val();
        self.returning.d.next = self.lookup.val();
        self.is_returning.d.next =
            self.free.val() & self.held.val().get_bit(self.lookup.val().index());
        self.returns.next = self.is_returning.q.val();

        self.first.number.next = self.number.q.val();
        self.looked_up.number.next = self.lookup.val();
        self.returning_one.number.next = self.returning.q.val();
        self.second.bits.next = self.rest.q.val();
        self.second.groups.next = self.groups.q.val();
        self.second.limit.next = self.returning.q.val();
        self.compared.left.next = self.returning.q.val();
        self.compared.right.next = self.number.q.val();

        self.cleared.next = 0.into();
        if self.taken.val() {
            self.cleared.next = self.first.one.val();
        }
        // Whether a read holds it need not be asked here: the bit of a free tag is set already.
        self.given_back.next = 0.into();
        if self.free.val() & self.all.val().get_bit(self.lookup.val().index()) {
            self.given_back.next = self.looked_up.one.val();
        }
        self.unused.d.next = (self.unused.q.val() | self.given_back.val()) ^ self.cleared.val();

        self.returning_bit.next = 0.into();
        self.returning_group.next = 0.into();
        if self.is_returning.q.val() {
            self.returning_bit.next = self.returning_one.one.val();
            self.returning_group.next = self.returning_one.group.val();
        }
        self.lower.next =
            self.is_returning.q.val() & (!self.any.q.val() | self.compared.lower.val());
        self.lower_than_rest.next = self.is_returning.q.val() & self.second.none_up_to.val();
        if self.taken.val() {
            self.any.d.next = (self.groups.q.val() != 0) | self.is_returning.q.val();
            if self.lower_than_rest.val() {
                self.number.d.next = self.returning.q.val();
                self.rest.d.next = self.rest.q.val();
                self.groups.d.next = self.groups.q.val();
            } else {
                self.number.d.next = self.second.number.val();
                self.rest.d.next =
                    (self.rest.q.val() | self.returning_bit.val()) ^ self.second.first.val();
                self.groups.d.next =
                    (self.groups.q.val() ^ self.second.emptied.val()) | self.returning_group.val();
            }
        } else {
            self.any.d.next = self.any.q.val() | self.is_returning.q.val();
            self.number.d.next = self.number.q.val();
            self.rest.d.next = self.rest.q.val() | self.returning_bit.val();
            self.groups.d.next = self.groups.q.val() | self.returning_group.val();
            if self.lower.val() {
                self.number.d.next = self.returning.q.val();
                self.rest.d.next = self.rest.q.val();
                self.groups.d.next = self.groups.q.val();
                if self.any.q.val() {
                    self.rest.d.next = self.rest.q.val() | self.first.one.val();
                    self.groups.d.next = self.groups.q.val() | self.first.group.val();
                }
            }
        }
    }
}
