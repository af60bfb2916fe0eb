//! The throughput table of this computer: buffers are brought into a state by threads pinned to
//! CPUs, and one pass over them is timed (Sec. III-C of the paper).
//!
//! * [`cpus`]: which CPUs there are and where. [`lines`]: loads, stores and flushes.
//! * [`recipe`]: how a state is prepared. `team`: the threads. [`run`]: repetitions and rows.
//! * [`drift`]: rows that were measured while the computer was another.
//!
//! Called by `sme coherence measure`. Throughputs are 10^9 bytes a second. A figure is of one
//! computer at one time, and no test depends on one.

pub mod cpus;
pub mod drift;
pub mod lines;
pub mod recipe;
pub mod run;
mod team;

use thiserror::Error;

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
    /// A thread has panicked.
    #[error("a measuring thread has panicked")]
    Panicked,
}

fn listed(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(", ")
}
