//! The runs of a litmus test show everything that the model of memory allows, and nothing else: of
//! the tests of critical cycles, and of any tests of two or three threads.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sme::litmus::{Exploration, MemoryKind, Spread};
use sme_fft_demo::litmus::{Cycle, FinalState, Instruction, Register, Source, Test, parse};

use crate::litmus::setting;

/// Within so many runs everything that is allowed is to be seen.
const RUNS: u32 = 20_000;
/// So many runs are performed in any case, as mistakes show in few of them.
const LEAST_RUNS: u32 = 100;

/// The part of a state that a test shows.
fn shown(test: &Test, state: &FinalState) -> Vec<i32> {
    let observed = test.observed();
    observed.iter().map(|&what| state.value(what)).collect()
}

/// Runs `test` until all that is allowed has been seen; nothing else may be.
///
/// # Panics
/// If something else is seen, or something is not within [`RUNS`].
fn shows_all_that_is_allowed(test: &Arc<Test>, memory: MemoryKind, spread: Spread, seed: u64) {
    let setting = setting(memory, spread, RUNS, seed);
    let exploration = Exploration::new(&setting, test).unwrap();
    let behaviours = exploration.behaviours().unwrap();
    let allowed = behaviours.states().map(|state| shown(test, state));
    let mut unseen: BTreeSet<Vec<i32>> = allowed.collect();
    for run in 0..RUNS {
        if unseen.is_empty() && run >= LEAST_RUNS {
            return;
        }
        let state = exploration.run(run).unwrap();
        assert!(behaviours.allows(&state), "{test}run {run}: {state:?}");
        unseen.remove(&shown(test, &state));
    }
    panic!("{test}never seen: {unseen:?}");
}

fn cycles(threads: usize) -> impl Iterator<Item = Arc<Test>> {
    let cycles = Cycle::all(threads).into_iter();
    cycles.map(|cycle| Arc::new(cycle.test()))
}

#[test]
fn coherent_memory_shows_what_x86_tso_allows_of_every_cycle() {
    for test in cycles(2).chain(cycles(3)) {
        shows_all_that_is_allowed(&test, MemoryKind::Local, Spread::OneNode, 1);
    }
}

#[test]
fn cached_memory_shows_what_its_model_allows_of_cycles() {
    for spread in [Spread::OneNode, Spread::OnePerNode] {
        for test in cycles(2).chain(cycles(3).step_by(8)) {
            shows_all_that_is_allowed(&test, MemoryKind::Cached, spread, 1);
        }
    }
}

/// Any test of two or three threads of four operations on up to three locations, all of whose
/// registers and locations are shown.
fn any_test() -> impl Strategy<Value = Arc<Test>> {
    let operation = |at: usize| {
        let register = Register::named(["EAX", "EBX", "ECX", "EDX"][at]).unwrap();
        prop_oneof![
            4 => (0usize..3).prop_map(move |from| Instruction::Load { to: register, from }),
            4 => (0usize..3, 1i32..4).prop_map(|(to, value)| Instruction::Store {
                to,
                value: Source::Immediate(value),
            }),
            1 => Just(Instruction::Fence),
        ]
    };
    let thread = (operation(0), operation(1), operation(2), operation(3));
    prop::collection::vec(thread, 2..4).prop_map(|threads| {
        let mut shown = String::from("x; y; z;");
        for thread in 0..threads.len() {
            for register in ["EAX", "EBX", "ECX", "EDX"] {
                shown += &format!(" {thread}:{register};");
            }
        }
        let names: Vec<String> = (0..threads.len())
            .map(|number| format!("P{number}"))
            .collect();
        let names = names.join("|");
        let text = format!("X86 any\n{{ x=0; y=0; z=0; }}\n {names} ;\nlocations [{shown}]");
        Arc::new(Test {
            threads: threads
                .into_iter()
                .map(|(a, b, c, d)| vec![a, b, c, d])
                .collect(),
            ..parse(&text).unwrap()
        })
    })
}

#[test]
fn memory_shows_what_its_model_allows_of_any_test() {
    let mut runner = TestRunner::deterministic();
    for number in 0..48 {
        let test = any_test().new_tree(&mut runner).unwrap().current();
        shows_all_that_is_allowed(&test, MemoryKind::Local, Spread::OneNode, number);
        if number % 4 == 0 {
            for spread in [Spread::OneNode, Spread::OnePerNode] {
                shows_all_that_is_allowed(&test, MemoryKind::Cached, spread, number);
            }
        }
    }
}

/// Another order of the runs, and another number of them, changes none.
#[test]
fn a_run_depends_on_its_number_only() {
    let test = Arc::new(Cycle::parse("PodWW Coe PodWR Fre").unwrap().test());
    for (memory, spread) in [
        (MemoryKind::Local, Spread::OneNode),
        (MemoryKind::Engine, Spread::OnePerNode),
        (MemoryKind::Cached, Spread::OnePerNode),
    ] {
        let setting = setting(memory, spread, 40, 3);
        let once = Exploration::new(&setting, &test).unwrap();
        let once: Vec<FinalState> = (0..40).map(|run| once.run(run).unwrap()).collect();
        let again = Exploration::new(&setting, &test).unwrap();
        for run in (0..40).rev() {
            assert_eq!(
                again.run(run).unwrap(),
                once[run as usize],
                "{memory} {run}"
            );
        }
    }
}
