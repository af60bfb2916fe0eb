//! Cache-coherent multiprocessors: sockets with memory of their own, whose cores share one coherent
//! memory. A socket is a node; all of them together are one node of the kernel, since a line moves
//! from one to another sooner than a window is long.
//!
//! * `spec`: the constants of its machine files.
//! * `space`: places and addresses.
//! * `lines`, `queues`, `chip`: what all cores share: the records of lines, the parts that accesses
//!   queue for, the caches.
//! * `transaction`: what happens to a line that a module does not have; `access`: a core's side of
//!   it.
//! * `socket`: a node, and how its threads' operations begin; `pass`: passes over many lines;
//!   `spin`: reads and waits.
//!
//! Caches keep tags and states, and memory the bytes of all: coherent copies never differ. The
//! tables of [`crate::parts::coherence`] say what becomes of states.
//!
//! Sources: the machines of Putigny et al. (Sec. IV), and what their machine files name.

mod access;
mod chip;
mod lines;
mod pass;
mod queues;
mod socket;
mod space;
pub(crate) mod spec;
mod spin;
#[cfg(test)]
mod tests;
mod transaction;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Capabilities, Capability};

use crate::kernel::peers::Peers;
use crate::machine::family::{CannotBuild, Family, NodeThreads, Readable};
use crate::machine::node::Blueprint;
use crate::machine::nodes::{Apart, on_one_process};
use crate::machine::shape::{Coherence, Footprint, Interfaces, Setup, Shape};
use crate::observe::among::Among;
use crate::parts::fabric::NetworkKind;
use crate::parts::global::GlobalSpace;
use crate::parts::line_size::LineSize;
use chip::Chip;
use socket::Socket;
use space::CoherentSpace;
use spec::CoherentSpec;

/// The tags of full caches, and records of as many lines.
const FOOTPRINT: Footprint = Footprint {
    position: 128 << 20,
    thread: 512,
    thread_of_large_node: 512,
    switch_port: 0,
};

impl Family for CoherentSpec {
    fn shape(&self) -> Shape {
        Shape {
            nodes: self.sockets,
            sockets: 1,
            cores: self.cores,
            line_bytes: LineSize::B64.bytes() as u32,
            shared_bytes: self.shared_bytes,
            buffer_bytes: 0,
            arithmetic: self.arithmetic,
            segments: None,
            software: self.software,
            recovery: self.operation,
            network: NetworkKind::Mesh2d,
            io_nodes: 0,
            interfaces: Interfaces::default(),
            pool_devices: 0,
            memory_hops: Vec::new(),
            domains: None,
            coherence: Some(Coherence {
                protocol: self.protocol,
                module: self.module,
            }),
            footprint: FOOTPRINT,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let all = Capabilities::of(&[
            Capability::Caching,
            Capability::Atomics,
            Capability::Futexes,
            Capability::TestAndSet,
            Capability::Threads,
            Capability::AnyFlag,
            Capability::Timer,
        ]);
        match self.registers {
            0 => all.without(Capability::TestAndSet),
            _ => all,
        }
    }

    /// The topology does not matter: all sockets are equally far apart, the first ones run.
    fn build(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        on_one_process(peers)?;
        let space = CoherentSpace(GlobalSpace {
            nodes: self.sockets,
            shared_bytes: self.shared_bytes,
            line: LineSize::B64,
            registers: self.registers,
        });
        let spec = Arc::new(self.clone());
        let chip = Arc::new(Mutex::new(Chip::new(Arc::clone(&spec))));
        let machine = Blueprint {
            space,
            apart: Apart::OnOneChip,
            cores: self.cores,
            operation: self.operation,
            system: (self.system, self.write_back),
            hardware: |node| Socket::new(node, space, Arc::clone(&spec), Arc::clone(&chip)),
        };
        // Sockets without programs hold memory, too.
        let among = Among::new(peers, self.sockets);
        Ok(Box::new(machine.nodes(among, &setup, threads)))
    }
}
