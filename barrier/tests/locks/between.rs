//! The lock between nodes: exhaustively for two, by seeds for more; and every fault is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use sme_barrier::lock::{Lock, LockError, Tournament, TournamentSpec};
use sme_barrier::{Layout, Member};
use sme_memory::Memory;

use crate::explore;
use crate::machine::{Event, Failure, Machine, TestMemory};
use crate::tampered::{Fault, Tampered};

fn tournament(nodes: u32) -> Arc<Tournament> {
    let layout = Layout::packed(64);
    Arc::new(Tournament::new(TournamentSpec { nodes, layout }).unwrap())
}

/// A thread on each node acquires the lock as often as `times` says.
fn contest<'p>(times: &[u32], fault: Option<Fault>) -> Machine<'p> {
    let lock = tournament(times.len() as u32);
    let threads = vec![1; times.len()];
    Machine::new(&threads, |memory, core| {
        let lock = Arc::clone(&lock);
        let node = memory.node();
        let count = times[node as usize];
        async move {
            let memory = Tampered::new(memory, fault, Arc::clone(&lock));
            let me = Member { node, core };
            for _ in 0..count {
                lock.acquire(&memory, me, &mut ()).await;
                memory.inner.enter().await;
                memory.inner.leave().await;
                lock.release(&memory, me, &mut ()).await;
            }
        }
    })
}

/// Every schedule of two nodes.
#[test]
fn two_nodes_exhaustively() {
    for times in [[1, 1], [2, 1], [1, 2]] {
        let states = explore::all(|| contest(&times, None), Machine::end);
        let states = states.unwrap_or_else(|error| panic!("{times:?}: {error:?}"));
        println!("{times:?}: {states} states");
        assert!(states > 1_000, "{times:?}: only {states}");
    }
}

/// From a node's turn in a match until it enters: how often nodes of the other half enter, at most.
fn most_bypasses(events: &[Event], nodes: u32) -> u32 {
    let lock = tournament(nodes);
    let is_turn = |place| {
        let name = Lock::<TestMemory>::variable(&*lock, place);
        name.is_some_and(|name| name.contains("turn of"))
    };
    // By match and node: how often those it waits for have entered.
    let mut waiting: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut most = 0;
    for event in events {
        match *event {
            Event::Performed(place, attempt) if is_turn(place) => {
                let node = ((attempt - 1) % u64::from(nodes)) as u32;
                waiting.insert((place.node, node), 0);
            }
            Event::Performed(..) => {}
            Event::Entered(entered) => {
                waiting.retain(|&(home, node), bypasses| {
                    let half = 1 << home.trailing_zeros();
                    let others = if node < home {
                        home..home + half
                    } else {
                        home - half..home
                    };
                    *bypasses += u32::from(others.contains(&entered));
                    most = most.max(*bypasses);
                    node != entered
                });
            }
        }
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn one_at_a_time_and_no_rival_twice(
        times in prop::collection::vec(0..4u32, 1..10), seed: u64,
    ) {
        let nodes = times.len() as u32;
        let mut machine = contest(&times, None);
        prop_assert_eq!(explore::random(&mut machine, seed), Ok(()));
        let events = machine.events();
        let entries = events.iter().filter(|event| matches!(event, Event::Entered(_)));
        prop_assert_eq!(entries.count() as u32, times.iter().sum::<u32>());
        let bypasses = most_bypasses(&events, nodes);
        prop_assert!(bypasses <= 1, "{}", bypasses);
    }
}

/// The bound is reached, so the count does count.
#[test]
fn a_rival_may_be_first() {
    let most = (0..20).map(|seed| {
        let mut machine = contest(&[4; 4], None);
        explore::random(&mut machine, seed).unwrap();
        most_bypasses(&machine.events(), 4)
    });
    assert_eq!(most.max(), Some(1));
}

/// Each fault shows on two nodes in some schedule, or on four, where there are two rounds.
#[test]
fn every_fault_is_found() {
    for fault in Fault::ALL {
        let two = explore::all(|| contest(&[2, 2], Some(fault)), Machine::end);
        if let Err((failure, _)) = two {
            println!("{fault:?}: {failure:?}");
            continue;
        }
        let failure = (0..20_000).find_map(|seed| {
            let mut machine = contest(&[3; 4], Some(fault));
            explore::random(&mut machine, seed).err()
        });
        println!("{fault:?} on four nodes: {failure:?}");
        assert!(failure.is_some(), "{fault:?} was not found");
    }
}

/// The failure of a lock that does not exclude is that two threads are inside, not that it stops.
#[test]
fn a_claim_that_is_still_on_its_way_lets_two_in() {
    for fault in [
        Fault::NoFence,
        Fault::NoReadBackOfClaim,
        Fault::TurnBeforeClaim,
    ] {
        let found = explore::all(|| contest(&[1, 1], Some(fault)), |_| Ok(()));
        let overlap = matches!(found, Err((Failure::Overlap { .. }, _)));
        assert!(overlap, "{fault:?}: {found:?}");
    }
}

/// A withdrawal that arrives late takes away the claim of the thread that follows from the same
/// half.
#[test]
fn a_withdrawal_that_is_still_on_its_way_lets_two_in() {
    let overlaps = |seed| {
        let mut machine = contest(&[3; 4], Some(Fault::NoReadBackOfWithdrawal));
        let ended = explore::random(&mut machine, seed);
        matches!(ended, Err(Failure::Overlap { .. }))
    };
    assert!((0..20_000).any(overlaps));
}

#[test]
fn a_lock_without_nodes_is_refused() {
    let layout = Layout::packed(64);
    let refused = Tournament::new(TournamentSpec { nodes: 0, layout });
    assert_eq!(refused.err(), Some(LockError::NoNodes));
}
