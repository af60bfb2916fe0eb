//! The outcome is the same, byte for byte, for any number of workers and any run.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::case::{Case, cases};

/// All that came out, failures too, as text.
fn outcome(case: &Case, workers: usize) -> String {
    let case = Case {
        workers,
        ..case.clone()
    };
    format!("{:?}", case.run())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn workers_and_repetitions_change_nothing(case in cases(14), coherent_stores in any::<bool>()) {
        let case = Case { coherent_stores, ..case };
        let expected = outcome(&case, 1);
        for workers in [1, 2, 3, 5] {
            prop_assert!(outcome(&case, workers) == expected, "{workers} workers");
        }
    }

    #[test]
    fn the_seed_matters(case in cases(9)) {
        // Only where arrivals are drawn must it; elsewhere it may.
        prop_assume!(case.skew > 0);
        let other = Case { seed: case.seed ^ 1, ..case.clone() };
        prop_assert!(outcome(&case, 1) != outcome(&other, 1));
    }
}

/// Returns what the program prints and writes.
fn sme(arguments: &str, workers: u32) -> (String, [Vec<u8>; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(arguments.split_whitespace())
        .args("--format json --no-host --per-thread threads.csv --link-load links.csv".split(' '))
        .args(["--workers", &workers.to_string()])
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{complaint}");
    let files =
        ["threads.csv", "links.csv"].map(|f| std::fs::read(directory.path().join(f)).unwrap());
    (String::from_utf8(output.stdout).unwrap(), files)
}

#[test]
fn processes_print_the_same_with_any_number_of_workers() {
    for arguments in [
        "barrier --algorithm tree --nodes 9 --cores 4 --episodes 4 --skew 2us",
        "barrier --algorithm flat --nodes 6 --cores 2 --topology torus:3x3 --episodes 4 --seed 9",
        "barrier --algorithm dissemination --nodes 5 --cores 3 --episodes 4",
        "barrier --algorithm flag-phase --placement remote --nodes 2 --cores 4 --episodes 2",
    ] {
        let expected = sme(arguments, 1);
        assert_eq!(expected.0.lines().count(), 1);
        assert!(expected.1.iter().all(|file| file.len() > 100));
        for workers in [1, 2, 3, 5] {
            assert!(
                sme(arguments, workers) == expected,
                "{arguments}, {workers} workers"
            );
        }
    }
}
