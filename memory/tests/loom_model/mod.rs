//! Programs under loom, and the broken protocols that it must find: shared by all that check
//! something over the native memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sme_memory::native::{Protocol, Sound};

/// Runs `program` under every execution in which threads are preempted at most so often (always
/// where none is given); returns how many there were.
pub fn executions(preemptions: Option<usize>, program: impl Fn() + Send + Sync + 'static) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 10_000;
    model.check(move || {
        program();
        counter.fetch_add(1, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed)
}

/// Returns loom's complaint when `program` goes wrong in some execution, as it must.
pub fn complaint(program: impl Fn() + Send + Sync + 'static) -> String {
    let panic = match catch_unwind(AssertUnwindSafe(|| executions(None, program))) {
        Ok(executions) => panic!("nothing wrong is found in {executions} executions"),
        Err(panic) => panic,
    };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&str>().map_or_else(
            |_| String::from("a panic without a message"),
            |text| (*text).to_owned(),
        ),
    }
}

/// A flag's store that publishes nothing.
pub struct RelaxedSet;
impl Protocol for RelaxedSet {
    const SET: Ordering = Ordering::Relaxed;
    const WAIT: Ordering = Sound::WAIT;
    const WAKE: bool = Sound::WAKE;
}

/// A flag's load that sees nothing of what was published.
pub struct RelaxedWait;
impl Protocol for RelaxedWait {
    const SET: Ordering = Sound::SET;
    const WAIT: Ordering = Ordering::Relaxed;
    const WAKE: bool = Sound::WAKE;
}

/// Sleepers that are never woken.
pub struct NoWake;
impl Protocol for NoWake {
    const SET: Ordering = Sound::SET;
    const WAIT: Ordering = Sound::WAIT;
    const WAKE: bool = false;
}
