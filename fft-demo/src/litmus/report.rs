//! What came out of many runs of a litmus test, as litmus7 shows it.

use std::collections::BTreeMap;
use std::fmt;

use super::condition::{Observable, Quantifier};
use super::test::{FinalState, Test};

/// How often each final state was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    states: BTreeMap<FinalState, u64>,
}

impl Histogram {
    /// One more run ended in `state`.
    pub fn count(&mut self, state: FinalState) {
        *self.states.entry(state).or_default() += 1;
    }

    /// Every state that was seen, and how often.
    pub fn states(&self) -> impl Iterator<Item = (&FinalState, u64)> {
        self.states.iter().map(|(state, &count)| (state, count))
    }
}

/// One line of the histogram: what a test looks at in a final state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The values, in the order of [`Test::observed`].
    pub values: Vec<i32>,
    /// How many runs ended so.
    pub count: u64,
    /// Whether litmus7 marks it with a star.
    pub marked: bool,
}

/// The outcomes of a test and what follows from them. `Display` gives the lines that litmus7 prints,
/// without those that depend on the host.
#[derive(Clone, Debug)]
pub struct Report<'t> {
    test: &'t Test,
    observed: Vec<Observable>,
    seen: Vec<Seen>,
}

impl<'t> Report<'t> {
    /// Of the runs of `test` that `histogram` counts.
    pub fn new(test: &'t Test, histogram: &Histogram) -> Self {
        let observed = test.observed();
        let mut merged: BTreeMap<Vec<i32>, (u64, bool)> = BTreeMap::new();
        for (state, count) in histogram.states() {
            let values = observed.iter().map(|&what| state.value(what)).collect();
            let (sum, _) = merged
                .entry(values)
                .or_insert((0, test.condition.marks(state)));
            *sum += count;
        }
        let seen = merged
            .into_iter()
            .map(|(values, (count, marked))| Seen {
                values,
                count,
                marked,
            })
            .collect();
        Self {
            test,
            observed,
            seen,
        }
    }

    /// The lines of the histogram, by their values.
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// The values of a line under their names: `0:EAX=0; [x]=1;`.
    pub fn state_text(&self, seen: &Seen) -> String {
        let pair =
            |(&what, value): (&Observable, &i32)| format!("{}={value};", self.test.name_of(what));
        let pairs: Vec<String> = self.observed.iter().zip(&seen.values).map(pair).collect();
        pairs.join(" ")
    }

    /// How many runs ended in a state of which the proposition holds, and how many did not.
    pub fn observations(&self) -> (u64, u64) {
        let (marked, others) = self.marked_and_others();
        match self.test.condition.quantifier {
            Quantifier::Forall => (others, marked),
            Quantifier::Exists | Quantifier::NotExists => (marked, others),
        }
    }

    /// How many runs speak for the condition, and how many against it.
    pub fn witnesses(&self) -> (u64, u64) {
        let (marked, others) = self.marked_and_others();
        match self.test.condition.quantifier {
            Quantifier::Exists => (marked, others),
            Quantifier::NotExists | Quantifier::Forall => (others, marked),
        }
    }

    /// Whether the condition holds of what was seen.
    pub fn is_validated(&self) -> bool {
        let (marked, _) = self.marked_and_others();
        (marked > 0) == (self.test.condition.quantifier == Quantifier::Exists)
    }

    /// `Never`, `Sometimes` or `Always`: how often the proposition held.
    pub fn observation(&self) -> &'static str {
        match self.observations() {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }

    fn marked_and_others(&self) -> (u64, u64) {
        let sum = |marked| {
            let of_kind = self.seen.iter().filter(|seen| seen.marked == marked);
            of_kind.map(|seen| seen.count).sum()
        };
        (sum(true), sum(false))
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, condition) = (&self.test.name, &self.test.condition);
        writeln!(f, "Test {name} {}", condition.quantifier.kind())?;
        writeln!(f, "Histogram ({} states)", self.seen.len())?;
        for seen in &self.seen {
            let mark = if seen.marked { '*' } else { ':' };
            writeln!(f, "{:<6}{mark}>{}", seen.count, self.state_text(seen))?;
        }
        let validated = self.is_validated();
        writeln!(f, "{}", if validated { "Ok" } else { "No" })?;
        let (positive, negative) = self.witnesses();
        writeln!(f, "\nWitnesses\nPositive: {positive}, Negative: {negative}")?;
        let not = if validated { "" } else { "NOT " };
        writeln!(
            f,
            "Condition {} is {not}validated",
            self.test.condition_text()
        )?;
        for (key, value) in &self.test.info {
            writeln!(f, "{key}={value}")?;
        }
        let (held, failed) = self.observations();
        writeln!(
            f,
            "Observation {name} {} {held} {failed}",
            self.observation()
        )
    }
}
