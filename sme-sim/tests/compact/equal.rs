//! Both forms give the same.

use proptest::prelude::*;
use sme_barrier::{Mapping, TreeShape};
use sme_sim::machine::Pinning;
use sme_sim::time::Time;

use crate::case::{Algorithm, Case, cases};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_time_packet_and_event_is_the_same(case in cases(4096)) {
        let readable = case.readable(1);
        let compact = case.compact(1);
        prop_assert_eq!(&compact, &readable);
        prop_assert!(compact.quiet);
    }

    #[test]
    fn what_engines_tell_ahead_changes_nothing(case in cases(1024)) {
        prop_assert_eq!(case.readable(1), case.stepped());
    }

    #[test]
    fn workers_change_nothing(case in cases(1024), workers in 2..5usize) {
        prop_assert_eq!(case.compact(workers), case.compact(1));
    }
}

pub fn case(algorithm: Algorithm, nodes: u32, cores: u32) -> Case {
    Case {
        machine: "sme-prototype",
        overrides: Vec::new(),
        algorithm,
        topology: "mesh:8x8".to_owned(),
        nodes,
        cores,
        mapping: Mapping::SubMesh,
        pinning: Pinning::Scatter,
        last_episode: 3,
        most_skew: Time::ZERO,
        seed: 1,
        noise: None,
    }
}

const TREE: Algorithm = Algorithm::Tree {
    fan_in: 8,
    shape: TreeShape::Heap,
};

#[test]
fn the_papers_cluster_is_the_same() {
    for algorithm in [TREE, Algorithm::Dissemination] {
        let case = case(algorithm, 64, 16);
        assert_eq!(case.compact(1), case.readable(1));
    }
}

#[test]
fn nodes_of_hundreds_of_cores_are_the_same() {
    for algorithm in [TREE, Algorithm::Dissemination] {
        let case = Case {
            machine: "exascale",
            topology: "torus:3x3x1".to_owned(),
            last_episode: 1,
            ..case(algorithm, 5, 741)
        };
        assert_eq!(case.compact(1), case.readable(1));
    }
}

#[test]
fn one_thread_alone_is_the_same() {
    for algorithm in [TREE, Algorithm::Dissemination] {
        let case = case(algorithm, 1, 1);
        assert_eq!(case.compact(1), case.readable(1));
    }
}
