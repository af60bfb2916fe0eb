//! One barrier on one machine: what is simulated, and what comes out of it.
//!
//! Called by the commands; what the parts of a run do stands in `run`, which parameters an
//! algorithm looks at in [`applies`].
//!
//! A crate of its own, since simulations of nodes in compact form are compiled here, for each
//! barrier anew: tests do not optimize the package of the command line.

pub mod applies;
mod extras;
pub mod noise;
mod run;
pub mod watch;

use std::sync::Arc;

use sme_barrier::{Mapping, SpecError, TreeShape};
use sme_hdl::blocks::engine::Unsupported;
use sme_hdl::verilated::VerilatedError;
use sme_memory::Lacks;
use sme_sim::machine::{CannotBuild, Machine};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::Overtaken;
use sme_sim::observe::timeline::{Recorded, TooManyNodes};
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

pub use extras::{DesignError, Recorder};
pub use noise::Disturbance;
pub use run::Full;
pub use sme_barrier::{Algorithm, Spacing as FlagLayout};
pub use sme_sim::observe::path::{Part, PathStep};
pub use sme_sim::observe::traffic::LinkLoad;

/// The tree that is calibrated on the published 64×1 row.
pub const DEFAULT_TREE_SHAPE: TreeShape = TreeShape::Heap;
/// The mapping that is calibrated on the published 64×1 row.
pub const DEFAULT_MAPPING: Mapping = Mapping::SubMesh;
/// Fan-in of the paper's tree (Sec. V-B).
pub const DEFAULT_FAN_IN: u32 = 8;

/// The place of flag-phase's flags and phase; on a chip with message passing buffers, of every
/// barrier's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariablePlacement {
    /// One node, in its coherent memory.
    Local,
    /// One node, in its own memory behind its own engine (loopback).
    Engine,
    /// Threads split evenly over two nodes, data in the first, all through the engine.
    Remote,
    /// The same split; the first node's threads spin in their caches (Sec. V-A, Fig. 7).
    Coherent,
    /// Any nodes, each with its variables in its message passing buffer; of flag-phase in the
    /// first's.
    Buffer,
    /// The same in the memory behind the buffers, past the caches.
    Memory,
}

impl VariablePlacement {
    /// Returns whether it is about the buffers and the memory of a chip, and so about any
    /// algorithm.
    pub fn is_on_chip(self) -> bool {
        matches!(self, VariablePlacement::Buffer | VariablePlacement::Memory)
    }

    /// The default placement on `machine`.
    pub fn usual(machine: &Machine) -> Self {
        match machine.shape().buffer_bytes {
            0 => VariablePlacement::Local,
            _ => VariablePlacement::Buffer,
        }
    }
}

sme_barrier::names!(VariablePlacement, "placement", {
    Local => "local",
    Engine => "engine",
    Remote => "remote",
    Coherent => "coherent",
    Buffer => "buffer",
    Memory => "memory",
});

/// Which core a node's thread number `i` runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Over the sockets first.
    Scatter,
    /// Filling one socket after the other.
    Compact,
}

sme_barrier::names!(Pin, "pinning", { Scatter => "scatter", Compact => "compact" });

/// The implementation of each node's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// The cycle model.
    Cycle,
    /// The RTL, in rust-hdl's simulation.
    Rtl,
    /// The RTL's Verilog, compiled by Verilator.
    Verilated,
}

sme_barrier::names!(EngineKind, "engine", {
    Cycle => "cycle",
    Rtl => "rtl",
    Verilated => "verilated",
});

/// The form in which the simulator keeps the cores and the memory of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Compact where that is possible.
    Auto,
    /// Every thread a program of its own: for everything.
    Readable,
    /// Two bytes per thread at rest: tree and dissemination, in runs that nothing looks into.
    Compact,
}

sme_barrier::names!(Form, "form", {
    Auto => "auto",
    Readable => "readable",
    Compact => "compact",
});

/// Everything that identifies a run, apart from the host it happens on.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine, with every `--set` applied.
    pub machine: Arc<Machine>,
    /// `--engine`; apart from its name, the outcome does not depend on it.
    pub engine: EngineKind,
    /// `--algorithm`
    pub algorithm: Algorithm,
    /// `--placement`; `Local` where neither flag-phase nor a chip with buffers is concerned.
    pub placement: VariablePlacement,
    /// `--topology`: at least as large as `nodes`; the first `nodes` positions have hosts.
    pub topology: Topology,
    /// `--nodes`
    pub nodes: u32,
    /// `--cores`: threads per node.
    pub cores: u32,
    /// `--episodes`: counted episodes; one more is simulated before them.
    pub episodes: u32,
    /// `--seed`
    pub seed: u64,
    /// `--pin`
    pub pin: Pin,
    /// `--layout`; the algorithm's default where `None`.
    pub layout: Option<FlagLayout>,
    /// `--fan-in` of the tree: most notifications a node receives.
    pub fan_in: u32,
    /// `--tree-shape`
    pub tree_shape: TreeShape,
    /// `--mapping`: which node the tree's ranks stand on.
    pub mapping: Mapping,
    /// `--local-fan-in`: the tree barrier has a tree of this fan-in in each node, too; where there
    /// is none, a node's threads notify its local master and spin on its phase.
    pub local_fan_in: Option<u32>,
    /// `--skew`: each arrival is delayed by a seeded time, uniform up to this unless
    /// [`Disturbance::skew_distribution`] says otherwise.
    pub skew: Time,
    /// `--work` between barriers, and the operating system's noise.
    pub disturbance: Disturbance,
    /// `--workers`: threads of the host; the outcome does not depend on it.
    pub workers: usize,
    /// `--form`: how the simulator keeps nodes; the outcome does not depend on it.
    pub form: Form,
}

impl Experiment {
    /// The tree barrier of the paper on `machine`: on the nodes of a 64-node network or as many as
    /// the machine has, a thread on each core, 100 episodes that count. Fewer `nodes` are the first
    /// of the network; more need a `topology` that holds them.
    pub fn new(machine: Arc<Machine>) -> Self {
        let shape = machine.shape();
        let nodes = shape.nodes.min(64);
        let placement = VariablePlacement::usual(&machine);
        Self {
            topology: shape.topology(nodes),
            nodes,
            cores: shape.cores,
            machine,
            engine: EngineKind::Cycle,
            algorithm: Algorithm::Tree,
            placement,
            episodes: 100,
            seed: 1,
            pin: Pin::Scatter,
            layout: None,
            fan_in: DEFAULT_FAN_IN,
            tree_shape: DEFAULT_TREE_SHAPE,
            mapping: DEFAULT_MAPPING,
            local_fan_in: None,
            skew: Time::ZERO,
            disturbance: Disturbance::default(),
            workers: 1,
            form: Form::Auto,
        }
    }
}

/// More threads were asked for than a node has cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--cores {cores}: a node of {machine} has {most} cores")]
pub struct TooManyCores {
    /// The threads of a node that were asked for.
    pub cores: u32,
    /// The cores of a node.
    pub most: u32,
    /// The machine.
    pub machine: String,
}

impl TooManyCores {
    /// Checks that a node of `machine` has a core for each of so many threads.
    ///
    /// # Errors
    /// [`TooManyCores`] if it has fewer.
    pub fn check(machine: &Machine, cores: u32) -> Result<(), Self> {
        let most = machine.shape().cores;
        match cores > most {
            true => Err(Self {
                cores,
                most,
                machine: machine.name().to_owned(),
            }),
            false => Ok(()),
        }
    }
}

/// Why an experiment has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node does not have so many cores.
    #[error(transparent)]
    Cores(#[from] TooManyCores),
    /// The barrier cannot be built from these parameters.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The machine cannot do what the barrier needs.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// Its engines cannot.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The barrier's data does not fit.
    #[error(transparent)]
    Memory(#[from] Full),
    /// The machine cannot be built in RTL.
    #[error(transparent)]
    Rtl(#[from] Unsupported),
    /// The RTL cannot be compiled.
    #[error("--engine verilated: {0}")]
    Verilated(#[from] VerilatedError),
    /// The machine has nothing that could be in RTL, or whose ports could be recorded.
    #[error("machine {0} has no Shared Memory Engines")]
    NoEngines(String),
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The barrier does not hold.
    #[error(transparent)]
    Overtaken(#[from] Overtaken),
    /// There are too many nodes to record what their threads do.
    #[error("--timeline: {0}")]
    Timeline(#[from] TooManyNodes),
    /// The barrier has no compact form, or not with these parameters.
    #[error("--form compact: {0}")]
    NotCompact(String),
}

/// Recordings besides the figures that every run has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observe<'a> {
    /// Every thread's arrival and departure in every episode.
    pub per_thread: bool,
    /// The load of every link.
    pub link_load: bool,
    /// The critical path of the last episode.
    pub critical_path: bool,
    /// Every span and wait of every thread, and who wrote what it waited for.
    pub timeline: bool,
    /// The ports of engines. What is recorded is written while the run goes on;
    /// [`Recorder::finish`] is for the caller.
    pub waves: Option<&'a Recorder>,
}

impl Observe<'_> {
    /// Returns whether it records single threads, which nodes in compact form do not.
    pub fn looks_at_threads(&self) -> bool {
        self.per_thread || self.critical_path || self.timeline
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Latency of each counted episode: from the last departure of the episode before to its own.
    pub latencies: Vec<Time>,
    /// Loads that went through an engine, over all counted episodes and nodes.
    pub remote_loads: u64,
    /// Stores that went through an engine, over all counted episodes and nodes.
    pub remote_stores: u64,
    /// Bytes over all network links, over all counted episodes.
    pub link_bytes: u64,
    /// Simulated events of the whole run, warm-up included: what happened at nodes, and the
    /// outputs of engines.
    pub events: u64,
    /// Simulated time at the end of the run.
    pub end: Time,
    /// Rows for `--per-thread`, ordered by episode, node, core.
    pub per_thread: Vec<ThreadEpisode>,
    /// Rows for `--link-load`, ordered by from, to, channel.
    pub link_load: Vec<LinkLoad>,
    /// For `--explain`, from the first cause to the last departure.
    pub critical_path: Vec<PathStep>,
    /// For `--timeline`.
    pub timeline: Recorded,
    /// The machine's own memory: bytes of simulator state per simulated thread.
    pub bytes_per_thread: u64,
}

impl Outcome {
    /// The papers' latency of a barrier: the time of all counted episodes over their number, in µs.
    pub fn mean_us(&self) -> f64 {
        let total: u64 = self.latencies.iter().map(|latency| latency.as_ps()).sum();
        total as f64 / 1e6 / self.latencies.len().max(1) as f64
    }
}

/// One thread in one episode.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ThreadEpisode {
    /// Counted episode, from 0.
    pub episode: u32,
    /// Node of the thread.
    pub node: u32,
    /// Thread number within the node.
    pub core: u32,
    /// The time at which it entered the barrier.
    pub arrive: Time,
    /// The time at which it left.
    pub leave: Time,
}
