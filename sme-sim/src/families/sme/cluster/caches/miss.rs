//! What a core's private caches cannot do alone: the line comes from another core's, or through the
//! engine; a store makes all other copies in the node go.

use crate::families::sme::cluster::agenda::Event;
use crate::families::sme::cluster::core::Waiting;
use crate::families::sme::cluster::node::Node;
use crate::parts::cache::State;
use crate::parts::cache::ahead::line_and_word;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

/// What a core wants a line for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// To perform its thread's load.
    Load,
    /// To perform its oldest buffered store.
    Store,
    /// To flush it.
    Flush,
}

impl Node {
    /// A load of memory that is cached.
    pub(in crate::families::sme) fn load_cached(&mut self, core: u16, address: u64, bytes: Bytes) {
        if let Some((value, took)) = self.cached(core, address, bytes) {
            self.loaded(core, address, value, took);
            return;
        }
        self.cores[usize::from(core)].waiting = Waiting::Cache;
        self.miss(core, Wants::Load);
    }

    /// `core` cannot do alone what it wants, and asks at the node's first socket.
    pub(in crate::families::sme) fn miss(&mut self, core: u16, wants: Wants) {
        self.caches().under_way += 1;
        let at = self.now + self.constants.latencies.miss() + self.way_to_first_socket(core);
        self.agenda.push(at, Event::Ordered(core, wants));
    }

    /// [`Event::Ordered`]: what `core` wants takes its place in the order of all that happens to the
    /// line.
    pub(in crate::families::sme) fn ordered(&mut self, core: u16, wants: Wants) {
        let Some((address, _)) = self.wanted(core, wants) else {
            return;
        };
        let (line, _) = line_and_word(self.constants.map.line, address);
        let now = self.now;
        let caches = self.caches();
        if caches.join_fill(line, core, wants) {
            return;
        }
        if let Some(until) = caches.moves_until(line, now) {
            self.agenda.push(until, Event::Ordered(core, wants));
            return;
        }
        match wants {
            Wants::Load => self.share(core, line),
            Wants::Store => self.own(core, line),
            Wants::Flush => self.flush_line(core, line),
        }
    }

    /// The bytes that `core` wants a line for.
    fn wanted(&self, core: u16, wants: Wants) -> Option<(u64, Bytes)> {
        match wants {
            Wants::Load => {
                let (address, bytes, _) = self.awaited(core)?;
                Some((address, bytes))
            }
            Wants::Store => {
                let store = self.stores.oldest(core)?;
                Some((store.address, store.bytes))
            }
            Wants::Flush => match self.cores[usize::from(core)].operation {
                Operation::Flush(word) => Some((word.0, Bytes::word(word.0))),
                _ => None,
            },
        }
    }

    fn share(&mut self, core: u16, line: u64) {
        let caches = self.caches();
        if caches.held(core, line).is_some() {
            // A store of its own has brought it meanwhile.
            return self.has_line(core, Wants::Load, Time::ZERO);
        }
        let Some((holder, held)) = caches.holder(line, core) else {
            return self.fetch_line(core, line, Wants::Load);
        };
        let left = match held.state {
            State::Modified | State::Owned => State::Owned,
            State::Exclusive | State::Shared => State::Shared,
        };
        if let Some(ahead) = &mut caches.cores[usize::from(holder)] {
            ahead.cache.set_state(line, left);
        }
        let took = self.moves(core, line);
        self.install(core, line, State::Shared, held.words, 0);
        self.has_line(core, Wants::Load, took);
    }

    fn own(&mut self, core: u16, line: u64) {
        let caches = self.caches();
        let own = caches.held(core, line);
        let alone = |state| matches!(state, State::Modified | State::Exclusive);
        if own.is_some_and(|own| alone(own.state)) {
            return self.has_line(core, Wants::Store, Time::ZERO);
        }
        let Some(any) = own.or_else(|| caches.holder(line, core).map(|(_, held)| held)) else {
            return self.fetch_line(core, line, Wants::Store);
        };
        let took = self.moves(core, line);
        let dirty = self.take_from_others(core, line);
        let own = own.map_or(0, |own| own.dirty);
        self.install(core, line, State::Modified, any.words, own | dirty);
        self.has_line(core, Wants::Store, took);
    }

    /// No core but `core` keeps a copy of `line`; which bytes of it they had newer than memory.
    pub(super) fn take_from_others(&mut self, core: u16, line: u64) -> u64 {
        let mut dirty = 0;
        for other in 0..self.cores.len() as u16 {
            if other == core {
                continue;
            }
            let Some(ahead) = &mut self.caches().cores[usize::from(other)] else {
                continue;
            };
            if let Some(held) = ahead.cache.remove(line) {
                dirty |= held.dirty;
                self.lost(other, line);
            }
        }
        dirty
    }

    /// `line` sets out for `core`; when all probes have answered.
    fn moves(&mut self, core: u16, line: u64) -> Time {
        let socket = self.cores[usize::from(core)].socket;
        let took = self.constants.latencies.probed_alone(socket);
        let until = self.now + took;
        let caches = self.caches();
        caches.moving.push((line, until));
        caches.traffic.transfers += 1;
        took
    }

    /// `core` has the line, as it wants it, and goes on `took` from now.
    pub(super) fn has_line(&mut self, core: u16, wants: Wants, took: Time) {
        self.caches().under_way -= 1;
        let Some((address, bytes)) = self.wanted(core, wants) else {
            return;
        };
        match wants {
            Wants::Load => {
                let caches = self.caches();
                let value = bytes.pick(caches.copy(core, address).unwrap_or_default());
                self.loaded(core, address, value, took);
            }
            Wants::Store => {
                if let Some(store) = self.stores.oldest(core) {
                    let written = self.write_if_held_alone(core, address, store.bytes, store.value);
                    debug_assert!(written, "the line was taken for this store");
                }
                self.agenda.push(self.now + took, Event::Stored(core));
            }
            Wants::Flush => self.is_done(core, 0, took + self.constants.operation),
        }
    }

    /// [`Event::Stored`]: the oldest store of `core` is done.
    pub(in crate::families::sme) fn stored(&mut self, core: u16) {
        self.cores[usize::from(core)].store_under_way = false;
        self.stores.pop(core);
        self.drain(core);
    }
}
