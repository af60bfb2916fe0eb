//! Threads pinned to CPUs that work on one buffer in turn: the measuring thread gives each of the
//! others a pass to do, waits for it, and hands a cache line to and fro with it.
//!
//! Called by [`super::run`], and by [`super::transfer`] for a thread that does its own part beside
//! the measuring one. Times in nanoseconds.

use std::fmt;
use std::hint::black_box;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;

use super::MeasureError;
use super::cpus::{self, Cpus};
use super::lines::{self, Line};
use super::recipe::Pass;
use super::spin::{Gone, Word, spin_until};

/// Round trips in a batch.
const TRIPS: u64 = 200;
/// Batches, of which the fastest counts: the others may have been interrupted.
const BATCHES: usize = 8;

/// The task of another thread.
#[derive(Default)]
enum Job {
    #[default]
    Nothing,
    /// A pass over the first lines of the buffer.
    Pass(Pass, usize),
    /// The other side of [`TRIPS`] round trips.
    Trips,
    /// Something else.
    Call(Box<dyn FnOnce() + Send>),
    /// The end.
    Stop,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job")
    }
}

/// Where a thread is given jobs.
#[derive(Debug, Default)]
struct Mailbox {
    /// Even while the thread is idle, odd while a job waits or is under way.
    turn: Word,
    job: Mutex<Job>,
    /// Where the thread ran when it did the last one.
    cpu: AtomicUsize,
    /// Whether the thread has ended.
    is_gone: AtomicBool,
}

/// The measuring thread's view of all.
#[derive(Debug)]
pub struct Team<'t> {
    cpus: &'t Cpus,
    buffer: &'t Mutex<Vec<Line>>,
    mailboxes: &'t [Mailbox],
    ball: &'t Word,
}

/// Calls `measure` on a thread pinned to the measuring CPU of `cpus`, with a thread pinned to each
/// of the others beside it, and a buffer of `bytes` whose pages the measuring thread has touched
/// first.
///
/// # Errors
/// No such threads, no such memory, or what `measure` returns.
pub fn with_team<T: Send>(
    cpus: &Cpus,
    bytes: usize,
    measure: impl FnOnce(&Team<'_>) -> Result<T, MeasureError> + Send,
) -> Result<T, MeasureError> {
    let buffer = Mutex::new(Vec::new());
    let ball = Word::default();
    let mailboxes: Vec<Mailbox> = cpus.holders.iter().map(|_| Mailbox::default()).collect();
    thread::scope(|scope| {
        // However this ends, the others end with it.
        let _stop = StopAll(&mailboxes);
        let (report, reports) = mpsc::channel();
        for (mailbox, &cpu) in mailboxes.iter().zip(&cpus.holders) {
            let (buffer, ball, report) = (&buffer, &ball, report.clone());
            let serve = move || {
                let _gone = Gone(&mailbox.is_gone);
                let pinned = cpus::pin(cpu);
                let is_pinned = pinned.is_ok();
                // The receiver is there until all have reported.
                let _ = report.send(pinned);
                drop(report);
                if is_pinned {
                    mailbox.serve(buffer, ball);
                }
            };
            spawn(scope, serve)?;
        }
        drop(report);
        for pinned in reports {
            pinned?;
        }
        let team = Team {
            cpus,
            buffer: &buffer,
            mailboxes: &mailboxes,
            ball: &ball,
        };
        let measuring = move || {
            cpus::pin(team.cpus.measuring)?;
            team.allocate(bytes)?;
            measure(&team)
        };
        let measured = spawn(scope, measuring)?.join();
        measured.map_err(|_| MeasureError::Panicked)?
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>, MeasureError> {
    let spawned = thread::Builder::new().spawn_scoped(scope, body);
    spawned.map_err(MeasureError::Threads)
}

/// Tells all threads to end when it is dropped.
struct StopAll<'t>(&'t [Mailbox]);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        for mailbox in self.0 {
            // A job that is under way ends first; one that will never end is of a thread that is
            // gone.
            if mailbox.finish().is_ok() {
                mailbox.post(Job::Stop);
            }
        }
    }
}

impl Mailbox {
    /// Gives an idle thread a job.
    fn post(&self, job: Job) {
        *self.job.lock() = job;
        self.turn.0.fetch_add(1, Ordering::Release);
    }

    /// Waits until the thread is idle.
    fn finish(&self) -> Result<(), MeasureError> {
        let is_idle = || self.turn.0.load(Ordering::Acquire).is_multiple_of(2);
        spin_until(is_idle, &self.is_gone)
    }

    /// Does jobs until the last.
    fn serve(&self, buffer: &Mutex<Vec<Line>>, ball: &Word) {
        let never = AtomicBool::new(false);
        loop {
            let is_given = || !self.turn.0.load(Ordering::Acquire).is_multiple_of(2);
            if spin_until(is_given, &never).is_err() {
                return;
            }
            let job = mem::take(&mut *self.job.lock());
            match job {
                Job::Nothing => {}
                Job::Pass(pass, count) => do_pass(first(&mut buffer.lock(), count), pass),
                Job::Trips => {
                    for trip in 0..TRIPS {
                        ball.hand_over(2 * trip + 1);
                    }
                }
                // A call that panicked leaves no outcome.
                Job::Call(call) => drop(catch_unwind(AssertUnwindSafe(call))),
                Job::Stop => return,
            }
            self.cpu.store(cpus::current(), Ordering::Relaxed);
            self.turn.0.fetch_add(1, Ordering::Release);
        }
    }
}

/// The first `count` lines, or all if there are fewer.
fn first(buffer: &mut [Line], count: usize) -> &mut [Line] {
    let count = count.min(buffer.len());
    &mut buffer[..count]
}

/// A pass over `buffer`.
fn do_pass(buffer: &mut [Line], pass: Pass) {
    // Another value each time would be no other store.
    const VALUE: u64 = 0x0123_4567_89ab_cdef;
    match pass {
        Pass::Load => {
            lines::load(buffer);
        }
        Pass::Store => lines::store(buffer, VALUE),
        Pass::Flush => lines::flush(buffer),
        Pass::StoreAndFlush => {
            lines::store(buffer, VALUE);
            lines::flush(buffer);
        }
        Pass::Stream => lines::stream(buffer, VALUE),
    }
}

impl Team<'_> {
    fn allocate(&self, bytes: usize) -> Result<(), MeasureError> {
        let count = bytes.div_ceil(lines::LINE_BYTES);
        let mut buffer = self.buffer.lock();
        buffer
            .try_reserve_exact(count)
            .map_err(|_| MeasureError::Memory(bytes))?;
        buffer.resize(count, Line::default());
        Ok(())
    }

    /// The measuring thread does a pass over the first `count` lines; how long it takes (ns).
    pub fn pass(&self, pass: Pass, count: usize) -> u64 {
        // The lock is another core's, and the clock's code may have left the caches: both are here
        // when the clock starts.
        let mut buffer = self.buffer.lock();
        let buffer = first(&mut buffer, count);
        black_box(Instant::now());
        fence(Ordering::SeqCst);
        let begin = Instant::now();
        do_pass(buffer, pass);
        u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The `holder`-th holder does a pass over the first `count` lines.
    ///
    /// # Errors
    /// Its thread is gone.
    pub fn pass_of(&self, holder: usize, pass: Pass, count: usize) -> Result<(), MeasureError> {
        let mailbox = &self.mailboxes[holder];
        mailbox.post(Job::Pass(pass, count));
        mailbox.finish()
    }

    /// The `holder`-th holder does `theirs` while the measuring thread does `mine`. Where one of
    /// them failed because the other was gone, the other's error counts.
    ///
    /// # Errors
    /// Its thread is gone, or what either returns.
    pub fn beside<T, U: Send + 'static>(
        &self,
        holder: usize,
        theirs: impl FnOnce() -> Result<U, MeasureError> + Send + 'static,
        mine: impl FnOnce() -> Result<T, MeasureError>,
    ) -> Result<(T, U), MeasureError> {
        let mailbox = &self.mailboxes[holder];
        let outcome = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&outcome);
        mailbox.post(Job::Call(Box::new(move || {
            *slot.lock() = Some(theirs());
        })));
        let mine = mine();
        mailbox.finish()?;
        let theirs = outcome.lock().take();
        match (mine, theirs.ok_or(MeasureError::Panicked)?) {
            (Ok(mine), Ok(theirs)) => Ok((mine, theirs)),
            (Ok(_) | Err(MeasureError::Panicked), Err(error)) | (Err(error), _) => Err(error),
        }
    }

    /// The CPU of the `holder`-th holder.
    pub fn cpu_of(&self, holder: usize) -> usize {
        self.cpus.holders[holder].id
    }

    /// A round trip of a cache line between the measuring thread and the `holder`-th holder (ns),
    /// by compare-and-swap: the fastest of a few batches.
    ///
    /// # Errors
    /// Its thread is gone.
    pub fn round_trip_ns(&self, holder: usize) -> Result<f64, MeasureError> {
        let mailbox = &self.mailboxes[holder];
        let mut least = f64::INFINITY;
        for _ in 0..BATCHES {
            self.ball.0.store(0, Ordering::Relaxed);
            mailbox.post(Job::Trips);
            // The first trip waits for the other thread to begin.
            self.ball.hand_over(0);
            let begin = Instant::now();
            for trip in 1..TRIPS {
                self.ball.hand_over(2 * trip);
            }
            let elapsed = begin.elapsed().as_secs_f64() * 1e9;
            mailbox.finish()?;
            least = least.min(elapsed / (TRIPS - 1) as f64);
        }
        Ok(least)
    }

    /// Returns whether the measuring thread and these holders run where they are pinned.
    pub fn is_in_place(&self, holders: &[usize]) -> bool {
        let is_there = |&at: &usize| {
            self.mailboxes[at].cpu.load(Ordering::Relaxed) == self.cpus.holders[at].id
        };
        cpus::current() == self.cpus.measuring.id && holders.iter().all(is_there)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::super::cpus::Cpu;
    use super::*;

    /// A team of `holders` others, on the same CPU where there is no other.
    fn team_of(holders: usize) -> Cpus {
        let mut cpus = Cpus::default_of_process().unwrap();
        let last: Cpu = *cpus.holders.last().unwrap_or(&cpus.measuring);
        cpus.holders.resize(holders, last);
        cpus
    }

    #[test]
    fn the_others_do_as_they_are_told() {
        let cpus = team_of(2);
        let done = with_team(&cpus, 4096, |team| {
            assert_eq!(team.buffer.lock().len(), 64);
            team.pass_of(0, Pass::Store, 10)?;
            team.pass_of(1, Pass::StoreAndFlush, 20)?;
            team.pass_of(0, Pass::Stream, 1 << 40)?;
            assert!(team.is_in_place(&[0, 1]));
            let trip = team.round_trip_ns(1)?;
            assert!(trip > 0.0 && trip.is_finite());
            Ok(lines::load(&team.buffer.lock()))
        });
        let word = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(done.unwrap(), word.wrapping_mul(64 * 8));
    }

    #[test]
    fn a_call_runs_beside_the_measuring_thread() {
        let cpus = team_of(1);
        let id = cpus.holders[0].id;
        let both = with_team(&cpus, 64, |team| {
            assert_eq!(team.cpu_of(0), id);
            team.beside(0, || Ok(cpus::current()), || Ok(7))
        });
        assert_eq!(both.unwrap(), (7, id));
        let first_error = with_team(&cpus, 64, |team| {
            let mine = || Err::<(), _>(MeasureError::Panicked);
            team.beside(0, || Err::<(), _>(MeasureError::NoCpu), mine)
        });
        assert!(matches!(first_error, Err(MeasureError::NoCpu)));
        let panicked = with_team(&cpus, 64, |team| {
            let theirs = || -> Result<(), _> { std::panic::resume_unwind(Box::new("on purpose")) };
            team.beside(0, theirs, || Ok(()))
        });
        assert!(matches!(panicked, Err(MeasureError::Panicked)));
    }

    #[test]
    fn a_measurement_that_fails_ends_the_others() {
        let cpus = team_of(3);
        let failed = with_team(&cpus, 64, |_| Err::<(), _>(MeasureError::NoCpu));
        assert!(matches!(failed, Err(MeasureError::NoCpu)));
        let huge = with_team(&cpus, usize::MAX, |_| Ok(()));
        assert!(matches!(huge, Err(MeasureError::Memory(_))));
        let panicked = with_team(&cpus, 64, |_| -> Result<(), _> {
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        assert!(matches!(panicked, Err(MeasureError::Panicked)));
    }
}
