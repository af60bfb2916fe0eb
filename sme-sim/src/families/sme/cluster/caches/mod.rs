//! The cores' private caches of memory behind the engine: copies that are kept coherent within the
//! node and that no other node invalidates or updates.
//!
//! A hit is performed by the program itself ([`crate::parts::cache::ahead`]). A miss goes, like an
//! access to local memory, past the third level to the node's first socket, where the way to the
//! engine is and where everything that happens to such a line is ordered: the other cores' caches
//! are probed (MOESI, as in [`super::domain`]), and if no core has a copy, the line is fetched
//! through the engine (`fill`). Lines that a full set displaces, and those that a program flushes,
//! go back in posted writes (`write_back`), which leave from the same socket in the same order, so
//! that no fill overtakes the write-back of its line.

mod fill;
mod miss;
mod write_back;

use slab::Slab;

use super::agenda::Event;
use super::constants::Constants;
use super::core::Cores;
use super::here::Here;
use super::way::Way;
use crate::observe::traffic::CacheTraffic;
use crate::parts::cache::ahead::{Ahead, Hits, line_and_word};
use crate::parts::cache::{Held, View};
use crate::parts::coherence::State;
use crate::parts::line::Bytes;
use crate::parts::line_size::LineSize;
use crate::time::Time;
use fill::Fill;
pub use fill::Filled;
pub use miss::Answer;

/// The parts of the node on which the caches work.
pub struct Around<'a> {
    /// The time, the agenda and the records.
    pub here: &'a mut Here,
    /// The cores, for their sockets.
    pub cores: &'a Cores,
    /// The way to the engine.
    pub way: &'a mut Way,
}

/// The private caches of a node's cores, of a node that has ever cached memory behind the engine.
#[derive(Debug)]
pub struct Caches {
    /// Of each core that has ever used its own; lent to its program while that is polled.
    cores: Vec<Option<Box<Ahead>>>,
    fills: Slab<Fill>,
    /// Lines on their way from one core to another, and until when.
    moving: Vec<(u64, Time)>,
    /// Cores that spin on their copy of a line.
    spinners: Vec<(u16, u64)>,
    /// Accesses that have missed and are not done.
    under_way: u32,
    /// Callers of write-backs, how many posted packets have to leave the node before each goes on,
    /// and since when it has waited for that.
    callers: Vec<(u16, u64, Time)>,
    traffic: CacheTraffic,
    line: LineSize,
}

impl Caches {
    /// The empty caches of so many cores, of lines of length `line`.
    pub fn new(cores: usize, line: LineSize) -> Self {
        Self {
            cores: (0..cores).map(|_| None).collect(),
            fills: Slab::new(),
            moving: Vec::new(),
            spinners: Vec::new(),
            under_way: 0,
            callers: Vec::new(),
            traffic: CacheTraffic::default(),
            line,
        }
    }

    /// One core more.
    pub fn grow(&mut self) {
        self.cores.push(None);
    }

    /// The caches of `core` leave for its program.
    #[inline]
    pub fn take(&mut self, core: u16) -> Option<Box<Ahead>> {
        self.cores[usize::from(core)].take()
    }

    /// And come back.
    #[inline]
    pub fn put_back(&mut self, core: u16, ahead: Box<Ahead>) {
        self.cores[usize::from(core)] = Some(ahead);
    }

    /// Returns whether no access is under way.
    pub fn is_quiet(&self) -> bool {
        self.under_way == 0 && self.fills.is_empty() && self.callers.is_empty()
    }

    /// Returns the traffic of the caches.
    pub fn traffic(&self) -> CacheTraffic {
        let mut traffic = self.traffic;
        for ahead in self.cores.iter().flatten() {
            let Hits { first, second } = ahead.hits;
            traffic.hits += first + second;
            traffic.second_level_hits += second;
        }
        traffic
    }

    /// The word of which `address` is a part, in the copy of `core`.
    pub fn copy(&self, core: u16, address: u64) -> Option<u64> {
        let (line, word) = line_and_word(self.line, address);
        Some(self.held(core, line)?.words[word as usize])
    }

    /// The words that cores have written to and not written back: core, address, bytes, and the
    /// word as the core has it.
    pub fn dirty(&self) -> impl Iterator<Item = (u16, u64, u8, u64)> {
        let caches = (0..).zip(&self.cores);
        let lines = caches.flat_map(|(core, ahead)| {
            let cache = ahead.iter().map(|ahead| &ahead.cache);
            let held = cache.flat_map(|cache| cache.lines().filter_map(|line| cache.look(line)));
            let dirty = held.filter(|view| view.dirty != 0);
            dirty.map(move |view| (core, view.to_held()))
        });
        lines.flat_map(move |(core, held)| {
            let words = self.line.words_of(held.line);
            words.filter_map(move |word| {
                let enables = (held.dirty >> (8 * word)) as u8;
                let address = self.line.word_address(held.line, word);
                let value = held.words[usize::from(word)];
                (enables != 0).then_some((core, address, enables, value))
            })
        })
    }

    /// Bytes of them.
    pub fn bytes(&self) -> usize {
        let caches = self.cores.iter().flatten();
        let caches: usize = caches
            .map(|ahead| size_of::<Ahead>() + ahead.cache.bytes())
            .sum();
        let waiting: usize = self.fills.iter().map(|(_, fill)| fill.heap_bytes()).sum();
        size_of::<Self>()
            + self.cores.capacity() * size_of::<Option<Box<Ahead>>>()
            + caches
            + self.fills.capacity() * size_of::<Fill>()
            + waiting
            + self.moving.capacity() * size_of::<(u64, Time)>()
            + self.spinners.capacity() * size_of::<(u16, u64)>()
            + self.callers.capacity() * size_of::<(u16, u64, Time)>()
    }

    fn held(&self, core: u16, line: u64) -> Option<Held> {
        let ahead = self.cores[usize::from(core)].as_ref()?;
        ahead.cache.look(line).map(View::to_held)
    }

    /// The state of the copy of `core`.
    fn state(&self, core: u16, line: u64) -> State {
        let ahead = self.cores[usize::from(core)].as_ref();
        let view = ahead.and_then(|ahead| ahead.cache.look(line));
        view.map_or(State::Invalid, |view| view.state)
    }

    /// Returns whether no core but `core` has a copy of `line`.
    fn is_alone(&self, core: u16, line: u64) -> bool {
        let mut others = (0..self.cores.len() as u16).filter(|&other| other != core);
        others.all(|other| self.state(other, line) == State::Invalid)
    }

    /// The caches of `core`, empty if it has not used them before.
    fn of(&mut self, core: u16, constants: &Constants) -> &mut Ahead {
        self.cores[usize::from(core)].get_or_insert_with(|| Box::new(constants.ahead()))
    }

    /// Until when `line` is on its way from one core to another, if it is.
    fn moves_until(&mut self, line: u64, now: Time) -> Option<Time> {
        self.moving.retain(|&(_, until)| until > now);
        let moving = self.moving.iter().find(|&&(of, _)| of == line);
        moving.map(|&(_, until)| until)
    }

    /// Loads `bytes` at `address` from the caches of `core` itself: the value, and the time for it,
    /// which is the first of `times` in the first level and the second in the second.
    pub fn load(
        &mut self,
        core: u16,
        address: u64,
        bytes: Bytes,
        times: (Time, Time),
    ) -> Option<(u64, Time)> {
        let (line, word) = line_and_word(self.line, address);
        let ahead = self.cores[usize::from(core)].as_mut()?;
        let (value, level) = ahead.cache.load(line, word)?;
        Some((bytes.pick(value), ahead.hits.count(level, times)))
    }

    /// Writes at once if `core` has the line for itself; whether it had.
    pub fn store(&mut self, core: u16, address: u64, bytes: Bytes, value: u64) -> bool {
        let (line, word) = line_and_word(self.line, address);
        let Some(ahead) = &mut self.cores[usize::from(core)] else {
            return false;
        };
        let cache = &mut ahead.cache;
        let stored = cache.store(line, word, bytes.enables, bytes.place(value));
        let Some(level) = stored else {
            return false;
        };
        ahead.hits.count(level, (Time::ZERO, Time::ZERO));
        true
    }

    /// `core` waits until its copy of the line at `address` changes.
    pub fn spin(&mut self, core: u16, address: u64) {
        let (line, _) = line_and_word(self.line, address);
        self.spinners.push((core, line));
    }

    /// `core` waits no longer for its copy of the line at `address` to change; whether it did.
    pub fn stops_spinning(&mut self, core: u16, address: u64) -> bool {
        let (line, _) = line_and_word(self.line, address);
        let place = self.spinners.iter().position(|&one| one == (core, line));
        place
            .map(|place| self.spinners.swap_remove(place))
            .is_some()
    }

    /// `core` gets a copy of `line`; what it displaces is written back.
    fn install(&mut self, around: &mut Around<'_>, core: u16, held: Held) {
        let cache = &mut self.of(core, &around.here.constants).cache;
        let Held {
            line,
            state,
            words,
            dirty,
        } = held;
        if let Some(displaced) = cache.insert(line, state, words, dirty) {
            self.displaced(around, core, &displaced);
        }
    }

    /// `core` has lost its copy of `line`: if it spins on it, it looks again.
    fn lost(&mut self, here: &mut Here, core: u16, line: u64) {
        let Some(place) = self.spinners.iter().position(|&s| s == (core, line)) else {
            return;
        };
        self.spinners.swap_remove(place);
        let at = here.now + here.constants.latencies.probe();
        here.agenda.tell(|t| t.copy_lost(at, core));
        here.agenda.push(at, Event::Begin(core));
    }
}
