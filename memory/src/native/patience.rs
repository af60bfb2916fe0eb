//! How long a waiting thread spins before it sleeps. Bounded by *time*: how long a turn of the
//! loop takes depends on the processor (a `pause` is 4 cycles on one and 140 on the next), but
//! what sleeping and waking cost, and so what spinning may cost, does not. Called by
//! [`super::Thread`]; times in [`Duration`].

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use super::sync::{spin_loop, yield_now};

/// What a waiting thread does before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long it spins.
    pub spin: Duration,
    /// How often, after that, it offers its processor to others.
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

    /// A processor for every thread.
    pub const SPINNING: Self = Self {
        spin: Duration::from_micros(50),
        yields: 0,
    };

    /// More threads than processors. The yields let the others arrive without anybody sleeping:
    /// 16 threads on 2 processors take 25 µs for a barrier with 3 to 100 of them, 45 with one,
    /// 85 with none, and a pthread barrier takes 48.
    pub const CROWDED: Self = Self {
        spin: Duration::ZERO,
        yields: 10,
    };

    /// Begins a wait.
    #[inline]
    pub(super) fn begin(self) -> Turns {
        Turns {
            patience: self,
            count: 0,
            started: None,
            spinning: !self.spin.is_zero() && !cfg!(loom),
            yields: if cfg!(loom) { 0 } else { self.yields },
        }
    }
}

/// Turns between two looks at the clock, a power of two. A look costs about as much as reading
/// a line from another core.
const TURNS_PER_LOOK: u32 = 64;

/// One wait's turns so far.
pub(super) struct Turns {
    patience: Patience,
    count: u32,
    started: Option<Instant>,
    spinning: bool,
    yields: u32,
}

impl Turns {
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

    #[cold]
    fn look(&mut self) {
        let started = *self.started.get_or_insert_with(Instant::now);
        self.spinning = started.elapsed() < self.patience.spin;
    }
}
