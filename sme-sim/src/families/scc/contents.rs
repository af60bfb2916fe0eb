//! The content of a core's memory: its message passing buffer, which is read all the time, in a
//! row; the rest sparsely. By offset in the core's own numbering.

use std::ops::Range;

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
    #[inline]
    pub(super) fn get(&self, offset: u64) -> (u64, Option<Writer>) {
        match self.buffer.get((offset / 8) as usize) {
            Some(word) => *word,
            None => self.rest.get(offset),
        }
    }

    /// The number of the first of the bytes of the buffer that lie `stride` apart, the first at
    /// `offset`, that `is_it`, among those in `numbers`.
    pub(super) fn find_byte(
        &self,
        (offset, stride): (u64, u64),
        mut numbers: Range<u64>,
        is_it: impl Fn(u8) -> bool,
    ) -> Option<u64> {
        let buffer = &*self.buffer;
        let byte = |word: u64, offset: u64| (word >> (8 * (offset % 8))) as u8;
        if stride == 0 || !stride.is_multiple_of(8) {
            return numbers.find(|number| {
                let offset = offset + stride * number;
                let word = buffer.get((offset / 8) as usize);
                word.is_some_and(|&(word, _)| is_it(byte(word, offset)))
            });
        }
        // They stand at the same place in their words.
        let first = (offset + stride * numbers.start) / 8;
        let words = buffer.get(first as usize..)?.iter();
        let words = words.step_by((stride / 8) as usize);
        let mut words = words.take((numbers.end - numbers.start) as usize);
        let place = words.position(|&(word, _)| is_it(byte(word, offset)))?;
        Some(numbers.start + place as u64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The byte that is found is the first that a loop over all of them finds.
        #[test]
        fn the_first_byte_of_a_row_is_found(
            written in prop::collection::vec((0u64..128, any::<u8>()), 0..20),
            (offset, stride) in (0u64..128, prop::sample::select(vec![0u64, 1, 3, 8, 12, 16, 24])),
            (first, count) in (0u64..6, 0u64..6),
        ) {
            let mut contents = Contents::new(128);
            for (offset, value) in written {
                contents.write(offset, Bytes::byte(offset), value.into(), None);
            }
            let numbers = first..first + count;
            let found = contents.find_byte((offset, stride), numbers.clone(), |byte| byte != 0);
            let is_it = |number: &u64| {
                let offset = offset + stride * number;
                offset < 128 && Bytes::byte(offset).pick(contents.get(offset).0) != 0
            };
            prop_assert_eq!(found, numbers.into_iter().find(is_it));
        }
    }
}
