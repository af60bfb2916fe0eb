//! Programs that grow and shrink: their results are right, their worlds are as wide as they ask
//! for, and they take as long as their parts do.

use std::sync::Arc;

use proptest::prelude::*;
use sme::messages::Measurement;
use sme::messages::job::Job;
use sme::messages::simpson::{Outcome, Simpson, Variant, exact};
use sme_sim::machine::Machine;
use sme_sim::time::Time;

use crate::command::{sme, sme_in, text};

fn integrate(variant: Variant, tolerance: f64, points: u64) -> Outcome {
    let job = Job::managed(Arc::new(Machine::builtin("scc-800").unwrap()));
    let simpson = Simpson {
        job,
        variant,
        tolerance,
        points,
        waiting: None,
    };
    simpson.run().unwrap()
}

/// The function, and the same integral by recursion: the leaves of an interval, and their sum.
fn function(x: f64) -> f64 {
    if x > 0.0 { x.exp() } else { 1.0 }
}

fn recursive((a, b): (f64, f64), tolerance: f64, points: u64) -> (u64, f64) {
    let simpson = |a: f64, b: f64| {
        (b - a) * (function(a) + 4.0 * function((a + b) / 2.0) + function(b)) / 6.0
    };
    let middle = (a + b) / 2.0;
    let halves = simpson(a, middle) + simpson(middle, b);
    if (halves - simpson(a, b)).abs() / 15.0 > tolerance {
        let (left, one) = recursive((a, middle), tolerance, points);
        let (right, other) = recursive((middle, b), tolerance, points);
        return (left + right, one + other);
    }
    let width = (b - a) / points as f64;
    let values = (0..points).map(|number| function(a + width * (number as f64 + 0.5)));
    (1, width * values.sum::<f64>())
}

fn leaves(outcome: &Outcome) -> u64 {
    let all = outcome.levels.iter().flat_map(|level| &level.leaves);
    all.filter(|leaf| **leaf).count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Both versions have the sum and the leaves of a recursion, for any tolerance; the world has a
    /// process for each interval, as far as there are cores.
    #[test]
    fn both_versions_integrate(exponent in -4.5..2.0_f64, points in 1..40_u64) {
        let tolerance = 10_f64.powf(exponent);
        let (expected_leaves, expected) = recursive((-100.0, 15.0), tolerance, points);
        for variant in [Variant::Serial, Variant::Invasive] {
            let outcome = integrate(variant, tolerance, points);
            prop_assert_eq!(leaves(&outcome), expected_leaves);
            prop_assert!((outcome.result / expected - 1.0).abs() < 1e-12, "{}", outcome.result);
            for level in &outcome.levels {
                let wanted = match variant {
                    Variant::Serial => 1,
                    Variant::Invasive => (level.intervals.len() as u32).min(48),
                };
                prop_assert_eq!(level.processes, wanted);
            }
        }
    }
}

/// With the points of the paper: the serial version takes the sum of all leaves, the invasive one a
/// leaf for each level that has one, and the growth of its world.
#[test]
fn the_invasive_version_takes_its_levels() {
    let serial = integrate(Variant::Serial, 0.02, 100_000);
    let invasive = integrate(Variant::Invasive, 0.02, 100_000);
    assert!((serial.result / exact() - 1.0).abs() < 1e-8);
    assert!((invasive.result / serial.result - 1.0).abs() < 1e-12);
    let most = invasive.levels.iter().map(|level| level.processes).max();
    assert_eq!(
        (most, leaves(&serial), leaves(&invasive)),
        (Some(18), 40, 40)
    );
    let mut computed = Time::ZERO;
    let mut changed = Time::ZERO;
    let mut before = Time::ZERO;
    for level in &invasive.levels {
        changed += level.begin.since(before);
        computed += level.end.since(level.begin);
        before = level.end;
    }
    assert_eq!(computed + changed, invasive.time);
    // A world that grows takes 46 ms and more; it grows six times.
    assert!(
        (6.0 * 46.0..6.0 * 50.0).contains(&(changed.as_us() * 1e-3)),
        "{changed}"
    );
    let total = invasive.total.as_us() - invasive.time.as_us();
    assert!((46_000.0..60_000.0).contains(&total), "{total}");
}

/// The solver whose world changes: the same bytes with any number of threads of this computer, and
/// errors in a line.
#[test]
fn the_solver_repeats_itself() {
    let directory = tempfile::tempdir().unwrap();
    let line = "mpi cg --side 20 --processes 2,9,4 --iterations 15 --no-host --format json";
    let once = sme_in(directory.path(), line);
    let again = sme_in(directory.path(), &format!("{line} --workers 2"));
    assert_eq!(text(&once.stdout), text(&again.stdout));
    let rows: Vec<serde_json::Value> = (text(&once.stdout).lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows[0]["processes_max"], 9);
    let residual = rows[0]["residual"].as_f64().unwrap();
    assert!(residual < 1e-6, "{residual}");
    let phases: Vec<u64> = (rows[1..].iter())
        .map(|row| row["processes"].as_u64().unwrap())
        .collect();
    assert_eq!(phases, [2, 9, 4]);
    for (flags, why) in [
        ("--side 4 --processes 5", "--processes 5: 5 is too large"),
        ("--iterations 0", "--iterations 0:"),
        ("--core-gflops 0", "--core-gflops: 0 is not a number from"),
    ] {
        let refused = sme_in(directory.path(), &format!("mpi cg {flags}"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
}

/// The same bytes with any number of threads of this computer, and errors in a line.
#[test]
fn the_command_repeats_itself() {
    let directory = tempfile::tempdir().unwrap();
    let line = "mpi simpson --points 500 --no-host --format json";
    let once = sme_in(directory.path(), line);
    let again = sme_in(directory.path(), &format!("{line} --workers 2"));
    assert_eq!(text(&once.stdout), text(&again.stdout));
    assert!(text(&once.stdout).contains("\"processes_max\":18"));
    for (flags, why) in [
        ("--tolerance 0", "--tolerance: 0 is not a number from"),
        ("--points 0", "--points 0:"),
        ("--variant parallel", "--variant: 'parallel' is not known"),
        (
            "--machine xeon-e5-2650",
            "--machine: a process manager needs",
        ),
        (
            "--machine cxl-pool",
            "--machine: a process manager needs memory of each node",
        ),
        ("--nodes 48", "--nodes: is for clusters"),
        (
            "--machine sme-prototype --nodes 125",
            "--nodes 125: 125 is too large; at most 124",
        ),
        (
            "--machine sme-prototype --set node.shared_memory=4KiB",
            "--machine: the channel takes",
        ),
    ] {
        let refused = sme_in(directory.path(), &format!("mpi simpson {flags}"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
}

/// Every command under managers has defaults that fit a cluster of a few nodes; where a machine has
/// no figures of power, its rows have no energy.
#[test]
fn defaults_fit_a_few_nodes() {
    let few = "--machine sme-prototype --nodes 2 --no-host --format json";
    for command in [
        "invade",
        "infect",
        "retreat",
        "spawn",
        "connect",
        "borrow",
        "cg --iterations 2",
    ] {
        let output = sme(&format!("mpi {command} {few}"));
        let rows = text(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{command}: {}",
            text(&output.stderr)
        );
        assert!(
            !rows.is_empty() && !rows.contains("\"energy_j\":0"),
            "{command}: {rows}"
        );
        let is_cg = command.starts_with("cg");
        assert_eq!(
            rows.contains("\"energy_j\":null"),
            is_cg,
            "{command}: {rows}"
        );
    }
}
