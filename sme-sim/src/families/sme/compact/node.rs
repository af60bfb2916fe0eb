//! A node of compact form: its way to the others as in any node, and cores and memory that are
//! simulated from rest to rest.
//!
//! The inside of a node needs nothing from outside but packets. So it is run ahead, until it comes
//! to rest, as if no packet came; what leaves it is handed to the host link and the engine when its
//! time has come. A packet that comes later than the node's rest lets it run on from there. One
//! that comes earlier makes the run void: it is repeated with that packet, from the rest before or,
//! if the run was kept on its way and the packet comes after that, from there. The outputs that
//! have left by then were caused earlier than that packet and are the same again.

use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use sme_memory::Leader;

use super::checkpoint::Checkpoint;
use super::followers::FollowersAtRest;
use super::plan::RunPlan;
use super::rest::Rest;
use super::run::{Arrival, Begin, Counts, Leaves, Leaving, run};
use super::stuck::stuck;
use super::work::Work;
use crate::families::sme::cluster::agenda::{Agenda, Event};
use crate::families::sme::cluster::record::Record;
use crate::families::sme::cluster::watched::Watched;
use crate::families::sme::cluster::way::{LinkCredit, Outputs, Way};
use crate::families::sme::engine::{HtChannel, HtPacket, Input};
use crate::kernel::prefetch::{prefetch, prefetch_part};
use crate::kernel::window::{self, Inbox, Outbox};
use crate::observe::spans::EPISODE;
use crate::observe::stuck::Stuck;
use crate::parts::contract::Span;
use crate::parts::inline::heap_bytes;
use crate::time::Time;

/// A node of compact form, or a position that has only a switch.
///
/// The fields that packets between other nodes touch stand together, on as few cache lines as may
/// be.
#[repr(C, align(64))]
pub struct CompactNode<L: Leader> {
    pub(super) performed: u64,
    pub(super) posted: u64,
    pub(super) record: Record,
    /// The time at which anything happens to `inside`: kept here, for most nodes are asked far more
    /// often than anything does, and what is boxed is far away.
    times: Times,
    inside: Option<Box<Inside<L>>>,
    pub(super) events: u64,
    pub(super) me: u32,
    agenda: Agenda,
    way: Way,
}

/// Times of a node's cores and memory, in picoseconds; [`u64::MAX`] is never.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// [`Inside::void_from`]
    void_from: u64,
    /// The time at which something leaves next.
    leaves: u64,
    /// The time at which the last run came to rest, if it is not settled.
    rests: u64,
}

/// Cores and memory. The fields that are read before anything is run come first.
#[repr(C, align(64))]
struct Inside<L: Leader> {
    /// From here on the last run does not tell what happens: a packet has come, or there has been
    /// no run. Picoseconds.
    void_from: u64,
    /// The number of outputs of the last run that have left.
    left: usize,
    /// The outputs of the last run, in order of time.
    leaves: Leaving,
    /// The outputs of earlier runs that have not left yet.
    settled: Leaving,
    /// The arrivals of the last run.
    arrivals: SmallVec<[Arrival; 1]>,
    me: u32,
    /// `before` is not the very first.
    begun: bool,
    /// Of its own: another owner for each run is a word that all workers write.
    plan: Arc<RunPlan<L>>,
    /// At rest, before the last run.
    before: Rest<L::State>,
    /// At rest, after it, unless that is before the next already.
    after: Option<After<L::State>>,
    /// The followers before the last run.
    followers: FollowersAtRest,
    /// The last run on its way, if that was kept.
    checkpoint: Option<Box<Checkpoint<L::State>>>,
}

/// The result of a run that is not part of the record yet.
struct After<S> {
    rest: Rest<S>,
    /// The followers, unless they have slept.
    followers: Option<FollowersAtRest>,
    counts: Counts,
}

impl<L: Leader> Inside<L> {
    /// Bytes of it that are looked at before anything is run.
    const NEAR: Range<usize> = 0..offset_of!(Self, before);
}

/// The working memory of a worker for all its nodes.
#[derive(Default)]
pub struct Workspace {
    outputs: Outputs,
    work: Option<Work>,
    /// Events within nodes that the gauge has not been told.
    simulated: u64,
}

/// The gauge is told of so many events at once: all workers write it.
const TOLD_FROM: u64 = 1 << 16;

impl<L: Leader> CompactNode<L> {
    /// The bytes with which packets between other nodes have to do, about.
    const NEAR: Range<usize> =
        offset_of!(Self, record) + Record::NEAR_FROM..offset_of!(Self, way) + Way::NEAR;
}

impl<L: Leader> CompactNode<L> {
    /// Node `me`, its threads about to start if it has any.
    pub(super) fn new(me: u32, plan: &Arc<RunPlan<L>>, engine: Watched, has_host: bool) -> Self {
        let inside = has_host.then(|| {
            Box::new(Inside {
                me,
                plan: Arc::clone(plan),
                before: Rest::new(&plan.form, me),
                followers: FollowersAtRest::new(&plan.form),
                arrivals: SmallVec::new(),
                after: None,
                checkpoint: None,
                leaves: Leaving::new(),
                left: 0,
                settled: Leaving::new(),
                void_from: 0,
                begun: false,
            })
        });
        Self {
            me,
            way: Way::new(me, Arc::clone(&plan.constants), engine),
            agenda: Agenda::new(me),
            record: Record::new(false),
            events: 0,
            performed: 0,
            posted: 0,
            times: Times::of(inside.as_deref()),
            inside,
        }
    }

    /// The engine.
    pub(super) fn engine(&self) -> &Watched {
        self.way.engine()
    }

    /// Returns whether nothing is under way outside the engine.
    pub(super) fn is_quiet(&self) -> bool {
        let inside = self.inside.as_ref();
        self.agenda.next() == Time::NEVER
            && self.way.is_quiet()
            && inside.is_none_or(|i| i.next_leaves() == u64::MAX && i.void_from == u64::MAX)
    }

    /// The node's cores and memory, at rest.
    pub(super) fn rest(&self) -> Option<&Rest<L::State>> {
        self.inside.as_ref().map(|inside| inside.newest())
    }

    /// Returns the number of its threads that have not ended.
    pub(super) fn unfinished(&self) -> u32 {
        self.rest().map_or(0, |rest| rest.unfinished)
    }

    /// The first `most` of them: what they wait for, if they do so for ever.
    pub(super) fn stuck(&self, most: usize) -> Vec<Stuck> {
        let inside = self.inside.as_ref();
        inside.map_or_else(Vec::new, |inside| {
            let (plan, me) = (&inside.plan, self.me);
            stuck(plan, me, (inside.newest(), inside.newest_followers()), most)
        })
    }

    /// Bytes of simulator state, the engine's apart.
    pub(super) fn bytes(&self) -> usize {
        let inside = self.inside.as_ref().map_or(0, |inside| {
            let after = inside.after.as_ref();
            size_of::<Inside<L>>()
                + inside.before.heap_bytes()
                + inside.followers.heap_bytes()
                + after.map_or(0, After::heap_bytes)
                + inside.checkpoint.as_ref().map_or(0, |kept| kept.bytes())
                + heap_bytes(&inside.arrivals)
                + heap_bytes(&inside.leaves)
                + heap_bytes(&inside.settled)
        });
        size_of::<Self>() - size_of::<Watched>()
            + inside
            + self.way.heap_bytes()
            + self.agenda.heap_bytes()
            + self.record.heap_bytes()
    }

    /// Makes the last run part of the record: no arrival can make it void any more.
    pub(super) fn settle(&mut self) {
        let Some(inside) = &mut self.inside else {
            return;
        };
        let Some(after) = inside.after.take() else {
            return;
        };
        self.times.rests = u64::MAX;
        inside.before = after.rest;
        if let Some(followers) = after.followers {
            inside.followers = followers;
        }
        let counts = after.counts;
        inside.begun = true;
        inside.checkpoint = None;
        inside.arrivals = SmallVec::new();
        inside.left = 0;
        let leaves = std::mem::take(&mut inside.leaves);
        if inside.settled.is_empty() {
            inside.settled = leaves;
        } else {
            inside.settled.extend(leaves);
            inside.settled.sort_by_key(|&(at, _)| at);
        }
        self.record.is_at(Time::from_ps(inside.before.at));
        self.events += counts.events;
        self.performed += counts.performed;
        self.posted += counts.posted;
        self.record.traffic.remote_stores += counts.remote_stores;
        let mut departures = counts.departures;
        for (episode, times) in (counts.first_episode..).zip(counts.episodes) {
            let span = Span::new(EPISODE, episode);
            let departures = std::mem::take(&mut departures);
            self.record.spans.sums.merge(span, times, departures);
        }
    }

    /// The first that leaves cores and memory enters the link or reaches the engine.
    fn lets_leave(&mut self, now: Time) {
        let Some(inside) = &mut self.inside else {
            return;
        };
        let Some(leaves) = inside.pop_leaves() else {
            return;
        };
        self.times.leaves = inside.next_leaves();
        match leaves {
            Leaves::Packet(packet) => {
                self.way.enters_link(now, packet, &mut self.agenda);
            }
            Leaves::Credit => {
                let input = Input::HostCredit(HtChannel::Posted);
                self.way.samples(now, input, &mut self.agenda);
            }
        }
    }

    /// Performs `event` at `now`; the next input from elsewhere is due at `next_at`.
    fn perform(&mut self, event: Event, (now, next_at): (Time, Time), outbox: &mut Outbox<Input>) {
        match event {
            Event::HostReady => {
                self.way.ready(now, &mut self.agenda);
            }
            Event::HostCredit(channel) => {
                self.way.credit(now, channel, &mut self.agenda);
            }
            Event::EnginePacket(arrival) => {
                let when = (now, next_at.min(self.agenda.next()));
                let (agenda, record) = (&mut self.agenda, &mut self.record);
                self.events += (self.way).arrived(arrival, when, agenda, record, outbox);
            }
            Event::EngineHostCredit(channel) => {
                let input = Input::HostCredit(channel);
                self.way.samples(now, input, &mut self.agenda);
            }
            _ => debug_assert!(false, "{event:?} is not of the way"),
        }
    }
}

/// Cores and memory that are to be run until they rest, from the last rest that is still true.
pub struct RunInside<L: Leader> {
    inside: Box<Inside<L>>,
}

impl<L: Leader> window::Task<Workspace> for RunInside<L> {
    const ANY: bool = true;

    fn prefetch(&self) {
        prefetch(&*self.inside);
    }

    fn perform(&mut self, workspace: &mut Workspace) {
        let inside = &mut *self.inside;
        let plan = &*inside.plan;
        let work = (workspace.work).get_or_insert_with(|| Work::new(&plan.form));
        let kept = inside.checkpoint.take();
        let kept = kept.filter(|checkpoint| checkpoint.is_passed(&inside.arrivals));
        let begin = Begin {
            rest: &inside.before,
            followers: &inside.followers,
            is_first: !inside.begun,
            kept: kept.as_deref(),
        };
        let ran = run(plan, inside.me, begin, &inside.arrivals, work);
        inside.checkpoint = ran.checkpoint.or(kept);
        workspace.simulated += ran.counts.events;
        if workspace.simulated >= TOLD_FROM {
            plan.gauge
                .has_simulated(std::mem::take(&mut workspace.simulated));
            plan.gauge.has_come_to(time_of(inside.void_from));
        }
        inside.leaves = ran.leaves;
        inside.leaves.drain(..inside.left);
        inside.after = Some(After {
            rest: ran.rest,
            followers: ran.followers,
            counts: ran.counts,
        });
        inside.void_from = u64::MAX;
    }
}

impl<S: Copy + Default> After<S> {
    fn heap_bytes(&self) -> usize {
        let followers = self.followers.as_ref();
        self.rest.heap_bytes() + followers.map_or(0, FollowersAtRest::heap_bytes)
    }
}

impl Times {
    fn of<L: Leader>(inside: Option<&Inside<L>>) -> Self {
        Self {
            void_from: inside.map_or(u64::MAX, |inside| inside.void_from),
            leaves: inside.map_or(u64::MAX, Inside::next_leaves),
            rests: inside
                .and_then(|inside| inside.after.as_ref())
                .map_or(u64::MAX, |after| after.rest.at),
        }
    }
}

impl<L: Leader> Inside<L> {
    fn newest(&self) -> &Rest<L::State> {
        self.after
            .as_ref()
            .map_or(&self.before, |after| &after.rest)
    }

    fn newest_followers(&self) -> &FollowersAtRest {
        let after = self.after.as_ref();
        let newest = after.and_then(|after| after.followers.as_ref());
        newest.unwrap_or(&self.followers)
    }

    /// The next time at which something leaves.
    fn next_leaves(&self) -> u64 {
        let first = |queue: &Leaving| queue.first().map(|&(at, _)| at);
        let (settled, leaves) = (first(&self.settled), first(&self.leaves));
        settled.unwrap_or(u64::MAX).min(leaves.unwrap_or(u64::MAX))
    }

    /// Takes the output that leaves next.
    fn pop_leaves(&mut self) -> Option<Leaves> {
        let at = self.next_leaves();
        if self.settled.first().is_some_and(|&(first, _)| first == at) {
            return Some(self.settled.remove(0).1);
        }
        self.leaves.first()?;
        let (_, leaves) = self.leaves.remove(0);
        self.left += 1;
        Some(leaves)
    }
}

/// Translates a packet that the engine gives at `given` into its arrival inside at `at`.
fn arrival<L: Leader>(
    plan: &RunPlan<L>,
    given: Time,
    at: Time,
    packet: &HtPacket,
) -> Option<Arrival> {
    let HtPacket::Write {
        address,
        data,
        trace,
        ..
    } = *packet
    else {
        return None;
    };
    let offset = address.checked_sub(plan.constants.map.physical(0))?;
    let line = plan.form.line(offset);
    (usize::from(line) < plan.form.lines).then_some(Arrival {
        given: given.as_ps(),
        at: at.as_ps(),
        line,
        value: u8::from(data != 0),
        origin: trace,
    })
}

impl<L: Leader> window::Node for CompactNode<L> {
    type Message = Input;
    type Late = LinkCredit;
    type Workspace = Workspace;
    type Task = RunInside<L>;

    fn next(&self) -> Time {
        let inside = self.times.void_from.min(self.times.leaves);
        self.agenda.next().min(self.way.next()).min(time_of(inside))
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, Input>,
        outbox: &mut Outbox<Input>,
        workspace: &mut Workspace,
    ) -> Option<RunInside<L>> {
        loop {
            let void_from = time_of(self.times.void_from);
            let leaves_at = time_of(self.times.leaves);
            let (event, message) = (self.agenda.next_key(), inbox.next_key());
            let (event_at, tick_at) = (event.min(message).at(), self.way.next());
            let now = leaves_at.min(event_at).min(tick_at);
            if void_from <= now && void_from < end {
                let inside = self.inside.take()?;
                return Some(RunInside { inside });
            }
            if now >= end {
                break;
            }
            self.record.is_at(now);
            if leaves_at == now {
                self.events += 1;
                self.lets_leave(now);
            } else if event_at == now && message < event {
                let Some(input) = inbox.pop() else {
                    break;
                };
                self.events += 1;
                let when = (now, event.min(inbox.next_key()).at());
                let (agenda, record) = (&mut self.agenda, &mut self.record);
                self.events += self.way.takes(input, when, agenda, record, outbox);
            } else if event_at == now {
                let Some((_, event)) = self.agenda.pop() else {
                    break;
                };
                self.events += 1;
                self.perform(event, (now, message.at()), outbox);
            } else {
                let limit = end.min(leaves_at).min(void_from).min(message.at());
                self.ticks(limit, outbox, &mut workspace.outputs);
            }
        }
        let (agenda, record) = (&mut self.agenda, &mut self.record);
        self.events += (self.way).foresees(agenda, record, outbox, &mut workspace.outputs);
        // Nothing can come before the end of the window any more.
        if self.times.void_from == u64::MAX && time_of(self.times.rests) < end {
            self.settle();
        }
        None
    }

    fn can_wait(message: &Input) -> Option<LinkCredit> {
        Way::can_wait(message)
    }

    fn waits(&self) -> bool {
        self.way.awaits_link_credits()
    }

    fn take_back(&mut self, ran: RunInside<L>) {
        self.times = Times::of(Some(&ran.inside));
        self.inside = Some(ran.inside);
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, input: Input) {
        self.way
            .comes(at, (from, sequence), input, &mut self.agenda);
    }

    #[inline]
    fn take_late(&mut self, at: Time, credit: LinkCredit, start: Time) {
        self.events += 1;
        self.way.takes_credit(at, credit, start, &mut self.record);
    }
}

impl<L: Leader> window::Locality for CompactNode<L> {
    #[inline]
    fn prefetch(&self) {
        prefetch_part(self, Self::NEAR);
    }

    #[inline]
    fn prefetch_far<'a>(
        &self,
        messages: impl Iterator<Item = &'a Input>,
        late: impl Iterator<Item = LinkCredit>,
    ) {
        late.for_each(|credit| self.way.prefetch(&credit.into()));
        let mut is_busy = self.times.leaves != u64::MAX
            || self.way.next() != Time::NEVER
            || self.agenda.next() != Time::NEVER;
        for input in messages {
            self.way.prefetch(input);
            is_busy |= matches!(input, Input::Link { packet, .. } if packet.target == self.me);
        }
        if is_busy {
            self.agenda.prefetch();
            prefetch_part(self, Self::NEAR.end..size_of::<Self>());
            // The engine's host side, with which its credits have to do.
            self.way.prefetch(&Input::HostCredit(HtChannel::Posted));
            if let Some(inside) = &self.inside {
                prefetch_part(&**inside, Inside::<L>::NEAR);
            }
        }
    }
}

impl<L: Leader> CompactNode<L> {
    /// Edges of the engine's clock, before `limit`.
    fn ticks(&mut self, limit: Time, outbox: &mut Outbox<Input>, outputs: &mut Outputs) {
        let mut came = Vec::new();
        let (given, now) = self.way.ticks(
            limit,
            &mut self.agenda,
            &mut self.record,
            outbox,
            outputs,
            |_, at, packet, _| came.push((at, packet)),
        );
        self.events += given;
        self.record.is_at(now);
        for (at, packet) in came {
            let plan = self.inside.as_ref().map(|inside| &inside.plan);
            let Some(arrival) = plan.and_then(|plan| arrival(plan, now, at, &packet)) else {
                debug_assert!(false, "a packet that no leader sends");
                continue;
            };
            self.comes(arrival);
        }
    }

    /// A packet will come inside.
    fn comes(&mut self, arrival: Arrival) {
        let Some(inside) = &self.inside else {
            return;
        };
        let ran = inside.void_from == u64::MAX;
        if ran && arrival.at > inside.newest().at {
            self.settle();
        }
        if let Some(inside) = &mut self.inside {
            inside.arrivals.push(arrival);
            inside.void_from = inside.void_from.min(arrival.at);
            self.times = Times::of(Some(inside));
        }
    }
}

fn time_of(ps: u64) -> Time {
    match ps {
        u64::MAX => Time::NEVER,
        ps => Time::from_ps(ps),
    }
}
