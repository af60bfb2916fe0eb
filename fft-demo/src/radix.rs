//! Parallel radix sort, after SPLASH-2's RADIX: S. C. Woo, M. Ohara, E. Torrie, J. P. Singh,
//! A. Gupta, "The SPLASH-2 Programs: Characterization and Methodological Considerations",
//! ISCA 1995 (its kernel Radix); the method is that of G. E. Blelloch et al., "A Comparison of
//! Sorting Algorithms for the Connection Machine CM-2", SPAA 1991.
//!
//! It stresses scattered remote stores and false sharing. Every pass sorts by one digit, the lowest
//! first, and keeps the order of keys that agree in it: each thread counts the digits of its share
//! of the keys; the counts of all threads become the ranks at which each thread's keys of each
//! digit begin; each thread stores its keys there, all over memory. A key is a word of eight bytes;
//! indices and sizes count words.
//!
//! For n keys, P threads and R = 2^r digits, of which S = min(P, ⌈R/8⌉) threads have a range each,
//! a pass loads and stores so many words in all:
//!
//! | [`Phase`] | Loads | Stores |
//! |---|---|---|
//! | `start` | none: all threads are there, before the first pass | |
//! | `count` | n | P R |
//! | `rank` | P R | P R + S |
//! | `permute` | n + P (S - 1), and one for each digit of which a thread has keys | n |
//!
//! So each key is loaded twice a pass and stored once, and there are ⌈bits of a key / r⌉ passes.
//! Called by `src/program/` and by tests; calls the [`Team`].
//!
//! # Lines that two nodes write
//!
//! Counts and ranks are laid out so that each of their lines has one writer between two barriers.
//! The keys cannot be: two threads' ranges of ranks may meet inside a line, and both store to
//! it in the same phase. Through caches that write back whole lines and that nothing keeps coherent
//! between nodes, the node that writes back last wins, and what the other stored in the line is
//! lost. [`Borders`] is the choice:
//!
//! * [`Borders::Uncached`] stores the keys past the caches. That is right on every machine, and
//!   cheap besides: a posted store takes no answer, whereas a cache would first fetch the line, all
//!   of which will be overwritten. The keys are then read through the caches, after the barrier has
//!   dropped what these had of the pass before. Nothing of the array is ever dirty in a cache.
//! * [`Borders::Shared`] stores them through the caches like everything else. That is right where
//!   a cache writes back only the bytes that were stored to, and loses keys where it writes
//!   back whole lines.
//!
//! The choice matters for [`Route::Cached`] only: the other routes never write back a line to
//! another node.

use std::future::Future;
use std::ops::Range;

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_memory::{Memory, Place, Route};
use thiserror::Error;

use crate::words::words;
use crate::{Array, ArrayError, Placement, Pool, Team};

/// Words of a cache line, 64 bytes.
const LINE_WORDS: u64 = 8;

/// Words of the largest array: 8 GiB.
const MOST_WORDS: u64 = 1 << 30;

/// Beyond it, every thread's table of counts is larger than a cache.
const MOST_RADIX_BITS: u32 = 16;

/// Operations on registers to take the digit of a key and count it.
const COUNT_OPERATIONS: u32 = 3;

/// Operations on registers to take the digit of a key, look its rank up, and advance it.
const RANK_OPERATIONS: u32 = 4;

/// The way of storing keys whose lines two nodes may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Borders {
    /// Past the caches: right on every machine.
    #[default]
    Uncached,
    /// Through the caches: wrong where these write back whole lines.
    Shared,
}

sme_barrier::names!(Borders, "borders", { Uncached => "uncached", Shared => "shared" });

/// Description of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadixSpec {
    /// The number of keys.
    pub keys: u64,
    /// Bits of a key, 1 to 64: all that are looked at, and what [`Radix::keys`] draws.
    pub key_bits: u32,
    /// Bits of a digit, 1 to 16. SPLASH-2 has 10, a radix of 1024.
    pub radix_bits: u32,
    /// Threads of the team.
    pub threads: u32,
    /// By which of their addresses the words are reached.
    pub route: Route,
    /// The treatment of lines to which two nodes store.
    pub borders: Borders,
    /// Decides the keys of [`Radix::keys`].
    pub seed: u64,
}

/// The reason why keys cannot be sorted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RadixError {
    /// There is nothing to sort.
    #[error("a sort needs at least one key")]
    Empty,
    /// Keys of no bits, or of more than a word has.
    #[error("keys of {key_bits} bits: give 1 to 64")]
    KeyBits {
        /// Bits of a key.
        key_bits: u32,
    },
    /// Digits of no bits, or of so many that counting them has no use.
    #[error("digits of {radix_bits} bits: give 1 to {MOST_RADIX_BITS}")]
    RadixBits {
        /// Bits of a digit.
        radix_bits: u32,
    },
    /// No thread is there to do it.
    #[error("a sort needs at least one thread")]
    NoThreads,
    /// More than 2^30 words of keys, or of counts of all threads.
    #[error("{words} words of {what}: give fewer, {MOST_WORDS} at most")]
    TooLarge {
        /// The kind of data.
        what: &'static str,
        /// The number of words.
        words: u64,
    },
    /// The keys are more or fewer.
    #[error("{given} keys for a sort of {expected}")]
    Length {
        /// The number of keys given.
        given: u64,
        /// The number of keys expected.
        expected: u64,
    },
    /// The nodes' memory cannot hold the keys.
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// A phase between two barriers, for one digit of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing: the threads get there at different times. Before all digits.
    Start,
    /// Each thread counts the digits of its keys.
    Count,
    /// The counts become ranks: each of some threads has a range of digits.
    Rank,
    /// Each thread stores its keys at their ranks.
    Permute,
}

sme_barrier::names!(Phase, "phase", {
    Start => "start",
    Count => "count",
    Rank => "rank",
    Permute => "permute",
});

/// A sort, shared by its threads.
#[derive(Clone, Debug)]
pub struct Radix {
    spec: RadixSpec,
    /// The keys before the first pass and after every second one, and the keys in between.
    keys: [Array; 2],
    /// A row for each thread, of a word for each digit: first how many keys of it the thread has,
    /// then their first rank, counted from the first rank of the range of digits.
    ranks: Array,
    /// For each range of digits, on a line of its own, how many keys have one of these.
    totals: Array,
    /// Threads that rank, each of which has a range of digits.
    rankers: u32,
}

impl Radix {
    /// Lays keys and counts out in memory from `pool`.
    ///
    /// # Errors
    /// If a size is zero or too large, or the nodes have not enough memory.
    pub fn new(spec: RadixSpec, pool: &mut Pool, placement: Placement) -> Result<Self, RadixError> {
        let RadixSpec {
            keys,
            key_bits,
            radix_bits,
            threads,
            ..
        } = spec;
        if keys == 0 {
            return Err(RadixError::Empty);
        }
        if !(1..=64).contains(&key_bits) {
            return Err(RadixError::KeyBits { key_bits });
        }
        if !(1..=MOST_RADIX_BITS).contains(&radix_bits) {
            return Err(RadixError::RadixBits { radix_bits });
        }
        if threads == 0 {
            return Err(RadixError::NoThreads);
        }
        let ranks = u64::from(threads) * row_words(radix_bits);
        for (what, words) in [("keys", keys), ("counts", ranks)] {
            if words > MOST_WORDS {
                return Err(RadixError::TooLarge { what, words });
            }
        }
        let lines = row_words(radix_bits) / LINE_WORDS;
        let rankers = u64::from(threads).min(lines);
        Ok(Self {
            spec,
            keys: [pool.array(keys, placement)?, pool.array(keys, placement)?],
            ranks: pool.array(ranks, placement)?,
            totals: pool.array(rankers * LINE_WORDS, placement)?,
            rankers: rankers as u32,
        })
    }

    /// Its arrays, by name.
    pub fn arrays(&self) -> [(&'static str, &Array); 4] {
        let [keys, spare] = &self.keys;
        [
            ("keys", keys),
            ("spare_keys", spare),
            ("ranks", &self.ranks),
            ("totals", &self.totals),
        ]
    }

    /// Its description.
    pub fn spec(&self) -> &RadixSpec {
        &self.spec
    }

    /// The phases in their order; after each there is one barrier.
    pub fn phases(&self) -> impl Iterator<Item = Phase> + use<> {
        steps(self.passes()).map(|(_, phase)| phase)
    }

    /// Keys to sort, drawn evenly from all of their bits.
    pub fn keys(&self) -> impl Iterator<Item = u64> + use<> {
        let shift = 64 - self.spec.key_bits;
        let mut random = Pcg32::new(self.spec.seed, 0x5);
        (0..self.spec.keys).map(move |_| random.next_u64() >> shift)
    }

    /// The words that must be in memory before the threads start, for `keys`; of their bits, those
    /// beyond the description's `key_bits` are not looked at.
    ///
    /// # Errors
    /// [`RadixError::Length`] if they are not as many as the description says.
    pub fn initial(&self, keys: &[u64]) -> Result<impl Iterator<Item = (Place, u64)>, RadixError> {
        let (given, expected) = (keys.len() as u64, self.spec.keys);
        if given != expected {
            return Err(RadixError::Length { given, expected });
        }
        Ok(places(&self.keys[0]).zip(keys.iter().copied()))
    }

    /// One thread's part. The keys are sorted when all threads have ended.
    ///
    /// # Panics
    /// If the team has not as many threads as the description says.
    pub fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        assert_eq!(team.size(), self.spec.threads, "a team of another size");
        async move {
            let mut digits = Digits {
                counts: vec![0; 1 << self.spec.radix_bits],
                ranks: vec![0; 1 << self.spec.radix_bits],
            };
            for (pass, phase) in steps(self.passes()) {
                match phase {
                    Phase::Start => {}
                    Phase::Count => self.count(team, pass, &mut digits).await,
                    Phase::Rank => self.rank(team).await,
                    Phase::Permute => self.permute(team, pass, &mut digits).await,
                }
                team.barrier().await;
            }
        }
    }

    /// The keys in ascending order. `read` returns what memory holds when all is done.
    pub fn result(&self, read: impl Fn(Place) -> u64) -> Vec<u64> {
        let (sorted, _) = self.of_pass(self.passes());
        places(sorted).map(read).collect()
    }

    /// Counts the digits of the thread's own keys.
    async fn count<T: Team>(&self, team: &mut T, pass: u32, digits: &mut Digits) {
        let (from, _) = self.of_pass(pass);
        digits.counts.fill(0);
        let mut line = [0; LINE_WORDS as usize];
        for range in lines(self.own_keys(team.number())) {
            let memory = team.memory();
            let keys = &mut line[..(range.end - range.start) as usize];
            for (key, word) in keys
                .iter_mut()
                .zip(words(from, memory, range, self.spec.route))
            {
                *key = memory.load(word).await;
            }
            for &key in keys.iter() {
                digits.counts[self.digit(key, pass)] += 1;
            }
            team.compute(COUNT_OPERATIONS * keys.len() as u32).await;
        }
        let memory = team.memory();
        let first = self.row(team.number());
        let row = first..first + digits.counts.len() as u64;
        let row = words(&self.ranks, memory, row, self.spec.route);
        for (&count, word) in digits.counts.iter().zip(row) {
            memory.store(word, count).await;
        }
    }

    /// Replaces all threads' counts of the digits of one range by their ranks in it: ordered by
    /// digit first and thread next.
    async fn rank<T: Team>(&self, team: &mut T) {
        let ranker = team.number();
        if ranker >= self.rankers {
            return;
        }
        let mut keys = 0u64;
        for digit in self.digits_of(ranker) {
            let memory = team.memory();
            for thread in 0..self.spec.threads {
                let index = self.row(thread) + digit as u64;
                let word = self.ranks.word(memory, index, self.spec.route);
                let count = memory.load(word).await;
                memory.store(word, keys).await;
                // Wrapping: a value from memory that is not coherent can be anything.
                keys = keys.wrapping_add(count);
            }
            team.compute(self.spec.threads).await;
        }
        let memory = team.memory();
        let index = u64::from(ranker) * LINE_WORDS;
        let word = self.totals.word(memory, index, self.spec.route);
        memory.store(word, keys).await;
    }

    /// Stores the thread's own keys at their ranks.
    async fn permute<T: Team>(&self, team: &mut T, pass: u32, digits: &mut Digits) {
        self.load_ranks(team.memory(), team.number(), digits).await;
        let (from, to) = self.of_pass(pass);
        let route = match (self.spec.route, self.spec.borders) {
            (Route::Cached, Borders::Uncached) => Route::Global,
            (route, _) => route,
        };
        let mut line = [0; LINE_WORDS as usize];
        for range in lines(self.own_keys(team.number())) {
            let memory = team.memory();
            let keys = &mut line[..(range.end - range.start) as usize];
            for (key, word) in keys
                .iter_mut()
                .zip(words(from, memory, range, self.spec.route))
            {
                *key = memory.load(word).await;
            }
            team.compute(RANK_OPERATIONS * keys.len() as u32).await;
            let memory = team.memory();
            for &key in keys.iter() {
                let next = &mut digits.ranks[self.digit(key, pass)];
                let rank = *next;
                *next = rank.wrapping_add(1);
                // A rank outside the array comes of memory that is not coherent. The key is
                // lost, which the check of the result will find.
                if rank < to.words() {
                    memory.store(to.word(memory, rank, route), key).await;
                }
            }
        }
    }

    /// Reads at which rank the thread's keys of each digit begin, where it has any.
    async fn load_ranks<M: Memory>(&self, memory: &M, thread: u32, digits: &mut Digits) {
        let route = self.spec.route;
        let row = self.row(thread);
        let mut before = 0u64;
        for ranker in 0..self.rankers {
            for digit in self.digits_of(ranker) {
                if digits.counts[digit] > 0 {
                    let word = self.ranks.word(memory, row + digit as u64, route);
                    digits.ranks[digit] = before.wrapping_add(memory.load(word).await);
                }
            }
            if ranker + 1 < self.rankers {
                let index = u64::from(ranker) * LINE_WORDS;
                let total = memory.load(self.totals.word(memory, index, route)).await;
                before = before.wrapping_add(total);
            }
        }
    }

    /// Returns the number of digits of a key.
    fn passes(&self) -> u32 {
        self.spec.key_bits.div_ceil(self.spec.radix_bits)
    }

    /// Returns the arrays of the keys before pass `pass`, and after it.
    fn of_pass(&self, pass: u32) -> (&Array, &Array) {
        let [even, odd] = &self.keys;
        if pass.is_multiple_of(2) {
            (even, odd)
        } else {
            (odd, even)
        }
    }

    #[inline]
    fn digit(&self, key: u64, pass: u32) -> usize {
        let radix_bits = self.spec.radix_bits;
        (key >> (pass * radix_bits)) as usize & ((1 << radix_bits) - 1)
    }

    /// The thread's share of the keys, in whole lines.
    fn own_keys(&self, thread: u32) -> Range<u64> {
        let keys = self.spec.keys;
        let Range { start, end } = share(
            keys.div_ceil(LINE_WORDS),
            thread.into(),
            self.spec.threads.into(),
        );
        (start * LINE_WORDS).min(keys)..(end * LINE_WORDS).min(keys)
    }

    /// The digits that a thread ranks, in whole lines of counts.
    fn digits_of(&self, ranker: u32) -> Range<usize> {
        let digits = 1 << self.spec.radix_bits;
        let lines = row_words(self.spec.radix_bits) / LINE_WORDS;
        let Range { start, end } = share(lines, ranker.into(), self.rankers.into());
        let digit = |line: u64| ((line * LINE_WORDS) as usize).min(digits);
        digit(start)..digit(end)
    }

    /// The index of the first of a thread's counts.
    fn row(&self, thread: u32) -> u64 {
        u64::from(thread) * row_words(self.spec.radix_bits)
    }
}

/// The passes and their phases in order.
fn steps(passes: u32) -> impl Iterator<Item = (u32, Phase)> {
    let pass = [Phase::Count, Phase::Rank, Phase::Permute];
    let steps = (0..passes).flat_map(move |number| pass.map(|phase| (number, phase)));
    std::iter::once((0, Phase::Start)).chain(steps)
}

/// A thread's data about each digit, in private memory.
struct Digits {
    /// The number of its keys that have the digit.
    counts: Vec<u64>,
    /// The place where the next of them goes.
    ranks: Vec<u64>,
}

/// Words that a thread's counts take: whole lines.
fn row_words(radix_bits: u32) -> u64 {
    (1u64 << radix_bits).next_multiple_of(LINE_WORDS)
}

/// The part of 0..`all` that the one numbered `number` of `count` has.
fn share(all: u64, number: u64, count: u64) -> Range<u64> {
    all * number / count..all * (number + 1) / count
}

/// A range that begins with a line, line by line.
fn lines(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = range;
    (start..end)
        .step_by(LINE_WORDS as usize)
        .map(move |first| first..(first + LINE_WORDS).min(end))
}

fn places(array: &Array) -> impl Iterator<Item = Place> {
    (0..array.words()).map(|index| array.place(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every key and every digit is of exactly one thread, and every line of counts too.
        #[test]
        fn shares_cover_all_without_overlap(
            keys in 1u64..3000, radix_bits in 1u32..9, threads in 1u32..40,
        ) {
            let spec = RadixSpec {
                keys,
                key_bits: 16,
                radix_bits,
                threads,
                route: Route::Cached,
                borders: Borders::Uncached,
                seed: 0,
            };
            let mut pool = Pool::new(3, (0, 1 << 24), 64, 0)?;
            let radix = Radix::new(spec, &mut pool, Placement::Random)?;
            let own: Vec<u64> = (0..threads).flat_map(|thread| radix.own_keys(thread)).collect();
            prop_assert_eq!(own, (0..keys).collect::<Vec<_>>());
            let digits: Vec<usize> = (0..radix.rankers).flat_map(|r| radix.digits_of(r)).collect();
            prop_assert_eq!(digits, (0..1 << radix_bits).collect::<Vec<_>>());
            for ranker in 0..radix.rankers {
                let range = radix.digits_of(ranker);
                prop_assert!(range.start % 8 == 0 && !range.is_empty());
            }
        }
    }
}
