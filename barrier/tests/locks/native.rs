//! The locks on real threads: a word counted up under the lock.

use std::sync::Arc;
use std::thread;

use sme_barrier::lock::{
    Coherence, Cohort, CohortSpec, Lock, TestAndSetLock, TestAndSetSpec, Ticket, TicketSpec,
    Tournament, TournamentSpec,
};
use sme_barrier::{Layout, Member};
use sme_memory::native::{LINE, Native, Patience, Size, Thread, run};
use sme_memory::{Memory, Place, Register, Route};

/// Fewer under Miri, which is a thousand times slower.
const TIMES: u64 = if cfg!(miri) { 3 } else { 3_000 };

/// `cores` threads on each of `nodes` nodes count up one word, which must miss none.
fn count<L: Lock<Thread> + 'static>(lock: L, bytes: u64, nodes: u32, cores: u32) {
    for patience in [
        Patience::for_threads((nodes * cores) as usize),
        Patience::NONE,
    ] {
        counted(&lock, bytes, nodes, cores, patience);
    }
}

fn counted<L: Lock<Thread>>(lock: &L, bytes: u64, nodes: u32, cores: u32, patience: Patience) {
    let size = Size {
        nodes,
        flag_bytes: bytes,
        word_bytes: bytes + LINE,
    };
    let memory = Native::new(size, patience);
    let counter = Place {
        node: 0,
        offset: bytes,
    };
    thread::scope(|scope| {
        for node in 0..nodes {
            for core in 0..cores {
                let memory = memory.thread(node);
                scope.spawn(move || {
                    run(async {
                        let me = Member { node, core };
                        let word = memory.word(counter, Route::Nearest);
                        let mut local = L::Local::default();
                        for _ in 0..TIMES {
                            lock.acquire(&memory, me, &mut local).await;
                            let value = memory.load(word).await;
                            memory.store(word, value + 1).await;
                            lock.release(&memory, me, &mut local).await;
                        }
                    });
                });
            }
        }
    });
    let reader = memory.thread(0);
    let found = run(reader.load(reader.word(counter, Route::Nearest)));
    assert_eq!(found, TIMES * u64::from(nodes * cores));
}

fn layout() -> Layout {
    Layout::padded(LINE as u32)
}

#[test]
fn threads_of_a_node() {
    for cores in [1, 2, 5] {
        let lock = Ticket::new(TicketSpec {
            cores,
            layout: layout(),
        });
        let lock = lock.unwrap();
        let bytes = lock.bytes();
        count(lock, bytes, 1, cores);
    }
}

#[test]
fn nodes_of_a_thread() {
    for nodes in [1, 2, 3, 6] {
        let lock = Tournament::new(TournamentSpec {
            nodes,
            layout: layout(),
        });
        let lock = lock.unwrap();
        let bytes = lock.bytes();
        count(lock, bytes, nodes, 1);
    }
}

#[test]
fn nodes_of_threads() {
    for (nodes, cores, passes) in [(1, 3, 4), (2, 2, 0), (2, 2, 3), (3, 2, 8)] {
        let lock = Cohort::new(CohortSpec {
            nodes,
            cores,
            passes,
            coherence: Coherence::default(),
            layout: layout(),
        });
        let lock = lock.unwrap();
        let bytes = lock.bytes();
        count(lock, bytes, nodes, cores);
    }
}

#[test]
fn threads_over_a_register() {
    for (nodes, cores) in [(1, 1), (1, 3), (3, 2)] {
        let lock = TestAndSetLock::new(TestAndSetSpec {
            nodes,
            register: Register {
                node: nodes - 1,
                number: 1,
            },
            coherence: Coherence::default(),
            layout: layout(),
        });
        let lock = lock.unwrap();
        let bytes = lock.bytes();
        count(lock, bytes, nodes, cores);
    }
}

/// A lock is shared behind an `Arc` by threads that outlive the one that made it.
#[test]
fn a_lock_can_be_sent_and_shared() {
    fn shared<T: Send + Sync + 'static>(_: Arc<T>) {}
    let spec = TournamentSpec {
        nodes: 2,
        layout: layout(),
    };
    shared(Arc::new(Tournament::new(spec).unwrap()));
}
