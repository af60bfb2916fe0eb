//! The addresses of the words of a part of an [`Array`], one after the other: what would have to be
//! looked up for each word is looked up once a granule. Called by the kernels' loops over rows and
//! lines.

use std::ops::Range;

use sme_memory::{Memory, Route, Word};

use crate::Array;

const WORD_BYTES: u64 = 8;

/// The addresses by which a thread reaches the words of `range`, which lies in the array.
#[inline]
pub(crate) fn words<'a, M: Memory>(
    array: &'a Array,
    memory: &'a M,
    range: Range<u64>,
    route: Route,
) -> Words<'a, M> {
    Words {
        array,
        memory,
        route,
        range,
        last: None,
    }
}

/// See [`words`].
pub(crate) struct Words<'a, M> {
    array: &'a Array,
    memory: &'a M,
    route: Route,
    range: Range<u64>,
    /// The address before the next, if any.
    last: Option<Word>,
}

impl<M: Memory> Iterator for Words<'_, M> {
    type Item = Word;

    #[inline]
    fn next(&mut self) -> Option<Word> {
        let index = self.range.next()?;
        // A granule is a power of two of words.
        let within = index & (self.array.granule_words() - 1);
        let word = match self.last {
            Some(Word(address)) if within != 0 => Word(address + WORD_BYTES),
            _ => self.array.word(self.memory, index, self.route),
        };
        self.last = Some(word);
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sme_memory::native::{Native, Patience, Size};

    use super::*;
    use crate::{Placement, Pool};

    proptest! {
        #[test]
        fn they_are_those_of_the_array(
            size in 1u64..500, granule in 6u32..10, cut in (0.0f64..1.0, 0.0f64..1.0), random: bool,
        ) {
            let placement = if random { Placement::Random } else { Placement::Block };
            let mut pool = Pool::new(3, (64, 1 << 16), 1 << granule, 5)?;
            let array = pool.array(size, placement)?;
            let bytes = Size { nodes: 3, flag_bytes: 0, word_bytes: 1 << 16 };
            let memory = Native::new(bytes, Patience::NONE).thread(1);
            let start = (cut.0 * size as f64) as u64;
            let range = start..start + (cut.1 * (size - start + 1) as f64) as u64;
            let one_by_one = range.clone().map(|index| array.word(&memory, index, Route::Cached));
            let found = words(&array, &memory, range, Route::Cached);
            prop_assert_eq!(found.collect::<Vec<_>>(), one_by_one.collect::<Vec<_>>());
        }
    }
}
