//! A link port: serializes packets onto a network link, and takes part in its credits.
//!
//! ```text
//! switch ─> four transmit FIFOs ─> round robin ─> serializer ─> link     credits from the receiver
//! link ─> CRC, two registers ─> receive buffers = the switch's inputs    credits to the sender
//! ```
//!
//! A virtual channel may begin a packet while the link is free and the receiver has a place for
//! it; the channels that may take turns. A packet of b bytes takes the link for
//! ⌈b · clock / bandwidth⌉ cycles and is delivered whole in the last of them: the receiver stores
//! and forwards. The next can begin in the cycle after.
//!
//! If the links cut through (`link.forwarding`), a packet is given out in the cycle in which it
//! begins, and the node, which carries it over the link, adds the cycles until what the receiver
//! waits for has left ([`LinkPortSpec::left`]): the header on the way, everything at the target,
//! whose engine takes whole packets. The link is taken for as long as before. As all links have one
//! rate, no byte comes too late to follow its header: ⌈(a + b) · r⌉ ≤ ⌈a · r⌉ + ⌈b · r⌉. As the
//! receiver has a place for all of it, the header may wait; and the place may be given to another
//! when the header has gone, as nothing comes over this link before the last byte.
//!
//! An arrival, packet or credit, goes through two registers, one in the check of a packet's CRC and
//! one behind it. Nothing can hold it up there, so there are no such registers here: it is as if it
//! had been sampled [`ARRIVAL_CYCLES`] later. The receive buffers, one per virtual channel with as
//! many places as credits, are the [switch](super::switch)'s inputs; a place that the switch frees
//! is a credit to the sender in the same cycle.

use super::arbiter::round_robin;
use super::counters::{ChannelCounters, ShortCount};
use super::fifo::{Fifos, Held};
use super::packet::{Kind, MAX_WORDS, Packet};
use super::wires::{PacketFifos, switch_output};
use crate::families::sme::spec::{ClusterSpec, Forwarding};
use crate::parts::fabric::{CHANNELS, Class};

/// Cycles from the edge at which a packet or a credit of a link is sampled until it is in the
/// receive buffer, or counts.
pub const ARRIVAL_CYCLES: u64 = 2;

/// Of a packet, what a switch decides its way by: the first word.
const HEADER_BYTES: u64 = 8;

/// The constants of a link port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPortSpec {
    /// Places of each receive buffer.
    pub credits: u16,
    /// Cycles that 8 bytes, 16 bytes and so on to the longest packet take the link.
    word_cycles: [u64; MAX_WORDS],
    /// Bytes of the longer packets of each class; the shorter of both have 16.
    longer: [u64; 2],
    /// Whether a packet is given out as it begins.
    cuts_through: bool,
}

impl LinkPortSpec {
    /// Of links of `bytes_per_second`, at an engine clock of `hz` Hertz, neither of them zero,
    /// without long reads.
    pub fn new(bytes_per_second: u64, hz: u64, credits: u16) -> Self {
        let cycles = |bytes: u128| (bytes * u128::from(hz)).div_ceil(u128::from(bytes_per_second));
        Self {
            credits,
            word_cycles: std::array::from_fn(|words| {
                u64::try_from(cycles(8 * (words as u128 + 1))).unwrap_or(u64::MAX)
            }),
            longer: [Kind::PostedWrite.bytes(); 2],
            cuts_through: false,
        }
    }

    /// Of the links of a machine, which must not have too many credits.
    pub fn of(spec: &ClusterSpec) -> Self {
        let link = &spec.link;
        let (rate, credits) = (link.bytes_per_second, link.channel_credits as u16);
        Self {
            longer: [Kind::PostedWrite.bytes(), spec.longest_packet_bytes()],
            cuts_through: link.forwarding == Forwarding::CutThrough,
            ..Self::new(rate, spec.engine.clock.hz(), credits)
        }
    }

    /// Cycles that a packet of 16 to 72 bytes takes the link, at least 1.
    pub fn cycles(&self, bytes: u64) -> u64 {
        self.word_cycles[(bytes / 8) as usize - 1]
    }

    /// The cycle in which a packet begins that is given out in `given`.
    pub fn began(&self, given: u64, bytes: u64) -> u64 {
        match self.cuts_through {
            true => given,
            false => (given + 1).saturating_sub(self.cycles(bytes)),
        }
    }

    /// The cycle in which the last of a packet has left that the receiver waits for, if the packet
    /// is given out in `given`. The packet's `target` waits for all of it.
    #[inline]
    pub fn left(&self, given: u64, bytes: u64, target: bool) -> u64 {
        match (self.cuts_through, target) {
            (false, _) => given,
            (true, true) => given + self.cycles(bytes) - 1,
            (true, false) => given + self.cycles(HEADER_BYTES) - 1,
        }
    }

    /// The counters of so many packets of `channel`, `bytes` in all, none of which has waited.
    fn without_waiting(&self, channel: u8, (packets, bytes): (u64, u64)) -> ChannelCounters {
        const SHORT: u64 = Kind::ReadRequest.bytes();
        let longer = self.longer[Class::of_channel(channel) as usize];
        let long = (bytes - packets * SHORT) / (longer - SHORT);
        let short = packets - long;
        ChannelCounters {
            packets,
            bytes,
            busy_cycles: short * self.cycles(SHORT) + long * self.cycles(longer),
            stall_cycles: 0,
        }
    }
}

/// Registers of the transmitter, apart from the FIFOs; all a packet that passes has to do with is
/// on one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct LinkPort {
    /// The packet on the link, and its channel, until it is given out.
    sending: Option<(Held, u8)>,
    /// The cycle from which on the link is free.
    free_from: u64,
    /// Places left at the receiver, by virtual channel.
    credits: [u16; CHANNELS],
    /// Low half of the cycle from which a channel's first packet waits (it exists while the FIFO
    /// is not empty); an observer's register.
    waits_since: [u32; CHANNELS],
    /// The channel that began last.
    last: u8,
    /// Counts of packets that have not waited, by virtual channel.
    counted: [ShortCount; CHANNELS],
}

// A line.
const _: () = assert!(size_of::<LinkPort>() == 64);

/// The events of one cycle.
#[derive(Debug)]
pub struct Step {
    /// The channel whose packet begins, and what is counted of it.
    pub began: Option<(u8, ChannelCounters)>,
    /// The packet that is delivered, and on which channel: its place is for the caller to release.
    pub delivered: Option<(u8, Held)>,
}

impl LinkPort {
    /// After reset.
    pub fn new(spec: &LinkPortSpec) -> Self {
        let last = CHANNELS as u8 - 1;
        Self {
            sending: None,
            free_from: 0,
            credits: [spec.credits; CHANNELS],
            waits_since: [0; CHANNELS],
            last,
            counted: Default::default(),
        }
    }

    /// A credit arrives from the receiver.
    ///
    /// # Panics
    /// In debug builds, if the receiver returns more than it was given.
    pub fn credit(&mut self, channel: u8, spec: &LinkPortSpec) {
        let credits = &mut self.credits[usize::from(channel)];
        *credits += 1;
        debug_assert!(
            *credits <= spec.credits,
            "the receiver returned a credit twice"
        );
    }

    /// Returns whether a place is left at the receiver.
    pub fn has_credit(&self, channel: u8) -> bool {
        self.credits[usize::from(channel)] > 0
    }

    /// The cycle in which the packet on the link is delivered, unless it has been [given
    /// out](Self::foresee).
    pub fn next_change(&self) -> Option<u64> {
        self.sending.as_ref().map(|_| self.free_from - 1)
    }

    /// The cycle from which on the link is free.
    pub fn free_from(&self) -> u64 {
        self.free_from
    }

    /// The packet on the link, its channel, and the cycle in which it is delivered: nothing changes
    /// that any more, so it can be given out before. Its place is for the caller to release.
    pub fn foresee(&mut self) -> Option<(u64, u8, Held)> {
        let (packet, channel) = self.sending.take()?;
        Some((self.free_from - 1, channel, packet))
    }

    /// Notes, at the end of `cycle`, that the switch wrote into the empty FIFO of `channel`.
    pub fn starts_waiting(&mut self, channel: u8, cycle: u64) {
        self.waits_since[usize::from(channel)] = cycle as u32 + 1;
    }

    /// The channel that begins a packet in `cycle`, if the link is free; `waiting` tells, bit by
    /// bit, whose FIFO is valid.
    pub fn begins(&self, cycle: u64, waiting: u8) -> Option<u8> {
        if cycle < self.free_from {
            return None;
        }
        let mut want = 0;
        for (channel, &credits) in self.credits.iter().enumerate() {
            want |= (u32::from(waiting) >> channel & u32::from(credits > 0)) << channel;
        }
        (want != 0).then(|| round_robin(want, self.last))
    }

    /// Begins a packet of `bytes` bytes in `cycle`, which [`begins`](Self::begins) must have
    /// allowed; what is counted of it.
    fn begin(
        &mut self,
        channel: u8,
        cycle: u64,
        bytes: u64,
        spec: &LinkPortSpec,
    ) -> ChannelCounters {
        let index = usize::from(channel);
        let cycles = spec.cycles(bytes);
        let waited = (cycle as u32).wrapping_sub(self.waits_since[index]);
        self.waits_since[index] = cycle as u32 + 1;
        self.credits[index] -= 1;
        self.last = channel;
        self.free_from = cycle.saturating_add(cycles);
        ChannelCounters {
            packets: 1,
            bytes,
            busy_cycles: cycles,
            stall_cycles: waited.into(),
        }
    }

    /// A packet of `bytes` bytes that the switch writes at the end of the cycle before `cycle`,
    /// where nothing else waits or is on the link that has not been given out: if it begins in
    /// `cycle`, in which cycle it is given out. It has not waited.
    pub fn passes(
        &mut self,
        channel: u8,
        cycle: u64,
        bytes: u64,
        spec: &LinkPortSpec,
    ) -> Option<u64> {
        self.begins(cycle, 1 << channel)?;
        self.starts_waiting(channel, cycle - 1);
        self.begin(channel, cycle, bytes, spec);
        Some(match spec.cuts_through {
            true => cycle,
            false => self.free_from - 1,
        })
    }

    /// Counts a packet of `bytes` bytes that has not waited. If that has no place here any more:
    /// what was counted so far.
    pub fn count(
        &mut self,
        channel: u8,
        bytes: u64,
        spec: &LinkPortSpec,
    ) -> Option<ChannelCounters> {
        let full = self.counted[usize::from(channel)].count(bytes)?;
        Some(spec.without_waiting(channel, full))
    }

    /// Returns the [counts](Self::count) kept here for a channel.
    pub fn counted(&self, channel: u8, spec: &LinkPortSpec) -> ChannelCounters {
        spec.without_waiting(channel, self.counted[usize::from(channel)].sums())
    }

    /// One cycle of port `port`.
    pub fn step(
        &mut self,
        port: u16,
        cycle: u64,
        waiting: u8,
        spec: &LinkPortSpec,
        fifos: &mut PacketFifos,
    ) -> Step {
        self.step_from(switch_output(port, 0), cycle, waiting, spec, fifos)
    }

    /// The same of a port whose transmit FIFOs are `first` and those after it, in any bank.
    #[inline]
    pub(super) fn step_from<const N: usize>(
        &mut self,
        first: usize,
        cycle: u64,
        waiting: u8,
        spec: &LinkPortSpec,
        fifos: &mut Fifos<Packet, N>,
    ) -> Step {
        let mut began = None;
        if let Some(channel) = self.begins(cycle, waiting) {
            let packet = fifos.hold(first + usize::from(channel));
            let bytes = fifos.held(&packet).bytes();
            began = Some((channel, self.begin(channel, cycle, bytes, spec)));
            self.sending = Some((packet, channel));
        }
        let ends = spec.cuts_through || self.free_from <= cycle + 1;
        let delivered = self.sending.take_if(|_| ends);
        Step {
            began,
            delivered: delivered.map(|(packet, channel)| (channel, packet)),
        }
    }

    /// Credits that the receiver has not returned.
    pub fn missing(&self, spec: &LinkPortSpec) -> u32 {
        self.credits
            .iter()
            .map(|&credits| u32::from(spec.credits - credits))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_prototype_takes_six_cycles_for_a_write_and_four_for_a_read() {
        let spec = LinkPortSpec::new(624_000_000, 156_000_000, 8);
        assert_eq!((spec.cycles(24), spec.cycles(16)), (6, 4));
    }

    proptest! {
        #[test]
        fn a_packet_takes_the_fewest_cycles_that_suffice(rate in 1u64..1 << 40, hz in 1_000u64..1 << 40) {
            let spec = LinkPortSpec::new(rate, hz, 1);
            for bytes in (16..=72).step_by(8) {
                let cycles = u128::from(spec.cycles(bytes));
                let needed = u128::from(bytes) * u128::from(hz);
                prop_assert!(cycles * u128::from(rate) >= needed && (cycles - 1) * u128::from(rate) < needed);
            }
        }
    }
}
