//! The bytes of a cache line: what memory holds and what the copies hold.
//!
//! A line that synchronizes something mostly has one byte that is not zero, its flag, and a million
//! of them must fit: such a line takes twelve bytes here. Any other has a box with all its words.

use super::core_set::CoreSet;

/// Some bytes of one aligned word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Bytes {
    /// The number of the word in the line.
    pub word: u8,
    /// A bit for each byte.
    pub enables: u8,
    /// The number of bytes by which a right-aligned value of them is moved up.
    offset: u8,
}

impl Bytes {
    /// The byte at `address`.
    #[inline]
    pub fn byte(address: u64) -> Self {
        let offset = (address % 8) as u8;
        Self {
            word: (address / 8 % 8) as u8,
            enables: 1 << offset,
            offset,
        }
    }

    /// The whole word at `address`.
    #[inline]
    pub fn word(address: u64) -> Self {
        Self::enabled(address, 0xff)
    }

    /// The bytes of the word at `address` that `enables` names, a bit each; a value of them stands
    /// where they do.
    #[inline]
    pub fn enabled(address: u64, enables: u8) -> Self {
        Self {
            word: (address / 8 % 8) as u8,
            enables,
            offset: 0,
        }
    }

    /// Returns whether these are all eight.
    #[inline]
    pub fn is_whole_word(self) -> bool {
        self.enables == 0xff
    }

    /// The same in a block of 64 bytes: a bit for each.
    #[inline]
    pub fn of_block(self) -> u64 {
        u64::from(self.enables) << (8 * self.word)
    }

    /// `value` of these bytes, moved to where they stand in their word.
    #[inline]
    pub fn place(self, value: u64) -> u64 {
        value << (8 * self.offset)
    }

    /// The value of these bytes in `word`.
    #[inline]
    pub fn pick(self, word: u64) -> u64 {
        (word & self.mask()) >> (8 * self.offset)
    }

    /// `word` with `value` in place of these bytes.
    #[inline]
    pub fn merge(self, word: u64, value: u64) -> u64 {
        let mask = self.mask();
        word & !mask | self.place(value) & mask
    }

    /// Bits that belong to the bytes, all ones.
    #[inline]
    fn mask(self) -> u64 {
        // Spreads the eight bits over eight bytes, and makes each that is not zero all ones.
        let spread = (u64::from(self.enables) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        let low = 0x7f7f_7f7f_7f7f_7f7f;
        let ones = (((spread & low) + low) | spread) & !low;
        (ones >> 7) * 0xff
    }
}

/// Eight 64-bit words. Bytes are little-endian within a word.
type Words = [u64; 8];

/// A line in which at most one byte is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OneByte {
    at: u8,
    value: u8,
}

impl OneByte {
    #[inline]
    fn word(self, word: u8) -> u64 {
        if self.at / 8 == word {
            u64::from(self.value) << (self.at % 8 * 8)
        } else {
            0
        }
    }

    /// With `new` for the word `word`, if that is such a line too.
    #[inline]
    fn with(self, word: u8, new: u64) -> Option<Self> {
        if self.value != 0 && self.at / 8 != word {
            return None;
        }
        let byte = new.trailing_zeros() as u8 % 64 / 8;
        let value = new >> (8 * byte);
        (value <= 0xff).then_some(Self {
            at: word * 8 + byte,
            value: value as u8,
        })
    }

    fn words(self) -> Words {
        std::array::from_fn(|word| self.word(word as u8))
    }
}

/// All words of a line.
#[derive(Debug)]
struct Whole {
    memory: Words,
    copies: Words,
    /// Cores whose copies missed an update, and what they still hold.
    stale: Vec<(CoreSet, Words)>,
}

/// The contents of a line in memory and in the caches: all copies that are kept coherent are equal,
/// so there is one image of them; copies that an update from outside did not probe stay behind as
/// they were.
#[derive(Debug)]
pub struct Images {
    /// The thread that wrote last, as the machine's traces name it.
    pub writer: u32,
    memory: OneByte,
    copies: OneByte,
    /// In place of the others, once they cannot hold everything.
    whole: Option<Box<Whole>>,
}

impl Images {
    /// Makes the images of a line of zeros, to which no core has written; `no_writer` stands for
    /// that.
    pub fn new(no_writer: u32) -> Self {
        Self {
            writer: no_writer,
            memory: OneByte::default(),
            copies: OneByte::default(),
            whole: None,
        }
    }

    /// Returns the value in memory, right-aligned.
    #[inline]
    pub fn memory(&self, bytes: Bytes) -> u64 {
        bytes.pick(match &self.whole {
            None => self.memory.word(bytes.word),
            Some(whole) => whole.memory[usize::from(bytes.word)],
        })
    }

    /// Returns the value of the coherent copies, right-aligned; meaningless where there are none.
    #[inline]
    pub fn copies(&self, bytes: Bytes) -> u64 {
        bytes.pick(match &self.whole {
            None => self.copies.word(bytes.word),
            Some(whole) => whole.copies[usize::from(bytes.word)],
        })
    }

    /// Returns the value in the stale copy of `core`, if it has one.
    #[inline]
    pub fn stale(&self, core: u16, bytes: Bytes) -> Option<u64> {
        let stale = &self.whole.as_ref()?.stale;
        let (_, words) = stale.iter().find(|(cores, _)| cores.has(core))?;
        Some(bytes.pick(words[usize::from(bytes.word)]))
    }

    /// Returns whether any copy is stale.
    #[inline]
    pub fn any_stale(&self) -> bool {
        self.whole.as_ref().is_some_and(|w| !w.stale.is_empty())
    }

    /// Replaces `bytes` of memory by `value`, which is right-aligned.
    #[inline]
    pub fn write_memory(&mut self, bytes: Bytes, value: u64) {
        if self.whole.is_none() {
            let new = bytes.merge(self.memory.word(bytes.word), value);
            if let Some(memory) = self.memory.with(bytes.word, new) {
                self.memory = memory;
                return;
            }
        }
        let word = &mut self.whole().memory[usize::from(bytes.word)];
        *word = bytes.merge(*word, value);
    }

    /// Replaces `bytes` of the coherent copies by `value`, which is right-aligned.
    #[inline]
    pub fn write_copies(&mut self, bytes: Bytes, value: u64) {
        if self.whole.is_none() {
            let new = bytes.merge(self.copies.word(bytes.word), value);
            if let Some(copies) = self.copies.with(bytes.word, new) {
                self.copies = copies;
                return;
            }
        }
        let word = &mut self.whole().copies[usize::from(bytes.word)];
        *word = bytes.merge(*word, value);
    }

    /// Returns whether the coherent copies are as memory is.
    pub fn are_equal(&self) -> bool {
        match &self.whole {
            None => self.memory.words() == self.copies.words(),
            Some(whole) => whole.memory == whole.copies,
        }
    }

    /// The copies become as memory is.
    #[inline]
    pub fn fetch(&mut self) {
        match &mut self.whole {
            None => self.copies = self.memory,
            Some(whole) => whole.copies = whole.memory,
        }
    }

    /// Memory becomes as the copies are.
    #[inline]
    pub fn write_back(&mut self) {
        match &mut self.whole {
            None => self.memory = self.copies,
            Some(whole) => whole.memory = whole.copies,
        }
    }

    /// Freezes the copies of `cores` as the coherent copies are now; later changes of those leave
    /// them alone.
    pub fn leave_behind(&mut self, cores: CoreSet) {
        if !cores.is_empty() {
            let whole = self.whole();
            whole.stale.push((cores, whole.copies));
        }
    }

    /// The copy of `core` is not stale any more.
    #[inline]
    pub fn refresh(&mut self, core: u16) {
        if let Some(whole) = &mut self.whole
            && !whole.stale.is_empty()
        {
            for (cores, _) in &mut whole.stale {
                cores.remove(core);
            }
            whole.stale.retain(|(cores, _)| !cores.is_empty());
        }
    }

    /// Drops all stale copies, and adds who had one to `dropped`.
    #[inline]
    pub fn drop_stale(&mut self, dropped: &mut CoreSet) {
        if let Some(whole) = &mut self.whole {
            for (cores, _) in whole.stale.drain(..) {
                dropped.join(&cores);
            }
        }
    }

    fn whole(&mut self) -> &mut Whole {
        self.whole.get_or_insert_with(|| {
            Box::new(Whole {
                memory: self.memory.words(),
                copies: self.copies.words(),
                stale: Vec::new(),
            })
        })
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.whole.as_ref().map_or(0, |whole| {
            let sets: usize = whole
                .stale
                .iter()
                .map(|(cores, _)| cores.heap_bytes())
                .sum();
            size_of::<Whole>() + whole.stale.capacity() * size_of::<(CoreSet, Words)>() + sets
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A change of the images of a line.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Write {
            copies: bool,
            address: u64,
            wide: bool,
            value: u64,
        },
        Fetch,
        WriteBack,
        LeaveBehind(u16),
        Refresh(u16),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let value = prop_oneof![0..3u64, any::<u64>()];
        let write = (any::<bool>(), 0..64u64, any::<bool>(), value).prop_map(
            |(copies, address, wide, value)| Act::Write {
                copies,
                address,
                wide,
                value,
            },
        );
        let act = prop_oneof![
            6 => write,
            1 => Just(Act::Fetch),
            1 => Just(Act::WriteBack),
            1 => (0..4u16).prop_map(Act::LeaveBehind),
            1 => (0..4u16).prop_map(Act::Refresh),
        ];
        prop::collection::vec(act, 0..30)
    }

    proptest! {
        #[test]
        fn they_behave_like_64_bytes_each(acts in acts()) {
            let mut images = Images::new(0);
            let (mut memory, mut copies) = ([0u8; 64], [0u8; 64]);
            let mut stale = [None; 4];
            for act in acts {
                match act {
                    Act::Write { copies: to_copies, address, wide, value } => {
                        let plain = if to_copies { &mut copies } else { &mut memory };
                        let bytes = if wide {
                            let at = (address & !7) as usize;
                            plain[at..at + 8].copy_from_slice(&value.to_le_bytes());
                            Bytes::word(address)
                        } else {
                            plain[address as usize] = value as u8;
                            Bytes::byte(address)
                        };
                        if to_copies {
                            images.write_copies(bytes, value);
                        } else {
                            images.write_memory(bytes, value);
                        }
                    }
                    Act::Fetch => {
                        images.fetch();
                        copies = memory;
                    }
                    Act::WriteBack => {
                        images.write_back();
                        memory = copies;
                    }
                    Act::LeaveBehind(core) => {
                        images.refresh(core);
                        let mut cores = CoreSet::NONE;
                        cores.insert(core);
                        images.leave_behind(cores);
                        stale[usize::from(core)] = Some(copies);
                    }
                    Act::Refresh(core) => {
                        images.refresh(core);
                        stale[usize::from(core)] = None;
                    }
                }
                prop_assert_eq!(images.are_equal(), memory == copies);
                prop_assert_eq!(images.any_stale(), stale.iter().any(Option::is_some));
                for at in 0..64 {
                    let (bytes, at) = (Bytes::byte(at), at as usize);
                    prop_assert_eq!(images.memory(bytes), u64::from(memory[at]));
                    prop_assert_eq!(images.copies(bytes), u64::from(copies[at]));
                    for (core, plain) in (0..).zip(stale) {
                        let value = plain.map(|plain: [u8; 64]| u64::from(plain[at]));
                        prop_assert_eq!(images.stale(core, bytes), value);
                    }
                }
            }
        }

        #[test]
        fn a_mask_has_the_enabled_bytes(enables: u8) {
            let bytes = Bytes::enabled(24, enables).mask().to_le_bytes();
            for (number, byte) in bytes.into_iter().enumerate() {
                prop_assert_eq!(byte, if enables >> number & 1 == 0 { 0 } else { 0xff });
            }
        }
    }
}
