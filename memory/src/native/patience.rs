//! The spinning of a waiting thread before it sleeps. It is bounded by *time*: how long a turn of
//! the loop takes depends on the processor (a `pause` is 4 cycles on one and 140 on the next), but
//! what sleeping and waking cost, and so what spinning may cost, does not. Called by
//! [`super::Thread`]; times in [`Duration`].
//!
//! Spinning is of no use while the thread that is waited for has no processor, because other
//! programs have them all. A thread notices by having spun in vain, and then spins for half as
//! long next time; now and then it tries the full time again.

use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use super::sync::{spin_loop, yield_now};

/// The spins and yields of a waiting thread before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest time for which it spins.
    pub spin: Duration,
    /// The number of times that it then offers its processor to others.
    pub yields: u32,
}

impl Patience {
    /// For `threads` threads that wait for each other: spins if the processors this process may
    /// use (its affinity and its control group's quota) are enough for all of them, and otherwise
    /// does not, because who spins then keeps the one who is waited for from running.
    pub fn for_threads(threads: usize) -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        if threads <= processors {
            Self::SPINNING
        } else {
            Self::CROWDED
        }
    }

    /// A processor for every thread. Spins for a few times as long as sleeping and waking take.
    pub const SPINNING: Self = Self {
        spin: Duration::from_micros(20),
        yields: 0,
    };

    /// More threads than processors. The yields let the others arrive before any thread sleeps: 16
    /// threads on 2 processors take 25 µs for a barrier with 3 to 100 of them, 45 with one, 85 with
    /// none, and a pthread barrier takes 48.
    pub const CROWDED: Self = Self {
        spin: Duration::ZERO,
        yields: 10,
    };

    /// Sleeps at once.
    pub const NONE: Self = Self {
        spin: Duration::ZERO,
        yields: 0,
    };
}

/// A thread's experience with spinning: the number of times in a row that it spun in vain.
#[derive(Debug, Default)]
pub(super) struct Experience {
    // Only its own thread uses it: relaxed, and never part of what loom checks.
    in_vain: AtomicU32,
}

impl Experience {
    /// After so many vain waits, the full time again: else two threads who have come to sleep for
    /// each other would go on doing so when the processors are free again.
    const TRY_AGAIN: u32 = 16;
    /// At most so many halvings.
    const HALVINGS: u32 = 6;

    /// Returns the time for which to spin now.
    fn limit(&self, patience: Patience) -> Duration {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        patience.spin / (1 << in_vain.min(Self::HALVINGS))
    }

    fn has_spun_in_vain(&self) {
        let in_vain = self.in_vain.load(Ordering::Relaxed) + 1;
        self.in_vain
            .store(in_vain % Self::TRY_AGAIN, Ordering::Relaxed);
    }

    fn has_spun_to_the_end(&self) {
        self.in_vain.store(0, Ordering::Relaxed);
    }
}

/// Turns between two looks at the clock, a power of two. A look costs about as much as reading
/// a line from another core.
const TURNS_PER_LOOK: u32 = 64;

/// One wait's turns so far.
pub(super) struct Turns<'t> {
    patience: Patience,
    experience: &'t Experience,
    count: u32,
    started: Option<Instant>,
    spinning: bool,
    yields: u32,
}

impl<'t> Turns<'t> {
    /// Begins a wait.
    #[inline]
    pub(super) fn begin(patience: Patience, experience: &'t Experience) -> Self {
        Self {
            patience,
            experience,
            count: 0,
            started: None,
            spinning: !patience.spin.is_zero() && !cfg!(loom),
            yields: if cfg!(loom) { 0 } else { patience.yields },
        }
    }

    /// Passes one turn; false when it is time to sleep.
    #[inline]
    pub(super) fn pass(&mut self) -> bool {
        if self.spinning {
            spin_loop();
            self.count = self.count.wrapping_add(1);
            if self.count.is_multiple_of(TURNS_PER_LOOK) {
                self.look();
            }
            return true;
        }
        if self.yields > 0 {
            self.yields -= 1;
            yield_now();
            return true;
        }
        false
    }

    /// The wait is over.
    #[inline]
    pub(super) fn end(&self) {
        if self.started.is_some() && self.spinning {
            self.experience.has_spun_to_the_end();
        }
    }

    #[cold]
    fn look(&mut self) {
        let started = *self.started.get_or_insert_with(Instant::now);
        if started.elapsed() >= self.experience.limit(self.patience) {
            self.spinning = false;
            self.experience.has_spun_in_vain();
        }
    }
}
