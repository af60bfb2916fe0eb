//! Validation: every published figure beside what the simulation gives, with a verdict.
//!
//! Called by `sme validate`. Takes the figures from [`published`]; each paper ([`papers`]) says
//! which points its figures need, has every point simulated once ([`measure`]) and reads the
//! figures off. Judges them ([`verdict`]) with the entries of DEVIATIONS.md ([`deviations`]) at
//! hand, and reports ([`report`]).

use std::collections::BTreeMap;

pub mod deviations;
pub mod measure;
pub mod papers;
pub mod published;
pub mod report;
pub mod verdict;

use crate::progress::Watch;
use deviations::Deviations;
use papers::Paper;
use published::PublishedError;
pub use report::{Identity, Report};
use verdict::Row;

/// A validation: what is validated, and how.
pub struct Validation<'a> {
    /// What identifies it in every row.
    pub identity: Identity,
    /// The papers whose figures are simulated.
    pub papers: Vec<Box<dyn Paper + 'a>>,
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
        let fitted = by_figure(self.papers.iter().flat_map(|paper| paper.fitted()));
        let (mut found, mut points) = (BTreeMap::new(), 0);
        for paper in &self.papers {
            let of_paper = paper.read_off(&figures, self.workers, watch);
            found.extend(of_paper.found);
            points += of_paper.points;
        }
        let rows = figures.into_iter().map(|figure| {
            let found = found.remove(&figure.id);
            Row::new(figure, found, &fitted, deviations)
        });
        Report {
            rows: rows.collect(),
            points,
            identity: self.identity,
        }
    }
}

/// Constants and choices by the figures to which they were fitted.
fn by_figure(fitted: impl Iterator<Item = (String, Vec<String>)>) -> BTreeMap<String, Vec<String>> {
    let mut by_figure: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (what, figures) in fitted {
        for figure in figures {
            by_figure.entry(figure).or_default().push(what.clone());
        }
    }
    by_figure
}
