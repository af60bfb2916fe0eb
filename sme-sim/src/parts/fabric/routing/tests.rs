//! Ways are minimal and closed circles do not exist, at sizes where every pair can be tried; and a
//! network of a million hosts.

use super::super::topology::TopologyKind;
use super::super::topology::tests::{any_grid, any_topology};
use super::*;
use crate::kernel::draw::Draws;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Hops from `from` to every position, breadth first over the links themselves, through positions
/// that are `allowed` only.
fn distances(topology: &Topology, from: u32, allowed: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut hops = vec![u32::MAX; topology.positions() as usize];
    hops[from as usize] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(position) = queue.pop_front() {
        let ports = 0..topology.ports(position);
        for (there, _) in ports.filter_map(|port| topology.neighbour(position, port)) {
            if hops[there as usize] == u32::MAX && allowed(there) {
                hops[there as usize] = hops[position as usize] + 1;
                queue.push_back(there);
            }
        }
    }
    hops
}

/// A channel of a link: (position it leaves, port, virtual channel).
type Link = (u32, u16, u8);

/// The links a packet takes; `datelines` off is the broken variant.
fn path(topology: &Topology, source: u32, target: u32, class: Class, datelines: bool) -> Vec<Link> {
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
            links.len() <= topology.positions() as usize && arrived < topology.ports(position),
            "going round in circles"
        );
    }
}

/// Returns whether packets can wait for each other in a circle: a cycle among the links, where one
/// depends on the next of some path.
fn can_deadlock(topology: &Topology, datelines: bool) -> bool {
    let mut waits: BTreeMap<Link, BTreeSet<Link>> = BTreeMap::new();
    for source in 0..topology.hosts() {
        for target in 0..topology.hosts() {
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
        "fattree:4x1",
        "fattree:6x2",
        "fattree:4x4",
        "dragonfly:1x4x2",
        "dragonfly:2x3x1",
        "dragonfly:2x4x2x5",
        "dragonfly:1x1x6",
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
fn a_dragonfly_on_one_channel_is_found_out() {
    for text in ["dragonfly:1x4x2", "dragonfly:2x3x1", "dragonfly:1x2x1"] {
        assert!(can_deadlock(&text.parse().unwrap(), false), "{text}");
    }
    assert!(!can_deadlock(&"fattree:4x3".parse().unwrap(), false));
}

/// Shifts by any distance share no link, which makes this routing the usual one in fat trees.
#[test]
fn shifts_by_any_distance_share_no_link_of_a_fat_tree() {
    for text in ["fattree:4x3", "fattree:6x2", "fattree:8x2", "fattree:4x1"] {
        let topology: Topology = text.parse().unwrap();
        let hosts = topology.hosts();
        for shift in 1..hosts {
            let mut taken = BTreeSet::new();
            for source in 0..hosts {
                let target = (source + shift) % hosts;
                for link in path(&topology, source, target, Class::Request, true) {
                    assert!(taken.insert(link), "{text}, shift {shift}: {link:?}");
                }
            }
        }
    }
}

#[test]
fn a_million_hosts_need_no_table() {
    let mut draws = Draws::new(7, 0);
    let mut below = |bound: u32| (draws.bits() % u64::from(bound)) as u32;
    // At most: up, l - 1 levels, and down; or host, local, global, local, host.
    for (text, hosts, most) in [
        ("fattree:160x3", 1_024_000, 6),
        ("fattree:52x4", 913_952, 8),
        ("fattree:4x19", 1 << 20, 38),
        ("dragonfly:23x46x23x991", 1_048_478, 5),
        ("dragonfly:22x44x22", 937_992, 5),
        ("torus:100x100x100", 1_000_000, 150),
        ("mesh:1024x1024", 1 << 20, 2046),
    ] {
        let topology: Topology = text.parse().unwrap();
        assert_eq!(topology.hosts(), hosts);
        let router = Router::new(&topology);
        // And nothing on the heap: it can be copied byte by byte, but for the derived `Clone`.
        assert!(size_of_val(&router) <= 64 && !std::mem::needs_drop::<Router>());
        for _ in 0..300 {
            let (source, target) = (below(hosts), below(hosts));
            let links = path(&topology, source, target, Class::Request, true);
            assert!(links.len() <= most, "{text}: {} hops", links.len());
            let position = below(topology.positions());
            for (port, (there, back)) in (0..topology.ports(position))
                .filter_map(|port| Some((port, topology.neighbour(position, port)?)))
            {
                assert_eq!(topology.neighbour(there, back), Some((position, port)));
            }
        }
    }
}

proptest! {
    #[test]
    fn every_route_is_as_short_as_any(topology in any_topology(7), seed in any::<u32>()) {
        let source = seed % topology.hosts();
        if topology.kind() == TopologyKind::Dragonfly {
            return Ok(());
        }
        for (target, hops) in (0..topology.hosts()).zip(distances(&topology, source, |_| true)) {
            let links = path(&topology, source, target, Class::Response, true);
            prop_assert_eq!(links.len() as u32, hops);
            prop_assert!(links.iter().all(|link| Class::of_channel(link.2) == Class::Response));
        }
    }

    #[test]
    fn dimensions_come_in_order(topology in any_grid(7), seed in any::<(u32, u32)>()) {
        let [source, target] = [seed.0, seed.1].map(|seed| seed % topology.positions());
        let links = path(&topology, source, target, Class::Request, true);
        let dimensions: Vec<u16> = links.iter().map(|link| link.1 / 2).collect();
        prop_assert!(dimensions.is_sorted());
    }

    /// As short as any way that leaves neither the source's nor the target's group, where these are
    /// joined by one link; by several, a local link at either end may come on top.
    #[test]
    fn a_dragonfly_takes_one_global_link(
        numbers in (1u32..4, 1u32..5, 1u32..4),
        groups in any::<Option<u32>>(),
        seed in any::<u32>(),
    ) {
        let (p, a, h) = numbers;
        let groups = groups.map_or(a * h + 1, |seed| 1 + seed % (a * h + 1));
        let topology = Topology::new(TopologyKind::Dragonfly, &[p, a, h, groups]).unwrap();
        let hosts = topology.hosts();
        let source = seed % hosts;
        for target in 0..hosts {
            let ends = [source / p / a, target / p / a];
            let near = |position: u32| match position.checked_sub(hosts) {
                Some(router) => ends.contains(&(router / a)),
                None => true,
            };
            let hops = distances(&topology, source, near)[target as usize];
            let links = path(&topology, source, target, Class::Response, true);
            let local = (p + a - 1) as u16;
            let is_global = |link: &&Link| link.0 >= hosts && link.1 >= local;
            let globals = links.iter().filter(is_global).count() as u32;
            prop_assert_eq!(globals, u32::from(ends[0] != ends[1]));
            let several = globals == 1 && a * h / (groups - 1) > 1;
            let more = links.len() as u32 - hops;
            prop_assert!(more == 0 || several && more <= 2, "{more} more than {hops}");
        }
    }

    #[test]
    fn random_topologies_are_free_of_circles(topology in any_topology(4)) {
        prop_assert!(!can_deadlock(&topology, true));
    }
}
