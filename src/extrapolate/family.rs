//! Topologies that grow with the nodes: which one N nodes stand on.
//!
//! Called by `sme extrapolate --against-simulation`; the topologies are the simulator's own.

use sme_sim::parts::fabric::{Topology, TopologyError, TopologyKind};

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A mesh of two dimensions, as square as the nodes allow: the prototype's.
    Mesh,
    /// A torus of three dimensions, as cubic as the nodes allow.
    Torus,
    /// A fat tree of switches with 16 links: the nodes add levels.
    FatTree,
    /// A balanced dragonfly, as many global links per router as hosts: the nodes make routers
    /// larger and groups more.
    Dragonfly,
}

sme_barrier::names!(Family, "topology", {
    Mesh => "mesh",
    Torus => "torus",
    FatTree => "fattree",
    Dragonfly => "dragonfly",
});

/// Links of a switch of the fat tree, half of them up.
const RADIX: u32 = 16;

impl Family {
    /// The topology for `nodes` nodes: the smallest of its kind that holds them, about.
    ///
    /// # Errors
    /// More nodes than a topology can hold.
    pub fn topology(self, nodes: u32) -> Result<Topology, TopologyError> {
        match self {
            Self::Mesh => {
                let width = ceiling_root(nodes, 2);
                Topology::new(TopologyKind::Mesh, &[width, nodes.max(1).div_ceil(width)])
            }
            Self::Torus => Topology::new(TopologyKind::Torus, &box_of(nodes)),
            Self::FatTree => {
                let hosts = |levels: u32| 2 * u64::from(RADIX / 2).saturating_pow(levels);
                let levels = (1..=u32::BITS).find(|&levels| hosts(levels) >= u64::from(nodes));
                Topology::new(TopologyKind::FatTree, &[RADIX, levels.unwrap_or(u32::BITS)])
            }
            Self::Dragonfly => {
                let routers = |global: u64| 2 * global;
                let of_group = |global: u64| global * routers(global);
                let hosts = |global: u64| of_group(global) * (routers(global) * global + 1);
                let enough = (1..=256u64).find(|&global| hosts(global) >= u64::from(nodes));
                let global = enough.unwrap_or(256) as u32;
                let group = of_group(global.into()) as u32;
                let groups = nodes.max(1).div_ceil(group);
                Topology::new(
                    TopologyKind::Dragonfly,
                    &[global, 2 * global, global, groups],
                )
            }
        }
    }

    /// Returns its title in pictures.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mesh => "Mesh of two dimensions",
            Self::Torus => "Torus of three dimensions",
            Self::FatTree => "Fat tree of switches with 16 links",
            Self::Dragonfly => "Balanced dragonfly",
        }
    }

    /// The most hops from one position to another of [`Family::topology`], where it grows faster
    /// than the logarithm of the nodes; none elsewhere, and for more nodes than there can be.
    pub fn diameter(self, nodes: u32) -> Option<u32> {
        if matches!(self, Self::FatTree | Self::Dragonfly) {
            return None;
        }
        let topology = self.topology(nodes).ok()?;
        let along = |(dimension, &size): (usize, &u32)| match topology.wraps(dimension) {
            true => size / 2,
            false => size.saturating_sub(1),
        };
        Some(topology.sizes().iter().enumerate().map(along).sum())
    }
}

/// Three sizes, each as near to the cube root as the others allow, that hold `nodes`.
fn box_of(nodes: u32) -> [u32; 3] {
    let nodes = nodes.max(1);
    let depth = ceiling_root(nodes, 3);
    let layer = nodes.div_ceil(depth);
    let width = ceiling_root(layer, 2);
    [width, layer.div_ceil(width), depth]
}

/// The least number whose `power`-th power is at least `number`.
fn ceiling_root(number: u32, power: u32) -> u32 {
    let enough = |root: u64| root.saturating_pow(power) >= u64::from(number);
    let estimate = f64::from(number).powf(1.0 / f64::from(power)) as u64;
    // The floating-point estimate is at most one off.
    let mut root = estimate.saturating_sub(1).max(1);
    while !enough(root) {
        root += 1;
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_two_stand_where_one_expects() {
        let text = |family: Family, nodes| family.topology(nodes).unwrap().to_string();
        assert_eq!(text(Family::Mesh, 64), "mesh:8x8");
        assert_eq!(text(Family::Mesh, 128), "mesh:12x11");
        assert_eq!(text(Family::Mesh, 16_384), "mesh:128x128");
        assert_eq!(text(Family::Torus, 64), "torus:4x4x4");
        assert_eq!(text(Family::Torus, 224_000), "torus:61x61x61");
        assert_eq!(text(Family::Torus, 1), "torus:1x1x1");
        assert_eq!(text(Family::FatTree, 16), "fattree:16x1");
        assert_eq!(text(Family::FatTree, 17), "fattree:16x2");
        assert_eq!(text(Family::FatTree, 16_384), "fattree:16x5");
        assert_eq!(text(Family::Dragonfly, 1), "dragonfly:1x2x1x1");
        assert_eq!(text(Family::Dragonfly, 64), "dragonfly:2x4x2x8");
        assert_eq!(text(Family::Dragonfly, 16_384), "dragonfly:8x16x8x128");
        for family in Family::ALL {
            assert!(family.topology(u32::MAX).is_err());
        }
    }

    #[test]
    fn the_diameter_is_that_of_the_corners_or_halfway_round() {
        assert_eq!(Family::Mesh.diameter(64), Some(14));
        assert_eq!(Family::Mesh.diameter(16_384), Some(254));
        assert_eq!(Family::Torus.diameter(64), Some(6));
        assert_eq!(Family::Torus.diameter(224_000), Some(90));
        assert_eq!(Family::Torus.diameter(8), Some(3));
    }

    proptest! {
        #[test]
        fn every_family_holds_its_nodes_and_is_what_the_parser_reads(
            family in prop::sample::select(Family::ALL),
            nodes in 1..500_000u32,
        ) {
            let topology = family.topology(nodes).unwrap();
            prop_assert!(topology.hosts() >= nodes);
            prop_assert_eq!(topology.to_string().parse::<Topology>().unwrap(), topology);
        }

        #[test]
        fn no_grid_is_much_larger_than_its_nodes(
            family in prop::sample::select(&[Family::Mesh, Family::Torus][..]),
            nodes in 1..900_000u32,
        ) {
            let topology = family.topology(nodes).unwrap();
            let border = [2u64, 3][family as usize];
            let side = f64::from(nodes).powf(1.0 - 1.0 / border as f64);
            prop_assert!(f64::from(topology.positions()) <= f64::from(nodes) + 3.0 * side + 6.0);
            let sizes = topology.dimensions();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            prop_assert!(most - least <= 2, "{}", topology);
        }
    }
}
