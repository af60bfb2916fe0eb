//! The calls of programs in C, with arguments that make no sense: each ends with an answer, and
//! none with a panic.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod alone;
mod looks;
mod script;

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme_mpi::abi::facts::{CALLS, Chapter, Interface};
use sme_mpi::abi::program::Asked;
use sme_mpi::abi::{Compute, serve};
use sme_mpi::rank::Mpi;
use sme_mpi::wires::{Setting, run};

use script::{BASE, BYTES, Script, asked, number};

/// Words that a call may take for something: constants, small numbers, addresses, anything.
fn word(interface: Interface) -> impl Strategy<Value = u64> {
    let constants: Vec<u64> = interface
        .constants()
        .map(|(_, value)| value as u64)
        .collect();
    let handles = [
        "COMM_WORLD",
        "COMM_SELF",
        "INT",
        "DOUBLE_INT",
        "BYTE",
        "SUM",
        "MAXLOC",
        "GROUP_EMPTY",
        "INFO_NULL",
        "IN_PLACE",
        "PROC_NULL",
        "ANY_SOURCE",
    ];
    let handles: Vec<u64> = handles.iter().map(|name| interface.handle(name)).collect();
    prop_oneof![
        6 => prop::sample::select(handles),
        1 => prop::sample::select(constants),
        4 => 0..5u64,
        4 => (0..BYTES as u64 + 64).prop_map(|at| BASE + at),
        1 => prop::sample::select(vec![u64::MAX, i32::MAX as u64, 1 << 40, 0x8400_1001, 0x4000_1001]),
        1 => any::<u64>(),
    ]
}

/// Calls, each a number and words.
type Calls = Vec<(usize, [u64; 16])>;

/// Makes `calls` behind MPI_Init with errors that return; the results of those that ended, and
/// memory, as far as the last run had come.
fn performs(
    interface: Interface,
    words: &[u64],
    calls: Calls,
    compute: Compute,
) -> (Vec<u64>, Vec<u8>) {
    let script = performed(interface, calls, compute, |calls| {
        Script::listed(words, calls)
    });
    (script.answers.lock().clone(), script.memory.lock().clone())
}

/// The same, of the script that `listed` makes of the calls.
fn performed(
    interface: Interface,
    calls: Calls,
    compute: Compute,
    listed: impl Fn(Vec<Asked>) -> Script,
) -> Arc<Script> {
    let returns = interface.handle("ERRORS_RETURN");
    let begins = ["COMM_WORLD", "COMM_SELF"].map(|comm| {
        let mut values = [0; 16];
        values[..2].copy_from_slice(&[interface.handle(comm), returns]);
        asked(number("Comm_set_errhandler"), values)
    });
    let calls = calls
        .into_iter()
        .map(|(number, values)| asked(number, values));
    let init = asked(number("Init"), [0; 16]);
    let all: Vec<Asked> = [init].into_iter().chain(begins).chain(calls).collect();
    let last: Arc<Mutex<Arc<Script>>> = Arc::new(Mutex::new(Arc::new(listed(vec![]))));
    // A call that waits for ever ends with an error: that there is nothing to wait for.
    let _ = run(1, Setting { room: 64, seed: 1 }, |wire| {
        let script = Arc::new(listed(all.clone()));
        *last.lock() = Arc::clone(&script);
        async move {
            let mpi = Mpi::new(wire);
            serve(&mpi, script, || interface, compute, None).await
        }
    });
    Arc::clone(&last.lock())
}

/// Calls with right arguments: a send and a receive in partitions, and their starts.
fn partitioned(interface: Interface) -> Vec<(usize, [u64; 16])> {
    let (at, to) = (BASE + 64, BASE + 256);
    let (int, own) = (interface.handle("INT"), interface.handle("COMM_SELF"));
    let none = interface.handle("INFO_NULL");
    let calls = [
        ("Psend_init", vec![to, 2, 3, int, 0, 0, own, none, at]),
        ("Precv_init", vec![to, 3, 2, int, 0, 0, own, none, at + 8]),
        ("Start", vec![at]),
        ("Start", vec![at + 8]),
        ("T_init_thread", vec![0, at + 16]),
    ];
    let call = |(name, words): (&str, Vec<u64>)| {
        let mut values = [0; 16];
        values[..words.len()].copy_from_slice(&words);
        (number(name), values)
    };
    calls.map(call).into()
}

#[test]
fn calls_give_their_results() {
    for interface in [Interface::Mpich, Interface::Standard] {
        let world = interface.handle("COMM_WORLD");
        let mut values = [0; 16];
        values[..2].copy_from_slice(&[world, BASE + 8]);
        let calls = vec![
            (number("Comm_size"), values),
            (number("Comm_size"), [0; 16]),
            (number("Barrier"), values),
        ];
        let (answers, memory) = performs(interface, &[7], calls, Compute::Zero);
        let wrong = interface.constant("ERR_COMM") as u64;
        assert_eq!(answers, [0, 0, 0, 0, wrong, 0], "{interface:?}");
        assert_eq!(
            memory[..16],
            [7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}

/// The handle of the first file, which has the second handle, and the place to which it is written.
const FILE: u64 = 0x4000_1001;
const FILE_AT: u64 = BASE + BYTES as u64 - 8;

/// Opens a file to read and write, whose name is where memory begins.
fn opens(interface: Interface) -> (usize, [u64; 16]) {
    let mode = interface.constant("MODE_RDWR") | interface.constant("MODE_CREATE");
    let (own, info) = (interface.handle("COMM_SELF"), interface.handle("INFO_NULL"));
    let mut values = [0; 16];
    values[..5].copy_from_slice(&[own, BASE, mode as u64, info, FILE_AT]);
    (number("File_open"), values)
}

#[test]
fn files_keep_what_is_written() {
    for interface in [Interface::Mpich, Interface::Standard] {
        let (byte, ignored) = (interface.handle("BYTE"), interface.handle("STATUS_IGNORE"));
        let with = |name: &str, given: &[u64]| {
            let mut values = [0; 16];
            values[..given.len()].copy_from_slice(given);
            (number(name), values)
        };
        let calls = vec![
            opens(interface),
            with("File_write_at", &[FILE, 3, BASE, 4, byte, ignored]),
            with("File_read", &[FILE, BASE + 100, 64, byte, ignored]),
            with("File_get_position", &[FILE, BASE + 8]),
            with("File_close", &[FILE_AT]),
            with("File_get_position", &[FILE, BASE + 8]),
        ];
        let (answers, memory) = performs(interface, &[0x0403_0201], calls, Compute::Zero);
        let wrong = interface.constant("ERR_FILE") as u64;
        assert_eq!(answers[3..], [0, 0, 0, 0, 0, wrong], "{interface:?}");
        assert_eq!(memory[100..107], [0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(memory[8], 7);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Calls on a file, most of them on one that is open.
    #[test]
    fn no_call_on_a_file_panics(
        (interface, words, calls) in prop::sample::select(vec![Interface::Mpich, Interface::Standard])
            .prop_flat_map(|interface| {
                let all = CALLS.iter().enumerate();
                let on_files = all.filter(|(_, call)| call.chapter == Chapter::Files);
                let on_files: Vec<usize> = on_files.map(|(number, _)| number).collect();
                let values = prop::collection::vec(word(interface), 16);
                let values = values.prop_map(|values| <[u64; 16]>::try_from(values).unwrap());
                let call = (prop::sample::select(on_files), prop::bool::weighted(0.9), values);
                (
                    Just(interface),
                    prop::collection::vec(word(interface), 1..64),
                    prop::collection::vec(call, 1..20),
                )
            }),
    ) {
        let words: Vec<u64> = [u64::from(b'f')].into_iter().chain(words).collect();
        let mut all = vec![opens(interface)];
        for (number, is_on_file, mut values) in calls {
            // The handle of the file, or its address.
            let first = CALLS[number].kinds.first().copied();
            match first {
                Some("file") if is_on_file => values[0] = FILE,
                Some("*file") if is_on_file => values[0] = FILE_AT,
                _ => {}
            }
            all.push((number, values));
        }
        let (answers, _) = performs(interface, &words, all, Compute::Zero);
        prop_assert!(answers.len() > 3);
        prop_assert_eq!(answers[3], 0);
    }

    /// Calls on requests in partitions, on datatypes and of the tool interface that may well be
    /// right, in any order.
    #[test]
    fn no_partition_or_type_panics(
        (interface, words, calls) in prop::sample::select(vec![Interface::Mpich, Interface::Standard])
            .prop_flat_map(|interface| {
                let handle = move |kind: u64| match interface {
                    Interface::Mpich => kind + 0x1000,
                    Interface::Standard => 0x4000_1000,
                };
                let made = prop::sample::select(vec![handle(0xac00_0000), handle(0x8c00_0000)]);
                let made = (made, 1..6u64).prop_map(|(kind, number)| kind + number);
                let value = prop_oneof![4 => word(interface), 1 => made];
                let values = prop::collection::vec(value, 16);
                let values = values.prop_map(|values| <[u64; 16]>::try_from(values).unwrap());
                let names: Vec<usize> = (0..CALLS.len())
                    .filter(|&number| {
                        let call = &CALLS[number];
                        let is_of = |chapter| call.chapter == chapter;
                        is_of(Chapter::Partitioned)
                            || is_of(Chapter::Tools)
                            || is_of(Chapter::Types)
                            || ["Start", "Wait", "Test", "Request_free"].contains(&call.name)
                    })
                    .collect();
                let right = partitioned(interface);
                let call = prop_oneof![
                    4 => (prop::sample::select(names), values),
                    1 => prop::sample::select(right),
                ];
                (
                    Just(interface),
                    prop::collection::vec(word(interface), 1..64),
                    prop::collection::vec(call, 1..20),
                )
            }),
    ) {
        performs(interface, &words, calls, Compute::Zero);
    }

    #[test]
    fn no_call_panics(
        (interface, words, calls) in prop::sample::select(vec![Interface::Mpich, Interface::Standard])
            .prop_flat_map(|interface| {
                let values = prop::collection::vec(word(interface), 16);
                let values = values.prop_map(|values| <[u64; 16]>::try_from(values).unwrap());
                let call = (0..CALLS.len() + 5, values);
                (
                    Just(interface),
                    prop::collection::vec(word(interface), 1..64),
                    prop::collection::vec(call, 1..12),
                )
            }),
    ) {
        performs(interface, &words, calls, Compute::Declared);
    }
}
