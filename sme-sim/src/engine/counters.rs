//! What an engine counts: the load of its outgoing links, and faults.

use crate::fabric::{CHANNELS, LINK_PORTS};

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
