//! The native memory on real threads, and one thread of it against a model.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use sme_memory::native::{LINE, Native, Patience, Size, run};
use sme_memory::{Atomic, Flag, Flags, Futex, Memory, Place, Route, Until, Word};

const SIZE: Size = Size {
    nodes: 3,
    flag_bytes: 300,
    word_bytes: 300,
};

/// One operation of a thread on its own.
#[derive(Clone, Debug)]
enum Operation {
    Set(Place, u8),
    Read(Place),
    WaitForWhatIsThere(Place),
    Store(Place, u64),
    Load(Place),
    Add(Place, u64),
    Swap(Place, u64),
    Exchange(Place, u64, u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use Operation::*;
    let flag =
        (0..SIZE.nodes, 0..SIZE.flag_bytes).prop_map(|(node, offset)| Place { node, offset });
    let word = (0..SIZE.nodes, 0..SIZE.word_bytes / 8).prop_map(|(node, index)| Place {
        node,
        offset: 8 * index,
    });
    let value = prop_oneof![0..3u64, any::<u64>()];
    let operation = prop_oneof![
        (flag.clone(), 0..128u8).prop_map(|(place, value)| Set(place, value)),
        flag.clone().prop_map(Read),
        flag.prop_map(WaitForWhatIsThere),
        (word.clone(), value.clone()).prop_map(|(place, value)| Store(place, value)),
        word.clone().prop_map(Load),
        (word.clone(), value.clone()).prop_map(|(place, value)| Add(place, value)),
        (word.clone(), value.clone()).prop_map(|(place, value)| Swap(place, value)),
        (word, value.clone(), value).prop_map(|(place, old, new)| Exchange(place, old, new)),
    ];
    prop::collection::vec(operation, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// After any operations of one thread, it finds what it has written, and nothing else has
    /// changed.
    #[test]
    fn one_thread_finds_what_it_wrote(operations in operations()) {
        let memory = Native::new(SIZE, Patience::NONE);
        let mut flags: HashMap<Place, u8> = HashMap::new();
        let mut words: HashMap<Place, u64> = HashMap::new();
        for operation in operations {
            // Any thread will do: the cells are the same for all, and so are both routes.
            let (me, route) = match &operation {
                Operation::Read(place) | Operation::Load(place) => {
                    (memory.thread(place.node), Route::Nearest)
                }
                _ => (memory.thread(0), Route::Global),
            };
            match operation {
                Operation::Set(place, value) => {
                    run(me.set(me.flag(place, route), value));
                    flags.insert(place, value);
                }
                Operation::Read(place) => {
                    let value = run(me.read(me.flag(place, route)));
                    prop_assert_eq!(value, flags.get(&place).copied().unwrap_or(0));
                }
                Operation::WaitForWhatIsThere(place) => {
                    let there = flags.get(&place).copied().unwrap_or(0);
                    let flag = me.flag(place, route);
                    prop_assert_eq!(run(me.wait(flag, Until::Is(there))), there);
                    prop_assert_eq!(run(me.wait(flag, Until::IsNot(there ^ 1))), there);
                }
                Operation::Store(place, value) => {
                    run(me.store(me.word(place, route), value));
                    words.insert(place, value);
                }
                Operation::Load(place) => {
                    let value = run(me.load(me.word(place, route)));
                    prop_assert_eq!(value, words.get(&place).copied().unwrap_or(0));
                }
                Operation::Add(place, amount) => {
                    let word = words.entry(place).or_default();
                    prop_assert_eq!(run(me.fetch_add(me.word(place, route), amount)), *word);
                    *word = word.wrapping_add(amount);
                }
                Operation::Swap(place, value) => {
                    let word = words.entry(place).or_default();
                    prop_assert_eq!(run(me.swap(me.word(place, route), value)), *word);
                    *word = value;
                }
                Operation::Exchange(place, old, new) => {
                    let word = words.entry(place).or_default();
                    let address = me.word(place, route);
                    prop_assert_eq!(run(me.compare_exchange(address, old, new)), *word);
                    if *word == old {
                        *word = new;
                    }
                }
            }
        }
    }
}

/// A token that goes round, for every way to wait.
#[test]
fn a_token_goes_round() {
    let threads = 5;
    let rounds: u8 = if cfg!(miri) { 2 } else { 100 };
    let spin = |micros| Patience {
        spin: Duration::from_micros(micros),
        yields: 0,
    };
    for patience in [Patience::NONE, Patience::CROWDED, spin(1), spin(100)] {
        for stride in [1, LINE as u32] {
            let size = Size {
                nodes: 1,
                flag_bytes: u64::from(threads * stride),
                word_bytes: 8,
            };
            let memory = Native::new(size, patience);
            let flags = Flags {
                first: Flag(0),
                stride,
                count: threads,
            };
            thread::scope(|scope| {
                for id in 0..threads {
                    let me = memory.thread(0);
                    scope.spawn(move || {
                        run(async {
                            for round in 1..=rounds {
                                if id > 0 {
                                    me.wait(flags.at(id - 1), Until::Is(round)).await;
                                } else if round > 1 {
                                    me.wait(flags.at(threads - 1), Until::Is(round - 1)).await;
                                }
                                // Only who has the token adds: no atomic operation is needed.
                                let sum = me.load(Word(0)).await;
                                me.store(Word(0), sum + 1).await;
                                me.set(flags.at(id), round).await;
                            }
                        });
                    });
                }
            });
            let sum = run(memory.thread(0).load(Word(0)));
            assert_eq!(sum, u64::from(threads) * u64::from(rounds), "{patience:?}");
        }
    }
}

#[test]
fn the_futex_wakes_as_many_as_it_is_told() {
    let memory = Native::new(SIZE, Patience::NONE);
    let sleepers = 4;
    thread::scope(|scope| {
        for _ in 0..sleepers {
            let me = memory.thread(0);
            scope.spawn(move || run(me.futex_wait(Word(8), 0)));
        }
        let me = memory.thread(0);
        // It does not sleep on a word that holds something else.
        run(me.futex_wait(Word(8), 1));
        // No thread sleeps on the flag and the word of the same or another number.
        assert_eq!(run(me.futex_wake(Word(16), u32::MAX)), 0);
        let mut woken = 0;
        while woken < sleepers {
            let now = run(me.futex_wake(Word(8), 3));
            assert!(now <= 3);
            woken += now;
            thread::yield_now();
        }
        assert_eq!(woken, sleepers);
        assert_eq!(run(me.futex_wake(Word(8), u32::MAX)), 0);
    });
}

#[test]
fn a_made_up_address_is_refused() {
    let me = Native::new(SIZE, Patience::NONE).thread(0);
    let refused = |operation: &dyn Fn()| {
        assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
    };
    let outside = [
        Place { node: 3, offset: 0 },
        Place {
            node: 0,
            offset: 1 << 40,
        },
    ];
    for place in outside {
        refused(&|| {
            me.flag(place, Route::Nearest);
        });
        refused(&|| {
            me.word(place, Route::Nearest);
        });
    }
    refused(&|| {
        run(me.read(Flag(3 * 384)));
    });
    refused(&|| {
        run(me.load(Word(u64::MAX - 7)));
    });
}

#[test]
#[should_panic = "nothing would ever wake it"]
fn a_foreign_future_is_refused() {
    run(std::future::pending::<()>());
}
