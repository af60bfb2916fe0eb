//! A line and its copies: a transaction is what the home of the line does at one moment.

use super::{Event, Next, State, Table};

/// The states of all caches' copies of one line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Copies(Vec<State>);

/// Where the bytes come from that a cache gets in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Its own copy.
    Own,
    /// Memory.
    Memory,
    /// The copy of this cache.
    Cache(u16),
}

/// The effect of an event on a line and its copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Where the bytes come from, if a core accesses them.
    pub source: Option<Source>,
    /// The cache whose copy, as it was, has been written to memory.
    pub written_back: Option<u16>,
    /// Caches that have lost their copies, the one at which the event was apart.
    pub dropped: Vec<u16>,
    /// The home was asked.
    pub asked: bool,
}

/// An event that the table has no row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a copy in state {} cannot see {event:?}", state.letter())]
pub struct NoRow {
    /// The state of the copy.
    pub state: State,
    /// The event.
    pub event: Event,
}

impl Copies {
    /// Of so many caches, none of which has a copy.
    pub fn none(caches: u16) -> Self {
        Self(vec![State::Invalid; usize::from(caches)])
    }

    /// The state of a cache's copy.
    pub fn state(&self, cache: u16) -> State {
        self.0[usize::from(cache)]
    }

    /// The states, by cache.
    pub fn states(&self) -> &[State] {
        &self.0
    }

    /// A load, a store or an eviction at `cache`, with everything that the home does for it.
    ///
    /// # Errors
    /// [`NoRow`]: the table is not whole; nothing has changed.
    pub fn access(&mut self, table: &Table, cache: u16, event: Event) -> Result<Effect, NoRow> {
        let state = self.state(cache);
        let row = table.row(state, event).ok_or(NoRow { state, event })?;
        let mut effect = Effect {
            source: match event {
                Event::Load | Event::Store => Some(Source::Own),
                _ => None,
            },
            written_back: row.writes_back.then_some(cache),
            dropped: Vec::new(),
            asked: row.asks,
        };
        let mut copies = self.clone();
        if row.asks {
            let told = match event {
                Event::Store => Event::OtherStores,
                _ => Event::OtherLoads,
            };
            let supplier = copies.tell(table, Some(cache), told, &mut effect)?;
            if state == State::Invalid {
                effect.source = Some(supplier.map_or(Source::Memory, Source::Cache));
            }
        }
        let mut others = (0..).zip(&copies.0);
        let is_alone = others.all(|(other, state)| other == cache || *state == State::Invalid);
        copies.0[usize::from(cache)] = match row.next {
            Next::To(next) => next,
            Next::Alone(alone, _) if is_alone => alone,
            Next::Alone(_, shared) => shared,
        };
        *self = copies;
        Ok(effect)
    }

    /// All copies go (`clflush`, or a store that does not come from a cache).
    ///
    /// # Errors
    /// As [`Self::access`].
    pub fn flush(&mut self, table: &Table) -> Result<Effect, NoRow> {
        let mut effect = Effect {
            source: None,
            written_back: None,
            dropped: Vec::new(),
            asked: true,
        };
        let mut copies = self.clone();
        copies.tell(table, None, Event::Flush, &mut effect)?;
        *self = copies;
        Ok(effect)
    }

    /// The home tells all caches but `by` of an event; the one that supplies the line.
    fn tell(
        &mut self,
        table: &Table,
        by: Option<u16>,
        event: Event,
        effect: &mut Effect,
    ) -> Result<Option<u16>, NoRow> {
        let mut supplier = None;
        for (cache, copy) in (0..).zip(&mut self.0) {
            if Some(cache) == by {
                continue;
            }
            let state = *copy;
            let row = table.row(state, event).ok_or(NoRow { state, event })?;
            if row.supplies {
                supplier.get_or_insert(cache);
            }
            if row.writes_back {
                effect.written_back.get_or_insert(cache);
            }
            *copy = match row.next {
                Next::To(next) | Next::Alone(_, next) => next,
            };
            if *copy == State::Invalid && state != State::Invalid {
                effect.dropped.push(cache);
            }
        }
        Ok(supplier)
    }
}

#[cfg(test)]
mod tests;
