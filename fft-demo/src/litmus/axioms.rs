//! x86-TSO by its axioms, to hold the search against: no machine, no buffers and no steps.
//!
//! A candidate execution says which store each load sees (`rf`) and in which order the stores to
//! each location take effect (`co`); a load is before every store that overwrites what it sees
//! (`fr`). It is allowed if what concerns one location is acyclic together with program order, and
//! if program order but for a load after a store (unless a fence stands between), `rf` from other
//! threads, `co` and `fr` are (Alglave, Maranget and Tautschnig, *Herding Cats*, TOPLAS 2014, Sec.
//! 4 and 6).

use std::collections::BTreeSet;

use super::test::{FinalState, Instruction, Source, Test};

/// An access of a thread, in the order of the program.
struct Event {
    thread: usize,
    location: usize,
    /// The value of a store; a load goes to this register.
    stores: Option<i32>,
    register: usize,
    /// Fences of the thread in front of it.
    fences: usize,
}

/// Every final state that the axioms allow of `test`, whose stores have numbers.
pub(super) fn outcomes(test: &Test) -> BTreeSet<FinalState> {
    let mut events = Vec::new();
    for (thread, instructions) in test.threads.iter().enumerate() {
        let mut fences = 0;
        for &instruction in instructions {
            let (location, stores, register) = match instruction {
                Instruction::Load { to, from } => (from, None, to.number()),
                Instruction::Store {
                    to,
                    value: Source::Immediate(value),
                } => (to, Some(value), 0),
                Instruction::Fence => {
                    fences += 1;
                    continue;
                }
                other => panic!("{other:?} is no access"),
            };
            events.push(Event {
                thread,
                location,
                stores,
                register,
                fences,
            });
        }
    }
    let mut found = BTreeSet::new();
    let orders: Vec<Vec<Vec<usize>>> = (0..test.locations.len())
        .map(|location| {
            let is_store =
                |&at: &usize| events[at].location == location && events[at].stores.is_some();
            permutations(&(0..events.len()).filter(is_store).collect::<Vec<_>>())
        })
        .collect();
    for order in choices(&orders) {
        // The store that each load sees, as a place in its location's order; 0 is the initial
        // value.
        let loads: Vec<usize> = (0..events.len())
            .filter(|&at| events[at].stores.is_none())
            .collect();
        let places: Vec<Vec<usize>> = loads
            .iter()
            .map(|&load| (0..=order[events[load].location].len()).collect())
            .collect();
        for seen in choices(&places) {
            if is_allowed(&events, &order, &loads, &seen) {
                found.insert(final_state(test, &events, &order, &loads, &seen));
            }
        }
    }
    found
}

fn is_allowed(events: &[Event], order: &[Vec<usize>], loads: &[usize], seen: &[usize]) -> bool {
    let count = events.len();
    let (mut one_location, mut all) = (
        vec![vec![false; count]; count],
        vec![vec![false; count]; count],
    );
    for stores in order {
        for (at, &earlier) in stores.iter().enumerate() {
            for &later in &stores[at + 1..] {
                one_location[earlier][later] = true;
                all[earlier][later] = true;
            }
        }
    }
    for (&load, &place) in loads.iter().zip(seen) {
        let stores = &order[events[load].location];
        if place > 0 {
            let store = stores[place - 1];
            one_location[store][load] = true;
            all[store][load] |= events[store].thread != events[load].thread;
        }
        for &later in &stores[place..] {
            one_location[load][later] = true;
            all[load][later] = true;
        }
    }
    for first in 0..count {
        for second in first + 1..count {
            let (a, b) = (&events[first], &events[second]);
            if a.thread == b.thread {
                one_location[first][second] |= a.location == b.location;
                let passes = a.stores.is_some() && b.stores.is_none() && a.fences == b.fences;
                all[first][second] |= !passes;
            }
        }
    }
    is_acyclic(one_location) && is_acyclic(all)
}

/// By transitive closure.
fn is_acyclic(mut before: Vec<Vec<bool>>) -> bool {
    let count = before.len();
    for middle in 0..count {
        for first in 0..count {
            for last in 0..count {
                before[first][last] |= before[first][middle] && before[middle][last];
            }
        }
    }
    (0..count).all(|event| !before[event][event])
}

fn final_state(
    test: &Test,
    events: &[Event],
    order: &[Vec<usize>],
    loads: &[usize],
    seen: &[usize],
) -> FinalState {
    let mut state = test.initial_state();
    let initial = state.memory.clone();
    for (&load, &place) in loads.iter().zip(seen) {
        let Event {
            thread,
            location,
            register,
            ..
        } = events[load];
        let store = place.checked_sub(1).map(|place| order[location][place]);
        let value = store.and_then(|store| events[store].stores);
        state.registers[thread][register] = value.unwrap_or(initial[location]);
    }
    for (location, stores) in order.iter().enumerate() {
        if let Some(value) = stores.last().and_then(|&store| events[store].stores) {
            state.memory[location] = value;
        }
    }
    state
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in of.iter().enumerate() {
        let rest: Vec<usize> = [&of[..at], &of[at + 1..]].concat();
        for mut more in permutations(&rest) {
            more.insert(0, first);
            all.push(more);
        }
    }
    all
}

/// Every way to take one of each.
fn choices<T: Clone>(of_each: &[Vec<T>]) -> Vec<Vec<T>> {
    of_each.iter().fold(vec![Vec::new()], |chosen, each| {
        let longer = |chosen: &Vec<T>| {
            let with = |one: &T| chosen.iter().chain([one]).cloned().collect();
            each.iter().map(with).collect::<Vec<Vec<T>>>()
        };
        chosen.iter().flat_map(longer).collect()
    })
}
