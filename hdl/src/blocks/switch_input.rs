//! A switch input: a receive buffer that knows where its first packet goes.
//!
//! ```text
//!                 ┌──── routes (LutRam) ────┐
//! way ──────┬─────┤ write pointer     third ├─── if one was taken ─┐
//!           │     └─────────────────────────┘    ┌ second ┐        ├─┬──┬ first ┐
//!           ├────────────────────────────────────┤        ├─ else ─┘ │  │       ├──> head: the first
//!           │                                    └───^────┘          │  └───────┘    packet's way,
//!           │                                        └───────────────┤               0 if none
//!           └────────────────────────────────────────────────────────┘
//! write ────> written                 write_address, read_address ──> the packets' memory
//! ready <──── register: not full, or one was taken
//! taken ─┬──> moves first on
//!        └──> register: one was taken ──> moves second and the pointers on, and counts
//! ```
//!
//! The route is decided when a packet is written and kept beside it. Those of the first two packets
//! stand decoded in registers, so that the allocators begin with one-hot bits. That a packet is
//! taken is known late in a cycle: it chooses between the ways of the first two, and is noted; all
//! else follows a cycle later. The packets themselves are in the switch's
//! [`Buffers`](crate::blocks::primitive::Buffers), at the addresses given here: the head is read in
//! every cycle, and stands in a register in the next, when it may be known that it was taken.
//!
//! ```text
//! cycle          0   1   2   3   4
//! write          ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! way            a   b
//! head           0   a   a   b   0
//! taken          ▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁
//! write_address  0   1   2   2   2
//! read_address   0   0   0   1   2
//! ```

use rust_hdl::prelude::*;

use crate::blocks::primitive::{LutRam, Register};
use crate::blocks::resting::Rests;

/// A buffer of up to 32 packets; [`Route`](crate::blocks::router::Route) says what a way is.
#[derive(Clone, Debug, LogicBlock)]
pub struct SwitchInput {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties it.
    pub reset: Signal<In, Bit>,
    /// Offers a packet.
    pub write: Signal<In, Bit>,
    /// The way of that packet.
    pub way: Signal<In, Bits<8>>,
    /// Takes the head, of which there must be one.
    pub taken: Signal<In, Bit>,
    /// Not full.
    pub ready: Signal<Out, Bit>,
    /// The packet is written.
    pub written: Signal<Out, Bit>,
    /// The address.
    pub write_address: Signal<Out, Bits<5>>,
    /// The place of the first packet, if there is one.
    pub read_address: Signal<Out, Bits<5>>,
    /// The way of the first packet; 0 if there is none.
    pub head: Signal<Out, Bits<8>>,
    routes: LutRam<Bits<8>, 5>,
    /// The way of the first packet.
    first: Register<Bits<8>>,
    /// The way of the packet behind it, unless one was taken in the cycle before.
    second: Register<Bits<8>>,
    was_taken: Register<Bit>,
    write_pointer: Register<Bits<5>>,
    /// The place of the first packet, or the one that was taken in the cycle before.
    read_pointer: Register<Bits<5>>,
    /// The places after that one.
    second_pointer: Register<Bits<5>>,
    third_pointer: Register<Bits<5>>,
    /// Packets, with the one that was taken in the cycle before.
    count: Register<Bits<6>>,
    /// At least three of these.
    third: Register<Bit>,
    not_full: Register<Bit>,
    /// Not full, or one was taken.
    accepts: Register<Bit>,
    /// Not full in the next cycle.
    has_place: Signal<Local, Bit>,
    /// The way of the second packet, 0 if there is none.
    behind: Signal<Local, Bits<8>>,
    /// `way`, without the bits that it cannot have.
    possible: Signal<Local, Bits<8>>,
    /// The way of the packet that is written; 0 if none is.
    comes: Signal<Local, Bits<8>>,
    /// The input is offered packets for which it may have no place.
    asks: Constant<Bit>,
    /// The mask of the ways that a packet can take.
    ways: Constant<Bits<8>>,
    /// There are two places.
    several: Constant<Bit>,
    /// The last place.
    last: Constant<Bits<5>>,
    /// One less than the places.
    almost: Constant<Bits<6>>,
}

impl SwitchInput {
    /// Of a link, empty, with `depth` places, 1 to 32: a packet comes only when there is one. A
    /// packet's way has no other bits than `ways`.
    pub fn of_link(depth: usize, ways: u8) -> Self {
        Self::new(depth, ways, false)
    }

    /// Of the host: a packet is written if it is ready.
    pub fn of_host(depth: usize, ways: u8) -> Self {
        Self::new(depth, ways, true)
    }

    fn new(depth: usize, ways: u8, asks: bool) -> Self {
        assert!((1..=32).contains(&depth));
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            write: Signal::default(),
            way: Signal::default(),
            taken: Signal::default(),
            ready: Signal::default(),
            written: Signal::default(),
            write_address: Signal::default(),
            read_address: Signal::default(),
            head: Signal::default(),
            routes: LutRam::default(),
            first: Register::default(),
            second: Register::default(),
            was_taken: Register::default(),
            write_pointer: Register::default(),
            read_pointer: Register::default(),
            second_pointer: Register::new((1 % depth).to_bits()),
            third_pointer: Register::new((2 % depth).to_bits()),
            count: Register::default(),
            third: Register::default(),
            not_full: Register::new(true),
            accepts: Register::new(true),
            has_place: Signal::default(),
            asks: Constant::new(asks),
            behind: Signal::default(),
            possible: Signal::default(),
            comes: Signal::default(),
            ways: Constant::new(ways.to_bits()),
            several: Constant::new(depth > 1),
            last: Constant::new((depth - 1).to_bits()),
            almost: Constant::new((depth - 1).to_bits()),
        }
    }
}

impl Logic for SwitchInput {
    #[hdl_gen]
    fn update(&mut self) {
        self.routes.clock.next = self.clock.val();
        self.first.clock.next = self.clock.val();
        self.second.clock.next = self.clock.val();
        self.was_taken.clock.next = self.clock.val();
        self.write_pointer.clock.next = self.clock.val();
        self.read_pointer.clock.next = self.clock.val();
        self.second_pointer.clock.next = self.clock.val();
        self.third_pointer.clock.next = self.clock.val();
        self.count.clock.next = self.clock.val();
        self.third.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.accepts.clock.next = self.clock.val();
        self.first.reset.next = self.reset.val();
        self.second.reset.next = self.reset.val();
        self.was_taken.reset.next = self.reset.val();
        self.write_pointer.reset.next = self.reset.val();
        self.read_pointer.reset.next = self.reset.val();
        self.second_pointer.reset.next = self.reset.val();
        self.third_pointer.reset.next = self.reset.val();
        self.count.reset.next = self.reset.val();
        self.third.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();
        self.accepts.reset.next = self.reset.val();

        self.was_taken.d.next = self.taken.val();
        self.ready.next = self.accepts.q.val();
        // Masked here as well as on the way in: Yosys does not find out that bits which go round
        // between registers are never set, and would keep what reads them.
        self.head.next = self.first.q.val() & self.ways.val();
        self.behind.next = self.second.q.val() & self.ways.val();
        if self.was_taken.q.val() {
            self.behind.next = 0.into();
            if self.third.q.val() {
                self.behind.next = self.routes.read_data.val() & self.ways.val();
            }
        }
        self.write_address.next = self.write_pointer.q.val();
        self.read_address.next = self.read_pointer.q.val();
        if self.was_taken.q.val() {
            self.read_address.next = self.second_pointer.q.val();
        }
        self.written.next = self.write.val() & (self.ready.val() | !self.asks.val());
        self.routes.write_enable.next = self.written.val();
        self.routes.write_address.next = self.write_pointer.q.val();
        self.possible.next = self.way.val() & self.ways.val();
        self.routes.write_data.next = self.possible.val();
        self.routes.read_address.next = self.third_pointer.q.val();

        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.written.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() + 1;
            if self.write_pointer.q.val() == self.last.val() {
                self.write_pointer.d.next = 0.into();
            }
        }
        self.read_pointer.d.next = self.read_pointer.q.val();
        self.second_pointer.d.next = self.second_pointer.q.val();
        self.third_pointer.d.next = self.third_pointer.q.val();
        if self.was_taken.q.val() {
            self.read_pointer.d.next = self.second_pointer.q.val();
            self.second_pointer.d.next = self.third_pointer.q.val();
            self.third_pointer.d.next = self.third_pointer.q.val() + 1;
            if self.third_pointer.q.val() == self.last.val() {
                self.third_pointer.d.next = 0.into();
            }
        }

        self.comes.next = 0.into();
        if self.written.val() {
            self.comes.next = self.possible.val();
        }
        self.first.d.next = self.comes.val();
        if self.taken.val() {
            if self.behind.val().any() {
                self.first.d.next = self.behind.val();
            }
        } else if self.head.val().any() {
            self.first.d.next = self.head.val();
        }
        // After a cycle in which one is taken `behind` comes from the memory, independent of this
        // value.
        self.second.d.next = 0.into();
        if self.behind.val().any() {
            self.second.d.next = self.behind.val();
        } else if self.head.val().any() & self.several.val() {
            self.second.d.next = self.comes.val();
        }

        self.count.d.next = self.count.q.val();
        self.third.d.next = self.third.q.val();
        self.has_place.next = self.not_full.q.val();
        // As if of what is written, but without waiting for that: if one was taken there is a
        // place.
        if self.was_taken.q.val() {
            if !self.write.val() {
                self.count.d.next = self.count.q.val() - 1;
                self.third.d.next = self.third.q.val() & (self.count.q.val() != 3);
                self.has_place.next = true;
            }
        } else if self.write.val() & (self.not_full.q.val() | !self.asks.val()) {
            self.count.d.next = self.count.q.val() + 1;
            self.third.d.next = self.behind.val().any();
            self.has_place.next = self.count.q.val() != self.almost.val();
        }
        self.not_full.d.next = self.has_place.val();
        self.accepts.d.next = self.has_place.val() | self.taken.val();
    }
}

impl Rests for SwitchInput {
    fn rests(&self) -> bool {
        let next = self.reset.next | self.write.next | self.taken.next;
        let now = self.reset.val() | self.write.val() | self.taken.val();
        !(next | now | self.was_taken.q.val())
    }

    fn clock_is_high(&self) -> bool {
        self.clock.val().clk
    }
}
