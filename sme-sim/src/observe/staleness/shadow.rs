//! The shadow memory: for each word the last write to it, for each line which nodes hold copies and
//! where the last writes are. It takes 216 bytes per line, 27 per word where lines have 64 bytes;
//! pages appear when they are first touched. Called by the checker only.

use super::record::{Spot, Way};
use crate::parts::address::AddressSpace;
use crate::parts::line_size::LineSize;
use crate::time::Time;

const PAGE_BITS: u32 = 12;
const PAGE_BYTES: u64 = 1 << PAGE_BITS;
/// Stands for no post.
pub(super) const NONE: u32 = u32::MAX;
/// The number of threads that a [`Last`] can tell apart.
pub(super) const MOST_THREADS: usize = 1 << THREAD_BITS;
/// The number of sites that a [`Last`] can tell apart.
pub(super) const MOST_SITES: usize = 1 << SITE_BITS;

const THREAD_BITS: u32 = 12;
const SITE_BITS: u32 = 18;

/// The number of pages that are found again by an address in them; a power of two.
const RECENT: usize = 1 << RECENT_BITS;
const RECENT_BITS: u32 = 10;

/// All lines that were touched.
#[derive(Debug)]
pub(super) struct Shadow {
    /// For each node, the number of each of its pages; [`NONE`] of one that was not touched.
    homes: Vec<Vec<u32>>,
    pages: Vec<Page>,
    line: LineSize,
    /// Lately asked for by address: the page of the machine's memory, and the number of its shadow.
    recent: Box<[(u64, u32); RECENT]>,
}

type Page = Box<[Line]>;

/// A line. The masks have a bit for each word of the 64 bytes around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Nodes that may have a copy that lacks a write: a bit for each node, modulo 64.
    pub suspects: u64,
    /// Nodes that may have a copy, also a bit for each node, modulo 64.
    pub holders: u64,
    /// The first of the posts under way to this line.
    pub first_post: u32,
    /// Words whose last write is in its node's cache only.
    pub dirty: u8,
    /// Words whose last write is on its way.
    pub posted: u8,
    /// Words whose last write memory had, and has no more.
    pub lost: u8,
    pub words: [Word; 8],
}

/// The last write to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// The write: its thread, clock and site.
    pub last: Last,
    /// The value that it wrote.
    pub value: u64,
    /// The time.
    pub at: Time,
}

impl Line {
    const UNTOUCHED: Line = Line {
        suspects: 0,
        holders: 0,
        first_post: NONE,
        dirty: 0,
        posted: 0,
        lost: 0,
        words: [Word {
            last: Last { clock: 0, tag: 0 },
            value: 0,
            at: Time::ZERO,
        }; 8],
    };

    /// A node, the only one of bit `own`, has written `word` in its caches, and memory has lost no
    /// write to the line.
    #[inline]
    pub fn stored_in_cache(&mut self, word: usize, own: u64) {
        self.dirty |= 1 << word;
        self.posted &= !(1 << word);
        self.suspects |= self.holders & !own;
    }

    /// Words whose last write memory has not.
    pub fn missing(&self) -> u8 {
        self.dirty | self.posted | self.lost
    }
}

/// The last write of a word: its thread, that thread's clock, and its site.
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

    /// Returns whether the word synchronizes, or has several last writes.
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
    pub fn new(nodes: usize, line: LineSize) -> Self {
        Self {
            homes: (0..nodes).map(|_| Vec::new()).collect(),
            pages: Vec::new(),
            line,
            recent: Box::new([(u64::MAX, 0); RECENT]),
        }
    }

    /// The line of `spot`; none where its node does not exist.
    #[inline]
    pub fn line(&mut self, spot: Spot) -> Option<&mut Line> {
        let page = self.page(spot)?;
        let lines = self.pages.get_mut(page as usize)?;
        lines.get_mut(self.line.number(spot.offset() % PAGE_BYTES) as usize)
    }

    /// The line that `address` names, if it names one that goes through caches.
    #[inline]
    pub fn line_at(&mut self, address: u64, space: &dyn AddressSpace) -> Option<&mut Line> {
        let page = address >> PAGE_BITS;
        let (known, number) = self.recent[place_of(page)];
        if known != page {
            return self.look_up(address, space);
        }
        let lines = self.pages.get_mut(number as usize)?;
        lines.get_mut(self.line.number(address % PAGE_BYTES) as usize)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, address: u64, space: &dyn AddressSpace) -> Option<&mut Line> {
        let place_at = |address| space.cached_place(address);
        let spot = Spot::new(place_at(address)?);
        // Only what is a page there and here is one of one node, as a whole.
        let first = address >> PAGE_BITS << PAGE_BITS;
        let last = place_at(first | (PAGE_BYTES - 1))?;
        let is_page = place_at(first)
            .is_some_and(|first| first.node == last.node && first.offset % PAGE_BYTES == 0);
        let number = self.page(spot)?;
        if is_page {
            let page = address >> PAGE_BITS;
            self.recent[place_of(page)] = (page, number);
        }
        self.line(spot)
    }

    /// The number of the page of `spot`, which appears; none where its node does not exist.
    #[inline]
    fn page(&mut self, spot: Spot) -> Option<u32> {
        let numbers = self.homes.get_mut(spot.node())?;
        let page = (spot.offset() >> PAGE_BITS) as usize;
        match numbers.get(page) {
            Some(&number) if number != NONE => Some(number),
            _ => Some(touch(numbers, page, self.line, &mut self.pages)),
        }
    }
}

/// Returns the place in [`Shadow::recent`] where a page may stand. The same page of all nodes is
/// often in use at once.
#[inline]
fn place_of(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS)) as usize
}

#[cold]
fn touch(numbers: &mut Vec<u32>, page: usize, line: LineSize, pages: &mut Vec<Page>) -> u32 {
    if numbers.len() <= page {
        numbers.resize(page + 1, NONE);
    }
    let number = pages.len() as u32;
    numbers[page] = number;
    let lines = line.number(PAGE_BYTES) as usize;
    pages.push(vec![Line::UNTOUCHED; lines].into());
    number
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
