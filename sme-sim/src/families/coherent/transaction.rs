//! Transactions: what happens to a line, and how long it takes, when a module's caches do not have
//! it or may not write it.
//!
//! The protocol is on two levels, both by the tables of `parts::coherence`. Within a socket the
//! modules are the caches, and an inclusive third level is what they have in common: it has the
//! newest bytes, and knows who may have a copy. An exclusive one is a cache among them. Between
//! sockets each socket is one cache, and memory at the line's home is behind all.

use super::chip::{Chip, CorePosition};
use super::lines::Spot;
use crate::parts::coherence::line::{self, Source};
use crate::parts::coherence::{Event, State};
use crate::time::Time;

impl Chip {
    /// The module of `at` gets `line`, or the right to write it, in a transaction that is asked for
    /// at `now`; when it is over.
    pub(super) fn transaction(
        &mut self,
        at: CorePosition,
        (line, spot): (u64, Spot),
        event: Event,
        now: Time,
    ) -> Time {
        let begin = now.max(self.lines.line(spot).ready);
        let has_copy = self.lines.inner(spot, at.socket)[usize::from(at.cache)] != State::Invalid;
        let end = match event {
            Event::Store => self.gets_ownership(at, (line, spot), begin, has_copy),
            _ => self.gets_copy(at, (line, spot), begin),
        };
        self.fills_third(at.socket, line, begin);
        *self.lines.holders(spot, at.socket) |= 1 << at.cache;
        self.lines.line(spot).ready = end;
        end
    }

    /// A load.
    fn gets_copy(&mut self, at: CorePosition, (line, spot): (u64, Spot), begin: Time) -> Time {
        let behind_third = begin + self.spec.hits_third;
        if self.takes_from_third(at, (line, spot)) {
            return behind_third;
        }
        if self.lines.outer(spot)[at.socket] == State::Invalid {
            let end = self.between_sockets(at, (line, spot), Event::Load, behind_third);
            self.within_socket(at, (line, spot), Event::Load, behind_third);
            return end;
        }
        let asked = self.may_have(at, spot);
        let owner = self.owner(at, spot);
        let is_owner_dirty = owner.is_some_and(|cache| self.state(at, spot, cache).is_dirty());
        let end = match owner {
            Some(owner) if is_owner_dirty => {
                self.snoop(at.socket, owner, (line, true), behind_third)
            }
            // The third level has the line, but the only other that may have a copy could have
            // written it.
            _ if self.spec.is_inclusive => match single(asked) {
                Some(other) => self.snoop(at.socket, other, (line, false), behind_third),
                None => behind_third,
            },
            // Clean copies beside it do not answer.
            _ => self.comes_from_beyond(at, (line, spot), behind_third),
        };
        self.within_socket(at, (line, spot), Event::Load, behind_third);
        end
    }

    /// A store: the module has a copy already, or not.
    fn gets_ownership(
        &mut self,
        at: CorePosition,
        (line, spot): (u64, Spot),
        begin: Time,
        has_copy: bool,
    ) -> Time {
        let behind_third = begin + self.spec.hits_third;
        let has_bytes = has_copy || self.takes_from_third(at, (line, spot));
        let own = self.state(at, spot, at.cache);
        let outer = self.lines.outer(spot)[at.socket];
        // The others are asked when an owned copy has been written back.
        let asks = match own {
            State::Owned => self.owner_writes_back(at, line, behind_third),
            _ => behind_third,
        };
        let asked = self.may_have(at, spot);
        let owner = self.owner(at, spot).filter(|&cache| cache != at.cache);
        let owner = owner.filter(|&cache| self.state(at, spot, cache).is_dirty());
        let here = match owner {
            // The owner's bytes are the same as those that are here already.
            Some(owner) => self.snoop(at.socket, owner, (line, !has_bytes), asks),
            None if asked != 0 => self.takes_away(at, asked, line, asks),
            // Without a third level that knows better the home has to be asked.
            None if !self.spec.is_inclusive && has_bytes => asks + self.spec.snoop.clean,
            None => asks,
        };
        let has_bytes = has_bytes || owner.is_some() || self.spec.is_inclusive;
        let bytes = match has_bytes || outer == State::Invalid {
            true => asks,
            false => self.comes_from_beyond(at, (line, spot), behind_third),
        };
        let is_alone = matches!(outer, State::Modified | State::Exclusive);
        let there = match is_alone {
            true => asks,
            false => self.between_sockets(at, (line, spot), Event::Store, asks),
        };
        let end = here.max(there).max(bytes);
        self.within_socket(at, (line, spot), Event::Store, behind_third);
        self.lines.outer(spot)[at.socket] = State::Modified;
        *self.lines.holders(spot, at.socket) = 0;
        self.lines.line(spot).is_stale_in_memory = true;
        end
    }

    /// The states of the socket's copies change as its table says.
    fn within_socket(
        &mut self,
        at: CorePosition,
        (line, spot): (u64, Spot),
        event: Event,
        behind_third: Time,
    ) {
        let (table, states) = (self.within, self.lines.inner(spot, at.socket));
        let changed = line::access(table, states, at.cache, event);
        let dropped = changed.map_or(0, |effect| effect.dropped);
        // An inclusive third level takes what a module writes back; with an exclusive one memory
        // does.
        let was_written_back = changed.is_ok_and(|effect| effect.written_back.is_some());
        if was_written_back && !self.spec.is_inclusive {
            self.writes_back(spot, line, behind_third);
            self.lines.outer(spot)[at.socket] = State::Exclusive;
        }
        // Alone in its socket it is not alone where others have copies.
        let outer = self.lines.outer(spot)[at.socket];
        let own = &mut self.lines.inner(spot, at.socket)[usize::from(at.cache)];
        if *own == State::Exclusive && !matches!(outer, State::Exclusive | State::Modified) {
            *own = State::Shared;
        }
        self.drops(at.socket, dropped, line);
    }

    /// The socket has no copy, or none that it may write: the others are asked, and the home.
    fn between_sockets(
        &mut self,
        at: CorePosition,
        (line, spot): (u64, Spot),
        event: Event,
        behind_third: Time,
    ) -> Time {
        let told = match event {
            Event::Store => Event::OtherStores,
            _ => Event::OtherLoads,
        };
        let was_stale = self.lines.line(spot).is_stale_in_memory;
        let (table, states) = (self.between, self.lines.outer(spot));
        let held = (0..)
            .zip(states.iter())
            .filter(|(_, state)| **state != State::Invalid);
        let held = held.fold(0_u32, |bits, (socket, _)| bits | 1 << socket);
        let Ok(effect) = line::access(table, states, at.socket as u16, event) else {
            debug_assert!(false, "the table has a row for every access");
            return behind_third;
        };
        // The questions go to all sockets that the home, or its directory, cannot rule out.
        let mut answered = behind_third;
        let others = held & !(1 << at.socket);
        for other in (0..self.sockets.len()).filter(|other| others >> other & 1 == 1) {
            let supplies = effect.source == Some(Source::Cache(other as u16));
            let back = self.asks_socket(at, (line, spot), (other, told, supplies), behind_third);
            answered = answered.max(back);
        }
        if effect.written_back.is_some() {
            self.writes_back(spot, line, behind_third);
        }
        match effect.source {
            Some(Source::Memory) => answered.max(self.comes_from_memory(at, line, behind_third)),
            // A line that memory has not got: the home is told, and ends the transaction.
            Some(Source::Cache(_)) if was_stale => answered + self.spec.completion,
            _ => answered,
        }
    }

    /// Another socket hears of a transaction; when its answer is back.
    fn asks_socket(
        &mut self,
        at: CorePosition,
        (line, spot): (u64, Spot),
        (other, told, supplies): (usize, Event, bool),
        sent: Time,
    ) -> Time {
        let (table, asked) = (self.within, *self.lines.holders(spot, other));
        let states = self.lines.inner(spot, other);
        let dirty = newer(states);
        let changed = line::tell(table, states, None, told);
        let dropped = changed.map_or(0, |effect| effect.dropped);
        let there = sent + self.spec.hop;
        let behind_third = match self.spec.is_inclusive {
            true => there + self.spec.hits_third,
            false => there,
        };
        let answered = match dirty {
            Some(owner) => self.snoop(other, owner, (line, supplies), behind_third),
            None if self.spec.is_inclusive => match (told, single(asked)) {
                (_, Some(cache)) => self.snoop(other, cache, (line, false), behind_third),
                (Event::OtherStores, None) if asked != 0 => behind_third + self.spec.snoop.clean,
                _ => behind_third,
            },
            None => behind_third + self.spec.snoop.clean,
        };
        self.drops(other, dropped, line);
        if told == Event::OtherStores {
            self.sockets[other].third.remove(line);
            *self.lines.holders(spot, other) = 0;
        }
        let busy = match supplies {
            true => self.spec.link_line,
            false => Time::ZERO,
        };
        self.sockets[other].links[at.socket].serve(answered, busy) + self.spec.hop
    }

    /// The socket has clean copies of the line, which do not answer: it comes from another socket
    /// that has a newer one, or from memory.
    fn comes_from_beyond(
        &mut self,
        at: CorePosition,
        (line, spot): (u64, Spot),
        behind_third: Time,
    ) -> Time {
        let mut states = self.lines.outer(spot).iter();
        match states.position(|state| state.is_dirty()) {
            Some(owner) if owner != at.socket => {
                let there = behind_third + self.spec.hop + self.spec.snoop.dirty;
                let link = &mut self.sockets[owner].links[at.socket];
                link.serve(there, self.spec.link_line) + self.spec.hop
            }
            _ => self.comes_from_memory(at, line, behind_third),
        }
    }

    /// The line comes from the memory at its home.
    fn comes_from_memory(&mut self, at: CorePosition, line: u64, behind_third: Time) -> Time {
        let home = self.home(line);
        debug_assert!(
            !(self.lines.look(line)).is_some_and(|record| record.is_stale_in_memory),
            "line {line:#x} is read from memory, which has not got its newest bytes"
        );
        let arrives = match home == at.socket {
            true => behind_third,
            false => behind_third + self.spec.hop,
        };
        let read = self.sockets[home]
            .memory
            .serve(arrives, self.spec.memory_line)
            + self.spec.memory;
        match home == at.socket {
            true => read,
            false => {
                self.sockets[home].links[at.socket].serve(read, self.spec.link_line) + self.spec.hop
            }
        }
    }

    /// An owned copy is written back before it is written to.
    fn owner_writes_back(&mut self, at: CorePosition, line: u64, begin: Time) -> Time {
        let away = match self.home(line) == at.socket {
            true => Time::ZERO,
            false => self.spec.hop + self.spec.hop,
        };
        begin + self.spec.snoop.owned + away
    }

    /// A module answers one question after the other; when an access is over that has asked it, and
    /// would otherwise be at `behind_third`.
    fn snoop(
        &mut self,
        socket: usize,
        cache: u16,
        (line, dirty): (u64, bool),
        behind_third: Time,
    ) -> Time {
        let snoop = self.spec.snoop;
        let longer = if dirty { snoop.dirty } else { snoop.clean };
        let Some(module) = self.module(socket, cache) else {
            return behind_third;
        };
        let busy = match dirty {
            true if self.is_in_first(module, line) => snoop.busy_first,
            true => snoop.busy_second,
            false => snoop.busy_clean,
        };
        self.modules[module].snoops.serve(behind_third, busy) + longer
    }

    /// Copies of other modules that are not newer than memory are taken away.
    fn takes_away(&mut self, at: CorePosition, asked: u32, line: u64, begin: Time) -> Time {
        let mut end = begin + self.spec.snoop.clean;
        for cache in (0..32_u16).filter(|cache| asked >> cache & 1 == 1) {
            end = end.max(self.snoop(at.socket, cache, (line, false), begin));
        }
        end
    }

    /// The module gets the line of an exclusive third level, which then has it no longer.
    fn takes_from_third(&mut self, at: CorePosition, (line, spot): (u64, Spot)) -> bool {
        let Some(third) = self.third() else {
            return false;
        };
        let states = self.lines.inner(spot, at.socket);
        let own = states[usize::from(at.cache)];
        if own != State::Invalid || states[usize::from(third)] == State::Invalid {
            return false;
        }
        states[usize::from(at.cache)] =
            std::mem::replace(&mut states[usize::from(third)], State::Invalid);
        self.sockets[at.socket].third.remove(line);
        true
    }

    fn state(&mut self, at: CorePosition, spot: Spot, cache: u16) -> State {
        self.lines.inner(spot, at.socket)[usize::from(cache)]
    }

    /// The other modules of the socket that may have a copy.
    fn may_have(&mut self, at: CorePosition, spot: Spot) -> u32 {
        match self.spec.is_inclusive {
            true => *self.lines.holders(spot, at.socket) & !(1 << at.cache),
            false => {
                let states = (0..).zip(self.lines.inner(spot, at.socket).iter());
                let others =
                    states.filter(|(cache, state)| *cache != at.cache && **state != State::Invalid);
                others.fold(0, |bits, (cache, _)| bits | 1 << cache)
            }
        }
    }

    /// The cache of the socket whose copy is alone, or newer than what lies behind it.
    fn owner(&mut self, at: CorePosition, spot: Spot) -> Option<u16> {
        let mut states = (0..).zip(self.lines.inner(spot, at.socket).iter());
        let owner = states.find(|(_, state)| state.is_dirty() || **state == State::Exclusive);
        owner.map(|(cache, _)| cache)
    }

    /// All copies of the line go, wherever they are, and memory has it (`clflush`); when that is
    /// done.
    pub(super) fn flushes(&mut self, at: CorePosition, line: u64, now: Time) -> Time {
        let end = self.drops_everywhere(at, line, now);
        end + self.spec.flush
    }

    /// The line goes to memory past all caches, which lose their copies; when memory has accepted
    /// it.
    pub(super) fn stores_past(&mut self, at: CorePosition, line: u64, now: Time) -> Time {
        let end = self.drops_everywhere(at, line, now);
        let home = self.home(line);
        let (there, back) = match home == at.socket {
            true => (end, Time::ZERO),
            false => {
                let sent = self.sockets[at.socket].links[home].serve(end, self.spec.link_line);
                (sent + self.spec.hop, self.spec.hop)
            }
        };
        let begins = self.sockets[home]
            .memory
            .serve(there, self.spec.memory_line);
        let spot = self.lines.spot(line);
        let end = begins + self.spec.accept + back;
        self.lines.line(spot).ready = end;
        end
    }

    /// All caches lose their copies, of which memory gets the newest; when that is over.
    pub(super) fn drops_everywhere(&mut self, at: CorePosition, line: u64, now: Time) -> Time {
        let spot = self.lines.spot(line);
        let begin = now.max(self.lines.line(spot).ready);
        let mut end = begin;
        for socket in 0..self.sockets.len() {
            let state = self.lines.outer(spot)[socket];
            if state == State::Invalid {
                continue;
            }
            let there = match socket == at.socket {
                true => begin + self.spec.hits_third,
                false => begin + self.spec.hits_third + self.spec.hop,
            };
            let (table, states) = (self.within, self.lines.inner(spot, socket));
            let dirty = newer(states);
            let changed = line::tell(table, states, None, Event::Flush);
            let dropped = changed.map_or(0, |effect| effect.dropped);
            let answered = match dirty {
                Some(owner) => self.snoop(socket, owner, (line, true), there),
                None if dropped != 0 => there + self.spec.snoop.clean,
                None => there,
            };
            let back = match socket == at.socket {
                true => Time::ZERO,
                false => self.spec.hop,
            };
            end = end.max(answered + back);
            self.drops(socket, dropped, line);
            self.sockets[socket].third.remove(line);
            *self.lines.holders(spot, socket) = 0;
        }
        let changed = line::flush(self.between, self.lines.outer(spot));
        debug_assert!(changed.is_ok());
        if self.lines.line(spot).is_stale_in_memory {
            self.writes_back(spot, line, begin);
        }
        self.lines.line(spot).ready = end;
        end
    }
}

/// The cache whose copy is newer than the bytes behind it.
fn newer(states: &[State]) -> Option<u16> {
    let at = states.iter().position(|state| state.is_dirty())?;
    Some(at as u16)
}

/// The only bit that is set, if it is the only one.
fn single(bits: u32) -> Option<u16> {
    bits.is_power_of_two().then(|| bits.trailing_zeros() as u16)
}
