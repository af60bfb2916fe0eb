//! The checker against an oracle on random histories, on correct programs, and on programs that
//! leave out one step of making memory coherent.

mod both;
mod expected;
mod machine;

use std::panic::Location;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use self::both::listed;
use self::expected::Expected;
use self::machine::{LINES, Lines, Machine, NODES, PER_NODE, THREADS, WORDS};
use super::record::Kind;
use super::{
    Cause, Checker, Flush, Missing, Record, Side, Site, StaleLoad, StaleReport, Way, What,
};
use crate::parts::line_size::LineSize;
use crate::time::Time;
use sme_memory::Place;

#[derive(Clone, Copy, Debug)]
enum Action {
    Load(Way),
    Store(Way, u64),
    Fill,
    WriteBack,
    Drop,
    DropAll,
    Perform { parts: bool },
    Set(u8),
    Saw { flag: u32, value: u8 },
    Atomic { is_load: bool },
    Signal(Way, u64),
    Arrive,
    Poll { ago: usize },
}

type Step = (u32, usize, usize, Action);

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![4 => Just(Way::Cached), 1 => Just(Way::Uncached), 1 => Just(Way::Coherent)]
}

fn past_caches() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Uncached), Just(Way::Coherent)]
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        8 => way().prop_map(Action::Load),
        5 => (way(), 0..3u64).prop_map(|(way, value)| Action::Store(way, value)),
        1 => Just(Action::Fill),
        3 => Just(Action::WriteBack),
        3 => Just(Action::Drop),
        1 => Just(Action::DropAll),
        4 => any::<bool>().prop_map(|parts| Action::Perform { parts }),
        4 => (1..3u8).prop_map(Action::Set),
        12 => (0..THREADS, 1..3u8).prop_map(|(flag, value)| Action::Saw { flag, value }),
        1 => any::<bool>().prop_map(|is_load| Action::Atomic { is_load }),
        3 => (past_caches(), 0..3u64).prop_map(|(way, value)| Action::Signal(way, value)),
        3 => Just(Action::Arrive),
        5 => (0..4usize).prop_map(|ago| Action::Poll { ago }),
    ];
    (0..THREADS, 0..LINES, 0..WORDS, action)
}

/// Mostly what words that synchronize are for, so that one value is often published several times
/// while it is looked for, and data by which it can be told who has acquired what.
fn signalling() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        4 => Just(Action::Load(Way::Uncached)),
        4 => Just(Action::Store(Way::Uncached, 1)),
        6 => (past_caches(), 0..2u64).prop_map(|(way, value)| Action::Signal(way, value)),
        6 => Just(Action::Arrive),
        8 => (0..10usize).prop_map(|ago| Action::Poll { ago }),
    ];
    (0..THREADS, 0..LINES, 0..WORDS, action)
}

/// A coherent access exists at the word's home only.
fn possible(way: Way, thread: u32, home: u32) -> Way {
    if way == Way::Coherent && thread / PER_NODE != home {
        Way::Uncached
    } else {
        way
    }
}

fn lines() -> impl Strategy<Value = Lines> {
    any::<(bool, bool)>().prop_map(|(whole, short)| Lines {
        whole,
        short,
        mistaken: false,
    })
}

fn run(steps: &[Step], lines: Lines, deaf: Option<Kind>) -> (Expected, Expected) {
    obey(Machine::new(lines, deaf), steps)
}

fn obey(mut machine: Machine, steps: &[Step]) -> (Expected, Expected) {
    let lines = machine.lines;
    let home = |line| lines.home(line);
    for &(thread, line, word, action) in steps {
        let node = thread / PER_NODE;
        match action {
            Action::Load(way) => {
                machine.load(thread, line, word, possible(way, thread, home(line)))
            }
            Action::Store(way, value) => {
                machine.store(thread, line, word, value, possible(way, thread, home(line)));
            }
            Action::Fill => machine.fill(thread, line),
            Action::WriteBack => machine.write_back(thread, line),
            Action::Drop => machine.drop_copy(thread, line),
            Action::DropAll => machine.drop_all(thread),
            Action::Perform { parts } => {
                machine.perform(node, line, parts);
            }
            Action::Set(value) => machine.set(thread, value),
            Action::Saw { flag, value } => machine.saw(thread, flag, value),
            Action::Atomic { is_load } => machine.atomic(thread, is_load),
            Action::Signal(way, value) => {
                machine.signal(thread, line, value, possible(way, thread, home(line)));
            }
            Action::Arrive => machine.arrive(node, line),
            Action::Poll { ago } => {
                let way = possible(Way::Coherent, thread, home(line));
                machine.poll(thread, line, ago, way);
            }
        }
    }
    let (found, expected) = machine.report();
    (Expected::of(found), expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_finds_what_the_oracle_finds(steps in vec(step(), 1..160), lines in lines()) {
        let (found, expected) = run(&steps, lines, None);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn it_finds_what_the_oracle_finds_by_signals(steps in vec(signalling(), 1..160), lines in lines()) {
        let (found, expected) = run(&steps, lines, None);
        prop_assert_eq!(found, expected);
    }

    /// Nodes that share a bit in a line's masks.
    #[test]
    fn it_finds_the_same_among_many_nodes(steps in vec(step(), 1..160), lines in lines()) {
        let (found, expected) = obey(Machine::of_every(64, lines), &steps);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_correct_program_has_no_stale_reads(
        phases in vec(phase(), 1..6),
        lines in lines(),
    ) {
        let report = program(&phases, lines, None);
        prop_assert_eq!(report.stale_reads, 0, "{}", report);
        let others = (report.stale_but_equal, report.racing_loads, report.racing_stores);
        prop_assert_eq!(others, (0, 0, 0), "{}", report);
    }

    #[test]
    fn a_step_left_out_is_named(
        mut phases in vec(phase(), 3), step in 0..4usize, node in 0..NODES, lines in lines(),
    ) {
        let left_out = [Omitted::WriteBack, Omitted::Invalidate, Omitted::ReadBack, Omitted::Padding][step];
        // Written in the second phase, read in the third.
        for phase in [0, 2] {
            phases[phase].accesses.retain(|access| !access.3);
        }
        let lines = Lines {
            whole: left_out == Omitted::Padding,
            ..lines
        };
        let report = program(&phases, lines, Some((left_out, node)));
        for finding in &report.findings {
            let written = finding.written.as_ref().map(|written| written.by.node);
            match left_out {
                // It keeps what it has not written back, and in these lines older words of others.
                Omitted::WriteBack if finding.cause == Cause::NotInvalidated => {
                    prop_assert_eq!(finding.reader.node, node);
                }
                Omitted::WriteBack => {
                    prop_assert_eq!(finding.cause, Cause::NotWrittenBack);
                    prop_assert_eq!(written, Some(node));
                }
                Omitted::Invalidate => {
                    prop_assert_eq!(finding.cause, Cause::NotInvalidated);
                    prop_assert_eq!(finding.reader.node, node);
                }
                Omitted::ReadBack => {
                    prop_assert_eq!(finding.cause, Cause::InFlight);
                    prop_assert_eq!(written, Some(node));
                }
                Omitted::Padding => {
                    let is_lost = matches!(finding.cause, Cause::LostUpdate { by_node }
                        if Some(by_node) != written);
                    prop_assert!(is_lost, "{:?}", finding);
                }
            }
        }
    }
}

/// A checker that does not hear of some kind of record is wrong, and the oracle shows it. Without
/// [`What::Dropped`] it is only larger: the next fill says all that matters.
#[test]
fn the_oracle_notices_a_deaf_checker() {
    let kinds = [
        Kind::Store,
        Kind::Update,
        Kind::Set,
        Kind::Saw,
        Kind::Filled,
        Kind::WroteBack,
        Kind::Performed,
    ];
    for deaf in kinds {
        assert!(is_noticed(|_| {}, Some(deaf)), "{deaf:?}");
    }
}

/// So is one that takes two lines of 32 bytes for one of 64.
#[test]
fn the_oracle_notices_a_checker_of_longer_lines() {
    assert!(is_noticed(|lines| lines.mistaken = true, None));
}

/// Returns whether a checker finds something else than the oracle in any of many histories, on
/// lines that `change` has changed.
fn is_noticed(change: impl Fn(&mut Lines), deaf: Option<Kind>) -> bool {
    let mut runner = TestRunner::deterministic();
    let histories = (vec(step(), 160), lines());
    (0..400).any(|_| {
        let history = histories.new_tree(&mut runner).expect("a history");
        let (steps, mut lines) = history.current();
        change(&mut lines);
        let (found, expected) = run(&steps, lines, deaf);
        found != expected
    })
}

/// A phase of a program: who writes each word, and the accesses.
#[derive(Clone, Debug)]
struct Phase {
    writers: [[u32; WORDS]; LINES],
    /// Thread, line, word, whether it is a store, value.
    accesses: Vec<(u32, usize, usize, bool, u64)>,
    /// Thread, line: copies that leave the cache for want of room, between the accesses.
    evictions: Vec<(u32, usize)>,
}

fn phase() -> impl Strategy<Value = Phase> {
    let access = (
        0..THREADS,
        0..LINES,
        0..WORDS,
        any::<bool>(),
        1..1_000_000u64,
    );
    let writers = proptest::array::uniform2(proptest::array::uniform3(0..THREADS));
    let evictions = vec((0..THREADS, 0..LINES), 0..6);
    (writers, vec(access, 1..40), evictions).prop_map(|(writers, accesses, evictions)| Phase {
        writers,
        accesses,
        evictions,
    })
}

/// A step of making memory coherent at a barrier; padding is a rule of where data stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    WriteBack,
    Invalidate,
    ReadBack,
    Padding,
}

/// Each word has one writer in a phase, and no other thread reads it; then a barrier makes memory
/// coherent, but for what `broken` leaves out.
fn program(phases: &[Phase], lines: Lines, broken: Option<(Omitted, u32)>) -> StaleReport {
    let mut machine = Machine::new(lines, None);
    let leaves_out = |step, node| broken == Some((step, node));
    let is_padded = lines.whole && !broken.is_some_and(|(step, _)| step == Omitted::Padding);
    for (number, phase) in phases.iter().enumerate() {
        let writer =
            |line: usize, word: usize| phase.writers[line][if is_padded { 0 } else { word }];
        let is_written = |line: usize, word: usize| {
            (phase.accesses.iter()).any(|access| access.3 && (access.1, access.2) == (line, word))
        };
        let mut evictions = phase.evictions.iter();
        for &(thread, line, word, is_store, value) in &phase.accesses {
            if is_store {
                machine.store(writer(line, word), line, word, value, Way::Cached);
            } else if is_written(line, word)
                || is_padded && (0..WORDS).any(|word| is_written(line, word))
            {
                machine.load(writer(line, word), line, word, Way::Cached);
            } else {
                machine.load(thread, line, word, Way::Cached);
            }
            if broken.is_none()
                && value % 3 == 0
                && let Some(&(thread, line)) = evictions.next()
            {
                machine.drop_copy(thread, line);
            }
        }
        for node in 0..NODES {
            let master = node * PER_NODE;
            // Its other threads have written too.
            for thread in master..master + PER_NODE {
                machine.set(thread, 1);
                machine.saw(master, thread, 1);
            }
            for line in 0..LINES {
                if !leaves_out(Omitted::WriteBack, node) {
                    machine.write_back(master, line);
                }
                if !leaves_out(Omitted::ReadBack, node) {
                    machine.perform_all(node, line);
                }
                if !leaves_out(Omitted::Invalidate, node) {
                    machine.drop_clean(master, line);
                }
            }
        }
        let value = 2 + (number % 2) as u8;
        for thread in 0..THREADS {
            machine.set(thread, value);
        }
        for thread in 0..THREADS {
            for other in 0..THREADS {
                machine.saw(thread, other, value);
            }
        }
    }
    let ((report, list), expected) = machine.report();
    assert_eq!(Expected::of((report.clone(), list)), expected);
    report
}

const LINE: Place = Place {
    node: 1,
    offset: 0x40,
};
const FLAG: Place = Place { node: 0, offset: 0 };

/// Node 1 writes a word of `LINE` that node 0 has read, and makes it coherent, but for what is left
/// out; then node 0 reads it again. With [`Omitted::Padding`], node 2 writes another word of the
/// line.
fn hand_over(omitted: Option<Omitted>) -> (StaleReport, Vec<StaleLoad>) {
    let mut checker = Checker::new(3, 2, LineSize::B64).expect("few threads");
    let list = listed(&mut checker);
    checker.initial(LINE, 7);
    let site = Location::caller();
    let (reader, writer, third) = (0, 3, 4);
    let mut now = 0;
    let mut tell = |thread, what| {
        now += 1_000_000;
        checker.record(&Record::new(Time::from_ps(now), thread, what));
    };
    let load = |value| What::Load {
        word: LINE,
        value,
        site,
        way: Way::Cached,
    };
    let store = |word, value| What::Store {
        word,
        value,
        site,
        way: Way::Cached,
    };
    let performed = |by_node| What::Performed {
        line: LINE,
        bytes: u64::MAX,
        by_node,
    };
    tell(reader, What::Filled { line: LINE });
    tell(reader, load(7));
    if omitted == Some(Omitted::Padding) {
        tell(third, What::Filled { line: LINE });
        tell(third, store(LINE.plus(8), 1));
    }
    tell(writer, What::Filled { line: LINE });
    tell(writer, store(LINE, 8));
    if omitted != Some(Omitted::WriteBack) {
        tell(
            writer,
            What::WroteBack {
                line: LINE,
                bytes: u64::MAX,
                old: !0xff,
            },
        );
        if omitted != Some(Omitted::ReadBack) {
            tell(writer, performed(1));
        }
    }
    if omitted == Some(Omitted::Padding) {
        tell(
            third,
            What::WroteBack {
                line: LINE,
                bytes: u64::MAX,
                old: !0xff00,
            },
        );
        tell(third, performed(2));
    }
    tell(
        writer,
        What::Set {
            flag: FLAG,
            value: 1,
        },
    );
    tell(
        reader,
        What::Saw {
            flag: FLAG,
            value: 1,
        },
    );
    if omitted != Some(Omitted::Invalidate) {
        tell(reader, What::Dropped { line: LINE });
        tell(reader, What::Filled { line: LINE });
    }
    if omitted == Some(Omitted::ReadBack) {
        tell(writer, performed(1));
    }
    for _ in 0..2 {
        tell(reader, load(if omitted.is_some() { 7 } else { 8 }));
    }
    let list = list.lock().expect("no test has failed").clone();
    (checker.finish(), list)
}

#[test]
fn each_omission_has_its_cause() {
    let (report, list) = hand_over(None);
    assert_eq!((report.stale_reads, list), (0, Vec::new()));
    let lost = Cause::LostUpdate { by_node: 2 };
    for (omitted, cause, (flush, side, node)) in [
        (
            Omitted::WriteBack,
            Cause::NotWrittenBack,
            (Flush::WriteBack, Side::Writer, 1),
        ),
        (
            Omitted::Invalidate,
            Cause::NotInvalidated,
            (Flush::Invalidate, Side::Reader, 0),
        ),
        (
            Omitted::ReadBack,
            Cause::InFlight,
            (Flush::ReadBack, Side::Writer, 1),
        ),
        (
            Omitted::Padding,
            lost,
            (Flush::Padding, Side::Overwriter, 2),
        ),
    ] {
        let (report, list) = hand_over(Some(omitted));
        assert_eq!((report.loads, report.stale_reads), (3, 2), "{report}");
        assert_eq!(report.findings.len(), 1);
        let finding = &report.findings[0];
        assert_eq!(finding.cause, cause, "{report}");
        assert_eq!((finding.seen, finding.newer, finding.count), (7, 8, 2));
        assert_eq!((finding.reader.node, finding.reader.core), (0, 0));
        let written = finding.written.as_ref().expect("it was written");
        assert_eq!((written.by.node, written.by.core), (1, 1));
        // The list has both of them.
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].at.as_ps(), finding.at_ps);
        assert!(list[0].at < list[1].at);
        for load in list {
            assert_eq!(load.missing(), Some(Missing { flush, side, node }));
            assert_eq!((load.seen, load.newer, load.is_equal()), (7, 8, false));
            assert_eq!((load.cause, load.word), (cause, LINE));
        }
    }
}

/// Five places of a program, in one line of this file.
fn places() -> [Site; 5] {
    #[track_caller]
    fn here() -> Site {
        Location::caller()
    }
    [here(), here(), here(), here(), here()]
}

/// Findings for which the report has no room are counted, with their groups; the list has them.
#[test]
fn no_group_is_lost_silently() {
    let mut checker = Checker::new(2, 1, LineSize::B64)
        .expect("few threads")
        .with_findings(2);
    let list = listed(&mut checker);
    let mut at = 0;
    let mut tell = |thread, what| {
        at += 1;
        checker.record(&Record::new(Time::from_ps(at), thread, what));
    };
    let [store, loads @ ..] = places();
    tell(0, What::Filled { line: LINE });
    tell(1, What::Filled { line: LINE });
    tell(1, What::access(LINE, 1, store, Way::Cached, true));
    let (flag, value) = (FLAG, 1);
    tell(1, What::Set { flag, value });
    tell(0, What::Saw { flag, value });
    for (times, load) in (1..).zip(loads) {
        for _ in 0..times {
            tell(0, What::access(LINE, 0, load, Way::Cached, false));
        }
    }
    let report = checker.finish();
    assert_eq!((report.stale_reads, report.findings.len()), (10, 2));
    assert_eq!((report.further, report.further_groups), (7, 2));
    let text = report.to_string();
    assert!(
        text.ends_with("\n7 further stale reads in 2 more groups\n"),
        "{text}"
    );
    let list = list.lock().expect("no test has failed");
    assert_eq!(list.len(), 10);
    assert!(list.iter().all(|load| load.reader.node == 0));
}

#[test]
fn a_report_says_what_to_add() {
    let (report, _) = hand_over(Some(Omitted::ReadBack));
    let source = report.findings[0]
        .source
        .as_ref()
        .expect("told")
        .to_string();
    let expected = "\
2 stale reads of 3 loads; 0 stale but equal; 0 loads and 0 stores race

in flight: the newer value was on its way to memory; node 1 must read back from node 1 before the \
hand-over
        2× node 1 byte 0x40
           saw   0x0000000000000007 node   0 core  0 at       11.000 µs, SOURCE
           newer 0x0000000000000008 node   1 core  1 at        4.000 µs, SOURCE
";
    assert_eq!(report.to_string().replace(&source, "SOURCE"), expected);
}

#[test]
fn threads_and_nodes_that_do_not_exist_are_counted() {
    assert!(Checker::new(0, 4, LineSize::B64).is_err());
    assert!(Checker::new(u32::MAX, 4, LineSize::B64).is_err());
    let mut checker = Checker::new(2, 2, LineSize::B64).expect("few threads");
    let nowhere = Place { node: 2, offset: 0 };
    let site = Location::caller();
    let load = |word| What::Load {
        word,
        value: 0,
        site,
        way: Way::Cached,
    };
    checker.record(&Record::new(Time::ZERO, 4, load(FLAG)));
    checker.record(&Record::new(Time::ZERO, 0, load(nowhere)));
    checker.record(&Record::new(Time::ZERO, 0, What::Filled { line: nowhere }));
    checker.initial(nowhere, 1);
    let report = checker.finish();
    assert_eq!((report.ignored, report.stale_reads), (4, 0));
}
