//! A core's accesses to lines: its port, its fill buffers, the levels of its caches, its
//! prefetcher.

use super::chip::{Chip, CorePosition, Stream};
use super::lines::Spot;
use crate::parts::coherence::{Event, Next, Row, State, Table};
use crate::time::Time;

/// Lines of a page, beyond which the prefetcher does not run.
const PAGE_LINES: u64 = 64;

/// Pages whose loads a prefetcher follows.
const STREAMS: usize = 16;

/// An access to a line, or a part of it, that a core wants to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    pub(super) line: u64,
    pub(super) event: Event,
    /// The number of its words, which decides for how long the port is busy.
    pub(super) words: u32,
}

/// An access that has been made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// The time at which the line is there.
    pub(super) there: Time,
    /// The time from which the core can make the next.
    pub(super) next: Time,
}

/// The level at which a line is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    First,
    Second,
    /// Beyond the core's caches: the line has to be asked for, or the right to write it.
    Beyond,
}

impl Wants {
    /// One word of `line`, or a part of it.
    pub(super) fn word(line: u64, event: Event) -> Self {
        Self {
            line,
            event,
            words: 1,
        }
    }
}

impl Chip {
    /// A core loads from a line or stores to it at `now`.
    ///
    /// # Errors
    /// The time from which it can, if that is later: when its port is free, and places for a line
    /// that it has to wait for.
    pub(super) fn tries(&mut self, core: u32, wants: Wants, now: Time) -> Result<Made, Time> {
        let at = self.place(core);
        let (spot, found) = self.finds(at, wants);
        let begin = self.can_begin(at, found, now);
        match begin > now {
            true => Err(begin),
            false => Ok(self.makes(at, wants, (spot, found), begin)),
        }
    }

    /// The same as soon as it can from `now` on.
    pub(super) fn access(&mut self, core: u32, wants: Wants, now: Time) -> Made {
        let at = self.place(core);
        let (spot, found) = self.finds(at, wants);
        let begin = self.can_begin(at, found, now);
        self.makes(at, wants, (spot, found), begin)
    }

    fn can_begin(&self, at: CorePosition, found: Found, now: Time) -> Time {
        let core = &self.cores[at.core];
        let port = now.max(core.port);
        match found {
            Found::First => port,
            Found::Second => port.max(core.buffers.free_from()),
            Found::Beyond => {
                let queue = self.modules[at.module].queue.free_from();
                port.max(core.buffers.free_from()).max(queue)
            }
        }
    }

    fn finds(&mut self, at: CorePosition, wants: Wants) -> (Spot, Found) {
        let spot = self.lines.spot(wants.line);
        let state = self.lines.inner(spot, at.socket)[usize::from(at.cache)];
        let row = self.within.row(state, wants.event);
        let asks = row.is_none_or(|row| row.asks);
        let found = match asks {
            true => Found::Beyond,
            false if self.cores[at.core].first.note(wants.line).is_some() => Found::First,
            false => Found::Second,
        };
        (spot, found)
    }

    fn makes(
        &mut self,
        at: CorePosition,
        wants: Wants,
        (spot, found): (Spot, Found),
        begin: Time,
    ) -> Made {
        let Wants { line, event, words } = wants;
        let port = self.spec.port;
        let whole = match event {
            Event::Store => port.store,
            _ => port.load,
        };
        let mut busy = Time::from_ps(whole.as_ps() * u64::from(words) / 8);
        let there = match found {
            Found::First => {
                self.cores[at.core].first.touch(line);
                begin
            }
            Found::Second => {
                self.modules[at.module].second.touch(line);
                let there = (begin + self.spec.hits_second).max(self.lines.line(spot).ready);
                self.cores[at.core].buffers.take(there);
                busy += self.fills_first(at, line) + self.missing(event);
                there
            }
            Found::Beyond => {
                let has_copy =
                    self.lines.inner(spot, at.socket)[usize::from(at.cache)] != State::Invalid;
                let there = self.transaction(at, (line, spot), event, begin);
                self.cores[at.core].buffers.take(there);
                self.modules[at.module].queue.take(there);
                if !has_copy {
                    busy += self.fills_second(at, line, begin);
                }
                if !self.cores[at.core].first.touch(line) {
                    busy += self.fills_first(at, line) + self.missing(event);
                }
                there
            }
        };
        if event == Event::Store {
            self.stores_here(at, (line, spot));
        }
        if event == Event::Load && found != Found::First {
            busy += self.runs_ahead(at, line, begin);
        }
        let next = begin + busy;
        self.cores[at.core].port = next;
        Made { there, next }
    }

    /// A core stores to a line past the caches at `now`. The buffer that gathers the line is a fill
    /// buffer.
    ///
    /// # Errors
    /// As [`Self::tries`].
    pub(super) fn tries_past(&mut self, core: u32, wants: Wants, now: Time) -> Result<Made, Time> {
        let at = self.place(core);
        let begin = self.can_begin(at, Found::Second, now);
        if begin > now {
            return Err(begin);
        }
        let there = self.stores_past(at, wants.line, begin);
        self.cores[at.core].buffers.take(there);
        let store = self.spec.port.store.as_ps() * u64::from(wants.words) / 8;
        let next = begin + Time::from_ps(store);
        self.cores[at.core].port = next;
        Ok(Made { there, next })
    }

    fn missing(&self, event: Event) -> Time {
        match event {
            Event::Load => self.spec.port.miss,
            _ => Time::ZERO,
        }
    }

    /// The copy of a core, which may be written, is.
    fn stores_here(&mut self, at: CorePosition, (line, spot): (u64, Spot)) {
        let (table, states) = (self.within, self.lines.inner(spot, at.socket));
        hits(table, &mut states[usize::from(at.cache)]);
        let (table, states) = (self.between, self.lines.outer(spot));
        hits(table, &mut states[at.socket]);
        self.lines.line(spot).is_stale_in_memory = true;
        self.cores[at.core].first.set_note(line, 1);
        self.drops_beside(at, line);
    }

    /// The prefetcher follows loads that miss the first level: within a page in ascending order it
    /// asks for the next lines, as long as there is room to wait for them. The time for which the
    /// core's port is busy with that.
    fn runs_ahead(&mut self, at: CorePosition, line: u64, now: Time) -> Time {
        let page = line / PAGE_LINES;
        let streams = &mut self.cores[at.core].streams;
        let Some(index) = streams.iter().position(|stream| stream.page == page) else {
            if streams.len() == STREAMS {
                streams.remove(0);
            }
            streams.push(Stream {
                page,
                last: line,
                reached: line,
            });
            return Time::ZERO;
        };
        let Stream { last, reached, .. } = streams[index];
        if line <= last {
            streams[index].last = line;
            return Time::ZERO;
        }
        let end = (line + u64::from(self.spec.ahead)).min((page + 1) * PAGE_LINES - 1);
        let (mut busy, mut reached) = (Time::ZERO, reached.max(line));
        while reached < end && self.modules[at.module].queue.free_from() <= now {
            reached += 1;
            let spot = self.lines.spot(reached);
            if self.lines.inner(spot, at.socket)[usize::from(at.cache)] == State::Invalid {
                let there = self.transaction(at, (reached, spot), Event::Load, now);
                self.modules[at.module].queue.take(there);
                busy += self.fills_second(at, reached, now);
            }
        }
        let stream = &mut self.cores[at.core].streams[index];
        (stream.last, stream.reached) = (line, reached);
        busy
    }
}

/// A copy is stored to that may be.
fn hits(table: &Table, state: &mut State) {
    let row = table.row(*state, Event::Store);
    debug_assert!(
        row.is_some_and(|row| !row.asks),
        "{state:?} may not be written"
    );
    if let Some(Row {
        next: Next::To(next),
        ..
    }) = row
    {
        *state = next;
    }
}
