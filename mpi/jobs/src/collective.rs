//! A collective MPI call, measured: all ranks begin it at the same simulated time, and its latency
//! is the time from there to the last rank's end. What every rank gets is compared with what it
//! must get.
//!
//! Before each call the ranks agree on a time in the future, by the largest of their clocks, and
//! wait for it; so a rank's way out of the barrier before is no part of the latency. The first
//! calls do not count.

use sme_memory::Timer;
use sme_mpi::collective::choice::{Algorithm, Choice, Collective, On};
use sme_mpi::op::Op;
use sme_mpi::topology::dims_create;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::job::{Error, Job, Observe, Observed, SimulatedMpi};
use super::{Measurement, WARM_UP};

/// Runs of a collective call.
#[derive(Clone, Debug)]
pub struct CollectiveRun {
    /// The machine, the library and the ranks.
    pub job: Job,
    /// The call.
    pub collective: Collective,
    /// Its algorithm; without one, or if it does not suit the number of ranks, that which the
    /// library chooses.
    pub algorithm: Option<Algorithm>,
    /// Bytes, a multiple of eight: of the message of a broadcast, of the operands of a reduction,
    /// of one block of the others; 0 of a barrier.
    pub size_bytes: u64,
    /// Calls that count, at least 1.
    pub rounds: u32,
}

/// The outcome of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The mean time from the first rank's begin to the last rank's end.
    pub latency: Time,
}

/// The counted calls, numbered from 0, in each rank.
pub const CALLS: &str = "calls";

/// Nanoseconds from the time at which the ranks agree until the call: longer than their agreement
/// takes.
const AHEAD_NS: u64 = 10_000_000;

impl CollectiveRun {
    /// The algorithm that it takes.
    pub fn algorithm(&self) -> Algorithm {
        let mut choice = Choice::default();
        // One that the call does not have is not taken either.
        let _ = self
            .algorithm
            .map(|named| choice.name(self.collective, named));
        let on = On::new(0..self.job.ranks, self.job.per_node());
        choice.of(self.collective, self.size_bytes as usize, on)
    }

    /// The largest buffer of a rank, in bytes.
    pub fn buffer_bytes(&self) -> u64 {
        let blocks = match self.collective {
            Collective::NeighborAllgather | Collective::NeighborAlltoall => 4,
            Collective::Gather
            | Collective::Scatter
            | Collective::Allgather
            | Collective::Alltoall
            | Collective::ReduceScatter => self.job.ranks,
            _ => 1,
        };
        self.size_bytes.saturating_mul(blocks.into())
    }

    /// The grid of calls between neighbours: two dimensions, both periodic.
    fn grid(&self) -> ([u32; 2], [bool; 2]) {
        let mut dims = [0; 2];
        // There are ranks, and nothing is given: it cannot fail.
        let _ = dims_create(self.job.ranks, &mut dims);
        (dims, [true; 2])
    }

    /// The course of one rank.
    async fn course(&self, mpi: &SimulatedMpi, memory: &ThreadMemory) -> Result<(), Error> {
        let world = mpi.world();
        let rank = world.rank();
        let (dims, periods) = self.grid();
        // All ranks are in it.
        let grid = world.cart_create(&dims, &periods).await?;
        let grid = grid.unwrap_or_else(|| world.clone());
        let neighbors = grid.topology().map(|grid| grid.neighborhood(rank));
        let neighbors = neighbors.and_then(Result::ok);
        let data = Data {
            collective: self.collective,
            ranks: self.job.ranks,
            words: (self.size_bytes / 8) as usize,
            neighbors: neighbors
                .into_iter()
                .flat_map(|around| around.sources.into_iter().flatten())
                .collect(),
        };
        let mut is_right = true;
        for round in 0..WARM_UP + self.rounds {
            let sent = data.contribution(rank, round);
            let must_come = data.result(rank, round);
            let mut came = vec![0; data.room(rank)];
            world.barrier().await?;
            let mut latest = [0];
            world
                .allreduce(&[memory.now().await], &mut latest, &Op::Max)
                .await?;
            let ahead = (latest[0] + AHEAD_NS).saturating_sub(memory.now().await);
            memory.delay(Time::from_ns(ahead)).await;
            // The calls before have the library's own algorithms.
            mpi.choose(self.collective, self.algorithm)?;
            let span = round
                .checked_sub(WARM_UP)
                .map(|number| Span::new(CALLS, number));
            if let Some(span) = span {
                memory.begin(span).await;
            }
            match self.collective {
                Collective::Barrier => world.barrier().await?,
                Collective::Broadcast => {
                    came.copy_from_slice(&sent);
                    world.broadcast(&mut came, ROOT).await?;
                }
                Collective::Gather => world.gather(&sent, &mut came, ROOT).await?,
                Collective::Scatter => world.scatter(&sent, &mut came, ROOT).await?,
                Collective::Allgather => world.allgather(&sent, &mut came).await?,
                Collective::Alltoall => world.alltoall(&sent, &mut came).await?,
                Collective::Reduce => world.reduce(&sent, &mut came, &Op::Sum, ROOT).await?,
                Collective::Allreduce => world.allreduce(&sent, &mut came, &Op::Sum).await?,
                Collective::ReduceScatter => {
                    world
                        .reduce_scatter_block(&sent, &mut came, &Op::Sum)
                        .await?;
                }
                Collective::Scan => world.scan(&sent, &mut came, &Op::Sum).await?,
                Collective::NeighborAllgather => grid.neighbor_allgather(&sent, &mut came).await?,
                Collective::NeighborAlltoall => grid.neighbor_alltoall(&sent, &mut came).await?,
            }
            if let Some(span) = span {
                memory.end(span).await;
            }
            mpi.choose(self.collective, None)?;
            is_right &= came == must_come;
        }
        mpi.finalize().await?;
        match is_right {
            true => Ok(()),
            false => Err(Error::Garbled {
                call: self.collective.name(),
                rank,
            }),
        }
    }
}

impl Measurement for CollectiveRun {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        let each = 3 * u64::from(WARM_UP + self.rounds) + 2;
        each * u64::from(self.job.ranks)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let run = self.clone();
        let observed = self.job.run_mpi(observe, move |mpi, memory| {
            let run = run.clone();
            async move { run.course(&mpi, &memory).await }
        })?;
        let calls = observed.spans.called(CALLS).iter();
        let all = calls.map(|call| call.last_end.since(call.first_begin).as_ps());
        let all: u64 = all.sum();
        let outcome = Outcome {
            latency: Time::from_ps(all / u64::from(self.rounds)),
        };
        Ok((outcome, observed))
    }
}

/// The root of calls that have one.
const ROOT: u32 = 0;

/// The data of a call: what each rank contributes, and what it must get.
struct Data {
    collective: Collective,
    ranks: u32,
    words: usize,
    /// In each direction of a grid.
    neighbors: Vec<u32>,
}

/// An element of the block that `from` has for `to`; sums of them fit.
fn element(round: u32, from: u32, to: u32, place: usize) -> u64 {
    let mixed = (u64::from(from) << 40 ^ u64::from(to) << 20 ^ place as u64) + u64::from(round);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Data {
    fn block(&self, round: u32, from: u32, to: u32) -> impl Iterator<Item = u64> {
        (0..self.words).map(move |place| element(round, from, to, place))
    }

    /// The sum of the blocks for `to` of the ranks before `end`.
    fn sum(&self, round: u32, to: u32, end: u32) -> Vec<u64> {
        let sum = |place| (0..end).map(|from| element(round, from, to, place)).sum();
        (0..self.words).map(sum).collect()
    }

    fn contribution(&self, rank: u32, round: u32) -> Vec<u64> {
        let to_each = || {
            (0..self.ranks)
                .flat_map(|to| self.block(round, rank, to))
                .collect()
        };
        match self.collective {
            Collective::Barrier => Vec::new(),
            Collective::Broadcast if rank == ROOT => self.block(round, rank, 0).collect(),
            Collective::Broadcast => vec![0; self.words],
            Collective::Scatter if rank != ROOT => Vec::new(),
            Collective::Scatter | Collective::Alltoall | Collective::ReduceScatter => to_each(),
            Collective::Gather
            | Collective::Allgather
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::NeighborAllgather
            | Collective::Scan => self.block(round, rank, 0).collect(),
            Collective::NeighborAlltoall => (0..self.neighbors.len() as u32)
                .flat_map(|direction| self.block(round, rank, direction))
                .collect(),
        }
    }

    fn result(&self, rank: u32, round: u32) -> Vec<u64> {
        let of_each = |to| (0..self.ranks).flat_map(move |from| self.block(round, from, to));
        match self.collective {
            Collective::Barrier => Vec::new(),
            Collective::Gather | Collective::Reduce if rank != ROOT => Vec::new(),
            Collective::Broadcast => self.block(round, ROOT, 0).collect(),
            Collective::Scatter => self.block(round, ROOT, rank).collect(),
            Collective::Gather | Collective::Allgather => of_each(0).collect(),
            Collective::Alltoall => of_each(rank).collect(),
            Collective::Reduce | Collective::Allreduce => self.sum(round, 0, self.ranks),
            Collective::ReduceScatter => self.sum(round, rank, self.ranks),
            Collective::Scan => self.sum(round, 0, rank + 1),
            Collective::NeighborAllgather => {
                let neighbors = self.neighbors.iter();
                neighbors
                    .flat_map(|&from| self.block(round, from, 0))
                    .collect()
            }
            // A block from one direction was sent in the other.
            Collective::NeighborAlltoall => (0..)
                .zip(&self.neighbors)
                .flat_map(|(place, &from)| self.block(round, from, place ^ 1))
                .collect(),
        }
    }

    /// Elements that a rank gets.
    fn room(&self, rank: u32) -> usize {
        let all = self.words * self.ranks as usize;
        match self.collective {
            Collective::Barrier => 0,
            Collective::Gather | Collective::Reduce if rank != ROOT => 0,
            Collective::Gather | Collective::Allgather | Collective::Alltoall => all,
            Collective::NeighborAllgather | Collective::NeighborAlltoall => {
                self.words * self.neighbors.len()
            }
            _ => self.words,
        }
    }
}
