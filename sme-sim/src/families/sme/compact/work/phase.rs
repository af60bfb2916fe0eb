//! The line of the phase: any thread may hold it, and all that do may wait for it to change.

use std::ops::Range;

use rand_core::Rng;

use super::super::event::{Act, BRIDGE, Event, OnPhase};
use super::super::following::step;
use super::super::plan::NodeForm;
use super::super::rest::NO_CORE;
use super::super::set::{has, insert, remove};
use super::{Core, Work};

/// A follower's read of the phase of which all that follows is known when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// The core that reads.
    pub core: u16,
    /// The value that it finds.
    pub value: u8,
    /// The time at which it ends, in picoseconds.
    pub at: u64,
}

impl Work {
    /// Returns the value that `core` reads in its copy of the phase, if it has one.
    #[inline]
    pub fn phase_in_cache(&self, core: u16) -> Option<u8> {
        has(&self.holders, core).then_some(self.phase.copies)
    }

    /// Returns whether `core` has asked for the phase.
    #[inline]
    pub fn fetches_phase(&self, core: u16) -> bool {
        has(&self.fetching, core)
    }

    /// `core` spins on its copy of the phase.
    #[inline]
    pub fn spin_on_phase(&mut self, core: u16) {
        insert(&mut self.spinners, core);
    }

    /// `core` asks for the phase.
    #[inline]
    pub fn fetch_phase(&mut self, form: &NodeForm, core: u16) {
        insert(&mut self.fetching, core);
        self.miss(form, core, Event::PhaseHome(OnPhase::read(core)));
    }

    /// All these ask for the phase, in this order: those that are as far away arrive together.
    pub fn fetch_phase_together(&mut self, form: &NodeForm, cores: Range<u16>) {
        for core in cores {
            insert(&mut self.fetching, core);
            let (class, ways) = form.ways(core);
            let class = form.asks_as[class];
            if self.together[class].is_empty() {
                self.push(ways.home, Event::PhaseHomes(class as u16));
            }
            self.together[class].push(core);
        }
    }

    /// [`Event::PhaseHome`]. Returns the read that is [told ahead](Self::foresees), if followers'
    /// reads may be.
    #[inline]
    pub fn phase_arrives(
        &mut self,
        form: &NodeForm,
        on: OnPhase,
        foretells: bool,
    ) -> Option<Fetched> {
        let free_at = self.free_at[usize::from(form.phase)];
        if free_at <= self.now && self.phase_waiting.is_empty() {
            return self.start_on_phase(form, on, foretells);
        }
        self.phase_waiting.push(on);
        if !self.phase_release_pending {
            self.release_phase_later(form);
        }
        None
    }

    #[inline]
    fn release_phase_later(&mut self, form: &NodeForm) {
        self.phase_release_pending = true;
        let at = self.free_at[usize::from(form.phase)];
        self.push_at(at, Event::PhaseRelease);
    }

    /// Performs [`Event::PhaseRelease`]. Returns the read that is [told ahead](Self::foresees), if
    /// followers' reads may be.
    #[inline]
    pub fn release_phase(&mut self, form: &NodeForm, foretells: bool) -> Option<Fetched> {
        self.phase_release_pending = false;
        let count = self.phase_waiting.len();
        // Counted from the newest.
        let place = match count {
            0 => return None,
            1 => 0,
            count => (self.random.next_u32() % count as u32) as usize,
        };
        let on = self.phase_waiting.remove(count - 1 - place);
        let fetched = self.start_on_phase(form, on, foretells);
        if !self.phase_waiting.is_empty() {
            self.release_phase_later(form);
        }
        fetched
    }

    #[inline]
    fn start_on_phase(
        &mut self,
        form: &NodeForm,
        mut on: OnPhase,
        foretells: bool,
    ) -> Option<Fetched> {
        let core = on.core();
        let phase = &mut self.phase;
        let mut probes_away = false;
        match on.act() {
            Act::Read => {
                if self.holders.iter().all(|&word| word == 0) {
                    (phase.copies, phase.owner, phase.dirty) = (phase.memory, core, false);
                } else if !phase.dirty {
                    phase.owner = NO_CORE;
                }
                insert(&mut self.holders, core);
                on = on.with_value(phase.copies);
            }
            Act::Own(value) => {
                (phase.copies, phase.owner, phase.dirty) = (value, core, true);
                probes_away = true;
            }
            Act::Write(value) => {
                (phase.memory, phase.owner, phase.dirty) = (value, NO_CORE, false);
                probes_away = true;
            }
        }
        let (reads, bridge) = (on.act() == Act::Read, core == BRIDGE);
        let requester = if bridge { form.threads as u16 } else { core };
        let fetched = (foretells && reads)
            .then(|| self.foresees(form, core, on.value()))
            .flatten();
        let complete = fetched.is_none().then_some(Event::PhaseComplete(on));
        let free_at = self.sets_out(form, requester, reads, complete);
        self.takes_home(form.phase, free_at);
        if fetched.is_some() {
            remove(&mut self.fetching, core);
        }
        if probes_away {
            self.written_by(form.phase, self.origins[usize::from(!bridge)]);
            self.probe_phase_away(form, core);
        }
        fetched
    }

    /// Returns the result of a read of `core` that starts and finds `value`, if it is known
    /// already: the core is a follower to which the value is new, and which will then set its flag.
    /// The result is void if copies of the phase go away [meanwhile](Self::count_elided).
    #[inline]
    fn foresees(&self, form: &NodeForm, core: u16, value: u8) -> Option<Fetched> {
        let Core { step, phase, .. } = self.cores[usize::from(core)];
        let goes_on = step == step::READ || step == step::WAIT && value != phase;
        let known = core != 0 && goes_on && self.will_miss_own_flag(form, core);
        known.then(|| Fetched {
            core,
            value,
            at: self.now + form.ways(core).1.settled,
        })
    }

    /// All copies of the phase but that of `but` are gone; who spun asks again, in an order that is
    /// drawn.
    fn probe_phase_away(&mut self, form: &NodeForm, but: u16) {
        self.is_disturbed |= self.now <= self.elided_until;
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for (word, (holders, spinners)) in
            (0..).zip(self.holders.iter_mut().zip(&mut self.spinners))
        {
            let mut dropped = std::mem::take(holders);
            if usize::from(but / 64) == word {
                dropped &= !(1 << (but % 64));
            }
            let mut spinning = dropped & *spinners;
            *spinners &= !spinning;
            while spinning != 0 {
                order.push(word as u16 * 64 + spinning.trailing_zeros() as u16);
                spinning &= spinning - 1;
            }
        }
        if but != BRIDGE {
            insert(&mut self.holders, but);
        }
        for last in (1..order.len()).rev() {
            let other = (self.random.next_u32() % (last as u32 + 1)) as usize;
            order.swap(last, other);
        }
        // Those that are as far away arrive at the same time, one after the other, and nothing in
        // between.
        let together = self.together.iter().all(Vec::is_empty);
        for &core in &order {
            insert(&mut self.fetching, core);
            let (class, _) = form.ways(core);
            let class = form.asks_as[class];
            if !together {
                self.ask_again(form, core, Event::PhaseHome(OnPhase::read(core)));
                continue;
            }
            if self.together[class].is_empty() {
                self.ask_again(form, core, Event::PhaseHomes(class as u16));
            }
            self.together[class].push(core);
        }
        self.order = order;
    }

    /// [`Event::PhaseHomes`]: whose reads they are. To be given back.
    pub fn take_together(&mut self, class: u16) -> Vec<u16> {
        let cores = std::mem::take(&mut self.together[usize::from(class)]);
        self.events += cores.len() as u64 - 1;
        cores
    }

    /// The list of a class, which has been taken.
    pub fn give_back_together(&mut self, class: u16, mut cores: Vec<u16>) {
        cores.clear();
        self.together[usize::from(class)] = cores;
    }

    /// [`Event::PhaseComplete`] of a read.
    #[inline]
    pub fn fetched_phase(&mut self, core: u16) {
        remove(&mut self.fetching, core);
    }
}
