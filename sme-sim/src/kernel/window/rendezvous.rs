//! Where the workers of a run meet, once or twice a window: a barrier of the host's threads.
//!
//! Called by `workers`. A window is short (microseconds, where few nodes have anything to do), so a
//! worker that waits polls for a while first, and only then sleeps: the computer may have something
//! else to do. An episode is told from the next by its number, in the way of a sense-reversing
//! barrier.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

/// Polls of a worker before it sleeps: some 0.5 ms. To be woken takes longer than most shares of a
/// window differ, a tenth of a millisecond where the computer is a virtual one.
const LOOKS: u32 = 10_000;
/// After so many looks, some 20 µs, it lets others have the processor, if they want it.
const LOOKS_AT_A_TIME: u32 = 400;

/// A barrier for a fixed number of workers, to be used again and again.
#[derive(Debug)]
pub(super) struct Rendezvous {
    workers: usize,
    looks: u32,
    arrived: AtomicUsize,
    episode: AtomicUsize,
    sleepers: Mutex<usize>,
    woken: Condvar,
}

impl Rendezvous {
    /// For `workers` of them.
    pub(super) fn new(workers: usize) -> Self {
        // Asked once: the answer is read from files, and a run that is looked at often stops often.
        static THREADS: OnceLock<usize> = OnceLock::new();
        let threads =
            *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
        Self {
            workers,
            // The awaited worker may need the very processor that the waiting one polls on.
            looks: if workers <= threads { LOOKS } else { 0 },
            arrived: AtomicUsize::new(0),
            episode: AtomicUsize::new(0),
            sleepers: Mutex::new(0),
            woken: Condvar::new(),
        }
    }

    /// Returns when all have called it. The actions of each before the meeting are seen by all
    /// afterwards.
    pub(super) fn wait(&self) {
        let episode = self.episode.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            // No worker arrives for the next episode before this one has ended.
            self.arrived.store(0, Ordering::Relaxed);
            let sleepers = self.sleepers.lock();
            self.episode
                .store(episode.wrapping_add(1), Ordering::Release);
            if *sleepers > 0 {
                self.woken.notify_all();
            }
            return;
        }
        for look in 1..=self.looks {
            if self.episode.load(Ordering::Acquire) != episode {
                return;
            }
            if look.is_multiple_of(LOOKS_AT_A_TIME) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        let mut sleepers = self.sleepers.lock();
        while self.episode.load(Ordering::Acquire) == episode {
            *sleepers += 1;
            self.woken.wait(&mut sleepers);
            *sleepers -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Every worker sees what all did before, whether it polled or slept.
    #[test]
    fn nobody_passes_before_the_last() {
        for (workers, looks) in [(1, 0), (2, 0), (3, 5), (4, LOOKS), (2, 20_000)] {
            let rendezvous = Rendezvous {
                looks,
                ..Rendezvous::new(workers)
            };
            let episodes = 400;
            let counts: Vec<AtomicU64> = (0..workers).map(|_| AtomicU64::new(0)).collect();
            std::thread::scope(|scope| {
                for me in 0..workers {
                    let (counts, rendezvous) = (&counts, &rendezvous);
                    scope.spawn(move || {
                        for episode in 1..=episodes {
                            if episode % (7 + me as u64) == 0 {
                                std::thread::yield_now();
                            }
                            counts[me].store(episode, Ordering::Relaxed);
                            rendezvous.wait();
                            for count in counts {
                                let seen = count.load(Ordering::Relaxed);
                                assert!(seen == episode || seen == episode + 1);
                            }
                        }
                    });
                }
            });
        }
    }
}
