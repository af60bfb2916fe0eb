//! The content of a core's memory: its message passing buffer, which is read all the time, in a row; the
//! rest sparsely. By offset in the core's own numbering.

use crate::parts::line::Bytes;
use crate::parts::memory::{Words, Writer};

/// Words, each with its last writer; all are zero until they are written.
#[derive(Debug)]
pub(super) struct Contents {
    buffer: Box<[(u64, Option<Writer>)]>,
    rest: Words,
}

impl Contents {
    /// With a buffer of so many bytes.
    pub(super) fn new(buffer_bytes: u64) -> Self {
        Self {
            buffer: vec![(0, None); (buffer_bytes / 8) as usize].into(),
            rest: Words::default(),
        }
    }

    /// The word at `offset` and its last writer.
    pub(super) fn get(&self, offset: u64) -> (u64, Option<Writer>) {
        match self.buffer.get((offset / 8) as usize) {
            Some(word) => *word,
            None => self.rest.get(offset),
        }
    }

    /// The eight words of the aligned 64 bytes around `offset`.
    pub(super) fn block(&self, offset: u64) -> [u64; 8] {
        let first = offset & !63;
        match self
            .buffer
            .get((first / 8) as usize..(first / 8) as usize + 8)
        {
            Some(words) => std::array::from_fn(|word| words[word].0),
            None => self.rest.block(offset),
        }
    }

    /// Writes `bytes` of the word at `offset`.
    pub(super) fn write(&mut self, offset: u64, bytes: Bytes, value: u64, by: Option<Writer>) {
        match self.buffer.get_mut((offset / 8) as usize) {
            Some((word, writer)) => {
                *word = bytes.merge(*word, value);
                *writer = by;
            }
            None => self.rest.write(offset, bytes, value, by),
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.buffer) + self.rest.heap_bytes()
    }
}
