//! The tables of the protocols.

use super::State::{self, Exclusive, Forward, Invalid, Modified, Owned, Shared};
use super::{Event, Next, Row, Table};

/// Modified, exclusive, shared, invalid (Papamarcos and Patel).
#[rustfmt::skip]
pub(super) static MESI: Table = table(&[
    //           load            store          evict   other loads      other stores    flush
    (Modified,  [hit(Modified),  hit(Modified), back(), clean(Shared),   answer(),       back()]),
    (Exclusive, [hit(Exclusive), hit(Modified), drop(), keep(Shared),    drop(),         drop()]),
    (Shared,    [hit(Shared),    ask(Modified), drop(), keep(Shared),    drop(),         drop()]),
    (Invalid,   [fill(Shared),   ask(Modified), None,   keep(Invalid),   keep(Invalid),  keep(Invalid)]),
]);

/// With a shared copy that answers: the one that was read last.
#[rustfmt::skip]
pub(super) static MESIF: Table = table(&[
    //           load            store          evict   other loads      other stores    flush
    (Modified,  [hit(Modified),  hit(Modified), back(), clean(Shared),   answer(),       back()]),
    (Exclusive, [hit(Exclusive), hit(Modified), drop(), hand_on(Shared), answer(),       drop()]),
    (Shared,    [hit(Shared),    ask(Modified), drop(), keep(Shared),    drop(),         drop()]),
    (Forward,   [hit(Forward),   ask(Modified), drop(), hand_on(Shared), answer(),       drop()]),
    (Invalid,   [fill(Forward),  ask(Modified), None,   keep(Invalid),   keep(Invalid),  keep(Invalid)]),
]);

/// With a shared copy that is newer than memory and answers: the one that was written.
#[rustfmt::skip]
pub(super) static MOESI: Table = table(&[
    //           load            store          evict   other loads      other stores    flush
    (Modified,  [hit(Modified),  hit(Modified), back(), hand_on(Owned),  answer(),       back()]),
    (Owned,     [hit(Owned),     ask(Modified), back(), hand_on(Owned),  answer(),       back()]),
    (Exclusive, [hit(Exclusive), hit(Modified), drop(), keep(Shared),    drop(),         drop()]),
    (Shared,    [hit(Shared),    ask(Modified), drop(), keep(Shared),    drop(),         drop()]),
    (Invalid,   [fill(Shared),   ask(Modified), None,   keep(Invalid),   keep(Invalid),  keep(Invalid)]),
]);

type Entry = Option<Row>;

/// Rows by state; of each the columns are the [events](Event::ALL).
const fn table(rows: &[(State, [Entry; Event::ALL.len()])]) -> Table {
    let mut all = [[None; Event::ALL.len()]; State::ALL.len()];
    let mut index = 0;
    while index < rows.len() {
        let (state, row) = rows[index];
        all[state as usize] = row;
        index += 1;
    }
    Table(all)
}

const fn row(next: Next) -> Row {
    Row {
        next,
        asks: false,
        supplies: false,
        writes_back: false,
    }
}

/// The core has what it needs.
const fn hit(next: State) -> Entry {
    Some(row(Next::To(next)))
}

/// Another's doing changes nothing but the state.
const fn keep(next: State) -> Entry {
    Some(row(Next::To(next)))
}

/// The copy is gone; memory has it.
const fn drop() -> Entry {
    Some(row(Next::To(Invalid)))
}

/// The copy goes to memory, and is gone.
const fn back() -> Entry {
    Some(Row {
        writes_back: true,
        ..row(Next::To(Invalid))
    })
}

/// The one that asked gets the copy, which is gone.
const fn answer() -> Entry {
    Some(Row {
        supplies: true,
        ..row(Next::To(Invalid))
    })
}

/// The one that asked gets a copy as well.
const fn hand_on(next: State) -> Entry {
    Some(Row {
        supplies: true,
        ..row(Next::To(next))
    })
}

/// The same, and memory gets it.
const fn clean(next: State) -> Entry {
    Some(Row {
        supplies: true,
        writes_back: true,
        ..row(Next::To(next))
    })
}

/// The home is asked for the line, or for the right to write it.
const fn ask(next: State) -> Entry {
    Some(Row {
        asks: true,
        ..row(Next::To(next))
    })
}

/// The same to read it: alone it is exclusive.
const fn fill(shared: State) -> Entry {
    Some(Row {
        asks: true,
        ..row(Next::Alone(Exclusive, shared))
    })
}
