//! Sweeps in files: rows of `sme sweep`, or other measurements, as CSV or as one JSON object a
//! line.
//!
//! Called by `sme extrapolate`. A row needs `nodes`, `cores_per_node` and a latency in
//! microseconds; its other columns identify the run, and have to be the same in every row but
//! for sizes and seeds: one fit is of one barrier on one machine. Each complaint names file and
//! line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::{Sample, Series, shared};
use crate::report::records::{self, Record};
use crate::report::row::{self, Cell};

pub use crate::report::records::RecordError as InputError;

/// The columns in which a latency is looked for by default.
const LATENCIES: [&str; 2] = ["latency_us", "latency_mean_us"];
/// The fields that may differ from row to row besides the host: the size, and those that only
/// repeat a run. Topologies are compared by their kind.
const FREE: [&str; 8] = [
    "version",
    "engine",
    "topology",
    "nodes",
    "cores_per_node",
    "threads",
    "episodes",
    "seed",
];
/// The most rows of all files together.
const MAX_ROWS: usize = 100_000;
/// The most nodes and the most cores per node: what a node's address has room for, and more.
const MAX_COUNT: f64 = 4_294_967_295.0;

/// Which rows are taken, and which of their figures.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The column with the latency in µs; `latency_us` or `latency_mean_us` where none is named.
    pub latency: Option<String>,
    /// Only rows whose column has this text.
    pub only: Vec<(String, String)>,
}

/// Reads the rows of `files`, in order, as one series.
///
/// # Errors
/// A file that cannot be read, a line that is no row, a row without its three numbers, rows of
/// different experiments.
pub fn read(files: &[impl AsRef<Path>], selection: &Selection) -> Result<Series, InputError> {
    let mut rows = Rows {
        selection,
        samples: Vec::new(),
        identity: None,
        first: None,
        topologies: HashMap::new(),
    };
    for file in files {
        let file = file.as_ref();
        let shown = file.display().to_string();
        let unreadable = |error: std::io::Error| InputError {
            place: shown.clone(),
            reason: format!("cannot be read: {error}"),
        };
        let reader = BufReader::new(File::open(file).map_err(unreadable)?);
        rows.read(&shown, reader)?;
    }
    Ok(Series {
        samples: rows.samples,
        identity: rows.identity.unwrap_or_default(),
    })
}

/// The columns of a row.
type Fields = HashMap<String, Cell>;

struct Rows<'s> {
    selection: &'s Selection,
    samples: Vec<Sample>,
    identity: Option<Vec<Cell>>,
    /// The first row and where it stands.
    first: Option<(String, Fields)>,
    /// The topology of each number of nodes.
    topologies: HashMap<u32, Cell>,
}

impl Rows<'_> {
    fn read(&mut self, file: &str, reader: impl BufRead) -> Result<(), InputError> {
        let selection = self.selection;
        let mut taken = false;
        let take = |place: &str, record: Record| {
            taken |= self.take(place, record.into_iter().collect())?;
            Ok(())
        };
        records::read(file, reader, |names| check_header(names, selection), take)?;
        match taken {
            true => Ok(()),
            false if selection.only.is_empty() => Err(InputError {
                place: file.to_owned(),
                reason: "has no row".into(),
            }),
            false => Err(InputError {
                place: file.to_owned(),
                reason: "has no row that --where asks for".into(),
            }),
        }
    }

    /// Takes a row; whether it is one that was asked for.
    fn take(&mut self, place: &str, fields: Fields) -> Result<bool, String> {
        for (key, value) in &self.selection.only {
            match fields.get(key) {
                None => return Err(format!("has no {key}, by which --where selects")),
                Some(cell) if cell.to_text() != *value => return Ok(false),
                Some(_) => {}
            }
        }
        let latency = match &self.selection.latency {
            Some(name) => name.as_str(),
            None => {
                let known = LATENCIES.iter().find(|name| fields.contains_key(**name));
                *known.ok_or_else(|| format!("has no {}", LATENCIES.join(" or ")))?
            }
        };
        let sample = Sample {
            nodes: count(&fields, "nodes")?,
            cores: count(&fields, "cores_per_node")?,
            latency_us: number(&fields, latency)?,
        };
        self.check_same_run(&fields, &sample)?;
        let identity = row::identity_keys().map(|key| fields.get(key).cloned());
        shared(
            &mut self.identity,
            identity.map(|cell| cell.unwrap_or(Cell::Absent)).collect(),
        );
        if self.first.is_none() {
            self.first = Some((place.to_owned(), fields));
        }
        if self.samples.len() == MAX_ROWS {
            return Err(format!("is one row too many; at most {MAX_ROWS}"));
        }
        self.samples.push(sample);
        Ok(true)
    }

    /// Returns whether the row is of the same experiment as the first.
    fn check_same_run(&mut self, fields: &Fields, of: &Sample) -> Result<(), String> {
        let Some((first_place, first)) = &self.first else {
            if let Some(topology) = fields.get("topology") {
                self.topologies.insert(of.nodes, topology.clone());
            }
            return Ok(());
        };
        let differs = |key: &str, here: &Cell, there: &Cell| {
            let shown = |cell: &Cell| match cell.to_text() {
                text if text.is_empty() => "nothing".to_owned(),
                text => text,
            };
            format!(
                "has {key} {}, but {first_place} has {}: one fit takes one of them (--where {key}=…)",
                shown(here),
                shown(there)
            )
        };
        for key in row::identity_keys().filter(|key| !FREE.contains(key)) {
            let here = fields.get(key).unwrap_or(&Cell::Absent);
            let there = first.get(key).unwrap_or(&Cell::Absent);
            if here != there {
                return Err(differs(key, here, there));
            }
        }
        let Some(topology) = fields.get("topology") else {
            return Ok(());
        };
        let kind = |cell: &Cell| cell.to_text().split(':').next().map(str::to_owned);
        if let Some(there) = first.get("topology")
            && kind(there) != kind(topology)
        {
            return Err(differs("topology", topology, there));
        }
        let known = self
            .topologies
            .entry(of.nodes)
            .or_insert_with(|| topology.clone());
        if known == topology {
            return Ok(());
        }
        let (here, there) = (topology.to_text(), known.to_text());
        Err(format!(
            "has {} nodes on {here}, but a row before has them on {there}: one fit takes one of \
             them (--where topology=…)",
            of.nodes
        ))
    }
}

/// A missing column is known at the header already.
fn check_header(names: &[String], selection: &Selection) -> Result<(), String> {
    let has = |name: &str| names.iter().any(|known| known == name);
    let missing = |name: &str| format!("has no column {name}; its first line must name it");
    for name in ["nodes", "cores_per_node"] {
        if !has(name) {
            return Err(missing(name));
        }
    }
    match &selection.latency {
        Some(name) if !has(name) => Err(missing(name)),
        None if !LATENCIES.iter().any(|name| has(name)) => Err(missing(&LATENCIES.join(" or "))),
        _ => Ok(()),
    }
}

/// The number in a column: finite, not negative.
fn number(fields: &Fields, key: &str) -> Result<f64, String> {
    let text = match fields.get(key) {
        None => return Err(format!("has no {key}")),
        Some(Cell::Absent) => return Err(format!("has nothing for {key}")),
        Some(cell) => cell.to_text(),
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("has {key} {text}, which is no number from 0 on")),
    }
}

/// The whole number in a column, at least 1.
fn count(fields: &Fields, key: &str) -> Result<u32, String> {
    let number = number(fields, key)?;
    if number.fract() == 0.0 && (1.0..=MAX_COUNT).contains(&number) {
        Ok(number as u32)
    } else {
        Err(format!(
            "has {key} {number}, which is no whole number from 1 on"
        ))
    }
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_text(text: &str, selection: &Selection) -> Result<Series, InputError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(&[file.path()], selection)
    }

    fn refused(text: &str) -> String {
        let error = read_text(text, &Selection::default()).unwrap_err();
        let (_, line) = error.place.split_once(": ").unwrap_or(("", "file"));
        format!("{line}: {}", error.reason)
    }

    #[test]
    fn both_formats_say_the_same() {
        let csv =
            "nodes,cores_per_node,latency_us,algorithm,fan_in\n2,1,3.5,tree,8\n\n4,16,6,tree,8\r\n";
        let json = "{\"nodes\":2,\"cores_per_node\":1,\"latency_us\":3.5,\"algorithm\":\"tree\",\"fan_in\":8,\"host\":{}}\n\
                    {\"nodes\":4,\"cores_per_node\":16,\"latency_us\":6,\"algorithm\":\"tree\",\"fan_in\":8}";
        let selection = Selection::default();
        let (csv, json) = (
            read_text(csv, &selection).unwrap(),
            read_text(json, &selection).unwrap(),
        );
        assert_eq!(csv, json);
        assert_eq!(
            csv.samples[1],
            Sample {
                nodes: 4,
                cores: 16,
                latency_us: 6.0
            }
        );
        let at = row::identity_keys()
            .position(|key| key == "fan_in")
            .unwrap();
        assert_eq!(csv.identity[at], Cell::Number("8".into()));
        assert_eq!(csv.identity[0], Cell::Absent);
    }

    #[test]
    fn the_mean_is_the_latency_unless_another_column_is_named() {
        let text = "nodes,cores_per_node,latency_mean_us,latency_p99_us\n2,1,3,9\n";
        let of = |latency: Option<&str>| {
            let selection = Selection {
                latency: latency.map(str::to_owned),
                ..Selection::default()
            };
            read_text(text, &selection).map(|series| series.samples[0].latency_us)
        };
        assert_eq!(of(None), Ok(3.0));
        assert_eq!(of(Some("latency_p99_us")), Ok(9.0));
        let missing = of(Some("latency_p50_us")).unwrap_err().to_string();
        assert!(
            missing.ends_with("line 1: has no column latency_p50_us; its first line must name it"),
            "{missing}"
        );
    }

    #[test]
    fn where_selects_rows() {
        let text =
            "nodes,cores_per_node,latency_us,algorithm\n2,1,3,flat\n2,1,4,tree\n4,1,5,flat\n";
        let only = |value: &str| Selection {
            only: vec![("algorithm".into(), value.into())],
            ..Selection::default()
        };
        assert_eq!(read_text(text, &only("flat")).unwrap().samples.len(), 2);
        let none = read_text(text, &only("butterfly")).unwrap_err();
        assert_eq!(none.reason, "has no row that --where asks for");
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        const HEAD: &str =
            "nodes,cores_per_node,latency_us,algorithm,topology\n2,1,3,tree,mesh:2x1\n";
        for (row, expected) in [
            ("2,1\n", "line 3: has 2 cells under a header of 5"),
            (
                "2,1,NaN,tree,\n",
                "line 3: has latency_us NaN, which is no number from 0 on",
            ),
            (
                "2,1,-1,tree,\n",
                "line 3: has latency_us -1, which is no number from 0 on",
            ),
            (
                "2,1,1e999,tree,\n",
                "line 3: has latency_us 1e999, which is no number from 0 on",
            ),
            ("2,1,,tree,\n", "line 3: has nothing for latency_us"),
            (
                "0,1,3,tree,\n",
                "line 3: has nodes 0, which is no whole number from 1 on",
            ),
            (
                "2,1.5,3,tree,\n",
                "line 3: has cores_per_node 1.5, which is no whole number from 1 on",
            ),
            (
                "99999999999,1,3,tree,\n",
                "line 3: has nodes 99999999999, which is no whole number from 1 on",
            ),
            (
                "2,1,3,\"tree,\n",
                "line 3: is no CSV row: its quotes do not match",
            ),
        ] {
            assert_eq!(refused(&format!("{HEAD}{row}")), expected);
        }
        for (row, expected) in [
            ("4,1,3,flat,mesh:2x2\n", "has algorithm flat, but "),
            ("4,1,3,tree,torus:2x2\n", "has topology torus:2x2, but "),
            (
                "2,2,3,tree,mesh:8x8\n",
                "has 2 nodes on mesh:8x8, but a row before has them on mesh:2x1",
            ),
        ] {
            let found = refused(&format!("{HEAD}{row}"));
            assert!(found.starts_with(&format!("line 3: {expected}")), "{found}");
        }
        assert_eq!(refused(""), "file: has no row");
        assert_eq!(
            refused("nodes,cores_per_node,latency_us\n"),
            "file: has no row"
        );
        assert_eq!(
            refused("nodes,latency_us\n"),
            "line 1: has no column cores_per_node; its first line must name it"
        );
        assert_eq!(
            refused("nodes,cores_per_node\n1,1\n"),
            "line 1: has no column latency_us or latency_mean_us; its first line must name it"
        );
        assert_eq!(
            refused("{\"nodes\":1,\"latency_us\":2}"),
            "line 1: has no cores_per_node"
        );
        assert_eq!(
            refused("{\"nodes\":1,\"cores_per_node\":2}"),
            "line 1: has no latency_us or latency_mean_us"
        );
        assert!(refused("{\"nodes\":NaN}").starts_with("line 1: is no JSON object: "));
        assert!(
            refused("{\"nodes\":1,\"cores_per_node\":2,\"nodes\":3}")
                .starts_with("line 1: is no JSON object: the key \"nodes\" stands twice")
        );
        assert_eq!(
            refused("nodes,cores_per_node,latency_us, nodes\n1,1,1,2\n"),
            "line 1: names the column \"nodes\" twice"
        );
        assert!(
            refused("{\"nodes\":1,\"cores_per_node\":2,\"latency_us\":3}\n[1]")
                .starts_with("line 2: is no JSON object: ")
        );
        assert!(refused(&"x".repeat(2 << 20)).contains("longer than"));
        let error = read(&["/nowhere/sweep.csv"], &Selection::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/nowhere/sweep.csv: cannot be read: "),
            "{error}"
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"nodes\n\xff\xfe\n").unwrap();
        assert!(read(&[file.path()], &Selection::default()).is_err());
        assert!(read(&[std::env::temp_dir()], &Selection::default()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_text_panics(text in "(nodes,cores_per_node,latency_us\n)?[-{}\":,a-z0-9.\n eE+]{0,80}") {
            let _ = read_text(&text, &Selection::default());
        }

        #[test]
        fn what_a_sweep_writes_is_read_back(sizes in prop::collection::vec((1..100u32, 1..16u32, 0..1_000_000_000u64), 1..9)) {
            let mut csv = row::csv_header(false) + "\n";
            let mut json = String::new();
            for &(nodes, cores, ps) in &sizes {
                let (nodes, cores) = (nodes.to_string(), cores.to_string());
                let experiment = crate::cli::testing::experiment(&["--nodes", &nodes, "--cores", &cores]);
                let row = row::Row::new(&experiment, &crate::cli::testing::outcome(&[ps]), None);
                csv += &(row.to_csv() + "\n");
                json += &(row.to_json() + "\n");
            }
            let selection = Selection::default();
            let (csv, json) = (read_text(&csv, &selection).unwrap(), read_text(&json, &selection).unwrap());
            prop_assert_eq!(&csv.samples, &json.samples);
            for (sample, &(nodes, cores, ps)) in csv.samples.iter().zip(&sizes) {
                prop_assert_eq!((sample.nodes, sample.cores), (nodes, cores));
                prop_assert!((sample.latency_us - ps as f64 / 1e6).abs() < 1e-9);
            }
        }
    }
}
