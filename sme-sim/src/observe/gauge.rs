//! How far a run is, for somebody who looks at it from another thread of the host.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Time;

/// Counters that a run keeps up to date while it goes on; about right at any moment. What a node of
/// compact form has run in vain counts here, and only here.
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

    /// It has come to `now`.
    pub(crate) fn has_come_to(&self, now: Time) {
        self.now_ps.fetch_max(now.as_ps(), Ordering::Relaxed);
    }
}
