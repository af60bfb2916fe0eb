//! A switch output: which input gives it a packet in a cycle.
//!
//! ```text
//! request ─ & ─> round robin ──┬───────────────────────────────> grant, one-hot
//! places ───┤                  └─ register ────────────────────> select: grant, a cycle later
//!           └──> round robin of channels, by class and crossed ─> valid, one bit for each of them
//! ```
//!
//! An input takes part if its first packet goes here and the packet's virtual channel has a place:
//! the winner moves. So the grant needs no second look at the channels, and a channel without a
//! place holds up no other. `select` picks the winner's packet in the cycle after: who wins is
//! known late in a cycle.
//!
//! ```text
//! cycle     0    1    2    3
//! request   0101 0101 0100 0000    initially, the last winner is the last input
//! grant     0001 0100 0100 0000    there is a place
//! select    0000 0001 0100 0100
//! ```

use rust_hdl::prelude::*;

use crate::blocks::arbiter::RoundRobin;
use crate::blocks::primitive::buffers::INPUTS;
use crate::blocks::primitive::{ChannelInTurn, Register};
use crate::blocks::resting::Rests;

/// Allocator of one output.
#[derive(Clone, Debug, LogicBlock)]
pub struct SwitchOutput {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Makes the last input the last winner.
    pub reset: Signal<In, Bit>,
    /// The inputs whose first packet leaves here.
    pub request: Signal<In, Bits<INPUTS>>,
    /// The inputs whose first packet continues on the second dateline channel.
    pub crossed: Signal<In, Bits<INPUTS>>,
    /// The virtual channels behind the output that have a place.
    pub places: Signal<In, Bits<4>>,
    /// The winner, one-hot.
    pub grant: Signal<Out, Bits<INPUTS>>,
    /// The winner of the cycle before, one-hot.
    pub select: Signal<Out, Bits<INPUTS>>,
    /// The winner's virtual channel, one-hot.
    pub valid: Signal<Out, Bits<4>>,
    arbiter: RoundRobin<INPUTS, 5>,
    winner: Register<Bits<INPUTS>>,
    /// All ones but in the first cycle, which has no request.
    started: Register<Bits<INPUTS>>,
    channel: ChannelInTurn,
    /// The inputs whose first packet has a place on its class's first channel, and on its second.
    first: Signal<Local, Bits<INPUTS>>,
    second: Signal<Local, Bits<INPUTS>>,
    /// The inputs whose first packet has a place where it continues.
    can: Signal<Local, Bits<INPUTS>>,
    /// They and the requests.
    leaves: Signal<Local, Bits<INPUTS>>,
    /// Whether requests, and responses, have a place on their first channels.
    can_by_class: Signal<Local, Bits<2>>,
    /// No packet here continues on a second channel: those of a class have a place or none has.
    together: Constant<Bit>,
    /// Of each class.
    can_both: Constant<Bits<2>>,
    /// The inputs of each class.
    pub(crate) requests: Constant<Bits<INPUTS>>,
    pub(crate) responses: Constant<Bits<INPUTS>>,
    all: Constant<Bits<INPUTS>>,
}

impl SwitchOutput {
    /// An allocator whose initial last winner is `last`; `responses` are the inputs of that class,
    /// `turns` those whose packets leave here, bit by bit: no other requests it; `crossing` those
    /// whose packets can continue on their class's second channel.
    pub fn new(last: usize, responses: u32, turns: u32, crossing: u32) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            request: Signal::default(),
            crossed: Signal::default(),
            places: Signal::default(),
            grant: Signal::default(),
            select: Signal::default(),
            valid: Signal::default(),
            arbiter: RoundRobin::among(turns, responses, last),
            winner: Register::default(),
            started: Register::default(),
            channel: ChannelInTurn::among(turns, responses),
            first: Signal::default(),
            second: Signal::default(),
            can: Signal::default(),
            leaves: Signal::default(),
            can_by_class: Signal::default(),
            together: Constant::new(turns & crossing == 0),
            can_both: Constant::new(3.into()),
            requests: Constant::new(!responses.to_bits()),
            responses: Constant::new(responses.to_bits()),
            all: Constant::new(!Bits::from(0)),
        }
    }
}

impl Logic for SwitchOutput {
    #[hdl_gen]
    fn update(&mut self) {
        self.first.next = 0.into();
        self.second.next = 0.into();
        if self.places.val().get_bit(0) {
            self.first.next = self.requests.val();
        }
        if self.places.val().get_bit(1) {
            self.second.next = self.requests.val();
        }
        if self.places.val().get_bit(2) {
            self.first.next = self.first.val() | self.responses.val();
        }
        if self.places.val().get_bit(3) {
            self.second.next = self.second.val() | self.responses.val();
        }
        self.can.next = (self.first.val() & (self.crossed.val() ^ self.all.val()))
            | (self.second.val() & self.crossed.val());
        self.leaves.next = self.request.val() & self.can.val();

        self.arbiter.clock.next = self.clock.val();
        self.arbiter.reset.next = self.reset.val();
        self.can_by_class.next = 0.into();
        self.can_by_class.next =
            (self.can_by_class.val()).replace_bit(0, self.places.val().get_bit(0));
        self.can_by_class.next =
            (self.can_by_class.val()).replace_bit(1, self.places.val().get_bit(2));
        // The places of a class come as early as the requests: they are looked at together if they
        // can be.
        if self.together.val() {
            self.arbiter.want.next = self.request.val();
            self.arbiter.can.next = self.can_by_class.val();
        } else {
            self.arbiter.want.next = self.leaves.val();
            self.arbiter.can.next = self.can_both.val();
        }
        self.arbiter.take.next = true;
        self.grant.next = self.arbiter.grant.val();
        self.winner.clock.next = self.clock.val();
        self.winner.reset.next = self.reset.val();
        self.started.clock.next = self.clock.val();
        self.started.reset.next = self.reset.val();
        self.started.d.next = self.all.val();
        // A table lies with the register that takes what it says. Were these the tables of `grant`,
        // they would lie with the packets, and not with the inputs, which wait for `grant`.
        self.winner.d.next = self.arbiter.grant.val() & self.started.q.val();
        self.select.next = self.winner.q.val();

        self.channel.want.next = bit_cast::<32, INPUTS>(self.leaves.val());
        self.channel.after.next = bit_cast::<32, INPUTS>(self.arbiter.after.val());
        self.channel.crossed.next = bit_cast::<32, INPUTS>(self.crossed.val());
        self.valid.next = self.channel.channel.val();
    }
}

impl Rests for SwitchOutput {
    fn rests(&self) -> bool {
        let requested = self.request.next.any() | self.request.val().any();
        !(requested | self.winner.q.val().any() | self.reset.next | self.reset.val())
    }

    fn clock_is_high(&self) -> bool {
        self.clock.val().clk
    }
}
