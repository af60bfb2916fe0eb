//! Cases for the operations of message layers.

use super::cases::{APART, FLAGS, Me, flag, word};
use super::{Found, THREADS, Whole};
use crate::{Flags, Place, Route, Stores, Until, Word};

/// Words of a block: more than three lines, and neither end at that of a line.
const BLOCK: usize = 27;

/// From each thread to the other node and back, beside words that stay as they are.
pub(super) async fn blocks<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    let first = 1 + 40 * u64::from(thread);
    let at = |index: u64| {
        let offset = 8 * index;
        let node = 1 - node;
        memory.word(Place { node, offset }, Route::Global)
    };
    let value = |index: u64| u64::MAX / 64 * (index + 1);
    let sent: Vec<u64> = (0..BLOCK as u64).map(value).collect();
    memory.put(at(first), &sent, None).await;
    let mut came = vec![0; BLOCK];
    memory.get(at(first), &mut came, None).await;
    found.compare("the block", came, sent);
    for beside in [first - 1, first + BLOCK as u64] {
        let word = memory.load(at(beside)).await;
        found.compare("a word beside the block", word, 0);
    }
}

/// Within the thread's own part of its node's memory, beside words that stay as they are.
pub(super) async fn passes<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    let at = |index: u64| {
        let offset = 8 * index;
        memory.word(Place { node, offset }, Route::Nearest)
    };
    let words = BLOCK as u32;
    for stores in [Stores::Cached, Stores::NonTemporal] {
        let first = 1 + 80 * u64::from(thread);
        let (from, to) = (at(first), at(first + 40));
        for index in 0..words.into() {
            memory.store(at(first + index), 1 << index).await;
        }
        memory.fill(to, words, u64::MAX, stores).await;
        found.compare(
            "the sum of a filled block",
            memory.sum(to, words).await,
            0_u64.wrapping_sub(words.into()),
        );
        memory.copy_words(from, to, words, stores).await;
        found.compare(
            "the sum of a copied block",
            memory.sum(to, words).await,
            (1 << words) - 1,
        );
        for beside in [first + 39, first + 40 + u64::from(words)] {
            let word = memory.load(at(beside)).await;
            found.compare("a word beside the copied block", word, 0);
        }
    }
}

/// The flags of node 1 are set one after the other, and each wait finds the one that is new.
pub(super) async fn any_flag<M: Whole>(memory: M, me: Me, found: Found) {
    let order = [3u32, 0, 4, 1, 2];
    let row = |node| Flags {
        first: flag(&memory, node, 0),
        stride: APART as u32,
        count: order.len() as u32,
    };
    let told = |node| flag(&memory, node, 8);
    match me {
        (0, 0) => {
            for (round, index) in (1..).zip(order) {
                memory.set(row(1).at(index), 5).await;
                memory.wait(told(0), Until::Is(round)).await;
            }
        }
        (1, 0) => {
            for (round, index) in (1..).zip(order) {
                let seen = memory.wait_any(row(1), Until::Is(5)).await;
                found.compare("the flag that holds", seen, index);
                memory.set(row(1).at(index), 6).await;
                memory.set(told(0), round).await;
            }
        }
        _ => {}
    }
}

/// Flags of node 1, one of which node 0 sets; the other node's are looked at, too.
pub(super) async fn found_flag<M: Whole>(memory: M, me: Me, found: Found) {
    let row = |home| Flags {
        first: flag(&memory, home, 0),
        stride: APART as u32,
        count: 4,
    };
    let told = flag(&memory, 1, 8);
    match me {
        (0, 0) => {
            memory.set(row(1).at(2), 5).await;
            memory.set(told, 1).await;
            let mine = memory.find_any(row(0), 1, Until::Is(5)).await;
            found.compare("a flag that no thread has set", mine, None);
            let far = memory.find_any(row(1), 0, Until::IsNot(0)).await;
            found.compare("the flag at the other node", far, Some(2));
        }
        (1, 0) => {
            memory.wait(told, Until::Is(1)).await;
            for first in 0..4 {
                let near = memory.find_any(row(1), first, Until::Is(5)).await;
                found.compare("the flag that holds", near, Some(2));
                let none = memory.find_any(row(1), first, Until::Is(6)).await;
                found.compare("a flag that does not hold", none, None);
            }
        }
        _ => {}
    }
}

/// A word in line `line` of node 0, tagged.
fn shared<M: Whole>(memory: &M, line: u64) -> Word {
    let place = Place {
        node: 0,
        offset: APART * line,
    };
    memory.word(place, Route::Tagged)
}

pub(super) async fn tagged<M: Whole>(memory: M, me: Me, found: Found) {
    for round in 1..4u8 {
        let value = |line: u64| 100 * u64::from(round) + line;
        match me {
            (0, 0) => {
                memory.invalidate_tagged().await;
                for line in 0..4 {
                    memory.store(shared(&memory, line), value(line)).await;
                }
                memory.fence().await;
                memory.set(flag(&memory, 1, 0), round).await;
                memory.wait(flag(&memory, 0, 0), Until::Is(round)).await;
            }
            (1, 0) => {
                memory.wait(flag(&memory, 1, 0), Until::Is(round)).await;
                memory.invalidate_tagged().await;
                for line in 0..4 {
                    let loaded = memory.load(shared(&memory, line)).await;
                    found.compare("a word of a tagged line", loaded, value(line));
                }
                memory.set(flag(&memory, 0, 0), round).await;
            }
            _ => {}
        }
    }
}

/// Each thread writes a word of one line; all of them are there in the end.
pub(super) async fn tagged_bytes<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    // The shortest line of any machine has as many words as there are threads.
    let at = |of: Me| {
        let offset = 8 * u64::from(of.0 * THREADS + of.1);
        memory.word(Place { node: 0, offset }, Route::Tagged)
    };
    let value = |of: Me| 10 + u64::from(of.0 * THREADS + of.1);
    memory.invalidate_tagged().await;
    memory
        .store(at((node, thread)), value((node, thread)))
        .await;
    memory.fence().await;
    let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let told = |home, of: Me| {
        let offset = FLAGS + APART * u64::from(of.0 * THREADS + of.1);
        memory.flag(Place { node: home, offset }, Route::Global)
    };
    for home in [0, 1] {
        memory.set(told(home, (node, thread)), 1).await;
    }
    for of in all {
        memory.wait(told(node, of), Until::Is(1)).await;
    }
    memory.invalidate_tagged().await;
    for of in all {
        let loaded = memory.load(at(of)).await;
        found.compare("a word that another thread has stored", loaded, value(of));
    }
}

/// Back and forth between the first threads of both nodes.
pub(super) async fn interrupts<M: Whole>(memory: M, me: Me, found: Found) {
    let word = |node| word(&memory, node, 0);
    match me {
        (0, 0) => {
            for round in 1..4 {
                memory.store(word(1), round).await;
                memory.interrupt(1).await;
                memory.take_interrupt().await;
                found.compare("the answer", memory.load(word(0)).await, round);
            }
        }
        (1, 0) => {
            for round in 1..4 {
                memory.take_interrupt().await;
                found.compare("the question", memory.load(word(1)).await, round);
                memory.store(word(0), round).await;
                memory.interrupt(0).await;
            }
        }
        _ => {}
    }
}

pub(super) async fn time<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    let mut before = 0;
    for line in 0..3 {
        let now = memory.now().await;
        found.compare("the time is later than before", now > before, true);
        before = now;
        // Takes more than a nanosecond on any machine.
        for _ in 0..64 {
            let line = 4 * u64::from(thread) + line;
            memory.load(word(&memory, 1 - node, line)).await;
        }
    }
}
