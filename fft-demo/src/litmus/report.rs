//! The outcomes of many runs of a litmus test, as litmus7 shows them.

use std::collections::BTreeMap;
use std::fmt;

use super::condition::{Observable, Quantifier};
use super::model::{Behaviours, TooLarge};
use super::test::{FinalState, Test};

/// The number of runs that ended in each final state.
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
    /// The number of runs that ended so.
    pub count: u64,
    /// Whether litmus7 marks it with a star.
    pub marked: bool,
    /// Whether the model allows it.
    pub verdict: Verdict,
}

/// A model's verdict on an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model allows every state that was seen of it, or one where none was seen.
    Allowed,
    /// The model does not allow one of the states that were seen of it.
    Forbidden,
    /// The test is too large for a search.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allowed",
            Self::Forbidden => "forbidden",
            Self::Unknown => "unknown",
        })
    }
}

/// The outcomes of a test and what follows from them. `Display` gives the lines that litmus7
/// prints, without those that depend on the host; behind each outcome stands the model's verdict,
/// and behind all of them the outcomes that the model allows and no run has shown.
#[derive(Clone, Debug)]
pub struct Report<'t> {
    test: &'t Test,
    model: &'t str,
    observed: Vec<Observable>,
    seen: Vec<Seen>,
    unseen: Result<Vec<Seen>, TooLarge>,
}

impl<'t> Report<'t> {
    /// Of the runs of `test` that `histogram` counts, held against everything that a model called
    /// `model` allows.
    pub fn new(
        test: &'t Test,
        histogram: &Histogram,
        model: &'t str,
        allowed: Result<&Behaviours, TooLarge>,
    ) -> Self {
        let observed = test.observed();
        let values_of =
            |state: &FinalState| observed.iter().map(|&what| state.value(what)).collect();
        let mut merged: BTreeMap<Vec<i32>, Seen> = BTreeMap::new();
        for (state, count) in histogram.states() {
            let verdict = match allowed {
                Ok(behaviours) if behaviours.allows(state) => Verdict::Allowed,
                Ok(_) => Verdict::Forbidden,
                Err(TooLarge) => Verdict::Unknown,
            };
            let values: Vec<i32> = values_of(state);
            let seen = merged.entry(values.clone()).or_insert(Seen {
                values,
                count: 0,
                marked: test.condition.marks(state),
                verdict,
            });
            seen.count += count;
            if verdict == Verdict::Forbidden {
                seen.verdict = verdict;
            }
        }
        let unseen = allowed.map(|behaviours| {
            let mut unseen: BTreeMap<Vec<i32>, Seen> = BTreeMap::new();
            for state in behaviours.states() {
                let values: Vec<i32> = values_of(state);
                if !merged.contains_key(&values) {
                    unseen.entry(values.clone()).or_insert(Seen {
                        values,
                        count: 0,
                        marked: test.condition.marks(state),
                        verdict: Verdict::Allowed,
                    });
                }
            }
            unseen.into_values().collect()
        });
        Self {
            test,
            model,
            seen: merged.into_values().collect(),
            unseen,
            observed,
        }
    }

    /// The lines of the histogram, by their values.
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// The outcomes that the model allows and no run has shown, by their values; none is known of
    /// a test that is too large for a search.
    pub fn unseen(&self) -> Result<&[Seen], TooLarge> {
        self.unseen.as_deref().map_err(|&large| large)
    }

    /// The number of outcomes seen that have this verdict.
    pub fn with_verdict(&self, verdict: Verdict) -> usize {
        let of_it = self.seen.iter().filter(|seen| seen.verdict == verdict);
        of_it.count()
    }

    /// The values of a line under their names: `0:EAX=0; [x]=1;`.
    pub fn state_text(&self, seen: &Seen) -> String {
        let pair =
            |(&what, value): (&Observable, &i32)| format!("{}={value};", self.test.name_of(what));
        let pairs: Vec<String> = self.observed.iter().zip(&seen.values).map(pair).collect();
        pairs.join(" ")
    }

    /// Returns the number of runs that ended in a state of which the proposition holds, and of
    /// those that did not.
    pub fn observations(&self) -> (u64, u64) {
        let (marked, others) = self.marked_and_others();
        match self.test.condition.quantifier {
            Quantifier::Forall => (others, marked),
            Quantifier::Exists | Quantifier::NotExists => (marked, others),
        }
    }

    /// Returns the number of runs that speak for the condition, and of those against it.
    pub fn witnesses(&self) -> (u64, u64) {
        let (marked, others) = self.marked_and_others();
        match self.test.condition.quantifier {
            Quantifier::Exists => (marked, others),
            Quantifier::NotExists | Quantifier::Forall => (others, marked),
        }
    }

    /// Returns whether the condition holds of what was seen.
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
            let (count, state) = (seen.count, self.state_text(seen));
            writeln!(f, "{count:<6}{mark}>{state} {}", seen.verdict)?;
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
        )?;
        let model = self.model;
        let unseen = match &self.unseen {
            Ok(unseen) => unseen,
            Err(large) => return writeln!(f, "Model {model}: {large}"),
        };
        let (seen, missing) = (self.with_verdict(Verdict::Allowed), unseen.len());
        writeln!(
            f,
            "Model {model}: {} outcomes allowed, {seen} seen, {missing} unseen; {} forbidden seen",
            seen + missing,
            self.with_verdict(Verdict::Forbidden),
        )?;
        for outcome in unseen {
            let mark = if outcome.marked { '*' } else { ':' };
            writeln!(f, "Unseen {mark}>{}", self.state_text(outcome))?;
        }
        Ok(())
    }
}
