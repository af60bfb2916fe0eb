//! The effect of operating systems' noise on a barrier as the machine grows: mean and 99th
//! percentile of the time from one barrier to the next, with and without noise, after T. Hoefler,
//! T. Schneider, A. Lumsdaine, "Characterizing the Influence of System Noise on Large-Scale
//! Applications by Simulation" (SC'10). Writes results/noise.csv and results/noise.svg.
//!
//! `cargo run --release --example noise`
//!
//! Numbers of nodes on the command line are simulated instead of 1 to 1024.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::{env, fs};

use sme::experiment::noise::{Disturbance, NoiseGaps, NoiseLengths, noise};
use sme::experiment::{Algorithm, Experiment, Observe, VariablePlacement};
use sme::plot::{Axis, Chart, Curve, Scaling, Stroke};
use sme::progress::{Silent, on_stderr};
use sme::report::row::{Row, Summary, csv_header};
use sme::report::stop::exit_code;
use sme::sim::machine::Machine;
use sme::sim::parts::fabric::Topology;
use sme::sim::time::Time;
use sme::validate::papers::sme::points::Variant;
use sme::validate::papers::sme::simulator::Simulator;

const MACHINE: &str = "sme-prototype";
/// Threads of a node, one on each socket.
const CORES: u32 = 4;
/// What each thread computes between two barriers.
const WORK: Time = Time::from_ns(1_000_000);
const EPISODES: u32 = 100;
const SEED: u64 = 1;
/// A noise takes a fortieth of every core.
const SHARE: u64 = 40;

/// A noise of the chart: name, period in microseconds, gaps and lengths, colour.
type Kind = (&'static str, u64, NoiseGaps, NoiseLengths, (u8, u8, u8));

const KINDS: [Kind; 4] = [
    (
        "2.5 ms, 10 Hz",
        100_000,
        NoiseGaps::Periodic,
        NoiseLengths::Constant,
        (203, 24, 29),
    ),
    (
        "250 µs, 100 Hz",
        10_000,
        NoiseGaps::Periodic,
        NoiseLengths::Constant,
        (241, 105, 19),
    ),
    (
        "250 µs, 100 Hz, random",
        10_000,
        NoiseGaps::Exponential,
        NoiseLengths::Exponential,
        (106, 81, 163),
    ),
    (
        "25 µs, 1 kHz",
        1_000,
        NoiseGaps::Periodic,
        NoiseLengths::Constant,
        (33, 113, 181),
    ),
];

fn main() -> ExitCode {
    exit_code(curves())
}

fn curves() -> Result<(), Box<dyn Error>> {
    let asked: Vec<u32> = env::args()
        .skip(1)
        .map(|nodes| nodes.parse().map_err(|error| format!("{nodes}: {error}")))
        .collect::<Result<_, _>>()?;
    let nodes = match asked.is_empty() {
        true => (0..=10).map(|power| 1 << power).collect(),
        false => asked,
    };
    let simulator = Simulator::new(Arc::new(Machine::builtin(MACHINE)?), EPISODES, SEED)?;
    let workers = available_parallelism().map_or(1, usize::from);

    let watch = on_stderr();
    watch.begin("runs", (nodes.len() * (1 + KINDS.len())) as u64);
    let mut csv = csv_header(false) + "\n";
    let mut curves = Vec::new();
    for kind in [None].into_iter().chain(KINDS.iter().map(Some)) {
        let (mut means, mut percentiles) = (Vec::new(), Vec::new());
        for &nodes in &nodes {
            let experiment = Experiment {
                topology: Topology::for_nodes(nodes),
                disturbance: disturbance(kind)?,
                workers,
                ..simulator.experiment(
                    Variant::Prototype,
                    Algorithm::Tree,
                    VariablePlacement::Local,
                    nodes,
                    CORES,
                )
            };
            let outcome = experiment.run(&Observe::default(), &Silent)?;
            let summary = Summary::new(&outcome.latencies);
            let threads = f64::from(nodes * CORES);
            means.push((threads, summary.mean.as_us()));
            percentiles.push((threads, summary.p99.as_us()));
            csv += &(Row::new(&experiment, &outcome, None).to_csv() + "\n");
            watch.advance(1);
        }
        let (label, colour) = kind.map_or(("none", (60, 60, 60)), |kind| (kind.0, kind.4));
        let curve = |group: &str, points, stroke| Curve {
            group: group.into(),
            label: label.into(),
            points,
            colour,
            stroke,
        };
        curves.push(curve("Noise: mean", means, Stroke::Dotted));
        curves.push(curve("99th percentile", percentiles, Stroke::Dashed));
    }
    watch.end();
    // The legend groups what stands together.
    curves.sort_by_key(|curve| curve.stroke == Stroke::Dashed);

    fs::create_dir_all("results")?;
    fs::write("results/noise.csv", csv)?;
    fs::write("results/noise.svg", chart(curves).to_svg()?)?;
    println!("results/noise.csv and results/noise.svg are written");
    Ok(())
}

fn disturbance(kind: Option<&Kind>) -> Result<Disturbance, Box<dyn Error>> {
    let noise = match kind {
        None => None,
        Some(&(_, microseconds, gaps, lengths, _)) => {
            let period = Time::from_ns(1_000 * microseconds);
            let duration = Time::from_ps(period.as_ps() / SHARE);
            Some(noise(period, duration, gaps, lengths, SEED)?)
        }
    };
    Ok(Disturbance {
        work: WORK,
        noise,
        ..Disturbance::default()
    })
}

fn chart(curves: Vec<Curve>) -> Chart {
    Chart {
        title: "A barrier under noise, over scale".into(),
        subtitle: format!(
            "{MACHINE}, simulated: {EPISODES} tree barriers, {CORES} threads per node, each with {} µs \
             of work before a barrier",
            WORK.as_us()
        ),
        x: Axis {
            label: "threads".into(),
            ticks: Vec::new(),
            scaling: Scaling::Logarithmic,
        },
        y: Axis {
            label: "from one barrier to the next, work included [µs]".into(),
            ticks: [1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000]
                .map(f64::from)
                .to_vec(),
            scaling: Scaling::Logarithmic,
        },
        curves,
        marks: Vec::new(),
        caption: vec![
            "All four take 2.5 % of every core, out of step with each other. Detours that only one \
             thread of a small machine meets now and then"
                .into(),
            "meet some thread of a large one in every episode, and all others wait: long rare \
             detours hurt, short frequent ones hardly do."
                .into(),
        ],
    }
}
