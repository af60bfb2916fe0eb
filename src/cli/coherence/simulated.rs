//! The flags that `sme coherence bench` and `transfer` share: the simulated machine.

use std::sync::Arc;

use clap::Args;
use sme_sim::machine::Machine;

use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
use crate::coherence::bench::{Bench, BenchError, MAX_BUFFER_BYTES};
use crate::coherence::transfer::Transfer;
use crate::coherence::transition::CoreDistance;
use crate::report::stop::Stop;

/// The machine.
#[derive(Args, Clone, Debug)]
pub(super) struct CoherentFlags {
    /// A machine whose nodes are coherent: xeon-e5-2650, opteron-6272, or a file
    #[arg(
        id = "machine",
        long = "machine",
        value_name = "NAME|FILE.toml",
        default_value = "xeon-e5-2650"
    )]
    machine: String,
    /// Override a machine constant, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
}

impl CoherentFlags {
    /// As if they were given.
    pub(super) fn new(machine: &str, set: &[String]) -> Self {
        Self {
            machine: machine.to_owned(),
            set: set.to_vec(),
        }
    }

    /// The machine.
    pub(super) fn bench(&self) -> Result<Bench, Stop> {
        let machine = args::machine(&MachineFlags {
            name: self.machine.clone(),
            set: self.set.clone(),
        })?;
        bench(&format!("--machine {}", self.machine), machine)
    }
}

/// Benchmarks on `machine`, which `flag` has named.
pub(super) fn bench(flag: &str, machine: Machine) -> Result<Bench, Stop> {
    Bench::new(Arc::new(machine)).map_err(|error| Stop::flag(flag, error))
}

/// The flags of messages through a ring that `sme coherence transfer` and `compare` share.
#[derive(Args, Clone, Debug)]
pub(super) struct MessageFlags {
    /// Sizes of the message in bytes (multiples of 64, a list such as 65536,1048576 or
    /// 32768..4194304*2)
    #[arg(
        long,
        value_name = "LIST",
        default_value = "16384..4194304*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// Size of a chunk in bytes, a multiple of 64; Open MPI has 32768, MPICH 65536
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "32768",
        allow_negative_numbers = true
    )]
    chunk: String,
    /// Chunks of a ring
    #[arg(
        long,
        value_name = "N",
        default_value = "8",
        allow_negative_numbers = true
    )]
    ring: String,
    /// Where the two cores are: socket (the same) or remote (different ones)
    #[arg(long, value_name = "NAME", default_value = "socket")]
    placement: String,
}

impl MessageFlags {
    /// Transfers of Open MPI's kind with these sizes, chunks and ring, of at most so many chunks,
    /// and this placement; there is at least one.
    pub(super) fn read(&self, most_chunks: u64) -> Result<Vec<Transfer>, Stop> {
        let messages = sizes("--sizes", &self.sizes, 64, Values::Many)?;
        let chunk = read::one("--chunk", sizes("--chunk", &self.chunk, 64, Values::One)?)?;
        let ring = read::numbers("--ring", &self.ring, 1, most_chunks, Values::One)?;
        let ring = read::one("--ring", ring)? as u32;
        let placement: CoreDistance = read::name("--placement", &self.placement)?;
        let transfers = messages.into_iter().map(|message_bytes| Transfer {
            chunk_bytes: chunk,
            ring,
            ..Transfer::of_open_mpi(placement, message_bytes)
        });
        Ok(transfers.collect())
    }
}

/// Reads sizes in bytes, each a multiple of `unit`.
pub(super) fn sizes(flag: &str, text: &str, unit: u64, values: Values) -> Result<Vec<u64>, Stop> {
    let sizes = read::numbers(flag, text, unit, MAX_BUFFER_BYTES, values)?;
    match sizes.iter().find(|size| !size.is_multiple_of(unit)) {
        Some(size) => Err(Stop::flag(
            flag,
            format!("{size} is not a multiple of {unit}"),
        )),
        None => Ok(sizes),
    }
}

/// The reason for which a run came to nothing.
pub(super) fn stopped(error: BenchError) -> Stop {
    match error {
        BenchError::NotCoherent(_) | BenchError::Lacks { .. } | BenchError::Build(_) => {
            Stop::flag("--machine", error)
        }
        BenchError::Size { .. } => Stop::flag("--sizes", error),
        BenchError::Failure(failure) => Stop::Failed(failure.to_string()),
    }
}
