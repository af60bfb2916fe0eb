//! The leader of a node, its thread 0: what it asks for is told by the algorithm.

use sme_memory::{FlagRow, Leader, Place, Route, Step, Until};

use super::event::Event;
use super::rest::{Stage, Waiting};
use super::run::{Leaves, Run};
use crate::families::sme::address::AddressSpace;
use crate::families::sme::engine::HtPacket;

/// With so many flags in a row, or more, a run is worth keeping on its way, when its leader has
/// seen half of them.
const LONG_ROW: u32 = 16;

/// The leader's number.
const LEADER: u16 = 0;

/// A store that has not left the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    place: Place,
    value: u8,
    /// The thread, as the machine's traces name it.
    origin: u32,
}

impl<L: Leader> Run<'_, L> {
    /// The leader's program goes on until it asks for something that takes time.
    pub(super) fn leader_goes_on(&mut self) {
        self.first.waiting = Waiting::Nothing;
        loop {
            match self.first.stage {
                Stage::Start => {
                    if let Some(skew) = &self.plan.skew {
                        self.first.stage = Stage::Late;
                        let late = skew(self.node, 0, self.first.episode);
                        return self.goes_on(LEADER, late.as_ps());
                    }
                    self.first.stage = Stage::Late;
                }
                Stage::Late => {
                    self.arrives(self.first.episode);
                    self.first.stage = Stage::Inside;
                }
                Stage::Inside => {
                    let (state, answer) = (&mut self.first.state, self.first.answer);
                    let step = self.plan.leader.next(self.node, state, answer);
                    if step != Step::Leave {
                        self.first.step = step;
                        return self.begin_step();
                    }
                    self.departs(self.first.episode);
                    // The warm-up is over.
                    self.first.counted = true;
                    if self.first.episode < self.plan.last_episode {
                        self.first.episode += 1;
                        self.first.stage = Stage::Start;
                    } else {
                        self.first.stage = Stage::Ended;
                        self.work.unfinished -= 1;
                    }
                }
                Stage::Ended => return,
            }
        }
    }

    fn begin_step(&mut self) {
        let form = &self.plan.form;
        if form.asks_followers(self.node, self.first.step) {
            self.wake();
        }
        match self.first.step {
            Step::Read(offset) | Step::Wait(offset, _) => self.load(form.line(offset)),
            Step::WaitAll(..) => {
                self.first.passed = 0;
                self.wait_for_rest(None);
            }
            Step::Set(..) => self.store(),
            Step::Leave => {}
        }
    }

    /// The leader goes on `after` from now and is told `answer`.
    fn leader_finishes(&mut self, answer: u8, after: u64) {
        self.first.answer = answer;
        self.first.waiting = Waiting::Nothing;
        self.goes_on(LEADER, after);
    }

    /// The newest value that a buffered store holds of this line of one's own.
    fn forwarded(&self, line: u16) -> Option<u8> {
        if self.stores.is_empty() {
            return None;
        }
        let place = Place {
            node: self.node,
            offset: self.plan.form.offset(line),
        };
        let newest = self.stores.iter().rev().find(|store| store.place == place);
        newest.map(|store| store.value)
    }

    /// Returns the value in the leader's copy of a line.
    fn in_cache(&self, line: u16) -> Option<u8> {
        if line == self.plan.form.phase {
            self.work.phase_in_cache(LEADER)
        } else {
            self.work.flag_in_cache(line)
        }
    }

    /// Returns whether the leader has asked for a line.
    fn fetches(&self, line: u16) -> bool {
        if line == self.plan.form.phase {
            self.work.fetches_phase(LEADER)
        } else {
            self.work.fetches_flag(line)
        }
    }

    fn fetch(&mut self, line: u16) {
        self.first.waiting = Waiting::Cache;
        if line == self.plan.form.phase {
            self.work.fetch_phase(&self.plan.form, LEADER);
        } else {
            self.work.fetch_flag(&self.plan.form, line);
        }
    }

    fn spin(&mut self, line: u16) {
        self.first.waiting = Waiting::Cache;
        if line == self.plan.form.phase {
            self.work.spin_on_phase(LEADER);
        } else {
            self.work.spin_on_flag(line);
        }
    }

    fn load(&mut self, line: u16) {
        if let Some(value) = self.forwarded(line) {
            return self.loaded(line, value);
        }
        if self.fetches(line) {
            self.first.waiting = Waiting::Cache;
        } else if let Some(value) = self.in_cache(line) {
            self.loaded(line, value);
        } else {
            self.fetch(line);
        }
    }

    /// A load has hit.
    fn loaded(&mut self, line: u16, value: u8) {
        match self.first.step {
            Step::Wait(_, until) if !until.holds(value) => self.spin(line),
            _ => self.leader_finishes(value, self.plan.form.hit),
        }
    }

    /// Looks at the flags of a [`Step::WaitAll`] that have not been seen; `arrived` is what a fetch
    /// has just brought of a line that may already be gone again.
    fn wait_for_rest(&mut self, arrived: Option<(u16, u8)>) {
        let Step::WaitAll(row, until) = self.first.step else {
            return;
        };
        let form = &self.plan.form;
        let mut looked = 0;
        while self.first.passed < row.count {
            let line = self.line_of(row, self.first.passed);
            let held = self.in_cache(line);
            let readable = held.filter(|_| !self.fetches(line));
            let just_arrived = arrived.filter(|&(of, _)| of == line);
            let value = self
                .forwarded(line)
                .or(readable)
                .or(just_arrived.map(|(_, value)| value));
            match value {
                Some(value) if until.holds(value) => {
                    self.first.passed += 1;
                    looked += 1;
                    self.is_far |= row.count >= LONG_ROW && self.first.passed > row.count / 2;
                }
                Some(_) if held.is_some() => return self.spin(line),
                _ => return self.fetch_ahead(row),
            }
        }
        self.leader_finishes(0, form.l1 * looked + form.operation);
    }

    fn line_of(&self, row: FlagRow, index: u32) -> u16 {
        self.plan
            .form
            .line(row.first + u64::from(index) * u64::from(row.stride))
    }

    /// Fetches the lines of flags not yet seen that are neither there nor on their way.
    fn fetch_ahead(&mut self, row: FlagRow) {
        self.first.waiting = Waiting::Cache;
        let until = (self.first.passed + self.plan.form.misses).min(row.count);
        let mut index = self.first.passed;
        if u64::from(row.stride) == self.plan.form.line.bytes() {
            // Eight at a time, those of followers among themselves.
            while index + 8 <= until
                && let lines = self.line_of(row, index)
                && let Some(mut lacking) = self.work.lacking(&self.plan.form, lines)
            {
                while lacking != 0 {
                    self.fetch(lines + (lacking.trailing_zeros() / 8) as u16);
                    lacking &= lacking - 1;
                }
                index += 8;
            }
        }
        for index in index..until {
            let line = self.line_of(row, index);
            if !self.fetches(line) && self.in_cache(line).is_none() {
                self.fetch(line);
            }
        }
    }

    /// A fetch of the leader's has brought `value`.
    pub(super) fn leader_has(&mut self, line: u16, value: u8) {
        if self.first.waiting != Waiting::Cache {
            return; // fetched ahead for a wait that has ended meanwhile
        }
        let (awaited, until) = match self.first.step {
            Step::WaitAll(..) => return self.wait_for_rest(Some((line, value))),
            Step::Read(offset) => (offset, None),
            Step::Wait(offset, until) => (offset, Some(until)),
            Step::Set(..) | Step::Leave => return,
        };
        if self.plan.form.line(awaited) != line {
            return; // fetched ahead for an earlier wait
        }
        let held = self.in_cache(line);
        let seen = held.unwrap_or(value);
        if until.is_none_or(|until: Until| until.holds(seen)) {
            self.leader_finishes(seen, self.plan.form.operation);
        } else if held.is_some() {
            self.spin(line);
        } else {
            self.fetch(line);
        }
    }

    /// Puts a store into the leader's buffer, or waits for a place there.
    fn store(&mut self) {
        let Step::Set(place, value) = self.first.step else {
            return;
        };
        if self.stores.len() >= self.plan.form.store_buffer {
            self.first.waiting = Waiting::StoreBuffer;
            return;
        }
        let counted = self.first.counted;
        let origin = self.plan.constants.trace(self.node, LEADER, counted);
        self.stores.push_back(Store {
            place,
            value,
            origin,
        });
        self.leader_finishes(0, self.plan.form.operation);
        self.drain();
    }

    /// Lets the leader's stores leave as far as they can now; it goes on if it waited for a place
    /// among them.
    pub(super) fn drain(&mut self) {
        self.let_leave();
        let is_full = self.stores.len() >= self.plan.form.store_buffer;
        if self.first.waiting == Waiting::StoreBuffer && !is_full {
            self.store();
        }
    }

    /// The leader's stores, the oldest first, leave until one has to wait.
    fn let_leave(&mut self) {
        while !self.store_under_way {
            let Some(&store) = self.stores.front() else {
                return;
            };
            if store.place.node == self.node {
                let line = self.plan.form.line(store.place.offset);
                let form = &self.plan.form;
                if !self
                    .work
                    .set_by_leader(form, line, store.value, store.origin)
                {
                    self.store_under_way = true;
                    return;
                }
                self.stores.pop_front();
                continue;
            }
            if self.first.gap_until > self.work.now {
                if !std::mem::replace(&mut self.first.leaves_then, true) {
                    self.work.push_at(self.first.gap_until, Event::Drain);
                }
                return;
            }
            self.stores.pop_front();
            self.post(store);
            self.first.gap_until = self.work.now + self.plan.form.store_gap;
            self.first.leaves_then = false;
        }
    }

    /// The leader has got the line for its oldest store, and has written.
    pub(super) fn leader_has_stored(&mut self) {
        self.store_under_way = false;
        self.stores.pop_front();
        self.drain();
    }

    /// A store to another node leaves for the host link.
    fn post(&mut self, store: Store) {
        let constants = &self.plan.constants;
        self.counts.posted += 1;
        self.counts.remote_stores += u64::from(constants.counts(store.origin));
        let address = constants
            .map
            .address(self.node, store.place, Route::Nearest);
        let packet = HtPacket::Write {
            address,
            data: u64::from(store.value),
            enables: 1,
            coherent: constants.spec.uncached.coherent_stores,
            trace: store.origin,
        };
        let at = self.work.now + self.plan.form.to_link;
        self.leaves.push((at, Leaves::Packet(packet)));
    }
}
