//! Every state that three caches and two lines can come into: each cache has room for one line, so
//! that a miss evicts. In each, one writer at most, no stale read, no dirty bytes lost; and every
//! change of a table that could matter is found out.

use std::collections::{HashSet, VecDeque};

use super::super::{Next, Protocol, Row};
use super::*;

const CACHES: u16 = 3;
const LINES: usize = 2;

/// A line: the copies' states, and which of them, and whether memory, hold the newest bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Line {
    copies: [State; CACHES as usize],
    is_new: Vec<bool>,
    memory_is_new: bool,
}

impl Line {
    fn new() -> Self {
        Self {
            copies: [State::Invalid; CACHES as usize],
            is_new: vec![false; usize::from(CACHES)],
            memory_is_new: true,
        }
    }

    fn holds(&self, source: Source, cache: u16) -> bool {
        match source {
            Source::Own => self.is_new[usize::from(cache)],
            Source::Memory => self.memory_is_new,
            Source::Cache(other) => self.is_new[usize::from(other)],
        }
    }

    fn writes_back(&mut self, effect: &Effect) {
        if let Some(cache) = effect.written_back {
            self.memory_is_new = self.is_new[usize::from(cache)];
        }
    }

    fn forgets_dropped(&mut self) {
        for (is_new, state) in self.is_new.iter_mut().zip(&self.copies) {
            *is_new &= *state != State::Invalid;
        }
    }

    fn access(&mut self, table: &Table, cache: u16, event: Event) -> Result<(), String> {
        let mut next = self.clone();
        let effect = access(table, &mut next.copies, cache, event);
        let effect = effect.map_err(|no_row| no_row.to_string())?;
        next.writes_back(&effect);
        if let Some(source) = effect.source {
            // A store writes a part of the line: it needs the rest.
            if !self.holds(source, cache) {
                return Err(format!(
                    "{event:?} at {cache} gets stale bytes of {source:?}"
                ));
            }
            next.is_new[usize::from(cache)] = true;
        }
        if event == Event::Store {
            next.is_new.fill(false);
            next.is_new[usize::from(cache)] = true;
            next.memory_is_new = false;
        }
        next.forgets_dropped();
        *self = next;
        self.check()
    }

    fn flush(&mut self, table: &Table) -> Result<(), String> {
        let effect = flush(table, &mut self.copies);
        let effect = effect.map_err(|no_row| no_row.to_string())?;
        self.writes_back(&effect);
        self.forgets_dropped();
        match self.copies.iter().all(|&state| state == State::Invalid) {
            true => self.check(),
            false => Err("a copy survives a flush".into()),
        }
    }

    fn check(&self) -> Result<(), String> {
        let of = |wanted: &[State]| {
            let states = self.copies.iter();
            states.filter(|state| wanted.contains(state)).count()
        };
        let (all, alone) = (
            usize::from(CACHES) - of(&[State::Invalid]),
            of(&[State::Modified, State::Exclusive]),
        );
        if alone > 1 || alone == 1 && all > 1 {
            return Err(format!("a writer is not alone: {:?}", self.copies));
        }
        if of(&[State::Owned]) > 1 || of(&[State::Forward]) > 1 {
            return Err(format!("two copies answer: {:?}", self.copies));
        }
        if !self.memory_is_new && !self.is_new.contains(&true) {
            return Err("the newest bytes are lost".into());
        }
        let stale = self.copies.iter().zip(&self.is_new);
        let mut stale = stale.filter(|(state, is_new)| **state != State::Invalid && !**is_new);
        if stale.next().is_some() {
            return Err(format!("a copy is stale: {self:?}"));
        }
        let is_dirty = of(&[State::Modified, State::Owned]) > 0;
        match self.memory_is_new || is_dirty {
            true => Ok(()),
            false => Err("memory is old, and no copy is marked as newer".into()),
        }
    }
}

/// All states that can be reached; the first violation, with the way to it.
fn explore(table: &Table) -> Result<usize, String> {
    let begin = vec![Line::new(); LINES];
    let mut seen = HashSet::from([begin.clone()]);
    let mut queue = VecDeque::from([begin]);
    while let Some(lines) = queue.pop_front() {
        for cache in 0..CACHES {
            for line in 0..LINES {
                for event in [Event::Load, Event::Store] {
                    let mut next = lines.clone();
                    // The other line makes room.
                    let other = &mut next[1 - line];
                    if other.copies[usize::from(cache)] != State::Invalid {
                        other.access(table, cache, Event::Evict)?;
                    }
                    next[line].access(table, cache, event)?;
                    if seen.insert(next.clone()) {
                        queue.push_back(next);
                    }
                }
            }
        }
        for line in 0..LINES {
            let mut next = lines.clone();
            next[line].flush(table)?;
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn every_state_that_can_be_reached_is_coherent() {
    let reached = Protocol::ALL.map(|protocol| explore(protocol.table()).unwrap());
    // MESI and MOESI: one cache has each of the states in which it is alone, or several share.
    assert!(reached.iter().all(|&states| states > 40), "{reached:?}");
    // Copies that answer make a difference.
    assert!(
        reached[1] > reached[0] && reached[2] > reached[0],
        "{reached:?}"
    );
}

/// The states of the tables are those of the protocols' names.
#[test]
fn protocols_have_the_states_of_their_names() {
    for protocol in Protocol::ALL {
        let letters: HashSet<char> = protocol.table().states().map(State::letter).collect();
        let name: HashSet<char> = protocol.to_string().chars().collect();
        assert_eq!(letters, name);
    }
}

/// The properties of states that are known without a table are those of every table.
#[test]
fn states_are_as_every_table_has_them() {
    for protocol in Protocol::ALL {
        let table = protocol.table();
        for state in table.states() {
            let row = |event| table.row(state, event);
            let stores = row(Event::Store).unwrap();
            assert_eq!(state.is_writable(), !stores.asks, "{protocol} {state:?}");
            assert_eq!(stores.next, Next::To(State::Modified));
            let writes_back = row(Event::Evict).is_some_and(|row| row.writes_back);
            assert_eq!(state.is_dirty(), writes_back, "{protocol} {state:?}");
            let clean = state.clean();
            assert!(!clean.is_dirty() && table.row(clean, Event::Load).is_some());
            assert_eq!(clean.is_writable(), state.is_writable());
        }
    }
}

/// Changes of a row: another state after it, or one of its actions the other way.
fn mutants(row: Row) -> Vec<Row> {
    let mut all: Vec<Row> = (State::ALL.iter())
        .map(|&next| Row {
            next: Next::To(next),
            ..row
        })
        .collect();
    all.push(Row {
        asks: !row.asks,
        ..row
    });
    all.push(Row {
        supplies: !row.supplies,
        ..row
    });
    all.push(Row {
        writes_back: !row.writes_back,
        ..row
    });
    all.retain(|mutant| *mutant != row);
    all
}

/// Returns whether a change breaks a rule of coherence: a copy that is newer than memory is neither
/// given to the one that asks nor written back, one that others may have is written without asking,
/// one is kept that is to go, or one is marked as alone or clean that is not.
fn breaks_a_rule((state, event): (State, Event), row: Row, mutant: Row) -> bool {
    let is_dirty = |state| matches!(state, State::Modified | State::Owned);
    let is_alone = |state| matches!(state, State::Modified | State::Exclusive);
    let to = match mutant.next {
        Next::To(next) => next,
        Next::Alone(..) => return false,
    };
    match event {
        Event::Load if state == State::Invalid => !mutant.asks || is_alone(to),
        Event::Load => is_dirty(state) && !is_dirty(to) || !is_alone(state) && is_alone(to),
        Event::Store => row.asks && !mutant.asks || !is_dirty(to),
        Event::Evict => is_dirty(state) && !mutant.writes_back,
        Event::OtherLoads => {
            let reaches = mutant.supplies || mutant.writes_back;
            let is_lost = is_dirty(state) && !is_dirty(to) && !mutant.writes_back;
            is_dirty(state) && !reaches || is_lost && to != State::Invalid || is_alone(to)
        }
        Event::OtherStores => to != State::Invalid || is_dirty(state) && !mutant.supplies,
        Event::Flush => to != State::Invalid || is_dirty(state) && !mutant.writes_back,
    }
}

/// Every change of a row that breaks a rule is found out by the exploration.
#[test]
fn wrong_rows_are_found_out() {
    let (mut broken, mut found) = (0, 0);
    for protocol in Protocol::ALL {
        for state in protocol.table().states() {
            for event in Event::ALL {
                let Some(row) = protocol.table().row(state, event) else {
                    continue;
                };
                assert!(
                    !breaks_a_rule((state, event), row, row),
                    "{state:?} {event:?}"
                );
                for mutant in mutants(row) {
                    let table = protocol.table().with((state, event), mutant);
                    let outcome = explore(&table);
                    found += u32::from(outcome.is_err());
                    if breaks_a_rule((state, event), row, mutant) {
                        broken += 1;
                        assert!(
                            outcome.is_err(),
                            "{protocol} {state:?} {event:?}: {mutant:?}"
                        );
                    }
                }
            }
        }
    }
    // The rest of those that are found leave states that a protocol does not have.
    assert!(broken > 100 && found > broken, "{broken} of {found}");
}

/// A core reads the line that another has written, and the writer writes again: each protocol takes
/// the copies through its own states (Putigny et al., Sec. III-A and IV-E).
#[test]
fn a_message_goes_through_the_states_of_the_paper() {
    let steps = |protocol: Protocol| {
        let table = protocol.table();
        let mut copies = [State::Invalid; 2];
        access(table, &mut copies, 0, Event::Store).unwrap();
        let reads = access(table, &mut copies, 1, Event::Load).unwrap();
        let read = copies.to_vec();
        let writes = access(table, &mut copies, 0, Event::Store).unwrap();
        assert_eq!(copies, [State::Modified, State::Invalid]);
        assert_eq!(
            (reads.source, writes.dropped),
            (Some(Source::Cache(0)), 0b10)
        );
        (read, reads.written_back)
    };
    let (read, back) = steps(Protocol::Mesi);
    assert_eq!((read, back), (vec![State::Shared, State::Shared], Some(0)));
    let (read, back) = steps(Protocol::Mesif);
    assert_eq!((read, back), (vec![State::Shared, State::Forward], Some(0)));
    let (read, back) = steps(Protocol::Moesi);
    assert_eq!((read, back), (vec![State::Owned, State::Shared], None));
}
