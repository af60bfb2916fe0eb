//! A line's copies in two bytes and a set, for a home that has lines by the million.
//!
//! In every protocol here all copies of a line are in [`State::Shared`] but one at most: the one
//! that may be written, that is newer than memory, or that answers. So the set of those who hold a
//! copy, and which of them is not merely shared and in what state, tell the state of each.
//! Transactions have the same effect as those of [`line`](super::line) on a state for each cache.

use super::line::{Effect, NoRow, Source, asks_as, source_of};
use super::{Event, Next, State, Table};
use crate::parts::core_set::{CoreSet, MOST_CORES, Role, Roles};

/// The copy of a line that is not merely shared, if there is one: whose it is, and its state. Those
/// who hold copies are the ones with [`Role::Holds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary(u16);

const CORE_BITS: u32 = 10;
/// The number of no core.
const NONE: u16 = (1 << CORE_BITS) - 1;
const _: () = assert!(MOST_CORES <= NONE as u32);

impl Summary {
    /// All copies are shared, if there are any.
    pub const SHARED: Self = Self(State::Shared as u16).of_core(NONE);

    const fn of_core(self, core: u16) -> Self {
        Self(self.0 << CORE_BITS | core)
    }

    #[inline]
    fn new(core: u16, state: State) -> Self {
        Self(state as u16).of_core(core)
    }

    /// The core whose copy is not merely shared, and its state.
    #[inline]
    pub fn special(self) -> Option<(u16, State)> {
        let core = self.0 & NONE;
        (core != NONE).then_some((core, self.special_state()))
    }

    #[inline]
    fn special_state(self) -> State {
        State::ALL[usize::from(self.0 >> CORE_BITS)]
    }

    /// Returns whether a copy is newer than memory.
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.special_state().is_dirty()
    }

    /// The state of the copy of `core`.
    #[inline]
    pub fn state(self, holders: &Roles, core: u16) -> State {
        if self.0 & NONE == core {
            self.special_state()
        } else if holders.has(Role::Holds, core) {
            State::Shared
        } else {
            State::Invalid
        }
    }

    /// A load, a store or an eviction at `core`, with everything that the home does for it: see
    /// [`line::access`](super::line::access).
    ///
    /// # Errors
    /// [`NoRow`]: the table is not whole; nothing has changed.
    #[inline]
    pub fn access(
        &mut self,
        table: &Table,
        holders: &mut Roles,
        core: u16,
        event: Event,
    ) -> Result<Effect<CoreSet>, NoRow> {
        let state = self.state(holders, core);
        let row = table.row(state, event).ok_or(NoRow { state, event })?;
        let mut effect = match row.asks {
            true => self.tell(table, holders, Some(core), asks_as(event))?,
            false => Effect::none(),
        };
        effect.asked = row.asks;
        effect.source = source_of(event, state, effect.source);
        if row.writes_back {
            effect.written_back = Some(core);
        }
        self.goes_on(holders, (core, state), row.next);
        Ok(effect)
    }

    /// The same if the home need not be asked: whether that is so. Else nothing changes.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    #[inline]
    pub fn hits(
        &mut self,
        table: &Table,
        holders: &mut Roles,
        core: u16,
        event: Event,
    ) -> Result<bool, NoRow> {
        let state = self.state(holders, core);
        let row = table.row(state, event).ok_or(NoRow { state, event })?;
        if !row.asks {
            self.goes_on(holders, (core, state), row.next);
        }
        Ok(!row.asks)
    }

    /// All copies go: see [`line::flush`](super::line::flush).
    ///
    /// # Errors
    /// As [`access`](Self::access).
    #[inline]
    pub fn flush(&mut self, table: &Table, holders: &mut Roles) -> Result<Effect<CoreSet>, NoRow> {
        self.tell(table, holders, None, Event::Flush)
    }

    /// The home tells all caches but `by` of an event: see [`line::tell`](super::line::tell).
    /// Caches without a copy are not asked: to them it means nothing in any protocol.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    #[inline]
    pub fn tell(
        &mut self,
        table: &Table,
        holders: &mut Roles,
        by: Option<u16>,
        event: Event,
    ) -> Result<Effect<CoreSet>, NoRow> {
        let row = |state| table.row(state, event).ok_or(NoRow { state, event });
        let shared = row(State::Shared)?;
        let special = self.special().filter(|&(core, _)| Some(core) != by);
        let special = match special {
            Some((core, state)) => Some((core, row(state)?)),
            None => None,
        };
        let mut effect = Effect::none();
        effect.asked = true;
        debug_assert!(!shared.supplies && !shared.writes_back, "{event:?}");
        if shared.next.when(false) == State::Invalid {
            effect.dropped = holders.take(Role::Holds);
            if let Some(by) = by
                && effect.dropped.has(by)
            {
                effect.dropped.remove(by);
                holders.insert(Role::Holds, by);
            }
        }
        if let Some((core, row)) = special {
            effect.source = row.supplies.then_some(Source::Cache(core));
            effect.written_back = row.writes_back.then_some(core);
            let next = row.next.when(false);
            match next {
                State::Invalid => effect.dropped.insert(core),
                _ => effect.dropped.remove(core),
            }
            self.becomes(holders, core, next);
        }
        Ok(effect)
    }

    /// The copy of `core`, in `state` until now, is as `next` says.
    #[inline]
    fn goes_on(&mut self, holders: &mut Roles, (core, state): (u16, State), next: Next) {
        let next = match next {
            Next::To(next) => next,
            of => of.when(match state {
                State::Invalid => holders.is_empty(Role::Holds),
                _ => holders.is_only(Role::Holds, core),
            }),
        };
        if next != state {
            self.becomes(holders, core, next);
        }
    }

    /// The copy of `core` is in `next` from now on.
    #[inline]
    fn becomes(&mut self, holders: &mut Roles, core: u16, next: State) {
        let was_special = self.0 & NONE == core;
        match next {
            State::Invalid => holders.remove(Role::Holds, core),
            _ => holders.insert(Role::Holds, core),
        }
        match next {
            State::Invalid | State::Shared if was_special => *self = Self::SHARED,
            State::Invalid | State::Shared => {}
            next => *self = Self::new(core, next),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use proptest::prelude::*;

    use super::super::{Protocol, line};
    use super::*;

    const CACHES: u16 = 4;

    /// Something that happens to a line.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        At(u16, Event),
        Told(Option<u16>, Event),
        Flush,
    }

    fn all_acts() -> Vec<Act> {
        let at =
            |cache| [Event::Load, Event::Store, Event::Evict].map(|event| Act::At(cache, event));
        // The home tells others for one that asks, whose own row follows, or of a transfer that
        // comes from no cache.
        let told = [Event::OtherLoads, Event::OtherStores].map(|event| Act::Told(None, event));
        let mut acts: Vec<Act> = (0..CACHES).flat_map(at).chain(told).collect();
        acts.push(Act::Flush);
        acts
    }

    /// The copies in both forms; cache `n` is the core `n` times `apart`.
    struct Both {
        states: [State; CACHES as usize],
        summary: Summary,
        holders: Roles,
        apart: u16,
    }

    impl Both {
        fn new(states: [State; CACHES as usize], apart: u16) -> Self {
            let (mut summary, mut holders) = (Summary::SHARED, Roles::default());
            for (cache, &state) in (0..).zip(&states) {
                if state != State::Invalid {
                    summary.becomes(&mut holders, cache * apart, state);
                }
            }
            Self {
                states,
                summary,
                holders,
                apart,
            }
        }

        /// Performs `act` in both forms; what differs.
        fn acts(&mut self, table: &Table, act: Act) -> Result<(), String> {
            let (copies, holders) = (&mut self.states, &mut self.holders);
            let summary = &mut self.summary;
            let core = |cache| cache * self.apart;
            let (expected, found) = match act {
                Act::At(cache, event) => (
                    line::access(table, copies, cache, event),
                    summary.access(table, holders, core(cache), event),
                ),
                Act::Told(by, event) => (
                    line::tell(table, copies, by, event),
                    summary.tell(table, holders, by.map(core), event),
                ),
                Act::Flush => (line::flush(table, copies), summary.flush(table, holders)),
            };
            let expected = expected.map(|effect| {
                let dropped = (0..CACHES).filter(|cache| effect.dropped >> cache & 1 != 0);
                let source = effect.source.map(|source| match source {
                    Source::Cache(cache) => Source::Cache(core(cache)),
                    other => other,
                });
                let back = effect.written_back.map(core);
                (source, back, dropped.map(core).collect(), effect.asked)
            });
            let found = found.map(|effect| {
                let dropped: Vec<u16> = effect.dropped.iter().collect();
                (effect.source, effect.written_back, dropped, effect.asked)
            });
            if found != expected {
                return Err(format!("{act:?}: {found:?} instead of {expected:?}"));
            }
            let found = self.found();
            let is_dirty = found.iter().any(|state| state.is_dirty());
            match found == self.states && is_dirty == self.summary.is_dirty() {
                true => Ok(()),
                false => Err(format!("{act:?}: {found:?} instead of {:?}", self.states)),
            }
        }

        /// The same for an event that the home need not be told of; nothing happens if it must.
        fn hits(&mut self, table: &Table, cache: u16, event: Event) -> Result<(), String> {
            let mut after = self.states;
            let asks = line::access(table, &mut after, cache, event).map(|effect| effect.asked);
            let (holders, core) = (&mut self.holders, cache * self.apart);
            let hits = self.summary.hits(table, holders, core, event);
            if hits == Ok(true) {
                self.states = after;
            }
            match hits == asks.map(|asks| !asks) && self.found() == self.states {
                true => Ok(()),
                false => Err(format!("{event:?} at {cache}: {hits:?} {:?}", self.found())),
            }
        }

        fn found(&self) -> [State; CACHES as usize] {
            let state = |cache| self.summary.state(&self.holders, cache * self.apart);
            [0, 1, 2, 3].map(state)
        }
    }

    /// From every state that can be reached every act has the same effect on a state for each
    /// cache.
    #[test]
    fn a_summary_is_a_state_for_each_cache() {
        for protocol in Protocol::ALL {
            let begin = [State::Invalid; CACHES as usize];
            let mut seen = HashSet::from([begin]);
            let mut queue = VecDeque::from([begin]);
            while let Some(states) = queue.pop_front() {
                for act in all_acts() {
                    let mut both = Both::new(states, 1);
                    both.acts(protocol.table(), act)
                        .unwrap_or_else(|wrong| panic!("{protocol} {states:?} {wrong}"));
                    if seen.insert(both.states) {
                        queue.push_back(both.states);
                    }
                    if let Act::At(cache, event) = act {
                        let hits = Both::new(states, 1).hits(protocol.table(), cache, event);
                        hits.unwrap_or_else(|wrong| panic!("{protocol} {states:?} {wrong}"));
                    }
                }
            }
            assert!(seen.len() >= 24, "{protocol}: {} states", seen.len());
        }
    }

    proptest! {
        /// Cores on both sides of 64, and up to nearly the last that a node can have.
        #[test]
        fn a_wide_summary_is_one_too(
            protocol in prop::sample::select(Protocol::ALL.to_vec()),
            acts in prop::collection::vec(prop::sample::select(all_acts()), 1..60),
            apart in prop_oneof![Just(1u16), Just(30), Just(340)],
        ) {
            let mut both = Both::new([State::Invalid; CACHES as usize], apart);
            for act in acts {
                prop_assert_eq!(both.acts(protocol.table(), act), Ok(()));
            }
        }
    }

    /// A summary by another protocol's table is found out.
    #[test]
    fn another_table_is_found_out() {
        let acts = [Event::Store, Event::Load, Event::Load];
        let differs = |by: Protocol, than: Protocol| {
            let mut both = Both::new([State::Invalid; CACHES as usize], 1);
            (0..).zip(acts).any(|(cache, event)| {
                line::access(than.table(), &mut both.states, cache, event).unwrap();
                let holders = &mut both.holders;
                both.summary
                    .access(by.table(), holders, cache, event)
                    .unwrap();
                both.found() != both.states
            })
        };
        for by in Protocol::ALL {
            for than in Protocol::ALL {
                assert_eq!(differs(by, than), by != than, "{by} for {than}");
            }
        }
    }
}
