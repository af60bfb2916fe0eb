//! The memory of a node, word by word, with the last writer of each.

use rustc_hash::FxHashMap;

use super::line::Bytes;

/// Node and number of a thread.
pub type Writer = (u32, u16);

/// Words by their offset; all are zero until they are written.
#[derive(Debug, Default)]
pub struct Words(FxHashMap<u64, (u64, Option<Writer>)>);

impl Words {
    /// The word at `offset` and its last writer.
    pub fn get(&self, offset: u64) -> (u64, Option<Writer>) {
        self.0.get(&(offset & !7)).copied().unwrap_or_default()
    }

    /// The eight words of the aligned 64 bytes around `offset`.
    pub fn block(&self, offset: u64) -> [u64; 8] {
        let first = offset & !63;
        std::array::from_fn(|word| self.get(first + 8 * word as u64).0)
    }

    /// Writes `bytes` of the word at `offset`.
    pub fn write(&mut self, offset: u64, bytes: Bytes, value: u64, by: Option<Writer>) {
        let (word, writer) = self.0.entry(offset & !7).or_default();
        *word = bytes.merge(*word, value);
        *writer = by;
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(u64, u64, Option<Writer>)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
