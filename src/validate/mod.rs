//! Validation: every published figure beside what the simulation gives, with a verdict.
//!
//! Called by `sme validate`. Takes the figures from [`published`], asks each one's estimator
//! ([`estimators`]) which points it needs, has every point simulated once ([`points`]), lets the
//! estimators read the figures off, judges them ([`verdict`]) with the entries of DEVIATIONS.md
//! ([`deviations`]) at hand, and reports ([`report`]). What simulates is a [`Simulate`]: the
//! machine itself is one ([`simulator`]).

use std::collections::BTreeMap;

pub mod deviations;
pub mod estimators;
pub mod points;
pub mod published;
pub mod report;
pub mod simulator;
pub mod verdict;

use crate::progress::Watch;
use deviations::Deviations;
use estimators::Finding;
use points::{Measurements, Simulate};
use published::PublishedError;
pub use report::{Identity, Report};
use verdict::Row;

/// Choices that no paper publishes, in the algorithms and in what the machine's constants count, and
/// the figure by which each was made.
pub const CALIBRATED_CHOICES: &[(&str, &str)] = &[
    (
        "the tree's shape and the mapping of its masters to nodes",
        "sme.fig8.tree.64x1",
    ),
    (
        "flag-phase's layout: a machine word a flag, the phase among them",
        "sme.fig3.local.16_threads",
    ),
    // With the prototype's time kept instead, sme-asic with link.serdes = 138 cycles, a remote load takes
    // 805 ns, not 528.
    (
        "the transceivers' stages count in cycles of the engine's clock",
        "sme.fig4.asic_remote_load",
    ),
    (
        "how finely the data of the FFT is spread over the nodes: by the line",
        "sme.fft.scaling",
    ),
];

/// A validation: what is validated, and how.
pub struct Validation<'a> {
    /// What identifies it in every row.
    pub identity: Identity,
    /// What simulates the points.
    pub simulate: &'a dyn Simulate,
    /// The constants of the machine that were fitted: a constant's key, the figures it was fitted
    /// to.
    pub fitted: Vec<(String, Vec<String>)>,
    /// What the machine has of the published inputs: a figure's id, the value in its unit.
    pub inputs: Vec<(&'static str, f64)>,
    /// Whether programs are run for the figures that need it.
    pub programs: bool,
    /// Threads of the host; the report does not depend on it.
    pub workers: usize,
}

impl Validation<'_> {
    /// Compares the built-in figures, with the built-in DEVIATIONS.md.
    pub fn run(self, watch: &dyn Watch) -> Result<Report, PublishedError> {
        let figures = published::built_in()?;
        Ok(self.compare(figures, &Deviations::built_in(), watch))
    }

    /// Compares `figures`, of which `deviations` explains some.
    pub fn compare(
        self,
        figures: Vec<published::Figure>,
        deviations: &Deviations,
        watch: &dyn Watch,
    ) -> Report {
        let fitted = by_figure(&self.fitted);
        let estimator = |id: &str| {
            let estimator = estimators::of(id);
            estimator.filter(|estimator| self.programs || !estimator.runs_programs())
        };
        let needed = figures
            .iter()
            .filter_map(|figure| estimator(&figure.id))
            .flat_map(|estimator| (estimator.points)());
        let measured = Measurements::take(needed, self.simulate, self.workers, watch);
        let rows = figures.into_iter().map(|figure| {
            let input = self.inputs.iter().find(|(id, _)| *id == figure.id);
            let found = match estimator(&figure.id) {
                Some(estimator) => Some((estimator.find)(&measured)),
                None => input.map(|(_, value)| Ok(Finding::of(*value))),
            };
            Row::new(figure, found, &fitted, deviations)
        });
        Report {
            rows: rows.collect(),
            points: measured.len(),
            identity: self.identity,
        }
    }
}

/// What was fitted to each figure, the named choices included.
fn by_figure(constants: &[(String, Vec<String>)]) -> BTreeMap<String, Vec<String>> {
    let mut fitted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (constant, figures) in constants {
        for figure in figures {
            fitted
                .entry(figure.clone())
                .or_default()
                .push(constant.clone());
        }
    }
    for (choice, figure) in CALIBRATED_CHOICES {
        fitted
            .entry((*figure).to_owned())
            .or_default()
            .push((*choice).to_owned());
    }
    fitted
}
