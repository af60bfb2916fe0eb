//! The progress of a run: reported to its caller, or read from another thread of the host.

use std::sync::atomic::{AtomicU64, Ordering};

use super::spans::Reached;
use crate::time::Time;

/// The progress of a run, as reported to its caller from time to time.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Events so far.
    pub events: u64,
    /// The progress of its threads in their spans.
    pub reached: Reached,
}

impl Progress {
    /// Returns the number of spans called `name` that every thread has surely ended: the last one
    /// begun may not have been ended by any thread yet.
    pub fn finished(&self, name: &str) -> u32 {
        self.reached.begun(name).saturating_sub(1)
    }
}

/// Counters that a run keeps up to date while it goes on; about right at any moment. Events that a
/// node of compact form has run in vain count here, and only here.
#[derive(Debug, Default)]
pub struct Gauge {
    events: AtomicU64,
    now_ps: AtomicU64,
}

impl Gauge {
    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        Time::from_ps(self.now_ps.load(Ordering::Relaxed))
    }

    /// So many `more` events have been simulated.
    #[inline]
    pub(crate) fn has_simulated(&self, more: u64) {
        self.events.fetch_add(more, Ordering::Relaxed);
    }

    /// All in all it is so far.
    pub fn is_at(&self, now: Time, events: u64) {
        self.events.store(events, Ordering::Relaxed);
        self.now_ps.store(now.as_ps(), Ordering::Relaxed);
    }

    /// Notes that the run has reached `now` with at least `events`. The nodes of a compact form
    /// tell of many events at once, which a small machine may never have.
    pub fn is_at_least(&self, now: Time, events: u64) {
        self.events.fetch_max(events, Ordering::Relaxed);
        self.has_come_to(now);
    }

    /// Notes that the run has reached `now`.
    pub(crate) fn has_come_to(&self, now: Time) {
        self.now_ps.fetch_max(now.as_ps(), Ordering::Relaxed);
    }
}
