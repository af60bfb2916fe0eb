//! The immutable specs of all blocks of a cluster's engines, checked, in one place.

use std::sync::Arc;

use super::completer::CompleterSpec;
use super::fifo::MAX_PLACES;
use super::ht_port::HtPortSpec;
use super::link_port::LinkPortSpec;
use super::packet::{MAX_NODES, MAX_OFFSET};
use super::requester::RequesterSpec;
use super::tags::MAX_TAGS;
use super::wide_switch::PORT_FIFOS;
use super::wires::{DEPTH, HOST_FIFOS, HT_RECEIVE, PACKET_FIFOS, switch_input};
use crate::families::sme::spec::ClusterSpec;
use crate::parts::fabric::{CHANNELS, LINK_PORTS, Router, Topology};

/// Most credits of a channel.
pub const MAX_CREDITS: u32 = 2048;

/// The specs of every block, the same for all engines of a cluster, which share it.
#[derive(Clone, Debug)]
pub struct Design {
    pub(super) topology: Topology,
    pub(super) router: Router,
    pub(super) ht_port: HtPortSpec,
    pub(super) requester: RequesterSpec,
    pub(super) completer: CompleterSpec,
    pub(super) link_port: LinkPortSpec,
    pub(super) packet_depths: Arc<[u16; PACKET_FIFOS]>,
    pub(super) host_depths: Arc<[u16; HOST_FIFOS]>,
    /// Of a port of a switch outside the engines.
    pub(super) port_depths: Arc<[u16; PORT_FIFOS]>,
}

impl Design {
    /// The design of the engines of a cluster of `hosts` nodes in `topology`.
    ///
    /// # Errors
    /// What the packet formats or the blocks cannot do; see [`DesignError`].
    pub fn new(spec: &ClusterSpec, topology: &Topology, hosts: u32) -> Result<Self, DesignError> {
        let within = |key, value, most| match value {
            1.. if value <= most => Ok(value),
            _ => Err(DesignError::Range { key, value, most }),
        };
        let credits = |key, value: u32| {
            within(key, value.into(), MAX_CREDITS.into()).map(|value| value as u16)
        };
        within(
            "nodes",
            hosts.into(),
            topology.hosts().min(MAX_NODES).into(),
        )?;
        within("engine.tags", spec.engine.tags.into(), MAX_TAGS.into())?;
        within("link.bandwidth", spec.link.bytes_per_second, u64::MAX)?;
        let shared_bytes = within("node.shared_memory", spec.node.shared_bytes, MAX_OFFSET)?;
        if !shared_bytes.is_power_of_two() {
            return Err(DesignError::PowerOfTwo {
                key: "node.shared_memory",
                value: shared_bytes,
            });
        }
        let ht_credits = [
            credits("host.posted_credits", spec.host.posted_credits)?,
            credits("host.nonposted_credits", spec.host.nonposted_credits)?,
            credits("host.response_credits", spec.host.response_credits)?,
        ];
        let link_credits = credits("link.channel_credits", spec.link.channel_credits)?;
        let mut packet_depths = [DEPTH; PACKET_FIFOS];
        packet_depths[..switch_input(LINK_PORTS as u16, 0)].fill(link_credits);
        let mut port_depths = [DEPTH; PORT_FIFOS];
        port_depths[..CHANNELS].fill(link_credits);
        let mut host_depths = [DEPTH; HOST_FIFOS];
        host_depths[HT_RECEIVE..HT_RECEIVE + 3].copy_from_slice(&ht_credits);
        Ok(Self {
            topology: topology.clone(),
            router: Router::new(topology),
            ht_port: HtPortSpec {
                credits: ht_credits,
            },
            requester: RequesterSpec {
                global_base: spec.node.global_base,
                shared_bits: shared_bytes.trailing_zeros(),
                hosts,
                tags: spec.engine.tags,
            },
            completer: CompleterSpec {
                shared_base: spec.node.private_bytes,
            },
            link_port: LinkPortSpec::of(spec),
            packet_depths: Arc::new(packet_depths),
            host_depths: Arc::new(host_depths),
            port_depths: Arc::new(port_depths),
        })
    }

    /// Returns whether at `position` there is a switch outside any engine: a
    /// [`WideSwitch`](super::WideSwitch).
    pub fn is_switch(&self, position: u32) -> bool {
        self.topology.is_switch(position)
    }
}

// All buffers full at once must fit into a bank.
const _: () = assert!(
    LINK_PORTS * CHANNELS * MAX_CREDITS as usize + PACKET_FIFOS * DEPTH as usize <= MAX_PLACES
);

/// The reason why a machine's engines cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// Zero, or more than the packet formats or the blocks can hold.
    #[error("{key} is {value}; the engine needs 1 to {most}")]
    Range {
        /// Key in the machine file.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The largest that is possible.
        most: u64,
    },
    /// Not a power of two.
    #[error("{key} is {value}; the engine needs a power of two")]
    PowerOfTwo {
        /// Key in the machine file.
        key: &'static str,
        /// Its value.
        value: u64,
    },
}
