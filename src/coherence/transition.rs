//! The memory accesses whose throughput a table holds: load or store, hit or miss, of lines in one
//! state, with the other core on the same socket or not.
//!
//! Used by [`super::table`], where each has a curve over the buffer size, and by [`super::model`],
//! which names the ones of Table II of the paper.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The core reads the buffer.
    Load,
    /// The core writes the buffer.
    Store,
}

sme_barrier::names!(Access, "access", { Load => "load", Store => "store" });

/// Whether the accessing core has a copy of the line before the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalCopy {
    /// It has prepared the line itself. The copy may have left for an outer cache or for memory
    /// since, where the buffer is larger than a cache.
    Hit,
    /// Another core has prepared the line, or no cache has it.
    Miss,
}

sme_barrier::names!(LocalCopy, "copy", { Hit => "hit", Miss => "miss" });

/// State of the line before the access: of a hit in the cache of the accessing core, of a miss in
/// the cache of the core that prepared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The only copy, and memory is stale.
    Modified,
    /// Memory is stale, and other caches have shared copies (MOESI).
    Owned,
    /// The only copy, as in memory.
    Exclusive,
    /// Other caches may have the line, too.
    Shared,
    /// No cache has the line: the access goes to memory.
    Invalid,
}

sme_barrier::names!(State, "state", {
    Modified => "modified",
    Owned => "owned",
    Exclusive => "exclusive",
    Shared => "shared",
    Invalid => "invalid",
});

/// An access to lines in one state: the paper's *Load Hit Modified* and its kin.
///
/// Displays as the paper's abbreviation and is parsed from it: `LHM`, `LMM`, `SHS`, `SHM`, `SHO`,
/// `SMM`, `LMI`, `SMI`, …
///
/// ```
/// use sme::coherence::transition::Transition;
///
/// let miss: Transition = "LMM".parse()?;
/// assert_eq!(miss, Transition::LMM);
/// assert_eq!(miss.to_string(), "LMM");
/// assert!("LHI".parse::<Transition>().is_err(), "an invalid line is no hit");
/// # Ok::<(), sme::coherence::transition::TransitionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transition {
    access: Access,
    copy: LocalCopy,
    state: State,
}

impl Transition {
    /// Load Hit Modified: step 1 of Table II from a source buffer written recently.
    pub const LHM: Self = Self::of(Access::Load, LocalCopy::Hit, State::Modified);
    /// Store Hit Shared: step 2 of Table II.
    pub const SHS: Self = Self::of(Access::Store, LocalCopy::Hit, State::Shared);
    /// Store Hit Owned: the same step where the sender owns the buffer (Sec. IV-E).
    pub const SHO: Self = Self::of(Access::Store, LocalCopy::Hit, State::Owned);
    /// Load Miss Modified: step 3 of Table II.
    pub const LMM: Self = Self::of(Access::Load, LocalCopy::Miss, State::Modified);
    /// Store Hit Modified: step 4 of Table II into a buffer used recently.
    pub const SHM: Self = Self::of(Access::Store, LocalCopy::Hit, State::Modified);
    /// Load Miss Invalid: a load from memory.
    pub const LMI: Self = Self::of(Access::Load, LocalCopy::Miss, State::Invalid);
    /// Store Miss Invalid: a store to memory.
    pub const SMI: Self = Self::of(Access::Store, LocalCopy::Miss, State::Invalid);

    const fn of(access: Access, copy: LocalCopy, state: State) -> Self {
        Self {
            access,
            copy,
            state,
        }
    }

    /// An access to lines in `state`.
    ///
    /// # Errors
    /// A hit of an invalid line.
    pub fn new(access: Access, copy: LocalCopy, state: State) -> Result<Self, TransitionError> {
        match (copy, state) {
            (LocalCopy::Hit, State::Invalid) => Err(TransitionError::InvalidHit),
            _ => Ok(Self::of(access, copy, state)),
        }
    }

    /// All transitions there are: nine of loads, nine of stores.
    pub fn all() -> impl Iterator<Item = Self> {
        let of = |&access: &Access| {
            let states = State::ALL.iter();
            let hits = states
                .clone()
                .map(move |&s| Self::new(access, LocalCopy::Hit, s));
            let misses = states.map(move |&s| Self::new(access, LocalCopy::Miss, s));
            hits.chain(misses).filter_map(Result::ok)
        };
        Access::ALL.iter().flat_map(of)
    }

    /// Load or store.
    pub fn access(self) -> Access {
        self.access
    }

    /// Hit or miss.
    pub fn copy(self) -> LocalCopy {
        self.copy
    }

    /// State of the lines.
    pub fn state(self) -> State {
        self.state
    }

    /// Returns whether another core has a copy before the access: on every miss of a valid line,
    /// and on a hit of a line that is shared or owned.
    pub fn involves_another_core(self) -> bool {
        match self.copy {
            LocalCopy::Hit => matches!(self.state, State::Owned | State::Shared),
            LocalCopy::Miss => self.state != State::Invalid,
        }
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access {
            Access::Load => 'L',
            Access::Store => 'S',
        };
        let copy = match self.copy {
            LocalCopy::Hit => 'H',
            LocalCopy::Miss => 'M',
        };
        let state = match self.state {
            State::Modified => 'M',
            State::Owned => 'O',
            State::Exclusive => 'E',
            State::Shared => 'S',
            State::Invalid => 'I',
        };
        f.pad(&String::from_iter([access, copy, state]))
    }
}

impl FromStr for Transition {
    type Err = TransitionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || TransitionError::Unknown(text.chars().take(20).collect());
        let mut letters = text.chars();
        let [Some(access), Some(copy), Some(state), None] = std::array::from_fn(|_| letters.next())
        else {
            return Err(unknown());
        };
        let access = match access {
            'L' => Access::Load,
            'S' => Access::Store,
            _ => return Err(unknown()),
        };
        let copy = match copy {
            'H' => LocalCopy::Hit,
            'M' => LocalCopy::Miss,
            _ => return Err(unknown()),
        };
        let state = match state {
            'M' => State::Modified,
            'O' => State::Owned,
            'E' => State::Exclusive,
            'S' => State::Shared,
            'I' => State::Invalid,
            _ => return Err(unknown()),
        };
        Self::new(access, copy, state)
    }
}

/// Two cores relative to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoreDistance {
    /// On the same socket.
    Socket,
    /// On different sockets.
    Remote,
}

sme_barrier::names!(CoreDistance, "placement", { Socket => "socket", Remote => "remote" });

/// Where the other core that has a copy is, seen from the accessing core.
///
/// [`Self::Local`] is for the transitions in which no other core has one: a hit of a modified or
/// exclusive line, and any access to an invalid line. A hit of a shared or owned line has the
/// placement of the other sharer, which the access must invalidate or leave alone; a miss that of
/// the core that prepared the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// No other core has a copy.
    Local,
    /// On the socket of the accessing core.
    Socket,
    /// On another socket.
    Remote,
}

sme_barrier::names!(Holder, "holder", {
    Local => "local",
    Socket => "socket",
    Remote => "remote",
});

impl From<CoreDistance> for Holder {
    fn from(placement: CoreDistance) -> Self {
        match placement {
            CoreDistance::Socket => Self::Socket,
            CoreDistance::Remote => Self::Remote,
        }
    }
}

/// The difference from a plain pass over the buffer (Sec. IV-C and IV-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Nothing.
    Plain,
    /// The other core has flushed its copy before the pass, which is not timed (Fig. 8 and 12).
    Flushed,
    /// The core flushes the lines that it has stored, within the time of the pass (Fig. 9).
    FlushedAfter,
    /// The stores are non-temporal: they go past the caches (Fig. 9 and 10).
    NonTemporal,
}

sme_barrier::names!(Variant, "variant", {
    Plain => "plain",
    Flushed => "flushed",
    FlushedAfter => "flushed-after",
    NonTemporal => "non-temporal",
});

/// A transition, where the other core is, and a variant: the name of a throughput curve.
///
/// Displays as the abbreviation, the placement of the other core where there is one, and the
/// variant unless it is plain: `LHM`, `LMM socket`, `SHS remote non-temporal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Curve {
    transition: Transition,
    holder: Holder,
    variant: Variant,
}

impl Curve {
    /// The curve of these three.
    ///
    /// # Errors
    /// A holder where no other core has a copy, none where one has; a flush by another core where
    /// there is none; loads that are non-temporal or flushed after.
    pub fn new(
        transition: Transition,
        holder: Holder,
        variant: Variant,
    ) -> Result<Self, TransitionError> {
        if transition.involves_another_core() != (holder != Holder::Local) {
            return Err(TransitionError::Holder(transition, holder));
        }
        let is_possible = match variant {
            Variant::Plain => true,
            Variant::Flushed => transition.involves_another_core(),
            Variant::FlushedAfter | Variant::NonTemporal => transition.access == Access::Store,
        };
        match is_possible {
            true => Ok(Self {
                transition,
                holder,
                variant,
            }),
            false => Err(TransitionError::Variant(transition, variant)),
        }
    }

    /// The plain curve of `transition` with the other core, where it involves one, at `placement`.
    pub fn plain(transition: Transition, placement: CoreDistance) -> Self {
        let holder = match transition.involves_another_core() {
            true => placement.into(),
            false => Holder::Local,
        };
        Self {
            transition,
            holder,
            variant: Variant::Plain,
        }
    }

    /// This curve in another variant.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(self, variant: Variant) -> Result<Self, TransitionError> {
        Self::new(self.transition, self.holder, variant)
    }

    /// The access and the state.
    pub fn transition(self) -> Transition {
        self.transition
    }

    /// Where the other core is.
    pub fn holder(self) -> Holder {
        self.holder
    }

    /// The difference from a plain pass.
    pub fn variant(self) -> Variant {
        self.variant
    }
}

/// The curves of a table, as far as a machine has them: every transition at both placements, and
/// the variants of those that a transfer goes through.
pub fn of_tables() -> Vec<Curve> {
    let mut curves = Vec::new();
    for &placement in CoreDistance::ALL {
        curves.extend(Transition::all().map(|of| Curve::plain(of, placement)));
        let varied = [
            (Transition::LMM, Variant::Flushed),
            (Transition::SHS, Variant::Flushed),
            (Transition::SHS, Variant::FlushedAfter),
            (Transition::SHS, Variant::NonTemporal),
            (Transition::SHO, Variant::FlushedAfter),
            (Transition::SHO, Variant::NonTemporal),
            (Transition::SHM, Variant::FlushedAfter),
            (Transition::SHM, Variant::NonTemporal),
        ];
        let varied = varied.map(|(of, variant)| Curve::plain(of, placement).with(variant));
        // Each of them is a curve, which a test holds.
        curves.extend(varied.into_iter().flatten());
    }
    curves.sort_unstable();
    curves.dedup();
    curves
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.transition.to_string();
        if self.holder != Holder::Local {
            text.push(' ');
            text.push_str(self.holder.name());
        }
        if self.variant != Variant::Plain {
            text.push(' ');
            text.push_str(self.variant.name());
        }
        f.pad(&text)
    }
}

/// Why there is no such transition or curve.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransitionError {
    /// Not three of the letters.
    #[error(
        "'{0}' is no transition: write L or S, H or M, and one of M, O, E, S and I, such as LMM"
    )]
    Unknown(String),
    /// A line that is in no cache cannot be hit.
    #[error("a hit of an invalid line is a contradiction")]
    InvalidHit,
    /// The holder contradicts the transition.
    #[error("{0} with holder {1}: {reason}", reason = holder_reason(*.0))]
    Holder(Transition, Holder),
    /// The variant contradicts the transition.
    #[error("{0} cannot be {1}: {reason}", reason = variant_reason(*.1))]
    Variant(Transition, Variant),
}

fn holder_reason(transition: Transition) -> &'static str {
    match transition.involves_another_core() {
        true => "another core has a copy, so that the holder is socket or remote",
        false => "no other core has a copy, so that the holder is local",
    }
}

fn variant_reason(variant: Variant) -> &'static str {
    match variant {
        Variant::Flushed => "no other core has a copy to flush",
        _ => "only stores can",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_abbreviation_is_read_back() {
        let all: Vec<Transition> = Transition::all().collect();
        assert_eq!(all.len(), 18);
        let texts: BTreeSet<String> = all.iter().map(Transition::to_string).collect();
        assert_eq!(texts.len(), 18);
        for transition in all {
            assert_eq!(transition.to_string().parse(), Ok(transition));
        }
        for paper in ["LHM", "LMM", "SHS", "SHM", "SMM", "LMI", "SMI", "SHO"] {
            assert!(texts.contains(paper), "{paper}");
        }
    }

    #[test]
    fn what_is_no_abbreviation_is_refused() {
        for text in ["", "L", "LM", "LMMM", "lmm", "XMM", "LXM", "LMX", "é\0M"] {
            let refused = text.parse::<Transition>();
            assert!(
                matches!(refused, Err(TransitionError::Unknown(_))),
                "{text}"
            );
        }
        assert_eq!(
            "SHI".parse::<Transition>(),
            Err(TransitionError::InvalidHit)
        );
    }

    /// Counts the curves by the rules in words: 18 transitions, of which 12 involve another core
    /// (two placements each), with the variants that are possible.
    #[test]
    fn curves_are_those_that_make_sense() {
        let mut curves = BTreeSet::new();
        for transition in Transition::all() {
            for &holder in Holder::ALL {
                for &variant in Variant::ALL {
                    curves.extend(Curve::new(transition, holder, variant));
                }
            }
        }
        let of = |variant| curves.iter().filter(|c| c.variant() == variant).count();
        assert_eq!(of(Variant::Plain), 12 * 2 + 6);
        assert_eq!(of(Variant::Flushed), 12 * 2);
        assert_eq!(of(Variant::NonTemporal), 6 * 2 + 3);
        assert_eq!(of(Variant::FlushedAfter), 6 * 2 + 3);
        for &placement in CoreDistance::ALL {
            for transition in Transition::all() {
                assert!(curves.contains(&Curve::plain(transition, placement)));
            }
        }
    }

    #[test]
    fn a_curve_is_shown_in_words() {
        let remote = Curve::plain(Transition::SHS, CoreDistance::Remote);
        let silent = Curve::plain(Transition::LHM, CoreDistance::Remote);
        assert_eq!(silent.to_string(), "LHM");
        assert_eq!(remote.to_string(), "SHS remote");
        let streamed = remote.with(Variant::NonTemporal).unwrap();
        assert_eq!(streamed.to_string(), "SHS remote non-temporal");
        let error = silent.with(Variant::NonTemporal).unwrap_err().to_string();
        assert_eq!(error, "LHM cannot be non-temporal: only stores can");
        let error = Curve::new(Transition::LMI, Holder::Remote, Variant::Plain).unwrap_err();
        assert_eq!(
            error.to_string(),
            "LMI with holder remote: no other core has a copy, so that the holder is local"
        );
    }
}
