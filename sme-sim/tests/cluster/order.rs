//! Litmus programs: the order in which threads see stores.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_memory::{Atomic, Flags, Memory, Route, Until};

use sme_sim::machine::{Pinning, System};
use sme_sim::parts::contract::{Span, ThreadMemory};

use crate::programs::{Program, cluster, nothing, ns, place, run, setup, word};

/// The operation that separates a store from the load after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    Fence,
    Atomic,
}

/// Store buffering: each of two cores stores to its own word and loads the other's. Every pair of
/// values that some timing shows.
fn store_buffering(between: Between) -> BTreeSet<(u64, u64)> {
    let mut outcomes = BTreeSet::new();
    for lag in (0..600).step_by(5) {
        let loaded = Arc::new(Mutex::new([u64::MAX; 2]));
        let outcome = run(setup("mesh:1x1", 1, 2), |memory, _, core| {
            let loaded = Arc::clone(&loaded);
            Box::pin(async move {
                let mine = word(&memory, 0, 64 * u64::from(core));
                let other = word(&memory, 0, 64 * u64::from(1 - core));
                // Both have copies of both lines, so that the loads need not wait.
                memory.load(mine).await;
                memory.load(other).await;
                let start = if core == 0 { 2_000 + lag } else { 2_300 };
                memory.delay(ns(start)).await;
                memory.store(mine, 1).await;
                match between {
                    Between::Nothing => {}
                    Between::Fence => memory.fence().await,
                    Between::Atomic => {
                        memory
                            .fetch_add(word(&memory, 0, 256 + 64 * u64::from(core)), 1)
                            .await;
                    }
                }
                let value = memory.load(other).await;
                assert_eq!(memory.load(mine).await, 1, "one's own store is seen");
                loaded.lock().unwrap()[core as usize] = value;
            })
        });
        assert_eq!(outcome, Ok(()));
        let [first, second] = *loaded.lock().unwrap();
        outcomes.insert((first, second));
    }
    outcomes
}

#[test]
fn a_load_passes_an_earlier_store_but_no_fence() {
    let all: BTreeSet<_> = [(0, 0), (0, 1), (1, 0)].into();
    assert_eq!(store_buffering(Between::Nothing), all);
    let fenced = store_buffering(Between::Fence);
    assert!(!fenced.contains(&(0, 0)), "{fenced:?}");
    assert!(fenced.len() >= 2, "the timing decides: {fenced:?}");
    let locked = store_buffering(Between::Atomic);
    assert!(!locked.contains(&(0, 0)), "{locked:?}");
}

/// One message passed: words written, then a flag set; who sees the flag must see the words.
#[derive(Clone, Debug)]
struct Message {
    /// Producer, home of words and flag, consumer, as node and thread.
    producer: (u32, u32),
    home: u32,
    consumer: (u32, u32),
    route: Route,
    /// The places where the words lie, in words.
    words: Vec<u64>,
    flag: u64,
    /// The consumer has read all words before, and has copies of them.
    warm: bool,
    /// The flag is waited for among others that are set already.
    row: bool,
    lag: u64,
    /// Threads that store to neighbouring words meanwhile.
    noise: u32,
    setup: (u64, Pinning),
}

fn messages() -> impl Strategy<Value = Message> {
    let who = (0..4u32, 0..4u32);
    let what = (
        // Even ones; in the odd ones of the same lines others store meanwhile.
        prop::collection::btree_set((0..20u64).prop_map(|half| 2 * half), 1..6),
        40..60u64,
        any::<bool>(),
        any::<bool>(),
    );
    let how = (
        0..3_000u64,
        0..16u32,
        any::<u64>(),
        any::<bool>(),
        any::<bool>(),
    );
    (who.clone(), 0..4u32, who, what, how).prop_filter_map(
        "two threads",
        |(producer, home, consumer, what, how)| {
            let (words, flag, warm, row) = what;
            let (lag, noise, seed, scatter, global) = how;
            (producer != consumer).then(|| Message {
                producer,
                home,
                consumer,
                route: if global {
                    Route::Global
                } else {
                    Route::Nearest
                },
                words: words.into_iter().collect(),
                flag,
                warm,
                row,
                lag,
                noise,
                setup: (
                    seed,
                    if scatter {
                        Pinning::Scatter
                    } else {
                        Pinning::Compact
                    },
                ),
            })
        },
    )
}

impl Message {
    async fn produce(self, memory: ThreadMemory) {
        memory.delay(ns(5_000 + self.lag)).await;
        for &at in &self.words {
            let word = memory.word(place(self.home, 8 * at), self.route);
            memory.store(word, 1_000 + at).await;
        }
        let flag = memory.flag(place(self.home, 8 * self.flag), self.route);
        memory.set(flag, 1).await;
    }

    async fn consume(self, memory: ThreadMemory, seen: Arc<Mutex<Vec<u64>>>) {
        if self.warm {
            for &at in &self.words {
                memory
                    .load(memory.word(place(self.home, 8 * at), self.route))
                    .await;
            }
        }
        let flag = memory.flag(place(self.home, 8 * self.flag), self.route);
        if self.row {
            // Flags that no thread sets stand before it, and hold what ends the wait: 0 is not 2.
            let first = memory.flag(place(self.home, 8 * self.flag - 16), self.route);
            let flags = Flags {
                first,
                stride: 8,
                count: 2,
            };
            memory.wait_all(flags, Until::IsNot(2)).await;
        }
        memory.wait(flag, Until::Is(1)).await;
        for &at in &self.words {
            let word = memory.word(place(self.home, 8 * at), self.route);
            let value = memory.load(word).await;
            seen.lock().unwrap().push(value);
        }
    }

    /// Stores to words that no thread reads, in the same lines and through the same engines.
    async fn disturb(self, memory: ThreadMemory, number: u32) {
        for at in 0..12u64 {
            let offset = 8 * (64 + (at * 7 + u64::from(number)) % 32);
            let near = 8 * (2 * ((at * 5 + u64::from(number)) % 20) + 1);
            let word = memory.word(place(self.home, offset), self.route);
            memory.store(word, at).await;
            memory
                .store(memory.word(place(self.home, near), self.route), at)
                .await;
            memory.delay(ns(137 * (at + u64::from(number)))).await;
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let (seed, pinning) = self.setup;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let setup = setup("torus:3x2", 4, 4).with(|setup| setup.seeded(seed).pinned(pinning));
        let outcome = run(setup, |memory, node, core| -> Program {
            let message = self.clone();
            let number = node * 4 + core;
            if (node, core) == self.producer {
                Box::pin(message.produce(memory))
            } else if (node, core) == self.consumer {
                Box::pin(message.consume(memory, Arc::clone(&seen)))
            } else if number < self.noise {
                Box::pin(message.disturb(memory, number))
            } else {
                nothing()
            }
        });
        prop_assert_eq!(outcome, Ok(()));
        let expected: Vec<u64> = self.words.iter().map(|at| 1_000 + at).collect();
        let seen = seen.lock().unwrap();
        prop_assert_eq!(&*seen, &expected);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn who_sees_the_flag_sees_what_was_stored_before_it(message in messages()) {
        message.check()?;
    }
}

/// A posted store is not acknowledged: one to a node whose link is crowded is performed after a
/// later one to another node. (Were it not so, the simulator would hide a bug of programs.)
#[test]
fn stores_to_two_nodes_can_be_performed_in_the_other_order() {
    let old = (1..12).any(|crowd| {
        let seen = Arc::new(Mutex::new(None));
        let outcome = run(setup("mesh:4x4", 16, 16), |memory, node, core| -> Program {
            let data = word(&memory, 15, 0);
            let flag = memory.flag(place(12, 0), Route::Nearest);
            let seen = Arc::clone(&seen);
            match (node, core) {
                (0, 0) => Box::pin(async move {
                    memory.delay(ns(6_000)).await;
                    memory.store(data, 1).await;
                    memory.set(flag, 1).await;
                }),
                (12, 0) => Box::pin(async move {
                    memory.wait(flag, Until::Is(1)).await;
                    let value = memory.load(data).await;
                    *seen.lock().unwrap() = Some(value);
                }),
                // They use the column that leads to node 15, where the store comes from as well.
                (1..=3, core) if core < crowd => Box::pin(async move {
                    for at in 1..30 {
                        memory
                            .store(word(&memory, 15, 64 * u64::from(core) + 1024 * at), 1)
                            .await;
                    }
                }),
                _ => nothing(),
            }
        });
        assert_eq!(outcome, Ok(()));
        let seen = seen.lock().unwrap();
        *seen == Some(0)
    });
    assert!(old, "the load never overtook the store");
}

/// A thread's own uncached accesses stay in program order, a wait for many flags too.
#[test]
fn a_wait_behind_the_engine_does_not_pass_ones_own_store() {
    for stores in 1..6u64 {
        let outcome = run(setup("mesh:1x1", 1, 1), |memory, _, _| {
            Box::pin(async move {
                let flag = |at| memory.flag(place(0, 64 * at), Route::Global);
                for at in 0..stores {
                    memory.set(flag(at), 1).await;
                }
                let flags = Flags {
                    first: flag(stores - 1),
                    stride: 64,
                    count: 1,
                };
                memory.wait_all(flags, Until::IsNot(0)).await;
                let last = memory.read(flag(stores - 1)).await;
                memory.set(flag(stores - 1), 2).await;
                memory.wait_all(flags, Until::IsNot(1)).await;
                assert_eq!(memory.read(flag(stores - 1)).await, 2, "after {last}");
                // It holds 3 by then in this thread's order: what was there before must not show.
                for at in 0..stores {
                    memory
                        .set(memory.flag(place(0, 4096 + 64 * at), Route::Global), 1)
                        .await;
                }
                memory.set(flag(stores - 1), 3).await;
                memory.wait_all(flags, Until::IsNot(3)).await;
            })
        });
        assert!(
            matches!(
                outcome,
                Err(sme_sim::observe::failure::Failure::Deadlock { .. })
            ),
            "the last wait saw the value before the thread's own store: {outcome:?}"
        );
    }
}

/// Parts of a word just stored are seen as well: the load waits until the store has left.
#[test]
fn a_byte_of_ones_own_buffered_word_is_seen() {
    for route in [Route::Nearest, Route::Global] {
        let outcome = run(setup("mesh:1x1", 1, 2), |memory, _, core| {
            Box::pin(async move {
                // Both have copies, so the store has to wait for the line, and a load has not.
                memory.load(memory.word(place(0, 8), route)).await;
                if core == 1 {
                    return;
                }
                memory.delay(ns(5_000)).await;
                memory.store(memory.word(place(0, 8), route), 0x0302).await;
                assert_eq!(memory.read(memory.flag(place(0, 9), route)).await, 3);
                memory.set(memory.flag(place(0, 8), route), 7).await;
                assert_eq!(memory.load(memory.word(place(0, 8), route)).await, 0x0307);
            })
        });
        assert_eq!(outcome, Ok(()));
    }
}

/// A store that finds the buffer full waits until one has left, not until all have.
#[test]
fn a_full_store_buffer_admits_a_store_as_soon_as_one_has_left() {
    const STORES: u32 = 40;
    // To memory behind the engine, past the caches and through them, and to the node's own.
    for (route, home) in [(Route::Global, 1), (Route::Cached, 1), (Route::Nearest, 0)] {
        let cluster = cluster(setup("mesh:2x1", 2, 1), |memory, node, _| async move {
            for number in 0..if node == 0 { STORES } else { 0 } {
                memory.begin(Span::new("store", number)).await;
                let place = place(home, 4096 + 64 * u64::from(number));
                memory.store(memory.word(place, route), 1).await;
                memory.end(Span::new("store", number)).await;
            }
        });
        let mut cluster = cluster.unwrap();
        assert_eq!(cluster.run(1, |_| {}), Ok(()));
        let spans = cluster.spans().called("store");
        let took = spans
            .iter()
            .map(|span| span.last_end.since(span.first_begin).as_ns());
        let took: Vec<f64> = took.skip(10).collect();
        let (least, most) = (
            took.iter().copied().fold(f64::INFINITY, f64::min),
            took.iter().copied().fold(0.0, f64::max),
        );
        assert!(
            most < 2.0 * least,
            "{route:?}: stores in a row take from {least} to {most} ns"
        );
    }
}
