//! The memory of a node, word by word, with the last writer of each.

use rustc_hash::FxHashMap;

use super::line::Bytes;

/// Node and number of a thread.
pub type Writer = (u32, u16);

/// Words by their offset; all are zero until they are written.
#[derive(Debug, Default)]
pub struct Words(FxHashMap<u64, Box<Page>>);

/// Words of a page: programs write to words that lie side by side.
const PAGE: usize = 64;

/// The words of an aligned page, each with its last writer.
#[derive(Debug)]
struct Page {
    words: [u64; PAGE],
    writers: [Option<Writer>; PAGE],
}

/// The page of the word at `offset`, and the word's place there.
fn place(offset: u64) -> (u64, usize) {
    let word = offset / 8;
    (word / PAGE as u64, (word % PAGE as u64) as usize)
}

impl Words {
    /// The word at `offset` and its last writer.
    pub fn get(&self, offset: u64) -> (u64, Option<Writer>) {
        let (page, word) = place(offset);
        let page = self.0.get(&page);
        page.map_or((0, None), |page| (page.words[word], page.writers[word]))
    }

    /// The eight words of the aligned 64 bytes around `offset`.
    pub fn block(&self, offset: u64) -> [u64; 8] {
        let (page, first) = place(offset & !63);
        let page = self.0.get(&page);
        page.map_or([0; 8], |page| {
            std::array::from_fn(|word| page.words[first + word])
        })
    }

    /// Writes `bytes` of the word at `offset`.
    pub fn write(&mut self, offset: u64, bytes: Bytes, value: u64, by: Option<Writer>) {
        let (page, word) = place(offset);
        let page = self.0.entry(page).or_default();
        page.words[word] = bytes.merge(page.words[word], value);
        page.writers[word] = by;
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let pages = self.0.len() * size_of::<Page>();
        pages + self.0.capacity() * size_of::<(u64, Box<Page>)>()
    }
}

impl Default for Page {
    fn default() -> Self {
        Self {
            words: [0; PAGE],
            writers: [None; PAGE],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_byte_leaves_the_others_of_its_word_alone() {
        let mut words = Words::default();
        words.write(72, Bytes::word(72), 0x0102_0304_0506_0708, Some((1, 2)));
        words.write(74, Bytes::byte(74), 0xaa, Some((3, 4)));
        assert_eq!(words.get(72), (0x0102_0304_05aa_0708, Some((3, 4))));
        assert_eq!(words.get(80), (0, None));
        assert_eq!(
            words.block(120),
            [0, 0x0102_0304_05aa_0708, 0, 0, 0, 0, 0, 0]
        );
    }
    proptest! {
        #[test]
        fn words_are_those_that_were_written(
            writes in prop::collection::vec((0u64..2_000, any::<u64>(), any::<u8>()), 0..100),
        ) {
            let mut words = Words::default();
            let mut expected: HashMap<u64, (u64, Option<Writer>)> = HashMap::new();
            for (offset, value, by) in writes {
                let (bytes, value) = match by % 2 {
                    0 => (Bytes::byte(offset), value & 0xff),
                    _ => (Bytes::word(offset & !7), value),
                };
                let by = Some((by.into(), 1));
                words.write(offset, bytes, value, by);
                let (word, writer) = expected.entry(offset & !7).or_default();
                (*word, *writer) = (bytes.merge(*word, value), by);
            }
            let word = |offset| expected.get(&offset).copied().unwrap_or_default();
            for offset in (0..2_100).step_by(8) {
                prop_assert_eq!(words.get(offset), word(offset));
                let first = offset & !63;
                let block = std::array::from_fn(|index| word(first + 8 * index as u64).0);
                prop_assert_eq!(words.block(offset), block);
            }
        }
    }
}
