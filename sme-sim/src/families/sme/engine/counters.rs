//! The counters of an engine: the load of its outgoing links, and faults.

use super::packet::MAX_WORDS;
use crate::parts::fabric::{CHANNELS, LINK_PORTS};

/// Counters of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Of each link port's transmitter and virtual channel.
    pub links: Vec<[ChannelCounters; CHANNELS]>,
    /// Accesses to addresses where nothing is.
    pub faults: Faults,
}

/// Of an engine that has done nothing yet.
impl Default for Counters {
    fn default() -> Self {
        Self {
            links: vec![Default::default(); LINK_PORTS],
            faults: Faults::default(),
        }
    }
}

/// One virtual channel of an outgoing link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Packets whose transmission has begun.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Engine cycles the link was taken by them.
    pub busy_cycles: u64,
    /// Engine cycles in which the channel's first packet waited because the link was busy or the
    /// receiver's buffer had no place; counted when the packet leaves.
    pub stall_cycles: u64,
}

impl ChannelCounters {
    /// Counts `more` besides.
    pub fn add(&mut self, more: &Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
        self.busy_cycles += more.busy_cycles;
        self.stall_cycles += more.stall_cycles;
    }
}

/// Packets and their bytes in four bytes of memory: what a large network counts at every hop stands
/// beside what a hop has to do with anyhow, until it is added to a longer count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortCount {
    packets: u16,
    /// Of eight bytes.
    words: u16,
}

impl ShortCount {
    /// Up to so many words, the longest packet can be counted besides.
    const MOST: u16 = u16::MAX - MAX_WORDS as u16;

    /// Counts a packet of `bytes` bytes. If no further one has a place: packets and bytes so far,
    /// and the count begins anew.
    #[inline]
    pub fn count(&mut self, bytes: u64) -> Option<(u64, u64)> {
        self.packets += 1;
        self.words += (bytes / 8) as u16;
        // A packet has two words or more, so that these overflow first.
        (self.words > Self::MOST).then(|| std::mem::take(self).sums())
    }

    /// Packets and bytes.
    pub fn sums(self) -> (u64, u64) {
        (self.packets.into(), u64::from(self.words) * 8)
    }
}

/// Accesses that could not be carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Posted writes dropped because their address is no node's.
    pub dropped_writes: u64,
    /// The global address of the first of them.
    pub first_dropped_write: Option<u64>,
    /// Reads answered with an error because their address is no node's.
    pub failed_reads: u64,
    /// The global address of the first of them.
    pub first_failed_read: Option<u64>,
    /// Responses whose tag no read holds, dropped: a protocol error of the host or the network.
    pub unknown_tags: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_count_is_full_before_it_overflows() {
        for bytes in [16, 24, 40, 72] {
            let mut short = ShortCount::default();
            let (mut packets, mut sum) = (0, 0);
            for _ in 0..100_000 {
                if let Some(full) = short.count(bytes) {
                    (packets, sum) = (packets + full.0, sum + full.1);
                }
            }
            let rest = short.sums();
            assert!(packets > 0 && rest.0 > 0);
            assert_eq!((packets + rest.0, sum + rest.1), (100_000, 100_000 * bytes));
        }
    }
}
