//! Results that stay in memory in the place of stdout, for a program that runs commands within
//! itself. Called by [`crate::cli::rows`]; [`super::output`] writes here while it does.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

thread_local! {
    /// Where this thread's results go, if not to stdout.
    static HERE: RefCell<Option<Collector>> = const { RefCell::new(None) };
}

/// Takes what one job writes to stdout.
#[derive(Clone, Debug)]
pub struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Arc<AtomicBool>,
}

impl Collector {
    /// The one of this thread, if it does a job whose results are collected.
    pub fn here() -> Option<Self> {
        HERE.with_borrow(Clone::clone)
    }
}

impl Write for Collector {
    /// Fails as a closed pipe does once nobody waits for the results.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.bytes.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Puts back, also after a panic, what was here before.
struct Before(Option<Collector>);

impl Drop for Before {
    fn drop(&mut self) {
        HERE.set(self.0.take());
    }
}

/// Does `job` on this thread, and returns also what it has written to stdout, which gets none of
/// it. Once `ended` is set, the job finds that its results are no longer read.
pub fn collected<T>(ended: &Arc<AtomicBool>, job: impl FnOnce() -> T) -> (T, Vec<u8>) {
    let collector = Collector {
        bytes: Arc::default(),
        ended: ended.clone(),
    };
    let bytes = collector.bytes.clone();
    let before = Before(HERE.replace(Some(collector)));
    let done = job();
    drop(before);
    let bytes = std::mem::take(&mut *bytes.lock());
    (done, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::output::Output;
    use crate::report::stop::Stop;

    fn written(text: &str) -> Result<(), Stop> {
        let mut output = Output::stdout();
        output.push(text)?;
        output.commit()
    }

    #[test]
    fn jobs_within_jobs_keep_their_own() {
        let ended = Arc::default();
        let (inner, outer) = collected(&ended, || {
            written("a").unwrap();
            let ((), inner) = collected(&ended, || written("b").unwrap());
            written("c").unwrap();
            inner
        });
        assert_eq!(
            (inner.as_slice(), outer.as_slice()),
            (&b"b"[..], &b"ac"[..])
        );
        assert!(Collector::here().is_none());
    }

    #[test]
    fn a_job_whose_results_nobody_awaits_stops() {
        let ended = Arc::new(AtomicBool::new(false));
        let (done, bytes) = collected(&ended, || {
            written("a")?;
            ended.store(true, Ordering::Relaxed);
            written("b")
        });
        assert_eq!((done, bytes.as_slice()), (Err(Stop::Unread), &b"a"[..]));
    }

    #[test]
    fn a_panic_leaves_stdout_as_it_was() {
        let panics = || collected(&Arc::default(), || panic!("on purpose"));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(Collector::here().is_none());
    }
}
