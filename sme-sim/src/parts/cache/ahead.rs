//! The actions of a program without asking the machine: loads and stores that hit its core's
//! private caches, and computing.
//!
//! A hit touches no other core, so it needs no event: while a program is polled it has its core's
//! caches at hand and runs ahead of its node on a clock of its own, until it asks for something
//! that the node must do or has spent its [limit](Ahead::new). All that it does on the way takes
//! effect at the time at which it was polled: the copies it reads are coherent then, and no other
//! core has any of those that it writes. So what it sees and what others see is one order of all
//! accesses; only the times of accesses within a run may be early, by less than the limit. Lent by
//! a machine's node through [`crate::parts::contract`].

use super::{Cache, Geometry, Level};
use crate::kernel::thread::Site;
use crate::parts::address::CACHEABLE;
use crate::parts::line_size::LineSize;
use crate::time::Time;

/// Hits in a core's private caches, counted in accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Loads and stores that hit the first level.
    pub first: u64,
    /// Loads and stores that hit the second.
    pub second: u64,
}

impl Hits {
    /// Those that have been counted since there were `earlier` ones.
    #[inline]
    pub fn since(self, earlier: Hits) -> Hits {
        Hits {
            first: self.first - earlier.first,
            second: self.second - earlier.second,
        }
    }

    /// Counts a hit; which of the `times` it takes.
    #[inline]
    pub fn count<T>(&mut self, level: Level, (first, second): (T, T)) -> T {
        match level {
            Level::First => {
                self.first += 1;
                first
            }
            Level::Second => {
                self.second += 1;
                second
            }
        }
    }
}

/// A load or a store of a word that was performed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The address as the program gave it, a multiple of eight, plus one for a store.
    address: u64,
    /// The value loaded or stored.
    pub value: u64,
    /// The place in the program.
    pub site: Site,
}

impl Access {
    /// The word at `address`, a multiple of eight, was loaded, or `stores` was so.
    #[inline]
    pub fn new(address: u64, value: u64, site: Site, stores: bool) -> Self {
        debug_assert!(address.is_multiple_of(8), "{address:#x} names no word");
        Self {
            address: address | u64::from(stores),
            value,
            site,
        }
    }

    /// The address, as the program gave it.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address & !7
    }

    /// Returns the number of the word in the 64 bytes around its line.
    #[inline]
    pub fn word(&self) -> usize {
        (self.address / 8 % 8) as usize
    }

    /// Returns whether it was a store.
    #[inline]
    pub fn stores(&self) -> bool {
        self.address & 1 != 0
    }
}

/// A core's private caches, and how far its program is ahead of its node.
#[derive(Debug)]
pub struct Ahead {
    /// The caches.
    pub cache: Cache,
    /// The accesses that hit them.
    pub hits: Hits,
    /// Whether nothing keeps the program from going on: no store of the core waits anywhere.
    pub may_run: bool,
    /// The accesses performed in place, where an observer asks for them. Lent with the rest, so
    /// that each access is written down once.
    pub log: Option<Vec<Access>>,
    line: LineSize,
    spent: Time,
    limit: Time,
    costs: Costs,
}

/// The times of hits, the program's own instructions around each included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// In the first level.
    pub first: Time,
    /// In the second.
    pub second: Time,
}

impl Ahead {
    /// Empty caches of a core that runs ahead of its node by less than `limit`, and one access.
    pub fn new(geometry: Geometry, costs: Costs, limit: Time) -> Self {
        Self {
            cache: Cache::new(geometry),
            hits: Hits::default(),
            may_run: true,
            log: None,
            line: geometry.line(),
            spent: Time::ZERO,
            limit,
            costs,
        }
    }

    /// Takes the time that the program has spent since the last call.
    pub fn spent(&mut self) -> Time {
        std::mem::take(&mut self.spent)
    }

    /// The word at `address`, if it can be had in place.
    #[inline]
    pub fn load(&mut self, address: u64, site: Site) -> Option<u64> {
        if !self.may_begin() || !address.is_multiple_of(8) {
            return None;
        }
        let (line, word) = line_and_word(self.line, address);
        let (value, level) = self.cache.load(line, word)?;
        self.took(level);
        if let Some(log) = &mut self.log {
            log.push(Access::new(address, value, site, false));
        }
        Some(value)
    }

    /// Stores to the word at `address`, if that can be done in place; whether it was.
    #[inline]
    pub fn store(&mut self, address: u64, value: u64, site: Site) -> bool {
        if !self.may_begin() || !address.is_multiple_of(8) {
            return false;
        }
        let (line, word) = line_and_word(self.line, address);
        let Some(level) = self.cache.store(line, word, 0xff, value) else {
            return false;
        };
        self.took(level);
        if let Some(log) = &mut self.log {
            log.push(Access::new(address, value, site, true));
        }
        true
    }

    /// Lets `span` pass, if the limit allows it; whether it has.
    #[inline]
    pub fn delay(&mut self, span: Time) -> bool {
        let may = self.may_begin() && span <= self.limit;
        if may {
            self.spent += span;
        }
        may
    }

    #[inline]
    fn may_begin(&self) -> bool {
        self.may_run && self.spent < self.limit
    }

    #[inline]
    fn took(&mut self, level: Level) {
        let Costs { first, second } = self.costs;
        self.spent += self.hits.count(level, (first, second));
    }
}

/// The number of the line that holds a cacheable `address`, lines being as long as `line`, and of
/// the word in the 64 bytes around it.
#[inline]
pub fn line_and_word(line: LineSize, address: u64) -> (u64, u32) {
    let address = address & !CACHEABLE;
    (line.number(address), (address / 8 % 8) as u32)
}
