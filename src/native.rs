//! Times of barriers on this machine: real threads, the library's barrier beside
//! `std::sync::Barrier` and a pthread barrier, and the limit of them all, a cache line going to and
//! fro between two threads. Called by the command `sme native`, which prints it. Times in
//! nanoseconds a barrier, or a round trip.
//!
//! The barriers take turns, repetition by repetition, so that a disturbance meets all of them. A
//! repetition is the time from one thread's departure from an episode to its departure from
//! another many episodes later, divided by their number. Threads are not pinned to processors:
//! that is the scheduler's business, as in the programs that will use the barrier.

#[cfg(all(unix, not(target_vendor = "apple")))]
mod pthread;
mod team;

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use serde::Serialize;
use sme_barrier::native::{Barrier, BarrierError, Options};
use thiserror::Error;

/// The plan of a measurement on this machine.
#[derive(Clone, Debug)]
pub struct NativePlan {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// The library's barrier.
    pub options: Options,
    /// The number of turns of each barrier.
    pub repetitions: u32,
    /// About how long a turn is.
    pub turn: Duration,
}

impl Default for NativePlan {
    fn default() -> Self {
        Self {
            threads: vec![2, 4, 8, 16],
            options: Options::default(),
            repetitions: 11,
            turn: Duration::from_millis(20),
        }
    }
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum NativeError {
    /// There is no such barrier.
    #[error(transparent)]
    Barrier(#[from] BarrierError),
    /// The system does not give so many threads.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The number of threads that were to be started.
        threads: usize,
        /// The message of the operating system.
        reason: std::io::Error,
    },
    /// The system does not give a pthread barrier.
    #[error("cannot make a pthread barrier for {threads} threads: {reason}")]
    Pthread {
        /// The number of threads that it was for.
        threads: usize,
        /// The message of the operating system.
        reason: std::io::Error,
    },
    /// No repetitions.
    #[error("a measurement needs a repetition: give at least 1")]
    NoRepetitions,
    /// A thread has panicked.
    #[error("a measuring thread has panicked")]
    Panicked,
}

/// A latency over several repetitions, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The median of the repetitions.
    pub median_ns: f64,
    /// The shortest.
    pub min_ns: f64,
    /// The longest.
    pub max_ns: f64,
}

/// The barriers for one number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NativeRow {
    /// The number of threads.
    pub threads: usize,
    /// The library's barrier.
    pub sme: Latency,
    /// `std::sync::Barrier`.
    pub std: Latency,
    /// A pthread barrier, where the system has them: on Unix, but for macOS.
    pub pthread: Option<Latency>,
}

/// The report of a measurement on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NativeReport {
    /// Processors that this process may use: its affinity and its control group's quota.
    pub processors: usize,
    /// A cache line to another thread and back. Means something where there are two processors.
    pub round_trip: Latency,
    /// One row for each number of threads.
    pub rows: Vec<NativeRow>,
}

impl NativeReport {
    /// Measures everything; `progress` is told before each turn of all barriers how many turns
    /// are done, and of how many.
    ///
    /// # Errors
    ///
    /// If there is no repetition, no barrier for one of the numbers of threads, or the system
    /// refuses threads.
    pub fn measure(
        plan: &NativePlan,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, NativeError> {
        if plan.repetitions == 0 {
            return Err(NativeError::NoRepetitions);
        }
        // What cannot be is found out before anything takes time.
        for &threads in &plan.threads {
            Barrier::with_options(threads, plan.options)?;
        }
        let total = u64::from(plan.repetitions) * (1 + plan.threads.len() as u64);
        let mut done = 0;
        let mut tell = || {
            progress(done, total);
            done += 1;
        };

        let mut round_trip = Contender::default();
        for _ in 0..plan.repetitions {
            tell();
            round_trip.run(plan.turn, || Ok(ping_pong()))?;
        }

        let mut rows = Vec::with_capacity(plan.threads.len());
        for &threads in &plan.threads {
            let mut contenders: [Contender; 3] = Default::default();
            for _ in 0..plan.repetitions {
                tell();
                let [sme, std, pthread] = &mut contenders;
                sme.run(plan.turn, || library(threads, plan.options))?;
                std.run(plan.turn, || Ok(standard(threads)))?;
                pthread_turn(pthread, threads, plan.turn)?;
            }
            let [sme, std, pthread] = contenders;
            rows.push(NativeRow {
                threads,
                sme: sme.latency().ok_or(NativeError::NoRepetitions)?,
                std: std.latency().ok_or(NativeError::NoRepetitions)?,
                pthread: pthread.latency(),
            });
        }
        Ok(Self {
            processors: available_parallelism().map_or(1, NonZero::get),
            round_trip: round_trip.latency().ok_or(NativeError::NoRepetitions)?,
            rows,
        })
    }
}

/// One of those who are measured, and its repetitions so far.
#[derive(Default)]
struct Contender {
    /// Episodes in a turn; none before the first.
    episodes: Option<u64>,
    /// Nanoseconds an episode, one for each repetition.
    repetitions: Vec<f64>,
}

impl Contender {
    /// Has its turn of about the given length with a new barrier.
    fn run<W: FnMut() + Send>(
        &mut self,
        turn: Duration,
        mut barrier: impl FnMut() -> Result<Vec<W>, NativeError>,
    ) -> Result<(), NativeError> {
        let episodes = match self.episodes {
            Some(episodes) => episodes,
            None => *self.episodes.insert(calibrate(turn, &mut barrier)?),
        };
        let elapsed = team::time(barrier()?, episodes)?;
        self.repetitions.push(nanoseconds(elapsed, episodes));
        Ok(())
    }

    /// The latency; none without a repetition.
    fn latency(mut self) -> Option<Latency> {
        self.repetitions.sort_by(f64::total_cmp);
        let sorted = self.repetitions.as_slice();
        let middle = sorted.len() / 2;
        let median_ns = match sorted.len() {
            0 => return None,
            odd if odd % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        };
        Some(Latency {
            median_ns,
            min_ns: *sorted.first()?,
            max_ns: *sorted.last()?,
        })
    }
}

/// Returns the number of episodes that take about as long as a turn.
fn calibrate<W: FnMut() + Send>(
    turn: Duration,
    barrier: &mut impl FnMut() -> Result<Vec<W>, NativeError>,
) -> Result<u64, NativeError> {
    const MOST: u64 = 1 << 24;
    let mut episodes = 16;
    loop {
        let elapsed = team::time(barrier()?, episodes)?;
        if elapsed >= turn / 4 || episodes >= MOST {
            let wanted = turn.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
            return Ok(((episodes as f64 * wanted) as u64).clamp(16, MOST));
        }
        episodes *= 4;
    }
}

fn nanoseconds(elapsed: Duration, episodes: u64) -> f64 {
    elapsed.as_secs_f64() * 1e9 / episodes as f64
}

/// The library's barrier, one wait for each thread.
fn library(
    threads: usize,
    options: Options,
) -> Result<Vec<impl FnMut() + Send + use<>>, NativeError> {
    let handles = Barrier::with_options(threads, options)?.handles();
    Ok(handles
        .into_iter()
        .map(|mut handle| {
            move || {
                handle.wait();
            }
        })
        .collect())
}

/// A turn of the pthread barrier, where the system has one.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn pthread_turn(
    contender: &mut Contender,
    threads: usize,
    turn: Duration,
) -> Result<(), NativeError> {
    contender.run(turn, || pthread::waits(threads))
}

/// No turn: this system has no pthread barriers.
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
fn pthread_turn(_: &mut Contender, _: usize, _: Duration) -> Result<(), NativeError> {
    Ok(())
}

/// The standard library's barrier.
fn standard(threads: usize) -> Vec<impl FnMut() + Send> {
    let barrier = Arc::new(std::sync::Barrier::new(threads));
    (0..threads)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            move || {
                barrier.wait();
            }
        })
        .collect()
}

/// A line of memory of its own: two of 64 bytes, because some processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Two threads who hand a cache line to each other: an episode is once to and fro.
fn ping_pong() -> Vec<impl FnMut() + Send> {
    let line = Arc::new(Line::default());
    [0, 1]
        .map(|mine| {
            let line = Arc::clone(&line);
            // The line counts hand-overs: even ones go to the first thread, odd to the second.
            let mut turn = mine;
            move || {
                if mine == 0 {
                    line.0.store(turn + 1, Ordering::Release);
                    await_turn(&line, turn + 2);
                } else {
                    await_turn(&line, turn);
                    line.0.store(turn + 1, Ordering::Release);
                }
                turn += 2;
            }
        })
        .into()
}

fn await_turn(line: &Line, turn: u64) {
    // On a single processor the other thread could not run at all before the time slice ends.
    const PATIENCE: u32 = 1_000;
    let mut turns = 0;
    while line.0.load(Ordering::Acquire) != turn {
        std::hint::spin_loop();
        turns += 1;
        if turns > PATIENCE {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use sme_barrier::Algorithm;

    use super::*;

    fn quick(threads: Vec<usize>) -> NativePlan {
        NativePlan {
            threads,
            repetitions: 3,
            turn: Duration::from_micros(500),
            ..NativePlan::default()
        }
    }

    fn check(latency: Latency) {
        assert!(latency.min_ns > 1.0, "{latency:?}");
        assert!(latency.min_ns <= latency.median_ns, "{latency:?}");
        assert!(latency.median_ns <= latency.max_ns, "{latency:?}");
    }

    #[test]
    fn everything_is_measured() {
        let report = NativeReport::measure(&quick(vec![1, 3]), |_, _| {}).unwrap();
        assert!(report.processors >= 1);
        check(report.round_trip);
        assert_eq!(report.rows.len(), 2);
        for (row, threads) in report.rows.iter().zip([1, 3]) {
            assert_eq!(row.threads, threads);
            check(row.sme);
            check(row.std);
            assert_eq!(
                row.pthread.is_some(),
                cfg!(all(unix, not(target_vendor = "apple")))
            );
            row.pthread.into_iter().for_each(check);
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let latency = |repetitions: &[f64]| {
            Contender {
                episodes: None,
                repetitions: repetitions.to_vec(),
            }
            .latency()
        };
        assert_eq!(latency(&[]), None);
        let odd = latency(&[5.0, 1.0, 3.0]).unwrap();
        assert_eq!((odd.min_ns, odd.median_ns, odd.max_ns), (1.0, 3.0, 5.0));
        let even = latency(&[5.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((even.min_ns, even.median_ns, even.max_ns), (1.0, 2.5, 5.0));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let none = NativeReport::measure(&quick(vec![2, 0]), |_, _| {});
        assert!(matches!(none, Err(NativeError::Barrier(_))), "{none:?}");
        let many = NativeReport::measure(&quick(vec![usize::MAX]), |_, _| {});
        assert!(matches!(many, Err(NativeError::Barrier(_))), "{many:?}");
        let mut plan = quick(vec![3]);
        plan.options = Options {
            fan_in: 1,
            ..Options::of(Algorithm::Tree)
        };
        let chain = NativeReport::measure(&plan, |_, _| {});
        assert!(matches!(chain, Err(NativeError::Barrier(_))), "{chain:?}");
        plan.repetitions = 0;
        let never = NativeReport::measure(&plan, |_, _| {});
        assert!(
            matches!(never, Err(NativeError::NoRepetitions)),
            "{never:?}"
        );
    }
}
