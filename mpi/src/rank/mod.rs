//! A rank's view of its job, for programs in Rust.
//!
//! ```
//! use sme_mpi::op::Op;
//! use sme_mpi::rank::{Mpi, Source, Tag};
//! use sme_mpi::wires::{Setting, run};
//!
//! let outcome = run(2, Setting { room: 64, seed: 1 }, |wire| async move {
//!     let mpi = Mpi::new(wire);
//!     let world = mpi.world();
//!     if world.rank() == 0 {
//!         world.send(&[1.5, 2.5], 1, 7).await?;
//!     } else {
//!         let mut values = [0.0; 2];
//!         let status = world.receive(&mut values, Source::Any, Tag::Any).await?;
//!         assert_eq!((status.source, status.tag, values), (0, 7, [1.5, 2.5]));
//!     }
//!     let mut sum = [0];
//!     world.allreduce(&[world.rank()], &mut sum, &Op::Sum).await?;
//!     assert_eq!(sum, [1]);
//!     mpi.finalize().await
//! });
//! assert_eq!(outcome, Ok(vec![Ok(()); 2]));
//! ```
//!
//! * [`Mpi`] is the library as one rank has it; [`Communicator`] has the calls.
//! * A call that has not ended is a [`Request`].
//! * A rank makes one call at a time: two futures of one rank must not be polled in turn. The
//!   second one ends with an error.

mod blocks;
mod calls;
pub mod collectives;
pub mod communicators;
mod ends;
pub(crate) mod files;
pub mod given;
mod launches;
mod neighbors;
pub mod partitioned;
pub mod persistent;
pub mod point;
mod ports;
pub mod request;
mod spawn;
mod standby;
pub mod topologies;
pub mod windows;
mod worlds;

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, RwLock};

use crate::channel::Channel;
use crate::channel::transfers::Transfers;
use crate::collective::choice::{Algorithm, Choice, Collective};
use crate::collective::{Call, barrier, inter};
use crate::comm::create::teams;
use crate::comm::ports::Ports;
use crate::comm::{Comm, Existing, context};
use crate::datatype::{Datatype, pack};
use crate::device::direct::Pending;
use crate::device::driver::{self, Site};
use crate::device::matching::Envelope;
use crate::device::{CallForm, Device, Outcome, Task};
use crate::error::{ErrorClass, Fault, MpiError, Truncated};
use crate::group::Group;
pub use blocks::Blocks;
use calls::Calls;
pub(crate) use calls::Entered;
pub use communicators::Comparison;
pub use given::{InPlace, Layout, Sent};
pub use ports::NameService;
pub use request::Request;
use request::{Landing, Launch};
pub use spawn::{Arrival, Starter};
use standby::Orders;
pub use standby::{Begun, OnStandby};
pub use windows::{Target, Window};

/// The largest tag (MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// No process: sends to it and receives from it end at once (MPI_PROC_NULL).
pub const PROC_NULL: u32 = u32::MAX;

/// In an intercommunicator, the rank that is the root itself (MPI_ROOT).
pub const ROOT: u32 = u32::MAX - 2;

/// The sender that a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This rank, or [`PROC_NULL`].
    Rank(u32),
    /// Any rank (MPI_ANY_SOURCE).
    Any,
}

/// The tag that a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// This tag.
    Is(i32),
    /// Any tag (MPI_ANY_TAG).
    Any,
}

/// The known properties of a message (MPI_Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its sender.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether the request was cancelled (MPI_Test_cancelled).
    pub is_cancelled: bool,
}

impl From<Truncated> for Status {
    fn from(truncated: Truncated) -> Self {
        let Truncated { source, tag, bytes } = truncated;
        Self {
            source,
            tag,
            bytes,
            is_cancelled: false,
        }
    }
}

impl Status {
    /// The status of a request that has no message.
    pub const EMPTY: Self = Self {
        source: ANY_SOURCE,
        tag: ANY_TAG,
        bytes: 0,
        is_cancelled: false,
    };

    /// The status of a receive from [`PROC_NULL`].
    pub const NO_PROCESS: Self = Self {
        source: PROC_NULL,
        ..Self::EMPTY
    };

    /// Returns the number of elements of `datatype` received, if they are whole (MPI_Get_count).
    pub fn count(&self, datatype: &Datatype) -> Option<u64> {
        pack::get_count(self.bytes, datatype)
    }
}

/// The source in a status that has none.
pub const ANY_SOURCE: u32 = u32::MAX - 1;

/// The tag in a status that has none.
pub const ANY_TAG: i32 = -1;

/// The library as one rank has it.
#[derive(Debug)]
pub struct Mpi<C> {
    channel: C,
    device: Arc<Device>,
    worlds: RwLock<Worlds>,
    existing: Existing,
    ports: Arc<Mutex<Ports>>,
    orders: Arc<Mutex<Orders>>,
    choice: RwLock<Choice>,
    calls: Calls,
    /// The time for which the rank's programs have computed or slept, in picoseconds.
    pub(crate) passed_ps: AtomicU64,
}

/// The communicators that a rank has from the beginning.
#[derive(Debug)]
struct Worlds {
    world: Comm,
    local: Comm,
    /// That of itself.
    own: Comm,
    /// That with the group that has had the world started.
    parent: Option<Comm>,
}

impl Worlds {
    /// A world without ranks outside, and without a parent.
    fn alone(world: Comm, own: Comm) -> Self {
        Self {
            local: world.clone(),
            world,
            own,
            parent: None,
        }
    }
}

/// A communicator of a rank, with the calls over it.
#[derive(Debug)]
pub struct Communicator<'m, C> {
    pub(crate) mpi: &'m Mpi<C>,
    pub(crate) comm: Comm,
}

impl<C> Clone for Communicator<'_, C> {
    fn clone(&self) -> Self {
        Self {
            mpi: self.mpi,
            comm: self.comm.clone(),
        }
    }
}

/// The communicator of a rank alone, with this context.
fn alone(rank: u32, context: u64) -> Comm {
    // One rank is not there twice.
    let group = Group::from_world_ranks(vec![rank]).unwrap_or(Group::empty());
    Comm::new(context, group, 0)
}

/// The number of the context of a rank's own communicator, among those that it makes.
const OWN_COUNT: u32 = 1;

impl<C: Channel> Mpi<C> {
    /// The rank that has `channel`, in a world of all ranks but those outside.
    pub fn new(channel: C) -> Self {
        let (rank, ranks) = (channel.rank(), channel.ranks());
        let inside = ranks.saturating_sub(channel.outside());
        let (group, at) = (Group::world(inside), context((0, 0), 0));
        let world = match rank < inside {
            true => Comm::new(at, group, rank),
            false => Comm::of_others(at, group),
        };
        let local = match inside == ranks {
            true => world.clone(),
            // The first rank outside makes no other with this count.
            false => Comm::new(context((inside, 0), 0), Group::world(ranks), rank),
        };
        Self::with(channel, (world, local), 0)
    }

    /// The rank that has `channel`, in a world of these ranks of the channel, which all of them
    /// name alike: programs that were started apart have each a world of their own. `birth` tells
    /// this process, and those that are started with it, from earlier ones with the same ranks.
    ///
    /// # Errors
    /// [`ErrorClass::Group`] if this rank is not among them, or there is no such rank;
    /// [`ErrorClass::Rank`] if one is there twice.
    pub fn within(channel: C, ranks: &[u32], birth: u32) -> Result<Self, MpiError> {
        let rank = channel.rank();
        let wrong = |text: String| {
            let fault = Fault::new(ErrorClass::Group, "world", text);
            fault.at(rank, "MPI_Init")
        };
        if let Some(other) = ranks.iter().find(|&&other| other >= channel.ranks()) {
            return Err(wrong(format!("there is no rank {other}")));
        }
        let group = Group::from_world_ranks(ranks.to_vec());
        let group = group.map_err(|fault| fault.at(rank, "MPI_Init"))?;
        let (Some(&first), Some(me)) = (ranks.first(), group.rank_of(rank)) else {
            return Err(wrong("this rank is not in it".to_owned()));
        };
        // The first rank makes no other with this count.
        let world = Comm::new(context((first, birth), 0), group, me);
        Ok(Self::with(channel, (world.clone(), world), birth))
    }

    fn with(channel: C, (world, local): (Comm, Comm), birth: u32) -> Self {
        let (rank, ranks) = (channel.rank(), channel.ranks());
        let transfers = channel.transfers().map(Transfers::abilities);
        let device = Device::new((rank, ranks), channel.eager_bytes(), transfers);
        let device = Arc::new(device.born(birth));
        channel.serves(Pending(Arc::clone(&device)));
        let own = alone(rank, context(device.maker(), OWN_COUNT));
        let worlds = Worlds {
            local,
            ..Worlds::alone(world, own)
        };
        Self {
            ports: Ports::of(&device),
            orders: Orders::of(&device),
            channel,
            device,
            worlds: RwLock::new(worlds),
            existing: Existing::default(),
            choice: RwLock::default(),
            calls: Calls::default(),
            passed_ps: AtomicU64::new(0),
        }
    }

    /// The communicator of all ranks (MPI_COMM_WORLD). When the world has grown or shrunk it is
    /// another one, and the one before is not used any more.
    pub fn world(&self) -> Communicator<'_, C> {
        self.on(self.worlds.read().world.clone())
    }

    /// The communicator of all ranks of the job, those of I/O subsystems included, which are the
    /// last ones and not in the world (MPI_COMM_LOCAL of Ho et al., Sec. II). Without such ranks it
    /// is the world.
    pub fn local(&self) -> Communicator<'_, C> {
        self.on(self.local_comm())
    }

    fn local_comm(&self) -> Comm {
        self.worlds.read().local.clone()
    }

    /// Returns whether it is one of those that are there from the beginning to the end.
    fn is_predefined(&self, comm: &Comm) -> bool {
        let worlds = self.worlds.read();
        [&worlds.world, &worlds.local, &worlds.own]
            .iter()
            .any(|of| comm.is(of))
    }

    /// The communicator of this rank alone (MPI_COMM_SELF).
    pub fn own(&self) -> Communicator<'_, C> {
        self.on(self.own_comm())
    }

    fn own_comm(&self) -> Comm {
        self.worlds.read().own.clone()
    }

    pub(crate) fn on(&self, comm: Comm) -> Communicator<'_, C> {
        Communicator { mpi: self, comm }
    }

    /// A communicator that has been made.
    fn made(&self, comm: Comm) -> Communicator<'_, C> {
        self.existing.is_made(&comm);
        self.on(comm)
    }

    /// Names the algorithm that a collective call takes; without one the library chooses it again.
    /// All ranks must name the same.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if the call does not have it.
    pub fn choose(
        &self,
        collective: Collective,
        algorithm: impl Into<Option<Algorithm>>,
    ) -> Result<(), MpiError> {
        let mut choice = self.choice.write();
        let Some(algorithm) = algorithm.into() else {
            choice.forget(collective);
            return Ok(());
        };
        let named = choice.name(collective, algorithm);
        named.map_err(|error| {
            let fault = Fault::new(ErrorClass::Arg, "algorithm", error.to_string());
            fault.at(self.device.rank(), "MPI_T_cvar_write")
        })
    }

    /// The channel that carries its messages.
    pub fn channel(&self) -> &C {
        &self.channel
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Messages that this rank has begun to send, those of collective calls included.
    pub fn messages(&self) -> u64 {
        self.device.messages()
    }

    /// The time in seconds, of this rank (MPI_Wtime).
    pub async fn wtime(&self) -> f64 {
        self.channel.now().await as f64 * 1e-9
    }

    /// Attaches `bytes` bytes of room for buffered sends (MPI_Buffer_attach).
    ///
    /// # Errors
    /// [`ErrorClass::Buffer`] if there is a buffer already.
    pub fn attach_buffer(&self, bytes: u64) -> Result<(), MpiError> {
        if self.device.attach(bytes) {
            return Ok(());
        }
        let fault = Fault::new(ErrorClass::Buffer, "buffer", "a buffer is attached already");
        Err(fault.at(self.device.rank(), "MPI_Buffer_attach"))
    }

    /// Detaches that room when the messages in it have left; returns its bytes (MPI_Buffer_detach).
    ///
    /// # Errors
    /// If another call of the rank is under way.
    #[track_caller]
    pub fn detach_buffer(&self) -> impl Future<Output = Result<u64, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let entered = self.enter("MPI_Buffer_detach", None, 0).await?;
            let bytes = self.until(site, || self.device.detach()).await;
            self.leave(entered).await;
            Ok(bytes)
        }
    }

    /// Leaves a call over `comm` with its result.
    pub(crate) async fn close<T>(
        &self,
        entered: Entered<'_>,
        comm: &Comm,
        result: Result<T, Fault>,
    ) -> Result<T, MpiError> {
        let call = entered.call;
        self.leave(entered).await;
        result.map_err(|fault| self.error(comm, fault, call))
    }

    /// The error of a call over `comm`, of which its handler has been told.
    pub(crate) fn error(&self, comm: &Comm, fault: Fault, call: &'static str) -> MpiError {
        let error = fault.at(self.device.rank(), call);
        let handler = comm.handler().lock().clone();
        handler.respond(&error);
        error
    }

    /// Makes progress until `done` gives something.
    pub(crate) async fn until<T>(&self, site: Site, done: impl FnMut() -> Option<T> + Send) -> T {
        driver::until(&self.device, &self.channel, site, done).await
    }

    /// The same right before a call is left, which charges its last work.
    pub(crate) async fn until_last<T>(
        &self,
        site: Site,
        done: impl FnMut() -> Option<T> + Send,
    ) -> T {
        driver::until_last(&self.device, &self.channel, site, done).await
    }

    /// A barrier of all ranks of `comm`, or of its own side, as a part of `call`.
    pub(crate) fn meeting(&self, comm: &Comm, call: Call) -> Task {
        let on = comm.on(self.channel.per_node());
        let algorithm = Choice::default().of(Collective::Barrier, 0, on);
        match teams(&self.device, comm, call, 0) {
            (team, None) => Box::pin(barrier(team, algorithm)),
            (team, Some(local)) => Box::pin(inter::barrier(team, local)),
        }
    }

    /// Runs a task to its end, inside a call.
    pub(crate) async fn run(&self, site: Site, task: Task) -> Result<Vec<u8>, Fault> {
        let task = self.device().begin_task(task);
        let outcome = self.until(site, || self.device().take(task)).await;
        outcome.fault.map_or(Ok(outcome.bytes), Err)
    }

    /// Lets calls that return at once tell others of what they have begun, where that is how the
    /// channel's transfers work.
    pub(crate) async fn starts(&self) {
        driver::starts(&self.device, &self.channel).await;
    }

    /// Makes the progress that can be made at once.
    pub(crate) async fn progress(&self) {
        driver::once(&self.device, &self.channel).await;
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// This rank's number in it (MPI_Comm_rank).
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Returns the number of ranks; of an intercommunicator, those of the own group
    /// (MPI_Comm_size).
    pub fn size(&self) -> u32 {
        self.comm.size()
    }

    /// The library that it belongs to.
    pub fn mpi(&self) -> &'m Mpi<C> {
        self.mpi
    }

    /// Its handle.
    pub fn handle(&self) -> &Comm {
        &self.comm
    }

    /// Makes a call from its beginning to its end.
    pub(crate) async fn whole<'b>(
        &self,
        call: Named,
        launch: Result<Launch<'b>, Fault>,
    ) -> Result<Status, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter(call.name, call.peer, call.bytes).await?;
        let launch = self.comm.check().and(launch);
        let begun = launch.and_then(|launch| launch.begin(&mpi.device, CallForm::Blocking));
        let result = match begun {
            Err(fault) => Err(fault),
            Ok(mut begun) => match begun.request {
                None => Ok(begun.ends_at_once),
                Some(request) => {
                    let over = || mpi.device.take(request);
                    let outcome = mpi.until_last(call.site, over).await;
                    landed(&self.comm, outcome, &mut begun.landing)
                }
            },
        };
        mpi.close(entered, &self.comm, result).await
    }

    /// Begins a call.
    pub(crate) async fn begun<'b>(
        &self,
        call: Named,
        launch: Result<Launch<'b>, Fault>,
    ) -> Result<Request<'m, 'b, C>, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter(call.name, call.peer, call.bytes).await?;
        let launch = self.comm.check().and(launch);
        let begun = launch.and_then(|launch| Request::begin(self, launch));
        mpi.starts().await;
        mpi.close(entered, &self.comm, begun).await
    }
}

/// A call: its name, the peer and the bytes that a timeline shows, and its place in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) peer: Option<u32>,
    pub(crate) bytes: u64,
    pub(crate) site: Site,
}

impl Named {
    pub(crate) fn new(name: &'static str, site: Site) -> Self {
        Self {
            name,
            peer: None,
            bytes: 0,
            site,
        }
    }
}

/// Takes the outcome of a request over `comm` to where it belongs.
pub(crate) fn landed(
    comm: &Comm,
    outcome: Outcome,
    landing: &mut Landing<'_>,
) -> Result<Status, Fault> {
    if let Some(fault) = outcome.fault {
        return Err(fault);
    }
    let room = landing.bytes();
    landing.take(&outcome.bytes)?;
    let Some(envelope) = outcome.envelope else {
        return Ok(Status {
            is_cancelled: outcome.is_cancelled,
            ..Status::EMPTY
        });
    };
    let status = status(comm, &envelope);
    if envelope.length > room {
        let Status { source, tag, .. } = status;
        let text = format!(
            "the message of {} bytes from rank {source} with tag {tag} is longer than {room} bytes",
            envelope.length,
        );
        let fault = Fault::new(ErrorClass::Truncate, "count", text);
        return Err(fault.of(Truncated {
            source,
            tag,
            bytes: room,
        }));
    }
    Ok(status)
}

/// The status of a message over `comm`.
pub(crate) fn status(comm: &Comm, envelope: &Envelope) -> Status {
    Status {
        source: comm.peers().rank_of(envelope.from).unwrap_or(envelope.from),
        tag: envelope.tag,
        bytes: envelope.length,
        is_cancelled: false,
    }
}
