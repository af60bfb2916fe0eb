//! Latency over offered load of a machine's fabric: several loads of several patterns, and where
//! each saturates.
//!
//! One load is simulated by [`sme_sim::families::sme::traffic`]. Called by [`crate::cli::network`];
//! the chart is in [`chart`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use sme_sim::families::sme;
use sme_sim::families::sme::traffic::{
    Fabric, Outcome, Pattern, Phases, Run, SATURATED, Traffic, TrafficError,
};
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

use crate::progress::Watch;

mod chart;

pub use chart::chart;

/// Units of a [`Load`] in the network's capacity.
pub const LOAD_UNITS: u32 = 10_000;

/// An offered load, in 1/[`LOAD_UNITS`] of the network's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load(pub u32);

impl Load {
    /// As a fraction of the capacity.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(LOAD_UNITS)
    }
}

/// The plan of a simulation of the network.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// The machine, with every `--set` applied.
    pub machine: Arc<Machine>,
    /// `--topology`; every position that can have a host has one.
    pub topology: Topology,
    /// `--traffic`
    pub patterns: Vec<Pattern>,
    /// `--load`
    pub loads: Vec<Load>,
    /// `--warmup`, `--measure`, `--drain`
    pub phases: Phases,
    /// `--seed`
    pub seed: u64,
    /// `--workers`: threads of the host; the outcome does not depend on it.
    pub workers: usize,
}

/// A pattern's latency over load.
#[derive(Clone, Debug)]
pub struct LoadCurve {
    /// The pattern.
    pub pattern: Pattern,
    /// The load at which its busiest link is never idle; the theory's bound.
    pub bound: f64,
    /// The mean latency of packets that meet no other.
    pub zero_load_latency: Time,
    /// In the order in which the loads were given.
    pub points: Vec<LoadPoint>,
}

/// A load and what came out.
#[derive(Clone, Debug)]
pub struct LoadPoint {
    /// Offered.
    pub load: Load,
    /// The measurements.
    pub outcome: Outcome,
    /// The wall time of the simulation.
    pub wall: Duration,
}

/// Why a network has no curves.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The machine has no engines: engines, switches and links are simulated.
    #[error("{0} has no Shared Memory Engines, whose network this is about")]
    NoEngines(String),
    /// The fabric cannot be built, or a pattern has no place on it.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
}

impl NetworkPlan {
    /// The fabric, and on it every pattern; nothing is simulated yet.
    ///
    /// # Errors
    /// [`NetworkError::NoEngines`], and as [`Fabric::new`] and [`Fabric::traffic`].
    pub fn prepare(&self) -> Result<(Fabric, Vec<(Pattern, Traffic)>), NetworkError> {
        let nodes = self.topology.hosts();
        let no_engines = || NetworkError::NoEngines(self.machine.name().to_owned());
        let spec = sme::of(&self.machine).ok_or_else(no_engines)?;
        let fabric = Fabric::new(spec, &self.topology, nodes)?;
        let traffic = |&pattern| Ok((pattern, fabric.traffic(pattern)?));
        let traffic = self
            .patterns
            .iter()
            .map(traffic)
            .collect::<Result<_, TrafficError>>()?;
        Ok((fabric, traffic))
    }

    /// Simulates every load of every pattern, and hands each curve to `each` as soon as it is
    /// complete.
    ///
    /// # Errors
    /// As [`NetworkPlan::prepare`] and [`Traffic::run`].
    pub fn run(
        &self,
        watch: &dyn Watch,
        each: &mut dyn FnMut(&LoadCurve),
    ) -> Result<Vec<LoadCurve>, NetworkError> {
        let (_, traffic) = self.prepare()?;
        watch.begin("loads", (traffic.len() * self.loads.len()) as u64);
        let curves = traffic.iter().map(|(pattern, traffic)| {
            let point = |&load| {
                let began = Instant::now();
                let outcome = traffic.run(&self.point(load), |_| {})?;
                watch.advance(1);
                Ok(LoadPoint {
                    load,
                    outcome,
                    wall: began.elapsed(),
                })
            };
            let curve = LoadCurve {
                pattern: *pattern,
                bound: traffic.bound(),
                zero_load_latency: traffic.zero_load_latency(),
                points: self
                    .loads
                    .iter()
                    .map(point)
                    .collect::<Result<_, TrafficError>>()?,
            };
            each(&curve);
            Ok(curve)
        });
        let curves = curves.collect();
        watch.end();
        curves
    }

    fn point(&self, load: Load) -> Run {
        Run {
            load: load.fraction(),
            phases: self.phases,
            seed: self.seed,
            workers: self.workers,
        }
    }
}

impl LoadCurve {
    /// The points by load.
    pub fn sorted(&self) -> Vec<&LoadPoint> {
        let mut points: Vec<&LoadPoint> = self.points.iter().collect();
        points.sort_by_key(|point| point.load);
        points
    }

    /// The saturation point: the load at which the mean latency is [`SATURATED`] times the
    /// zero-load latency, as a fraction of the capacity.
    ///
    /// It lies between the lowest load that saturates and the one before it. Between the two the
    /// *reciprocal* of the latency is taken for a straight line, as it is for a simple queue; the
    /// latency itself has no end beyond the saturation point, so that how long the run was would
    /// decide. It is never beyond the bound. `None` where no load saturates, or the lowest one does
    /// already.
    pub fn saturation(&self) -> Option<f64> {
        let points = self.sorted();
        let first = points.iter().position(|point| point.outcome.saturated)?;
        let (below, above) = (points.get(first.checked_sub(1)?)?, points.get(first)?);
        let limit = self.zero_load_latency.times(SATURATED).as_ns();
        let [from, to] = [below, above].map(|point| 1.0 / point.outcome.latencies.mean.as_ns());
        let (begin, end) = (below.load.fraction(), above.load.fraction());
        // Saturated by what it accepts, with the latencies of packets that have arrived still
        // small.
        if above.outcome.latencies.mean.as_ns() <= limit {
            return Some(end.min(self.bound));
        }
        let between = begin + (end - begin) * (from - 1.0 / limit) / (from - to);
        // Where loads are far apart, a line may miss what is known for certain.
        Some(between.min(self.bound))
    }

    /// The height in nanoseconds, at `load`, of the line through the mean latencies; `None` outside
    /// of it.
    pub fn mean_at(&self, load: f64) -> Option<f64> {
        let at = |point: &LoadPoint| (point.load.fraction(), point.outcome.latencies.mean.as_ns());
        let points: Vec<_> = self.sorted().into_iter().map(at).collect();
        points.windows(2).find_map(|pair| {
            let [(from, begin), (to, end)] = [pair[0], pair[1]];
            let part = (load - from) / (to - from);
            (0.0..=1.0)
                .contains(&part)
                .then_some(begin + (end - begin) * part)
        })
    }

    /// Why there is no saturation point, in a line; `None` where there is one.
    pub fn without_saturation(&self) -> Option<String> {
        let points = self.sorted();
        let (least, most) = (points.first()?, points.last()?);
        let name = self.pattern.name();
        match points.iter().any(|point| point.outcome.saturated) {
            false => Some(format!(
                "{name}: not saturated up to {}",
                most.load.fraction()
            )),
            true if least.outcome.saturated => Some(format!(
                "{name}: saturated at {} already",
                least.load.fraction()
            )),
            true => None,
        }
    }
}
