//! The state that all cores share: their caches, the records of lines, and the parts that accesses
//! queue for. A transaction changes all states at once, when it is asked for, and says when it is
//! over; one on a line that another transaction is busy with begins behind that.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lines::{Lines, Spot};
use super::queues::{Places, Server};
use super::spec::CoherentSpec;
use crate::observe::last_writes::LastWrites;
use crate::parts::cache::line_set::LineSet;
use crate::parts::coherence::{Event, State, Table};
use crate::time::Time;

/// A core's side of its caches.
#[derive(Debug)]
pub(super) struct Core {
    /// The lines of the first level; a note of 1 says that it was stored to there.
    pub(super) first: LineSet,
    /// The time from which its port is free.
    pub(super) port: Time,
    /// Its fill buffers.
    pub(super) buffers: Places,
    /// The time at which all its stores are performed.
    pub(super) stored: Time,
    /// The pages that it loads from in ascending order.
    pub(super) streams: Vec<Stream>,
}

/// Ascending loads from one page of 4 KiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) page: u64,
    /// The line that was loaded last, and the one that was asked for ahead of it.
    pub(super) last: u64,
    pub(super) reached: u64,
}

/// The second-level cache of neighbouring cores.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) second: LineSet,
    /// Lines that it waits for.
    pub(super) queue: Places,
    /// The queue of others' questions.
    pub(super) snoops: Server,
}

/// The part of a socket that its cores share.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) third: LineSet,
    pub(super) memory: Server,
    /// The ways to the other sockets.
    pub(super) links: Vec<Server>,
}

/// A thread that spins: its node and number.
pub(super) type Spinner = (u32, u16);

/// All cores, caches and memories of the machine.
#[derive(Debug)]
pub(super) struct Chip {
    pub(super) spec: Arc<CoherentSpec>,
    pub(super) lines: Lines,
    pub(super) cores: Vec<Core>,
    pub(super) modules: Vec<Module>,
    pub(super) sockets: Vec<Socket>,
    /// The protocols within a socket and between them.
    pub(super) within: &'static Table,
    pub(super) between: &'static Table,
    /// Threads that spin, by the line that they look at.
    pub(super) watchers: FxHashMap<u64, Vec<Spinner>>,
    /// The last writes to a few words of each socket's memory, in the run that explains a deadlock.
    pub(super) last_writes: Vec<Option<Box<LastWrites>>>,
}

/// Addresses of a core's own memory, which no other core reaches.
pub(super) const PRIVATE: u64 = 1 << 60;

/// Addresses of the words that stand for test-and-set registers: a line each, above the memory of
/// all sockets.
pub(super) const REGISTERS: u64 = 1 << 59;

/// Bytes of a core's own memory.
pub(super) const PRIVATE_BYTES: u64 = 1 << 36;

impl Chip {
    /// All caches are empty, all memory is zero.
    pub(super) fn new(spec: Arc<CoherentSpec>) -> Self {
        let (sockets, cores) = (spec.sockets as usize, (spec.sockets * spec.cores) as usize);
        let in_socket = (spec.cores / spec.module) as usize;
        let core = || Core {
            first: LineSet::new(spec.first),
            port: Time::ZERO,
            buffers: Places::new(spec.fill_buffers),
            stored: Time::ZERO,
            streams: Vec::new(),
        };
        let module = || Module {
            second: LineSet::new(spec.second),
            queue: Places::new(spec.queue),
            snoops: Server::default(),
        };
        let socket = || Socket {
            third: LineSet::new(spec.third),
            memory: Server::default(),
            links: vec![Server::default(); sockets],
        };
        // An exclusive third level has copies of its own.
        let caches = in_socket + usize::from(!spec.is_inclusive);
        Self {
            lines: Lines::new(sockets, caches),
            cores: (0..cores).map(|_| core()).collect(),
            modules: (0..sockets * in_socket).map(|_| module()).collect(),
            sockets: (0..sockets).map(|_| socket()).collect(),
            within: spec.within().table(),
            between: spec.protocol.table(),
            watchers: FxHashMap::default(),
            last_writes: (0..sockets).map(|_| None).collect(),
            spec,
        }
    }

    /// The socket whose memory holds `line`.
    pub(super) fn home(&self, line: u64) -> usize {
        let address = self.spec.first.line().address(line);
        let socket = match address & PRIVATE {
            0 => (address & !REGISTERS) / self.spec.shared_bytes,
            _ => (address & !PRIVATE) / PRIVATE_BYTES / u64::from(self.spec.cores),
        };
        socket as usize % self.sockets.len()
    }

    /// The module of a core, counted over the whole machine, and its socket.
    pub(super) fn place(&self, core: u32) -> CorePosition {
        let (cores, module) = (self.spec.cores, self.spec.module);
        CorePosition {
            core: core as usize,
            module: (core / module) as usize,
            cache: (core % cores / module) as u16,
            socket: (core / cores) as usize,
        }
    }

    /// The number over the whole machine of a cache of a socket, if that is a module.
    pub(super) fn module(&self, socket: usize, cache: u16) -> Option<usize> {
        let in_socket = (self.spec.cores / self.spec.module) as usize;
        (usize::from(cache) < in_socket).then(|| socket * in_socket + usize::from(cache))
    }

    /// The third level among the caches of a socket, if it has copies of its own.
    pub(super) fn third(&self) -> Option<u16> {
        let in_socket = (self.spec.cores / self.spec.module) as u16;
        (!self.spec.is_inclusive).then_some(in_socket)
    }

    /// The cores of a module.
    fn cores_of(&self, module: usize) -> std::ops::Range<usize> {
        let cores = self.spec.module as usize;
        module * cores..(module + 1) * cores
    }

    /// Returns whether a core of `module` has `line` in its first level.
    pub(super) fn is_in_first(&self, module: usize, line: u64) -> bool {
        let mut cores = self.cores_of(module);
        cores.any(|core| self.cores[core].first.note(line).is_some())
    }

    /// The first levels of other cores of its module lose `line`, which `core` has stored to.
    pub(super) fn drops_beside(&mut self, at: CorePosition, line: u64) {
        for core in self.cores_of(at.module) {
            if core != at.core {
                self.cores[core].first.remove(line);
            }
        }
    }

    /// The caches of a socket named by bits of `caches` lose `line`, whose states say so already.
    pub(super) fn drops(&mut self, socket: usize, caches: u64, line: u64) {
        for cache in (0..64_u16).filter(|cache| caches >> cache & 1 == 1) {
            match self.module(socket, cache) {
                Some(module) => {
                    self.modules[module].second.remove(line);
                    for core in self.cores_of(module) {
                        self.cores[core].first.remove(line);
                    }
                }
                None => drop(self.sockets[socket].third.remove(line)),
            }
        }
    }

    /// Memory gets the line at `spot`.
    pub(super) fn writes_back(&mut self, spot: Spot, line: u64, at: Time) {
        self.lines.line(spot).is_stale_in_memory = false;
        let home = self.home(line);
        self.sockets[home].memory.serve(at, self.spec.memory_line);
    }

    /// `core` has `line` in its first level from then on; the time for which its port is busy with
    /// that.
    pub(super) fn fills_first(&mut self, at: CorePosition, line: u64) -> Time {
        let fill = self.spec.port.fill;
        match self.cores[at.core].first.insert(line, 0) {
            Some((_, 1)) => fill + fill,
            _ => fill,
        }
    }

    /// Its module has `line` in its second level from then on; the time for which the port of the
    /// core is busy with that.
    pub(super) fn fills_second(&mut self, at: CorePosition, line: u64, now: Time) -> Time {
        let fill = self.spec.port.fill;
        let Some((victim, _)) = self.modules[at.module].second.insert(line, 0) else {
            return fill;
        };
        for core in self.cores_of(at.module) {
            self.cores[core].first.remove(victim);
        }
        let spot = self.lines.spot(victim);
        let states = self.lines.inner(spot, at.socket);
        let state = states[usize::from(at.cache)];
        let is_dirty = state.is_dirty();
        if let Some(third) = self.third() {
            self.moves_out(at, (victim, spot), third, now);
        } else {
            let row = self.within.row(state, Event::Evict);
            self.lines.inner(spot, at.socket)[usize::from(at.cache)] = State::Invalid;
            if row.is_some_and(|row| row.writes_back) {
                // The third level has the bytes, and knows that the module has not.
                *self.lines.holders(spot, at.socket) &= !(1 << at.cache);
            }
        }
        match is_dirty {
            true => fill + fill,
            false => fill,
        }
    }

    /// The third level takes what the second had no room for.
    fn moves_out(&mut self, at: CorePosition, (victim, spot): (u64, Spot), third: u16, now: Time) {
        let states = self.lines.inner(spot, at.socket);
        let state = std::mem::replace(&mut states[usize::from(at.cache)], State::Invalid);
        let held = states[usize::from(third)];
        if held == State::Invalid || state.is_dirty() {
            states[usize::from(third)] = state;
        }
        if held == State::Invalid
            && let Some((oldest, _)) = self.sockets[at.socket].third.insert(victim, 0)
        {
            self.leaves_third(at.socket, oldest, now);
        }
    }

    /// The third level of a socket has `line` from then on, if it holds all that the others hold.
    pub(super) fn fills_third(&mut self, socket: usize, line: u64, now: Time) {
        if self.spec.is_inclusive
            && !self.sockets[socket].third.touch(line)
            && let Some((oldest, _)) = self.sockets[socket].third.insert(line, 0)
        {
            self.leaves_third(socket, oldest, now);
        }
    }

    /// The third level of a socket has lost `line` to another. If it holds all that the others
    /// hold, they lose it as well.
    fn leaves_third(&mut self, socket: usize, line: u64, now: Time) {
        let spot = self.lines.spot(line);
        let third = self.third();
        let states = self.lines.inner(spot, socket);
        let mut dropped = 0;
        let mut goes = true;
        match third {
            None => {
                for (cache, state) in (0..).zip(states.iter_mut()) {
                    let had = std::mem::replace(state, State::Invalid);
                    dropped |= u64::from(had != State::Invalid) << cache;
                }
            }
            Some(third) => {
                states[usize::from(third)] = State::Invalid;
                goes = states.iter().all(|&state| state == State::Invalid);
            }
        }
        self.drops(socket, dropped, line);
        let state = self.lines.outer(spot)[socket];
        let still_owned = self
            .lines
            .inner(spot, socket)
            .iter()
            .any(|state| state.is_dirty());
        if state.is_dirty() && !still_owned {
            self.writes_back(spot, line, now);
        }
        let outer = self.lines.outer(spot);
        match goes {
            true => {
                outer[socket] = State::Invalid;
                *self.lines.holders(spot, socket) = 0;
            }
            // Memory has it again, and some modules have clean copies.
            false if state.is_dirty() && !still_owned => outer[socket] = State::Shared,
            false => {}
        }
    }

    /// The lines that caches of a socket hold.
    pub(super) fn lines_of(&self, socket: usize) -> BTreeSet<u64> {
        let in_socket = self.modules.len() / self.sockets.len();
        let modules = &self.modules[socket * in_socket..(socket + 1) * in_socket];
        let seconds = modules.iter().flat_map(|module| module.second.lines());
        seconds.chain(self.sockets[socket].third.lines()).collect()
    }

    /// Bytes of simulator state.
    pub(super) fn bytes(&self) -> usize {
        let firsts: usize = self.cores.iter().map(|core| core.first.heap_bytes()).sum();
        let seconds: usize = self
            .modules
            .iter()
            .map(|module| module.second.heap_bytes())
            .sum();
        let thirds: usize = self
            .sockets
            .iter()
            .map(|socket| socket.third.heap_bytes())
            .sum();
        self.lines.heap_bytes() + firsts + seconds + thirds
    }
}

/// The position of a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct CorePosition {
    /// Its number over the whole machine.
    pub(super) core: usize,
    /// The number of its module.
    pub(super) module: usize,
    /// The number of its module's cache among those of its socket.
    pub(super) cache: u16,
    pub(super) socket: usize,
}
