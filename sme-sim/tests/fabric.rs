//! Clusters on every kind of network: without load an access takes its hops and nothing else, and
//! under load nothing is lost.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::pin::Pin;

use sme_memory::{Memory, Place, Route};
use sme_sim::families::sme::cluster::Cluster;
use sme_sim::families::sme::engine::HOP_CYCLES;
use sme_sim::families::sme::engine::link_port::LinkPortSpec;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::machine::{Family, Machine, Readable, Setup, System};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::{Topology, TopologyKind};
use sme_sim::time::Time;

/// The access that is timed.
const LOAD: Span = Span::new("load", 0);

type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

fn machine(constants: &[(&str, &str)]) -> ClusterSpec {
    let prototype = Machine::builtin("sme-prototype").unwrap();
    sme_sim::families::sme::of(&prototype.with(constants).unwrap())
        .unwrap()
        .clone()
}

fn setup(spec: &ClusterSpec, topology: &Topology, nodes: u32) -> Setup {
    Setup::new(&spec.shape(), nodes, 1).on(topology.clone())
}

/// Measures the time of the only access of a cluster: a load of node `source` from node `target`.
fn load(spec: &ClusterSpec, topology: &Topology, source: u32, target: u32) -> Time {
    let program = |memory: ThreadMemory, node, _| -> Program {
        if node != source {
            return Box::pin(async {});
        }
        Box::pin(async move {
            let place = Place {
                node: target,
                offset: 0,
            };
            let word = memory.word(place, Route::Global);
            memory.begin(LOAD).await;
            memory.load(word).await;
            memory.end(LOAD).await;
        })
    };
    let mut cluster = Cluster::new(spec, setup(spec, topology, topology.hosts()), program).unwrap();
    cluster.run(1, |_| {}).unwrap();
    assert!(cluster.is_quiet());
    let times = cluster.spans().called(LOAD.name)[0];
    times.last_end.since(times.first_begin)
}

/// Links from one host to another, from what the networks are; not from how packets are routed.
fn hops(topology: &Topology, source: u32, target: u32) -> u32 {
    if source == target {
        return 0;
    }
    match (topology.kind(), topology.dimensions()) {
        (TopologyKind::Mesh | TopologyKind::Torus, sizes) => {
            let (from, to) = (topology.coordinates(source), topology.coordinates(target));
            let along = |dimension: usize| {
                let away = from[dimension].abs_diff(to[dimension]);
                match topology.kind() {
                    TopologyKind::Torus => away.min(sizes[dimension] - away),
                    _ => away,
                }
            };
            (0..sizes.len()).map(along).sum()
        }
        // Up to the lowest level where one switch has both below it, and down.
        (TopologyKind::FatTree, &[radix, levels]) => {
            let below = |level: u32| (radix / 2).pow(level);
            let shared =
                |&level: &u32| level == levels || source / below(level) == target / below(level);
            2 * (1..=levels).find(shared).unwrap()
        }
        (_, &[hosts, routers, global, ..]) => {
            let [from, to] = [source / hosts, target / hosts];
            let [from_group, to_group] = [from / routers, to / routers];
            if from_group == to_group {
                return 2 + u32::from(from != to);
            }
            // The one link between the groups, as it is wired.
            let local = hosts + routers - 1;
            let routers_of = |group| (0..routers).map(move |router| group * routers + router);
            let links = routers_of(from_group).flat_map(|router| {
                let ports = local as u16..(local + global) as u16;
                let ends = ports
                    .filter_map(move |port| topology.neighbour(topology.hosts() + router, port));
                ends.map(move |(there, _)| (router, there - topology.hosts()))
            });
            let mut links = links.filter(|(_, there)| there / routers == to_group);
            let (leaves, arrives) = links.next().unwrap();
            assert_eq!(links.next(), None, "several ways");
            3 + u32::from(leaves != from) + u32::from(arrives != to)
        }
        other => panic!("{other:?}"),
    }
}

/// Latency = ends + hops × 2 × (switch + serialization + transceivers and wire), to a picosecond.
fn check_zero_load(names: &[&str]) {
    let spec = machine(&[]);
    let clock = spec.engine.clock;
    let link = LinkPortSpec::new(spec.link.bytes_per_second, clock.hz(), 1);
    // A read request and its response have 16 bytes each; the last of a packet's cycles on a link
    // is that in which it is delivered.
    let serialization = link.cycles(16) - 1;
    let crossing = spec.link.crossing_cycles(clock);
    let per_hop = 2 * (HOP_CYCLES + serialization + crossing);
    // The time of a neighbour is published (1.89 us), and with it the part that all others have at
    // their ends.
    let neighbour = load(&spec, &"mesh:2x1".parse().unwrap(), 0, 1);
    assert!((1_880..1_900).contains(&(neighbour.as_ps() / 1_000)));
    for name in names {
        let topology: Topology = name.parse().unwrap();
        for source in 0..topology.hosts() {
            for target in (0..topology.hosts()).filter(|&target| target != source) {
                let more = u64::from(hops(&topology, source, target)) - 1;
                let expected = neighbour + clock.span(more * per_hop);
                let found = load(&spec, &topology, source, target);
                let off = found.as_ps().abs_diff(expected.as_ps());
                assert!(
                    off <= 1,
                    "{name}, {source} to {target}: {found}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn every_pair_of_a_fat_tree_is_as_far_as_its_hops() {
    check_zero_load(&["fattree:4x1", "fattree:4x2", "fattree:4x3", "fattree:6x2"]);
}

#[test]
fn every_pair_of_a_dragonfly_is_as_far_as_its_hops() {
    check_zero_load(&["dragonfly:2x2x1", "dragonfly:1x3x2", "dragonfly:2x4x1x4"]);
}

#[test]
fn every_pair_of_a_mesh_is_as_far_as_its_hops() {
    check_zero_load(&["mesh:5x5", "mesh:3x3x3"]);
}

#[test]
fn every_pair_of_a_torus_is_as_far_as_its_hops() {
    check_zero_load(&["torus:5x5", "torus:3x3x3"]);
}

/// End, events, and what each link carried: from, to, channel, bytes.
type Carried = (Time, u64, Vec<(u32, u32, u32, u64)>);

/// Every node stores to every other and reads that back, all at once; with the fewest credits.
fn all_to_all(name: &str, nodes: u32, workers: usize) -> Carried {
    let spec = machine(&[("link.channel_credits", "1"), ("engine.tags", "2")]);
    let topology = name.parse().unwrap();
    let program = |memory: ThreadMemory, node: u32, _| -> Program {
        Box::pin(async move {
            memory.counts().await;
            for other in (1..nodes).map(|step| (node + step) % nodes) {
                let place = Place {
                    node: other,
                    offset: 8 * u64::from(node),
                };
                let word = memory.word(place, Route::Global);
                memory
                    .store(word, u64::from(1 + node * nodes + other))
                    .await;
            }
            for other in (1..nodes).map(|step| (node + step) % nodes) {
                let place = Place {
                    node: other,
                    offset: 8 * u64::from(node),
                };
                let word = memory.word(place, Route::Global);
                let found = memory.load(word).await;
                assert_eq!(found, u64::from(1 + node * nodes + other));
            }
        })
    };
    let mut cluster = Cluster::new(&spec, setup(&spec, &topology, nodes), program).unwrap();
    cluster.run(workers, |_| {}).unwrap();
    assert!(cluster.is_quiet());
    for target in 0..nodes {
        for source in (0..nodes).filter(|&source| source != target) {
            let offset = 8 * u64::from(source);
            let place = Place {
                node: target,
                offset,
            };
            let expected = u64::from(1 + source * nodes + target);
            assert_eq!(cluster.at_home(place), expected);
        }
    }
    // A write has 24 bytes, a read and its response 16 each.
    let pairs = (0..nodes).flat_map(|source| (0..nodes).map(move |target| (source, target)));
    let all_hops: u32 = pairs
        .map(|(source, target)| hops(&topology, source, target))
        .sum();
    let loads = cluster.link_loads();
    let bytes: u64 = loads.iter().map(|load| load.bytes).sum();
    assert_eq!(bytes, u64::from(all_hops) * (24 + 16 + 16));
    let loads = loads.into_iter().filter(|load| load.bytes > 0);
    let loads = loads.map(|load| (load.from, load.to, load.channel, load.bytes));
    (cluster.end(), cluster.events(), loads.collect())
}

#[test]
fn what_everybody_stores_everywhere_arrives_whoever_simulates_it() {
    for (name, nodes) in [
        ("fattree:4x3", 16),
        ("fattree:6x2", 13),
        ("dragonfly:1x4x2", 36),
        ("dragonfly:2x3x1", 17),
        ("torus:4x4", 15),
    ] {
        let one = all_to_all(name, nodes, 1);
        assert_eq!(one, all_to_all(name, nodes, 3), "{name}");
    }
}
