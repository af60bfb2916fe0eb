//! The Intel Single-chip Cloud Computer: 24 tiles of two P54C cores on a mesh, without coherence of
//! caches. Every core is a node, for each has caches of its own; the chip is one node of the
//! kernel.
//!
//! * `spec`: the constants of its machine files.
//! * `layout`: where tiles, cores and memory controllers stand.
//! * `lut`: the look-up tables that decide where an address goes; `space`: places and addresses.
//! * `mesh`: what cores share: links, ports of buffers, controllers.
//! * `contents`: what the memory of a core holds.
//! * `core`: a core and how its operations begin; `store`, `spin`, `transfer`: stores and flushes,
//!   reads and waits, copies of blocks; `access`: what leaves the core, and `way`: where to;
//!   `registers`: test-and-set registers and tables as addresses.
//! * `islands`: clocks of tiles, voltages of islands; `power`: what they take; `tune`: commands to
//!   them, and energy.
//!
//! Sources: the measurements of a real chip in the Barrelfish technical note 005 (its figures are
//! rows `scc.*` of `sme validate`), and what Intel's and HPI's Linux drivers say about registers
//! and caches.

mod access;
mod contents;
mod core;
mod islands;
mod layout;
mod lut;
mod mesh;
mod power;
mod registers;
mod space;
pub(crate) mod spec;
mod spin;
mod store;
mod transfer;
mod tune;
mod way;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Capabilities, Capability, Domains, LEAST_DIVIDER, MOST_DIVIDER, Segments};

use self::core::{Core, Shared};
use crate::kernel::peers::Peers;
use crate::machine::family::{CannotBuild, Family, NodeThreads, Readable};
use crate::machine::node::Blueprint;
use crate::machine::nodes::{Apart, on_one_process};
use crate::machine::shape::{Footprint, Interfaces, Setup, Shape};
use crate::observe::among::Among;
use crate::parts::fabric::NetworkKind;
use islands::Islands;
use layout::Chip;
use mesh::Mesh;
use space::SccSpace;
use spec::SccSpec;

/// Caches that are full, and the rest.
const FOOTPRINT: Footprint = Footprint {
    position: 1 << 20,
    thread: 512,
    thread_of_large_node: 512,
    switch_port: 0,
};

impl SccSpec {
    fn domains(&self) -> Domains {
        let (chip, settings) = (self.chip, self.settings);
        let tiles = (0..chip.cores()).map(Chip::tile_of);
        let dividers = LEAST_DIVIDER..=MOST_DIVIDER;
        Domains {
            islands: tiles.clone().map(|tile| chip.island_of(tile)).collect(),
            tiles: tiles.collect(),
            divider: settings.divider,
            millivolts: settings.voltage,
            least_millivolts: dividers
                .map(|divider| settings.least_voltage(divider))
                .collect(),
        }
    }
}

impl Family for SccSpec {
    fn shape(&self) -> Shape {
        Shape {
            nodes: self.chip.cores(),
            sockets: 1,
            cores: 1,
            line_bytes: self.line.bytes() as u32,
            shared_bytes: Self::SHARED_BYTES,
            buffer_bytes: self.chip.buffer_bytes,
            arithmetic: self.arithmetic,
            software: self.software,
            segments: Some(Segments {
                bytes: layout::SEGMENT,
                count: lut::PRIVATE_SEGMENTS,
                unused: lut::SHARED - lut::PRIVATE_SEGMENTS,
            }),
            recovery: self.operation,
            network: NetworkKind::Chip([2, self.chip.columns(), self.chip.rows()]),
            io_nodes: 0,
            interfaces: Interfaces::default(),
            pool_devices: 0,
            memory_hops: (0..self.chip.cores())
                .map(|core| self.chip.hops_to_controller(core))
                .collect(),
            domains: Some(self.domains()),
            coherence: None,
            footprint: FOOTPRINT,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[
            Capability::Caching,
            Capability::TestAndSet,
            Capability::Threads,
            Capability::AnyFlag,
            Capability::Tagged,
            Capability::Interrupts,
            Capability::Timer,
            Capability::Processes,
            Capability::Scaling,
            Capability::Tables,
        ])
    }

    /// The topology does not matter: cores stand where they stand on the chip, the first ones run.
    fn build(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        on_one_process(peers)?;
        let space = SccSpace {
            chip: self.chip,
            line: self.line,
        };
        let spec = Arc::new(self.clone());
        let shared = Shared {
            mesh: Arc::new(Mutex::new(Mesh::new(self.chip, (self.hop, self.flit)))),
            islands: Arc::new(Mutex::new(Islands::new(&spec))),
            tuned: Arc::default(),
        };
        // Cores without programs hold memory, too.
        let all = self.chip.cores();
        let machine = Blueprint {
            space,
            apart: Apart::OnOneChip,
            cores: 1,
            operation: self.operation,
            system: (self.system, self.wbinvd),
            hardware: |node| Core::new(node, space, Arc::clone(&spec), shared.clone()),
        };
        let among = Among::new(peers, all);
        Ok(Box::new(machine.nodes(among, &setup, threads)))
    }
}
