//! Communicators (MPI-4.1, Ch. 7) as handles: a group of ranks, and contexts that keep its messages
//! apart from all others.
//!
//! One rank makes a context, from its own number, the number of its process among those that have
//! had this rank, and a count: no two are equal, and the others need only be told. Its lowest bits
//! are the plane: point-to-point messages, those of collective calls, of windows and so on.

pub(crate) mod create;
pub(crate) mod ports;
pub(crate) mod world;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use crate::attributes::Attributes;
use crate::collective::choice::On;
use crate::device::Maker;
use crate::error::{ErrorClass, ErrorHandler, Fault};
use crate::group::Group;
use crate::info::Info;
use crate::topology::Topology;

/// The kinds of messages of one communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Those of sends and receives.
    Point,
    /// Those of collective calls.
    Collective,
    /// Those that create communicators out of parts of others, with a tag of the user's.
    Create,
    /// Those of the window over it, if it is one's.
    Window,
    /// Those by which sends in partitions find their receives.
    Partition,
}

const PLANE_BITS: u32 = 3;
const COUNT_BITS: u32 = 28;
const BIRTH_BITS: u32 = 12;

/// The context number `count` of those that `maker` makes.
pub(crate) fn context((rank, birth): Maker, count: u32) -> u64 {
    let birth = u64::from(birth) % (1 << BIRTH_BITS);
    let maker = u64::from(rank) << BIRTH_BITS | birth;
    (maker << COUNT_BITS | u64::from(count)) << PLANE_BITS
}

/// A communicator. Cheap to clone: clones are the same communicator.
#[derive(Clone)]
pub struct Comm(Arc<Inner>);

struct Inner {
    context: u64,
    group: Group,
    rank: u32,
    /// The other group of an intercommunicator.
    remote: Option<Remote>,
    topology: Option<Topology>,
    /// Collective calls so far.
    calls: AtomicU32,
    is_freed: AtomicBool,
    /// Whether this was the world until the world grew or shrank.
    is_replaced: AtomicBool,
    /// A rank of the job that was in it and has left the world.
    gone: OnceLock<u32>,
    /// Whether this rank is a member of the communicator.
    is_member: bool,
    handler: Mutex<ErrorHandler>,
    name: Mutex<String>,
    attributes: Attributes,
    info: Mutex<Info>,
    on: OnceLock<On>,
}

/// The other side of an intercommunicator.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) group: Group,
    /// A communicator of the own side.
    pub(crate) local: Comm,
}

impl Inner {
    /// Of `group`, in which this rank has number `rank`, with nothing attached.
    fn new(context: u64, group: Group, rank: u32) -> Self {
        Self {
            context,
            group,
            rank,
            remote: None,
            topology: None,
            calls: AtomicU32::new(0),
            is_freed: AtomicBool::new(false),
            is_replaced: AtomicBool::new(false),
            gone: OnceLock::new(),
            is_member: true,
            handler: Mutex::default(),
            name: Mutex::default(),
            attributes: Attributes::default(),
            info: Mutex::default(),
            on: OnceLock::new(),
        }
    }
}

impl Comm {
    /// Of `group`, in which this rank has number `rank`.
    pub(crate) fn new(context: u64, group: Group, rank: u32) -> Self {
        Self::with(context, group, rank, None, None)
    }

    /// Of `group`, in which this rank is not: calls over it end with an error.
    pub(crate) fn of_others(context: u64, group: Group) -> Self {
        Self(Arc::new(Inner {
            is_member: false,
            ..Inner::new(context, group, u32::MAX)
        }))
    }

    /// With another side, or a topology.
    pub(crate) fn with(
        context: u64,
        group: Group,
        rank: u32,
        remote: Option<Remote>,
        topology: Option<Topology>,
    ) -> Self {
        Self(Arc::new(Inner {
            remote,
            topology,
            ..Inner::new(context, group, rank)
        }))
    }

    /// The same with the attributes that a duplicate of `original` gets, and its error handler.
    pub(crate) fn duplicating(self, original: &Self) -> Self {
        *self.handler().lock() = original.handler().lock().clone();
        match Arc::try_unwrap(self.0) {
            Ok(mut inner) => {
                inner.attributes = original.attributes().copied();
                Self(Arc::new(inner))
            }
            // A new communicator has no clones.
            Err(shared) => Self(shared),
        }
    }

    /// Makes the communicator that takes the place of this one, which is not used any more: of
    /// another group, in which this rank has number `rank`, with all that was attached. Its
    /// collective calls are numbered from `calls` on.
    pub(crate) fn replaced(&self, (context, calls): (u64, u32), group: Group, rank: u32) -> Self {
        let of = &self.0;
        of.is_replaced.store(true, Ordering::Relaxed);
        Self(Arc::new(Inner {
            calls: AtomicU32::new(calls),
            handler: Mutex::new(of.handler.lock().clone()),
            name: Mutex::new(of.name.lock().clone()),
            attributes: of.attributes.moved(),
            info: Mutex::new(of.info.lock().clone()),
            ..Inner::new(context, group, rank)
        }))
    }

    /// Collective calls so far.
    pub(crate) fn calls(&self) -> u32 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// Of those that exist at this rank, those with a rank of `leaves` in them cannot be used any
    /// more.
    pub(crate) fn part(existing: &Existing, leaves: &Group) {
        for inner in existing.0.lock().iter().filter_map(Weak::upgrade) {
            let remote = inner.remote.iter().map(|remote| &remote.group);
            let mut ranks = remote.chain([&inner.group]).flat_map(Group::world_ranks);
            if let Some(gone) = ranks.find(|&rank| leaves.rank_of(rank).is_some()) {
                inner.gone.get_or_init(|| gone);
            }
        }
    }

    /// This rank's number in it.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Ranks of its (own) group.
    pub fn size(&self) -> u32 {
        self.0.group.size()
    }

    /// Its group; of an intercommunicator the own one.
    pub fn group(&self) -> &Group {
        &self.0.group
    }

    /// The other group of an intercommunicator.
    pub fn remote_group(&self) -> Option<&Group> {
        self.0.remote.as_ref().map(|remote| &remote.group)
    }

    /// The ranks that its messages go to and come from.
    pub(crate) fn peers(&self) -> &Group {
        self.remote_group().unwrap_or(&self.0.group)
    }

    pub(crate) fn remote(&self) -> Option<&Remote> {
        self.0.remote.as_ref()
    }

    /// Its topology, if it has one.
    pub fn topology(&self) -> Option<&Topology> {
        self.0.topology.as_ref()
    }

    /// Returns whether it is the same communicator.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.context == other.0.context
    }

    /// Its ranks as the choice of an algorithm sees them; the job has `per_node` ranks on each
    /// node.
    pub(crate) fn on(&self, per_node: u32) -> On {
        let on = || On::new(self.0.group.world_ranks(), per_node);
        *self.0.on.get_or_init(on)
    }

    /// The context that its planes have in common.
    pub(crate) fn made_context(&self) -> u64 {
        self.0.context
    }

    pub(crate) fn context(&self, plane: Plane) -> u64 {
        self.0.context | plane as u64
    }

    /// The tag of the next collective call: all ranks make the same calls in the same order.
    pub(crate) fn next_call(&self) -> i32 {
        (self.0.calls.fetch_add(1, Ordering::Relaxed) & i32::MAX as u32) as i32
    }

    pub(crate) fn handler(&self) -> &Mutex<ErrorHandler> {
        &self.0.handler
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.0.attributes
    }

    pub(crate) fn info(&self) -> &Mutex<Info> {
        &self.0.info
    }

    pub(crate) fn name(&self) -> &Mutex<String> {
        &self.0.name
    }

    /// Ends its use by this rank.
    pub(crate) fn set_freed(&self) {
        self.0.attributes.delete_all();
        self.0.is_freed.store(true, Ordering::Relaxed);
    }

    /// Returns whether it may be used.
    ///
    /// # Errors
    /// It has been freed, or this rank is not in it, or another one has left.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let text = match self.0.gone.get() {
            Some(gone) => format!("rank {gone} of the job has left the communicator"),
            None if self.0.is_freed.load(Ordering::Relaxed) => {
                "the communicator has been freed".to_owned()
            }
            None if self.0.is_replaced.load(Ordering::Relaxed) => {
                "the world has changed since the communicator was asked for".to_owned()
            }
            None if !self.0.is_member => "this rank is not in the communicator".to_owned(),
            None => return Ok(()),
        };
        Err(Fault::new(ErrorClass::Comm, "comm", text))
    }
}

/// The communicators that exist at a rank.
#[derive(Debug, Default)]
pub(crate) struct Existing(Mutex<Vec<Weak<Inner>>>);

impl Existing {
    /// Fewer are not looked through for those that are not there any more.
    const FEW: usize = 32;

    /// One more.
    pub(crate) fn is_made(&self, comm: &Comm) {
        let mut all = self.0.lock();
        if all.len() >= Self::FEW && all.len() == all.capacity() {
            all.retain(|inner| inner.strong_count() > 0);
            let room = all.len();
            all.reserve(room);
        }
        all.push(Arc::downgrade(&comm.0));
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comm")
            .field("context", &self.context)
            .field("rank", &self.rank)
            .field("group", &self.group)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
