//! The critical path of an episode: its steps are contiguous and add up to the episode's latency
//! in any run; asking for it changes nothing; and it is critical: a machine on which something
//! takes longer needs longer by as often as that is on the path.

use std::sync::Arc;

use proptest::prelude::*;
use sme::experiment::{
    Algorithm, Disturbance, EngineKind, Experiment, FlagLayout, Form, Observe, Outcome, Part,
    PathStep, Pin, VariablePlacement,
};
use sme::progress::Silent;
use sme_barrier::{
    Barrier, Butterfly, ButterflySpec, Dissemination, DisseminationSpec, Layout, Mapping, Member,
    Ranks, Tree, TreeShape, TreeSpec,
};
use sme_sim::machine::Machine;
use sme_sim::machine::Setup;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::{Topology, TopologyKind};
use sme_sim::time::Time;

use crate::command::{cell, sme_in, stdout, text};

fn machine(overrides: &[(&str, String)]) -> Arc<Machine> {
    let prototype = Machine::builtin("sme-prototype").expect("built in");
    Arc::new(
        prototype
            .with(overrides)
            .expect("constants of the prototype"),
    )
}

fn experiment(algorithm: Algorithm, nodes: u32, cores: u32) -> Experiment {
    Experiment {
        engine: EngineKind::Cycle,
        machine: machine(&[]),
        algorithm,
        placement: VariablePlacement::Local,
        topology: Topology::for_nodes(nodes),
        nodes,
        cores,
        episodes: 3,
        seed: 1,
        pin: Pin::Scatter,
        layout: None,
        fan_in: 8,
        tree_shape: TreeShape::Heap,
        mapping: Mapping::SubMesh,
        local_fan_in: None,
        skew: Time::ZERO,
        disturbance: Disturbance::default(),
        workers: 1,
        form: Form::Auto,
    }
}

fn run(experiment: &Experiment, critical_path: bool) -> Outcome {
    let observe = Observe {
        critical_path,
        ..Observe::default()
    };
    experiment
        .run(&observe, &Silent)
        .expect("a barrier that holds")
}

/// Returns the mistake in `steps` as the path of an episode that took `latency`.
fn complaint(steps: &[PathStep], latency: Time) -> Option<String> {
    for step in steps {
        if step.from >= step.to {
            return Some(format!("takes no time: {step:?}"));
        }
        if step.queued_for.is_some() != (step.part == Part::Queueing) {
            return Some(format!("queues for nothing, or does not queue: {step:?}"));
        }
        if step.what.is_empty() || step.what == "before the trace" {
            return Some(format!("of unknown cause: {step:?}"));
        }
    }
    for pair in steps.windows(2) {
        if pair[0].to != pair[1].from {
            return Some(format!("not contiguous: {:?} then {:?}", pair[0], pair[1]));
        }
    }
    let total: u64 = steps.iter().map(|s| s.to.since(s.from).as_ps()).sum();
    (total != latency.as_ps()).then(|| format!("{total} ps of {latency}"))
}

fn anything() -> impl Strategy<Value = Experiment> {
    let algorithm = prop_oneof![
        Just(Algorithm::FlagPhase),
        Just(Algorithm::Flat),
        Just(Algorithm::Tree),
        Just(Algorithm::Dissemination),
        Just(Algorithm::Butterfly),
        Just(Algorithm::Pthread),
    ];
    let placement = prop_oneof![
        Just(VariablePlacement::Local),
        Just(VariablePlacement::Engine),
        Just(VariablePlacement::Remote),
        Just(VariablePlacement::Coherent),
    ];
    let layout = prop_oneof![
        Just(None),
        Just(Some(FlagLayout::Packed)),
        Just(Some(FlagLayout::Split)),
        Just(Some(FlagLayout::Padded)),
    ];
    let sizes = (1u32..13, 1u32..=16, 1u32..4, 2u32..9);
    let shape = (any::<bool>(), any::<bool>(), any::<bool>());
    let rest = (
        any::<u64>(),
        prop_oneof![Just(0u64), 1u64..20_000],
        1usize..4,
    );
    (algorithm, placement, layout, sizes, shape, rest).prop_map(
        |(algorithm, placement, layout, sizes, (compact, torus, groups), rest)| {
            let (nodes, cores, episodes, fan_in) = sizes;
            let (seed, skew, workers) = rest;
            let (nodes, placement) = match (algorithm, placement) {
                (Algorithm::Pthread, _) => (1, VariablePlacement::Local),
                (Algorithm::FlagPhase, VariablePlacement::Local | VariablePlacement::Engine) => {
                    (1, placement)
                }
                (Algorithm::FlagPhase, _) => (2, placement),
                _ => (nodes, VariablePlacement::Local),
            };
            let grid = if torus {
                TopologyKind::Torus
            } else {
                TopologyKind::Mesh
            };
            let mut anything = experiment(algorithm, nodes, cores);
            if nodes > 2 {
                anything.topology = Topology::new(grid, &[4, 3]).expect("a topology");
            }
            anything.placement = placement;
            anything.episodes = episodes;
            anything.fan_in = fan_in;
            anything.seed = seed;
            anything.skew = Time::from_ns(skew);
            anything.workers = workers;
            anything.layout = layout;
            anything.pin = if compact { Pin::Compact } else { Pin::Scatter };
            if groups {
                anything.tree_shape = TreeShape::Groups;
            }
            anything
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn steps_add_up_to_the_episode(experiment in anything()) {
        let outcome = run(&experiment, true);
        let latency = *outcome.latencies.last().expect("an episode");
        let found = complaint(&outcome.critical_path, latency);
        prop_assert_eq!(found, None);
        let outside = experiment.algorithm != Algorithm::Pthread;
        for step in &outcome.critical_path {
            prop_assert!(!outside || step.part != Part::OperatingSystem, "{:?}", step);
            // Every variable of these barriers has a name.
            prop_assert!(!step.what.contains(" byte "), "{:?}", step);
            let among = step.node < experiment.topology.positions();
            prop_assert!(among, "{:?}", step);
        }
    }

    #[test]
    fn asking_changes_nothing(experiment in anything()) {
        let (without, mut with) = (run(&experiment, false), run(&experiment, true));
        prop_assert!(without.critical_path.is_empty());
        with.critical_path.clear();
        // What the simulator keeps for it is another matter: a critical path has the readable form.
        with.bytes_per_thread = without.bytes_per_thread;
        prop_assert_eq!(format!("{without:?}"), format!("{with:?}"));
    }

    #[test]
    fn any_number_of_workers_finds_the_same_path(experiment in anything()) {
        let mut alone = experiment.clone();
        alone.workers = 1;
        prop_assert_eq!(run(&experiment, true).critical_path, run(&alone, true).critical_path);
    }
}

#[test]
fn a_path_with_a_gap_is_found_out() {
    let outcome = run(&experiment(Algorithm::Tree, 9, 4), true);
    let latency = *outcome.latencies.last().expect("an episode");
    let steps = outcome.critical_path;
    assert_eq!(complaint(&steps, latency), None);
    for missing in 0..steps.len() {
        let mut steps = steps.clone();
        steps.remove(missing);
        assert!(
            complaint(&steps, latency).is_some(),
            "without step {missing}"
        );
    }
}

/// Some barriers in a row, from the very beginning, as one episode: when the last thread leaves,
/// and the whole path to there.
fn in_a_row<B>(barrier: B, machine: &Machine) -> (Time, Vec<PathStep>)
where
    B: Barrier<ThreadMemory> + 'static,
{
    let barrier = Arc::new(barrier);
    // One core a node: nothing is drawn, so a change moves nothing but what it changes.
    let setup = Setup::new(machine.shape(), 16, 1).on(Topology::for_nodes(16));
    let setup = setup.seeded(0);
    let all = Span::new("all", 0);
    let build = machine.build(setup, |memory, node, core| {
        let barrier = Arc::clone(&barrier);
        async move {
            let mut local = B::Local::default();
            memory.begin(all).await;
            for _ in 0..6 {
                barrier
                    .wait(&memory, Member { node, core }, &mut local)
                    .await;
            }
            memory.end(all).await;
        }
    });
    let mut machine = build.expect("a machine");
    machine.trace_from(Time::ZERO);
    machine.run(1, |_| {}).expect("a barrier that holds");
    let end = machine.spans().called(all.name)[0].last_end;
    let path = machine.critical_path(all.into(), Time::ZERO, &|place| format!("{place:?}"));
    (end, path)
}

/// The cost of each of these crossings is one constant of the machine: where the path crosses it
/// `n` times, `n` times a longer constant is the least by which everything must take longer, and
/// `n` times a shorter one the most by which it can become shorter.
fn is_critical<B>(barrier: B)
where
    B: Barrier<ThreadMemory> + Clone + 'static,
{
    let cycle = 6.41;
    let constants: [(&str, u64, &str, f64, &[&str]); 4] = [
        ("link.serdes", 27, "cycles", cycle, &["crosses link"]),
        (
            "engine.ht_core",
            31,
            "cycles",
            cycle,
            &["enters the engine", "leaves the engine"],
        ),
        ("host.bridge", 60, "ns", 1.0, &["crosses the bridge"]),
        (
            "host.delay",
            5,
            "ns",
            1.0,
            &["goes to the host link", "comes over the host link"],
        ),
    ];
    for (constant, value, unit, scale, words) in constants {
        let with = |value: u64| {
            let machine = machine(&[(constant, format!("{value} {unit}"))]);
            in_a_row(barrier.clone(), &machine)
        };
        let (now, steps) = with(value);
        assert_eq!(complaint(&steps, now), None);
        let crosses = |s: &&PathStep| words.iter().any(|w| s.what.contains(w));
        let crossings = steps.iter().filter(crosses).count() as f64;
        assert!(crossings > 0.0, "{constant}");
        // Where a packet meets the next edge of another clock is not the same any more.
        let meetings = steps
            .iter()
            .filter(|s| s.what.contains("enters the engine"));
        let slack = cycle * meetings.count() as f64;
        // A wait for the bridge is one step, the waiting packet's, but what it lasts are the turns
        // of those ahead: each crosses the bridge too, a crossing that is on no step. So a bridge
        // that is shorter by d ends the wait earlier by d for each of them; nothing else may come
        // of it. A turn lasts as long as the crossing and memory: `held` at least.
        let held = 60.0 + 78.0;
        let waits = |s: &&PathStep| {
            words == ["crosses the bridge"] && s.what.contains("waits for the bridge")
        };
        let relief = |change: f64| -> f64 {
            let waits = steps.iter().filter(waits).map(|s| (s.to - s.from).as_ns());
            let ended = |wait: f64| {
                let ahead = 1.0 + (wait / held).floor();
                wait.min(-change * ahead).max(0.0)
            };
            waits.map(ended).sum()
        };
        for change in [-(value as i64) / 2, 10, 60] {
            let (then, _) = with(value.saturating_add_signed(change));
            let change = change as f64 * scale;
            let least = now.as_ns() + change * crossings - slack - relief(change);
            assert!(
                then.as_ns() >= least,
                "{now}, {constant} {change:+} on {crossings} steps: {then}, not {least} ns"
            );
        }
    }
}

/// `--explain-to` writes the same path as a file: its steps add up to what the table of `--explain`
/// says, and each that queues says for what.
#[test]
fn the_path_is_written_as_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let run = "barrier --nodes 64 --cores 1 --algorithm flat --episodes 2 --no-host";
    let explained = stdout(&format!("{run} --explain"));
    let total = cell(&explained, "total");
    let total: f64 = total.split_whitespace().next().unwrap().parse().unwrap();
    let plain = stdout(run);
    for file in ["path.csv", "path.json"] {
        let output = sme_in(directory.path(), &format!("{run} --explain-to {file}"));
        assert_eq!(text(&output.stderr), "", "{file}");
        assert_eq!(text(&output.stdout), plain, "{file}");
    }
    let read = |file| std::fs::read_to_string(directory.path().join(file)).unwrap();
    let json = read("path.json");
    let steps = json.lines().map(|line| serde_json::from_str(line).unwrap());
    let steps: Vec<serde_json::Value> = steps.collect();
    let sum: f64 = steps
        .iter()
        .map(|step| step["duration_ns"].as_f64().unwrap())
        .sum();
    assert!((sum - total).abs() < 1e-6, "{sum} ns of {total}");
    for step in &steps {
        let queues = step["part"] == "queueing";
        assert_eq!(step["queued_for"].is_string(), queues, "{step}");
    }
    assert!(steps.iter().any(|step| step["queued_for"] == "I/O bridge"));
    let csv = read("path.csv");
    assert!(
        csv.starts_with("at_ns,duration_ns,node,part,queued_for,what\n"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 1 + steps.len());
}

/// Not so the flat barrier: where all threads queue at one bridge, they wait for the
/// crossings of others, and a change alters who comes first.
#[test]
fn the_path_is_critical() {
    let ranks = Ranks::rows(16).expect("nodes");
    let layout = Layout::padded(64);
    let tree = |shape| TreeSpec {
        ranks: ranks.clone(),
        cores: 1,
        fan_in: 4,
        shape,
        layout,
    };
    is_critical(Tree::new(tree(TreeShape::Heap)).expect("a tree"));
    is_critical(Tree::new(tree(TreeShape::Groups)).expect("a tree"));
    let spec = DisseminationSpec {
        ranks: ranks.clone(),
        cores: 1,
        layout,
    };
    is_critical(Dissemination::new(spec).expect("a dissemination barrier"));
    let spec = ButterflySpec {
        ranks,
        cores: 1,
        layout,
    };
    is_critical(Butterfly::new(spec).expect("a butterfly"));
}

#[test]
fn polling_over_the_engine_is_mostly_queueing() {
    let mut polling = experiment(Algorithm::FlagPhase, 1, 16);
    polling.placement = VariablePlacement::Engine;
    polling.episodes = 5;
    let outcome = run(&polling, true);
    let spent = |part| -> u64 {
        let of_part = outcome.critical_path.iter().filter(|s| s.part == part);
        of_part.map(|s| s.to.since(s.from).as_ps()).sum()
    };
    let total: u64 = outcome.latencies.last().map_or(0, |l| l.as_ps());
    assert!(
        spent(Part::Queueing) > total / 2,
        "{:?}",
        outcome.critical_path
    );
    assert_eq!(spent(Part::Link), 0);
    assert_eq!(spent(Part::OperatingSystem), 0);
}

#[test]
fn the_reference_barrier_spends_its_time_in_the_system() {
    let outcome = run(&experiment(Algorithm::Pthread, 1, 16), true);
    let spent: u64 = outcome
        .critical_path
        .iter()
        .filter(|s| s.part == Part::OperatingSystem)
        .map(|s| s.to.since(s.from).as_ps())
        .sum();
    let total = outcome.latencies.last().map_or(0, |l| l.as_ps());
    assert!(spent > total * 9 / 10, "{:?}", outcome.critical_path);
}
