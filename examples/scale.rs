//! The cost of simulating one barrier on this computer, from 10^3 to 10^8 threads: time, events a
//! second, memory. Nodes of the exascale machine, with 741 threads each. Writes results/scale.csv;
//! BENCHMARKS.md has what came out, and says how it is drawn.
//!
//! `cargo run --release --example scale`
//!
//! Numbers of nodes on the command line are simulated instead, the smaller ones first; `WORKERS` in
//! the environment is how many threads of the host simulate.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use sme::experiment::{Algorithm, Experiment, Form, Observe, VariablePlacement};
use sme::host::peak_rss_bytes;
use sme::progress::{Silent, on_stderr};
use sme::report::stop::exit_code;
use sme::sim::machine::Machine;
use sme::validate::papers::sme::points::Variant;
use sme::validate::papers::sme::simulator::Simulator;

/// As in the program `sme`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MACHINE: &str = "exascale";
const CORES: u32 = 741;
/// 10^3 to 1.66·10^8 threads.
const NODES: [u32; 7] = [1, 14, 135, 1_350, 13_500, 135_000, 224_000];

/// What a run cost.
struct Cost {
    form: Form,
    threads: f64,
    events: u64,
    wall_s: f64,
    peak_rss_bytes: f64,
    bytes_per_thread: u64,
}

fn main() -> ExitCode {
    exit_code(costs())
}

fn costs() -> Result<(), Box<dyn Error>> {
    let asked: Vec<u32> = env::args()
        .skip(1)
        .map(|nodes| nodes.parse().map_err(|error| format!("{nodes}: {error}")))
        .collect::<Result<_, _>>()?;
    let nodes = match asked.is_empty() {
        true => NODES.to_vec(),
        false => asked,
    };
    let workers = match env::var("WORKERS") {
        Ok(text) => text
            .parse()
            .map_err(|error| format!("WORKERS={text}: {error}"))?,
        Err(_) => 1,
    };
    let watch = on_stderr();
    watch.begin("runs", nodes.len() as u64);
    let machine = Arc::new(Machine::builtin(MACHINE)?);
    let mut costs = Vec::new();
    for nodes in nodes {
        costs.push(cost(&machine, nodes, workers)?);
        watch.advance(1);
    }
    watch.end();

    let heading = "form,threads,events,time_s,events_per_s,memory_mb,bytes_per_thread\n";
    let rows = costs.iter().map(|c| {
        let rate = c.events as f64 / c.wall_s;
        let (form, threads, events, wall_s) = (c.form, c.threads, c.events, c.wall_s);
        let (memory, bytes) = (c.peak_rss_bytes / 1e6, c.bytes_per_thread);
        format!("{form},{threads},{events},{wall_s:.4},{rate:.0},{memory:.1},{bytes}\n")
    });
    let csv: String = [heading.to_owned()].into_iter().chain(rows).collect();
    print!("{csv}");
    fs::create_dir_all("results")?;
    fs::write("results/scale.csv", csv)?;
    println!("results/scale.csv is written");
    Ok(())
}

fn cost(machine: &Arc<Machine>, nodes: u32, workers: usize) -> Result<Cost, Box<dyn Error>> {
    let simulator = Simulator::new(Arc::clone(machine), 1, 1)?;
    let (variant, place) = (Variant::Prototype, VariablePlacement::Local);
    let experiment = Experiment {
        topology: machine.shape().topology(nodes),
        form: Form::Compact,
        workers,
        ..simulator.experiment(variant, Algorithm::Tree, place, nodes, CORES)
    };
    let began = Instant::now();
    let outcome = experiment.run(&Observe::default(), &Silent)?;
    Ok(Cost {
        form: experiment.form,
        threads: experiment.threads() as f64,
        events: outcome.events,
        wall_s: began.elapsed().as_secs_f64(),
        peak_rss_bytes: peak_rss_bytes().map_or(f64::NAN, |bytes| bytes as f64),
        bytes_per_thread: outcome.bytes_per_thread,
    })
}
