//! Nodes store to their own words of shared lines, all at once, and then write back one after the
//! other: memory at home holds what the order of the write-backs says, and no node has seen what
//! another has not written back.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::Config;
use sme_memory::{Cacheable, Memory, Place, Route, Until};
use sme_sim::machine::Readable;
use sme_sim::parts::contract::ThreadMemory;

use crate::machines::{Program, Shape, cluster, flag, ns, place, read_back, shapes};

const NODES: u32 = 3;
const THREADS: u32 = 2;
const LINES: u64 = 3;

#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    whole_lines: bool,
    /// Of each thread: a delay, and the word that it stores to or loads.
    acts: Vec<Vec<(u64, u64, bool)>>,
    /// In which order nodes write back.
    order: Vec<u32>,
    invalidates: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let act = (0..300u64, 0..8 * LINES, any::<bool>());
    let threads = (NODES * THREADS) as usize;
    (
        shapes(false),
        any::<bool>(),
        prop::collection::vec(prop::collection::vec(act, 0..12), threads),
        Just((0..NODES).collect::<Vec<_>>()).prop_shuffle(),
        any::<bool>(),
    )
        .prop_map(|(shape, whole_lines, acts, order, invalidates)| Case {
            shape,
            whole_lines,
            acts,
            order,
            invalidates,
        })
}

fn at(word: u64) -> Place {
    place((word / 8 % u64::from(NODES)) as u32, 8 * word)
}

fn first(word: u64) -> u64 {
    900 + word
}

fn value(who: u32, act: usize) -> u64 {
    u64::from(who + 1) * 1_000 + act as u64
}

impl Case {
    /// Every word has one thread that may store to it.
    fn writer(word: u64) -> u32 {
        (word * 5 % u64::from(NODES * THREADS)) as u32
    }

    /// Returns the last store of a thread to each of its words.
    fn stored(&self, who: u32) -> Vec<(u64, u64)> {
        let acts = self.acts[who as usize].iter().enumerate();
        acts.filter(|(_, act)| act.2 && Self::writer(act.1) == who)
            .map(|(number, act)| (act.1, value(who, number)))
            .collect()
    }

    async fn thread(self, memory: ThreadMemory, who: u32, wrong: Arc<Mutex<Vec<String>>>) {
        let node = who / THREADS;
        let cached = |word| memory.word(at(word), Route::Cached);
        let leads = who.is_multiple_of(THREADS);
        if leads {
            for word in (0..8 * LINES).step_by(8) {
                memory.load(cached(word)).await;
            }
        }
        // Every node has every line, as memory has it, before any node stores.
        meet(&memory, who, 1).await;
        for (number, &(delay, word, stores)) in self.acts[who as usize].iter().enumerate() {
            memory.delay(ns(delay)).await;
            let writer = Self::writer(word);
            if stores && writer == who {
                memory.store(cached(word), value(who, number)).await;
                continue;
            }
            let seen = memory.load(cached(word)).await;
            let near = writer / THREADS == node;
            let known = |&(of, stored): &(u64, u64)| near && of == word && stored == seen;
            if seen != first(word) && !self.stored(writer).iter().any(known) {
                let text = format!("thread {who} saw {seen} in word {word}");
                wrong.lock().unwrap().push(text);
            }
        }
        meet(&memory, who, 2).await;
        if leads {
            let turn = self.order.iter().position(|&n| n == node).unwrap();
            if turn > 0 {
                memory.wait(flag(&memory, node, 100), Until::Is(1)).await;
            }
            if self.invalidates {
                memory.write_back_invalidate().await;
            } else {
                memory.write_back().await;
            }
            memory.fence().await;
            read_back(&memory, NODES).await;
            if let Some(&next) = self.order.get(turn + 1) {
                memory.set(flag(&memory, next, 100), 1).await;
            }
        }
    }

    /// Returns the values left at home.
    fn left(&self) -> Vec<u64> {
        let mut memory: Vec<u64> = (0..8 * LINES).map(first).collect();
        for &node in &self.order {
            let mut copy: Vec<u64> = (0..8 * LINES).map(first).collect();
            let mut dirty = vec![false; copy.len()];
            for who in node * THREADS..(node + 1) * THREADS {
                for (word, value) in self.stored(who) {
                    copy[word as usize] = value;
                    dirty[word as usize] = true;
                }
            }
            for word in 0..copy.len() {
                let words = self.shape.line_bytes as usize / 8;
                let line = word / words * words..word / words * words + words;
                if dirty[word] || (self.whole_lines && dirty[line].contains(&true)) {
                    memory[word] = copy[word];
                }
            }
        }
        memory
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let writes = if self.whole_lines { "line" } else { "mask" };
        let shape = self.shape.clone().and("cache.writeback", writes);
        let setup = shape.setup("mesh:3x1", NODES, THREADS);
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let mut cluster = cluster(setup, |memory, node, core| -> Program {
            let who = node * THREADS + core;
            Box::pin(self.clone().thread(memory, who, Arc::clone(&wrong)))
        })
        .unwrap();
        for word in 0..8 * LINES {
            cluster.preset(at(word), first(word));
        }
        prop_assert_eq!(cluster.run(1, |_| {}), Ok(()));
        prop_assert!(cluster.is_quiet(), "something is still under way");
        prop_assert_eq!(&*wrong.lock().unwrap(), &Vec::<String>::new());
        let homes: Vec<u64> = (0..8 * LINES)
            .map(|word| cluster.at_home(at(word)))
            .collect();
        prop_assert_eq!(homes, self.left());
        Ok(())
    }
}

/// Waits until all threads are here, for the time that is numbered `turn`: each has flags of its
/// own, for a fast thread comes here again before a slow one has looked.
async fn meet(memory: &ThreadMemory, who: u32, turn: u32) {
    let told = |by: u32, to: u32| {
        let number = 200 * turn + by * THREADS + to % THREADS;
        flag(memory, to / THREADS, number)
    };
    for other in 0..NODES * THREADS {
        memory.set(told(who, other), 1).await;
    }
    for other in 0..NODES * THREADS {
        memory.wait(told(other, who), Until::Is(1)).await;
    }
}

proptest! {
    #![proptest_config(Config { cases: 200, ..Config::default() })]

    #[test]
    fn home_has_what_the_order_of_write_backs_says(case in cases()) {
        case.check()?;
    }
}
