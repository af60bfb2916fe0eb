//! Tasks: calls of several messages, such as a broadcast. A task is an `async` function that waits
//! for requests of its rank only, so that it needs no waker: it is polled when one of them has
//! ended.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Activity, Device, Outcome};
use crate::error::Fault;

/// A call under way; its result is in bytes.
pub(crate) type Task = Pin<Box<dyn Future<Output = Result<Vec<u8>, Fault>> + Send>>;

impl Device {
    /// Begins a task; the request is over when it is.
    pub(crate) fn begin_task(&self, task: Task) -> usize {
        let mut state = self.state.lock();
        let request = state.begin(Activity::Task);
        state.running.push((request, task));
        state.is_changed = true;
        request
    }

    /// Waits for the end of a request, inside a task.
    pub(crate) async fn ended(&self, request: usize) -> Outcome {
        let poll = |_: &mut Context<'_>| match self.take(request) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        };
        poll_fn(poll).await
    }

    /// Waits until `done` gives something, inside a task. It is asked when a request has ended, or
    /// a handler has had a packet.
    pub(crate) async fn changed<T>(&self, mut done: impl FnMut() -> Option<T> + Send) -> T {
        poll_fn(|_| done().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Polls the tasks until nothing ends any more.
    pub(crate) fn poll_tasks(&self) {
        loop {
            let running = {
                let mut state = self.state.lock();
                if !take(&mut state.is_changed) || state.running.is_empty() {
                    return;
                }
                take(&mut state.running)
            };
            let mut waiting = Vec::with_capacity(running.len());
            for (request, mut task) in running {
                let mut context = Context::from_waker(Waker::noop());
                match task.as_mut().poll(&mut context) {
                    Poll::Pending => waiting.push((request, task)),
                    Poll::Ready(result) => self.state.lock().ends(request, result.into()),
                }
            }
            // Those that a task has begun come behind those that were there.
            let mut state = self.state.lock();
            waiting.append(&mut state.running);
            state.running = waiting;
        }
    }
}

impl From<Result<Vec<u8>, Fault>> for Outcome {
    fn from(result: Result<Vec<u8>, Fault>) -> Self {
        match result {
            Ok(bytes) => Self {
                bytes,
                ..Self::default()
            },
            Err(fault) => Self {
                fault: Some(fault),
                ..Self::default()
            },
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("rank", &self.rank)
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}
