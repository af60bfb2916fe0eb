//! The cycles per second of a block as the cycle model, as RTL in rust-hdl's simulation, and as
//! Verilog compiled by Verilator, where that is installed: all under the same traffic, which was
//! recorded before. `sme rtl lockstep` runs two of them, the traffic and the comparison.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sme_hdl::bench::{Bench, find};
use sme_hdl::device::Device;
use sme_hdl::lockstep::Pair;
use sme_hdl::value::Value;
use sme_hdl::verilated::Toolchain;

const BLOCKS: [&str; 5] = ["fifo", "requester", "link_port", "switch", "engine"];
const SEED: u64 = 1;
const CYCLES: usize = 2000;

fn pair(bench: &Bench) -> Pair {
    (bench.build)(SEED, None)
}

/// Returns the values on the inputs of `bench`'s block, cycle by cycle.
fn recorded(bench: &Bench) -> Vec<Vec<Value>> {
    let words = pair(bench).run(CYCLES as u64, SEED).words;
    let again = pair(bench).replay(words, CYCLES);
    again
        .history
        .into_iter()
        .map(|cycle| cycle.inputs)
        .collect()
}

fn each_kind(criterion: &mut Criterion) {
    let toolchain = Toolchain::find().map_err(|error| eprintln!("verilated is left out: {error}"));
    for name in BLOCKS {
        let bench = find(name).expect("it is one of the blocks");
        let traffic = recorded(bench);
        let verilated = toolchain.as_ref().ok().map(|toolchain| {
            let built = toolchain.build(&*pair(bench).rtl);
            built.expect("its tools are there")
        });
        let mut group = criterion.benchmark_group(name);
        group
            .throughput(Throughput::Elements(CYCLES as u64))
            .sample_size(10);
        let mut measure = |kind, device: &dyn Fn() -> Box<dyn Device>| {
            group.bench_function(kind, |bencher| {
                bencher.iter_batched_ref(
                    device,
                    |device| run(&mut **device, &traffic),
                    BatchSize::PerIteration,
                );
            });
        };
        measure("cycle", &|| pair(bench).model);
        if let Some(model) = &verilated {
            measure("verilated", &|| Box::new(model.device()));
        }
        measure("rtl", &|| pair(bench).rtl);
        group.finish();
    }
}

fn run(device: &mut dyn Device, traffic: &[Vec<Value>]) {
    let mut outputs = Vec::new();
    for inputs in traffic {
        device.cycle(inputs, &mut outputs);
        black_box(&outputs);
    }
}

criterion_group!(benches, each_kind);
criterion_main!(benches);
