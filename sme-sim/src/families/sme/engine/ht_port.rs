//! The engine's HyperTransport port.
//!
//! ```text
//!            ┌─ receive posted ─────> requester
//! host ─────>├─ receive non-posted ─> requester        credits back to the host
//!            └─ receive response ───> responder
//!            ┌─ transmit posted <──── completer
//! host <─────├─ transmit non-posted < completer        credits from the host
//!            └─ transmit response <── requester
//! ```
//!
//! Receiving: a buffer per channel with as many places as the host has credits; the three move on
//! independently, one packet per cycle each, and each place freed gives a credit back. Sending: one
//! packet per cycle, round robin among the channels whose first packet may go: there is a credit of
//! the host, and a read has no earlier write before it. Reads never overtake posted writes, in
//! either direction: each carries the number of writes before it. Writes and responses overtake all
//! packets that wait.

use super::arbiter::round_robin;
use super::ht::{HtChannel, HtPacket};
use super::wires::{HT_RECEIVE, HT_TRANSMIT, HostFifos, REQUESTER_NONPOSTED, REQUESTER_POSTED};

/// The constants of a HyperTransport port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtPortSpec {
    /// Packets the host takes on each channel, and this port too, before a credit must come back.
    pub credits: [u16; 3],
}

/// Registers, apart from the FIFOs.
#[derive(Clone, Debug)]
pub struct HtPort {
    /// Places left in the host.
    credits: [u16; 3],
    /// The channel sent last.
    last: u8,
    /// Posted writes received from the host, modulo 2^16.
    received: u16,
    /// Posted writes put into the transmit FIFO, modulo 2^16.
    queued: u16,
    /// Posted writes sent to the host, modulo 2^16.
    sent: u16,
}

/// Returns whether all of the first `before` posted writes are among the `done` ones, both modulo
/// 2^16.
pub(crate) fn overtakes_none(done: u16, before: u16) -> bool {
    done.wrapping_sub(before) < 1 << 15
}

impl HtPort {
    /// After reset.
    pub fn new(spec: &HtPortSpec) -> Self {
        Self {
            credits: spec.credits,
            last: 2,
            received: 0,
            queued: 0,
            sent: 0,
        }
    }

    /// A packet arrives from the host.
    pub fn receive(&mut self, packet: HtPacket, fifos: &mut HostFifos) {
        let channel = packet.channel();
        if channel == HtChannel::Posted {
            self.received = self.received.wrapping_add(1);
        }
        fifos.push(HT_RECEIVE + channel as usize, packet, self.received);
    }

    /// A credit arrives from the host.
    ///
    /// # Panics
    /// In debug builds, if the host returns more than it was given.
    pub fn credit(&mut self, channel: HtChannel, spec: &HtPortSpec) {
        let credits = &mut self.credits[channel as usize];
        *credits += 1;
        debug_assert!(
            *credits <= spec.credits[channel as usize],
            "the host returned a credit twice"
        );
    }

    /// Output ports towards the requester: moves what that is ready for and tells the channels
    /// whose place was freed, bit by bit. Responses are the responder's to take.
    pub fn forward(&mut self, fifos: &mut HostFifos) -> u8 {
        let mut freed = 0;
        for (channel, to) in [REQUESTER_POSTED, REQUESTER_NONPOSTED]
            .into_iter()
            .enumerate()
        {
            let from = HT_RECEIVE + channel;
            if fifos.is_valid(from) && fifos.is_ready(to) {
                fifos.transfer(from, to, fifos.side(from));
                freed |= 1 << channel;
            }
        }
        freed
    }

    /// Input port from the completer and requester: puts a packet into its transmit FIFO.
    pub fn queue(&mut self, packet: HtPacket, fifos: &mut HostFifos) {
        let channel = packet.channel();
        if channel == HtChannel::Posted {
            self.queued = self.queued.wrapping_add(1);
        }
        fifos.push(HT_TRANSMIT + channel as usize, packet, self.queued);
    }

    /// The channel that is sent to the host in this cycle.
    pub fn offers(&self, fifos: &HostFifos) -> Option<HtChannel> {
        let mut want = 0;
        for channel in HtChannel::ALL {
            let index = channel as usize;
            let fifo = HT_TRANSMIT + index;
            let may_go = fifos.is_valid(fifo)
                && self.credits[index] > 0
                && (channel != HtChannel::NonPosted || overtakes_none(self.sent, fifos.side(fifo)));
            want |= u32::from(may_go) << index;
        }
        (want != 0).then(|| HtChannel::ALL[usize::from(round_robin(want, self.last))])
    }

    /// Sends a packet to the host.
    pub fn transmit(&mut self, fifos: &mut HostFifos) -> Option<HtPacket> {
        let channel = self.offers(fifos)?;
        self.last = channel as u8;
        self.credits[channel as usize] -= 1;
        if channel == HtChannel::Posted {
            self.sent = self.sent.wrapping_add(1);
        }
        Some(fifos.pop(HT_TRANSMIT + channel as usize))
    }

    /// Credits that the host has not returned.
    pub fn missing(&self, spec: &HtPortSpec) -> u32 {
        self.credits
            .iter()
            .zip(spec.credits)
            .map(|(&credits, all)| u32::from(all - credits))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wires::{DEPTH, HOST_FIFOS};
    use super::*;
    use proptest::prelude::*;

    fn write(trace: u32) -> HtPacket {
        HtPacket::Write {
            address: 0,
            data: 0,
            enables: 255,
            coherent: false,
            trace,
        }
    }

    fn read(trace: u32) -> HtPacket {
        HtPacket::Read {
            extra_words: 0,
            address: 0,
            enables: 255,
            tag: 0,
            trace,
        }
    }

    fn response(trace: u32) -> HtPacket {
        HtPacket::Response {
            extra_words: 0,
            data: 0,
            single: false,
            tag: 0,
            error: false,
            trace,
        }
    }

    #[test]
    fn a_read_without_credit_holds_up_nobody_and_a_write_without_credit_holds_up_reads() {
        let spec = HtPortSpec { credits: [1, 1, 1] };
        let mut port = HtPort::new(&spec);
        let mut fifos = HostFifos::new(&[DEPTH; HOST_FIFOS]);
        for packet in [read(0), read(1), write(2), write(3), response(4)] {
            port.queue(packet, &mut fifos);
        }
        let mut sent = Vec::new();
        let mut run = |port: &mut HtPort, fifos: &mut HostFifos| {
            for _ in 0..6 {
                fifos.latch();
                sent.extend(port.transmit(fifos).map(|packet| packet.trace()));
            }
            std::mem::take(&mut sent)
        };
        assert_eq!(run(&mut port, &mut fifos), [2, 0, 4]);
        port.queue(read(5), &mut fifos);
        port.credit(HtChannel::NonPosted, &spec);
        assert_eq!(run(&mut port, &mut fifos), [1]);
        port.credit(HtChannel::NonPosted, &spec);
        assert!(
            run(&mut port, &mut fifos).is_empty(),
            "read 5 came after write 3"
        );
        port.credit(HtChannel::Posted, &spec);
        assert_eq!(run(&mut port, &mut fifos), [3, 5]);
    }

    proptest! {
        /// Random packets, ready receivers and credits: every channel stays in order, and no read
        /// is sent before a write that was queued before it.
        #[test]
        fn order_is_kept(events in prop::collection::vec((0u8..3, any::<bool>(), 0u8..3), 1..400)) {
            let spec = HtPortSpec { credits: [2, 1, 3] };
            let mut port = HtPort::new(&spec);
            let mut fifos = HostFifos::new(&[DEPTH; HOST_FIFOS]);
            let mut used = [0u16; 3];
            let mut queued: Vec<HtPacket> = Vec::new();
            for (number, (kind, queue, credit)) in events.into_iter().enumerate() {
                fifos.latch();
                let packet = [write, read, response][usize::from(kind)](number as u32);
                let may_queue = fifos.is_ready(HT_TRANSMIT + usize::from(kind));
                if let Some(sent) = port.transmit(&mut fifos) {
                    let channel = sent.channel();
                    used[channel as usize] += 1;
                    prop_assert!(used[channel as usize] <= spec.credits[channel as usize]);
                    let place = queued.iter().position(|other| *other == sent).expect("sent once");
                    let passed = &queued[..place];
                    prop_assert!(passed.iter().all(|other| other.channel() != channel));
                    if channel == HtChannel::NonPosted {
                        prop_assert!(passed.iter().all(|other| other.channel() != HtChannel::Posted));
                    }
                    queued.remove(place);
                }
                if queue && may_queue {
                    port.queue(packet, &mut fifos);
                    queued.push(packet);
                }
                if used[usize::from(credit)] > 0 {
                    used[usize::from(credit)] -= 1;
                    port.credit(HtChannel::ALL[usize::from(credit)], &spec);
                }
            }
        }
    }
}
