//! A rank of a benchmark: its messages with what packs and unpacks them, and its computing.

use sme_memory::{Blocks, Own};
use sme_mpi::error::MpiError;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use super::grid::{Run, words};
use super::{NasRun, step};
use crate::endpoint::{Endpoint, Incoming, Outgoing};
use crate::job::Error;

/// A rank.
pub(super) struct Solver {
    /// The benchmark.
    pub run: NasRun,
    /// The number of the rank.
    pub rank: u32,
    endpoint: Endpoint,
    memory: ThreadMemory,
    done: Done,
    /// Whether every message came as it was sent.
    is_right: bool,
}

/// The things that a rank has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// The time that it has computed.
    pub computes: Time,
    /// Messages that it has sent.
    pub messages: u64,
}

/// One of the neighbours of a rank, and the points that a message has.
pub(super) struct Faces {
    /// The neighbour; none at a face of the whole grid.
    pub rank: Option<u32>,
    /// The points.
    pub runs: Vec<Run>,
}

impl Faces {
    /// Of no neighbour.
    const NONE: Self = Self {
        rank: None,
        runs: Vec::new(),
    };
}

/// The addresses of the two buffers of a program, in which it packs what it sends, and from which
/// it unpacks what it has received. Each has 1 MiB; the longest message, of LU's class B, 832 kB.
const OUT: Own = Own(8 << 20);
const IN: Own = Own(9 << 20);

/// The address of the arrays.
pub(super) const ARRAYS: u64 = 32 << 20;

impl Solver {
    /// Rank `rank` of `run`.
    pub(super) fn new(
        run: &NasRun,
        (endpoint, memory): (Endpoint, ThreadMemory),
        rank: u32,
    ) -> Self {
        Self {
            run: run.clone(),
            rank,
            endpoint,
            memory,
            done: Done::default(),
            is_right: true,
        }
    }

    /// Enters a step.
    pub(super) async fn begins(&self, number: u32) {
        self.memory.begin(step(number)).await;
    }

    /// Leaves it.
    pub(super) async fn ends(&self, number: u32) {
        self.memory.end(step(number)).await;
    }

    /// Computes `share` of a step of the benchmark for `points` of a phase, which are `all` in the
    /// whole grid.
    pub(super) async fn compute(&mut self, share: f64, points: u64, all: u64) {
        let (_, steps) = self.run.kernel.size(self.run.class);
        let step_ps = self.run.core_seconds / f64::from(steps) * 1e12;
        let takes = Time::from_ps((step_ps * share * points as f64 / all as f64).round() as u64);
        self.done.computes += takes;
        self.memory.delay(takes).await;
    }

    /// Sends the points of `out` and receives those of `into`, where there are neighbours. If both
    /// are there, RCCE sends first or receives first.
    ///
    /// # Errors
    /// [`MpiError`]
    pub(super) async fn shift(
        &mut self,
        (out, into): (&Faces, &Faces),
        sends_first: bool,
    ) -> Result<(), MpiError> {
        let (to, from) = (out.rank, into.rank);
        let sent = match to {
            Some(_) => self.packs(&out.runs).await,
            None => Vec::new(),
        };
        let mut came = vec![0; words(&into.runs) as usize];
        let out = to.map(|to| Outgoing {
            to,
            words: &sent,
            at: OUT,
        });
        let inner = from.map(|from| Incoming {
            from,
            words: &mut came,
            at: IN,
        });
        match (out, inner) {
            (Some(out), Some(inner)) => {
                self.endpoint.exchange((out, inner), sends_first).await?;
            }
            (Some(out), None) => self.endpoint.send(out).await?,
            (None, Some(inner)) => self.endpoint.receive(inner).await?,
            (None, None) => {}
        }
        self.done.messages += u64::from(to.is_some());
        if let Some(from) = from {
            self.is_right &= came.iter().all(|&word| word == stamp(from, came.len()));
            self.unpacks(&into.runs).await;
        }
        Ok(())
    }

    /// Sends the points to a neighbour, if there is one.
    ///
    /// # Errors
    /// [`MpiError`]
    pub(super) async fn send(&mut self, out: &Faces) -> Result<(), MpiError> {
        self.shift((out, &Faces::NONE), true).await
    }

    /// Receives them from one, if there is one.
    ///
    /// # Errors
    /// [`MpiError`]
    pub(super) async fn receive(&mut self, into: &Faces) -> Result<(), MpiError> {
        self.shift((&Faces::NONE, into), true).await
    }

    /// Packs the points of a message.
    async fn packs(&self, runs: &[Run]) -> Vec<u64> {
        let mut to = OUT.0;
        for run in runs {
            self.memory.copy(Own(run.at), Own(to), run.words).await;
            to += 8 * u64::from(run.words);
        }
        let words = words(runs) as usize;
        vec![stamp(self.rank, words); words]
    }

    /// Unpacks them.
    async fn unpacks(&self, runs: &[Run]) {
        let mut from = IN.0;
        for run in runs {
            self.memory.copy(Own(from), Own(run.at), run.words).await;
            from += 8 * u64::from(run.words);
        }
    }

    /// Ends the program.
    ///
    /// # Errors
    /// [`Error::Garbled`] if a message did not come as it was sent.
    pub(super) async fn finish(self) -> Result<Done, Error> {
        self.endpoint.finalize().await?;
        self.done()
    }

    /// The computing and the messages of the rank so far.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub(super) fn done(&self) -> Result<Done, Error> {
        match self.is_right {
            true => Ok(self.done),
            false => Err(Error::Garbled {
                call: "a step",
                rank: self.rank,
            }),
        }
    }
}

/// The words of a message of `from` with so many.
fn stamp(from: u32, words: usize) -> u64 {
    u64::from(from) << 32 | words as u64
}
