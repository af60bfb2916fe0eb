//! The second level: the tags of all lines that the cache holds, and the records with their bytes.
//! A set is ordered by use as in the first level. The tags of a set come into being with its first
//! line, the record of a line with the line; what a line leaves is used again.

use super::{EMPTY, Geometry};
use crate::parts::coherence::State;

const NO_TAGS: u32 = u32::MAX;

/// The tags: the line in each way.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    /// Of each set, where its tags start; nothing at all before the first line.
    starts: Vec<u32>,
    lines: Vec<u64>,
    records: Vec<u32>,
    sets: usize,
    in_set: usize,
}

/// A held line's place among the tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    start: usize,
    way: usize,
    pub(super) record: u32,
}

/// The former state of the way in which [`Tags::put`] puts a new line.
pub(super) enum Room {
    /// An empty way: the line needs a record.
    Free,
    /// The oldest line of the full set, and its record.
    Oldest(u64, u32),
}

impl Tags {
    pub(super) fn new(geometry: Geometry) -> Self {
        Tags {
            starts: Vec::new(),
            lines: Vec::new(),
            records: Vec::new(),
            sets: geometry.l2_sets() as usize,
            in_set: geometry.l2_ways() as usize,
        }
    }

    pub(super) fn find(&self, line: u64) -> Option<Spot> {
        if line == EMPTY {
            return None;
        }
        let start = self.start(line)?;
        let set = self.lines.get(start..start + self.in_set)?;
        let way = set.iter().position(|&held| held == line)?;
        let record = *self.records.get(start + way)?;
        Some(Spot { start, way, record })
    }

    /// Makes the line at `spot` the newest of its set.
    pub(super) fn promote(&mut self, spot: Spot) {
        let Spot { start, way, record } = spot;
        if way != 0 {
            let line = self.lines[start + way];
            self.lines.copy_within(start..start + way, start + 1);
            self.lines[start] = line;
            self.records.copy_within(start..start + way, start + 1);
            self.records[start] = record;
        }
    }

    /// Changes the record of the line at `spot`.
    pub(super) fn set_record(&mut self, spot: Spot, record: u32) {
        self.records[spot.start + spot.way] = record;
    }

    /// Returns the state of the way that a line that is not here would take.
    pub(super) fn room(&self, line: u64) -> Room {
        let Some(start) = self.start(line) else {
            return Room::Free;
        };
        let last = start + self.in_set - 1;
        match self.lines[last] {
            EMPTY => Room::Free,
            oldest => Room::Oldest(oldest, self.records[last]),
        }
    }

    /// Takes in a line that is not here, as the newest, in the place of the oldest.
    pub(super) fn put(&mut self, line: u64, record: u32) {
        if self.starts.is_empty() {
            self.starts = vec![NO_TAGS; self.sets];
        }
        let start = self.start(line).unwrap_or_else(|| self.add_set(line));
        let last = start + self.in_set - 1;
        self.lines.copy_within(start..last, start + 1);
        self.records.copy_within(start..last, start + 1);
        self.lines[start] = line;
        self.records[start] = record;
    }

    /// Forgets the line at `spot`.
    pub(super) fn drop_line(&mut self, spot: Spot) {
        let (here, end) = (spot.start + spot.way, spot.start + self.in_set);
        self.lines.copy_within(here + 1..end, here);
        self.records.copy_within(here + 1..end, here);
        self.lines[end - 1] = EMPTY;
    }

    pub(super) fn clear(&mut self) {
        self.starts.fill(NO_TAGS);
        self.lines.clear();
        self.records.clear();
    }

    /// The held lines, in no order.
    pub(super) fn lines(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().copied().filter(|&line| line != EMPTY)
    }

    /// The held lines and their records, set by set, the newest first.
    pub(super) fn held(&self) -> impl Iterator<Item = (u64, u32)> {
        let sets = self.starts.iter().filter(|&&start| start != NO_TAGS);
        let ways = sets.flat_map(|&start| start as usize..start as usize + self.in_set);
        ways.map(|way| (self.lines[way], self.records[way]))
            .filter(|&(line, _)| line != EMPTY)
    }

    /// The held lines of the set of `line`, the newest first.
    pub(super) fn of_set(&self, line: u64) -> impl Iterator<Item = u64> {
        let ways = self
            .start(line)
            .map_or(0..0, |start| start..start + self.in_set);
        let lines = self.lines[ways].iter().copied();
        lines.filter(|&line| line != EMPTY)
    }

    /// Heap, in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.records.capacity()) * size_of::<u32>()
            + self.lines.capacity() * size_of::<u64>()
    }

    fn start(&self, line: u64) -> Option<usize> {
        let set = line as usize & (self.sets - 1);
        let start = *self.starts.get(set)?;
        (start != NO_TAGS).then_some(start as usize)
    }

    fn add_set(&mut self, line: u64) -> usize {
        let start = self.lines.len();
        // Fewer than 2^28 in all, which the geometry has seen to.
        self.starts[line as usize & (self.sets - 1)] = start as u32;
        let most = self.sets * self.in_set;
        grow(&mut self.lines, self.in_set, most);
        self.lines.resize(start + self.in_set, EMPTY);
        grow(&mut self.records, self.in_set, most);
        self.records.resize(start + self.in_set, 0);
        start
    }
}

/// The bytes of a line; a load touches one line of the host.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Bytes(pub(super) [u64; 8]);

/// Further facts about a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// A bit per byte.
    pub(super) dirty: u64,
    pub(super) state: State,
}

/// The lines' contents, by number.
#[derive(Clone, Debug)]
pub(super) struct Records {
    pub(super) bytes: Vec<Bytes>,
    pub(super) notes: Vec<Note>,
    free: Vec<u32>,
    most: usize,
}

impl Records {
    pub(super) fn new(geometry: Geometry) -> Self {
        Records {
            bytes: Vec::new(),
            notes: Vec::new(),
            free: Vec::new(),
            most: geometry.lines() as usize,
        }
    }

    pub(super) fn add(&mut self, words: [u64; 8], note: Note) -> u32 {
        if let Some(record) = self.free.pop() {
            self.write(record, words, note);
            return record;
        }
        let record = self.bytes.len() as u32;
        grow(&mut self.bytes, 1, self.most);
        self.bytes.push(Bytes(words));
        grow(&mut self.notes, 1, self.most);
        self.notes.push(note);
        record
    }

    pub(super) fn read(&self, record: u32) -> (&[u64; 8], Note) {
        (&self.bytes[record as usize].0, self.notes[record as usize])
    }

    pub(super) fn write(&mut self, record: u32, words: [u64; 8], note: Note) {
        self.bytes[record as usize] = Bytes(words);
        self.notes[record as usize] = note;
    }

    pub(super) fn give_back(&mut self, record: u32) {
        self.free.push(record);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.notes.clear();
        self.free.clear();
    }

    /// Lines that have a record.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.free.len()
    }

    /// Heap, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() * size_of::<Bytes>()
            + self.notes.capacity() * size_of::<Note>()
            + self.free.capacity() * size_of::<u32>()
    }
}

/// Makes room for `more`: twice what there was, but not beyond the `most` that there can be.
fn grow<T>(vector: &mut Vec<T>, more: usize, most: usize) {
    let used = vector.len();
    if vector.capacity() - used < more {
        vector.reserve_exact(used.max(16).min(most.saturating_sub(used)).max(more));
    }
}
