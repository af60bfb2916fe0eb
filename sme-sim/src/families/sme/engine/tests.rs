//! Whole engines: latencies, skipping, random traffic, broken variants.

use super::design::Design;
use super::testbench::{Bench, Fault, Faulty, Pace, Random, Traffic, machine};
use super::*;
use crate::families::sme::spec::{ClusterSpec, Forwarding};
use crate::parts::fabric::Topology;
use proptest::prelude::*;
use std::sync::Arc;

fn engines(spec: &ClusterSpec, topology: &Topology, hosts: u32) -> impl Fn(u32) -> Engine + use<> {
    let design = Arc::new(Design::new(spec, topology, hosts).expect("a machine that can be built"));
    move |node| {
        if node < hosts {
            Engine::with_design(&design, node)
        } else {
            Engine::switch_only(&design, node)
        }
    }
}

fn any_traffic(cycles: u64) -> impl Strategy<Value = Traffic> {
    (
        1u64..100,
        0u64..100,
        0u64..6,
        0u64..100,
        1u64..60,
        1u64..40,
        any::<u64>(),
    )
        .prop_map(
            move |(load, reads, faults, hot, sluggish, delay, seed)| Traffic {
                cycles,
                load,
                reads,
                faults,
                hot,
                sluggish,
                delay,
                seed,
            },
        )
}

fn any_machine() -> impl Strategy<Value = ClusterSpec> {
    let load_bytes = prop::sample::select(&[8u64, 16, 32, 64][..]);
    let machine = (1u32..=32, prop::array::uniform3(1u32..8), 1u32..6)
        .prop_map(|(tags, host, link)| machine(tags, host, link));
    (machine, load_bytes, any::<bool>()).prop_map(|(mut machine, bytes, cuts)| {
        machine.uncached.load_bytes = bytes;
        if cuts {
            machine.link.forwarding = Forwarding::CutThrough;
        }
        machine
    })
}

fn any_fabric() -> impl Strategy<Value = (Topology, u32)> {
    const SHAPES: [&str; 7] = [
        "mesh:2x1",
        "mesh:3x3",
        "torus:4x1",
        "torus:5x2",
        "torus:4x3",
        "mesh:2x2x2",
        "torus:3x3x3",
    ];
    (prop::sample::select(&SHAPES[..]), any::<u32>()).prop_map(|(text, seed)| {
        let topology: Topology = text.parse().expect("a topology");
        let hosts = topology.positions() - seed % topology.positions().min(3);
        (topology, hosts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_traffic_arrives_once_and_in_order((topology, hosts) in any_fabric(), spec in any_machine(), traffic in any_traffic(400)) {
        let mut bench = Bench::new(&spec, &topology, hosts, traffic.seed, engines(&spec, &topology, hosts));
        let drained = bench.run(&traffic, Pace::Skipping, 400_000);
        prop_assert_eq!(bench.finish(), Ok(()));
        prop_assert!(drained, "deadlock");
        bench.assert_complete();
        for node in &bench.nodes {
            prop_assert!(node.engine().is_quiet());
        }
    }

    #[test]
    fn skipping_idle_cycles_changes_nothing((topology, hosts) in any_fabric(), spec in any_machine(), traffic in any_traffic(300)) {
        let mut every = Bench::new(&spec, &topology, hosts, traffic.seed, engines(&spec, &topology, hosts));
        let mut some = Bench::new(&spec, &topology, hosts, traffic.seed, engines(&spec, &topology, hosts));
        prop_assert!(every.run(&traffic, Pace::Every, 400_000) && some.run(&traffic, Pace::Skipping, 400_000));
        prop_assert_eq!(&every.log, &some.log);
        prop_assert!(every.steps > some.steps);
        for (a, b) in every.nodes.iter().zip(&some.nodes) {
            prop_assert_eq!(a.engine().counters(), b.engine().counters());
        }
    }

    #[test]
    fn what_is_foreseen_comes_and_credits_nobody_awaits_can_be_late((topology, hosts) in any_fabric(), spec in any_machine(), traffic in any_traffic(300)) {
        let mut every = Bench::new(&spec, &topology, hosts, traffic.seed, engines(&spec, &topology, hosts));
        let mut ahead = Bench::new(&spec, &topology, hosts, traffic.seed, engines(&spec, &topology, hosts));
        prop_assert!(every.run(&traffic, Pace::Every, 400_000) && ahead.run(&traffic, Pace::Ahead, 400_000));
        every.log.sort_unstable();
        ahead.log.sort_unstable();
        prop_assert_eq!(&every.log, &ahead.log);
        for (a, b) in every.nodes.iter().zip(&ahead.nodes) {
            prop_assert_eq!(a.engine().counters(), b.engine().counters());
            prop_assert!(b.engine().is_quiet());
        }
    }

    #[test]
    fn the_order_in_which_inputs_of_an_edge_are_presented_does_not_matter(seed in any::<u64>()) {
        let topology: Topology = "mesh:3x3".parse().expect("a topology");
        let spec = machine(4, [8; 3], 8);
        let mut engines = [4, 4].map(|node| engines(&spec, &topology, 9)(node));
        let mut random = Random(seed);
        // On distinct wires, at a few edges, presented ahead of time.
        let mut inputs = Vec::new();
        for edge in [3, 4, 9] {
            for port in 0..4u16 {
                let target = random.below(9) as u32;
                let source = [5, 3, 7, 1][usize::from(port)];
                let packet = Packet { data: random.below(99), offset: 8, target, source, trace: 0, kind: Kind::PostedWrite, flag: true, tag: 0, enables: 255 };
                inputs.push((edge, Input::Link { port, channel: 0, packet }));
            }
            let address = (1 << 40) + (random.below(9) << 30);
            inputs.push((edge, Input::Host(HtPacket::Write { address, data: 5, enables: 255, coherent: false, trace: 1 })));
        }
        let mut logs = [Vec::new(), Vec::new()];
        for (engine, log) in engines.iter_mut().zip(&mut logs) {
            for &(edge, input) in &inputs {
                engine.input(edge, input);
            }
            for index in (1..inputs.len()).rev() {
                inputs.swap(index, random.below(index as u64 + 1) as usize);
            }
            for cycle in 0..80 {
                let mut out = Vec::new();
                engine.step(cycle, &mut out);
                log.push(out);
            }
        }
        prop_assert_eq!(&logs[0], &logs[1]);
    }
}

/// Does the checker of any node find the fault?
fn is_found(fault: Option<Fault>, seed: u64) -> bool {
    let topology: Topology = "torus:4x2".parse().expect("a topology");
    let spec = machine(8, [4; 3], 3);
    let sound = engines(&spec, &topology, 8);
    let faulty = |node| Faulty::new(sound(node), fault.filter(|_| node == 1), seed % 40);
    let mut bench = Bench::new(&spec, &topology, 8, seed, faulty);
    let traffic = Traffic {
        cycles: 800,
        load: 30,
        reads: 40,
        faults: 0,
        hot: 20,
        sluggish: 10,
        delay: 5,
        seed,
    };
    let drained = bench.run(&traffic, Pace::Skipping, 30_000);
    bench.finish().is_err() || !drained
}

#[test]
fn broken_engines_are_found_out() {
    use Fault::*;
    for seed in 0..6 {
        assert!(!is_found(None, seed), "a sound engine is taken for broken");
        for fault in [
            Drop,
            Duplicate,
            Alter,
            Swap,
            LeakLinkCredit,
            LeakHostCredit,
            DoubleCredit,
        ] {
            let found = std::panic::catch_unwind(|| is_found(Some(fault), seed));
            // The hosts' own account may be the first to notice, and panics.
            assert!(
                found.unwrap_or(true),
                "{fault:?} with seed {seed} is not found"
            );
        }
    }
}

/// Presents `input` at edge 0 and steps on; the cycle in which `wanted` comes out.
fn cycles_until(mut engine: Engine, input: Input, wanted: impl Fn(&Output) -> bool) -> u64 {
    engine.input(0, input);
    let mut out = Vec::new();
    while let Some(cycle) = engine.next_cycle() {
        engine.step(cycle, &mut out);
        if out.iter().any(&wanted) {
            return cycle;
        }
    }
    panic!("it never came out");
}

#[test]
fn engines_that_are_wrong_about_what_comes_are_found_out() {
    let topology: Topology = "torus:3x3".parse().expect("a topology");
    let spec = machine(8, [4; 3], 1);
    let traffic = Traffic {
        cycles: 200,
        load: 60,
        reads: 30,
        faults: 0,
        hot: 50,
        sluggish: 4,
        delay: 9,
        seed: 1,
    };
    let log = |fault, pace| {
        let engine = engines(&spec, &topology, 9);
        let faulty = |node| Faulty::new(engine(node), fault, 0);
        let mut bench = Bench::new(&spec, &topology, 9, traffic.seed, faulty);
        let drained = bench.run(&traffic, pace, 20_000);
        bench.log.sort_unstable();
        (drained, bench.log)
    };
    let right = log(None, Pace::Every);
    assert!(right == log(None, Pace::Ahead));
    for fault in [
        Fault::ForeseesEarly,
        Fault::PassesEarly,
        Fault::AwaitsNothing,
    ] {
        assert!(right != log(Some(fault), Pace::Ahead), "{fault:?}");
    }
}

#[test]
fn paths_take_the_documented_cycles() {
    let topology: Topology = "mesh:3x1".parse().expect("a topology");
    let spec = machine(32, [8; 3], 8);
    let engine = || engines(&spec, &topology, 3)(1);
    let serialization = 6 - 1;
    let write = |node: u64| {
        let address = (1 << 40) + (node << 30);
        Input::Host(HtPacket::Write {
            address,
            data: 1,
            enables: 255,
            coherent: true,
            trace: 0,
        })
    };
    let from_link = |target| {
        let kind = Kind::PostedWrite;
        let packet = Packet {
            data: 1,
            offset: 0,
            target,
            source: 0,
            trace: 0,
            kind,
            flag: true,
            tag: 0,
            enables: 1,
        };
        Input::Link {
            port: 1,
            channel: 0,
            packet,
        }
    };
    let to_link = |output: &Output| matches!(output, Output::Link { .. });
    let to_host = |output: &Output| matches!(output, Output::Host(_));
    assert_eq!(
        cycles_until(engine(), write(2), to_link),
        HOST_TO_LINK_CYCLES + serialization
    );
    assert_eq!(
        cycles_until(engine(), from_link(2), to_link),
        HOP_CYCLES + serialization
    );
    assert_eq!(
        cycles_until(engine(), from_link(1), to_host),
        LINK_TO_HOST_CYCLES
    );
    assert_eq!(cycles_until(engine(), write(1), to_host), LOOPBACK_CYCLES);
}

#[test]
fn a_loopback_read_takes_the_documented_cycles_both_ways() {
    let topology: Topology = "mesh:1x1".parse().expect("a topology");
    let mut engine = engines(&machine(32, [8; 3], 8), &topology, 1)(0);
    let read = HtPacket::Read {
        extra_words: 0,
        address: (1 << 40) + 64,
        enables: 255,
        tag: 9,
        trace: 5,
    };
    engine.input(10, Input::Host(read));
    let mut seen = Vec::new();
    let mut out = Vec::new();
    while let Some(cycle) = engine.next_cycle() {
        engine.step(cycle, &mut out);
        for output in out.drain(..) {
            let Output::Host(packet) = output else {
                continue;
            };
            seen.push((cycle, packet));
            engine.input(cycle + 1, Input::HostCredit(packet.channel()));
            if let HtPacket::Read { tag, .. } = packet {
                let answer = HtPacket::Response {
                    extra_words: 0,
                    data: 3,
                    single: false,
                    tag,
                    error: false,
                    trace: 0,
                };
                engine.input(cycle + 100, Input::Host(answer));
            }
        }
    }
    let memory = HtPacket::Read {
        extra_words: 0,
        address: (3 << 30) + 64,
        enables: 255,
        tag: 0,
        trace: 5,
    };
    let answer = HtPacket::Response {
        extra_words: 0,
        data: 3,
        single: false,
        tag: 9,
        error: false,
        trace: 5,
    };
    let there = 10 + LOOPBACK_CYCLES;
    assert_eq!(
        seen,
        [(there, memory), (there + 100 + LOOPBACK_CYCLES, answer)]
    );
    assert!(engine.is_quiet());
}

#[test]
fn a_link_is_used_without_gaps_and_stalls_are_counted() {
    let topology: Topology = "mesh:2x1".parse().expect("a topology");
    let spec = machine(32, [64; 3], 64);
    let mut engine = engines(&spec, &topology, 2)(0);
    for data in 0..20 {
        let address = (1 << 40) + (1 << 30);
        engine.input(
            0,
            Input::Host(HtPacket::Write {
                address,
                data,
                enables: 255,
                coherent: true,
                trace: 0,
            }),
        );
    }
    let mut delivered = Vec::new();
    let mut out = Vec::new();
    while let Some(cycle) = engine.next_cycle() {
        engine.step(cycle, &mut out);
        delivered.extend(
            out.drain(..)
                .filter(|output| matches!(output, Output::Link { .. }))
                .map(|_| cycle),
        );
    }
    assert!(
        delivered.windows(2).all(|pair| pair[1] - pair[0] == 6),
        "{delivered:?}"
    );
    let channel = engine.counters().links[0][0];
    assert_eq!(
        (channel.packets, channel.bytes, channel.busy_cycles),
        (20, 480, 120)
    );
    // Packet n could begin a cycle after packet n - 1 began, and has to wait for its last bytes.
    assert_eq!(channel.stall_cycles, 19 * 5);
    assert!(!engine.is_quiet(), "20 credits are not back");
}

#[test]
fn reads_without_a_tag_hold_up_neither_writes_nor_responses() {
    let topology: Topology = "mesh:2x1".parse().expect("a topology");
    let spec = machine(1, [8; 3], 8);
    let mut engine = engines(&spec, &topology, 2)(0);
    let address = (1 << 40) + (1 << 30);
    for tag in [7, 9] {
        engine.input(
            0,
            Input::Host(HtPacket::Read {
                extra_words: 0,
                address,
                enables: 255,
                tag,
                trace: 70 + u32::from(tag),
            }),
        );
    }
    engine.input(
        1,
        Input::Host(HtPacket::Write {
            address,
            data: 3,
            enables: 255,
            coherent: true,
            trace: 0,
        }),
    );
    let mut out = Vec::new();
    let mut run = |engine: &mut Engine| {
        while let Some(cycle) = engine.next_cycle() {
            engine.step(cycle, &mut out);
        }
        let seen = out.clone();
        out.clear();
        seen
    };
    let kinds = |outputs: &[Output]| -> Vec<(Kind, u8)> {
        let packets = outputs.iter().filter_map(|output| match output {
            Output::Link { packet, .. } => Some((packet.kind, packet.tag)),
            _ => None,
        });
        packets.collect()
    };
    assert_eq!(
        kinds(&run(&mut engine)),
        [(Kind::ReadRequest, 0), (Kind::PostedWrite, 0)]
    );
    let kind = Kind::ReadResponse;
    let packet = Packet {
        data: 5,
        offset: 0,
        target: 0,
        source: 1,
        trace: 77,
        kind,
        flag: false,
        tag: 0,
        enables: 0,
    };
    engine.input(
        200,
        Input::Link {
            port: 0,
            channel: 2,
            packet,
        },
    );
    let outputs = run(&mut engine);
    assert!(outputs.contains(&Output::Host(HtPacket::Response {
        extra_words: 0,
        data: 5,
        single: false,
        tag: 7,
        error: false,
        trace: 77
    })));
    assert_eq!(kinds(&outputs), [(Kind::ReadRequest, 0)]);
}

#[test]
fn an_address_outside_is_counted_with_the_first() {
    let topology: Topology = "mesh:2x2".parse().expect("a topology");
    let mut engine = engines(&machine(8, [8; 3], 8), &topology, 3)(0);
    for (index, node) in [3u64, 4, 9].into_iter().enumerate() {
        let address = (1 << 40) + (node << 30);
        engine.input(
            index as u64,
            Input::Host(HtPacket::Write {
                address,
                data: 0,
                enables: 255,
                coherent: false,
                trace: 0,
            }),
        );
    }
    engine.input(
        3,
        Input::Host(HtPacket::Read {
            extra_words: 0,
            address: 4096,
            enables: 255,
            tag: 3,
            trace: 1,
        }),
    );
    let mut out = Vec::new();
    while let Some(cycle) = engine.next_cycle() {
        engine.step(cycle, &mut out);
    }
    assert!(out.contains(&Output::Host(HtPacket::Response {
        extra_words: 0,
        data: u64::MAX,
        single: false,
        tag: 3,
        error: true,
        trace: 1
    })));
    let faults = engine.counters().faults;
    assert_eq!(
        (faults.dropped_writes, faults.first_dropped_write),
        (3, Some((1 << 40) + (3 << 30)))
    );
    assert_eq!(
        (faults.failed_reads, faults.first_failed_read),
        (1, Some(4096))
    );
}

#[test]
fn a_machine_that_cannot_be_built_is_refused() {
    let topology: Topology = "mesh:2x2".parse().expect("a topology");
    let good = machine(8, [8; 3], 8);
    assert!(Design::new(&good, &topology, 4).is_ok());
    assert!(Design::new(&good, &topology, 5).is_err() && Design::new(&good, &topology, 0).is_err());
    for bad in [
        machine(0, [8; 3], 8),
        machine(33, [8; 3], 8),
        machine(8, [8, 0, 8], 8),
        machine(8, [8; 3], 5000),
    ] {
        assert!(Design::new(&bad, &topology, 4).is_err());
    }
    let mut bad = good;
    bad.node.shared_bytes = 3 << 20;
    let message = Design::new(&bad, &topology, 4)
        .expect_err("not a power of two")
        .to_string();
    assert!(
        message.contains("node.shared_memory") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn an_engine_is_small() {
    let topology: Topology = "mesh:8x8".parse().expect("a topology");
    let spec = machine(32, [16; 3], 16);
    let mut engine = engines(&spec, &topology, 64)(27);
    for cycle in 0..2_000 {
        let address = (1 << 40) + ((cycle % 64) << 30);
        if cycle % 12 == 0 {
            engine.input(
                cycle,
                Input::Host(HtPacket::Write {
                    address,
                    data: 0,
                    enables: 255,
                    coherent: true,
                    trace: 0,
                }),
            );
        }
        let mut out = Vec::new();
        engine.step(cycle, &mut out);
        for output in out {
            match output {
                Output::Link { port, channel, .. } => {
                    engine.input(cycle + 50, Input::LinkCredit { port, channel })
                }
                Output::Host(packet) => {
                    engine.input(cycle + 50, Input::HostCredit(packet.channel()))
                }
                _ => {}
            }
        }
    }
    assert!(
        engine.state_bytes() <= 3 << 10,
        "{} bytes",
        engine.state_bytes()
    );
}
