//! The lock within a node: exhaustively for two and three threads, in order of arrival.

use std::sync::Arc;

use sme_barrier::lock::{Lock, LockError, Ticket, TicketSpec};
use sme_barrier::{Layout, Member};
use sme_memory::Memory;

use crate::explore;
use crate::machine::{Failure, Machine};

fn contest<'p>(cores: u32, times: u32) -> Machine<'p> {
    let layout = Layout::padded(64);
    let lock = Arc::new(Ticket::new(TicketSpec { cores, layout }).unwrap());
    Machine::new(&[cores], |memory, core| {
        let lock = Arc::clone(&lock);
        async move {
            let me = Member {
                node: memory.node(),
                core,
            };
            let mut ticket = 0;
            for _ in 0..times {
                lock.acquire(&memory, me, &mut ticket).await;
                memory.enter().await;
                memory.leave().await;
                lock.release(&memory, me, &mut ticket).await;
            }
        }
    })
}

#[test]
fn few_threads_exhaustively() {
    for (cores, times) in [(1, 3), (2, 3), (3, 2)] {
        let states = explore::all(|| contest(cores, times), Machine::end).unwrap();
        println!("{cores} threads, {times} times: {states} states");
    }
}

#[test]
fn many_threads_by_seeds() {
    for seed in 0..200 {
        let cores = 1 + seed as u32 % 9;
        let mut machine = contest(cores, 4);
        assert_eq!(explore::random(&mut machine, seed), Ok(()));
    }
}

/// More threads than the lock has flags for: two wait at one flag and are served together.
#[test]
fn a_thread_too_many_is_found() {
    let layout = Layout::padded(64);
    let lock = Arc::new(Ticket::new(TicketSpec { cores: 2, layout }).unwrap());
    let machine = || {
        Machine::new(&[4], |memory, core| {
            let lock = Arc::clone(&lock);
            async move {
                let me = Member { node: 0, core };
                let mut ticket = 0;
                lock.acquire(&memory, me, &mut ticket).await;
                memory.enter().await;
                memory.leave().await;
                lock.release(&memory, me, &mut ticket).await;
            }
        })
    };
    let found = explore::all(machine, Machine::end);
    let is_failure = matches!(
        found,
        Err((Failure::Overlap { .. } | Failure::Deadlock { .. }, _))
    );
    assert!(is_failure, "{found:?}");
}

#[test]
fn a_lock_without_threads_is_refused() {
    let layout = Layout::packed(64);
    let refused = Ticket::new(TicketSpec { cores: 0, layout });
    assert_eq!(refused.err(), Some(LockError::NoThreads));
}
