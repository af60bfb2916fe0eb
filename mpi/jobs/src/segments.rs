//! The segments of memory that the cores of a machine, or the nodes of a cluster, lend.

use sme_memory::Segments;
use sme_mpi::process::lending::KEPT;
use sme_sim::machine::Shape;

use super::job::Job;

/// Lines of borrowed memory, and of own, that a measurement loads: fewer than any cache holds.
pub const LINES: u32 = 256;

/// Segments into which the shared partition of a cluster's node is divided.
const OF_PARTITION: u32 = 16;

/// The segments that each core of a machine of that shape has, or each node of a cluster.
pub fn segments(shape: &Shape) -> Segments {
    shape.segments.unwrap_or(Segments {
        bytes: shape.shared_bytes / u64::from(OF_PARTITION),
        count: OF_PARTITION,
        unused: u32::MAX,
    })
}

/// The segments of each core of `job`, or each node, for its daemon to lend; 0 where those that it
/// keeps have no room for what MPI and the daemon have there.
pub fn lendable(job: &Job) -> u32 {
    let shape = job.machine.shape();
    let Segments { bytes, count, .. } = segments(shape);
    let kept = bytes.saturating_mul(KEPT.into());
    let needed = 2 * u64::from(LINES) * u64::from(shape.line_bytes);
    let has_room = shape.segments.is_some() || kept >= job.managed_end();
    match has_room && bytes >= needed {
        true => count,
        false => 0,
    }
}
