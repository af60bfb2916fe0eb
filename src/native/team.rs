//! A number of threads that run the same episodes, and one that looks at the clock.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::NativeError;

/// Episodes before the clock starts: threads come to life one after the other.
const WARM_UP: u64 = 8;

/// Measures the time of `episodes` episodes in which each of the threads calls its own wait once:
/// the time from the first thread's departure from the warm-up to its departure from the last
/// episode.
pub(super) fn time<W: FnMut() + Send>(
    waits: Vec<W>,
    episodes: u64,
) -> Result<Duration, NativeError> {
    let threads = waits.len();
    thread::scope(|scope| {
        let mut starts = Vec::with_capacity(threads);
        let mut running = Vec::with_capacity(threads);
        for mut wait in waits {
            let (start, started) = mpsc::channel::<()>();
            let measure = move || {
                // No thread begins unless all can: if a thread could not be started, the channels
                // close and the others end.
                started.recv().ok()?;
                for _ in 0..WARM_UP {
                    wait();
                }
                let begin = Instant::now();
                for _ in 0..episodes {
                    wait();
                }
                Some(begin.elapsed())
            };
            let thread = thread::Builder::new()
                .spawn_scoped(scope, measure)
                .map_err(|reason| NativeError::Threads { threads, reason })?;
            starts.push(start);
            running.push(thread);
        }
        for start in starts {
            // It is there: it waits for this, and nothing before can end it.
            let _ = start.send(());
        }
        let mut first = None;
        for thread in running {
            let elapsed = thread.join().map_err(|_| NativeError::Panicked)?;
            first = first.or(elapsed);
        }
        first.ok_or(NativeError::Panicked)
    })
}
