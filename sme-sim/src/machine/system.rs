//! The constants of the operating system that several families declare alike.

use super::reader::SectionReader;
use crate::parts::os::{Costs, Delays};

/// The longest of what a system does, in picoseconds.
pub(crate) const SYSTEM_DELAY: u64 = 1_000_000_000_000;

/// Reads them from section `os`.
pub(crate) fn delays(os: &mut SectionReader<'_, '_>) -> Delays {
    let mut cost = |key, meaning| os.time(key, 0..=SYSTEM_DELAY, meaning);
    Delays {
        system_call: cost("system_call", "entering and leaving the kernel"),
        sleep: cost(
            "sleep",
            "from the decision to sleep until the core runs something else",
        ),
        wake: cost(
            "wake",
            "the waker's cost for each thread, one after another",
        ),
        resume: cost("resume", "from being woken until the thread runs"),
        start: cost("start", "starting a thread, the call apart"),
        sharing: Costs {
            switch: cost(
                "switch",
                "from when a thread gives its core away until the next runs",
            ),
            quantum: os.time(
                "quantum",
                1..=SYSTEM_DELAY,
                "how long a thread has its core while others want it",
            ),
        },
    }
}
