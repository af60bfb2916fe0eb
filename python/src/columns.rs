//! Rows as columns: each has one type, its values side by side as Arrow lays them out, and a bit
//! for each that says whether it is there.
//!
//! Called by `super` with the records of a command; [`super::arrow`] hands the columns on.

use std::collections::HashMap;

use sme::report::records::Record;
use sme::report::row::Cell;
use sme::report::units;

/// Columns of one length.
#[derive(Debug)]
pub struct Table {
    /// How many rows.
    pub rows: usize,
    /// In the order in which rows have them.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// The key in each row.
    pub name: String,
    /// The unit that the key ends with.
    pub unit: Option<&'static str>,
    /// Which rows have a value.
    pub valid: Bits,
    /// The values; where there is none, a zero.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug)]
pub enum Values {
    /// No row has one.
    None,
    /// Yes or no.
    Truths(Bits),
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Whole numbers of which one is too large for the others.
    Counts(Vec<u64>),
    /// Numbers.
    Reals(Vec<f64>),
    /// Words: where each ends, and one before the first; and all of them in a row.
    Texts(Vec<i64>, Vec<u8>),
}

/// Bits, the first in the least bit of the first byte.
#[derive(Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
    length: usize,
    ones: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.length.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= (u64::from(bit) << (self.length % 64)).to_le();
        }
        self.length += 1;
        self.ones += usize::from(bit);
    }

    /// How many are zero.
    pub fn zeros(&self) -> usize {
        self.length - self.ones
    }

    /// The bytes that hold the bits.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

impl Table {
    /// Of `rows`. A row without a column that another one has lacks a value there.
    pub fn new(rows: &[Record]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (name, _) in rows.iter().flatten() {
            places.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            });
        }
        let mut cells = vec![vec![&Cell::Absent; rows.len()]; names.len()];
        for (number, row) in rows.iter().enumerate() {
            for (name, cell) in row {
                cells[places[name.as_str()]][number] = cell;
            }
        }
        let columns = names.iter().zip(&cells);
        Self {
            rows: rows.len(),
            columns: columns
                .map(|(name, cells)| Column::new(name, cells))
                .collect(),
        }
    }
}

impl Column {
    fn new(name: &str, cells: &[&Cell]) -> Self {
        let mut valid = Bits::default();
        cells
            .iter()
            .for_each(|cell| valid.push(**cell != Cell::Absent));
        let kinds = cells.iter().map(|cell| Kind::of(cell));
        Self {
            name: name.to_owned(),
            unit: units::words(name).1,
            valid,
            values: kinds.fold(Kind::None, Kind::with).values(cells),
        }
    }
}

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Truth,
    /// Whole and not negative, and of the type of [`Kind::Negative`] too.
    Small,
    Negative,
    Large,
    Real,
    Text,
}

impl Kind {
    fn of(cell: &Cell) -> Self {
        match cell {
            Cell::Absent => Self::None,
            Cell::Truth(_) => Self::Truth,
            Cell::Text(_) => Self::Text,
            Cell::Count(_) | Cell::Fixed { .. } | Cell::Number(_) => {
                let text = cell.to_text();
                match (text.parse::<i64>(), text.parse::<u64>()) {
                    (Ok(_), Ok(_)) => Self::Small,
                    (Ok(_), Err(_)) => Self::Negative,
                    (Err(_), Ok(_)) => Self::Large,
                    (Err(_), Err(_)) => Self::Real,
                }
            }
        }
    }

    /// The type of a column that has both.
    fn with(self, other: Self) -> Self {
        use Kind::{Large, Negative, None, Real, Small, Text};
        match (self, other) {
            (one, other) if one == other => one,
            (None, one) | (one, None) => one,
            (Small, one @ (Negative | Large | Real)) | (one @ (Negative | Large | Real), Small) => {
                one
            }
            (Negative | Large | Real, Negative | Large | Real) => Real,
            _ => Text,
        }
    }

    fn values(self, cells: &[&Cell]) -> Values {
        fn parsed<T: std::str::FromStr + Default>(cells: &[&Cell]) -> Vec<T> {
            let value = |cell: &&Cell| cell.to_text().parse().unwrap_or_default();
            cells.iter().map(value).collect()
        }
        match self {
            Self::None => Values::None,
            Self::Truth => {
                let mut bits = Bits::default();
                let is_true = |cell: &&Cell| matches!(cell, Cell::Truth(true));
                cells.iter().for_each(|cell| bits.push(is_true(cell)));
                Values::Truths(bits)
            }
            Self::Small | Self::Negative => Values::Integers(parsed(cells)),
            Self::Large => Values::Counts(parsed(cells)),
            Self::Real => Values::Reals(parsed(cells)),
            Self::Text => {
                let (mut ends, mut bytes) = (vec![0], Vec::new());
                for cell in cells {
                    bytes.extend_from_slice(cell.to_text().as_bytes());
                    ends.push(bytes.len() as i64);
                }
                Values::Texts(ends, bytes)
            }
        }
    }
}
