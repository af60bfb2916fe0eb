//! Misses of a core's private caches: the line comes from another core's, or through the engine; a
//! store makes all other copies in the node go.

use super::{Around, Caches};
use crate::families::sme::cluster::agenda::Event;
use crate::families::sme::cluster::core::{Request, Wants};
use crate::families::sme::cluster::here::Here;
use crate::families::sme::cluster::protocol;
use crate::parts::cache::ahead::line_and_word;
use crate::parts::cache::{Held, View};
use crate::parts::coherence::{self, State};
use crate::time::Time;

/// The result of a request that has taken its place in the order of all accesses to its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The core has the line, as it wants it, and goes on so much later.
    Has(Time),
    /// No core of the node has the line: this fill waits for the slot of this socket.
    Fetches(u16, u8),
    /// The access goes on when something else has happened to the line.
    Waits,
}

/// The answers of the other caches to an event on a line.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// A copy as it was before, if any had one.
    pub(super) copy: Option<Held>,
    /// A bit for each byte that copies now gone had newer than memory.
    pub(super) dirty: u64,
}

impl Caches {
    /// A core on `socket` needs a line that its caches lack, and asks at the node's first socket.
    pub fn miss(&mut self, here: &mut Here, request: Request, socket: u8) {
        self.under_way += 1;
        let Request { core, wants, .. } = request;
        let leaves = here.now + here.constants.latencies.miss();
        let at = leaves + here.constants.to_first_socket(socket);
        here.agenda.tell(|t| t.misses(leaves, at, request));
        here.agenda.push(at, Event::Ordered(core, wants));
    }

    /// A core has the line that it missed.
    pub fn has_ended(&mut self) {
        self.under_way -= 1;
    }

    /// [`Event::Ordered`]: the request takes its place in the order of all that happens to its
    /// line.
    pub fn ordered(&mut self, around: &mut Around<'_>, request: Request) -> Answer {
        let Request { core, wants, .. } = request;
        let (line, _) = line_and_word(self.line, request.address);
        let now = around.here.now;
        around.here.agenda.tell(|t| t.ordered(now, request));
        if self.join_fill(line, core, wants) {
            return Answer::Waits;
        }
        if let Some(until) = self.moves_until(line, now) {
            around.here.agenda.push(until, Event::Ordered(core, wants));
            return Answer::Waits;
        }
        let took = match wants {
            Wants::Load => self.share(around, core, line),
            Wants::Store => self.own(around, core, line),
            Wants::Flush => Some(self.flush_line(around, core, line)),
        };
        match took {
            Some(took) => Answer::Has(took),
            None => self.fetch_line(around, request, line),
        }
    }

    /// Gives `core` a copy of `line`, if any core has one; how long that takes.
    fn share(&mut self, around: &mut Around<'_>, core: u16, line: u64) -> Option<Time> {
        let row = protocol::row(self.state(core, line), coherence::Event::Load);
        if !row.asks {
            // A store of its own has brought it meanwhile.
            return Some(Time::ZERO);
        }
        let told = self.tell(around.here, core, line, coherence::Event::OtherLoads);
        let held = told.copy?;
        let took = self.moves(around, core, line);
        let copy = Held {
            state: row.next.when(false),
            dirty: 0,
            ..held
        };
        self.install(around, core, copy);
        Some(took)
    }

    /// Gives `core` the only copy of `line`, if any core has one; how long that takes.
    fn own(&mut self, around: &mut Around<'_>, core: u16, line: u64) -> Option<Time> {
        let row = protocol::row(self.state(core, line), coherence::Event::Store);
        if !row.asks {
            return Some(Time::ZERO);
        }
        let own = self.held(core, line);
        let told = self.tell(around.here, core, line, coherence::Event::OtherStores);
        let any = own.or(told.copy)?;
        let took = self.moves(around, core, line);
        let copy = Held {
            state: row.next.when(true),
            dirty: own.map_or(0, |own| own.dirty) | told.dirty,
            ..any
        };
        self.install(around, core, copy);
        Some(took)
    }

    /// The first socket tells all caches but that of `core` of an event on `line`, and each
    /// performs the row of its table. The copy that the table lets answer is returned; without one,
    /// any of those that are as memory is, for that is behind the engine.
    pub(super) fn tell(
        &mut self,
        here: &mut Here,
        core: u16,
        line: u64,
        event: coherence::Event,
    ) -> Told {
        let mut told = Told::default();
        for other in 0..self.cores.len() as u16 {
            if other == core {
                continue;
            }
            let Some(ahead) = &mut self.cores[usize::from(other)] else {
                continue;
            };
            let Some(held) = ahead.cache.look(line).map(View::to_held) else {
                continue;
            };
            let row = protocol::row(held.state, event);
            if row.supplies || told.copy.is_none() {
                told.copy = Some(held);
            }
            match row.next.when(false) {
                State::Invalid => {
                    ahead.cache.remove(line);
                    told.dirty |= held.dirty;
                    self.lost(here, other, line);
                }
                next => ahead.cache.set_state(line, next),
            }
        }
        told
    }

    /// `line` sets out for `core`; when all probes have answered.
    fn moves(&mut self, around: &Around<'_>, core: u16, line: u64) -> Time {
        let socket = around.cores[core].socket;
        let took = around.here.constants.latencies.probed_alone(socket);
        self.moving.push((line, around.here.now + took));
        self.traffic.transfers += 1;
        took
    }
}
