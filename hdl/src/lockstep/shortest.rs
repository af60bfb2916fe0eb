//! The shortest traffic that shows a difference, and that traffic as text.
//!
//! Called by `sme rtl lockstep` once a run has found a difference.

use std::fmt::Write;

use super::{Outcome, Pair};
use crate::device::{Port, validity};
use crate::value::Value;

/// A run that ended at a difference.
#[derive(Debug)]
pub struct Failing {
    /// The seed of its traffic.
    pub seed: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// Looks at other seeds than that of `first` for a run that fails sooner: at most `seeds` of them,
/// and `cycles` cycles in all.
pub fn shortest(
    build: impl Fn(u64) -> Pair,
    first: Failing,
    seeds: u64,
    mut cycles: u64,
) -> Failing {
    let mut best = first;
    for offset in 1..=seeds {
        let most = cycles.min(best.outcome.cycles - 1);
        if most == 0 {
            break;
        }
        let seed = best.seed.wrapping_add(offset);
        let outcome = build(seed).run(most, seed);
        cycles -= outcome.cycles;
        if outcome.mismatch.is_some() {
            best = Failing { seed, outcome };
        }
    }
    best
}

/// The last `most` cycles of a run, a line each: the inputs that are not zero and mean something.
pub fn compact(outcome: &Outcome, inputs: &[Port], most: usize) -> String {
    let validity = validity(inputs);
    let mut text = String::new();
    let shown = most.min(outcome.history.len());
    let first = outcome.cycles - shown as u64;
    if first > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "cycle 0 to {}: not shown", first - 1);
    }
    let cycles = outcome.history.iter().skip(outcome.history.len() - shown);
    for (cycle, ports) in (first..).zip(cycles) {
        let _ = write!(text, "cycle {cycle}:");
        let mut idle = true;
        for (index, (port, value)) in inputs.iter().zip(&ports.inputs).enumerate() {
            let valid = validity.get(index).copied().flatten();
            let valid = valid.and_then(|valid| ports.inputs.get(valid));
            let means_anything = valid.is_none_or(|valid| *valid != Value::default());
            if means_anything && *value != Value::default() {
                let _ = write!(text, " {}={value}", port.name);
                idle = false;
            }
        }
        text.push_str(if idle { " nothing\n" } else { "\n" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::find;

    #[test]
    fn the_search_finds_a_shorter_run_that_fails_too() {
        let bench = find("fifo").unwrap();
        let build = |seed| (bench.build)(seed, Some("one place more"));
        let seed = 5;
        let outcome = build(seed).run(10_000, seed);
        let before = outcome.cycles;
        let first = Failing { seed, outcome };
        let found = shortest(build, first, 100, 100_000);
        assert!(found.outcome.mismatch.is_some());
        assert!(found.outcome.cycles < before, "{before}");
        // It fails again, in the same cycle.
        let again = build(found.seed).run(10_000, found.seed);
        assert_eq!(again.mismatch, found.outcome.mismatch);
    }

    #[test]
    fn a_search_without_effort_keeps_what_there_is() {
        let bench = find("fifo").unwrap();
        let build = |seed| (bench.build)(seed, Some("one place more"));
        let outcome = build(1).run(10_000, 1);
        let cycles = outcome.cycles;
        let found = shortest(build, Failing { seed: 1, outcome }, 100, 0);
        assert_eq!((found.seed, found.outcome.cycles), (1, cycles));
    }

    #[test]
    fn idle_inputs_are_left_out() {
        let mut pair = (find("fifo").unwrap().build)(1, Some("one place more"));
        let outcome = pair.run(10_000, 1);
        let text = compact(&outcome, &pair.rtl.inputs(), 3);
        assert!(text.starts_with("cycle 0 to "), "{text}");
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("write=0x1"), "{text}");
        assert!(!text.contains("=0x0"), "{text}");
    }
}
