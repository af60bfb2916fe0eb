//! The line of the phase: any thread may hold it, and all that do may wait for it to change.

use rand_core::Rng;

use super::super::event::{Act, BRIDGE, Event, OnPhase, lane};
use super::super::plan::Form;
use super::super::rest::NOBODY;
use super::super::set::{has, insert, remove};
use super::Work;

impl Work {
    /// What `core` reads in its copy of the phase, if it has one.
    #[inline]
    pub fn phase_in_cache(&self, core: u16) -> Option<u8> {
        has(&self.holders, core).then_some(self.phase.copies)
    }

    /// Whether `core` has asked for the phase.
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
    pub fn fetch_phase(&mut self, form: &Form, core: u16) {
        insert(&mut self.fetching, core);
        self.miss(form, core, Event::PhaseHome(OnPhase::read(core)));
    }

    /// [`Event::PhaseHome`]
    #[inline]
    pub fn phase_arrives(&mut self, form: &Form, on: OnPhase) {
        let free_at = self.free_at[usize::from(form.phase)];
        if free_at <= self.now && self.phase_waiting.is_empty() {
            return self.start_on_phase(form, on);
        }
        self.phase_waiting.push(on);
        if !self.phase_release_pending {
            self.release_phase_later(form);
        }
    }

    #[inline]
    fn release_phase_later(&mut self, form: &Form) {
        self.phase_release_pending = true;
        let at = self.free_at[usize::from(form.phase)];
        self.pending
            .push(lane::PHASE, at, Event::PhaseRelease.code());
    }

    /// [`Event::PhaseRelease`]
    #[inline]
    pub fn release_phase(&mut self, form: &Form) {
        self.phase_release_pending = false;
        let count = self.phase_waiting.len();
        // Counted from the newest.
        let place = match count {
            0 => return,
            1 => 0,
            count => self.random.next_u32() as usize % count,
        };
        let on = self.phase_waiting.remove(count - 1 - place);
        self.start_on_phase(form, on);
        if !self.phase_waiting.is_empty() {
            self.release_phase_later(form);
        }
    }

    #[inline]
    fn start_on_phase(&mut self, form: &Form, mut on: OnPhase) {
        let core = on.core();
        let phase = &mut self.phase;
        let mut probes_away = false;
        match on.act() {
            Act::Read => {
                if self.holders.iter().all(|&word| word == 0) {
                    (phase.copies, phase.owner, phase.dirty) = (phase.memory, core, false);
                } else if !phase.dirty {
                    phase.owner = NOBODY;
                }
                insert(&mut self.holders, core);
                on = on.with_value(phase.copies);
            }
            Act::Own(value) => {
                (phase.copies, phase.owner, phase.dirty) = (value, core, true);
                probes_away = true;
            }
            Act::Write(value) => {
                (phase.memory, phase.owner, phase.dirty) = (value, NOBODY, false);
                probes_away = true;
            }
        }
        let (reads, bridge) = (on.act() == Act::Read, core == BRIDGE);
        let requester = if bridge { form.threads as u16 } else { core };
        let free_at = self.sets_out(form, requester, reads, Some(Event::PhaseComplete(on)));
        self.takes_home(form.phase, free_at);
        if probes_away {
            self.written_by(form.phase, self.origins[usize::from(!bridge)]);
            self.probe_phase_away(form, core);
        }
    }

    /// All copies of the phase but that of `but` are gone; who spun asks again, in an order that is
    /// drawn.
    fn probe_phase_away(&mut self, form: &Form, but: u16) {
        self.is_disturbed |= self.now <= self.by_the_way_until;
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
            let other = self.random.next_u32() as usize % (last + 1);
            order.swap(last, other);
        }
        // Those of a class arrive at the same time, one after the other, and nothing in between, but
        // for cores of a class that is as far away.
        let together = form.classes_differ && self.together.iter().all(Vec::is_empty);
        for &core in &order {
            insert(&mut self.fetching, core);
            let (class, _) = form.ways(core);
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

    /// [`Event::PhaseHomes`]
    pub fn phase_arrives_for_all(&mut self, form: &Form, class: u16) {
        let mut cores = std::mem::take(&mut self.together[usize::from(class)]);
        self.events += cores.len() as u64 - 1;
        for core in cores.drain(..) {
            self.phase_arrives(form, OnPhase::read(core));
        }
        self.together[usize::from(class)] = cores;
    }

    /// [`Event::PhaseComplete`] of a read.
    #[inline]
    pub fn fetched_phase(&mut self, core: u16) {
        remove(&mut self.fetching, core);
    }
}
