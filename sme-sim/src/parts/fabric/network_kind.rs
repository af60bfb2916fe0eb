//! The smallest network of a kind that holds a number of nodes.

use super::topology::{MAX_HOSTS, MOST_PORTS, Topology, TopologyKind};

/// A kind of network that grows with the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// `mesh2d`
    Mesh2d,
    /// `mesh3d`
    Mesh3d,
    /// `torus2d`
    Torus2d,
    /// `torus3d`
    Torus3d,
    /// `switch`: one switch to which each node has a link.
    Switch,
    /// The mesh of a chip, of these sizes however many of its cores run.
    Chip([u32; 3]),
}

impl NetworkKind {
    /// The most nodes of such a network.
    pub const fn most_nodes(self) -> u32 {
        match self {
            NetworkKind::Switch => MOST_PORTS as u32,
            NetworkKind::Chip([x, y, z]) => x * y * z,
            _ => MAX_HOSTS,
        }
    }

    /// Returns the topology on which `nodes` nodes stand: as nearly a square or a cube as holds
    /// them, filled row by row and just high enough, whose last positions have a switch and no
    /// host; or a switch of as many ports, and one more if their number is odd. For no node, or
    /// more than [there can be](Self::most_nodes), the nearest that exists.
    pub fn holding(self, nodes: u32) -> Topology {
        let nodes = nodes.clamp(1, self.most_nodes());
        let (shape, cube) = match self {
            NetworkKind::Switch => return Topology::switch(nodes),
            NetworkKind::Chip(sizes) => {
                let mesh = Topology::new(TopologyKind::Mesh, &sizes);
                return mesh.unwrap_or_else(|_| Topology::for_nodes(nodes));
            }
            NetworkKind::Mesh2d => return Topology::for_nodes(nodes),
            NetworkKind::Mesh3d => (TopologyKind::Mesh, true),
            NetworkKind::Torus2d => (TopologyKind::Torus, false),
            NetworkKind::Torus3d => (TopologyKind::Torus, true),
        };
        let mut sizes = Vec::new();
        let mut rows = nodes;
        if cube {
            let width = (1..).find(|&width: &u32| width.pow(3) >= nodes);
            sizes.push(width.unwrap_or(nodes));
            rows = nodes.div_ceil(sizes[0]);
        }
        let width = (1..).find(|&width: &u32| width.pow(2) >= rows);
        sizes.push(width.unwrap_or(rows));
        sizes.push(rows.div_ceil(sizes[sizes.len() - 1]));
        // Nearly as many nodes as there can be do not fill a cube that is allowed.
        let largest = || Topology::new(shape, &[128, 128, 64]);
        Topology::new(shape, &sizes)
            .or_else(|_| largest())
            .unwrap_or_else(|_| Topology::for_nodes(nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_exascale_machine_stands_on_a_cube() {
        let cube = NetworkKind::Torus3d.holding(224_000);
        assert_eq!(cube.to_string(), "torus:61x61x61");
        assert_eq!(cube.positions() - 224_000, 2_981);
    }

    #[test]
    fn few_nodes_and_most() {
        for (nodes, name) in [
            (0, "torus:1x1x1"),
            (1, "torus:1x1x1"),
            (2, "torus:2x1x1"),
            (5, "torus:2x2x2"),
            (64, "torus:4x4x4"),
            (1 << 20, "torus:128x128x64"),
            (u32::MAX, "torus:128x128x64"),
        ] {
            assert_eq!(NetworkKind::Torus3d.holding(nodes).to_string(), name);
        }
        assert_eq!(NetworkKind::Torus2d.holding(10).to_string(), "torus:4x3");
        assert_eq!(NetworkKind::Mesh3d.holding(10).to_string(), "mesh:3x2x2");
        assert_eq!(NetworkKind::Mesh2d.holding(10), Topology::for_nodes(10));
        let chip = NetworkKind::Chip([2, 6, 4]);
        for nodes in [0, 1, 48, 49] {
            assert_eq!(chip.holding(nodes).to_string(), "mesh:2x6x4");
        }
        for (nodes, name) in [
            (0, "fattree:2x1"),
            (1, "fattree:2x1"),
            (7, "fattree:8x1"),
            (64, "fattree:64x1"),
            (1024, "fattree:1024x1"),
            (1025, "fattree:1024x1"),
        ] {
            assert_eq!(NetworkKind::Switch.holding(nodes).to_string(), name);
        }
    }

    proptest! {
        /// All nodes have a position, and a row less would not hold them.
        #[test]
        fn it_holds_the_nodes_and_little_more(
            nodes in prop_oneof![1..100u32, 1..=1_030_000u32],
            grid in prop::sample::select(&[NetworkKind::Mesh2d, NetworkKind::Mesh3d, NetworkKind::Torus2d, NetworkKind::Torus3d][..]),
        ) {
            let topology = grid.holding(nodes);
            let [x, y, z] = topology.sizes();
            prop_assert!(topology.hosts() >= nodes);
            prop_assert!(x >= y && y >= z && x <= z + 2 || z == 1, "{}", topology);
            let fewer = if z == 1 { x * (y - 1) } else { x * y * (z - 1) };
            prop_assert!(fewer < nodes, "{}", topology);
        }
    }
}
