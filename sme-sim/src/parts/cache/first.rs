//! The first level: a small tag array. It keeps no bytes; each way names the record in which the
//! second level keeps them. A set is ordered by use, the newest way first and the empty ways last,
//! so that the usual hit looks at one way and moves nothing.

use super::{EMPTY, Geometry};

/// Tags of the first level. Without memory until the first [`fill`](First::fill).
#[derive(Clone, Debug)]
pub(super) struct First {
    ways: Vec<Way>,
    sets: usize,
    in_set: usize,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    line: u64,
    record: u32,
}

const NOTHING: Way = Way {
    line: EMPTY,
    record: u32::MAX,
};

impl First {
    pub(super) fn new(geometry: Geometry) -> Self {
        First {
            ways: Vec::new(),
            sets: geometry.l1_sets() as usize,
            in_set: geometry.l1_ways() as usize,
        }
    }

    /// The record of a line and its way; nothing moves.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<(u32, usize)> {
        let start = self.start(line);
        let set = self.ways.get(start..start + self.in_set)?;
        let newest = set.first()?;
        if newest.line == line {
            return Some((newest.record, 0));
        }
        let way = set.iter().skip(1).position(|way| way.line == line)? + 1;
        Some((set[way].record, way))
    }

    /// Makes the line in `way` of its set the newest.
    #[inline]
    pub(super) fn promote(&mut self, line: u64, way: usize) {
        if way != 0 {
            let start = self.start(line);
            if let Some(older) = self.ways.get_mut(start..=start + way) {
                // Shifts by hand: most sets have two ways, and a rotation is a call.
                let newest = older[way];
                for way in (0..way).rev() {
                    older[way + 1] = older[way];
                }
                older[0] = newest;
            }
        }
    }

    /// Takes in a line that is not here, as the newest of its set, whose oldest has to go.
    pub(super) fn fill(&mut self, line: u64, record: u32) {
        if self.ways.is_empty() {
            self.ways = vec![NOTHING; self.sets * self.in_set];
        }
        let start = self.start(line);
        let set = &mut self.ways[start..start + self.in_set];
        put_in_front(set, Way { line, record });
    }

    /// Forgets a line.
    pub(super) fn drop_line(&mut self, line: u64) {
        if let Some((_, way)) = self.find(line) {
            let start = self.start(line);
            let set = &mut self.ways[start..start + self.in_set];
            set.copy_within(way + 1.., way);
            set[self.in_set - 1] = NOTHING;
        }
    }

    /// Empties the set of `line`.
    pub(super) fn clear_set(&mut self, line: u64) {
        let start = self.start(line);
        if let Some(set) = self.ways.get_mut(start..start + self.in_set) {
            set.fill(NOTHING);
        }
    }

    /// Heap, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.ways.capacity() * size_of::<Way>()
    }

    /// The lines held and their records, set by set, the newest first.
    #[cfg(test)]
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, u32)> {
        let held = self.ways.iter().filter(|way| way.line != EMPTY);
        held.map(|way| (way.line, way.record))
    }

    #[inline]
    fn start(&self, line: u64) -> usize {
        (line as usize & (self.sets - 1)) * self.in_set
    }
}

/// Moves all back by one; the last falls out. By hand for the same reason.
#[inline]
fn put_in_front(ways: &mut [Way], newest: Way) {
    let mut carried = newest;
    for way in ways {
        std::mem::swap(way, &mut carried);
    }
}
