//! The speed at which barriers and locks are simulated: the wall time of one episode, or of one
//! hand-over, whole cluster, one thread of the host. Compare with BENCHMARKS.md.
//!
//! A measurement is a run of [`EPISODES`] episodes and the warm-up, with the cluster's building
//! included; its time is divided by all of them. The group `events` measures the same runs by
//! their simulated events, and says how many bytes of state a simulated thread takes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sme::experiment::{Algorithm, Experiment, Observe, Outcome, VariablePlacement};
use sme::lock::{Data, LockPlan};
use sme::progress::Silent;
use sme::validate::papers::sme::points::Variant;
use sme::validate::papers::sme::simulator::Simulator;
use sme_barrier::lock::LockKind;
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

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
        (
            "tree, 64x16",
            on(Algorithm::Tree, VariablePlacement::Local, 64),
        ),
        (
            "flat, 64x16",
            on(Algorithm::Flat, VariablePlacement::Local, 64),
        ),
        (
            "dissemination, 64x16",
            on(Algorithm::Dissemination, VariablePlacement::Local, 64),
        ),
        (
            "butterfly, 64x16",
            on(Algorithm::Butterfly, VariablePlacement::Local, 64),
        ),
        (
            "flag-phase behind the engine, 16 threads",
            on(Algorithm::FlagPhase, VariablePlacement::Engine, 1),
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

/// The lock of 16 nodes of 4 threads; before each measurement, how long a hand-over takes there.
fn hand_overs(criterion: &mut Criterion) {
    let machine = Arc::new(Machine::builtin("sme-prototype").expect("it is built in"));
    let mut group = criterion.benchmark_group("hand-over");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(8));
    for &data in Data::ALL {
        let plan = LockPlan {
            machine: Arc::clone(&machine),
            topology: Topology::for_nodes(16),
            nodes: 16,
            cores: 4,
            lock: LockKind::Cohort,
            acquisitions: 10,
            passes: 3,
            data,
            seed: 1,
            workers: 1,
        };
        let run = || plan.run().expect("it ends well");
        let report = run();
        let mean = |of: Option<Time>| of.map_or(f64::NAN, Time::as_us);
        println!(
            "{data}: simulated {:.2} us within a node, {:.2} us between nodes",
            mean(report.within.mean()),
            mean(report.across.mean()),
        );
        let count = report.within.count + report.across.count;
        group.throughput(Throughput::Elements(count));
        group.bench_function(data.name(), |bencher| bencher.iter(|| black_box(run())));
    }
    group.finish();
}

criterion_group!(benches, episodes, event_rates, hand_overs);
criterion_main!(benches);
