//! What an engine counts: the load of its outgoing links, and faults.

use smallvec::SmallVec;

use crate::fabric::{CHANNELS, LINK_PORTS};
use crate::inline::{heap_bytes, prefetch_list};

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

/// The counters of every channel of an engine's links that has ever carried a packet: few do.
#[derive(Clone, Debug, Default)]
pub struct LinkCounters {
    used: SmallVec<[(u8, ChannelCounters); 2]>,
}

impl LinkCounters {
    /// Adds what a port has counted on a channel.
    pub fn add(&mut self, port: u8, channel: u8, more: &ChannelCounters) {
        let key = port * CHANNELS as u8 + channel;
        let place = self.used.iter().position(|&(of, _)| of == key);
        let place = place.unwrap_or_else(|| {
            self.used.reserve_exact(1);
            self.used.push((key, ChannelCounters::default()));
            self.used.len() - 1
        });
        self.used[place].1.add(more);
    }

    /// All of them, by port and channel.
    pub fn all(&self) -> Vec<[ChannelCounters; CHANNELS]> {
        let mut all = vec![[ChannelCounters::default(); CHANNELS]; LINK_PORTS];
        for &(key, counters) in &self.used {
            let (port, channel) = (usize::from(key) / CHANNELS, usize::from(key) % CHANNELS);
            all[port][channel] = counters;
        }
        all
    }

    /// Asks for what lies elsewhere.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_list(&self.used);
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.used)
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
