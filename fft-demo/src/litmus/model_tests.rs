//! Models allow what is known of them, contain each other as they should, and x86-TSO is that of
//! its axioms. Broken memory is found out by the tests of critical cycles.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rand_core::Rng;
use rand_pcg::Pcg32;

use super::*;

const SB: &str = include_str!("../../../litmus/SB.litmus");
const SB_FENCED: &str = include_str!("../../../litmus/SB+mfences.litmus");
const MP: &str = include_str!("../../../litmus/MP.litmus");
const LB: &str = include_str!("../../../litmus/LB.litmus");
const IRIW: &str = include_str!("../../../litmus/IRIW.litmus");
const TWO_WRITERS: &str = include_str!("../../../litmus/2+2W.litmus");
const CORR: &str = include_str!("../../../litmus/CoRR.litmus");

fn allows(text: &str, model: &Model) -> bool {
    let test = parse(text).unwrap();
    let states = outcomes(&test, model).unwrap();
    states
        .iter()
        .any(|state| test.condition.proposition.holds(state))
}

#[test]
fn the_models_allow_what_is_known_of_them() {
    let posted = |homes, nodes| Model::Posted { homes, nodes };
    let apart = posted(vec![0, 1], vec![0, 1, 2, 3]);
    let together = posted(vec![1, 1], vec![0, 1, 2, 3]);
    let from_one = posted(vec![0, 1], vec![0; 4]);
    let nodes = Model::Incoherent {
        nodes: vec![0, 1, 2, 3],
    };
    let models = [
        Model::SequentiallyConsistent,
        Model::TotalStoreOrder,
        apart,
        together,
        from_one,
        nodes,
    ];
    for (text, expected) in [
        (SB, [false, true, true, false, false, true]),
        (SB_FENCED, [false, false, true, false, false, true]),
        (MP, [false, false, true, false, false, false]),
        (LB, [false; 6]),
        (IRIW, [false; 6]),
        (TWO_WRITERS, [false, false, true, false, false, true]),
        (CORR, [false; 6]),
    ] {
        let allowed = models.clone().map(|model| allows(text, &model));
        assert_eq!(allowed, expected, "{text}");
    }
}

/// Examples that x86-TSO was made to explain (n5 and n6 as Owens, Sarkar and Sewell call them).
#[test]
fn the_store_buffer_is_that_of_x86_tso() {
    let own_first = "X86 n6\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$2 ;\n \
                     MOV EAX,[x] | MOV [x],$2 ;\n MOV EBX,[y] | ;\n\
                     exists (0:EAX=1 /\\ 0:EBX=0 /\\ x=1)";
    assert!(allows(own_first, &Model::TotalStoreOrder));
    assert!(!allows(own_first, &Model::SequentiallyConsistent));
    let n5 = "X86 n5\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [x],$2 ;\n \
              MOV EAX,[x] | MOV EAX,[x] ;\nexists (0:EAX=2 /\\ 1:EAX=1)";
    assert!(!allows(n5, &Model::TotalStoreOrder));
    let forwarded = "X86 SB+rfi-pos\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n \
                     MOV EAX,[x] | MOV EAX,[y] ;\n MOV EBX,[y] | MOV EBX,[x] ;\n\
                     exists (0:EAX=1 /\\ 0:EBX=0 /\\ 1:EAX=1 /\\ 1:EBX=0)";
    assert!(allows(forwarded, &Model::TotalStoreOrder));
    let causality = "X86 WRC\n{ }\n P0 | P1 | P2 ;\n MOV [x],$1 | MOV EAX,[x] | MOV EAX,[y] ;\n \
                     | MOV [y],$1 | MOV EBX,[x] ;\n\
                     exists (1:EAX=1 /\\ 2:EAX=1 /\\ 2:EBX=0)";
    assert!(!allows(causality, &Model::TotalStoreOrder));
}

/// A program of `threads` with two locations, two registers and the values 1 and 2.
fn small_test() -> impl Strategy<Value = Test> {
    let instruction = prop_oneof![
        (0usize..2, 0usize..2).prop_map(|(to, from)| Instruction::Load {
            to: Register::named(["EAX", "EBX"][to]).unwrap(),
            from,
        }),
        (0usize..2, 1i32..3).prop_map(|(to, value)| Instruction::Store {
            to,
            value: Source::Immediate(value),
        }),
        Just(Instruction::Fence),
    ];
    let thread = prop::collection::vec(instruction, 0..5);
    prop::collection::vec(thread, 1..4).prop_map(|threads| {
        let text = "X86 t\n{ x=0; y=0; }\n P0 ;\nlocations [x; y;]";
        Test {
            registers: vec![Vec::new(); threads.len()],
            threads,
            ..parse(text).unwrap()
        }
    })
}

/// Sequential consistency by its definition: every interleaving, without a queue anywhere.
fn interleavings(test: &Test, next: &mut Vec<usize>, state: &FinalState) -> BTreeSet<FinalState> {
    let mut found = BTreeSet::new();
    for thread in 0..test.threads.len() {
        let Some(&instruction) = test.threads[thread].get(next[thread]) else {
            continue;
        };
        let mut after = state.clone();
        match instruction {
            Instruction::Load { to, from } => {
                after.registers[thread][to.number()] = state.memory[from];
            }
            Instruction::Store {
                to,
                value: Source::Immediate(value),
            } => after.memory[to] = value,
            _ => {}
        }
        next[thread] += 1;
        found.extend(interleavings(test, next, &after));
        next[thread] -= 1;
    }
    if found.is_empty() {
        found.insert(state.clone());
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Fences everywhere make x86-TSO sequentially consistent, more freedom allows more, one thread
    /// or one node notices nothing.
    #[test]
    fn the_models_contain_each_other(test in small_test()) {
        let of = |test: &Test, model| outcomes(test, &model).unwrap();
        let sc = of(&test, Model::SequentiallyConsistent);
        let tso = of(&test, Model::TotalStoreOrder);
        let next = &mut vec![0; test.threads.len()];
        prop_assert_eq!(&sc, &interleavings(&test, next, &test.initial_state()));
        prop_assert!(sc.is_subset(&tso));
        // Where everything passes one place in order, only a load answered from a buffer is early.
        let threads = test.threads.len() as u32;
        let posted = |homes, nodes| of(&test, Model::Posted { homes, nodes });
        let from_one = posted(vec![0, 1], vec![0; threads as usize]);
        let to_one = posted(vec![1, 1], (0..threads).collect());
        let apart = posted(vec![0, 1], (0..threads).collect());
        for some in [from_one, to_one] {
            prop_assert!(sc.is_subset(&some) && some.is_subset(&tso) && some.is_subset(&apart));
        }
        let one_node = Model::Incoherent { nodes: vec![0; test.threads.len()] };
        prop_assert_eq!(&of(&test, one_node), &tso);
        if test.threads.len() == 1 {
            prop_assert_eq!(sc.len(), 1);
            prop_assert_eq!(&tso, &sc);
        }
        let fence = |thread: &Vec<Instruction>| {
            thread.iter().flat_map(|&i| [i, Instruction::Fence]).collect()
        };
        let fenced = Test { threads: test.threads.iter().map(fence).collect(), ..test.clone() };
        prop_assert_eq!(&of(&fenced, Model::TotalStoreOrder), &sc);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The search and the axioms, which have nothing in common, allow the same.
    #[test]
    fn the_search_finds_what_the_axioms_allow(test in small_test()) {
        // Candidate executions are many where stores are.
        let accesses = test.threads.iter().flatten().filter(|&&i| i != Instruction::Fence);
        prop_assume!(accesses.count() <= 8);
        let searched = outcomes(&test, &Model::TotalStoreOrder).unwrap();
        prop_assert_eq!(searched, axioms::outcomes(&test));
    }

    /// A way leads where it says, whichever steps are chosen: performed one by one it ends there.
    #[test]
    fn a_way_leads_to_its_state(test in small_test(), choice: usize) {
        let behaviours = Behaviours::of(&test, &Model::TotalStoreOrder).unwrap();
        for state in behaviours.states() {
            let mut turn = choice;
            let way = behaviours.way_to(state, |_| {
                turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                turn >> 33
            });
            prop_assert_eq!(&followed(&test, &way.unwrap().steps), state);
        }
    }
}

/// A mistake in a machine of store buffers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// Stores leave a buffer in any order.
    Reorders,
    /// A load does not see its own thread's buffered store.
    Bypasses,
    /// MFENCE does not wait for the buffer.
    FencePasses,
}

/// A machine of store buffers in front of one memory, under way.
struct Buffers<'t> {
    test: &'t Test,
    state: FinalState,
    /// The next instruction of each thread.
    next: Vec<usize>,
    /// The location and value of each store that has not left, by thread, the oldest first.
    stores: Vec<Vec<(usize, i32)>>,
}

impl<'t> Buffers<'t> {
    fn new(test: &'t Test) -> Self {
        let threads = test.threads.len();
        Self {
            test,
            state: test.initial_state(),
            next: vec![0; threads],
            stores: vec![Vec::new(); threads],
        }
    }

    fn next(&self, thread: usize) -> Option<Instruction> {
        self.test.threads[thread].get(self.next[thread]).copied()
    }

    /// Performs the next instruction of `thread`, whose loads may `bypass` its own buffered stores.
    fn perform(&mut self, thread: usize, bypass: bool) {
        match self.next(thread) {
            Some(Instruction::Load { to, from }) => {
                let own = self.stores[thread].iter().rev().find(|(to, _)| *to == from);
                let own = own.filter(|_| !bypass);
                let value = own.map_or(self.state.memory[from], |&(_, value)| value);
                self.state.registers[thread][to.number()] = value;
            }
            Some(Instruction::Store {
                to,
                value: Source::Immediate(value),
            }) => self.stores[thread].push((to, value)),
            Some(Instruction::Fence) => {}
            other => panic!("{other:?}"),
        }
        self.next[thread] += 1;
    }

    /// Store `which` of `thread`'s buffer changes memory.
    fn leave(&mut self, thread: usize, which: usize) {
        let (to, value) = self.stores[thread].remove(which);
        self.state.memory[to] = value;
    }
}

/// The state in which a drawn walk of a machine with this mistake ends.
fn walk(test: &Test, mistake: Mistake, random: &mut Pcg32) -> FinalState {
    let mut machine = Buffers::new(test);
    loop {
        let mut can = Vec::new();
        for thread in 0..test.threads.len() {
            let buffered = !machine.stores[thread].is_empty();
            can.extend(buffered.then_some(Step::Leave(thread)));
            let waits = |&instruction: &Instruction| {
                instruction == Instruction::Fence && buffered && mistake != Mistake::FencePasses
            };
            let performs = machine.next(thread).filter(|next| !waits(next));
            can.extend(performs.map(|_| Step::Perform(thread)));
        }
        if can.is_empty() {
            return machine.state;
        }
        match can[random.next_u32() as usize % can.len()] {
            Step::Leave(thread) => {
                let stores = &machine.stores[thread];
                // Not even this mistake lets stores to one location pass each other.
                let which = match mistake {
                    Mistake::Reorders => {
                        let (location, _) = stores[random.next_u32() as usize % stores.len()];
                        stores.iter().position(|&(other, _)| other == location)
                    }
                    _ => None,
                };
                machine.leave(thread, which.unwrap_or(0));
            }
            Step::Perform(thread) => machine.perform(thread, mistake == Mistake::Bypasses),
            Step::Arrive { .. } => {}
        }
    }
}

/// The verdict *forbidden* appears for broken memory only, and for each kind of it.
#[test]
fn broken_memory_is_found_out_by_some_cycle() {
    let found = |mistake| {
        let random = &mut Pcg32::new(7, 1);
        let mut found = Vec::new();
        for cycle in Cycle::all(2) {
            let test = cycle.test();
            let behaviours = Behaviours::of(&test, &Model::TotalStoreOrder).unwrap();
            let mut histogram = Histogram::default();
            for _ in 0..400 {
                histogram.count(walk(&test, mistake, random));
            }
            let report = Report::new(&test, &histogram, "x86-TSO", Ok(&behaviours));
            if report.with_verdict(Verdict::Forbidden) > 0 {
                found.push(test.name);
            }
        }
        found
    };
    assert_eq!(found(Mistake::None), Vec::<String>::new());
    for (mistake, by) in [
        (Mistake::Reorders, "PodWW+Rfe+PodRR+Fre"),
        (Mistake::Bypasses, "Rfi+PodRR+Fre+Rfi+PodRR+Fre"),
        (Mistake::FencePasses, "MFencedWR+Fre+MFencedWR+Fre"),
    ] {
        let found = found(mistake);
        assert!(
            found.iter().any(|name| name == by),
            "{mistake:?}: {found:?}"
        );
    }
}

/// The state in which `test` ends by `steps`, which are those of buffers in front of one memory.
fn followed(test: &Test, steps: &[Step]) -> FinalState {
    let mut machine = Buffers::new(test);
    for &step in steps {
        match step {
            Step::Perform(thread) => {
                let is_fence = machine.next(thread) == Some(Instruction::Fence);
                assert!(!is_fence || machine.stores[thread].is_empty());
                machine.perform(thread, false);
            }
            Step::Leave(thread) => machine.leave(thread, 0),
            Step::Arrive { .. } => panic!("there is no way to a home"),
        }
    }
    for (thread, stores) in machine.stores.iter().enumerate() {
        assert!(machine.next(thread).is_none() && stores.is_empty());
    }
    machine.state
}
