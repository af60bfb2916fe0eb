//! The completer: carries requests of the network out on its node's memory.
//!
//! ```text
//!                                       ┌─> write (posted, to the HyperTransport port)
//! request (from the crossbar) ──> FIFO ─┤
//!                                       └─> read  (non-posted, with the lowest free tag)
//!                                            │ source and tag of the request
//!                                       ┌────┴──────┐
//!        origin_source, _tag, _stays <──┤ tag table ├─── origin_lookup   (the responder's)
//!               origin_used <───────────┤ of reads  ├─── origin_free
//!                                       └───────────┘
//! ```
//!
//! One request a cycle, strictly in the order of arrival: a read never passes a write. A write's
//! coherent bit goes with it, and makes the host probe its caches. A read takes the lowest free
//! tag, and its origin, who asked under which tag, waits in the table for the responder; without a
//! free tag, requests wait. A packet that is no write is taken for a read; the crossbar sends
//! requests only.
//!
//! ```text
//! cycle          0   1   2   3   4
//! request_valid ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! request_data    w   r
//! write_valid   ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! read_valid    ▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁
//! read_ready    ▔▔▔▔▔▔▔▔▁▁▁▁▔▔▔▔▔▔▔▔
//! origin_used   ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔     of the read's tag
//! ```

use crate::beat::{HtBeat, PacketBeat};
use crate::blocks::fork::Fork;
use crate::blocks::ping_pong::PingPong;
use crate::blocks::primitive::{Displace, LutRam, SameParts};
use crate::blocks::tags::TagTable;
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::Kind;
use sme_sim::families::sme::engine::tags::MAX_TAGS;

/// The completer of a node.
#[derive(Clone, Debug, LogicBlock)]
pub struct Completer {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Drops the requests and frees all tags.
    pub reset: Signal<In, Bit>,
    /// A request comes.
    pub request_valid: Signal<In, Bit>,
    /// The request.
    pub request_data: Signal<In, PacketBeat>,
    /// The request is taken.
    pub request_ready: Signal<Out, Bit>,
    /// A write is offered.
    pub write_valid: Signal<Out, Bit>,
    /// The write.
    pub write_data: Signal<Out, HtBeat>,
    /// The write is taken.
    pub write_ready: Signal<In, Bit>,
    /// A read is offered.
    pub read_valid: Signal<Out, Bit>,
    /// The read.
    pub read_data: Signal<Out, HtBeat>,
    /// The read is taken.
    pub read_ready: Signal<In, Bit>,
    /// The tag whose origin the responder asks for.
    pub origin_lookup: Signal<In, Bits<5>>,
    /// Frees it, if a read holds it.
    pub origin_free: Signal<In, Bit>,
    /// The number of the node.
    pub node: Signal<In, Bits<20>>,
    /// A read holds it.
    pub origin_used: Signal<Out, Bit>,
    /// The node that asked for that read.
    pub origin_source: Signal<Out, Bits<20>>,
    /// The source tag of that node.
    pub origin_tag: Signal<Out, Bits<5>>,
    /// That node is this node itself.
    pub origin_stays: Signal<Out, Bit>,
    /// There is a first request, which may wait for a tag; for observers.
    pub request_waits: Signal<Out, Bit>,
    /// The node that it came from; for observers.
    pub request_source: Signal<Out, Bits<20>>,
    /// A tag that was freed in the cycle before can be taken in the next; for observers.
    pub tag_returns: Signal<Out, Bit>,
    pub(crate) requests: PingPong<PacketBeat>,
    /// Of those, writes go aside.
    way: Fork,
    /// Contexts: the origins' nodes.
    pub(crate) reads: TagTable<20>,
    /// Beside them, the origins' tags.
    origin_tags: LutRam<Bits<5>, 5>,
    /// And which parts of their numbers are this node's: the responder has no time to compare, and
    /// here there is time for a part of it only.
    origins_here: LutRam<Bits<3>, 5>,
    here: SameParts,
    pub(crate) address: Displace,
    /// The first request.
    request: Signal<Local, PacketBeat>,
    /// The request is taken.
    moves: Signal<Local, Bit>,
    writes: Signal<Local, Bit>,
    reads_memory: Signal<Local, Bit>,
    read_taken: Signal<Local, Bit>,
    pub(crate) posted_write: Constant<Bits<2>>,
    pub(crate) read_request: Constant<Bits<2>>,
    nothing: Constant<HtBeat>,
}

impl Completer {
    /// After reset, with an empty table. `shared_base` is the physical address, in the node, of
    /// the first byte of its shared partition.
    pub fn new(shared_base: u64) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            request_valid: Signal::default(),
            request_data: Signal::default(),
            request_ready: Signal::default(),
            write_valid: Signal::default(),
            write_data: Signal::default(),
            write_ready: Signal::default(),
            read_valid: Signal::default(),
            read_data: Signal::default(),
            read_ready: Signal::default(),
            origin_lookup: Signal::default(),
            origin_free: Signal::default(),
            node: Signal::default(),
            origin_used: Signal::default(),
            origin_source: Signal::default(),
            origin_tag: Signal::default(),
            origin_stays: Signal::default(),
            request_waits: Signal::default(),
            request_source: Signal::default(),
            tag_returns: Signal::default(),
            requests: PingPong::default(),
            way: Fork::default(),
            reads: TagTable::new(MAX_TAGS),
            origin_tags: LutRam::default(),
            origins_here: LutRam::default(),
            here: SameParts::default(),
            address: Displace::new(shared_base),
            request: Signal::default(),
            moves: Signal::default(),
            writes: Signal::default(),
            reads_memory: Signal::default(),
            read_taken: Signal::default(),
            posted_write: Constant::new((Kind::PostedWrite as u64).into()),
            read_request: Constant::new((Kind::ReadRequest as u64).into()),
            nothing: Constant::new(HtBeat::default()),
        }
    }
}

impl Logic for Completer {
    #[hdl_gen]
    fn update(&mut self) {
        self.requests.clock.next = self.clock.val();
        self.requests.reset.next = self.reset.val();
        self.reads.clock.next = self.clock.val();
        self.reads.reset.next = self.reset.val();
        self.origin_tags.clock.next = self.clock.val();
        self.origins_here.clock.next = self.clock.val();

        self.requests.write.next = self.request_valid.val();
        self.requests.write_data.next = self.request_data.val();
        self.request_ready.next = self.requests.ready.val();
        self.request.next = self.requests.data.val();
        self.way.clock.next = self.clock.val();
        self.way.reset.next = self.reset.val();
        self.way.ready.next = self.requests.ready.val();
        self.way.write.next = self.request_valid.val();
        self.way.aside.next = self.request_data.val().get_value_kind() == self.posted_write.val();

        self.request_waits.next = self.way.goes_aside.val() | self.way.goes_straight.val();
        self.request_source.next = self.request.val().get_value_source();
        self.writes.next = self.way.goes_aside.val();
        self.reads_memory.next = self.way.goes_straight.val() & self.reads.available.val();
        self.write_valid.next = self.writes.val();
        self.read_valid.next = self.reads_memory.val();
        self.read_taken.next = self.reads_memory.val() & self.read_ready.val();
        self.moves.next = (self.writes.val() & self.write_ready.val()) | self.read_taken.val();
        self.requests.read.next = self.moves.val();
        self.way.read.next = self.moves.val();

        self.address.offset_low.next = self.request.val().get_value_offset_low();
        self.address.offset_high.next = self.request.val().get_value_offset_high();
        self.write_data.next = self.nothing.val();
        self.write_data.next.set_value_kind(self.posted_write.val());
        self.write_data
            .next
            .set_value_address_low(self.address.address_low.val());
        self.write_data
            .next
            .set_value_address_high(self.address.address_high.val());
        self.write_data
            .next
            .set_value_data_low(self.request.val().get_value_data_low());
        self.write_data
            .next
            .set_value_data_high(self.request.val().get_value_data_high());
        self.write_data
            .next
            .set_value_enables(self.request.val().get_value_enables());
        self.write_data
            .next
            .set_value_flag(self.request.val().get_value_flag());
        self.read_data.next = self.nothing.val();
        self.read_data.next.set_value_kind(self.read_request.val());
        self.read_data
            .next
            .set_value_address_low(self.address.address_low.val());
        self.read_data
            .next
            .set_value_address_high(self.address.address_high.val());
        self.read_data
            .next
            .set_value_enables(self.request.val().get_value_enables());
        self.read_data.next.set_value_tag(self.reads.lowest.val());

        self.reads.allocate.next = self.read_taken.val();
        self.reads.new_context.next = self.request.val().get_value_source();
        self.origin_tags.write_enable.next = self.read_taken.val();
        self.origin_tags.write_address.next = self.reads.lowest.val();
        self.origin_tags.write_data.next = self.request.val().get_value_tag();
        self.origins_here.write_enable.next = self.read_taken.val();
        self.origins_here.write_address.next = self.reads.lowest.val();
        self.here.left.next = self.request.val().get_value_source();
        self.here.right.next = self.node.val();
        self.origins_here.write_data.next = self.here.same.val();

        self.tag_returns.next = self.reads.returns.val();
        self.reads.lookup.next = self.origin_lookup.val();
        self.reads.free.next = self.origin_free.val();
        self.origin_tags.read_address.next = self.origin_lookup.val();
        self.origins_here.read_address.next = self.origin_lookup.val();
        self.origin_used.next = self.reads.used.val();
        self.origin_source.next = self.reads.found.val();
        self.origin_tag.next = self.origin_tags.read_data.val();
        self.origin_stays.next = self.origins_here.read_data.val().all();
    }
}
