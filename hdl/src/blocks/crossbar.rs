//! The on-chip crossbar: joins requester, completer, responder and switch.
//!
//! ```text
//! requester ──> FIFO ──┬── to another node ───────────────────> request  (the switch's host input)
//!                      └── to the own node ──┐
//!                                            ├─ take turns ───> completer
//! switch_request ──> FIFO ───────────────────┘
//!
//! responder ──> FIFO ──┬── to another node ───────────────────> response (the switch's host input)
//!                      └── to the own node ──┐
//!                                            ├─ take turns ───> answer   (the requester)
//! switch_response ──> FIFO ──────────────────┘
//! ```
//!
//! Requests and responses have nothing in common but the clock: each class has a [`CrossbarHalf`].
//! A packet from this node says itself whether it is for this node: its sender has the time to
//! compare, and here it decides where 160 bits go. Whether anything is offered depends on registers
//! alone. Which of two is offered is decided anew in each cycle: a packet that is offered and not
//! taken may give way to one that has come since, if it is that one's turn. So `…_data` may change
//! while `…_valid` stands and `…_ready` does not.
//!
//! ```text
//! cycle            0   1   2   3   4
//! requester_valid  ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! requester_data    a   b                   both to the own node
//! switch_request_… ▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! …_packet              c                   a cycle after …_valid, as the switch gives it
//! completer_valid  ▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁
//! completer_data        a   c   b
//! ```

use crate::beat::PacketBeat;
use crate::blocks::fork::Fork;
use crate::blocks::late_fifo::LateFifo;
use crate::blocks::ping_pong::PingPong;
use crate::blocks::primitive::Register;
use crate::blocks::skid_buffer::SkidBuffer;
use rust_hdl::prelude::*;

/// The crossbar of a node.
#[derive(Clone, Debug, LogicBlock)]
pub struct Crossbar {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties the FIFOs.
    pub reset: Signal<In, Bit>,
    /// The switch offers a request to this node.
    pub switch_request_valid: Signal<In, Bit>,
    /// The request that it offered in the cycle before, if that was taken.
    pub switch_request_packet: Signal<In, PacketBeat>,
    /// The switch's request is taken.
    pub switch_request_ready: Signal<Out, Bit>,
    /// The requester offers a request.
    pub requester_valid: Signal<In, Bit>,
    /// The requester's request.
    pub requester_data: Signal<In, PacketBeat>,
    /// The requester's request is for this node.
    pub requester_stays: Signal<In, Bit>,
    /// The requester's request is taken.
    pub requester_ready: Signal<Out, Bit>,
    /// The switch offers a response to this node.
    pub switch_response_valid: Signal<In, Bit>,
    /// The response that it offered in the cycle before, if that was taken.
    pub switch_response_packet: Signal<In, PacketBeat>,
    /// The switch's response is taken.
    pub switch_response_ready: Signal<Out, Bit>,
    /// The responder offers a response.
    pub responder_valid: Signal<In, Bit>,
    /// The responder's response.
    pub responder_data: Signal<In, PacketBeat>,
    /// The responder's response is for this node.
    pub responder_stays: Signal<In, Bit>,
    /// The responder's response is taken.
    pub responder_ready: Signal<Out, Bit>,
    /// A request for the completer.
    pub completer_valid: Signal<Out, Bit>,
    /// The request to the completer.
    pub completer_data: Signal<Out, PacketBeat>,
    /// The completer takes it.
    pub completer_ready: Signal<In, Bit>,
    /// A response for the requester.
    pub answer_valid: Signal<Out, Bit>,
    /// The response to the requester's side.
    pub answer_data: Signal<Out, PacketBeat>,
    /// The requester takes it.
    pub answer_ready: Signal<In, Bit>,
    /// A request for the switch.
    pub request_valid: Signal<Out, Bit>,
    /// The request to the switch.
    pub request_data: Signal<Out, PacketBeat>,
    /// The switch takes it.
    pub request_ready: Signal<In, Bit>,
    /// A response for the switch.
    pub response_valid: Signal<Out, Bit>,
    /// The response to the switch.
    pub response_data: Signal<Out, PacketBeat>,
    /// The switch takes it.
    pub response_ready: Signal<In, Bit>,
    pub(crate) requests: CrossbarHalf,
    pub(crate) responses: CrossbarHalf,
}

impl Crossbar {
    /// Empty; of two packets that come at once, the first goes to the one from this node.
    pub fn new() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            switch_request_valid: Signal::default(),
            switch_request_packet: Signal::default(),
            switch_request_ready: Signal::default(),
            requester_valid: Signal::default(),
            requester_data: Signal::default(),
            requester_stays: Signal::default(),
            requester_ready: Signal::default(),
            switch_response_valid: Signal::default(),
            switch_response_packet: Signal::default(),
            switch_response_ready: Signal::default(),
            responder_valid: Signal::default(),
            responder_data: Signal::default(),
            responder_stays: Signal::default(),
            responder_ready: Signal::default(),
            completer_valid: Signal::default(),
            completer_data: Signal::default(),
            completer_ready: Signal::default(),
            answer_valid: Signal::default(),
            answer_data: Signal::default(),
            answer_ready: Signal::default(),
            request_valid: Signal::default(),
            request_data: Signal::default(),
            request_ready: Signal::default(),
            response_valid: Signal::default(),
            response_data: Signal::default(),
            response_ready: Signal::default(),
            requests: CrossbarHalf::new(),
            responses: CrossbarHalf::new(),
        }
    }
}

impl Default for Crossbar {
    fn default() -> Self {
        Self::new()
    }
}

impl Logic for Crossbar {
    #[hdl_gen]
    fn update(&mut self) {
        self.requests.clock.next = self.clock.val();
        self.requests.reset.next = self.reset.val();
        self.requests.own_valid.next = self.requester_valid.val();
        self.requests.own_data.next = self.requester_data.val();
        self.requests.own_stays.next = self.requester_stays.val();
        self.requester_ready.next = self.requests.own_ready.val();
        self.requests.switch_valid.next = self.switch_request_valid.val();
        self.requests.switch_packet.next = self.switch_request_packet.val();
        self.switch_request_ready.next = self.requests.switch_ready.val();
        self.completer_valid.next = self.requests.home_valid.val();
        self.completer_data.next = self.requests.home_data.val();
        self.requests.home_ready.next = self.completer_ready.val();
        self.request_valid.next = self.requests.away_valid.val();
        self.request_data.next = self.requests.away_data.val();
        self.requests.away_ready.next = self.request_ready.val();

        self.responses.clock.next = self.clock.val();
        self.responses.reset.next = self.reset.val();
        self.responses.own_valid.next = self.responder_valid.val();
        self.responses.own_data.next = self.responder_data.val();
        self.responses.own_stays.next = self.responder_stays.val();
        self.responder_ready.next = self.responses.own_ready.val();
        self.responses.switch_valid.next = self.switch_response_valid.val();
        self.responses.switch_packet.next = self.switch_response_packet.val();
        self.switch_response_ready.next = self.responses.switch_ready.val();
        self.answer_valid.next = self.responses.home_valid.val();
        self.answer_data.next = self.responses.home_data.val();
        self.responses.home_ready.next = self.answer_ready.val();
        self.response_valid.next = self.responses.away_valid.val();
        self.response_data.next = self.responses.away_data.val();
        self.responses.away_ready.next = self.response_ready.val();
    }
}

/// One class's half of the crossbar.
#[derive(Clone, Debug, LogicBlock)]
pub struct CrossbarHalf {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties the FIFOs.
    pub reset: Signal<In, Bit>,
    /// This node's block offers a packet.
    pub own_valid: Signal<In, Bit>,
    /// The own packet.
    pub own_data: Signal<In, PacketBeat>,
    /// The own packet is for this node.
    pub own_stays: Signal<In, Bit>,
    /// The own packet is taken.
    pub own_ready: Signal<Out, Bit>,
    /// The switch offers a packet.
    pub switch_valid: Signal<In, Bit>,
    /// The one that it offered in the cycle before, if that was taken.
    pub switch_packet: Signal<In, PacketBeat>,
    /// The switch's packet is taken.
    pub switch_ready: Signal<Out, Bit>,
    /// A packet to this node.
    pub home_valid: Signal<Out, Bit>,
    /// The packet to this node.
    pub home_data: Signal<Out, PacketBeat>,
    /// The packet to this node is taken.
    pub home_ready: Signal<In, Bit>,
    /// A packet to another node.
    pub away_valid: Signal<Out, Bit>,
    /// The packet to the switch.
    pub away_data: Signal<Out, PacketBeat>,
    /// The packet to the switch is taken.
    pub away_ready: Signal<In, Bit>,
    pub(crate) own: PingPong<PacketBeat>,
    /// In step with it, where its packets go: the switch finds their way from that in the same
    /// cycle.
    pub(crate) targets: SkidBuffer<Bits<20>>,
    /// Its packets for this node go aside.
    stays: Fork,
    pub(crate) switch: LateFifo<PacketBeat>,
    /// The last packet to the own node came from the switch.
    pub(crate) last_from_switch: Register<Bit>,
    /// The last packet did not come from the own node: the same once more, for what chooses the
    /// packet.
    pub(crate) last_from_own: Register<Bit>,
    /// This node's packet is for this node, and it is its turn.
    own_turn: Signal<Local, Bit>,
    /// The own packet is taken.
    own_goes: Signal<Local, Bit>,
    /// There is one of the switch, and it is its turn.
    switch_turn: Signal<Local, Bit>,
    /// The packet to this node, if it does not come in this very cycle.
    early: Signal<Local, PacketBeat>,
}

impl CrossbarHalf {
    fn new() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            own_valid: Signal::default(),
            own_data: Signal::default(),
            own_stays: Signal::default(),
            own_ready: Signal::default(),
            switch_valid: Signal::default(),
            switch_packet: Signal::default(),
            switch_ready: Signal::default(),
            home_valid: Signal::default(),
            home_data: Signal::default(),
            home_ready: Signal::default(),
            away_valid: Signal::default(),
            away_data: Signal::default(),
            away_ready: Signal::default(),
            own: PingPong::default(),
            targets: SkidBuffer::default(),
            stays: Fork::default(),
            switch: LateFifo::default(),
            last_from_switch: Register::new(true),
            last_from_own: Register::default(),
            own_turn: Signal::default(),
            own_goes: Signal::default(),
            switch_turn: Signal::default(),
            early: Signal::default(),
        }
    }
}

impl Logic for CrossbarHalf {
    #[hdl_gen]
    fn update(&mut self) {
        self.own.clock.next = self.clock.val();
        self.own.reset.next = self.reset.val();
        self.own.write.next = self.own_valid.val();
        self.own.write_data.next = self.own_data.val();
        self.targets.clock.next = self.clock.val();
        self.targets.reset.next = self.reset.val();
        self.targets.write.next = self.own_valid.val();
        self.targets.write_data.next = self.own_data.val().get_value_target();
        self.stays.clock.next = self.clock.val();
        self.stays.reset.next = self.reset.val();
        self.stays.write.next = self.own_valid.val();
        self.stays.aside.next = self.own_stays.val();
        self.stays.ready.next = self.own.ready.val();
        self.own_ready.next = self.own.ready.val();
        self.switch.clock.next = self.clock.val();
        self.switch.reset.next = self.reset.val();
        self.switch.write.next = self.switch_valid.val();
        self.switch.write_data.next = self.switch_packet.val();
        self.switch_ready.next = self.switch.ready.val();
        self.last_from_switch.clock.next = self.clock.val();
        self.last_from_switch.reset.next = self.reset.val();
        self.last_from_own.clock.next = self.clock.val();
        self.last_from_own.reset.next = self.reset.val();

        self.own_turn.next = self.stays.goes_aside.val()
            & (self.last_from_switch.q.val() | !self.switch.valid.val());
        self.switch_turn.next =
            self.switch.valid.val() & !(self.stays.goes_aside.val() & !self.last_from_own.q.val());
        self.home_valid.next = self.switch.valid.val() | self.stays.goes_aside.val();
        // The packet that just comes from the switch is the last to be there. `switch_turn` chooses
        // the packet, `own_turn` what moves on; each from a register of its own, so that no table
        // is of both, which need not be placed together.
        self.early.next = self.own.data.val();
        if self.switch_turn.val() {
            self.early.next = self.switch.stored_data.val();
        }
        self.home_data.next = self.early.val();
        if self.switch.is_late.val() & self.switch_turn.val() {
            self.home_data.next = self.switch_packet.val();
        }
        self.away_valid.next = self.stays.goes_straight.val();
        self.away_data.next = self.own.data.val();
        self.away_data
            .next
            .set_value_target(self.targets.data.val());

        self.switch.read.next = self.home_ready.val() & !self.own_turn.val();
        self.own_goes.next = (self.stays.goes_straight.val() & self.away_ready.val())
            | (self.own_turn.val() & self.home_ready.val());
        self.own.read.next = self.own_goes.val();
        self.targets.read.next = self.own_goes.val();
        self.stays.read.next = self.own_goes.val();
        self.last_from_switch.d.next = self.last_from_switch.q.val();
        self.last_from_own.d.next = self.last_from_own.q.val();
        if self.home_valid.val() & self.home_ready.val() {
            self.last_from_switch.d.next = !self.own_turn.val();
            self.last_from_own.d.next = self.own_turn.val();
        }
    }
}
