//! At six ports it is the switch of an engine, cycle for cycle; networks of it lose nothing, keep
//! every flow in order and drain, however small their buffers.

use proptest::prelude::*;

use super::super::HOP_CYCLES;
use super::super::joined::Engine;
use super::super::packet::Kind;
use super::super::testbench::{Bench, Fault, Faulty, Pace, Random, Traffic, machine};
use super::*;
use crate::families::sme::cluster::Plugged;
use crate::parts::fabric::{Class, Topology};

fn design(topology: &Topology, credits: u32) -> Arc<Design> {
    let spec = machine(8, [8; 3], credits);
    Arc::new(Design::new(&spec, topology, topology.hosts()).expect("a sound machine"))
}

fn packet(random: &mut Random, target: u32, class: Class) -> Packet {
    let kind = match (class, random.below(2)) {
        (Class::Request, 0) => Kind::ReadRequest,
        (Class::Request, _) => Kind::PostedWrite,
        (Class::Response, 0) => Kind::ReadResponse,
        (Class::Response, _) => Kind::ErrorResponse,
    };
    Packet {
        data: random.below(1 << 40),
        offset: 8,
        target,
        source: 0,
        trace: 0,
        kind,
        flag: false,
        tag: 0,
        enables: if kind.has_address() { 255 } else { 0 },
    }
}

/// The surroundings of one switch: packets for any other position on any port and channel, and
/// receivers that return credits when they please.
struct Surroundings {
    random: Random,
    credits: Vec<[u32; CHANNELS]>,
    due: Vec<(u64, Input)>,
    load: u64,
    sluggish: u64,
}

impl Surroundings {
    /// Returns the inputs that the switch samples at the edge `cycle`.
    fn inputs(&mut self, cycle: u64, position: u32, hosts: u32) -> Vec<Input> {
        let mut inputs = Vec::new();
        self.due.retain(|&(edge, input)| {
            if edge == cycle {
                inputs.push(input);
            }
            edge > cycle
        });
        for port in 0..self.credits.len() {
            let channel = self.random.below(CHANNELS as u64) as u8;
            let credits = &mut self.credits[port][usize::from(channel)];
            if *credits == 0 || self.random.below(100) >= self.load {
                continue;
            }
            *credits -= 1;
            let other = (u64::from(position) + 1 + self.random.below(u64::from(hosts) - 1)) as u32;
            let packet = packet(&mut self.random, other % hosts, Class::of_channel(channel));
            let port = port as u16;
            inputs.push(Input::Link {
                port,
                channel,
                packet,
            });
        }
        inputs
    }

    fn takes(&mut self, cycle: u64, output: Output) {
        match output {
            Output::Link { port, channel, .. } => {
                let at = cycle + 1 + self.random.below(self.sluggish);
                self.due.push((at, Input::LinkCredit { port, channel }));
            }
            Output::LinkCredit { port, channel } => {
                self.credits[usize::from(port)][usize::from(channel)] += 1;
            }
            Output::Host(_) | Output::HostCredit(_) => panic!("there is no host"),
        }
    }
}

fn any_place() -> impl Strategy<Value = (Topology, u32)> {
    const NAMES: &[&str] = &[
        "mesh:3x3",
        "mesh:3x3x3",
        "torus:5x4",
        "torus:3x4x3",
        "mesh:2x1",
    ];
    (prop::sample::select(NAMES), any::<u32>()).prop_map(|(name, seed)| {
        let topology: Topology = name.parse().expect("a topology");
        let position = seed % topology.positions();
        (topology, position)
    })
}

/// The first cycle in which an engine's switch and `other` differ, if there is one.
fn first_difference(
    (topology, position): &(Topology, u32),
    credits: u32,
    traffic: (u64, u64, u64),
    mut other: impl Shortcuts,
) -> Option<u64> {
    let (load, sluggish, seed) = traffic;
    let mut engine = Engine::switch_only(&design(topology, credits), *position);
    let mut surroundings = Surroundings {
        random: Random(seed),
        credits: vec![[credits; CHANNELS]; usize::from(topology.ports(*position))],
        due: Vec::new(),
        load,
        sluggish,
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for cycle in 0..600 {
        let load_ends = cycle > 400;
        if load_ends {
            surroundings.load = 0;
        }
        for input in surroundings.inputs(cycle, *position, topology.hosts()) {
            engine.input(cycle, input);
            other.input(cycle, input);
        }
        if engine.next_cycle() != other.next_cycle() {
            return Some(cycle);
        }
        // Edges at which nothing can happen are sometimes stepped, sometimes not.
        if engine.next_cycle() == Some(cycle) || seed % 2 == 0 {
            engine.step(cycle, &mut ours);
            other.step(cycle, &mut theirs);
        }
        if ours != theirs {
            return Some(cycle);
        }
        theirs.clear();
        for output in ours.drain(..) {
            surroundings.takes(cycle, output);
        }
    }
    None
}

proptest! {
    #[test]
    fn with_six_ports_it_is_the_switch_of_an_engine(
        place in any_place(),
        credits in 1u32..5,
        traffic in (1u64..100, 1u64..40, any::<u64>()),
    ) {
        let wide = WideSwitch::new(&design(&place.0, credits), place.1);
        prop_assert_eq!(first_difference(&place, credits, traffic, wide), None);
    }

    #[test]
    fn what_it_counts_is_what_a_switch_of_an_engine_counts(
        place in any_place(),
        seed in any::<u64>(),
    ) {
        let design = design(&place.0, 2);
        let mut engine = Engine::switch_only(&design, place.1);
        let mut wide = WideSwitch::new(&design, place.1);
        let mut random = Random(seed);
        let hosts = u64::from(place.0.hosts());
        for port in 0..6 {
            for channel in 0..4 {
                let target = (u64::from(place.1) + 1 + random.below(hosts - 1)) % hosts;
                let packet = packet(&mut random, target as u32, Class::of_channel(channel));
                engine.input(0, Input::Link { port, channel, packet });
                wide.input(0, Input::Link { port, channel, packet });
            }
        }
        prop_assert!(!wide.is_quiet());
        let mut out = Vec::new();
        while let Some(cycle) = wide.next_cycle() {
            engine.step(cycle, &mut out);
            wide.step(cycle, &mut out);
        }
        prop_assert_eq!(engine.counters(), wide.counters());
        prop_assert_eq!(engine.is_quiet(), wide.is_quiet());
    }
}

/// Takes the outputs' next inputs in another order than the engine's switch.
struct Unfair(WideSwitch);

impl EngineModel for Unfair {
    fn next_cycle(&self) -> Option<u64> {
        self.0.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        self.0.input(cycle, input);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        for port in self.0.ports.iter_mut().flatten() {
            port.last = 23;
        }
        self.0.step(cycle, out);
    }
}

impl Shortcuts for Unfair {}

#[test]
fn a_switch_that_does_not_take_turns_is_found_out() {
    let place = ("mesh:3x3".parse().expect("a topology"), 4);
    let unfair = Unfair(WideSwitch::new(&design(&place.0, 3), place.1));
    assert!(first_difference(&place, 3, (60, 10, 4), unfair).is_some());
}

#[test]
fn a_hop_takes_as_long_as_one_through_an_engine() {
    let topology: Topology = "fattree:128x2".parse().expect("a topology");
    let leaf = topology.hosts();
    let mut wide = WideSwitch::new(&design(&topology, 4), leaf);
    let packet = packet(&mut Random(1), 100, Class::Request);
    let input = Input::Link {
        port: 3,
        channel: 0,
        packet,
    };
    wide.input(7, input);
    let mut out = Vec::new();
    while out.len() < 2 {
        let cycle = wide.next_cycle().expect("it is under way");
        wide.step(cycle, &mut out);
    }
    // Host 100 is number 36 below the second leaf: the port up is 64 + 36.
    let Output::Link { port, channel, .. } = out[1] else {
        panic!("{out:?}")
    };
    assert_eq!((port, channel), (100, 0));
    let serialization = design(&topology, 4).link_port.cycles(packet.bytes()) - 1;
    assert_eq!(wide.next_edge - 1, 7 + HOP_CYCLES + serialization);
}

/// Engines and switches of `topology` under random traffic of all hosts.
fn network(
    topology: &Topology,
    credits: u32,
    traffic: &Traffic,
    fault: Option<Fault>,
) -> Result<(), String> {
    let hosts = topology.hosts();
    let spec = machine(4, [4; 3], credits);
    let design = Arc::new(Design::new(&spec, topology, hosts).expect("a sound machine"));
    let plugged = |position| {
        let engine = Plugged::cycle(&design, position, hosts);
        // The first leaf or router.
        Faulty::new(
            engine,
            fault.filter(|_| position == hosts),
            traffic.seed % 40,
        )
    };
    let mut bench = Bench::new(&spec, topology, hosts, traffic.seed, plugged);
    let drained = bench.run(traffic, Pace::Skipping, 60_000);
    bench.finish().map_err(|violation| violation.to_string())?;
    if !drained {
        return Err("it did not drain".into());
    }
    bench.assert_complete();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn networks_of_switches_lose_nothing_and_drain(
        name in prop::sample::select(&[
            "fattree:4x1", "fattree:4x2", "fattree:4x3", "fattree:6x2",
            "dragonfly:1x4x2", "dragonfly:2x3x1", "dragonfly:2x4x2x5", "dragonfly:1x2x1",
        ][..]),
        credits in 1u32..4,
        (load, reads, hot) in (1u64..100, 0u64..100, 0u64..60),
        (sluggish, delay) in (1u64..40, 1u64..12),
        seed in any::<u64>(),
    ) {
        let traffic = Traffic { cycles: 400, load, reads, faults: 2, hot, sluggish, delay, seed };
        let topology = name.parse().expect("a topology");
        prop_assert_eq!(network(&topology, credits, &traffic, None), Ok(()));
    }
}

#[test]
fn broken_switches_are_found_out() {
    use Fault::*;
    let topology = "fattree:4x2".parse().expect("a topology");
    for seed in 0..4 {
        let traffic = Traffic {
            cycles: 600,
            load: 30,
            reads: 40,
            faults: 0,
            hot: 20,
            sluggish: 10,
            delay: 5,
            seed,
        };
        for fault in [Drop, Duplicate, Alter, Swap, LeakLinkCredit, DoubleCredit] {
            let found =
                std::panic::catch_unwind(|| network(&topology, 3, &traffic, Some(fault)).is_err());
            // The hosts' own account may be the first to notice, and panics.
            assert!(found.unwrap_or(true), "{fault:?} with seed {seed}");
        }
    }
}

#[test]
fn only_ports_in_use_take_memory() {
    let topology: Topology = "fattree:250x2".parse().expect("a topology");
    let wide = WideSwitch::new(&design(&topology, 4), topology.hosts());
    assert!(wide.state_bytes() < 4 << 10, "{} bytes", wide.state_bytes());
}
