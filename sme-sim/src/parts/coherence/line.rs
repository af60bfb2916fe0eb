//! A line and its copies: a transaction is what the home of the line does at one moment.

use super::{Event, Next, State, Table};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Where the bytes come from, if a core accesses them.
    pub source: Option<Source>,
    /// The cache whose copy, as it was, has been written to memory.
    pub written_back: Option<u16>,
    /// Caches that have lost their copies, a bit each, the one at which the event was apart.
    pub dropped: u64,
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

/// A load, a store or an eviction at `cache`, with everything that the home does for it. `copies` are
/// the states of all caches' copies of the line, at most 64.
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
    let mut effect = Effect {
        source: None,
        written_back: None,
        dropped: 0,
        asked: row.asks,
    };
    if row.asks {
        let told = match event {
            Event::Store => Event::OtherStores,
            _ => Event::OtherLoads,
        };
        effect = tell(table, copies, Some(cache), told)?;
        effect.asked = true;
    }
    match event {
        // It has the bytes already.
        Event::Load | Event::Store if state != State::Invalid => effect.source = Some(Source::Own),
        Event::Load | Event::Store => {
            effect.source.get_or_insert(Source::Memory);
        }
        _ => {}
    }
    if row.writes_back {
        effect.written_back = Some(cache);
    }
    let mut others = (0..).zip(copies.iter());
    let is_alone = others.all(|(other, state)| other == cache || *state == State::Invalid);
    copies[usize::from(cache)] = match row.next {
        Next::To(next) => next,
        Next::Alone(alone, _) if is_alone => alone,
        Next::Alone(_, shared) => shared,
    };
    Ok(effect)
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
    let mut effect = Effect {
        source: None,
        written_back: None,
        dropped: 0,
        asked: true,
    };
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
        *copy = match row.next {
            Next::To(next) | Next::Alone(_, next) => next,
        };
        if *copy == State::Invalid && state != State::Invalid {
            effect.dropped |= 1 << cache;
        }
    }
    Ok(effect)
}

#[cfg(test)]
mod tests;
