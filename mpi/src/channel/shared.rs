//! The [`Area`] of machines with test-and-set registers: the part of each node's shared memory
//! behind its message passing buffer, past the caches.

use std::panic::Location;

use sme_memory::{Blocks, Flag, Memory, Place, Register, Route, TestAndSet, Until};

use super::{Area, Way};
use crate::processor::Processor;

/// The areas as one rank sees them; each rank runs on the node of its number.
#[derive(Debug)]
pub struct Shared<M, P> {
    memory: M,
    processor: P,
    /// The offset in each node's memory at which its area begins, a multiple of eight.
    begin: u64,
    bytes: u64,
}

impl<M, P> Shared<M, P> {
    /// Areas of so many `bytes`, from offset `begin` of each node's memory on.
    pub fn new(memory: M, processor: P, begin: u64, bytes: u64) -> Self {
        Self {
            memory,
            processor,
            begin: begin.next_multiple_of(8),
            bytes,
        }
    }
}

impl<M: Memory + Blocks + TestAndSet, P: Processor> Shared<M, P> {
    fn place(&self, at: Place) -> Place {
        Place {
            node: at.node,
            offset: self.begin + at.offset,
        }
    }

    fn flag(&self, at: Place, way: Way) -> Flag {
        let route = match way {
            Way::Uncached => Route::Global,
            Way::Cached => Route::Cached,
        };
        self.memory.flag(self.place(at), route)
    }

    async fn words(&self, at: Place, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        let first = self.memory.word(self.place(at), Route::Global);
        self.memory.get(first, &mut words, None).await;
        words
    }
}

impl<M: Memory + Blocks + TestAndSet, P: Processor> Area for Shared<M, P> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    async fn read(&self, at: Place, way: Way) -> u8 {
        self.memory.read(self.flag(at, way)).await
    }

    async fn set(&self, at: Place, value: u8, way: Way) {
        self.memory.set(self.flag(at, way), value).await;
    }

    async fn wait(
        &self,
        at: Place,
        until: Until,
        way: Way,
        site: &'static Location<'static>,
    ) -> u8 {
        self.processor.waits(site).await;
        self.memory.wait(self.flag(at, way), until).await
    }

    async fn put(&self, at: Place, bytes: &[u8]) {
        let (first, words) = span(at, bytes.len() as u64);
        if words == 0 {
            return;
        }
        let before = (at.offset - first.offset) as usize;
        let after = words * 8 - before - bytes.len();
        let mut content = vec![0; words * 8];
        // The bytes around the first and the last word stay.
        if before > 0 {
            let word = self.words(first, 1).await[0];
            content[..8].copy_from_slice(&word.to_le_bytes());
        }
        if after > 0 {
            let last = first.plus(words as u64 * 8 - 8);
            let word = self.words(last, 1).await[0];
            content[words * 8 - 8..].copy_from_slice(&word.to_le_bytes());
        }
        content[before..before + bytes.len()].copy_from_slice(bytes);
        let (chunks, _) = content.as_chunks();
        let content: Vec<u64> = chunks
            .iter()
            .map(|chunk| u64::from_le_bytes(*chunk))
            .collect();
        let to = self.memory.word(self.place(first), Route::Global);
        self.memory.put(to, &content, None).await;
        self.memory.fence().await;
    }

    async fn get(&self, at: Place, count: u64) -> Vec<u8> {
        let (first, words) = span(at, count);
        let words = self.words(first, words).await;
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let before = (at.offset - first.offset) as usize;
        bytes.skip(before).take(count as usize).collect()
    }

    async fn take(&self, rank: u32) {
        self.memory.take(lock(rank)).await;
    }

    async fn clear(&self, rank: u32) {
        self.memory.clear(lock(rank)).await;
    }
}

fn lock(rank: u32) -> Register {
    Register {
        node: rank,
        number: 0,
    }
}

/// The words in which so many bytes from `at` on lie: the first, and how many.
fn span(at: Place, count: u64) -> (Place, usize) {
    let first = Place {
        offset: at.offset & !7,
        ..at
    };
    let end = (at.offset + count).next_multiple_of(8);
    let words = if count == 0 {
        0
    } else {
        (end - first.offset) / 8
    };
    (first, words as usize)
}
