//! Dimension-order routing with dateline channels.
//!
//! A packet first travels along x, then y, then z, each the shorter way round (the + way if both
//! are as long). In a torus each ring would close a cycle of buffers that wait for each other; so
//! a packet begins each dimension on dateline channel 0 and continues on 1 once it has crossed
//! that ring's wrap-around link (W. J. Dally and C. L. Seitz, Deadlock-Free Message Routing in
//! Multiprocessor Interconnection Networks, IEEE Trans. Computers C-36(5), 1987). A mesh uses
//! channel 0 only. Requests and responses have such a pair of channels each.
//!
//! The switch asks once a packet and hop, so nothing is stored per target and nothing is divided.

use super::topology::{LINK_PORTS, Topology};

/// Virtual channels of a link: two classes with two dateline channels each.
pub const CHANNELS: usize = 4;

/// The switch port that leads to the engine and its host.
pub const HOST_PORT: u8 = LINK_PORTS as u8;

/// Which of two independent networks a packet travels on, so that a response never waits behind a
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Read requests and posted writes.
    Request = 0,
    /// Read responses and error responses.
    Response = 1,
}

impl Class {
    /// This class's virtual channel, before or after the dateline.
    pub const fn channel(self, crossed: bool) -> u8 {
        self as u8 * 2 + crossed as u8
    }

    /// The class a virtual channel belongs to.
    pub const fn of_channel(channel: u8) -> Self {
        if channel < 2 {
            Class::Request
        } else {
            Class::Response
        }
    }
}

/// Where a packet leaves a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// Over link port `0..6`.
    Link(u8),
    /// It has arrived.
    Host,
}

impl Port {
    /// `0..6` for the links, [`HOST_PORT`] for the host.
    pub const fn index(self) -> u8 {
        match self {
            Port::Link(port) => port,
            Port::Host => HOST_PORT,
        }
    }
}

/// What routing needs of a topology, prepared for speed.
#[derive(Clone, Debug)]
pub struct Router {
    sizes: [u32; 3],
    wraps: [bool; 3],
    /// ⌈2^40 / size⌉ of x and y: a product and a shift instead of a division, exact below 2^20.
    reciprocals: [u64; 2],
}

/// A switch's own coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here([u32; 3]);

impl Router {
    /// Prepares routing in `topology`.
    pub fn new(topology: &Topology) -> Self {
        let sizes = topology.sizes();
        let reciprocal = |size: u32| (1u64 << 40).div_ceil(u64::from(size));
        Self {
            sizes,
            wraps: [0, 1, 2].map(|dimension| topology.wraps(dimension)),
            reciprocals: [reciprocal(sizes[0]), reciprocal(sizes[1])],
        }
    }

    /// The coordinates of `position`, which must be inside the topology.
    pub fn here(&self, position: u32) -> Here {
        Here(self.coordinates(position))
    }

    /// The next step from `here` to `target`: the port, minimal in hops.
    pub fn route(&self, here: Here, target: u32) -> Port {
        let there = self.coordinates(target);
        for (dimension, (&from, &to)) in here.0.iter().zip(&there).enumerate() {
            if from != to {
                let minus = if self.wraps[dimension] {
                    let size = self.sizes[dimension];
                    let ahead = if to > from {
                        to - from
                    } else {
                        to + size - from
                    };
                    ahead * 2 > size
                } else {
                    to < from
                };
                return Port::Link(dimension as u8 * 2 + u8::from(minus));
            }
        }
        Port::Host
    }

    /// Port and virtual channel of the next step of a packet that waits `here`, in virtual channel
    /// `channel` of port `arrived` (a link port or [`HOST_PORT`]).
    pub fn step(&self, here: Here, arrived: u8, channel: u8, target: u32) -> (Port, u8) {
        let class = Class::of_channel(channel);
        let port = self.route(here, target);
        let Port::Link(leaves) = port else {
            return (port, class.channel(false));
        };
        // Straight on in the same ring: it arrived at the port opposite to the one it leaves by.
        let straight = leaves ^ 1 == arrived;
        let crossed = straight && (channel & 1 == 1 || self.arrived_by_wrap(here, leaves));
        (port, class.channel(crossed))
    }

    /// Whether a packet that travels in the direction of `port` came `here` over the ring's
    /// wrap-around link.
    fn arrived_by_wrap(&self, here: Here, port: u8) -> bool {
        let dimension = usize::from(port / 2);
        let first = if port.is_multiple_of(2) {
            0
        } else {
            self.sizes[dimension] - 1
        };
        self.wraps[dimension] && here.0[dimension] == first
    }

    fn coordinates(&self, position: u32) -> [u32; 3] {
        let (row, x) = self.divide(position, 0);
        let (z, y) = self.divide(row, 1);
        [x, y, z]
    }

    /// Quotient and remainder of `value` by the size of `dimension`.
    fn divide(&self, value: u32, dimension: usize) -> (u32, u32) {
        let quotient = ((u64::from(value) * self.reciprocals[dimension]) >> 40) as u32;
        (
            quotient,
            value.wrapping_sub(quotient.wrapping_mul(self.sizes[dimension])),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::any_topology;
    use super::super::topology::{MAX_POSITIONS, Shape};
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    /// Hops from `from` to every position, breadth first over the links themselves.
    fn distances(topology: &Topology, from: u32) -> Vec<u32> {
        let mut hops = vec![u32::MAX; topology.positions() as usize];
        hops[from as usize] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(position) = queue.pop_front() {
            for (there, _) in (0..6).filter_map(|port| topology.neighbour(position, port)) {
                if hops[there as usize] == u32::MAX {
                    hops[there as usize] = hops[position as usize] + 1;
                    queue.push_back(there);
                }
            }
        }
        hops
    }

    /// A channel of a link: (position it leaves, port, virtual channel).
    type Link = (u32, u8, u8);

    /// The links a packet takes; `datelines` off is the broken variant.
    fn path(
        topology: &Topology,
        source: u32,
        target: u32,
        class: Class,
        datelines: bool,
    ) -> Vec<Link> {
        let router = Router::new(topology);
        let (mut position, mut arrived, mut channel) = (source, HOST_PORT, class.channel(false));
        let mut links = Vec::new();
        loop {
            let (port, next) = router.step(router.here(position), arrived, channel, target);
            let Port::Link(port) = port else { return links };
            channel = if datelines {
                next
            } else {
                class.channel(false)
            };
            links.push((position, port, channel));
            (position, arrived) = topology
                .neighbour(position, port)
                .expect("routes follow links");
            assert!(
                links.len() <= topology.positions() as usize,
                "going round in circles"
            );
        }
    }

    /// Whether packets can wait for each other in a circle: a cycle among the links, where one
    /// depends on the next of some path.
    fn can_deadlock(topology: &Topology, datelines: bool) -> bool {
        let mut waits: BTreeMap<Link, BTreeSet<Link>> = BTreeMap::new();
        for source in 0..topology.positions() {
            for target in 0..topology.positions() {
                for pair in path(topology, source, target, Class::Request, datelines).windows(2) {
                    waits.entry(pair[0]).or_default().insert(pair[1]);
                }
            }
        }
        let mut done = BTreeSet::new();
        let starts: Vec<Link> = waits.keys().copied().collect();
        starts
            .into_iter()
            .any(|start| on_cycle(&waits, start, &mut BTreeSet::new(), &mut done))
    }

    fn on_cycle(
        waits: &BTreeMap<Link, BTreeSet<Link>>,
        at: Link,
        open: &mut BTreeSet<Link>,
        done: &mut BTreeSet<Link>,
    ) -> bool {
        if done.contains(&at) {
            return false;
        }
        if !open.insert(at) {
            return true;
        }
        let cyclic = waits
            .get(&at)
            .into_iter()
            .flatten()
            .any(|&next| on_cycle(waits, next, open, done));
        open.remove(&at);
        done.insert(at);
        cyclic
    }

    #[test]
    fn no_packets_wait_for_each_other_in_a_circle() {
        for text in [
            "mesh:4x4",
            "mesh:3x3x3",
            "torus:3x3",
            "torus:4x5",
            "torus:7x2",
            "torus:4x3x3",
            "torus:2x2x2",
            "torus:8x1",
        ] {
            assert!(!can_deadlock(&text.parse().unwrap(), true), "{text}");
        }
    }

    #[test]
    fn a_torus_without_datelines_is_found_out() {
        for text in ["torus:5x1", "torus:4x4", "torus:4x4x4"] {
            assert!(can_deadlock(&text.parse().unwrap(), false), "{text}");
        }
        assert!(!can_deadlock(&"mesh:4x4x2".parse().unwrap(), false));
    }

    #[test]
    fn the_product_and_shift_is_a_division() {
        for size in (1..2000).chain([
            4095,
            4096,
            4097,
            524_287,
            524_288,
            MAX_POSITIONS - 1,
            MAX_POSITIONS,
        ]) {
            let router = Router::new(&Topology::new(Shape::Mesh, &[size, 1]).unwrap());
            let multiples = (1..=MAX_POSITIONS / size)
                .rev()
                .take(50)
                .chain(1..50)
                .map(|n| n * size);
            for value in multiples
                .flat_map(|n| [n.saturating_sub(1), n, n + 1])
                .filter(|&n| n < MAX_POSITIONS)
            {
                assert_eq!(router.divide(value, 0), (value / size, value % size));
            }
        }
    }

    proptest! {
        #[test]
        fn every_route_is_as_short_as_any(topology in any_topology(7), seed in any::<u32>()) {
            let source = seed % topology.positions();
            for (target, hops) in distances(&topology, source).into_iter().enumerate() {
                let links = path(&topology, source, target as u32, Class::Response, true);
                prop_assert_eq!(links.len() as u32, hops);
                prop_assert!(links.iter().all(|link| Class::of_channel(link.2) == Class::Response));
                let dimensions: Vec<u8> = links.iter().map(|link| link.1 / 2).collect();
                prop_assert!(dimensions.is_sorted());
            }
        }

        #[test]
        fn random_topologies_are_free_of_circles(topology in any_topology(4)) {
            prop_assert!(!can_deadlock(&topology, true));
        }
    }
}
