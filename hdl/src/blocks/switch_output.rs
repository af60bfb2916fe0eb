//! A switch output: which input gives it a packet in a cycle.
//!
//! ```text
//! request ─ & turns ─> round robin ──┬──────────────────────> grant, one-hot
//!                                    ├─ & class, & crossed ─> valid, one bit for each virtual channel
//!                                    └─ register ───────────> select: grant, a cycle later
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
use crate::blocks::primitive::Register;
use crate::blocks::primitive::buffers::INPUTS;
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
    straight: Signal<Local, Bits<INPUTS>>,
    over: Signal<Local, Bits<INPUTS>>,
    /// Those of them that can.
    wanted: Signal<Local, Bits<INPUTS>>,
    /// The inputs whose packets leave here at all.
    turns: Constant<Bits<INPUTS>>,
    /// The inputs that carry requests.
    requests: Constant<Bits<INPUTS>>,
    /// The inputs that carry responses.
    responses: Constant<Bits<INPUTS>>,
}

impl SwitchOutput {
    /// An allocator whose initial last winner is `last`; `responses` are the inputs of that class,
    /// `turns` those whose packets leave here, bit by bit.
    pub fn new(last: usize, responses: u32, turns: u32) -> Self {
        let requests = !responses & (u32::MAX >> (32 - INPUTS));
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
            straight: Signal::default(),
            over: Signal::default(),
            wanted: Signal::default(),
            turns: Constant::new(turns.to_bits()),
            requests: Constant::new(requests.to_bits()),
            responses: Constant::new(responses.to_bits()),
        }
    }
}

impl Logic for SwitchOutput {
    #[hdl_gen]
    fn update(&mut self) {
        self.arbiter.clock.next = self.clock.val();
        self.arbiter.reset.next = self.reset.val();
        self.wanted.next = self.request.val() & self.turns.val();
        self.arbiter.want.next = self.wanted.val();
        self.arbiter.take.next = true;
        self.grant.next = self.arbiter.grant.val();
        self.winner.clock.next = self.clock.val();
        self.winner.reset.next = self.reset.val();
        self.winner.d.next = self.arbiter.grant.val();
        self.select.next = self.winner.q.val();

        self.over.next = self.arbiter.grant.val() & self.crossed.val();
        self.straight.next = self.arbiter.grant.val() & !self.crossed.val();
        self.valid.next = 0.into();
        self.valid.next =
            (self.valid.val()).replace_bit(0, (self.straight.val() & self.requests.val()).any());
        self.valid.next =
            (self.valid.val()).replace_bit(1, (self.over.val() & self.requests.val()).any());
        self.valid.next =
            (self.valid.val()).replace_bit(2, (self.straight.val() & self.responses.val()).any());
        self.valid.next =
            (self.valid.val()).replace_bit(3, (self.over.val() & self.responses.val()).any());
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
