//! The columns that `--columns` chooses among those of a row, in the order in which it names them.
//!
//! Called by the commands that print rows, before they simulate and when they print.

use super::Format;
use super::row::{self, Cell};
use super::stop::{Stop, one_line};
use super::table;

/// Chosen columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<String>);

impl Columns {
    /// Those that `text` names, a comma between two.
    pub fn new(text: &str) -> Self {
        let names = text.split(',').map(|name| name.trim().to_owned());
        Self(names.collect())
    }

    /// The place of each among `keys`, the flat keys of a row.
    ///
    /// # Errors
    /// [`Stop::Input`] that lists `keys`, where one is not among them or is named twice.
    pub fn places(&self, keys: &[String]) -> Result<Vec<usize>, Stop> {
        let mut places = Vec::with_capacity(self.0.len());
        for name in &self.0 {
            let place = keys.iter().position(|key| key == name);
            let reason = match place {
                Some(place) if !places.contains(&place) => {
                    places.push(place);
                    continue;
                }
                Some(_) => "is given twice",
                None => "is no column",
            };
            let (name, keys) = (one_line(name), keys.join(", "));
            return Err(Stop::Input(format!(
                "--columns: '{name}' {reason}; the columns are {keys}"
            )));
        }
        Ok(places)
    }

    /// `rows` under the flat keys `keys`, these columns alone: a table has each as a column, and
    /// lines no longer than `within`, as [`table::folded`] makes them.
    ///
    /// # Errors
    /// As [`Self::places`].
    pub fn rendered(
        &self,
        keys: &[String],
        rows: &[Vec<Cell>],
        format: Format,
        within: Option<usize>,
    ) -> Result<String, Stop> {
        let places = self.places(keys)?;
        let pick = |row: &Vec<Cell>| -> Vec<Cell> {
            let cells = places.iter().map(|&place| row.get(place).cloned());
            cells.map(|cell| cell.unwrap_or(Cell::Absent)).collect()
        };
        let rows: Vec<Vec<Cell>> = rows.iter().map(pick).collect();
        Ok(match format {
            Format::Table => table::folded(&self.0, &rows, within),
            format => row::rendered(&self.0, &rows, format),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 3] = ["nodes", "name", "host_wall_s"];

    fn rendered(columns: &str, format: Format) -> Result<String, Stop> {
        let rows = [
            vec![Cell::Count(2), Cell::text("a,b"), Cell::Count(7)],
            vec![Cell::Count(16), Cell::Absent, Cell::Count(8)],
        ];
        Columns::new(columns).rendered(&KEYS.map(String::from), &rows, format, None)
    }

    #[test]
    fn columns_stand_in_the_order_in_which_they_are_named() {
        for (format, expected) in [
            (Format::Csv, "name,nodes\n\"a,b\",2\n,16\n"),
            (
                Format::Json,
                "{\"name\":\"a,b\",\"nodes\":2}\n{\"name\":null,\"nodes\":16}\n",
            ),
            (Format::Table, "name  nodes\na,b       2\n-        16\n"),
        ] {
            assert_eq!(rendered("name, nodes", format).unwrap(), expected);
        }
        let host = rendered("host_wall_s", Format::Json).unwrap();
        assert_eq!(host, "{\"host_wall_s\":7}\n{\"host_wall_s\":8}\n");
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        for (columns, reason) in [
            ("nodes,core", "'core' is no column"),
            ("", "'' is no column"),
            ("name,name", "'name' is given twice"),
        ] {
            let stop = rendered(columns, Format::Csv).unwrap_err();
            assert_eq!(stop.status(), 2);
            let expected = format!("--columns: {reason}; the columns are nodes, name, host_wall_s");
            assert_eq!(stop.to_string(), expected);
        }
    }
}
