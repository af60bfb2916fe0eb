//! The simulations that the figures of this paper need.

use sme_sim::parts::fabric::NetworkKind;
use sme_sim::parts::fabric::Topology;

use crate::experiment::{Algorithm, VariablePlacement};
use crate::program::Mapped;
use crate::validate::measure;

/// One simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A barrier's mean latency. Several nodes are the first of an 8×8 mesh, as in the paper.
    Barrier {
        /// On which machine.
        variant: Variant,
        /// Which barrier.
        algorithm: Algorithm,
        /// Where flag-and-phase has its data; [`VariablePlacement::Local`] elsewhere.
        placement: VariablePlacement,
        /// Nodes with threads.
        nodes: u32,
        /// Threads per node.
        cores: u32,
    },
    /// The tree barrier's latency on a network that is as large as its nodes need, where the
    /// authors have only a formula.
    Large {
        /// On which machine.
        variant: Variant,
        /// The kind of its network, as square or as cubic as the nodes allow.
        grid: NetworkKind,
        /// Nodes with threads.
        nodes: u32,
        /// Threads per node.
        cores: u32,
    },
    /// The latency of one load through the engine on an idle machine.
    Load {
        /// On which machine.
        variant: Variant,
        /// From the node's own memory rather than from a neighbour's.
        loopback: bool,
    },
    /// The time of a transform whose data is spread at random over an 8×8 mesh of nodes.
    Fft {
        /// The mapping of its data.
        mapped: Mapped,
        /// Binary logarithm of its points.
        log2n: u32,
        /// Nodes with threads.
        nodes: u32,
        /// Threads per node.
        cores: u32,
    },
}

/// The machine of a point: a machine file and what is different from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The machine under validation as it is.
    Prototype,
    /// It, with HT200 and an engine of 156 MHz (Fig. 4).
    Ht200,
    /// It, with HT400 and an engine of 156 MHz (Fig. 4).
    Ht400,
    /// It, with HT400 and an engine of 312 MHz, which shows the engine's share (Fig. 4).
    FastEngine,
    /// It, with the load and store latencies of an ASIC and nothing else changed (Fig. 5: "by
    /// applying the ASIC latency numbers"): a published result, 534 ns, is an input here.
    AsicLatencies,
    /// The machine file of the ASIC.
    Asic,
    /// The machine file of the machine that Sec. VI-C takes its barrier to.
    Exascale,
}

const HT200: &[(&str, &str)] = &[("host.clock", "200 MHz"), ("engine.clock", "156 MHz")];
const HT400: &[(&str, &str)] = &[("host.clock", "400 MHz"), ("engine.clock", "156 MHz")];
const FAST_ENGINE: &[(&str, &str)] = &[("host.clock", "400 MHz"), ("engine.clock", "312 MHz")];

/// The clocks of the ASIC, for Fig. 5. What remains until a loopback load takes the ASIC's
/// latency is made up by `host.delay`: see [`super::simulator`].
pub const ASIC_CLOCKS: &[(&str, &str)] = &[("host.clock", "2000 MHz"), ("engine.clock", "800 MHz")];

impl Variant {
    /// The built-in machine file, unless it is the machine under validation, and the constants
    /// that differ from it.
    pub fn machine(
        self,
    ) -> (
        Option<&'static str>,
        &'static [(&'static str, &'static str)],
    ) {
        match self {
            Variant::Prototype => (None, &[]),
            Variant::Ht200 => (None, HT200),
            Variant::Ht400 => (None, HT400),
            Variant::FastEngine => (None, FAST_ENGINE),
            Variant::AsicLatencies => (None, ASIC_CLOCKS),
            Variant::Asic => (Some("sme-asic"), &[]),
            Variant::Exascale => (Some("exascale"), &[]),
        }
    }
}

/// Barriers of Fig. 5 with the latencies of an ASIC for each one asked for. One takes from 20 to 80
/// us: the mean of 100 is from 43.6 to 47.1 us, by the seed, that of 2,000 from 45.3 to 45.5.
pub const ASIC_REPEATS: u32 = 20;

impl Point {
    /// A barrier on the prototype.
    pub fn barrier(algorithm: Algorithm, nodes: u32, cores: u32) -> Self {
        Point::Barrier {
            variant: Variant::Prototype,
            algorithm,
            placement: VariablePlacement::Local,
            nodes,
            cores,
        }
    }

    /// Flag-and-phase among `threads` threads: on one node, or evenly over two where the
    /// placement means two.
    pub fn flag_phase(variant: Variant, placement: VariablePlacement, threads: u32) -> Self {
        let nodes = match placement {
            VariablePlacement::Local | VariablePlacement::Engine => 1,
            VariablePlacement::Remote | VariablePlacement::Coherent => 2,
            VariablePlacement::Buffer | VariablePlacement::Memory => threads,
        };
        Point::Barrier {
            variant,
            algorithm: Algorithm::FlagPhase,
            placement,
            nodes,
            cores: threads / nodes,
        }
    }
}

impl measure::Point for Point {
    fn cost(&self) -> u64 {
        match *self {
            Point::Barrier {
                algorithm,
                placement,
                nodes,
                cores,
                ..
            } => {
                let threads = u64::from(nodes) * u64::from(cores);
                // Spinning through the engine is a load every microsecond for each thread.
                let spins =
                    algorithm == Algorithm::FlagPhase && placement != VariablePlacement::Local;
                threads * if spins { 20 } else { 1 }
            }
            // On so many nodes most of the work is the network's, some fifty threads' worth a node.
            Point::Large { nodes, cores, .. } => u64::from(nodes) * (u64::from(cores) + 50),
            Point::Load { .. } => 0,
            // On any machine, the loads are the same.
            Point::Fft { mapped, log2n, .. } => {
                let each = if mapped == Mapped::Cached { 100 } else { 400 };
                each << log2n
            }
        }
    }

    fn is_program(&self) -> bool {
        matches!(self, Point::Fft { .. })
    }

    fn is_large(&self) -> bool {
        matches!(self, Point::Large { .. })
    }
}

/// The network of a [`Point::Large`]: where `sme barrier` has `nodes` nodes of a machine whose file
/// names this kind.
pub fn network(grid: NetworkKind, nodes: u32) -> Topology {
    grid.holding(nodes)
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (variant, what) = match *self {
            Point::Barrier {
                variant,
                algorithm,
                placement,
                nodes,
                cores,
            } => {
                let place = match algorithm {
                    Algorithm::FlagPhase => format!(" ({placement:?})"),
                    _ => String::new(),
                };
                let what = format!("{algorithm:?}{place}, {nodes} nodes of {cores} threads");
                (variant, what)
            }
            Point::Large {
                variant,
                grid,
                nodes,
                cores,
            } => {
                let network = network(grid, nodes);
                let what = format!("Tree on {network}, {nodes} nodes of {cores} threads");
                (variant, what)
            }
            Point::Load { variant, loopback } => {
                let from = if loopback { "loopback" } else { "neighbour" };
                (variant, format!("load, {from}"))
            }
            Point::Fft {
                mapped,
                log2n,
                nodes,
                cores,
            } => {
                let what = format!("FFT of 2^{log2n}, {mapped}, {nodes} nodes of {cores} threads");
                (Variant::Prototype, what)
            }
        };
        write!(f, "{what}")?;
        match variant {
            Variant::Prototype => Ok(()),
            other => write!(f, " [{other:?}]"),
        }
    }
}
