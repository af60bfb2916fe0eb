//! A switch input: a receive buffer that knows where its first packet goes.
//!
//! ```text
//!                    ┌──── routes (LutRam) ────┐
//! way ──────┬────────┤ write pointer    second ├──┐
//!           │        └─────────────────────────┘  ├──> head, a register ──> way of the first packet,
//!           └─────────────────────────────────────┘                         0 if there is none
//! write ────> written                 write_address, read_address ──> the packets' memory
//! ready <──── = not full, a register               ^
//! taken ───────────────────────────────────────────┘ moves the read pointer on
//! ```
//!
//! The route is decided when a packet is written and kept beside it. That of the first packet
//! stands decoded in a register, so that the allocators begin with one-hot bits: when a packet is
//! taken, the next one's comes from the memory, or, if there is none, from what is being written.
//! The packets themselves are in the switch's [`Buffers`](crate::blocks::primitive::Buffers), at the
//! addresses given here.
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
    /// Where that packet goes.
    pub way: Signal<In, Bits<8>>,
    /// Takes the first packet, of which there must be one.
    pub taken: Signal<In, Bit>,
    /// Not full.
    pub ready: Signal<Out, Bit>,
    /// The packet is written.
    pub written: Signal<Out, Bit>,
    /// Where.
    pub write_address: Signal<Out, Bits<5>>,
    /// Where the first packet is.
    pub read_address: Signal<Out, Bits<5>>,
    /// Where it goes; 0 if there is none.
    pub head: Signal<Out, Bits<8>>,
    routes: LutRam<Bits<8>, 5>,
    first: Register<Bits<8>>,
    write_pointer: Register<Bits<5>>,
    read_pointer: Register<Bits<5>>,
    /// The place after the read pointer's.
    second_pointer: Register<Bits<5>>,
    count: Register<Bits<6>>,
    /// At least two packets.
    several: Register<Bit>,
    not_full: Register<Bit>,
    valid: Signal<Local, Bit>,
    /// The last place.
    last: Constant<Bits<5>>,
    /// One less than the places.
    almost: Constant<Bits<6>>,
}

impl SwitchInput {
    /// Empty, with `depth` places, 1 to 32.
    pub fn new(depth: usize) -> Self {
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
            write_pointer: Register::default(),
            read_pointer: Register::default(),
            second_pointer: Register::new((1 % depth).to_bits()),
            count: Register::default(),
            several: Register::default(),
            not_full: Register::new(true),
            valid: Signal::default(),
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
        self.write_pointer.clock.next = self.clock.val();
        self.read_pointer.clock.next = self.clock.val();
        self.second_pointer.clock.next = self.clock.val();
        self.count.clock.next = self.clock.val();
        self.several.clock.next = self.clock.val();
        self.not_full.clock.next = self.clock.val();
        self.first.reset.next = self.reset.val();
        self.write_pointer.reset.next = self.reset.val();
        self.read_pointer.reset.next = self.reset.val();
        self.second_pointer.reset.next = self.reset.val();
        self.count.reset.next = self.reset.val();
        self.several.reset.next = self.reset.val();
        self.not_full.reset.next = self.reset.val();

        self.ready.next = self.not_full.q.val();
        self.head.next = self.first.q.val();
        self.write_address.next = self.write_pointer.q.val();
        self.read_address.next = self.read_pointer.q.val();
        self.written.next = self.write.val() & self.not_full.q.val();
        self.valid.next = self.first.q.val().any();
        self.routes.write_enable.next = self.written.val();
        self.routes.write_address.next = self.write_pointer.q.val();
        self.routes.write_data.next = self.way.val();
        self.routes.read_address.next = self.second_pointer.q.val();

        self.write_pointer.d.next = self.write_pointer.q.val();
        if self.written.val() {
            self.write_pointer.d.next = self.write_pointer.q.val() + 1;
            if self.write_pointer.q.val() == self.last.val() {
                self.write_pointer.d.next = 0.into();
            }
        }
        self.read_pointer.d.next = self.read_pointer.q.val();
        self.second_pointer.d.next = self.second_pointer.q.val();
        self.first.d.next = self.first.q.val();
        if self.taken.val() {
            self.read_pointer.d.next = self.second_pointer.q.val();
            self.second_pointer.d.next = self.second_pointer.q.val() + 1;
            if self.second_pointer.q.val() == self.last.val() {
                self.second_pointer.d.next = 0.into();
            }
            if self.several.q.val() {
                self.first.d.next = self.routes.read_data.val();
            } else if self.written.val() {
                self.first.d.next = self.way.val();
            } else {
                self.first.d.next = 0.into();
            }
        } else if self.written.val() & !self.valid.val() {
            self.first.d.next = self.way.val();
        }

        self.count.d.next = self.count.q.val();
        self.several.d.next = self.several.q.val();
        self.not_full.d.next = self.not_full.q.val();
        if self.written.val() & !self.taken.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.several.d.next = self.valid.val();
            self.not_full.d.next = self.count.q.val() != self.almost.val();
        } else if self.taken.val() & !self.written.val() {
            self.count.d.next = self.count.q.val() - 1;
            self.several.d.next = self.several.q.val() & (self.count.q.val() != 2);
            self.not_full.d.next = true;
        }
    }
}

impl Rests for SwitchInput {
    fn rests(&self) -> bool {
        let next = self.reset.next | self.write.next | self.taken.next;
        let now = self.reset.val() | self.write.val() | self.taken.val();
        !(next | now)
    }

    fn clock_is_high(&self) -> bool {
        self.clock.val().clk
    }
}
