//! Progress of something that takes long, as the one that simulates or measures tells it. Results
//! never depend on it.

use std::sync::Arc;

use sme_sim::observe::gauge::Gauge;

/// Who is told of progress. Every method may be called from any thread.
pub trait Watch: Sync {
    /// `steps` steps of `what` lie ahead; what was under way before is over.
    fn begin(&self, what: &str, steps: u64);
    /// `steps` more are done.
    fn advance(&self, steps: u64);
    /// Nothing is under way any more.
    fn end(&self);
    /// Notes that a simulation is under way, whose progress `gauge` says.
    fn gauge(&self, _gauge: Arc<Gauge>) {}
}

/// No watcher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn begin(&self, _what: &str, _steps: u64) {}
    fn advance(&self, _steps: u64) {}
    fn end(&self) {}
}
