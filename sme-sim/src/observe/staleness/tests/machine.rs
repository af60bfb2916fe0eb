//! A small machine whose caches are not coherent, which obeys any order of operations, and an
//! oracle that knows, by the identity of each write, what every load returned and where every write
//! is. Happens-before is kept as sets of events: what happened before each. Of words that
//! synchronize it knows all that memory ever held, and when.

mod signals;

use std::collections::BTreeMap;
use std::panic::Location;

use sme_memory::Place;

use super::both::{Both, Partitions};
use super::expected::Expected;
use crate::observe::staleness::record::Kind;
use crate::observe::staleness::{
    Cause, Checker, MissedWrite, Record, Runs, Site, StaleLoad, StaleReport, Way, What,
};
use crate::parts::line_size::LineSize;
use crate::time::Time;

pub const NODES: u32 = 3;
pub const PER_NODE: u32 = 2;
pub const THREADS: u32 = NODES * PER_NODE;
pub const LINES: usize = 2;
pub const WORDS: usize = 3;

/// The contents of a word: the value, and the event that stored it, none for the initial one.
type Cell = (u64, Option<usize>);

#[derive(Clone, Copy, PartialEq)]
enum Whereabouts {
    Cache,
    Way,
    Memory,
    Nowhere,
}

struct Copy {
    cells: [Cell; WORDS],
    dirty: [bool; WORDS],
    filled: usize,
    /// The latest write of each word at the fill, and where it was.
    at_fill: [Option<(usize, Whereabouts)>; WORDS],
}

struct Post {
    node: u32,
    line: usize,
    /// Word, what is written, and whether the node has not modified it.
    words: Vec<(usize, Cell, bool)>,
}

#[derive(Clone, Copy)]
struct Write {
    event: usize,
    value: u64,
    thread: u32,
    site: Site,
    /// As the checkers were told.
    at: Time,
}

/// A word that synchronizes.
struct Signal {
    word: Place,
    /// All that memory ever held, and since when.
    held: Vec<(Cell, usize)>,
    /// By which node, and what: posted and not performed.
    posts: Vec<(u32, Cell)>,
}

pub struct Machine {
    memory: [[Cell; WORDS]; LINES],
    caches: Vec<BTreeMap<usize, Copy>>,
    posts: Vec<Post>,
    overwrote: BTreeMap<usize, u32>,
    /// For each event, whether each earlier one happened before it.
    past: Vec<Vec<bool>>,
    latest: Vec<Option<usize>>,
    sets: Vec<(u32, u8, usize)>,
    /// One at home at each line's, and the last has atomic operations.
    signals: Vec<Signal>,
    /// Records so far, and for each thread how many there were after its last operation.
    now: usize,
    stepped: Vec<usize>,
    writes: BTreeMap<(usize, usize), Vec<Write>>,
    pub lines: Lines,
    deaf: Option<Kind>,
    /// The checkers are told of this many times the node's number.
    stride: u32,
    checkers: Both,
    pub expected: Expected,
}

/// The lines of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Whether all words are written back, or those only that are modified.
    pub whole: bool,
    /// Whether lines have 32 bytes and lie side by side at one home. Otherwise they have 64 and lie
    /// at either end of a page, on different homes.
    pub short: bool,
    /// Whether the checkers take lines for 64 bytes long anyway.
    pub mistaken: bool,
}

impl Lines {
    fn size(self) -> LineSize {
        LineSize::new(if self.short { 32 } else { 64 }).expect("a length")
    }

    pub fn home(self, line: usize) -> u32 {
        if self.short { 0 } else { line as u32 }
    }

    fn place(self, line: usize, word: usize) -> Place {
        let apart = if self.short { 32 } else { 4032 };
        Place {
            node: self.home(line),
            offset: apart * line as u64 + 8 * word as u64,
        }
    }

    /// The bit of each byte of the line.
    fn all(self, line: usize) -> u64 {
        let size = self.size();
        size.bytes_of(size.number(self.place(line, 0).offset))
    }

    /// The bit of each byte of those words.
    fn bytes(self, line: usize, words: impl Iterator<Item = usize>) -> u64 {
        words.map(|word| bytes(self.place(line, word))).sum()
    }
}

/// The bits of the bytes of a word among the 64 around it.
fn bytes(word: Place) -> u64 {
    0xff << (word.offset % 64)
}

impl Machine {
    /// `deaf`: a kind of records that the checkers are not told of.
    pub fn new(lines: Lines, deaf: Option<Kind>) -> Self {
        Self::with(1, lines, deaf)
    }

    /// Its nodes are each `stride`th of the checkers'.
    pub fn of_every(stride: u32, lines: Lines) -> Self {
        Self::with(stride, lines, None)
    }

    fn with(stride: u32, lines: Lines, deaf: Option<Kind>) -> Self {
        let place = |line| lines.place(line, 0);
        let mut signals: Vec<Place> = (0..LINES).map(|line| place(line).plus(192)).collect();
        signals.push(place(0).plus(128));
        let told = match lines.mistaken {
            true => LineSize::B64,
            false => lines.size(),
        };
        let checker = || {
            let mut checker = Checker::new(NODES * stride, PER_NODE, told)
                .expect("few threads")
                .with_findings(usize::MAX);
            (signals[..LINES].iter()).for_each(|&word| checker.synchronizing(word));
            checker
        };
        let map = Partitions {
            nodes: NODES * stride,
            // Sometimes a node ends in the middle of a page, with the lines that are at its end.
            shared_bytes: if lines.whole { 4288 } else { 1 << 13 },
            global_base: 1 << 20,
            line: told,
        };
        let checkers = Both::new(checker, map);
        let signal = |word| Signal {
            word,
            held: vec![((0, None), 0)],
            posts: Vec::new(),
        };
        Self {
            memory: [[(0, None); WORDS]; LINES],
            caches: (0..NODES).map(|_| BTreeMap::new()).collect(),
            posts: Vec::new(),
            overwrote: BTreeMap::new(),
            past: Vec::new(),
            latest: vec![None; THREADS as usize],
            sets: Vec::new(),
            signals: signals.into_iter().map(signal).collect(),
            now: 0,
            stepped: vec![0; THREADS as usize],
            writes: BTreeMap::new(),
            lines,
            deaf,
            stride,
            checkers,
            expected: Expected::default(),
        }
    }

    /// Returns what the checkers have found, and what the oracle.
    pub fn report(self) -> ((StaleReport, Vec<StaleLoad>), Expected) {
        (self.checkers.finish(), self.expected)
    }

    /// Tells the checkers, and says as of when.
    fn tell(&mut self, thread: u32, what: What) -> Time {
        let at = Time::from_ps(self.past.len() as u64);
        self.now += 1;
        if matches!(
            what,
            What::Load { .. }
                | What::Store { .. }
                | What::Update { .. }
                | What::Set { .. }
                | What::Saw { .. }
        ) {
            self.stepped[thread as usize] = self.now;
        }
        let thread = self.told(thread);
        if self.deaf == Some(Record::new(at, thread, what).kind) {
            return at;
        }
        self.checkers.tell(at, thread, what)
    }

    /// Returns the number by which the checkers know the thread.
    fn told(&self, thread: u32) -> u32 {
        thread / PER_NODE * self.stride * PER_NODE + thread % PER_NODE
    }

    fn runs(&self, thread: u32) -> Runs {
        Runs {
            node: thread / PER_NODE * self.stride,
            core: thread % PER_NODE,
        }
    }

    /// A new event of the thread, also after what `other` was.
    fn event(&mut self, thread: u32, other: Option<usize>) -> usize {
        self.event_after(thread, &[other])
    }

    /// A new event of the thread, also after what is not after the first of `others`, or the second
    /// and so on only, but after each: it followed one of them. None is the beginning.
    fn event_after(&mut self, thread: u32, others: &[Option<usize>]) -> usize {
        let event = self.past.len();
        let latest = self.latest[thread as usize].replace(event);
        let is_before = |earlier: usize, later: Option<usize>| {
            later.is_some_and(|later| earlier == later || self.happened_before(earlier, later))
        };
        let past = (0..event).map(|earlier| {
            let all = others.iter().all(|&other| is_before(earlier, other));
            is_before(earlier, latest) || !others.is_empty() && all
        });
        let past = past.collect();
        self.past.push(past);
        event
    }

    fn happened_before(&self, earlier: usize, later: usize) -> bool {
        self.past[later].get(earlier) == Some(&true)
    }

    /// Writes of the word that no other write follows.
    fn newest(&self, line: usize, word: usize) -> Vec<&Write> {
        let writes = self.writes.get(&(line, word));
        let writes: Vec<&Write> = writes.into_iter().flatten().collect();
        let is_last = |write: &&Write| {
            !(writes.iter()).any(|other| self.happened_before(write.event, other.event))
        };
        writes.iter().copied().filter(is_last).collect()
    }

    fn whereabouts(&self, line: usize, word: usize, write: usize) -> Whereabouts {
        let in_cache = self.caches.iter().filter_map(|copies| copies.get(&line));
        if in_cache
            .into_iter()
            .any(|copy| copy.dirty[word] && copy.cells[word].1 == Some(write))
        {
            return Whereabouts::Cache;
        }
        let on_its_way = |post: &Post| {
            post.line == line
                && post
                    .words
                    .contains(&(word, self.value_of(line, word, write), false))
        };
        if self.posts.iter().any(on_its_way) {
            Whereabouts::Way
        } else if self.memory[line][word].1 == Some(write) {
            Whereabouts::Memory
        } else {
            Whereabouts::Nowhere
        }
    }

    fn value_of(&self, line: usize, word: usize, write: usize) -> Cell {
        let writes = &self.writes[&(line, word)];
        let found = writes.iter().find(|other| other.event == write);
        (found.expect("it was written").value, Some(write))
    }

    fn cause(&self, whereabouts: Whereabouts, write: usize) -> Cause {
        match whereabouts {
            Whereabouts::Cache => Cause::NotWrittenBack,
            Whereabouts::Way => Cause::InFlight,
            Whereabouts::Memory => Cause::NotInvalidated,
            Whereabouts::Nowhere => Cause::LostUpdate {
                by_node: self.overwrote[&write],
            },
        }
    }

    #[track_caller]
    pub fn load(&mut self, thread: u32, line: usize, word: usize, way: Way) {
        let site = Location::caller();
        let node = thread / PER_NODE;
        let cell = if way == Way::Cached {
            self.fill(thread, line);
            self.caches[node as usize][&line].cells[word]
        } else {
            self.perform_all(node, line);
            self.memory[line][word]
        };
        let event = self.event(thread, None);
        let missed = self.judge_load(event, (line, word), cell, (way, node));
        let (word, value) = (self.lines.place(line, word), cell.0);
        let at = self.tell(thread, What::access(word, value, site, way, false));
        if let Some((write, cause)) = missed {
            self.expected.add(StaleLoad {
                at,
                reader: self.runs(thread),
                thread: self.told(thread),
                site: Some(site),
                way,
                word,
                seen: value,
                newer: write.value,
                written: Some(MissedWrite {
                    at: write.at,
                    by: self.runs(write.thread),
                    thread: self.told(write.thread),
                    site: Some(write.site),
                }),
                cause,
            });
        }
    }

    /// The write that the load has missed, if it is stale, or stale but equal, and why.
    fn judge_load(
        &mut self,
        event: usize,
        (line, word): (usize, usize),
        cell: Cell,
        (way, node): (Way, u32),
    ) -> Option<(Write, Cause)> {
        let newest = self.newest(line, word);
        if newest
            .iter()
            .any(|write| !self.happened_before(write.event, event))
        {
            self.expected.racing_loads += 1;
            return None;
        }
        let Some(&&last) = newest.last() else {
            assert_eq!(cell, (0, None));
            return None;
        };
        if cell.0 == last.value {
            let is_older = cell.1 != Some(last.event);
            if way != Way::Cached || newest.len() > 1 || !is_older {
                return None;
            }
        } else if newest.iter().any(|write| write.value == cell.0) {
            return None;
        }
        let write = last.event;
        let mut whereabouts = self.whereabouts(line, word, write);
        if way == Way::Cached
            && let Some(copy) = self.caches[node as usize].get(&line)
            && let Some((latest, then)) = copy.at_fill[word]
            && latest == write
            && then != Whereabouts::Memory
            && self.happened_before(write, copy.filled)
        {
            whereabouts = then;
        }
        Some((last, self.cause(whereabouts, write)))
    }

    #[track_caller]
    pub fn store(&mut self, thread: u32, line: usize, word: usize, value: u64, way: Way) {
        let site = Location::caller();
        let node = thread / PER_NODE;
        if way == Way::Cached {
            self.fill(thread, line);
        }
        let event = self.event(thread, None);
        let newest = self.newest(line, word);
        if newest
            .iter()
            .any(|write| !self.happened_before(write.event, event))
        {
            self.expected.racing_stores += 1;
        }
        let cell = (value, Some(event));
        match way {
            Way::Cached => {
                let copy = self.caches[node as usize].get_mut(&line).expect("filled");
                copy.cells[word] = cell;
                copy.dirty[word] = true;
            }
            Way::Uncached => self.posts.push(Post {
                node,
                line,
                words: vec![(word, cell, false)],
            }),
            Way::Coherent => self.memory[line][word] = cell,
        }
        let what = What::access(self.lines.place(line, word), value, site, way, true);
        let at = self.tell(thread, what);
        self.writes.entry((line, word)).or_default().push(Write {
            event,
            value,
            thread,
            site,
            at,
        });
    }

    /// Fetches the line unless there is a copy; not before what the node has posted to it.
    pub fn fill(&mut self, thread: u32, line: usize) {
        let node = thread / PER_NODE;
        if self.caches[node as usize].contains_key(&line) {
            return;
        }
        self.perform_all(node, line);
        let filled = self.event(thread, None);
        let at_fill = std::array::from_fn(|word| {
            let write = self.writes.get(&(line, word))?.last()?.event;
            Some((write, self.whereabouts(line, word, write)))
        });
        let copy = Copy {
            cells: self.memory[line],
            dirty: [false; WORDS],
            filled,
            at_fill,
        };
        self.caches[node as usize].insert(line, copy);
        self.tell(
            thread,
            What::Filled {
                line: self.lines.place(line, 0),
            },
        );
    }

    pub fn write_back(&mut self, thread: u32, line: usize) {
        let node = thread / PER_NODE;
        let Some(copy) = self.caches[node as usize].get_mut(&line) else {
            return;
        };
        let dirty = std::mem::take(&mut copy.dirty);
        if dirty == [false; WORDS] {
            return;
        }
        let written = (0..WORDS).filter(|&word| self.lines.whole || dirty[word]);
        let words: Vec<_> = written
            .map(|word| (word, copy.cells[word], !dirty[word]))
            .collect();
        let own = (0..WORDS).filter(|&word| dirty[word]);
        let own = self.lines.bytes(line, own);
        let all = match self.lines.whole {
            true => self.lines.all(line),
            false => own,
        };
        self.posts.push(Post { node, line, words });
        self.event(thread, None);
        let line = self.lines.place(line, 0);
        self.tell(
            thread,
            What::WroteBack {
                line,
                bytes: all,
                old: all & !own,
            },
        );
    }

    /// Drops the copy, written back before if it must be.
    pub fn drop_copy(&mut self, thread: u32, line: usize) {
        self.write_back(thread, line);
        if self.caches[(thread / PER_NODE) as usize]
            .remove(&line)
            .is_some()
        {
            self.event(thread, None);
            self.tell(
                thread,
                What::Dropped {
                    line: self.lines.place(line, 0),
                },
            );
        }
    }

    /// Drops the copy if nothing of it was modified.
    pub fn drop_clean(&mut self, thread: u32, line: usize) {
        let copy = self.caches[(thread / PER_NODE) as usize].get(&line);
        if copy.is_some_and(|copy| copy.dirty == [false; WORDS]) {
            self.drop_copy(thread, line);
        }
    }

    pub fn drop_all(&mut self, thread: u32) {
        for line in 0..LINES {
            self.write_back(thread, line);
        }
        self.caches[(thread / PER_NODE) as usize].clear();
        self.event(thread, None);
        self.tell(thread, What::DroppedAll);
    }

    /// Lets the node's first post to the line reach memory; only one word of it if in `parts`.
    /// Returns whether there was any.
    pub fn perform(&mut self, node: u32, line: usize, parts: bool) -> bool {
        let is_it = |post: &Post| post.node == node && post.line == line;
        let Some(index) = self.posts.iter().position(is_it) else {
            return false;
        };
        let post = &mut self.posts[index];
        let count = if parts { 1 } else { post.words.len() };
        let words: Vec<_> = post.words.drain(..count).collect();
        let is_done = post.words.is_empty();
        if is_done {
            self.posts.remove(index);
        }
        let mut mask = 0;
        for (word, cell, _) in words {
            let replaced = std::mem::replace(&mut self.memory[line][word], cell);
            if let Some(write) = replaced.1.filter(|_| replaced.1 != cell.1) {
                self.overwrote.insert(write, node * self.stride);
            }
            mask |= bytes(self.lines.place(line, word));
        }
        if self.lines.whole && (is_done || !parts) {
            // The rest of a whole line, of which the model has no words.
            mask |= self.lines.all(line) & !self.lines.bytes(line, 0..WORDS);
        }
        let line = self.lines.place(line, 0);
        self.tell(
            0,
            What::Performed {
                line,
                bytes: mask,
                by_node: node * self.stride,
            },
        );
        true
    }

    pub fn perform_all(&mut self, node: u32, line: usize) {
        while self.perform(node, line, false) {}
    }

    pub fn set(&mut self, thread: u32, value: u8) {
        let event = self.event(thread, None);
        self.sets.push((thread, value, event));
        let flag = self.lines.place(0, thread as usize).plus(64);
        self.tell(thread, What::Set { flag, value });
    }

    pub fn saw(&mut self, thread: u32, flag: u32, value: u8) {
        let is_it = |set: &&(u32, u8, usize)| (set.0, set.1) == (flag, value);
        let set = self.sets.iter().rev().find(is_it).map(|set| set.2);
        self.event(thread, set);
        let flag = self.lines.place(0, flag as usize).plus(64);
        self.tell(thread, What::Saw { flag, value });
    }
}
