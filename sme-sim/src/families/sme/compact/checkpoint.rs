//! A run on its way, kept so that it can be taken up again there.
//!
//! A packet that comes before a run's end makes void only what follows it, and it mostly comes
//! late: nodes gather their threads side by side, and the first that is done sends while the others
//! still gather. By then all followers wait again, so that little is under way, and the state is
//! that of a [`Rest`] and a few events more.

use super::event::{Event, Written};
use super::followers::FollowersAtRest;
use super::plan::RunPlan;
use super::rest::Rest;
use super::run::{Arrival, Begun, Run};
use super::work::Work;
use sme_memory::Leader;

/// With more events pending than this a run is not kept: some followers still go on.
const MOST_PENDING: usize = 64;

/// A run on its way.
pub struct Checkpoint<S> {
    /// All that does not depend on what is under way.
    state: Rest<S>,
    /// The followers, if they are not where the run began.
    followers: Option<FollowersAtRest>,
    under_way: UnderWay,
    begun: Begun<S>,
}

/// The work that [`Work`] has under way besides.
pub struct UnderWay {
    /// Events in their order: when and what.
    pub pending: Box<[(u64, u32)]>,
    /// Lines about which something is remembered: their number, what waits for them, their marks.
    pub lines: Box<[(u16, u32, u8)]>,
    /// Writes that the bridge has not taken.
    pub bridge: Box<[Written]>,
    /// The bridge is at work.
    pub bridge_busy: bool,
    /// The origins of the writes that the bridge and the leader perform.
    pub origins: [u32; 2],
    /// Events so far.
    pub events: u64,
    /// [`Work::elided_until`]
    pub elided_until: u64,
}

impl<S: Copy + Default> Checkpoint<S> {
    /// Keeps `run`, if no follower has anything under way but stores that no thread waits for.
    pub fn of<L: Leader<State = S>>(run: &Run<'_, L>) -> Option<Box<Self>> {
        let under_way = run.work.under_way(MOST_PENDING)?;
        let follower = |&(_, code): &(u64, u32)| matches!(Event::of(code), Event::Resume(1..));
        if under_way.pending.iter().any(follower) {
            return None;
        }
        Some(Box::new(Self {
            state: Rest::pack(&run.plan.form, run.work, run.first),
            followers: run.pack_followers(),
            under_way,
            begun: Begun {
                first: run.first,
                stores: run.stores.clone(),
                store_under_way: run.store_under_way,
                leaves: run.leaves.clone(),
                counts: run.counts.clone(),
                received: run.received,
            },
        }))
    }

    /// Returns whether a run among these `arrivals`, in order of time, comes through here.
    pub fn is_passed(&self, arrivals: &[Arrival]) -> bool {
        let next = arrivals.get(self.begun.received);
        next.is_none_or(|arrival| arrival.given >= self.state.at)
    }

    /// The followers, if they are not where the run began.
    pub fn followers(&self) -> Option<&FollowersAtRest> {
        self.followers.as_ref()
    }

    /// The run, taken up again, its followers asleep.
    pub fn resume(&self, plan: &RunPlan<impl Leader>, work: &mut Work) -> Begun<S> {
        self.state.unpack(&plan.form, work);
        work.take_up(&self.under_way);
        self.begun.clone()
    }

    /// Bytes of it, but for what leaves and what is counted, which are few.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.state.heap_bytes()
            + self
                .followers
                .as_ref()
                .map_or(0, FollowersAtRest::heap_bytes)
            + size_of_val(&*self.under_way.pending)
            + size_of_val(&*self.under_way.lines)
            + size_of_val(&*self.under_way.bridge)
    }
}
