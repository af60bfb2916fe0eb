//! The stale-read detector: checks each load of a run against the newest value that happens-before
//! rules would give it, and says of each stale one which flush was missing on which side.
//!
//! The machine (or a test) tells a [`Checker`] what happens, [`Record`] by record, in an order that
//! each thread's program order agrees with, and in which a flag is set before any thread sees it.
//! Nodes that cannot influence each other within a window may be told one after the other, window
//! by window. Accesses of a thread in its caches without a break, nearly all of them, are told in
//! one run ([`Checker::accesses`]). The checker knows of the machine what addresses mean, and calls
//! nothing but its own parts.
//!
//! Happens-before is program order, and what a release shares with the acquire that sees it: a flag
//! set and seen, or an atomic operation and the next access to its word. It is kept as vector
//! clocks (`clocks`; Flanagan & Freund, "FastTrack: efficient and precise dynamic race detection",
//! PLDI 2009), with one epoch for a word's last write (`shadow`). A load that its word's last write
//! does not precede races and may return anything. Otherwise it must return that write's value;
//! what it missed, and why, is known from where the line's copies and writes are (`history`).
//!
//! Times are only told to people, except that a copy counts as newer than a write that is not later
//! than its fill: a fill should be told when its home is read.

mod clocks;
mod history;
mod list;
mod record;
mod releases;
mod report;
mod shadow;
mod sites;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use sme_memory::Place;

use clocks::Clocks;
use history::History;
use list::Listener;
use record::{Kind, Spot};
use shadow::{Last, Line, MOST_SITES, MOST_THREADS, Shadow, Word};
use sites::Sites;

use crate::parts::address::AddressSpace;
use crate::parts::cache::ahead::Access;
use crate::parts::line_size::LineSize;
use crate::time::Time;

pub use list::{MissedWrite, Missing, StaleLoad};
pub use record::{FlagRecord, Record, Site, Way, What};
pub use report::{Cause, Flush, Race, Runs, Side, Source, StaleRead, StaleReport, Written};

/// The number of different stale reads in a report unless more are asked for.
const FINDINGS: usize = 64;
/// The number of different races in a report.
const RACES: usize = 8;

/// Checks the loads of one run.
#[derive(Debug)]
pub struct Checker {
    threads: u32,
    /// For each thread, its node's bit.
    bits: Vec<u64>,
    clocks: Clocks,
    shadow: Shadow,
    history: History,
    sites: Sites,
    /// Last writes of a word that nothing orders, but for the very last, which its line knows.
    contested: FxHashMap<Spot, Vec<Write>>,
    report: StaleReport,
    most_findings: usize,
    /// The indices of findings by the numbers of reader's and writer's sites and the cause; none of
    /// those for which the report has no room.
    found: FxHashMap<(u32, u32, Cause), Option<usize>>,
    /// The function that is told of every stale load.
    listener: Option<Listener>,
    raced: FxHashMap<(u32, u32, bool), usize>,
}

/// A write that others do not replace.
#[derive(Clone, Copy, Debug)]
struct Write {
    thread: u32,
    clock: u32,
    value: u64,
}

/// The error that a run has too many threads to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{nodes} nodes of {threads_per_node} threads: the checker tells 1 to {MOST_THREADS} apart")]
pub struct TooManyThreads {
    nodes: u32,
    threads_per_node: u32,
}

impl Checker {
    /// For `nodes` nodes of `threads_per_node` threads each, on memory that holds zeros and of
    /// which caches keep lines as long as `line`.
    ///
    /// # Errors
    /// If there are no threads, or more than 4096.
    pub fn new(nodes: u32, threads_per_node: u32, line: LineSize) -> Result<Self, TooManyThreads> {
        let threads = Self::tells_apart(nodes, threads_per_node)?;
        Ok(Self {
            threads,
            bits: (0..threads)
                .map(|thread| History::node_bit(thread / threads_per_node))
                .collect(),
            clocks: Clocks::new(threads as usize),
            shadow: Shadow::new(nodes as usize, line),
            history: History::new(nodes as usize, threads_per_node, line),
            sites: Sites::new(MOST_SITES),
            contested: FxHashMap::default(),
            report: StaleReport::default(),
            most_findings: FINDINGS,
            found: FxHashMap::default(),
            listener: None,
            raced: FxHashMap::default(),
        })
    }

    /// Returns the number of threads of so many nodes of `threads_per_node`, if a checker can tell
    /// them apart.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn tells_apart(nodes: u32, threads_per_node: u32) -> Result<u32, TooManyThreads> {
        let threads = nodes.checked_mul(threads_per_node);
        let told_apart = |&threads: &u32| (1..=MOST_THREADS as u32).contains(&threads);
        threads.filter(told_apart).ok_or(TooManyThreads {
            nodes,
            threads_per_node,
        })
    }

    /// Lets `each` be told of every load that is stale or stale but equal, as it is found.
    pub fn list(&mut self, each: impl FnMut(&StaleLoad) + Send + 'static) {
        self.listener = Some(Listener::new(each));
    }

    /// The report is to tell of as many as `most` different stale reads; all are counted anyway.
    #[must_use]
    pub fn with_findings(mut self, most: usize) -> Self {
        self.most_findings = most;
        self
    }

    /// Before the run the word holds `value`.
    pub fn initial(&mut self, word: Place, value: u64) {
        let spot = Spot::new(word);
        match self.shadow.line(spot) {
            Some(line) => {
                line.words[spot.word()].value = value;
                if line.words[spot.word()].last.is_special() {
                    self.synchronizing(word);
                }
            }
            None => self.report.ignored += 1,
        }
    }

    /// Declares that the word synchronizes, like one with atomic operations: a store to it is a
    /// release, and a load an acquire of the store whose value it returned. Where several have
    /// stored that value in turn, and the load may have seen any of them, it acquires what all of
    /// them have published, and it acquires nothing where memory had more than eight contents
    /// meanwhile. The word should not go through caches: then only a load from a copy that has what
    /// was stored last is an acquire. Its loads are not judged.
    pub fn synchronizing(&mut self, word: Place) {
        let spot = Spot::new(word);
        let spot = spot.sibling(spot.word());
        match self.shadow.line(spot) {
            Some(line) => {
                let (word, bit) = (spot.word(), 1 << spot.word());
                let last = line.words[word].last;
                line.words[word].last = last.special();
                self.contested.remove(&spot);
                let is_quiet = line.missing() & bit == 0 && !self.history.is_posted(bit, line);
                let so_far = (is_quiet, !last.is_written());
                self.clocks
                    .synchronize(spot, line.words[word].value, so_far);
            }
            None => self.report.ignored += 1,
        }
    }

    /// Takes the next thing that happened.
    #[inline]
    pub fn record(&mut self, record: &Record) {
        match record.kind {
            Kind::Load => self.load(record),
            Kind::Store => self.store(record),
            _ => self.other(record),
        }
    }

    /// Takes what `thread` has loaded and stored through its caches `at` this time, one after the
    /// other: the same as a [`Record`] for each. Addresses mean what `space` says.
    pub fn accesses(
        &mut self,
        at: Time,
        thread: u32,
        accesses: &[Access],
        space: &dyn AddressSpace,
    ) {
        let mut rest = accesses;
        loop {
            rest = self.undoubted(at, thread, rest, space);
            let Some((access, others)) = rest.split_first() else {
                return;
            };
            if let Some(word) = space.cached_place(access.address()) {
                let Access { value, site, .. } = *access;
                let what = What::access(word, value, site, Way::Cached, access.stores());
                self.record(&Record::new(at, thread, what));
            }
            rest = others;
        }
    }

    /// Takes those of `accesses` before the first that needs a closer look; that one and what
    /// follows it are left. Clocks stand still meanwhile.
    fn undoubted<'a>(
        &mut self,
        at: Time,
        thread: u32,
        accesses: &'a [Access],
        space: &dyn AddressSpace,
    ) -> &'a [Access] {
        let Some(&own) = self.bits.get(thread as usize) else {
            return accesses;
        };
        let (row, now) = (self.clocks.row(thread), self.clocks.now(thread));
        let is_exact = self.history.is_exact();
        let mut loads = 0;
        let mut rest = accesses;
        while let Some((access, others)) = rest.split_first() {
            let Some(line) = self.shadow.line_at(access.address(), space) else {
                break;
            };
            let number = access.word();
            let word = &mut line.words[number];
            let last = word.last;
            let happened =
                (row.get(last.thread() as usize)).is_some_and(|&known| last.clock <= known);
            if !happened || last.is_special() {
                break;
            }
            if access.stores() {
                if line.lost != 0 || !is_exact {
                    break;
                }
                let site = self.sites.number(Some(access.site));
                *word = Word {
                    last: Last::new(thread, now, site, Way::Cached),
                    value: access.value,
                    at,
                };
                line.stored_in_cache(number, own);
            } else {
                if word.value != access.value || line.suspects & own != 0 {
                    break;
                }
                loads += 1;
            }
            rest = others;
        }
        if rest.len() < accesses.len() {
            self.report.loads += loads;
            self.clocks.stepped(thread);
        }
        rest
    }

    /// Ends the check and returns what was found.
    pub fn finish(self) -> StaleReport {
        self.report
    }

    #[inline]
    fn load(&mut self, record: &Record) {
        self.report.loads += 1;
        if let Some(&bit) = self.bits.get(record.thread as usize)
            && let Some(line) = self.shadow.line(record.spot)
        {
            let word = record.spot.word();
            let last = line.words[word].last;
            let happened = self
                .clocks
                .happened((last.thread(), last.clock), record.thread);
            if happened
                && line.words[word].value == record.value
                && line.suspects & bit == 0
                && !last.is_special()
            {
                self.clocks.stepped(record.thread);
                return;
            }
            let line = *line;
            self.doubtful_load(record, &line, happened);
            self.clocks.stepped(record.thread);
        } else {
            self.report.ignored += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn doubtful_load(&mut self, record: &Record, line: &Line, happened: bool) {
        let word = record.spot.word();
        let spot = record.spot.sibling(word);
        let last = line.words[word].last;
        let node = self.history.node_of(record.thread);
        if last.is_special() && self.clocks.synchronizes(spot) {
            let is_there =
                line.missing() & 1 << word == 0 || self.history.node_of(last.thread()) == node;
            let lacks_none = line.suspects & History::node_bit(node) == 0;
            if record.way != Way::Cached {
                self.clocks.loaded(record.thread, spot, record.value);
            } else if line.words[word].value == record.value && is_there && lacks_none {
                self.clocks.loaded_newest(record.thread, spot);
            }
            return;
        }
        let others = self.contested.get(&spot).map_or(&[][..], Vec::as_slice);
        let all_happened = others.iter().all(|write| {
            self.clocks
                .happened((write.thread, write.clock), record.thread)
        });
        if !happened || !all_happened {
            self.report.racing_loads += 1;
            self.race(record, line, true);
        } else if line.words[word].value != record.value {
            if !others.iter().any(|write| write.value == record.value) {
                let cause = self.history.cause(node, spot, record.way, line);
                self.stale(record, line, cause);
            }
        } else if record.way == Way::Cached
            && others.is_empty()
            && let Some(cause) = self.history.lack(node, spot, line)
        {
            self.report.stale_but_equal += 1;
            self.tell(record, line, cause);
        }
    }

    fn other(&mut self, record: &Record) {
        let &Record {
            at, thread, spot, ..
        } = record;
        if record.kind == Kind::Performed {
            match self.shadow.line(spot) {
                Some(line) => {
                    let clocks = &mut self.clocks;
                    let told = |word, is_write_back| clocks.performed(thread, word, is_write_back);
                    let words = record.words;
                    self.history.performed(thread, spot, words, line, told);
                }
                None => self.report.ignored += 1,
            }
            return;
        }
        if thread >= self.threads {
            self.report.ignored += 1;
            return;
        }
        match record.kind {
            Kind::Set => return self.clocks.set(thread, spot, record.value as u8),
            Kind::Saw => return self.clocks.saw(thread, spot, record.value as u8),
            Kind::Update => return self.update(record),
            _ => {}
        }
        let node = self.history.node_of(thread);
        if record.kind == Kind::DroppedAll {
            return self.history.dropped_all(node);
        }
        let Some(line) = self.shadow.line(spot) else {
            self.report.ignored += 1;
            return;
        };
        match record.kind {
            Kind::Filled => {
                let row = self.clocks.row(thread);
                self.history.filled(at, node, spot, line, row);
            }
            Kind::Dropped => self.history.dropped(node, spot, line),
            Kind::WroteBack => {
                let words = (record.words, record.old);
                self.history.wrote_back(at, node, spot, words, line);
            }
            _ => {}
        }
    }

    fn store(&mut self, record: &Record) {
        let &Record {
            at, thread, way, ..
        } = record;
        let word = record.spot.word();
        let spot = record.spot.sibling(word);
        let Some(&own) = self.bits.get(thread as usize) else {
            self.report.ignored += 1;
            return;
        };
        let Some(line) = self.shadow.line(spot) else {
            self.report.ignored += 1;
            return;
        };
        let before = line.words[word].last;
        let site = self.sites.number(record.site);
        let mut last = Last::new(thread, self.clocks.now(thread), site, way);
        let happened = self
            .clocks
            .happened((before.thread(), before.clock), thread);
        let is_doubtful = !happened || before.is_special();
        let earlier = is_doubtful.then_some(*line);
        if is_doubtful {
            last = last.special();
        }
        line.words[word] = Word {
            last,
            value: record.value,
            at,
        };
        if way == Way::Cached && line.lost == 0 && self.history.is_exact() {
            line.stored_in_cache(word, own);
        } else {
            let node = self.history.node_of(thread);
            self.history.stored(at, node, spot, way, line);
        }
        if let Some(earlier) = earlier {
            self.doubtful_store(record, spot, &earlier, happened);
        }
        self.clocks.stepped(thread);
    }

    /// A store to a word that synchronizes, or has last writes that nothing orders: keeps those
    /// that have not happened before this one. `line` is what the line was before it.
    #[cold]
    #[inline(never)]
    fn doubtful_store(&mut self, record: &Record, spot: Spot, line: &Line, happened: bool) {
        let word = spot.word();
        if line.words[word].last.is_special() && self.clocks.synchronizes(spot) {
            let by = (record.thread, self.history.node_of(record.thread));
            return self.clocks.release(by, spot, record.value, record.way);
        }
        let last = line.words[word].last;
        let mut others = self.contested.remove(&spot).unwrap_or_default();
        others.retain(|write| {
            !self
                .clocks
                .happened((write.thread, write.clock), record.thread)
        });
        if !happened {
            others.push(Write {
                thread: last.thread(),
                clock: last.clock,
                value: line.words[word].value,
            });
        }
        if others.is_empty() {
            if let Some(line) = self.shadow.line(spot) {
                line.words[word].last = line.words[word].last.ordinary();
            }
        } else {
            self.contested.insert(spot, others);
            self.report.racing_stores += 1;
            self.race(record, line, false);
        }
    }

    fn update(&mut self, record: &Record) {
        self.synchronizing(record.spot.place());
        let spot = record.spot.sibling(record.spot.word());
        self.clocks.updates(record.thread, spot);
        self.store(record);
    }

    fn stale(&mut self, record: &Record, line: &Line, cause: Cause) {
        self.report.stale_reads += 1;
        self.tell(record, line, cause);
        let word = record.spot.word();
        let last = line.words[word].last;
        let reader = self.sites.number(record.site);
        let key = (reader, last.site(), cause);
        let finding = self.found.get(&key).copied();
        if let Some(Some(finding)) = finding
            && let Some(finding) = self.report.findings.get_mut(finding)
        {
            finding.count += 1;
            return;
        }
        if self.report.findings.len() >= self.most_findings {
            self.report.further += 1;
            if finding.is_none() {
                self.report.further_groups += 1;
                self.found.insert(key, None);
            }
            return;
        }
        self.found.insert(key, Some(self.report.findings.len()));
        self.report.findings.push(StaleRead {
            cause,
            count: 1,
            reader: self.runs(record.thread),
            source: record.site.map(Source::from),
            at_ps: record.at.as_ps(),
            home: record.spot.node() as u32,
            offset: record.spot.offset(),
            seen: record.value,
            newer: line.words[word].value,
            written: last.is_written().then(|| self.written(line, word)),
        });
    }

    /// Tells who wants to know of every stale load.
    fn tell(&mut self, record: &Record, line: &Line, cause: Cause) {
        let Some(mut listener) = self.listener.take() else {
            return;
        };
        let Word { last, value, at } = line.words[record.spot.word()];
        listener.tell(&StaleLoad {
            at: record.at,
            reader: self.runs(record.thread),
            thread: record.thread,
            site: record.site,
            way: record.way,
            word: record.spot.place(),
            seen: record.value,
            newer: value,
            written: last.is_written().then(|| MissedWrite {
                at,
                by: self.runs(last.thread()),
                thread: last.thread(),
                site: self.sites.site(last.site()),
            }),
            cause,
        });
        self.listener = Some(listener);
    }

    fn race(&mut self, record: &Record, line: &Line, is_load: bool) {
        let word = record.spot.word();
        let key = (
            self.sites.number(record.site),
            line.words[word].last.site(),
            is_load,
        );
        if let Some(race) = (self.raced.get(&key)).and_then(|&race| self.report.races.get_mut(race))
        {
            race.count += 1;
        } else if self.report.races.len() < RACES {
            self.raced.insert(key, self.report.races.len());
            self.report.races.push(Race {
                count: 1,
                is_load,
                by: self.runs(record.thread),
                source: record.site.map(Source::from),
                at_ps: record.at.as_ps(),
                home: record.spot.node() as u32,
                offset: record.spot.offset(),
                written: self.written(line, word),
            });
        }
    }

    fn written(&self, line: &Line, word: usize) -> Written {
        let last = line.words[word].last;
        Written {
            by: self.runs(last.thread()),
            source: self.sites.site(last.site()).map(Source::from),
            at_ps: line.words[word].at.as_ps(),
        }
    }

    fn runs(&self, thread: u32) -> Runs {
        let node = self.history.node_of(thread);
        Runs {
            node,
            core: self.history.core_of(thread),
        }
    }
}
