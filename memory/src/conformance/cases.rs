//! The programs of the suite. Each is run by all threads of all nodes; what only one of them does
//! stands under its node and number. Offsets name a line of their own for each purpose; flags lie
//! in the upper half.

use super::messages::{
    any_flag, blocks, found_flag, interrupts, passes, tagged, tagged_bytes, time,
};
use super::network::{buffer, collected, counter, mailbox, queue, several};
use super::{Case, Found, Program, THREADS, Whole};
use crate::{Capability, Flag, Flags, Place, Register, Route, Until, Word};

/// The offset at which flags begin.
pub(super) const FLAGS: u64 = 2048;

/// Bytes between variables that must not share a line.
pub(super) const APART: u64 = 64;

/// The word in line `line` of `node`, by a route that every thread can use.
pub(super) fn word<M: Whole>(memory: &M, node: u32, line: u64) -> Word {
    let offset = APART * line;
    memory.word(Place { node, offset }, near(memory, node))
}

/// Flag number `number` of `node`, in a line of its own.
pub(super) fn flag<M: Whole>(memory: &M, node: u32, number: u64) -> Flag {
    let offset = FLAGS + APART * number;
    memory.flag(Place { node, offset }, near(memory, node))
}

/// One's own memory is reached as such, others' through the network.
pub(super) fn near<M: Whole>(memory: &M, node: u32) -> Route {
    match node == memory.node() {
        true => Route::Nearest,
        false => Route::Global,
    }
}

/// The same word through the caches.
fn cached<M: Whole>(memory: &M, node: u32, line: u64) -> Word {
    let offset = APART * line;
    memory.word(Place { node, offset }, Route::Cached)
}

/// The reach of a case's threads: whether loads and stores get to the other node's memory.
#[derive(PartialEq)]
enum Reach {
    Own,
    Far,
}

macro_rules! cases {
    ($($reach:ident $needs:ident: $name:literal => $program:ident;)*) => {
        pub(super) fn all<M: Whole>() -> Vec<Case<M>> {
            vec![$(Case {
                name: $name,
                needs: Capability::$needs,
                is_far: Reach::$reach == Reach::Far,
                program: |memory, node, thread, found| {
                    Box::pin($program(memory, (node, thread), found)) as Program
                },
            }),*]
        }
    };
}

cases! {
    Own Words: "a thread loads what it has stored, and nothing beside it has changed" => own_words;
    Far Words: "a thread loads what it has stored at another node" => far_words;
    Far Words: "a flag is seen only after earlier stores to its node" => message;
    Far Words: "flags side by side are written by different threads" => neighbours;
    Far Words: "a wait for many flags ends when all of them hold" => all_flags;
    Far Words: "a wait for another value returns the one that ended it" => another_value;
    Far Caching: "a copy that was dropped comes again as it is at home" => dropped_copy;
    Far Caching: "what is stored into a copy gets home when it is flushed" => flushed_copy;
    Far Caching: "writing all back keeps what the copies hold" => written_back;
    Far Caching: "dropping all copies lets another node's writes be seen" => all_dropped;
    Far Atomics: "no addition is lost, and no two return the same" => additions;
    Far Atomics: "a swap returns what the one before it has written" => swaps;
    Far Atomics: "of several threads that compare and exchange one succeeds" => one_winner;
    Far Futexes: "a thread that sleeps on a word is woken" => woken;
    Far Futexes: "a thread does not sleep on a word that has changed" => not_asleep;
    Far TestAndSet: "of several threads that test a register one finds it clear" => one_finds_it_clear;
    Far TestAndSet: "the next holder of a register sees what was done under it" => exclusion;
    Far Threads: "a thread that was started sees what was done before, and is waited for" => children;
    Far Threads: "signals to a thread queue, and are taken after what was done before" => signals;
    Far Words: "a block of words arrives whole" => blocks;
    Own Words: "passes over words load, store and copy each" => passes;
    Far AnyFlag: "a wait for any of many flags returns one that holds" => any_flag;
    Far AnyFlag: "a look at many flags finds one that holds, and none where none does" => found_flag;
    Far Tagged: "tagged stores are seen after a fence, once copies are dropped" => tagged;
    Far Tagged: "tagged stores to some bytes of a line leave the others alone" => tagged_bytes;
    Far Interrupts: "an interrupt is taken once, after what was done before it" => interrupts;
    Far Timer: "the time advances, and does not begin at zero" => time;
    Own Network: "what is sent to a buffer is there when the flag is set" => buffer;
    Own Network: "a buffer tells of every so many transfers, from all nodes" => collected;
    Own Network: "messages of a queue lie in its slots in the order of each sender" => queue;
    Own Network: "one transfer reaches several nodes" => several;
    Own Network: "a mailbox counts what came before and what comes later" => counter;
    Own Network: "signals of all nodes fill a mailbox, round after round" => mailbox;
}

pub(super) type Me = (u32, u32);

async fn own_words<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    // A line each, in which every second word is left alone.
    let at = |index: u64| Place {
        node,
        offset: APART * u64::from(thread) + 8 * index,
    };
    let value = |index: u64| u64::MAX / 3 + index;
    for index in [0, 2, 4, 6] {
        let word = memory.word(at(index), Route::Nearest);
        memory.store(word, value(index)).await;
    }
    for index in 0..8 {
        let word = memory.word(at(index), Route::Nearest);
        let expected = if index % 2 == 0 { value(index) } else { 0 };
        found.compare("a word of its own node", memory.load(word).await, expected);
    }
}

async fn far_words<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    for round in 1..4 {
        for line in [0, 1] {
            let line = 2 * u64::from(thread) + line;
            let word = word(&memory, 1 - node, line);
            memory.store(word, 100 * round + line).await;
            let loaded = memory.load(word).await;
            found.compare("a word of the other node", loaded, 100 * round + line);
        }
    }
}

/// Back and forth, a little more each time.
async fn message<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    let number = u64::from(thread);
    let rounds = 1..6u8;
    for round in rounds {
        if node == u32::from(round % 2) {
            for line in 0..4 {
                let word = word(&memory, 1 - node, 4 * number + line);
                memory.store(word, u64::from(round) + line).await;
            }
            memory.set(flag(&memory, 1 - node, number), round).await;
        } else {
            memory
                .wait(flag(&memory, node, number), Until::Is(round))
                .await;
            for line in 0..4 {
                let loaded = memory.load(word(&memory, node, 4 * number + line)).await;
                found.compare("a word of the message", loaded, u64::from(round) + line);
            }
        }
    }
}

async fn neighbours<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    let offset = |of: Me| FLAGS + u64::from(of.0 * THREADS + of.1);
    let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let at = |home, of| {
        memory.flag(
            Place {
                node: home,
                offset: offset(of),
            },
            near(&memory, home),
        )
    };
    let value = |of: Me| 10 + (of.0 * THREADS + of.1) as u8;
    for home in [0, 1] {
        memory
            .set(at(home, (node, thread)), value((node, thread)))
            .await;
    }
    for of in all {
        memory.wait(at(node, of), Until::Is(value(of))).await;
    }
    for of in all {
        let read = memory.read(at(node, of)).await;
        found.compare("a flag among others", read, value(of));
    }
}

async fn all_flags<M: Whole>(memory: M, me: Me, found: Found) {
    const COUNT: u32 = 5;
    let row = |node| Flags {
        first: flag(&memory, node, 0),
        stride: APART as u32,
        count: COUNT,
    };
    match me {
        (0, 0) => {
            for index in (0..COUNT).rev() {
                memory.set(row(1).at(index), 3).await;
                // Which lets the flag be seen long before the next.
                memory.load(word(&memory, 1, 0)).await;
            }
        }
        (1, 0) => {
            let none = Flags { count: 0, ..row(1) };
            memory.wait_all(none, Until::Is(99)).await;
            memory.wait_all(row(1), Until::Is(3)).await;
            for index in 0..COUNT {
                let read = memory.read(row(1).at(index)).await;
                found.compare("a flag after the wait for all", read, 3);
            }
        }
        _ => {}
    }
}

async fn another_value<M: Whole>(memory: M, me: Me, found: Found) {
    match me {
        (0, 0) => memory.set(flag(&memory, 1, 0), 7).await,
        (1, _) => {
            let seen = memory.wait(flag(&memory, 1, 0), Until::IsNot(0)).await;
            found.compare("the value that ended the wait", seen, 7);
        }
        _ => {}
    }
}

/// Node 1 caches a word of node 0, which then changes it.
async fn dropped_copy<M: Whole>(memory: M, me: Me, found: Found) {
    match me {
        (0, 0) => {
            memory.wait(flag(&memory, 0, 0), Until::Is(1)).await;
            memory.store(word(&memory, 0, 0), 5).await;
            memory.fence().await;
            memory.set(flag(&memory, 1, 0), 1).await;
        }
        (1, 0) => {
            let copy = cached(&memory, 0, 0);
            found.compare("the first copy", memory.load(copy).await, 0);
            memory.set(flag(&memory, 0, 0), 1).await;
            memory.wait(flag(&memory, 1, 0), Until::Is(1)).await;
            memory.flush(copy).await;
            found.compare("the copy that came again", memory.load(copy).await, 5);
        }
        _ => {}
    }
}

async fn flushed_copy<M: Whole>(memory: M, me: Me, found: Found) {
    match me {
        (1, 0) => {
            let copy = cached(&memory, 0, 0);
            memory.store(copy, 6).await;
            found.compare("its own store", memory.load(copy).await, 6);
            memory.flush(copy).await;
            // Ends when the write-back has been performed.
            let home = memory.load(word(&memory, 0, 0)).await;
            found.compare("home, as the writer sees it", home, 6);
            memory.set(flag(&memory, 0, 0), 1).await;
        }
        (0, 0) => {
            memory.wait(flag(&memory, 0, 0), Until::Is(1)).await;
            let home = memory.load(word(&memory, 0, 0)).await;
            found.compare("home", home, 6);
        }
        _ => {}
    }
}

async fn written_back<M: Whole>(memory: M, me: Me, found: Found) {
    if me == (1, 0) {
        let lines = 0..4;
        for line in lines.clone() {
            memory.store(cached(&memory, 0, line), 20 + line).await;
        }
        memory.write_back().await;
        for line in lines {
            let home = memory.load(word(&memory, 0, line)).await;
            found.compare("home", home, 20 + line);
            let copy = memory.load(cached(&memory, 0, line)).await;
            found.compare("the copy", copy, 20 + line);
        }
    }
}

async fn all_dropped<M: Whole>(memory: M, me: Me, found: Found) {
    match me {
        (0, 0) => {
            for line in 0..4 {
                memory.store(cached(&memory, 1, line), 30 + line).await;
            }
            memory.write_back_invalidate().await;
            memory.load(word(&memory, 1, 0)).await;
            memory.set(flag(&memory, 1, 0), 1).await;
        }
        (1, 0) => {
            for line in 0..4 {
                memory.load(cached(&memory, 1, line)).await;
            }
            memory.wait(flag(&memory, 1, 0), Until::Is(1)).await;
            memory.write_back_invalidate().await;
            for line in 0..4 {
                let copy = memory.load(cached(&memory, 1, line)).await;
                found.compare("the copy", copy, 30 + line);
            }
        }
        _ => {}
    }
}

/// The repetitions of each thread.
const TIMES: u64 = 4;

/// The threads of node `me.0` have all come here, `line` being theirs.
async fn meet<M: Whole>(memory: &M, me: Me, line: u64) {
    let number = u64::from(me.1);
    memory.set(flag(memory, me.0, line + number), 1).await;
    for other in 0..u64::from(THREADS) {
        memory
            .wait(flag(memory, me.0, line + other), Until::Is(1))
            .await;
    }
}

async fn additions<M: Whole>(memory: M, me: Me, found: Found) {
    let (sum, marks) = (word(&memory, me.0, 0), 8);
    for _ in 0..TIMES {
        let before = memory.fetch_add(sum, 1).await;
        let mark = Place {
            node: me.0,
            offset: APART * marks + 8 * before,
        };
        let mark = memory.word(mark, Route::Nearest);
        found.compare("who had this number before", memory.swap(mark, 1).await, 0);
    }
    meet(&memory, me, 0).await;
    let all = memory.load(sum).await;
    found.compare("the sum", all, TIMES * u64::from(THREADS));
}

/// Each writes numbers of its own; every number but the last is returned to exactly one thread,
/// once.
async fn swaps<M: Whole>(memory: M, me: Me, found: Found) {
    let (token, returned) = (word(&memory, me.0, 0), word(&memory, me.0, 1));
    for time in 0..TIMES {
        let mine = 1 << (TIMES * u64::from(me.1) + time);
        let before = memory.swap(token, mine).await;
        let seen = memory.fetch_add(returned, before).await;
        found.compare("a number that was returned twice", seen & before, 0);
    }
    meet(&memory, me, 0).await;
    if me.1 == 0 {
        let sum = memory.load(returned).await + memory.load(token).await;
        let all = (1 << (TIMES * u64::from(THREADS))) - 1;
        found.compare("the numbers", sum, all);
    }
}

async fn one_winner<M: Whole>(memory: M, me: Me, found: Found) {
    let (prize, winners) = (word(&memory, me.0, 0), word(&memory, me.0, 1));
    let before = memory.compare_exchange(prize, 0, 1 + u64::from(me.1)).await;
    match before {
        0 => {
            memory.fetch_add(winners, 1).await;
        }
        // The exchange has failed and left the other's number in place.
        before => {
            let other = 2 - u64::from(me.1);
            found.compare("who was first", before, other);
            found.compare("the prize", memory.load(prize).await, other);
        }
    }
    meet(&memory, me, 0).await;
    found.compare("winners", memory.load(winners).await, 1);
}

async fn woken<M: Whole>(memory: M, me: Me, found: Found) {
    let (gate, data) = (word(&memory, me.0, 0), word(&memory, me.0, 1));
    if me.1 == 0 {
        while memory.load(gate).await == 0 {
            memory.futex_wait(gate, 0).await;
        }
        found.compare("what was stored before", memory.load(data).await, 9);
    } else {
        // On a simulated machine this takes longer than going to sleep.
        for _ in 0..64 {
            memory.load(word(&memory, 1 - me.0, 2)).await;
        }
        memory.store(data, 9).await;
        memory.swap(gate, 1).await;
        let woken = memory.futex_wake(gate, 5).await;
        found.compare("no more sleep than there are", woken <= 1, true);
        found.compare("no sleeper is left", memory.futex_wake(gate, 5).await, 0);
    }
}

async fn not_asleep<M: Whole>(memory: M, me: Me, found: Found) {
    let gate = word(&memory, me.0, u64::from(me.1));
    memory.swap(gate, 1).await;
    memory.futex_wait(gate, 0).await;
    found.compare("the word", memory.load(gate).await, 1);
}

/// All threads of both nodes, on a register of node 0.
async fn one_finds_it_clear<M: Whole>(memory: M, me: Me, found: Found) {
    let register = Register { node: 0, number: 0 };
    let was_clear = memory.test_and_set(register).await;
    let all = THREADS * 2;
    let at = |of: u32| flag(&memory, 0, u64::from(of));
    let mine = me.0 * THREADS + me.1;
    memory.set(at(mine), if was_clear { 2 } else { 1 }).await;
    if me == (0, 0) {
        let mut winners = 0;
        for of in 0..all {
            winners += u32::from(memory.wait(at(of), Until::IsNot(0)).await == 2);
        }
        found.compare("who found it clear", winners, 1);
        memory.clear(register).await;
        // `clear` is posted: `take` waits until it has been performed.
        memory.take(register).await;
        found.compare("it is set", memory.test_and_set(register).await, false);
    }
}

/// A word of node 0 is counted up past all caches.
async fn exclusion<M: Whole>(memory: M, me: Me, found: Found) {
    let register = Register { node: 0, number: 0 };
    let count = word(&memory, 0, 0);
    for _ in 0..TIMES {
        memory.take(register).await;
        let value = memory.load(count).await;
        memory.store(count, value + 1).await;
        memory.clear(register).await;
    }
    let at = |of: u32| flag(&memory, 0, u64::from(of));
    memory.set(at(me.0 * THREADS + me.1), 1).await;
    if me == (0, 0) {
        for of in 0..2 * THREADS {
            memory.wait(at(of), Until::Is(1)).await;
        }
        let all = memory.load(count).await;
        found.compare("the count", all, TIMES * 2 * u64::from(THREADS));
    }
}

/// A child is sent three signals at once and then more, and answers each.
async fn signals<M: Whole>(memory: M, me: Me, found: Found) {
    let parent = memory.id();
    let sum = word(&memory, me.0, u64::from(me.1));
    let child = move |memory: M| async move {
        for _ in 0..5 {
            let value = memory.take_signal().await;
            let loaded = memory.load(sum).await;
            memory.send_signal(parent, value + loaded).await;
        }
    };
    let child = memory.spawn(None, child).await;
    memory.store(sum, 100).await;
    for value in 1..4 {
        memory.send_signal(child, value).await;
    }
    for value in 1..4 {
        found.compare("an answer", memory.take_signal().await, 100 + value);
    }
    for value in 4..6 {
        memory.store(sum, 10 * value).await;
        memory.send_signal(child, value).await;
        found.compare("an answer", memory.take_signal().await, 11 * value);
    }
    memory.join(child).await;
}

async fn children<M: Whole>(memory: M, me: Me, found: Found) {
    let line = 2 * u64::from(me.1);
    let (to, back) = (word(&memory, me.0, line), word(&memory, me.0, line + 1));
    memory.store(to, 40).await;
    let child = move |memory: M| async move {
        let value = memory.load(to).await;
        memory.store(back, value + 2).await;
    };
    let child = memory.spawn(None, child).await;
    memory.give_way().await;
    memory.join(child).await;
    found.compare("what the child has left", memory.load(back).await, 42);
}
