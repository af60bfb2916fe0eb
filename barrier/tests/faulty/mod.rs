//! Barriers with one fault each, for every checker that must find them: this crate's, on a memory
//! that reorders all that it may, and that of the simulated machine. Without a fault they are
//! sound.
//!
//! A cache line for each flag: whose spin ends when must not depend on which lines are shared.

use std::future::Future;

use sme_barrier::{Barrier, Member};
use sme_memory::{Flag, Flags, Memory, Place, Route, Until};

/// Bytes from one flag to the next; all are within the first 8192 of a node.
const LINE: u32 = 64;

/// The flag at an offset in a node, on the route by which its threads see it.
pub fn flag<M: Memory>(memory: &M, node: u32, offset: u32) -> Flag {
    let offset = u64::from(offset);
    memory.flag(Place { node, offset }, Route::Nearest)
}

/// Flags in one's own node.
pub fn flags<M: Memory>(memory: &M, offset: u32, count: u32) -> Flags {
    Flags {
        first: flag(memory, memory.node(), offset),
        stride: LINE,
        count,
    }
}

/// A fault of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeFault {
    MasterSkipsAChild,
    MasterSkipsAThread,
    ThreadLeavesBeforeRelease,
    MasterLeavesBeforeRelease,
    PhaseNotFlipped,
    ChildNotReleased,
    NotifiesBeforeGathering,
}

impl TreeFault {
    pub const ALL: [Self; 7] = [
        Self::MasterSkipsAChild,
        Self::MasterSkipsAThread,
        Self::ThreadLeavesBeforeRelease,
        Self::MasterLeavesBeforeRelease,
        Self::PhaseNotFlipped,
        Self::ChildNotReleased,
        Self::NotifiesBeforeGathering,
    ];
}

/// A binary heap of masters, the rank being the node.
pub struct FaultyTree {
    pub nodes: u32,
    pub cores: u32,
    pub fault: Option<TreeFault>,
}

impl FaultyTree {
    /// The offset of a node's phase.
    const PHASE: u32 = 0;
    /// The offset of the flag of its thread 0, which has none; the others' follow.
    const THREADS: u32 = 0;
    /// The offset of the flags of its two children.
    const CHILDREN: u32 = 4096;
}

impl<M: Memory> Barrier<M> for FaultyTree {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        let has = |fault| self.fault == Some(fault);
        async move {
            let phase = flag(memory, me.node, Self::PHASE);
            let mine = memory.read(phase).await;
            let (changed, next) = (Until::IsNot(mine), 1 - mine);
            if me.core > 0 {
                let arrived = flag(memory, me.node, Self::THREADS + LINE * me.core);
                memory.set(arrived, next).await;
                if !has(TreeFault::ThreadLeavesBeforeRelease) {
                    memory.wait(phase, changed).await;
                }
                return;
            }

            let notify = async || {
                if let Some(above) = me.node.checked_sub(1) {
                    let there = flag(memory, above / 2, Self::CHILDREN + LINE * (above % 2));
                    memory.set(there, next).await;
                }
            };
            if has(TreeFault::NotifiesBeforeGathering) {
                notify().await;
            }
            let skip = u32::from(has(TreeFault::MasterSkipsAThread));
            let threads = flags(memory, Self::THREADS + LINE, self.cores - 1).skip(skip);
            memory.wait_all(threads, changed).await;
            let children = (2 * me.node + 1..self.nodes).take(2);
            let skip = u32::from(has(TreeFault::MasterSkipsAChild));
            let below = flags(memory, Self::CHILDREN, children.len() as u32).skip(skip);
            memory.wait_all(below, changed).await;
            if !has(TreeFault::NotifiesBeforeGathering) {
                notify().await;
            }
            if me.node > 0 && !has(TreeFault::MasterLeavesBeforeRelease) {
                memory.wait(phase, changed).await;
            }
            let told = match has(TreeFault::PhaseNotFlipped) {
                true => mine,
                false => next,
            };
            let skip = usize::from(has(TreeFault::ChildNotReleased));
            for child in children.skip(skip) {
                memory.set(flag(memory, child, Self::PHASE), told).await;
            }
            if me.node == 0 {
                memory.set(phase, told).await;
            }
        }
    }
}

/// A fault of a dissemination barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisseminationFault {
    OneRoundShort,
    NoParity,
    NoSense,
    NotifiesAfterWaiting,
}

impl DisseminationFault {
    pub const ALL: [Self; 4] = [
        Self::OneRoundShort,
        Self::NoParity,
        Self::NoSense,
        Self::NotifiesAfterWaiting,
    ];
}

/// Dissemination among one thread per node.
pub struct FaultyDissemination {
    pub nodes: u32,
    pub fault: Option<DisseminationFault>,
}

impl FaultyDissemination {
    /// From the flags of one parity to those of the other.
    const PARITY: u32 = 2048;
}

impl<M: Memory> Barrier<M> for FaultyDissemination {
    type Local = u32;

    fn wait(&self, memory: &M, me: Member, local: &mut u32) -> impl Future<Output = ()> + Send {
        let has = |fault| self.fault == Some(fault);
        let episode = *local;
        *local += 1;
        let (parity, sense) = if has(DisseminationFault::NoParity) {
            (0, 1 - episode % 2)
        } else if has(DisseminationFault::NoSense) {
            (episode % 2, 1)
        } else {
            (episode % 2, 1 - episode / 2 % 2)
        };
        let sense = sense as u8;
        let rounds = self.nodes.next_power_of_two().trailing_zeros();
        let rounds = rounds - u32::from(has(DisseminationFault::OneRoundShort));
        async move {
            for round in 0..rounds {
                let offset = Self::PARITY * parity + LINE * round;
                let partner = (me.node + (1 << round)) % self.nodes;
                let mine = flag(memory, me.node, offset);
                if has(DisseminationFault::NotifiesAfterWaiting) {
                    memory.wait(mine, Until::Is(sense)).await;
                }
                memory.set(flag(memory, partner, offset), sense).await;
                memory.wait(mine, Until::Is(sense)).await;
            }
        }
    }
}
