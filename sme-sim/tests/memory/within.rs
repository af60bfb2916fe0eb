//! A message within a node: words stored through the caches, then a flag by any of its addresses. A
//! thread that sees the flag sees the words, without any flush.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::Config;
use sme_memory::{Memory, Route, Until};

use crate::machines::{Program, Shape, cluster, ns, place, shapes};

#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    /// The places where the words are, in words, and whether in one's own memory.
    words: Vec<(u64, bool)>,
    /// Home of the flag, and how it is reached.
    flag: (u32, Route),
    /// The receiver, or both, have copies of the words.
    warm: (bool, bool),
    lag: u64,
    /// Stores of a third thread to neighbouring words.
    noise: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let flag = prop_oneof![
        2 => Just((0, Route::Nearest)),
        2 => Just((0, Route::Global)),
        1 => Just((1, Route::Global)),
        1 => Just((1, Route::Cached)),
    ];
    (
        shapes(true),
        prop::collection::vec((0..24u64, any::<bool>()), 1..6),
        flag,
        any::<(bool, bool)>(),
        0..2_000u64,
        0..20u64,
    )
        .prop_map(|(shape, words, flag, warm, lag, noise)| Case {
            shape,
            words,
            flag,
            warm,
            lag,
            noise,
        })
}

impl Case {
    fn check(&self) -> Result<(), TestCaseError> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let setup = self.shape.setup("mesh:2x1", 2, 3);
        let mut cluster = cluster(setup, |memory, node, core| -> Program {
            if node != 0 {
                return Box::pin(async {});
            }
            let case = self.clone();
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                let word = |at: u64, own: bool| {
                    let home = if own { 0 } else { 1 };
                    memory.word(place(home, 16 * at), Route::Cached)
                };
                let flag = memory.flag(place(case.flag.0, 0x8000), case.flag.1);
                match core {
                    0 => {
                        if case.warm.0 {
                            for &(at, own) in &case.words {
                                memory.load(word(at, own)).await;
                            }
                        }
                        memory.delay(ns(10_000 + case.lag)).await;
                        for (number, &(at, own)) in case.words.iter().enumerate() {
                            memory.store(word(at, own), 50 + number as u64).await;
                        }
                        memory.set(flag, 1).await;
                    }
                    1 => {
                        if case.warm.1 {
                            for &(at, own) in &case.words {
                                memory.load(word(at, own)).await;
                            }
                        }
                        memory.wait(flag, Until::Is(1)).await;
                        // The last store comes first: it is the one not to be missed.
                        for &(at, own) in case.words.iter().rev() {
                            let value = memory.load(word(at, own)).await;
                            seen.lock().unwrap().push(value);
                        }
                    }
                    _ => {
                        for number in 0..case.noise {
                            let (at, own) = case.words[number as usize % case.words.len()];
                            let home = if own { 0 } else { 1 };
                            let near = place(home, 16 * at + 8);
                            memory.store(memory.word(near, Route::Cached), number).await;
                            memory.delay(ns(700 + case.lag)).await;
                        }
                    }
                }
            })
        })
        .unwrap();
        prop_assert_eq!(cluster.run(1, |_| {}), Ok(()));
        prop_assert!(cluster.is_quiet(), "something is still under way");
        let last = |of: &(u64, bool)| {
            let number = self.words.iter().rposition(|word| word == of);
            number.map(|number| 50 + number as u64)
        };
        let expected: Option<Vec<u64>> = self.words.iter().rev().map(last).collect();
        prop_assert_eq!(Some(seen.lock().unwrap().clone()), expected);
        Ok(())
    }
}

proptest! {
    #![proptest_config(Config { cases: 200, ..Config::default() })]

    #[test]
    fn who_sees_the_flag_sees_the_words(case in cases()) {
        case.check()?;
    }
}
