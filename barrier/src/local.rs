//! The part of a barrier that stays inside a node: its threads' flags and its phase, in its own
//! coherent memory, so that every thread spins in a cache (Fröning et al., Sec. V-B: disseminated
//! phase, local masters). Where nodes share a pool, no node can write another's phase: each master
//! is released by a flag there that it polls, and then writes the phase of its own node.
//!
//! The barriers among nodes (`flat`, `tree`, `dissemination`, `butterfly`) are made of this and of
//! what their masters, the threads numbered 0 of each node, do among themselves. Helpers that only
//! name a variable return the memory's own operation, so that they add nothing to a future's size.

use std::future::Future;

use either::Either;
use sme_memory::{Flag, FlagRow, Followers, Memory, Place, Route, Until};

use crate::SpecError;
use crate::layout::{Row, RowAllocator};

/// The other phase.
pub(crate) const fn flip(phase: u8) -> u8 {
    phase ^ 1
}

/// The variables that the threads of a node share, at the same offsets in every node: the phase,
/// and a flag for each thread but the local master.
#[derive(Clone, Debug)]
pub(crate) struct NodeVariables {
    phase: Row,
    flags: Row,
    cores: u32,
    /// By which another node's master releases the local master, where that is not the phase.
    release: Option<Row>,
}

impl NodeVariables {
    /// Lays out the variables of `cores` threads per node.
    ///
    /// # Errors
    /// If there are no threads, or no room is left for them.
    pub(crate) fn new(allocator: &mut RowAllocator, cores: u32) -> Result<Self, SpecError> {
        let slaves = cores.checked_sub(1).ok_or(SpecError::NoThreads)?;
        Ok(Self {
            phase: allocator.flags(1)?,
            flags: allocator.flags(slaves)?,
            cores,
            release: None,
        })
    }

    /// The same in each of `nodes` nodes, of which some release others.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn releasing(
        allocator: &mut RowAllocator,
        cores: u32,
        nodes: u32,
    ) -> Result<Self, SpecError> {
        let release = match allocator.has_pool() {
            true => Some(allocator.shared_flags(1, nodes)?),
            false => None,
        };
        Ok(Self {
            release,
            ..Self::new(allocator, cores)?
        })
    }

    /// Returns whether the local master has slaves to gather and release.
    pub(crate) fn has_slaves(&self) -> bool {
        self.cores > 1
    }

    /// Returns the name of the variable at `place`, if it is one of these.
    pub(crate) fn variable(&self, place: Place) -> Option<String> {
        let node = place.node;
        if self.phase.index(place).is_some() {
            return Some(format!("node {node}'s phase"));
        }
        if let Some((node, _)) = self.release.and_then(|release| release.find(place)) {
            return Some(format!("node {node}'s release"));
        }
        let slave = self.flags.index(place)?;
        Some(format!("node {node} core {}'s flag", slave + 1))
    }

    /// Returns the places of the slaves' variables.
    pub(crate) fn followers(&self) -> Followers {
        Followers {
            phase: self.phase.place(0, 0).offset,
            flags: self.slaves(),
        }
    }

    /// The slaves' flags.
    pub(crate) fn slaves(&self) -> FlagRow {
        self.flags.offsets(self.cores - 1)
    }

    /// The phase of any node, as a place. Others write it only where nodes share no pool.
    pub(crate) fn phase_at(&self, node: u32) -> Place {
        self.phase.place(node, 0)
    }

    /// The phase of the thread's own node.
    pub(crate) fn phase<M: Memory>(&self, memory: &M) -> Flag {
        self.phase.flag(memory, memory.node(), 0)
    }

    /// The flag by which `node` is released, by a thread of another node: it takes the next phase.
    pub(crate) fn release_of<M: Memory>(&self, memory: &M, node: u32) -> Flag {
        self.release.unwrap_or(self.phase).flag(memory, node, 0)
    }

    /// Returns whether a local master that is released has to write the phase of its node itself.
    pub(crate) fn is_relayed(&self) -> bool {
        self.release.is_some()
    }

    /// The slaves' flags differ from `my_phase`: the local master has gathered its node.
    #[track_caller]
    pub(crate) fn gather<'m, M: Memory>(
        &self,
        memory: &'m M,
        my_phase: u8,
    ) -> impl Future<Output = ()> + Send + use<'m, M> {
        let slaves = self.cores - 1;
        let flags = self
            .flags
            .flags(memory, memory.node(), slaves, Route::Nearest);
        memory.wait_all(flags, Until::IsNot(my_phase))
    }

    /// The local master of the thread's own node is released by another node.
    pub(crate) fn master_released<'m, M: Memory>(
        &self,
        memory: &'m M,
        my_phase: u8,
    ) -> impl Future<Output = u8> + Send + use<'m, M> {
        let flag = self.release_of(memory, memory.node());
        memory.wait(flag, Until::IsNot(my_phase))
    }

    /// The phase of the thread's own node differs from `my_phase`: the node is released.
    #[track_caller]
    pub(crate) fn released<'m, M: Memory>(
        &self,
        memory: &'m M,
        my_phase: u8,
    ) -> impl Future<Output = u8> + Send + use<'m, M> {
        memory.wait(self.phase(memory), Until::IsNot(my_phase))
    }

    /// The barrier of thread `core`: a slave's, or that of the local master, `lead`. A thread holds
    /// the one or the other, and nothing beside it.
    pub(crate) fn with_master<M: Memory, F: Future<Output = ()> + Send>(
        &self,
        memory: &M,
        core: u32,
        lead: impl FnOnce() -> F,
    ) -> impl Future<Output = ()> + Send {
        match core {
            0 => Either::Left(lead()),
            _ => Either::Right(self.follow(memory, core)),
        }
    }

    /// The whole barrier of a slave, `core` above 0: flip the flag, wait for the phase.
    fn follow<M: Memory>(&self, memory: &M, core: u32) -> impl Future<Output = ()> + Send {
        async move {
            let my_phase = memory.read(self.phase(memory)).await;
            let flag = self.flags.flag(memory, memory.node(), core - 1);
            memory.set(flag, flip(my_phase)).await;
            self.released(memory, my_phase).await;
        }
    }
}
