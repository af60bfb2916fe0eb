//! The site of an engine in a cluster, which decides the sizes of its blocks.

use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::parts::fabric::{Topology, TopologyKind};

use crate::blocks::engine::{Engine, Unsupported};

/// The site of an engine: a node of a cluster.
#[derive(Clone, Debug)]
pub struct EngineSite {
    pub(super) spec: ClusterSpec,
    pub(super) topology: Topology,
    pub(super) hosts: u32,
    pub(super) node: u32,
}

impl EngineSite {
    /// `node` of a cluster of `hosts` nodes, which
    /// [`Design::new`](sme_sim::families::sme::engine::Design::new) must not refuse.
    ///
    /// # Errors
    /// What the RTL cannot do; see [`Unsupported`].
    pub fn new(
        spec: &ClusterSpec,
        topology: &Topology,
        hosts: u32,
        node: u32,
    ) -> Result<Self, Unsupported> {
        Engine::new(spec, topology, hosts)?;
        Ok(Self {
            spec: spec.clone(),
            topology: topology.clone(),
            hosts,
            node,
        })
    }

    /// A node of such a cluster where all that its engine has is in use: in the middle of a mesh,
    /// where there are all links; in the corner of a torus, where links wrap.
    ///
    /// # Errors
    /// [`Unsupported`], as [`Self::new`].
    pub fn of_cluster(
        spec: &ClusterSpec,
        topology: &Topology,
        hosts: u32,
    ) -> Result<Self, Unsupported> {
        let corner = hosts - 1;
        let node = match topology.kind() {
            TopologyKind::Torus => corner,
            _ => (hosts / 2 + topology.sizes()[0] / 2).min(corner),
        };
        Self::new(spec, topology, hosts, node)
    }

    /// Some node of the same cluster, which `seed` chooses.
    pub fn of_seed(&self, seed: u64) -> Self {
        let node = (seed as u32).wrapping_mul(0x9e37_79b9) % self.hosts;
        Self {
            node,
            ..self.clone()
        }
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The engine.
    pub(super) fn engine(&self) -> Engine {
        let engine = Engine::new(&self.spec, &self.topology, self.hosts);
        engine.expect("one of the same sizes was built already")
    }

    /// Bits of an address in a node's shared partition.
    pub(super) fn shared_bits(&self) -> u32 {
        self.spec.node.shared_bytes.trailing_zeros()
    }
}
