//! The number of remote stores of an episode, by the published counts, also where they go to a
//! pool; and that without one only flag-and-phase reads remote memory.

use proptest::prelude::*;
use sme_barrier::{Algorithm, Extent, Mapping, TreeShape};

use crate::checker::Run;
use crate::episodes::{Case, cases};
use crate::memory::Traffic;

fn ceil_log2(nodes: u32) -> u64 {
    (0..)
        .find(|&rounds| 1u64 << rounds >= u64::from(nodes))
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn remote_stores_are_as_many_as_published(case in cases()) {
        let traffic = case.check().map_err(|failure| TestCaseError::fail(format!("{failure:?}")))?;
        let nodes = u64::from(case.nodes);
        let an_episode = match case.algorithm {
            Algorithm::Flat | Algorithm::Tree => 2 * (nodes - 1),
            Algorithm::Dissemination => nodes * ceil_log2(case.nodes),
            Algorithm::Butterfly if case.nodes.is_power_of_two() => nodes * ceil_log2(case.nodes),
            Algorithm::Pthread => 0,
            Algorithm::Butterfly | Algorithm::FlagPhase | Algorithm::Counter => return Ok(()),
        };
        prop_assert_eq!(traffic.remote_sets, an_episode * u64::from(case.run.episodes));
        prop_assert_eq!(traffic.remote_reads > 0, case.pool > 0 && an_episode > 0);
    }
}

fn flag_phase(route: sme_memory::Route) -> Traffic {
    let case = Case {
        algorithm: Algorithm::FlagPhase,
        extent: Extent::plane(1, 1),
        nodes: 1,
        cores: 6,
        fan_in: 2,
        shape: TreeShape::Heap,
        mapping: Mapping::Rows,
        route,
        home: 0,
        layout: sme_barrier::Layout::packed(64),
        pool: 0,
        run: Run {
            episodes: 3,
            skew: 5,
            seed: 1,
        },
    };
    case.check().unwrap()
}

/// Fröning et al., Sec. IV-C: stores depend on the number of threads only: a flag each, a phase.
#[test]
fn flag_and_phase_sets_a_flag_a_thread_and_the_phase() {
    let local = flag_phase(sme_memory::Route::Nearest);
    assert_eq!(
        (local.remote_sets, local.remote_reads, local.local_sets),
        (0, 0, 3 * 7)
    );
    let engine = flag_phase(sme_memory::Route::Global);
    assert_eq!((engine.remote_sets, engine.local_sets), (3 * 7, 0));
    // Each thread reads the phase, the slaves see it change, the master sees five flags change.
    assert!(engine.remote_reads >= 3 * (6 + 5 + 5));
}
