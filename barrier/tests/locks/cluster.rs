//! The locks of all threads and the data under them: no update is lost, cached or not; and every
//! half of the coherence protocol that is left out is found.

use std::sync::Arc;

use proptest::prelude::*;
use sme_barrier::lock::{
    Coherence, Cohort, CohortSpec, Copies, Lock, LockError, LockKind, TestAndSetLock,
    TestAndSetSpec,
};
use sme_barrier::{Layout, Member};
use sme_memory::{Memory, Place, Register, Route};

use crate::explore;
use crate::machine::{Failure, Machine, TestMemory};

/// Threads that count up words under a lock.
#[derive(Clone, Debug)]
struct Case {
    kind: LockKind,
    threads: Vec<u32>,
    times: u32,
    passes: u32,
    coherence: Coherence,
    route: Route,
    words: Vec<Place>,
}

impl Case {
    fn cohort(&self) -> Cohort {
        let lock = Cohort::new(CohortSpec {
            nodes: self.threads.len() as u32,
            cores: self.threads.iter().copied().max().unwrap_or(1),
            passes: self.passes,
            coherence: self.coherence.clone(),
            layout: Layout::packed(64),
        });
        lock.unwrap()
    }

    fn test_and_set(&self) -> TestAndSetLock {
        let nodes = self.threads.len() as u32;
        let lock = TestAndSetLock::new(TestAndSetSpec {
            nodes,
            register: Register {
                node: nodes - 1,
                number: 0,
            },
            coherence: self.coherence.clone(),
            layout: Layout::packed(64),
        });
        lock.unwrap()
    }

    /// Bytes of the lock's variables; the words lie behind them.
    fn bytes(&self) -> u64 {
        match self.kind {
            LockKind::Cohort => self.cohort().bytes(),
            LockKind::TestAndSet => self.test_and_set().bytes(),
        }
    }

    fn machine<'p>(&self) -> Machine<'p> {
        match self.kind {
            LockKind::Cohort => self.threads(self.cohort()),
            LockKind::TestAndSet => self.threads(self.test_and_set()),
        }
    }

    fn threads<'p, L: Lock<TestMemory> + 'p>(&self, lock: L) -> Machine<'p> {
        let lock = Arc::new(lock);
        let bytes = self.bytes();
        let words: Arc<[Place]> = self.words.iter().map(|w| w.plus(bytes)).collect();
        let (times, route) = (self.times, self.route);
        Machine::new(&self.threads, |memory, core| {
            let (lock, words) = (Arc::clone(&lock), Arc::clone(&words));
            async move {
                let me = Member {
                    node: memory.node(),
                    core,
                };
                let mut local = L::Local::default();
                for _ in 0..times {
                    lock.acquire(&memory, me, &mut local).await;
                    memory.enter().await;
                    for &place in &words[..] {
                        let word = memory.word(place, route);
                        let value = memory.load(word).await;
                        memory.store(word, value + 1).await;
                    }
                    memory.leave().await;
                    lock.release(&memory, me, &mut local).await;
                }
            }
        })
    }

    /// All have finished, and the words hold as many as were counted.
    fn check(&self, machine: &Machine<'_>) -> Result<(), Failure> {
        machine.end()?;
        let bytes = self.bytes();
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
        prop::sample::select(LockKind::ALL),
    )
        .prop_map(|(threads, times, passes, how, count, home, kind)| {
            let nodes = threads.len() as u32;
            let homes: Vec<u32> = (0..count as u32).map(|i| (home % 64 + i) % nodes).collect();
            let words = words(&homes);
            let (route, copies) = match how {
                0 => (Route::Global, Copies::Kept),
                1 => (Route::Cached, Copies::All),
                _ => (Route::Cached, Copies::Lines(Vec::new())),
            };
            let mut case = Case {
                kind,
                coherence: Coherence { homes, copies },
                threads,
                times,
                passes,
                route,
                words,
            };
            if how == 2 {
                let bytes = case.bytes();
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

fn two_nodes(kind: LockKind, route: Route, coherence: Coherence) -> Case {
    Case {
        kind,
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
    let ways = [(Route::Global, Copies::Kept), (Route::Cached, Copies::All)];
    let cases = |&kind: &LockKind| ways.clone().map(|way| (kind, way));
    for (kind, (route, copies)) in LockKind::ALL.iter().flat_map(cases) {
        let homes = vec![0];
        let case = two_nodes(kind, route, Coherence { homes, copies });
        let states = explore::all(|| case.machine(), |machine| case.check(machine));
        println!("{kind}, {route:?}: {states:?} states");
        assert!(states.is_ok_and(|states| states > 50));
    }
}

/// Seeds under which a fault must show.
const SEEDS: u64 = 2_000;

#[test]
fn data_that_is_not_made_coherent_is_found() {
    // The words' home is neither the lock's nor either thread's: nothing else pushes them there.
    let far = |kind, route, coherence| Case {
        threads: vec![2, 2, 1, 1],
        times: 3,
        words: words(&[3, 0]),
        ..two_nodes(kind, route, coherence)
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
    let cases = |&kind: &LockKind| faults.clone().map(|fault| (kind, fault));
    for (kind, (what, route, homes, copies)) in LockKind::ALL.iter().flat_map(cases) {
        let case = far(kind, route, Coherence { homes, copies });
        let failure = (0..SEEDS).find_map(|seed| case.random(seed).err());
        println!("{kind}, {what}: {failure:?}");
        assert!(
            matches!(failure, Some(Failure::Lost { .. })),
            "{kind}, {what}: {failure:?}"
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
