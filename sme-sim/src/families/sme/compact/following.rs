//! A follower of a node: what it does from one barrier to the next.
//!
//! It reads the phase, sets its flag, and looks at the phase until that changes. Each step is an
//! event. But once it gets a new phase, what it does until its flag's line is asked for takes
//! constant times, and nothing else has to do with it, unless copies of the phase go away
//! meanwhile: so that is told when its read starts (`Run::foretell`).

use sme_memory::Leader;

use super::event::OnPhase;
use super::run::Run;
use super::work::Fetched;

/// Where a follower's program is.
pub(super) mod step {
    /// About to begin an episode.
    pub const START: u8 = 0;
    /// The follower arrives late.
    pub const LATE: u8 = 1;
    /// Reads the phase.
    pub const READ: u8 = 2;
    /// Sets its flag.
    pub const SET: u8 = 3;
    /// Waits for the phase.
    pub const WAIT: u8 = 4;
    /// Has ended.
    pub const ENDED: u8 = 5;
}

impl<L: Leader> Run<'_, L> {
    /// [`Event::Resume`]
    pub(super) fn follower_goes_on(&mut self, number: u16) {
        let core = &mut self.work.cores[usize::from(number)];
        match core.step {
            step::START => self.begin(number),
            step::LATE => self.arrive(number),
            step::READ => {
                core.phase = core.answer;
                core.step = step::SET;
                let value = core.phase ^ 1;
                self.looks_again(number);
                self.work.set_own_flag(&self.plan.form, number, value);
            }
            step::SET => {
                core.step = step::WAIT;
                self.look_at_phase(number);
            }
            step::WAIT => {
                let episode = core.episode;
                core.episode += 1;
                self.departs(episode);
                if episode < self.plan.last_episode {
                    self.begin(number);
                } else {
                    let core = &mut self.work.cores[usize::from(number)];
                    // It stays in its last episode: it has no next one.
                    (core.step, core.episode) = (step::ENDED, episode);
                    self.work.unfinished -= 1;
                }
            }
            _ => {}
        }
    }

    /// All followers begin: none has a copy of the phase, so all ask for it.
    pub(super) fn all_begin(&mut self) {
        let followers = 1..self.plan.form.threads as u16;
        self.work.events += followers.len() as u64 - 1;
        self.arrives(0);
        for core in &mut self.work.cores[1..] {
            core.step = step::READ;
        }
        self.work.fetch_phase_together(&self.plan.form, followers);
    }

    /// [`Event::PhaseHomes`]
    pub(super) fn all_arrive(&mut self, class: u16) {
        let cores = self.work.take_together(class);
        for &core in &cores {
            self.phase_arrives(OnPhase::read(core));
        }
        self.work.give_back_together(class, cores);
    }

    /// [`Event::PhaseRelease`]
    pub(super) fn phase_is_released(&mut self) {
        let foretells = self.foretells();
        let fetched = self.work.release_phase(&self.plan.form, foretells);
        if let Some(fetched) = fetched {
            self.foretell(fetched);
        }
    }

    /// [`Event::PhaseHome`]
    pub(super) fn phase_arrives(&mut self, on: OnPhase) {
        let foretells = self.foretells();
        let fetched = self.work.phase_arrives(&self.plan.form, on, foretells);
        if let Some(fetched) = fetched {
            self.foretell(fetched);
        }
    }

    /// Returns whether the consequences of a follower's read of the phase are known when the read
    /// starts.
    pub(super) fn foretells(&self) -> bool {
        self.elide_rereads && self.plan.form.foretells
    }

    /// Performs a follower's steps from the end of its read of the phase until it sets its flag:
    /// the steps of [`Self::follower_has_phase`] and [`Self::follower_goes_on`], at the times at
    /// which they happen.
    #[inline]
    fn foretell(&mut self, fetched: Fetched) {
        let (form, number) = (&self.plan.form, fetched.core);
        let core = &mut self.work.cores[usize::from(number)];
        let mut now = fetched.at + form.operation;
        if core.step == step::WAIT {
            let episode = core.episode;
            self.departs_at(episode, now);
            self.work.count_elided_at(now);
            let core = &mut self.work.cores[usize::from(number)];
            if episode == self.plan.last_episode {
                core.step = step::ENDED;
                self.work.unfinished -= 1;
                return;
            }
            core.episode += 1;
            self.arrives_at(episode + 1, now);
            now += form.hit;
        }
        let core = &mut self.work.cores[usize::from(number)];
        (core.step, core.phase) = (step::WAIT, fetched.value);
        let value = fetched.value ^ 1;
        self.work.will_set_own_flag(form, number, value, now);
        self.work.spin_on_phase(number);
        self.work.count_elided_at(now + form.operation);
    }

    /// A follower looks at the phase again, as it waits for it to change.
    fn looks_again(&mut self, number: u16) {
        let work = &mut *self.work;
        let same = work.phase_in_cache(number) == Some(work.cores[usize::from(number)].phase);
        if !self.elide_rereads || !same || work.fetches_phase(number) {
            return self.after_operation(number);
        }
        // It will find what it finds now, and spin.
        work.cores[usize::from(number)].step = step::WAIT;
        work.spin_on_phase(number);
        work.count_elided(self.plan.form.operation);
    }

    /// Begins an episode, perhaps late.
    fn begin(&mut self, number: u16) {
        let core = &mut self.work.cores[usize::from(number)];
        match &self.plan.skew {
            None => self.arrive(number),
            Some(skew) => {
                core.step = step::LATE;
                let late = skew(self.node, u32::from(number), core.episode);
                self.goes_on(number, late.as_ps());
            }
        }
    }

    fn arrive(&mut self, number: u16) {
        let core = &mut self.work.cores[usize::from(number)];
        core.step = step::READ;
        let episode = core.episode;
        self.arrives(episode);
        self.look_at_phase(number);
    }

    /// A follower loads the phase, to know it or because it waits for another.
    fn look_at_phase(&mut self, number: u16) {
        if self.work.fetches_phase(number) {
            return;
        }
        let Some(value) = self.work.phase_in_cache(number) else {
            return self.work.fetch_phase(&self.plan.form, number);
        };
        let core = &mut self.work.cores[usize::from(number)];
        if core.step == step::WAIT && value == core.phase {
            return self.work.spin_on_phase(number);
        }
        core.answer = value;
        self.goes_on(number, self.plan.form.hit);
    }

    /// A follower's fetch of the phase has brought `value`.
    pub(super) fn follower_has_phase(&mut self, number: u16, value: u8) {
        let held = self.work.phase_in_cache(number);
        let seen = held.unwrap_or(value);
        let core = &mut self.work.cores[usize::from(number)];
        match core.step {
            step::WAIT if seen == core.phase => {
                if held.is_some() {
                    self.work.spin_on_phase(number);
                } else {
                    self.work.fetch_phase(&self.plan.form, number);
                }
            }
            step::READ | step::WAIT => {
                core.answer = seen;
                self.after_operation(number);
            }
            _ => {}
        }
    }
}
