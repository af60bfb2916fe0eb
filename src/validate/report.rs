//! The report of a validation: a table to read, or JSON lines and CSV with the same flat keys.
//!
//! Made by [`super::Validation`], written by `sme validate`. Numbers are rounded to six digits, so
//! that a row is the same text on every host.

use super::deviations::{Deviations, Explanation};
use super::papers::{Fit, On};
use super::published::{self, Comparison, Figure, Kind, PublishedError, Value};
use super::summary;
use super::verdict::{Row, Verdict};
use crate::experiment::noise::{Noise, gaps_of, lengths_of};
use crate::messages::line::Line;
use crate::report::row::{Cell, csv_record};
use crate::report::table::aligned;

/// The table of `rows`: the published figure beside the simulated one, the error, the tolerance and
/// the verdict. The first column, under `heading`, has a name for each row.
pub fn comparison(heading: &str, names: impl Iterator<Item = String>, rows: &[Row]) -> String {
    let heading = [
        heading,
        "published",
        "simulated",
        "unit",
        "error",
        "tolerance",
        "verdict",
    ];
    let mut columns: Vec<Vec<String>> = heading.iter().map(|key| vec![key.to_string()]).collect();
    for (name, row) in names.zip(rows) {
        let cells = [
            name,
            row.figure.written(),
            simulated(row).unwrap_or_default(),
            row.figure.unit.clone(),
            row.error()
                .map_or_else(String::new, |error| percent(&row.figure, error)),
            match simulated(row) {
                Some(_) => tolerance(&row.figure),
                None => String::new(),
            },
            verdict(row),
        ];
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.push(cell);
        }
    }
    for column in columns.iter_mut().skip(1).take(2) {
        flush_right(column);
    }
    if let Some(errors) = columns.get_mut(4) {
        flush_right(errors);
    }
    let line = |index: usize| -> Vec<String> {
        columns
            .iter()
            .filter_map(|column| column.get(index).cloned())
            .collect()
    };
    let body: Vec<Vec<Cell>> = (1..=rows.len())
        .map(|index| line(index).into_iter().map(Cell::Text).collect())
        .collect();
    aligned(&line(0), &body)
}

/// The identity of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The machine.
    pub on: On,
    /// Counted episodes of every barrier.
    pub episodes: u32,
    /// Seed of every simulation.
    pub seed: u64,
    /// The disturbance of the threads of the barriers.
    pub noise: Option<Noise>,
}

impl Identity {
    /// The keys of the rows of such a validation.
    ///
    /// # Errors
    /// If the built-in figures cannot be read.
    pub fn keys(&self) -> Result<Vec<String>, PublishedError> {
        let figures = published::built_in()?.into_iter().take(1);
        let row = |figure| Row::new(figure, None, &[], &Deviations::default());
        let report = Report {
            rows: figures.map(row).collect(),
            fits: Vec::new(),
            points: 0,
            elsewhere: Vec::new(),
            identity: self.clone(),
        };
        Ok(report.to_cells().0)
    }
}

/// A row per figure, in the order of the published ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The identity of the validation.
    pub identity: Identity,
    /// The rows.
    pub rows: Vec<Row>,
    /// Constants and choices that were fitted to figures, of these rows or others.
    pub fits: Vec<Fit>,
    /// The number of points that were simulated.
    pub points: usize,
    /// The machine of each paper, by its key, where it is another.
    pub elsewhere: Vec<(&'static str, On)>,
}

/// A machine with its hash and what is set.
fn in_words(on: &On) -> String {
    let set = match on.set.is_empty() {
        true => String::new(),
        false => format!(" with {}", on.set),
    };
    format!("{} ({}){set}", on.machine, on.machine_hash)
}

impl Report {
    /// Returns whether a figure is missed without an entry in DEVIATIONS.md, or could not be
    /// simulated.
    pub fn fails(&self) -> bool {
        self.rows.iter().any(Row::fails)
    }

    /// Returns what to check before trusting the result, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let warn = |row: &Row| {
            let id = &row.figure.id;
            if row.stale() {
                let verdict = row.verdict.name();
                Some(format!(
                    "DEVIATIONS.md explains {id}, which is stale: {verdict}"
                ))
            } else if row.verdict == Verdict::Deviates && row.explained.is_none() {
                Some(format!("{id} deviates and has no entry in DEVIATIONS.md"))
            } else if row.verdict == Verdict::Failed {
                Some(format!(
                    "{id} could not be simulated: {}",
                    row.notes.join("; ")
                ))
            } else {
                None
            }
        };
        self.rows.iter().filter_map(warn).collect()
    }

    /// A table with a line for each paper, and the sum on a line of its own.
    pub fn summary(&self) -> String {
        summary::of(&self.rows, &self.fits)
    }

    /// A table, the notes below it, the summary at the end.
    pub fn to_table(&self) -> String {
        let ids = self.rows.iter().map(|row| row.figure.id.clone());
        let mut text = comparison("figure", ids, &self.rows);
        let notes: String = self.rows.iter().map(notes).collect();
        if !notes.is_empty() {
            text.push('\n');
            text.push_str(&notes);
        }
        let Identity {
            on,
            episodes,
            seed,
            noise,
        } = &self.identity;
        let noise = noise.map_or_else(String::new, |noise| {
            let (duration, period) = (noise.duration().as_us(), noise.period().as_us());
            let (lengths, gaps) = (lengths_of(&noise), gaps_of(&noise));
            format!(", noise of {duration} us ({lengths}) every {period} us ({gaps})")
        });
        let machine = in_words(on);
        let elsewhere = self.elsewhere.iter();
        let elsewhere = elsewhere.map(|(paper, on)| format!("; {paper} on {}", in_words(on)));
        let elsewhere: String = elsewhere.collect();
        text.push_str(&format!(
            "\n{machine}, {episodes} episodes, seed {seed}{noise}{elsewhere}: {} points simulated\n\n{}",
            self.points,
            self.summary()
        ));
        text
    }

    /// A JSON object a line for each row.
    pub fn to_json(&self) -> String {
        self.json_from(0)
    }

    /// The same for the rows from the one at place `first` on.
    pub fn json_from(&self, first: usize) -> String {
        let object = |row: &Row| {
            let members = self.cells(row).into_iter().map(|(key, cell)| {
                let value = match cell {
                    Scalar::Absent => "null".to_owned(),
                    Scalar::Number(number) => number,
                    Scalar::Flag(flag) => flag.to_string(),
                    Scalar::Text(text) => serde_json::Value::from(text).to_string(),
                };
                format!("\"{key}\":{value}")
            });
            format!("{{{}}}\n", members.collect::<Vec<_>>().join(","))
        };
        self.rows.iter().skip(first).map(object).collect()
    }

    /// A header, then one record a row.
    pub fn to_csv(&self) -> String {
        self.csv_from(0)
    }

    /// The records from the one at place `first` on, which the header precedes if it is the first.
    pub fn csv_from(&self, first: usize) -> String {
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate().skip(first) {
            let cells = self.cells(row);
            if index == 0 {
                text.push_str(&csv_record(cells.iter().map(|(key, _)| key.to_string())));
                text.push('\n');
            }
            text.push_str(&csv_record(
                cells.into_iter().map(|(_, cell)| cell.to_text()),
            ));
            text.push('\n');
        }
        text
    }

    /// The keys of a row, and the rows, as cells.
    pub fn to_cells(&self) -> (Vec<String>, Vec<Vec<Cell>>) {
        let rows: Vec<_> = self.rows.iter().map(|row| self.cells(row)).collect();
        let keys = rows.first().into_iter().flatten();
        let keys = keys.map(|(key, _)| (*key).to_owned()).collect();
        let cells = rows.into_iter().map(|row| {
            let cells = row.into_iter().map(|(_, scalar)| scalar.into_cell());
            cells.collect()
        });
        (keys, cells.collect())
    }

    fn cells(&self, row: &Row) -> Vec<(&'static str, Scalar)> {
        let figure = &row.figure;
        let (k, h) = match figure.value {
            Value::Number(_) => (None, None),
            Value::Linear { per_byte, fixed } => (Some(per_byte), Some(fixed)),
        };
        let elsewhere = self.elsewhere.iter();
        let elsewhere = elsewhere.filter(|(paper, _)| *paper == figure.paper());
        let on = elsewhere.map(|(_, on)| on).next();
        let on = row.on.as_ref().or(on).unwrap_or(&self.identity.on);
        let mut cells = vec![
            ("version", Scalar::text(env!("CARGO_PKG_VERSION"))),
            ("machine", Scalar::text(&on.machine)),
            ("machine_hash", Scalar::text(&on.machine_hash)),
            ("set", Scalar::text(&on.set)),
            (
                "episodes",
                Scalar::Number(self.identity.episodes.to_string()),
            ),
            ("seed", Scalar::Number(self.identity.seed.to_string())),
        ];
        if let Some(noise) = &self.identity.noise {
            cells.extend([
                (
                    "noise_period_ns",
                    Scalar::number(Some(noise.period().as_ns())),
                ),
                (
                    "noise_duration_ns",
                    Scalar::number(Some(noise.duration().as_ns())),
                ),
                ("noise_distribution", Scalar::text(gaps_of(noise).name())),
                (
                    "noise_duration_distribution",
                    Scalar::text(lengths_of(noise).name()),
                ),
            ]);
        }
        cells.extend([
            ("paper", Scalar::text(figure.paper())),
            ("id", Scalar::text(&figure.id)),
            ("kind", Scalar::text(kind(figure.kind))),
            ("comparison", Scalar::text(figure.comparison.symbol())),
            ("published", Scalar::number(figure.number())),
            ("published_per_byte", Scalar::number(k)),
            ("published_fixed", Scalar::number(h)),
            ("simulated", Scalar::number(row.simulated)),
            (
                "simulated_per_byte",
                Scalar::number(row.line.map(|line| line.per_byte)),
            ),
            (
                "simulated_fixed",
                Scalar::number(row.line.map(|line| line.fixed)),
            ),
            (
                "low_95",
                Scalar::number(row.interval.map(|interval| interval.0)),
            ),
            (
                "high_95",
                Scalar::number(row.interval.map(|interval| interval.1)),
            ),
            ("simulated_over_published", Scalar::number(row.ratio())),
            ("unit", Scalar::text(&figure.unit)),
            ("error", Scalar::number(row.error())),
            ("tolerance", Scalar::number(Some(figure.tolerance))),
            ("verdict", Scalar::text(row.verdict.name())),
            ("explained", Scalar::Flag(row.explained.is_some())),
            (
                "explained_in_part",
                Scalar::Flag(row.explained == Some(Explanation::Part)),
            ),
            ("fitted", Scalar::text(&row.fitted.join("; "))),
            ("uses", Scalar::text(&used(row, "; "))),
            (
                "follows_from",
                Scalar::text(&figure.follows_from.join("; ")),
            ),
            ("notes", Scalar::text(&row.notes.join("; "))),
            ("where", Scalar::text(&figure.place)),
        ]);
        cells
    }
}

/// A value in a row.
enum Scalar {
    Absent,
    Number(String),
    Flag(bool),
    Text(String),
}

impl Scalar {
    fn text(text: &str) -> Self {
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        Scalar::Text(text.chars().map(clean).collect())
    }

    fn number(number: Option<f64>) -> Self {
        match number {
            Some(number) if number.is_finite() => Scalar::Number(digits(number, 6)),
            _ => Scalar::Absent,
        }
    }

    fn into_cell(self) -> Cell {
        match self {
            Scalar::Absent => Cell::Absent,
            Scalar::Number(text) => Cell::Number(text),
            Scalar::Flag(flag) => Cell::Truth(flag),
            Scalar::Text(text) => Cell::Text(text),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Scalar::Absent => String::new(),
            Scalar::Number(text) | Scalar::Text(text) => text.clone(),
            Scalar::Flag(flag) => flag.to_string(),
        }
    }
}

/// Rounded to `count` significant digits; whole numbers stay whole.
fn simulated(row: &Row) -> Option<String> {
    let line = |line: Line| format!("{:.4} N + {:.0}", line.per_byte, line.fixed);
    let number = |value| digits(value, 4);
    row.line.map(line).or_else(|| row.simulated.map(number))
}

fn digits(number: f64, count: usize) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{}", number + 0.0);
    }
    let rounded = format!("{number:.*e}", count.saturating_sub(1));
    rounded
        .parse::<f64>()
        .map_or(rounded, |number| number.to_string())
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Input => "input",
        Kind::Result => "result",
        Kind::Derived => "derived",
        Kind::Shape => "shape",
    }
}

/// The published results that a row's simulation was given, with their values.
fn used(row: &Row, between: &str) -> String {
    let used = row.used.iter();
    let used = used.map(|used| format!("{} ({})", used.id, used.value));
    used.collect::<Vec<_>>().join(between)
}

fn percent(figure: &Figure, error: f64) -> String {
    if figure.number() == Some(0.0) {
        digits(error, 3)
    } else {
        format!("{:+.1} %", error * 1e2)
    }
}

fn tolerance(figure: &Figure) -> String {
    if matches!(figure.kind, Kind::Derived) {
        return String::new();
    }
    let percent = digits(figure.tolerance * 1e2, 3);
    if figure.number().is_none() {
        let of_byte = digits(figure.tolerance * 50.0, 3);
        return format!("±{of_byte} % N, ±{percent} %");
    }
    match figure.comparison {
        Comparison::About if figure.number() == Some(0.0) => format!("up to {}", figure.tolerance),
        Comparison::About => format!("±{percent} %"),
        Comparison::Below => format!("-30..+{percent} %"),
        Comparison::Above | Comparison::AtLeast => format!("-{percent} %"),
    }
}

fn verdict(row: &Row) -> String {
    let name = row.verdict.name();
    match (row.verdict, row.explained) {
        (Verdict::Deviates, Some(Explanation::Whole)) => format!("{name}, explained"),
        (Verdict::Deviates, Some(Explanation::Part)) => format!("{name}, explained in part"),
        (Verdict::Deviates, None) => format!("{name}, NOT EXPLAINED"),
        _ => name.to_owned(),
    }
}

/// Returns the notes below the table about a row; most rows have none.
fn notes(row: &Row) -> String {
    let mut lines = Vec::new();
    if let Some((low, high)) = row.interval {
        lines.push(format!(
            "95 % interval {}..{}",
            digits(low, 4),
            digits(high, 4)
        ));
    }
    if !row.fitted.is_empty() {
        lines.push(format!("fitted to this figure: {}", row.fitted.join(", ")));
    }
    if !row.used.is_empty() {
        let used = used(row, ", ");
        lines.push(format!("takes a published result as an input: {used}"));
    }
    if !row.figure.follows_from.is_empty() {
        let inputs = row.figure.follows_from.join(", ");
        lines.push(format!("follows from inputs: {inputs}"));
    }
    lines.extend(row.notes.iter().cloned());
    if lines.is_empty() {
        return String::new();
    }
    format!("{}\n    {}\n", row.figure.id, lines.join("\n    "))
}

/// Blanks before each cell, up to the widest.
fn flush_right(column: &mut [String]) {
    let length = |text: &String| text.chars().count();
    let widest = column.iter().map(length).max().unwrap_or(0);
    for cell in column {
        if !cell.is_empty() {
            *cell = format!("{cell:>widest$}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::papers::{Condition, Finding};
    use super::*;

    fn report() -> Report {
        let found = |figure: &Figure| match figure.id.as_str() {
            "sme.fig8.tree.64x1" => Some(Ok(finding(10.6, true))),
            "sme.fig8.tree.64x16" => Some(Ok(finding(14.456789123, true))),
            "sme.fig8.tree.8x8" => Some(Ok(finding(7.5, true))),
            "sme.fig5.asic.16_threads" => Some(Ok(finding(43.0, false))),
            "sme.fig3.local.16_threads" => Some(Err("deadlock, of \"two\" threads".into())),
            _ => None,
        };
        let fits = vec![Fit::choice("mapping", &["sme.fig8.tree.64x1"])];
        let deviations = Deviations::parse("## sme.fig8.tree.8x8\nw\n## sme.fig8.tree.64x16\nw\n");
        let figures = published::built_in().unwrap();
        let rows = figures.iter().cloned().map(|figure| {
            let found = found(&figure);
            Row::new(figure, found, &fits, &deviations).with_used(&figures)
        });
        Report {
            identity: Identity {
                on: On {
                    machine: "m".into(),
                    machine_hash: "h".into(),
                    set: String::new(),
                },
                episodes: 10,
                seed: 1,
                noise: None,
            },
            rows: rows.collect(),
            fits: fits.clone(),
            points: 5,
            elsewhere: Vec::new(),
        }
    }

    fn finding(simulated: f64, met: bool) -> Finding {
        Finding {
            simulated: Some(simulated),
            conditions: vec![Condition {
                met,
                what: "so".into(),
            }],
            ..Finding::default()
        }
    }

    #[test]
    fn the_summary_counts_every_row_once() {
        let report = report();
        let summary = report.summary();
        assert!(
            summary.ends_with(
                "161 figures: 1 reproduced, 1 calibrated, 2 deviating (1 explained, 0 of them in part), \
                 25 not checked, 131 not simulated, 1 failed\n"
            ),
            "{summary}"
        );
        assert!(report.fails());
        assert_eq!(report.warnings().len(), 3, "{:?}", report.warnings());
        assert!(
            report
                .warnings()
                .iter()
                .any(|line| line.contains("64x16, which is stale"))
        );
    }

    #[test]
    fn the_formats_have_the_same_keys_and_values() {
        let report = report();
        let (json, csv) = (report.to_json(), report.to_csv());
        let mut records = csv.lines();
        let keys: Vec<&str> = records.next().unwrap().split(',').collect();
        assert_eq!(json.lines().count(), report.rows.len());
        assert_eq!(records.clone().count(), report.rows.len());
        for (object, record) in json.lines().zip(records) {
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            assert_eq!(object.as_object().unwrap().len(), keys.len());
            let id = object["id"].as_str().unwrap();
            assert!(record.contains(id));
            if let Some(simulated) = object["simulated"].as_f64() {
                assert!(record.contains(&simulated.to_string()), "{record}");
            }
        }
        assert!(json.contains("\"simulated\":14.4568,"));
        assert!(json.contains("\"uses\":\"sme.fig4.asic_remote_load (534 ns)\""));
        assert!(json.contains(r#"deadlock, of \"two\" threads"#));
        assert!(csv.contains(r#""deadlock, of ""two"" threads""#));
    }

    #[test]
    fn the_table_says_what_is_missed() {
        let table = report().to_table();
        let line = |id: &str| table.lines().find(|line| line.starts_with(id)).unwrap();
        assert!(line("sme.fig8.tree.8x8").ends_with("deviates, explained"));
        assert!(line("sme.fig5.asic").ends_with("deviates, NOT EXPLAINED"));
        assert!(
            line("sme.fig8.tree.8x8").contains("< 6")
                && line("sme.fig8.tree.8x8").contains("+25.0 %")
        );
        assert!(line("mppa.lazy.memcpy").contains("1.28 N + 5300"));
        let notes: Vec<&str> = table.lines().map(str::trim).collect();
        let given = "takes a published result as an input: sme.fig4.asic_remote_load (534 ns)";
        assert!(notes.contains(&given), "{table}");
    }

    #[test]
    fn numbers_are_rounded_to_digits_that_matter() {
        assert_eq!(digits(13.456789, 4), "13.46");
        assert_eq!(digits(0.000123456, 3), "0.000123");
        assert_eq!(digits(1099511627776.0, 4), "1099511627776");
        assert_eq!(digits(-0.0, 4), "0");
    }
}
