//! Traffic over a machine's network and through its caches, in sum.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Traffic between nodes, of what counts: a run's warm-up does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Loads that left their node, or went through its engine.
    pub remote_loads: u64,
    /// Stores that did.
    pub remote_stores: u64,
    /// Bytes sent over network links.
    pub link_bytes: u64,
}

impl Traffic {
    /// Of both.
    pub fn and(self, other: Traffic) -> Traffic {
        Traffic {
            remote_loads: self.remote_loads + other.remote_loads,
            remote_stores: self.remote_stores + other.remote_stores,
            link_bytes: self.link_bytes + other.link_bytes,
        }
    }
}

/// Traffic through caches of memory that nothing keeps coherent between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTraffic {
    /// Loads and stores that hit a core's own caches.
    pub hits: u64,
    /// Of these, those that hit the second level only.
    pub second_level_hits: u64,
    /// Misses that another core of the node had the line for.
    pub transfers: u64,
    /// Lines fetched from their homes.
    pub fills: u64,
    /// Lines of which something was written back.
    pub write_backs: u64,
    /// Of these, those that a full set displaced.
    pub displaced: u64,
    /// Time that threads spent in calls that write caches back.
    pub flush_time: Time,
}

impl std::ops::AddAssign for CacheTraffic {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.second_level_hits += other.second_level_hits;
        self.transfers += other.transfers;
        self.fills += other.fills;
        self.write_backs += other.write_backs;
        self.displaced += other.displaced;
        self.flush_time += other.flush_time;
    }
}

/// One virtual channel of one directed link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// Position the link leaves.
    pub from: u32,
    /// Position it leads to.
    pub to: u32,
    /// Virtual channel.
    pub channel: u32,
    /// Bytes sent, of what counts.
    pub bytes: u64,
    /// Packets sent, of what counts.
    pub packets: u64,
    /// Share of the run's time, warm-up included, in which the link was taken by this channel.
    pub busy_fraction: f64,
    /// Share of the run's time in which the channel's first packet waited for the link or a credit.
    pub stall_fraction: f64,
}
