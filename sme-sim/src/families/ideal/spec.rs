//! The constants of the family `ideal`.

use crate::machine::reader::Reader;
use crate::machine::system::{SYSTEM_DELAY, delays};
use crate::parts::core_set::MOST_CORES;
use crate::parts::line_size::LineSize;
use crate::parts::os::Delays;
use crate::time::Time;

/// An ideal machine.
#[derive(Clone, Debug, PartialEq)]
pub struct IdealSpec {
    /// Cores of a node, which share a coherent memory.
    pub cores: u32,
    /// Bytes of a node's memory that other nodes reach, too; a power of two.
    pub shared_bytes: u64,
    /// The length of a cache line.
    pub line: LineSize,
    /// Test-and-set registers of a node.
    pub registers: u32,
    /// A program's own instructions around one memory operation.
    pub operation: Time,
    /// One operation on registers, on the average.
    pub arithmetic: Time,
    /// An access to the node's own memory, or to a copy in its caches.
    pub local: Time,
    /// The one-way latency of any message to another node.
    pub remote: Time,
    /// The costs of the operating system.
    pub system: Delays,
    /// Walking through all caches of the node, the call apart.
    pub write_back: Time,
}

/// The longest of what hardware does, in picoseconds.
const HARDWARE_DELAY: u64 = 1_000_000_000;

/// Reads or lists the constants of a machine.
#[rustfmt::skip]
pub(crate) fn ideal(read: &mut Reader<'_>) -> IdealSpec {
    let hardware = 0..=HARDWARE_DELAY;
    let mut node = read.section("node");
    let cores = node.count("cores", 1..=MOST_CORES, "cores of a node, which share a coherent memory");
    let shared_bytes = node.memory_power("shared_memory", 4 << 10..=1 << 40, "memory of a node that all nodes reach");
    let line = node.line_size("line", "a cache line");
    let registers = node.count("registers", 0..=1024, "test-and-set registers of a node");
    let mut core = read.section("core");
    let operation = core.time("operation", hardware.clone(), "what a program's own instructions take around one memory operation");
    let arithmetic = core.time("arithmetic", hardware, "one arithmetic operation on registers, on the average");
    let mut latency = read.section("latency");
    // Not zero: a poll must take time, and a window of the simulation is as long as `remote`.
    let local = latency.time("local", 1..=HARDWARE_DELAY, "an access to the node's own memory, or to a copy in its caches");
    let remote = latency.time("remote", 1..=HARDWARE_DELAY, "one-way latency of any message to another node");
    let mut os = read.section("os");
    let system = delays(&mut os);
    let write_back = os.time("write_back", 0..=SYSTEM_DELAY, "walking through all caches of the node, the call apart");
    IdealSpec { cores, shared_bytes, line, registers, operation, arithmetic, local, remote, system, write_back }
}
