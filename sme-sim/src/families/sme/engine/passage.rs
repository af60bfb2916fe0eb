//! The delays of a packet between the blocks of a position and its link, outside the blocks: named
//! delays of the machine file. The node adds them to the time at which the blocks give the packet
//! out.

use super::packet::Packet;
use crate::families::sme::spec::ClusterSpec;
use crate::parts::fabric::Topology;

/// The delays, in cycles of the engines' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Between an engine and its switch: `engine.network_core`.
    pub crossing: u64,
    /// In a switch outside the engines: `fabric.switch`.
    pub switch: u64,
}

impl Passage {
    /// Of a machine.
    pub fn of(spec: &ClusterSpec) -> Self {
        Self {
            crossing: spec.engine.network_core_cycles,
            switch: spec.engine.clock.first_edge_from(spec.fabric.switch),
        }
    }

    /// Of `packet`, which leaves `position` over a link to `next`: it crosses clock domains behind
    /// its source's engine and before its target's.
    #[inline]
    pub fn cycles(&self, topology: &Topology, position: u32, next: u32, packet: &Packet) -> u64 {
        let crossings = u64::from(packet.source == position) + u64::from(packet.target == next);
        let switch = match self.switch {
            0 => 0,
            cycles => cycles * u64::from(topology.is_switch(position)),
        };
        crossings * self.crossing + switch
    }
}
