//! The ideal machine under every command that simulates programs, with the flags and the checks of
//! the SME cluster.

use crate::command::{cell, sme, stdout, text};

fn latency(arguments: &str) -> f64 {
    let output = stdout(&format!(
        "barrier --machine ideal --episodes 4 --no-host {arguments}"
    ));
    cell(&output, "latency_mean_us").parse().unwrap()
}

#[test]
fn every_barrier_runs_for_any_number_of_workers() {
    for algorithm in ["flat", "tree", "dissemination", "butterfly"] {
        let of = |workers| {
            let flags = "--nodes 16 --cores 4 --episodes 4 --no-host --work 3us --noise-period 20us --noise-duration 1us";
            stdout(&format!(
                "barrier --machine ideal --algorithm {algorithm} {flags} --workers {workers}"
            ))
        };
        assert_eq!(of(1), of(2), "{algorithm}");
    }
    for placement in ["local", "engine", "remote", "coherent"] {
        assert!(
            latency(&format!(
                "--algorithm flag-phase --placement {placement} --cores 4"
            )) > 0.0
        );
    }
    assert!(latency("--algorithm pthread --cores 4") > 0.0);
}

/// Two nodes of one thread: each sets the other's flag, 2 ns of its own and 500 ns of way, and
/// looks at its own in 50 ns and 2. Each further round is one more of these.
#[test]
fn a_round_of_dissemination_costs_a_way_and_a_look() {
    let of = |nodes: u32| {
        latency(&format!(
            "--algorithm dissemination --cores 1 --nodes {nodes}"
        ))
    };
    let (two, four, eight) = (of(2), of(4), of(8));
    let round = four - two;
    assert!(
        (round - (eight - four)).abs() < 1e-6,
        "{two} {four} {eight}"
    );
    assert!((0.5..0.7).contains(&round), "{round}");
}

/// The same network for everything: however many send to one node, its flat barrier pays them no
/// queueing.
#[test]
fn there_is_no_congestion() {
    let of = |nodes: u32| latency(&format!("--algorithm flat --cores 1 --nodes {nodes}"));
    // One more node is one more flag to look at and one more to set.
    let (few, many) = (of(8), of(64));
    let per_node = (many - few) / 56.0;
    assert!(per_node < 0.06, "{per_node}");
}

#[test]
fn programs_are_right_through_the_caches_and_past_them() {
    for program in ["fft --log2n 8", "lu --n 64", "radix --keys 1000"] {
        for memory in ["cached", "uncached"] {
            let of = |workers| {
                stdout(&format!(
                    "{program} --machine ideal --memory {memory} --nodes 4 --cores 2 --no-host --workers {workers}"
                ))
            };
            assert_eq!(cell(&of(1), "correct"), "true", "{program} {memory}");
            // Each barrier writes the caches of each node back.
            let flush_us: f64 = cell(&of(1), "flush_us").parse().unwrap();
            assert_eq!(flush_us > 0.0, memory == "cached", "{program} {memory}");
            assert_eq!(of(1), of(2), "{program} {memory}");
        }
    }
}

#[test]
fn without_coherence_points_a_result_is_wrong_and_loads_are_stale() {
    let output = sme(
        "fft --machine ideal --log2n 10 --nodes 4 --cores 2 --coherence-point none --stale --no-host",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the result is wrong"));
    assert!(text(&output.stdout).contains("stale"));
}

#[test]
fn each_lock_gives_way_to_one_thread_at_a_time() {
    for lock in ["cohort", "test-and-set"] {
        for data in ["uncached", "line", "all"] {
            let output = stdout(&format!(
                "lock --machine ideal --lock {lock} --data {data} --nodes 4 --cores 2 --acquisitions 5 --no-host"
            ));
            assert_eq!(cell(&output, "acquisitions"), "40", "{lock} {data}");
        }
    }
}

/// An algorithm that needs a missing capability is refused by name, before the simulation begins.
#[test]
fn what_a_machine_lacks_is_refused_by_name() {
    for (arguments, says) in [
        (
            "lock --lock test-and-set",
            "the test-and-set lock needs test-and-set registers, which machine sme-prototype does not have",
        ),
        (
            "lock --machine ideal --set node.registers=0 --lock test-and-set",
            "the test-and-set lock needs test-and-set registers, which machine ideal does not have",
        ),
    ] {
        let output = sme(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert_eq!(text(&output.stdout), "", "{arguments}");
        let said = text(&output.stderr);
        assert!(said.contains(says), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// Verdicts of litmus tests: a copy that is not dropped never shows another node's store.
#[test]
fn litmus_tests_see_stale_copies() {
    let verdict = |memory: &str, test: &str| {
        let output = stdout(&format!(
            "litmus --machine ideal --memory {memory} --runs 100 litmus/{test}.litmus"
        ));
        let line = output.lines().find(|line| line.starts_with("Observation"));
        line.unwrap().split_whitespace().nth(2).unwrap().to_owned()
    };
    for test in ["2+2W", "CoRR", "IRIW", "LB", "MP", "SB", "SB+mfences"] {
        assert_eq!(verdict("local", test), "Never", "{test}");
    }
    // Stores to different homes take different times, so that two nodes may see them in different
    // orders.
    assert_eq!(verdict("engine", "CoRR"), "Never");
    assert_eq!(verdict("engine", "2+2W"), "Sometimes");
    assert_eq!(verdict("cached", "SB"), "Always");
    assert_eq!(verdict("cached", "SB+mfences"), "Always");
    assert_eq!(verdict("cached", "CoRR"), "Never");
}

/// The critical path of a barrier adds up to what the barrier took.
#[test]
fn the_critical_path_is_as_long_as_the_barrier() {
    let output =
        stdout("barrier --machine ideal --nodes 4 --cores 2 --episodes 2 --no-host --explain");
    let total: f64 = cell(&output, "total")
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let max: f64 = cell(&output, "latency_max_us").parse().unwrap();
    assert!((total / 1000.0 - max).abs() < 1e-6, "{total} {max}");
}
