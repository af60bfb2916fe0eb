//! Measurements of this computer by threads pinned to its CPUs: its throughput table, for which
//! buffers are brought into a state and one pass over them is timed (Sec. III-C of the paper), and
//! its transfers.
//!
//! * [`cpus`]: which CPUs there are and where. [`lines`]: loads, stores, flushes and copies.
//! * [`recipe`]: how a state is prepared. [`run`]: the rows of the table.
//! * [`transfer`]: the two-copy transfer. `pair`: its two threads. `ring`: the memory they share.
//! * `team`: the threads of a measurement. `spin`: how threads wait.
//! * `steady`: repetitions of a row until nothing has moved. [`drift`]: rows that were measured
//!   while the computer was another.
//!
//! Called by `sme coherence measure`, and by `transfer` and `compare` with `--host`. Throughputs
//! are 10^9 bytes per second. A figure is of one computer at one time, and no test depends on one.

pub mod cpus;
pub mod drift;
pub mod lines;
mod pair;
pub mod recipe;
mod ring;
pub mod run;
mod spin;
mod steady;
mod team;
pub mod transfer;

use thiserror::Error;

use self::cpus::Cpus;
use self::recipe::Unmeasurable;
use super::bench::BenchError;
use super::transition::CoreDistance;

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The system does not let a thread be pinned to a CPU.
    #[error("threads can be pinned to CPUs on Linux only")]
    NoPinning,
    /// The system does not say which CPUs there are.
    #[error("the CPUs of this process are not known: {0}")]
    Affinity(#[source] std::io::Error),
    /// There is no CPU.
    #[error("a measurement needs a CPU")]
    NoCpu,
    /// There are more CPUs than it can use.
    #[error("{0} CPUs: at most {most} can be used", most = cpus::MOST)]
    ManyCpus(usize),
    /// A CPU is given twice.
    #[error("CPU {0} is given twice")]
    TwiceCpu(usize),
    /// The process may not use a CPU, or there is none.
    #[error("this process cannot run on CPU {id}; it can on {}", listed(.allowed))]
    ForbiddenCpu {
        /// The CPU.
        id: usize,
        /// Those that it may use.
        allowed: Vec<usize>,
    },
    /// A thread could not be pinned.
    #[error("a thread cannot be pinned to CPU {id}: {reason}")]
    Pin {
        /// The CPU.
        id: usize,
        /// The system's error.
        reason: std::io::Error,
    },
    /// The system gives no thread.
    #[error("no thread can be started: {0}")]
    Threads(#[source] std::io::Error),
    /// The system gives no buffer.
    #[error("there is no memory for a buffer of {0} bytes")]
    Memory(usize),
    /// There is no other CPU at the placement of a transfer.
    #[error("{}", no_holder(.cpus, *.placement))]
    NoHolder {
        /// The CPUs that there are.
        cpus: Cpus,
        /// The placement.
        placement: CoreDistance,
    },
    /// A message, a chunk or a ring is none, or too large.
    #[error(transparent)]
    Size(#[from] BenchError),
    /// A message or a chunk is no number of cache lines.
    #[error("{0} bytes is no multiple of {line}", line = lines::LINE_BYTES)]
    Lines(u64),
    /// A transfer flushes lines, and this computer cannot.
    #[error("{}", Unmeasurable::NoFlush)]
    NoFlush(Flushed),
    /// A message was received with other bytes than it was sent with.
    #[error("a message of {0} bytes was received with other bytes than it was sent with")]
    Bytes(u64),
    /// A thread has panicked.
    #[error("a measuring thread has panicked")]
    Panicked,
}

/// The lines that a transfer has to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Those of chunks; or it stores them past the caches.
    Chunks,
    /// Those of application buffers that are not used again.
    Buffers,
}

/// The CPUs of `cpus`, none of which is at `placement`.
fn no_holder(cpus: &Cpus, placement: CoreDistance) -> String {
    let first = cpus.measuring;
    let others = cpus.holders.iter().map(|&other| {
        let place = match first.placement_of(other) {
            CoreDistance::Socket => "on its socket",
            CoreDistance::Remote => "on another socket",
        };
        format!("CPU {} {place}", other.id)
    });
    let others: Vec<String> = others.collect();
    let others = match others.is_empty() {
        true => "no other CPU".to_owned(),
        false => others.join(", "),
    };
    let wanted = match placement {
        CoreDistance::Socket => "on the socket",
        CoreDistance::Remote => "on another socket than that",
    };
    format!(
        "needs a CPU {wanted} of CPU {}; there is {others}",
        first.id
    )
}

fn listed(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(", ")
}
