//! The rows of all points of a run as one file. Each has two columns more: the experiment, and
//! the point in its manifest. A machine of the experiment file has its name there.

use crate::report::Format;
use crate::report::recognize::csv_values;
use crate::report::row::csv_record;

/// The columns behind those of the command.
pub const COLUMNS: [&str; 2] = ["experiment_id", POINT];

/// The column with the number of a row's point.
pub const POINT: &str = "point";

/// The column with the name of a row's machine.
const MACHINE: &str = "machine";

/// The rows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// JSON lines.
    Json(Vec<String>),
    /// CSV: the columns that any point has, and each row's cells as far as they go.
    Csv(Vec<String>, Vec<Vec<String>>),
}

impl Rows {
    /// No rows.
    pub fn new(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv(Vec::new(), Vec::new()),
            Format::Json | Format::Table => Self::Json(Vec::new()),
        }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        match self {
            Self::Json(rows) => rows.len(),
            Self::Csv(_, rows) => rows.len(),
        }
    }

    /// Adds the rows in `text`, which the command has written in this format, as those of
    /// `point` of experiment `id`; if the point's machine is one of the experiment file, with the
    /// name that it has there.
    ///
    /// # Errors
    /// A line that is no row.
    pub fn add(
        &mut self,
        text: &str,
        id: &str,
        (point, machine): (usize, Option<&str>),
    ) -> Result<(), String> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        match self {
            Self::Json(rows) => {
                let [of, at] = COLUMNS;
                for line in lines {
                    let object = line.trim().strip_suffix('}').ok_or("is no JSON object")?;
                    if COLUMNS
                        .iter()
                        .any(|key| object.contains(&format!("\"{key}\":")))
                    {
                        return Err(format!("has a key {of} or {at} already"));
                    }
                    let object = match machine {
                        Some(name) => named(object, name),
                        None => object.to_owned(),
                    };
                    rows.push(format!("{object},\"{of}\":\"{id}\",\"{at}\":{point}}}"));
                }
            }
            Self::Csv(columns, rows) => add_csv(columns, rows, lines, id, (point, machine))?,
        }
        Ok(())
    }

    /// The file's text.
    pub fn text(&self) -> String {
        match self {
            Self::Json(rows) => rows.iter().map(|row| format!("{row}\n")).collect(),
            Self::Csv(columns, rows) => {
                // What identifies a row stands last, also where a later point has more columns.
                let [first, last]: [Vec<usize>; 2] = [false, true].map(|wanted| {
                    let at = 0..columns.len();
                    at.filter(|&at| COLUMNS.contains(&columns[at].as_str()) == wanted)
                        .collect()
                });
                let order: Vec<usize> = first.into_iter().chain(last).collect();
                let record = |cells: &[String]| {
                    let cells = order.iter().map(|&at| cells.get(at).cloned());
                    csv_record(cells.map(Option::unwrap_or_default)) + "\n"
                };
                let rows = rows.iter().map(|row| record(row));
                [record(columns)].into_iter().chain(rows).collect()
            }
        }
    }
}

/// A row of JSON, without its end, with another name for its machine, if it has one.
fn named(object: &str, name: &str) -> String {
    let key = format!("\"{MACHINE}\":");
    let Some((before, from)) = object.split_once(&key) else {
        return object.to_owned();
    };
    let mut values = serde_json::Deserializer::from_str(from).into_iter::<String>();
    match values.next() {
        Some(Ok(_)) => {
            let after = from.get(values.byte_offset()..).unwrap_or_default();
            format!("{before}{key}{}{after}", serde_json::Value::from(name))
        }
        _ => object.to_owned(),
    }
}

fn add_csv<'t>(
    columns: &mut Vec<String>,
    rows: &mut Vec<Vec<String>>,
    mut lines: impl Iterator<Item = &'t str>,
    id: &str,
    (point, machine): (usize, Option<&str>),
) -> Result<(), String> {
    let Some(header) = lines.next() else {
        return Ok(());
    };
    let values = |line: &str| csv_values(line).ok_or("has quotes that do not match");
    let mut header = values(header)?;
    if let Some(name) = header.iter().find(|name| COLUMNS.contains(&name.as_str())) {
        return Err(format!("has a column {name} already"));
    }
    let named = header.iter().position(|name| name == MACHINE);
    header.extend(COLUMNS.map(String::from));
    let mut place = |name: String| match columns.iter().position(|known| *known == name) {
        Some(place) => place,
        None => {
            columns.push(name);
            columns.len() - 1
        }
    };
    let places: Vec<usize> = header.into_iter().map(&mut place).collect();
    for line in lines {
        let mut cells = vec![String::new(); columns.len()];
        let mut own = values(line)?;
        if let (Some(place), Some(name)) = (named, machine)
            && let Some(cell) = own.get_mut(place)
        {
            *cell = name.to_owned();
        }
        let own = own.into_iter().chain([id.to_owned(), point.to_string()]);
        for (&place, value) in places.iter().zip(own) {
            cells[place] = value;
        }
        rows.push(cells);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_the_file_has_its_name() {
        let of = (2, Some("far"));
        let mut rows = Rows::new(Format::Csv);
        rows.add("machine,nodes\nideal,4\n", "7f", of).unwrap();
        rows.add("machine,nodes\nideal,4\n", "7f", (3, None))
            .unwrap();
        rows.add("nodes\n4\n", "7f", of).unwrap();
        let expected = "machine,nodes,experiment_id,point\nfar,4,7f,2\nideal,4,7f,3\n,4,7f,2\n";
        assert_eq!(rows.text(), expected);
        let mut rows = Rows::new(Format::Json);
        let line = "{\"version\":\"1\",\"machine\":\"ideal\",\"set\":\"\"}\n";
        rows.add(line, "7f", of).unwrap();
        rows.add("{\"nodes\":4}\n", "7f", of).unwrap();
        let expected = "{\"version\":\"1\",\"machine\":\"far\",\"set\":\"\",\"experiment_id\":\"7f\",\"point\":2}\n\
                        {\"nodes\":4,\"experiment_id\":\"7f\",\"point\":2}\n";
        assert_eq!(rows.text(), expected);
    }

    #[test]
    fn points_with_more_columns_widen_the_file() {
        let mut rows = Rows::new(Format::Csv);
        rows.add("nodes,name\n2,\"a,b\"\n4,c\n", "7f", (0, None))
            .unwrap();
        rows.add("nodes,extra\n8,1.50\n", "7f", (1, None)).unwrap();
        rows.add("", "7f", (2, None)).unwrap();
        assert_eq!(
            rows.text(),
            "nodes,name,extra,experiment_id,point\n\
             2,\"a,b\",,7f,0\n4,c,,7f,0\n8,,1.50,7f,1\n"
        );
        assert_eq!(rows.count(), 3);
    }

    #[test]
    fn json_stays_as_it_was_written() {
        let mut rows = Rows::new(Format::Json);
        rows.add("{\"a\":1.500,\"b\":null}\n", "7f", (3, None))
            .unwrap();
        let expected = "{\"a\":1.500,\"b\":null,\"experiment_id\":\"7f\",\"point\":3}\n";
        assert_eq!(rows.text(), expected);
        assert!(rows.add("nonsense", "7f", (4, None)).is_err());
        assert!(rows.add("{\"point\":1}", "7f", (4, None)).is_err());
        assert!(
            Rows::new(Format::Csv)
                .add("a,point\n1,2\n", "7f", (4, None))
                .is_err()
        );
    }
}
