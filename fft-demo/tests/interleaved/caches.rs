//! The caches of the nodes of a [`Machine`](super::Machine): one per node, fully associative, with
//! lines of 64 bytes that no other node invalidates or updates.

use std::collections::BTreeMap;

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_memory::Place;

pub(super) const LINE_BYTES: u64 = 64;
const LINE_WORDS: usize = LINE_BYTES as usize / 8;

/// The memory of all nodes, in words.
type Nodes = [Vec<u64>];

/// The part of a line that is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// All of it: what others have stored in it meanwhile is lost.
    Line,
    /// The words that were stored to.
    Mask,
}

pub(super) struct Caches {
    nodes: Vec<BTreeMap<Place, Line>>,
    lines: usize,
    write_back: WriteBack,
}

/// A copy of a line.
struct Line {
    words: [u64; LINE_WORDS],
    dirty: [bool; LINE_WORDS],
}

impl Caches {
    pub(super) fn new(nodes: u32, lines: usize, write_back: WriteBack) -> Self {
        Self {
            nodes: (0..nodes).map(|_| BTreeMap::new()).collect(),
            lines,
            write_back,
        }
    }

    /// The copy that `node` has of the word at `place`, after it has fetched the line if need be.
    pub(super) fn word(
        &mut self,
        node: u32,
        place: Place,
        dirty: bool,
        memory: &mut Nodes,
        random: &mut Pcg32,
    ) -> &mut u64 {
        let (first, word) = line_of(place);
        let cache = &mut self.nodes[node as usize];
        if !cache.contains_key(&first) && cache.len() >= self.lines {
            let nth = random.next_u64() as usize % cache.len();
            let victim = cache.keys().nth(nth).copied();
            if let Some((place, line)) = victim.and_then(|place| cache.remove_entry(&place)) {
                write(self.write_back, place, &line, memory);
            }
        }
        let line = cache.entry(first).or_insert_with(|| {
            let mut words = [0; LINE_WORDS];
            words.copy_from_slice(words_of(first, memory));
            Line {
                words,
                dirty: [false; LINE_WORDS],
            }
        });
        line.dirty[word] |= dirty;
        &mut line.words[word]
    }

    /// Writes back the line of `place` and drops the copy.
    pub(super) fn flush(&mut self, node: u32, place: Place, memory: &mut Nodes) {
        let (first, _) = line_of(place);
        if let Some(line) = self.nodes[node as usize].remove(&first) {
            write(self.write_back, first, &line, memory);
        }
    }

    /// Writes back all lines, and drops the copies if told.
    pub(super) fn write_back(&mut self, node: u32, drop: bool, memory: &mut Nodes) {
        let cache = &mut self.nodes[node as usize];
        for (&first, line) in cache.iter_mut() {
            write(self.write_back, first, line, memory);
            line.dirty = [false; LINE_WORDS];
        }
        if drop {
            cache.clear();
        }
    }
}

/// The place of the line of `place`, and which of its words it is.
pub(super) fn line_of(place: Place) -> (Place, usize) {
    let within = place.offset % LINE_BYTES;
    let first = Place {
        offset: place.offset - within,
        ..place
    };
    (first, within as usize / 8)
}

fn words_of(first: Place, memory: &mut Nodes) -> &mut [u64] {
    &mut memory[first.node as usize][first.offset as usize / 8..][..LINE_WORDS]
}

fn write(write_back: WriteBack, first: Place, line: &Line, memory: &mut Nodes) {
    let whole = write_back == WriteBack::Line && line.dirty.contains(&true);
    let words = words_of(first, memory).iter_mut().zip(&line.words);
    for ((word, &copy), &dirty) in words.zip(&line.dirty) {
        if whole || dirty {
            *word = copy;
        }
    }
}
