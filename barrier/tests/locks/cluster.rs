//! The lock of the cluster and the data under it: no update is lost, cached or not; and every
//! half of the coherence protocol that is left out is found.

use std::sync::Arc;

use proptest::prelude::*;
use sme_barrier::lock::{Coherence, Cohort, CohortSpec, Copies, Lock, LockError};
use sme_barrier::{Layout, Member};
use sme_memory::{Memory, Place, Route};

use crate::explore;
use crate::machine::{Failure, Machine};

/// Threads that count up words under a lock.
#[derive(Clone, Debug)]
struct Case {
    threads: Vec<u32>,
    times: u32,
    passes: u32,
    coherence: Coherence,
    route: Route,
    words: Vec<Place>,
}

impl Case {
    fn machine<'p>(&self) -> Machine<'p> {
        let lock = Cohort::new(CohortSpec {
            nodes: self.threads.len() as u32,
            cores: self.threads.iter().copied().max().unwrap_or(1),
            passes: self.passes,
            coherence: self.coherence.clone(),
            layout: Layout::packed(64),
        });
        let lock = Arc::new(lock.unwrap());
        let words: Arc<[Place]> = self.words.iter().map(|w| w.plus(lock.bytes())).collect();
        let (times, route) = (self.times, self.route);
        Machine::new(&self.threads, |memory, core| {
            let (lock, words) = (Arc::clone(&lock), Arc::clone(&words));
            async move {
                let me = Member {
                    node: memory.node(),
                    core,
                };
                let mut ticket = 0;
                for _ in 0..times {
                    lock.acquire(&memory, me, &mut ticket).await;
                    memory.enter().await;
                    for &place in &words[..] {
                        let word = memory.word(place, route);
                        let value = memory.load(word).await;
                        memory.store(word, value + 1).await;
                    }
                    memory.leave().await;
                    lock.release(&memory, me, &mut ticket).await;
                }
            }
        })
    }

    /// All have finished, and the words hold as many as were counted.
    fn check(&self, machine: &Machine<'_>) -> Result<(), Failure> {
        machine.end()?;
        let spec = CohortSpec {
            nodes: self.threads.len() as u32,
            cores: self.threads.iter().copied().max().unwrap_or(1),
            passes: self.passes,
            coherence: self.coherence.clone(),
            layout: Layout::packed(64),
        };
        let bytes = Cohort::new(spec).unwrap().bytes();
        let expected = u64::from(self.times * self.threads.iter().sum::<u32>());
        for word in &self.words {
            let found = machine.at_home(word.plus(bytes));
            if found != expected {
                return Err(Failure::Lost { found, expected });
            }
        }
        Ok(())
    }

    fn random(&self, seed: u64) -> Result<(), Failure> {
        let mut machine = self.machine();
        explore::random(&mut machine, seed)?;
        self.check(&machine)
    }
}

fn words(homes: &[u32]) -> Vec<Place> {
    let place = |(index, &node): (u64, &u32)| Place {
        node,
        offset: 64 * index,
    };
    (0u64..).zip(homes).map(place).collect()
}

fn cases() -> impl Strategy<Value = Case> {
    let threads = prop::collection::vec(1..4u32, 1..6);
    (
        threads,
        1..4u32,
        0..4u32,
        0..3usize,
        1..4usize,
        any::<u32>(),
    )
        .prop_map(|(threads, times, passes, how, count, home)| {
            let nodes = threads.len() as u32;
            let homes: Vec<u32> = (0..count as u32).map(|i| (home % 64 + i) % nodes).collect();
            let words = words(&homes);
            let (route, copies) = match how {
                0 => (Route::Global, Copies::Kept),
                1 => (Route::Cached, Copies::All),
                _ => (Route::Cached, Copies::Lines(Vec::new())),
            };
            let mut case = Case {
                coherence: Coherence { homes, copies },
                threads,
                times,
                passes,
                route,
                words,
            };
            if how == 2 {
                let bytes = Cohort::new(CohortSpec {
                    nodes,
                    cores: case.threads.iter().copied().max().unwrap_or(1),
                    passes,
                    coherence: Coherence::default(),
                    layout: Layout::packed(64),
                });
                let bytes = bytes.unwrap().bytes();
                let lines = case.words.iter().map(|word| word.plus(bytes)).collect();
                case.coherence.copies = Copies::Lines(lines);
            }
            case
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_update_is_lost(case in cases(), seed: u64) {
        prop_assert_eq!(case.random(seed), Ok(()));
    }
}

fn two_nodes(route: Route, coherence: Coherence) -> Case {
    Case {
        threads: vec![1, 1],
        times: 1,
        passes: 1,
        coherence,
        route,
        words: words(&[0]),
    }
}

/// Every schedule of a thread on each of two nodes.
#[test]
fn two_nodes_exhaustively() {
    for (route, copies) in [(Route::Global, Copies::Kept), (Route::Cached, Copies::All)] {
        let homes = vec![0];
        let case = two_nodes(route, Coherence { homes, copies });
        let states = explore::all(|| case.machine(), |machine| case.check(machine));
        println!("{route:?}: {states:?} states");
        assert!(states.is_ok_and(|states| states > 1_000));
    }
}

/// Seeds under which a fault must show.
const SEEDS: u64 = 2_000;

#[test]
fn data_that_is_not_made_coherent_is_found() {
    // The words' home is neither the lock's nor either thread's: nothing else pushes them there.
    let far = |route, coherence| Case {
        threads: vec![2, 2, 1, 1],
        times: 3,
        words: words(&[3, 0]),
        ..two_nodes(route, coherence)
    };
    let faults = [
        ("no read-back", Route::Global, vec![], Copies::Kept),
        (
            "no read-back of cached data",
            Route::Cached,
            vec![],
            Copies::All,
        ),
        ("copies are kept", Route::Cached, vec![3, 0], Copies::Kept),
    ];
    for (what, route, homes, copies) in faults {
        let case = far(route, Coherence { homes, copies });
        let failure = (0..SEEDS).find_map(|seed| case.random(seed).err());
        println!("{what}: {failure:?}");
        assert!(
            matches!(failure, Some(Failure::Lost { .. })),
            "{what}: {failure:?}"
        );
    }
}

#[test]
fn a_lock_of_no_use_is_refused() {
    let refused = |nodes, cores, home| {
        let spec = CohortSpec {
            nodes,
            cores,
            passes: 8,
            coherence: Coherence {
                homes: vec![home],
                copies: Copies::Kept,
            },
            layout: Layout::packed(64),
        };
        Cohort::new(spec).err()
    };
    assert_eq!(refused(2, 2, 1), None);
    assert_eq!(
        refused(2, 2, 2),
        Some(LockError::Home { home: 2, nodes: 2 })
    );
    assert_eq!(refused(2, 0, 0), Some(LockError::NoThreads));
}
