//! The requester: turns the host's loads and stores into network packets.
//!
//! ```text
//! posted ───> decoder ──> FIFO 0 ────────────┬─────────┐
//!                                            │  turns  ├──> request   (to the crossbar)
//! nonposted ─> decoder ─> FIFO 1 ──┬─────────┴─────────┘
//!             + before             │ lowest free tag
//!                              tag table <── host's tag
//!                                  │ host's tag
//! response ──────────────> FIFO ───┴──────────┬──────────> answer    (to the HyperTransport port)
//!                         FIFO 1: failed read ┘
//! ```
//!
//! An address is decoded on its way into the FIFO: there it is a network packet already, under the
//! host's tag, and beside it is known whether it is a node's; the address itself waits with it, as
//! a read's data or beside a write. A read takes the lowest free source tag and waits while there
//! is none, or while fewer writes have left than came before it ([`ReadOrder`]). If a write and a
//! read can go, they take turns. A response frees its tag and goes to the host under the host's. A
//! failed read is answered with an error when no response wants the port; a failed write is dropped
//! in one cycle and counts as one that has left. A response to a tag that no read holds is dropped
//! in the cycle in which the port would take it.
//!
//! ```text
//! cycle            0   1   2   3   4   5
//! posted_valid    ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! posted_data      w   ?                     ? is an address of no node
//! nonposted_valid ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! nonposted_data       r
//! request_valid   ▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! request_data         w   r
//! dropped_valid   ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! response_valid  ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁
//! answer_valid    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁
//! ```

use crate::beat::{HtBeat, PacketBeat};
use crate::blocks::address_decoder::AddressDecoder;
use crate::blocks::fork::Fork;
use crate::blocks::ping_pong::PingPong;
use crate::blocks::primitive::Register;
use crate::blocks::read_order::ReadOrder;
use crate::blocks::skid_buffer::SkidBuffer;
use crate::blocks::tags::TagTable;
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::{HtPacket, Kind, Packet};

/// The requester. Its inputs are what their names say: writes, reads and responses; their kind is
/// not looked at, apart from whether a response is an error.
#[derive(Clone, Debug, LogicBlock)]
pub struct Requester {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties the FIFOs and frees all tags.
    pub reset: Signal<In, Bit>,
    /// A write of the host.
    pub posted_valid: Signal<In, Bit>,
    /// The write.
    pub posted_data: Signal<In, HtBeat>,
    /// A read of the host.
    pub nonposted_valid: Signal<In, Bit>,
    /// The read.
    pub nonposted_data: Signal<In, HtBeat>,
    /// The number of writes of the host before it, modulo 2^16.
    pub nonposted_before: Signal<In, Bits<16>>,
    /// A response of the network.
    pub response_valid: Signal<In, Bit>,
    /// The response.
    pub response_data: Signal<In, PacketBeat>,
    /// The crossbar takes a request.
    pub request_ready: Signal<In, Bit>,
    /// The HyperTransport port takes an answer.
    pub answer_ready: Signal<In, Bit>,
    /// The number of the node.
    pub node: Signal<In, Bits<20>>,
    /// The write is taken.
    pub posted_ready: Signal<Out, Bit>,
    /// The read is taken.
    pub nonposted_ready: Signal<Out, Bit>,
    /// The response is taken.
    pub response_ready: Signal<Out, Bit>,
    /// A request for the network.
    pub request_valid: Signal<Out, Bit>,
    /// The request.
    pub request_data: Signal<Out, PacketBeat>,
    /// The request is for this node itself.
    pub request_stays: Signal<Out, Bit>,
    /// A response for the host.
    pub answer_valid: Signal<Out, Bit>,
    /// The response to the host.
    pub answer_data: Signal<Out, HtBeat>,
    /// A write is dropped, since its address is no node's; a pulse.
    pub dropped_valid: Signal<Out, Bit>,
    /// Its address, in bytes.
    pub dropped_data: Signal<Out, Bits<64>>,
    /// A read is answered with an error, since its address is no node's; a pulse.
    pub failed_valid: Signal<Out, Bit>,
    /// Its address, in bytes.
    pub failed_data: Signal<Out, Bits<64>>,
    /// A response is dropped, since no read holds its tag; a pulse.
    pub unknown_tag: Signal<Out, Bit>,
    /// A tag that was freed in the cycle before can be taken in the next; for observers.
    pub tag_returns: Signal<Out, Bit>,
    /// Of writes and of reads.
    pub(crate) decoders: [AddressDecoder; 2],
    /// The requests of writes and of reads.
    pub(crate) requests: [PingPong<PacketBeat>; 2],
    /// The writes as they came, in step with the first of `requests`: the addresses count.
    stores: PingPong<HtBeat>,
    /// Of the writes: those to no node go aside.
    writes: Fork,
    /// Of the reads.
    pub(crate) order: ReadOrder,
    responses: SkidBuffer<PacketBeat>,
    /// The host's tags.
    pub(crate) tags: TagTable<5>,
    /// In step with `requests`: they are for this node, compared before they wait.
    stays: [SkidBuffer<Bit>; 2],
    /// Whether the last request was a read.
    pub(crate) last_was_read: Register<Bit>,
    /// The last request was a write: the same once more, for the packet and the tag table.
    pub(crate) last_was_write: Register<Bit>,
    /// The write that comes, decoded.
    store: Signal<Local, PacketBeat>,
    /// The read that comes, decoded.
    load: Signal<Local, PacketBeat>,
    write_can_go: Signal<Local, Bit>,
    write_fails: Signal<Local, Bit>,
    read_can_go: Signal<Local, Bit>,
    read_fails: Signal<Local, Bit>,
    /// A read goes: it is its turn.
    read_goes: Signal<Local, Bit>,
    /// A write goes: it is its turn.
    write_goes: Signal<Local, Bit>,
    /// `read_can_go`, once more, for the packet and the tag table.
    read_can_be_sent: Signal<Local, Bit>,
    /// The request that is offered is a read, or a write.
    read_sent: Signal<Local, Bit>,
    write_sent: Signal<Local, Bit>,
    write_leaves: Signal<Local, Bit>,
    /// A failed read is answered.
    refused: Signal<Local, Bit>,
    read_leaves: Signal<Local, Bit>,
    write: Constant<PacketBeat>,
    read: Constant<PacketBeat>,
    response: Constant<HtBeat>,
    /// The answer to a failed read.
    pub(crate) refusal: Constant<HtBeat>,
}

impl Requester {
    /// The requester of a machine with `hosts` nodes, whose shared partitions of 2^`shared_bits`
    /// bytes begin at `global_base`, with `tags` source tags, up to 32.
    ///
    /// # Panics
    /// As [`AddressDecoder::new`].
    pub fn new(global_base: u64, shared_bits: u32, hosts: u32, tags: u32) -> Self {
        let kind = |kind| {
            Constant::new(PacketBeat::from(Packet {
                data: 0,
                offset: 0,
                target: 0,
                source: 0,
                trace: 0,
                kind,
                flag: false,
                tag: 0,
                enables: 0,
            }))
        };
        let answer = |data, error| {
            Constant::new(HtBeat::from(HtPacket::Response {
                extra_words: 0,
                data,
                single: false,
                tag: 0,
                error,
                trace: 0,
            }))
        };
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            posted_valid: Signal::default(),
            posted_data: Signal::default(),
            nonposted_valid: Signal::default(),
            nonposted_data: Signal::default(),
            nonposted_before: Signal::default(),
            response_valid: Signal::default(),
            response_data: Signal::default(),
            request_ready: Signal::default(),
            answer_ready: Signal::default(),
            node: Signal::default(),
            posted_ready: Signal::default(),
            nonposted_ready: Signal::default(),
            response_ready: Signal::default(),
            request_valid: Signal::default(),
            request_data: Signal::default(),
            request_stays: Signal::default(),
            answer_valid: Signal::default(),
            answer_data: Signal::default(),
            dropped_valid: Signal::default(),
            dropped_data: Signal::default(),
            failed_valid: Signal::default(),
            failed_data: Signal::default(),
            unknown_tag: Signal::default(),
            tag_returns: Signal::default(),
            decoders: std::array::from_fn(|_| AddressDecoder::new(global_base, shared_bits, hosts)),
            requests: std::array::from_fn(|_| PingPong::default()),
            writes: Fork::default(),
            order: ReadOrder::after(0),
            stores: PingPong::default(),
            responses: SkidBuffer::default(),
            tags: TagTable::new(tags),
            stays: std::array::from_fn(|_| SkidBuffer::default()),
            last_was_read: Register::new(true),
            last_was_write: Register::default(),
            store: Signal::default(),
            load: Signal::default(),
            write_can_go: Signal::default(),
            write_fails: Signal::default(),
            read_can_go: Signal::default(),
            read_fails: Signal::default(),
            read_goes: Signal::default(),
            read_can_be_sent: Signal::default(),
            write_goes: Signal::default(),
            read_sent: Signal::default(),
            write_sent: Signal::default(),
            write_leaves: Signal::default(),
            refused: Signal::default(),
            read_leaves: Signal::default(),
            write: kind(Kind::PostedWrite),
            read: kind(Kind::ReadRequest),
            response: answer(0, false),
            refusal: answer(u64::MAX, true),
        }
    }
}

impl Logic for Requester {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..2 {
            self.requests[i].clock.next = self.clock.val();
            self.requests[i].reset.next = self.reset.val();
            self.stays[i].clock.next = self.clock.val();
            self.stays[i].reset.next = self.reset.val();
            self.stays[i].write_data.next = self.decoders[i].target.val() == self.node.val();
        }
        self.stays[0].write.next = self.posted_valid.val();
        self.stays[1].write.next = self.nonposted_valid.val();
        self.stores.clock.next = self.clock.val();
        self.stores.reset.next = self.reset.val();
        self.responses.clock.next = self.clock.val();
        self.tags.clock.next = self.clock.val();
        self.order.clock.next = self.clock.val();
        self.last_was_read.clock.next = self.clock.val();
        self.responses.reset.next = self.reset.val();
        self.tags.reset.next = self.reset.val();
        self.order.reset.next = self.reset.val();
        self.last_was_read.reset.next = self.reset.val();
        self.last_was_write.clock.next = self.clock.val();
        self.last_was_write.reset.next = self.reset.val();

        // Writes, decoded.
        self.decoders[0].address_low.next = self.posted_data.val().get_value_address_low();
        self.decoders[0].address_high.next = self.posted_data.val().get_value_address_high();
        self.store.next = self.write.val();
        self.store
            .next
            .set_value_data_low(self.posted_data.val().get_value_data_low());
        self.store
            .next
            .set_value_data_high(self.posted_data.val().get_value_data_high());
        self.store
            .next
            .set_value_flag(self.posted_data.val().get_value_flag());
        self.store
            .next
            .set_value_enables(self.posted_data.val().get_value_enables());
        self.store.next.set_value_source(self.node.val());
        self.store
            .next
            .set_value_target(self.decoders[0].target.val());
        self.store
            .next
            .set_value_offset_low(self.decoders[0].offset_low.val());
        self.store
            .next
            .set_value_offset_high(self.decoders[0].offset_high.val());
        self.posted_ready.next = self.requests[0].ready.val();
        self.requests[0].write.next = self.posted_valid.val();
        self.requests[0].write_data.next = self.store.val();
        self.stores.write.next = self.posted_valid.val();
        self.writes.clock.next = self.clock.val();
        self.writes.reset.next = self.reset.val();
        self.writes.ready.next = self.requests[0].ready.val();
        self.writes.write.next = self.posted_valid.val();
        self.writes.aside.next = !self.decoders[0].found.val();
        self.stores.write_data.next = self.posted_data.val();

        // Reads, decoded.
        self.decoders[1].address_low.next = self.nonposted_data.val().get_value_address_low();
        self.decoders[1].address_high.next = self.nonposted_data.val().get_value_address_high();
        self.load.next = self.read.val();
        self.load
            .next
            .set_value_enables(self.nonposted_data.val().get_value_enables());
        // A read has no data: there its address waits.
        self.load
            .next
            .set_value_data_low(self.nonposted_data.val().get_value_address_low());
        self.load
            .next
            .set_value_data_high(self.nonposted_data.val().get_value_address_high());
        self.load
            .next
            .set_value_tag(self.nonposted_data.val().get_value_tag());
        // Nor has it a flag: there waits whether its answer, if it fails, is one doubleword.
        if (self.nonposted_data.val().get_value_enables_low() == 0)
            | (self.nonposted_data.val().get_value_enables_high() == 0)
        {
            self.load.next.set_value_flag(1.into());
        }
        self.load.next.set_value_source(self.node.val());
        self.load
            .next
            .set_value_target(self.decoders[1].target.val());
        self.load
            .next
            .set_value_offset_low(self.decoders[1].offset_low.val());
        self.load
            .next
            .set_value_offset_high(self.decoders[1].offset_high.val());
        self.nonposted_ready.next = self.requests[1].ready.val();
        self.requests[1].write.next = self.nonposted_valid.val();
        self.requests[1].write_data.next = self.load.val();

        // Requests.
        // Much follows in this cycle from who goes, so that it follows from four registers.
        self.write_can_go.next = self.writes.goes_straight.val();
        self.write_fails.next = self.writes.goes_aside.val();
        self.read_can_go.next = self.order.may_read.val() & self.tags.available.val();
        self.read_fails.next = self.order.may_fail.val();
        self.read_goes.next =
            self.read_can_go.val() & !(self.write_can_go.val() & self.last_was_read.q.val());
        self.write_goes.next =
            self.write_can_go.val() & !(self.read_can_go.val() & !self.last_was_read.q.val());
        self.request_valid.next = self.write_can_go.val() | self.read_can_go.val();
        // The logic that chooses the packet and the logic that moves the tag table on decide the
        // same by registers of their own: then they share no table with the logic that moves the
        // FIFOs and the order on, and need not be placed beside it.
        self.read_can_be_sent.next = !self.order.may_not_read.val() & self.tags.available.val();
        self.write_sent.next =
            self.write_can_go.val() & !(self.read_can_be_sent.val() & self.last_was_write.q.val());
        self.read_sent.next =
            self.read_can_be_sent.val() & !(self.write_can_go.val() & !self.last_was_write.q.val());
        if self.write_sent.val() {
            self.request_data.next = self.requests[0].data.val();
            self.request_stays.next = self.stays[0].data.val();
        } else {
            self.request_data.next = self.requests[1].data.val();
            self.request_data.next.set_value_data_low(0.into());
            self.request_data.next.set_value_data_high(0.into());
            self.request_data.next.set_value_flag(0.into());
            self.request_data.next.set_value_tag(self.tags.lowest.val());
            self.request_stays.next = self.stays[1].data.val();
        }
        self.tags.allocate.next = self.read_sent.val() & self.request_ready.val();
        self.tags.new_context.next = self.requests[1].data.val().get_value_tag();
        self.write_leaves.next =
            self.write_fails.val() | (self.write_goes.val() & self.request_ready.val());
        self.requests[0].read.next = self.write_leaves.val();
        self.stays[0].read.next = self.write_leaves.val();
        self.stores.read.next = self.write_leaves.val();
        self.writes.read.next = self.write_leaves.val();
        self.last_was_read.d.next = self.last_was_read.q.val();
        self.last_was_write.d.next = self.last_was_write.q.val();
        if self.request_valid.val() & self.request_ready.val() {
            self.last_was_read.d.next = self.read_goes.val();
            self.last_was_write.d.next = self.write_goes.val();
        }
        self.dropped_valid.next = self.write_fails.val();
        self.dropped_data.next = self.stores.data.val().get_value_address();

        // Answers.
        self.response_ready.next = self.responses.ready.val();
        self.responses.write.next = self.response_valid.val();
        self.responses.write_data.next = self.response_data.val();
        self.tag_returns.next = self.tags.returns.val();
        self.tags.lookup.next = self.responses.data.val().get_value_tag();
        if self.responses.valid.val() {
            self.answer_data.next = self.response.val();
            self.answer_data
                .next
                .set_value_data_low(self.responses.data.val().get_value_data_low());
            self.answer_data
                .next
                .set_value_data_high(self.responses.data.val().get_value_data_high());
            self.answer_data
                .next
                .set_value_flag(self.responses.data.val().get_value_flag());
            self.answer_data.next.set_value_tag(self.tags.found.val());
            if self.responses.data.val().get_value_kind() == 3 {
                self.answer_data.next.set_value_kind(3.into());
            }
            self.answer_valid.next = self.tags.used.val();
        } else {
            self.answer_data.next = self.refusal.val();
            self.answer_data
                .next
                .set_value_tag(self.requests[1].data.val().get_value_tag());
            self.answer_data
                .next
                .set_value_flag(self.requests[1].data.val().get_value_flag());
            if self.requests[1].data.val().get_value_flag() == 1 {
                self.answer_data.next.set_value_data_high(0.into());
            }
            self.answer_valid.next = self.read_fails.val();
        }
        self.tags.free.next = self.responses.valid.val() & self.answer_ready.val();
        // Dropped or not, a response goes when the port takes one: `used` comes late.
        self.responses.read.next = self.answer_ready.val();
        self.unknown_tag.next =
            self.responses.valid.val() & !self.tags.used.val() & self.answer_ready.val();
        self.refused.next =
            self.read_fails.val() & !self.responses.valid.val() & self.answer_ready.val();
        self.failed_valid.next = self.refused.val();
        self.failed_data.next = self.requests[1].data.val().get_value_data();
        self.read_leaves.next =
            (self.read_goes.val() & self.request_ready.val()) | self.refused.val();
        self.requests[1].read.next = self.read_leaves.val();
        self.stays[1].read.next = self.read_leaves.val();

        self.order.ready.next = self.requests[1].ready.val();
        self.order.comes.next = self.nonposted_valid.val();
        self.order.fails.next = !self.decoders[1].found.val();
        self.order.writes_before.next = self.nonposted_before.val();
        self.order.read_moves.next = self.read_leaves.val() | !self.requests[1].valid.val();
        self.order.write_goes.next = self.write_leaves.val();
    }
}
