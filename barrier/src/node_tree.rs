//! The tree barrier with a tree inside each node, too: what Fröning et al. leave out because their
//! nodes have few cores. Their Sec. VI takes the node's part to grow linearly with its cores "as
//! the coherency overhead" does; here it grows with the depth of a tree of cache lines that two
//! threads share.
//!
//! Thread i of a node gathers the threads k·i + 1 to k·i + k and notifies thread (i - 1) / k; the
//! release takes the same way down, to a flag that each thread spins on alone. Among the nodes it
//! is the [`Tree`] barrier of the local masters, as published. The release could as well be one
//! phase for the whole node: then every thread fetches the same line, one after the other.

use std::future::Future;

use sme_memory::{Flags, Memory, Place, Route, Until};

use crate::layout::Row;
use crate::local::flip;
use crate::tree::{Tree, TreeSpec};
use crate::{Barrier, Member, SpecError};

/// Description of a tree barrier with a tree in each node.
#[derive(Clone, Debug)]
pub struct NodeTreeSpec {
    /// The tree among the nodes, and the number of threads of a node.
    pub among: TreeSpec,
    /// The fan-in of the tree within a node, at least 2.
    pub local_fan_in: u32,
}

/// The tree barrier with a tree in each node.
#[derive(Clone, Debug)]
pub struct NodeTree {
    /// Of the local masters alone.
    among: Tree,
    /// In each node: by which each thread but the local master notifies its parent.
    arrived: Row,
    /// In each node: by which each of these is released.
    released: Row,
    cores: u32,
    fan_in: u32,
    bytes: u64,
}

impl NodeTree {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread, a fan-in is below 2, or the layout is of no use.
    pub fn new(spec: NodeTreeSpec) -> Result<Self, SpecError> {
        let NodeTreeSpec {
            among,
            local_fan_in: fan_in,
        } = spec;
        if fan_in < 2 {
            return Err(SpecError::FanIn { fan_in });
        }
        let cores = among.cores;
        let slaves = cores.checked_sub(1).ok_or(SpecError::NoThreads)?;
        let mut layout = among.layout;
        let among = Tree::new(TreeSpec { cores: 1, ..among })?;
        layout.base = among.bytes();
        let mut allocator = layout.allocator()?;
        Ok(Self {
            among,
            arrived: allocator.flags(slaves)?,
            released: allocator.flags(slaves)?,
            cores,
            fan_in,
            bytes: allocator.bytes()?,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first child of thread `core`, and the first thread behind its children.
    fn children(&self, core: u32) -> (u32, u32) {
        let (core, fan_in) = (u64::from(core), u64::from(self.fan_in));
        let within = |thread: u64| thread.min(self.cores.into()) as u32;
        (
            within(core * fan_in + 1),
            within(core * fan_in + fan_in + 1),
        )
    }

    /// The flags by which the children of thread `core` notify it.
    fn flags_of_children<M: Memory>(&self, memory: &M, core: u32) -> Flags {
        let (first, end) = self.children(core);
        let all = self
            .arrived
            .flags(memory, memory.node(), end - 1, Route::Nearest);
        all.skip(first - 1)
    }

    /// Releases the children of thread `core`: the largest subtrees first.
    async fn release<M: Memory>(&self, memory: &M, core: u32, my_phase: u8) {
        let (first, end) = self.children(core);
        for child in first..end {
            let flag = self.released.flag(memory, memory.node(), child - 1);
            memory.set(flag, flip(my_phase)).await;
        }
    }
}

impl<M: Memory> Barrier<M> for NodeTree {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        async move {
            // Thread 0 has the node's phase in the place of a flag of its own.
            let phase = match me.core.checked_sub(1) {
                None => self.among.phase(memory),
                Some(slave) => self.released.flag(memory, memory.node(), slave),
            };
            let my_phase = memory.read(phase).await;
            let children = self.flags_of_children(memory, me.core);
            memory.wait_all(children, Until::IsNot(my_phase)).await;
            match me.core.checked_sub(1) {
                None => self.among.wait(memory, me, &mut ()).await,
                Some(slave) => {
                    let flag = self.arrived.flag(memory, memory.node(), slave);
                    memory.set(flag, flip(my_phase)).await;
                    memory.wait(phase, Until::IsNot(my_phase)).await;
                }
            }
            self.release(memory, me.core, my_phase).await;
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        let name = |row: &Row, what: &str| {
            let slave = row.index(place)?;
            Some(format!("node {} core {}'s {what}", place.node, slave + 1))
        };
        Barrier::<M>::variable(&self.among, place)
            .or_else(|| name(&self.arrived, "flag"))
            .or_else(|| name(&self.released, "phase"))
    }
}
