//! The report of a deadlock, completed by a second run of the same machine.
//!
//! No first run keeps the time of the last write of a word ([`Readable::keep_last_writes`]): every
//! run would pay for those that fail. A run can be repeated exactly, so that a second one can keep
//! it for the few words that the threads of the first wait on. It takes as long as the first.

use sme_memory::Place;

use super::family::Readable;
use crate::kernel::peers::Peers;
use crate::observe::failure::Failure;

/// `failure` of a run among `peers`. If it is a deadlock, runs `again`, which is to give the same
/// machine at its beginning, by `workers` threads of the host: the report then says when and by
/// which thread each awaited word was written last. Variables are called what `name` calls the
/// places where they lie.
pub fn explained<E>(
    failure: Failure,
    again: impl FnOnce(&mut dyn Peers) -> Result<Box<dyn Readable>, E>,
    (peers, workers): (&mut dyn Peers, usize),
    name: &dyn Fn(Place) -> Option<String>,
) -> Failure {
    let awaited = failure.awaited();
    if awaited.is_empty() {
        return failure;
    }
    let second = again(peers).ok().and_then(|mut machine| {
        machine.keep_last_writes(&awaited);
        machine.run_among(peers, workers, &mut |_| {}).err()
    });
    // Another process may have gone meanwhile.
    let again = second.filter(|second| matches!(second, Failure::Deadlock { .. }));
    again.unwrap_or(failure).named(name)
}
