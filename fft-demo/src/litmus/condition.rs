//! The question at the end of a litmus test: a quantifier and a proposition about final states.
//!
//! Operators bind as in herd7: `not` first, then `=>`, `/\` and, last, `\/`.

use super::test::{FinalState, Register};

/// Something whose value can be looked at when a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observable {
    /// A register of a thread.
    Register(usize, Register),
    /// A location, by its number.
    Location(usize),
}

/// Of how many final states a proposition is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Of one at least.
    Exists,
    /// Of none.
    NotExists,
    /// Of all.
    Forall,
}

impl Quantifier {
    /// Returns the keyword of the format for it.
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::NotExists => "~exists",
            Self::Forall => "forall",
        }
    }

    /// Returns the word of litmus7 for a test with this quantifier.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Exists => "Allowed",
            Self::NotExists => "Forbidden",
            Self::Forall => "Required",
        }
    }
}

/// A proposition about a final state. Made by the functions below, which put operators of one kind
/// together; at most [`MOST_DEPTH`](super::MOST_DEPTH) stand within each other in what was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposition {
    /// `0:EAX=1`, `x=1`
    Is(Observable, i32),
    /// `not (...)`
    Not(Box<Self>),
    /// `... /\ ...`; without any, `true`.
    All(Vec<Self>),
    /// `... \/ ...`; without any, `false`.
    Any(Vec<Self>),
    /// `... => ...`
    Implies(Box<Self>, Box<Self>),
}

impl Proposition {
    /// Returns whether all of `parts` hold.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::only_or(flat, Self::All)
    }

    /// Returns whether one of `parts` holds.
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::only_or(flat, Self::Any)
    }

    fn only_or(mut parts: Vec<Self>, several: fn(Vec<Self>) -> Self) -> Self {
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                several(parts)
            }
        }
    }

    /// Returns whether it holds of `state`.
    pub fn holds(&self, state: &FinalState) -> bool {
        match self {
            Self::Is(what, value) => state.value(*what) == *value,
            Self::Not(inner) => !inner.holds(state),
            Self::All(parts) => parts.iter().all(|part| part.holds(state)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(state)),
            Self::Implies(reason, result) => !reason.holds(state) || result.holds(state),
        }
    }

    /// Calls `visit` for everything that it is about.
    pub fn for_each_observable(&self, visit: &mut impl FnMut(Observable)) {
        match self {
            Self::Is(what, _) => visit(*what),
            Self::Not(inner) => inner.for_each_observable(visit),
            Self::All(parts) | Self::Any(parts) => {
                parts
                    .iter()
                    .for_each(|part| part.for_each_observable(visit));
            }
            Self::Implies(reason, result) => {
                reason.for_each_observable(visit);
                result.for_each_observable(visit);
            }
        }
    }

    fn text(&self, name: &dyn Fn(Observable) -> String) -> String {
        let joined = |parts: &[Self], operator: &str| {
            let parts: Vec<String> = parts.iter().map(|part| self.part(part, name)).collect();
            parts.join(operator)
        };
        match self {
            Self::Is(what, value) => format!("{}={value}", name(*what)),
            Self::Not(inner) => format!("not ({})", inner.text(name)),
            Self::All(parts) if parts.is_empty() => "true".to_owned(),
            Self::Any(parts) if parts.is_empty() => "false".to_owned(),
            Self::All(parts) => joined(parts, " /\\ "),
            Self::Any(parts) => joined(parts, " \\/ "),
            Self::Implies(reason, result) => {
                format!("{} => {}", self.part(reason, name), self.part(result, name))
            }
        }
    }

    /// `part` of this proposition, in parentheses where it would be read otherwise without.
    fn part(&self, part: &Self, name: &dyn Fn(Observable) -> String) -> String {
        let text = part.text(name);
        let plain = match (self, part) {
            (_, Self::Is(..) | Self::Not(_)) => true,
            (_, Self::All(parts) | Self::Any(parts)) if parts.is_empty() => true,
            (Self::Any(_), Self::All(_) | Self::Implies(..)) => true,
            (Self::All(_), Self::Implies(..)) => true,
            _ => false,
        };
        if plain { text } else { format!("({text})") }
    }
}

/// A quantifier and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Of how many final states.
    pub quantifier: Quantifier,
    /// The proposition that is to hold.
    pub proposition: Proposition,
}

impl Condition {
    /// The condition on one line; `name` tells how registers and locations are called.
    pub fn text(&self, name: &dyn Fn(Observable) -> String) -> String {
        let keyword = self.quantifier.keyword();
        format!("{keyword} ({})", self.proposition.text(name))
    }

    /// Returns whether litmus7 marks `state`: a witness, or for `forall` a counterexample.
    pub fn marks(&self, state: &FinalState) -> bool {
        self.proposition.holds(state) != (self.quantifier == Quantifier::Forall)
    }
}
