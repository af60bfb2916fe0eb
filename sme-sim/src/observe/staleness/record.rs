//! The machine's records for the checker: one [`Record`] of 40 bytes for each thing that happened,
//! but for the accesses of a run ([`super::Checker::accesses`]). Words are aligned and have 64
//! bits. Lines are as long as the machine's, 64 bytes at most; their words and bytes are numbered
//! as in the aligned 64 bytes around them.

use sme_memory::Place;

use crate::time::Time;

pub use crate::kernel::thread::Site;
pub use crate::parts::address::Way;
use crate::parts::line_size::LineSize;

/// The event of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A load has returned.
    Load {
        /// The word read.
        word: Place,
        /// The value that the load returned.
        value: u64,
        /// The place of the load in the program.
        site: Site,
        /// The way in which it was read.
        way: Way,
    },
    /// A store has been issued.
    Store {
        /// The word written.
        word: Place,
        /// The value written.
        value: u64,
        /// The place of the store in the program.
        site: Site,
        /// The way in which it was written.
        way: Way,
    },
    /// An atomic operation on coherent memory, an acquire and a release of that word. The value
    /// read is never stale, so only the new value is told.
    Update {
        /// The word.
        word: Place,
        /// The value that it holds now.
        after: u64,
        /// The place of the operation in the program.
        site: Site,
    },
    /// The thread, the flag's only writer, has set it: a release.
    Set {
        /// The flag.
        flag: Place,
        /// Its new value.
        value: u8,
    },
    /// The thread has read a flag, or ended a wait for it: an acquire.
    Saw {
        /// The flag.
        flag: Place,
        /// The value read.
        value: u8,
    },
    /// The thread's node has fetched a line into its caches.
    Filled {
        /// Any place in the line.
        line: Place,
    },
    /// The thread's node holds no copy of the line any more.
    Dropped {
        /// Any place in the line.
        line: Place,
    },
    /// The thread's node holds no copy of any line any more.
    DroppedAll,
    /// The thread's node has posted a write-back.
    WroteBack {
        /// Any place in the line.
        line: Place,
        /// A bit for each byte of the 64 around the line that is written.
        bytes: u64,
        /// Those of them that the node had not itself modified.
        old: u64,
    },
    /// A posted store, or a write-back, has reached memory at its home, whole or in parts.
    Performed {
        /// Any place in the line.
        line: Place,
        /// A bit for each byte of the 64 around the line that was written.
        bytes: u64,
        /// The node that had posted it.
        by_node: u32,
    },
}

impl What {
    /// A load of `value` from `word`, or a store of it there if it `stores`.
    #[inline]
    pub fn access(word: Place, value: u64, site: Site, way: Way, stores: bool) -> Self {
        if stores {
            Self::Store {
                word,
                value,
                site,
                way,
            }
        } else {
            Self::Load {
                word,
                value,
                site,
                way,
            }
        }
    }
}

/// One thing that happened, packed. Bytes of a line are kept as whole words.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub(super) at: Time,
    /// The node that posted it, for `Kind::Performed`.
    pub(super) thread: u32,
    pub(super) kind: Kind,
    pub(super) way: Way,
    /// A bit for each word of the line that is written.
    pub(super) words: u8,
    /// Those of them of which the node had modified no byte.
    pub(super) old: u8,
    pub(super) spot: Spot,
    pub(super) value: u64,
    pub(super) site: Option<Site>,
}

const _: () = assert!(size_of::<Record>() == 40);

/// The kinds of [`What`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Load,
    Store,
    Update,
    Set,
    Saw,
    Filled,
    Dropped,
    DroppedAll,
    WroteBack,
    Performed,
}

/// A flag that was written or seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagRecord {
    /// The time of the write or read.
    pub at: Time,
    /// The thread, numbered as in [`Record::new`].
    pub thread: u32,
    /// The flag.
    pub flag: Place,
    /// The value written or seen.
    pub value: u8,
    /// Whether it was written.
    pub is_write: bool,
}

impl Record {
    /// The same as a record of a flag, if it is about one.
    pub fn of_flag(&self) -> Option<FlagRecord> {
        let is_write = match self.kind {
            Kind::Set => true,
            Kind::Saw => false,
            _ => return None,
        };
        Some(FlagRecord {
            at: self.at,
            thread: self.thread,
            flag: self.spot.place(),
            value: self.value as u8,
            is_write,
        })
    }

    /// Returns the time of the record.
    #[inline]
    pub fn at(&self) -> Time {
        self.at
    }

    /// `what` happened `at` this time, by this `thread`: its node times the threads of a node, plus
    /// its core. For [`What::Performed`] the thread does not matter.
    #[inline]
    pub fn new(at: Time, thread: u32, what: What) -> Self {
        let blank = Self {
            at,
            thread,
            kind: Kind::DroppedAll,
            way: Way::Cached,
            words: 0,
            old: 0,
            spot: Spot(0),
            value: 0,
            site: None,
        };
        let about = |kind, place| Self {
            kind,
            spot: Spot::new(place),
            ..blank
        };
        let access = |kind, place, value, site, way| Self {
            value,
            site: Some(site),
            way,
            ..about(kind, place)
        };
        let flag = |kind, place, value| Self {
            value: u64::from(value),
            ..about(kind, place)
        };
        match what {
            What::Load {
                word,
                value,
                site,
                way,
            } => access(Kind::Load, word, value, site, way),
            What::Store {
                word,
                value,
                site,
                way,
            } => access(Kind::Store, word, value, site, way),
            What::Update { word, after, site } => {
                access(Kind::Update, word, after, site, Way::Coherent)
            }
            What::Set { flag: place, value } => flag(Kind::Set, place, value),
            What::Saw { flag: place, value } => flag(Kind::Saw, place, value),
            What::Filled { line } => about(Kind::Filled, line),
            What::Dropped { line } => about(Kind::Dropped, line),
            What::DroppedAll => blank,
            What::WroteBack { line, bytes, old } => {
                let words = words_of(bytes);
                Self {
                    words,
                    old: words & !words_of(bytes & !old),
                    ..about(Kind::WroteBack, line)
                }
            }
            What::Performed {
                line,
                bytes,
                by_node,
            } => Self {
                thread: by_node,
                words: words_of(bytes),
                ..about(Kind::Performed, line)
            },
        }
    }
}

/// The words of a line of which `bytes` names at least one byte.
fn words_of(bytes: u64) -> u8 {
    (0..8).fold(0, |words, word| {
        words | u8::from(bytes >> (8 * word) & 0xff != 0) << word
    })
}

const OFFSET_BITS: u32 = 48;

/// A [`Place`] in 64 bits: 16 of node, 48 of offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot(u64);

impl Spot {
    #[inline]
    pub fn new(place: Place) -> Self {
        debug_assert!(place.node >> 16 == 0 && place.offset >> OFFSET_BITS == 0);
        Self(u64::from(place.node) << OFFSET_BITS | place.offset)
    }

    pub fn place(self) -> Place {
        Place {
            node: self.node() as u32,
            offset: self.offset(),
        }
    }

    #[inline]
    pub fn node(self) -> usize {
        (self.0 >> OFFSET_BITS) as usize
    }

    #[inline]
    pub fn offset(self) -> u64 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }

    /// Returns the number of the word in the aligned 64 bytes around it.
    #[inline]
    pub fn word(self) -> usize {
        (self.0 >> 3 & 7) as usize
    }

    /// A number for the line, the same for all its words.
    #[inline]
    pub fn line(self, size: LineSize) -> u64 {
        size.number(self.0)
    }

    /// Word number `word` of the 64 bytes around this one.
    pub fn sibling(self, word: usize) -> Self {
        Self(self.0 & !63 | (word as u64) << 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_words() {
        assert_eq!(words_of(0), 0);
        assert_eq!(words_of(1 << 63 | 1 << 8), 0b1000_0010);
        let line = Place {
            node: 3,
            offset: 0x1240,
        };
        let record = Record::new(
            Time::ZERO,
            7,
            What::WroteBack {
                line,
                bytes: u64::MAX,
                old: !(1 << 16),
            },
        );
        assert_eq!((record.words, record.old), (0xff, 0b1111_1011));
        let spot = Spot::new(line.plus(24));
        assert_eq!((spot.node(), spot.offset(), spot.word()), (3, 0x1258, 3));
        let number = |spot: Spot, bytes| spot.line(LineSize::new(bytes).expect("a length"));
        let first = Spot::new(line);
        assert_eq!(number(spot, 64), number(first, 64));
        assert_eq!(number(spot, 32), number(first, 32));
        assert_ne!(number(spot.sibling(4), 32), number(first, 32));
        assert_eq!(spot.sibling(3), spot);
    }
}
