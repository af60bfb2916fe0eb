//! Validation: every published figure beside what the simulation gives, with a verdict.
//!
//! Called by `sme validate`. Takes the figures from [`published`]; each paper ([`papers`]) says
//! which points its figures need, has every point simulated once ([`measure`]) and reads the
//! figures off. Judges them ([`verdict`]) with the entries of DEVIATIONS.md ([`deviations`]) at
//! hand, and reports ([`report`], [`summary`]).

use std::collections::BTreeMap;

pub mod deviations;
pub mod measure;
pub mod papers;
pub mod published;
pub mod report;
pub mod summary;
pub mod verdict;

use crate::progress::Watch;
use deviations::Deviations;
use papers::{Fit, Paper};
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
    /// The key of the only paper whose figures are compared; all papers' where there is none.
    pub only: Option<String>,
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
        let wanted = |figure: &published::Figure| {
            let paper = figure.paper();
            self.only.as_deref().is_none_or(|only| only == paper)
        };
        let known = figures.clone();
        let figures: Vec<_> = figures.into_iter().filter(wanted).collect();
        let fits: Vec<Fit> = self
            .papers
            .iter()
            .flat_map(|paper| paper.fitted())
            .collect();
        let (mut found, mut points, mut elsewhere) = (BTreeMap::new(), 0, Vec::new());
        for paper in &self.papers {
            let (key, on) = paper.on();
            if on != self.identity.on && figures.iter().any(|figure| figure.paper() == key) {
                elsewhere.push((key, on));
            }
            let of_paper = paper.read_off(&figures, self.workers, watch);
            found.extend(of_paper.found);
            points += of_paper.points;
        }
        let rows = figures.into_iter().map(|figure| {
            let found = found.remove(&figure.id);
            Row::new(figure, found, &fits, deviations).with_used(&known)
        });
        Report {
            rows: rows.collect(),
            fits,
            points,
            elsewhere,
            identity: self.identity,
        }
    }
}
