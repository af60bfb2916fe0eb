//! The time that passes in a program between its calls of MPI, and the clock that it reads.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::facts::CALLS;
use super::program::{Asked, Beside, Gone, News, Program};
use super::rank::{Ended, Failure, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::processor::Clock;
use crate::rank::Mpi;

/// The time that a process's own computing takes on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compute {
    /// None.
    Zero,
    /// So many picoseconds after each call that takes time.
    Fixed(u64),
    /// The time that its thread took here, times this factor.
    Measured(f64),
    /// The time that the program declares.
    Declared,
}

/// The clock of a rank that computes, and that has been read so often without the machine: this
/// takes its time later. The program's own computing takes none.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalClock {
    now: Clock,
    readings: u64,
}

impl LocalClock {
    /// Reads it: the time in seconds (MPI_Wtime). None if it has been read too often: then time
    /// has to pass on the machine.
    pub(super) fn reads(&mut self) -> Option<f64> {
        let number = self.readings;
        self.readings += 1;
        // As a machine tells it: the nanosecond that has begun.
        let now_ps = self.now.at_ps.saturating_add(number * self.now.reading_ps);
        let now_ns = now_ps / 1_000 + 1;
        (number < MOST_READINGS).then_some(BEGIN_S + now_ns as f64 * 1e-9)
    }

    /// The time that its readings have taken, in picoseconds.
    fn taken_ps(&self) -> u64 {
        self.readings.min(MOST_READINGS) * self.now.reading_ps
    }
}

/// The most readings without the machine: a program may read the clock until another rank has
/// brought something about.
const MOST_READINGS: u64 = 1_000;

/// The time of a rank's beginning, in seconds: programs may take 0 for no time.
const BEGIN_S: f64 = 1.0;

/// The most picoseconds for which the ranks of a job may compute or sleep, so that no clock
/// overflows even where each waits for the one before it and computes on a slow core.
const MOST_PS: u64 = u64::MAX / 16;

impl<C: Channel> Server<'_, C> {
    /// The simulated time, in seconds (MPI_Wtime).
    pub(super) async fn clock_s(&self) -> f64 {
        // The work of entering the next call comes behind this.
        let ahead_ns = self.mpi.ahead_ps() / 1_000;
        BEGIN_S + self.mpi.wtime().await - ahead_ns as f64 * 1e-9
    }

    /// Answers a call with `result`, and lets the process compute until it makes the next one.
    ///
    /// The process goes on at once, and computes while time passes on the machine: the last work of
    /// its call, its own computing as far as that is known, and the work of entering any call. The
    /// simulator waits for it only then, and other processes whose calls end meanwhile compute as
    /// well. This is so unless others may write to its memory in that time, or it may end:
    /// processes end one after the other.
    pub(super) async fn goes_on(&mut self, call: &Asked, result: u64) -> Result<Asked, Gone> {
        let rank = Arc::clone(&self.rank);
        let is_apart = !self.rank.objects.lock().is_finalized && self.windows.is_empty();
        let works_ahead = is_apart && self.mpi.works_ahead();
        // Calls between two looks are told.
        let is_alone = is_apart && self.row.is_none();
        let has_clock = is_alone && works_ahead && self.compute == Compute::Zero;
        if is_apart {
            rank.program.answer(result);
            if is_alone && !has_clock {
                rank.program.computes(&rank);
            }
        }
        let has_left = self.mpi.has_left().await;
        let ps = self.computing_ps(call, has_left);
        self.passes(ps).await.map_err(|_| Gone)?;
        if works_ahead {
            let begins = |now| {
                if has_clock {
                    *rank.clock.lock() = Some(LocalClock { now, readings: 0 });
                    rank.program.computes(&rank);
                }
            };
            self.mpi.enters_ahead(begins).await;
        }
        if !is_apart {
            rank.program.answer(result);
        }
        loop {
            match next(self.mpi, &*rank.program).await? {
                News::Calls(asked) => {
                    let read = rank.clock.lock().take();
                    let ps = read.map_or(0, |clock| clock.taken_ps());
                    self.passes(ps).await.map_err(|_| Gone)?;
                    self.has_computed(asked.computed_ns).await?;
                    return Ok(asked);
                }
                News::Computes(ns) if is_apart => self.has_computed(ns).await?,
                News::Computes(_) | News::Waits => {}
            }
        }
    }

    /// The time for which the process computes after this call, as far as that is known, in
    /// picoseconds; a call that `has_left` has taken time itself.
    fn computing_ps(&self, call: &Asked, has_left: bool) -> u64 {
        match (self.compute, call.beside) {
            (Compute::Declared, Some(Beside::Computes(seconds))) => picoseconds(seconds),
            _ => self.fixed_ps(call, has_left),
        }
    }

    /// The same where it is fixed.
    pub(super) fn fixed_ps(&self, call: &Asked, has_left: bool) -> u64 {
        let Compute::Fixed(ps) = self.compute else {
            return 0;
        };
        let reads_clock = match call.beside {
            None => CALLS.get(call.number).is_some_and(|it| it.name == "Wtime"),
            Some(beside) => matches!(beside, Beside::ReadsClock(_)),
        };
        let takes_time = has_left || reads_clock;
        if takes_time && !self.rank.objects.lock().is_finalized {
            ps
        } else {
            0
        }
    }

    /// The process has computed so long since it began, in nanoseconds: what is new takes its time,
    /// if it is measured.
    async fn has_computed(&mut self, since_begin_ns: u64) -> Result<(), Gone> {
        let Compute::Measured(factor) = self.compute else {
            return Ok(());
        };
        let ns = since_begin_ns.saturating_sub(self.computed_ns);
        self.computed_ns += ns;
        let ps = (ns as f64 * 1e3 * factor) as u64;
        self.passes(ps).await.map_err(|_| Gone)
    }

    /// Performs a call that is not MPI's and that a function of the program's makes; the process
    /// computes in it if it says so.
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
        if ps > 0 {
            self.mpi.computes(ps).await;
        }
        Ok(())
    }
}

/// The first call of a process.
pub(super) async fn first<C: Channel>(mpi: &Mpi<C>, program: &dyn Program) -> Result<Asked, Gone> {
    loop {
        if let News::Calls(asked) = next(mpi, program).await? {
            return Ok(asked);
        }
    }
}

/// The next news of a process. While that waits for something other than MPI, simulated time goes
/// on: slowly at first, as others may need little of it.
async fn next<C: Channel>(mpi: &Mpi<C>, program: &dyn Program) -> Result<News, Gone> {
    let mut pause_ps = LEAST_PAUSE_PS;
    loop {
        let news = program.next()?;
        if news != News::Waits {
            return Ok(news);
        }
        mpi.computes(pause_ps).await;
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
