//! The responder: sends what the node's memory answers back to the node that asked.
//!
//! ```text
//!                            ┌─ data ──────────────────────────────────┐
//! memory (from the Hyper- ───┤                                         ├─> FIFO ──> response
//!         Transport port)    └─ tag ─> origin_lookup    origin_source ─┤            (to the crossbar)
//!                                      origin_free      _tag, _stays   │
//!                                          │            origin_used ───┘ write
//!                                          └── completer's table ──┘
//! ```
//!
//! One response a cycle, in the order in which the host gives them. The requester stands in the
//! completer's table, which answers in the same cycle, on the way into the FIFO; with that the tag
//! is freed. So what is offered to the crossbar depends on registers alone. A response with a tag
//! that no read holds, or a packet that is no response, is dropped where a response would be taken
//! in, and `unknown_tag` shows it.
//!
//! ```text
//! cycle          0   1   2   3   4
//! memory_valid  ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! memory_data     a   b
//! origin_lookup   a   b
//! origin_used   ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁     a's tag is unknown
//! unknown_tag   ▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! origin_free   ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! response_valid▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁
//! response_ready▔▔▔▔▔▔▔▔▁▁▁▁▔▔▔▔▔▔▔▔
//! ```

use crate::beat::{HtBeat, PacketBeat};
use crate::blocks::ping_pong::PingPong;
use crate::blocks::skid_buffer::SkidBuffer;
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::Kind;

/// The responder of a node.
#[derive(Clone, Debug, LogicBlock)]
pub struct Responder {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Drops the responses.
    pub reset: Signal<In, Bit>,
    /// The node it stands in.
    pub node: Signal<In, Bits<20>>,
    /// The memory answers.
    pub memory_valid: Signal<In, Bit>,
    /// The answer.
    pub memory_data: Signal<In, HtBeat>,
    /// The answer is taken.
    pub memory_ready: Signal<Out, Bit>,
    /// A response is offered.
    pub response_valid: Signal<Out, Bit>,
    /// The response.
    pub response_data: Signal<Out, PacketBeat>,
    /// The response is for this node itself.
    pub response_stays: Signal<Out, Bit>,
    /// The response is taken.
    pub response_ready: Signal<In, Bit>,
    /// The tag of the answer.
    pub origin_lookup: Signal<Out, Bits<5>>,
    /// Frees that tag, if a read holds it.
    pub origin_free: Signal<Out, Bit>,
    /// A read holds that tag.
    pub origin_used: Signal<In, Bit>,
    /// The node that asked for the read.
    pub origin_source: Signal<In, Bits<20>>,
    /// The source tag of that node.
    pub origin_tag: Signal<In, Bits<5>>,
    /// That node is this node itself.
    pub origin_stays: Signal<In, Bit>,
    /// The answer is dropped in this cycle.
    pub unknown_tag: Signal<Out, Bit>,
    pub(crate) responses: PingPong<PacketBeat>,
    /// In step with it: they are for this node.
    pub(crate) stays: SkidBuffer<Bit>,
    /// The response made from the answer.
    response: Signal<Local, PacketBeat>,
    is_response: Signal<Local, Bit>,
    /// Its origin is known.
    known: Signal<Local, Bit>,
    /// The response goes into the FIFOs, if these have a place.
    comes: Signal<Local, Bit>,
    pub(crate) read_response: Constant<Bits<2>>,
    pub(crate) error_response: Constant<Bits<2>>,
    nothing: Constant<PacketBeat>,
}

impl Responder {
    /// After reset.
    pub fn new() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            node: Signal::default(),
            memory_valid: Signal::default(),
            memory_data: Signal::default(),
            memory_ready: Signal::default(),
            response_valid: Signal::default(),
            response_data: Signal::default(),
            response_stays: Signal::default(),
            response_ready: Signal::default(),
            origin_lookup: Signal::default(),
            origin_free: Signal::default(),
            origin_used: Signal::default(),
            origin_source: Signal::default(),
            origin_tag: Signal::default(),
            origin_stays: Signal::default(),
            unknown_tag: Signal::default(),
            responses: PingPong::default(),
            stays: SkidBuffer::default(),
            response: Signal::default(),
            is_response: Signal::default(),
            known: Signal::default(),
            comes: Signal::default(),
            read_response: Constant::new((Kind::ReadResponse as u64).into()),
            error_response: Constant::new((Kind::ErrorResponse as u64).into()),
            nothing: Constant::new(PacketBeat::default()),
        }
    }
}

impl Default for Responder {
    fn default() -> Self {
        Self::new()
    }
}

impl Logic for Responder {
    #[hdl_gen]
    fn update(&mut self) {
        self.responses.clock.next = self.clock.val();
        self.responses.reset.next = self.reset.val();
        self.stays.clock.next = self.clock.val();
        self.stays.reset.next = self.reset.val();

        self.memory_ready.next = self.responses.ready.val();
        self.origin_lookup.next = self.memory_data.val().get_value_tag();
        self.is_response.next = (self.memory_data.val().get_value_kind()
            == self.read_response.val())
            | (self.memory_data.val().get_value_kind() == self.error_response.val());
        self.known.next = self.is_response.val() & self.origin_used.val();
        // A tag that no read holds is not freed in the table, either.
        self.origin_free.next =
            self.memory_valid.val() & self.is_response.val() & self.responses.ready.val();
        self.unknown_tag.next =
            self.memory_valid.val() & !self.known.val() & self.responses.ready.val();

        self.response.next = self.nothing.val();
        // Both kinds of response have the same number on either side.
        self.response
            .next
            .set_value_kind(self.memory_data.val().get_value_kind());
        self.response
            .next
            .set_value_data_low(self.memory_data.val().get_value_data_low());
        self.response
            .next
            .set_value_data_high(self.memory_data.val().get_value_data_high());
        self.response
            .next
            .set_value_flag(self.memory_data.val().get_value_flag());
        self.response.next.set_value_source(self.node.val());
        self.response
            .next
            .set_value_target(self.origin_source.val());
        self.response.next.set_value_tag(self.origin_tag.val());

        self.comes.next = self.memory_valid.val() & self.known.val();
        self.responses.write.next = self.comes.val();
        self.responses.write_data.next = self.response.val();
        self.responses.read.next = self.response_ready.val();
        self.stays.write.next = self.comes.val();
        self.stays.write_data.next = self.origin_stays.val();
        self.stays.read.next = self.response_ready.val();
        self.response_valid.next = self.responses.valid.val();
        self.response_data.next = self.responses.data.val();
        self.response_stays.next = self.stays.data.val();
    }
}
