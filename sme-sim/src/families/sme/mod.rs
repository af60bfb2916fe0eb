//! A cluster of nodes with Shared Memory Engines (Fröning et al., *Highly Scalable Barriers for
//! Future High-Performance Computing Clusters*).
//!
//! * [`address`]: the global address space, its partitions and its faults.
//! * [`spec`], `declared`: the constants of its machine files.
//! * [`engine`]: the Shared Memory Engine, block by block, cycle by cycle.
//! * [`cluster`]: a node of cores, caches, host link and engine, and a cluster of them.
//! * [`compact`]: the same for 10^8 threads: two bytes per thread while nothing happens.
//! * [`traffic`]: the fabric under synthetic traffic, latency over offered load.

pub mod address;
pub mod cluster;
pub mod compact;
pub(crate) mod declared;
pub mod engine;
mod family;
pub mod spec;
pub mod traffic;

use spec::ClusterSpec;

use crate::machine::Machine;

/// `machine` as one of this family; nothing where it is of another.
pub fn of(machine: &Machine) -> Option<&ClusterSpec> {
    machine.as_family()
}
