//! The simulated machine as what answers for a point, and the published experiments on it.
//!
//! Called by `sme validate` and the default job; calls `Experiment::run` and
//! [`remote_load_latency`].

use std::sync::Arc;

use sme_barrier::{Mapping, TreeShape};
use sme_fft_demo::Placement as Spread;
use sme_sim::families::sme;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::machine::{Machine, MachineError};
use sme_sim::parts::fabric::{LINK_PORTS, Topology, TopologyError, TopologyKind};
use sme_sim::time::Time;

use super::points::{ASIC_REPEATS, Point, Variant, network};
use super::{estimator, fitted_choices};
use crate::experiment::noise::{Disturbance, Noise};
use crate::experiment::{Algorithm, Experiment, Observe, VariablePlacement};
use crate::experiment::{DEFAULT_MAPPING, DEFAULT_TREE_SHAPE};
use crate::latency::remote_load_latency;
use crate::program::{CoherencePoint, FftKernel, Program};
use crate::progress::Silent;
use crate::validate::measure::Simulate;
use crate::validate::papers::{Figures, Fit, On};
use crate::validate::{Identity, Validation};

/// Most notifications a node of the tree receives (Sec. V-B).
const FAN_IN: u32 = 8;

/// Data is spread line by line: one of [`super::CALIBRATED_CHOICES`]. With pages of 4 KiB a thread
/// has all its data at one node, and waits for the farthest of them.
const PAGE: u64 = 64;

/// Counted barriers of a [`Point::Large`]: each takes up to seconds, and one differs from the next
/// by no more than some 4 %.
const LARGE_EPISODES: u32 = 2;

/// The paper's experiments on a machine.
pub struct Simulator {
    machine: Arc<Machine>,
    spec: ClusterSpec,
    variants: Vec<(Variant, Arc<Machine>)>,
    mesh: Topology,
    tree_shape: TreeShape,
    mapping: Mapping,
    episodes: u32,
    seed: u64,
    programs: bool,
    noise: Option<Noise>,
    skew: Time,
    large: bool,
}

/// The load latency that the authors predict for an ASIC (Sec. IV-C), and apply in Fig. 5. This is
/// a published result, `sme.fig4.asic_remote_load`, which [`Variant::AsicLatencies`] takes as an
/// input: the simulated one is 528 ns, and of a load from a neighbour.
pub const ASIC_LOAD: Time = Time::from_ns(534);

/// Why there is no such simulator.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SimulatorError {
    /// One of the variants that the figures need is no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// It is another kind of machine than the paper's.
    #[error("the figures are those of a cluster with Shared Memory Engines")]
    Family,
    /// The paper's mesh cannot be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl Simulator {
    /// The experiments on `machine`, of which the variants that figures need are made now, with
    /// `episodes` counted barriers each.
    pub fn new(machine: Arc<Machine>, episodes: u32, seed: u64) -> Result<Self, SimulatorError> {
        let spec = sme::of(&machine).cloned().ok_or(SimulatorError::Family)?;
        let all = [
            Variant::Prototype,
            Variant::Ht200,
            Variant::Ht400,
            Variant::FastEngine,
            Variant::AsicLatencies,
            Variant::Asic,
            Variant::Exascale,
        ];
        let mut variants = Vec::with_capacity(all.len());
        for variant in all {
            let (file, overrides) = variant.machine();
            let machine = match file {
                Some(name) => Arc::new(Machine::builtin(name)?),
                None if overrides.is_empty() => machine.clone(),
                None => Arc::new(machine.with(overrides)?),
            };
            let machine = match variant {
                Variant::AsicLatencies => Arc::new(with_loopback(&machine, ASIC_LOAD)?),
                _ => machine,
            };
            variants.push((variant, machine));
        }
        Ok(Self {
            spec,
            machine,
            variants,
            mesh: Topology::new(TopologyKind::Mesh, &[8, 8])?,
            tree_shape: DEFAULT_TREE_SHAPE,
            mapping: DEFAULT_MAPPING,
            episodes,
            seed,
            programs: true,
            noise: None,
            skew: Time::ZERO,
            large: true,
        })
    }

    /// The same without the figures for which programs are run: these take a minute.
    pub fn without_programs(mut self) -> Self {
        self.programs = false;
        self
    }

    /// The same without the figures for which sizes are simulated that the paper extrapolates to.
    pub fn without_large(mut self) -> Self {
        self.large = false;
        self
    }

    /// The same with trees of another shape, and their masters on other nodes: one of
    /// [`super::CALIBRATED_CHOICES`].
    pub fn with_trees(mut self, shape: TreeShape, mapping: Mapping) -> Self {
        self.tree_shape = shape;
        self.mapping = mapping;
        self
    }

    /// The same where an operating system disturbs the threads of every barrier; programs and
    /// single loads it does not.
    pub fn with_noise(mut self, noise: Option<Noise>) -> Self {
        self.noise = noise;
        self
    }

    /// The same where every arrival of a thread at a barrier is late by up to `skew`, uniformly.
    pub fn with_skew(mut self, skew: Time) -> Self {
        self.skew = skew;
        self
    }

    /// The validation of the machine, on `workers` threads of the host.
    pub fn validation(&self, workers: usize) -> Validation<'_> {
        let on = On::new(&self.machine);
        Validation {
            identity: Identity {
                on: on.clone(),
                episodes: self.episodes,
                seed: self.seed,
                noise: self.noise,
            },
            papers: vec![Box::new(Figures {
                on: ("sme", on),
                estimator: Box::new(estimator),
                simulate: self,
                fitted: self.fitted(),
                inputs: self.inputs(),
                machine_of: None,
                programs: self.programs,
                large: self.large,
            })],
            workers,
            only: None,
        }
    }

    /// Constants and choices that were fitted.
    pub fn fitted(&self) -> Vec<Fit> {
        let constants = self.machine.fitted();
        let constants =
            constants.map(|constant| Fit::constant(&constant.name(), &constant.fitted_to));
        constants.chain(fitted_choices()).collect()
    }

    /// The experiment of a barrier's point.
    pub fn experiment(
        &self,
        variant: Variant,
        algorithm: Algorithm,
        placement: VariablePlacement,
        nodes: u32,
        cores: u32,
    ) -> Experiment {
        // Switches without hosts cost simulating, and one or two nodes need none.
        let topology = match algorithm {
            Algorithm::FlagPhase | Algorithm::Pthread => Topology::for_nodes(nodes),
            _ => self.mesh.clone(),
        };
        let repeats = match variant {
            Variant::AsicLatencies => ASIC_REPEATS,
            _ => 1,
        };
        Experiment {
            algorithm,
            placement,
            topology,
            nodes,
            cores,
            episodes: self.episodes.saturating_mul(repeats),
            seed: self.seed,
            fan_in: FAN_IN,
            tree_shape: self.tree_shape,
            mapping: self.mapping,
            skew: self.skew,
            disturbance: Disturbance {
                noise: self.noise,
                ..Disturbance::default()
            },
            ..Experiment::new(self.machine(variant))
        }
    }

    fn machine(&self, variant: Variant) -> Arc<Machine> {
        let found = self.variants.iter().find(|(known, _)| *known == variant);
        found.map_or_else(|| self.machine.clone(), |(_, machine)| machine.clone())
    }

    /// The published inputs as the machine file has them: a figure's id, the value in its unit.
    pub fn inputs(&self) -> Vec<(&'static str, f64)> {
        let spec = &self.spec;
        let mega = |hz: u64| hz as f64 / 1e6;
        let asic = sme::of(&self.machine(Variant::Asic)).map_or(0, |asic| asic.engine.clock.hz());
        let (host, uncached) = (&spec.host, &spec.uncached);
        // Two transfers a clock cycle.
        let host_bytes = 2 * host.clock.hz() * u64::from(host.width_bits) / 8;
        vec![
            ("sme.sockets_per_node", f64::from(spec.node.sockets)),
            (
                "sme.cores_per_socket",
                f64::from(spec.node.cores_per_socket),
            ),
            ("sme.core_clock", mega(spec.core.clock.hz()) / 1e3),
            ("sme.engine_clock", mega(spec.engine.clock.hz())),
            ("sme.link_bandwidth", mega(spec.link.bytes_per_second)),
            ("sme.host_bandwidth", mega(host_bytes)),
            ("sme.links_per_node", LINK_PORTS as f64),
            (
                "sme.outstanding_remote_loads_per_socket",
                f64::from(uncached.outstanding_loads_per_socket),
            ),
            ("sme.mmio_load_payload", uncached.load_bytes as f64 * 8.0),
            ("sme.global_address_base", spec.node.global_base as f64),
            (
                "sme.local_memory_latency",
                (spec.cache.l3 + spec.coherence.dram).as_ns(),
            ),
            ("sme.tree_fan_in", f64::from(FAN_IN)),
            ("sme.asic_clock", mega(asic)),
        ]
    }
}

impl Simulate<Point> for Simulator {
    fn microseconds(&self, point: &Point) -> Result<f64, String> {
        match *point {
            Point::Load { variant, loopback } => {
                let latency = remote_load_latency(&self.machine(variant), loopback);
                latency.map(Time::as_us).map_err(|error| error.to_string())
            }
            Point::Barrier {
                variant,
                algorithm,
                placement,
                nodes,
                cores,
            } => {
                let experiment = self.experiment(variant, algorithm, placement, nodes, cores);
                let outcome = experiment.run(&Observe::default(), &Silent);
                Ok(outcome.map_err(|error| error.to_string())?.mean_us())
            }
            Point::Large {
                variant,
                grid,
                nodes,
                cores,
            } => {
                let experiment = Experiment {
                    topology: network(grid, nodes),
                    episodes: LARGE_EPISODES,
                    ..self.experiment(
                        variant,
                        Algorithm::Tree,
                        VariablePlacement::Local,
                        nodes,
                        cores,
                    )
                };
                let outcome = experiment.run(&Observe::default(), &Silent);
                Ok(outcome.map_err(|error| error.to_string())?.mean_us())
            }
            Point::Fft {
                mapped,
                log2n,
                nodes,
                cores,
            } => {
                let program = Program {
                    machine: self.machine.clone(),
                    topology: self.mesh.clone(),
                    memory_nodes: self.mesh.positions(),
                    nodes,
                    cores,
                    mapped,
                    point: CoherencePoint::Barrier,
                    page_bytes: PAGE,
                    checked: false,
                    timeline: false,
                    seed: self.seed,
                    workers: 1,
                };
                let kernel = FftKernel::random(&program, log2n, Spread::Random);
                let kernel = Arc::new(kernel.map_err(|error| error.to_string())?);
                let ran = program.run(&kernel, |kernel, read| kernel.error(&kernel.result(read)));
                match ran.map_err(|error| error.to_string())? {
                    (outcome, error) if error <= FftKernel::TOLERANCE => Ok(outcome.time().as_us()),
                    (_, error) => Err(format!("a wrong result, off by {error:.1e}")),
                }
            }
        }
    }
}

/// `machine` with the `host.delay` that makes a loopback load take `goal`. Where no delay does, the
/// machine as it is: the figure's condition then says so.
fn with_loopback(machine: &Machine, goal: Time) -> Result<Machine, MachineError> {
    let delayed = |ps: u64| machine.with(&[("host.delay", format!("{ps} ps"))]);
    let load = |machine: &Machine| {
        let latency = remote_load_latency(machine, true);
        latency.map_or(f64::NAN, |latency| latency.as_ps() as f64)
    };
    // A load takes the delay several times; how often is seen from two.
    const STEP: u64 = 100_000;
    let delay = sme::of(machine).map_or(0, |spec| spec.host.delay.as_ps());
    let now = load(machine);
    let passes = (load(&delayed(delay + STEP)?) - now) / STEP as f64;
    let needed = delay as f64 + (goal.as_ps() as f64 - now) / passes;
    if (0.0..1e9).contains(&needed) {
        delayed(needed.round() as u64)
    } else {
        Ok(machine.clone())
    }
}
