//! The shapes of networks: which position is joined to which.
//!
//! A *position* is a place for a switch. In a direct network ([`TopologyKind::Mesh`],
//! [`TopologyKind::Torus`]) the switch is part of an engine with six link ports, and every position
//! can have a host. In an indirect one ([`TopologyKind::FatTree`], [`TopologyKind::Dragonfly`]) the
//! hosts come first, each with an engine whose link port 0 leads to a switch, and then the
//! switches, which have as many ports as the network's radix. Nodes fill the positions from 0;
//! beyond the last node a mesh or torus keeps its switches, and the others have nothing at a host's
//! position. No neighbours are stored: they follow from a position's number.

use std::fmt;
use std::str::FromStr;

use super::dragonfly::Dragonfly;
use super::fat_tree::FatTree;
use super::grid::Grid;

/// Link ports of an engine's switch: x+, x-, y+, y-, z+, z- in a mesh or torus.
pub const LINK_PORTS: usize = 6;

/// Most hosts a topology can have: packets name a node in 20 bits.
pub const MAX_HOSTS: u32 = 1 << 20;

/// Most link ports of a switch outside the engines.
pub const MOST_PORTS: usize = 1024;

/// Most levels of a fat tree; with two branches or more it cannot have more.
const MAX_LEVELS: u32 = 20;

/// The kind of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopologyKind {
    /// A grid, W×H or W×H×D positions.
    Mesh,
    /// A mesh whose ends are joined where the dimension is at least three wide.
    Torus,
    /// R×L: switches with R links each, half of them up, in L levels.
    FatTree,
    /// P×A×H or P×A×H×G: P hosts per router, A routers per group, H global links per router,
    /// G groups.
    Dragonfly,
}

impl TopologyKind {
    /// All of them.
    pub const ALL: [TopologyKind; 4] = [
        TopologyKind::Mesh,
        TopologyKind::Torus,
        TopologyKind::FatTree,
        TopologyKind::Dragonfly,
    ];

    /// Returns its part of a topology's name.
    pub const fn name(self) -> &'static str {
        match self {
            TopologyKind::Mesh => "mesh",
            TopologyKind::Torus => "torus",
            TopologyKind::FatTree => "fattree",
            TopologyKind::Dragonfly => "dragonfly",
        }
    }
}

/// A network's shape and size.
///
/// ```
/// use sme_sim::parts::fabric::Topology;
/// let fabric: Topology = "torus:4x4x4".parse()?;
/// assert_eq!(fabric.positions(), 64);
/// assert_eq!(fabric.neighbour(0, 1), Some((3, 0))); // x- wraps around
/// let fabric: Topology = "fattree:4x2".parse()?;
/// assert_eq!((fabric.hosts(), fabric.positions()), (8, 14));
/// assert_eq!(fabric.neighbour(1, 0), Some((8, 1))); // the first leaf
/// # Ok::<(), sme_sim::parts::fabric::TopologyError>(())
/// ```
///
/// In a torus a dimension one wide has no links, and one two wide has a single link between its
/// two positions, as in a mesh: a second one would join the same pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topology(Wiring);

/// The links of a topology, with the numbers that describe them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wiring {
    Grid(Grid),
    FatTree(FatTree),
    Dragonfly(Dragonfly),
}

impl Topology {
    /// A topology of the `shape` that `numbers`, as in its name, describe.
    ///
    /// # Errors
    /// The wrong number of numbers, a zero, more than [`MAX_HOSTS`] hosts; switches of more than
    /// [`MOST_PORTS`] links or, in a fat tree, of an odd number of them; more groups than a
    /// dragonfly can join.
    pub fn new(shape: TopologyKind, numbers: &[u32]) -> Result<Self, TopologyError> {
        let text = || describe(shape, numbers);
        let count = match shape {
            TopologyKind::Mesh | TopologyKind::Torus => 2..=3,
            TopologyKind::FatTree => 2..=2,
            TopologyKind::Dragonfly => 3..=4,
        };
        if !count.contains(&numbers.len()) {
            return Err(TopologyError::numbers(shape, text()));
        }
        if numbers.contains(&0) {
            return Err(TopologyError::Zero { text: text() });
        }
        let (wiring, hosts) = match (shape, numbers) {
            (TopologyKind::FatTree, &[radix, levels]) => {
                if radix as usize > MOST_PORTS || radix % 2 != 0 {
                    return Err(TopologyError::Radix { text: text() });
                }
                let hosts = FatTree::hosts_of(radix, levels);
                if levels > MAX_LEVELS || hosts > MAX_HOSTS.into() {
                    return Err(TopologyError::TooLarge { text: text() });
                }
                (Wiring::FatTree(FatTree::new(radix, levels)), hosts)
            }
            (TopologyKind::Dragonfly, &[hosts, routers, global, ref groups @ ..]) => {
                let radix = u64::from(hosts) + u64::from(routers) + u64::from(global) - 1;
                if radix > MOST_PORTS as u64 {
                    return Err(TopologyError::Links {
                        text: text(),
                        radix,
                    });
                }
                let most = routers * global + 1;
                let groups = groups.first().copied();
                if groups.is_some_and(|groups| groups > most) {
                    return Err(TopologyError::Groups { text: text(), most });
                }
                let of_a_group = u64::from(hosts) * u64::from(routers);
                let all = of_a_group * u64::from(groups.unwrap_or(most));
                let wiring = Dragonfly::new([hosts, routers, global], groups);
                (Wiring::Dragonfly(wiring), all)
            }
            (_, sizes) => {
                let sizes_of = sizes.iter().map(|&size| u64::from(size));
                let hosts = sizes_of.fold(1u64, u64::saturating_mul);
                let wiring = Grid::new(shape == TopologyKind::Torus, sizes);
                (Wiring::Grid(wiring), hosts)
            }
        };
        if hosts > u64::from(MAX_HOSTS) {
            return Err(TopologyError::TooLarge { text: text() });
        }
        Ok(Self(wiring))
    }

    /// Returns the topology on which `nodes` nodes stand by default: a mesh ⌈√nodes⌉ wide, filled
    /// row by row, just high enough. For no node, or more than a mesh can hold, the nearest that
    /// exists.
    pub fn for_nodes(nodes: u32) -> Self {
        let nodes = nodes.clamp(1, MAX_HOSTS);
        let root = nodes.isqrt();
        let width = if root * root < nodes { root + 1 } else { root };
        Self(Wiring::Grid(Grid::new(
            false,
            &[width, nodes.div_ceil(width)],
        )))
    }

    /// One switch with a link to each of `nodes` hosts, or to one more if their number is odd. For
    /// no node, or more than a switch has ports, the nearest that exists.
    pub fn switch(nodes: u32) -> Self {
        let ports = nodes.clamp(2, MOST_PORTS as u32).next_multiple_of(2);
        Self(Wiring::FatTree(FatTree::new(ports, 1)))
    }

    /// Its kind.
    pub fn kind(&self) -> TopologyKind {
        match &self.0 {
            Wiring::Grid(grid) if grid.is_torus() => TopologyKind::Torus,
            Wiring::Grid(_) => TopologyKind::Mesh,
            Wiring::FatTree(_) => TopologyKind::FatTree,
            Wiring::Dragonfly(_) => TopologyKind::Dragonfly,
        }
    }

    /// The numbers of its name: of a mesh or torus the positions along x, y and, in three
    /// dimensions, z.
    pub fn dimensions(&self) -> &[u32] {
        match &self.0 {
            Wiring::Grid(grid) => grid.dimensions(),
            Wiring::FatTree(tree) => tree.numbers(),
            Wiring::Dragonfly(dragonfly) => dragonfly.numbers(),
        }
    }

    /// Returns the layout of the hosts' positions: so many along x, y, z. Those of an indirect
    /// network are one row, in which neighbours by number are neighbours in the network.
    pub fn sizes(&self) -> [u32; 3] {
        match &self.0 {
            Wiring::Grid(grid) => grid.sizes(),
            Wiring::FatTree(_) | Wiring::Dragonfly(_) => [self.hosts(), 1, 1],
        }
    }

    /// Returns the number of positions that can have a host: the first ones.
    pub fn hosts(&self) -> u32 {
        match &self.0 {
            Wiring::Grid(grid) => grid.positions(),
            Wiring::FatTree(tree) => tree.hosts(),
            Wiring::Dragonfly(dragonfly) => dragonfly.hosts(),
        }
    }

    /// Returns the number of positions, those of external switches included.
    pub fn positions(&self) -> u32 {
        match &self.0 {
            Wiring::Grid(grid) => grid.positions(),
            Wiring::FatTree(tree) => tree.positions(),
            Wiring::Dragonfly(dragonfly) => dragonfly.positions(),
        }
    }

    /// Returns whether hosts stand at the network's edge and all switches are outside the engines.
    pub fn is_indirect(&self) -> bool {
        !matches!(self.0, Wiring::Grid(_))
    }

    /// Returns whether at `position` there is a switch outside any engine.
    pub fn is_switch(&self, position: u32) -> bool {
        position >= self.hosts()
    }

    /// Link ports of all switches outside the engines.
    pub fn switch_ports(&self) -> u64 {
        let switches = self.positions() - self.hosts();
        u64::from(switches) * u64::from(self.ports(self.hosts()))
    }

    /// Link ports at `position`; some may lead nowhere.
    pub fn ports(&self, position: u32) -> u16 {
        match &self.0 {
            Wiring::Grid(_) => LINK_PORTS as u16,
            Wiring::FatTree(tree) if self.is_switch(position) => tree.radix(),
            Wiring::Dragonfly(dragonfly) if self.is_switch(position) => dragonfly.radix(),
            Wiring::FatTree(_) | Wiring::Dragonfly(_) => 1,
        }
    }

    /// Returns whether the ends of `dimension` (0 is x) of a torus are joined by a link of their
    /// own.
    pub fn wraps(&self, dimension: usize) -> bool {
        matches!(&self.0, Wiring::Grid(grid) if grid.wraps(dimension))
    }

    /// Coordinates x, y, z of a position that can have a host, among [`Self::sizes`].
    pub fn coordinates(&self, position: u32) -> [u32; 3] {
        match &self.0 {
            Wiring::Grid(grid) => grid.coordinates(position),
            Wiring::FatTree(_) | Wiring::Dragonfly(_) => [position, 0, 0],
        }
    }

    /// The position at coordinates x, y, z; `None` outside.
    pub fn position(&self, coordinates: [u32; 3]) -> Option<u32> {
        match &self.0 {
            Wiring::Grid(grid) => grid.position(coordinates),
            Wiring::FatTree(_) | Wiring::Dragonfly(_) => {
                let [x, y, z] = coordinates;
                (x < self.hosts() && y == 0 && z == 0).then_some(x)
            }
        }
    }

    /// The position at the other end of a link port, and that position's port of the same link.
    pub fn neighbour(&self, position: u32, port: u16) -> Option<(u32, u16)> {
        if position >= self.positions() {
            return None;
        }
        match &self.0 {
            Wiring::Grid(grid) => grid.neighbour(position, port),
            Wiring::FatTree(tree) => tree.neighbour(position, port),
            Wiring::Dragonfly(dragonfly) => dragonfly.neighbour(position, port),
        }
    }

    pub(super) fn wiring(&self) -> &Wiring {
        &self.0
    }
}

fn describe(shape: TopologyKind, numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("{shape}:{}", numbers.join("x"))
}

impl fmt::Display for TopologyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(self.kind(), self.dimensions()))
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let malformed = || TopologyError::Malformed {
            text: shorten(text),
        };
        let (name, numbers) = text.split_once(':').ok_or_else(malformed)?;
        let shape = TopologyKind::ALL
            .into_iter()
            .find(|shape| shape.name() == name);
        let shape = shape.ok_or_else(malformed)?;
        let mut read = Vec::new();
        for number in numbers.split('x') {
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(malformed());
            }
            // Digits only, so the one way to fail is to be too large.
            read.push(number.parse().map_err(|_| TopologyError::TooLarge {
                text: shorten(text),
            })?);
            if read.len() > 4 {
                return Err(TopologyError::numbers(shape, shorten(text)));
            }
        }
        Self::new(shape, &read)
    }
}

/// Shortens the user's input for a message: one line, not too long.
fn shorten(text: &str) -> String {
    let line: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        line + "…"
    } else {
        line
    }
}

/// The reason why a text or a list of numbers is no topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Not of the form `shape:numbers`.
    #[error(
        "`{text}` is no topology; write for example mesh:8x8, mesh:8x8x2, torus:4x4x4, fattree:16x3 or dragonfly:4x8x4"
    )]
    Malformed {
        /// The user's text.
        text: String,
    },
    /// A mesh or torus of fewer than two dimensions or more than three.
    #[error(
        "topology `{text}` must have two or three dimensions, for example mesh:8x8 or torus:4x4x4"
    )]
    Dimensions {
        /// The user's text.
        text: String,
    },
    /// A fat tree not of the form R×L.
    #[error(
        "topology `{text}` needs two numbers, links per switch and levels of switches, for example fattree:16x3"
    )]
    FatTree {
        /// The user's text.
        text: String,
    },
    /// A dragonfly not of the form P×A×H or P×A×H×G.
    #[error(
        "topology `{text}` needs hosts per router, routers per group, global links per router and perhaps the number of groups, for example dragonfly:4x8x4"
    )]
    Dragonfly {
        /// The user's text.
        text: String,
    },
    /// A number is zero.
    #[error("topology `{text}` has a size of 0; each must be at least 1, for example mesh:8x8")]
    Zero {
        /// The user's text.
        text: String,
    },
    /// More than [`MAX_HOSTS`].
    #[error(
        "topology `{text}` has more than 1048576 positions for hosts (2^20), the most that packets can address; torus:64x64x64 and fattree:160x3 are fine"
    )]
    TooLarge {
        /// The user's text.
        text: String,
    },
    /// A fat tree of switches that do not exist.
    #[error(
        "topology `{text}` needs switches with an even number of links up to {MOST_PORTS}, half down and half up, for example fattree:16x3"
    )]
    Radix {
        /// The user's text.
        text: String,
    },
    /// A dragonfly of routers that do not exist.
    #[error(
        "topology `{text}` needs routers with {radix} links; at most {MOST_PORTS}, for example dragonfly:16x32x16"
    )]
    Links {
        /// The user's text.
        text: String,
        /// Links it would have.
        radix: u64,
    },
    /// More groups than a dragonfly can join.
    #[error(
        "topology `{text}` can join at most {most} groups: routers per group x global links per router + 1"
    )]
    Groups {
        /// The user's text.
        text: String,
        /// As many as there can be.
        most: u32,
    },
}

impl TopologyError {
    fn numbers(shape: TopologyKind, text: String) -> Self {
        match shape {
            TopologyKind::Mesh | TopologyKind::Torus => Self::Dimensions { text },
            TopologyKind::FatTree => Self::FatTree { text },
            TopologyKind::Dragonfly => Self::Dragonfly { text },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
