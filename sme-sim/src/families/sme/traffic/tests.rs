//! The fabric under traffic, as a whole: zero-load latency, conservation and what breaks it,
//! determinism, throughput below and beyond saturation, and a published bound of the delay.

use proptest::prelude::*;

use super::position::Position;
use super::*;
use crate::families::sme::engine::{Input, Output};
use crate::families::sme::spec::Forwarding;
use crate::machine::Machine;

fn spec() -> ClusterSpec {
    let machine = Machine::builtin("sme-prototype").expect("a built-in machine");
    crate::families::sme::of(&machine).unwrap().clone()
}

fn traffic_of(spec: &ClusterSpec, topology: &str, pattern: Pattern) -> Traffic {
    let topology: Topology = topology.parse().expect("a topology");
    let fabric = Fabric::new(spec, &topology, topology.hosts()).expect("a fabric");
    fabric.traffic(pattern).expect("traffic")
}

fn traffic(topology: &str, pattern: Pattern) -> Traffic {
    traffic_of(&spec(), topology, pattern)
}

/// A run with windows of these microseconds.
fn run(load: f64, [warmup, measure, drain]: [u64; 3]) -> Run {
    let us = |time| Time::from_ns(1_000 * time);
    Run {
        load,
        phases: Phases {
            warmup: us(warmup),
            measure: us(measure),
            drain: us(drain),
        },
        seed: 1,
        workers: 1,
    }
}

fn outcome(traffic: &Traffic, run: &Run) -> Outcome {
    traffic.run(run, |_| {}).expect("an outcome")
}

/// Positions with the cluster's engines, checked as those are.
fn positions(traffic: &Traffic, run: &Run) -> Vec<Position<Watched>> {
    let constants = &traffic.fabric.constants;
    traffic.positions(run, |position| {
        let plugged = Plugged::cycle(&traffic.fabric.design, position, constants.nodes);
        Watched::new(plugged, &constants.spec, position, constants.nodes)
    })
}

fn lookahead(traffic: &Traffic) -> Time {
    let constants = &traffic.fabric.constants;
    let span = constants.clock.span(constants.link_cycles);
    span.since(Time::from_ps(1))
}

/// With hardly any load every packet of a permutation takes, to the cycle, what the parts of its
/// way add up to; so the sink of each node sees one latency, that of the way from its source.
#[test]
fn an_idle_network_has_the_latency_of_the_formula() {
    for (topology, pattern) in [
        ("mesh:8x8", Pattern::BitComplement),
        ("mesh:5x3x2", Pattern::Neighbour),
        ("torus:5x4", Pattern::Tornado),
        ("mesh:4x4", Pattern::Transpose),
        ("fattree:4x3", Pattern::BitComplement),
        ("dragonfly:2x4x2", Pattern::Tornado),
    ] {
        for forwarding in [Forwarding::StoreAndForward, Forwarding::CutThrough] {
            check_zero_load(topology, pattern, forwarding);
        }
    }
}

fn check_zero_load(topology: &str, pattern: Pattern, forwarding: Forwarding) {
    let mut spec = spec();
    spec.link.forwarding = forwarding;
    let traffic = traffic_of(&spec, topology, pattern);
    let constants = Arc::clone(&traffic.fabric.constants);
    let run = run(0.002, [0, 400, 100]);
    let mut positions = positions(&traffic, &run);
    let measured = traffic
        .run_on(&mut positions, &run, &mut |_| {})
        .expect("a run");
    assert!(measured.packets > 20 && !measured.saturated, "{topology}");
    let mut seen = 0;
    for source in 0..constants.nodes {
        let aim = pattern.aim(&constants.topology, constants.nodes, source);
        let Aim::One(target) = aim else { continue };
        let alone = Traffic {
            loads: Loads {
                hops: hops(&constants.topology, source, target),
                ..traffic.loads
            },
            ..traffic.clone()
        };
        let mut latencies = positions[target as usize].tally().latencies.clone();
        if latencies.is_empty() {
            continue;
        }
        let latencies = Latencies::new(&mut latencies, constants.clock);
        let formula = alone.zero_load_latency();
        let apart = latencies.min.as_ps().abs_diff(formula.as_ps());
        assert!(apart <= 1, "{topology} {source}: {latencies:?} {formula}");
        assert_eq!(latencies.p50, latencies.min, "{topology} {source}");
        seen += 1;
    }
    assert!(seen > 5, "{topology}: {seen} nodes have seen a packet");
}

/// Links of a shortest way, breadth first: routes are minimal.
fn hops(topology: &Topology, from: u32, to: u32) -> f64 {
    let mut reached = vec![from];
    let mut known = vec![false; topology.positions() as usize];
    known[from as usize] = true;
    for hops in 0.. {
        if reached.contains(&to) {
            return f64::from(hops);
        }
        let mut next = Vec::new();
        for position in reached {
            for port in 0..topology.ports(position) {
                if let Some((there, _)) = topology.neighbour(position, port)
                    && !std::mem::replace(&mut known[there as usize], true)
                {
                    next.push(there);
                }
            }
        }
        reached = next;
    }
    unreachable!("the network is connected")
}

fn any_case() -> impl Strategy<Value = (&'static str, Pattern, f64, u32, u64)> {
    let topology = prop::sample::select(vec![
        "mesh:4x4",
        "torus:4x4",
        "torus:3x3x3",
        "mesh:5x2",
        "fattree:4x2",
        "dragonfly:1x2x1",
    ]);
    let pattern = prop::sample::select(&Pattern::ALL[..]);
    (topology, pattern, 0.05..1.0f64, 1u32..20, any::<u64>()).prop_filter(
        "the pattern exists",
        |&(topology, pattern, ..)| {
            let topology: Topology = topology.parse().expect("a topology");
            pattern.check(&topology, topology.hosts()).is_ok()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Below and beyond saturation, with few credits and many: when the sources have stopped,
    /// everything arrives where it was sent to, once, and every credit comes back.
    #[test]
    fn every_packet_arrives_once((topology, pattern, load, credits, seed) in any_case()) {
        let mut spec = spec();
        spec.link.channel_credits = credits;
        let traffic = traffic_of(&spec, topology, pattern);
        let run = Run { seed, ..run(load, [2, 6, 2]) };
        let mut positions = positions(&traffic, &run);
        window::run(&mut positions, lookahead(&traffic), 1, |_, _| (Verdict::Continue, Time::NEVER));
        let all = Traffic::tally(&positions);
        prop_assert!(all.all_sent > 0);
        prop_assert_eq!(all.check_all(), Ok(()));
        for position in &positions {
            position.engine().ended();
            prop_assert!(position.is_quiet());
        }
    }

    #[test]
    fn workers_change_nothing((topology, pattern, load, _, seed) in any_case()) {
        let traffic = traffic(topology, pattern);
        let run = Run { seed, ..run(load, [2, 6, 4]) };
        let alone = traffic.run(&run, |_| {});
        for workers in [2, 3] {
            prop_assert_eq!(&alone, &traffic.run(&Run { workers, ..run }, |_| {}));
        }
    }
}

#[test]
fn seeds_differ_and_the_same_seed_does_not() {
    let traffic = traffic("mesh:4x4", Pattern::Uniform);
    let of = |seed| {
        outcome(
            &traffic,
            &Run {
                seed,
                ..run(0.5, [5, 20, 20])
            },
        )
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).latencies, of(2).latencies);
}

/// An engine that does something wrong with one packet, or from one packet on.
struct Faulty {
    engine: Plugged,
    fault: Fault,
    /// Packets until then.
    after: u32,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Loses,
    Doubles,
    Misdirects,
    Changes,
    Stops,
}

impl EngineModel for Faulty {
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        // Doubled packets would return a credit twice, which the engine itself would find first.
        if !matches!((self.fault, &input), (Fault::Doubles, Input::HostCredit(_))) {
            self.engine.input(cycle, input);
        }
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.engine.step(cycle, out);
        let fault = self.fault;
        let concerned = |output: &Output| match fault {
            Fault::Doubles => matches!(output, Output::Host(_)),
            _ => matches!(output, Output::Link { .. }),
        };
        let Some(place) = out.iter().position(concerned) else {
            return;
        };
        self.after = self.after.saturating_sub(1);
        if self.after > 0 {
            return;
        }
        if !matches!(fault, Fault::Stops) {
            self.after = u32::MAX;
        }
        match (fault, &mut out[place]) {
            (Fault::Loses | Fault::Stops, _) => {
                out.remove(place);
            }
            (Fault::Doubles, &mut output) => out.push(output),
            (Fault::Misdirects, Output::Link { packet, .. }) => {
                // To wherever it can still be sent: to the neighbour it is on its way to anyhow.
                packet.target = u32::from(packet.target == 0);
            }
            (Fault::Changes, Output::Link { packet, .. }) => packet.data ^= 4,
            _ => {}
        }
    }
}

/// Runs it on engines of which one has this fault.
fn faulty(fault: Fault) -> Result<Outcome, TrafficError> {
    let mut spec = spec();
    // Enough for the whole run: see `Faulty::input`.
    spec.host.posted_credits = 1_024;
    let traffic = traffic_of(&spec, "torus:4x4", Pattern::Uniform);
    let run = run(0.2, [5, 20, 20]);
    let nodes = traffic.fabric.constants.nodes;
    let mut positions = traffic.positions(&run, |position| Faulty {
        engine: Plugged::cycle(&traffic.fabric.design, position, nodes),
        fault,
        after: match (position, fault) {
            (_, Fault::Stops) => 30,
            // In the middle of the measurement; fewer arrive than pass.
            (5, Fault::Doubles) => 60,
            (5, _) => 200,
            _ => u32::MAX,
        },
    });
    traffic.run_on(&mut positions, &run, &mut |_| {})
}

#[test]
fn whatever_engines_do_wrong_is_found() {
    for fault in [Fault::Loses, Fault::Doubles, Fault::Changes] {
        let found = faulty(fault);
        let changed = matches!(found, Err(TrafficError::Changed { .. }));
        assert!(changed, "{fault:?}: {found:?}");
    }
    let strayed = faulty(Fault::Misdirects);
    assert_eq!(strayed, Err(TrafficError::Strayed { packets: 1 }));
    let stuck = faulty(Fault::Stops);
    assert!(
        matches!(stuck, Err(TrafficError::Stuck { waiting: 1.., .. })),
        "{stuck:?}"
    );
}

#[test]
fn what_is_offered_below_saturation_is_accepted() {
    for (topology, pattern, load) in [
        ("mesh:8x8", Pattern::Uniform, 0.6),
        ("torus:4x4x4", Pattern::Uniform, 0.6),
        ("mesh:8x8", Pattern::Transpose, 0.2),
        ("torus:8x8", Pattern::Tornado, 0.3),
    ] {
        let traffic = traffic(topology, pattern);
        assert!(load < traffic.bound());
        let outcome = outcome(&traffic, &run(load, [10, 40, 40]));
        assert!(!outcome.saturated && outcome.undelivered == 0);
        // Of several thousand packets, four standard deviations.
        let noise = 4.0 / (outcome.packets as f64).sqrt();
        assert!((outcome.offered / load - 1.0).abs() < noise, "{outcome:?}");
        let apart = (outcome.accepted / outcome.offered - 1.0).abs();
        assert!(apart < noise, "{outcome:?}");
        assert!(
            outcome.latencies.mean
                > traffic
                    .zero_load_latency()
                    .times(9)
                    .since(traffic.zero_load_latency().times(8))
        );
    }
}

#[test]
fn beyond_saturation_a_run_ends_and_says_so() {
    let traffic = traffic("mesh:8x8", Pattern::Transpose);
    let short = |load, windows| outcome(&traffic, &run(load, windows));
    let outcome = short(0.9, [10, 20, 20]);
    assert!(outcome.saturated && outcome.undelivered > 0, "{outcome:?}");
    // Nodes whose way is not over the busiest link may have more accepted than the others.
    assert!(outcome.accepted < 0.7 * outcome.offered, "{outcome:?}");
    assert!(outcome.accepted > 0.8 * traffic.bound(), "{outcome:?}");
    assert!(outcome.end <= Time::from_ns(51_000));
    // Neither the shortest window nor a drain of no time is a mistake.
    for windows in [[0, 1, 0], [1, 1, 1]] {
        for load in [0.001, 0.9] {
            short(load, windows);
        }
    }
}

/// Greedy routing in dimension order on an n × n array, first come first served, with packets that
/// take a link one unit of time, is stable up to its capacity; and its mean delay is at most that
/// of queues with exponential service, Σ ρ/(1 - ρ) over the links by Little's law (M. Mitzenmacher,
/// Bounds on the Greedy Routing Algorithm for Array Networks, J. Computer and System Sciences 53,
/// 1996, which gives the bound as F. T. Leighton's; N. Kahale and F. T. Leighton, Greedy Dynamic
/// Routing on Arrays, J. Algorithms 29, 1998). What packets wait here, beyond the latency of an
/// idle network, is what they wait there: units are the cycles that a packet takes a link.
#[test]
fn packets_wait_no_longer_than_the_published_bound() {
    const SIDE: u32 = 8;
    let traffic = traffic("mesh:8x8", Pattern::Uniform);
    let constants = &traffic.fabric.constants;
    let unit = constants.clock.span(constants.packet_cycles).as_ns();
    for load in [0.5, 0.7, 0.85] {
        let outcome = outcome(&traffic, &run(load, [15, 40, 60]));
        let waited = (outcome.latencies.mean.as_ns() - traffic.zero_load_latency().as_ns()) / unit;
        // A line's i-th link, in either direction, is crossed from i nodes to the n - i others.
        let side = f64::from(SIDE);
        let rate = load * 4.0 / side;
        let queued: f64 = (1..SIDE)
            .map(|link| {
                let busy = rate * f64::from(link * (SIDE - link)) / side;
                busy * busy / (1.0 - busy)
            })
            .sum();
        let bound = 4.0 * side * queued / (rate * side * side);
        assert!(waited < bound, "{load}: {waited} {bound}");
        // And not by an order of magnitude less: half would be queues with constant service.
        assert!(waited > 0.2 * bound, "{load}: {waited} {bound}");
    }
}

#[test]
fn fabrics_that_cannot_be_measured_are_refused() {
    let refused = |spec: &ClusterSpec, topology: &str| {
        let topology: Topology = topology.parse().expect("a topology");
        Fabric::new(spec, &topology, topology.hosts()).map(|_| ())
    };
    let mut fast = spec();
    fast.link.bytes_per_second = 3_744_000_000;
    let host_port = TrafficError::HostPort {
        per_kilocycle: 2889,
    };
    assert_eq!(refused(&fast, "torus:3x3x3"), Err(host_port));
    assert_eq!(refused(&fast, "mesh:8x8"), Ok(()));
    assert!(matches!(
        refused(&spec(), "fattree:32x3"),
        Err(TrafficError::TooLarge { nodes: 8192, .. })
    ));
    assert!(matches!(
        refused(&spec(), "mesh:1x1"),
        Err(TrafficError::Alone { nodes: 1, .. })
    ));
}
