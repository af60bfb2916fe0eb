//! A node's cores and memory while things happen to them: one for all nodes that a worker of the
//! host simulates, one after the other.
//!
//! Lines and their transactions as in [`crate::families::sme::cluster::domain`], which says what
//! each step is; here only for lines with one flag that holds 0 or 1, and coherent updates. A line
//! other than the phase's has at most two holders, the follower whose flag it is and the leader, so
//! that it is a byte; the phase's line has a bit for each thread.

mod phase;

pub use phase::Fetched;

use std::collections::VecDeque;

use rand_core::Rng;
use rand_pcg::Pcg32;

use super::checkpoint::UnderWay;
use super::event::{Act, Event, OnFlag, OnPhase, Written};
use super::plan::NodeForm;
use super::rest::Phase;
use super::set::is_only;
use super::timeline::Timeline;
use crate::families::sme::cluster::transaction::NONE;

/// Bits of a line with at most two holders.
pub mod line {
    /// The value in memory.
    pub const MEMORY: u8 = 1;
    /// The value of the copies.
    pub const COPIES: u8 = 1 << 1;
    /// Memory is older.
    pub const DIRTY: u8 = 1 << 2;
    /// The follower whose flag it is has a copy.
    pub const FOLLOWER: u8 = 1 << 3;
    /// The leader has a copy.
    pub const LEADER: u8 = 1 << 4;
    /// Both.
    pub const HOLDERS: u8 = FOLLOWER | LEADER;
    /// The follower owns it.
    pub const OF_FOLLOWER: u8 = 1 << 5;
    /// The leader owns it.
    pub const OF_LEADER: u8 = 1 << 6;
    /// Either.
    pub const OWNED: u8 = OF_FOLLOWER | OF_LEADER;
    /// The leader spins on its copy.
    pub const SPINS: u8 = 1 << 7;
}

/// A follower, or the part of the leader that all threads have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Core {
    /// Its episode.
    pub episode: u32,
    /// The stage of its program: see [`super::following::step`].
    pub step: u8,
    /// The phase it found.
    pub phase: u8,
    /// The answer that it gets when it goes on.
    pub answer: u8,
}

const RELEASE_PENDING: u8 = 1;
const LEADER_FETCHES: u8 = 1 << 1;
/// The follower's write to its flag is on its way to the line's home.
const FOLLOWER_WRITES: u8 = 1 << 2;

/// The node that is being simulated.
#[derive(Debug)]
pub struct Work {
    /// The time of the last event, in picoseconds.
    pub now: u64,
    /// Lines by number: see [`line`].
    pub bits: Vec<u8>,
    /// Until when each line's home is taken, in picoseconds.
    pub free_at: Vec<u64>,
    /// Until when that of any line is.
    pub free_from: u64,
    /// The line of the phase.
    pub phase: Phase,
    /// The threads that hold a copy of it.
    pub holders: Vec<u64>,
    /// The threads that spin on it.
    pub spinners: Vec<u64>,
    /// Threads.
    pub cores: Vec<Core>,
    /// Everything that is drawn.
    pub random: Pcg32,
    /// The last writer of each line to which others than followers write.
    pub writers: Vec<(u16, u32)>,
    /// Threads that have not ended.
    pub unfinished: u32,
    /// Events so far.
    pub events: u64,
    /// The time of the last event that is [counted, not scheduled](Self::count_elided).
    pub elided_until: u64,
    /// Copies of the phase went away before `elided_until`: an elided re-read may have lost its
    /// copy.
    pub is_disturbed: bool,
    /// Writes that the bridge has not taken.
    pub bridge: VecDeque<Written>,
    /// The bridge is at work.
    pub bridge_busy: bool,
    pending: Timeline,
    /// The origins of the writes that the bridge and the leader perform.
    origins: [u32; 2],
    /// Of each line, what waits for its home, a byte each, the newest lowest.
    waiting: Vec<u32>,
    marks: Vec<u8>,
    phase_waiting: Vec<OnPhase>,
    phase_release_pending: bool,
    fetching: Vec<u64>,
    /// Scratch for drawing an order.
    order: Vec<u16>,
    /// By class, the first of those as far away: cores whose requests for the phase arrive
    /// together.
    together: Vec<Vec<u16>>,
}

impl Work {
    /// For nodes of this form.
    pub fn new(form: &NodeForm) -> Self {
        let words = form.threads.div_ceil(64) as usize;
        Self {
            now: 0,
            bits: vec![0; form.lines],
            free_at: vec![0; form.lines],
            free_from: 0,
            phase: Phase::NEW,
            holders: vec![0; words],
            spinners: vec![0; words],
            cores: vec![Core::default(); form.threads as usize],
            random: Pcg32::new(0, 0),
            writers: Vec::new(),
            unfinished: 0,
            events: 0,
            elided_until: 0,
            is_disturbed: false,
            bridge: VecDeque::new(),
            bridge_busy: false,
            pending: Timeline::default(),
            origins: [NONE; 2],
            waiting: vec![0; form.lines],
            marks: vec![0; form.lines],
            phase_waiting: Vec::new(),
            phase_release_pending: false,
            fetching: vec![0; words],
            order: Vec::new(),
            together: vec![Vec::new(); form.ways.len()],
        }
    }

    /// Ready to take in a node at rest since `at`.
    pub fn prepare(&mut self, at: u64) {
        debug_assert!(self.is_at_rest());
        self.now = at;
        self.events = 0;
        self.elided_until = at;
        self.is_disturbed = false;
        self.free_at.fill(0);
        self.free_from = 0;
    }

    /// Returns what is under way, if no thread has anything to do with the phase and at most `most`
    /// events are pending.
    pub fn under_way(&self, most: usize) -> Option<UnderWay> {
        let fetched = self.fetching.iter().all(|&word| word == 0);
        if !fetched || self.phase_release_pending || !self.phase_waiting.is_empty() {
            return None;
        }
        let pending = self.pending.pending();
        if pending.len() > most {
            return None;
        }
        let lines = (0..).zip(self.waiting.iter().zip(&self.marks));
        let lines = lines.filter(|&(_, (&waiting, &marks))| waiting != 0 || marks != 0);
        Some(UnderWay {
            pending: pending.into(),
            lines: lines
                .map(|(line, (&waiting, &marks))| (line, waiting, marks))
                .collect(),
            bridge: self.bridge.iter().copied().collect(),
            bridge_busy: self.bridge_busy,
            origins: self.origins,
            events: self.events,
            elided_until: self.elided_until,
        })
    }

    /// After [`Self::prepare`] and all else: this is under way.
    pub fn take_up(&mut self, under_way: &UnderWay) {
        for &(at, code) in &under_way.pending {
            self.pending.push(at, code);
        }
        for &(line, waiting, marks) in &under_way.lines {
            let index = usize::from(line);
            (self.waiting[index], self.marks[index]) = (waiting, marks);
        }
        self.bridge.extend(&under_way.bridge);
        self.bridge_busy = under_way.bridge_busy;
        self.origins = under_way.origins;
        self.events = under_way.events;
        self.elided_until = under_way.elided_until;
    }

    /// Returns whether nothing is under way.
    pub fn is_at_rest(&self) -> bool {
        self.pending.next_ps() == u64::MAX
            && self.bridge.is_empty()
            && !self.bridge_busy
            && !self.phase_release_pending
            && self.phase_waiting.is_empty()
            && self.together.iter().all(Vec::is_empty)
            && self.fetching.iter().all(|&word| word == 0)
            && self.waiting.iter().all(|&waiting| waiting == 0)
            && self.marks.iter().all(|&marks| marks == 0)
    }

    /// Returns the time of the next event; [`u64::MAX`] if there is none.
    #[inline]
    pub fn next_ps(&self) -> u64 {
        self.pending.next_ps()
    }

    /// Takes the next event, whose time becomes now.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let (at, code) = self.pending.pop()?;
        self.now = at;
        self.events += 1;
        Some(Event::of(code))
    }

    /// Lets `event` happen at `at`.
    #[inline]
    pub fn push_at(&mut self, at: u64, event: Event) {
        self.pending.push(at, event.code());
    }

    /// Lets `event` happen `after` from now.
    #[inline]
    pub fn push(&mut self, after: u64, event: Event) {
        self.push_at(self.now + after, event);
    }

    /// Counts an event `after` from now without scheduling it: it changes nothing, unless copies of
    /// the phase go away before.
    #[inline]
    pub fn count_elided(&mut self, after: u64) {
        self.count_elided_at(self.now + after);
    }

    /// Counts such an event at `at`.
    #[inline]
    pub fn count_elided_at(&mut self, at: u64) {
        self.events += 1;
        self.elided_until = self.elided_until.max(at);
    }

    /// Returns the value that the leader reads in its copy of another line, if it has one.
    #[inline]
    pub fn flag_in_cache(&self, number: u16) -> Option<u8> {
        let bits = self.bits[usize::from(number)];
        (bits & line::LEADER != 0).then_some(u8::from(bits & line::COPIES != 0))
    }

    /// Returns whether the leader has asked for another line than the phase's.
    #[inline]
    pub fn fetches_flag(&self, number: u16) -> bool {
        self.marks[usize::from(number)] & LEADER_FETCHES != 0
    }

    /// Returns the lines, of eight from `first` on, that the leader neither has nor has asked for:
    /// the lowest bit of a byte for each. None if one of them is the phase's, or there are not so
    /// many.
    #[inline]
    pub fn lacking(&self, form: &NodeForm, first: u16) -> Option<u64> {
        const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
        let of = |lines: &[u8]| {
            let eight = lines.get(usize::from(first)..)?.first_chunk()?;
            Some(u64::from_le_bytes(*eight))
        };
        let fetched = of(&self.marks)? >> LEADER_FETCHES.trailing_zeros();
        let had = of(&self.bits)? >> line::LEADER.trailing_zeros();
        let has_phase = (first..first + 8).contains(&form.phase);
        (!has_phase).then_some(!(fetched | had) & LOWEST)
    }

    /// The leader spins on its copy of another line.
    #[inline]
    pub fn spin_on_flag(&mut self, number: u16) {
        self.bits[usize::from(number)] |= line::SPINS;
    }

    /// The leader asks for another line.
    #[inline]
    pub fn fetch_flag(&mut self, form: &NodeForm, number: u16) {
        self.marks[usize::from(number)] |= LEADER_FETCHES;
        self.miss(form, 0, Event::Home(number, OnFlag::read()));
    }

    /// Lets a miss of `core` reach its line's home.
    #[inline]
    fn miss(&mut self, form: &NodeForm, core: u16, event: Event) {
        self.push(form.ways(core).1.home, event);
    }

    /// Returns whether a follower that writes to its flag, now or later, asks for the line first:
    /// it has not the only copy, and it gets that in no other way.
    #[inline]
    pub fn will_miss_own_flag(&self, form: &NodeForm, core: u16) -> bool {
        let index = usize::from(form.flag_of(core));
        !is_followers_alone(self.bits[index]) && self.marks[index] & FOLLOWER_WRITES == 0
    }

    /// A follower writes `value` to its flag: at once if it has the only copy. If not, it asks for
    /// the line.
    #[inline]
    pub fn set_own_flag(&mut self, form: &NodeForm, core: u16, value: u8) {
        let number = form.flag_of(core);
        let bits = &mut self.bits[usize::from(number)];
        if is_followers_alone(*bits) {
            *bits = with_copies(*bits, value) | line::DIRTY;
            return;
        }
        self.marks[usize::from(number)] |= FOLLOWER_WRITES;
        self.miss(form, core, Event::Home(number, OnFlag::own(value)));
    }

    /// A follower that [will miss](Self::will_miss_own_flag) writes `value` to its flag at `from`.
    #[inline]
    pub fn will_set_own_flag(&mut self, form: &NodeForm, core: u16, value: u8, from: u64) {
        let number = form.flag_of(core);
        self.marks[usize::from(number)] |= FOLLOWER_WRITES;
        self.push_at(from, Event::Misses(number, OnFlag::own(value)));
    }

    /// [`Event::Misses`]
    #[inline]
    pub fn misses(&mut self, form: &NodeForm, number: u16, on: OnFlag) {
        let core = form.follower_of(number).unwrap_or(0);
        self.miss(form, core, Event::Home(number, on));
    }

    /// Performs the leader's write to a flag of its own node at once, if it has the line for
    /// itself.
    pub fn set_by_leader(&mut self, form: &NodeForm, number: u16, value: u8, origin: u32) -> bool {
        self.origins[1] = origin;
        if number == form.phase {
            let alone = self.phase.owner == 0 && is_only(&self.holders, 0);
            if alone {
                (self.phase.copies, self.phase.dirty) = (value, true);
                self.written_by(number, origin);
            } else {
                self.miss(form, 0, Event::PhaseHome(OnPhase::own(0, value)));
            }
            return alone;
        }
        let bits = &mut self.bits[usize::from(number)];
        let alone = *bits & (line::OWNED | line::HOLDERS) == line::OF_LEADER | line::LEADER;
        if alone {
            *bits = with_copies(*bits, value) | line::DIRTY;
            self.written_by(number, origin);
        } else {
            self.miss(form, 0, Event::Home(number, OnFlag::own_of_leader(value)));
        }
        alone
    }

    /// The bridge, which stands at the first socket as all lines' homes do, writes to a line.
    pub fn bridge_writes(&mut self, form: &NodeForm, written: Written) {
        let (number, value) = (written.line, written.value);
        self.origins[0] = written.origin;
        let event = if number == form.phase {
            Event::PhaseHome(OnPhase::write(value))
        } else {
            Event::Home(number, OnFlag::write(value))
        };
        self.push_at(self.now, event);
    }

    /// [`Event::Home`]: the transaction starts, or waits until its line is free.
    pub fn arrive(&mut self, form: &NodeForm, number: u16, on: OnFlag) {
        let index = usize::from(number);
        if self.free_at[index] <= self.now && self.waiting[index] == 0 {
            return self.start(form, number, on);
        }
        self.waiting[index] = self.waiting[index] << 8 | u32::from(on.code());
        if self.marks[index] & RELEASE_PENDING == 0 {
            self.release_later(number);
        }
    }

    fn release_later(&mut self, number: u16) {
        let index = usize::from(number);
        self.marks[index] |= RELEASE_PENDING;
        let at = self.free_at[index];
        self.push_at(at, Event::Release(number));
    }

    /// [`Event::Release`]: one of the transactions that wait for the line starts.
    pub fn release(&mut self, form: &NodeForm, number: u16) {
        let index = usize::from(number);
        self.marks[index] &= !RELEASE_PENDING;
        let waiting = self.waiting[index];
        if waiting == 0 {
            return;
        }
        let count = (u32::BITS - waiting.leading_zeros()).div_ceil(8);
        let place = match count {
            1 => 0,
            count => self.random.next_u32() % count,
        };
        let below = waiting & ((1 << (8 * place)) - 1);
        let above = waiting.checked_shr(8 * place + 8).unwrap_or(0);
        self.waiting[index] = above << (8 * place) | below;
        self.start(form, number, OnFlag::of((waiting >> (8 * place)) as u8));
        if self.waiting[index] != 0 {
            self.release_later(number);
        }
    }

    /// The transaction takes effect on the line and sets out for its requester.
    fn start(&mut self, form: &NodeForm, number: u16, mut on: OnFlag) {
        let index = usize::from(number);
        let mut bits = self.bits[index];
        let mut dropped = 0;
        match on.act() {
            Act::Read => {
                if bits & line::HOLDERS == 0 {
                    bits = with_copies(bits, bits & line::MEMORY) & !(line::OWNED | line::DIRTY);
                    bits |= line::OF_LEADER;
                } else if bits & line::DIRTY == 0 {
                    bits &= !line::OWNED;
                }
                bits |= line::LEADER;
                on = on.with_value(u8::from(bits & line::COPIES != 0));
            }
            Act::Own(value) => {
                let (holder, owner) = if on.is_followers() {
                    (line::FOLLOWER, line::OF_FOLLOWER)
                } else {
                    (line::LEADER, line::OF_LEADER)
                };
                if on.is_followers() {
                    self.marks[index] &= !FOLLOWER_WRITES;
                }
                dropped = bits & line::HOLDERS & !holder;
                bits = bits & !(line::HOLDERS | line::OWNED) | holder | owner;
                bits = with_copies(bits, value) | line::DIRTY;
            }
            Act::Write(value) => {
                dropped = bits & line::HOLDERS;
                bits &= !(line::HOLDERS | line::OWNED | line::DIRTY | line::MEMORY);
                bits |= value;
            }
        }
        let requester = match on.act() {
            Act::Own(_) if on.is_followers() => form.follower_of(number).unwrap_or(0),
            Act::Own(_) | Act::Read => 0,
            Act::Write(_) => form.threads as u16,
        };
        match on.act() {
            Act::Write(_) => self.written_by(number, self.origins[0]),
            Act::Own(_) if !on.is_followers() => self.written_by(number, self.origins[1]),
            Act::Own(_) | Act::Read => {}
        }
        let complete = (!on.is_followers()).then_some(Event::Complete(number, on));
        let free_at = self.sets_out(form, requester, on.act() == Act::Read, complete);
        self.takes_home(number, free_at);
        if dropped & line::LEADER != 0 && bits & line::SPINS != 0 {
            bits &= !line::SPINS;
            self.marks[index] |= LEADER_FETCHES;
            self.ask_again(form, 0, Event::Home(number, OnFlag::read()));
        }
        self.bits[index] = bits;
    }

    /// Schedules the end of a started transaction of `requester`, with this event if a thread waits
    /// for it. Returns the time until which its line is taken.
    #[inline]
    fn sets_out(
        &mut self,
        form: &NodeForm,
        requester: u16,
        reads: bool,
        complete: Option<Event>,
    ) -> u64 {
        let (_, ways) = form.ways(requester);
        match complete {
            Some(complete) => self.push(ways.settled, complete),
            None => self.count_elided(ways.settled),
        }
        let least = if reads { 0 } else { ways.settled };
        self.now + form.occupancy.max(least)
    }

    /// The home of line `number` is taken until `free_at`.
    #[inline]
    pub fn takes_home(&mut self, number: u16, free_at: u64) {
        self.free_at[usize::from(number)] = free_at;
        self.free_from = self.free_from.max(free_at);
    }

    /// `core`, whose copy has been probed away, asks for the line again.
    #[inline]
    fn ask_again(&mut self, form: &NodeForm, core: u16, event: Event) {
        self.push(form.ways(core).1.again, event);
    }

    /// [`Event::Complete`] of a read of the leader's.
    pub fn fetched_flag(&mut self, number: u16) {
        self.marks[usize::from(number)] &= !LEADER_FETCHES;
    }

    fn written_by(&mut self, number: u16, origin: u32) {
        match self.writers.iter_mut().find(|(line, _)| *line == number) {
            Some((_, writer)) => *writer = origin,
            None => self.writers.push((number, origin)),
        }
    }
}

/// Returns whether the follower whose flag it is owns it and has the only copy.
#[inline]
fn is_followers_alone(bits: u8) -> bool {
    bits & (line::OWNED | line::HOLDERS) == line::OF_FOLLOWER | line::FOLLOWER
}

#[inline]
fn with_copies(bits: u8, value: u8) -> u8 {
    if value == 0 {
        bits & !line::COPIES
    } else {
        bits | line::COPIES
    }
}

#[cfg(test)]
mod tests;
