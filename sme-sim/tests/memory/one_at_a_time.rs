//! One operation after the other, handed from thread to thread and node to node: what each sees is
//! known exactly. The model is one cache for each node, as large as need be, over one memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::Config;
use sme_memory::{Cacheable, Memory, Place, Route, Until};
use sme_sim::machine::Readable;
use sme_sim::parts::contract::ThreadMemory;

use crate::machines::{Program, Shape, cluster, flag, place, read_back, shapes};

const NODES: u32 = 3;
const THREADS: u32 = 2;
/// Blocks of 64 bytes at each home, of one line or two.
const BLOCKS: u64 = 2;

#[derive(Clone, Copy, Debug)]
enum Does {
    Load,
    Store,
    /// A byte of the word, as a flag.
    Set(u64),
    Read(u64),
    LoadUncached,
    StoreUncached,
    SetUncached(u64),
    Flush,
    /// The same, named by the other address.
    FlushUncached,
    WriteBack,
    WriteBackInvalidate,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    node: u32,
    thread: u32,
    home: u32,
    block: u64,
    word: u64,
    does: Does,
}

impl Step {
    fn place(&self) -> Place {
        place(self.home, self.offset())
    }

    fn offset(&self) -> u64 {
        64 * self.block + 8 * self.word
    }

    fn value(number: usize) -> u64 {
        0x0101_0101_0101_0101 * (number as u64 + 1)
    }

    /// Performs it; what was seen.
    async fn perform(&self, memory: &ThreadMemory, number: usize) -> u64 {
        let at = self.place();
        let cached = memory.word(at, Route::Cached);
        let uncached = memory.word(at, Route::Global);
        let value = Self::value(number);
        match self.does {
            Does::Load => return memory.load(cached).await,
            Does::LoadUncached => return memory.load(uncached).await,
            Does::Read(byte) => {
                let flag = memory.flag(at.plus(byte), Route::Cached);
                return u64::from(memory.read(flag).await);
            }
            Does::Store => memory.store(cached, value).await,
            Does::StoreUncached => memory.store(uncached, value).await,
            Does::Set(byte) => {
                let flag = memory.flag(at.plus(byte), Route::Cached);
                memory.set(flag, value as u8).await;
            }
            Does::SetUncached(byte) => {
                let flag = memory.flag(at.plus(byte), Route::Global);
                memory.set(flag, value as u8).await;
            }
            Does::Flush => memory.flush(cached).await,
            Does::FlushUncached => memory.flush(uncached).await,
            Does::WriteBack => memory.write_back().await,
            Does::WriteBackInvalidate => memory.write_back_invalidate().await,
        }
        0
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let byte = || 0..8u64;
    let does = prop_oneof![
        6 => Just(Does::Load),
        6 => Just(Does::Store),
        2 => byte().prop_map(Does::Set),
        2 => byte().prop_map(Does::Read),
        3 => Just(Does::LoadUncached),
        2 => Just(Does::StoreUncached),
        1 => byte().prop_map(Does::SetUncached),
        2 => Just(Does::Flush),
        1 => Just(Does::FlushUncached),
        1 => Just(Does::WriteBack),
        1 => Just(Does::WriteBackInvalidate),
    ];
    let step = (0..NODES, 0..THREADS, 0..2u32, 0..BLOCKS, 2..6u64, does).prop_map(
        |(node, thread, home, block, word, does)| Step {
            node,
            thread,
            home,
            block,
            word,
            does,
        },
    );
    prop::collection::vec(step, 1..60)
}

type Line = ([u8; 64], [bool; 64]);

/// The model. Of a line of 32 bytes only so many of its 64 are used.
struct Model {
    line_bytes: u64,
    memory: BTreeMap<(u32, u64), [u8; 64]>,
    caches: Vec<BTreeMap<(u32, u64), Line>>,
    whole_lines: bool,
}

impl Model {
    fn new(line_bytes: u64, whole_lines: bool) -> Self {
        let mut memory = BTreeMap::new();
        for home in 0..NODES {
            for line in 0..64 * BLOCKS / line_bytes {
                let bytes =
                    std::array::from_fn(|byte| first(home, line * line_bytes + byte as u64));
                memory.insert((home, line), bytes);
            }
        }
        Self {
            line_bytes,
            memory,
            caches: vec![BTreeMap::new(); NODES as usize],
            whole_lines,
        }
    }

    fn copy(&mut self, node: u32, key: (u32, u64)) -> &mut Line {
        let memory = self.memory[&key];
        let cache = &mut self.caches[node as usize];
        cache.entry(key).or_insert((memory, [false; 64]))
    }

    fn write_back(&mut self, node: u32, key: (u32, u64), drops: bool) {
        let Some((bytes, dirty)) = self.caches[node as usize].get_mut(&key) else {
            return;
        };
        let any = dirty.contains(&true);
        let home = self.memory.get_mut(&key).unwrap();
        for byte in 0..64 {
            if dirty[byte] || (any && self.whole_lines) {
                home[byte] = bytes[byte];
            }
        }
        *dirty = [false; 64];
        if drops {
            self.caches[node as usize].remove(&key);
        }
    }

    fn all(&mut self, node: u32, drops: bool) {
        let keys: Vec<_> = self.caches[node as usize].keys().copied().collect();
        for key in keys {
            self.write_back(node, key, drops);
        }
    }

    fn perform(&mut self, step: &Step, number: usize) -> u64 {
        let key = (step.home, step.offset() / self.line_bytes);
        let node = step.node;
        let at = (step.offset() % self.line_bytes) as usize;
        let whole = |bytes: &[u8; 64]| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let value = Step::value(number).to_le_bytes();
        match step.does {
            Does::Load => return whole(&self.copy(node, key).0),
            Does::LoadUncached => return whole(&self.memory[&key]),
            Does::Read(byte) => {
                return u64::from(self.copy(node, key).0[at + byte as usize]);
            }
            Does::Store => {
                let (bytes, dirty) = self.copy(node, key);
                bytes[at..at + 8].copy_from_slice(&value);
                dirty[at..at + 8].fill(true);
            }
            Does::Set(byte) => {
                let (bytes, dirty) = self.copy(node, key);
                bytes[at + byte as usize] = value[0];
                dirty[at + byte as usize] = true;
            }
            Does::StoreUncached => {
                self.memory.get_mut(&key).unwrap()[at..at + 8].copy_from_slice(&value);
            }
            Does::SetUncached(byte) => {
                self.memory.get_mut(&key).unwrap()[at + byte as usize] = value[0];
            }
            Does::Flush | Does::FlushUncached => self.write_back(node, key, true),
            Does::WriteBack => self.all(node, false),
            Does::WriteBackInvalidate => self.all(node, true),
        }
        0
    }
}

/// Returns the initial value in memory.
fn first(home: u32, offset: u64) -> u8 {
    (97 + u64::from(home) * 11 + offset / 64 * 5 + offset % 8) as u8
}

fn first_word(home: u32, offset: u64) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| {
        first(home, offset + byte as u64)
    }))
}

/// A thread performs its steps when their turn has come, and passes on when their effects have been
/// performed everywhere.
async fn thread(memory: ThreadMemory, me: u32, steps: Arc<[Step]>, seen: Arc<Mutex<Vec<u64>>>) {
    let who = |step: &Step| step.node * THREADS + step.thread;
    let mine = |node, number| flag(&memory, node, number);
    for (number, step) in steps.iter().enumerate() {
        if who(step) != me {
            continue;
        }
        if number > 0 && who(&steps[number - 1]) != me {
            let turn = Until::Is(number as u8);
            memory.wait(mine(step.node, me), turn).await;
        }
        let value = step.perform(&memory, number).await;
        memory.fence().await;
        read_back(&memory, NODES).await;
        seen.lock().unwrap().push(value);
        if let Some(next) = steps.get(number + 1)
            && who(next) != me
        {
            let turn = number as u8 + 1;
            memory.set(mine(next.node, who(next)), turn).await;
        }
    }
}

fn check(shape: &Shape, whole_lines: bool, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let writes = if whole_lines { "line" } else { "mask" };
    let setup = shape
        .clone()
        .and("cache.writeback", writes)
        .setup("mesh:3x1", NODES, THREADS);
    let steps: Arc<[Step]> = steps.into();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut cluster = cluster(setup, |memory, node, core| -> Program {
        let me = node * THREADS + core;
        Box::pin(thread(memory, me, Arc::clone(&steps), Arc::clone(&seen)))
    })
    .unwrap();
    for home in 0..NODES {
        for offset in (0..64 * BLOCKS).step_by(8) {
            cluster.preset(place(home, offset), first_word(home, offset));
        }
    }
    prop_assert_eq!(cluster.run(1, |_| {}), Ok(()));
    prop_assert!(cluster.is_quiet(), "something is still under way");
    let line_bytes = shape.line_bytes;
    let mut model = Model::new(line_bytes, whole_lines);
    let seen = seen.lock().unwrap();
    for (number, step) in steps.iter().enumerate() {
        let expected = model.perform(step, number);
        prop_assert_eq!(seen[number], expected, "step {} {:?}", number, step);
    }
    for (&(home, line), bytes) in &model.memory {
        for (word, bytes) in (0..line_bytes / 8).zip(bytes.chunks(8)) {
            let at = place(home, line_bytes * line + 8 * word);
            let expected = u64::from_le_bytes(bytes.try_into().unwrap());
            prop_assert_eq!(cluster.at_home(at), expected, "at home {:?}", at);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 200, ..Config::default() })]

    #[test]
    fn each_sees_what_its_node_has_or_memory(
        shape in shapes(false),
        whole_lines in any::<bool>(),
        steps in steps(),
    ) {
        check(&shape, whole_lines, steps)?;
    }
}
