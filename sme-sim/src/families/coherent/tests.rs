//! Random accesses of all cores to a few lines, through caches that are too small for them: after
//! each, the states, the tags and the records agree, and the rules of coherence hold.

use proptest::prelude::*;

use super::access::{Made, Wants};
use super::chip::Chip;
use super::spec::CoherentSpec;
use super::*;
use crate::machine::Machine;
use crate::parts::coherence::{Event, Next, Row, State, Table};
use crate::time::Time;

/// Caches of a few lines, so that all of them overflow.
const SMALL: &[(&str, &str)] = &[
    ("cache.l1_size", "1 KiB"),
    ("cache.l1_ways", "2"),
    ("cache.l2_size", "2 KiB"),
    ("cache.l2_ways", "2"),
    ("cache.l3_size", "4 KiB"),
    ("cache.l3_ways", "4"),
];

fn chip(machine: &str, constants: &[(&str, &str)]) -> Chip {
    let machine = Machine::builtin(machine).expect("a machine of the program's own");
    let machine = machine.with(constants).expect("sound constants");
    let family = machine.family();
    let family: &dyn std::any::Any = family;
    let spec = family
        .downcast_ref::<CoherentSpec>()
        .expect("a coherent machine");
    Chip::new(Arc::new(spec.clone()))
}

/// An action of a core on a line.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Loads,
    Stores,
    StoresPast,
    Flushes,
}

fn deeds() -> impl Strategy<Value = Vec<(u32, u64, Deed)>> {
    let deed = prop_oneof![
        6 => Just(Deed::Loads),
        5 => Just(Deed::Stores),
        1 => Just(Deed::StoresPast),
        1 => Just(Deed::Flushes),
    ];
    // Neighbours in a page, for the prefetcher, and lines of several sockets that share sets.
    let line = prop_oneof![
        0..96_u64,
        (0..8_u64, 0..8_u64).prop_map(|(far, near)| far << 22 | near)
    ];
    prop::collection::vec((0..64_u32, line, deed), 1..600)
}

/// Tries again when the core can, from `now` on; the time of that.
fn when_it_can(now: Time, mut tries: impl FnMut(Time) -> Result<Made, Time>) -> (Time, Made) {
    let mut at = now;
    loop {
        match tries(at) {
            Ok(made) => return (at, made),
            Err(later) => at = later,
        }
    }
}

fn does(chip: &mut Chip, core: u32, line: u64, deed: Deed, now: Time) -> Time {
    let wants = |event| Wants {
        line,
        event,
        words: 8,
    };
    match deed {
        Deed::Loads | Deed::Stores => {
            let event = match deed {
                Deed::Loads => Event::Load,
                _ => Event::Store,
            };
            let (begin, made) = when_it_can(now, |at| chip.tries(core, wants(event), at));
            assert!(made.there >= begin && made.next >= begin && begin >= now);
            begin
        }
        Deed::StoresPast => when_it_can(now, |at| chip.tries_past(core, wants(Event::Store), at)).0,
        Deed::Flushes => {
            let place = chip.place(core);
            chip.flushes(place, line, now);
            now
        }
    }
}

/// The first rule that the copies of `line` break.
fn broken_rule(chip: &mut Chip, line: u64) -> Option<String> {
    let spot = chip.lines.spot(line);
    let outer: Vec<State> = chip.lines.outer(spot).to_vec();
    let count = |states: &[State], wanted: &[State]| {
        states.iter().filter(|state| wanted.contains(state)).count()
    };
    const ALONE: &[State] = &[State::Modified, State::Exclusive];
    let held = |states: &[State]| states.len() - count(states, &[State::Invalid]);
    if count(&outer, ALONE) > 0 && held(&outer) > 1 {
        return Some(format!("a socket is not alone: {outer:?}"));
    }
    let mut any_dirty = count(&outer, &[State::Modified, State::Owned]) > 0;
    for (socket, &of_socket) in outer.iter().enumerate() {
        let inner = chip.lines.inner(spot, socket).to_vec();
        if count(&inner, ALONE) > 0 && held(&inner) > 1 {
            return Some(format!("a module is not alone: {inner:?}"));
        }
        if count(&inner, ALONE) > 0 && !ALONE.contains(&of_socket) {
            return Some(format!("{inner:?} in a socket that is {:?}", of_socket));
        }
        let dirty = inner.iter().any(|&state| state.is_dirty());
        if dirty && !of_socket.is_dirty() {
            return Some(format!("{inner:?} in a clean socket"));
        }
        any_dirty |= dirty;
        let in_third = chip.sockets[socket].third.note(line).is_some();
        if held(&inner) > 0 && of_socket == State::Invalid {
            return Some(format!("{inner:?} in a socket without a copy"));
        }
        match chip.third() {
            None if in_third != (of_socket != State::Invalid) => {
                return Some(format!(
                    "the third level has it: {in_third}, {:?}",
                    of_socket
                ));
            }
            Some(third) if in_third != (inner[usize::from(third)] != State::Invalid) => {
                return Some(format!("the third level has it: {in_third}, {inner:?}"));
            }
            Some(_) if held(&inner) == 0 && of_socket != State::Invalid => {
                return Some(format!(
                    "no cache has the copy of a socket: {:?}",
                    of_socket
                ));
            }
            _ => {}
        }
        for (cache, &state) in (0..).zip(&inner) {
            let Some(module) = chip.module(socket, cache) else {
                continue;
            };
            let has = chip.modules[module].second.note(line).is_some();
            if has != (state != State::Invalid) {
                return Some(format!("a module has it: {has}, {state:?}"));
            }
            if !has && chip.is_in_first(module, line) {
                return Some("a first level has what its second has not".to_owned());
            }
            let holders = *chip.lines.holders(spot, socket);
            if chip.third().is_none() && has && holders >> cache & 1 == 0 {
                return Some("the third level does not know of a copy".to_owned());
            }
        }
    }
    let is_stale = chip.lines.line(spot).is_stale_in_memory;
    (is_stale && !any_dirty).then(|| "the newest bytes are lost".to_owned())
}

/// Does everything, and checks the lines that it touched, and those that they displaced.
fn runs(mut chip: Chip, deeds: &[(u32, u64, Deed)]) -> Result<(), String> {
    let cores = chip.cores.len() as u32;
    let mut now = Time::ZERO;
    let mut touched = std::collections::BTreeSet::new();
    for &(core, line, deed) in deeds {
        now = does(&mut chip, core % cores, line, deed, now).max(now) + Time::from_ps(500);
        touched.insert(line);
        // Every line now and then: one may have displaced another.
        let all = touched.len() % 16 == 0;
        let checked = touched.iter().filter(|&&other| all || other == line);
        for &line in checked {
            if let Some(rule) = broken_rule(&mut chip, line) {
                return Err(format!("after {deed:?} of {core}: line {line:#x}: {rule}"));
            }
        }
    }
    for line in touched {
        if let Some(rule) = broken_rule(&mut chip, line) {
            return Err(format!("at the end: line {line:#x}: {rule}"));
        }
    }
    Ok(())
}

/// Any kind of third level with any protocol, as constants of a machine.
fn kinds() -> impl Strategy<Value = [(&'static str, &'static str); 2]> {
    let third = prop::sample::select(vec!["inclusive", "exclusive"]);
    let protocol = prop::sample::select(vec!["MESI", "MESIF", "MOESI"]);
    (third, protocol)
        .prop_map(|(third, protocol)| [("cache.l3", third), ("coherence.protocol", protocol)])
}

proptest! {
    #[test]
    fn copies_are_coherent_after_every_access(deeds in deeds(), kind in kinds()) {
        for machine in ["xeon-e5-2650", "opteron-6272"] {
            // Of its own kind, and of the other.
            for constants in [SMALL, &[SMALL, &kind].concat()] {
                let chip = chip(machine, constants);
                prop_assert_eq!(runs(chip, &deeds), Ok(()), "{}, {:?}", machine, constants);
            }
        }
    }
}

/// So many accesses, drawn in a fixed way: most to a few lines that are shared by many.
fn drawn(count: u32) -> Vec<(u32, u64, Deed)> {
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let deed = |number| match number {
        0..=5 => Deed::Loads,
        6..=10 => Deed::Stores,
        11 => Deed::StoresPast,
        _ => Deed::Flushes,
    };
    (0..count)
        .map(|_| (draw(64) as u32, draw(2) << 22 | draw(40), deed(draw(13))))
        .collect()
}

/// Wrong rows, each by a state, an event and the row in its place.
fn wrong_rows(table: &Table) -> Vec<(State, Event, Row)> {
    let mut wrong = Vec::new();
    for state in table.states() {
        let row = |event| table.row(state, event);
        // A copy stays where it has to go.
        for event in [Event::OtherStores, Event::Flush] {
            if let Some(right) = row(event).filter(|_| state != State::Invalid) {
                let next = Next::To(state);
                wrong.push((state, event, Row { next, ..right }));
            }
        }
        // One that was alone still believes it is; one that is not writes all the same.
        if let Some(right) = row(Event::OtherLoads).filter(|_| state.is_writable()) {
            let next = Next::To(state);
            wrong.push((state, Event::OtherLoads, Row { next, ..right }));
        }
        if let Some(right) = row(Event::Store).filter(|right| right.asks) {
            wrong.push((
                state,
                Event::Store,
                Row {
                    asks: false,
                    ..right
                },
            ));
        }
        // A modified copy becomes a clean one, and memory does not get it.
        if let Some(right) = row(Event::OtherLoads).filter(|right| right.writes_back) {
            let row = Row {
                writes_back: false,
                ..right
            };
            wrong.push((state, Event::OtherLoads, row));
        }
    }
    wrong
}

/// Every wrong row of the table between sockets is found out by the rules, and those of the table
/// within one: or by the assertions of what no table may lead to.
#[test]
fn wrong_tables_are_found_out() {
    let deeds = drawn(3_000);
    let is_found = |chip: Chip| {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runs(chip, &deeds)));
        !matches!(ran, Ok(Ok(())))
    };
    let exclusive = [SMALL, &[("cache.l3", "exclusive")]].concat();
    for (machine, constants) in [
        ("xeon-e5-2650", SMALL),
        ("xeon-e5-2650", &exclusive),
        ("opteron-6272", SMALL),
    ] {
        let right = || chip(machine, constants);
        assert!(!is_found(right()), "{machine}");
        let (between, within) = (right().between, right().within);
        let has_bytes_behind = right().spec.is_inclusive;
        let mut tried = 0;
        for (table, is_between) in [(between, true), (within, false)] {
            for (state, event, row) in wrong_rows(table) {
                // An inclusive third level has the bytes in the place of memory.
                if !is_between
                    && has_bytes_behind
                    && event == Event::OtherLoads
                    && !row.writes_back
                    && row.next != Next::To(state)
                {
                    continue;
                }
                let mut chip = right();
                let mutant: &'static Table = Box::leak(Box::new(table.with((state, event), row)));
                match is_between {
                    true => chip.between = mutant,
                    false => chip.within = mutant,
                }
                tried += 1;
                let level = if is_between { "between" } else { "within" };
                assert!(
                    is_found(chip),
                    "{machine}, {level}: {state:?} {event:?} {row:?}"
                );
            }
        }
        assert!(tried > 10, "{tried}");
    }
}

/// The time of a load by `core` of what another has, alone on the machine.
fn load(chip: &mut Chip, core: u32, line: u64, now: Time) -> Time {
    let wants = Wants {
        line,
        event: Event::Load,
        words: 1,
    };
    let (begin, made) = when_it_can(now, |at| chip.tries(core, wants, at));
    made.there.since(begin)
}

#[test]
fn a_load_takes_what_its_level_takes() {
    let mut chip = chip("xeon-e5-2650", &[]);
    let at = |us: u64| Time::from_ns(us * 1_000);
    let cycles = |count: u64| Time::from_ps(500 * count);
    // From memory: of the own socket, of the other.
    assert_eq!(load(&mut chip, 0, 0, at(1)), cycles(38) + Time::from_ns(66));
    let far = 32 << 30 >> 6;
    assert_eq!(
        load(&mut chip, 0, far, at(2)),
        cycles(38) + Time::from_ns(66 + 44)
    );
    assert_eq!(load(&mut chip, 0, 0, at(3)), Time::ZERO, "the first level");
    // A clean copy of another core, which could have written it.
    assert_eq!(load(&mut chip, 1, 0, at(4)), cycles(38 + 27));
    assert_eq!(
        load(&mut chip, 2, 0, at(5)),
        cycles(38),
        "two have it, and neither may write"
    );
    does(&mut chip, 3, 0, Deed::Stores, at(6));
    assert_eq!(
        load(&mut chip, 1, 0, at(7)),
        cycles(38 + 45),
        "a modified copy"
    );
    does(&mut chip, 3, 0, Deed::Stores, at(8));
    let across = Time::from_ns(22 + 22 + 20);
    assert_eq!(load(&mut chip, 8, 0, at(9)), cycles(38 + 38 + 45) + across);
}
