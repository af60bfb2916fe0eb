//! Where every FIFO of an engine is.
//!
//! A wire between two blocks ends in a FIFO of the block that reads it. Network packets and
//! HyperTransport packets have a bank each, so that a packet can move from block to block without
//! being copied. Every arrow of the engine's drawing in [`super`] has its index here.

use super::fifo::Fifos;
use super::ht::HtPacket;
use super::packet::Packet;
use crate::parts::fabric::{CHANNELS, LINK_PORTS};

/// FIFOs of network packets.
pub const PACKET_FIFOS: usize = CROSSBAR + 7;
/// FIFOs of HyperTransport packets.
pub const HOST_FIFOS: usize = 8;

/// The bank of network packets. The side word of a switch input is the output it wants, as
/// [`switch_output`] numbers it.
pub type PacketFifos = Fifos<Packet, PACKET_FIFOS>;
/// The bank of HyperTransport packets. The side word of a read is how many posted writes came
/// before it (modulo 2^16), which it must not overtake.
pub type HostFifos = Fifos<HtPacket, HOST_FIFOS>;

/// A switch input: the receive buffer of a virtual channel of link port `0..6`, or of the host
/// port (6), which uses channels 0 (requests) and 2 (responses).
pub const fn switch_input(port: u16, channel: u8) -> usize {
    port as usize * CHANNELS + channel as usize
}

/// Returns the FIFO to which a switch output leads: the transmit FIFO of a link port's virtual
/// channel, or the crossbar.
pub const fn switch_output(port: u16, channel: u8) -> usize {
    SWITCH_OUTPUTS + port as usize * CHANNELS + channel as usize
}

/// First FIFO behind the switch.
pub const SWITCH_OUTPUTS: usize = (LINK_PORTS + 1) * CHANNELS;
/// First of the crossbar's four inputs.
pub const CROSSBAR: usize = SWITCH_OUTPUTS + LINK_PORTS * CHANNELS;

/// Crossbar input: requests from the switch.
pub const CROSSBAR_SWITCH_REQUEST: usize = CROSSBAR;
/// Crossbar input: the requester's requests.
pub const CROSSBAR_REQUESTER: usize = CROSSBAR + 1;
/// Crossbar input: responses from the switch.
pub const CROSSBAR_SWITCH_RESPONSE: usize = CROSSBAR + 2;
/// Crossbar input: the responder's responses.
pub const CROSSBAR_RESPONDER: usize = CROSSBAR + 3;
/// Completer input: requests to this node.
pub const COMPLETER: usize = CROSSBAR + 4;
/// Requester input: responses to this node.
pub const REQUESTER_RESPONSE: usize = CROSSBAR + 5;
/// Responder input: what the host's memory answers, as responses for those who asked.
pub const RESPONDER: usize = CROSSBAR + 6;

/// HyperTransport port, receive buffers; one for each channel, in the order of
/// [`HtChannel`](super::ht::HtChannel).
pub const HT_RECEIVE: usize = 0;
/// Of these that of responses: what the host's memory answers, which the responder takes.
pub const HT_RECEIVE_RESPONSE: usize = HT_RECEIVE + 2;
/// HyperTransport port, transmit FIFOs; one for each channel, in the same order.
pub const HT_TRANSMIT: usize = 3;
/// Requester input: posted writes of the host.
pub const REQUESTER_POSTED: usize = 6;
/// Requester input: reads of the host.
pub const REQUESTER_NONPOSTED: usize = 7;

/// Places of a FIFO between two blocks: enough for one packet per cycle.
pub const DEPTH: u16 = 2;

/// Returns whether any of the FIFOs `first..first + count` is set in `mask`.
pub(crate) const fn any(mask: u64, first: usize, count: usize) -> bool {
    mask >> first & ((1 << count) - 1) != 0
}

/// Of a bit of a mask that has one for each channel of each port.
pub(crate) const fn port_and_channel(bit: u32) -> (u16, u8) {
    (
        (bit / CHANNELS as u32) as u16,
        (bit % CHANNELS as u32) as u8,
    )
}

/// The set bits, lowest first.
#[inline]
pub(crate) fn bits(mask: impl Into<u64>) -> impl Iterator<Item = u32> {
    let mut mask = mask.into();
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}
