//! A thread that waits for flags in its own buffer sleeps in the simulator. A program that reads
//! the flags itself, in a loop, must see the same at the same time.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_memory::{AnyFlag, Flag, Flags, Memory, Until};
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::chip::{chip, flag};

/// The way in which the waiting core waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Waiting,
    Reading,
}

/// Waits for any of `flags`; which it was.
async fn any_of(memory: &ThreadMemory, flags: Flags, by: By) -> u32 {
    if by == By::Waiting {
        return memory.wait_any(flags, Until::Is(1)).await;
    }
    let mut index = 0;
    while memory.read(flags.at(index)).await != 1 {
        index = (index + 1) % flags.count;
    }
    index
}

/// Waits for one flag, or all.
async fn all_of(memory: &ThreadMemory, flags: Flags, by: By) {
    match by {
        By::Waiting if flags.count == 1 => {
            memory.wait(flags.first, Until::Is(1)).await;
        }
        By::Waiting => memory.wait_all(flags, Until::Is(1)).await,
        By::Reading => {
            for index in 0..flags.count {
                while memory.read(flags.at(index)).await != 1 {}
            }
        }
    }
}

/// The writer of each flag, and when it sets it.
type Writers = Vec<(u32, u64)>;

/// The end of core 0's wait, in picoseconds, and the value that it returned. `stride` bytes are
/// between flags.
fn seen(writers: &Writers, stride: u32, is_any: bool, by: By) -> (u64, u32) {
    let found = Arc::new(Mutex::new(0));
    let row = |memory: &ThreadMemory| Flags {
        first: Flag(flag(memory, 0, 0).0 + 3),
        stride,
        count: writers.len() as u32,
    };
    let mut machine = chip(&[], 48, |memory, node| {
        let (found, row, writers) = (Arc::clone(&found), row(&memory), writers.clone());
        async move {
            if node == 0 {
                match is_any {
                    true => {
                        let index = any_of(&memory, row, by).await;
                        *found.lock().unwrap() = index;
                    }
                    false => all_of(&memory, row, by).await,
                }
                let span = sme_sim::parts::contract::Span::new("seen", 0);
                memory.begin(span).await;
                return;
            }
            for (index, (writer, at)) in (0..).zip(writers) {
                if writer == node {
                    memory.delay(Time::from_ps(at)).await;
                    memory.set(row.at(index), 1).await;
                }
            }
        }
    });
    machine.run(1, |_| {}).unwrap();
    let at = machine.spans().called("seen")[0].first_begin.as_ps();
    let index = *found.lock().unwrap();
    (at, index)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_wait_ends_when_reading_in_a_loop_would(
        writers in prop::collection::vec((1u32..48, 0u64..2_000_000), 1..12),
        stride in prop_oneof![Just(1u32), Just(8), Just(32)],
        is_any: bool,
    ) {
        let outcome = |by| seen(&writers, stride, is_any, by);
        prop_assert_eq!(outcome(By::Waiting), outcome(By::Reading));
    }
}
