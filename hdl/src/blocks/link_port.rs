//! A link port: serializes packets onto a network link, takes part in its credits, and guards the
//! packets with a CRC.
//!
//! ```text
//! transmit ─┬> FIFO 0 ─┬─ not empty in ┐ ┌───────────┐               ┌─────────┐
//!           ├> FIFO 1 ─┤  the next     ├─┤ may begin ├─> round robin ┤ channel ├─┬──> link_out
//!           ├> FIFO 2 ─┤  cycle        │ └───────────┘               └─────────┘ │
//!           └> FIFO 3 ─┤    link free, ┤                                         │
//!                      │       credits ┘ <── register <── link_credit            │
//!                      │                         ┌─────────────────────┐         │
//!                      └─ fetched, a cycle later ┤ packet, cycles left ├─────────┴─ CRC ──> link_out_crc
//!                                                └─────────────────────┘
//!
//! link_in ──┬─────────────────┬──────────┬──┬────────────┬──────────┬──> receive_data
//!           └─ CRC ─┐         │          │  └───────────────────────────> arriving_on, arriving_target
//!                   │         │          │               │          │
//!                   ├── ⊕ ────┤ register ├── = 0 ? ─┬────┤ register ├──> receive_valid (to the switch's
//! link_in_crc ──────┘         └──────────┘          │    │          │            input of the channel)
//!                                                   └ no ┤          ├──> crc_error
//!                                                        └──────────┘
//! ```
//!
//! A channel may begin a packet while the link is free and the receiver has a place for it, which
//! is found out a cycle ahead; the channels that may take turns. The packet is given to the link
//! whole, in the last cycle that its bytes take; the next may begin in the cycle after. The channel
//! that begins is known late in a cycle: only in the next one the packet is fetched, and how long
//! it takes is noted. Where a packet takes less than three cycles there is no time for that: such a
//! link gets them from the FIFOs at once, which takes far longer than anything else here.
//!
//! An arrival is registered twice: a packet with the difference between its CRC and the one that
//! came with it; and once it is found sound, or wrong, so that the switch has it at the beginning
//! of a cycle. Between the two the switch is told on which channel something arrives, and for which
//! node, so that it finds the route while the CRC is looked at. A credit counts two cycles later as
//! well, so that packets and credits take equally long. A packet whose CRC is wrong is lost, and
//! the place it would have had with it: there is no way to send it again.
//!
//! ```text
//! cycle            0   1   2   3   4   5   6
//! transmit_valid   1   2   0   0   0   0   0      a packet of 16 bytes, 2 cycles, on channel 0;
//! transmit_packet       a   b                     one of 24 bytes, 3 cycles, on channel 1
//! waiting          0   1   2   2   0   0   0
//! begun            0   1   0   2   0   0   0
//! link_out_valid   ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁
//! link_out_data             a           b
//! link_in_valid    ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁    on channel 2
//! link_in_data          c
//! arriving_on      0   0   4   0   0   0   0
//! receive_valid    0   0   0   4   0   0   0
//! receive_data                  c
//! ```

use crate::beat::PacketBeat;
use crate::blocks::arbiter::RoundRobin;
use crate::blocks::crc::PacketCrc;
use crate::blocks::credits::Credits;
use crate::blocks::fetch::Fetch;
use crate::blocks::late_fifo::LateFifo;
use crate::blocks::primitive::{Kept, Register, Stages};
use crate::blocks::resting::Resting;
use rust_hdl::prelude::*;

/// Most cycles that a packet can take a link.
pub const MAX_CYCLES: u64 = 1 << 16;

/// Fewest cycles that a packet takes a link on which it is fetched: it begins, it is fetched, it
/// leaves.
const LATE_CYCLES: u64 = 3;

/// One of a switch's six link ports.
#[derive(Clone, Debug, LogicBlock)]
pub struct LinkPort {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties the FIFOs, breaks off a packet, and takes all credits for returned.
    pub reset: Signal<In, Bit>,
    /// The channel for which the switch has a packet, one-hot.
    pub transmit_valid: Signal<In, Bits<4>>,
    /// The packet for which it was valid in the cycle before.
    pub transmit_packet: Signal<In, PacketBeat>,
    /// The channels that take a packet.
    pub transmit_ready: Signal<Out, Bits<4>>,
    /// The channels for which the receiver has a place again.
    pub link_credit: Signal<In, Bits<4>>,
    /// The last bytes of a packet leave.
    pub link_out_valid: Signal<Out, Bit>,
    /// Its channel.
    pub link_out_channel: Signal<Out, Bits<2>>,
    /// The packet.
    pub link_out_data: Signal<Out, PacketBeat>,
    /// Its CRC.
    pub link_out_crc: Signal<Out, Bits<16>>,
    /// The last bytes of a packet arrive.
    pub link_in_valid: Signal<In, Bit>,
    /// Its channel.
    pub link_in_channel: Signal<In, Bits<2>>,
    /// The packet; what its kind does not carry is zero.
    pub link_in_data: Signal<In, PacketBeat>,
    /// Its CRC.
    pub link_in_crc: Signal<In, Bits<16>>,
    /// The channel on which a sound packet has come two cycles before, one-hot. The switch has a
    /// place for it.
    pub receive_valid: Signal<Out, Bits<4>>,
    /// The received packet.
    pub receive_data: Signal<Out, PacketBeat>,
    /// The channel on which a packet has come in the cycle before, sound or not, one-hot.
    pub arriving_on: Signal<Out, Bits<4>>,
    /// The target of the arriving packet, or of the packet on the link, if none arrives.
    pub arriving_target: Signal<Out, Bits<20>>,
    /// A packet has come two cycles before whose CRC is wrong.
    pub crc_error: Signal<Out, Bit>,
    /// The channel that begins a packet, one-hot; for observers.
    pub begun: Signal<Out, Bits<4>>,
    /// The channels that have a packet to send; for observers.
    pub waiting: Signal<Out, Bits<4>>,
    /// The first packet of the channel that begins is a posted write; for observers.
    pub begun_write: Signal<Out, Bit>,
    pub(crate) fifos: [LateFifo<PacketBeat>; 4],
    pub(crate) fetch: Resting<Fetch<PacketBeat>>,
    pub(crate) credits: [Credits; 4],
    pub(crate) arbiter: RoundRobin<4, 2>,
    pub(crate) out_crc: PacketCrc,
    pub(crate) in_crc: PacketCrc,
    /// By channel: it has a packet, the receiver a place, and the link is free.
    pub(crate) may_begin: [Register<Bit>; 4],
    /// A packet is on the link.
    sending: Register<Bit>,
    /// One is in the next cycle.
    sending_next: Signal<Local, Bit>,
    packet: Kept<PacketBeat>,
    channel: Register<Bits<2>>,
    /// Cycles that it takes still, this one included.
    left: Register<Bits<16>>,
    begins: Signal<Local, Bit>,
    /// A packet is there that has begun.
    loads: Signal<Local, Bit>,
    /// The chosen packet.
    chosen: Signal<Local, PacketBeat>,
    /// Cycles that it takes beyond this one.
    beyond: Signal<Local, Bits<16>>,
    /// The packet needs one cycle only.
    at_once: Signal<Local, Bit>,
    /// A packet has arrived; on which channel, one-hot; the packet; how its CRC differs.
    pub(crate) arrived: Stages<Bit>,
    pub(crate) arrived_on: Stages<Bits<4>>,
    pub(crate) arrived_data: Stages<PacketBeat>,
    pub(crate) difference: Stages<Bits<16>>,
    /// The arrived packet has the right CRC.
    sound: Signal<Local, Bit>,
    /// A packet was found sound: its channel, one-hot, and the packet; or wrong.
    pub(crate) accepted_on: Stages<Bits<4>>,
    pub(crate) accepted_data: Stages<PacketBeat>,
    pub(crate) wrong: Stages<Bit>,
    /// The channels for which a credit has arrived.
    pub(crate) returned: Stages<Bits<4>>,
    /// A packet is there in the cycle after it has begun.
    pub(crate) late: Constant<Bit>,
    /// Each takes the link for two cycles or more.
    pub(crate) several: Constant<Bit>,
    /// A packet of the one kind and of the other can be sent.
    both: Constant<Bits<2>>,
    beyond_16: Constant<Bits<16>>,
    beyond_24: Constant<Bits<16>>,
    one: Constant<Bits<4>>,
}

impl LinkPort {
    /// A link whose receiver has `credits` places for each channel, at most
    /// [`MAX_CREDITS`](sme_sim::families::sme::engine::design::MAX_CREDITS), and that a packet of
    /// 16 or 24 bytes takes for so many cycles, 1 to [`MAX_CYCLES`].
    pub fn new(credits: u16, cycles_16: u64, cycles_24: u64) -> Self {
        assert!(
            [cycles_16, cycles_24]
                .iter()
                .all(|cycles| (1..=MAX_CYCLES).contains(cycles))
        );
        let fewest = cycles_16.min(cycles_24);
        let late = fewest >= LATE_CYCLES;
        let beyond = |cycles: u64| Constant::new((cycles - 1 - u64::from(late)).into());
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            transmit_valid: Signal::default(),
            transmit_packet: Signal::default(),
            transmit_ready: Signal::default(),
            link_credit: Signal::default(),
            link_out_valid: Signal::default(),
            link_out_channel: Signal::default(),
            link_out_data: Signal::default(),
            link_out_crc: Signal::default(),
            link_in_valid: Signal::default(),
            link_in_channel: Signal::default(),
            link_in_data: Signal::default(),
            link_in_crc: Signal::default(),
            receive_valid: Signal::default(),
            receive_data: Signal::default(),
            arriving_on: Signal::default(),
            arriving_target: Signal::default(),
            crc_error: Signal::default(),
            begun: Signal::default(),
            waiting: Signal::default(),
            begun_write: Signal::default(),
            fifos: std::array::from_fn(|_| LateFifo::default()),
            fetch: Resting::new(Fetch::default()),
            credits: std::array::from_fn(|_| Credits::new(credits)),
            arbiter: RoundRobin::new(3),
            out_crc: PacketCrc::new(),
            in_crc: PacketCrc::new(),
            may_begin: Default::default(),
            sending: Register::default(),
            sending_next: Signal::default(),
            packet: Kept::default(),
            channel: Register::default(),
            left: Register::default(),
            begins: Signal::default(),
            loads: Signal::default(),
            chosen: Signal::default(),
            beyond: Signal::default(),
            at_once: Signal::default(),
            arrived: Stages::new(1, false),
            arrived_on: Stages::new(1, 0.into()),
            arrived_data: Stages::new(1, PacketBeat::default()),
            difference: Stages::new(1, 0.into()),
            sound: Signal::default(),
            accepted_on: Stages::new(1, 0.into()),
            accepted_data: Stages::new(1, PacketBeat::default()),
            wrong: Stages::new(1, false),
            returned: Stages::new(2, 0.into()),
            late: Constant::new(late),
            several: Constant::new(fewest > 1),
            both: Constant::new(3.into()),
            beyond_16: beyond(cycles_16),
            beyond_24: beyond(cycles_24),
            one: Constant::new(1.into()),
        }
    }
}

impl Logic for LinkPort {
    #[hdl_gen]
    fn update(&mut self) {
        self.arbiter.clock.next = self.clock.val();
        self.arbiter.reset.next = self.reset.val();
        self.sending.clock.next = self.clock.val();
        self.sending.reset.next = self.reset.val();
        self.packet.clock.next = self.clock.val();
        self.channel.clock.next = self.clock.val();
        self.channel.reset.next = self.reset.val();
        self.left.clock.next = self.clock.val();
        self.left.reset.next = self.reset.val();
        self.arrived.clock.next = self.clock.val();
        self.arrived.reset.next = self.reset.val();
        self.arrived_on.clock.next = self.clock.val();
        self.arrived_on.reset.next = self.reset.val();
        self.arrived_data.clock.next = self.clock.val();
        self.arrived_data.reset.next = self.reset.val();
        self.difference.clock.next = self.clock.val();
        self.difference.reset.next = self.reset.val();
        self.accepted_on.clock.next = self.clock.val();
        self.accepted_on.reset.next = self.reset.val();
        self.accepted_data.clock.next = self.clock.val();
        self.accepted_data.reset.next = self.reset.val();
        self.wrong.clock.next = self.clock.val();
        self.wrong.reset.next = self.reset.val();
        self.returned.clock.next = self.clock.val();
        self.returned.reset.next = self.reset.val();

        self.returned.d.next = self.link_credit.val();
        for i in 0..4 {
            self.fifos[i].clock.next = self.clock.val();
            self.fifos[i].reset.next = self.reset.val();
            self.fifos[i].write.next = self.transmit_valid.val().get_bit(i);
            self.fifos[i].write_data.next = self.transmit_packet.val();
            self.credits[i].clock.next = self.clock.val();
            self.credits[i].reset.next = self.reset.val();
            self.credits[i].returned.next = self.returned.q.val().get_bit(i);
            self.may_begin[i].clock.next = self.clock.val();
            self.may_begin[i].reset.next = self.reset.val();
        }
        self.transmit_ready.next = bit_cast::<4, 1>(self.fifos[0].ready.val().into())
            | (bit_cast::<4, 1>(self.fifos[1].ready.val().into()) << 1)
            | (bit_cast::<4, 1>(self.fifos[2].ready.val().into()) << 2)
            | (bit_cast::<4, 1>(self.fifos[3].ready.val().into()) << 3);
        self.waiting.next = bit_cast::<4, 1>(self.fifos[0].valid.val().into())
            | (bit_cast::<4, 1>(self.fifos[1].valid.val().into()) << 1)
            | (bit_cast::<4, 1>(self.fifos[2].valid.val().into()) << 2)
            | (bit_cast::<4, 1>(self.fifos[3].valid.val().into()) << 3);
        self.arbiter.want.next = bit_cast::<4, 1>(self.may_begin[0].q.val().into())
            | (bit_cast::<4, 1>(self.may_begin[1].q.val().into()) << 1)
            | (bit_cast::<4, 1>(self.may_begin[2].q.val().into()) << 2)
            | (bit_cast::<4, 1>(self.may_begin[3].q.val().into()) << 3);
        self.arbiter.can.next = self.both.val();
        self.arbiter.take.next = true;
        self.begins.next = self.arbiter.any.val();
        self.begun.next = self.arbiter.grant.val();
        for i in 0..4 {
            self.fifos[i].read.next = self.begun.val().get_bit(i);
            self.credits[i].used.next = self.begun.val().get_bit(i);
        }
        self.begun_write.next = (self.begun.val().get_bit(0)
            & (self.fifos[0].data.val().get_value_kind() == 1))
            | (self.begun.val().get_bit(1) & (self.fifos[1].data.val().get_value_kind() == 1))
            | (self.begun.val().get_bit(2) & (self.fifos[2].data.val().get_value_kind() == 1))
            | (self.begun.val().get_bit(3) & (self.fifos[3].data.val().get_value_kind() == 1));

        self.fetch.clock.next = self.clock.val();
        self.fetch.reset.next = self.reset.val();
        self.fetch.write.next = 0.into();
        self.fetch.read.next = 0.into();
        self.fetch.write_data.next = self.transmit_packet.val();
        if self.late.val() {
            self.fetch.write.next = self.transmit_valid.val() & self.transmit_ready.val();
            self.fetch.read.next = self.begun.val();
            self.loads.next = self.fetch.valid.val();
            self.chosen.next = self.fetch.data.val();
        } else {
            self.loads.next = self.begins.val();
            self.chosen.next = self.fifos[0].data.val();
            if self.arbiter.grant.val().get_bit(1) {
                self.chosen.next = self.fifos[1].data.val();
            } else if self.arbiter.grant.val().get_bit(2) {
                self.chosen.next = self.fifos[2].data.val();
            } else if self.arbiter.grant.val().get_bit(3) {
                self.chosen.next = self.fifos[3].data.val();
            }
        }
        self.beyond.next = self.beyond_16.val();
        if self.chosen.val().get_value_kind() == 1 {
            self.beyond.next = self.beyond_24.val();
        }
        self.at_once.next = self.loads.val() & (self.beyond.val() == 0);

        self.packet.enable.next = self.loads.val();
        self.packet.d.next = self.chosen.val();
        self.channel.d.next = self.channel.q.val();
        self.left.d.next = self.left.q.val();
        self.sending_next.next = self.sending.q.val();
        if self.sending.q.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.sending_next.next = self.left.q.val() != 1;
        }
        // Of a packet that is not there yet nothing is known but that it takes more cycles than
        // this one.
        if self.begins.val() {
            self.channel.d.next = self.arbiter.winner.val();
            self.sending_next.next = self.beyond.val() != 0;
        }
        self.sending.d.next = self.sending_next.val();
        // Where packets take several cycles the link is not free next if one begins now. So where
        // it is free no FIFO is read and no credit used in this cycle: what comes is all that
        // changes.
        for i in 0..4 {
            if self.several.val() {
                self.may_begin[i].d.next = (self.fifos[i].valid.val()
                    | (self.transmit_valid.val().get_bit(i) & self.fifos[i].ready.val()))
                    & (self.credits[i].available.val() | self.returned.q.val().get_bit(i))
                    & !self.sending_next.val();
            } else {
                self.may_begin[i].d.next = self.fifos[i].valid_next.val()
                    & self.credits[i].available_next.val()
                    & !self.sending_next.val();
            }
        }
        if self.loads.val() {
            self.left.d.next = self.beyond.val();
        }

        self.link_out_valid.next =
            self.at_once.val() | (self.sending.q.val() & (self.left.q.val() == 1));
        self.link_out_channel.next = self.channel.q.val();
        self.link_out_data.next = self.packet.q.val();
        if self.at_once.val() {
            self.link_out_channel.next = self.arbiter.winner.val();
            self.link_out_data.next = self.chosen.val();
        }
        self.out_crc.packet.next = self.link_out_data.val();
        self.in_crc.packet.next = self.link_in_data.val();
        self.link_out_crc.next = self.out_crc.crc.val();
        self.difference.d.next = self.in_crc.crc.val() ^ self.link_in_crc.val();
        self.arrived.d.next = self.link_in_valid.val();
        self.arrived_on.d.next = 0.into();
        if self.link_in_valid.val() {
            self.arrived_on.d.next = self.one.val() << self.link_in_channel.val();
        }
        self.arrived_data.d.next = self.link_in_data.val();

        self.sound.next = self.difference.q.val() == 0;
        self.wrong.d.next = self.arrived.q.val() & !self.sound.val();
        self.accepted_on.d.next = 0.into();
        if self.sound.val() {
            self.accepted_on.d.next = self.arrived_on.q.val();
        }
        self.accepted_data.d.next = self.arrived_data.q.val();
        self.arriving_on.next = self.arrived_on.q.val();
        self.arriving_target.next = self.arrived_data.q.val().get_value_target();
        self.crc_error.next = self.wrong.q.val();
        self.receive_valid.next = self.accepted_on.q.val();
        self.receive_data.next = self.accepted_data.q.val();
    }
}
