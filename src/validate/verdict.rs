//! One row per figure: published, simulated, verdict.
//!
//! Called by [`super::Validation`] with what an estimator found.

use super::deviations::{Deviations, Explanation};
use super::papers::{Finding, Fit, On, SIMULATED};
use super::published::{Figure, Kind};
use crate::messages::line::Line;

/// The verdict of the comparison of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The simulation gives it, and nothing was fitted to it.
    Reproduced,
    /// The simulation gives it, and something was fitted to it.
    Calibrated,
    /// The simulation misses it; DEVIATIONS.md says why, or has to.
    Deviates,
    /// It holds, and follows from inputs without the simulation.
    FollowsFromInputs,
    /// The authors calculated it; the simulation stands beside it, unjudged.
    Derived,
    /// The machine is described with it: its value was compared with the machine's.
    Input,
    /// An input of the paper that nothing compares with the machine.
    NotChecked,
    /// Nothing simulates it yet.
    NotSimulated,
    /// A simulation that it needs did not end well.
    Failed,
}

impl Verdict {
    /// Every verdict, in the order of a summary.
    pub const ALL: [Verdict; 9] = [
        Verdict::Reproduced,
        Verdict::Calibrated,
        Verdict::Deviates,
        Verdict::FollowsFromInputs,
        Verdict::Derived,
        Verdict::Input,
        Verdict::NotChecked,
        Verdict::NotSimulated,
        Verdict::Failed,
    ];

    /// The verdict's name in a row.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Calibrated => "calibrated",
            Verdict::Deviates => "deviates",
            Verdict::FollowsFromInputs => "follows from inputs",
            Verdict::Derived => "derived",
            Verdict::Input => "input",
            Verdict::NotChecked => "not checked",
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
    /// The simulated line, of a figure that is one.
    pub line: Option<Line>,
    /// 95 % confidence interval of a fitted coefficient.
    pub interval: Option<(f64, f64)>,
    /// The verdict of the comparison.
    pub verdict: Verdict,
    /// The share that its entry in DEVIATIONS.md explains; none where it has no entry.
    pub explained: Option<Explanation>,
    /// The constants of the machine file and the named choices that were fitted to the figure.
    pub fitted: Vec<String>,
    /// Published results that its simulation was given as inputs.
    pub used: Vec<Used>,
    /// Conditions, each with whether it holds, and further notes.
    pub notes: Vec<String>,
    /// The machine that it was simulated on, if it is not that of its paper.
    pub on: Option<On>,
    /// Whether it would be simulated, and was not asked for.
    pub is_left_out: bool,
}

/// A published result that a simulation was given as an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The result's id.
    pub id: String,
    /// Its value with its unit.
    pub value: String,
}

impl Row {
    /// The row of a figure from what its estimator found: `None` where nothing simulates it. `fits`
    /// may be about any figures.
    pub fn new(
        figure: Figure,
        found: Option<Result<Finding, String>>,
        fits: &[Fit],
        deviations: &Deviations,
    ) -> Self {
        let explained = deviations.explain(&figure.id);
        let fits = fits.iter().filter(|fit| fit.figures.contains(&figure.id));
        let fitted: Vec<String> = fits.map(|fit| fit.name.clone()).collect();
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
            line: finding.line,
            interval: finding.interval,
            verdict,
            explained,
            fitted,
            used: Vec::new(),
            notes: conditions.chain(finding.notes.iter().cloned()).collect(),
            on: None,
            is_left_out: false,
            figure,
        }
    }

    /// The same with the values of the results among `figures` that the figure names as used.
    pub fn with_used(mut self, figures: &[Figure]) -> Self {
        let used = figures
            .iter()
            .filter(|other| self.figure.uses.contains(&other.id));
        self.used = used
            .map(|other| Used {
                id: other.id.clone(),
                value: match other.unit.as_str() {
                    "1" => other.written(),
                    unit => format!("{} {unit}", other.written()),
                },
            })
            .collect();
        self
    }

    /// Returns whether this row makes the validation fail.
    pub fn fails(&self) -> bool {
        match self.verdict {
            Verdict::Deviates => self.explained.is_none(),
            Verdict::Failed => true,
            _ => false,
        }
    }

    /// Returns whether DEVIATIONS.md explains what is no longer, or not yet, a miss.
    pub fn stale(&self) -> bool {
        let may_stand = matches!(self.verdict, Verdict::Deviates | Verdict::Failed);
        let is_left_out = self.is_left_out || self.verdict == Verdict::Derived;
        self.explained.is_some() && !may_stand && !is_left_out
    }

    /// Relative to the published value; the plain difference where that is 0. Of a line the error
    /// of its fixed cost.
    pub fn error(&self) -> Option<f64> {
        match self.line {
            Some(line) => Some(self.figure.line_errors(line)?.1),
            None => self.figure.error(self.simulated?),
        }
    }

    /// The simulated figure over the published one; none where either is missing or a line, where
    /// the published one is 0, and where their signs differ.
    pub fn ratio(&self) -> Option<f64> {
        let ratio = self.simulated? / self.figure.number()?;
        (ratio.is_finite() && ratio >= 0.0).then_some(ratio)
    }
}

fn unsimulated(figure: &Figure) -> Verdict {
    if figure.kind == Kind::Input && SIMULATED.contains(&figure.paper()) {
        Verdict::NotChecked
    } else {
        Verdict::NotSimulated
    }
}

fn judge(figure: &Figure, finding: &Finding, fitted: bool) -> Verdict {
    let holds = finding.conditions.iter().all(|condition| condition.met);
    let number = finding.simulated;
    let within = number.is_some_and(|simulated| figure.admits(simulated))
        || finding.line.is_some_and(|line| figure.admits_line(line));
    match figure.kind {
        Kind::Derived if holds => Verdict::Derived,
        Kind::Derived => Verdict::Deviates,
        _ if !(within && holds) => Verdict::Deviates,
        Kind::Input => Verdict::Input,
        _ if !figure.follows_from.is_empty() => Verdict::FollowsFromInputs,
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
        let fits = [Fit::constant("link.wire", &["sme.one"])];
        let fits = if fitted { &fits[..] } else { &[] };
        let figure = parse(&text).unwrap().remove(0);
        Row::new(figure, found, fits, &Deviations::parse(entry))
    }

    /// A shape that follows from an input, found to be `simulated`, fitted to or not.
    fn following(simulated: f64, fitted: bool) -> Row {
        let text = "[[figure]]\nid = \"sme.in\"\nkind = \"input\"\nvalue = 4\nunit = \"1\"\nwhere = \"Sec. 1\"\n\
                    [[figure]]\nid = \"sme.one\"\nkind = \"shape\"\nvalue = 10\nunit = \"1\"\n\
                    follows_from = [\"sme.in\"]\nwhere = \"Sec. 2\"\n";
        let figure = parse(text).unwrap().remove(1);
        let fits = [Fit::constant("link.wire", &["sme.one"])];
        let fits = if fitted { &fits[..] } else { &[] };
        Row::new(figure, found(simulated, true), fits, &Deviations::default())
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
        assert_eq!(row("input", None, false, false).verdict, NotChecked);
        assert_eq!(following(10.0, false).verdict, FollowsFromInputs);
        assert_eq!(following(10.0, true).verdict, FollowsFromInputs);
        assert_eq!(following(12.0, false).verdict, Deviates);
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
        let left_out = Row {
            is_left_out: true,
            ..row("result", None, false, true)
        };
        assert!(!left_out.stale());
        assert!(!row("derived", found(10.0, true), false, true).stale());
    }

    #[test]
    fn a_ratio_has_two_numbers_of_one_sign() {
        let ratio = |simulated| row("result", found(simulated, true), false, false).ratio();
        assert_eq!([9.0, 0.0, -1.0].map(ratio), [Some(0.9), Some(0.0), None]);
        assert_eq!(row("result", None, false, false).ratio(), None);
    }

    #[test]
    fn the_results_used_come_with_their_values() {
        let text = "[[figure]]\nid = \"sme.load\"\nkind = \"result\"\nvalue = 534\nunit = \"ns\"\nwhere = \"Sec. 1\"\n\
                    [[figure]]\nid = \"sme.barrier\"\nkind = \"result\"\nvalue = 43\nunit = \"us\"\n\
                    uses = [\"sme.load\"]\nwhere = \"Sec. 2\"\n";
        let figures = parse(text).unwrap();
        let of = |index: usize| {
            let row = Row::new(figures[index].clone(), None, &[], &Deviations::default());
            row.with_used(&figures).used
        };
        let used = Used {
            id: "sme.load".into(),
            value: "534 ns".into(),
        };
        assert_eq!((of(0), of(1)), (Vec::new(), vec![used]));
    }

    #[test]
    fn an_unmet_condition_is_marked() {
        let row = row("result", found(10.0, false), false, false);
        assert_eq!(row.notes, ["NOT MET: it is so"]);
    }
}
