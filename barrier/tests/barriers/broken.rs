//! Barriers with one fault each. The checker must find every fault, and must find nothing in the
//! same barrier without it.

use std::future::Future;

use proptest::prelude::*;
use sme_barrier::{Barrier, Member};
use sme_memory::{Futex, Memory, Place, Route, Until, Word};

use crate::checker::{Run, check};
use crate::faulty::{DisseminationFault, FaultyDissemination, FaultyTree, TreeFault, flag};
use crate::memory::{Failure, TestMemory};

/// Schedules under which a fault must show at least once.
const SCHEDULES: u64 = 300;
/// Bytes of each node that these barriers use.
const BYTES: u64 = 8192;
/// A fault of a PThread barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PthreadFault {
    NobodyIsWoken,
    LeavesWhenWokenWithoutReason,
    NextEpisodeOvertakes,
    ForgetsWhoSleepsOnTheLock,
}

/// Event at 0, lock at 8, threads inside at 16.
struct Locked {
    threads: u64,
    fault: Option<PthreadFault>,
}

impl Locked {
    async fn acquire<M: Futex>(&self, memory: &M, lock: Word) {
        let forgets = self.fault == Some(PthreadFault::ForgetsWhoSleepsOnTheLock);
        let marked = if forgets { 1 } else { 2 };
        if memory.compare_exchange(lock, 0, 1).await != 0 {
            while memory.swap(lock, marked).await != 0 {
                memory.futex_wait(lock, marked).await;
            }
        }
    }

    async fn release<M: Futex>(&self, memory: &M, lock: Word) {
        if memory.swap(lock, 0).await == 2 {
            memory.futex_wake(lock, 1).await;
        }
    }
}

impl<M: Futex> Barrier<M> for Locked {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        let has = |fault| self.fault == Some(fault);
        let word = move |offset| {
            let node = me.node;
            memory.word(Place { node, offset }, Route::Nearest)
        };
        let (event, lock, inside) = (word(0), word(8), word(16));
        async move {
            self.acquire(memory, lock).await;
            let arrived = memory.load(inside).await + 1;
            memory.store(inside, arrived).await;
            if arrived == self.threads {
                if has(PthreadFault::NextEpisodeOvertakes) {
                    self.release(memory, lock).await;
                }
                memory.fetch_add(event, 1).await;
                if !has(PthreadFault::NobodyIsWoken) {
                    memory.futex_wake(event, u32::MAX).await;
                }
            } else {
                let before = memory.load(event).await;
                self.release(memory, lock).await;
                loop {
                    memory.futex_wait(event, before).await;
                    let woken = memory.load(event).await != before;
                    if woken || has(PthreadFault::LeavesWhenWokenWithoutReason) {
                        break;
                    }
                }
            }
            let left = memory.fetch_add(inside, u64::MAX).await;
            if left == 1 && !has(PthreadFault::NextEpisodeOvertakes) {
                self.release(memory, lock).await;
            }
        }
    }
}

/// The first failure under any of the schedules.
fn first_failure<B: Barrier<TestMemory>>(barrier: &B, threads: &[u32]) -> Option<Failure> {
    (0..SCHEDULES).find_map(|seed| {
        let how = Run {
            episodes: 4,
            skew: [0, 2, 40][seed as usize % 3],
            seed,
        };
        check(barrier, threads, BYTES, how).err()
    })
}

fn assert_found<F: std::fmt::Debug>(fault: F, found: Option<Failure>) {
    let known = matches!(
        found,
        Some(Failure::LeftEarly { .. } | Failure::Deadlock { .. })
    );
    assert!(known, "{fault:?}: {found:?}");
}

#[test]
fn faults_of_a_tree_are_found() {
    let (nodes, cores) = (6, 3);
    let threads = [cores; 6];
    let run = |fault| {
        let barrier = FaultyTree {
            nodes,
            cores,
            fault,
        };
        first_failure(&barrier, &threads)
    };
    assert_eq!(run(None), None);
    for fault in TreeFault::ALL {
        assert_found(fault, run(Some(fault)));
    }
}

#[test]
fn faults_of_a_dissemination_barrier_are_found() {
    for nodes in [2, 5, 8] {
        let threads = vec![1; nodes as usize];
        let run = |fault| first_failure(&FaultyDissemination { nodes, fault }, &threads);
        assert_eq!(run(None), None);
        for fault in DisseminationFault::ALL {
            assert_found((nodes, fault), run(Some(fault)));
        }
    }
}

#[test]
fn faults_of_a_pthread_barrier_are_found() {
    let run = |fault| first_failure(&Locked { threads: 5, fault }, &[5]);
    assert_eq!(run(None), None);
    for fault in [
        PthreadFault::NobodyIsWoken,
        PthreadFault::LeavesWhenWokenWithoutReason,
        PthreadFault::NextEpisodeOvertakes,
        PthreadFault::ForgetsWhoSleepsOnTheLock,
    ] {
        assert_found(fault, run(Some(fault)));
    }
}

/// Every thread waits for a flag that is never written; every thread writes a flag that only one
/// may write.
struct Misuse {
    two_writers: bool,
    offset: u32,
}

impl<M: Memory> Barrier<M> for Misuse {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        let flag = flag(memory, me.node, self.offset);
        async move {
            if self.two_writers {
                memory.set(flag, 1).await;
            } else {
                memory.wait(flag, Until::Is(1)).await;
            }
        }
    }
}

proptest! {
    #[test]
    fn misuse_of_memory_is_found_under_any_schedule(seed in any::<u64>()) {
        let how = Run { episodes: 1, skew: 0, seed };
        let misuse = |two_writers, offset| {
            check(&Misuse { two_writers, offset }, &[2], BYTES, how).unwrap_err()
        };
        prop_assert_eq!(misuse(false, 0), Failure::Deadlock { waiting: vec![0, 1] });
        let wrote_twice = matches!(misuse(true, 0), Failure::TwoWriters { .. } | Failure::LeftEarly { .. });
        prop_assert!(wrote_twice);
        prop_assert!(matches!(misuse(false, BYTES as u32), Failure::Illegal(_)));
    }
}
