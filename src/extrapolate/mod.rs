//! From a sweep over small clusters to the latency of large ones: Eq. 2 of Fröning et al.
//! (Sec. VI), fitted to simulations or measurements.
//!
//! Called by `sme extrapolate`; [`input`] reads sweeps from files, [`family`] grows a topology with
//! the nodes, [`picture`] draws formula and simulation together. Fits are [`crate::fit`]'s.
//! Latencies are in microseconds.

pub mod family;
pub mod input;
pub mod picture;

use crate::experiment::Experiment;
use crate::fit::{self, Confidence, FitError, Line, SurfaceFit};
use crate::report::row::{self, Cell};

/// The sizes for which the paper prints what Eq. 2 gives: nodes, cores per node, microseconds as
/// printed (Sec. VI-C). Jaguar's 220,000 cores on nodes of 16, 64 and 256 are whole nodes here.
pub const PUBLISHED_POINTS: [(u32, u32, f64); 4] = [
    (262_144, 768, 282.0),
    (13_750, 16, 28.0),
    (3_438, 64, 35.0),
    (859, 256, 69.0),
];

/// One size and its latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Nodes, at least 1.
    pub nodes: u32,
    /// Cores per node, at least 1.
    pub cores: u32,
    /// Latency in µs.
    pub latency_us: f64,
}

/// A sweep over sizes: what was found at each, and what all of its runs share.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// In the order of the sweep; a size may come more than once (other seeds).
    pub samples: Vec<Sample>,
    /// Cells under [`row::identity_keys`]; absent where the runs differ.
    pub identity: Vec<Cell>,
}

impl Series {
    /// A simulated sweep: its experiments, each with its latency in microseconds.
    pub fn simulated(runs: &[(&Experiment, f64)]) -> Self {
        let mut identity: Option<Vec<Cell>> = None;
        for (experiment, _) in runs {
            shared(&mut identity, row::identity(experiment));
        }
        let sample = |&(experiment, latency_us): &(&Experiment, f64)| Sample {
            nodes: experiment.nodes,
            cores: experiment.cores,
            latency_us,
        };
        Self {
            samples: runs.iter().map(sample).collect(),
            identity: identity.unwrap_or_default(),
        }
    }

    /// The different numbers of nodes, in ascending order.
    pub fn nodes(&self) -> Vec<u32> {
        distinct(self.samples.iter().map(|sample| sample.nodes))
    }

    /// The different numbers of cores per node, in ascending order.
    pub fn cores(&self) -> Vec<u32> {
        distinct(self.samples.iter().map(|sample| sample.cores))
    }

    /// Fits Eq. 2, and the lines of Fig. 9 and 10.
    ///
    /// # Errors
    /// What [`SurfaceFit::new`] refuses.
    pub fn fit(&self, confidence: Confidence) -> Result<Extrapolation, FitError> {
        let samples: Vec<_> = self
            .samples
            .iter()
            .map(|s| (f64::from(s.nodes), f64::from(s.cores), s.latency_us))
            .collect();
        let surface = SurfaceFit::new(&samples, confidence)?;
        let over_nodes = self.cores().into_iter().map(|cores| {
            let line = self.samples.iter().filter(|sample| sample.cores == cores);
            Trend::new(cores, line.map(|s| (f64::from(s.nodes), s.latency_us)))
        });
        let over_cores = self.nodes().into_iter().map(|nodes| {
            let line = self.samples.iter().filter(|sample| sample.nodes == nodes);
            Trend::new(nodes, line.map(|s| (f64::from(s.cores), s.latency_us)))
        });
        Ok(Extrapolation {
            surface,
            over_nodes: over_nodes.collect(),
            over_cores: over_cores.collect(),
        })
    }
}

/// Makes every cell of `known` that `of_run` contradicts absent.
fn shared(known: &mut Option<Vec<Cell>>, of_run: Vec<Cell>) {
    match known {
        None => *known = Some(of_run),
        Some(known) => {
            for (known, cell) in known.iter_mut().zip(of_run) {
                if *known != cell {
                    *known = Cell::Absent;
                }
            }
        }
    }
}

fn distinct(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The extrapolation of a sweep to every other size.
#[derive(Clone, Debug, PartialEq)]
pub struct Extrapolation {
    /// Eq. 2 with its own coefficients.
    pub surface: SurfaceFit,
    /// For each number of cores per node, the latency over the nodes (Fig. 9).
    pub over_nodes: Vec<Trend>,
    /// For each number of nodes, the latency over the cores per node (Fig. 10).
    pub over_cores: Vec<Trend>,
}

/// One line of Fig. 9 or 10 under the two laws that the paper compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The coordinate that is the same all along: cores per node, or nodes.
    pub fixed: u32,
    /// Points on the line.
    pub points: usize,
    /// y = a·ln(x) + b; none through fewer than three points, which would prove nothing.
    pub logarithmic: Option<Line>,
    /// y = a·x + b; none through fewer than three points.
    pub linear: Option<Line>,
}

impl Trend {
    fn new(fixed: u32, points: impl Iterator<Item = (f64, f64)>) -> Self {
        let points: Vec<_> = points.collect();
        let enough = points.len() > 2;
        Self {
            fixed,
            points: points.len(),
            logarithmic: fit::logarithm(&points).ok().filter(|_| enough),
            linear: fit::line(&points).ok().filter(|_| enough),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Surface;

    fn series(latency: impl Fn(f64, f64) -> f64) -> Series {
        let sizes = [2u32, 4, 8, 16, 32, 64].map(|n| [1u32, 2, 4, 8, 16].map(|c| (n, c)));
        let sample = |(nodes, cores): (u32, u32)| Sample {
            nodes,
            cores,
            latency_us: latency(nodes.into(), cores.into()),
        };
        Series {
            samples: sizes.into_iter().flatten().map(sample).collect(),
            identity: Vec::new(),
        }
    }

    #[test]
    fn without_noise_the_formula_comes_back_and_every_line_is_of_its_law() {
        let found = series(|n, c| Surface::PUBLISHED.at(n, c))
            .fit(Confidence::USUAL)
            .unwrap();
        for (own, published) in found
            .surface
            .surface
            .named()
            .into_iter()
            .zip(Surface::PUBLISHED.named())
        {
            assert_eq!(own.0, published.0);
            assert!((own.1.value - published.1.value).abs() < 1e-9, "{own:?}");
            assert!(own.1.margin < 1e-9);
        }
        assert_eq!((found.over_nodes.len(), found.over_cores.len()), (5, 6));
        for trend in &found.over_nodes {
            assert_eq!(trend.points, 6);
            assert!(trend.logarithmic.unwrap().r_squared > 1.0 - 1e-12);
            // What 1 .. 6 and 2^1 .. 2^6 have in common: Pearson's 201^2 / (17.5 * 2814).
            let linear = trend.linear.unwrap().r_squared;
            assert!((linear - 40_401.0 / 49_245.0).abs() < 1e-9, "{linear}");
        }
        for trend in &found.over_cores {
            assert!(trend.linear.unwrap().r_squared > 1.0 - 1e-12);
            assert!(trend.logarithmic.unwrap().r_squared < 0.9);
        }
        for (nodes, cores, printed) in PUBLISHED_POINTS {
            let expected = found.surface.predict(nodes.into(), cores.into());
            // Printed are whole microseconds, rounded or cut off.
            let us = expected.latency;
            assert!(us.round() == printed || us.floor() == printed, "{us}");
            assert!(expected.margin < 1e-6);
        }
    }

    #[test]
    fn two_points_are_no_trend() {
        let mut few = series(|n, c| n + c);
        few.samples.retain(|sample| sample.nodes <= 4);
        let found = few.fit(Confidence::USUAL).unwrap();
        assert!(found.over_nodes.iter().all(|trend| trend.linear.is_none()));
        assert!(found.over_cores.iter().all(|trend| trend.linear.is_some()));
    }

    #[test]
    fn only_what_all_runs_share_is_kept() {
        let text = |text: &str| Cell::Text(text.into());
        let mut known = None;
        shared(&mut known, vec![text("a"), text("x")]);
        shared(&mut known, vec![text("a"), text("y")]);
        shared(&mut known, vec![text("a"), text("x")]);
        assert_eq!(known, Some(vec![text("a"), Cell::Absent]));
    }
}
