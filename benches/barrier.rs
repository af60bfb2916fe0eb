//! How fast barriers are simulated: the wall time of one episode, whole cluster, one thread of the
//! host. Compare with BENCHMARKS.md.
//!
//! A measurement is a run of [`EPISODES`] episodes and the warm-up, with the cluster's building
//! included; its time is divided by all of them. The group `events` measures the same runs by
//! their simulated events, and says how many bytes of state a simulated thread takes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sme::experiment::{Algorithm, Experiment, Observe, Outcome, Placement};
use sme::progress::Silent;
use sme::validate::points::Variant;
use sme::validate::simulator::Simulator;
use sme_sim::machine::Machine;

const EPISODES: u32 = 50;

fn simulator() -> Simulator {
    let machine = Machine::builtin("sme-prototype").expect("it is built in");
    Simulator::new(Arc::new(machine), EPISODES, 1).expect("it can be simulated")
}

/// The barriers that are measured: 64 nodes of 16 threads on an 8×8 mesh, and 16 threads of one
/// node whose data is behind its own engine.
fn experiments() -> [(&'static str, Experiment); 5] {
    let simulator = simulator();
    let on = |algorithm, placement, nodes| {
        simulator.experiment(Variant::Prototype, algorithm, placement, nodes, 16)
    };
    [
        ("tree, 64x16", on(Algorithm::Tree, Placement::Local, 64)),
        ("flat, 64x16", on(Algorithm::Flat, Placement::Local, 64)),
        (
            "dissemination, 64x16",
            on(Algorithm::Dissemination, Placement::Local, 64),
        ),
        (
            "butterfly, 64x16",
            on(Algorithm::Butterfly, Placement::Local, 64),
        ),
        (
            "flag-phase behind the engine, 16 threads",
            on(Algorithm::FlagPhase, Placement::Engine, 1),
        ),
    ]
}

fn run(experiment: &Experiment) -> Outcome {
    let outcome = experiment.run(&Observe::default(), &Silent);
    outcome.expect("it ends well")
}

fn episodes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("episode");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(8));
    for (name, experiment) in experiments() {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|runs| {
                let begin = Instant::now();
                for _ in 0..runs {
                    black_box(run(&experiment));
                }
                begin.elapsed() / (EPISODES + 1)
            });
        });
    }
    group.finish();
}

fn event_rates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("events");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(8));
    for (name, experiment) in experiments() {
        let outcome = run(&experiment);
        println!(
            "{name}: {} bytes a simulated thread",
            outcome.bytes_per_thread
        );
        group.throughput(Throughput::Elements(outcome.events));
        group.bench_function(name, |bencher| bencher.iter(|| black_box(run(&experiment))));
    }
    group.finish();
}

criterion_group!(benches, episodes, event_rates);
criterion_main!(benches);
