//! The latency of single accesses on a machine with nothing else going on; [`budget`] splits it.

pub mod budget;

use sme_memory::{Memory, Place, Route};
use sme_sim::machine::{CannotBuild, Machine, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::contract::Span;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

/// Why there is no latency.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// The access cannot be performed.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// The name of the spans that are timed.
const LOAD: &str = "load";

/// Measures the time of one uncached load, from the core's instruction to its value, with nothing
/// else going on: to one's own memory by its global address (`loopback`), or to a neighbour's.
///
/// # Errors
/// [`LatencyError::Failure`] if the load cannot be performed.
pub fn remote_load_latency(machine: &Machine, loopback: bool) -> Result<Time, LatencyError> {
    let loads = 8;
    let shape = machine.shape();
    let setup = Setup::new(shape, 2, 1).on(Topology::for_nodes(2)).seeded(0);
    let home = u32::from(!loopback);
    let recovery = shape.recovery;
    let mut machine = machine.build(setup, move |memory, node, _| async move {
        if node == 0 {
            let place = Place {
                node: home,
                offset: 0,
            };
            let word = memory.word(place, Route::Global);
            for load in 0..=loads {
                memory.begin(Span::new(LOAD, load)).await;
                memory.load(word).await;
                memory.end(Span::new(LOAD, load)).await;
                // Nothing of it is in the way of the next load.
                memory.delay(recovery.times(2)).await;
            }
        }
    })?;
    machine.run(1, |_| {})?;
    let spans = machine.spans().called(LOAD);
    let total = spans[1..]
        .iter()
        .map(|span| span.last_end.since(span.last_begin).as_ps());
    let loads = u64::from(loads);
    Ok(Time::from_ps((total.sum::<u64>() + loads / 2) / loads))
}
