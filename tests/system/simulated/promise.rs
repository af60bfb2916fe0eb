//! No thread leaves an episode before the last has arrived; the traffic is the published one; and
//! nothing is left behind.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sme_barrier::Algorithm;
use sme_memory::Route;

use super::case::{Case, Ran, cases};

fn ceil_log2(nodes: u64) -> u64 {
    (0..).find(|&rounds| 1 << rounds >= nodes).unwrap()
}

/// Stores through an engine in one episode.
fn stores(case: &Case) -> Option<u64> {
    let (nodes, cores) = (u64::from(case.nodes), u64::from(case.cores));
    match case.algorithm {
        Algorithm::Flat | Algorithm::Tree => Some(2 * (nodes - 1)),
        Algorithm::Dissemination => Some(nodes * ceil_log2(nodes)),
        Algorithm::Butterfly => nodes.is_power_of_two().then(|| nodes * ceil_log2(nodes)),
        Algorithm::Pthread | Algorithm::Counter => Some(0),
        Algorithm::FlagPhase => match case.route {
            // A flag from each thread, and the phase.
            Route::Global | Route::Tagged => Some(nodes * cores + 1),
            // The same from those who are not at home; the first node has the master.
            Route::Nearest => Some((nodes - 1) * cores + u64::from(case.home != 0)),
            // Flags are in coherent memory.
            Route::Cached => None,
        },
    }
}

/// Worked out from every thread's visits alone.
pub fn check_visits(case: &Case, ran: &Ran) -> Result<(), TestCaseError> {
    for episode in 0..=case.episodes {
        let visits = ran.visits.iter().filter(|(_, v)| v.span.number == episode);
        let last_arrival = visits.clone().map(|(_, v)| v.begin).max();
        let first_departure = visits.clone().map(|(_, v)| v.end).min();
        prop_assert!(last_arrival <= first_departure, "episode {episode}");
        let threads: Vec<_> = visits.map(|(node, v)| (*node, v.thread)).collect();
        prop_assert_eq!(threads.len() as u32, case.nodes * case.cores);
        let distinct: BTreeSet<_> = threads.iter().collect();
        prop_assert_eq!(distinct.len(), threads.len());

        let times = ran.episodes[episode as usize];
        prop_assert_eq!(Some(times.last_begin), last_arrival);
        prop_assert_eq!(Some(times.first_end), first_departure);
    }
    let mut by_thread = ran.visits.clone();
    by_thread.sort_by_key(|(node, v)| (*node, v.thread, v.span.number));
    for pair in by_thread.windows(2) {
        let ((node, before), (next_node, after)) = (pair[0], pair[1]);
        if (node, before.thread) == (next_node, after.thread) {
            prop_assert!(before.begin < before.end && before.end <= after.begin);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn every_barrier_holds_in_every_shape(case in cases(20)) {
        let ran = case.run().map_err(|failure| TestCaseError::fail(format!("{failure:?}")))?;
        check_visits(&case, &ran)?;
        prop_assert!(ran.quiet, "something is still under way");
        if let Some(stores) = stores(&case) {
            prop_assert_eq!(ran.traffic.remote_stores, stores * u64::from(case.episodes));
        }
        if case.algorithm != Algorithm::FlagPhase {
            prop_assert_eq!(ran.traffic.remote_loads, 0);
        }
        // What goes into the links comes out of them: a packet crosses one link for each hop.
        let counted: u64 = ran.links.iter().map(|load| load.bytes).sum();
        prop_assert!(ran.traffic.link_bytes <= counted);
        prop_assert_eq!(case.nodes == 1, counted == 0);
    }
}
