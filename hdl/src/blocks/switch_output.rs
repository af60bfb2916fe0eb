//! A switch output: which input gives it a packet in a cycle.
//!
//! ```text
//! request ──> round robin ──┬───────────────────────────────> grant, one-hot
//!     │                     └─ register ────────────────────> select: grant, a cycle later
//!     └─────> round robin of channels, by class and crossed ─> valid, one bit for each of them
//! ```
//!
//! An input requests the output if its first packet goes there and the packet's virtual channel
//! has a place: whoever wins moves. So the grant needs no second look at the channels, and a
//! channel without a place holds up nobody else. `select` picks the winner's packet in the cycle
//! after: who wins is known late in a cycle.
//!
//! ```text
//! cycle     0    1    2    3
//! request   0101 0101 0100 0000    initially, the last winner is the last input
//! grant     0001 0100 0100 0000
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
    /// The inputs whose first packet can leave here.
    pub request: Signal<In, Bits<INPUTS>>,
    /// The inputs whose first packet continues on the second dateline channel.
    pub crossed: Signal<In, Bits<INPUTS>>,
    /// The winner, one-hot.
    pub grant: Signal<Out, Bits<INPUTS>>,
    /// The winner of the cycle before, one-hot.
    pub select: Signal<Out, Bits<INPUTS>>,
    /// The winner's virtual channel, one-hot.
    pub valid: Signal<Out, Bits<4>>,
    arbiter: RoundRobin<INPUTS, 5>,
    winner: Register<Bits<INPUTS>>,
    /// All ones but in the first cycle, when nobody requests anything.
    started: Register<Bits<INPUTS>>,
    channel: ChannelInTurn,
    all: Constant<Bits<INPUTS>>,
}

impl SwitchOutput {
    /// An allocator whose initial last winner is `last`; `responses` are the inputs of that class,
    /// `turns` those whose packets leave here, bit by bit: no other requests it.
    pub fn new(last: usize, responses: u32, turns: u32) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            request: Signal::default(),
            crossed: Signal::default(),
            grant: Signal::default(),
            select: Signal::default(),
            valid: Signal::default(),
            arbiter: RoundRobin::among(turns, last),
            winner: Register::default(),
            started: Register::default(),
            all: Constant::new(!Bits::from(0)),
            channel: ChannelInTurn::among(turns, responses),
        }
    }
}

impl Logic for SwitchOutput {
    #[hdl_gen]
    fn update(&mut self) {
        self.arbiter.clock.next = self.clock.val();
        self.arbiter.reset.next = self.reset.val();
        self.arbiter.want.next = self.request.val();
        self.arbiter.take.next = true;
        self.grant.next = self.arbiter.grant.val();
        self.winner.clock.next = self.clock.val();
        self.winner.reset.next = self.reset.val();
        self.started.clock.next = self.clock.val();
        self.started.reset.next = self.reset.val();
        self.started.d.next = self.all.val();
        // A table lies with the register that takes what it says. Were these the tables of `grant`, they
        // would lie with the packets, and not with the inputs, which wait for `grant`.
        self.winner.d.next = self.arbiter.grant.val() & self.started.q.val();
        self.select.next = self.winner.q.val();

        self.channel.want.next = bit_cast::<32, INPUTS>(self.request.val());
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
