//! The load of a pattern on the links, by theory: hops, the busiest link, and what follows from it.
//!
//! If every sending node injects one packet, γ packets of the pattern cross its busiest link; so no
//! node can inject more than 1/γ of what a link carries, however good the switches are (W. J. Dally
//! and B. Towles, Principles and Practices of Interconnection Networks, Sec. 3.3). Called by
//! [`super::Fabric`]; it asks [`Router`] for the way of every packet, hop by hop.

use super::pattern::{Aim, Pattern, by_dimension};
use crate::parts::fabric::{Class, HOST_PORT, Port, Router, Topology};

/// The most nodes of a network that is neither mesh nor torus: there, the ways of uniform traffic
/// between all pairs of nodes are counted one by one.
pub(super) const MAX_WALKED: u32 = 4_096;

/// The load that one packet from each sending node is, on the average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loads {
    /// Packets over the busiest directed link; γ.
    pub busiest: f64,
    /// Links that a packet crosses.
    pub hops: f64,
    /// Nodes that send.
    pub senders: u32,
}

impl Loads {
    /// Those of `pattern` among the first `nodes` positions of `topology`.
    pub fn new(topology: &Topology, nodes: u32, pattern: Pattern) -> Self {
        if pattern == Pattern::Uniform && by_dimension(topology, nodes) {
            Self::uniform(topology)
        } else {
            Self::walked(topology, nodes, pattern)
        }
    }

    /// Sums up the path of every packet that can be sent.
    fn walked(topology: &Topology, nodes: u32, pattern: Pattern) -> Self {
        let router = Router::new(topology);
        // Where the links of each position begin in the list of all of them.
        let mut links = 0;
        let first: Vec<usize> = (0..topology.positions())
            .map(|position| {
                let first = links;
                links += usize::from(topology.ports(position));
                first
            })
            .collect();
        let mut crossed = vec![0u64; links];
        let mut walk = |source, target| {
            follow(topology, &router, source, target, |position, port| {
                crossed[first[position as usize] + usize::from(port)] += 1;
            });
        };
        let mut senders = 0;
        // Packets that each sender sends, one to each of its targets.
        let mut each = 1;
        for source in 0..nodes {
            match pattern.aim(topology, nodes, source) {
                Aim::Nowhere => continue,
                Aim::One(target) => walk(source, target),
                Aim::Others => {
                    each = u64::from(nodes) - 1;
                    (0..nodes)
                        .filter(|&target| target != source)
                        .for_each(|target| walk(source, target));
                }
            }
            senders += 1;
        }
        let busiest = crossed.iter().copied().max().unwrap_or(0);
        let all: u64 = crossed.iter().sum();
        Self {
            busiest: busiest as f64 / each as f64,
            hops: all as f64 / (each * u64::from(senders).max(1)) as f64,
            senders,
        }
    }

    /// Uniform traffic in a whole mesh or torus. In dimension order, what crosses a link along a
    /// dimension k wide is what goes from one side of it to the other in that dimension's line,
    /// times the N/k lines' worth of nodes that are before or behind it in the other dimensions.
    fn uniform(topology: &Topology) -> Self {
        let positions = topology.positions();
        let others = u64::from(positions).saturating_sub(1).max(1) as f64;
        let (mut busiest, mut hops) = (0.0, 0.0);
        for (dimension, &size) in topology.dimensions().iter().enumerate() {
            let size = u64::from(size);
            // Pairs of the line across its busiest link, and the hops of all its pairs.
            let (across, all) = if topology.wraps(dimension) {
                // The + way where both are as long.
                let (plus, minus) = (size / 2, (size - 1) / 2);
                let sum = |farthest: u64| farthest * (farthest + 1) / 2;
                (sum(plus), size * (sum(plus) + sum(minus)))
            } else {
                let middle = (size / 2) * size.div_ceil(2);
                (middle, size * (size * size - 1) / 3)
            };
            let lines = f64::from(positions) / size as f64;
            busiest = f64::max(busiest, across as f64 * lines / others);
            hops += all as f64 * lines / (size as f64 * others);
        }
        Self {
            busiest,
            hops,
            senders: positions,
        }
    }
}

/// The links of the way from `source` to `target`, by the position and port where they begin.
fn follow(
    topology: &Topology,
    router: &Router,
    source: u32,
    target: u32,
    mut link: impl FnMut(u32, u16),
) {
    let (mut position, mut arrived) = (source, HOST_PORT);
    let mut channel = Class::Request.channel(false);
    loop {
        let (leaves, next) = router.step(router.here(position), arrived, channel, target);
        let Port::Link(port) = leaves else { return };
        link(position, port);
        let Some(other_end) = topology.neighbour(position, port) else {
            debug_assert!(false, "the router leads over a link that is not there");
            return;
        };
        (position, arrived) = other_end;
        channel = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loads(text: &str, pattern: Pattern) -> Loads {
        let topology: Topology = text.parse().unwrap();
        Loads::new(&topology, topology.hosts(), pattern)
    }

    #[test]
    fn textbook_cases() {
        // k/4 · N/(N - 1) packets over the middle of a mesh, k/8 in a torus.
        let uniform = loads("mesh:8x8", Pattern::Uniform);
        assert!((uniform.busiest - 2.0 * 64.0 / 63.0).abs() < 1e-12);
        assert!((uniform.hops - 16.0 / 3.0).abs() < 1e-12);
        let torus = loads("torus:8x8x8", Pattern::Uniform);
        // Ties go the + way: (4 + 3 + 2 + 1) / 8 and not 8/8.
        assert!((torus.busiest - 1.25 * 512.0 / 511.0).abs() < 1e-12);
        let transpose = loads("mesh:8x8", Pattern::Transpose);
        assert_eq!((transpose.busiest, transpose.senders), (7.0, 56));
        let tornado = loads("torus:8x8", Pattern::Tornado);
        assert_eq!((tornado.busiest, tornado.hops), (3.0, 6.0));
        let neighbour = loads("torus:4x4x4", Pattern::Neighbour);
        assert_eq!((neighbour.busiest, neighbour.hops), (1.0, 3.0));
        // Nothing in a full fat tree is busier than the links of its hosts.
        assert_eq!(loads("fattree:4x3", Pattern::Uniform).busiest, 1.0);
        let complement = loads("mesh:8x8", Pattern::BitComplement);
        assert_eq!((complement.busiest, complement.hops), (4.0, 8.0));
    }

    proptest! {
        #[test]
        fn uniform_loads_are_those_of_all_pairs(torus: bool, sizes in prop::collection::vec(1u32..7, 2..4)) {
            let shape = if torus { crate::parts::fabric::TopologyKind::Torus } else { crate::parts::fabric::TopologyKind::Mesh };
            let topology = Topology::new(shape, &sizes).unwrap();
            let nodes = topology.positions();
            prop_assume!(nodes > 1);
            let (short, long) = (Loads::uniform(&topology), Loads::walked(&topology, nodes, Pattern::Uniform));
            prop_assert!((short.busiest - long.busiest).abs() < 1e-9, "{short:?} {long:?}");
            prop_assert!((short.hops - long.hops).abs() < 1e-9, "{short:?} {long:?}");
            prop_assert_eq!(short.senders, long.senders);
        }
    }
}
