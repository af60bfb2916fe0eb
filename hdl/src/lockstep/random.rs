//! The source of random words for traffic: a generator, or the words of an earlier run.
//!
//! With the outputs that it sees, what a traffic draws decides all that it does. So a run is known
//! by its words, cycle by cycle, and [`super::shortest`] takes some of them away: traffic makes
//! inputs that keep to the rules of the rest. For that, a word of zero has to mean that nothing
//! happens.

use std::convert::Infallible;
use std::vec;

use rand_core::{Rng, SeedableRng, TryRng};
use rand_pcg::Pcg32;

/// The words drawn in a cycle.
pub type Words = Vec<u32>;

/// A source of random words; it keeps those that were drawn.
#[derive(Debug)]
pub struct Random {
    source: Source,
    drawn: Vec<Words>,
}

#[derive(Debug)]
enum Source {
    Generator(Pcg32),
    /// The cycles to come, and what is left of this one.
    Words(vec::IntoIter<Words>, vec::IntoIter<u32>),
}

impl Random {
    /// Those of a generator.
    pub fn seeded(seed: u64) -> Self {
        Self::from(Source::Generator(Pcg32::seed_from_u64(seed)))
    }

    /// These, cycle by cycle; zeros where there is no more.
    pub fn replay(words: Vec<Words>) -> Self {
        Self::from(Source::Words(words.into_iter(), Words::new().into_iter()))
    }

    fn from(source: Source) -> Self {
        let drawn = Vec::new();
        Self { source, drawn }
    }

    /// A cycle begins: what follows is drawn in it. Nothing is kept of what is drawn before the
    /// first.
    pub fn begin_cycle(&mut self) {
        if let Source::Words(cycles, words) = &mut self.source {
            *words = cycles.next().unwrap_or_default().into_iter();
        }
        self.drawn.push(Words::new());
    }

    /// Returns the words drawn in each cycle.
    pub fn drawn(self) -> Vec<Words> {
        self.drawn
    }
}

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let word = match &mut self.source {
            Source::Generator(generator) => generator.next_u32(),
            Source::Words(_, words) => words.next().unwrap_or(0),
        };
        if let Some(cycle) = self.drawn.last_mut() {
            cycle.push(word);
        }
        Ok(word)
    }

    /// Draws two words as the generator does: the lower half first.
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let [low, high] = [(); 2].map(|()| u64::from(self.next_u32()));
        Ok(high << 32 | low)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(4) {
            let word = self.next_u32().to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_generator_and_can_be_drawn_again() {
        let draw = |random: &mut dyn Rng| [random.next_u64(), random.next_u32().into()];
        let mut generator = Pcg32::seed_from_u64(7);
        let mut first = Random::seeded(7);
        let mut drawn = Vec::new();
        for _ in 0..3 {
            first.begin_cycle();
            drawn.push(draw(&mut first));
            assert_eq!(drawn.last(), Some(&draw(&mut generator)));
        }
        let words = first.drawn();
        assert_eq!(words.iter().map(Vec::len).collect::<Vec<_>>(), [3; 3]);
        let mut again = Random::replay(words.clone());
        for numbers in drawn {
            again.begin_cycle();
            assert_eq!(draw(&mut again), numbers);
        }
        again.begin_cycle();
        assert_eq!(draw(&mut again), [0, 0]);
        assert_eq!(again.drawn()[..3], words);
    }

    /// A cycle draws none of another's words, however many are left of its own.
    #[test]
    fn every_cycle_begins_with_its_own_words() {
        let mut random = Random::replay(vec![vec![1, 2, 3], vec![4]]);
        random.begin_cycle();
        assert_eq!(random.next_u32(), 1);
        random.begin_cycle();
        assert_eq!(random.next_u64(), 4);
        assert_eq!(random.drawn(), [vec![1], vec![4, 0]]);
    }
}
