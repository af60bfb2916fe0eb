//! Noise of the operating system: what it does to one core, and to a machine that grows.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use crate::command::{sme, stdout, text};
use proptest::prelude::*;
use sme::experiment::noise::{
    Disturbance, Noise, NoiseGaps, NoiseLengths, SkewDistribution, noise,
};
use sme::experiment::{Algorithm, Experiment, Observe, Outcome, Part, VariablePlacement};
use sme::progress::Silent;
use sme::validate::papers::sme::points::Variant;
use sme::validate::papers::sme::simulator::Simulator;
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

const MS: Time = Time::from_ns(1_000_000);

fn experiment(algorithm: Algorithm, nodes: u32, cores: u32, episodes: u32) -> Experiment {
    let machine = Arc::new(Machine::builtin("sme-prototype").unwrap());
    let simulator = Simulator::new(machine, episodes, 1).unwrap();
    Experiment {
        topology: Topology::for_nodes(nodes),
        ..simulator.experiment(
            Variant::Prototype,
            algorithm,
            VariablePlacement::Local,
            nodes,
            cores,
        )
    }
}

fn run(experiment: &Experiment) -> Outcome {
    let observe = Observe {
        per_thread: true,
        ..Observe::default()
    };
    experiment.run(&observe, &Silent).unwrap()
}

fn periodic(period: Time, duration: Time, seed: u64) -> Noise {
    let (gaps, lengths) = (NoiseGaps::Periodic, NoiseLengths::Constant);
    noise(period, duration, gaps, lengths, seed).unwrap()
}

fn mean_us(outcome: &Outcome) -> f64 {
    let total: f64 = outcome.latencies.iter().map(|time| time.as_us()).sum();
    total / outcome.latencies.len() as f64
}

fn any_noise() -> impl Strategy<Value = Noise> {
    let gaps = prop::sample::select(NoiseGaps::ALL);
    let lengths = prop::sample::select(NoiseLengths::ALL);
    // Detours of up to a few of a barrier's steps, every few of them.
    let times = (1_000u64..60_000, 1u64..1_000);
    (gaps, lengths, times, any::<u64>()).prop_map(|(gaps, lengths, (period, share), seed)| {
        let period = Time::from_ns(period);
        let duration = Time::from_ps((period.as_ps() / 8 * share / 1_000).max(1));
        noise(period, duration, gaps, lengths, seed).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// From one barrier to the next every thread takes its work and the detours of its own core, no
    /// more and no less; and barriers hold under any noise.
    #[test]
    fn a_thread_is_delayed_by_the_detours_of_its_core(
        noise in any_noise(),
        work in 0u64..100_000,
        algorithm in prop::sample::select(vec![
            Algorithm::Tree, Algorithm::Flat, Algorithm::Dissemination, Algorithm::Butterfly,
        ]),
    ) {
        let work = Time::from_ns(work);
        let disturbance = Disturbance { work, noise: Some(noise), ..Disturbance::default() };
        let disturbed = Experiment { disturbance, ..experiment(algorithm, 4, 3, 4) };
        let outcome = run(&disturbed);
        prop_assert_eq!(outcome.per_thread.len(), 4 * 3 * 4);
        for next in &outcome.per_thread {
            let thread = u64::from(next.node * disturbed.cores + next.core);
            prop_assert_eq!(noise.resumes(thread, next.leave), next.leave, "it executes");
            let before = outcome.per_thread.iter().find(|before| {
                (before.node, before.core, before.episode + 1)
                    == (next.node, next.core, next.episode)
            });
            if let Some(before) = before {
                let arrives = match work {
                    Time::ZERO => before.leave,
                    _ => noise.end_of(thread, before.leave, work),
                };
                prop_assert_eq!(next.arrive, arrives);
            }
        }
        let parallel = Experiment { workers: 3, ..disturbed.clone() };
        prop_assert_eq!(run(&parallel).latencies, outcome.latencies);
    }

    /// The critical path is as long as the episode, and says what the operating system took.
    #[test]
    fn the_critical_path_has_no_gaps(seed in any::<u64>(), work in 1u64..200) {
        let work = Time::from_ns(1_000 * work);
        let noise = periodic(Time::from_ns(20_000), Time::from_ns(5_000), seed);
        let disturbance = Disturbance { work, noise: Some(noise), ..Disturbance::default() };
        let disturbed = Experiment { disturbance, ..experiment(Algorithm::Tree, 4, 2, 3) };
        let observe = Observe { critical_path: true, ..Observe::default() };
        let outcome = disturbed.run(&observe, &Silent).unwrap();
        let path = &outcome.critical_path;
        for pair in path.windows(2) {
            prop_assert_eq!(pair[0].to, pair[1].from);
        }
        let length = path.last().unwrap().to.since(path[0].from);
        prop_assert_eq!(length, outcome.latencies[2]);
        let of = |part| -> u64 {
            let steps = path.iter().filter(|step| step.part == part);
            steps.map(|step| step.to.since(step.from).as_ps()).sum()
        };
        // The thread on the path may have left the barrier before some detours sooner than the
        // last.
        prop_assert!(of(Part::Core) >= work.since(Time::from_ns(50_000)).as_ps());
        // No thread works so long without a detour.
        if work.as_ps() >= 80_000_000 {
            prop_assert!(of(Part::OperatingSystem) >= Time::from_ns(5_000).as_ps());
        }
    }
}

#[test]
fn without_disturbance_nothing_changes_and_each_seed_differs() {
    let quiet = experiment(Algorithm::Tree, 4, 4, 10);
    let run = |disturbance| {
        let latencies = |seed| {
            let disturbed = Experiment {
                seed,
                disturbance,
                skew: Time::from_ns(500),
                ..quiet.clone()
            };
            run(&disturbed).latencies
        };
        assert_eq!(latencies(1), latencies(1));
        assert_ne!(latencies(1), latencies(2));
        latencies(1)
    };
    let plain = run(Disturbance::default());
    // Noise so rare that no core of this run meets any.
    let rare = noise(
        Time::from_ns(1_000_000_000_000),
        Time::from_ps(1),
        NoiseGaps::Exponential,
        NoiseLengths::Constant,
        1,
    );
    let rare = Disturbance {
        noise: Some(rare.unwrap()),
        ..Disturbance::default()
    };
    assert_eq!(run(rare), plain);
    for skew_distribution in [SkewDistribution::Exponential, SkewDistribution::Normal] {
        let other = Disturbance {
            skew_distribution,
            ..Disturbance::default()
        };
        assert_ne!(run(other), plain);
    }
}

/// Hoefler, Schneider, Lumsdaine (SC'10): what a collective operation loses to noise grows with the
/// number of processes, until every operation meets the longest detour there is. At the same share
/// of every core, rare long detours end in far worse than frequent short ones.
#[test]
fn noise_is_amplified_with_scale_until_it_dominates() {
    let slowdowns = |period: Time| -> Vec<(f64, f64)> {
        let sizes = [1, 4, 16, 64, 256].into_iter();
        let duration = Time::from_ps(period.as_ps() / 40);
        let noise = periodic(period, duration, 5);
        let slowdown = |nodes| {
            let with = |noise| {
                let disturbance = Disturbance {
                    work: MS,
                    noise,
                    ..Disturbance::default()
                };
                let disturbed = Experiment {
                    disturbance,
                    ..experiment(Algorithm::Tree, nodes, 4, 20)
                };
                disturbed.run(&Observe::default(), &Silent).unwrap()
            };
            let (quiet, noisy) = (mean_us(&with(None)), with(Some(noise)));
            let least = noisy.latencies.iter().min().unwrap().as_us();
            let mean = mean_us(&noisy);
            let ideal = ideal_mean_us(&noise, 4 * u64::from(nodes), 20, quiet - MS.as_us());
            let more = (mean - ideal) / duration.as_us();
            assert!(
                (-0.05..0.6).contains(&more),
                "{nodes} nodes: {mean} µs, {ideal} µs"
            );
            (mean / quiet, least / quiet)
        };
        sizes.map(slowdown).collect()
    };
    let (rare, frequent) = (slowdowns(Time::from_ns(100_000_000)), slowdowns(MS));

    let mean: Vec<f64> = rare.iter().map(|slowdown| slowdown.0).collect();
    assert!(mean.is_sorted(), "{mean:?}");
    assert!(
        mean[0] < 1.4,
        "most episodes of a small machine meet none: {mean:?}"
    );
    assert!(mean[3] > 2.0 * mean[1], "{mean:?}");
    // At last every single episode takes the work and a whole detour: the noise is most of it.
    assert!(rare[4].1 > 3.3, "{rare:?}");
    assert!(
        mean[4] < 5.0,
        "work, a detour, and another on the way: {mean:?}"
    );

    // One detour for sure, hardly ever more than two, for any size.
    for (mean, _) in &frequent {
        assert!((1.02..1.08).contains(mean), "{frequent:?}");
    }
}

/// The mean time from one barrier to the next where a barrier takes `barrier` microseconds after
/// the last of `threads` threads has come, and nothing of it can be disturbed. In a real one, a
/// thread that has to pass something on may be away: of many threads, one is, for half a detour on
/// average.
fn ideal_mean_us(noise: &Noise, threads: u64, episodes: u64, barrier: f64) -> f64 {
    let barrier = Time::from_ps((barrier * 1e6) as u64);
    let mut left = Time::ZERO;
    let mut warm_up = Time::ZERO;
    for episode in 0..=episodes {
        let arrivals = (0..threads).map(|thread| noise.end_of(thread, left, MS));
        left = arrivals.max().unwrap() + barrier;
        if episode == 0 {
            warm_up = left;
        }
    }
    left.since(warm_up).as_us() / episodes as f64
}

#[test]
fn a_row_says_which_noise_it_was() {
    let flags = "barrier --nodes 2 --cores 2 --episodes 2 --no-host --format json";
    let json = |more: &str| -> serde_json::Value {
        serde_json::from_str(&stdout(&format!("{flags} {more}"))).unwrap()
    };
    let noisy = json(
        "--work 20us --skew 1us --skew-distribution normal --noise-period 10us --noise-duration \
         500ns --noise-distribution exponential --noise-duration-distribution exponential",
    );
    for (key, value) in [
        ("skew_distribution", serde_json::json!("normal")),
        ("work_ns", serde_json::json!(20_000.0)),
        ("noise_period_ns", serde_json::json!(10_000.0)),
        ("noise_duration_ns", serde_json::json!(500.0)),
        ("noise_distribution", serde_json::json!("exponential")),
        (
            "noise_duration_distribution",
            serde_json::json!("exponential"),
        ),
    ] {
        assert_eq!(noisy[key], value, "{key}");
    }
    let quiet = json("--noise-period 10us --noise-duration 0");
    assert_eq!(quiet, json(""));
    for key in ["skew_distribution", "noise_period_ns", "noise_duration_ns"] {
        assert!(quiet[key].is_null(), "{key}");
    }
    assert!(noisy["latency_min_us"].as_f64() > Some(20.0));
}

#[test]
fn noise_that_cannot_be_is_one_line_and_status_2() {
    for (flags, named) in [
        ("--noise-period 0 --noise-duration 1us", "--noise-period: "),
        (
            "--noise-period 1ns --noise-duration 1ns",
            "--noise-period: ",
        ),
        (
            "--noise-period 1ms --noise-duration 1ms",
            "--noise-duration: ",
        ),
        (
            "--noise-period 1ms --noise-duration 2ms",
            "--noise-duration: ",
        ),
        (
            "--noise-period 99s --noise-duration 2ms",
            "--noise-period: ",
        ),
        ("--noise-period 1ms", "--noise-period: "),
        (
            "--noise-period=-1ms --noise-duration 1us",
            "--noise-period: ",
        ),
        ("--work 18446744073709551615s", "--work: "),
        ("--work 1s --episodes 10000000", "--episodes 10000000: "),
    ] {
        let output = sme(&format!("barrier --nodes 1 --cores 1 {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let said = text(&output.stderr);
        assert!(
            said.starts_with(&format!("sme: {named}")),
            "{flags}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{flags}: {said}");
    }
}

/// The example, small: a row for each size and noise, and a chart of all.
#[test]
fn the_example_draws_mean_and_percentile() {
    let directory = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let name = format!("noise{}", std::env::consts::EXE_SUFFIX);
    let output = Command::new(profile.join("examples").join(name))
        .args(["1", "2"])
        .current_dir(directory.path())
        .output()
        .expect("the examples are built by `cargo test`");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    let results = directory.path().join("results");
    let csv = fs::read_to_string(results.join("noise.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 5 * 2);
    assert_eq!(csv.matches(",exponential,exponential,").count(), 2);
    let svg = fs::read_to_string(results.join("noise.svg")).unwrap();
    for label in ["99th percentile", "2.5 ms, 10 Hz", "threads", "[µs]"] {
        assert!(svg.contains(label), "{label}");
    }
}
