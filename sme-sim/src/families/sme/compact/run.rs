//! A run of one node's threads, from a state of rest to the next: the followers of a barrier, and
//! the bridge. The leader's part stands in [`super::first`].
//!
//! Operations are performed as in [`crate::families::sme::cluster::operate`], with the same events
//! in the same order. Nothing that a node sends comes back to its cores but by another packet, so a
//! run needs only to know when packets come, and says what leaves and when.

use std::collections::VecDeque;

use smallvec::SmallVec;
use sme_memory::Leader;

use super::checkpoint::Checkpoint;
use super::event::{Act, Event, Written};
use super::first::Store;
use super::followers::FollowersAtRest;
use super::plan::{NodeForm, RunPlan};
use super::rest::{First, Rest};
use super::work::Work;
use crate::families::sme::engine::HtPacket;
use crate::observe::spans::SpanTimes;
use crate::time::Time;

/// A packet that reaches the host. Times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time at which the engine gave it.
    pub given: u64,
    /// The time at which it is there.
    pub at: u64,
    /// The line that it writes.
    pub line: u16,
    /// The value that it writes there.
    pub value: u8,
    /// The thread that sent it, as the machine's traces name it.
    pub origin: u32,
}

/// An output of a node's cores and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// A packet that enters the host link's queue.
    Packet(HtPacket),
    /// A credit of the engine's for posted packets, which it samples at this edge.
    Credit,
}

/// Outputs, with their times in picoseconds: mostly a packet and the credit of the one that came
/// before.
pub type Leaving = SmallVec<[(u64, Leaves); 2]>;

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Arrivals and departures by episode, from the first that was touched.
    pub episodes: Vec<SpanTimes>,
    /// The number of departures from them.
    pub departures: u64,
    /// The number of the first of these.
    pub first_episode: u32,
    /// Posted writes that were performed here.
    pub performed: u64,
    /// Posted writes that were sent.
    pub posted: u64,
    /// Those of them that count.
    pub remote_stores: u64,
}

/// A run of one node.
pub struct Run<'a, L: Leader> {
    pub(super) plan: &'a RunPlan<L>,
    pub(super) node: u32,
    pub(super) work: &'a mut Work,
    pub(super) first: First<L::State>,
    /// The leader's store buffer, the oldest first.
    pub(super) stores: VecDeque<Store>,
    /// The oldest of them waits for its line.
    pub(super) store_under_way: bool,
    /// Outputs, with the time at which each enters the link or reaches the engine.
    pub(super) leaves: Leaving,
    pub(super) counts: Counts,
    /// Packets received so far.
    pub(super) received: usize,
    /// The leader has advanced far enough to be worth a checkpoint.
    pub(super) is_far: bool,
    /// Its followers as they fell asleep, if nothing has had to do with them since.
    pub(super) asleep: Option<&'a FollowersAtRest>,
    /// Whether re-reads of an unchanged phase by followers are [counted, not
    /// scheduled](Work::count_elided).
    pub(super) elide_rereads: bool,
    /// Whether the run may still be kept as a checkpoint: it has not been yet.
    may_be_kept: bool,
    checkpoint: Option<Box<Checkpoint<L::State>>>,
}

/// The state in which a run begins.
#[derive(Clone, Copy)]
pub struct Begin<'a, S> {
    /// At rest.
    pub rest: &'a Rest<S>,
    /// Its followers there.
    pub followers: &'a FollowersAtRest,
    /// All threads begin there: it is the very first.
    pub is_first: bool,
    /// On the way from there, if it was kept.
    pub kept: Option<&'a Checkpoint<S>>,
}

/// A run that begins; fields as in [`Run`].
#[derive(Clone)]
pub struct Begun<S> {
    pub first: First<S>,
    pub stores: VecDeque<Store>,
    pub store_under_way: bool,
    pub leaves: Leaving,
    pub counts: Counts,
    pub received: usize,
}

/// The result of a run.
pub struct Ran<S> {
    /// The node afterwards.
    pub rest: Rest<S>,
    /// Its followers, unless they have slept all the time.
    pub followers: Option<FollowersAtRest>,
    /// The outputs of the node with their times, in order of time.
    pub leaves: Leaving,
    /// The counts of the run.
    pub counts: Counts,
    /// The run on its way, if it was kept.
    pub checkpoint: Option<Box<Checkpoint<S>>>,
}

impl<S: Copy + Default> Begun<S> {
    fn at(rest: &Rest<S>, followers: &FollowersAtRest, form: &NodeForm, work: &mut Work) -> Self {
        Self {
            first: rest.unpack(form, work),
            stores: VecDeque::new(),
            store_under_way: false,
            leaves: Leaving::new(),
            counts: Counts {
                first_episode: rest.episode().min(followers.episode()),
                ..Counts::default()
            },
            received: 0,
        }
    }
}

/// Lets `node` run from where it begins until nothing happens any more, while `arrivals` come, in
/// order of time.
pub fn run<L: Leader>(
    plan: &RunPlan<L>,
    node: u32,
    begin: Begin<'_, L::State>,
    arrivals: &[Arrival],
    work: &mut Work,
) -> Ran<L::State> {
    let elide_rereads = plan.constants.is_quiet();
    let ran = attempt(plan, node, begin, arrivals, elide_rereads, work);
    if !(elide_rereads && work.is_disturbed) {
        return ran;
    }
    // The checkpoint may have taken it for granted as well.
    let begin = Begin {
        kept: None,
        ..begin
    };
    attempt(plan, node, begin, arrivals, false, work)
}

/// Runs the node. With `elide_rereads` the run takes for granted that the phase does not change
/// while followers only read it once more: if it did, the work
/// [`is disturbed`](Work::is_disturbed), and the run void.
fn attempt<L: Leader>(
    plan: &RunPlan<L>,
    node: u32,
    begin: Begin<'_, L::State>,
    arrivals: &[Arrival],
    elide_rereads: bool,
    work: &mut Work,
) -> Ran<L::State> {
    let begun = match begin.kept {
        None => Begun::at(begin.rest, begin.followers, &plan.form, work),
        Some(kept) => kept.resume(plan, work),
    };
    let kept = begin.kept.and_then(|kept| kept.followers());
    let starts = begin.is_first && begin.kept.is_none();
    let mut run = Run {
        plan,
        node,
        work,
        first: begun.first,
        stores: begun.stores,
        store_under_way: begun.store_under_way,
        leaves: begun.leaves,
        counts: begun.counts,
        received: begun.received,
        asleep: Some(kept.unwrap_or(begin.followers)),
        is_far: false,
        elide_rereads,
        may_be_kept: begin.kept.is_none(),
        checkpoint: None,
    };
    // On the way, followers may have something under way.
    if starts || begin.kept.is_some() || plan.form.asks_followers(node, begin.rest.step()) {
        run.wake();
    }
    if starts {
        run.starts();
    }
    run.until_rest(arrivals);
    let followers = run.pack_followers();
    let Run {
        work,
        first,
        mut leaves,
        mut counts,
        checkpoint,
        ..
    } = run;
    debug_assert!(work.is_at_rest());
    work.now = work.now.max(work.elided_until);
    counts.events = work.events;
    // Stable: what is due at one time stays in the order in which it was caused.
    leaves.sort_by_key(|&(at, _)| at);
    Ran {
        rest: Rest::pack(&plan.form, work, first),
        followers,
        leaves,
        counts,
        checkpoint,
    }
}

impl<L: Leader> Run<'_, L> {
    /// Wakes the followers: what comes has to do with them.
    pub(super) fn wake(&mut self) {
        if let Some(followers) = self.asleep.take() {
            followers.wake(&self.plan.form, self.work);
        }
    }

    /// The followers as they are now, unless they sleep.
    pub(super) fn pack_followers(&self) -> Option<FollowersAtRest> {
        let (work, episode) = (&*self.work, self.first.episode);
        (self.asleep.is_none()).then(|| FollowersAtRest::pack(&self.plan.form, work, episode))
    }

    /// All threads begin.
    fn starts(&mut self) {
        let threads = self.plan.form.threads as u16;
        self.goes_on(0, 0);
        if self.foretells() && threads > 1 {
            self.work.push(0, Event::Start);
        } else {
            (1..threads).for_each(|core| self.goes_on(core, 0));
        }
    }

    fn until_rest(&mut self, arrivals: &[Arrival]) {
        loop {
            if self.is_far && self.may_be_kept {
                self.is_far = false;
                self.checkpoint = Checkpoint::of(self);
                self.may_be_kept = self.checkpoint.is_none();
            }
            let next = self.work.next_ps();
            // The engine gives at an edge of its clock, after what happens at that time.
            if let Some(arrival) = arrivals.get(self.received)
                && arrival.given < next
            {
                let event = Event::Receive(self.received as u32);
                self.work.push_at(arrival.at, event);
                self.received += 1;
                continue;
            }
            let Some(event) = self.work.pop() else {
                return;
            };
            self.perform(event, arrivals);
        }
    }

    #[inline]
    fn perform(&mut self, event: Event, arrivals: &[Arrival]) {
        let form = &self.plan.form;
        match event {
            Event::Resume(0) => self.leader_goes_on(),
            Event::Resume(core) => self.follower_goes_on(core),
            Event::Misses(line, on) => self.work.misses(form, line, on),
            Event::Home(line, on) => self.work.arrive(form, line, on),
            Event::Release(line) => self.work.release(form, line),
            Event::Complete(line, on) => match on.act() {
                Act::Read => {
                    self.work.fetched_flag(line);
                    self.leader_has(line, on.value());
                }
                Act::Own(_) => self.leader_has_stored(),
                Act::Write(_) => self.performed(),
            },
            Event::Start => self.all_begin(),
            Event::PhaseHome(on) => self.phase_arrives(on),
            Event::PhaseHomes(class) => self.all_arrive(class),
            Event::PhaseRelease => self.phase_is_released(),
            Event::PhaseComplete(on) => match on.act() {
                Act::Read => {
                    self.work.fetched_phase(on.core());
                    match on.core() {
                        0 => self.leader_has(form.phase, on.value()),
                        core => self.follower_has_phase(core, on.value()),
                    }
                }
                Act::Own(_) => self.leader_has_stored(),
                Act::Write(_) => self.performed(),
            },
            Event::Drain => self.drain(),
            Event::Bridge => self.bridge_next(),
            Event::Receive(number) => {
                if let Some(arrival) = arrivals.get(number as usize) {
                    let (line, value, origin) = (arrival.line, arrival.value, arrival.origin);
                    self.work.bridge.push_back(Written {
                        line,
                        value,
                        origin,
                    });
                    self.bridge_starts();
                }
            }
        }
    }

    /// Thread `number` goes on after what its program does around an operation.
    #[inline]
    pub(super) fn after_operation(&mut self, number: u16) {
        self.goes_on(number, self.plan.form.operation);
    }

    /// Thread `number` goes on when it has run for `after` from now on.
    #[inline]
    pub(super) fn goes_on(&mut self, number: u16, after: u64) {
        let event = Event::Resume(number);
        let constants = &self.plan.constants;
        if constants.is_quiet() {
            return self.work.push(after, event);
        }
        let (now, after) = (Time::from_ps(self.work.now), Time::from_ps(after));
        let at = constants.executes(self.node, number, now, after);
        self.work.push_at(at.as_ps(), event);
    }

    /// A thread enters the barrier.
    #[inline]
    pub(super) fn arrives(&mut self, episode: u32) {
        self.arrives_at(episode, self.work.now);
    }

    /// The same, at `at`.
    #[inline]
    pub(super) fn arrives_at(&mut self, episode: u32, at: u64) {
        self.episode(episode).begins(Time::from_ps(at));
    }

    /// A thread leaves the barrier.
    #[inline]
    pub(super) fn departs(&mut self, episode: u32) {
        self.departs_at(episode, self.work.now);
    }

    /// The same, at `at`.
    #[inline]
    pub(super) fn departs_at(&mut self, episode: u32, at: u64) {
        self.counts.departures += 1;
        self.episode(episode).ends(Time::from_ps(at));
    }

    #[inline]
    fn episode(&mut self, episode: u32) -> &mut SpanTimes {
        let index = (episode - self.counts.first_episode) as usize;
        if index >= self.counts.episodes.len() {
            self.counts.episodes.resize(index + 1, SpanTimes::NONE);
        }
        &mut self.counts.episodes[index]
    }

    fn bridge_starts(&mut self) {
        if !self.work.bridge_busy && !self.work.bridge.is_empty() {
            self.work.bridge_busy = true;
            let at = self.work.now + self.plan.form.bridge;
            self.work.push_at(at, Event::Bridge);
        }
    }

    /// The oldest packet enters the coherent domain, at whose first socket the bridge stands.
    fn bridge_next(&mut self) {
        if let Some(written) = self.work.bridge.pop_front() {
            if self.plan.form.is_followers(written.line) {
                self.wake();
            }
            self.work.bridge_writes(&self.plan.form, written);
        }
    }

    /// A write of the bridge's has been performed.
    fn performed(&mut self) {
        self.counts.performed += 1;
        self.work.bridge_busy = false;
        let constants = &self.plan.constants;
        let cycle = constants.engine_samples(Time::from_ps(self.work.now) + constants.host_way);
        let at = constants.engine_clock.edge(cycle);
        self.leaves.push((at.as_ps(), Leaves::Credit));
        self.bridge_starts();
    }
}
