//! `--stale-list`: every stale load of a run as a row of a file.
//!
//! Called by [`crate::cli::program`]; fed by [`sme_sim::observe::staleness`]. Rows are written
//! while the run goes on, to a scratch file, so that they take no memory; the file appears when
//! they are all there. They come in the order of time, of equal times those of the first node
//! first, and of one node as it performed them: the same with any number of workers.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write as _};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_sim::observe::staleness::{MissedWrite, Runs, Site, StaleLoad, Way};

use super::output::Output;
use super::row::{Cell, csv_record};
use super::stop::Stop;
use crate::program::EachStale;

/// The flag.
pub const FLAG: &str = "--stale-list";

/// Bytes that a load reads and a store writes.
const WORD_BYTES: u64 = 8;

/// A list under way.
#[derive(Debug)]
pub struct StaleList {
    output: Output,
    rows: Arc<Mutex<Rows>>,
}

impl StaleList {
    /// A list without rows; an error where its file could not be written.
    pub fn open(path: &Path) -> Result<Self, Stop> {
        let output = Output::file(FLAG, path)?;
        let scratch = output.scratch()?;
        let rows = match super::Format::of_file(path) {
            Some(super::Format::Json) => Rows::new(scratch, Format::Json),
            _ => Rows::new(scratch, Format::Csv),
        };
        Ok(Self {
            output,
            rows: Arc::new(Mutex::new(rows)),
        })
    }

    /// Returns the function that adds the rows.
    pub fn writer(&self) -> EachStale {
        let rows = Arc::clone(&self.rows);
        Box::new(move |load| rows.lock().add(load))
    }

    /// Every row is there: the file appears.
    pub fn commit(mut self) -> Result<(), Stop> {
        let written = self.rows.lock().finish();
        let mut scratch = written.map_err(|error| self.output.stopped(&error))?;
        self.output.push_all(&mut scratch)?;
        self.output.commit()
    }
}

/// The format of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// The keys in the first line.
    Csv,
    /// An object a line.
    Json,
}

/// Where rows go.
#[derive(Debug)]
struct Rows {
    format: Format,
    to: BufWriter<File>,
    /// The row under way.
    line: String,
    /// Places of the program, as rows have them.
    sites: HashMap<Site, String>,
    /// The error of the first write that failed, after which nothing is written any more.
    written: io::Result<()>,
}

impl Rows {
    fn new(to: File, format: Format) -> Self {
        let mut rows = Self {
            format,
            to: BufWriter::new(to),
            line: String::new(),
            sites: HashMap::new(),
            written: Ok(()),
        };
        if format == Format::Csv {
            let keys = KEYS.join(",") + "\n";
            rows.written = rows.to.write_all(keys.as_bytes());
        }
        rows
    }

    fn add(&mut self, load: &StaleLoad) {
        if self.written.is_err() {
            return;
        }
        self.line.clear();
        let row = Row {
            line: &mut self.line,
            sites: &mut self.sites,
            format: self.format,
            keys: KEYS.iter(),
        };
        row.of(load);
        self.written = self.to.write_all(self.line.as_bytes());
    }

    /// Ends the list and returns its file, rewound to the beginning.
    fn finish(&mut self) -> io::Result<File> {
        std::mem::replace(&mut self.written, Ok(()))?;
        self.to.flush()?;
        let mut file = self.to.get_ref().try_clone()?;
        file.rewind()?;
        Ok(file)
    }
}

/// The keys of a row, in their order, with their units.
const KEYS: [&str; 21] = [
    "time_ps",
    "reader_node",
    "reader_core",
    "reader_thread",
    "load_site",
    "way",
    "home_node",
    "address",
    "size_bytes",
    "seen",
    "newer",
    "equal",
    "writer_node",
    "writer_core",
    "writer_thread",
    "store_time_ps",
    "store_site",
    "cause",
    "missing",
    "missing_side",
    "missing_node",
];

/// A row under way.
struct Row<'a> {
    line: &'a mut String,
    sites: &'a mut HashMap<Site, String>,
    format: Format,
    /// Those whose values are not written yet.
    keys: std::slice::Iter<'a, &'static str>,
}

impl Row<'_> {
    fn of(mut self, load: &StaleLoad) {
        self.number(load.at.as_ps());
        self.runs(Some((load.reader, load.thread)));
        self.site(load.site);
        self.word(match load.way {
            Way::Cached => "cached",
            Way::Uncached => "uncached",
            Way::Coherent => "coherent",
        });
        self.number(load.word.node);
        self.word(format_args!("{:#x}", load.word.offset));
        self.number(WORD_BYTES);
        self.word(format_args!("{:#018x}", load.seen));
        self.word(format_args!("{:#018x}", load.newer));
        self.number(load.is_equal());
        let written = load.written;
        self.runs(written.map(|MissedWrite { by, thread, .. }| (by, thread)));
        match written {
            Some(written) => self.number(written.at.as_ps()),
            None => self.nothing(),
        }
        self.site(written.and_then(|written| written.site));
        self.word(load.cause.name());
        match load.missing() {
            Some(missing) => {
                self.word(missing.flush.name());
                self.word(missing.side.name());
                self.number(missing.node);
            }
            None => (0..3).for_each(|_| self.nothing()),
        }
        debug_assert_eq!(self.keys.len(), 0, "every key has a value");
        self.line.push_str(match self.format {
            Format::Csv => "\n",
            Format::Json => "}\n",
        });
    }

    /// The node, core and thread of an access; `None` for the initial value.
    fn runs(&mut self, who: Option<(Runs, u32)>) {
        let Some((Runs { node, core }, thread)) = who else {
            return (0..3).for_each(|_| self.nothing());
        };
        self.number(node);
        self.number(core);
        self.number(thread);
    }

    /// A place of the program.
    fn site(&mut self, site: Option<Site>) {
        let Some(site) = site else {
            return self.nothing();
        };
        self.key();
        let format = self.format;
        let text = self.sites.entry(site).or_insert_with(|| {
            let cell = Cell::text(site);
            match format {
                Format::Csv => csv_record(std::iter::once(cell.to_text())),
                Format::Json => cell.to_json(),
            }
        });
        self.line.push_str(text);
    }

    /// Words that need no quoting.
    fn word(&mut self, word: impl Display) {
        self.key();
        let quote = match self.format {
            Format::Csv => "",
            Format::Json => "\"",
        };
        self.put(format_args!("{quote}{word}{quote}"));
    }

    /// A number, or a truth.
    fn number(&mut self, number: impl Display) {
        self.key();
        self.put(number);
    }

    /// Does not apply, or is not known.
    fn nothing(&mut self) {
        self.key();
        if self.format == Format::Json {
            self.line.push_str("null");
        }
    }

    fn put(&mut self, value: impl Display) {
        // Memory takes everything.
        let _ = write!(self.line, "{value}");
    }

    /// Writes the text that stands before the next value.
    fn key(&mut self) {
        let key = self.keys.next().copied().unwrap_or_default();
        match self.format {
            Format::Csv if self.line.is_empty() => {}
            Format::Csv => self.line.push(','),
            Format::Json => {
                let open = if self.line.is_empty() { '{' } else { ',' };
                self.line.push(open);
                self.line.push('"');
                self.line.push_str(key);
                self.line.push_str("\":");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::panic::Location;

    use sme_memory::Place;
    use sme_sim::observe::staleness::Cause;
    use sme_sim::time::Time;

    fn listed(format: Format, loads: &[StaleLoad]) -> String {
        let mut rows = Rows::new(tempfile::tempfile().unwrap(), format);
        loads.iter().for_each(|load| rows.add(load));
        let mut text = String::new();
        rows.finish().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn what_is_not_known_is_null_or_empty() {
        let overwritten = StaleLoad {
            at: Time::from_ps(1_500),
            reader: Runs { node: 3, core: 1 },
            thread: 13,
            site: None,
            way: Way::Cached,
            word: Place {
                node: 2,
                offset: 0x48,
            },
            seen: 1,
            newer: u64::MAX,
            written: Some(MissedWrite {
                at: Time::from_ps(700),
                by: Runs { node: 0, core: 2 },
                thread: 2,
                site: None,
            }),
            cause: Cause::LostUpdate { by_node: 5 },
        };
        let never_written = StaleLoad {
            newer: 1,
            written: None,
            cause: Cause::NeverWritten,
            way: Way::Coherent,
            ..overwritten
        };
        let loads = [overwritten, never_written];
        let expected = KEYS.join(",")
            + "
1500,3,1,13,,cached,2,0x48,8,0x0000000000000001,0xffffffffffffffff,false,0,2,2,700,,\
lost_update,padding,overwriter,5
1500,3,1,13,,coherent,2,0x48,8,0x0000000000000001,0x0000000000000001,true,,,,,,\
never_written,,,
";
        assert_eq!(listed(Format::Csv, &loads), expected);
        let json = listed(Format::Json, &loads);
        let lines: Vec<serde_json::Value> = (json.lines())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert!(
            json.starts_with("{\"time_ps\":1500,\"reader_node\":3,"),
            "{json}"
        );
        assert_eq!(lines[0]["missing_node"], 5);
        assert_eq!(lines[1]["missing_node"], serde_json::Value::Null);
        assert_eq!(lines[1]["load_site"], serde_json::Value::Null);
    }

    #[test]
    fn places_are_those_of_the_report() {
        let site = Location::caller();
        let load = StaleLoad {
            at: Time::ZERO,
            reader: Runs { node: 0, core: 0 },
            thread: 0,
            site: Some(site),
            way: Way::Uncached,
            word: Place { node: 0, offset: 0 },
            seen: 0,
            newer: 1,
            written: None,
            cause: Cause::InFlight,
        };
        let place = sme_sim::observe::staleness::Source::from(site).to_string();
        let csv = listed(Format::Csv, &[load, load]);
        assert_eq!(csv.matches(&format!(",{place},")).count(), 2, "{csv}");
        let json = listed(Format::Json, &[load]);
        assert!(
            json.contains(&format!("\"load_site\":\"{place}\"")),
            "{json}"
        );
    }
}
