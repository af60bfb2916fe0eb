//! The cells behind the addresses: flags as atomic bytes, words as atomic 64-bit words, each kind
//! in lines of 128 bytes that are aligned to 128, so that what a layout puts on different lines is
//! on different lines. Offsets and addresses in bytes. Called by [`super::Thread`] only.

use crossbeam::utils::CachePadded;

use super::sync::{AtomicU8, AtomicU64};
use crate::{Flag, Place, Word};

/// Bytes in a line of the arena: two 64-byte lines, because processors that fetch lines in pairs
/// (Intel's since Sandy Bridge, Apple's with 128-byte lines) share falsely at that distance.
/// Under loom, which knows no lines and pays for every cell, 8.
pub const LINE: u64 = if cfg!(loom) { 8 } else { 128 };

const FLAGS_PER_LINE: usize = LINE as usize;
const WORDS_PER_LINE: usize = LINE as usize / 8;

/// The shared partitions of all nodes: one region each, one behind the other.
pub(super) struct Arena {
    flags: Box<[CachePadded<[AtomicU8; FLAGS_PER_LINE]>]>,
    words: Box<[CachePadded<[AtomicU64; WORDS_PER_LINE]>]>,
    flag_region: Region,
    word_region: Region,
}

/// The number of nodes, and of the lines in each one's region.
#[derive(Clone, Copy)]
struct Region {
    nodes: u32,
    lines: u64,
}

impl Region {
    /// Regions of at least `bytes` bytes, in whole lines.
    fn new(nodes: u32, bytes: u64) -> Self {
        let lines = bytes.div_ceil(LINE);
        Self { nodes, lines }
    }

    /// Lines of all regions together.
    fn total(self) -> usize {
        usize::try_from(self.lines)
            .ok()
            .and_then(|lines| lines.checked_mul(self.nodes as usize))
            .unwrap_or_else(|| panic!("{} regions of {} lines: too large", self.nodes, self.lines))
    }

    /// The address of `place`, which may be the end of its region: an empty row can lie there.
    #[inline]
    fn address(self, place: Place) -> u64 {
        let bytes = self.lines * LINE;
        assert!(
            place.node < self.nodes && place.offset <= bytes,
            "{place:?} is outside the {} nodes of {bytes} bytes",
            self.nodes,
        );
        u64::from(place.node) * bytes + place.offset
    }
}

impl Arena {
    /// Regions for `nodes` nodes, all zero.
    pub(super) fn new(nodes: u32, flag_bytes: u64, word_bytes: u64) -> Self {
        let flag_region = Region::new(nodes, flag_bytes);
        let word_region = Region::new(nodes, word_bytes);
        let flag_line = || CachePadded::new(std::array::from_fn(|_| AtomicU8::new(0)));
        let word_line = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        Self {
            flags: (0..flag_region.total()).map(|_| flag_line()).collect(),
            words: (0..word_region.total()).map(|_| word_line()).collect(),
            flag_region,
            word_region,
        }
    }

    #[inline]
    pub(super) fn flag_at(&self, place: Place) -> Flag {
        Flag(self.flag_region.address(place))
    }

    #[inline]
    pub(super) fn word_at(&self, place: Place) -> Word {
        Word(self.word_region.address(place))
    }

    /// The cell of `flag`. Panics where there is none: the program has made up an address.
    #[inline]
    pub(super) fn flag(&self, flag: Flag) -> &AtomicU8 {
        match self.flags.get((flag.0 / LINE) as usize) {
            Some(line) => &line[(flag.0 % LINE) as usize],
            None => panic!("{flag:?} is outside the {} flag lines", self.flags.len()),
        }
    }

    /// The cell of `word`. Panics where there is none: the program has made up an address.
    #[inline]
    pub(super) fn word(&self, word: Word) -> &AtomicU64 {
        debug_assert!(word.0.is_multiple_of(8), "{word:?} is not aligned");
        match self.words.get((word.0 / LINE) as usize) {
            Some(line) => &line[(word.0 % LINE / 8) as usize],
            None => panic!("{word:?} is outside the {} word lines", self.words.len()),
        }
    }
}
