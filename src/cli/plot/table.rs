//! The rows of all files as one table, and its numbers, each with a complaint that names file and
//! line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::cli::names;
use crate::report::records::{self, Record};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The most rows of all files together.
const MAX_ROWS: usize = 100_000;
/// The most fields.
const MAX_FIELDS: usize = 1_000;
/// Numbers from here on have no place on an axis.
const MAX_NUMBER: f64 = 1e15;
/// The least number that has a place on a logarithmic axis.
const MIN_LOGARITHM: f64 = 1e-15;

/// The field with the name of a row's file, which is there when several files are read.
pub const SOURCE: &str = "source_file";

/// Rows with the fields that any of them has.
pub struct Table {
    /// The names of the fields, in the order in which they were met.
    pub fields: Vec<String>,
    pub rows: Vec<Row>,
}

/// A row.
pub struct Row {
    /// Its file and line.
    place: String,
    cells: Vec<Cell>,
}

impl Row {
    /// The cell under a field.
    pub fn cell(&self, field: usize) -> &Cell {
        self.cells.get(field).unwrap_or(&Cell::Absent)
    }

    /// The texts under these fields.
    pub fn texts(&self, fields: &[usize]) -> Vec<String> {
        let text = |&field: &usize| self.cell(field).to_text();
        fields.iter().map(text).collect()
    }
}

impl Table {
    /// Reads all rows that have the texts or numbers which `only` asks for.
    pub fn read(files: &[PathBuf], only: &[(String, String)]) -> Result<Self, Stop> {
        let mut table = Self {
            fields: Vec::new(),
            rows: Vec::new(),
        };
        let mut known = HashMap::new();
        if files.len() > 1 {
            table.field(&mut known, SOURCE).map_err(Stop::Input)?;
        }
        for file in files {
            table.read_file(file, files.len() > 1, &mut known)?;
        }
        if table.rows.is_empty() {
            let names = files.iter().map(|file| shown(file));
            let names: Vec<String> = names.collect();
            return Err(Stop::flag(&names.join(", "), "no row to plot"));
        }
        table.select(only)?;
        Ok(table)
    }

    fn read_file(
        &mut self,
        file: &Path,
        is_named: bool,
        known: &mut HashMap<String, usize>,
    ) -> Result<(), Stop> {
        let name = shown(file);
        let reader: Box<dyn BufRead> = match file == Path::new("-") {
            true => Box::new(BufReader::new(io::stdin())),
            false => match File::open(file) {
                Ok(file) => Box::new(BufReader::new(file)),
                Err(error) => return Err(Stop::flag(&name, format!("cannot be read: {error}"))),
            },
        };
        let source = match file.file_name() {
            Some(name) => Cell::text(name.to_string_lossy()),
            None => Cell::text(&name),
        };
        let take = |place: &str, record: Record| {
            if self.rows.len() == MAX_ROWS {
                return Err(format!("is one row too many; at most {MAX_ROWS}"));
            }
            let mut cells = vec![Cell::Absent; self.fields.len()];
            if is_named && let Some(cell) = cells.first_mut() {
                *cell = source.clone();
            }
            for (key, cell) in record {
                let field = self.field(known, &key)?;
                if field >= cells.len() {
                    cells.resize(field + 1, Cell::Absent);
                }
                cells[field] = cell;
            }
            let place = place.to_owned();
            self.rows.push(Row { place, cells });
            Ok(())
        };
        records::read(&name, reader, |_| Ok(()), take)
            .map_err(|error| Stop::flag(&error.place, error.reason))
    }

    /// The place of a field, which is new if it was not met before.
    fn field(&mut self, known: &mut HashMap<String, usize>, key: &str) -> Result<usize, String> {
        let key = Cell::text(key).to_text();
        if let Some(&field) = known.get(&key) {
            return Ok(field);
        }
        if self.fields.len() == MAX_FIELDS {
            return Err(format!("has one field too many; at most {MAX_FIELDS}"));
        }
        self.fields.push(key.clone());
        known.insert(key, self.fields.len() - 1);
        Ok(self.fields.len() - 1)
    }

    fn select(&mut self, only: &[(String, String)]) -> Result<(), Stop> {
        for (key, value) in only {
            let field = find(&self.fields, "--where", key)?;
            let number: Option<f64> = value.trim().parse().ok();
            self.rows.retain(|row| {
                let cell = row.cell(field);
                let same = cell.is_number() && number.is_some() && parsed(cell) == number;
                same || cell.to_text() == *value
            });
            if self.rows.is_empty() {
                let flag = format!("--where {key}={value}");
                return Err(Stop::flag(&flag, "no row to plot has that"));
            }
        }
        Ok(())
    }

    /// The number that a row has under a field; none where it has nothing there.
    pub fn number(
        &self,
        row: &Row,
        field: usize,
        is_logarithmic: bool,
    ) -> Result<Option<f64>, Stop> {
        let cell = row.cell(field);
        let (name, text) = (&self.fields[field], cell.to_text());
        let wrong = |why: String| Stop::flag(&row.place, why);
        match (cell, parsed(cell)) {
            (Cell::Absent, _) => Ok(None),
            (_, None) => Err(wrong(format!("{name} is {text:?}, which is no number"))),
            (_, Some(number)) if !(-MAX_NUMBER..MAX_NUMBER).contains(&number) => Err(wrong(
                format!("{name} is {text}, and an axis ends at 10^15"),
            )),
            (_, Some(number)) if is_logarithmic && number < MIN_LOGARITHM => Err(wrong(format!(
                "{name} is {text}, which has no place on a logarithmic axis"
            ))),
            (_, Some(number)) => Ok(Some(number)),
        }
    }

    /// A complaint about a row.
    pub fn wrong(&self, row: &Row, why: impl std::fmt::Display) -> Stop {
        Stop::flag(&row.place, why)
    }
}

/// The place among `fields` of the one that a flag names; a complaint lists those that there are.
pub fn find(fields: &[String], flag: &str, name: &str) -> Result<usize, Stop> {
    const MOST: usize = 100;
    if let Some(field) = fields.iter().position(|field| field == name) {
        return Ok(field);
    }
    let known: Vec<&str> = fields.iter().take(MOST).map(String::as_str).collect();
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let said = format!("{flag}: {}", names::unknown(name, &known));
    // All of the list is to be seen, which is longer than other complaints.
    Err(Stop::Input(said.chars().map(clean).take(4_000).collect()))
}

/// The number of a cell.
fn parsed(cell: &Cell) -> Option<f64> {
    let number = || cell.to_text().parse::<f64>().ok();
    cell.is_number().then(number).flatten()
}

/// A file as complaints name it.
fn shown(file: &Path) -> String {
    match file == Path::new("-") {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    }
}
