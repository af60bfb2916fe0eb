//! A line and its copies: a transaction is what the home of the line does at one moment.

use super::{Event, State, Table};

/// The source of the bytes that a cache gets in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Its own copy.
    Own,
    /// Memory.
    Memory,
    /// The copy of this cache.
    Cache(u16),
}

/// The effect of an event on a line and its copies, where those who lose theirs are a `Dropped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect<Dropped = u64> {
    /// The source of the bytes, if a core accesses them.
    pub source: Option<Source>,
    /// The cache whose copy, as it was, has been written to memory.
    pub written_back: Option<u16>,
    /// Caches that have lost their copies, a bit each, the one at which the event was apart.
    pub dropped: Dropped,
    /// The home was asked.
    pub asked: bool,
}

impl<Dropped: Default> Effect<Dropped> {
    pub(super) fn none() -> Self {
        Self {
            source: None,
            written_back: None,
            dropped: Dropped::default(),
            asked: false,
        }
    }
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

/// A load, a store or an eviction at `cache`, with everything that the home does for it. `copies`
/// are the states of all caches' copies of the line, at most 64.
///
/// # Errors
/// [`NoRow`]: the table is not whole; nothing has changed.
pub fn access(
    table: &Table,
    copies: &mut [State],
    cache: u16,
    event: Event,
) -> Result<Effect, NoRow> {
    let state = copies[usize::from(cache)];
    let row = table.row(state, event).ok_or(NoRow { state, event })?;
    let mut effect = match row.asks {
        true => tell(table, copies, Some(cache), asks_as(event))?,
        false => Effect::none(),
    };
    effect.asked = row.asks;
    effect.source = source_of(event, state, effect.source);
    if row.writes_back {
        effect.written_back = Some(cache);
    }
    let mut others = (0..).zip(copies.iter());
    let is_alone = others.all(|(other, state)| other == cache || *state == State::Invalid);
    copies[usize::from(cache)] = row.next.when(is_alone);
    Ok(effect)
}

/// The event that the home tells the others of when it is asked because of `event`.
pub(super) const fn asks_as(event: Event) -> Event {
    match event {
        Event::Store => Event::OtherStores,
        _ => Event::OtherLoads,
    }
}

/// Returns the source of the bytes for `event` at a cache whose copy is in `state`, if one that was
/// told of it is `told`.
#[inline]
pub(super) fn source_of(event: Event, state: State, told: Option<Source>) -> Option<Source> {
    match event {
        // It has the bytes already.
        Event::Load | Event::Store if state != State::Invalid => Some(Source::Own),
        Event::Load | Event::Store => told.or(Some(Source::Memory)),
        _ => told,
    }
}

/// All copies go (`clflush`, or a store that does not come from a cache).
///
/// # Errors
/// As [`access`].
pub fn flush(table: &Table, copies: &mut [State]) -> Result<Effect, NoRow> {
    tell(table, copies, None, Event::Flush)
}

/// The home tells all caches but `by` of an event: the source is the one that supplies the line.
///
/// # Errors
/// As [`access`].
pub fn tell(
    table: &Table,
    copies: &mut [State],
    by: Option<u16>,
    event: Event,
) -> Result<Effect, NoRow> {
    let others = |cache: u16| Some(cache) != by;
    for (cache, &state) in (0..).zip(copies.iter()) {
        if others(cache) && table.row(state, event).is_none() {
            return Err(NoRow { state, event });
        }
    }
    let mut effect = Effect::none();
    effect.asked = true;
    for (cache, copy) in (0..).zip(copies) {
        let state = *copy;
        let Some(row) = table.row(state, event).filter(|_| others(cache)) else {
            continue;
        };
        if row.supplies {
            effect.source.get_or_insert(Source::Cache(cache));
        }
        if row.writes_back {
            effect.written_back.get_or_insert(cache);
        }
        *copy = row.next.when(false);
        if *copy == State::Invalid && state != State::Invalid {
            effect.dropped |= 1 << cache;
        }
    }
    Ok(effect)
}

#[cfg(test)]
mod tests;
