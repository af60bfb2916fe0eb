//! The shadow memory: for each word the last write to it, for each line which nodes hold copies and
//! where the last writes are. 216 bytes a line, 27 a word; pages appear when they are first touched.
//! Called by the checker only.

use super::record::{Spot, Way};
use crate::time::Time;

const PAGE_BITS: u32 = 12;
const LINES_PER_PAGE: usize = 1 << (PAGE_BITS - 6);
/// Stands for no post.
pub(super) const NONE: u32 = u32::MAX;
/// How many threads a [`Last`] can tell apart.
pub(super) const MOST_THREADS: usize = 1 << THREAD_BITS;
/// How many sites a [`Last`] can tell apart.
pub(super) const MOST_SITES: usize = 1 << SITE_BITS;

const THREAD_BITS: u32 = 12;
const SITE_BITS: u32 = 18;

/// All lines that were touched.
#[derive(Debug)]
pub(super) struct Shadow {
    /// For each node, its pages.
    homes: Vec<Vec<Option<Box<[Line; LINES_PER_PAGE]>>>>,
}

/// A line. The arrays have an element for each word, the masks a bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Nodes that may have a copy that lacks a write: a bit for each node, modulo 64.
    pub suspects: u64,
    /// Nodes that may have a copy, likewise.
    pub holders: u64,
    /// The first of the posts under way to this line.
    pub first_post: u32,
    /// Words whose last write is in its node's cache only.
    pub dirty: u8,
    /// Words whose last write is on its way.
    pub posted: u8,
    /// Words whose last write memory had, and has no more.
    pub lost: u8,
    pub last: [Last; 8],
    pub values: [u64; 8],
    pub times: [Time; 8],
}

impl Line {
    const UNTOUCHED: Line = Line {
        suspects: 0,
        holders: 0,
        first_post: NONE,
        dirty: 0,
        posted: 0,
        lost: 0,
        last: [Last { clock: 0, tag: 0 }; 8],
        values: [0; 8],
        times: [Time::ZERO; 8],
    };

    /// Words whose last write memory has not.
    pub fn missing(&self) -> u8 {
        self.dirty | self.posted | self.lost
    }
}

/// Who wrote a word last, when by that thread's clock, and from where; the rest of it stands in
/// [`Line::values`] and [`Line::times`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    /// 0 for a word that was never written.
    pub clock: u32,
    /// Thread, site, and two bits.
    tag: u32,
}

const SPECIAL: u32 = 1 << 31;
const CACHED: u32 = 1 << 30;

impl Last {
    pub fn new(thread: u32, clock: u32, site: u32, way: Way) -> Self {
        let cached = if way == Way::Cached { CACHED } else { 0 };
        Self {
            clock,
            tag: thread | site << THREAD_BITS | cached,
        }
    }

    #[inline]
    pub fn thread(self) -> u32 {
        self.tag & ((1 << THREAD_BITS) - 1)
    }

    pub fn site(self) -> u32 {
        self.tag >> THREAD_BITS & ((1 << SITE_BITS) - 1)
    }

    pub fn is_cached(self) -> bool {
        self.tag & CACHED != 0
    }

    pub fn is_written(self) -> bool {
        self.clock != 0
    }

    /// Whether the word synchronizes, or has several last writes.
    #[inline]
    pub fn is_special(self) -> bool {
        self.tag & SPECIAL != 0
    }

    pub fn ordinary(self) -> Self {
        Self {
            tag: self.tag & !SPECIAL,
            ..self
        }
    }

    pub fn special(self) -> Self {
        Self {
            tag: self.tag | SPECIAL,
            ..self
        }
    }
}

impl Shadow {
    pub fn new(nodes: usize) -> Self {
        Self {
            homes: (0..nodes).map(|_| Vec::new()).collect(),
        }
    }

    /// The line of `spot`; none where its node does not exist.
    #[inline]
    pub fn line(&mut self, spot: Spot) -> Option<&mut Line> {
        let pages = self.homes.get_mut(spot.node())?;
        let page = (spot.offset() >> PAGE_BITS) as usize;
        if !matches!(pages.get(page), Some(Some(_))) {
            touch(pages, page);
        }
        let lines = pages.get_mut(page)?.as_mut()?;
        lines.get_mut((spot.offset() >> 6) as usize % LINES_PER_PAGE)
    }
}

#[cold]
fn touch(pages: &mut Vec<Option<Box<[Line; LINES_PER_PAGE]>>>, page: usize) {
    if pages.len() <= page {
        pages.resize_with(page + 1, || None);
    }
    pages[page] = Some(Box::new([Line::UNTOUCHED; LINES_PER_PAGE]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_write_is_packed_and_unpacked() {
        assert_eq!(size_of::<Line>(), 216);
        let last = Last::new(4095, 7, MOST_SITES as u32 - 1, Way::Cached).special();
        assert_eq!((last.thread(), last.site()), (4095, MOST_SITES as u32 - 1));
        assert!(last.is_cached() && last.is_special() && last.is_written());
        let last = Last::new(0, 1, 0, Way::Uncached);
        assert!(!last.is_cached() && !last.is_special() && last.is_written());
    }
}
