//! Teams of real threads, over the native memory of `sme-memory` and a native barrier of
//! `sme-barrier`: for running a kernel on one's own machine, and for its tests. The host is
//! coherent; nodes are only numbers.

use std::thread;

use sme_barrier::native::{Barrier, BarrierError, Handle};
use sme_memory::native::{Native, Thread};

use crate::Team;

/// A real thread of a team.
pub struct NativeTeam {
    memory: Thread,
    number: u32,
    size: u32,
    barrier: Handle,
}

impl NativeTeam {
    /// The members of a team over `memory`, with so many threads on node 0, node 1, …, numbered in
    /// this order. The barrier's flags lie in memory of their own.
    ///
    /// # Errors
    /// If there is no thread, or too many.
    pub fn members(memory: &Native, threads: &[u32]) -> Result<Vec<Self>, BarrierError> {
        let total = threads.iter().map(|&count| count as usize).sum();
        let nodes = (0..).zip(threads);
        let nodes = nodes.flat_map(|(node, &count)| (0..count).map(move |_| node));
        let handles = Barrier::new(total)?.handles();
        let members = (0..).zip(nodes).zip(handles);
        Ok(members
            .map(|((number, node), barrier)| Self {
                memory: memory.thread(node),
                number,
                size: total as u32,
                barrier,
            })
            .collect())
    }

    /// Runs `program` on a thread for each member and returns what each gave, in order. A program
    /// that panics leaves the others waiting at the next barrier, for ever.
    ///
    /// ```
    /// use sme_fft_demo::native::NativeTeam;
    /// use sme_fft_demo::Team;
    /// use sme_memory::native::{Native, Patience, Size, run};
    /// use sme_memory::{Memory, Place, Route};
    ///
    /// # fn main() -> Result<(), sme_barrier::native::BarrierError> {
    /// let size = Size { nodes: 2, flag_bytes: 0, word_bytes: 64 };
    /// let memory = Native::new(size, Patience::for_threads(3));
    /// // Each thread writes a word and reads the next one's.
    /// let seen = NativeTeam::run(NativeTeam::members(&memory, &[2, 1])?, |team| {
    ///     run(async {
    ///         let place = |number| Place { node: 0, offset: 8 * u64::from(number) };
    ///         let word = |number| team.memory().word(place(number), Route::Nearest);
    ///         let (own, next) = (word(team.number()), word((team.number() + 1) % 3));
    ///         team.memory().store(own, 10 + u64::from(team.number())).await;
    ///         team.barrier().await;
    ///         team.memory().load(next).await
    ///     })
    /// });
    /// assert_eq!(seen, [11, 12, 10]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<R: Send>(members: Vec<Self>, program: impl Fn(&mut Self) -> R + Sync) -> Vec<R> {
        thread::scope(|scope| {
            let threads: Vec<_> = members
                .into_iter()
                .map(|mut member| {
                    let program = &program;
                    scope.spawn(move || program(&mut member))
                })
                .collect();
            let results = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            results.collect()
        })
    }
}

impl Team for NativeTeam {
    type Memory = Thread;

    #[inline]
    fn memory(&self) -> &Thread {
        &self.memory
    }

    fn number(&self) -> u32 {
        self.number
    }

    fn size(&self) -> u32 {
        self.size
    }

    async fn barrier(&mut self) {
        self.barrier.wait();
    }

    /// The thread has just done them.
    #[inline]
    async fn compute(&mut self, _operations: u32) {}
}
