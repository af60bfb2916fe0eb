//! The protocol of the node's caches, MOESI, whose rows [`super::domain`] and [`super::caches`]
//! perform.

use crate::parts::coherence::{Event, Protocol, Row, State, Table};

/// Its table.
#[inline]
pub fn table() -> &'static Table {
    Protocol::Moesi.table()
}

/// The row of a copy in `state` at `event`; for a line not held, of a load or a store.
#[inline]
pub fn row(state: State, event: Event) -> Row {
    let row = table().row(state, event);
    row.expect("copies are in states of MOESI, which knows all events")
}
