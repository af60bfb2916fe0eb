//! Vector clocks: what each thread knows of the others' progress, and what it has published with
//! each flag and each synchronizing word (Flanagan & Freund, "FastTrack", PLDI 2009, Sec. 2 and 3).
//! A thread's own clock advances at each release, so a point of its run is an epoch: thread and
//! clock. Called by the checker only.

use rustc_hash::FxHashMap;

use super::record::Spot;

/// How many different values of a flag are remembered; who sees an older one learns nothing by it.
const VALUES_KEPT: usize = 8;

/// The clocks of all threads, and what is published.
#[derive(Debug)]
pub(super) struct Clocks {
    threads: usize,
    /// A row for each thread, in it a column for each thread.
    known: Vec<u32>,
    flags: FxHashMap<Spot, Vec<Published>>,
    words: FxHashMap<Spot, Vec<u32>>,
}

/// What a thread knew when it gave a flag this value.
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
        }
    }

    /// What `thread` knows: a clock for each thread.
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

    /// Whether the point `clock` of `writer` happened before where `thread` is.
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
    }

    /// `thread` has seen that `flag` had this value: an acquire.
    pub fn saw(&mut self, thread: u32, flag: Spot, value: u8) {
        let start = thread as usize * self.threads;
        let row = &mut self.known[start..start + self.threads];
        let set = (self.flags.get(&flag))
            .and_then(|history| (history.iter().rev()).find(|published| published.value == value));
        if let Some(set) = set {
            let writer = set.thread as usize;
            // Who knows the release knows all that was known then.
            if row[writer] < set.known[writer] {
                join(row, &set.known);
            }
        }
    }

    /// Declares that `word` synchronizes.
    pub fn synchronize(&mut self, word: Spot) {
        let threads = self.threads;
        self.words.entry(word).or_insert_with(|| vec![0; threads]);
    }

    /// Whether `word` synchronizes.
    pub fn synchronizes(&self, word: Spot) -> bool {
        self.words.contains_key(&word)
    }

    /// `thread` learns what was published with `word`.
    pub fn acquire(&mut self, thread: u32, word: Spot) {
        let start = thread as usize * self.threads;
        if let Some(published) = self.words.get(&word) {
            join(&mut self.known[start..start + self.threads], published);
        }
    }

    /// `thread` publishes what it knows with `word`, to which it has just written.
    pub fn release(&mut self, thread: u32, word: Spot) {
        let start = thread as usize * self.threads;
        if let Some(published) = self.words.get_mut(&word) {
            published.copy_from_slice(&self.known[start..start + self.threads]);
            self.advance(thread);
        }
    }

    fn advance(&mut self, thread: u32) {
        self.known[thread as usize * (self.threads + 1)] += 1;
    }
}

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
