//! The knowledge published with one synchronizing word: the last contents of its memory, each with
//! what its writer knew, in the order in which memory took them. Called by the clocks only.
//!
//! A load is told when it returns, with its value. It read memory at some time between its thread's
//! last step before it and now, so it has seen one of the contents that memory had in that time.
//! Among those with its value it cannot be told which: their writers may have published one value
//! twice, as a lock does that is free again. So the load acquires what *all* of them have
//! published. Thus an edge may be missed, and none is made up. If memory has had more contents in
//! that time than are kept, nothing is acquired.
//!
//! Relied upon: what a thread begins after something was told does not see memory as it was before;
//! what a node posts to one word is performed in that order; a store to the node's own coherent
//! memory is performed at once. Where a word goes through caches, the order of its contents is not
//! known, and a load past them acquires nothing.

use std::collections::VecDeque;

/// The number of contents that are kept.
const KEPT: usize = 8;

/// The knowledge published with a word.
#[derive(Debug)]
pub(super) struct Releases {
    /// The knowledge of the last thread to store.
    newest: Vec<u32>,
    /// Posted, and not performed yet: by which node.
    posted: VecDeque<(u32, Content)>,
    /// The contents that memory held, the latest at the end.
    held: VecDeque<Content>,
    /// Whether memory has held nothing but these.
    is_all: bool,
    /// Whether all that memory holds is known.
    is_known: bool,
    /// The knowledge that several threads have published.
    common: Vec<u32>,
}

/// A content of the word.
#[derive(Debug)]
struct Content {
    /// The number of the change of memory that made it so.
    since: u64,
    value: u64,
    /// The knowledge of its writer: a clock for each thread.
    known: Vec<u32>,
}

impl Releases {
    /// Nothing is published yet, and the word has held this value since then: with the declaration
    /// of [`super::Clocks::synchronize`].
    pub fn new(
        threads: usize,
        (since, value): (u64, u64),
        (is_quiet, is_new): (bool, bool),
    ) -> Self {
        let known = vec![0; threads];
        let mut held = VecDeque::with_capacity(KEPT);
        held.push_back(Content {
            since,
            value,
            known: known.clone(),
        });
        Self {
            newest: known.clone(),
            posted: VecDeque::new(),
            held,
            is_all: is_new,
            is_known: is_quiet,
            common: known,
        }
    }

    /// The word, which was never written, holds `value`.
    pub fn begin(&mut self, value: u64) {
        if let Some(first) = self.held.front_mut() {
            first.value = value;
        }
    }

    /// Returns the knowledge of the last thread to store.
    pub fn newest(&self) -> &[u32] {
        &self.newest
    }

    /// Returns the knowledge of the writer of the current contents of memory.
    pub fn current(&self) -> Option<&[u32]> {
        let current = self.held.back().filter(|_| self.is_known)?;
        Some(&current.known)
    }

    /// Returns what all threads have published that a load of `value` may have seen, if it began
    /// after so many changes of memory.
    pub fn seen(&mut self, since: u64, value: u64) -> Option<&[u32]> {
        // That which memory held when the load began, or the first that is kept.
        let first = (self.held.iter()).rposition(|content| content.since <= since);
        if !self.is_known || first.is_none() && !self.is_all {
            return None;
        }
        let mut same = (self.held.range(first.unwrap_or(0)..))
            .filter(|content| content.value == value)
            .map(|content| content.known.as_slice());
        let only = same.next()?;
        self.common.copy_from_slice(only);
        for known in same {
            for (common, &known) in self.common.iter_mut().zip(known) {
                *common = known.min(*common);
            }
        }
        Some(&self.common)
    }

    /// A node has posted `value`.
    pub fn post(&mut self, node: u32, value: u64, known: &[u32]) {
        self.newest.copy_from_slice(known);
        if self.is_known {
            let content = Content {
                since: 0,
                value,
                known: known.to_vec(),
            };
            self.posted.push_back((node, content));
        }
    }

    /// Notes that the first post of `node` has been performed.
    pub fn perform(&mut self, since: u64, node: u32) {
        let first = self.posted.iter().position(|posted| posted.0 == node);
        if let Some((_, content)) = first.and_then(|first| self.posted.remove(first)) {
            self.hold(Content { since, ..content });
        }
    }

    /// `value` has been stored, in memory.
    pub fn store(&mut self, since: u64, value: u64, known: &[u32]) {
        self.newest.copy_from_slice(known);
        if self.is_known {
            self.hold(Content {
                since,
                value,
                known: known.to_vec(),
            });
        }
    }

    /// Something has been stored in a cache.
    pub fn store_in_cache(&mut self, known: &[u32]) {
        self.newest.copy_from_slice(known);
        self.written_back();
    }

    /// A line with the word has been written back.
    pub fn written_back(&mut self) {
        self.is_known = false;
        self.posted.clear();
        self.held.clear();
    }

    fn hold(&mut self, content: Content) {
        if self.held.len() == KEPT {
            self.held.pop_front();
            self.is_all = false;
        }
        self.held.push_back(content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_published_twice_tells_what_both_have_published() {
        let mut word = Releases::new(2, (0, 0), (true, true));
        assert_eq!(word.seen(0, 0), Some(&[0, 0][..]));
        word.store(1, 7, &[3, 1]);
        word.post(1, 0, &[2, 5]);
        assert_eq!(word.seen(0, 7), Some(&[3, 1][..]));
        assert_eq!(word.seen(0, 9), None);
        word.perform(2, 1);
        // This load began before the first store, those after it.
        assert_eq!(word.seen(0, 0), Some(&[0, 0][..]));
        assert_eq!(word.seen(1, 0), Some(&[2, 5][..]));
        word.store(3, 1, &[4, 5]);
        word.store(4, 0, &[6, 4]);
        assert_eq!(word.seen(2, 0), Some(&[2, 4][..]));
        assert_eq!(word.seen(3, 0), Some(&[6, 4][..]));
        assert_eq!(word.current(), Some(&[6, 4][..]));
    }

    #[test]
    fn what_is_not_kept_is_not_taken_for_something_else() {
        let mut word = Releases::new(1, (0, 0), (true, true));
        for since in 1..=KEPT as u64 {
            word.store(since, since % 2, &[since as u32]);
        }
        assert_eq!(word.seen(0, 1), None);
        assert_eq!(word.seen(1, 1), Some(&[1][..]));
        word.written_back();
        assert_eq!(word.seen(8, 0), None);
        assert_eq!(word.newest(), [8]);
    }
}
