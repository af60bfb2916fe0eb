//! What the figures need simulated: each point once, however many figures look at it.
//!
//! Called by [`super::Validation`], which hands in whatever simulates ([`Simulate`]); the
//! estimators only see [`Measurements`]. All times are in microseconds.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use sme_sim::parts::fabric::GridKind;
use sme_sim::parts::fabric::Topology;

use crate::experiment::{Algorithm, Placement};
use crate::program::Mapped;
use crate::progress::Watch;

/// One simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A barrier's mean latency. Several nodes are the first of an 8×8 mesh, as in the paper.
    Barrier {
        /// On which machine.
        variant: Variant,
        /// Which barrier.
        algorithm: Algorithm,
        /// Where flag-and-phase has its data; [`Placement::Local`] elsewhere.
        placement: Placement,
        /// Nodes with threads.
        nodes: u32,
        /// Threads a node.
        cores: u32,
    },
    /// The tree barrier's latency on a network that is as large as its nodes need, where the authors
    /// have only a formula.
    Large {
        /// On which machine.
        variant: Variant,
        /// The kind of its network, as square or as cubic as the nodes allow.
        grid: GridKind,
        /// Nodes with threads.
        nodes: u32,
        /// Threads a node.
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
        /// How its data is mapped.
        mapped: Mapped,
        /// Binary logarithm of its points.
        log2n: u32,
        /// Nodes with threads.
        nodes: u32,
        /// Threads a node.
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
    /// applying the ASIC latency numbers").
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

/// Barriers of Fig. 5 with the latencies of an ASIC for each one asked for. One takes from 20 to 80 us:
/// the mean of 100 is from 43.6 to 47.1 us, by the seed, that of 2,000 from 45.3 to 45.5.
pub const ASIC_REPEATS: u32 = 20;

impl Point {
    /// A barrier on the prototype.
    pub fn barrier(algorithm: Algorithm, nodes: u32, cores: u32) -> Self {
        Point::Barrier {
            variant: Variant::Prototype,
            algorithm,
            placement: Placement::Local,
            nodes,
            cores,
        }
    }

    /// Flag-and-phase among `threads` threads: on one node, or evenly over two where the
    /// placement means two.
    pub fn flag_phase(variant: Variant, placement: Placement, threads: u32) -> Self {
        let nodes = match placement {
            Placement::Local | Placement::Engine => 1,
            Placement::Remote | Placement::Coherent => 2,
        };
        Point::Barrier {
            variant,
            algorithm: Algorithm::FlagPhase,
            placement,
            nodes,
            cores: threads / nodes,
        }
    }

    /// Grows with what the simulation costs.
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
                let spins = algorithm == Algorithm::FlagPhase && placement != Placement::Local;
                threads * if spins { 20 } else { 1 }
            }
            // On so many nodes most of the work is the network's, some fifty threads' worth a node.
            Point::Large { nodes, cores, .. } => u64::from(nodes) * (u64::from(cores) + 50),
            Point::Load { .. } => 0,
            // Whoever runs them, the loads are the same.
            Point::Fft { mapped, log2n, .. } => {
                let each = if mapped == Mapped::Cached { 100 } else { 400 };
                each << log2n
            }
        }
    }
}

/// The network of a [`Point::Large`]: where `sme barrier` has `nodes` nodes of a machine whose file
/// names this kind.
pub fn network(grid: GridKind, nodes: u32) -> Topology {
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

/// Whatever can simulate a point.
pub trait Simulate: Sync {
    /// The point's latency in microseconds, or why there is none. The same on every call.
    fn microseconds(&self, point: &Point) -> Result<f64, String>;
}

/// What came out of every point.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    points: Vec<(Point, Result<f64, String>)>,
}

impl Measurements {
    /// Simulates `points`, each once, on `workers` threads. The outcome does not depend on how
    /// many these are.
    pub fn take(
        points: impl IntoIterator<Item = Point>,
        simulate: &dyn Simulate,
        workers: usize,
        watch: &dyn Watch,
    ) -> Self {
        let mut once: Vec<Point> = Vec::new();
        for point in points {
            if !once.contains(&point) {
                once.push(point);
            }
        }
        watch.begin("points", once.len() as u64);
        let results = over(&once, workers, Point::cost, |point| {
            let result = simulate.microseconds(point);
            watch.advance(1);
            result
        });
        watch.end();
        Self {
            points: once.into_iter().zip(results).collect(),
        }
    }

    /// What is known of each point already.
    pub fn known(points: Vec<(Point, Result<f64, String>)>) -> Self {
        Self { points }
    }

    /// A point's latency in microseconds, or why there is none.
    pub fn microseconds(&self, point: Point) -> Result<f64, String> {
        match self.points.iter().find(|(known, _)| *known == point) {
            Some((_, Ok(latency))) if latency.is_finite() => Ok(*latency),
            Some((_, Ok(_))) => Err(format!("{point}: the latency is not a number")),
            Some((_, Err(reason))) => Err(format!("{point}: {reason}")),
            None => Err(format!("{point}: was not simulated")),
        }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// `work` on every item, on `workers` threads, the results in the order of the items. The dearest
/// items go first, so that no worker is left alone with one in the end.
pub fn over<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    cost: impl Fn(&T) -> u64,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut queue: Vec<(usize, &T)> = items.iter().enumerate().collect();
    queue.sort_by_key(|(_, item)| std::cmp::Reverse(cost(item)));
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while let Some(&(index, item)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item);
                    done.lock().push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    /// Counts how often each point is simulated.
    struct Counting(Mutex<Vec<Point>>);

    impl Simulate for Counting {
        fn microseconds(&self, point: &Point) -> Result<f64, String> {
            self.0.lock().push(*point);
            match point {
                Point::Barrier { nodes: 3, .. } => Err("deadlock".into()),
                Point::Barrier { nodes: 4, .. } => Ok(f64::NAN),
                Point::Barrier { nodes, .. } => Ok(f64::from(*nodes)),
                Point::Large { .. } | Point::Load { .. } | Point::Fft { .. } => Ok(1.0),
            }
        }
    }

    #[test]
    fn each_point_is_simulated_once_and_found_again() {
        let points: Vec<_> = (1..=40)
            .map(|n| Point::barrier(Algorithm::Tree, n, 1))
            .collect();
        for workers in [0, 1, 2, 7, 100] {
            let simulate = Counting(Mutex::new(Vec::new()));
            let twice = points.iter().chain(&points).copied();
            let taken = Measurements::take(twice, &simulate, workers, &Silent);
            assert_eq!(simulate.0.lock().len(), 40);
            assert_eq!(taken.microseconds(points[9]), Ok(10.0));
            let failed = taken.microseconds(points[2]).unwrap_err();
            assert_eq!(failed, "Tree, 3 nodes of 1 threads: deadlock");
            assert!(
                taken
                    .microseconds(points[3])
                    .unwrap_err()
                    .contains("not a number")
            );
            let unknown = Point::barrier(Algorithm::Flat, 1, 1);
            assert!(
                taken
                    .microseconds(unknown)
                    .unwrap_err()
                    .contains("was not simulated")
            );
        }
    }

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..500).collect();
        for workers in [1, 3, 16] {
            let squares = over(&items, workers, |n| n % 7, |n| n * n);
            assert!(
                squares
                    .iter()
                    .zip(&items)
                    .all(|(square, n)| *square == n * n)
            );
        }
        assert!(over(&[0u8; 0], 4, |_| 0, |_| ()).is_empty());
    }
}
