//! Every stale load by itself, for who wants more than the report, which puts them together. The
//! checker tells of each as it finds it and keeps none, so that a list takes no memory however long
//! it gets. Times are picoseconds of the run, values 64-bit words.

use std::fmt;

use sme_memory::Place;

use super::record::{Site, Way};
use super::report::{Cause, Flush, Runs, Side};
use crate::time::Time;

/// A load that did not see the newest write that had happened before it, whether or not that had
/// written another value than the load has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleLoad {
    /// The time at which it was performed. One that hit its core's private caches may be early, as
    /// that is simulated ahead of time.
    pub at: Time,
    /// The threads that read.
    pub reader: Runs,
    /// The number of that thread among all: its node times the threads of a node, plus its core.
    pub thread: u32,
    /// The place in the program.
    pub site: Option<Site>,
    /// The way in which the word was reached.
    pub way: Way,
    /// The word.
    pub word: Place,
    /// The value the load returned.
    pub seen: u64,
    /// The value of the write it did not see.
    pub newer: u64,
    /// The write that was read; none for the initial value.
    pub written: Option<MissedWrite>,
    /// The reason why it was not seen.
    pub cause: Cause,
}

/// The write that a stale load has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedWrite {
    /// The time at which the store was performed.
    pub at: Time,
    /// The threads that wrote.
    pub by: Runs,
    /// The number of that thread among all.
    pub thread: u32,
    /// The place in the program.
    pub site: Option<Site>,
}

/// A missing flush, and the node on which it was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The flush that the program should have done.
    pub flush: Flush,
    /// On which side of the hand-over.
    pub side: Side,
    /// The node.
    pub node: u32,
}

impl StaleLoad {
    /// Returns whether the newer write had written the value that was seen all the same.
    pub fn is_equal(&self) -> bool {
        self.seen == self.newer
    }

    /// Returns the missing flush and its node; none if no thread has written the word.
    pub fn missing(&self) -> Option<Missing> {
        let (flush, side) = self.cause.missing()?;
        let node = match (side, self.cause) {
            (Side::Reader, _) => self.reader.node,
            (_, Cause::LostUpdate { by_node }) => by_node,
            _ => self.written?.by.node,
        };
        Some(Missing { flush, side, node })
    }
}

/// The function that is told of each stale load.
pub(super) struct Listener(Box<dyn FnMut(&StaleLoad) + Send>);

impl Listener {
    pub fn new(each: impl FnMut(&StaleLoad) + Send + 'static) -> Self {
        Self(Box::new(each))
    }

    pub fn tell(&mut self, load: &StaleLoad) {
        (self.0)(load);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
