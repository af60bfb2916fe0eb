//! Rows in files, as this program or another writes them: CSV with its keys in the first line, or
//! one JSON object a line. Each complaint names file and line.
//!
//! Called by [`crate::extrapolate::input`] and [`crate::cli::plot`]; the counterpart of
//! [`super::row`].

use std::collections::HashSet;
use std::io::{BufRead, Read};

use serde_json::Value;

use super::recognize::csv_values;
use super::row::Cell;
use super::strict::{self, Entry};

/// The longest line [bytes].
const MAX_LINE: u64 = 1 << 20;

/// Why a file has no rows, or not such rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct RecordError {
    /// The file, and the line where there is one.
    pub place: String,
    /// The fault there.
    pub reason: String,
}

/// A row: its fields, in their order. What belongs to the host is flat, as in CSV.
pub type Record = Vec<(String, Cell)>;

/// Reads the rows of `file`, whose text comes from `reader`. Hands the keys of CSV to `header`, and
/// to `take` each row with its place. Lines without anything are passed over.
///
/// # Errors
/// A line that is no row, and what `header` and `take` complain of.
pub fn read(
    file: &str,
    reader: impl BufRead,
    mut header: impl FnMut(&[String]) -> Result<(), String>,
    mut take: impl FnMut(&str, Record) -> Result<(), String>,
) -> Result<(), RecordError> {
    let mut names: Option<Vec<String>> = None;
    let mut json = false;
    lines(file, reader, MAX_LINE, |number, text| {
        let record = match &names {
            None if json || text.starts_with('{') => {
                json = true;
                json_record(text)?
            }
            None => {
                if text.starts_with('[') {
                    return Err("begins a list of JSON; write one object per line".to_owned());
                }
                let keys = csv_values(text).ok_or("is no CSV header: its quotes do not match")?;
                let keys: Vec<String> = keys.iter().map(|key| key.trim().to_owned()).collect();
                check_twice(&keys)?;
                header(&keys)?;
                names = Some(keys);
                return Ok(());
            }
            Some(names) => csv_record(names, text)?,
        };
        take(&place(file, number), record)
    })
}

/// Reads the lines of `file`, whose text comes from `reader`, and hands each to `take` with its
/// number, counted from 1. Empty lines are passed over.
///
/// # Errors
/// A line of `longest` bytes or more or that is no UTF-8, and what `take` complains of.
pub fn lines(
    file: &str,
    mut reader: impl BufRead,
    longest: u64,
    mut take: impl FnMut(u64, &str) -> Result<(), String>,
) -> Result<(), RecordError> {
    for number in 1u64.. {
        let failed = |reason: String| RecordError {
            place: place(file, number),
            reason,
        };
        let mut bytes = Vec::new();
        let mut limited = (&mut reader).take(longest);
        let read = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|error| RecordError {
                place: file.to_owned(),
                reason: format!("cannot be read: {error}"),
            })?;
        match read as u64 {
            0 => break,
            read if read == longest => {
                return Err(failed(format!("is longer than {longest} bytes")));
            }
            _ => {}
        }
        let text = str::from_utf8(&bytes).map_err(|_| failed("is no UTF-8".into()))?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() {
            take(number, text).map_err(failed)?;
        }
    }
    Ok(())
}

fn place(file: &str, line: u64) -> String {
    format!("{file}: line {line}")
}

/// All rows of `file`, whose text comes from `reader`.
///
/// # Errors
/// A line that is no row.
pub fn read_all(file: &str, reader: impl BufRead) -> Result<Vec<Record>, RecordError> {
    let mut rows = Vec::new();
    let take = |_: &str, row| {
        rows.push(row);
        Ok(())
    };
    read(file, reader, |_| Ok(()), take)?;
    Ok(rows)
}

/// Refuses names of which a row could keep only one, also those that objects within it make.
fn check_twice(names: &[String]) -> Result<(), String> {
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(name.as_str())) {
        Some(name) => Err(format!("names the column {name:?} twice")),
        None => Ok(()),
    }
}

fn json_record(text: &str) -> Result<Record, String> {
    let mut record = Vec::new();
    for (key, value) in strict::entries(text)? {
        match value {
            Entry::Object(inner) => {
                let inner = inner.into_iter();
                record
                    .extend(inner.filter_map(|(of, value)| {
                        Some((format!("{key}_{of}"), json_cell(value)?))
                    }));
            }
            Entry::Other(value) => record.extend(json_cell(value).map(|cell| (key, cell))),
        }
    }
    let keys: Vec<String> = record.iter().map(|(key, _)| key.clone()).collect();
    check_twice(&keys)?;
    Ok(record)
}

/// A value as a cell; lists are none.
fn json_cell(value: Value) -> Option<Cell> {
    match value {
        Value::Null => Some(Cell::Absent),
        Value::Bool(truth) => Some(Cell::Truth(truth)),
        Value::Number(number) => Some(Cell::Number(number.to_string())),
        Value::String(text) => Some(Cell::text(text)),
        Value::Object(_) | Value::Array(_) => None,
    }
}

fn csv_record(header: &[String], text: &str) -> Result<Record, String> {
    let values = csv_values(text).ok_or("is no CSV row: its quotes do not match")?;
    if values.len() != header.len() {
        return Err(format!(
            "has {} cells under a header of {}",
            values.len(),
            header.len()
        ));
    }
    let cell = |key: &str, value: &str| match value.trim() {
        // Words that may be none, or look like numbers.
        word if ["version", "machine", "machine_hash", "set"].contains(&key) => Cell::text(word),
        "" => Cell::Absent,
        "true" => Cell::Truth(true),
        "false" => Cell::Truth(false),
        word => number(word).map_or_else(|| Cell::text(word), Cell::Number),
    };
    let fields = header.iter().zip(&values);
    Ok(fields
        .map(|(key, value)| (key.clone(), cell(key, value)))
        .collect())
}

/// The number in `text` as JSON writes it, if it is one; programs leave digits out that JSON wants
/// (`.5`, `3.`), or put a sign in front (`+2`).
fn number(text: &str) -> Option<String> {
    let is_json = |text: &str| serde_json::from_str::<serde_json::Number>(text).is_ok();
    if is_json(text) {
        return Some(text.to_owned());
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|first: char| first == '.' || first.is_ascii_digit()) || digits == "." {
        return None;
    }
    let begins = if digits.starts_with('.') { "0" } else { "" };
    let ends = if digits.ends_with('.') { "0" } else { "" };
    let full = format!("{sign}{begins}{digits}{ends}");
    is_json(&full).then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Format;
    use crate::report::row::rendered;
    use proptest::prelude::*;

    fn read_text(text: &str) -> Result<Vec<Record>, RecordError> {
        read_all("f", text.as_bytes())
    }

    fn cells() -> impl Strategy<Value = Cell> {
        prop_oneof![
            Just(Cell::Absent),
            "[a-z\",é][a-z ,\"é]{0,6}[a-z\"]".prop_map(Cell::Text),
            any::<bool>().prop_map(Cell::Truth),
            any::<u64>().prop_map(Cell::Count),
            (any::<u64>(), 1..7u32).prop_map(|(units, decimals)| Cell::Fixed { units, decimals }),
            (-1e12..1e12f64).prop_map(Cell::real),
        ]
    }

    proptest! {
        /// Rows that are written are read back, in both formats, in the order of their keys.
        #[test]
        fn rows_are_read_back(rows in prop::collection::vec(prop::collection::vec(cells(), 4), 1..6)) {
            let keys = ["nodes", "algorithm", "latency_us", "link_bytes"];
            for format in [Format::Csv, Format::Json] {
                let text = rendered(&keys, &rows, format);
                let records = read_text(&text).expect("the program has written it");
                prop_assert_eq!(records.len(), rows.len());
                for (record, row) in records.iter().zip(&rows) {
                    prop_assert_eq!(record.len(), keys.len());
                    for (((key, cell), expected), of) in record.iter().zip(row).zip(keys) {
                        prop_assert_eq!(key, of);
                        match expected.is_number() {
                            true => {
                                let number = |cell: &Cell| cell.to_text().parse::<f64>().ok();
                                prop_assert!(cell.is_number());
                                prop_assert_eq!(number(cell), number(expected));
                            }
                            // CSV has one word for a truth and for its name.
                            false => prop_assert_eq!(cell.to_text(), expected.to_text()),
                        }
                    }
                }
            }
        }

        #[test]
        fn no_text_panics(text in "[-{}\":,a-z0-9.\n eE+\\[\\]]{0,80}") {
            let _ = read_text(&text);
        }
    }

    #[test]
    fn numbers_of_other_programs_are_numbers() {
        for (text, expected) in [
            (".5", Some("0.5")),
            ("-.5", Some("-0.5")),
            ("3.", Some("3.0")),
            ("+2", Some("2")),
            ("+.5e3", Some("0.5e3")),
            ("1e400", None),
            (".", None),
            ("+-2", None),
            ("0x10", None),
            ("n/a", None),
        ] {
            assert_eq!(number(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_belongs_to_the_host_is_flat() {
        let line = r#"{"nodes":1,"host":{"wall_s":2.5,"events":7},"list":[1]}"#;
        let records = read_text(line).unwrap();
        // In the order of their keys in the text.
        let expected = [
            ("nodes".to_owned(), Cell::Number("1".into())),
            ("host_wall_s".to_owned(), Cell::Number("2.5".into())),
            ("host_events".to_owned(), Cell::Number("7".into())),
        ];
        assert_eq!(records, [expected.to_vec()]);
    }
}
