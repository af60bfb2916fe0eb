//! The tree barrier: H. Fröning et al., "Highly Scalable Barriers for Future High-Performance
//! Computing Clusters", Sec. V-B, *tree* in Fig. 8.
//!
//! As the flat barrier, but the local masters stand in a tree, so that no node receives more than a
//! few notifications (8 in the paper): each gathers its threads and its children and notifies its
//! parent; the release takes the same way down. 2 (nodes - 1) remote stores per episode, no remote
//! load. The paper publishes neither the tree's shape nor which node has which place in it: see
//! [`TreeShape`] and [`Mapping`](crate::Mapping).

use std::future::Future;

use sme_memory::{Flag, Followers, Leader, Memory, Place, Route, Step, Until};

use crate::layout::Row;
use crate::local::{NodeVariables, flip};
use crate::{Barrier, Layout, Member, Ranks, SpecError, TreeShape};

/// Description of a tree barrier.
#[derive(Clone, Debug)]
pub struct TreeSpec {
    /// The ranks of nodes: rank 0 is the root of the tree.
    pub ranks: Ranks,
    /// Threads per node.
    pub cores: u32,
    /// The tree's fan-in, at least 2; the paper has 8.
    pub fan_in: u32,
    /// The shape of the ranks' tree.
    pub shape: TreeShape,
    /// The layout of flags and phases.
    pub layout: Layout,
}

/// The tree barrier.
#[derive(Clone, Debug)]
pub struct Tree {
    ranks: Ranks,
    fan_in: u32,
    shape: TreeShape,
    local: NodeVariables,
    /// Of each node: a flag for each child.
    children: Row,
    bytes: u64,
}

impl Tree {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread, the fan-in is below 2, or the layout is of no use.
    pub fn new(spec: TreeSpec) -> Result<Self, SpecError> {
        let TreeSpec {
            ranks,
            cores,
            fan_in,
            shape,
            layout,
        } = spec;
        if fan_in < 2 {
            return Err(SpecError::FanIn { fan_in });
        }
        let mut allocator = layout.allocator()?;
        Ok(Self {
            local: NodeVariables::releasing(&mut allocator, cores, ranks.nodes())?,
            // No rank has more children than the root.
            children: allocator
                .shared_flags(shape.children(0, fan_in, ranks.nodes()), ranks.nodes())?,
            bytes: allocator.bytes()?,
            ranks,
            fan_in,
            shape,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The phase of the thread's own node.
    pub(crate) fn phase<M: Memory>(&self, memory: &M) -> Flag {
        self.local.phase(memory)
    }

    fn children(&self, rank: u32) -> u32 {
        self.shape.children(rank, self.fan_in, self.ranks.nodes())
    }

    /// The flag in the parent's memory by which `rank` notifies it.
    fn flag_at_parent<M: Memory>(&self, memory: &M, rank: u32) -> Flag {
        let (parent, index) = self.shape.parent(rank, self.fan_in);
        self.children.flag(memory, self.ranks.node(parent), index)
    }

    /// The flag by which `rank` releases a child.
    fn release_of_child<M: Memory>(&self, memory: &M, rank: u32, index: u32) -> Flag {
        let child = self.shape.child(rank, index, self.fan_in);
        self.local.release_of(memory, self.ranks.node(child))
    }
}

impl<M: Memory> Barrier<M> for Tree {
    type Local = ();

    fn wait(&self, memory: &M, me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        self.local.with_master(memory, me.core, move || async move {
            let my_phase = memory.read(self.local.phase(memory)).await;
            self.local.gather(memory, my_phase).await;

            let rank = self.ranks.rank(memory.node());
            let children = self.children(rank);
            let flags = self
                .children
                .flags(memory, memory.node(), children, Route::Nearest);
            memory.wait_all(flags, Until::IsNot(my_phase)).await;

            if rank != 0 {
                memory
                    .set(self.flag_at_parent(memory, rank), flip(my_phase))
                    .await;
                self.local.master_released(memory, my_phase).await;
            }
            // The largest subtrees first: they take longest.
            for turn in 0..children {
                let index = self.shape.released_in_turn(turn, children);
                memory
                    .set(self.release_of_child(memory, rank, index), flip(my_phase))
                    .await;
            }
            if rank == 0 || self.local.is_relayed() {
                memory.set(self.local.phase(memory), flip(my_phase)).await;
            }
        })
    }

    fn variable(&self, place: Place) -> Option<String> {
        self.local.variable(place).or_else(|| {
            let (node, index) = self.children.find(place)?;
            let rank = self.ranks.rank(node);
            if index >= self.children(rank) {
                return None;
            }
            let child = self.shape.child(rank, index, self.fan_in);
            Some(format!("node {}'s flag", self.ranks.node(child)))
        })
    }
}

/// The state of a local master in its episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeState {
    at: At,
    my_phase: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Begin,
    ReadPhase,
    Gathered,
    ChildrenGathered,
    Notified,
    /// So many children have been released.
    Releasing(u32),
    Over,
}

/// The same barrier, master by master, as steps.
impl Leader for Tree {
    type State = TreeState;

    fn next(&self, node: u32, state: &mut TreeState, answer: u8) -> Step {
        let rank = self.ranks.rank(node);
        let children = self.children(rank);
        loop {
            match state.at {
                At::Begin => {
                    state.at = At::ReadPhase;
                    return Step::Read(self.local.phase_at(node).offset);
                }
                At::ReadPhase => {
                    state.my_phase = answer;
                    state.at = At::Gathered;
                    return Step::WaitAll(self.local.slaves(), Until::IsNot(answer));
                }
                At::Gathered => {
                    state.at = At::ChildrenGathered;
                    let flags = self.children.offsets(children);
                    return Step::WaitAll(flags, Until::IsNot(state.my_phase));
                }
                At::ChildrenGathered if rank == 0 => state.at = At::Releasing(0),
                At::ChildrenGathered => {
                    let (parent, index) = self.shape.parent(rank, self.fan_in);
                    let flag = self.children.place(self.ranks.node(parent), index);
                    state.at = At::Notified;
                    return Step::Set(flag, flip(state.my_phase));
                }
                At::Notified => {
                    state.at = At::Releasing(0);
                    let phase = self.local.phase_at(node).offset;
                    return Step::Wait(phase, Until::IsNot(state.my_phase));
                }
                At::Releasing(turn) if turn < children => {
                    let index = self.shape.released_in_turn(turn, children);
                    let child = self.shape.child(rank, index, self.fan_in);
                    state.at = At::Releasing(turn + 1);
                    let phase = self.local.phase_at(self.ranks.node(child));
                    return Step::Set(phase, flip(state.my_phase));
                }
                At::Releasing(_) if rank == 0 => {
                    state.at = At::Over;
                    return Step::Set(self.local.phase_at(node), flip(state.my_phase));
                }
                At::Releasing(_) | At::Over => {
                    state.at = At::Begin;
                    return Step::Leave;
                }
            }
        }
    }

    fn followers(&self) -> Followers {
        self.local.followers()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks that the master of `rank` releases, in order.
    fn released(tree: &Tree, rank: u32) -> Vec<u32> {
        let node = tree.ranks.node(rank);
        let mut state = TreeState::default();
        let mut released = Vec::new();
        loop {
            match tree.next(node, &mut state, 0) {
                Step::Leave => return released,
                // Its own node's phase is no subtree; a flag at its parent is none either.
                Step::Set(place, _) => {
                    let rank = tree.ranks.rank(place.node);
                    let is_phase = place == tree.local.phase_at(place.node);
                    released.extend((is_phase && place.node != node).then_some(rank));
                }
                _ => {}
            }
        }
    }

    /// Ranks in the subtree of each.
    fn sizes(shape: TreeShape, fan_in: u32, nodes: u32) -> Vec<u32> {
        let mut sizes = vec![1; nodes as usize];
        for rank in (1..nodes).rev() {
            let (parent, _) = shape.parent(rank, fan_in);
            sizes[parent as usize] += sizes[rank as usize];
        }
        sizes
    }

    #[test]
    fn the_largest_subtrees_are_released_first() {
        for (shape, fan_in, nodes) in [
            (TreeShape::Heap, 2, 12),
            (TreeShape::Heap, 3, 29),
            (TreeShape::Heap, 8, 100),
            (TreeShape::Groups, 2, 16),
            (TreeShape::Groups, 3, 27),
            (TreeShape::Groups, 8, 64),
        ] {
            let spec = TreeSpec {
                ranks: Ranks::rows(nodes).unwrap(),
                cores: 2,
                fan_in,
                shape,
                layout: Layout::padded(64),
            };
            let tree = Tree::new(spec).unwrap();
            let sizes = sizes(shape, fan_in, nodes);
            let mut sorted = false;
            for rank in 0..nodes {
                let order = released(&tree, rank);
                assert_eq!(order.len() as u32, tree.children(rank));
                let order: Vec<u32> = order.iter().map(|&rank| sizes[rank as usize]).collect();
                assert!(
                    order.is_sorted_by(|a, b| a >= b),
                    "{shape} {rank}: {order:?}"
                );
                sorted |= order.first() > order.last();
            }
            assert!(sorted, "{shape}: all subtrees of a node are as large");
        }
    }
}
