//! The flag-and-phase barrier: H. Fröning et al., "Highly Scalable Barriers for Future
//! High-Performance Computing Clusters", Sec. IV-A, the listing.
//!
//! Every location has one writer, so no atomic operation is needed. All data lies in the memory of
//! one node, the home; threads of several nodes may take part, and each reaches the data by one of
//! its addresses. The paper's placements are choices of home and route:
//!
//! | Placement | Threads | Home | Route |
//! |---|---|---|---|
//! | local coherent memory (Fig. 3) | one node | that node | `Nearest` |
//! | behind one's own engine (Fig. 3, 5) | one node | that node | `Global` |
//! | in a remote node (Fig. 3) | two nodes | the first | `Global` |
//! | coherent updates (Fig. 7) | two nodes | the first | `Nearest` |

use std::future::Future;

use sme_memory::{Flag, Memory, Place, Route, Until};

use crate::layout::Row;
use crate::local::flip;
use crate::{Barrier, Layout, Member, SpecError};

/// Description of a flag-and-phase barrier.
#[derive(Clone, Debug)]
pub struct FlagPhaseSpec {
    /// Threads of node 0, node 1, …: they are numbered in this order, and the master is thread 0 of
    /// the first node that has any.
    pub threads: Vec<u32>,
    /// The node whose memory holds the flags and the phase.
    pub home: u32,
    /// By which address the threads of the home reach them (the others' is always global).
    pub route: Route,
    /// The layout of its variables; the paper's latency of 5.0 µs is met by packed flags.
    pub layout: Layout,
}

/// The flag-and-phase barrier.
#[derive(Clone, Debug)]
pub struct FlagPhase {
    home: u32,
    route: Route,
    /// Number of the first thread of each node.
    first: Vec<u32>,
    count: u32,
    phase: Row,
    flags: Row,
    bytes: u64,
}

impl FlagPhase {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread, there are more than 2^32 - 1, or the layout is of no use.
    pub fn new(spec: FlagPhaseSpec) -> Result<Self, SpecError> {
        let mut count = 0u32;
        let mut first = Vec::with_capacity(spec.threads.len());
        for threads in spec.threads {
            first.push(count);
            count = count
                .checked_add(threads)
                .ok_or(SpecError::TooManyThreads)?;
        }
        if count == 0 {
            return Err(SpecError::NoThreads);
        }
        let mut allocator = spec.layout.allocator()?;
        Ok(Self {
            home: spec.home,
            route: spec.route,
            first,
            count,
            phase: allocator.flags(1)?,
            flags: allocator.flags(count)?,
            bytes: allocator.bytes()?,
        })
    }

    /// Bytes of the home's shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of threads that take part.
    pub fn threads(&self) -> u32 {
        self.count
    }

    fn phase<M: Memory>(&self, memory: &M) -> Flag {
        memory.flag(self.phase.place(self.home, 0), self.route)
    }

    fn flag<M: Memory>(&self, memory: &M, id: u32) -> Flag {
        memory.flag(self.flags.place(self.home, id), self.route)
    }
}

impl<M: Memory> Barrier<M> for FlagPhase {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        let id = self.first[me.node as usize] + me.core;
        async move {
            let my_phase = memory.read(self.phase(memory)).await;
            memory.set(self.flag(memory, id), flip(my_phase)).await;

            if id == 0 {
                let flags = self.flags.flags(memory, self.home, self.count, self.route);
                let others = flags.skip(1);
                memory.wait_all(others, Until::IsNot(my_phase)).await;
                memory.set(self.phase(memory), flip(my_phase)).await;
            } else {
                memory
                    .wait(self.phase(memory), Until::IsNot(my_phase))
                    .await;
            }
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        if self.phase.index(place).is_some() {
            return Some("the phase".to_owned());
        }
        Some(format!("thread {}'s flag", self.flags.index(place)?))
    }
}
