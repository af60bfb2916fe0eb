//! Names and shapes are the same, links have two ends, and odd input is refused with a reason.

use super::*;
use proptest::prelude::*;

pub(crate) fn any_grid(side: u32) -> impl Strategy<Value = Topology> {
    (any::<bool>(), prop::collection::vec(1..=side, 2..=3)).prop_map(|(torus, sizes)| {
        Topology::new(
            if torus {
                TopologyKind::Torus
            } else {
                TopologyKind::Mesh
            },
            &sizes,
        )
        .unwrap()
    })
}

/// Of at most about a hundred hosts.
pub(crate) fn any_indirect() -> impl Strategy<Value = Topology> {
    let trees = prop::sample::select(vec![
        (2, 1),
        (2, 4),
        (4, 1),
        (4, 2),
        (4, 3),
        (4, 4),
        (6, 2),
        (6, 3),
        (8, 1),
        (8, 2),
        (10, 2),
    ]);
    let trees = trees.prop_map(|(radix, levels)| {
        Topology::new(TopologyKind::FatTree, &[radix, levels]).unwrap()
    });
    let dragonflies = (1u32..4, 1u32..5, 1u32..4, any::<(bool, u32)>());
    let dragonflies = dragonflies.prop_map(|(p, a, h, (named, seed))| {
        let groups = 1 + seed % (a * h + 1);
        let numbers = [p, a, h, groups];
        Topology::new(TopologyKind::Dragonfly, &numbers[..3 + usize::from(named)]).unwrap()
    });
    prop_oneof![trees, dragonflies]
}

pub(crate) fn any_topology(side: u32) -> impl Strategy<Value = Topology> {
    prop_oneof![any_grid(side), any_indirect()]
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
    assert_eq!(Topology::for_nodes(u32::MAX).positions(), MAX_HOSTS);
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
        "fattree:",
        "fattree:8",
        "fattree:8x3x2",
        "fattree:7x3",
        "fattree:8x0",
        "fattree:0x2",
        "fattree:1026x2",
        "fattree:1024x3",
        "fattree:2x4000000000",
        "fattree:4000000000x1",
        "dragonfly:2x4",
        "dragonfly:2x4x2x9x1",
        "dragonfly:2x0x2",
        "dragonfly:2x4x2x10",
        "dragonfly:200x40x17",
        "dragonfly:4000000000x4000000000x4000000000",
        "dragonfly:342x342x342",
    ] {
        let message = text.parse::<Topology>().unwrap_err().to_string();
        assert!(
            [
                "mesh:8x8",
                "torus:64x64x64",
                "fattree:16x3",
                ":4x8x4",
                ":16x32x16",
                "at most 9"
            ]
            .iter()
            .any(|good| message.contains(good)),
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

/// Every pair of groups has as many links as every other, and as many as there are ports for.
#[test]
fn the_groups_of_a_dragonfly_are_joined_evenly() {
    for text in [
        "dragonfly:1x4x2",
        "dragonfly:2x3x3x4",
        "dragonfly:1x4x3x6",
        "dragonfly:3x2x5x2",
    ] {
        let topology: Topology = text.parse().unwrap();
        let &[p, a, h, ref g @ ..] = topology.dimensions() else {
            unreachable!()
        };
        let g = g.first().copied().unwrap_or(a * h + 1);
        let group = |position: u32| ((position - topology.hosts()) / a) as usize;
        let mut links = vec![vec![0u32; g as usize]; g as usize];
        for router in topology.hosts()..topology.positions() {
            for port in (p + a - 1) as u16..topology.ports(router) {
                if let Some((there, _)) = topology.neighbour(router, port) {
                    links[group(router)][group(there)] += 1;
                }
            }
        }
        for (from, row) in links.iter().enumerate() {
            for (to, &count) in row.iter().enumerate() {
                let expected = if from == to { 0 } else { a * h / (g - 1) };
                assert_eq!(count, expected, "{text}: {from} to {to}");
            }
        }
    }
}

proptest! {
    #[test]
    fn text_and_topology_are_the_same(topology in any_topology(100)) {
        prop_assert_eq!(topology.to_string().parse::<Topology>().unwrap(), topology);
    }

    #[test]
    fn no_text_panics(text in ".*", sizes in "(mesh|torus|fattree|dragonfly):[0-9x]{0,30}") {
        for text in [text, sizes] {
            if let Ok(topology) = text.parse::<Topology>() {
                prop_assert!(topology.hosts() >= 1 && topology.hosts() <= MAX_HOSTS);
                prop_assert!(topology.positions() >= topology.hosts());
            }
        }
    }

    #[test]
    fn coordinates_name_one_position(topology in any_topology(12), seed in any::<u32>()) {
        let position = seed % topology.hosts();
        prop_assert_eq!(topology.position(topology.coordinates(position)), Some(position));
    }

    #[test]
    fn a_link_has_two_ends(topology in any_topology(6), seed in any::<u32>()) {
        let position = seed % topology.positions();
        for port in 0..=MOST_PORTS as u16 {
            let Some((there, back)) = topology.neighbour(position, port) else { continue };
            prop_assert!(port < topology.ports(position) && there < topology.positions());
            prop_assert_ne!(there, position);
            prop_assert_eq!(topology.neighbour(there, back), Some((position, port)));
        }
    }

    #[test]
    fn a_link_of_a_grid_is_one_step(topology in any_grid(6), seed in any::<u32>()) {
        let position = seed % topology.positions();
        for port in 0..8 {
            let Some((there, _)) = topology.neighbour(position, port) else { continue };
            let (a, b) = (topology.coordinates(position), topology.coordinates(there));
            prop_assert_eq!((0..3).filter(|&d| a[d] != b[d]).count(), 1);
        }
    }

    #[test]
    fn every_switch_outside_has_the_links_of_its_kind(topology in any_indirect()) {
        let links = |position| {
            let ports = 0..topology.ports(position);
            ports.filter_map(|port| topology.neighbour(position, port)).collect::<Vec<_>>()
        };
        for host in 0..topology.hosts() {
            let up = links(host);
            prop_assert!(up.len() == 1 && topology.is_switch(up[0].0));
        }
        for switch in topology.hosts()..topology.positions() {
            let of_switch = links(switch);
            let to_hosts = of_switch.iter().filter(|(there, _)| !topology.is_switch(*there));
            let to_hosts = to_hosts.count() as u32;
            match *topology.dimensions() {
                [radix, levels] => {
                    prop_assert_eq!(of_switch.len() as u32, radix);
                    let expected = [0, radix / 2, radix];
                    prop_assert!(expected.contains(&to_hosts) && (to_hosts < radix || levels == 1));
                }
                [hosts, routers, global, ref groups @ ..] => {
                    prop_assert_eq!(to_hosts, hosts);
                    let all = groups.first().is_none_or(|&groups| groups == routers * global + 1);
                    let links = of_switch.len() as u32;
                    prop_assert!(links <= topology.ports(switch).into());
                    prop_assert!(!all || links == hosts + routers - 1 + global);
                }
                _ => unreachable!("a grid"),
            }
        }
    }

    #[test]
    fn the_default_holds_the_nodes_without_an_empty_row(nodes in 1..=MAX_HOSTS) {
        let topology = Topology::for_nodes(nodes);
        let [width, height, _] = topology.sizes();
        prop_assert!(width * height >= nodes && width * (height - 1) < nodes);
        prop_assert!(width * width >= nodes && (width - 1) * (width - 1) < nodes);
    }
}
