//! `sme latency`: the budgets of single operations on a machine, a row for each and for each
//! distance.
//!
//! Called by [`super::main`]; simulated by [`crate::latency::budget`].

use std::collections::BTreeSet;

use clap::Args;
use sme_sim::machine::Machine;
use sme_sim::observe::path::Part;
use sme_sim::parts::fabric::Topology;

use super::args;
use super::flags::{FileFlags, Heading, MachineFlags};
use super::memory;
use super::read::{self, MAX_NODES, Values};
use crate::latency::LatencyError;
use crate::latency::budget::{Budget, Distance, budgets, distances};
use crate::report::explain;
use crate::report::output::Output;
use crate::report::row::{self, Cell};
use crate::report::stop::{Stop, one_line};
use crate::validate::papers;

/// The flags of `sme latency`.
#[derive(Args, Clone, Debug)]
pub struct LatencyFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// Network (e.g. mesh:8x8, torus:4x4x4, fattree:16x3 or dragonfly:4x8x4) [default: a mesh as
    /// square as the nodes allow, or what the machine's file says]
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// Nodes: the first N positions of the topology [default: all of --topology, else 16]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    nodes: Option<String>,
    /// Links between the two nodes, a list such as 0,1,4 or 1..8*2 [default: every distance from
    /// the first node]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    hops: Option<String>,
    #[command(flatten)]
    file: FileFlags,
}

/// A run whose flags fit together.
#[derive(Debug)]
pub struct LatencyRun {
    machine: Machine,
    topology: Topology,
    nodes: u32,
    homes: Vec<Distance>,
    file: FileFlags,
}

/// Nodes where neither `--nodes` nor `--topology` is given.
const NODES: u32 = 16;

impl LatencyRun {
    /// Reads the flags.
    pub fn read(flags: &LatencyFlags) -> Result<Self, Stop> {
        let machine = args::machine(&flags.machine)?;
        let count = |text: &String| {
            let counts = read::counts("--nodes", text, 1, MAX_NODES, Values::One)?;
            read::one("--nodes", counts)
        };
        let nodes = flags.nodes.as_ref().map(count).transpose()?;
        let topology = match &flags.topology {
            None => machine.shape().topology(nodes.unwrap_or(NODES)),
            Some(text) => read::one("--topology", read::topologies(text, Values::One)?)?,
        };
        let nodes = match (nodes, &flags.topology) {
            (Some(nodes), _) => nodes,
            (None, Some(_)) => args::nodes_on(&machine, &topology)?,
            (None, None) => NODES,
        };
        args::holds(&machine, &topology, nodes)?;
        let threads = 2 * u64::from(nodes);
        memory::enough(
            &format!("--nodes {nodes} --topology {topology}"),
            machine.shape().footprint.of(&topology, threads, 2),
            memory::available(),
        )?;
        let all = distances(&topology, machine.shape().homes(nodes));
        let homes = match &flags.hops {
            None => all,
            Some(text) => chosen(text, &all)?,
        };
        Ok(Self {
            machine,
            topology,
            nodes,
            homes,
            file: flags.file.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.file.heading(&keys(), false)
    }

    /// Simulates it, and writes its rows.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let measured = budgets(&self.machine, (&self.topology, self.nodes), &self.homes);
        let measured = measured.map_err(|error| match error {
            LatencyError::Build(_) => Stop::Input(one_line(&error.to_string())),
            LatencyError::Failure(_) => Stop::Failed(error.to_string()),
        })?;
        let rows: Vec<Vec<Cell>> = measured.iter().map(|budget| self.row(budget)).collect();
        output.push(&self.file.rendered(&keys(), &rows)?)?;
        output.commit()
    }

    fn row(&self, budget: &Budget) -> Vec<Cell> {
        let home = |of: fn(Distance) -> u32| match budget.home {
            Some(home) => Cell::Count(of(home).into()),
            None => Cell::Absent,
        };
        let mut cells = row::head(&self.machine, &self.topology).to_vec();
        cells.extend([
            Cell::Count(self.nodes.into()),
            Cell::text(budget.operation),
            home(|home| home.hops),
            home(|home| home.node),
            Cell::nanos(budget.total),
        ]);
        cells.extend(budget.parts.map(Cell::nanos));
        let hops = budget.home.map(|home| home.hops);
        let figures = papers::figures_of(&self.machine, budget.operation, hops);
        cells.push(match figures.is_empty() {
            true => Cell::text("none"),
            false => Cell::text(figures.join(" ")),
        });
        cells
    }
}

/// Reads `--hops text`: the nodes at those distances, of which there are `all`.
fn chosen(text: &str, all: &[Distance]) -> Result<Vec<Distance>, Stop> {
    let hops = read::counts("--hops", text, 0, MAX_NODES, Values::Many)?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = hops.iter().find(|&&hops| !seen.insert(hops)) {
        return Err(Stop::flag("--hops", format!("{twice} is given twice")));
    }
    let of_hops = |hops: u32| {
        let distance = all.iter().find(|distance| distance.hops == hops);
        distance.copied().ok_or_else(|| {
            let known: Vec<String> = all.iter().map(|d| d.hops.to_string()).collect();
            let reason = format!("no node is so far away; there are {}", known.join(", "));
            Stop::flag(&format!("--hops {hops}"), reason)
        })
    };
    hops.into_iter().map(of_hops).collect()
}

fn keys() -> Vec<String> {
    let before = ["nodes", "operation", "hops", "home_node", "total_ns"];
    let part = |part| format!("{}_ns", explain::name(part).replace('-', "_"));
    let before = row::HEAD.into_iter().chain(before).map(String::from);
    before
        .chain(Part::ALL.map(part))
        .chain(["validated".to_owned()])
        .collect()
}
