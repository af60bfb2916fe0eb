//! Barriers on the machines of today: on hosts that share a CXL pool, and on accelerators behind
//! UALink switches. Prints the tables of docs/machines-today.md, and writes
//! results/machines-today.svg.
//!
//! `cargo run --release --example machines_today`

mod devices;
mod switches;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::sync::Arc;

use sme::experiment::{Algorithm, Experiment, Observe, Outcome, Part};
use sme::plot::{Axis, Chart, Curve, Page, Panel, Scaling, Stroke, compared};
use sme::progress::{Silent, Watch, on_stderr};
use sme::report::stop::exit_code;
use sme::sim::machine::Machine;
use sme::sim::time::Time;

/// As in the program `sme`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Barriers that are measured at each point.
const EPISODES: u32 = 20;

/// A machine and the points that are simulated of it.
struct Sweep {
    machine: &'static str,
    /// The name for its nodes.
    nodes_are: &'static str,
    nodes: &'static [u32],
    cores: &'static [u32],
}

const SWEEPS: [Sweep; 2] = [
    Sweep {
        machine: "cxl-pool",
        nodes_are: "hosts",
        nodes: &[2, 4, 8, 16, 32, 64],
        cores: &[1, 16],
    },
    Sweep {
        machine: "ualink",
        nodes_are: "accelerators",
        nodes: &[2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        cores: &[1, 16],
    },
];

/// An algorithm for each curve.
struct Contender {
    name: &'static str,
    algorithm: Algorithm,
    /// Of the tree.
    fan_in: u32,
    colour: (u8, u8, u8),
}

const CONTENDERS: [Contender; 5] = [
    contender("flat", Algorithm::Flat, 8, (203, 24, 29)),
    contender("tree, fan-in 8", Algorithm::Tree, 8, (33, 113, 181)),
    contender("tree, fan-in 32", Algorithm::Tree, 32, (107, 174, 214)),
    contender("dissemination", Algorithm::Dissemination, 8, (35, 139, 69)),
    contender("butterfly", Algorithm::Butterfly, 8, (128, 125, 186)),
];

const fn contender(
    name: &'static str,
    algorithm: Algorithm,
    fan_in: u32,
    colour: (u8, u8, u8),
) -> Contender {
    Contender {
        name,
        algorithm,
        fan_in,
        colour,
    }
}

/// The mean latencies of a sweep in microseconds: of each number of cores, of each contender, at
/// each number of nodes.
type Latencies = Vec<Vec<Vec<f64>>>;

fn main() -> ExitCode {
    exit_code(contest())
}

fn contest() -> Result<(), Box<dyn Error>> {
    let watch = on_stderr();
    let points: usize = SWEEPS.iter().map(Sweep::points).sum();
    watch.begin("points", points as u64);
    let mut panels = Vec::new();
    for sweep in &SWEEPS {
        let machine = Arc::new(Machine::builtin(sweep.machine)?);
        let latencies = sweep.simulate(&machine, &*watch)?;
        for (cores, latencies) in sweep.cores.iter().zip(&latencies) {
            print!("{}", sweep.table(&machine, *cores, latencies));
            panels.push(sweep.panel(*cores, latencies));
        }
        println!("{}", sweep.shares(&machine, &latencies)?);
    }
    watch.end();
    let dissemination = &CONTENDERS[3];
    println!("{}", devices::table(dissemination)?);
    print!("{}", switches::tables()?);
    fs::create_dir_all("results")?;
    let svg = compared(&panels, 2, Page::default())?;
    fs::write("results/machines-today.svg", svg)?;
    eprintln!("results/machines-today.svg is written");
    Ok(())
}

fn run(
    machine: &Arc<Machine>,
    contender: &Contender,
    (nodes, cores): (u32, u32),
    observe: &Observe<'_>,
) -> Result<Outcome, Box<dyn Error>> {
    let experiment = Experiment {
        topology: machine.shape().topology(nodes),
        nodes,
        cores,
        algorithm: contender.algorithm,
        fan_in: contender.fan_in,
        episodes: EPISODES,
        ..Experiment::new(Arc::clone(machine))
    };
    Ok(experiment.run(observe, &Silent)?)
}

impl Sweep {
    fn points(&self) -> usize {
        self.nodes.len() * self.cores.len() * CONTENDERS.len()
    }

    fn simulate(
        &self,
        machine: &Arc<Machine>,
        watch: &dyn Watch,
    ) -> Result<Latencies, Box<dyn Error>> {
        let at = |cores, contender, nodes| -> Result<f64, Box<dyn Error>> {
            let outcome = run(machine, contender, (nodes, cores), &Observe::default())?;
            watch.advance(1);
            Ok(outcome.mean_us())
        };
        let of_contender = |cores, contender| -> Result<Vec<f64>, Box<dyn Error>> {
            let nodes = self.nodes.iter();
            nodes.map(|&nodes| at(cores, contender, nodes)).collect()
        };
        let of_cores = |&cores: &u32| -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
            let contenders = CONTENDERS.iter();
            contenders
                .map(|contender| of_contender(cores, contender))
                .collect()
        };
        self.cores.iter().map(of_cores).collect()
    }

    /// Threads of a node, in words.
    fn threads(cores: u32) -> String {
        match cores {
            1 => "one thread each".to_owned(),
            _ => format!("{cores} threads each"),
        }
    }

    fn table(&self, machine: &Machine, cores: u32, latencies: &[Vec<f64>]) -> String {
        let (hash, threads) = (machine.hash(), Self::threads(cores));
        let machine = self.machine;
        let heads = CONTENDERS.iter().map(|contender| contender.name);
        let heads: Vec<&str> = [self.nodes_are].into_iter().chain(heads).collect();
        let mut text = format!(
            "`{machine}` ({hash}), {threads}: mean of {EPISODES} barriers [us]\n\n| {} |\n|{}\n",
            heads.join(" | "),
            "---:|".repeat(heads.len())
        );
        for (number, nodes) in self.nodes.iter().enumerate() {
            let of_row: Vec<f64> = latencies.iter().map(|of| of[number]).collect();
            let least = of_row.iter().copied().fold(f64::INFINITY, f64::min);
            let cells = of_row.iter().map(|&latency| {
                let us = format!("{latency:.2}");
                match latency == least {
                    true => format!("**{us}**"),
                    false => us,
                }
            });
            let cells: Vec<String> = [nodes.to_string()].into_iter().chain(cells).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text + "\n"
    }

    /// The critical path of the fastest barrier at the fewest and at the most nodes, by its parts.
    fn shares(
        &self,
        machine: &Arc<Machine>,
        latencies: &Latencies,
    ) -> Result<String, Box<dyn Error>> {
        let mut text = format!(
            "`{}`: critical path of the fastest barrier, one episode [ns]\n\n",
            self.machine
        );
        let mut rows = Vec::new();
        let mut columns: BTreeSet<(Part, Option<&'static str>)> = BTreeSet::new();
        let ends = [self.nodes.first(), self.nodes.last()];
        for &nodes in ends.into_iter().flatten() {
            for (&cores, latencies) in self.cores.iter().zip(latencies) {
                let number = self.nodes.iter().position(|&of| of == nodes).unwrap_or(0);
                let fastest = CONTENDERS.iter().zip(latencies);
                let Some((fastest, _)) =
                    fastest.min_by(|(_, a), (_, b)| a[number].total_cmp(&b[number]))
                else {
                    continue;
                };
                let observe = Observe {
                    critical_path: true,
                    ..Observe::default()
                };
                let outcome = run(machine, fastest, (nodes, cores), &observe)?;
                let mut spent: BTreeMap<(Part, Option<&'static str>), Time> = BTreeMap::new();
                for step in &outcome.critical_path {
                    let key = (step.part, step.queued_for);
                    let sum = spent.entry(key).or_default();
                    *sum += step.to.since(step.from);
                    columns.insert(key);
                }
                rows.push((nodes, cores, fastest.name, spent));
            }
        }
        let name = |&(part, queued_for): &(Part, Option<&str>)| match queued_for {
            Some(what) => format!("queueing for {what}"),
            None => format!("{part:?}").to_lowercase(),
        };
        let heads: Vec<String> = columns.iter().map(name).collect();
        text += &format!(
            "| {} | threads each | barrier | {} | in all |\n|---:|---:|---|{}---:|\n",
            self.nodes_are,
            heads.join(" | "),
            "---:|".repeat(heads.len())
        );
        for (nodes, cores, fastest, spent) in rows {
            let of = |key| spent.get(key).copied().unwrap_or_default();
            let cells: Vec<String> = columns
                .iter()
                .map(|key| format!("{:.0}", of(key).as_ns()))
                .collect();
            let all = spent.values().fold(Time::ZERO, |sum, &time| sum + time);
            text += &format!(
                "| {nodes} | {cores} | {fastest} | {} | {:.0} |\n",
                cells.join(" | "),
                all.as_ns()
            );
        }
        Ok(text)
    }

    fn panel(&self, cores: u32, latencies: &[Vec<f64>]) -> Panel {
        let nodes = || self.nodes.iter().map(|&nodes| f64::from(nodes));
        let curve = |(contender, of): (&Contender, &Vec<f64>)| Curve {
            group: String::new(),
            label: contender.name.into(),
            points: nodes().zip(of.iter().copied()).collect(),
            colour: contender.colour,
            // It is often as fast as dissemination, and would hide it.
            stroke: match contender.algorithm {
                Algorithm::Butterfly => Stroke::Dashed,
                _ => Stroke::Dotted,
            },
        };
        Panel {
            chart: Chart {
                title: format!("Barriers on {}", self.machine),
                subtitle: format!("{EPISODES} barriers, {}", Self::threads(cores)),
                x: Axis {
                    label: self.nodes_are.into(),
                    ticks: nodes().collect(),
                    scaling: Scaling::Logarithmic,
                },
                y: Axis {
                    label: "mean latency [us]".into(),
                    ticks: Vec::new(),
                    scaling: Scaling::Logarithmic,
                },
                curves: CONTENDERS.iter().zip(latencies).map(curve).collect(),
                marks: Vec::new(),
                caption: Vec::new(),
            },
            bands: Vec::new(),
            errors: Vec::new(),
        }
    }
}
