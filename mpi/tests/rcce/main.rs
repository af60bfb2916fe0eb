//! RCCE on real threads: messages of any length arrive, between any cores, and no core leaves a
//! barrier before all have arrived.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use sme_memory::native::{Native, Patience, Size, Thread, run};
use sme_mpi::rcce::{Rcce, RcceError};

const BUFFER: u64 = 1024;

/// Runs `program` as each of `ues` UEs, on threads of their own.
fn on_threads<F: Future<Output = ()>>(ues: u32, program: impl Fn(Rcce<Thread>, u32) -> F + Sync) {
    let size = Size {
        nodes: ues,
        flag_bytes: BUFFER,
        word_bytes: BUFFER,
    };
    let memory = Native::new(size, Patience::for_threads(ues as usize));
    std::thread::scope(|scope| {
        for me in 0..ues {
            let rcce = Rcce::new(memory.thread(me), me, ues, BUFFER).unwrap();
            let program = &program;
            scope.spawn(move || run(program(rcce, me)));
        }
    });
}

/// The words of message `number` from `from`.
fn message(from: u32, number: usize, length: usize) -> Vec<u64> {
    let first = u64::from(from) << 40 | (number as u64) << 20;
    (first..).take(length).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In each round one UE sends and another receives; lengths from nothing to many pieces.
    #[test]
    fn messages_arrive(
        ues in 2u32..5,
        rounds in prop::collection::vec((any::<u32>(), 1u32..5, 0usize..400), 1..8),
    ) {
        let plan: Vec<(u32, u32, usize)> = rounds
            .into_iter()
            .map(|(from, step, length)| {
                let from = from % ues;
                (from, (from + 1 + (step - 1) % (ues - 1)) % ues, length)
            })
            .collect();
        on_threads(ues, |rcce, me| {
            let plan = &plan;
            async move {
                for (number, &(from, to, length)) in plan.iter().enumerate() {
                    if me == from {
                        rcce.send(to, &message(from, number, length), None).await;
                    } else if me == to {
                        let mut words = vec![0; length];
                        rcce.receive(from, &mut words, None).await;
                        assert_eq!(words, message(from, number, length));
                    }
                }
            }
        });
    }
}

#[test]
fn no_core_leaves_a_barrier_early() {
    let arrived: Arc<AtomicU32> = Arc::default();
    on_threads(4, |mut rcce, me| {
        let arrived = Arc::clone(&arrived);
        async move {
            for episode in 1..200 {
                if me == episode % 4 {
                    std::thread::yield_now();
                }
                arrived.fetch_add(1, Ordering::SeqCst);
                rcce.barrier().await;
                assert!(arrived.load(Ordering::SeqCst) >= 4 * episode);
            }
        }
    });
}

#[test]
fn flags_that_fill_the_buffers_are_refused() {
    let memory = |nodes| {
        let size = Size {
            nodes,
            flag_bytes: BUFFER,
            word_bytes: BUFFER,
        };
        Native::new(size, Patience::NONE).thread(0)
    };
    let full = RcceError::NoRoom {
        ues: 11,
        bytes: BUFFER,
    };
    assert_eq!(Rcce::new(memory(11), 0, 11, BUFFER).err(), Some(full));
    assert_eq!(
        Rcce::new(memory(1), 0, 0, BUFFER).err(),
        Some(RcceError::NoCores)
    );
    assert!(Rcce::new(memory(10), 0, 10, BUFFER).is_ok());
}
