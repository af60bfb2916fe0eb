//! Validation: every published figure beside what the simulation gives, with a verdict.
//!
//! Called by `sme validate`. Takes the figures from [`published`]; each paper ([`papers`]) says
//! which points its figures need, has every point simulated once ([`measure`]) and reads the
//! figures off. Judges them ([`verdict`]) with the entries of DEVIATIONS.md ([`deviations`]) at
//! hand, and reports ([`report`], [`summary`]).

use std::collections::{BTreeMap, BTreeSet};

pub mod deviations;
pub mod measure;
pub mod papers;
pub mod published;
pub mod report;
pub mod summary;
pub mod verdict;

use crate::progress::Watch;
use deviations::Deviations;
use papers::{On, Paper};
use published::PublishedError;
pub use report::{Identity, Report};
use verdict::Row;

/// A validation: what is validated, and how.
pub struct Validation<'a> {
    /// The identity that stands in every row.
    pub identity: Identity,
    /// The papers whose figures are simulated.
    pub papers: Vec<Box<dyn Paper + 'a>>,
    /// Threads of the host; the report does not depend on it.
    pub workers: usize,
    /// The key of the only paper whose figures are compared; all papers' where there is none.
    pub only: Option<String>,
}

impl Validation<'_> {
    /// Compares the built-in figures, with the built-in DEVIATIONS.md. Calls `each` with the report
    /// so far whenever the rows of a paper are complete.
    ///
    /// # Errors
    /// If the built-in figures cannot be read.
    pub fn run(
        self,
        watch: &dyn Watch,
        each: &mut dyn FnMut(&Report),
    ) -> Result<Report, PublishedError> {
        let figures = published::built_in()?;
        Ok(self.compare_telling(figures, &Deviations::built_in(), watch, each))
    }

    /// Compares `figures`, of which `deviations` explains some.
    pub fn compare(
        self,
        figures: Vec<published::Figure>,
        deviations: &Deviations,
        watch: &dyn Watch,
    ) -> Report {
        self.compare_telling(figures, deviations, watch, &mut |_| {})
    }

    fn compare_telling(
        self,
        figures: Vec<published::Figure>,
        deviations: &Deviations,
        watch: &dyn Watch,
        each: &mut dyn FnMut(&Report),
    ) -> Report {
        let wanted = |figure: &published::Figure| {
            let paper = figure.paper();
            self.only.as_deref().is_none_or(|only| only == paper)
        };
        let known = figures.clone();
        let figures: Vec<_> = figures.into_iter().filter(wanted).collect();
        let elsewhere = self.papers.iter().map(|paper| paper.on());
        let is_elsewhere = |(key, on): &(&str, On)| {
            *on != self.identity.on && figures.iter().any(|figure| figure.paper() == *key)
        };
        let mut report = Report {
            rows: Vec::with_capacity(figures.len()),
            fits: self
                .papers
                .iter()
                .flat_map(|paper| paper.fitted())
                .collect(),
            points: 0,
            elsewhere: elsewhere.filter(is_elsewhere).collect(),
            identity: self.identity.clone(),
        };
        let (mut found, mut rest) = (BTreeMap::new(), figures.iter().cloned().peekable());
        let (mut machines, mut left_out) = (BTreeMap::new(), BTreeSet::new());
        let mut to_come: Vec<&str> = self.papers.iter().map(|paper| paper.on().0).collect();
        for paper in &self.papers {
            let of_paper = paper.read_off(&figures, self.workers, watch);
            found.extend(of_paper.found);
            machines.extend(of_paper.machines);
            left_out.extend(of_paper.left_out);
            report.points += of_paper.points;
            to_come.remove(0);
            while let Some(figure) = rest.next_if(|figure| !to_come.contains(&figure.paper())) {
                let found = found.remove(&figure.id);
                let mut row = Row::new(figure, found, &report.fits, deviations);
                row.on = machines.remove(&row.figure.id);
                row.is_left_out = left_out.contains(&row.figure.id);
                report.rows.push(row.with_used(&known));
            }
            each(&report);
        }
        let rows = rest.map(|figure| Row::new(figure, None, &report.fits, deviations));
        let rows: Vec<Row> = rows.map(|row| row.with_used(&known)).collect();
        report.rows.extend(rows);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use papers::{Fit, ReadOff};

    /// A paper of which nothing is simulated.
    struct Named(&'static str);

    impl Paper for Named {
        fn on(&self) -> (&'static str, On) {
            (self.0, On::default())
        }

        fn fitted(&self) -> Vec<Fit> {
            Vec::new()
        }

        fn read_off(&self, _: &[published::Figure], _: usize, _: &dyn Watch) -> ReadOff {
            ReadOff::default()
        }
    }

    /// Rows are told of when those of their paper, and all before them, are there: each once, in
    /// the order of the figures, in both formats as in the end.
    #[test]
    fn rows_are_told_of_paper_by_paper() {
        let figures = published::built_in().unwrap();
        let mut papers = published::papers(&figures);
        papers.sort_unstable();
        papers.dedup();
        let named = |paper: &str| -> Box<dyn Paper> { Box::new(Named(paper.to_owned().leak())) };
        let validation = || Validation {
            identity: Identity {
                on: On::default(),
                episodes: 1,
                seed: 1,
                noise: None,
            },
            papers: papers.iter().map(|paper| named(paper)).collect(),
            workers: 1,
            only: None,
        };
        let (mut told, mut json, mut csv) = (Vec::new(), String::new(), String::new());
        let report = validation().run(&Silent, &mut |report| {
            let before = told.last().copied().unwrap_or(0);
            json += &report.json_from(before);
            csv += &report.csv_from(before);
            told.push(report.rows.len());
        });
        let report = report.unwrap();
        assert_eq!(told.len(), papers.len());
        assert_eq!(told.last(), Some(&figures.len()));
        assert!(told[0] < figures.len(), "{told:?}");
        assert_eq!((json, csv), (report.to_json(), report.to_csv()));
        let ids = |report: &Report| -> Vec<String> {
            let rows = report.rows.iter();
            rows.map(|row| row.figure.id.clone()).collect()
        };
        let expected: Vec<String> = figures.iter().map(|figure| figure.id.clone()).collect();
        assert_eq!(ids(&report), expected);
        assert_eq!(validation().identity.keys().unwrap(), report.to_cells().0);
    }
}
