//! Nodes in windows of time.
//!
//! An action of one node reaches another no sooner than the smallest latency between two nodes, the
//! *lookahead*. So all nodes are independent within a window of that length: each runs its own
//! events to the window's end, and messages are handed over for a later window. Windows start at
//! the earliest pending event of the whole machine, so idle time costs nothing. The result does not
//! depend on the number of workers, nor on the number of processes ([`super::peers`]): windows are
//! the same, and each node orders what it receives by (time, source, sequence).

mod block;
mod inbox;
mod joint;
mod letters;
mod rendezvous;
mod shard;
mod tasks;
#[cfg(test)]
mod tests;
mod workers;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use inbox::Inbox;
pub use joint::Joint;
pub use letters::FORMAT;

use super::peers::{Alone, PeerError, Peers, Shares};
use crate::kernel::prefetch::prefetch;
use crate::time::Time;
use workers::ProcessShare;

/// A message between nodes: sent to other threads as it is, and to other processes serialized.
pub trait Message: Send + Serialize + DeserializeOwned {}

impl<M: Send + Serialize + DeserializeOwned> Message for M {}

/// A part of the machine that only messages connect to the others.
pub trait Node: Send {
    /// The type of messages between nodes.
    type Message: Message;

    /// A message that can wait, without what only others need: most of a large machine's messages
    /// are such; [`NoLate`] if there are none.
    type Late: Copy + Send;

    /// Scratch memory that a node needs only while it advances, empty before and after: each worker
    /// has one for all its nodes.
    type Workspace: Default + Send;

    /// Work that must be done before a node can go on, and that takes so long that any idle worker
    /// should take it over; [`NoTask`] if there is none.
    type Task: Task<Self::Workspace>;

    /// Returns the time at which it will next do something, [`Time::NEVER`] if only a message can
    /// make it.
    fn next(&self) -> Time;

    /// Does everything that happens before `end`, or as far as it comes without the task that it
    /// returns; it is asked again when that has been [taken back](Self::take_back). Messages that
    /// arrive before `end` are in `inbox`, besides those that can wait; those still in it when a
    /// task is returned may be [delivered](Self::deliver) before it goes on.
    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, Self::Message>,
        outbox: &mut Outbox<Self::Message>,
        workspace: &mut Self::Workspace,
    ) -> Option<Self::Task>;

    /// Takes back a task that is done. For nodes that have any.
    fn take_back(&mut self, _task: Self::Task) {}

    /// Returns whether `message` changes what happens next only at nodes that [wait](Self::waits)
    /// for such, and as what: others can be given it, late, when they have something to do anyhow.
    fn can_wait(_message: &Self::Message) -> Option<Self::Late> {
        None
    }

    /// Returns whether it waits for messages that [can wait](Self::can_wait) with others.
    fn waits(&self) -> bool {
        true
    }

    /// Takes a message to keep: it arrives at `at`, which is not over for this node;
    /// [`next`](Self::next) tells afterwards whether anything is to be done about it.
    fn deliver(&mut self, at: Time, from: u32, sequence: u64, message: Self::Message);

    /// Takes a message that [can wait](Self::can_wait), which arrives, or arrived, at `at`, in any
    /// order; nothing before `start` is still to happen, here or anywhere.
    fn take_late(&mut self, at: Time, late: Self::Late, start: Time);
}

/// Hints about the place of a node in the host's memory. They change the speed of a run and nothing
/// else.
pub trait Locality: Node {
    /// Prefetches the near part: the state in the node itself that is needed to advance it.
    #[inline]
    fn prefetch(&self) {
        prefetch(self);
    }

    /// Prefetches the rest of the state that these messages and the next advance need. The near
    /// part, [prefetched before](Self::prefetch), has arrived by then.
    fn prefetch_far<'a>(
        &self,
        _messages: impl Iterator<Item = &'a Self::Message>,
        _late: impl Iterator<Item = Self::Late>,
    ) where
        Self::Message: 'a,
    {
    }
}

/// The message that can wait of nodes that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLate {}

/// Work that any worker can do for a node: it needs nothing else of the node, and its result does
/// not depend on the worker.
pub trait Task<W>: Send {
    /// Whether there are any tasks: the workers then meet once more in each window.
    const ANY: bool;

    /// Does it, in a worker's workspace.
    fn perform(&mut self, workspace: &mut W);

    /// Prefetches the memory that `perform` will touch.
    fn prefetch(&self) {}
}

/// The task of nodes that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTask {}

impl<W> Task<W> for NoTask {
    const ANY: bool = false;

    fn perform(&mut self, _: &mut W) {
        match *self {}
    }
}

/// Messages a node sends during a window.
#[derive(Debug)]
pub struct Outbox<M> {
    messages: Vec<Envelope<M>>,
}

#[derive(Debug)]
struct Envelope<M> {
    to: u32,
    at: Time,
    from: u32,
    sequence: u64,
    message: M,
}

impl<M> Outbox<M> {
    fn new() -> Self {
        Self {
            messages: Vec::new(),
        }
    }

    /// Sends `message` from node `from`, whose `sequence`-th it is, to arrive at node `to` at `at`.
    pub fn send(&mut self, from: u32, sequence: u64, to: u32, at: Time, message: M) {
        self.messages.push(Envelope {
            to,
            at,
            from,
            sequence,
            message,
        });
    }
}

/// Bytes that a worker keeps for each of its nodes while it runs them.
pub const BYTES_PER_NODE: usize = size_of::<Time>();

/// The decision of a run's watcher after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Stop here.
    Stop,
}

/// The traffic of one process with the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Exchanged {
    /// Windows: the same for all processes.
    pub windows: u64,
    /// Messages sent to nodes of other processes.
    pub messages: u64,
    /// Bytes of the letters in which they went.
    pub bytes: u64,
}

/// Runs `nodes` until nothing can happen any more, or `watch` stops it; returns the start of the
/// last window.
///
/// `watch` sees the start of a window and all nodes; it is called before the first window that
/// starts at or after the time it last asked for (at first [`Time::ZERO`]), and only there, so it
/// costs nothing in between. With several workers the nodes are lent back to one thread for the
/// call.
pub fn run<N: Locality>(
    nodes: &mut [N],
    lookahead: Time,
    workers: usize,
    mut watch: impl FnMut(Time, &[N]) -> (Verdict, Time),
) -> Time {
    let all = nodes.len() as u32;
    let watch = |now, nodes: &[N], _: &mut dyn Peers| Ok(watch(now, nodes));
    match run_among(&mut Alone, all, nodes, lookahead, workers, watch) {
        Ok((last, _)) => last,
        // There is no other process that could have gone.
        Err(_) => Time::ZERO,
    }
}

/// The same where `nodes` are those of this process, its share ([`Shares`]) of `all` that are
/// simulated together with `peers`. Also returns what was exchanged with them.
///
/// The decision of `watch` must be the same in all processes; it is called in all of them before
/// the same window, and may ask the others.
///
/// # Errors
/// [`PeerError`] if the processes cannot go on together, and what `watch` says.
pub fn run_among<N: Locality>(
    peers: &mut dyn Peers,
    all: u32,
    nodes: &mut [N],
    lookahead: Time,
    workers: usize,
    mut watch: impl FnMut(Time, &[N], &mut dyn Peers) -> Result<(Verdict, Time), PeerError>,
) -> Result<(Time, Exchanged), PeerError> {
    let share = ProcessShare {
        shares: Shares::new(all, peers.count()),
        me: peers.me(),
    };
    let mut exchanged = Exchanged::default();
    let mut next: Vec<Time> = nodes.iter().map(Node::next).collect();
    let mut now = Time::ZERO;
    let mut pause = Time::ZERO;
    loop {
        let reached = workers::advance(
            (&mut *nodes, &mut next),
            share,
            lookahead,
            (workers, pause),
            peers,
            &mut exchanged,
        )?;
        if reached.next == Time::NEVER {
            if reached.last != Time::NEVER {
                now = reached.last;
            }
            return Ok((now, exchanged));
        }
        now = reached.next;
        let (verdict, again_at) = watch(now, nodes, peers)?;
        if verdict == Verdict::Stop {
            return Ok((now, exchanged));
        }
        pause = again_at.max(now + Time::from_ps(1));
    }
}
