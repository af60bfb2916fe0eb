//! Vector clocks: what each thread knows of the others' progress, and what it has published with
//! each flag and each synchronizing word (Flanagan & Freund, "FastTrack", PLDI 2009, Sec. 2 and 3).
//! A thread's own clock advances at each release, so a point of its run is an epoch: thread and
//! clock. Called by the checker only.

use rustc_hash::FxHashMap;

use super::record::{Spot, Way};
use super::releases::Releases;

/// The number of different values of a flag that are remembered; a thread that sees an older one
/// learns nothing by it.
const VALUES_KEPT: usize = 8;

/// The clocks of all threads, and what is published.
#[derive(Debug)]
pub(super) struct Clocks {
    threads: usize,
    /// A row for each thread, in it a column for each thread.
    known: Vec<u32>,
    flags: FxHashMap<Spot, Vec<Published>>,
    words: FxHashMap<Spot, Releases>,
    /// The changes of a synchronizing word in memory so far.
    contents: u64,
    /// For each thread, what `contents` was after its last operation.
    steps: Vec<u64>,
}

/// The knowledge of a thread when it gave a flag this value.
#[derive(Debug)]
struct Published {
    value: u8,
    thread: u32,
    known: Vec<u32>,
}

impl Clocks {
    /// Clocks of `threads` threads of which none knows of any other. Clock 0 is the time before
    /// all of them, which all know.
    pub fn new(threads: usize) -> Self {
        let mut known = vec![0; threads * threads];
        for thread in 0..threads {
            known[thread * threads + thread] = 1;
        }
        Self {
            threads,
            known,
            flags: FxHashMap::default(),
            words: FxHashMap::default(),
            contents: 0,
            steps: vec![0; threads],
        }
    }

    /// Returns the knowledge of `thread`: a clock for each thread.
    #[inline]
    pub fn row(&self, thread: u32) -> &[u32] {
        let start = thread as usize * self.threads;
        &self.known[start..start + self.threads]
    }

    /// The clock of `thread` itself.
    #[inline]
    pub fn now(&self, thread: u32) -> u32 {
        self.known[thread as usize * (self.threads + 1)]
    }

    /// Returns whether the point `clock` of `writer` happened before where `thread` is.
    #[inline]
    pub fn happened(&self, (writer, clock): (u32, u32), thread: u32) -> bool {
        clock <= self.known[thread as usize * self.threads + writer as usize]
    }

    /// `thread` gives `flag` this value: a release.
    pub fn set(&mut self, thread: u32, flag: Spot, value: u8) {
        let start = thread as usize * self.threads;
        let row = &self.known[start..start + self.threads];
        let history = self.flags.entry(flag).or_default();
        // The newest stands last.
        let mut published = match history.iter().position(|set| set.value == value) {
            Some(same) => history.remove(same),
            None if history.len() == VALUES_KEPT => history.remove(0),
            None => Published {
                value,
                thread,
                known: vec![0; row.len()],
            },
        };
        published.value = value;
        published.thread = thread;
        published.known.copy_from_slice(row);
        history.push(published);
        self.advance(thread);
        self.stepped(thread);
    }

    /// `thread` has seen that `flag` had this value: an acquire.
    pub fn saw(&mut self, thread: u32, flag: Spot, value: u8) {
        let start = thread as usize * self.threads;
        let row = &mut self.known[start..start + self.threads];
        let set = (self.flags.get(&flag))
            .and_then(|history| (history.iter().rev()).find(|published| published.value == value));
        if let Some(set) = set {
            let writer = set.thread as usize;
            // A thread that knows the release knows all that was known then.
            if row[writer] < set.known[writer] {
                join(row, &set.known);
            }
        }
        self.stepped(thread);
    }

    /// Declares that `word` synchronizes; it holds `value`. Whether all that was ever stored to it
    /// has been performed, and whether that is nothing.
    pub fn synchronize(&mut self, word: Spot, value: u64, (is_quiet, is_new): (bool, bool)) {
        let (threads, contents) = (self.threads, self.contents);
        let releases = self
            .words
            .entry(word)
            .or_insert_with(|| Releases::new(threads, (contents, value), (is_quiet, is_new)));
        if is_new {
            releases.begin(value);
        }
    }

    /// Returns whether `word` synchronizes.
    pub fn synchronizes(&self, word: Spot) -> bool {
        self.words.contains_key(&word)
    }

    /// `thread` has read `value` from memory: an acquire, of what every release that it may have
    /// seen has published.
    pub fn loaded(&mut self, thread: u32, word: Spot, value: u64) {
        let start = thread as usize * self.threads;
        let since = self.steps.get(thread as usize).copied().unwrap_or_default();
        if let Some(known) = (self.words.get_mut(&word)).and_then(|word| word.seen(since, value)) {
            join(&mut self.known[start..start + self.threads], known);
        }
    }

    /// `thread` has read what was last stored to `word`.
    pub fn loaded_newest(&mut self, thread: u32, word: Spot) {
        let start = thread as usize * self.threads;
        if let Some(releases) = self.words.get(&word) {
            join(
                &mut self.known[start..start + self.threads],
                releases.newest(),
            );
        }
    }

    /// `thread` is about to change what memory holds of `word`, and knows it: an acquire.
    pub fn updates(&mut self, thread: u32, word: Spot) {
        let start = thread as usize * self.threads;
        if let Some(known) = self.words.get(&word).and_then(Releases::current) {
            join(&mut self.known[start..start + self.threads], known);
        }
    }

    /// `thread` of `node` publishes what it knows with `word`, to which it has just stored `value`.
    pub fn release(&mut self, (thread, node): (u32, u32), word: Spot, value: u64, way: Way) {
        let start = thread as usize * self.threads;
        if let Some(releases) = self.words.get_mut(&word) {
            let known = &self.known[start..start + self.threads];
            match way {
                Way::Cached => releases.store_in_cache(known),
                Way::Uncached => releases.post(node, value, known),
                Way::Coherent => {
                    self.contents += 1;
                    releases.store(self.contents, value, known);
                }
            }
            self.advance(thread);
        }
    }

    /// The store to `word` that `node` posted first has reached memory, or a write-back has.
    pub fn performed(&mut self, node: u32, word: Spot, is_write_back: bool) {
        if let Some(releases) = self.words.get_mut(&word) {
            if is_write_back {
                releases.written_back();
            } else {
                self.contents += 1;
                releases.perform(self.contents, node);
            }
        }
    }

    /// `thread` has done something. What it does next will not see what memory holds no more by
    /// now.
    #[inline]
    pub fn stepped(&mut self, thread: u32) {
        if let Some(step) = self.steps.get_mut(thread as usize) {
            *step = self.contents;
        }
    }

    fn advance(&mut self, thread: u32) {
        self.known[thread as usize * (self.threads + 1)] += 1;
    }
}

/// Makes `row` know all that `other` does, too.
fn join(row: &mut [u32], other: &[u32]) {
    for (mine, theirs) in row.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sme_memory::Place;

    #[test]
    fn a_release_is_known_to_who_sees_it_and_to_whom_that_tells() {
        let flag = |offset| Spot::new(Place { node: 0, offset });
        let mut clocks = Clocks::new(3);
        let written = (0, clocks.now(0));
        clocks.set(0, flag(0), 1);
        let later = (0, clocks.now(0));
        assert!(!clocks.happened(written, 1));
        clocks.saw(1, flag(0), 2);
        assert!(!clocks.happened(written, 1));
        clocks.saw(1, flag(0), 1);
        assert!(clocks.happened(written, 1));
        assert!(!clocks.happened(later, 1));
        clocks.set(1, flag(64), 1);
        clocks.saw(2, flag(64), 1);
        assert!(clocks.happened(written, 2));
        assert!(!clocks.happened(later, 2));
    }
}
