//! Threads that start others: each is a thread of the host, which also decides what runs where.

use std::collections::VecDeque;
use std::future::Future;

use super::sync::{Monitor, spawn, yield_now};
use super::{Protocol, Thread, run};
use crate::{Spawn, ThreadId};

/// All threads, in the order of their numbers.
pub(super) struct Started(Monitor<Vec<Known>>);

/// A thread.
struct Known {
    state: State,
    /// The values of signals that have come.
    signals: VecDeque<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    Ended,
    Panicked,
}

impl Started {
    pub(super) fn new() -> Self {
        Self(Monitor::new(Vec::new()))
    }

    pub(super) fn add(&self) -> u32 {
        let known = Known {
            state: State::Runs,
            signals: VecDeque::new(),
        };
        self.0.change(|threads| {
            threads.push(known);
            (threads.len() as u32 - 1, false)
        })
    }

    fn set(&self, number: u32, state: State) {
        self.0
            .change(|threads| (threads[number as usize].state = state, true));
    }

    /// Waits until it has ended; how it has. Panics where there is no such thread.
    fn end_of(&self, number: u32) -> State {
        let mut state = State::Runs;
        self.0.wait_while(|threads| {
            state = threads[number as usize].state;
            state == State::Runs
        });
        state
    }

    /// Panics where there is no such thread.
    fn send_signal(&self, number: u32, value: u64) {
        let send = |threads: &mut Vec<Known>| {
            threads[number as usize].signals.push_back(value);
            ((), true)
        };
        self.0.change(send);
    }

    /// Waits for a signal.
    fn take_signal(&self, number: u32) -> u64 {
        let mut taken = None;
        self.0.wait_while(|threads| {
            taken = threads[number as usize].signals.pop_front();
            taken.is_none()
        });
        taken.expect("the wait ends with one")
    }
}

/// Says that a thread has ended, however it does.
struct Ends<'a>(&'a Started, u32);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let state = match std::thread::panicking() {
            true => State::Panicked,
            false => State::Ended,
        };
        self.0.set(self.1, state);
    }
}

impl<P: Protocol> Spawn for Thread<P> {
    /// The host chooses the core.
    async fn spawn<Q, F>(&self, _core: Option<u32>, program: Q) -> ThreadId
    where
        Q: FnOnce(Self) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let number = self.shared.started.add();
        let memory = Self {
            number,
            ..self.clone()
        };
        spawn(move || {
            let shared = memory.shared.clone();
            let _ends = Ends(&shared.started, number);
            run(program(memory));
        });
        ThreadId(number)
    }

    /// Panics if the thread has.
    async fn join(&self, thread: ThreadId) {
        let end = self.shared.started.end_of(thread.0);
        assert!(end == State::Ended, "{thread:?} has panicked");
    }

    async fn give_way(&self) {
        yield_now();
    }

    fn id(&self) -> ThreadId {
        ThreadId(self.number)
    }

    /// Panics where there is no such thread.
    async fn send_signal(&self, thread: ThreadId, value: u64) {
        self.shared.started.send_signal(thread.0, value);
    }

    async fn take_signal(&self) -> u64 {
        self.shared.started.take_signal(self.number)
    }
}
