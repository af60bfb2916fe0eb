//! The family in the catalogue of machines: [`Family`] of [`ClusterSpec`].

use std::sync::Arc;

use sme_memory::{Capabilities, Capability};

use super::cluster::{Cluster, Plugged};
use super::engine::Design;
use super::spec::ClusterSpec;
use crate::kernel::peers::Peers;
use crate::machine::family::{CannotBuild, Family, NodeThreads, Readable};
use crate::machine::shape::{Footprint, Interfaces, Setup, Shape};
use crate::parts::fabric::MAX_HOSTS;

/// An upper bound on what the simulator keeps of a machine. Measured, as the memory of whole runs
/// of 16,384 nodes; a test holds it against the simulator. A position has its engine, and its
/// node's caches, memory and events; a thread its program, its core and its flags in the caches; a
/// port of a switch outside the engines the packets in its buffers.
const FOOTPRINT: Footprint = Footprint {
    position: 8 << 10,
    thread: 512,
    thread_of_large_node: 1280,
    switch_port: 640,
};

impl Family for ClusterSpec {
    fn shape(&self) -> Shape {
        Shape {
            nodes: MAX_HOSTS,
            sockets: self.node.sockets,
            cores: self.node.cores(),
            line_bytes: self.cache.private.line().bytes() as u32,
            shared_bytes: self.node.shared_bytes,
            buffer_bytes: 0,
            arithmetic: self.core.clock.span(self.core.arithmetic_cycles),
            segments: None,
            software: self.software,
            recovery: self.uncached.turnaround,
            network: self.fabric.topology,
            io_nodes: 0,
            interfaces: Interfaces::default(),
            pool_devices: self.pool.devices,
            memory_hops: Vec::new(),
            domains: None,
            coherence: None,
            footprint: FOOTPRINT,
        }
    }

    fn capabilities(&self) -> Capabilities {
        // No more: there is no atomic transaction over the engine, and nothing like a register.
        Capabilities::of(&[
            Capability::Caching,
            Capability::Atomics,
            Capability::Futexes,
            Capability::Threads,
            Capability::Timer,
            Capability::Processes,
        ])
    }

    fn build(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        let hosts = self.hosts(setup.nodes);
        let design = Design::new(self, &setup.topology, hosts);
        let design = Arc::new(design.map_err(|error| CannotBuild(error.to_string()))?);
        let engine = |position| Plugged::cycle(&design, position, hosts);
        let cluster = Cluster::with_threads(peers, (self, setup), threads, engine);
        Ok(Box::new(cluster))
    }
}
