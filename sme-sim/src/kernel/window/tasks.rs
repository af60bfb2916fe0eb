//! The tasks that nodes wait for, shared by the workers of a process: each offers its nodes' tasks,
//! all do what there is, their own first, and each takes its own back. In between they meet, which
//! is for the caller.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Tasks of type `T`, each of a worker.
pub(super) struct Tasks<T> {
    /// Tasks that no worker has begun, by owner.
    offered: Vec<Mutex<Vec<T>>>,
    /// Finished tasks, by owner.
    done: Vec<Mutex<Vec<T>>>,
    /// The number of tasks ever offered.
    count: AtomicU64,
}

impl<T> Tasks<T> {
    /// Of `workers`, none yet.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            offered: (0..workers).map(|_| Mutex::default()).collect(),
            done: (0..workers).map(|_| Mutex::default()).collect(),
            count: AtomicU64::new(0),
        }
    }

    /// Worker `me` offers `tasks`.
    pub(super) fn offer(&self, me: usize, tasks: &mut Vec<T>) {
        if !tasks.is_empty() {
            self.count.fetch_add(tasks.len() as u64, Ordering::Relaxed);
            self.offered[me].lock().append(tasks);
        }
    }

    /// Returns the number of tasks ever offered: the same for all workers from a meeting after an
    /// offer to the one before the next.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Takes a task that no worker has begun for worker `me`, and returns it with its owner. If
    /// `me` owns it, `then` is told of the tasks that `me` will take after it, the next one last.
    pub(super) fn take(&self, me: usize, mut then: impl FnMut(&[T])) -> Option<(usize, T)> {
        let workers = self.offered.len();
        (me..me + workers).map(|n| n % workers).find_map(|owner| {
            let mut offered = self.offered[owner].lock();
            let task = offered.pop()?;
            if owner == me {
                then(&offered);
            }
            Some((owner, task))
        })
    }

    /// `task` of worker `owner` is done.
    pub(super) fn is_done(&self, owner: usize, task: T) {
        self.done[owner].lock().push(task);
    }

    /// Takes the finished tasks of worker `me`.
    pub(super) fn take_back(&self, me: usize) -> Vec<T> {
        std::mem::take(&mut self.done[me].lock())
    }
}
