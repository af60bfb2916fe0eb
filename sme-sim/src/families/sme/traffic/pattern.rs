//! Sources and their targets: the synthetic patterns of interconnection networks.
//!
//! After W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks, Sec. 3.2.
//! Asked by [`super::Fabric`] once for every node. Patterns that need coordinates ask the
//! [`Topology`] for them: those of fat trees and dragonflies are in one row, by number.

use std::fmt;

use crate::parts::fabric::{Topology, TopologyKind};

/// A pattern of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every packet to another node, each with equal chance.
    Uniform,
    /// From (x, y) to (y, x), on a square of two dimensions.
    Transpose,
    /// ⌈k/2⌉ − 1 further in every dimension k wide, beyond the end from the beginning again.
    Tornado,
    /// To the node whose number has every bit inverted.
    BitComplement,
    /// One further in every dimension, beyond the end from the beginning again.
    Neighbour,
}

/// Whom a node sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To no other node: the pattern has it send to itself, and such a packet sees no link.
    Nowhere,
    /// Always this node.
    One(u32),
    /// Any other node.
    Others,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 5] = [
        Pattern::Uniform,
        Pattern::Transpose,
        Pattern::Tornado,
        Pattern::BitComplement,
        Pattern::Neighbour,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Uniform => "uniform",
            Pattern::Transpose => "transpose",
            Pattern::Tornado => "tornado",
            Pattern::BitComplement => "bit-complement",
            Pattern::Neighbour => "neighbour",
        }
    }

    /// Returns whether the pattern exists among the first `nodes` positions of `topology`.
    ///
    /// # Errors
    /// What the pattern needs and the topology has not; see [`PatternError`].
    pub fn check(self, topology: &Topology, nodes: u32) -> Result<(), PatternError> {
        let refuse = |needs| PatternError {
            pattern: self,
            topology: topology.to_string(),
            needs,
        };
        let sizes = topology.sizes();
        let square = by_dimension(topology, topology.hosts())
            && topology.dimensions().len() == 2
            && sizes[0] == sizes[1]
            && sizes[0] > 1;
        match self {
            Pattern::Uniform if nodes < 2 => Err(refuse(Needs::Nodes)),
            Pattern::Transpose if !square => Err(refuse(Needs::Square)),
            Pattern::BitComplement if !nodes.is_power_of_two() || nodes < 2 => {
                Err(refuse(Needs::PowerOfTwo))
            }
            Pattern::Tornado if sizes.iter().all(|&size| size < 3) => Err(refuse(Needs::Width)),
            Pattern::Neighbour if sizes.iter().all(|&size| size < 2) => Err(refuse(Needs::Nodes)),
            Pattern::Transpose | Pattern::Tornado | Pattern::Neighbour
                if nodes != topology.hosts() =>
            {
                Err(refuse(Needs::EveryHost))
            }
            _ => Ok(()),
        }
    }

    /// Whom `source`, one of the first `nodes` positions of a `topology` that has passed
    /// [`Pattern::check`], sends to.
    pub fn aim(self, topology: &Topology, nodes: u32, source: u32) -> Aim {
        let [x, y, z] = topology.coordinates(source);
        let further = |by: fn(u32) -> u32| {
            let mut to = [x, y, z];
            for (at, size) in to.iter_mut().zip(topology.sizes()) {
                *at = (*at + by(size)) % size;
            }
            topology.position(to)
        };
        let target = match self {
            Pattern::Uniform => return Aim::Others,
            Pattern::Transpose => topology.position([y, x, z]),
            Pattern::Tornado => further(|size| size.div_ceil(2) - 1),
            Pattern::BitComplement => Some(!source & (nodes - 1)),
            Pattern::Neighbour => further(|_| 1),
        };
        match target {
            Some(target) if target != source => Aim::One(target),
            _ => Aim::Nowhere,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The network that a pattern needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Two nodes.
    Nodes,
    /// Two dimensions of the same size.
    Square,
    /// A number of nodes that is a power of two.
    PowerOfTwo,
    /// A dimension at least three wide.
    Width,
    /// A node at every position.
    EveryHost,
}

/// A pattern that does not exist in a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pattern} traffic needs {needs}; {topology} has not")]
pub struct PatternError {
    /// The pattern.
    pub pattern: Pattern,
    /// The topology.
    pub topology: String,
    /// The missing property.
    pub needs: Needs,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Needs::Nodes => "at least two nodes",
            Needs::Square => "a square of two dimensions, for example mesh:8x8",
            Needs::PowerOfTwo => "a number of nodes that is a power of two",
            Needs::Width => "a dimension at least three wide",
            Needs::EveryHost => "a node at every position",
        })
    }
}

/// Returns whether the sums over pairs of nodes fall apart into sums along each dimension: every
/// node of a mesh or torus sends to every other, in dimension order.
pub(super) fn by_dimension(topology: &Topology, nodes: u32) -> bool {
    matches!(topology.kind(), TopologyKind::Mesh | TopologyKind::Torus) && nodes == topology.hosts()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(text: &str) -> Topology {
        text.parse().unwrap()
    }

    #[test]
    fn the_patterns_on_an_eight_by_eight_mesh() {
        let mesh = topology("mesh:8x8");
        // Node 11 is at (3, 1).
        for (pattern, target) in [
            (Pattern::Uniform, Aim::Others),
            (Pattern::Transpose, Aim::One(25)),
            (Pattern::Tornado, Aim::One(38)),
            (Pattern::BitComplement, Aim::One(52)),
            (Pattern::Neighbour, Aim::One(20)),
        ] {
            assert_eq!(pattern.check(&mesh, 64), Ok(()));
            assert_eq!(pattern.aim(&mesh, 64, 11), target, "{pattern}");
        }
        assert_eq!(Pattern::Transpose.aim(&mesh, 64, 9), Aim::Nowhere);
        assert_eq!(Pattern::Tornado.aim(&mesh, 64, 63), Aim::One(2 + 8 * 2));
    }

    #[test]
    fn permutations_reach_every_node_once() {
        for text in [
            "mesh:8x8",
            "torus:4x4",
            "torus:4x4x4",
            "mesh:4x2x8",
            "fattree:4x3",
            "dragonfly:2x4x2",
        ] {
            let topology = topology(text);
            let nodes = topology.hosts();
            for pattern in Pattern::ALL {
                if pattern == Pattern::Uniform || pattern.check(&topology, nodes).is_err() {
                    continue;
                }
                let mut targets: Vec<u32> = (0..nodes)
                    .map(|source| match pattern.aim(&topology, nodes, source) {
                        Aim::One(target) => target,
                        Aim::Nowhere => source,
                        Aim::Others => unreachable!("a permutation"),
                    })
                    .collect();
                targets.sort_unstable();
                assert!(targets.into_iter().eq(0..nodes), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for (pattern, text) in [
            (Pattern::Uniform, "mesh:1x1"),
            (Pattern::Transpose, "mesh:8x4"),
            (Pattern::Transpose, "torus:4x4x4"),
            (Pattern::Transpose, "mesh:1x1"),
            (Pattern::Transpose, "fattree:4x2"),
            (Pattern::Tornado, "torus:2x2x1"),
            (Pattern::BitComplement, "mesh:3x3"),
            (Pattern::Neighbour, "mesh:1x1"),
        ] {
            let topology = topology(text);
            let refused = pattern.check(&topology, topology.hosts());
            assert!(refused.is_err(), "{pattern} {text}");
        }
        let partly = Pattern::Tornado.check(&topology("mesh:8x8"), 60);
        assert_eq!(
            partly.map_err(|error| error.to_string()),
            Err("tornado traffic needs a node at every position; mesh:8x8 has not".into())
        );
    }
}
