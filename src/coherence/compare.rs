//! One message three times: predicted by the model, copied twice by the bare transfer, and sent by
//! MPI through the same chunks.

use std::num::NonZero;
use std::sync::Arc;

use sme_mpi::channel::chunks::NoRing;

use super::bench::{Bench, BenchError};
use super::model::{Flush, Ports, PredictError, Prediction};
use super::table::{Table, TableError};
use super::transfer::Direction;
use super::transition::CoreDistance;
use super::tune::{Search, Setting};
use crate::messages::job::{self, Job, Library};
use crate::messages::pingpong::PingPong;
use crate::messages::{Measurement, SendCall};

/// A message, of buffers that are used again, through rings of chunks that go the same way every
/// time and are not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Where the two cores are.
    pub placement: CoreDistance,
    /// Bytes of the message, a multiple of 8.
    pub message_bytes: NonZero<u64>,
    /// Bytes of a chunk, a multiple of 64.
    pub chunk_bytes: NonZero<u64>,
    /// Chunks of a ring.
    pub ring: u32,
    /// The ports of a core, for the model.
    pub ports: Ports,
}

/// The throughputs of a message on a simulated machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// By the model, from simulated accesses.
    pub predicted: Prediction,
    /// Of the transfer, in 10^9 bytes per second.
    pub transfer_gb_per_s: f64,
    /// Of MPI's ping-pong over channel chunks, in 10^9 bytes per second.
    pub mpi_gb_per_s: f64,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The accesses, or the transfer.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The accesses are no table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The model does not say.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// The channel has no such ring.
    #[error(transparent)]
    Ring(#[from] NoRing),
    /// The ping-pong.
    #[error(transparent)]
    Message(#[from] job::Error),
}

/// Rounds of a ping-pong that count: its messages all take as long.
const ROUNDS: u32 = 2;

impl Compared {
    fn search(&self) -> Search {
        Search {
            placement: self.placement,
            message_bytes: self.message_bytes,
            chunks: Vec::new(),
            rings: Vec::new(),
        }
    }

    fn setting(&self) -> Setting {
        Setting {
            chunk_bytes: self.chunk_bytes,
            ring: self.ring,
            direction: Direction::Same,
            flush: Flush::None,
        }
    }

    /// The prediction from a table.
    ///
    /// # Errors
    /// The table does not have a step, or not at this size.
    pub fn predicted(&self, table: &Table) -> Result<Prediction, PredictError> {
        self.search().predicted(table, self.setting(), self.ports)
    }

    /// All three on a simulated machine.
    ///
    /// # Errors
    /// [`CompareError`]
    pub fn simulate(&self, bench: &Bench) -> Result<Outcome, CompareError> {
        let table = Table::new(self.search().rows(bench, &[Flush::None])?)?;
        let ping_pong = self.ping_pong(bench)?;
        let sent = ping_pong.run()?;
        Ok(Outcome {
            predicted: self.predicted(&table)?,
            transfer_gb_per_s: self.search().simulated(bench, self.setting())?,
            mpi_gb_per_s: ping_pong.bandwidth_mb_per_s(&sent) / 1e3,
        })
    }

    /// The ping-pong between the same two cores.
    ///
    /// # Errors
    /// [`CompareError`] if there is no such core, or no such ring.
    pub fn ping_pong(&self, bench: &Bench) -> Result<PingPong, CompareError> {
        let other = bench.other(self.placement.into(), 0)?;
        let machine = bench.machine();
        let partner = other.node * machine.shape().cores + other.core;
        let mut job = Job::new(Arc::clone(machine), Library::Chunks, partner + 1);
        job.ring = job.ring.resized(self.chunk_bytes.get(), self.ring)?;
        Ok(PingPong {
            job,
            first: 0,
            partner,
            call: SendCall::Send,
            way: None,
            size_bytes: self.message_bytes.get(),
            rounds: ROUNDS,
        })
    }
}

#[cfg(test)]
mod tests {
    use sme_sim::machine::Machine;

    use super::*;

    /// MPI's packets and matching are all that the ping-pong has beside the transfer: that is seen
    /// in short messages, and hardly in long ones, on both machines and for both placements. The
    /// model foresees no less than the two copies one after the other.
    #[test]
    fn mpi_is_little_slower_than_the_bare_transfer() {
        let bytes = |bytes| NonZero::new(bytes).unwrap();
        for machine in ["xeon-e5-2650", "opteron-6272"] {
            let bench = Bench::new(Arc::new(Machine::builtin(machine).unwrap())).unwrap();
            for placement in [CoreDistance::Socket, CoreDistance::Remote] {
                let of = |message_bytes| {
                    let compared = Compared {
                        placement,
                        message_bytes: bytes(message_bytes),
                        chunk_bytes: bytes(32 << 10),
                        ring: 8,
                        ports: Ports::Separate,
                    };
                    compared.simulate(&bench).unwrap()
                };
                let share = |outcome: &Outcome| outcome.mpi_gb_per_s / outcome.transfer_gb_per_s;
                let (short, long) = (of(1 << 10), of(512 << 10));
                assert!(share(&short) < share(&long), "{machine}: {short:?}");
                let share = share(&long);
                assert!(
                    (0.9..1.02).contains(&share),
                    "{machine}, {placement}: {share}"
                );
                let Prediction {
                    sequential_gb_per_s,
                    parallel_gb_per_s,
                    pipelined_gb_per_s,
                    ..
                } = long.predicted;
                assert!(sequential_gb_per_s < pipelined_gb_per_s);
                assert!(pipelined_gb_per_s < parallel_gb_per_s);
            }
        }
    }
}
