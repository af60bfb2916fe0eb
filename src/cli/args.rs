//! From flags to experiments: lists are read, names looked up, and everything that does not fit
//! together is refused before anything is simulated, in one line that names the flag.
//!
//! Called by `sme barrier` (one value a flag) and `sme sweep` (lists). The points of a sweep
//! come in the order of the row's columns: machine, set, algorithm, placement, topology, nodes,
//! cores, episodes, seed, pin, layout, fan-in, tree shape, mapping, skew; the last varies
//! fastest. Points that differ only in what their algorithm does not look at are one point.

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

use sme_barrier::{Mapping, TreeShape};
use sme_sim::fabric::{Topology, TopologyError};
use sme_sim::machine::{Dimension, Limits, Machine};
use sme_sim::time::Time;

use super::flags::ExperimentFlags;
use super::list;
use super::names::{self, applies};
use super::row;
use super::stop::Stop;
use crate::experiment::{Algorithm, Experiment, FlagLayout, Pin, Placement};

/// The most nodes, and the most positions of a topology.
pub const MAX_NODES: u32 = 1 << 20;
/// The most threads of one experiment.
pub const MAX_THREADS: u64 = 1 << 28;
/// The most counted episodes.
pub const MAX_EPISODES: u32 = 10_000_000;
/// The most points of one sweep.
pub const MAX_POINTS: usize = 100_000;
/// The most variants of machines in one sweep.
const MAX_MACHINES: usize = 10_000;
/// The most threads of the host.
pub const MAX_WORKERS: u64 = 1_024;
/// The tree that is calibrated on the published 64×1 row.
pub const DEFAULT_TREE_SHAPE: TreeShape = TreeShape::Heap;
/// The mapping that is calibrated on the published 64×1 row.
pub const DEFAULT_MAPPING: Mapping = Mapping::Rows;
/// The nodes of the paper's cluster.
const DEFAULT_NODES: u32 = 64;
/// Fan-in of the paper's tree (Sec. V-B).
const DEFAULT_FAN_IN: u32 = 8;
/// The most that an arrival can be delayed: a second.
const MAX_SKEW: Limits = Limits::new(Dimension::Time, 0, 1_000_000_000_000);

/// The one experiment that `flags` describe.
pub fn experiment(flags: &ExperimentFlags) -> Result<Experiment, Stop> {
    let mut points = Axes::read(flags, Values::One)?.points()?;
    match (points.pop(), points.pop()) {
        (Some(experiment), None) => Ok(experiment),
        _ => Err(Stop::Input("one experiment, not a list of them".into())),
    }
}

/// Every experiment that `flags` describe, in order.
pub fn points(flags: &ExperimentFlags) -> Result<Vec<Experiment>, Stop> {
    Axes::read(flags, Values::Many)?.points()
}

/// The machine called `name`, with the overrides `set`, each `section.key=value`.
pub fn machine(name: &str, set: &[String]) -> Result<Machine, Stop> {
    let mut machines = machines(name, set, Values::One)?;
    match (machines.pop(), machines.pop()) {
        (Some(machine), None) => Ok(machine),
        _ => Err(Stop::Input("one machine, not a list of them".into())),
    }
}

/// How many threads of the host `--flag text` asks for.
pub fn host_threads(flag: &str, text: &str) -> Result<usize, Stop> {
    let counts = numbers(flag, text, 1, MAX_WORKERS, Values::One)?;
    Ok(counts.first().map_or(1, |&count| count as usize))
}

/// Whether a flag takes one value or a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    One,
    Many,
}

/// What each flag may be; no value is checked against another yet.
struct Axes {
    machines: Vec<Arc<Machine>>,
    algorithms: Vec<Algorithm>,
    placements: Vec<Option<Placement>>,
    topologies: Vec<Option<Topology>>,
    nodes: Vec<Option<u32>>,
    cores: Vec<Option<u32>>,
    episodes: Vec<u32>,
    seeds: Vec<u64>,
    pins: Vec<Pin>,
    layouts: Vec<Option<FlagLayout>>,
    fan_ins: Vec<u32>,
    tree_shapes: Vec<TreeShape>,
    mappings: Vec<Mapping>,
    skews: Vec<Time>,
    workers: usize,
}

impl Axes {
    fn read(flags: &ExperimentFlags, values: Values) -> Result<Self, Stop> {
        let algorithms = enumeration("--algorithm", &flags.algorithm, values)?;
        for (flag, given, applies) in [
            (
                "--placement",
                flags.placement.is_some(),
                applies::placement as fn(Algorithm) -> bool,
            ),
            ("--layout", flags.layout.is_some(), applies::layout),
            ("--fan-in", flags.fan_in.is_some(), applies::tree),
            ("--tree-shape", flags.tree_shape.is_some(), applies::tree),
            ("--mapping", flags.mapping.is_some(), applies::mapping),
        ] {
            if given && !algorithms.iter().any(|&algorithm| applies(algorithm)) {
                return Err(Stop::flag(
                    flag,
                    format!("--algorithm {} does not use it", flags.algorithm),
                ));
            }
        }
        let count = |flag, text: &str, most: u32| counts(flag, text, 1, most, values);
        Ok(Self {
            machines: machines(&flags.machine, &flags.set, values)?
                .into_iter()
                .map(Arc::new)
                .collect(),
            algorithms,
            placements: optional(flags.placement.as_deref(), |text| {
                enumeration("--placement", text, values)
            })?,
            topologies: optional(flags.topology.as_deref(), |text| {
                topologies(text, values)
            })?,
            nodes: optional(flags.nodes.as_deref(), |text| {
                count("--nodes", text, MAX_NODES)
            })?,
            cores: optional(flags.cores.as_deref(), |text| {
                count("--cores", text, u32::MAX)
            })?,
            episodes: count("--episodes", &flags.episodes, MAX_EPISODES)?,
            seeds: numbers("--seed", &flags.seed, 0, u64::MAX, values)?,
            pins: enumeration("--pin", &flags.pin, values)?,
            layouts: optional(flags.layout.as_deref(), |text| {
                enumeration("--layout", text, values)
            })?,
            fan_ins: match &flags.fan_in {
                None => vec![DEFAULT_FAN_IN],
                Some(text) => counts("--fan-in", text, 2, MAX_NODES, values)?,
            },
            tree_shapes: match &flags.tree_shape {
                None => vec![DEFAULT_TREE_SHAPE],
                Some(text) => named("--tree-shape", text, TreeShape::NAMES, values)?,
            },
            mappings: match &flags.mapping {
                None => vec![DEFAULT_MAPPING],
                Some(text) => named("--mapping", text, Mapping::NAMES, values)?,
            },
            skews: skews(&flags.skew, values)?,
            workers: host_threads("--workers", &flags.workers)?,
        })
    }

    /// The cartesian product, first axis outermost, each point checked, repetitions left out.
    fn points(&self) -> Result<Vec<Experiment>, Stop> {
        let (Some(machine), Some(&algorithm), Some(&pin), Some(&tree_shape), Some(&mapping)) = (
            self.machines.first(),
            self.algorithms.first(),
            self.pins.first(),
            self.tree_shapes.first(),
            self.mappings.first(),
        ) else {
            return Ok(Vec::new());
        };
        let first = Draft {
            machine: machine.clone(),
            algorithm,
            placement: None,
            topology: None,
            nodes: None,
            cores: None,
            episodes: 1,
            seed: 0,
            pin,
            layout: None,
            fan_in: DEFAULT_FAN_IN,
            tree_shape,
            mapping,
            skew: Time::ZERO,
        };
        let drafts = expand(vec![first], &self.machines, |d, v| d.machine = v.clone())?;
        let drafts = expand(drafts, &self.algorithms, |d, v| d.algorithm = *v)?;
        let drafts = expand(drafts, &self.placements, |d, v| d.placement = *v)?;
        let drafts = expand(drafts, &self.topologies, |d, v| d.topology = v.clone())?;
        let drafts = expand(drafts, &self.nodes, |d, v| d.nodes = *v)?;
        let drafts = expand(drafts, &self.cores, |d, v| d.cores = *v)?;
        let drafts = expand(drafts, &self.episodes, |d, v| d.episodes = *v)?;
        let drafts = expand(drafts, &self.seeds, |d, v| d.seed = *v)?;
        let drafts = expand(drafts, &self.pins, |d, v| d.pin = *v)?;
        let drafts = expand(drafts, &self.layouts, |d, v| d.layout = *v)?;
        let drafts = expand(drafts, &self.fan_ins, |d, v| d.fan_in = *v)?;
        let drafts = expand(drafts, &self.tree_shapes, |d, v| d.tree_shape = *v)?;
        let drafts = expand(drafts, &self.mappings, |d, v| d.mapping = *v)?;
        let drafts = expand(drafts, &self.skews, |d, v| d.skew = *v)?;
        let mut points = Vec::with_capacity(drafts.len());
        let mut known = HashSet::new();
        for draft in drafts {
            let point = draft.build(self.workers)?;
            if known.insert(row::identity(&point)) {
                points.push(point);
            }
        }
        Ok(points)
    }
}

/// A point while its values are being filled in; `None` where the default depends on others.
#[derive(Clone)]
struct Draft {
    machine: Arc<Machine>,
    algorithm: Algorithm,
    placement: Option<Placement>,
    topology: Option<Topology>,
    nodes: Option<u32>,
    cores: Option<u32>,
    episodes: u32,
    seed: u64,
    pin: Pin,
    layout: Option<FlagLayout>,
    fan_in: u32,
    tree_shape: TreeShape,
    mapping: Mapping,
    skew: Time,
}

impl Draft {
    /// The point, if its values fit together.
    fn build(self, workers: usize) -> Result<Experiment, Stop> {
        let nodes = self.checked_nodes()?;
        let cores = self.checked_cores()?;
        let threads = u64::from(nodes) * u64::from(cores);
        if threads > MAX_THREADS {
            return Err(Stop::flag(
                &format!("--nodes {nodes} --cores {cores}"),
                format!("{threads} threads; at most {MAX_THREADS}"),
            ));
        }
        Ok(Experiment {
            machine: self.machine,
            algorithm: self.algorithm,
            placement: match self.placement {
                Some(placement) if applies::placement(self.algorithm) => placement,
                _ => Placement::Local,
            },
            topology: self.topology.unwrap_or_else(|| Topology::for_nodes(nodes)),
            nodes,
            cores,
            episodes: self.episodes,
            seed: self.seed,
            pin: self.pin,
            layout: self.layout.filter(|_| applies::layout(self.algorithm)),
            fan_in: self.fan_in,
            tree_shape: self.tree_shape,
            mapping: self.mapping,
            skew: self.skew,
            workers,
        })
    }

    fn checked_nodes(&self) -> Result<u32, Stop> {
        let placement = self.placement.unwrap_or(Placement::Local);
        let needed = nodes_needed(self.algorithm, placement);
        let positions = self.topology.as_ref().map(Topology::positions);
        let nodes = self.nodes.or(needed).or(positions).unwrap_or(DEFAULT_NODES);
        if let Some(needed) = needed.filter(|&needed| needed != nodes) {
            let algorithm = names::of(&self.algorithm);
            let what = match self.algorithm {
                Algorithm::FlagPhase => {
                    format!("{algorithm} with --placement {}", names::of(&placement))
                }
                _ => algorithm,
            };
            let plural = if needed == 1 { "" } else { "s" };
            return Err(Stop::flag(
                &format!("--nodes {nodes}"),
                format!("{what} runs on {needed} node{plural}"),
            ));
        }
        match &self.topology {
            Some(topology) if topology.positions() < nodes => Err(Stop::flag(
                &format!("--topology {topology}"),
                format!("its {} positions do not hold {nodes} nodes", topology.positions()),
            )),
            _ => Ok(nodes),
        }
    }

    fn checked_cores(&self) -> Result<u32, Stop> {
        let available = cores_per_node(&self.machine);
        let cores = self.cores.unwrap_or(available);
        if cores > available {
            return Err(Stop::flag(
                &format!("--cores {cores}"),
                format!("a node of {} has {available} cores", self.machine.name()),
            ));
        }
        Ok(cores)
    }
}

/// How many nodes an algorithm insists on.
fn nodes_needed(algorithm: Algorithm, placement: Placement) -> Option<u32> {
    match (algorithm, placement) {
        (Algorithm::FlagPhase, Placement::Local | Placement::Engine) => Some(1),
        (Algorithm::FlagPhase, Placement::Remote | Placement::Coherent) => Some(2),
        (Algorithm::Pthread, _) => Some(1),
        _ => None,
    }
}

/// Cores of a node of `machine`: the most threads that it can run.
pub fn cores_per_node(machine: &Machine) -> u32 {
    let node = &machine.cluster().node;
    node.sockets.saturating_mul(node.cores_per_socket)
}

/// Each of `drafts` once for each of `values`, in this order.
fn expand<T>(
    drafts: Vec<Draft>,
    values: &[T],
    assign: impl Fn(&mut Draft, &T),
) -> Result<Vec<Draft>, Stop> {
    let count = drafts.len().checked_mul(values.len());
    if count.is_none_or(|count| count > MAX_POINTS) {
        return Err(Stop::Input(format!(
            "a sweep of more than {MAX_POINTS} points: shorten its lists"
        )));
    }
    let assigned = |draft: Draft| {
        let assign = &assign;
        values.iter().map(move |value| {
            let mut draft = draft.clone();
            assign(&mut draft, value);
            draft
        })
    };
    Ok(drafts.into_iter().flat_map(assigned).collect())
}

/// Every machine with every combination of overrides.
fn machines(name: &str, set: &[String], values: Values) -> Result<Vec<Machine>, Stop> {
    // A file may have any name: only a sweep splits at commas.
    let names = match values {
        Values::One => vec![name],
        Values::Many => words("--machine", name, values)?,
    };
    let mut overrides: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for text in set {
        let flag = format!("--set {text}");
        let Some((key, list)) = text.split_once('=') else {
            return Err(Stop::flag(&flag, "write SECTION.KEY=VALUE"));
        };
        let key = key.trim();
        if overrides.iter().flatten().any(|&(known, _)| known == key) {
            return Err(Stop::flag(&flag, format!("{key} is given twice")));
        }
        let list = words(&flag, list, values)?;
        let count = overrides.len().saturating_mul(list.len());
        if count.saturating_mul(names.len()) > MAX_MACHINES {
            return Err(Stop::flag(
                &flag,
                format!("more than {MAX_MACHINES} combinations of machine constants"),
            ));
        }
        let mut longer = Vec::with_capacity(count);
        for pairs in &overrides {
            for value in &list {
                longer.push([pairs.as_slice(), &[(key, *value)]].concat());
            }
        }
        overrides = longer;
    }
    let mut machines = Vec::new();
    for name in names {
        let plain = Machine::load(name).map_err(|error| Stop::flag("--machine", error))?;
        for pairs in &overrides {
            let machine = plain.with(pairs).map_err(|error| Stop::flag("--set", error))?;
            machines.push(machine);
        }
    }
    Ok(machines)
}

/// `read` of a flag that was given; one unspecified value of a flag that was not.
fn optional<T>(
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<Vec<T>, Stop>,
) -> Result<Vec<Option<T>>, Stop> {
    match text {
        None => Ok(vec![None]),
        Some(text) => Ok(read(text)?.into_iter().map(Some).collect()),
    }
}

fn counts(flag: &str, text: &str, least: u32, most: u32, values: Values) -> Result<Vec<u32>, Stop> {
    let numbers = numbers(flag, text, least.into(), most.into(), values)?;
    let counts = numbers.into_iter().map(u32::try_from).collect();
    // The list has kept the bounds.
    Result::map_err(counts, |error| Stop::flag(flag, error))
}

fn numbers(
    flag: &str,
    text: &str,
    least: u64,
    most: u64,
    values: Values,
) -> Result<Vec<u64>, Stop> {
    let flag = format!("{flag} {text}");
    let list = list::numbers(text, least..=most).map_err(|error| Stop::flag(&flag, error))?;
    one_unless(values, &flag, list)
}

fn words<'t>(flag: &str, text: &'t str, values: Values) -> Result<Vec<&'t str>, Stop> {
    let words = list::words(text).map_err(|error| Stop::flag(flag, error))?;
    one_unless(values, flag, words)
}

fn one_unless<T>(values: Values, flag: &str, list: Vec<T>) -> Result<Vec<T>, Stop> {
    if values == Values::One && list.len() != 1 {
        return Err(Stop::flag(flag, "one value here; sme sweep takes lists"));
    }
    Ok(list)
}

fn enumeration<T: clap::ValueEnum>(flag: &str, text: &str, values: Values) -> Result<Vec<T>, Stop> {
    each_word(flag, text, values, names::parse)
}

fn named<T: FromStr>(
    flag: &str,
    text: &str,
    known: &[&str],
    values: Values,
) -> Result<Vec<T>, Stop> {
    each_word(flag, text, values, |word| {
        let unknown = || {
            let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
            names::unknown(word, &known)
        };
        word.parse().map_err(|_| unknown())
    })
}

fn topologies(text: &str, values: Values) -> Result<Vec<Topology>, Stop> {
    each_word("--topology", text, values, |word| {
        let shape = word.split(':').next().unwrap_or(word);
        let known = ["mesh", "torus"].map(String::from);
        if word.contains(':') && !known.iter().any(|name| name == shape) {
            return Err(names::unknown(shape, &known));
        }
        word.parse().map_err(|error: TopologyError| error.to_string())
    })
}

fn skews(text: &str, values: Values) -> Result<Vec<Time>, Stop> {
    each_word("--skew", text, values, |word| match word {
        "0" => Ok(Time::ZERO),
        _ => match MAX_SKEW.parse(word) {
            Ok(ps) => Ok(Time::from_ps(ps)),
            Err(error) => Err(error.to_string()),
        },
    })
}

fn each_word<T>(
    flag: &str,
    text: &str,
    values: Values,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Stop> {
    let words = words(flag, text, values)?;
    let read = |word: &str| read(word).map_err(|reason| Stop::flag(flag, reason));
    words.into_iter().map(read).collect()
}
