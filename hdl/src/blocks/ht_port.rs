//! The HyperTransport port: receive buffers, transmit FIFOs and their credits.
//!
//! ```text
//!                 ┌─ receive 0, posted ──────────────────────> posted       (requester)
//! host ─ decoder >├─ receive 1, non-posted + receive before ─> nonposted    (requester)
//!  │              └─ receive 2, responses ───────────────────> memory       (responder)
//!  │ credit <───── a place was freed, one bit each
//!  └─ writes are counted: received
//!               ┌─ transmit 0, posted <────────── encoder ──── write        (completer)
//! host_out <────┤─ transmit 1, non-posted
//!  │    arbiter │       + writes before <──────── encoder ──── read         (completer)
//!  │            └─ transmit 2, responses <─────── encoder ──── answer       (requester)
//!  └─ read order: writes that went    writes are counted: queued
//! host_credit ───> places left in the host, three counters
//! ```
//!
//! On the host's side a packet is made of HyperTransport's doublewords, each at its place
//! ([`DoublewordsBeat`]): [`HtDecoder`] stands in front of the receive buffers, [`HtEncoder`] in
//! front of the transmit FIFOs, behind which there is no time for it. On the engine's side are
//! beats of fields.
//!
//! A packet from the host always has a place, since the host holds a credit for it; the packet's
//! command chooses the buffer. The three buffers move on independently, and each place that is
//! freed gives its credit back in the same cycle. To the host goes one packet per cycle, round
//! robin among the channels whose first packet may go, which is found out a cycle ahead.
//!
//! A read carries the number of posted writes before it, modulo 2^16: `received` towards the
//! requester, `queued` towards the host, where it may go when as many have gone
//! ([`ReadOrder`]). Of a write and a read that are queued in the same cycle, the read is the first.
//!
//! ```text
//! cycle          0   1   2   3   4   5
//! write_valid    ▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! write_data      w
//! read_valid     ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! read_data           r
//! host_credit    000 000 001 000 000 000    without credits of the host at first, for posted
//! host_out_valid ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁
//! host_out_data               w   r         the read has waited for the write
//! ```

use crate::beat::{DoublewordsBeat, HtBeat};
use crate::blocks::MAX_PLACES;
use crate::blocks::arbiter::RoundRobin;
use crate::blocks::credits::Credits;
use crate::blocks::fifo::Fifo;
use crate::blocks::ht_decoder::HtDecoder;
use crate::blocks::ht_encoder::HtEncoder;
use crate::blocks::ping_pong::PingPong;
use crate::blocks::primitive::Register;
use crate::blocks::read_order::ReadOrder;
use rust_hdl::prelude::*;

/// The port. Channels 0, 1 and 2 are posted writes, reads and responses, as in
/// [`HtChannel`](sme_sim::families::sme::engine::HtChannel).
#[derive(Clone, Debug, LogicBlock)]
pub struct HtPort {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties the buffers and gives all credits back.
    pub reset: Signal<In, Bit>,
    /// A packet comes from the host, which has a credit for it.
    pub host_valid: Signal<In, Bit>,
    /// The packet from the host.
    pub host_data: Signal<In, DoublewordsBeat>,
    /// The host has a place more, of each channel.
    pub host_credit: Signal<In, Bits<3>>,
    /// The requester takes a write.
    pub posted_ready: Signal<In, Bit>,
    /// The requester takes a read.
    pub nonposted_ready: Signal<In, Bit>,
    /// The responder takes a response of the host's memory.
    pub memory_ready: Signal<In, Bit>,
    /// The completer offers a write.
    pub write_valid: Signal<In, Bit>,
    /// The write to the host.
    pub write_data: Signal<In, HtBeat>,
    /// The completer offers a read.
    pub read_valid: Signal<In, Bit>,
    /// The read to the host.
    pub read_data: Signal<In, HtBeat>,
    /// The requester offers a response.
    pub answer_valid: Signal<In, Bit>,
    /// The response to the host.
    pub answer_data: Signal<In, HtBeat>,
    /// The port has a place more for the host, of each channel.
    pub credit: Signal<Out, Bits<3>>,
    /// A write of the host.
    pub posted_valid: Signal<Out, Bit>,
    /// The write from the host.
    pub posted_data: Signal<Out, HtBeat>,
    /// A read of the host.
    pub nonposted_valid: Signal<Out, Bit>,
    /// The read from the host.
    pub nonposted_data: Signal<Out, HtBeat>,
    /// The number of writes of the host before it, modulo 2^16.
    pub nonposted_before: Signal<Out, Bits<16>>,
    /// A response of the host's memory.
    pub memory_valid: Signal<Out, Bit>,
    /// The response from the host.
    pub memory_data: Signal<Out, HtBeat>,
    /// The completer's write is taken.
    pub write_ready: Signal<Out, Bit>,
    /// The completer's read is taken.
    pub read_ready: Signal<Out, Bit>,
    /// The requester's response is taken.
    pub answer_ready: Signal<Out, Bit>,
    /// A packet goes to the host, which has a place for it.
    pub host_out_valid: Signal<Out, Bit>,
    /// The packet to the host.
    pub host_out_data: Signal<Out, DoublewordsBeat>,
    pub(crate) decoder: HtDecoder,
    pub(crate) encoder: HtEncoder,
    pub(crate) receive: [Fifo<HtBeat, 5, 6>; 3],
    receive_before: Fifo<Bits<16>, 5, 6>,
    pub(crate) transmit: [PingPong<DoublewordsBeat>; 3],
    /// Of the reads for the host.
    pub(crate) order: ReadOrder,
    pub(crate) arbiter: RoundRobin<3, 2>,
    /// The same arbiter twice more, its channels counted from 1 and from 2 on, so that their
    /// registers are others: they choose the packet, the first one all but its data.
    pub(crate) choosers: [RoundRobin<3, 2>; 2],
    /// Places left in the host.
    pub(crate) places: [Credits; 3],
    /// Writes that came from the host, modulo 2^16.
    pub(crate) received: Register<Bits<16>>,
    /// Writes that came from the completer, modulo 2^16.
    pub(crate) queued: Register<Bits<16>>,
    /// By channel: there is a packet that may go, and the host has a place.
    may_go: [Register<Bit>; 3],
    /// The packet for the host, for its data.
    carrier: Signal<Local, DoublewordsBeat>,
    none: Constant<Bits<3>>,
    /// A packet of the one kind and of the other can be sent.
    both: Constant<Bits<2>>,
}

impl HtPort {
    /// A port whose host has `credits` places for each channel, and which has as many for the
    /// host.
    ///
    /// # Panics
    /// If one of them is not 1 to [`MAX_PLACES`].
    pub fn new(credits: [u16; 3]) -> Self {
        let fits = credits.iter().all(|all| (1..=MAX_PLACES).contains(all));
        assert!(fits, "{credits:?} credits: 1 to {MAX_PLACES} are possible");
        let [_, reads, _] = credits;
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            host_valid: Signal::default(),
            host_data: Signal::default(),
            host_credit: Signal::default(),
            posted_ready: Signal::default(),
            nonposted_ready: Signal::default(),
            memory_ready: Signal::default(),
            write_valid: Signal::default(),
            write_data: Signal::default(),
            read_valid: Signal::default(),
            read_data: Signal::default(),
            answer_valid: Signal::default(),
            answer_data: Signal::default(),
            credit: Signal::default(),
            posted_valid: Signal::default(),
            posted_data: Signal::default(),
            nonposted_valid: Signal::default(),
            nonposted_data: Signal::default(),
            nonposted_before: Signal::default(),
            memory_valid: Signal::default(),
            memory_data: Signal::default(),
            write_ready: Signal::default(),
            read_ready: Signal::default(),
            answer_ready: Signal::default(),
            host_out_valid: Signal::default(),
            host_out_data: Signal::default(),
            decoder: HtDecoder::new(),
            encoder: HtEncoder::new(),
            receive: credits.map(|places| Fifo::new(places.into())),
            receive_before: Fifo::new(reads.into()),
            transmit: std::array::from_fn(|_| PingPong::default()),
            order: ReadOrder::after(0),
            arbiter: RoundRobin::new(2),
            choosers: [1, 0].map(RoundRobin::new),
            places: credits.map(Credits::new),
            received: Register::default(),
            queued: Register::default(),
            may_go: Default::default(),
            carrier: Signal::default(),
            none: Constant::new(0.into()),
            both: Constant::new(3.into()),
        }
    }
}

impl Logic for HtPort {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..3 {
            self.receive[i].clock.next = self.clock.val();
            self.receive[i].reset.next = self.reset.val();
            self.transmit[i].clock.next = self.clock.val();
            self.transmit[i].reset.next = self.reset.val();
            self.places[i].clock.next = self.clock.val();
            self.places[i].reset.next = self.reset.val();
            self.may_go[i].clock.next = self.clock.val();
            self.may_go[i].reset.next = self.reset.val();
        }
        self.receive_before.clock.next = self.clock.val();
        self.order.clock.next = self.clock.val();
        self.arbiter.clock.next = self.clock.val();
        self.received.clock.next = self.clock.val();
        self.queued.clock.next = self.clock.val();
        self.receive_before.reset.next = self.reset.val();
        self.order.reset.next = self.reset.val();
        self.arbiter.reset.next = self.reset.val();
        self.received.reset.next = self.reset.val();
        self.queued.reset.next = self.reset.val();

        // From the host.
        self.decoder.doublewords.next = self.host_data.val();
        self.receive[0].write_data.next = self.decoder.write.val();
        self.receive[1].write_data.next = self.decoder.read.val();
        self.receive[2].write_data.next = self.decoder.response.val();
        self.receive[0].write.next = self.host_valid.val() & self.decoder.posted.val();
        self.receive[1].write.next = self.host_valid.val() & self.decoder.nonposted.val();
        self.receive[2].write.next = self.host_valid.val() & self.decoder.responds.val();
        self.receive_before.write.next = self.host_valid.val() & self.decoder.nonposted.val();
        self.receive_before.write_data.next = self.received.q.val();
        self.received.d.next = self.received.q.val();
        if self.host_valid.val() & self.decoder.posted.val() {
            self.received.d.next = self.received.q.val() + 1;
        }

        // To the requester and the responder.
        self.posted_valid.next = self.receive[0].valid.val();
        self.posted_data.next = self.receive[0].data.val();
        self.receive[0].read.next = self.posted_ready.val();
        self.nonposted_valid.next = self.receive[1].valid.val();
        self.nonposted_data.next = self.receive[1].data.val();
        self.receive[1].read.next = self.nonposted_ready.val();
        self.receive_before.read.next = self.nonposted_ready.val();
        self.nonposted_before.next = self.receive_before.data.val();
        self.memory_valid.next = self.receive[2].valid.val();
        self.memory_data.next = self.receive[2].data.val();
        self.receive[2].read.next = self.memory_ready.val();
        self.credit.next = self
            .none
            .val()
            .replace_bit(0, self.receive[0].valid.val() & self.posted_ready.val())
            .replace_bit(1, self.receive[1].valid.val() & self.nonposted_ready.val())
            .replace_bit(2, self.receive[2].valid.val() & self.memory_ready.val());

        // From the completer and the requester.
        self.write_ready.next = self.transmit[0].ready.val();
        self.read_ready.next = self.transmit[1].ready.val();
        self.answer_ready.next = self.transmit[2].ready.val();
        self.encoder.write.next = self.write_data.val();
        self.encoder.read.next = self.read_data.val();
        self.encoder.response.next = self.answer_data.val();
        self.transmit[0].write.next = self.write_valid.val();
        self.transmit[0].write_data.next = self.encoder.write_out.val();
        self.transmit[1].write.next = self.read_valid.val();
        self.transmit[1].write_data.next = self.encoder.read_out.val();
        self.transmit[2].write.next = self.answer_valid.val();
        self.transmit[2].write_data.next = self.encoder.response_out.val();
        self.queued.d.next = self.queued.q.val();
        if self.write_valid.val() & self.transmit[0].ready.val() {
            self.queued.d.next = self.queued.q.val() + 1;
        }

        // To the host.
        self.may_go[0].d.next =
            self.transmit[0].valid_next.val() & self.places[0].available_next.val();
        self.may_go[1].d.next =
            self.order.may_read_next.val() & self.places[1].available_next.val();
        self.may_go[2].d.next =
            self.transmit[2].valid_next.val() & self.places[2].available_next.val();
        self.arbiter.want.next = self
            .none
            .val()
            .replace_bit(0, self.may_go[0].q.val())
            .replace_bit(1, self.may_go[1].q.val())
            .replace_bit(2, self.may_go[2].q.val());
        self.arbiter.can.next = self.both.val();
        self.arbiter.take.next = true;
        self.host_out_valid.next = self.arbiter.any.val();
        // The logic that chooses the packet decides the same as the logic that moves the counters
        // and the FIFOs on, but by registers of its own: they need not be placed together.
        for i in 0..2 {
            self.choosers[i].clock.next = self.clock.val();
            self.choosers[i].reset.next = self.reset.val();
            self.choosers[i].can.next = self.both.val();
            self.choosers[i].take.next = true;
        }
        self.choosers[0].want.next = self
            .none
            .val()
            .replace_bit(0, self.may_go[1].q.val())
            .replace_bit(1, self.may_go[2].q.val())
            .replace_bit(2, self.may_go[0].q.val());
        self.choosers[1].want.next = self
            .none
            .val()
            .replace_bit(0, self.may_go[2].q.val())
            .replace_bit(1, self.may_go[0].q.val())
            .replace_bit(2, self.may_go[1].q.val());
        self.carrier.next = self.transmit[0].data.val();
        if self.choosers[1].grant.val().get_bit(2) {
            self.carrier.next = self.transmit[1].data.val();
        } else if self.choosers[1].grant.val().get_bit(0) {
            self.carrier.next = self.transmit[2].data.val();
        }
        self.host_out_data.next = self.transmit[0].data.val();
        if self.choosers[0].grant.val().get_bit(0) {
            self.host_out_data.next = self.transmit[1].data.val();
        } else if self.choosers[0].grant.val().get_bit(1) {
            self.host_out_data.next = self.transmit[2].data.val();
        }
        self.host_out_data
            .next
            .set_value_data_low(self.carrier.val().get_value_data_low());
        self.host_out_data
            .next
            .set_value_data_high(self.carrier.val().get_value_data_high());
        for i in 0..3 {
            self.transmit[i].read.next = self.arbiter.grant.val().get_bit(i);
            self.places[i].used.next = self.arbiter.grant.val().get_bit(i);
            self.places[i].returned.next = self.host_credit.val().get_bit(i);
        }
        self.order.ready.next = self.transmit[1].ready.val();
        self.order.comes.next = self.read_valid.val();
        self.order.fails.next = false;
        self.order.writes_before.next = self.queued.q.val();
        self.order.read_moves.next =
            self.arbiter.grant.val().get_bit(1) | !self.transmit[1].valid.val();
        self.order.write_goes.next = self.arbiter.grant.val().get_bit(0);
    }
}
