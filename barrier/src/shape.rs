//! Trees of the masters' ranks: pure arithmetic, used by the tree barrier at every episode. Ranks
//! count from 0, the root; the children of a rank have indices from 0, which are also the indices
//! of their flags in its memory.

/// The shape of a tree over ranks `0..nodes` with fan-in `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeShape {
    /// A k-ary heap: the parent of rank r is (r - 1) / k. At most k notifications per node.
    Heap,
    /// Groups of k, whose leaders form groups of k, and so on: the children of a rank r that is a
    /// multiple of k^(l+1) are r + j k^l, 0 < j < k, on every such level l. At most k - 1
    /// notifications per node and level; leaders receive on several levels.
    Groups,
}

crate::names!(TreeShape, "tree shape", { Heap => "heap", Groups => "groups" });

impl TreeShape {
    /// The parent of a rank above 0, and the rank's index among the parent's children.
    pub fn parent(self, rank: u32, fan_in: u32) -> (u32, u32) {
        debug_assert!(rank > 0 && fan_in > 1);
        match self {
            TreeShape::Heap => ((rank - 1) / fan_in, (rank - 1) % fan_in),
            TreeShape::Groups => {
                let (mut unit, mut level) = (1, 0);
                // The rank is above 0, so some digit of it is not: `unit` stays at most `rank`.
                while (rank / unit).is_multiple_of(fan_in) {
                    unit *= fan_in;
                    level += 1;
                }
                let member = rank / unit % fan_in;
                (rank - member * unit, level * (fan_in - 1) + member - 1)
            }
        }
    }

    /// Returns the number of a rank's children.
    pub fn children(self, rank: u32, fan_in: u32, nodes: u32) -> u32 {
        debug_assert!(rank < nodes && fan_in > 1);
        let (rank, fan_in, nodes) = (u64::from(rank), u64::from(fan_in), u64::from(nodes));
        let children = match self {
            TreeShape::Heap => nodes.saturating_sub(1 + rank * fan_in).min(fan_in),
            TreeShape::Groups => {
                let (mut unit, mut children) = (1, 0);
                while rank + unit < nodes && rank.is_multiple_of(unit * fan_in) {
                    children += ((nodes - 1 - rank) / unit).min(fan_in - 1);
                    unit *= fan_in;
                }
                children
            }
        };
        // A rank has fewer children than there are nodes.
        children as u32
    }

    /// The child of `rank` with an `index` below [`TreeShape::children`].
    pub fn child(self, rank: u32, index: u32, fan_in: u32) -> u32 {
        match self {
            TreeShape::Heap => rank * fan_in + 1 + index,
            TreeShape::Groups => {
                // Only the highest level of a rank can be incomplete.
                let (level, member) = (index / (fan_in - 1), index % (fan_in - 1) + 1);
                rank + member * fan_in.pow(level)
            }
        }
    }

    /// The index of the child that is released in the given `turn`, below `children`: those with
    /// the largest subtrees first.
    pub(crate) fn released_in_turn(self, turn: u32, children: u32) -> u32 {
        match self {
            TreeShape::Heap => turn,
            TreeShape::Groups => children - 1 - turn,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The parent straight from the definition: the smallest unit k^l that leaves a remainder.
    fn group_leader(rank: u32, fan_in: u32) -> u32 {
        let (rank, fan_in) = (u64::from(rank), u64::from(fan_in));
        let mut unit = fan_in;
        while rank % unit == 0 {
            unit *= fan_in;
        }
        (rank - rank % unit) as u32
    }

    proptest! {
        #[test]
        fn parents_and_children_agree(
            shape in prop::sample::select(TreeShape::ALL),
            fan_in in 2..12u32,
            nodes in 1..700u32,
        ) {
            let root = shape.children(0, fan_in, nodes);
            let mut reached = vec![0; nodes as usize];
            reached[0] = 1;
            for rank in 0..nodes {
                let children = shape.children(rank, fan_in, nodes);
                prop_assert!(children <= root);
                if shape == TreeShape::Heap {
                    prop_assert!(children <= fan_in);
                }
                let mut released: Vec<_> =
                    (0..children).map(|turn| shape.released_in_turn(turn, children)).collect();
                released.sort_unstable();
                prop_assert!(released.into_iter().eq(0..children));
                for index in 0..children {
                    let child = shape.child(rank, index, fan_in);
                    prop_assert!(child > rank && child < nodes, "{rank} has {child}");
                    prop_assert_eq!(shape.parent(child, fan_in), (rank, index));
                    reached[child as usize] += 1;
                }
            }
            prop_assert!(reached.iter().all(|&times| times == 1));
        }

        #[test]
        fn a_group_is_led_by_its_first(rank in 1..u32::MAX, fan_in in 2..70_000u32) {
            let (parent, _) = TreeShape::Groups.parent(rank, fan_in);
            prop_assert_eq!(parent, group_leader(rank, fan_in));
        }

        #[test]
        fn large_trees_do_not_overflow(
            shape in prop::sample::select(TreeShape::ALL),
            nodes in u32::MAX - 1000..=u32::MAX,
            fan_in in prop::sample::select(&[2, 3, 8, 65_536, u32::MAX][..]),
            rank in any::<u32>(),
        ) {
            for rank in [0, 1, rank % nodes, nodes - 1] {
                let children = shape.children(rank, fan_in, nodes);
                if let Some(index) = children.checked_sub(1) {
                    let child = shape.child(rank, index, fan_in);
                    prop_assert_eq!(shape.parent(child, fan_in), (rank, index));
                }
            }
        }
    }
}
