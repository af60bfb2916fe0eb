//! The time that passes in a program between its calls of MPI, and the clock that it reads.

use std::sync::atomic::Ordering::Relaxed;

use super::program::{Asked, Beside, Gone, Program};
use super::rank::{Ended, Failure, SUCCESS};
use super::server::{Compute, Server};
use crate::channel::Channel;
use crate::processor::Processor;
use crate::rank::Mpi;

/// The time of a rank's beginning, in seconds: programs may take 0 for no time.
const BEGIN_S: f64 = 1.0;

/// The most picoseconds for which the ranks of a job may compute or sleep, so that no clock
/// overflows even where each waits for the one before it and computes on a slow core.
const MOST_PS: u64 = u64::MAX / 16;

impl<C: Channel> Server<'_, C> {
    /// The simulated time, in seconds (MPI_Wtime).
    pub(super) async fn clock_s(&self) -> f64 {
        BEGIN_S + self.mpi.wtime().await
    }

    /// Performs a call that is not MPI's.
    pub(super) async fn beside(&mut self, call: Beside) -> Ended {
        match call {
            Beside::Computes(seconds) => {
                if self.compute == Compute::Declared {
                    self.passes(picoseconds(seconds)).await?;
                }
                SUCCESS
            }
            Beside::ReadsClock(sleep_ns) => {
                self.passes(sleep_ns.saturating_mul(1000)).await?;
                Ok((self.clock_s().await * 1e9).round() as u64)
            }
            Beside::Proxy(proxy) => {
                self.rank.set_proxy(proxy);
                SUCCESS
            }
        }
    }

    /// Lets so many picoseconds pass.
    ///
    /// # Errors
    /// The time is longer than a rank may compute: the job is ended.
    pub(super) async fn passes(&mut self, ps: u64) -> Result<(), Failure> {
        let most = MOST_PS / u64::from(self.mpi.channel().ranks().max(1));
        // The rank's alone.
        let passed_ps = self.mpi.passed_ps.load(Relaxed).saturating_add(ps);
        self.mpi.passed_ps.store(passed_ps, Relaxed);
        if passed_ps > most {
            let hours = most as f64 / 3600e12;
            let why = format!("the program computes or sleeps for more than {hours:.1} hours");
            self.rank.program.abort(1, why);
            return Err(Failure::Gone);
        }
        self.mpi.channel().processor().computes(ps).await;
        Ok(())
    }
}

/// The next call of a process. While that waits for something other than MPI, simulated time goes
/// on: slowly at first, as others may need little of it.
pub(super) async fn next<C: Channel>(mpi: &Mpi<C>, program: &dyn Program) -> Result<Asked, Gone> {
    let mut pause_ps = LEAST_PAUSE_PS;
    loop {
        if let Some(asked) = program.next()? {
            return Ok(asked);
        }
        mpi.channel().processor().computes(pause_ps).await;
        pause_ps = (2 * pause_ps).min(MOST_PAUSE_PS);
    }
}

/// 1 us.
const LEAST_PAUSE_PS: u64 = 1_000_000;

/// 1 ms.
const MOST_PAUSE_PS: u64 = 1_000_000_000;

/// Seconds as picoseconds; none of what is no time.
fn picoseconds(seconds: f64) -> u64 {
    // Saturates; what is not a number becomes 0.
    (seconds * 1e12) as u64
}
