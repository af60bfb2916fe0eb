//! From flags to experiments: lists are read, names looked up, and everything that does not fit
//! together is refused before anything is simulated, in one line that names the flag.
//!
//! Called by `sme barrier` (one value a flag) and `sme sweep` (lists). The points of a sweep come
//! in the order of the row's columns: machine, set, algorithm, placement, topology, nodes, cores,
//! episodes, seed, pin, layout, fan-in, tree shape, mapping, local fan-in, skew, its distribution,
//! work, noise; the last varies fastest. Points that differ only in what their algorithm does not
//! look at are one point.

use std::collections::HashSet;
use std::sync::Arc;

use sme_barrier::{Mapping, TreeShape};
use sme_sim::families::sme;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

use super::flags::{ExperimentFlags, MachineFlags};
use super::noise;
use super::read::{
    MAX_EPISODES, MAX_NODES, Values, counts, host_threads, names, numbers, one, optional, times,
    topologies, words,
};
use crate::experiment::{
    Algorithm, DEFAULT_FAN_IN, DEFAULT_MAPPING, DEFAULT_TREE_SHAPE, EngineKind, Experiment,
    FlagLayout, Form, Observe, Pin, TooManyCores, VariablePlacement, applies,
};
use crate::report::row;
use crate::report::stop::{Stop, one_line};

/// The most threads of one experiment.
pub const MAX_THREADS: u64 = 1 << 28;
/// The most points of one sweep.
pub const MAX_POINTS: usize = 100_000;
/// The most variants of machines in one sweep.
const MAX_MACHINES: usize = 1_000;
/// The nodes of the paper's cluster.
const DEFAULT_NODES: u32 = 64;

/// The one experiment that `flags` describe.
pub fn experiment(flags: &ExperimentFlags) -> Result<Experiment, Stop> {
    one("sme barrier", Axes::read(flags, Values::Point)?.points()?)
}

/// Every experiment that `flags` describe, in order.
pub fn points(flags: &ExperimentFlags) -> Result<Vec<Experiment>, Stop> {
    Axes::read(flags, Values::Many)?.points()
}

/// The machine called `name`, with the overrides `set`, each `section.key=value`.
pub fn machine(flags: &MachineFlags) -> Result<Machine, Stop> {
    machine_of("--machine", flags)
}

/// The same where the machine's name is not that of `--machine`, but of `place`.
pub fn machine_of(place: &str, flags: &MachineFlags) -> Result<Machine, Stop> {
    one(place, machines(place, flags, Values::One)?)
}

/// The values of each flag; none is checked against another yet.
struct Axes {
    machines: Vec<Arc<Machine>>,
    engines: Vec<EngineKind>,
    algorithms: Vec<Algorithm>,
    placements: Vec<Option<VariablePlacement>>,
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
    local_fan_ins: Vec<Option<u32>>,
    skews: Vec<Time>,
    disturbances: Vec<noise::Draft>,
    workers: usize,
    form: Form,
}

impl Axes {
    fn read(flags: &ExperimentFlags, values: Values) -> Result<Self, Stop> {
        let algorithms = names("--algorithm", &flags.algorithm, values)?;
        let placements = optional(flags.placement.as_deref(), |text| {
            names("--placement", text, values)
        })?;
        let uses_placement = |algorithm| {
            let given = placements.iter().flatten();
            given
                .copied()
                .any(|placement| applies::placement(algorithm, placement))
        };
        if flags.placement.is_some() && !algorithms.iter().copied().any(uses_placement) {
            let unused = format!("--algorithm {} does not use it", flags.algorithm);
            return Err(Stop::flag("--placement", unused));
        }
        for (flag, given, applies) in [
            (
                "--fan-in",
                flags.fan_in.is_some(),
                applies::tree as fn(Algorithm) -> bool,
            ),
            ("--tree-shape", flags.tree_shape.is_some(), applies::tree),
            (
                "--local-fan-in",
                flags.local_fan_in.is_some(),
                applies::tree,
            ),
            ("--mapping", flags.mapping.is_some(), applies::mapping),
        ] {
            if given && !algorithms.iter().any(|&algorithm| applies(algorithm)) {
                return Err(Stop::flag(
                    flag,
                    format!("--algorithm {} does not use it", flags.algorithm),
                ));
            }
        }
        let skews = times("--skew", &flags.skew, values)?;
        let skewed = skews.iter().any(|&skew| skew > Time::ZERO);
        let count = |flag, text: &str, most: u32| counts(flag, text, 1, most, values);
        Ok(Self {
            machines: machines("--machine", &flags.machine, values)?
                .into_iter()
                .map(Arc::new)
                .collect(),
            engines: names("--engine", &flags.engine, values)?,
            algorithms,
            placements,
            topologies: optional(flags.topology.as_deref(), |text| topologies(text, values))?,
            nodes: optional(flags.nodes.as_deref(), |text| {
                count("--nodes", text, MAX_NODES)
            })?,
            cores: optional(flags.cores.as_deref(), |text| {
                count("--cores", text, u32::MAX)
            })?,
            episodes: count("--episodes", &flags.episodes, MAX_EPISODES)?,
            seeds: numbers("--seed", &flags.seed.seed, 0, u64::MAX, values)?,
            pins: names("--pin", &flags.pin, values)?,
            layouts: optional(flags.layout.as_deref(), |text| {
                names("--layout", text, values)
            })?,
            fan_ins: match &flags.fan_in {
                None => vec![DEFAULT_FAN_IN],
                Some(text) => counts("--fan-in", text, 2, MAX_NODES, values)?,
            },
            tree_shapes: match &flags.tree_shape {
                None => vec![DEFAULT_TREE_SHAPE],
                Some(text) => names("--tree-shape", text, values)?,
            },
            mappings: match &flags.mapping {
                None => vec![DEFAULT_MAPPING],
                Some(text) => names("--mapping", text, values)?,
            },
            local_fan_ins: optional(flags.local_fan_in.as_deref(), |text| {
                counts("--local-fan-in", text, 2, MAX_NODES, values)
            })?,
            disturbances: noise::drafts(&flags.disturbance, skewed, values, MAX_POINTS)?,
            skews,
            workers: host_threads("--workers", &flags.workers)?,
            form: one("--form", names("--form", &flags.form, Values::One)?)?,
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
            engine: EngineKind::Cycle,
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
            local_fan_in: None,
            skew: Time::ZERO,
            disturbance: noise::Draft::default(),
        };
        let drafts = expand(vec![first], &self.machines, |d, v| d.machine = v.clone())?;
        let drafts = expand(drafts, &self.algorithms, |d, v| d.algorithm = *v)?;
        let drafts = expand(drafts, &self.engines, |d, v| d.engine = *v)?;
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
        let drafts = expand(drafts, &self.local_fan_ins, |d, v| d.local_fan_in = *v)?;
        let drafts = expand(drafts, &self.skews, |d, v| d.skew = *v)?;
        let drafts = expand(drafts, &self.disturbances, |d, v| d.disturbance = *v)?;
        let mut points = Vec::with_capacity(drafts.len());
        let mut known = HashSet::new();
        let mut in_rtl = HashSet::new();
        for draft in drafts {
            let point = draft.build(self.workers, self.form)?;
            // Known before the first point is simulated; an engine of each kind is enough.
            let machine = Arc::as_ptr(&point.machine);
            let kind = (machine, point.topology.to_string(), point.nodes);
            if point.engine != EngineKind::Cycle && in_rtl.insert(kind) {
                let checked = point.check_rtl();
                checked.map_err(|error| Stop::Input(one_line(&error.to_string())))?;
            }
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
    engine: EngineKind,
    algorithm: Algorithm,
    placement: Option<VariablePlacement>,
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
    local_fan_in: Option<u32>,
    skew: Time,
    disturbance: noise::Draft,
}

impl Draft {
    /// The point, if its values fit together.
    fn build(self, workers: usize, form: Form) -> Result<Experiment, Stop> {
        let placement = self.checked_placement()?;
        let nodes = self.checked_nodes(placement)?;
        let cores = self.checked_cores()?;
        let threads = u64::from(nodes) * u64::from(cores);
        if threads > MAX_THREADS {
            return Err(Stop::flag(
                &format!("--nodes {nodes} --cores {cores}"),
                format!("{threads} threads; at most {MAX_THREADS}"),
            ));
        }
        let usual = self.machine.shape().topology(nodes);
        let topology = self.topology.unwrap_or(usual);
        holds(&self.machine, &topology, nodes)?;
        let experiment = Experiment {
            machine: self.machine,
            engine: self.engine,
            algorithm: self.algorithm,
            placement,
            topology,
            nodes,
            cores,
            episodes: self.episodes,
            seed: self.seed,
            pin: self.pin,
            layout: self.layout,
            fan_in: self.fan_in,
            tree_shape: self.tree_shape,
            mapping: self.mapping,
            local_fan_in: self.local_fan_in.filter(|_| applies::tree(self.algorithm)),
            skew: self.skew,
            disturbance: self
                .disturbance
                .build(self.seed, self.skew, self.episodes)?,
            workers,
            form,
        };
        if form == Form::Compact
            && let Some(why) = experiment.why_not_compact(&Observe::default())
        {
            return Err(Stop::flag("--form compact", why.to_owned()));
        }
        Ok(experiment)
    }

    fn checked_placement(&self) -> Result<VariablePlacement, Stop> {
        let usual = VariablePlacement::usual(&self.machine);
        match self.placement {
            Some(placement) if placement.is_on_chip() != usual.is_on_chip() => {
                let known = VariablePlacement::ALL.iter();
                let known = known.filter(|known| known.is_on_chip() == usual.is_on_chip());
                let known: Vec<&str> = known.map(|known| known.name()).collect();
                let machine = self.machine.name();
                Err(Stop::flag(
                    &format!("--placement {placement}"),
                    format!("machine {machine} has {}", known.join(", ")),
                ))
            }
            Some(placement) if applies::placement(self.algorithm, placement) => Ok(placement),
            _ => Ok(usual),
        }
    }

    fn checked_nodes(&self, placement: VariablePlacement) -> Result<u32, Stop> {
        let needed = nodes_needed(self.algorithm, placement);
        let fill = |topology| nodes_on(&self.machine, topology);
        let positions = self.topology.as_ref().map(fill).transpose()?;
        let nodes = self
            .nodes
            .or(needed)
            .or(positions)
            .unwrap_or(DEFAULT_NODES.min(self.machine.shape().nodes));
        if let Some(needed) = needed.filter(|&needed| needed != nodes) {
            let algorithm = self.algorithm.name();
            let what = match self.algorithm {
                Algorithm::FlagPhase => format!("{algorithm} with --placement {placement}"),
                _ => algorithm.to_owned(),
            };
            let plural = if needed == 1 { "" } else { "s" };
            return Err(Stop::flag(
                &format!("--nodes {nodes}"),
                format!("{what} runs on {needed} node{plural}"),
            ));
        }
        Ok(nodes)
    }

    fn checked_cores(&self) -> Result<u32, Stop> {
        let cores = self.cores.unwrap_or(cores_per_node(&self.machine));
        enough_cores(&self.machine, cores)?;
        Ok(cores)
    }
}

/// Number of nodes an algorithm insists on.
fn nodes_needed(algorithm: Algorithm, placement: VariablePlacement) -> Option<u32> {
    match (algorithm, placement) {
        (Algorithm::FlagPhase, VariablePlacement::Local | VariablePlacement::Engine) => Some(1),
        (Algorithm::FlagPhase, VariablePlacement::Remote | VariablePlacement::Coherent) => Some(2),
        (Algorithm::Pthread, _) => Some(1),
        _ => None,
    }
}

/// The engines of `machine`, which `what` is about.
pub fn engines_of<'a>(machine: &'a Machine, what: &str) -> Result<&'a ClusterSpec, Stop> {
    let none = || {
        format!(
            "{} has no Shared Memory Engines, and {what} is about them",
            machine.name()
        )
    };
    sme::of(machine).ok_or_else(|| Stop::flag("--machine", none()))
}

/// Whether `topology` has a position for each of `nodes` nodes of `machine`, and for its pool.
///
/// # Errors
/// It has not.
pub fn holds(machine: &Machine, topology: &Topology, nodes: u32) -> Result<(), Stop> {
    let positions = topology.hosts();
    let shape = machine.shape();
    if nodes > shape.nodes {
        let most = format!("machine {} has {}", machine.name(), shape.nodes);
        return Err(Stop::flag(&format!("--nodes {nodes}"), most));
    }
    if shape.positions(nodes) <= positions {
        return Ok(());
    }
    let pool = match shape.pool_devices {
        0 => String::new(),
        devices => format!(" and the {devices} devices of the pool"),
    };
    let plural = if nodes == 1 { "" } else { "s" };
    Err(Stop::flag(
        &format!("--topology {topology}"),
        format!("its {positions} positions do not hold {nodes} node{plural}{pool}"),
    ))
}

/// The nodes of `machine` that fill `topology`, beside its pool.
///
/// # Errors
/// The pool leaves no position.
pub fn nodes_on(machine: &Machine, topology: &Topology) -> Result<u32, Stop> {
    let nodes = topology
        .hosts()
        .saturating_sub(machine.shape().pool_devices);
    holds(machine, topology, nodes.max(1))?;
    Ok(nodes)
}

/// Cores of a node of `machine`: the most threads that it can run.
pub fn cores_per_node(machine: &Machine) -> u32 {
    machine.shape().cores
}

/// Refuses more threads of a node than `machine` has cores for.
pub fn enough_cores(machine: &Machine, cores: u32) -> Result<(), Stop> {
    let checked = TooManyCores::check(machine, cores);
    checked.map_err(|error| Stop::Input(one_line(&error.to_string())))
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

/// Every machine with every combination of overrides; `place` is what names them.
fn machines(place: &str, flags: &MachineFlags, values: Values) -> Result<Vec<Machine>, Stop> {
    let name = flags.name.as_str();
    // A file may have any name: only a sweep splits at commas.
    let names = match values {
        Values::One | Values::Point => vec![name],
        Values::Many => words(place, name, values)?,
    };
    let mut overrides: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for text in &flags.set {
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
        let plain = Machine::load(name).map_err(|error| Stop::flag(place, error))?;
        for pairs in &overrides {
            // The message begins with the flag.
            let machine = plain
                .with(pairs)
                .map_err(|error| Stop::Input(one_line(&error.to_string())))?;
            machines.push(machine);
        }
    }
    Ok(machines)
}

#[cfg(test)]
mod tests;
