//! Results as users see them: rows and tables, output files, which appear whole or not at all, and
//! errors with their exit statuses. Knows no flag.
//!
//! * [`row`]: the row of a barrier experiment, and the cells of which all rows are made.
//! * [`table`]: rows as aligned text. [`columns`]: some of their columns.
//! * [`output`], [`partial`]: where rows go; [`collect`]: results that are not printed;
//!   [`temporary`], [`replace`]: unfinished files, and the files that they replace.
//! * [`explain`]: a critical path. [`links`]: the load of links. [`stale_list`]: stale loads.
//!   [`timeline`]: a trace of all threads. [`calls`]: the calls of ranks.
//! * [`recognize`]: rows that were written before; [`records`]: rows of any kind, read from files;
//!   [`strict`]: JSON without keys that stand twice.
//! * [`units`]: what keys say in words.
//! * [`stop`]: errors and exit statuses.

pub mod calls;
pub mod collect;
pub mod columns;
pub mod explain;
pub mod links;
pub mod output;
pub mod partial;
pub mod profile;
pub mod recognize;
pub mod records;
pub mod replace;
pub mod row;
pub mod stale_list;
pub mod stop;
pub mod strict;
pub mod table;
pub mod temporary;
pub mod timeline;
pub mod units;

use std::path::Path;

/// A result format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// Aligned text for people.
    Table,
    /// One JSON object a line.
    Json,
    /// Comma-separated values, the keys in the first line.
    Csv,
}

impl Format {
    /// The format that a file's ending says, if it is one of .csv, .json and .jsonl.
    pub fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "csv" => Some(Format::Csv),
            "json" | "jsonl" => Some(Format::Json),
            _ => None,
        }
    }
}
