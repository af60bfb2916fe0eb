//! The published figures: `reference/published.toml`, built in, read strictly.
//!
//! Called by [`super::Validation`]. What the keys mean stands at the top of that file.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::messages::line::Line;

/// The file as it is built in.
const BUILT_IN: &str = include_str!("../../reference/published.toml");

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Unique; begins with the paper's key and a dot.
    pub id: String,
    /// The kind of the figure: what it is to the authors.
    pub kind: Kind,
    /// The figure, in `unit`.
    pub value: Value,
    /// The comparison with a simulated figure.
    pub comparison: Comparison,
    /// Relative tolerance, absolute where the value is 0.
    pub tolerance: f64,
    /// `1` where it has none.
    pub unit: String,
    /// The estimator that reads the figure off a curve.
    pub estimator: Option<String>,
    /// Inputs from which it follows without a simulation.
    pub follows_from: Vec<String>,
    /// Published results that its simulation is given as inputs.
    pub uses: Vec<String>,
    /// The place in the paper, and what has to be known to read the figure.
    pub place: String,
}

/// The kind of a figure: what it is to the authors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A property of the machine or of the experiment.
    Input,
    /// Measured.
    Result,
    /// Calculated from what was measured.
    Derived,
    /// Said of a curve.
    Shape,
}

/// A figure's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A cost of `per_byte`·N + `fixed` for N bytes.
    Linear {
        /// Unit per byte.
        per_byte: f64,
        /// In the unit.
        fixed: f64,
    },
}

/// The comparison of a simulated figure with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Comparison {
    /// Within the tolerance on both sides.
    #[serde(rename = "~")]
    About,
    /// Less, give or take the tolerance, but no less than 0.7 of it: a barrier that costs nothing
    /// reproduces nothing.
    #[serde(rename = "<")]
    Below,
    /// More, give or take the tolerance.
    #[serde(rename = ">")]
    Above,
    /// As much or more, give or take the tolerance.
    #[serde(rename = ">=")]
    AtLeast,
}

impl Comparison {
    /// The comparison as the file writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::About => "~",
            Comparison::Below => "<",
            Comparison::Above => ">",
            Comparison::AtLeast => ">=",
        }
    }
}

/// Why a file of published figures is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// Not TOML, or not these tables.
    #[error("published figures: {0}")]
    Syntax(String),
    /// A table that says too much, too little, or something impossible.
    #[error("published figure '{id}': {reason}")]
    Figure {
        /// The figure.
        id: String,
        /// The fault.
        reason: String,
    },
}

/// The built-in figures, in the order of the file.
pub fn built_in() -> Result<Vec<Figure>, PublishedError> {
    parse(BUILT_IN)
}

/// Reads figures from TOML text.
pub fn parse(text: &str) -> Result<Vec<Figure>, PublishedError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        PublishedError::Syntax(format!("line {line}: {}", error.message()))
    })?;
    let mut ids = BTreeSet::new();
    let mut figures = Vec::with_capacity(file.figure.len());
    for entry in file.figure {
        let id = entry.id.clone();
        if !ids.insert(id.clone()) {
            let reason = "appears twice".to_owned();
            return Err(PublishedError::Figure { id, reason });
        }
        figures.push(figure(entry).map_err(|reason| PublishedError::Figure {
            id,
            reason: reason.to_owned(),
        })?);
    }
    for figure in &figures {
        references(figure, &figures).map_err(|reason| PublishedError::Figure {
            id: figure.id.clone(),
            reason,
        })?;
    }
    Ok(figures)
}

/// Checks that `figure` follows from inputs and uses results, and that `figures` has them.
fn references(figure: &Figure, figures: &[Figure]) -> Result<(), String> {
    let keys = [
        ("follows_from", &figure.follows_from, true),
        ("uses", &figure.uses, false),
    ];
    for (key, ids, inputs) in keys {
        for id in ids {
            let Some(named) = figures.iter().find(|other| other.id == *id) else {
                return Err(format!("'{key}' names '{id}', which is no figure"));
            };
            if named.id == figure.id {
                return Err(format!("'{key}' names the figure itself"));
            }
            if (named.kind == Kind::Input) != inputs {
                let other = if inputs { "no input" } else { "an input" };
                return Err(format!("'{key}' names '{id}', which is {other}"));
            }
        }
    }
    Ok(())
}

/// The keys of the papers, in the order of `figures`.
pub fn papers(figures: &[Figure]) -> Vec<&str> {
    let mut papers: Vec<&str> = figures.iter().map(Figure::paper).collect();
    papers.dedup();
    papers
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    kind: Kind,
    value: Option<f64>,
    k: Option<f64>,
    h: Option<f64>,
    op: Option<Comparison>,
    tol: Option<f64>,
    unit: String,
    estimator: Option<String>,
    #[serde(default)]
    follows_from: Vec<String>,
    #[serde(default)]
    uses: Vec<String>,
    #[serde(rename = "where")]
    place: String,
}

fn figure(entry: Entry) -> Result<Figure, &'static str> {
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
    let capital = |c: char| c.is_ascii_uppercase();
    if !entry.id.chars().all(|c| named(c) || capital(c)) || entry.id.split('.').count() < 2 {
        return Err("the id is not of the form paper.figure");
    }
    let value = match (entry.value, entry.k, entry.h) {
        (Some(value), None, None) => Value::Number(value),
        (None, Some(per_byte), Some(fixed)) => Value::Linear { per_byte, fixed },
        _ => return Err("either 'value' or both 'k' and 'h' are needed"),
    };
    let finite = match value {
        Value::Number(value) => value.is_finite(),
        Value::Linear { per_byte, fixed } => per_byte.is_finite() && fixed.is_finite(),
    };
    if !finite {
        return Err("the value is not finite");
    }
    let comparison = entry.op.unwrap_or(Comparison::About);
    let usual = if comparison == Comparison::About {
        0.10
    } else {
        0.0
    };
    let tolerance = entry.tol.unwrap_or(usual);
    if !(0.0..1.0).contains(&tolerance) {
        return Err("'tol' is not in 0..1");
    }
    let blank = |text: &str| text.trim().is_empty();
    if blank(&entry.unit) || blank(&entry.place) || entry.estimator.as_deref().is_some_and(blank) {
        return Err("'unit', 'where' or 'estimator' is empty");
    }
    Ok(Figure {
        id: entry.id,
        kind: entry.kind,
        value,
        comparison,
        tolerance,
        unit: entry.unit,
        estimator: entry.estimator,
        follows_from: entry.follows_from,
        uses: entry.uses,
        place: entry.place,
    })
}

impl Figure {
    /// The key of its paper.
    pub fn paper(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }

    /// The value as it is written in a table, with its comparison.
    pub fn written(&self) -> String {
        match self.value {
            Value::Linear { per_byte, fixed } => format!("{per_byte} N + {fixed}"),
            Value::Number(value) => match self.comparison {
                Comparison::About => format!("{value}"),
                other => format!("{} {value}", other.symbol()),
            },
        }
    }

    /// The value, where it is one number.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Value::Number(value) => Some(value),
            Value::Linear { .. } => None,
        }
    }

    /// Relative to the published value; the plain difference where that is 0.
    pub fn error(&self, simulated: f64) -> Option<f64> {
        let published = self.number()?;
        let scale = if published == 0.0 { 1.0 } else { published };
        Some((simulated - published) / scale)
    }

    /// The errors of a line's cost of a byte, and of its fixed cost, relative to the published
    /// ones.
    pub fn line_errors(&self, line: Line) -> Option<(f64, f64)> {
        match self.value {
            Value::Linear { per_byte, fixed } => {
                Some((line.per_byte / per_byte - 1.0, line.fixed / fixed - 1.0))
            }
            Value::Number(_) => None,
        }
    }

    /// Returns whether a simulated line reproduces the figure: the fixed cost within the tolerance,
    /// the cost of a byte within half of it.
    pub fn admits_line(&self, line: Line) -> bool {
        let errors = self.line_errors(line);
        errors.is_some_and(|(per_byte, fixed)| {
            per_byte.abs() <= self.tolerance / 2.0 && fixed.abs() <= self.tolerance
        })
    }

    /// Returns whether `simulated` reproduces the figure, which is a number.
    pub fn admits(&self, simulated: f64) -> bool {
        // Rounding must not decide over a figure exactly on the border.
        const SLACK: f64 = 1e-9;
        let Some(error) = self.error(simulated) else {
            return false;
        };
        match self.comparison {
            Comparison::About => error.abs() <= self.tolerance + SLACK,
            Comparison::Below => error < self.tolerance && error >= -0.3 - SLACK,
            Comparison::Above => error > -self.tolerance,
            Comparison::AtLeast => error >= -self.tolerance - SLACK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = "[[figure]]\nid = \"p.one\"\nkind = \"result\"\nvalue = 2\nunit = \"us\"\nwhere = \"Sec. 1\"\n";

    #[test]
    fn every_built_in_figure_is_well_formed() {
        let figures = built_in().unwrap();
        assert_eq!(figures.len(), 161);
        let names = "sme scc rcce scosco impi mppa coherence";
        assert_eq!(papers(&figures).join(" "), names);
        for figure in &figures {
            if figure.paper() == "sme" && figure.kind == Kind::Shape {
                assert!(figure.estimator.is_some(), "{}", figure.id);
            }
        }
    }

    #[test]
    fn defaults_are_those_of_the_comparison() {
        let about = parse(ONE).unwrap().remove(0);
        assert_eq!(
            (about.comparison, about.tolerance),
            (Comparison::About, 0.10)
        );
        let below = parse(&format!("{ONE}op = \"<\"\n")).unwrap().remove(0);
        assert_eq!(
            (below.comparison, below.tolerance),
            (Comparison::Below, 0.0)
        );
    }

    #[test]
    fn borders_belong_where_the_file_says() {
        let with = |more: &str| parse(&format!("{ONE}{more}")).unwrap().remove(0);
        let about = with("tol = 0.15\n");
        assert!(about.admits(1.7) && about.admits(2.3));
        assert!(!about.admits(1.69) && !about.admits(2.31));
        let below = with("op = \"<\"\n");
        assert!(below.admits(1.99) && below.admits(1.4));
        assert!(!below.admits(2.0) && !below.admits(1.39));
        let above = with("op = \">\"\n");
        assert!(above.admits(2.01) && !above.admits(2.0));
        let at_least = with("op = \">=\"\n");
        assert!(at_least.admits(2.0) && !at_least.admits(1.99));
        assert!(!about.admits(f64::NAN) && !below.admits(f64::NAN) && !above.admits(f64::NAN));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        let wrong_key = error(&format!("{ONE}tolerence = 0.1\n"));
        assert!(
            wrong_key.contains("line 7") && wrong_key.contains("tolerence"),
            "{wrong_key}"
        );
        assert_eq!(
            error(&format!("{ONE}{ONE}")),
            "published figure 'p.one': appears twice"
        );
        for (change, reason) in [
            (("value = 2", ""), "either 'value' or both"),
            (("value = 2", "value = 2\nk = 1"), "either 'value' or both"),
            (("value = 2", "value = nan"), "not finite"),
            (("value = 2", "value = 2\ntol = -0.1"), "'tol'"),
            (("Sec. 1", " "), "is empty"),
            (("p.one", "one"), "paper.figure"),
            (("\"result\"", "\"guess\""), "line 3"),
            (("value = 2", "value = 2\nop = \"=\""), "line 5"),
        ] {
            let message = error(&ONE.replace(change.0, change.1));
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn references_lead_to_figures_of_the_right_kind() {
        let input = ONE.replace("p.one", "p.in").replace("result", "input");
        let with = |more: &str| parse(&format!("{input}{ONE}{more}"));
        let figure = with("follows_from = [\"p.in\"]\n").unwrap().remove(1);
        assert_eq!(figure.follows_from, ["p.in"]);
        for (more, reason) in [
            (
                "uses = [\"p.two\"]",
                "'uses' names 'p.two', which is no figure",
            ),
            (
                "uses = [\"p.in\"]",
                "'uses' names 'p.in', which is an input",
            ),
            ("uses = [\"p.one\"]", "'uses' names the figure itself"),
            (
                "follows_from = [\"p.two\"]",
                "'follows_from' names 'p.two', which is no figure",
            ),
        ] {
            let message = with(&format!("{more}\n")).unwrap_err().to_string();
            assert_eq!(message, format!("published figure 'p.one': {reason}"));
        }
        let two = ONE.replace("p.one", "p.two");
        let message = parse(&format!("{two}{ONE}follows_from = [\"p.two\"]\n"));
        let expected = "published figure 'p.one': 'follows_from' names 'p.two', which is no input";
        assert_eq!(message.unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,300}") {
            let _ = parse(&text);
            let _ = parse(&format!("{ONE}{text}"));
        }
    }
}
