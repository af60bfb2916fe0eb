//! Dimension-order routing with dateline channels: the next step of a packet.
//!
//! ```text
//!            ┌ ÷ size of x ┬ remainder ───────────────> x ┐
//! target ────┤             └ quotient ┐                   │   for each dimension:
//!            │     ┌ ÷ size of y ┬────┘ remainder ────> y ├─> here? the minus way? ─> first that
//!            └─────┘             └ quotient ──────────> z ┘   by a wrap-around link?   is not here
//!                                                                                        │
//! arrived, channel ──────────────────────────── straight on in the same ring? ─> crossed ┴─> exit
//! ```
//!
//! There is no clock in it: what a packet's `target` says is answered within the cycle.
//!
//! ```text
//! cycle    0   1   2
//! target   5   4   3       at position 4 of mesh:3x3
//! exit     0   24  4       x+; the host; x-
//! ```
//!
//! The sizes are constants of the instance, so one netlist serves every position of a cluster; the
//! coordinates are inputs that never change. Sizes that are powers of two divide by wires. For
//! others two products follow each other, which takes most of a cycle: what comes over a link has
//! one for nothing else.
//!
//! A torus goes the shorter way round, the + way if both are as long. With the signed distance
//! d = there − here that is the − way if 2 · d > size, or if 0 > 2 · d > −size.

use rust_hdl::prelude::*;
use sme_sim::parts::fabric::Topology;

use crate::blocks::primitive::Divide;
use crate::blocks::resting::Rests;

/// The route of the packets that arrive at one port.
#[derive(Clone, Debug, LogicBlock)]
pub struct Route {
    /// Not used; every block with pins of its own has one.
    pub clock: Signal<In, Clock>,
    /// Not used.
    pub reset: Signal<In, Bit>,
    /// The switch's own coordinate along x.
    pub x: Signal<In, Bits<20>>,
    /// Along y.
    pub y: Signal<In, Bits<20>>,
    /// Along z.
    pub z: Signal<In, Bits<20>>,
    /// The port at which the packet arrived: a link port, or 6, the host's.
    pub arrived: Signal<In, Bits<3>>,
    /// The virtual channel in which it arrived.
    pub channel: Signal<In, Bits<2>>,
    /// The position it goes to.
    pub target: Signal<In, Bits<20>>,
    /// The exit: port · 4 + virtual channel.
    pub exit: Signal<Out, Bits<5>>,
    /// The same without the class: bits 0–6 the port, one-hot; bit 7, the second dateline channel.
    pub way: Signal<Out, Bits<8>>,
    row: Divide,
    column: Divide,
    wide_here: [Signal<Local, Bits<21>>; 3],
    wide_there: [Signal<Local, Bits<21>>; 3],
    /// Farther away in the + direction than half the ring.
    far: [Signal<Local, Bits<21>>; 3],
    /// Nearer in the − direction than half the ring.
    near: [Signal<Local, Bits<21>>; 3],
    elsewhere: [Signal<Local, Bit>; 3],
    minus: [Signal<Local, Bit>; 3],
    /// A packet that goes on this way came here over the wrap-around link.
    wrapped: [Signal<Local, Bit>; 3],
    port: Signal<Local, Bits<3>>,
    opposite: Signal<Local, Bits<3>>,
    over_wrap: Signal<Local, Bit>,
    crossed: Signal<Local, Bit>,
    /// The bits that a coordinate can have.
    mask: [Constant<Bits<20>>; 3],
    last: [Constant<Bits<21>>; 3],
    wraps: [Constant<Bit>; 3],
    /// ⌊size / 2⌋.
    pub(crate) half: [Constant<Bits<21>>; 3],
    /// ⌊(size − 1) / 2⌋.
    less_than_half: [Constant<Bits<21>>; 3],
}

impl Route {
    /// In the switches of `topology`.
    pub fn new(topology: &Topology) -> Self {
        let sizes = topology.sizes();
        let of_sizes = |f: fn(u32) -> u32| sizes.map(|size| Constant::new(f(size).to_bits()));
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            x: Signal::default(),
            y: Signal::default(),
            z: Signal::default(),
            arrived: Signal::default(),
            channel: Signal::default(),
            target: Signal::default(),
            exit: Signal::default(),
            way: Signal::default(),
            row: Divide::new(sizes[0]),
            column: Divide::new(sizes[1]),
            wide_here: Default::default(),
            wide_there: Default::default(),
            far: Default::default(),
            near: Default::default(),
            elsewhere: Default::default(),
            minus: Default::default(),
            wrapped: Default::default(),
            port: Signal::default(),
            opposite: Signal::default(),
            over_wrap: Signal::default(),
            crossed: Signal::default(),
            mask: sizes.map(|size| Constant::new((size.next_power_of_two() - 1).to_bits())),
            last: of_sizes(|size| size - 1),
            wraps: [0, 1, 2].map(|dimension| Constant::new(topology.wraps(dimension))),
            half: of_sizes(|size| size / 2),
            less_than_half: of_sizes(|size| (size - 1) / 2),
        }
    }
}

impl Logic for Route {
    #[hdl_gen]
    fn update(&mut self) {
        self.row.value.next = self.target.val();
        self.column.value.next = self.row.quotient.val();
        self.wide_here[0].next = bit_cast::<21, 20>(self.x.val() & self.mask[0].val());
        self.wide_here[1].next = bit_cast::<21, 20>(self.y.val() & self.mask[1].val());
        self.wide_here[2].next = bit_cast::<21, 20>(self.z.val() & self.mask[2].val());
        self.wide_there[0].next = bit_cast::<21, 20>(self.row.remainder.val());
        self.wide_there[1].next = bit_cast::<21, 20>(self.column.remainder.val());
        self.wide_there[2].next = bit_cast::<21, 20>(self.column.quotient.val());

        for i in 0..3 {
            self.far[i].next = self.wide_here[i].val() + self.half[i].val();
            self.near[i].next = self.wide_there[i].val() + self.less_than_half[i].val();
            self.elsewhere[i].next = self.wide_there[i].val() != self.wide_here[i].val();
            self.minus[i].next = self.wide_there[i].val() < self.wide_here[i].val();
            self.wrapped[i].next = false;
            if self.wraps[i].val() {
                self.minus[i].next = (self.wide_there[i].val() > self.far[i].val())
                    | ((self.wide_there[i].val() < self.wide_here[i].val())
                        & (self.near[i].val() >= self.wide_here[i].val()));
                if self.minus[i].val() {
                    self.wrapped[i].next = self.wide_here[i].val() == self.last[i].val();
                } else {
                    self.wrapped[i].next = self.wide_here[i].val() == 0;
                }
            }
        }

        self.port.next = 6.into();
        self.exit.next = 24.into();
        self.way.next = 64.into();
        self.over_wrap.next = false;
        if self.elsewhere[0].val() {
            self.over_wrap.next = self.wrapped[0].val();
            if self.minus[0].val() {
                self.port.next = 1.into();
                self.exit.next = 4.into();
                self.way.next = 2.into();
            } else {
                self.port.next = 0.into();
                self.exit.next = 0.into();
                self.way.next = 1.into();
            }
        } else if self.elsewhere[1].val() {
            self.over_wrap.next = self.wrapped[1].val();
            if self.minus[1].val() {
                self.port.next = 3.into();
                self.exit.next = 12.into();
                self.way.next = 8.into();
            } else {
                self.port.next = 2.into();
                self.exit.next = 8.into();
                self.way.next = 4.into();
            }
        } else if self.elsewhere[2].val() {
            self.over_wrap.next = self.wrapped[2].val();
            if self.minus[2].val() {
                self.port.next = 5.into();
                self.exit.next = 20.into();
                self.way.next = 32.into();
            } else {
                self.port.next = 4.into();
                self.exit.next = 16.into();
                self.way.next = 16.into();
            }
        }

        // Straight on: it leaves by the port opposite to the one at which it arrived. The host's
        // port, 6, has no opposite.
        self.opposite.next = self.port.val() ^ 1;
        self.crossed.next = (self.opposite.val() == self.arrived.val())
            & (self.channel.val().get_bit(0) | self.over_wrap.val());
        self.way.next = self.way.val().replace_bit(7, self.crossed.val());
        self.exit.next = self.exit.val().replace_bit(0, self.crossed.val());
        self.exit.next = self
            .exit
            .val()
            .replace_bit(1, self.channel.val().get_bit(1));
    }
}

impl Rests for Route {
    fn rests(&self) -> bool {
        self.target.next == self.target.val()
            && self.channel.next == self.channel.val()
            && self.arrived.next == self.arrived.val()
            && self.x.next == self.x.val()
            && self.y.next == self.y.val()
            && self.z.next == self.z.val()
    }

    fn clock_is_high(&self) -> bool {
        true
    }
}
