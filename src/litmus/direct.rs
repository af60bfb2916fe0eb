//! The timing of a run that is to follow a way of the model of memory: each step of the abstract
//! machine has its time, and each thread halts until it is that time.
//!
//! A store leaves its buffer when it may; what holds it back is a private store in front, to a line
//! that has to be fetched through the engine. All lines of the test are in the caches of every
//! thread before, so that a load takes a miss only where another thread has stored since. Nothing
//! here forces an outcome: it is the machine that decides what a load sees.

use sme_fft_demo::litmus::{Instruction, Step, Test, Way};
use sme_memory::Route;
use sme_sim::time::Time;

use super::roles::MOST_PRIVATE;
use super::timing::{Lead, Timing};

/// The costs of accesses, as a rehearsal has measured them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// A load that no cache of the thread can answer.
    pub(super) miss: Time,
    /// A store to a line that is fetched through the engine.
    pub(super) far: Time,
    /// An access that the caches answer.
    pub(super) hit: Time,
}

/// The timing of a run that is to follow `way`, with `slot` between one step and the next.
pub(super) fn timing(test: &Test, way: &Way, costs: Costs, slot: Time) -> Timing {
    let mut timing = Timing::plain(test);
    timing.warm = vec![vec![true; test.locations.len()]; test.threads.len()];
    let held_back = held_back(test, &way.steps);
    let mut director = Director {
        test,
        costs,
        slot,
        now: Time::ZERO,
        threads: vec![Thread::default(); test.threads.len()],
        valid: timing.warm.clone(),
        leads: &mut timing.leads,
        held_back,
    };
    for &step in &way.steps {
        match step {
            Step::Perform(thread) => director.perform(thread),
            Step::Leave(thread) => director.leave(thread),
            // Only memory behind engines has such steps, and no run there is directed.
            Step::Arrive { .. } => {}
        }
    }
    timing
}

/// Returns whether each store of each thread has to wait in the buffer although it could leave:
/// whether anything happens between the step after which it could and its leaving.
fn held_back(test: &Test, steps: &[Step]) -> Vec<Vec<bool>> {
    let mut stores: Vec<Vec<usize>> = vec![Vec::new(); test.threads.len()];
    let mut held: Vec<Vec<bool>> = vec![Vec::new(); test.threads.len()];
    let mut next = vec![0; test.threads.len()];
    let mut left: Vec<Option<usize>> = vec![None; test.threads.len()];
    for (at, &step) in steps.iter().enumerate() {
        match step {
            Step::Perform(thread) => {
                if let Some(Instruction::Store { .. }) = test.threads[thread].get(next[thread]) {
                    stores[thread].push(at);
                }
                next[thread] += 1;
            }
            Step::Leave(thread) => {
                let performed = stores[thread][held[thread].len()];
                let could = performed.max(left[thread].unwrap_or(0));
                held[thread].push(at > could + 1);
                left[thread] = Some(at);
            }
            Step::Arrive { .. } => {}
        }
    }
    held
}

/// The progress of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Its next instruction.
    next: usize,
    /// From when on it can begin the next instruction.
    ready: Time,
    /// From when on its store buffer has nothing in front of the oldest store of the test.
    free: Time,
    /// Stores of the test in its buffer: instruction, location, since when the thread could have
    /// put private stores in front, and when the store is put there.
    buffered: Vec<Buffered>,
    /// Stores that have left.
    left: usize,
    /// Private stores so far.
    private: usize,
}

#[derive(Clone, Copy, Debug)]
struct Buffered {
    instruction: usize,
    location: usize,
    earliest: Time,
    at: Time,
}

struct Director<'a> {
    test: &'a Test,
    costs: Costs,
    slot: Time,
    /// The time at which the last step took effect.
    now: Time,
    threads: Vec<Thread>,
    /// Which locations each thread's caches hold.
    valid: Vec<Vec<bool>>,
    leads: &'a mut Vec<Vec<Lead>>,
    held_back: Vec<Vec<bool>>,
}

impl Director<'_> {
    fn perform(&mut self, number: usize) {
        let thread = &mut self.threads[number];
        let Some(&instruction) = self.test.threads[number].get(thread.next) else {
            return;
        };
        let at = (self.now + self.slot).max(thread.ready);
        let lead = &mut self.leads[number][thread.next];
        lead.halt = at.since(thread.ready);
        let earliest = thread.ready;
        let mut cost = self.costs.hit;
        match instruction {
            Instruction::Load { from, .. } => {
                let forwarded = thread.buffered.iter().any(|store| store.location == from);
                let valid = &mut self.valid[number][from];
                if !*valid && !forwarded {
                    cost = self.costs.miss;
                    *valid = true;
                }
                self.now = at;
            }
            Instruction::Store { to, .. } => {
                let instruction = thread.next;
                let location = to;
                thread.buffered.push(Buffered {
                    instruction,
                    location,
                    earliest,
                    at,
                });
            }
            Instruction::Move { .. } | Instruction::Fence => {}
        }
        thread.ready = at + cost;
        thread.next += 1;
    }

    /// The oldest store leaves after everything so far, behind as many private stores as it takes.
    fn leave(&mut self, number: usize) {
        let thread = &mut self.threads[number];
        if thread.buffered.is_empty() {
            return;
        }
        let store = thread.buffered.remove(0);
        let is_held = self.held_back[number].get(thread.left) == Some(&true);
        let room = MOST_PRIVATE - thread.private;
        let mut leaves = store.at.max(thread.free);
        if is_held && room > 0 {
            let wanted = self.now + self.slot;
            let far = self.costs.far;
            let lacking = wanted.since(leaves).as_ps();
            let count = lacking.div_ceil(far.as_ps().max(1)).clamp(1, room as u64);
            let takes = far.times(count);
            // The thread puts them in front so early that the last is done when it is time.
            let begin = wanted.since(takes).clamp(store.earliest, store.at);
            let lead = &mut self.leads[number][store.instruction];
            lead.ahead = begin.since(store.earliest);
            lead.stores = vec![Route::Cached; count as usize];
            lead.halt = store.at.since(begin + self.costs.hit.times(count));
            thread.private += count as usize;
            leaves = begin.max(thread.free) + takes;
        }
        thread.left += 1;
        thread.free = leaves + self.costs.miss;
        self.now = self.now.max(leaves);
        for (of, valid) in self.valid.iter_mut().enumerate() {
            valid[store.location] = of == number;
        }
    }
}

#[cfg(test)]
mod tests {
    use sme_fft_demo::litmus::parse;

    use super::*;

    /// In R, P1's store stays in its buffer while everything else happens: a private store stands
    /// in front of it, and nowhere else.
    #[test]
    fn a_store_that_is_late_has_a_private_one_in_front() {
        use Step::{Leave, Perform};
        let test = parse(include_str!("../../litmus/R.litmus")).unwrap();
        let way = Way {
            steps: vec![
                Perform(1),
                Perform(1),
                Perform(0),
                Leave(0),
                Perform(0),
                Leave(0),
                Leave(1),
            ],
            kept: vec![0, 0],
        };
        let ns = Time::from_ns;
        let costs = Costs {
            miss: ns(100),
            far: ns(10_000),
            hit: ns(5),
        };
        let timing = timing(&test, &way, costs, ns(200));
        let private: Vec<Vec<usize>> = timing
            .leads
            .iter()
            .map(|leads| leads.iter().map(|lead| lead.stores.len()).collect())
            .collect();
        assert_eq!(private, [[0, 0], [1, 0]]);
        // P1 loads at 205 ns, when its store is in the buffer; P0 stores a slot after that, and
        // two.
        let halts = |thread: usize| timing.leads[thread].iter().map(|lead| lead.halt);
        assert!(halts(0).eq([ns(405), ns(195)]), "{:?}", timing.leads);
        assert!(halts(1).eq([ns(195), ns(0)]), "{:?}", timing.leads);
    }
}
