//! The shortest traffic that shows a difference, as far as taking things away finds it.
//!
//! Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing Input* (2002), whose halves
//! and quarters of a failing input are left out while what remains fails; but as MacIver and
//! Donaldson, *Test-Case Reduction via Test-Case Generation* (2020), do it, on the
//! [words](super::random) that the traffic draws and not on the inputs. Sizes and the traffic's
//! rules stay: none sends without a credit because the cycle was left out in which the credit came
//! back.
//!
//! Called by `sme rtl lockstep` once a run has found a difference.

use super::random::Words;
use super::{Outcome, Pair};

/// The cost of building a pair, in cycles that are simulated: the bound of a search must hold for
/// many short runs, too.
const BUILD_CYCLES: u64 = 10;

/// A run that fails without anything that can be left out.
#[derive(Debug)]
pub struct Shortest {
    /// The outcome; the history has all of its cycles.
    pub outcome: Outcome,
    /// No cycle can be left out: the search has seen its end.
    pub is_minimal: bool,
}

/// Takes away from the run `first`, of a pair that `build` makes and that ended at a difference,
/// all that it fails without: whole cycles, then what happens in them. Some output differs at its
/// end, maybe another one. It simulates no more than `cycles`.
pub fn shortest(build: &dyn Fn() -> Pair, first: Vec<Words>, cycles: u64) -> Shortest {
    let mut search = Search {
        build,
        words: first,
        cycles,
        is_minimal: false,
    };
    // Each step has half of what the one before has left, so that the end of a long search is not
    // a short run full of noise.
    let mut changes = true;
    while changes && search.cycles >= BUILD_CYCLES {
        let steps = [Search::leave_out, Search::clear, Search::lower];
        let changed = steps.map(|step| search.within(search.cycles / 2, step));
        changes = changed.contains(&true);
    }
    Shortest {
        outcome: build().replay(search.words, usize::MAX),
        is_minimal: search.is_minimal,
    }
}

struct Search<'b> {
    build: &'b dyn Fn() -> Pair,
    /// The best so far. It ends with the cycle of the difference.
    words: Vec<Words>,
    /// The cycles that may still be simulated.
    cycles: u64,
    /// Without any of its cycles it does not fail.
    is_minimal: bool,
}

/// The index of a word: its cycle, and its place among the words of that cycle.
type WordIndex = (usize, usize);

impl Search<'_> {
    /// One step in `cycles` of those that are left; whether it has found anything.
    fn within(&mut self, cycles: u64, step: fn(&mut Self) -> bool) -> bool {
        let later = self.cycles - cycles;
        self.cycles = cycles;
        let changed = step(self);
        self.cycles += later;
        changed
    }

    /// Returns whether a difference is found with these words, too; then they are the best so far.
    /// Words that were not drawn, in cycles after the difference or in others, are left out.
    fn fails(&mut self, words: Vec<Words>) -> bool {
        let most = words.len() as u64 + BUILD_CYCLES;
        if self.cycles < most {
            self.cycles = 0;
            return false;
        }
        let outcome = (self.build)().replay(words, 0);
        self.cycles -= outcome.cycles + BUILD_CYCLES;
        let fails = outcome.mismatch.is_some();
        if fails {
            self.words = outcome.words;
            self.is_minimal = false;
        }
        fails
    }

    /// Leaves out cycles: half of them, a quarter, and so on to each alone.
    fn leave_out(&mut self) -> bool {
        let before = self.words.len();
        for count in halves(before) {
            let mut at = 0;
            while at < self.words.len() {
                let end = (at + count).min(self.words.len());
                let mut words = self.words.clone();
                words.drain(at..end);
                if words.is_empty() || !self.fails(words) {
                    at = end;
                }
            }
        }
        let changed = self.words.len() < before;
        // The last round was without each alone. The rest of the effort tells whether it was tried.
        self.is_minimal |= !changed && self.cycles > 0;
        changed
    }

    /// Clears words, in the same manner: less happens in the cycles that stay.
    fn clear(&mut self) -> bool {
        let mut changed = false;
        for count in halves(self.places(0).len()) {
            let mut done = 0;
            loop {
                let places = self.places(0);
                let Some(some) = places.get(done..).filter(|rest| !rest.is_empty()) else {
                    break;
                };
                let some = &some[..count.min(some.len())];
                if self.fails(self.with(some, 0)) {
                    changed = true;
                } else {
                    done += some.len();
                }
            }
        }
        changed
    }

    /// Makes words ones that cannot be zeros: what is left of a number is easier to read.
    fn lower(&mut self) -> bool {
        let mut changed = false;
        let mut done = 0;
        while let Some(&place) = self.places(1).get(done) {
            if self.fails(self.with(&[place], 1)) {
                changed = true;
            } else {
                done += 1;
            }
        }
        changed
    }

    /// Returns the indices of words above `least`.
    fn places(&self, least: u32) -> Vec<WordIndex> {
        let cycles = self.words.iter().enumerate();
        let places = cycles.flat_map(|(cycle, words)| {
            let above = words.iter().enumerate().filter(|(_, word)| **word > least);
            above.map(move |(place, _)| (cycle, place))
        });
        places.collect()
    }

    /// The best so far with `word` in some places.
    fn with(&self, places: &[WordIndex], word: u32) -> Vec<Words> {
        let mut words = self.words.clone();
        for &(cycle, place) in places {
            words[cycle][place] = word;
        }
        words
    }
}

/// Half of `count`, half of that, and so on to 1.
fn halves(count: usize) -> impl Iterator<Item = usize> {
    let first = Some(count.div_ceil(2)).filter(|half| *half > 0);
    std::iter::successors(first, |half| (*half > 1).then(|| half.div_ceil(2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{BENCHES, Bench, find};
    use proptest::prelude::*;

    /// The run of a broken variant, if it fails in 2000 cycles.
    fn failing(bench: &Bench, fault: &str, seed: u64) -> Option<Outcome> {
        let outcome = (bench.build)(seed, Some(fault)).run(2_000, seed);
        outcome.mismatch.is_some().then_some(outcome)
    }

    const ENOUGH: u64 = 200_000;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn what_is_left_fails_and_no_cycle_of_it_can_be_left_out(
            bench in 0..4usize,
            fault in any::<proptest::sample::Index>(),
            seed in 0..100u64,
        ) {
            let bench = find(["fifo", "tags", "crossbar", "responder"][bench]).unwrap();
            let fault = *fault.get(bench.faults);
            let build = || (bench.build)(seed, Some(fault));
            let Some(first) = failing(bench, fault, seed) else {
                return Ok(());
            };
            let found = shortest(&build, first.words.clone(), ENOUGH);
            prop_assert!(found.outcome.mismatch.is_some());
            prop_assert!(found.outcome.cycles <= first.cycles);
            prop_assert_eq!(found.outcome.history.len() as u64, found.outcome.cycles);
            let words = &found.outcome.words;
            let again = build().replay(words.clone(), 0);
            prop_assert_eq!(&again.mismatch, &found.outcome.mismatch);
            if found.is_minimal {
                for cycle in 0..words.len() {
                    let mut fewer = words.clone();
                    fewer.remove(cycle);
                    prop_assert_eq!(build().replay(fewer, 0).mismatch, None);
                }
            }
            let twice = shortest(&build, first.words, ENOUGH);
            prop_assert_eq!(&twice.outcome.words, words);
        }
    }

    /// A search in every block ends in time, also where the traffic has to do without missing
    /// words.
    #[test]
    fn a_search_in_any_block_ends_in_time_with_what_fails() {
        for bench in BENCHES {
            for (index, fault) in bench.faults.iter().enumerate() {
                // Even, since counters of the others begin with 65,000 writes that the model makes.
                let seed = 2 * index as u64;
                let Some(first) = failing(bench, fault, seed) else {
                    continue;
                };
                let build = || (bench.build)(seed, Some(fault));
                let found = shortest(&build, first.words, 1_000);
                let name = bench.name;
                assert!(found.outcome.mismatch.is_some(), "{name}: {fault}");
                assert!(found.outcome.cycles <= first.cycles, "{name}: {fault}");
            }
        }
    }

    #[test]
    fn a_fifo_with_a_place_more_is_filled_and_nothing_else() {
        let bench = find("fifo").unwrap();
        let fault = "one place more";
        let first = failing(bench, fault, 1).unwrap();
        let build = || (bench.build)(1, Some(fault));
        let found = shortest(&build, first.words, ENOUGH);
        // Three places; in the cycle after the third write it says that there is another.
        assert!(found.is_minimal);
        assert_eq!(found.outcome.cycles, 4);
        let history = &found.outcome.history;
        let writes = history.iter().filter(|cycle| cycle.inputs[0].bit(0));
        assert_eq!(writes.count(), 3);
        assert!(history.iter().all(|cycle| !cycle.inputs[2].bit(0)));
    }

    #[test]
    fn a_search_without_effort_keeps_what_there_is() {
        let bench = find("fifo").unwrap();
        let first = failing(bench, "one place more", 1).unwrap();
        let build = || (bench.build)(1, Some("one place more"));
        let found = shortest(&build, first.words, 0);
        assert_eq!(found.outcome.cycles, first.cycles);
        assert!(!found.is_minimal);
    }

    /// On which the search relies: it never invents a difference.
    #[test]
    fn traffic_keeps_to_the_rules_whatever_is_taken_from_it() {
        for bench in BENCHES {
            for seed in 0..4 {
                let mut words = (bench.build)(seed, None).run(600, seed).words;
                let mut keep = 0..;
                words.retain(|_| keep.next().is_some_and(|cycle: u64| cycle % 5 != seed));
                let all = words.iter_mut().flatten().enumerate();
                let some = all.filter(|(place, _)| place % 7 == seed as usize);
                some.for_each(|(_, word)| *word = 0);
                let outcome = (bench.build)(seed, None).replay(words, 0);
                assert_eq!(outcome.mismatch, None, "{}, seed {seed}", bench.name);
            }
        }
    }

    #[test]
    fn without_words_nothing_is_sent() {
        for bench in BENCHES.iter().filter(|bench| bench.name != "router") {
            let outcome = (bench.build)(2, None).replay(vec![Words::new(); 50], 50);
            assert_eq!(outcome.mismatch, None, "{}", bench.name);
            assert_eq!(outcome.transactions, 0, "{}", bench.name);
        }
    }

    #[test]
    fn halves_end_with_one() {
        assert_eq!(halves(0).count(), 0);
        assert_eq!(halves(1).collect::<Vec<_>>(), [1]);
        assert_eq!(halves(2).collect::<Vec<_>>(), [1]);
        assert_eq!(halves(20).collect::<Vec<_>>(), [10, 5, 3, 2, 1]);
    }
}
