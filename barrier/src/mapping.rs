//! Mappings of ranks to nodes. The ranks order the masters in a barrier: rank 0 is the global
//! master, the tree's root. A mapping is a pure function of the mesh and the number of nodes; the
//! barriers know only the table that comes out of it.
//!
//! Nodes stand row by row on the mesh: node x + width (y + height z) at (x, y, z). Fewer nodes than
//! positions are the first ones. The paper does not publish its mapping, and it decides most of a
//! tree's latency: the one that is used is calibrated.

use crate::SpecError;

/// A rule that orders the nodes of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// The rank is the node.
    Rows,
    /// The root at the centre, ranks by hops from it; ties by node.
    Centre,
    /// Recursively along sub-meshes (Z-order): each group of a power of two stands in a sub-mesh,
    /// its first at the corner.
    SubMesh,
    /// As sub-mesh, but each group's first is its node nearest to the centre, where the root is.
    SubMeshCentre,
    /// Row by row, every other row backwards: neighbours in rank are neighbours in the mesh.
    Snake,
}

crate::names!(Mapping, "mapping", {
    Rows => "rows",
    Centre => "centre",
    SubMesh => "sub-mesh",
    SubMeshCentre => "sub-mesh-centre",
    Snake => "snake",
});

/// A mesh's extent in positions; a 2D mesh has depth 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Positions in x.
    pub width: u32,
    /// Positions in y.
    pub height: u32,
    /// Positions in z.
    pub depth: u32,
}

impl Extent {
    /// A 2D mesh.
    pub const fn plane(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            depth: 1,
        }
    }

    /// Returns the number of positions; saturates.
    pub fn positions(self) -> u64 {
        (u64::from(self.width) * u64::from(self.height)).saturating_mul(u64::from(self.depth))
    }

    /// Returns the coordinates of a node.
    fn position(self, node: u32) -> [u32; 3] {
        // As 64 bits: the product of two extents may not fit 32.
        let (width, height) = (u64::from(self.width), u64::from(self.height));
        let node = u64::from(node);
        [node % width, node / width % height, node / (width * height)]
            .map(|coordinate| coordinate as u32)
    }
}

impl Mapping {
    /// The ranks of the first `nodes` nodes of a mesh.
    ///
    /// # Errors
    /// If there are no nodes, or more than positions.
    pub fn ranks(self, extent: Extent, nodes: u32) -> Result<Ranks, SpecError> {
        let positions = extent.positions();
        if u64::from(nodes) > positions {
            return Err(SpecError::TooManyNodes { nodes, positions });
        }
        let mut node_of: Vec<u32> = (0..nodes).collect();
        // Sorting is stable: ties by node.
        match self {
            Mapping::Rows => {}
            Mapping::Centre => {
                let centre = centre(extent, nodes);
                node_of.sort_by_key(|&node| hops(extent.position(node), centre));
            }
            Mapping::SubMesh => node_of.sort_by_key(|&node| interleave(extent.position(node))),
            Mapping::SubMeshCentre => {
                let centre = centre(extent, nodes);
                node_of.sort_by_key(|&node| interleave(fold(extent.position(node), centre)));
            }
            Mapping::Snake => node_of.sort_by_key(|&node| along_snake(extent, node)),
        }
        Ranks::new(node_of)
    }
}

/// A permutation of nodes: which node has which rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    node_of: Vec<u32>,
    rank_of: Vec<u32>,
}

impl Ranks {
    /// From a table with the node of each rank.
    ///
    /// # Errors
    /// If the table is empty or not a permutation.
    pub fn new(node_of: Vec<u32>) -> Result<Self, SpecError> {
        const NONE: u32 = u32::MAX;
        let nodes = u32::try_from(node_of.len()).map_err(|_| SpecError::TooManyThreads)?;
        if nodes == 0 {
            return Err(SpecError::NoNodes);
        }
        let mut rank_of = vec![NONE; node_of.len()];
        for (rank, &node) in (0..).zip(&node_of) {
            match rank_of.get_mut(node as usize) {
                Some(free) if *free == NONE => *free = rank,
                _ => return Err(SpecError::NotAPermutation { rank, node, nodes }),
            }
        }
        Ok(Self { node_of, rank_of })
    }

    /// Rank and node are the same.
    ///
    /// # Errors
    /// If there are no nodes.
    pub fn rows(nodes: u32) -> Result<Self, SpecError> {
        Self::new((0..nodes).collect())
    }

    /// Returns the number of nodes that take part, at least one.
    pub fn nodes(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// The node of a rank below [`Ranks::nodes`].
    pub fn node(&self, rank: u32) -> u32 {
        self.node_of[rank as usize]
    }

    /// The rank of a node below [`Ranks::nodes`].
    pub fn rank(&self, node: u32) -> u32 {
        self.rank_of[node as usize]
    }

    /// The node of each rank.
    pub fn table(&self) -> &[u32] {
        &self.node_of
    }
}

/// The middle of the box in which the nodes stand, rounded to the corner of the first node. It is
/// always the position of a node: only the last row and plane can be incomplete, and these are in
/// the middle only where they are the only ones.
fn centre(extent: Extent, nodes: u32) -> [u32; 3] {
    let last = extent.position(nodes.saturating_sub(1));
    let columns = match last {
        [x, 0, 0] => x,
        _ => extent.width - 1,
    };
    let rows = match last {
        [_, y, 0] => y,
        _ => extent.height - 1,
    };
    [columns / 2, rows / 2, last[2] / 2]
}

/// Hops between two positions of a mesh.
fn hops(a: [u32; 3], b: [u32; 3]) -> u64 {
    a.iter()
        .zip(b)
        .map(|(&a, b)| u64::from(a.abs_diff(b)))
        .sum()
}

/// The coordinates' bits in turn (Morton code): x lowest, then y, then z.
fn interleave(position: [u32; 3]) -> u128 {
    (0..32).fold(0, |code, bit| {
        let [x, y, z] = position.map(|coordinate| u128::from(coordinate >> bit & 1));
        code | (x | y << 1 | z << 2) << (3 * bit)
    })
}

/// Coordinates counted away from the centre, in each of its two halves; the half that does not hold
/// the centre comes second.
fn fold(position: [u32; 3], centre: [u32; 3]) -> [u32; 3] {
    let mut folded = position;
    for (coordinate, centre) in folded.iter_mut().zip(centre) {
        *coordinate = match coordinate.checked_sub(centre + 1) {
            None => centre - *coordinate,
            // No longer than the first half, so the bit above tells them apart.
            Some(away) => away + (centre + 1).next_power_of_two(),
        };
    }
    folded
}

/// Returns a node's place along the snake, as a key by plane, row and column.
fn along_snake(extent: Extent, node: u32) -> [u32; 3] {
    let [x, y, z] = extent.position(node);
    // Rows are counted through all planes, so that the snake goes on where a plane ends.
    let row = if z.is_multiple_of(2) {
        y
    } else {
        extent.height - 1 - y
    };
    let rows_before = u64::from(z) * u64::from(extent.height) + u64::from(row);
    let column = if rows_before.is_multiple_of(2) {
        x
    } else {
        extent.width - 1 - x
    };
    [z, row, column]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meshes() -> impl Strategy<Value = (Extent, u32)> {
        (1..12u32, 1..12u32, 1..6u32)
            .prop_map(|(width, height, depth)| Extent {
                width,
                height,
                depth,
            })
            .prop_flat_map(|extent| (Just(extent), 1..=extent.positions() as u32))
    }

    proptest! {
        #[test]
        fn every_mapping_is_a_permutation(
            mapping in prop::sample::select(Mapping::ALL),
            (extent, nodes) in meshes(),
        ) {
            let ranks = mapping.ranks(extent, nodes).unwrap();
            let mut sorted = ranks.table().to_vec();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..nodes));
            for node in 0..nodes {
                prop_assert_eq!(ranks.node(ranks.rank(node)), node);
            }
        }

        #[test]
        fn the_centre_is_a_node_and_no_corner_is_nearer((extent, nodes) in meshes()) {
            let ranks = Mapping::Centre.ranks(extent, nodes).unwrap();
            let root = extent.position(ranks.node(0));
            prop_assert_eq!(root, centre(extent, nodes));
            let folded = Mapping::SubMeshCentre.ranks(extent, nodes).unwrap();
            prop_assert_eq!(folded.node(0), ranks.node(0));
            let mut last = 0;
            for &node in ranks.table() {
                let distance = hops(extent.position(node), root);
                prop_assert!(distance >= last);
                last = distance;
            }
            let farthest = |from| (0..nodes).map(|to| hops(extent.position(to), from)).max();
            prop_assert!(farthest(root) <= farthest([0, 0, 0]));
        }

        #[test]
        fn the_snake_of_a_whole_mesh_goes_one_hop_at_a_time((extent, _) in meshes()) {
            let ranks = Mapping::Snake.ranks(extent, extent.positions() as u32).unwrap();
            for pair in ranks.table().windows(2) {
                prop_assert_eq!(hops(extent.position(pair[0]), extent.position(pair[1])), 1);
            }
        }
    }

    #[test]
    fn sub_meshes_hold_their_groups() {
        let ranks = Mapping::SubMesh.ranks(Extent::plane(8, 8), 64).unwrap();
        assert_eq!(ranks.table()[..8], [0, 1, 8, 9, 2, 3, 10, 11]);
        for group in ranks.table().chunks(16) {
            let columns = group.iter().map(|node| node % 8 / 4);
            let rows = group.iter().map(|node| node / 8 / 4);
            assert!(
                columns
                    .clone()
                    .all(|column| Some(column) == columns.clone().next())
            );
            assert!(rows.clone().all(|row| Some(row) == rows.clone().next()));
        }
    }

    #[test]
    fn sub_meshes_are_led_from_the_centre() {
        let ranks = Mapping::SubMeshCentre.ranks(Extent::plane(8, 8), 64);
        let ranks = ranks.unwrap();
        let leaders: Vec<_> = ranks.table().iter().step_by(16).copied().collect();
        assert_eq!(leaders, [27, 28, 35, 36]);
        assert_eq!(ranks.table()[..8], [27, 26, 19, 18, 25, 24, 17, 16]);
    }

    #[test]
    fn the_centre_of_the_nodes_is_meant_not_that_of_the_mesh() {
        let root = |nodes| {
            let ranks = Mapping::Centre.ranks(Extent::plane(8, 8), nodes).unwrap();
            ranks.node(0)
        };
        assert_eq!(root(64), 27);
        assert_eq!(root(8), 3);
        assert_eq!(root(12), 3);
        assert_eq!(root(1), 0);
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        let refused = |table: &[u32]| Ranks::new(table.to_vec()).unwrap_err();
        assert_eq!(refused(&[]), SpecError::NoNodes);
        let twice = SpecError::NotAPermutation {
            rank: 2,
            node: 1,
            nodes: 3,
        };
        assert_eq!(refused(&[0, 1, 1]), twice);
        let beyond = SpecError::NotAPermutation {
            rank: 1,
            node: 2,
            nodes: 2,
        };
        assert_eq!(refused(&[0, 2]), beyond);
        let crowded = SpecError::TooManyNodes {
            nodes: 5,
            positions: 4,
        };
        let plane = Extent::plane(2, 2);
        assert_eq!(Mapping::Rows.ranks(plane, 5).unwrap_err(), crowded);
        let nowhere = Extent::plane(0, 3);
        assert_eq!(
            Mapping::Snake.ranks(nowhere, 0).unwrap_err(),
            SpecError::NoNodes
        );
    }
}
