//! Flags that fit together, and those that do not.

use super::*;
use crate::cli::testing::{self, sweep_flags};

/// The error line for the flags of `sme barrier`.
fn refused(flags: &str) -> String {
    let flags: Vec<&str> = flags.split_whitespace().collect();
    match experiment(&sweep_flags(&flags).experiment) {
        Err(Stop::Input(line)) => line,
        other => panic!("{flags:?} gives {other:?}"),
    }
}

#[test]
fn defaults_are_the_published_cluster() {
    let plain = testing::experiment(&[]);
    assert_eq!((plain.nodes, plain.cores), (64, 16));
    assert_eq!(plain.topology.to_string(), "mesh:8x8");
    assert_eq!(plain.algorithm, Algorithm::Tree);
    let on_torus = testing::experiment(&["--topology", "torus:3x4x2"]);
    assert_eq!(on_torus.nodes, 24);
}

#[test]
fn a_placement_brings_its_number_of_nodes() {
    let nodes = |flags: &str| {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        testing::experiment(&flags).nodes
    };
    assert_eq!(nodes("--algorithm flag-phase"), 1);
    assert_eq!(nodes("--algorithm flag-phase --placement engine"), 1);
    assert_eq!(nodes("--algorithm flag-phase --placement remote"), 2);
    assert_eq!(nodes("--algorithm flag-phase --placement coherent"), 2);
    assert_eq!(nodes("--algorithm pthread --topology mesh:8x8"), 1);
}

#[test]
fn each_mistake_is_one_line_that_names_the_flag() {
    for (flags, line) in [
        ("--nodes 0", "--nodes 0: 0 is too small; at least 1"),
        (
            "--nodes 1048577",
            "--nodes 1048577: 1048577 is too large; at most 1048576",
        ),
        (
            "--seed 18446744073709551616",
            "--seed 18446744073709551616: 18446744073709551616 is too large; \
             at most 18446744073709551615",
        ),
        ("--nodes -3", "--nodes -3: '-3' is not a whole number"),
        (
            "--nodes 1,2",
            "--nodes 1,2: one value here; sme sweep takes lists",
        ),
        (
            "--cores 17",
            "--cores 17: a node of sme-prototype has 16 cores",
        ),
        (
            "--topology mesh:2x2 --nodes 5",
            "--topology mesh:2x2: its 4 positions do not hold 5 nodes",
        ),
        (
            "--topology mseh:2x2",
            "--topology: 'mseh' is not known; did you mean 'mesh'? (one of mesh, torus, fattree, dragonfly)",
        ),
        (
            "--algorithm tre",
            "--algorithm: 'tre' is not known; did you mean 'tree'? \
             (one of flag-phase, flat, tree, dissemination, butterfly, pthread, counter)",
        ),
        (
            "--tree-shape heaps",
            "--tree-shape: 'heaps' is not known; did you mean 'heap'? (one of heap, groups)",
        ),
        (
            "--placement engine",
            "--placement: --algorithm tree does not use it",
        ),
        (
            "--algorithm flat --fan-in 4",
            "--fan-in: --algorithm flat does not use it",
        ),
        ("--fan-in 1", "--fan-in 1: 1 is too small; at least 2"),
        (
            "--algorithm flag-phase --nodes 2",
            "--nodes 2: flag-phase with --placement local runs on 1 node",
        ),
        (
            "--algorithm flag-phase --placement remote --nodes 1",
            "--nodes 1: flag-phase with --placement remote runs on 2 nodes",
        ),
        (
            "--algorithm pthread --nodes 3",
            "--nodes 3: pthread runs on 1 node",
        ),
        ("--set engine", "--set engine: write SECTION.KEY=VALUE"),
        (
            "--set engine.clock=1GHz --set engine.clock=2GHz",
            "--set engine.clock=2GHz: engine.clock is given twice",
        ),
    ] {
        assert_eq!(refused(flags), line);
    }
    assert!(refused("--machine sme-prototyp").contains("did you mean"));
    assert!(refused("--set engine.clok=1GHz").contains("engine.clock"));
    assert!(refused("--set engine.clock=156").contains("no unit"));
    assert!(refused("--skew 5").starts_with("--skew: "));
    assert!(refused("--machine /no/such.toml").contains("/no/such.toml"));
}

#[test]
fn a_sweep_is_refused_as_a_whole() {
    let all = |flags: &str| {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        points(&sweep_flags(&flags).experiment)
    };
    assert!(all("--cores 1..17").is_err());
    assert!(all("--nodes 1..5 --topology mesh:2x2").is_err());
    assert!(all("--engine cycle --topology fattree:4x2").is_ok());
    assert!(all("--engine cycle,rtl --topology fattree:4x2").is_err());
    assert!(all("--algorithm flag-phase --placement local,remote --nodes 1").is_err());
    let both = all("--algorithm flag-phase --placement local,remote").unwrap();
    assert_eq!(both.iter().map(|e| e.nodes).collect::<Vec<_>>(), [1, 2]);
    // Without a placement of its own, tree comes once.
    let mixed = all("--algorithm flag-phase,tree --placement local,engine").unwrap();
    assert_eq!(mixed.len(), 3);
    let many = all("--seed 1..1000 --nodes 1..1000 --cores 1..16").unwrap_err();
    assert!(many.to_string().contains("more than 100000 points"));
}
