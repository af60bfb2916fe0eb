//! Where clusters and I/O subsystems stand, and the way of a packet from one to another.
//!
//! Clusters are a mesh, node `c` in column `c % columns` and row `c / columns`. Around it lie the
//! I/O subsystems: north and south of it with a network interface for each column, east and west
//! with one for each row. Each interface has a router of its own, and those of one subsystem are a
//! row or a column, joined to the mesh and to each other. No link wraps around.
//!
//! A way goes along the columns first and then along the rows. From north or south to east or west
//! it enters the mesh before that, for there are no routers at the corners.

/// The subsystems, in the order of their node numbers behind the clusters'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    North,
    South,
    East,
    West,
}

impl Side {
    const ALL: [Self; 4] = [Self::North, Self::South, Self::East, Self::West];
}

/// The sizes of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    columns: u32,
    rows: u32,
}

/// A network interface: the node that it belongs to, and which of the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Interface {
    pub node: u32,
    pub number: u32,
}

/// The directions in which links leave a router: east, west, south, north, to its interface, and
/// from it.
const DIRECTIONS: usize = 6;

/// The most routers on a way.
const MOST_ROUTERS: usize = 32;

/// The links of a way, one more than the routers that it passes.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    /// The first leaves the interface, the last leads into one; each of the others joins two
    /// routers.
    pub links: Vec<usize>,
}

impl Layout {
    /// A mesh of so many columns and rows.
    pub const fn new(columns: u32, rows: u32) -> Self {
        Self { columns, rows }
    }

    /// Compute clusters.
    pub const fn clusters(&self) -> u32 {
        self.columns * self.rows
    }

    /// Clusters and I/O subsystems.
    pub const fn nodes(&self) -> u32 {
        self.clusters() + Side::ALL.len() as u32
    }

    /// The node of a subsystem.
    #[cfg(test)]
    pub(super) fn subsystem(&self, side: Side) -> u32 {
        self.clusters() + side as u32
    }

    /// The subsystem that is `node`, if it is one.
    pub(super) fn side(&self, node: u32) -> Option<Side> {
        let number = node.checked_sub(self.clusters())?;
        Side::ALL.get(number as usize).copied()
    }

    /// The network interfaces of `node`.
    pub(super) fn interfaces(&self, node: u32) -> u32 {
        match self.side(node) {
            None => 1,
            Some(Side::North | Side::South) => self.columns,
            Some(Side::East | Side::West) => self.rows,
        }
    }

    /// Links of all routers, by which [`Way::links`] are numbered.
    pub(super) fn links(&self) -> usize {
        ((self.columns + 2) * (self.rows + 2)) as usize * DIRECTIONS
    }

    /// The way from one interface to another.
    pub(super) fn way(&self, from: Interface, to: Interface) -> Way {
        let mut at = self.position(from);
        let end = self.position(to);
        let mut links = Vec::with_capacity(MOST_ROUTERS);
        links.push(self.link(at, 5));
        let is_beside = |row: u32| row == 0 || row == self.rows + 1;
        let is_of_side = end.0 == 0 || end.0 == self.columns + 1;
        if is_beside(at.1) && !is_beside(end.1) && is_of_side {
            let row = if at.1 == 0 { 1 } else { self.rows };
            links.push(self.step(&mut at, (end.0, row), false));
        }
        while at.0 != end.0 {
            links.push(self.step(&mut at, end, true));
        }
        while at.1 != end.1 {
            links.push(self.step(&mut at, end, false));
        }
        links.push(self.link(at, 4));
        Way { links }
    }

    /// Goes on by one router towards `end`; the link.
    fn step(&self, at: &mut (u32, u32), end: (u32, u32), along_row: bool) -> usize {
        let from = *at;
        let (place, goal) = match along_row {
            true => (&mut at.0, end.0),
            false => (&mut at.1, end.1),
        };
        let grows = *place < goal;
        if grows {
            *place += 1;
        } else {
            *place -= 1;
        }
        let direction = match (along_row, grows) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        self.link(from, direction)
    }

    fn link(&self, (column, row): (u32, u32), direction: usize) -> usize {
        (row * (self.columns + 2) + column) as usize * DIRECTIONS + direction
    }

    /// Column and row of an interface's router, of which those of clusters begin at 1.
    fn position(&self, interface: Interface) -> (u32, u32) {
        let Interface { node, number } = interface;
        match self.side(node) {
            None => (node % self.columns + 1, node / self.columns + 1),
            Some(Side::North) => (number + 1, 0),
            Some(Side::South) => (number + 1, self.rows + 1),
            Some(Side::East) => (self.columns + 1, number + 1),
            Some(Side::West) => (0, number + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    impl Way {
        fn routers(&self) -> u64 {
            self.links.len() as u64 - 1
        }
    }

    fn all(layout: &Layout) -> Vec<Interface> {
        let of = |node| (0..layout.interfaces(node)).map(move |number| Interface { node, number });
        (0..layout.nodes()).flat_map(of).collect()
    }

    #[test]
    fn a_way_passes_a_router_more_than_its_distance() {
        let layout = Layout::new(4, 4);
        let mut of_cluster = 0;
        for from in all(&layout) {
            for to in all(&layout) {
                let (a, b) = (layout.position(from), layout.position(to));
                let apart = u64::from(a.0.abs_diff(b.0) + a.1.abs_diff(b.1));
                let routers = layout.way(from, to).routers();
                assert_eq!(routers, apart + 1, "{from:?} {to:?}");
                if from.node < 16 || to.node < 16 {
                    of_cluster = of_cluster.max(routers);
                }
            }
        }
        assert_eq!(of_cluster, 8);
        let cluster = |node| Interface { node, number: 0 };
        assert_eq!(layout.way(cluster(0), cluster(15)).routers(), 7);
        assert_eq!(layout.way(cluster(3), cluster(3)).routers(), 1);
        let north = cluster(layout.subsystem(Side::North));
        assert_eq!(layout.way(cluster(15), north).routers(), 8);
    }

    /// No packet ever waits for itself: the graph of links that follow each other on a way has no
    /// circle (Dally and Seitz).
    #[test]
    fn ways_cannot_deadlock() {
        let layout = Layout::new(4, 4);
        let mut follows: HashMap<usize, HashSet<usize>> = HashMap::new();
        for from in all(&layout) {
            for to in all(&layout) {
                for pair in layout.way(from, to).links.windows(2) {
                    follows.entry(pair[0]).or_default().insert(pair[1]);
                    follows.entry(pair[1]).or_default();
                }
            }
        }
        // Links without successors are taken away until none is left.
        while !follows.is_empty() {
            let ends: Vec<usize> = follows
                .iter()
                .filter(|(_, next)| next.is_empty())
                .map(|(&link, _)| link)
                .collect();
            assert!(!ends.is_empty(), "links in a circle: {:?}", follows.keys());
            for link in ends {
                follows.remove(&link);
                for next in follows.values_mut() {
                    next.remove(&link);
                }
            }
        }
    }
}
