//! An experiment file: TOML with a question, machines, runs and plots. What it says is checked as
//! far as it can be without its commands.
//!
//! Read by [`super::RunJob::read`]; [`super::points`] makes command lines of its runs.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::report::stop::{Stop, one_line};

/// Settings of flags, by the flags' names. Their places in the file give their order.
type Table = BTreeMap<Spanned<String>, Spanned<Value>>;

/// An experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// The question the experiment is to answer, in a sentence.
    pub question: Option<String>,
    /// Further notes for its readers; paragraphs, a blank line between two.
    pub notes: Option<String>,
    /// Machines that differ from another one in some constants, by name.
    #[serde(default)]
    pub machines: Variants,
    /// The runs.
    #[serde(default)]
    pub runs: Vec<Spanned<RunEntry>>,
    /// The pictures of their rows.
    #[serde(default)]
    pub plots: Vec<Spanned<PlotEntry>>,
}

/// Machines that differ from another one in some constants, by name.
pub type Variants = BTreeMap<String, Spanned<Variant>>;

/// A machine that differs from another one in some constants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The other machine: built in, or a file.
    pub base: String,
    /// The constants, as `--set` takes them; a section may be a table.
    #[serde(default)]
    set: Table,
}

/// Runs of one command, whose rows are in one file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEntry {
    /// The file of the rows: CSV or JSON lines, by its ending.
    pub rows: String,
    /// The command, without `sme`.
    pub command: String,
    /// Flags that are equal for all points. A list is an axis: every combination is a point.
    #[serde(default)]
    flags: Table,
    /// Flags in which points differ beside that, a table for each. They take the place of flags.
    #[serde(default)]
    points: Vec<Table>,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotEntry {
    /// The file of the picture: .svg, .pdf or .png.
    pub picture: String,
    /// The files whose rows it shows.
    pub rows: Vec<String>,
    /// Flags of `sme plot`.
    #[serde(default)]
    flags: Table,
}

/// The values that a flag has one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The flag's name without its dashes.
    pub flag: String,
    /// Its values.
    pub values: Vec<Scalar>,
}

/// A value of a flag.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A flag without a value, given or not.
    Given(bool),
    /// Text, or a number in decimal.
    Text(String),
}

/// The name of the flag that overrides constants: its values are tables.
pub const SET: &str = "set";

impl ExperimentFile {
    /// Reads `text`; `file` is the name that complaints give it.
    ///
    /// # Errors
    /// [`Stop::Input`] with file and line: what is no TOML, unknown or missing keys, and an
    /// experiment without runs.
    pub fn parse(file: &str, text: &str) -> Result<Self, Stop> {
        let read: Self = toml::from_str(text).map_err(|error| {
            let said = one_line(error.message());
            match error.span() {
                Some(span) => Stop::Input(format!("{file}: line {}: {said}", line(text, &span))),
                None => Stop::Input(format!("{file}: {said}")),
            }
        })?;
        if read.runs.is_empty() {
            return Err(Stop::flag(
                file,
                "there are no runs: write [[runs]] with rows = \"FILE.csv\", command and flags",
            ));
        }
        Ok(read)
    }
}

impl Variant {
    /// The overridden constants, `section.key` and value.
    ///
    /// # Errors
    /// A constant with a list, or with what is no value.
    pub fn overrides(&self) -> Result<Vec<(String, String)>, String> {
        let mut constants = Vec::new();
        for (key, value) in in_order(&self.set) {
            flatten(key, value, &mut constants)?;
        }
        let one = |(key, mut values): (String, Vec<Scalar>)| match (values.pop(), values.pop()) {
            (Some(Scalar::Text(value)), None) => Ok((key, value)),
            _ => Err(format!("{key} must have one value")),
        };
        constants.into_iter().map(one).collect()
    }
}

impl RunEntry {
    /// The settings of each entry of `points`, those of `flags` before them; one where there are
    /// no entries.
    ///
    /// # Errors
    /// A value that its flag cannot have, by the flag's name.
    pub fn settings(&self) -> Result<Vec<Vec<Setting>>, String> {
        let flags = settings(&self.flags)?;
        if self.points.is_empty() {
            return Ok(vec![flags]);
        }
        let point = |table: &Table| {
            let own = settings(table)?;
            let is_replaced = |setting: &&Setting| own.iter().all(|own| own.flag != setting.flag);
            let kept = flags.iter().filter(is_replaced).cloned();
            Ok(kept.chain(own.iter().cloned()).collect())
        };
        self.points.iter().map(point).collect()
    }
}

impl PlotEntry {
    /// The settings of `sme plot`.
    ///
    /// # Errors
    /// A value that its flag cannot have, by the flag's name.
    pub fn settings(&self) -> Result<Vec<Setting>, String> {
        settings(&self.flags)
    }
}

/// The settings that `table` makes, in their order in the file. A constant under [`SET`] is one
/// of its own, called `set SECTION.KEY`.
fn settings(table: &Table) -> Result<Vec<Setting>, String> {
    let mut all = Vec::new();
    for (key, value) in in_order(table) {
        if key == SET {
            let Value::Table(constants) = value else {
                return Err("set: write { \"SECTION.KEY\" = \"VALUE\" }".into());
            };
            let mut flat = Vec::new();
            for (key, value) in constants {
                flatten(key, value, &mut flat)?;
            }
            all.extend(flat.into_iter().map(|(key, values)| Setting {
                flag: format!("{SET} {key}"),
                values,
            }));
        } else {
            all.push(Setting {
                flag: key.to_owned(),
                values: values(key, value)?,
            });
        }
    }
    Ok(all)
}

/// The entries of `table`, in their order in the file.
fn in_order(table: &Table) -> Vec<(&str, &Value)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.get_ref().as_str(), value.get_ref()))
        .collect()
}

/// Adds the constants in `value`, under `key`, to `to`.
fn flatten(key: &str, value: &Value, to: &mut Vec<(String, Vec<Scalar>)>) -> Result<(), String> {
    match value {
        Value::Table(inner) => inner
            .iter()
            .try_for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, to)),
        value => {
            to.push((key.to_owned(), values(key, value)?));
            Ok(())
        }
    }
}

/// The values of a list, or the only one.
fn values(flag: &str, value: &Value) -> Result<Vec<Scalar>, String> {
    match value {
        Value::Array(list) if list.is_empty() => Err(format!("{flag}: the list is empty")),
        Value::Array(list) => list.iter().map(|value| scalar(flag, value)).collect(),
        value => Ok(vec![scalar(flag, value)?]),
    }
}

fn scalar(flag: &str, value: &Value) -> Result<Scalar, String> {
    match value {
        Value::Boolean(given) => Ok(Scalar::Given(*given)),
        Value::String(text) => Ok(Scalar::Text(text.clone())),
        Value::Integer(number) => Ok(Scalar::Text(number.to_string())),
        Value::Float(number) => Ok(Scalar::Text(number.to_string())),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => Err(format!(
            "{flag}: write text, a number, true or false, or a list of these"
        )),
    }
}

/// The line of `text`, counted from 1, in which `span` begins.
pub fn line(text: &str, span: &Range<usize>) -> usize {
    let before = text.get(..span.start).unwrap_or(text);
    before.matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(text: &str) -> Vec<Vec<Setting>> {
        let file = ExperimentFile::parse("f", text).unwrap();
        file.runs[0].get_ref().settings().unwrap()
    }

    fn texts(setting: &Setting) -> (String, Vec<String>) {
        let text = |scalar: &Scalar| match scalar {
            Scalar::Given(given) => given.to_string(),
            Scalar::Text(text) => text.clone(),
        };
        let values = setting.values.iter().map(text).collect();
        (setting.flag.clone(), values)
    }

    #[test]
    fn flags_stand_in_the_order_of_the_file() {
        let settings = settings_of(
            "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n\
             flags = { nodes = [2, 4], algorithm = 'flat', explain = true, skew = 0.5 }",
        );
        let read: Vec<_> = settings[0].iter().map(texts).collect();
        let expected = [
            ("nodes", vec!["2", "4"]),
            ("algorithm", vec!["flat"]),
            ("explain", vec!["true"]),
            ("skew", vec!["0.5"]),
        ];
        let expected = expected.map(|(flag, values)| {
            let values = values.into_iter().map(String::from).collect();
            (flag.to_owned(), values)
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn a_points_settings_take_the_place_of_flags() {
        let settings = settings_of(
            "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\nflags = { nodes = 2, cores = 1 }\n\
             points = [{ nodes = 4 }, { seed = 7 }]",
        );
        let read = |at: usize| settings[at].iter().map(texts).collect::<Vec<_>>();
        let of = |flag: &str, value: &str| (flag.to_owned(), vec![value.to_owned()]);
        assert_eq!(read(0), [of("cores", "1"), of("nodes", "4")]);
        assert_eq!(
            read(1),
            [of("nodes", "2"), of("cores", "1"), of("seed", "7")]
        );
    }

    #[test]
    fn constants_may_stand_in_tables_of_their_sections() {
        let text = "[machines.m]\nbase = 'ideal'\nset.link.flight = '1ns'\n\
                    set.'engine.clock' = '1GHz'\n[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'";
        let file = ExperimentFile::parse("f", text).unwrap();
        let expected = [("link.flight", "1ns"), ("engine.clock", "1GHz")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(file.machines["m"].get_ref().overrides().unwrap(), expected);
    }

    #[test]
    fn complaints_name_the_line() {
        for (text, complaint) in [
            ("a b", "f: line 1: "),
            ("\n\nanswer = 'x'", "f: line 3: unknown field `answer`"),
            (
                "[[runs]]\nrows = 'a.csv'",
                "f: line 1: missing field `command`",
            ),
            ("question = 'x'", "f: there are no runs"),
        ] {
            let stop = ExperimentFile::parse("f", text).unwrap_err();
            assert!(stop.to_string().starts_with(complaint), "{stop}");
            assert_eq!(stop.status(), 2);
        }
    }
}
