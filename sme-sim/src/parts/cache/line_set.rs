//! The tags of one level of a cache, without bytes: which lines it holds, by least recent use, with
//! a note of the caller's on each.

use super::geometry::Geometry;
use super::second::{Room, Tags};

/// The lines that a level holds. Its sets and ways are those of a geometry's second level.
#[derive(Clone, Debug)]
pub struct LineSet(Tags);

impl LineSet {
    /// An empty one; it has no memory of its own before a line comes.
    pub fn new(geometry: Geometry) -> Self {
        Self(Tags::new(geometry))
    }

    /// Returns whether it holds `line`, which is the newest of its set from then on.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let Some(spot) = self.0.find(line) else {
            return false;
        };
        self.0.promote(spot);
        true
    }

    /// The note on `line`, if it is held; no use of it.
    #[inline]
    pub fn note(&self, line: u64) -> Option<u32> {
        self.0.find(line).map(|spot| spot.record)
    }

    /// Changes the note on `line`, if it is held.
    #[inline]
    pub fn set_note(&mut self, line: u64, note: u32) {
        if let Some(spot) = self.0.find(line) {
            self.0.set_record(spot, note);
        }
    }

    /// Takes in a line that is not here, with a note on it; the line that had to go, with its note.
    pub fn insert(&mut self, line: u64, note: u32) -> Option<(u64, u32)> {
        let gone = match self.0.room(line) {
            Room::Free => None,
            Room::Oldest(line, note) => Some((line, note)),
        };
        self.0.put(line, note);
        gone
    }

    /// Forgets `line`; its note, if it was held.
    pub fn remove(&mut self, line: u64) -> Option<u32> {
        let spot = self.0.find(line)?;
        self.0.drop_line(spot);
        Some(spot.record)
    }

    /// The lines that are held, set by set, the newest first.
    pub fn lines(&self) -> impl Iterator<Item = u64> {
        self.0.held().map(|(line, _)| line)
    }

    /// Heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::line_size::LineSize;

    #[test]
    fn the_line_that_was_used_least_recently_goes() {
        let size = (4 * 64, 2);
        let geometry = Geometry::new(LineSize::B64, size, size).expect("two sets of two lines");
        let mut set = LineSet::new(geometry);
        assert_eq!(set.insert(0, 10), None);
        assert_eq!(set.insert(2, 12), None);
        assert_eq!(set.insert(1, 11), None, "another set");
        assert!(set.touch(0));
        set.set_note(2, 13);
        assert_eq!(set.insert(4, 14), Some((2, 13)));
        assert_eq!((set.note(0), set.note(2)), (Some(10), None));
        assert_eq!(set.remove(0), Some(10));
        assert!(!set.touch(0));
        assert_eq!(set.lines().collect::<Vec<_>>(), [4, 1]);
    }
}
