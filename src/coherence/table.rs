//! The throughput table: how fast a core loads or stores a buffer, by its size and the state of its
//! lines. Written by the microbenchmarks of a simulated machine and of this computer, read by the
//! model (Sec. III-C of the paper).
//!
//! A table is of one machine. As a file it is a JSON object a line with the keys of [`Row`]:
//!
//! ```json
//! {"machine":"m","access":"load","copy":"miss","state":"modified","holder":"socket","variant":"plain","buffer_bytes":65536,"gb_per_s":12.5}
//! ```
//!
//! Sizes are bytes, throughputs 10^9 bytes per second, which is bytes per nanosecond.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;

use super::transition::{
    Access, Curve, Holder, LocalCopy, State, Transition, TransitionError, Variant,
};
use crate::report::records::{self, RecordError};
use crate::report::row::{self, Cell};
use crate::report::stop::one_line;

/// The largest buffer of a row (bytes).
pub const MAX_BUFFER_BYTES: u64 = 1 << 40;
/// The throughputs that a row can have (10^9 bytes per second): beyond them it is a mistake.
pub const GB_PER_S: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
/// The longest line of a file (bytes).
const MAX_LINE: u64 = 1 << 16;
/// The most rows of a table.
const MAX_ROWS: usize = 1_000_000;

/// A row of a table, and a line of its file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The machine, the same in all rows of a table.
    pub machine: String,
    /// Load or store.
    pub access: Access,
    /// Hit or miss.
    pub copy: LocalCopy,
    /// State of the lines before.
    pub state: State,
    /// Where the other core that has a copy is.
    pub holder: Holder,
    /// The difference from a plain pass.
    pub variant: Variant,
    /// Size of the buffer (bytes).
    pub buffer_bytes: u64,
    /// Throughput of one pass over it (10^9 bytes per second).
    pub gb_per_s: f64,
}

/// The keys of a row.
pub const HEADING: [&str; 8] = [
    "machine",
    "access",
    "copy",
    "state",
    "holder",
    "variant",
    "buffer_bytes",
    "gb_per_s",
];

impl Row {
    /// The row of `curve` on `machine`.
    pub fn new(machine: impl Into<String>, curve: Curve, buffer_bytes: u64, gb_per_s: f64) -> Self {
        let transition = curve.transition();
        Self {
            machine: machine.into(),
            access: transition.access(),
            copy: transition.copy(),
            state: transition.state(),
            holder: curve.holder(),
            variant: curve.variant(),
            buffer_bytes,
            gb_per_s,
        }
    }

    /// The curve that the row is a point of.
    ///
    /// # Errors
    /// Its cells contradict each other.
    pub fn curve(&self) -> Result<Curve, TransitionError> {
        let transition = Transition::new(self.access, self.copy, self.state)?;
        Curve::new(transition, self.holder, self.variant)
    }

    /// The cells under [`HEADING`]. A throughput has all its digits, and is absent if no number.
    pub fn cells(&self) -> Vec<Cell> {
        let rate = serde_json::Number::from_f64(self.gb_per_s);
        vec![
            Cell::text(&self.machine),
            Cell::text(self.access),
            Cell::text(self.copy),
            Cell::text(self.state),
            Cell::text(self.holder),
            Cell::text(self.variant),
            Cell::Count(self.buffer_bytes),
            rate.map_or(Cell::Absent, |rate| Cell::Number(rate.to_string())),
        ]
    }

    /// One JSON object on one line, without the line's end.
    pub fn to_json(&self) -> String {
        row::json_object(&HEADING, &self.cells())
    }
}

/// Throughputs of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    machine: String,
    /// Of each curve the throughput by buffer size; none is empty.
    curves: BTreeMap<Curve, BTreeMap<u64, f64>>,
}

impl Table {
    /// The table of `rows`, in any order.
    ///
    /// # Errors
    /// A row that cannot be, two rows for the same size of a curve, two machines, no row. The place
    /// is `row N`, from 1.
    pub fn new(rows: impl IntoIterator<Item = Row>) -> Result<Self, TableError> {
        let mut draft = Draft::default();
        for (row, number) in rows.into_iter().zip(1u64..) {
            draft.take(row, number).map_err(|reason| TableError {
                place: format!("row {number}"),
                reason,
            })?;
        }
        draft.finish("the table")
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// As [`Self::parse`], or it cannot be read.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let shown = path.display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&shown, &error))?;
        Self::parse(&shown, BufReader::new(file))
    }

    /// Reads JSON lines; `shown` is what errors call the file. Empty lines are skipped.
    ///
    /// # Errors
    /// As [`Self::new`], or a line that is no row; the place is file and line.
    pub fn parse(shown: &str, reader: impl BufRead) -> Result<Self, TableError> {
        let mut draft = Draft::default();
        records::lines(shown, reader, MAX_LINE, |number, text| {
            let row = serde_json::from_str(text)
                // An error quotes the line, which may hold anything.
                .map_err(|error| one_line(&error.to_string()))
                .map_err(|error| format!("is no row of a throughput table: {error}"))?;
            draft.take(row, number)
        })?;
        draft.finish(shown)
    }

    /// The machine of all rows.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The curves that the table has, in order.
    pub fn curves(&self) -> impl Iterator<Item = Curve> {
        self.curves.keys().copied()
    }

    /// Buffer sizes (bytes) and throughputs (10^9 bytes per second) of `curve`, by size; none where
    /// the table does not have it.
    pub fn points(&self, curve: Curve) -> impl Iterator<Item = (u64, f64)> {
        let points = self.curves.get(&curve).into_iter().flatten();
        points.map(|(&bytes, &gb_per_s)| (bytes, gb_per_s))
    }

    /// The rows, by curve and size.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.curves.iter().flat_map(move |(&curve, points)| {
            let row = move |(&bytes, &rate)| Row::new(self.machine.as_str(), curve, bytes, rate);
            points.iter().map(row)
        })
    }

    /// The table as a file has it.
    pub fn to_json_lines(&self) -> String {
        self.rows().map(|row| row.to_json() + "\n").collect()
    }

    /// Throughput (10^9 bytes per second) of `curve` for a buffer of `bytes`.
    ///
    /// Between two sizes of the table the logarithm of the throughput is linear in the logarithm of
    /// the size: at the geometric mean of two sizes it is the geometric mean of theirs. Nothing is
    /// said beyond the smallest and the largest size, as a cache may end there.
    ///
    /// # Errors
    /// The table does not have the curve, or not for such a size.
    pub fn throughput(&self, curve: Curve, bytes: u64) -> Result<f64, LookupError> {
        let points = self.curves.get(&curve).ok_or(LookupError::Curve(curve))?;
        let below = points.range(..=bytes).next_back();
        let above = points.range(bytes..).next();
        match (below, above) {
            (Some((&low, &rate)), Some((&high, _))) if low == high => Ok(rate),
            (Some((&low, &from)), Some((&high, &to))) => {
                let span = (high as f64 / low as f64).ln();
                let share = (bytes as f64 / low as f64).ln() / span;
                Ok(from * (to / from).powf(share))
            }
            _ => Err(LookupError::Size {
                curve,
                bytes,
                // A curve has a point.
                least: points.keys().next().copied().unwrap_or_default(),
                most: points.keys().next_back().copied().unwrap_or_default(),
            }),
        }
    }
}

/// A table while its rows are read.
#[derive(Default)]
struct Draft {
    /// The machine, and in which row or line it was first.
    machine: Option<(String, u64)>,
    /// The throughput, and its row or line.
    curves: BTreeMap<Curve, BTreeMap<u64, (f64, u64)>>,
    rows: usize,
}

impl Draft {
    /// Takes the row or line `number`; the error is the reason why not.
    fn take(&mut self, row: Row, number: u64) -> Result<(), String> {
        let curve = row.curve().map_err(|error| error.to_string())?;
        if !(1..=MAX_BUFFER_BYTES).contains(&row.buffer_bytes) {
            return Err(format!(
                "buffer_bytes {} is not from 1 to {MAX_BUFFER_BYTES}",
                row.buffer_bytes
            ));
        }
        if !GB_PER_S.contains(&row.gb_per_s) {
            let (least, most) = (GB_PER_S.start(), GB_PER_S.end());
            return Err(format!(
                "gb_per_s {} is not from {least} to {most}",
                row.gb_per_s
            ));
        }
        if row.machine.trim().is_empty() {
            return Err("the machine has no name".into());
        }
        let (machine, first) = self.machine.get_or_insert((row.machine.clone(), number));
        if *machine != row.machine {
            return Err(format!(
                "the machine is {:?}, and {machine:?} in {first}: a table is of one machine",
                row.machine
            ));
        }
        let points = self.curves.entry(curve).or_default();
        let point = (row.gb_per_s, number);
        if let Some((_, before)) = points.insert(row.buffer_bytes, point) {
            return Err(format!(
                "{curve} at {} bytes stands in {before} already",
                row.buffer_bytes
            ));
        }
        self.rows += 1;
        match self.rows > MAX_ROWS {
            true => Err(format!("a table has at most {MAX_ROWS} rows")),
            false => Ok(()),
        }
    }

    fn finish(self, place: &str) -> Result<Table, TableError> {
        let (machine, _) = self.machine.ok_or_else(|| TableError {
            place: place.to_owned(),
            reason: "has no row".into(),
        })?;
        let without_numbers = |points: BTreeMap<u64, (f64, u64)>| {
            let points = points.into_iter();
            points.map(|(bytes, (rate, _))| (bytes, rate)).collect()
        };
        let curves = self.curves.into_iter();
        Ok(Table {
            machine,
            curves: curves
                .map(|(c, points)| (c, without_numbers(points)))
                .collect(),
        })
    }
}

fn unreadable(shown: &str, error: &io::Error) -> TableError {
    TableError {
        place: shown.to_owned(),
        reason: format!("cannot be read: {error}"),
    }
}

/// Why rows are no table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {reason}")]
pub struct TableError {
    /// The file, and the line where there is one.
    pub place: String,
    /// The mistake there.
    pub reason: String,
}

impl From<RecordError> for TableError {
    fn from(RecordError { place, reason }: RecordError) -> Self {
        Self { place, reason }
    }
}

/// Why a table does not say a throughput.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LookupError {
    /// It has no row of this curve.
    #[error("the table has no row of {0}")]
    Curve(Curve),
    /// It has the curve, but not around this size.
    #[error("the table has {curve} from {least} to {most} bytes, not at {bytes}")]
    Size {
        /// The curve.
        curve: Curve,
        /// The size that was asked for.
        bytes: u64,
        /// Its smallest size.
        least: u64,
        /// Its largest size.
        most: u64,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::transition::CoreDistance;
    use super::*;

    const GOOD: &str = r#"{"machine":"m","access":"load","copy":"miss","state":"modified","holder":"socket","variant":"plain","buffer_bytes":1024,"gb_per_s":8.0}"#;

    fn lmm() -> Curve {
        Curve::plain(Transition::LMM, CoreDistance::Socket)
    }

    fn parsed(text: &str) -> Result<Table, TableError> {
        Table::parse("t.json", text.as_bytes())
    }

    fn refused(text: &str) -> String {
        parsed(text).expect_err(text).to_string()
    }

    #[test]
    fn a_row_is_what_its_line_says() {
        let table = parsed(&format!("\u{feff}{GOOD}\r\n\n")).unwrap();
        assert_eq!(table.machine(), "m");
        assert_eq!(table.curves().collect::<Vec<_>>(), [lmm()]);
        assert_eq!(table.to_json_lines(), format!("{GOOD}\n"));
    }

    #[test]
    fn between_sizes_the_mean_is_geometric() {
        let rows = [(1024, 8.0), (4096, 2.0), (8192, 2.0)];
        let rows = rows.map(|(bytes, rate)| Row::new("m", lmm(), bytes, rate));
        let table = Table::new(rows).unwrap();
        assert_eq!(table.throughput(lmm(), 1024), Ok(8.0));
        assert_eq!(table.throughput(lmm(), 8192), Ok(2.0));
        let middle = table.throughput(lmm(), 2048).unwrap();
        assert!((middle - 4.0).abs() < 1e-12, "{middle}");
        let flat = table.throughput(lmm(), 5000).unwrap();
        assert!((flat - 2.0).abs() < 1e-12, "{flat}");
        let beyond = table.throughput(lmm(), 8193).unwrap_err().to_string();
        assert_eq!(
            beyond,
            "the table has LMM socket from 1024 to 8192 bytes, not at 8193"
        );
        assert!(table.throughput(lmm(), 1023).is_err());
        let other = Curve::plain(Transition::LMM, CoreDistance::Remote);
        let error = table.throughput(other, 1024).unwrap_err().to_string();
        assert_eq!(error, "the table has no row of LMM remote");
    }

    #[test]
    fn each_mistake_names_file_and_line() {
        let second = |from: &str, to: &str| {
            let bad = GOOD.replace(from, to);
            assert_ne!(bad, GOOD);
            refused(&format!("{GOOD}\n{bad}"))
        };
        for (from, to) in [
            ("8.0", "NaN"),
            ("8.0", "\"NaN\""),
            ("8.0", "1e999"),
            ("8.0", "null"),
            ("1024", "-1"),
            ("1024", "1.5"),
            ("1024", "18446744073709551616"),
            ("\"load\"", "\"fetch\""),
            ("\"access\":\"load\",", ""),
            (
                "\"access\":\"load\",",
                "\"access\":\"load\",\"access\":\"load\",",
            ),
            ("{", "{\"cores\":1,"),
            ("}", ""),
            ("{", "[{"),
        ] {
            let error = second(from, to);
            assert!(
                error.starts_with("t.json: line 2: is no row of a throughput table: "),
                "{error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
        for (from, to, reason) in [
            ("8.0", "0", "gb_per_s 0 is not from 0.000001 to 1000000"),
            ("8.0", "-8.0", "gb_per_s -8 is not from 0.000001 to 1000000"),
            ("8.0", "1e300", "is not from 0.000001 to 1000000"),
            ("1024", "0", "buffer_bytes 0 is not from 1 to"),
            ("\"m\"", "\"n\"", "the machine is \"n\", and \"m\" in 1"),
            ("\"m\"", "\" \"", "the machine has no name"),
            ("8.0", "9.0", "LMM socket at 1024 bytes stands in 1 already"),
            ("socket", "local", "LMM with holder local: another core has"),
            ("plain", "non-temporal", "LMM cannot be non-temporal"),
        ] {
            let error = second(from, to);
            assert!(error.starts_with("t.json: line 2: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(refused(""), "t.json: has no row");
        assert_eq!(refused(" \n\n"), "t.json: has no row");
        let long = "x".repeat(1 << 17);
        assert_eq!(refused(&long), "t.json: line 1: is longer than 65536 bytes");
        let odd = Table::parse("t.json", &b"\xff\xfe\n"[..]).unwrap_err();
        assert_eq!(odd.to_string(), "t.json: line 1: is no UTF-8");
        let missing = Table::read(Path::new("/nonexistent/table")).unwrap_err();
        assert!(
            missing
                .to_string()
                .starts_with("/nonexistent/table: cannot be read: ")
        );
        let nan = Table::new([Row::new("m", lmm(), 1, f64::NAN)]).unwrap_err();
        assert!(nan.to_string().starts_with("row 1: gb_per_s NaN"), "{nan}");
    }

    /// Any table with distinct sizes for a few curves.
    fn tables() -> impl Strategy<Value = Vec<Row>> {
        let curves: Vec<Curve> = Transition::all()
            .map(|transition| Curve::plain(transition, CoreDistance::Remote))
            .collect();
        let point = (prop::sample::select(curves), 1..=MAX_BUFFER_BYTES);
        let points = prop::collection::btree_map(point, 1e-6..1e6, 1..30);
        let row = |((curve, bytes), rate)| Row::new("a \"machine\"", curve, bytes, rate);
        points.prop_map(move |points| points.into_iter().map(row).collect())
    }

    proptest! {
        #[test]
        fn a_table_is_read_back_as_it_was_written(rows in tables()) {
            let table = Table::new(rows.clone()).unwrap();
            // The text of a number may be read as its neighbour.
            let read = parsed(&table.to_json_lines()).unwrap();
            prop_assert_eq!(table.rows().count(), rows.len());
            for (was, is) in rows.iter().zip(read.rows()) {
                prop_assert_eq!(was.curve(), is.curve());
                prop_assert_eq!(was.buffer_bytes, is.buffer_bytes);
                prop_assert!((was.gb_per_s / is.gb_per_s - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn between_two_points_the_throughput_is_between_theirs(
            rows in tables(),
            at in 1..=MAX_BUFFER_BYTES,
        ) {
            let table = Table::new(rows).unwrap();
            for curve in table.curves() {
                let points: Vec<(u64, f64)> = table.points(curve).collect();
                let below = points.iter().rfind(|(bytes, _)| *bytes <= at);
                let above = points.iter().find(|(bytes, _)| *bytes >= at);
                match (below, above, table.throughput(curve, at)) {
                    (Some((_, a)), Some((_, b)), Ok(rate)) => {
                        let slack = 1.0 + 1e-9;
                        prop_assert!(a.min(*b) <= rate * slack && rate <= a.max(*b) * slack);
                    }
                    (_, _, found) => prop_assert!(found.is_err() && (below.is_none() || above.is_none())),
                }
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            if let Err(error) = parsed(&text) {
                prop_assert!(error.to_string().starts_with("t.json: "));
            }
        }
    }
}
