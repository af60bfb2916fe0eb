//! The threads of one node see each other as x86-TSO allows, whether their memory is coherent or
//! behind the engine and cached, and whether they load, store, fence, flush or update atomically.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use sme_memory::{Atomic, Cacheable, Flag, Memory, Place, Route, Until, Word};
use sme_sim::machine::Readable;
use sme_sim::parts::contract::ThreadMemory;

use crate::machines::{Program, Shape, cluster, flag, ns, place, shapes};
use crate::tso_oracle::{Act, allows};

#[derive(Clone, Copy, Debug)]
enum Does {
    Load(usize),
    Store(usize),
    Fence,
    Flush(usize),
    WriteBack(bool),
    /// Coherent memory alone has atomic operations: elsewhere these load.
    Swap(usize),
    FetchAdd(usize),
}

/// The layout of the variables.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// Words of one line.
    OneLine,
    /// Two in one line, one in another of the same set.
    TwoLines,
    /// Each in a line of its own, all in one set.
    Apart,
}

/// The home of the variables.
#[derive(Clone, Copy, Debug)]
enum Home {
    /// Another node's, cached.
    Other,
    /// One's own, cached by its global address.
    Own,
    /// The first and the last in another's, cached; the second coherent.
    Mixed,
    /// One's own, coherent.
    Coherent,
}

#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    threads: Vec<Vec<(u64, Does)>>,
    layout: Layout,
    home: Home,
    line: bool,
}

const VARIABLES: usize = 3;

fn cases() -> impl Strategy<Value = Case> {
    let variable = || 0..VARIABLES;
    let does = prop_oneof![
        8 => variable().prop_map(Does::Load),
        8 => variable().prop_map(Does::Store),
        1 => Just(Does::Fence),
        2 => variable().prop_map(Does::Flush),
        1 => any::<bool>().prop_map(Does::WriteBack),
        2 => variable().prop_map(Does::Swap),
        2 => variable().prop_map(Does::FetchAdd),
    ];
    // Mostly together, sometimes apart by about what a miss takes.
    let delay = prop_oneof![4 => Just(0u64), 2 => 0..300u64, 1 => 0..20_000u64];
    let random = prop::collection::vec((delay, does), 1..6);
    // All have copies, and then at about the same time each stores to one variable and loads
    // another, which needs not wait.
    let between = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Does::Fence)),
        1 => variable().prop_map(|variable| Some(Does::Flush(variable))),
        1 => variable().prop_map(|variable| Some(Does::Swap(variable))),
        1 => variable().prop_map(|variable| Some(Does::FetchAdd(variable))),
    ];
    let passing =
        (variable(), variable(), between, 0..60u64).prop_map(|(stores, loads, between, lag)| {
            let mut acts = vec![(0, Does::Load(stores)), (0, Does::Load(loads))];
            acts.push((25_000 + lag, Does::Store(stores)));
            acts.extend(between.map(|does| (0, does)));
            acts.push((0, Does::Load(loads)));
            acts
        });
    let thread = || prop_oneof![2 => random.clone(), 1 => passing.clone()];
    let layout = prop_oneof![
        Just(Layout::OneLine),
        Just(Layout::TwoLines),
        Just(Layout::Apart)
    ];
    let home = prop_oneof![
        3 => Just(Home::Other),
        1 => Just(Home::Own),
        2 => Just(Home::Mixed),
        3 => Just(Home::Coherent),
    ];
    (
        shapes(true),
        prop_oneof![
            3 => prop::collection::vec(thread(), 2..4),
            1 => prop::collection::vec(passing.clone(), 2..4),
        ],
        layout,
        home,
        any::<bool>(),
    )
        .prop_map(|(shape, threads, layout, home, line)| Case {
            shape,
            threads,
            layout,
            home,
            line,
        })
}

/// The observations of a run: the actions of each thread, and memory after it.
struct Shown {
    acts: Vec<Vec<Act>>,
    last: Vec<u64>,
}

const FIRST: [u64; VARIABLES] = [901, 902, 903];

impl Case {
    fn place(&self, variable: usize) -> (Place, Route) {
        let offset = match self.layout {
            Layout::OneLine => 8 * variable as u64,
            Layout::TwoLines => [0, 8, 256][variable],
            Layout::Apart => 256 * variable as u64,
        };
        match self.home {
            Home::Other => (place(1, offset), Route::Cached),
            Home::Own => (place(0, offset), Route::Cached),
            Home::Coherent => (place(0, offset), Route::Nearest),
            Home::Mixed if variable == 1 => (place(0, offset), Route::Nearest),
            Home::Mixed => (place(1, offset), Route::Cached),
        }
    }

    fn word(&self, memory: &ThreadMemory, variable: usize) -> Word {
        let (place, route) = self.place(variable);
        memory.word(place, route)
    }

    async fn run_thread(
        self,
        memory: ThreadMemory,
        thread: usize,
        acts: Arc<Mutex<Vec<Vec<Act>>>>,
    ) {
        for (number, &(delay, does)) in self.threads[thread].iter().enumerate() {
            if delay > 0 {
                memory.delay(ns(delay)).await;
            }
            let has_atomics = |variable| self.place(variable).1 == Route::Nearest;
            let act = match does {
                Does::Swap(variable) if has_atomics(variable) => {
                    let value = (100 * (thread + 1) + number) as u64;
                    let before = memory.swap(self.word(&memory, variable), value).await;
                    Act::Update(variable, before, value)
                }
                Does::FetchAdd(variable) if has_atomics(variable) => {
                    let amount = (10_000 * (thread + 1)) as u64;
                    let word = self.word(&memory, variable);
                    let before = memory.fetch_add(word, amount).await;
                    Act::Update(variable, before, before + amount)
                }
                Does::Load(variable) | Does::Swap(variable) | Does::FetchAdd(variable) => {
                    let value = memory.load(self.word(&memory, variable)).await;
                    Act::Load(variable, value)
                }
                Does::Store(variable) => {
                    let value = (100 * (thread + 1) + number) as u64;
                    memory.store(self.word(&memory, variable), value).await;
                    Act::Store(variable, value)
                }
                Does::Fence => {
                    memory.fence().await;
                    Act::Fence
                }
                // It ends when the write-back has been posted: one's own stores have left before.
                Does::Flush(variable) => {
                    memory.flush(self.word(&memory, variable)).await;
                    Act::Fence
                }
                Does::WriteBack(invalidate) => {
                    if invalidate {
                        memory.write_back_invalidate().await;
                    } else {
                        memory.write_back().await;
                    }
                    Act::Fence
                }
            };
            acts.lock().unwrap()[thread].push(act);
        }
        memory.set(flag(&memory, 0, thread as u32), 1).await;
    }

    /// Reads the values on which all threads of the node agree afterwards.
    async fn look_at_last(self, memory: ThreadMemory, last: Arc<Mutex<Vec<u64>>>) {
        for thread in 0..self.threads.len() {
            let flag = flag(&memory, 0, thread as u32);
            memory.wait(flag, Until::Is(1)).await;
        }
        for variable in 0..VARIABLES {
            let word = self.word(&memory, variable);
            let value = memory.load(word).await;
            last.lock().unwrap().push(value);
        }
        for variable in 0..VARIABLES {
            let word = self.word(&memory, variable);
            memory.flush(word).await;
            let kept = last.lock().unwrap()[variable];
            assert_eq!(memory.load(word).await, kept, "flushed and fetched again");
        }
    }

    fn run(&self) -> Result<Shown, TestCaseError> {
        let threads = self.threads.len() as u32;
        let acts = Arc::new(Mutex::new(vec![Vec::new(); threads as usize]));
        let last = Arc::new(Mutex::new(Vec::new()));
        let writes = if self.line { "line" } else { "mask" };
        let shape = self.shape.clone().and("cache.writeback", writes);
        let setup = shape.setup("mesh:2x1", 2, threads + 1);
        let mut cluster = cluster(setup, |memory, node, core| -> Program {
            if node != 0 {
                return Box::pin(async {});
            }
            if core < threads {
                let acts = Arc::clone(&acts);
                Box::pin(self.clone().run_thread(memory, core as usize, acts))
            } else {
                Box::pin(self.clone().look_at_last(memory, Arc::clone(&last)))
            }
        })
        .unwrap();
        for (variable, &value) in FIRST.iter().enumerate() {
            cluster.preset(self.place(variable).0, value);
            // A neighbour in each line that no thread touches.
            cluster.preset(self.place(variable).0.plus(32), 77);
        }
        prop_assert_eq!(cluster.run(1, |_| {}), Ok(()));
        prop_assert!(cluster.is_quiet(), "something is still under way");
        let last = last.lock().unwrap().clone();
        for (variable, &value) in last.iter().enumerate() {
            prop_assert_eq!(cluster.at_home(self.place(variable).0), value);
            prop_assert_eq!(cluster.at_home(self.place(variable).0.plus(32)), 77);
        }
        let acts = acts.lock().unwrap().clone();
        Ok(Shown { acts, last })
    }
}

proptest! {
    #![proptest_config(Config { cases: 2500, ..Config::default() })]

    #[test]
    fn threads_of_a_node_see_what_tso_allows(case in cases()) {
        let shown = case.run()?;
        prop_assert!(
            allows(&shown.acts, &FIRST, &shown.last, true),
            "{:#?} {:?}",
            shown.acts,
            shown.last
        );
    }
}

/// Were there no store buffers, the oracle would have to refuse some of what is seen.
#[test]
fn stores_do_wait_in_buffers() {
    let mut runner = TestRunner::deterministic();
    let mut relaxed = 0;
    for _ in 0..300 {
        let case = cases().new_tree(&mut runner).unwrap().current();
        let shown = case.run().unwrap();
        relaxed += u32::from(!allows(&shown.acts, &FIRST, &shown.last, false));
    }
    assert!(relaxed > 0, "all runs were sequentially consistent");
}

/// Two threads set a flag each and read the other's, both flags being bytes of one word: a load
/// needs not wait for a buffered store to other bytes, so that both can read 0.
#[test]
fn a_load_passes_a_buffered_store_to_other_bytes_of_its_word() {
    let seen = Arc::new(Mutex::new([9, 9]));
    let flags = |memory: &ThreadMemory| -> [Flag; 2] {
        [0, 1].map(|byte| memory.flag(place(0, byte), Route::Nearest))
    };
    let setup = Shape::prototype().setup("mesh:2x1", 2, 2);
    let mut cluster = cluster(setup, |memory, node, core| -> Program {
        if node != 0 {
            return Box::pin(async {});
        }
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let flags = flags(&memory);
            let (own, other) = (core as usize, 1 - core as usize);
            // Both have a copy, and a store in front that takes microseconds.
            memory.read(flags[other]).await;
            let far = place(1, 0x1000 * (1 + u64::from(core)));
            memory.store(memory.word(far, Route::Cached), 1).await;
            memory.set(flags[own], 1).await;
            let value = memory.read(flags[other]).await;
            seen.lock().unwrap()[own] = value;
        })
    })
    .unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    assert_eq!(*seen.lock().unwrap(), [0, 0]);
}
