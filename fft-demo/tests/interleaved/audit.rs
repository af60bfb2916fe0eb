//! The rules that kernels keep between two barriers, checked at every access: no word is written by
//! one thread and touched by another, and no line is written by two nodes of which one does it
//! through its cache.

use std::collections::HashMap;

use sme_memory::Place;

use super::caches::line_of;

/// The counts and findings of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub loads: u64,
    pub stores: u64,
    /// Operations on registers, as given to `Team::compute`.
    pub operations: u64,
    /// Words that one thread wrote and another read or wrote between the same two barriers, once
    /// for every pair of barriers.
    pub races: Vec<Race>,
    /// Lines that two nodes wrote between the same two barriers, and one of them, at least,
    /// through its cache; and lines that were written both past and through one. Once for every
    /// pair of barriers.
    pub false_sharing: Vec<Place>,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    pub place: Place,
    /// Barriers before it.
    pub episode: u64,
    /// The thread that came first in this order of steps, and the other.
    pub threads: [u32; 2],
}

#[derive(Default)]
pub(super) struct Audit {
    pub(super) report: Report,
    words: HashMap<Place, Accesses>,
    lines: HashMap<Place, Writers>,
}

/// The accesses to a word since the last barrier.
#[derive(Clone, Copy, Default)]
struct Accesses {
    episode: u64,
    writer: Option<u32>,
    /// Two different threads that have read it, at most.
    readers: [Option<u32>; 2],
    reported: bool,
}

/// The threads that have written a line since the last barrier.
#[derive(Clone, Copy)]
struct Writers {
    episode: u64,
    node: u32,
    cached: bool,
    /// Others have, past the caches as the first did.
    others: bool,
    reported: bool,
}

impl Audit {
    pub(super) fn load(&mut self, episode: u64, thread: u32, place: Place) {
        self.report.loads += 1;
        let word = Self::word(&mut self.words, episode, place);
        if !word.readers.contains(&Some(thread))
            && let Some(free) = word.readers.iter_mut().find(|reader| reader.is_none())
        {
            *free = Some(thread);
        }
        let other = word.writer.filter(|&writer| writer != thread);
        self.race(episode, place, other, thread);
    }

    pub(super) fn store(
        &mut self,
        episode: u64,
        (thread, node): (u32, u32),
        place: Place,
        cached: bool,
    ) {
        self.report.stores += 1;
        let word = Self::word(&mut self.words, episode, place);
        let mut before = word.readers.into_iter().chain([word.writer]).flatten();
        let other = before.find(|&other| other != thread);
        word.writer = Some(thread);
        self.race(episode, place, other, thread);

        let (line, _) = line_of(place);
        let first = Writers {
            episode,
            node,
            cached,
            others: false,
            reported: false,
        };
        let writers = self.lines.entry(line).or_insert(first);
        if writers.episode != episode {
            *writers = first;
        }
        let same = writers.node == node && writers.cached == cached;
        let wrong = (!same || writers.others) && (writers.cached || cached);
        writers.others |= !same;
        if wrong && !std::mem::replace(&mut writers.reported, true) {
            self.report.false_sharing.push(line);
        }
    }

    fn word(words: &mut HashMap<Place, Accesses>, episode: u64, place: Place) -> &mut Accesses {
        let word = words.entry(place).or_default();
        if word.episode != episode {
            *word = Accesses {
                episode,
                ..Accesses::default()
            };
        }
        word
    }

    fn race(&mut self, episode: u64, place: Place, other: Option<u32>, thread: u32) {
        let Some(other) = other else { return };
        let word = Self::word(&mut self.words, episode, place);
        if !std::mem::replace(&mut word.reported, true) {
            self.report.races.push(Race {
                place,
                episode,
                threads: [other, thread],
            });
        }
    }
}
