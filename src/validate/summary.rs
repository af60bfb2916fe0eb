//! The summary of a validation: for each paper the number of figures by verdict, and beside them
//! the number of constants and choices that were fitted to its figures.
//!
//! Called by [`super::report`].

use std::collections::BTreeMap;

use super::deviations::Explanation;
use super::papers::{Fit, FitKind};
use super::verdict::{Row, Verdict};
use crate::report::row::Cell;
use crate::report::table::aligned;

/// The verdicts that have a column in every summary; others have one where a figure came to them.
const ALWAYS: [Verdict; 5] = [
    Verdict::Reproduced,
    Verdict::Calibrated,
    Verdict::Deviates,
    Verdict::FollowsFromInputs,
    Verdict::NotSimulated,
];

/// The summary of one paper.
struct Paper<'a> {
    key: &'a str,
    counts: BTreeMap<Verdict, usize>,
    constants: usize,
    choices: usize,
}

impl<'a> Paper<'a> {
    /// The paper `key`, of which `rows` has some and `fits` may be about other papers.
    fn new(key: &'a str, rows: &[Row], fits: &[Fit]) -> Self {
        let mut counts = BTreeMap::new();
        for row in rows.iter().filter(|row| row.figure.paper() == key) {
            *counts.entry(row.verdict).or_default() += 1;
        }
        let of_paper = |id: &String| id.split('.').next() == Some(key);
        let fitted = |kind: FitKind| {
            let fits = fits.iter().filter(|fit| fit.kind == kind);
            fits.filter(|fit| fit.figures.iter().any(of_paper)).count()
        };
        Self {
            key,
            counts,
            constants: fitted(FitKind::Constant),
            choices: fitted(FitKind::Choice),
        }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.counts.get(&verdict).copied().unwrap_or(0)
    }
}

/// The papers of `rows`, a line each, and their sum. Every row is counted once.
pub(super) fn of(rows: &[Row], fits: &[Fit]) -> String {
    let mut keys: Vec<&str> = rows.iter().map(|row| row.figure.paper()).collect();
    keys.dedup();
    let papers: Vec<Paper<'_>> = keys.iter().map(|key| Paper::new(key, rows, fits)).collect();
    let sum = |verdict| {
        papers
            .iter()
            .map(|paper| paper.count(verdict))
            .sum::<usize>()
    };
    let columns: Vec<Verdict> = Verdict::ALL
        .into_iter()
        .filter(|verdict| ALWAYS.contains(verdict) || sum(*verdict) > 0)
        .collect();

    let mut heading = vec!["paper".to_owned(), "figures".to_owned()];
    heading.extend(columns.iter().map(|verdict| verdict.name().to_owned()));
    heading.extend(["fitted constants", "fitted choices"].map(str::to_owned));
    let number = |count: usize| Cell::Count(count as u64);
    let body: Vec<Vec<Cell>> = papers
        .iter()
        .map(|paper| {
            let mut cells = vec![Cell::text(paper.key)];
            cells.push(number(paper.counts.values().sum()));
            cells.extend(columns.iter().map(|verdict| number(paper.count(*verdict))));
            cells.extend([paper.constants, paper.choices].map(number));
            cells
        })
        .collect();

    let counted = Verdict::ALL.into_iter().filter(|verdict| sum(*verdict) > 0);
    let counted = counted.map(|verdict| match verdict {
        Verdict::Deviates => {
            let deviating = rows.iter().filter(|row| row.verdict == verdict);
            let explanations: Vec<_> = deviating.filter_map(|row| row.explained).collect();
            let partly = |explained: &&Explanation| **explained == Explanation::Part;
            format!(
                "{} deviating ({} explained, {} of them in part)",
                sum(verdict),
                explanations.len(),
                explanations.iter().filter(partly).count()
            )
        }
        Verdict::FollowsFromInputs => format!("{} following from inputs", sum(verdict)),
        other => format!("{} {}", sum(other), other.name()),
    });
    let counted: Vec<String> = counted.collect();
    format!(
        "{}\n{} figures: {}\n",
        aligned(&heading, &body),
        rows.len(),
        counted.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::deviations::Deviations;
    use super::super::papers::Finding;
    use super::super::published::parse;
    use super::*;

    /// A row of figure `id` of `kind`, with a published value of 10.
    fn row(id: &str, kind: &str, simulated: Option<f64>, fits: &[Fit]) -> Row {
        let text = format!(
            "[[figure]]\nid = \"{id}\"\nkind = \"{kind}\"\nvalue = 10\nunit = \"us\"\nwhere = \"Sec. 1\"\n"
        );
        let found = simulated.map(|simulated| Ok(Finding::of(simulated)));
        let figure = parse(&text).unwrap().remove(0);
        let deviations = "## sme.miss\nBecause.\n## sme.open\nSo.\n*Open*: why.\n";
        let deviations = Deviations::parse(deviations);
        Row::new(figure, found, fits, &deviations)
    }

    #[test]
    fn every_paper_has_its_counts_and_its_fits() {
        let fits = [
            Fit::constant("link.wire", &["sme.hit", "sme.other"]),
            Fit::constant("host.cycles", &["sme.hit"]),
            Fit::choice("the shape", &["mppa.shape"]),
        ];
        let row = |id: &str, kind: &str, simulated| row(id, kind, simulated, &fits);
        let rows = [
            row("sme.in", "input", Some(10.0)),
            row("sme.unseen", "input", None),
            row("sme.hit", "result", Some(10.0)),
            row("sme.alone", "result", Some(9.5)),
            row("sme.miss", "result", Some(20.0)),
            row("sme.open", "result", Some(20.0)),
            row("sme.sum", "derived", Some(20.0)),
            row("mppa.later", "result", None),
        ];
        let expected = "\
paper  figures  reproduced  calibrated  deviates  follows from inputs  derived  input  not checked  not simulated  fitted constants  fitted choices
sme          7           1           1         2                    0        1      1            1              0                 2               0
mppa         1           0           0         0                    0        0      0            0              1                 0               1

8 figures: 1 reproduced, 1 calibrated, 2 deviating (2 explained, 1 of them in part), 1 derived, 1 input, 1 not checked, 1 not simulated
";
        assert_eq!(of(&rows, &fits), expected);
    }
}
