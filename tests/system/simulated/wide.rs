//! Barriers on nodes of more than 64 cores.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use sme_barrier::Algorithm;

use super::case::{Case, cases};
use super::promise::check_visits;

fn holds(case: &Case) -> Result<(), TestCaseError> {
    let ran = case
        .run()
        .map_err(|failure| TestCaseError::fail(format!("{failure:?}")))?;
    check_visits(case, &ran)?;
    prop_assert!(ran.quiet, "something is still under way");
    Ok(())
}

/// A node of the exascale machine, every core of it.
#[test]
fn the_tree_holds_on_741_cores() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut case = cases(1).new_tree(&mut runner).unwrap().current();
    case.machine = "exascale";
    case.algorithm = Algorithm::Tree;
    case.topology = "torus:1x1x1".parse().unwrap();
    (case.nodes, case.cores, case.episodes) = (1, 741, 2);
    holds(&case).unwrap();
    // On three nodes, of which each has a master that waits for 740 others.
    case.topology = "torus:2x2x1".parse().unwrap();
    (case.nodes, case.cores, case.episodes) = (3, 741, 1);
    holds(&case).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_barrier_holds_on_wide_nodes(case in cases(3), cores in 60..=200u32) {
        holds(&Case { machine: "exascale", cores, episodes: 1, ..case })?;
    }
}
