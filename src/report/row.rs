//! A result row: one definition, from which tables, JSON lines and CSV come.
//!
//! Called by [`super::output`], [`crate::cli::sweep`] and the commands. Every key carries its unit.
//! Figures are formatted from integers (picoseconds, counts), so that a row is the same text on
//! every host; what depends on the host stands apart, in `host`. A parameter that the algorithm
//! does not look at is absent: `null` in JSON, empty in CSV.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sme_sim::machine::Machine;
use sme_sim::observe::quantile::nearest_rank;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

use super::Format;
use super::table;
use crate::experiment::noise::{Noise, gaps_of, lengths_of};
use crate::experiment::{Experiment, Outcome, applies};
use crate::host;

/// A result row: its cells, in the order of [`keys`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// One cell for each of [`COLUMNS`], and behind them those of [`HOST`], which are missing under
    /// `--no-host`.
    cells: Vec<Cell>,
}

impl Row {
    /// The row of `experiment` and what came out of it, with `host` unless that is to be left out.
    pub fn new(experiment: &Experiment, outcome: &Outcome, host: Option<Host>) -> Self {
        let summary = Summary::new(&outcome.latencies);
        let cells = COLUMNS.iter().map(|column| match column.source {
            Source::Identity(cell) => cell(experiment),
            Source::Result(cell) => cell(outcome, &summary),
        });
        let host = host.iter().flat_map(Host::cells);
        Self {
            cells: cells.chain(host).collect(),
        }
    }

    /// The cells, in the order of [`keys`].
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// One JSON object on one line, without the line's end.
    pub fn to_json(&self) -> String {
        let keys: Vec<&str> = COLUMNS.iter().map(|column| column.key).collect();
        json_row(&keys, &self.cells)
    }

    /// One CSV record, without the line's end.
    pub fn to_csv(&self) -> String {
        csv_record(self.cells.iter().map(Cell::to_text))
    }
}

/// The overrides of `machine` (`--set`) as `key=value`, a blank between two, none within.
pub fn set(machine: &Machine) -> String {
    let pair = |(key, value): &(String, String)| format!("{key}={}", value.replace(' ', ""));
    let pairs: Vec<String> = machine.overrides().iter().map(pair).collect();
    pairs.join(" ")
}

/// The keys with which rows of other than experiments begin.
pub const HEAD: [&str; 5] = ["version", "machine", "machine_hash", "set", "topology"];

/// The cells under [`HEAD`].
pub fn head(machine: &Machine, topology: &Topology) -> [Cell; 5] {
    [
        Cell::text(env!("CARGO_PKG_VERSION")),
        Cell::text(machine.name()),
        Cell::text(machine.hash()),
        Cell::text(set(machine)),
        Cell::text(topology),
    ]
}

/// The cells by which a row is known: everything that can be said before the experiment ran.
pub fn identity(experiment: &Experiment) -> Vec<Cell> {
    let cells = COLUMNS.iter().filter_map(|column| match column.source {
        Source::Identity(cell) => Some(cell(experiment)),
        Source::Result(_) => None,
    });
    cells.collect()
}

/// The keys of [`identity`].
pub fn identity_keys() -> impl Iterator<Item = &'static str> {
    let of_run = |column: &&Column| matches!(column.source, Source::Identity(_));
    COLUMNS.iter().filter(of_run).map(|column| column.key)
}

/// The flat keys of a row, as a table and CSV have them (`host_wall_s` and so on).
pub fn keys(with_host: bool) -> Vec<String> {
    flat_keys(COLUMNS.iter().map(|column| column.key), with_host)
}

/// `keys`, and behind them those of the host where it is told of.
pub fn flat_keys(keys: impl Iterator<Item = impl Into<String>>, with_host: bool) -> Vec<String> {
    let of_host = HOST.iter().filter(|_| with_host);
    let of_host = of_host.map(|(key, _)| format!("host_{key}"));
    keys.map(Into::into).chain(of_host).collect()
}

/// The CSV header, without the line's end.
pub fn csv_header(with_host: bool) -> String {
    csv_record(keys(with_host).into_iter())
}

/// `rows` of other than experiments, under the keys `heading`. Where they have more cells than
/// that, these are [`Host::cells`].
pub fn rendered(heading: &[impl AsRef<str>], rows: &[Vec<Cell>], format: Format) -> String {
    let with_host = rows.iter().any(|row| row.len() > heading.len());
    let keys = flat_keys(heading.iter().map(AsRef::as_ref), with_host);
    let record = |row: &Vec<Cell>| csv_record(row.iter().map(Cell::to_text)) + "\n";
    match format {
        Format::Table => table::rows(&keys, rows, None),
        Format::Csv => {
            let header = csv_record(keys.into_iter()) + "\n";
            header + &rows.iter().map(record).collect::<String>()
        }
        Format::Json => {
            let line = |row: &Vec<Cell>| json_row(heading, row) + "\n";
            rows.iter().map(line).collect()
        }
    }
}

/// `cells` under `keys`, and what is left of them as the object `host`, as one JSON object.
fn json_row(keys: &[impl AsRef<str>], cells: &[Cell]) -> String {
    let (cells, of_host) = cells.split_at(keys.len().min(cells.len()));
    let object = json_object(keys, cells);
    if of_host.is_empty() {
        return object;
    }
    let open = object.strip_suffix('}').unwrap_or(&object);
    let host = HOST.map(|(key, _)| key);
    format!("{open},\"host\":{}}}", json_object(&host, of_host))
}

/// `cells` under their keys as one JSON object.
pub fn json_object(keys: &[impl AsRef<str>], cells: &[Cell]) -> String {
    let pair = |(key, cell): (_, &Cell)| {
        let key = serde_json::Value::from(AsRef::<str>::as_ref(key));
        format!("{key}:{}", cell.to_json())
    };
    let pairs: Vec<String> = keys.iter().zip(cells).map(pair).collect();
    format!("{{{}}}", pairs.join(","))
}

/// `cells` as one CSV record (RFC 4180) without the line's end.
pub fn csv_record(cells: impl Iterator<Item = String>) -> String {
    let quoted = cells.map(|cell| {
        if cell.contains([',', '"']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    });
    quoted.collect::<Vec<_>>().join(",")
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cell {
    /// Does not apply, or is not known.
    Absent,
    /// Words.
    Text(String),
    /// Yes or no.
    Truth(bool),
    /// A whole number.
    Count(u64),
    /// `units` × 10^-`decimals`.
    Fixed {
        /// Number of the smallest unit.
        units: u64,
        /// Digits behind the point, at least 1.
        decimals: u32,
    },
    /// A number as JSON writes it, of any sign and size: from a file, or calculated.
    Number(String),
}

impl Cell {
    /// Text of any kind that displays itself; control characters become blanks, so that a row
    /// stays one line.
    pub fn text(value: impl std::fmt::Display) -> Self {
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        Self::Text(value.to_string().chars().map(clean).collect())
    }

    /// A time in microseconds, exact to the picosecond.
    pub fn micros(time: Time) -> Self {
        Self::Fixed {
            units: time.as_ps(),
            decimals: 6,
        }
    }

    /// A time in nanoseconds, exact to the picosecond.
    pub fn nanos(time: Time) -> Self {
        Self::Fixed {
            units: time.as_ps(),
            decimals: 3,
        }
    }

    /// A number that is not negative, to six digits behind the point.
    pub fn fraction(value: f64) -> Self {
        Self::Fixed {
            // Saturates; what is not a number becomes 0.
            units: (value * 1e6).round() as u64,
            decimals: 6,
        }
    }

    /// A calculated number, to six digits behind the point; absent where it is none, or infinite.
    pub fn real(value: f64) -> Self {
        match value.is_finite() {
            true => Self::Number(format!("{value:.6}")),
            false => Self::Absent,
        }
    }

    /// As CSV and tables have it; empty where absent.
    pub fn to_text(&self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Text(text) | Self::Number(text) => text.clone(),
            Self::Truth(truth) => truth.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Fixed { units, decimals } => {
                let scale = 10u64.saturating_pow(*decimals);
                let width = *decimals as usize;
                format!("{}.{:0width$}", units / scale, units % scale)
            }
        }
    }

    /// As JSON has it; `null` where absent.
    pub fn to_json(&self) -> String {
        match self {
            Self::Absent => "null".to_owned(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            _ => self.to_text(),
        }
    }

    /// Whether a table puts it flush right.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Count(_) | Self::Fixed { .. } | Self::Number(_))
    }
}

/// The cost of a run to the host; differs from run to run.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// From the start of the simulation to its end; with `--explain`, of both.
    pub wall: Duration,
    /// Simulated events of the run.
    pub events: u64,
    /// The process's largest resident set so far, in bytes, where the host tells.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes of simulator state for each simulated thread, where that is counted.
    pub bytes_per_thread: Option<u64>,
}

impl Host {
    /// A run of `events` events that took `wall`, on this host, now.
    pub fn measured(wall: Duration, events: u64) -> Self {
        Self {
            wall,
            events,
            peak_rss_bytes: host::peak_rss_bytes(),
            bytes_per_thread: None,
        }
    }

    /// The cells that stand behind those of a row, unless `--no-host` leaves them out.
    pub fn cells(&self) -> Vec<Cell> {
        HOST.iter().map(|(_, cell)| cell(self)).collect()
    }
}

type OfHost = (&'static str, fn(&Host) -> Cell);

/// The object `host` of every row that has one.
const HOST: [OfHost; 4] = [
    ("wall_s", |h| Cell::Fixed {
        units: u64::try_from(h.wall.as_micros()).unwrap_or(u64::MAX),
        decimals: 6,
    }),
    ("events_per_s", |h| {
        let per_second = u128::from(h.events) * 1_000_000_000 / h.wall.as_nanos().max(1);
        Cell::Count(u64::try_from(per_second).unwrap_or(u64::MAX))
    }),
    ("peak_rss_bytes", |h| {
        h.peak_rss_bytes.map_or(Cell::Absent, Cell::Count)
    }),
    ("bytes_per_thread", |h| {
        h.bytes_per_thread.map_or(Cell::Absent, Cell::Count)
    }),
];

/// The latencies of a run's counted episodes in a few figures.
///
/// The mean is rounded to the nearest picosecond, half up. Percentiles are by nearest rank: the
/// p-th percentile of n values is the ⌈p·n/100⌉-th smallest, hence always one that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Total time over the number of episodes.
    pub mean: Time,
    /// Shortest.
    pub min: Time,
    /// Median.
    pub p50: Time,
    /// 99th percentile.
    pub p99: Time,
    /// Longest.
    pub max: Time,
}

impl Summary {
    /// Of `latencies`; all zero where there are none.
    pub fn new(latencies: &[Time]) -> Self {
        let mut sorted = latencies.to_vec();
        sorted.sort_unstable();
        let count = sorted.len().max(1) as u128;
        let total: u128 = sorted.iter().map(|time| u128::from(time.as_ps())).sum();
        let mean = (2 * total + count) / (2 * count);
        Self {
            mean: Time::from_ps(u64::try_from(mean).unwrap_or(u64::MAX)),
            min: sorted.first().copied().unwrap_or_default(),
            p50: nearest_rank(&sorted, 50),
            p99: nearest_rank(&sorted, 99),
            max: sorted.last().copied().unwrap_or_default(),
        }
    }
}

struct Column {
    key: &'static str,
    source: Source,
}

enum Source {
    /// Known before the run; these come first, and no two experiments of a sweep share all of them.
    Identity(fn(&Experiment) -> Cell),
    /// Comes out of the run, and out of every other run of the same point.
    Result(fn(&Outcome, &Summary) -> Cell),
}

const fn identifies(key: &'static str, cell: fn(&Experiment) -> Cell) -> Column {
    let source = Source::Identity(cell);
    Column { key, source }
}

const fn results(key: &'static str, cell: fn(&Outcome, &Summary) -> Cell) -> Column {
    let source = Source::Result(cell);
    Column { key, source }
}

/// The definition of a row.
const COLUMNS: &[Column] = &[
    identifies("version", |_| Cell::text(env!("CARGO_PKG_VERSION"))),
    identifies("machine", |e| Cell::text(e.machine.name())),
    identifies("machine_hash", |e| Cell::text(e.machine.hash())),
    identifies("set", |e| Cell::text(set(&e.machine))),
    identifies("engine", |e| Cell::text(e.engine)),
    identifies("algorithm", |e| Cell::text(e.algorithm)),
    identifies("placement", |e| {
        let uses = applies::placement(e.algorithm, e.placement);
        when(uses, || Cell::text(e.placement))
    }),
    identifies("topology", |e| Cell::text(&e.topology)),
    identifies("nodes", |e| Cell::Count(e.nodes.into())),
    identifies("cores_per_node", |e| Cell::Count(e.cores.into())),
    identifies("threads", |e| {
        Cell::Count(u64::from(e.nodes) * u64::from(e.cores))
    }),
    identifies("episodes", |e| Cell::Count(e.episodes.into())),
    identifies("seed", |e| Cell::Count(e.seed)),
    identifies("pin", |e| Cell::text(e.pin)),
    identifies("layout", |e| Cell::text(e.flag_layout())),
    identifies("fan_in", |e| {
        let uses = applies::tree(e.algorithm);
        when(uses, || Cell::Count(e.fan_in.into()))
    }),
    identifies("tree_shape", |e| {
        let uses = applies::tree(e.algorithm);
        when(uses, || Cell::text(e.tree_shape))
    }),
    identifies("mapping", |e| {
        let uses = applies::mapping(e.algorithm);
        when(uses, || Cell::text(e.mapping))
    }),
    identifies("local_fan_in", |e| {
        e.local_fan_in
            .map_or(Cell::Absent, |fan_in| Cell::Count(fan_in.into()))
    }),
    identifies("skew_ns", |e| Cell::nanos(e.skew)),
    identifies("skew_distribution", |e| {
        let skewed = e.skew > Time::ZERO;
        when(skewed, || Cell::text(e.disturbance.skew_distribution))
    }),
    identifies("work_ns", |e| Cell::nanos(e.disturbance.work)),
    identifies("noise_period_ns", |e| {
        of_noise(e, |noise| Cell::nanos(noise.period()))
    }),
    identifies("noise_duration_ns", |e| {
        of_noise(e, |noise| Cell::nanos(noise.duration()))
    }),
    identifies("noise_distribution", |e| {
        of_noise(e, |noise| Cell::text(gaps_of(noise)))
    }),
    identifies("noise_duration_distribution", |e| {
        of_noise(e, |noise| Cell::text(lengths_of(noise)))
    }),
    results("latency_mean_us", |_, s| Cell::micros(s.mean)),
    results("latency_min_us", |_, s| Cell::micros(s.min)),
    results("latency_p50_us", |_, s| Cell::micros(s.p50)),
    results("latency_p99_us", |_, s| Cell::micros(s.p99)),
    results("latency_max_us", |_, s| Cell::micros(s.max)),
    results("remote_loads", |o, _| Cell::Count(o.remote_loads)),
    results("remote_stores", |o, _| Cell::Count(o.remote_stores)),
    results("link_bytes", |o, _| Cell::Count(o.link_bytes)),
    results("events", |o, _| Cell::Count(o.events)),
];

fn of_noise(experiment: &Experiment, cell: impl FnOnce(&Noise) -> Cell) -> Cell {
    let noise = experiment.disturbance.noise.as_ref();
    noise.map_or(Cell::Absent, cell)
}

fn when(applies: bool, cell: impl FnOnce() -> Cell) -> Cell {
    if applies { cell() } else { Cell::Absent }
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests {
    use super::*;
    use crate::cli::testing;
    use proptest::prelude::*;

    #[test]
    fn the_three_formats_have_the_same_keys_and_values() {
        let experiment = testing::experiment(&["--nodes", "4", "--cores", "2"]);
        let host = Host {
            wall: Duration::from_micros(1_500),
            events: 3_000,
            peak_rss_bytes: None,
            bytes_per_thread: None,
        };
        for host in [None, Some(host)] {
            let row = Row::new(
                &experiment,
                &testing::outcome(&[1_000_000, 2_000_001]),
                host,
            );
            let json: serde_json::Value = serde_json::from_str(&row.to_json()).unwrap();
            let header = csv_header(host.is_some());
            let keys: Vec<_> = header.split(',').collect();
            assert_eq!(keys, super::keys(host.is_some()));
            assert_eq!(keys.len(), row.cells().len());
            for (key, cell) in keys.iter().zip(row.cells()) {
                let value = match key.strip_prefix("host_") {
                    Some(key) => &json["host"][key],
                    None => &json[key],
                };
                let expected: serde_json::Value = serde_json::from_str(&cell.to_json()).unwrap();
                assert_eq!(*value, expected, "{key}");
            }
            assert_eq!(json.get("host").is_some(), host.is_some());
        }
    }

    #[test]
    fn a_row_reads_as_documented() {
        let experiment =
            testing::experiment(&["--nodes", "4", "--cores", "2", "--algorithm", "flat"]);
        let row = Row::new(
            &experiment,
            &testing::outcome(&[1_000_000, 2_000_001]),
            None,
        );
        let json = row.to_json();
        assert!(json.contains("\"placement\":null,\"topology\":\"mesh:2x2\",\"nodes\":4,"));
        assert!(
            json.contains("\"threads\":8,\"episodes\":100,\"seed\":1,"),
            "{json}"
        );
        assert!(
            json.contains("\"layout\":\"padded\",\"fan_in\":null,"),
            "{json}"
        );
        assert!(json.contains("\"latency_mean_us\":1.500001,\"latency_min_us\":1.000000,"));
        assert!(
            row.to_csv()
                .contains(",1.500001,1.000000,1.000000,2.000001,2.000001,")
        );
    }

    #[test]
    fn awkward_names_stay_one_record() {
        assert_eq!(
            csv_record(["a,b".into(), "say \"so\"".into(), String::new()].into_iter()),
            "\"a,b\",\"say \"\"so\"\"\","
        );
        assert_eq!(Cell::text("a\nb\tc"), Cell::Text("a b c".into()));
        assert_eq!(Cell::text("a\"\\").to_json(), r#""a\"\\""#);
    }

    #[test]
    fn the_peak_is_at_least_what_this_test_holds() {
        if std::path::Path::new("/proc/self/status").exists() {
            let held = vec![1u8; 8 << 20];
            assert!(host::peak_rss_bytes().unwrap() >= held.len() as u64);
        }
    }

    proptest! {
        /// Nearest rank by its definition: the least value that at least p % do not exceed.
        #[test]
        fn figures_are_those_of_the_definition(ps in prop::collection::vec(0u64..50, 1..250)) {
            let latencies: Vec<_> = ps.iter().map(|&ps| Time::from_ps(ps)).collect();
            let summary = Summary::new(&latencies);
            let least = |percent: usize| {
                (0..50).find(|&v| ps.iter().filter(|&&x| x <= v).count() * 100 >= percent * ps.len())
            };
            prop_assert_eq!(Some(summary.p50.as_ps()), least(50));
            prop_assert_eq!(Some(summary.p99.as_ps()), least(99));
            prop_assert_eq!(Some(summary.max.as_ps()), least(100));
            prop_assert_eq!(summary.min.as_ps(), *ps.iter().min().unwrap());
            let mean = ps.iter().sum::<u64>() as f64 / ps.len() as f64;
            prop_assert!((summary.mean.as_ps() as f64 - mean).abs() <= 0.5 + 1e-9);
        }

        #[test]
        fn fixed_point_is_exact(ps in any::<u64>()) {
            let text = Cell::micros(Time::from_ps(ps)).to_text();
            let digits: String = text.chars().filter(|&c| c != '.').collect();
            prop_assert_eq!(digits.parse::<u64>().unwrap(), ps);
            prop_assert_eq!(text.len() - text.find('.').unwrap(), 7);
        }
    }
}
