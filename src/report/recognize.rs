//! Whether a line of a result file is the row of a given experiment: what a resumed sweep asks
//! before it continues a file.
//!
//! Called by [`crate::cli::sweep`]; the counterpart of [`super::row`].

use serde_json::Value;

use super::Format;
use super::row::{self, Cell};
use super::strict;
use crate::experiment::Experiment;

/// Whether `line` is a whole row of `experiment`, or what is wrong with it.
pub fn row_of(
    line: &str,
    format: Format,
    with_host: bool,
    experiment: &Experiment,
) -> Result<(), String> {
    let keys = row::keys(with_host);
    let values = match format {
        Format::Json => json_values(line, with_host, &keys),
        Format::Csv => csv_values(line).filter(|values| values.len() == keys.len()),
        Format::Table => None,
    };
    let values = values.ok_or("is no result row of this version and these flags")?;
    let identity = row::identity(experiment);
    for ((key, value), cell) in keys.iter().zip(&values).zip(&identity) {
        let expected = comparable(cell, format);
        if *value != expected {
            return Err(format!(
                "has {key} {}, not {}",
                shown(value),
                shown(&expected)
            ));
        }
    }
    let is_number = |value: &String| value.parse::<f64>().is_ok_and(f64::is_finite);
    let figures = keys.iter().zip(&values).skip(identity.len());
    for (key, value) in figures.filter(|(key, _)| !key.starts_with("host_")) {
        if !is_number(value) {
            return Err(format!("has no number for {key}"));
        }
    }
    Ok(())
}

/// The text a cell must read as.
fn comparable(cell: &Cell, format: Format) -> String {
    match format {
        Format::Json => canonical(&cell.to_json()),
        _ => cell.to_text(),
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "nothing" } else { value }
}

/// A JSON text, so that equal values are equal texts (`1.50` is `1.5`).
fn canonical(json: &str) -> String {
    let value: Result<Value, _> = serde_json::from_str(json);
    value.map_or_else(|_| json.to_owned(), |value| value.to_string())
}

fn json_values(line: &str, with_host: bool, keys: &[String]) -> Option<Vec<String>> {
    let mut object = strict::object(line).ok()?;
    let host = match (object.remove("host"), with_host) {
        (Some(Value::Object(host)), true) => host,
        (None, false) => serde_json::Map::new(),
        _ => return None,
    };
    if object.len() + host.len() != keys.len() {
        return None;
    }
    let value_of = |key: &String| match key.strip_prefix("host_") {
        Some(key) => host.get(key),
        None => object.get(key),
    };
    keys.iter()
        .map(|key| Some(value_of(key)?.to_string()))
        .collect()
}

/// The cells of one CSV record (RFC 4180); `None` where its quotes do not match.
pub fn csv_values(line: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = line;
    loop {
        let (value, after) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (value, after) = rest.split_at(end);
                if value.contains('"') {
                    return None;
                }
                (value.to_owned(), after)
            }
            Some(quoted) => unquote(quoted)?,
        };
        values.push(value);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Some(values),
            None => return None,
        }
    }
}

/// The text up to the closing quote, its doubled quotes made single, and what follows.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = quoted;
    loop {
        let (before, after) = rest.split_once('"')?;
        value.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => {
                value.push('"');
                rest = next;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests {
    use super::*;
    use crate::cli::testing;
    use proptest::prelude::*;

    #[test]
    fn a_row_is_recognized_and_another_is_named() {
        let flags = ["--nodes", "4", "--cores", "2", "--skew", "1500ps"];
        let experiment = testing::experiment(&flags);
        let other = testing::experiment(&["--nodes", "4", "--cores", "3", "--skew", "1500ps"]);
        let row = row::Row::new(&experiment, &testing::outcome(&[5, 6]), None);
        for (format, line) in [(Format::Json, row.to_json()), (Format::Csv, row.to_csv())] {
            assert_eq!(row_of(&line, format, false, &experiment), Ok(()));
            let wrong = row_of(&line, format, false, &other).unwrap_err();
            assert_eq!(wrong, "has cores_per_node 2, not 3");
            assert!(row_of(&line, format, true, &experiment).is_err());
            for (end, _) in line.char_indices() {
                let torn = row_of(&line[..end], format, false, &experiment);
                // A CSV row may lose digits of its last number and still look whole.
                let last_number = line.rfind(',').unwrap() + 1;
                assert!(torn.is_err() || format == Format::Csv && end > last_number);
            }
        }
    }

    #[test]
    fn with_and_without_host_are_told_apart() {
        let experiment = testing::experiment(&["--nodes", "4"]);
        let host = row::Host {
            wall: std::time::Duration::from_millis(1),
            events: 9,
            peak_rss_bytes: None,
            bytes_per_thread: None,
        };
        let row = row::Row::new(&experiment, &testing::outcome(&[5]), Some(host));
        for (format, line) in [(Format::Json, row.to_json()), (Format::Csv, row.to_csv())] {
            assert_eq!(row_of(&line, format, true, &experiment), Ok(()));
            assert!(row_of(&line, format, false, &experiment).is_err());
        }
    }

    proptest! {
        #[test]
        fn csv_reads_back_what_it_wrote(cells in prop::collection::vec("[a,\" ]{0,6}", 1..6)) {
            let line = row::csv_record(cells.iter().cloned());
            prop_assert_eq!(csv_values(&line), Some(cells));
        }

        #[test]
        fn no_line_panics(line in "[a,\"{}:1\n]{0,20}") {
            let experiment = testing::experiment(&["--nodes", "1"]);
            prop_assert!(row_of(&line, Format::Csv, false, &experiment).is_err());
            prop_assert!(row_of(&line, Format::Json, false, &experiment).is_err());
        }
    }
}
