//! The private caches of a core: two levels, set-associative, write-back, with the bytes that they
//! hold. They know no machine: a node's cores call them, fetch on a miss what they do not hold,
//! and keep the states of a line coherent among themselves (or not). Nothing here takes time.
//!
//! The second level contains the first: it keeps a line's bytes, once, and the first is a small
//! array of tags that point to them. So a line that leaves the first level needs no write-back, and
//! a line that leaves the second leaves both.
//!
//! A place is a line number (its byte address divided by the [length of a line](LineSize)) and the
//! number of a 64-bit word in the aligned 64 bytes around the line, 0 to 7 (taken modulo 8). Of a
//! shorter line only its own words mean anything.
//!
//! Replacement is by least recent use, in each set of each level on its own. Use of the first level
//! is a load or store that it serves, and the arrival of a line; use of the second level is a load
//! or store that the first missed and the second serves, and the arrival of a line from outside. A
//! hit in the first level is not seen by the second, as in hardware, so that a line in constant use
//! can be evicted from both. A store that is refused for its state, a [`look`](Cache::look),
//! [`set_state`](Cache::set_state) and [`clean`](Cache::clean) are no use. The result of each
//! depends on nothing but the operations before.

pub mod ahead;
mod first;
mod geometry;
pub mod line_set;
mod second;
#[cfg(test)]
mod tests;
pub mod unlimited;

use std::fmt;

use first::First;
pub use geometry::{Geometry, GeometryError};
use second::{Note, Records, Room, Tags};

use crate::parts::coherence::State;
use crate::parts::line_size::LineSize;

/// The tag of an empty way. No line has this number.
const EMPTY: u64 = u64::MAX;

/// The level that served an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The level next to the core.
    First,
    /// The level around it.
    Second,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Level::First => "first",
            Level::Second => "second",
        })
    }
}

/// A line that has left the cache. Its state is never [`State::Invalid`], that of a line not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Its number.
    pub line: u64,
    /// The state it had.
    pub state: State,
    /// Its bytes: byte `b` of the 64-byte block is byte `b % 8`, from the lowest, of word `b / 8`.
    pub words: [u64; 8],
    /// A bit per byte: written here and not yet written back.
    pub dirty: u64,
}

/// A held line, looked at where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View<'a> {
    /// Its number.
    pub line: u64,
    /// Its state.
    pub state: State,
    /// Its bytes, as in [`Held`].
    pub words: &'a [u64; 8],
    /// A bit per byte: written here and not yet written back.
    pub dirty: u64,
}

impl View<'_> {
    /// A copy of it.
    pub fn to_held(self) -> Held {
        Held {
            line: self.line,
            state: self.state,
            words: *self.words,
            dirty: self.dirty,
        }
    }
}

/// The two levels of one core. Its memory grows with the lines that it holds.
#[derive(Clone, Debug)]
pub struct Cache {
    first: First,
    tags: Tags,
    records: Records,
}

impl Cache {
    /// An empty cache. It has no memory of its own before a line comes.
    pub fn new(geometry: Geometry) -> Self {
        Cache {
            first: First::new(geometry),
            tags: Tags::new(geometry),
            records: Records::new(geometry),
        }
    }

    /// The value of a word and the level that had it, or nothing: a miss.
    #[inline]
    pub fn load(&mut self, line: u64, word: u32) -> Option<(u64, Level)> {
        if let Some((record, way)) = self.first.find(line)
            && let Some(bytes) = self.records.bytes.get(record as usize)
        {
            self.first.promote(line, way);
            return Some((bytes.0[word as usize % 8], Level::First));
        }
        self.load_second(line, word)
    }

    /// Writes those bytes of a word whose bit in `enables` is set (bit 0: the lowest), from the
    /// same places of `value`. The line becomes Modified and its bytes dirty. Only where the line
    /// is Exclusive or Modified; otherwise, as if it was not held, nothing happens: the caller
    /// obtains it in such a state and repeats the store.
    #[inline]
    pub fn store(&mut self, line: u64, word: u32, enables: u8, value: u64) -> Option<Level> {
        if let Some((record, way)) = self.first.find(line)
            && let Some(note) = self.records.notes.get_mut(record as usize)
            && let Some(bytes) = self.records.bytes.get_mut(record as usize)
        {
            if !note.state.is_writable() {
                return None;
            }
            write(&mut bytes.0, note, word, enables, value);
            self.first.promote(line, way);
            return Some(Level::First);
        }
        self.store_second(line, word, enables, value)
    }

    /// The same for caches whose first level makes no room for what is stored: a line that only the
    /// second holds stays there.
    pub fn store_around(&mut self, line: u64, word: u32, enables: u8, value: u64) -> Option<Level> {
        if self.first.find(line).is_some() {
            return self.store(line, word, enables, value);
        }
        self.write_second(line, word, enables, value)?;
        Some(Level::Second)
    }

    /// Returns what is held of a line, for a probe.
    pub fn look(&self, line: u64) -> Option<View<'_>> {
        let spot = self.tags.find(line)?;
        Some(self.view(line, spot.record))
    }

    /// Changes the state of a line, if it is held; its bytes stay, dirty or not.
    pub fn set_state(&mut self, line: u64, state: State) {
        if let Some(spot) = self.tags.find(line) {
            self.records.notes[spot.record as usize].state = state;
        }
    }

    /// The line is as memory has it: no byte is dirty, and its state is [clean](State::clean).
    pub fn clean(&mut self, line: u64) {
        if let Some(spot) = self.tags.find(line) {
            let note = &mut self.records.notes[spot.record as usize];
            note.dirty = 0;
            note.state = note.state.clean();
        }
    }

    /// Returns the line that [`insert`](Cache::insert) of `line` would evict.
    pub fn victim(&self, line: u64) -> Option<u64> {
        if self.tags.find(line).is_some() {
            return None;
        }
        match self.tags.room(line) {
            Room::Free => None,
            Room::Oldest(oldest, _) => Some(oldest),
        }
    }

    /// Takes in a line, into both levels, and returns the one it evicts. If it is held already, it
    /// replaces what was held, whose dirty bytes are lost if they are not in the new.
    pub fn insert(&mut self, line: u64, state: State, words: [u64; 8], dirty: u64) -> Option<Held> {
        debug_assert!(line < 1 << 61, "line {line} has no address");
        debug_assert_ne!(state, State::Invalid, "line {line} is not held");
        let note = Note { dirty, state };
        if let Some(spot) = self.tags.find(line) {
            self.records.write(spot.record, words, note);
            self.tags.promote(spot);
            self.use_first(line, spot.record);
            return None;
        }
        let (record, evicted) = match self.tags.room(line) {
            Room::Free => (self.records.add(words, note), None),
            Room::Oldest(oldest, record) => {
                self.first.drop_line(oldest);
                let held = self.view(oldest, record).to_held();
                self.records.write(record, words, note);
                (record, Some(held))
            }
        };
        self.tags.put(line, record);
        self.first.fill(line, record);
        evicted
    }

    /// Drops a line and returns it.
    pub fn remove(&mut self, line: u64) -> Option<Held> {
        let spot = self.tags.find(line)?;
        let held = self.view(line, spot.record).to_held();
        self.first.drop_line(line);
        self.tags.drop_line(spot);
        self.records.give_back(spot.record);
        Some(held)
    }

    /// Drops all lines, dirty or not. Their memory is kept for those that come next.
    pub fn clear(&mut self) {
        // The first level holds none that the second does not. It has many sets, and often few
        // lines.
        for line in self.tags.lines() {
            self.first.clear_set(line);
        }
        self.tags.clear();
        self.records.clear();
    }

    /// The numbers of all held lines: set by set of the second level, and in a set from the most
    /// to the least recently used.
    pub fn lines(&self) -> impl Iterator<Item = u64> {
        self.tags.held().map(|(line, _)| line)
    }

    /// The numbers of the held lines of the second level's set of `line`, from the most to the
    /// least recently used.
    pub fn lines_of_set(&self, line: u64) -> impl Iterator<Item = u64> {
        self.tags.of_set(line)
    }

    /// All held lines, in the order of [`lines`](Cache::lines).
    pub fn held(&self) -> impl Iterator<Item = View<'_>> {
        let held = self.tags.held();
        held.map(|(line, record)| self.view(line, record))
    }

    /// Returns the number of lines held.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether no line is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap, in bytes.
    pub fn bytes(&self) -> usize {
        self.first.bytes() + self.tags.bytes() + self.records.heap_bytes()
    }

    #[inline(never)]
    fn load_second(&mut self, line: u64, word: u32) -> Option<(u64, Level)> {
        let spot = self.tags.find(line)?;
        self.tags.promote(spot);
        self.first.fill(line, spot.record);
        let (words, _) = self.records.read(spot.record);
        Some((words[word as usize % 8], Level::Second))
    }

    #[inline(never)]
    fn store_second(&mut self, line: u64, word: u32, enables: u8, value: u64) -> Option<Level> {
        let record = self.write_second(line, word, enables, value)?;
        self.first.fill(line, record);
        Some(Level::Second)
    }

    /// Writes to a line that the first level does not hold, and returns its record.
    fn write_second(&mut self, line: u64, word: u32, enables: u8, value: u64) -> Option<u32> {
        let spot = self.tags.find(line)?;
        let note = &mut self.records.notes[spot.record as usize];
        if !note.state.is_writable() {
            return None;
        }
        let bytes = &mut self.records.bytes[spot.record as usize];
        write(&mut bytes.0, note, word, enables, value);
        self.tags.promote(spot);
        Some(spot.record)
    }

    /// Makes a held line the newest of its set in the first level.
    fn use_first(&mut self, line: u64, record: u32) {
        match self.first.find(line) {
            Some((_, way)) => self.first.promote(line, way),
            None => self.first.fill(line, record),
        }
    }

    fn view(&self, line: u64, record: u32) -> View<'_> {
        let (words, note) = self.records.read(record);
        View {
            line,
            state: note.state,
            words,
            dirty: note.dirty,
        }
    }
}

#[inline]
fn write(words: &mut [u64; 8], note: &mut Note, word: u32, enables: u8, value: u64) {
    let word = word as usize % 8;
    let mask = byte_mask(enables);
    words[word] = (words[word] & !mask) | (value & mask);
    note.dirty |= u64::from(enables) << (8 * word);
    note.state = State::Modified;
}

/// 0xff in each byte whose bit is set.
#[inline]
const fn byte_mask(enables: u8) -> u64 {
    // Each byte keeps its own bit, which carries into the byte's top bit if it is set.
    let bits = (enables as u64 * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    let tops = (bits + 0x7f7f_7f7f_7f7f_7f7f) & 0x8080_8080_8080_8080;
    (tops >> 7) * 0xff
}
