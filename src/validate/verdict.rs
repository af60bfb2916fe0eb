//! One row per figure: published, simulated, verdict.
//!
//! Called by [`super::Validation`] with what an estimator found.

use std::collections::BTreeMap;

use super::deviations::Deviations;
use super::papers::{Finding, SIMULATED};
use super::published::{Figure, Kind};

/// What the comparison of a figure came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The simulation gives it, and nothing was fitted to it.
    Reproduced,
    /// The simulation gives it, and something was fitted to it.
    Calibrated,
    /// The simulation misses it; DEVIATIONS.md says why, or has to.
    Deviates,
    /// The authors calculated it; the simulation stands beside it, unjudged.
    Derived,
    /// The machine is described with it.
    Input,
    /// Nothing simulates it yet.
    NotSimulated,
    /// A simulation that it needs did not end well.
    Failed,
}

impl Verdict {
    /// In a row.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Calibrated => "calibrated",
            Verdict::Deviates => "deviates",
            Verdict::Derived => "derived",
            Verdict::Input => "input",
            Verdict::NotSimulated => "not simulated",
            Verdict::Failed => "failed",
        }
    }
}

/// One figure's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The published figure.
    pub figure: Figure,
    /// The simulated one, in the same unit.
    pub simulated: Option<f64>,
    /// 95 % confidence interval of a fitted coefficient.
    pub interval: Option<(f64, f64)>,
    /// What the comparison came to.
    pub verdict: Verdict,
    /// Whether DEVIATIONS.md has an entry.
    pub explained: bool,
    /// What was fitted to the figure: constants of the machine file, named choices.
    pub fitted: Vec<String>,
    /// Conditions, each with whether it holds, and what else a reader should know.
    pub notes: Vec<String>,
}

impl Row {
    /// The row of a figure from what its estimator found: `None` where nothing simulates it.
    pub fn new(
        figure: Figure,
        found: Option<Result<Finding, String>>,
        fitted: &BTreeMap<String, Vec<String>>,
        deviations: &Deviations,
    ) -> Self {
        let explained = deviations.explain(&figure.id);
        let fitted = fitted.get(&figure.id).cloned().unwrap_or_default();
        let (finding, verdict) = match found {
            None => (Finding::default(), unsimulated(&figure)),
            Some(Err(reason)) => {
                let notes = vec![reason];
                let finding = Finding {
                    notes,
                    ..Finding::default()
                };
                (finding, Verdict::Failed)
            }
            Some(Ok(finding)) => {
                let verdict = judge(&figure, &finding, !fitted.is_empty());
                (finding, verdict)
            }
        };
        let conditions = finding.conditions.iter().map(|condition| {
            let mark = if condition.met { "" } else { "NOT MET: " };
            format!("{mark}{}", condition.what)
        });
        Self {
            simulated: finding.simulated,
            interval: finding.interval,
            verdict,
            explained,
            fitted,
            notes: conditions.chain(finding.notes.iter().cloned()).collect(),
            figure,
        }
    }

    /// Whether this row makes the validation fail.
    pub fn fails(&self) -> bool {
        match self.verdict {
            Verdict::Deviates => !self.explained,
            Verdict::Failed => true,
            _ => false,
        }
    }

    /// Whether DEVIATIONS.md explains what is no longer, or not yet, a miss.
    pub fn stale(&self) -> bool {
        let may_stand = matches!(self.verdict, Verdict::Deviates | Verdict::Failed);
        self.explained && !may_stand && self.verdict != Verdict::Derived
    }

    /// Relative to the published value; the plain difference where that is 0.
    pub fn error(&self) -> Option<f64> {
        self.figure.error(self.simulated?)
    }
}

fn unsimulated(figure: &Figure) -> Verdict {
    // What describes a machine that is simulated has done its work.
    let paper = figure.id.split('.').next().unwrap_or_default();
    if figure.kind == Kind::Input && SIMULATED.contains(&paper) {
        Verdict::Input
    } else {
        Verdict::NotSimulated
    }
}

fn judge(figure: &Figure, finding: &Finding, fitted: bool) -> Verdict {
    let holds = finding.conditions.iter().all(|condition| condition.met);
    let within = finding
        .simulated
        .is_some_and(|simulated| figure.admits(simulated));
    match figure.kind {
        Kind::Derived if holds => Verdict::Derived,
        Kind::Derived => Verdict::Deviates,
        _ if !(within && holds) => Verdict::Deviates,
        Kind::Input => Verdict::Input,
        Kind::Result | Kind::Shape if fitted => Verdict::Calibrated,
        Kind::Result | Kind::Shape => Verdict::Reproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::super::published::parse;
    use super::*;

    fn row(
        kind: &str,
        found: Option<Result<Finding, String>>,
        fitted: bool,
        explained: bool,
    ) -> Row {
        let text = format!(
            "[[figure]]\nid = \"sme.one\"\nkind = \"{kind}\"\nvalue = 10\nunit = \"us\"\nwhere = \"Sec. 1\"\n"
        );
        let entry = if explained {
            "## sme.one\nBecause.\n"
        } else {
            ""
        };
        let fits = [("sme.one".to_owned(), vec!["link.wire".to_owned()])];
        let fitted = fits.into_iter().filter(|_| fitted).collect();
        let figure = parse(&text).unwrap().remove(0);
        Row::new(figure, found, &fitted, &Deviations::parse(entry))
    }

    fn found(simulated: f64, met: bool) -> Option<Result<Finding, String>> {
        let what = "it is so".to_owned();
        Some(Ok(Finding {
            simulated: Some(simulated),
            conditions: vec![super::super::papers::Condition { met, what }],
            ..Finding::default()
        }))
    }

    #[test]
    fn verdicts() {
        use Verdict::*;
        for (kind, simulated, met, fitted, verdict) in [
            ("result", 10.9, true, false, Reproduced),
            ("result", 10.9, true, true, Calibrated),
            ("result", 11.1, true, false, Deviates),
            ("result", 11.1, true, true, Deviates),
            ("result", 10.0, false, true, Deviates),
            ("shape", 9.0, true, false, Reproduced),
            ("input", 10.0, true, true, Input),
            ("input", 12.0, true, false, Deviates),
            ("derived", 99.0, true, false, Derived),
            ("derived", 99.0, false, false, Deviates),
        ] {
            let row = row(kind, found(simulated, met), fitted, false);
            assert_eq!(row.verdict, verdict, "{kind} {simulated} {met} {fitted}");
            assert_eq!(row.fails(), verdict == Deviates);
        }
        assert_eq!(row("input", None, false, false).verdict, Input);
        assert_eq!(row("result", None, false, false).verdict, NotSimulated);
    }

    #[test]
    fn an_entry_excuses_a_miss_but_no_failure_and_goes_stale() {
        assert!(!row("result", found(20.0, true), false, true).fails());
        assert!(!row("result", found(20.0, true), false, true).stale());
        let failed = row("result", Some(Err("deadlock".into())), false, true);
        assert!(failed.fails() && failed.notes == ["deadlock"]);
        assert!(row("result", found(10.0, true), false, true).stale());
        assert!(row("result", None, false, true).stale());
        assert!(!row("derived", found(10.0, true), false, true).stale());
    }

    #[test]
    fn an_unmet_condition_is_marked() {
        let row = row("result", found(10.0, false), false, false);
        assert_eq!(row.notes, ["NOT MET: it is so"]);
    }
}
