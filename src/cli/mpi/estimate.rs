//! Whether a job fits into this computer's memory: what it takes is estimated, in bytes, and one
//! that would not fit is refused before it starts.

use crate::messages::job::Job;

/// The memory that a rank takes for each other one that sends it messages: section, packets,
/// queues. Measured, as the memory of whole runs in which all messages are under way.
const PER_PAIR: u64 = 2600;

/// The ranks with which most ranks of a large job exchange messages, about: partners at distances
/// that double.
pub(super) const PARTNERS: u32 = 16;

/// The memory that a rank's process takes besides what its program asks for. Measured: 140 KiB of
/// its own for one in C, and the kernel's part.
const PER_PROCESS: u64 = 256 << 10;

/// The memory of a job in which each rank exchanges messages with so many, in bytes.
pub(super) fn of_job(job: &Job, partners: u32) -> u64 {
    let partners = partners.min(job.ranks);
    let pairs = u64::from(job.ranks) * u64::from(partners);
    pairs.saturating_mul(PER_PAIR)
}

/// The memory of a job in which each rank is a process, in bytes.
pub(super) fn of_processes(job: &Job) -> u64 {
    of_job(job, PARTNERS) + u64::from(job.ranks) * PER_PROCESS
}
