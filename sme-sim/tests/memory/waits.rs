//! Waits on flags that are cached, while one's own stores to them have not left.

use proptest::prelude::*;
use proptest::test_runner::Config;
use sme_memory::{Flags, Memory, Route, Until};

use crate::machines::{Program, Shape, cluster, ns, place, shapes};

/// Two threads of a node take turns with a row of flags that are cached, one line or several; each
/// sets all and waits for what it has set itself, then for the other.
fn turns(shape: &Shape, stride: u32, all: bool, lag: u64) -> Result<(), TestCaseError> {
    const COUNT: u32 = 3;
    let setup = shape.setup("mesh:2x1", 2, 2);
    let mut cluster = cluster(setup, |memory, node, core| -> Program {
        if node != 0 {
            return Box::pin(async {});
        }
        Box::pin(async move {
            let first = memory.flag(place(1, 0), Route::Cached);
            let flags = Flags {
                first,
                stride,
                count: COUNT,
            };
            for turn in 0..6u8 {
                if u32::from(turn % 2) == core {
                    memory.delay(ns(lag)).await;
                    for index in 0..COUNT {
                        memory.set(flags.at(index), turn + 1).await;
                    }
                }
                if all {
                    memory.wait_all(flags, Until::Is(turn + 1)).await;
                } else {
                    for index in 0..COUNT {
                        memory.wait(flags.at(index), Until::Is(turn + 1)).await;
                    }
                }
                // The other goes on only now.
                let ready = memory.flag(place(0, 0x8000 + 64 * u64::from(core)), Route::Nearest);
                memory.set(ready, turn + 1).await;
                let other = 0x8000 + 64 * u64::from(1 - core);
                let other = memory.flag(place(0, other), Route::Nearest);
                memory.wait(other, Until::Is(turn + 1)).await;
            }
        })
    })
    .unwrap();
    prop_assert_eq!(cluster.run(1, |_| {}), Ok(()));
    prop_assert!(cluster.is_quiet(), "something is still under way");
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 150, ..Config::default() })]

    #[test]
    fn one_sees_what_one_has_set_oneself(
        shape in shapes(true),
        stride in prop_oneof![Just(1u32), Just(8), Just(64), Just(256)],
        all in any::<bool>(),
        lag in 0..2_000u64,
    ) {
        turns(&shape, stride, all, lag)?;
    }
}

/// A flag that a thread has just set to another value does not end its wait with the old one.
#[test]
fn a_wait_for_many_does_not_pass_ones_own_store() {
    let shape = Shape::prototype();
    let mut cluster = cluster(
        shape.setup("mesh:2x1", 2, 2),
        |memory, node, core| -> Program {
            if node != 0 {
                return Box::pin(async {});
            }
            Box::pin(async move {
                let flag = memory.flag(place(1, 0), Route::Cached);
                // Both have copies, so that a store has to wait and a load has not.
                memory.read(flag).await;
                memory.delay(ns(20_000)).await;
                let flags = Flags {
                    first: flag,
                    stride: 1,
                    count: 1,
                };
                if core == 0 {
                    memory.set(flag, 1).await;
                    memory.wait_all(flags, Until::Is(0)).await;
                    // Only what the other has set ends the wait.
                    let told = memory.flag(place(0, 0x8000), Route::Nearest);
                    assert_eq!(memory.read(told).await, 1, "it was its own 0 of before");
                } else {
                    memory.delay(ns(5_000)).await;
                    memory
                        .set(memory.flag(place(0, 0x8000), Route::Nearest), 1)
                        .await;
                    memory.set(flag, 0).await;
                }
            })
        },
    )
    .unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
}

/// A row of flags longer than any stack.
#[test]
fn a_wait_for_very_many_ends() {
    let shape = Shape::prototype();
    let mut cluster = cluster(
        shape.setup("mesh:2x1", 2, 1),
        |memory, node, _| -> Program {
            if node != 0 {
                return Box::pin(async {});
            }
            Box::pin(async move {
                let flags = Flags {
                    first: memory.flag(place(1, 0), Route::Cached),
                    stride: 0,
                    count: 1_000_000,
                };
                memory.wait_all(flags, Until::Is(0)).await;
            })
        },
    )
    .unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
}

/// A wait for flags in coherent memory may end while one of their lines is still on its way, since
/// its flag is the thread's own store. When the line comes, the thread waits for cached flags.
fn two_rows(shape: &Shape, lag: u64) -> Result<(), TestCaseError> {
    let setup = shape.setup("mesh:2x1", 2, 5);
    let mut cluster = cluster(setup, |memory, node, core| -> Program {
        if node != 0 {
            return Box::pin(async {});
        }
        let near = Flags {
            first: memory.flag(place(0, 0x8000), Route::Nearest),
            stride: 64,
            count: 2,
        };
        let far = Flags {
            first: memory.flag(place(1, 0), Route::Cached),
            stride: 64,
            count: 3,
        };
        Box::pin(async move {
            match core {
                0 => {
                    memory.delay(ns(20_000 + lag)).await;
                    // Its store to the second flag stays behind others, while it reads both lines.
                    for line in 0..3 {
                        let other = memory.flag(place(0, 0x9000 + 64 * line), Route::Nearest);
                        memory.set(other, 1).await;
                    }
                    memory.set(near.at(1), 2).await;
                    memory.wait_all(near, Until::IsNot(0)).await;
                    memory.wait_all(far, Until::Is(1)).await;
                    let word = memory.word(place(1, 0x400), Route::Cached);
                    for turn in 0..20 {
                        memory.store(word, turn).await;
                        assert_eq!(memory.load(word).await, turn);
                    }
                }
                // The second line is in demand, and comes later than the first.
                1 | 3 | 4 => {
                    memory.set(near.at(0), 1).await;
                    memory.delay(ns(19_000)).await;
                    for _ in 0..30 {
                        memory.set(near.at(1), 1).await;
                        memory.delay(ns(20 + lag % 100)).await;
                    }
                }
                _ => {
                    memory.wait_all(far, Until::Is(0)).await;
                    memory.delay(ns(19_500 + lag)).await;
                    for index in 0..3 {
                        memory.set(far.at(index), 1).await;
                        memory.delay(ns(lag)).await;
                    }
                }
            }
        })
    })
    .unwrap();
    prop_assert_eq!(cluster.run(1, |_| {}), Ok(()));
    prop_assert!(cluster.is_quiet(), "something is still under way");
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 200, ..Config::default() })]

    #[test]
    fn a_line_that_comes_late_belongs_to_the_wait_before(
        shape in shapes(true),
        lag in 0..2_000u64,
    ) {
        two_rows(&shape, lag)?;
    }
}
