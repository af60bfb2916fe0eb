//! The findings of the checker, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::Location;

use serde::Serialize;

/// The cause of a stale read: the missing flush and its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The caches of the writer's node still have the newer value and memory has not.
    NotWrittenBack,
    /// Memory has the newer value; the reader's node kept an older copy.
    NotInvalidated,
    /// The newer value was posted and had not been performed: no read-back from its home.
    InFlight,
    /// Memory had the newer value, and another node's write-back overwrote it.
    LostUpdate {
        /// The node.
        by_node: u32,
    },
    /// No thread has written the word, and yet it does not hold its initial value: memory was
    /// changed behind the checker's back.
    NeverWritten,
}

/// A step that makes memory coherent between two nodes, and that a program has left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// Writing back what was stored in caches.
    WriteBack,
    /// Dropping copies before what others have written is read.
    Invalidate,
    /// Reading from a home, by which what was posted to it has been performed.
    ReadBack,
    /// Not having a line in which others write, or not any more: data that fills whole lines, or a
    /// write-back and an invalidation before the others write.
    Padding,
}

/// A side of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The node of the thread that has written.
    Writer,
    /// The node of the thread that reads.
    Reader,
    /// Another node, which has written the line back.
    Overwriter,
}

impl Cause {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Cause::NotWrittenBack => "not_written_back",
            Cause::NotInvalidated => "not_invalidated",
            Cause::InFlight => "in_flight",
            Cause::LostUpdate { .. } => "lost_update",
            Cause::NeverWritten => "never_written",
        }
    }

    /// Returns the missing flush and its side; none if no thread has written the word.
    pub fn missing(self) -> Option<(Flush, Side)> {
        match self {
            Cause::NotWrittenBack => Some((Flush::WriteBack, Side::Writer)),
            Cause::NotInvalidated => Some((Flush::Invalidate, Side::Reader)),
            Cause::InFlight => Some((Flush::ReadBack, Side::Writer)),
            Cause::LostUpdate { .. } => Some((Flush::Padding, Side::Overwriter)),
            Cause::NeverWritten => None,
        }
    }
}

impl Flush {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Flush::WriteBack => "write_back",
            Flush::Invalidate => "invalidate",
            Flush::ReadBack => "read_back",
            Flush::Padding => "padding",
        }
    }
}

impl Side {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Side::Writer => "writer",
            Side::Reader => "reader",
            Side::Overwriter => "overwriter",
        }
    }
}

/// A thread, by where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Runs {
    /// Its node.
    pub node: u32,
    /// Its core in the node.
    pub core: u32,
}

/// A place in a program's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Source {
    /// The file, as the compiler names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&Location<'_>> for Source {
    fn from(site: &Location<'_>) -> Self {
        Self {
            file: site.file().to_owned(),
            line: site.line(),
            column: site.column(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A write that a load should have seen, or may have raced with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The threads that wrote it.
    pub by: Runs,
    /// The place in the program.
    pub source: Option<Source>,
    /// The time in picoseconds.
    pub at_ps: u64,
}

/// Stale reads of one load of the program, of what one store wrote, with one cause: how many, and
/// the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StaleRead {
    /// The missing flush.
    pub cause: Cause,
    /// The number of such reads.
    pub count: u64,
    /// The threads that read.
    pub reader: Runs,
    /// The place in the program.
    pub source: Option<Source>,
    /// The time in picoseconds.
    pub at_ps: u64,
    /// The node whose memory holds the word.
    pub home: u32,
    /// Byte offset of the word in that node's shared partition.
    pub offset: u64,
    /// The value the load returned.
    pub seen: u64,
    /// The value it should have returned.
    pub newer: u64,
    /// The write of that value; none for the initial value.
    pub written: Option<Written>,
}

/// Accesses of the same word by two threads that nothing orders, one of them a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Race {
    /// The number of races between these places of the program.
    pub count: u64,
    /// Whether the later one was a load; a store otherwise.
    pub is_load: bool,
    /// The threads that came later.
    pub by: Runs,
    /// The place in the program.
    pub source: Option<Source>,
    /// The time in picoseconds.
    pub at_ps: u64,
    /// The node whose memory holds the word.
    pub home: u32,
    /// Byte offset of the word in that node's shared partition.
    pub offset: u64,
    /// The earlier write.
    pub written: Written,
}

/// The stale reads and races found in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StaleReport {
    /// Loads that were checked.
    pub loads: u64,
    /// Loads that did not return the newest value that had happened before them.
    pub stale_reads: u64,
    /// Loads from a copy that lacks the newest write, which had written the same value.
    pub stale_but_equal: u64,
    /// Loads that race with a write: they may return any value.
    pub racing_loads: u64,
    /// Stores that race with an earlier one.
    pub racing_stores: u64,
    /// Records that name a thread or a node that the machine does not have: not checked.
    pub ignored: u64,
    /// Stale reads that `findings` has no room for.
    pub further: u64,
    /// The number of findings that they would make.
    pub further_groups: u64,
    /// The first different ones, in the order in which they were found.
    pub findings: Vec<StaleRead>,
    /// The first different races.
    pub races: Vec<Race>,
}

impl StaleReport {
    /// Returns whether no load was stale.
    pub fn is_clean(&self) -> bool {
        self.stale_reads == 0
    }
}

impl Cause {
    /// Without the node, so that all of a kind stand together.
    fn kind(self) -> Self {
        match self {
            Cause::LostUpdate { .. } => Cause::LostUpdate { by_node: 0 },
            other => other,
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Cause::NotWrittenBack => {
                "not written back: the newer value is in the caches of the writer's node"
            }
            Cause::NotInvalidated => {
                "not invalidated: memory has the newer value, the reader's node an older copy"
            }
            Cause::InFlight => "in flight: the newer value was on its way to memory",
            Cause::LostUpdate { .. } => {
                "lost update: another node wrote the line back over the newer value"
            }
            Cause::NeverWritten => "never written: and yet not the initial value",
        }
    }
}

/// Says what must be added to the program, given all findings of a kind.
fn remedy(kind: Cause, findings: &[&StaleRead]) -> String {
    let writers = || {
        findings
            .iter()
            .filter_map(|f| Some(f.written.as_ref()?.by.node))
    };
    match kind {
        Cause::NotWrittenBack => {
            format!("{} must write back before the hand-over", nodes(writers()))
        }
        Cause::NotInvalidated => format!(
            "{} must invalidate after the hand-over",
            nodes(findings.iter().map(|f| f.reader.node))
        ),
        Cause::InFlight => format!(
            "{} must read back from {} before the hand-over",
            nodes(writers()),
            nodes(findings.iter().map(|f| f.home))
        ),
        Cause::LostUpdate { .. } => format!(
            "{} must not write lines back that others write: pad the data to whole lines, or \
             write back and invalidate before others write",
            nodes(findings.iter().filter_map(|f| match f.cause {
                Cause::LostUpdate { by_node } => Some(by_node),
                _ => None,
            }))
        ),
        Cause::NeverWritten => "the checker must be told the initial value".to_owned(),
    }
}

fn nodes(all: impl Iterator<Item = u32>) -> String {
    const SHOWN: usize = 8;
    let all: BTreeSet<u32> = all.collect();
    let shown: Vec<String> = all.iter().take(SHOWN).map(u32::to_string).collect();
    let noun = if all.len() == 1 { "node" } else { "nodes" };
    let more = match all.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{noun} {}{more}", shown.join(", "))
}

/// A line of the table: who, where, when.
struct Entry<'a>(Runs, &'a Option<Source>, u64);

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry(Runs { node, core }, source, at_ps) = self;
        let source = match source {
            Some(source) => source.to_string(),
            None => "unknown".to_owned(),
        };
        let us = *at_ps as f64 / 1e6;
        write!(
            f,
            "node {node:>3} core {core:>2} at {us:>12.3} µs, {source}"
        )
    }
}

impl fmt::Display for StaleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} stale reads of {} loads; {} stale but equal; {} loads and {} stores race",
            self.stale_reads,
            self.loads,
            self.stale_but_equal,
            self.racing_loads,
            self.racing_stores
        )?;
        let mut kinds: BTreeMap<Cause, Vec<&StaleRead>> = BTreeMap::new();
        for finding in &self.findings {
            kinds.entry(finding.cause.kind()).or_default().push(finding);
        }
        for (kind, findings) in kinds {
            writeln!(f, "\n{}; {}", kind.heading(), remedy(kind, &findings))?;
            for finding in findings {
                finding.fmt(f)?;
            }
        }
        if self.further > 0 {
            let (reads, groups) = (self.further, self.further_groups);
            writeln!(f, "\n{reads} further stale reads in {groups} more groups")?;
        }
        if !self.races.is_empty() {
            writeln!(f, "\nraces: nothing orders these accesses")?;
            for race in &self.races {
                race.fmt(f)?;
            }
            let shown: u64 = self.races.iter().map(|race| race.count).sum();
            let further = (self.racing_loads + self.racing_stores).saturating_sub(shown);
            if further > 0 {
                writeln!(f, "\n{further} further accesses race, between other places")?;
            }
        }
        if self.ignored > 0 {
            writeln!(f, "\n{} records of unknown threads or nodes", self.ignored)?;
        }
        Ok(())
    }
}

impl fmt::Display for StaleRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = format!("{}×", self.count);
        let by = match self.cause {
            Cause::LostUpdate { by_node } => format!(", overwritten by node {by_node}"),
            _ => String::new(),
        };
        writeln!(
            f,
            "  {times:>8} node {} byte {:#x}{by}",
            self.home, self.offset
        )?;
        let read = Entry(self.reader, &self.source, self.at_ps);
        writeln!(f, "           saw   {:#018x} {read}", self.seen)?;
        match &self.written {
            Some(Written { by, source, at_ps }) => {
                let wrote = Entry(*by, source, *at_ps);
                writeln!(f, "           newer {:#018x} {wrote}", self.newer)
            }
            None => writeln!(f, "           newer {:#018x} initially", self.newer),
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = format!("{}×", self.count);
        writeln!(f, "  {times:>8} node {} byte {:#x}", self.home, self.offset)?;
        let what = if self.is_load { "load " } else { "store" };
        let later = Entry(self.by, &self.source, self.at_ps);
        writeln!(f, "           {what} {later}")?;
        let Written { by, source, at_ps } = &self.written;
        writeln!(f, "           store {}", Entry(*by, source, *at_ps))
    }
}
