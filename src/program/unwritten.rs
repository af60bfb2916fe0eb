//! Words that a program has stored and not written back when it ends, by the names of its arrays.

use std::fmt;

use sme_fft_demo::Array;
use sme_memory::Place;
use sme_sim::machine::Readable;
use sme_sim::observe::words;

/// The most words that are named one by one.
const NAMED: usize = 8;

/// The words of which a cache still holds newer bytes than their homes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotWrittenBack {
    /// Their number.
    pub words: u64,
    /// The first of them, in words.
    first: Vec<String>,
}

impl NotWrittenBack {
    /// Those of `machine`, on which a program with these `arrays` has ended.
    pub fn of(machine: &dyn Readable, arrays: &[(&str, &Array)]) -> Self {
        let name = |place| name(arrays, place);
        let (words, first) = machine.unwritten(NAMED);
        Self {
            words,
            first: first.iter().map(|word| word.named(&name)).collect(),
        }
    }
}

/// The word at `place`: which of an array, if it is one's.
fn name(arrays: &[(&str, &Array)], place: Place) -> String {
    match element(arrays, place) {
        Some(element) => format!("{element}, {},", words::place(place)),
        None => words::place(place),
    }
}

/// The element of one of `arrays` that lies at `place`.
pub(super) fn element(arrays: &[(&str, &Array)], place: Place) -> Option<String> {
    let index = |(name, array): &(&str, &Array)| Some(format!("{name}[{}]", array.index(place)?));
    arrays.iter().find_map(index)
}

impl fmt::Display for NotWrittenBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, verb) = match self.words {
            1 => ("word", "is"),
            _ => ("words", "are"),
        };
        writeln!(
            f,
            "{} {words} {verb} not written back: a cache has newer bytes than the home",
            self.words
        )?;
        for word in &self.first {
            writeln!(f, "  {word}")?;
        }
        match self.words.saturating_sub(self.first.len() as u64) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}
