//! Recipes: the steps that bring a buffer into a state, and the pass that is measured then.
//!
//! Read by [`super::run`]. Every recipe begins with the buffer in no cache, where it can be
//! flushed. States follow from what every protocol of the MESI family does: a core that reads a
//! line which no cache has holds it exclusive, a second reader makes both shared, a writer has the
//! only copy.

use std::fmt;

use crate::coherence::transition::{self, Access, CoreDistance, Curve, LocalCopy, State, Variant};

/// A thread of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The one whose pass is timed.
    Measuring,
    /// The first holder at the placement of the curve.
    Holder,
    /// A second holder there.
    Sharer,
}

/// A pass over the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Flushes.
    Flush,
    /// Stores, and then flushes.
    StoreAndFlush,
    /// Non-temporal stores.
    Stream,
}

/// The passes that prepare the lines of a curve, and the one that is timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Who does what to the whole buffer, one after the other.
    pub preparation: Vec<(Who, Pass)>,
    /// The pass of the measuring thread, with the clock running.
    pub timed: Pass,
}

/// The means of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// Holders on the socket of the measuring CPU.
    pub on_socket: usize,
    /// Holders on other sockets.
    pub remote: usize,
    /// Whether lines can be flushed.
    pub has_flush: bool,
    /// Whether the caches are known to have an owned state.
    pub has_owned: bool,
}

impl Means {
    fn holders(&self, placement: CoreDistance) -> usize {
        match placement {
            CoreDistance::Socket => self.on_socket,
            CoreDistance::Remote => self.remote,
        }
    }
}

/// Why a curve cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmeasurable {
    /// There are too few holders at a placement.
    Holders {
        /// The distance at which holders are missing.
        placement: CoreDistance,
        /// The number of holders that it takes.
        needed: usize,
        /// The number of holders that there are.
        given: usize,
    },
    /// No instruction flushes lines, and without one the state cannot be prepared.
    NoFlush,
    /// Nothing says that the caches have an owned state.
    NoOwned,
}

impl fmt::Display for Unmeasurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Holders {
                placement,
                needed,
                given,
            } => {
                let plural = if needed == 1 { "" } else { "s" };
                let place = match placement {
                    CoreDistance::Socket => "on the socket",
                    CoreDistance::Remote => "on another socket",
                };
                write!(
                    f,
                    "needs {needed} other CPU{plural} {place}, and has {given}"
                )
            }
            Self::NoFlush => f.write_str(
                "needs an instruction that flushes cache lines, which is used on x86-64 only",
            ),
            Self::NoOwned => f.write_str(
                "needs caches that are known to have an owned state: those of AMD and Hygon",
            ),
        }
    }
}

/// Returns the recipe that measures `curve` with these means.
///
/// # Errors
/// It cannot be.
pub fn recipe(curve: Curve, means: Means) -> Result<Recipe, Unmeasurable> {
    use Pass::{Flush, Load, Store, StoreAndFlush, Stream};
    use Who::{Holder, Measuring, Sharer};

    let accessed = curve.transition();
    let state = match (accessed.copy(), accessed.state()) {
        (LocalCopy::Hit, State::Modified) => vec![(Measuring, Store)],
        (LocalCopy::Hit, State::Exclusive) => vec![(Measuring, Load)],
        (LocalCopy::Hit, State::Shared) => vec![(Measuring, Load), (Holder, Load)],
        (LocalCopy::Hit, State::Owned) => vec![(Measuring, Store), (Holder, Load)],
        (LocalCopy::Miss, State::Modified) => vec![(Holder, Store)],
        (LocalCopy::Miss, State::Exclusive) => vec![(Holder, Load)],
        (LocalCopy::Miss, State::Shared) => vec![(Holder, Load), (Sharer, Load)],
        (LocalCopy::Miss, State::Owned) => vec![(Holder, Store), (Sharer, Load)],
        // A hit of an invalid line is no transition.
        (_, State::Invalid) => Vec::new(),
    };
    // CLFLUSH takes the copy of the measuring core, too, as it does in a transfer.
    let flushed = match curve.variant() {
        Variant::Flushed => vec![(Holder, Flush)],
        _ => Vec::new(),
    };
    let timed = match (accessed.access(), curve.variant()) {
        (Access::Load, _) => Load,
        (Access::Store, Variant::Plain | Variant::Flushed) => Store,
        (Access::Store, Variant::FlushedAfter) => StoreAndFlush,
        (Access::Store, Variant::NonTemporal) => Stream,
    };

    let is_in = |who| state.iter().any(|&(other, _)| other == who);
    let needed = usize::from(is_in(Holder)) + usize::from(is_in(Sharer));
    let placement = match curve.holder() {
        transition::Holder::Remote => CoreDistance::Remote,
        _ => CoreDistance::Socket,
    };
    let given = means.holders(placement);
    if given < needed {
        return Err(Unmeasurable::Holders {
            placement,
            needed,
            given,
        });
    }
    if accessed.state() == State::Owned && !means.has_owned {
        return Err(Unmeasurable::NoOwned);
    }
    // A store leaves a line modified, whichever state it was in.
    let is_stored = state.last().is_some_and(|&(_, pass)| pass == Store);
    if !means.has_flush && (!is_stored || curve.variant() != Variant::Plain) {
        return Err(Unmeasurable::NoFlush);
    }
    let begin = means.has_flush.then_some((Measuring, Flush));
    Ok(Recipe {
        preparation: begin.into_iter().chain(state).chain(flushed).collect(),
        timed,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::coherence::transition::{Transition, of_tables};

    const ALL: Means = Means {
        on_socket: 2,
        remote: 2,
        has_flush: true,
        has_owned: true,
    };

    /// The oracle: a line in the caches of three cores, by the rules of MOESI.
    #[derive(Default)]
    struct Caches(BTreeMap<&'static str, State>);

    fn name(who: Who) -> &'static str {
        match who {
            Who::Measuring => "measuring",
            Who::Holder => "holder",
            Who::Sharer => "sharer",
        }
    }

    impl Caches {
        fn pass(&mut self, who: Who, pass: Pass) {
            let me = name(who);
            match pass {
                Pass::Flush => self.0.clear(),
                Pass::Store => {
                    self.0.clear();
                    self.0.insert(me, State::Modified);
                }
                Pass::Load if self.0.contains_key(me) => {}
                Pass::Load => {
                    let is_alone = self.0.is_empty();
                    for state in self.0.values_mut() {
                        *state = match *state {
                            State::Modified | State::Owned => State::Owned,
                            _ => State::Shared,
                        };
                    }
                    let mine = if is_alone {
                        State::Exclusive
                    } else {
                        State::Shared
                    };
                    self.0.insert(me, mine);
                }
                other => panic!("{other:?} prepares nothing"),
            }
        }
    }

    #[test]
    fn a_recipe_leaves_the_state_of_its_curve() {
        let all = of_tables();
        assert_eq!(all.len(), 12 * 2 + 6 + 6 * 2 + 2);
        for curve in all {
            let recipe = recipe(curve, ALL).unwrap();
            let mut caches = Caches::default();
            // Lines that an earlier pass has left.
            caches.pass(Who::Sharer, Pass::Store);
            for &(who, pass) in &recipe.preparation {
                if pass == Pass::Flush && who != Who::Measuring {
                    let wanted = curve.transition().state();
                    assert!(caches.0.values().any(|&state| state == wanted), "{curve}");
                }
                caches.pass(who, pass);
            }
            let mine = caches.0.remove("measuring");
            let theirs: Vec<State> = caches.0.into_values().collect();
            let transition = curve.transition();
            if curve.variant() == Variant::Flushed {
                assert_eq!(theirs, [], "{curve}");
                assert_eq!(mine, None, "{curve}");
                continue;
            }
            let state = transition.state();
            match (transition.copy(), state) {
                (LocalCopy::Hit, _) => assert_eq!(mine, Some(state), "{curve}"),
                (LocalCopy::Miss, State::Invalid) => assert_eq!((mine, theirs.len()), (None, 0)),
                (LocalCopy::Miss, _) => {
                    assert_eq!(mine, None, "{curve}");
                    assert!(theirs.contains(&state), "{curve}: {theirs:?}");
                }
            }
            if transition.copy() == LocalCopy::Hit {
                assert_eq!(
                    !theirs.is_empty(),
                    transition.involves_another_core(),
                    "{curve}"
                );
            }
        }
    }

    fn measurable(means: Means) -> Vec<String> {
        let all = of_tables().into_iter();
        let possible = all.filter(|&curve| recipe(curve, means).is_ok());
        possible.map(|curve| curve.to_string()).collect()
    }

    #[test]
    fn a_single_cpu_measures_what_takes_no_other() {
        let alone = Means {
            on_socket: 0,
            remote: 0,
            ..ALL
        };
        let names = measurable(alone);
        let expected = [
            "LHM",
            "LHE",
            "LMI",
            "SHM",
            "SHM flushed-after",
            "SHM non-temporal",
            "SHE",
            "SMI",
        ];
        assert_eq!(names, expected);
        let lmm = Curve::plain(Transition::LMM, CoreDistance::Remote);
        let reason = recipe(lmm, alone).unwrap_err().to_string();
        assert_eq!(reason, "needs 1 other CPU on another socket, and has 0");
    }

    #[test]
    fn shared_misses_take_two_holders() {
        let two = Means {
            on_socket: 1,
            remote: 0,
            has_owned: false,
            ..ALL
        };
        let names = measurable(two);
        for name in [
            "LMM socket",
            "LHS socket",
            "SME socket",
            "LMM socket flushed",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        for name in ["LMS socket", "SMS socket", "SHO socket", "LMM remote"] {
            assert!(!names.iter().any(|known| known == name), "{name}");
        }
    }

    #[test]
    fn without_flushes_modified_lines_can_be_prepared() {
        let unable = Means {
            has_flush: false,
            has_owned: false,
            remote: 0,
            ..ALL
        };
        assert_eq!(
            measurable(unable),
            ["LHM", "LMM socket", "SHM", "SMM socket"]
        );
    }
}
