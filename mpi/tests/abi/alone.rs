//! Calls that concern their rank alone give the same if they are answered at once as in their turn.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sme_mpi::abi::Compute;
use sme_mpi::abi::facts::{CALLS, Chapter, Interface};
use sme_mpi::abi::program::Asked;

use super::script::{BASE, Script, number};
use super::{Calls, performed, word};

/// The call of this name with these words.
fn call(name: &str, words: &[u64]) -> (usize, [u64; 16]) {
    let mut values = [0; 16];
    values[..words.len()].copy_from_slice(words);
    (number(name), values)
}

#[test]
fn others_have_their_turn() {
    for interface in [Interface::Mpich, Interface::Standard] {
        let [world, int] = ["COMM_WORLD", "INT"].map(|name| interface.handle(name));
        let calls = vec![
            call("Comm_size", &[world, BASE + 8]),
            call("Type_contiguous", &[3, int, BASE + 16]),
            call("Barrier", &[world]),
            call("Type_commit", &[BASE + 16]),
            // It fails.
            call("Comm_size", &[0, BASE + 8]),
            call("Comm_rank", &[world, BASE + 24]),
            call("Type_free", &[BASE + 16]),
        ];
        let served = |calls: Vec<Asked>| Script::listed(&[7], calls).served();
        let script = performed(interface, calls, Compute::Zero, served);
        let wrong = interface.constant("ERR_COMM") as u64;
        assert_eq!(*script.answers.lock(), [0, 0, 0, 0, 0, 0, 0, wrong, 0, 0]);
        // The error handlers come before them.
        assert_eq!(*script.at_once.lock(), 7, "{interface:?}");
    }
}

#[test]
fn a_datatype_whose_end_calls_a_function_has_its_turn() {
    let interface = Interface::Mpich;
    let int = interface.handle("INT");
    // Those of the first datatype and the first key.
    let (datatype, key) = (0x8c00_1001, 1001);
    let calls = vec![
        call("Type_contiguous", &[3, int, BASE + 16]),
        call("Type_create_keyval", &[0, 0, BASE + 32, 0]),
        call("Type_dup", &[datatype, BASE + 24]),
        call("Type_set_attr", &[datatype, key, 5]),
        call("Type_free", &[BASE + 16]),
        call("Type_free", &[BASE + 24]),
    ];
    let served = |calls: Vec<Asked>| Script::listed(&[7], calls).served();
    let script = performed(interface, calls, Compute::Zero, served);
    assert_eq!(*script.answers.lock(), [0; 9]);
    // Besides the error handlers: the first datatype, the key, the copy and its end.
    assert_eq!(*script.at_once.lock(), 6);
}

/// Calls most of which concern their rank alone.
fn calls(interface: Interface) -> impl Strategy<Value = Calls> {
    let is_local = |chapter| {
        [
            Chapter::Types,
            Chapter::Groups,
            Chapter::Info,
            Chapter::Communicators,
            Chapter::Topologies,
            Chapter::Attributes,
            Chapter::Environment,
            Chapter::Errors,
            Chapter::Operations,
            Chapter::Tools,
        ]
        .contains(&chapter)
    };
    let all = CALLS.iter().enumerate();
    let local = all.filter(|(_, call)| is_local(call.chapter));
    let local: Vec<usize> = local.map(|(number, _)| number).collect();
    let values = prop::collection::vec(word(interface), 16);
    let values = values.prop_map(|values| <[u64; 16]>::try_from(values).unwrap());
    let number = prop_oneof![
        8 => prop::sample::select(local),
        1 => 0..CALLS.len(),
    ];
    prop::collection::vec((number, values), 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_turn_makes_no_difference(
        (interface, words, calls) in prop::sample::select(vec![Interface::Mpich, Interface::Standard])
            .prop_flat_map(|interface| {
                let words = prop::collection::vec(word(interface), 1..64);
                (Just(interface), words, calls(interface))
            }),
    ) {
        // These calls tell of simulated time, or of the process.
        let differ: BTreeSet<usize> = ["Wtime", "Pcontrol"].into_iter().map(number).collect();
        let calls = calls.into_iter().filter(|(number, _)| !differ.contains(number));
        let calls: Calls = calls.collect();
        let [in_turn, at_once] = [false, true].map(|is_served| {
            performed(interface, calls.clone(), Compute::Zero, |calls| {
                let script = Script::listed(&words, calls);
                if is_served { script.served() } else { script }
            })
        });
        prop_assert_eq!(&*in_turn.answers.lock(), &*at_once.answers.lock());
        prop_assert!(*in_turn.memory.lock() == *at_once.memory.lock());
        prop_assert_eq!(*in_turn.at_once.lock(), 0);
    }
}
