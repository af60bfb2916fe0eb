//! Programs over cached memory: how many accesses that hit a core's caches are simulated a second,
//! with and without the checker of stale reads, and how long a whole transform takes.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use sme::program::{CoherencePoint, FftKernel, Kernel, Mapped, Outcome, Program};
use sme_fft_demo::{Placement, Team};
use sme_memory::{Atomic, Place};
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;

/// The same transform again and again: after the first time all its data is in the caches.
struct Repeated {
    fft: FftKernel,
    times: u32,
}

impl Kernel for Repeated {
    fn phases(&self) -> Vec<&'static str> {
        self.fft.phases().repeat(self.times as usize)
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        self.fft.initial()
    }

    async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
        for _ in 0..self.times {
            self.fft.run(team).await;
        }
    }
}

fn program(nodes: u32, cores: u32, point: CoherencePoint, checked: bool) -> Program {
    let machine = Machine::builtin("sme-prototype").expect("the prototype is built in");
    Program {
        machine: Arc::new(machine),
        topology: Topology::for_nodes(nodes),
        memory_nodes: nodes,
        nodes,
        cores,
        mapped: Mapped::Cached,
        point,
        page_bytes: 64,
        checked,
        timeline: false,
        seed: 1,
        workers: 1,
    }
}

fn run(program: &Program, log2n: u32, times: u32) -> Outcome {
    let fft = FftKernel::random(program, log2n, Placement::Random).expect("the data fits");
    let kernel = Arc::new(Repeated { fft, times });
    let ran = program.run(&kernel, |_, _| ());
    ran.expect("the program ends").0
}

/// Nearly all accesses hit: one thread, 2^12 points, forty transforms of the same data.
fn hits(c: &mut Criterion) {
    let mut group = c.benchmark_group("fft, hits");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for checked in [false, true] {
        let program = program(1, 1, CoherencePoint::None, checked);
        let outcome = run(&program, 12, 40);
        group.throughput(Throughput::Elements(outcome.caches.hits));
        let name = if checked { "checked" } else { "not checked" };
        group.bench_function(name, |b| b.iter(|| black_box(run(&program, 12, 40))));
    }
    group.finish();
}

/// A transform with its fills, write-backs and barriers: 2^12 points on 16 nodes of 4 threads.
fn whole(c: &mut Criterion) {
    let mut group = c.benchmark_group("fft, 2^12 points on 16 x 4");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for checked in [false, true] {
        let program = program(16, 4, CoherencePoint::Barrier, checked);
        let name = if checked { "checked" } else { "not checked" };
        group.bench_function(name, |b| b.iter(|| black_box(run(&program, 12, 1))));
    }
    group.finish();
}

criterion_group!(benches, hits, whole);
criterion_main!(benches);
