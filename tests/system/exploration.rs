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

/// What a test shows of a state.
fn shown(test: &Test, state: &FinalState) -> Vec<i32> {
    let observed = test.observed();
    observed.iter().map(|&what| state.value(what)).collect()
}

/// After how many runs all that is allowed has been seen.
///
/// # Panics
/// If something else is seen, or something is not within [`RUNS`].
fn runs_until_all_is_seen(test: &Arc<Test>, memory: MemoryKind, spread: Spread, seed: u64) -> u32 {
    let setting = setting(memory, spread, RUNS, seed);
    let exploration = Exploration::new(&setting, test).unwrap();
    let behaviours = exploration.behaviours().unwrap();
    let allowed = behaviours.states().map(|state| shown(test, state));
    let mut unseen: BTreeSet<Vec<i32>> = allowed.collect();
    for run in 0..RUNS {
        if unseen.is_empty() {
            return run;
        }
        let state = exploration.run(run).unwrap();
        assert!(behaviours.allows(&state), "{test}run {run}: {state:?}");
        unseen.remove(&shown(test, &state));
    }
    panic!("{test}never seen: {unseen:?}");
}

fn most_runs(tests: impl Iterator<Item = Test>, memory: MemoryKind, spread: Spread) -> u32 {
    let runs = tests.map(|test| runs_until_all_is_seen(&Arc::new(test), memory, spread, 1));
    runs.max().unwrap()
}

fn cycles(threads: usize) -> impl Iterator<Item = Test> {
    Cycle::all(threads).into_iter().map(|cycle| cycle.test())
}

#[test]
fn coherent_memory_shows_what_x86_tso_allows_of_every_cycle() {
    let (local, node) = (MemoryKind::Local, Spread::OneNode);
    let most = most_runs(cycles(2), local, node);
    eprintln!("two threads: {most} runs");
    let most = most_runs(cycles(3), local, node);
    eprintln!("three threads: {most} runs");
}

#[test]
fn cached_memory_shows_what_its_model_allows_of_every_cycle() {
    for spread in [Spread::OneNode, Spread::OnePerNode] {
        let most = most_runs(cycles(2), MemoryKind::Cached, spread);
        eprintln!("{spread:?}, two threads: {most} runs");
        let most = most_runs(cycles(3).step_by(8), MemoryKind::Cached, spread);
        eprintln!("{spread:?}, three threads: {most} runs");
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
fn coherent_memory_shows_what_x86_tso_allows_of_any_test() {
    let mut runner = TestRunner::deterministic();
    let mut most = 0;
    for _ in 0..24 {
        let test = any_test().new_tree(&mut runner).unwrap().current();
        let (local, node) = (MemoryKind::Local, Spread::OneNode);
        let runs = runs_until_all_is_seen(&test, local, node, 1);
        eprintln!("{runs}");
        most = most.max(runs);
    }
}
