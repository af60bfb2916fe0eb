//! Direct topologies: meshes and tori of two and three dimensions.
//!
//! A *position* is a place for a switch, numbered row by row with x fastest. Each position has six
//! link ports, `0..6` = x+, x-, y+, y-, z+, z-; a port at the border of a mesh leads nowhere.
//! Nodes fill the positions from 0; a position beyond the last node keeps its switch and has no
//! host.

use std::fmt;
use std::str::FromStr;

/// Link ports of a switch: x+, x-, y+, y-, z+, z-.
pub const LINK_PORTS: usize = 6;

/// Most positions a topology can have: packets name a node in 20 bits.
pub const MAX_POSITIONS: u32 = 1 << 20;

/// Whether the ends of a dimension are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// They are not.
    Mesh,
    /// They are, where the dimension is at least three wide.
    Torus,
}

/// A mesh or torus of two or three dimensions.
///
/// ```
/// use sme_sim::fabric::Topology;
/// let fabric: Topology = "torus:4x4x4".parse()?;
/// assert_eq!(fabric.positions(), 64);
/// assert_eq!(fabric.neighbour(0, 1), Some((3, 0))); // x- wraps around
/// # Ok::<(), sme_sim::fabric::TopologyError>(())
/// ```
///
/// In a torus a dimension one wide has no links, and one two wide has a single link between its
/// two positions, as in a mesh: a second one would join the same pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    shape: Shape,
    /// Positions along x, y, z; z is 1 in two dimensions.
    sizes: [u32; 3],
    dimensions: u8,
}

impl Topology {
    /// A topology of two or three dimensions, `sizes` positions wide in each.
    ///
    /// # Errors
    /// Another number of dimensions, a size of zero, more than [`MAX_POSITIONS`].
    pub fn new(shape: Shape, sizes: &[u32]) -> Result<Self, TopologyError> {
        let text = || describe(shape, sizes);
        if !(2..=3).contains(&sizes.len()) {
            return Err(TopologyError::Dimensions { text: text() });
        }
        let mut three = [1; 3];
        let mut positions = 1u64;
        for (own, &size) in three.iter_mut().zip(sizes) {
            if size == 0 {
                return Err(TopologyError::Zero { text: text() });
            }
            *own = size;
            positions = positions.saturating_mul(u64::from(size));
        }
        if positions > u64::from(MAX_POSITIONS) {
            return Err(TopologyError::TooLarge { text: text() });
        }
        Ok(Self {
            shape,
            sizes: three,
            dimensions: sizes.len() as u8,
        })
    }

    /// Where `nodes` nodes stand unless told otherwise: a mesh ⌈√nodes⌉ wide, filled row by row,
    /// just high enough. For no node, or more than a mesh can hold, the nearest that exists.
    pub fn for_nodes(nodes: u32) -> Self {
        let nodes = nodes.clamp(1, MAX_POSITIONS);
        let root = nodes.isqrt();
        let width = if root * root < nodes { root + 1 } else { root };
        Self {
            shape: Shape::Mesh,
            sizes: [width, nodes.div_ceil(width), 1],
            dimensions: 2,
        }
    }

    /// Mesh or torus.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Positions along x, y and, in three dimensions, z.
    pub fn dimensions(&self) -> &[u32] {
        &self.sizes[..usize::from(self.dimensions)]
    }

    /// Positions along x, y, z; z is 1 in two dimensions.
    pub fn sizes(&self) -> [u32; 3] {
        self.sizes
    }

    /// How many positions there are.
    pub fn positions(&self) -> u32 {
        self.sizes.iter().product()
    }

    /// Whether the ends of `dimension` (0 is x) are joined by a link of their own.
    pub fn wraps(&self, dimension: usize) -> bool {
        self.shape == Shape::Torus && self.sizes.get(dimension).is_some_and(|&size| size > 2)
    }

    /// Coordinates x, y, z of a position.
    pub fn coordinates(&self, position: u32) -> [u32; 3] {
        let [width, height, _] = self.sizes;
        [
            position % width,
            position / width % height,
            position / width / height,
        ]
    }

    /// The position at coordinates x, y, z; `None` outside.
    pub fn position(&self, coordinates: [u32; 3]) -> Option<u32> {
        let inside = coordinates
            .iter()
            .zip(&self.sizes)
            .all(|(at, size)| at < size);
        let [x, y, z] = coordinates;
        inside.then(|| x + self.sizes[0] * (y + self.sizes[1] * z))
    }

    /// The position at the other end of a link port, and that position's port of the same link.
    pub fn neighbour(&self, position: u32, port: u8) -> Option<(u32, u8)> {
        if position >= self.positions() || usize::from(port) >= LINK_PORTS {
            return None;
        }
        let dimension = usize::from(port / 2);
        let size = self.sizes[dimension];
        let mut coordinates = self.coordinates(position);
        let at = &mut coordinates[dimension];
        *at = match (port.is_multiple_of(2), self.wraps(dimension)) {
            (true, _) if *at + 1 < size => *at + 1,
            (true, true) => 0,
            (false, _) if *at > 0 => *at - 1,
            (false, true) => size - 1,
            _ => return None,
        };
        self.position(coordinates).map(|there| (there, port ^ 1))
    }
}

fn describe(shape: Shape, sizes: &[u32]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    format!("{shape}:{}", sizes.join("x"))
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Mesh => "mesh",
            Shape::Torus => "torus",
        })
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(self.shape, self.dimensions()))
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let malformed = || TopologyError::Malformed {
            text: shorten(text),
        };
        let (shape, sizes) = text.split_once(':').ok_or_else(malformed)?;
        let shape = match shape {
            "mesh" => Shape::Mesh,
            "torus" => Shape::Torus,
            _ => return Err(malformed()),
        };
        let mut numbers = Vec::new();
        for size in sizes.split('x') {
            if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(malformed());
            }
            // Digits only, so the one way to fail is to be too large.
            numbers.push(size.parse().map_err(|_| TopologyError::TooLarge {
                text: shorten(text),
            })?);
            if numbers.len() > 3 {
                return Err(TopologyError::Dimensions {
                    text: shorten(text),
                });
            }
        }
        Self::new(shape, &numbers)
    }
}

/// What a message repeats of the user's input: one line, not too long.
fn shorten(text: &str) -> String {
    let line: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        line + "…"
    } else {
        line
    }
}

/// Why a text or a list of sizes is no topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Not of the form `shape:WxH` or `shape:WxHxD`.
    #[error("`{text}` is no topology; write for example mesh:8x8, mesh:8x8x2 or torus:4x4x4")]
    Malformed {
        /// What was given.
        text: String,
    },
    /// Fewer than two dimensions or more than three.
    #[error(
        "topology `{text}` must have two or three dimensions, for example mesh:8x8 or torus:4x4x4"
    )]
    Dimensions {
        /// What was given.
        text: String,
    },
    /// A dimension without positions.
    #[error(
        "topology `{text}` has a dimension of size 0; each must be at least 1, for example mesh:8x8"
    )]
    Zero {
        /// What was given.
        text: String,
    },
    /// More than [`MAX_POSITIONS`].
    #[error(
        "topology `{text}` has more than 1048576 positions (2^20), the most that packets can address; torus:64x64x64 is fine"
    )]
    TooLarge {
        /// What was given.
        text: String,
    },
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_topology(side: u32) -> impl Strategy<Value = Topology> {
        (any::<bool>(), prop::collection::vec(1..=side, 2..=3)).prop_map(|(torus, sizes)| {
            Topology::new(if torus { Shape::Torus } else { Shape::Mesh }, &sizes).unwrap()
        })
    }

    #[test]
    fn the_default_is_the_smallest_mesh_filled_row_by_row() {
        for (nodes, sizes) in [
            (1, [1, 1]),
            (2, [2, 1]),
            (5, [3, 2]),
            (64, [8, 8]),
            (65, [9, 8]),
            (1 << 20, [1024, 1024]),
        ] {
            assert_eq!(Topology::for_nodes(nodes).dimensions(), &sizes);
        }
        assert_eq!(Topology::for_nodes(0).positions(), 1);
        assert_eq!(Topology::for_nodes(u32::MAX).positions(), MAX_POSITIONS);
    }

    #[test]
    fn a_bad_text_says_what_a_good_one_looks_like() {
        for text in [
            "",
            "mesh",
            "mesh:",
            "ring:8x8",
            "mesh:8x",
            "mesh:-8x8",
            "mesh:+8x8",
            "mesh:8",
            "mesh:8x8x8x8",
            "torus:0x4",
            "mesh:2000x2000",
            "mesh:99999999999999999999x2",
            "mesh:65536x65536",
            "Mesh:8x8",
            "mesh:8 x8",
            "mesh:\n8x8",
        ] {
            let message = text.parse::<Topology>().unwrap_err().to_string();
            assert!(
                message.contains("mesh:8x8") || message.contains("torus:64x64x64"),
                "{message}"
            );
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn narrow_dimensions_of_a_torus_have_no_second_link() {
        let narrow: Topology = "torus:2x1".parse().unwrap();
        let ends: Vec<_> = (0..6).map(|port| narrow.neighbour(0, port)).collect();
        assert_eq!(ends, [Some((1, 1)), None, None, None, None, None]);
        assert_eq!(narrow.neighbour(1, 1), Some((0, 0)));
        assert_eq!(narrow.neighbour(1, 0), None);
    }

    proptest! {
        #[test]
        fn text_and_topology_are_the_same(topology in any_topology(100)) {
            prop_assert_eq!(topology.to_string().parse::<Topology>().unwrap(), topology);
        }

        #[test]
        fn no_text_panics(text in ".*", sizes in "(mesh|torus):[0-9x]{0,30}") {
            for text in [text, sizes] {
                if let Ok(topology) = text.parse::<Topology>() {
                    prop_assert!(topology.positions() >= 1 && topology.positions() <= MAX_POSITIONS);
                }
            }
        }

        #[test]
        fn coordinates_name_one_position(topology in any_topology(12), seed in any::<u32>()) {
            let position = seed % topology.positions();
            prop_assert_eq!(topology.position(topology.coordinates(position)), Some(position));
        }

        #[test]
        fn a_link_has_two_ends_one_step_apart(topology in any_topology(6), seed in any::<u32>()) {
            let position = seed % topology.positions();
            for port in 0..8 {
                let Some((there, back)) = topology.neighbour(position, port) else { continue };
                prop_assert_ne!(there, position);
                prop_assert_eq!(topology.neighbour(there, back), Some((position, port)));
                let (a, b) = (topology.coordinates(position), topology.coordinates(there));
                prop_assert_eq!((0..3).filter(|&d| a[d] != b[d]).count(), 1);
            }
        }

        #[test]
        fn the_default_holds_the_nodes_without_an_empty_row(nodes in 1..=MAX_POSITIONS) {
            let topology = Topology::for_nodes(nodes);
            let [width, height, _] = topology.sizes();
            prop_assert!(width * height >= nodes && width * (height - 1) < nodes);
            prop_assert!(width * width >= nodes && (width - 1) * (width - 1) < nodes);
        }
    }
}
