//! The records of lines: their bytes, the states of all copies, the modules that may have one.

use rustc_hash::FxHashMap;

use crate::parts::coherence::State;
use crate::parts::memory::Writer;
use crate::time::Time;

/// Lines that have their records side by side.
const PAGE: usize = 64;

/// The records of the lines that have been touched.
#[derive(Debug)]
pub(super) struct Lines {
    index: FxHashMap<u64, u32>,
    pages: Vec<Page>,
    /// The page that was asked for last.
    last: (u64, u32),
    sockets: usize,
    /// Caches of a socket whose copies have states of their own.
    caches: usize,
}

#[derive(Debug)]
struct Page {
    lines: Box<[Line; PAGE]>,
    /// Of each line those of the caches, socket by socket, and then those of the sockets.
    states: Box<[State]>,
    /// Of each line and socket.
    holders: Box<[u32]>,
}

/// A line, its copies' states apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) words: [u64; 8],
    /// The time at which the last transaction on it is over.
    pub(super) ready: Time,
    pub(super) writer: Option<Writer>,
    /// Memory has not got what was stored last.
    pub(super) is_stale_in_memory: bool,
}

const UNTOUCHED: Line = Line {
    words: [0; 8],
    ready: Time::ZERO,
    writer: None,
    is_stale_in_memory: false,
};

/// The place of a line's record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    page: u32,
    at: usize,
}

impl Lines {
    pub(super) fn new(sockets: usize, caches: usize) -> Self {
        Self {
            index: FxHashMap::default(),
            pages: Vec::new(),
            last: (u64::MAX, 0),
            sockets,
            caches,
        }
    }

    /// The record of the line of that number.
    pub(super) fn spot(&mut self, line: u64) -> Spot {
        let (number, at) = (line / PAGE as u64, line as usize % PAGE);
        if self.last.0 != number {
            let (sockets, caches) = (self.sockets, self.caches);
            let pages = &mut self.pages;
            let page = *self.index.entry(number).or_insert_with(|| {
                pages.push(Page {
                    lines: Box::new([UNTOUCHED; PAGE]),
                    states: vec![State::Invalid; PAGE * sockets * (caches + 1)].into(),
                    holders: vec![0; PAGE * sockets].into(),
                });
                pages.len() as u32 - 1
            });
            self.last = (number, page);
        }
        Spot {
            page: self.last.1,
            at,
        }
    }

    pub(super) fn line(&mut self, spot: Spot) -> &mut Line {
        &mut self.pages[spot.page as usize].lines[spot.at]
    }

    /// The words of a line, if it was ever touched.
    pub(super) fn look(&self, line: u64) -> Option<&Line> {
        let page = *self.index.get(&(line / PAGE as u64))?;
        self.pages[page as usize].lines.get(line as usize % PAGE)
    }

    /// The states of the copies in the caches of a socket.
    pub(super) fn inner(&mut self, spot: Spot, socket: usize) -> &mut [State] {
        let first = spot.at * self.sockets * (self.caches + 1) + socket * self.caches;
        &mut self.pages[spot.page as usize].states[first..first + self.caches]
    }

    /// The states of the sockets' copies.
    pub(super) fn outer(&mut self, spot: Spot) -> &mut [State] {
        let first = spot.at * self.sockets * (self.caches + 1) + self.sockets * self.caches;
        &mut self.pages[spot.page as usize].states[first..first + self.sockets]
    }

    /// The modules of a socket that may have a copy, as its third level knows: a bit each. One that
    /// has dropped a clean copy is still among them.
    pub(super) fn holders(&mut self, spot: Spot, socket: usize) -> &mut u32 {
        &mut self.pages[spot.page as usize].holders[spot.at * self.sockets + socket]
    }

    /// Heap, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let page = PAGE * (size_of::<Line>() + self.sockets * (self.caches + 1) + 4 * self.sockets);
        self.pages.len() * (page + size_of::<Page>()) + self.index.capacity() * 16
    }
}
