//! A machine with an ideal network: every message takes a fixed time, at any load. The time of a
//! program is then that of its chain of dependent accesses. Remote memory can be cached. The caches
//! never displace a line, and nothing keeps them coherent between nodes, so that copies go stale.
//!
//! * `spec`: the constants of its machine files.
//! * `memory`: a node's hardware.

mod memory;
pub(crate) mod spec;

use std::sync::Arc;

use sme_memory::{Capabilities, Capability};

use crate::kernel::peers::Peers;
use crate::machine::family::{CannotBuild, Family, NodeThreads, Readable};
use crate::machine::node::Blueprint;
use crate::machine::nodes::Apart;
use crate::machine::shape::{Footprint, Interfaces, Setup, Shape, Software};
use crate::observe::among::Among;
use crate::parts::fabric::{MAX_HOSTS, NetworkKind};
use crate::parts::global::GlobalSpace;
use memory::Memory;
use spec::IdealSpec;

/// Measured, as the memory of whole runs of 16,384 nodes; a test holds it against the simulator.
const FOOTPRINT: Footprint = Footprint {
    position: 3 << 10,
    thread: 512,
    thread_of_large_node: 512,
    switch_port: 0,
};

impl Family for IdealSpec {
    fn shape(&self) -> Shape {
        Shape {
            nodes: MAX_HOSTS,
            sockets: 1,
            cores: self.cores,
            line_bytes: self.line.bytes() as u32,
            shared_bytes: self.shared_bytes,
            buffer_bytes: 0,
            arithmetic: self.arithmetic,
            segments: None,
            software: Software::default(),
            recovery: self.operation,
            network: NetworkKind::Mesh2d,
            io_nodes: 0,
            interfaces: Interfaces::default(),
            pool_devices: 0,
            memory_hops: Vec::new(),
            domains: None,
            coherence: None,
            footprint: FOOTPRINT,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let all = Capabilities::of(Capability::ALL)
            .without(Capability::Network)
            .without(Capability::Tables);
        match self.registers {
            0 => all.without(Capability::TestAndSet),
            _ => all,
        }
    }

    /// The topology does not matter: all nodes are equally far apart.
    fn build(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        let space = GlobalSpace {
            nodes: setup.nodes,
            shared_bytes: self.shared_bytes,
            line: self.line,
            registers: self.registers,
        };
        let spec = Arc::new(self.clone());
        let machine = Blueprint {
            space,
            apart: Apart::AtLeast(self.remote),
            cores: self.cores,
            operation: self.operation,
            system: (self.system, self.write_back),
            hardware: |node| Memory::new(node, space, Arc::clone(&spec)),
        };
        let among = Among::new(peers, setup.nodes);
        Ok(Box::new(machine.nodes(among, &setup, threads)))
    }
}
