//! The Kalray MPPA-256: compute clusters of VLIW cores that share a banked memory, without
//! coherence of their caches, and four I/O subsystems with DDR memory around them. No core reaches
//! another cluster's memory: two networks on chip carry data and control messages there. A cluster
//! is a node, and so is a subsystem; the chip is one node of the kernel.
//!
//! * `spec`: the constants of its machine files.
//! * `layout`: where nodes stand, and the ways between them; `links`: what the networks' packets
//!   share on these.
//! * `space`: places and addresses; `store`: a node's memory and its banks.
//! * `cluster`: a node, and how its cores' operations begin; `spin`: reads and waits.
//! * `interface`: receive tags, DMA channels and mailboxes; `send`: what leaves through them.
//!
//! Source: Ho et al., *MPI communication on MPPA Many-core NoC*, 2015 (Sec. I and IV).

mod cluster;
mod interface;
mod layout;
mod links;
mod send;
mod space;
pub(crate) mod spec;
mod spin;
mod store;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Capabilities, Capability};

use crate::kernel::peers::Peers;
use crate::machine::family::{CannotBuild, Family, NodeThreads, Readable};
use crate::machine::node::Blueprint;
use crate::machine::nodes::{Apart, on_one_process};
use crate::machine::shape::{Footprint, Interfaces, Setup, Shape};
use crate::observe::among::Among;
use crate::parts::fabric::NetworkKind;
use cluster::{Cluster, Networks};
use links::Links;
use space::MppaSpace;
use spec::MppaSpec;

/// A cluster whose memory is full, and the rest.
const FOOTPRINT: Footprint = Footprint {
    position: 8 << 20,
    thread: 8 << 10,
    thread_of_large_node: 8 << 10,
    switch_port: 0,
};

impl Family for MppaSpec {
    fn shape(&self) -> Shape {
        Shape {
            nodes: self.layout.nodes(),
            sockets: 1,
            cores: self.cores,
            line_bytes: self.line.bytes() as u32,
            shared_bytes: self.memory.0.bytes,
            buffer_bytes: 0,
            arithmetic: self.arithmetic,
            segments: None,
            software: self.software,
            recovery: self.operation,
            network: NetworkKind::Chip([self.layout.nodes(), 1, 1]),
            io_nodes: self.layout.nodes() - self.layout.clusters(),
            interfaces: Interfaces {
                tags: self.data.tags as u16,
                channels: self.data.channels as u16,
            },
            pool_devices: 0,
            memory_hops: Vec::new(),
            domains: None,
            coherence: None,
            footprint: FOOTPRINT,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[
            Capability::TestAndSet,
            Capability::Threads,
            Capability::AnyFlag,
            Capability::Timer,
            Capability::Network,
            Capability::Processes,
        ])
        .without(Capability::Remote)
    }

    /// The topology does not matter: nodes stand where they stand on the chip, the first ones run.
    fn build(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        on_one_process(peers)?;
        let space = MppaSpace {
            nodes: self.layout.nodes(),
            line: self.line,
        };
        let spec = Arc::new(self.clone());
        let links = || Mutex::new(Links::new(self.layout, self.pace));
        let networks = Arc::new(Networks {
            data: links(),
            control: links(),
        });
        let all = self.layout.nodes();
        let machine = Blueprint {
            space,
            apart: Apart::OnOneChip,
            cores: self.cores,
            operation: self.operation,
            system: (self.system, self.drops.1),
            hardware: |node| Cluster::new(node, space, Arc::clone(&spec), Arc::clone(&networks)),
        };
        let among = Among::new(peers, all);
        Ok(Box::new(machine.nodes(among, &setup, threads)))
    }
}
