//! Copies of blocks arrive whole, past the caches and through them, and leave what is beside them
//! alone; a reader that keeps its old copy is found out.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_memory::{Blocks, Cacheable, Memory, Own, Place, Route, Tagged, Until, Word};
use sme_sim::parts::contract::ThreadMemory;

use crate::chip::{MEMORY, chip, flag, place};

#[derive(Clone, Debug)]
struct Case {
    home: u32,
    offset: u64,
    words: Vec<u64>,
    route: Route,
    /// Addresses in the own memory of writer and reader.
    near: [Option<u64>; 2],
    /// The reader has a copy from before and keeps it.
    keeps: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let route = prop_oneof![
        Just(Route::Cached),
        Just(Route::Tagged),
        Just(Route::Global)
    ];
    let near = || prop::option::of((0u64..1 << 16).prop_map(|word| 8 * word));
    let offset = prop_oneof![
        (8u64..200).prop_map(|word| 8 * word),
        (8u64..200).prop_map(|word| MEMORY + 8 * word)
    ];
    let words = prop::collection::vec(1u64..u64::MAX, 1..60);
    (
        0u32..48,
        offset,
        words,
        route,
        near(),
        near(),
        any::<bool>(),
    )
        .prop_map(|(home, offset, words, route, from, to, keeps)| Case {
            home,
            offset,
            words,
            route,
            near: [from, to],
            keeps,
        })
}

impl Case {
    /// The word `index` words from the first.
    fn at(&self, memory: &ThreadMemory, index: i64) -> Word {
        let offset = self.offset.wrapping_add_signed(8 * index);
        memory.word(self.place(offset), self.route)
    }

    fn place(&self, offset: u64) -> Place {
        place(self.home, offset)
    }

    /// Drops or writes back the copies of the block's lines.
    async fn flush(&self, memory: &ThreadMemory) {
        match self.route {
            Route::Cached => {
                // Each line once, and its words by one of them.
                let words = -1..=self.words.len() as i64;
                for index in words.step_by(4).chain([self.words.len() as i64]) {
                    memory.flush(self.at(memory, index)).await;
                }
            }
            Route::Tagged => memory.invalidate_tagged().await,
            Route::Nearest | Route::Global => {}
        }
    }
}

async fn program(memory: ThreadMemory, core: u32, case: Arc<Case>, came: Arc<Mutex<Vec<u64>>>) {
    let near = case.near[core as usize].map(Own);
    let count = case.words.len() as i64;
    let mut read = vec![0; case.words.len() + 2];
    if core == 0 {
        memory.wait(flag(&memory, 0, 0), Until::Is(1)).await;
        memory.put(case.at(&memory, 0), &case.words, near).await;
        memory.fence().await;
        if case.route == Route::Cached {
            case.flush(&memory).await;
            memory
                .load(memory.word(case.place(case.offset), Route::Global))
                .await;
        }
        memory.set(flag(&memory, 1, 0), 1).await;
        return;
    }
    memory.get(case.at(&memory, -1), &mut read, near).await;
    memory.set(flag(&memory, 0, 0), 1).await;
    memory.wait(flag(&memory, 1, 0), Until::Is(1)).await;
    if !case.keeps {
        case.flush(&memory).await;
    }
    memory.get(case.at(&memory, -1), &mut read, near).await;
    let last = memory.load(case.at(&memory, count)).await;
    assert_eq!(last, read[read.len() - 1]);
    *came.lock().unwrap() = read;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_block_arrives_whole_or_as_it_was(case in cases()) {
        let came = Arc::default();
        let shared = Arc::new(case.clone());
        let mut machine = chip(&[], 2, |memory, core| {
            program(memory, core, Arc::clone(&shared), Arc::clone(&came))
        });
        machine.check_loads().unwrap();
        machine.run(1, |_| {}).unwrap();
        let report = machine.stale_reads().unwrap();
        let came = std::mem::take(&mut *came.lock().unwrap());
        let (before, after) = (came[0], came[came.len() - 1]);
        prop_assert_eq!((before, after), (0, 0));
        let block = &came[1..came.len() - 1];
        let is_stale = case.keeps && case.route != Route::Global;
        match is_stale {
            true => prop_assert!(block.iter().all(|&word| word == 0)),
            false => prop_assert_eq!(block, &case.words[..]),
        }
        let stale = if is_stale { case.words.len() as u64 } else { 0 };
        prop_assert_eq!(report.stale_reads, stale, "{}", report);
        for (word, offset) in case.words.iter().zip((case.offset..).step_by(8)) {
            prop_assert_eq!(machine.at_home(case.place(offset)), *word);
        }
    }
}
