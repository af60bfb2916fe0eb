//! Windows: one-sided communication (MPI-4.1, Ch. 12).
//!
//! The library has the memory of a window; a rank reaches its own by [`Window::load`] and
//! [`Window::store`]. A call that gets data returns a request: the data are in the buffer when it has been
//! waited for, which a rank does when its epoch has ended, or a flush.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use super::request::{Landing, Launch, Start};
use super::{Communicator, Mpi, PROC_NULL, Request, Status, point};
use crate::attributes::{Keyval, Value};
use crate::buffer::{Buffer, BufferMut, Scalar};
use crate::channel::{Channel, Work};
use crate::collective::choice::Algorithm;
use crate::collective::{self, Call};
use crate::comm::Comm;
use crate::comm::create::{self, Made, teams};
use crate::datatype::Datatype;
use crate::device::Task;
use crate::device::driver::{self, Site};
use crate::error::{ErrorClass, ErrorHandler, Fault, MpiError};
use crate::group::Group;
use crate::op::Op;
use crate::window::Synchronization;
use crate::window::access::{Access, Kind, blocks};
use crate::window::epoch::{self, Epochs};
use crate::window::memory::Regions;
use crate::window::messages::Messages;
use crate::window::trigger::Trigger;

/// A window of a rank.
pub struct Window<'m, C> {
    mpi: &'m Mpi<C>,
    comm: Comm,
    sync: Synchronization,
    /// By rank.
    extents: Vec<Extent>,
    is_dynamic: bool,
    epochs: Mutex<Epochs>,
    engine: Engine,
}

enum Engine {
    Messages(Arc<Messages>),
    Trigger(Trigger),
}

/// The memory of one rank.
#[derive(Clone, Copy, Debug)]
struct Extent {
    bytes: u64,
    /// Bytes of a displacement of one.
    unit: u64,
    /// Where a trigger-only window has it.
    offset: u64,
}

impl Extent {
    const BYTES: usize = 24;

    /// The offset of a rank that could not have its memory.
    const NONE: u64 = u64::MAX;

    fn to_bytes(self) -> Vec<u8> {
        let words = [self.bytes, self.unit, self.offset];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
        Self {
            bytes: word(0),
            unit: word(1),
            offset: word(2),
        }
    }
}

/// The place of an access: a rank of the window, and the displacement in its memory in the units that it has
/// chosen. Without a shape it has as many elements of the same datatype as the origin.
#[derive(Clone, Debug)]
pub struct Target {
    rank: u32,
    displacement: i64,
    shape: Option<(i64, Datatype)>,
}

impl Target {
    /// At this displacement of a rank's memory; of a dynamic window, at this address.
    pub fn at(rank: u32, displacement: u64) -> Self {
        Self {
            rank,
            displacement: displacement.try_into().unwrap_or(i64::MAX),
            shape: None,
        }
    }

    /// `count` elements of `datatype` there.
    #[must_use]
    pub fn with(self, count: i64, datatype: &Datatype) -> Self {
        Self {
            shape: Some((count, datatype.clone())),
            ..self
        }
    }
}

/// The memory that a rank gives to a window.
enum Given {
    Allocated(u64),
    Created(Vec<u8>),
    Dynamic,
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// A window of `bytes` bytes of this rank, all 0; a displacement counts `unit` bytes
    /// (MPI_Win_allocate).
    ///
    /// # Errors
    /// [`ErrorClass::NoMem`] at all ranks if one of them has no room; [`ErrorClass::Disp`] of a unit of 0;
    /// [`ErrorClass::Comm`] of an intercommunicator, or if other ranks make another call.
    #[track_caller]
    pub fn allocate_window(
        &self,
        bytes: u64,
        unit: u64,
        sync: Synchronization,
    ) -> impl Future<Output = Result<Window<'m, C>, MpiError>> + Send {
        let site = Location::caller();
        let given = Given::Allocated(bytes);
        self.window(("MPI_Win_allocate", site), given, unit, sync)
    }

    /// The same of memory with this content (MPI_Win_create).
    ///
    /// # Errors
    /// As [`Communicator::allocate_window`].
    #[track_caller]
    pub fn create_window(
        &self,
        memory: Vec<u8>,
        unit: u64,
        sync: Synchronization,
    ) -> impl Future<Output = Result<Window<'m, C>, MpiError>> + Send {
        let site = Location::caller();
        self.window(("MPI_Win_create", site), Given::Created(memory), unit, sync)
    }

    /// A window to which memory is attached later (MPI_Win_create_dynamic). Its displacements are addresses.
    ///
    /// # Errors
    /// As [`Communicator::allocate_window`]; [`ErrorClass::Win`] of one that is trigger-only.
    #[track_caller]
    pub fn dynamic_window(
        &self,
        sync: Synchronization,
    ) -> impl Future<Output = Result<Window<'m, C>, MpiError>> + Send {
        let site = Location::caller();
        self.window(("MPI_Win_create_dynamic", site), Given::Dynamic, 1, sync)
    }

    async fn window(
        &self,
        (call, site): (&'static str, Site),
        given: Given,
        unit: u64,
        sync: Synchronization,
    ) -> Result<Window<'m, C>, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter(call, None, 0).await?;
        let window = self.make_window(site, given, unit, sync).await;
        mpi.close(entered, &self.comm, window).await
    }

    async fn make_window(
        &self,
        site: Site,
        given: Given,
        unit: u64,
        sync: Synchronization,
    ) -> Result<Window<'m, C>, Fault> {
        let (mpi, comm) = (self.mpi, &self.comm);
        comm.check()?;
        if comm.remote().is_some() {
            return Err(Fault::new(
                ErrorClass::Comm,
                "comm",
                "it is an intercommunicator",
            ));
        }
        let is_dynamic = matches!(given, Given::Dynamic);
        let wrong = match sync {
            _ if unit == 0 => Some((ErrorClass::Disp, "disp_unit", "it is 0")),
            Synchronization::TriggerOnly | Synchronization::Flawed(_) if is_dynamic => {
                let text = "a trigger-only window cannot be dynamic";
                Some((ErrorClass::Win, "info", text))
            }
            _ => None,
        };
        if let Some((class, argument, text)) = wrong {
            return Err(Fault::new(class, argument, text));
        }
        let (team, _) = teams(mpi.device(), comm, Call::WinCreate, 0);
        let made = mpi
            .run(site, Box::pin(create::dup(team, None, true)))
            .await?;
        let context = Made::from_bytes(&made).context;
        let own = Comm::new(context, comm.group().clone(), comm.rank());
        let bytes = match &given {
            Given::Allocated(bytes) => *bytes,
            Given::Created(memory) => memory.len() as u64,
            Given::Dynamic => 0,
        };
        let flaw = match sync {
            Synchronization::Deferred | Synchronization::Immediate => None,
            Synchronization::TriggerOnly => Some(None),
            Synchronization::Flawed(flaw) => Some(Some(flaw)),
        };
        let allocated = match flaw {
            None => Ok(0),
            Some(_) => Trigger::allocate(&mpi.channel, comm.group(), bytes).await,
        };
        let extent = Extent {
            bytes,
            unit,
            offset: allocated.as_ref().copied().unwrap_or(Extent::NONE),
        };
        let ranks = comm.size() as usize;
        let (team, _) = teams(mpi.device(), &own, Call::WinCreate, 0);
        let data = (vec![extent.to_bytes(); ranks], vec![Extent::BYTES; ranks]);
        let all = collective::alltoall(team, Algorithm::Linear, data);
        let all = mpi.run(site, Box::pin(all)).await?;
        let extents: Vec<Extent> = all
            .chunks_exact(Extent::BYTES)
            .map(Extent::from_bytes)
            .collect();
        allocated?;
        let failed = extents
            .iter()
            .position(|extent| extent.offset == Extent::NONE);
        if let Some(rank) = failed {
            let text = format!("rank {rank} has no room");
            return Err(Fault::new(ErrorClass::NoMem, "size", text));
        }
        let engine = match flaw {
            Some(flaw) => {
                let offsets = extents.iter().map(|extent| extent.offset).collect();
                let trigger = Trigger::new(own.group().clone(), own.rank(), offsets, flaw);
                let content = match given {
                    Given::Created(memory) => memory,
                    // Earlier windows may have left something there.
                    _ => vec![0; bytes as usize],
                };
                trigger.store(&mpi.channel, 0, &content).await?;
                let (team, _) = teams(mpi.device(), &own, Call::WinCreate, 0);
                let barrier = collective::barrier(team, Algorithm::Dissemination);
                mpi.run(site, Box::pin(barrier)).await?;
                Engine::Trigger(trigger)
            }
            None => {
                let regions = match given {
                    Given::Allocated(bytes) => Regions::one(vec![0; bytes as usize]),
                    Given::Created(memory) => Regions::one(memory),
                    Given::Dynamic => Regions::default(),
                };
                let is_deferred = sync == Synchronization::Deferred;
                let messages = Messages::new(mpi.device(), &own, regions, is_deferred);
                Engine::Messages(Arc::new(messages))
            }
        };
        Ok(Window {
            mpi,
            comm: own,
            sync,
            extents,
            is_dynamic,
            epochs: Mutex::default(),
            engine,
        })
    }
}

impl<C: Channel> Mpi<C> {
    /// Runs a task to its end, inside a call.
    pub(super) async fn run(&self, site: Site, task: Task) -> Result<Vec<u8>, Fault> {
        let task = self.device().begin_task(task);
        let outcome = self.until(site, || self.device().take(task)).await;
        outcome.fault.map_or(Ok(outcome.bytes), Err)
    }
}

/// A synchronizing call.
#[derive(Clone, Debug)]
enum Synchronizes {
    Fence,
    Start(Vec<u32>),
    Complete(Vec<u32>),
    Post(Vec<u32>),
    Wait,
    Lock(Vec<u32>, bool),
    Unlock(Vec<u32>, bool),
    Flush(Vec<u32>),
}

impl<'m, C: Channel> Window<'m, C> {
    /// This rank's number in it.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Its ranks (MPI_Win_get_group).
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// How its synchronizing calls work.
    pub fn sync(&self) -> Synchronization {
        self.sync
    }

    /// Bytes of this rank's memory (MPI_WIN_SIZE).
    pub fn bytes(&self) -> u64 {
        self.extents[self.comm.rank() as usize].bytes
    }

    /// Attaches a value under a key (MPI_Win_set_attr).
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if the key has been freed.
    pub fn set_attribute(&self, key: &Keyval, value: Value) -> Result<(), MpiError> {
        let set = self.comm.attributes().set(key, value);
        set.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_set_attr"))
    }

    /// The value under a key (MPI_Win_get_attr).
    pub fn attribute(&self, key: &Keyval) -> Option<Value> {
        self.comm.attributes().get(key)
    }

    /// Deletes it (MPI_Win_delete_attr).
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if nothing is attached under the key.
    pub fn delete_attribute(&self, key: &Keyval) -> Result<(), MpiError> {
        let deleted = self.comm.attributes().delete(key);
        deleted.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_delete_attr"))
    }

    /// Gives it a name (MPI_Win_set_name).
    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.comm.name().lock());
    }

    /// Its name (MPI_Win_get_name).
    pub fn name(&self) -> String {
        self.comm.name().lock().clone()
    }

    /// Sets the response to errors of calls over it (MPI_Win_set_errhandler).
    pub fn set_error_handler(&self, handler: ErrorHandler) {
        *self.comm.handler().lock() = handler;
    }

    fn check(&self) -> Result<(), Fault> {
        let freed = |_| Fault::new(ErrorClass::Win, "win", "the window has been freed");
        self.comm.check().map_err(freed)
    }

    /// The ranks of `group` in the window.
    fn ranks(&self, group: &Group) -> Result<Vec<u32>, Fault> {
        let rank = |world| {
            self.comm.group().rank_of(world).ok_or_else(|| {
                let text = format!("rank {world} of the job is not in the window");
                Fault::new(ErrorClass::Group, "group", text)
            })
        };
        group.world_ranks().map(rank).collect()
    }

    fn target(&self, rank: u32, argument: &'static str) -> Result<u32, Fault> {
        point::check_rank(&self.comm, argument, rank)
    }

    /// Makes a synchronizing call, whose epochs `begins` looks after.
    async fn synchronize(
        &self,
        (call, site): (&'static str, Site),
        begins: impl FnOnce(&mut Epochs) -> Result<Synchronizes, Fault>,
    ) -> Result<(), MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter(call, None, 0).await?;
        let begun = self.check().and_then(|()| begins(&mut self.epochs.lock()));
        let ended = match begun {
            Ok(what) => self.performs(site, what).await,
            Err(fault) => Err(fault),
        };
        mpi.close(entered, &self.comm, ended).await
    }

    async fn performs(&self, site: Site, what: Synchronizes) -> Result<(), Fault> {
        let mpi = self.mpi;
        match &self.engine {
            Engine::Messages(messages) => {
                if let Synchronizes::Start(_) | Synchronizes::Post(_) = what {
                    mpi.device().owe(Work::Group, 1);
                }
                let messages = Arc::clone(messages);
                let task: Task = match what {
                    Synchronizes::Fence => Box::pin(messages.fence()),
                    Synchronizes::Start(targets) => Box::pin(messages.start(targets)),
                    Synchronizes::Complete(targets) => Box::pin(messages.complete(targets)),
                    Synchronizes::Post(origins) => Box::pin(messages.post(origins)),
                    Synchronizes::Wait => Box::pin(messages.wait()),
                    Synchronizes::Lock(targets, is_exclusive) => {
                        Box::pin(messages.lock(targets, is_exclusive))
                    }
                    Synchronizes::Unlock(targets, _) => Box::pin(messages.flush(targets, true)),
                    Synchronizes::Flush(targets) => Box::pin(messages.flush(targets, false)),
                };
                mpi.run(site, task).await.map(drop)
            }
            Engine::Trigger(trigger) => {
                let channel = &mpi.channel;
                driver::settle(mpi.device(), channel).await;
                match what {
                    Synchronizes::Fence => {
                        let (team, _) = teams(mpi.device(), &self.comm, Call::WinFence, 0);
                        let barrier = collective::barrier(team, Algorithm::Dissemination);
                        mpi.run(site, Box::pin(barrier)).await.map(drop)
                    }
                    Synchronizes::Start(_) | Synchronizes::Flush(_) => Ok(()),
                    Synchronizes::Complete(targets) => {
                        trigger.complete(channel, &targets, site).await
                    }
                    Synchronizes::Post(origins) => trigger.post(channel, &origins).await,
                    Synchronizes::Wait => trigger.wait(channel, site).await,
                    Synchronizes::Lock(targets, is_exclusive) => {
                        for target in targets {
                            trigger.lock(channel, (target, is_exclusive), site).await?;
                        }
                        Ok(())
                    }
                    Synchronizes::Unlock(targets, is_exclusive) => {
                        for target in targets {
                            trigger.unlock(channel, (target, is_exclusive)).await?;
                        }
                        Ok(())
                    }
                }
            }
        }
    }

    /// Ends an epoch of all ranks and begins the next (MPI_Win_fence).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if another kind of epoch is open, [`ErrorClass::RmaRange`] if an access that
    /// came was outside.
    #[track_caller]
    pub fn fence(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_fence", Location::caller());
        self.synchronize(call, |epochs| epochs.fence().map(|()| Synchronizes::Fence))
    }

    /// Begins an access epoch to the ranks of `group` (MPI_Win_start).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if one is open, [`ErrorClass::Group`] of ranks that the window does not have.
    #[track_caller]
    pub fn start(&self, group: &Group) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_start", Location::caller());
        let targets = self.ranks(group);
        self.synchronize(call, |epochs| {
            let targets = targets?;
            epochs.start(targets.clone())?;
            Ok(Synchronizes::Start(targets))
        })
    }

    /// Ends the access epoch (MPI_Win_complete).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if none is open.
    #[track_caller]
    pub fn complete(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_complete", Location::caller());
        self.synchronize(call, |epochs| epochs.complete().map(Synchronizes::Complete))
    }

    /// Begins an exposure epoch for the ranks of `group` (MPI_Win_post).
    ///
    /// # Errors
    /// As [`Window::start`].
    #[track_caller]
    pub fn post(&self, group: &Group) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_post", Location::caller());
        let origins = self.ranks(group);
        self.synchronize(call, |epochs| {
            let origins = origins?;
            epochs.post(origins.clone())?;
            Ok(Synchronizes::Post(origins))
        })
    }

    /// Waits until all origins of the exposure epoch have completed (MPI_Win_wait).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if none is open, [`ErrorClass::RmaRange`] if an access that came was outside.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_wait", Location::caller());
        async move {
            let begins = |epochs: &mut Epochs| epochs.is_exposed().map(|()| Synchronizes::Wait);
            let ended = self.synchronize(call, begins).await;
            self.epochs.lock().ends_exposure();
            ended
        }
    }

    /// Whether they have; the epoch is over then (MPI_Win_test).
    ///
    /// # Errors
    /// As [`Window::wait`].
    pub async fn test(&self) -> Result<bool, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter("MPI_Win_test", None, 0).await?;
        let may = self.check().and_then(|()| self.epochs.lock().is_exposed());
        let is_over = match (&self.engine, may) {
            (_, Err(fault)) => Err(fault),
            (Engine::Trigger(trigger), Ok(())) => trigger.is_completed(&mpi.channel).await,
            (Engine::Messages(messages), Ok(())) => {
                mpi.progress().await;
                Ok(messages.is_completed())
            }
        };
        if is_over == Ok(true) {
            self.epochs.lock().ends_exposure();
        }
        mpi.close(entered, &self.comm, is_over).await
    }

    /// Locks `target`'s memory, for this rank alone if `is_exclusive` (MPI_Win_lock).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] of a wrong target, [`ErrorClass::RmaSync`] if it is locked already or another
    /// kind of epoch is open.
    #[track_caller]
    pub fn lock(
        &self,
        target: u32,
        is_exclusive: bool,
    ) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_lock", Location::caller());
        self.synchronize(call, move |epochs| {
            let target = self.target(target, "rank")?;
            epochs.lock(target, is_exclusive)?;
            Ok(Synchronizes::Lock(vec![target], is_exclusive))
        })
    }

    /// Gives the lock back; all accesses to `target` are done (MPI_Win_unlock).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if it is not locked.
    #[track_caller]
    pub fn unlock(&self, target: u32) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_unlock", Location::caller());
        self.synchronize(call, move |epochs| {
            let is_exclusive = epochs.unlock(target)?;
            Ok(Synchronizes::Unlock(vec![target], is_exclusive))
        })
    }

    /// Locks the memory of all ranks, shared (MPI_Win_lock_all).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if an epoch is open.
    #[track_caller]
    pub fn lock_all(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_lock_all", Location::caller());
        let all = (0..self.comm.size()).collect();
        self.synchronize(call, move |epochs| {
            epochs.lock_all()?;
            Ok(Synchronizes::Lock(all, false))
        })
    }

    /// Gives these locks back (MPI_Win_unlock_all).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if they are not held.
    #[track_caller]
    pub fn unlock_all(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_unlock_all", Location::caller());
        let all = (0..self.comm.size()).collect();
        self.synchronize(call, move |epochs| {
            epochs.unlock_all()?;
            Ok(Synchronizes::Unlock(all, false))
        })
    }

    /// Waits until all accesses to `target`, which is locked, or to all locked ranks are done
    /// (MPI_Win_flush, MPI_Win_flush_all).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if no lock is held.
    #[track_caller]
    pub fn flush(&self, target: Option<u32>) -> impl Future<Output = Result<(), MpiError>> + Send {
        let name = match target {
            Some(_) => "MPI_Win_flush",
            None => "MPI_Win_flush_all",
        };
        self.synchronize((name, Location::caller()), move |epochs| {
            let flushed = epochs.flush(target, self.comm.size());
            flushed.map(Synchronizes::Flush)
        })
    }

    /// Puts elements into the target's memory (MPI_Put).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] outside an access epoch, [`ErrorClass::Rank`] of a wrong target,
    /// [`ErrorClass::RmaRange`] outside its memory, [`ErrorClass::Type`] if there are not as many bytes.
    #[track_caller]
    pub fn put<'a>(
        &'a self,
        origin: impl Into<Buffer<'a>>,
        target: &'a Target,
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        let site = Location::caller();
        let origin = origin.into();
        async move {
            let asked = ("MPI_Put", Kind::Put, Some(&origin));
            self.access(site, asked, BufferMut::empty(), target)
                .await
                .map(drop)
        }
    }

    /// Gets elements of the target's memory (MPI_Get, MPI_Rget).
    ///
    /// # Errors
    /// As [`Window::put`].
    #[track_caller]
    pub fn get<'a, 'b>(
        &'a self,
        received: impl Into<BufferMut<'b>>,
        target: &'a Target,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let site = Location::caller();
        let received = received.into();
        async move {
            let asked = ("MPI_Get", Kind::Get, None);
            self.access(site, asked, received, target).await
        }
    }

    /// Combines elements with those of the target's memory, which has the result (MPI_Accumulate).
    ///
    /// # Errors
    /// As [`Window::put`]; [`ErrorClass::Op`] of an operation that is not predefined or not for such
    /// elements.
    #[track_caller]
    pub fn accumulate<'a>(
        &'a self,
        origin: impl Into<Buffer<'a>>,
        target: &'a Target,
        op: &'a Op,
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        let site = Location::caller();
        let origin = origin.into();
        async move {
            let call = "MPI_Accumulate";
            let kind = self.kind(call, Kind::accumulate(op, origin.datatype(), false))?;
            let asked = (call, kind, Some(&origin));
            self.access(site, asked, BufferMut::empty(), target)
                .await
                .map(drop)
        }
    }

    /// The same; gets what was there before (MPI_Get_accumulate, MPI_Fetch_and_op).
    ///
    /// # Errors
    /// As [`Window::accumulate`].
    #[track_caller]
    pub fn get_accumulate<'a, 'b>(
        &'a self,
        origin: impl Into<Buffer<'a>>,
        received: impl Into<BufferMut<'b>>,
        target: &'a Target,
        op: &'a Op,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let site = Location::caller();
        let (origin, received) = (origin.into(), received.into());
        async move {
            let call = "MPI_Get_accumulate";
            let kind = self.kind(call, Kind::accumulate(op, origin.datatype(), true))?;
            self.access(site, (call, kind, Some(&origin)), received, target)
                .await
        }
    }

    /// Puts `new` if the target's memory has `compared` there; gets what was there before
    /// (MPI_Compare_and_swap).
    ///
    /// # Errors
    /// As [`Window::put`].
    #[track_caller]
    pub fn compare_and_swap<'a, 'b, T: Scalar>(
        &'a self,
        (compared, new): (T, T),
        received: &'b mut [T; 1],
        target: &'a Target,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let site = Location::caller();
        async move {
            let both = [compared, new];
            let origin = Buffer::from(&both);
            let target = target.clone().with(1, &Datatype::from(T::BASIC));
            let asked = ("MPI_Compare_and_swap", Kind::CompareAndSwap, Some(&origin));
            self.access(site, asked, received.into(), &target).await
        }
    }

    fn kind(&self, call: &'static str, kind: Result<Kind, Fault>) -> Result<Kind, MpiError> {
        kind.map_err(|fault| self.mpi.error(&self.comm, fault, call))
    }

    /// Makes an access whose data go to `received`.
    async fn access<'b>(
        &self,
        site: Site,
        (call, kind, origin): (&'static str, Kind, Option<&Buffer<'_>>),
        received: BufferMut<'b>,
        target: &Target,
    ) -> Result<Request<'m, 'b, C>, MpiError> {
        let mpi = self.mpi;
        let peer = (target.rank != PROC_NULL).then_some(target.rank);
        let bytes = origin.map_or(received.bytes(), Buffer::bytes);
        let entered = mpi.enter(call, peer, bytes).await?;
        let begun = match self.check() {
            Err(fault) => Err(fault),
            Ok(()) if peer.is_none() => Ok(None),
            Ok(()) => {
                self.begin_access(site, (kind, origin), received, target)
                    .await
            }
        };
        let communicator = mpi.on(self.comm.clone());
        let request = begun.and_then(|begun| {
            let launch = begun.unwrap_or_else(|| Launch::nothing(Status::EMPTY));
            Request::begin(&communicator, launch)
        });
        mpi.close(entered, &self.comm, request).await
    }

    async fn begin_access<'b>(
        &self,
        site: Site,
        (kind, origin): (Kind, Option<&Buffer<'_>>),
        mut received: BufferMut<'b>,
        target: &Target,
    ) -> Result<Option<Launch<'b>>, Fault> {
        let mpi = self.mpi;
        let rank = self.target(target.rank, "target_rank")?;
        let extent = self.extents[rank as usize];
        let like = match origin {
            Some(origin) => (origin.count(), origin.datatype()),
            None => (received.count(), received.datatype()),
        };
        let shape = target.shape.as_ref();
        let (count, datatype) = shape.map_or(like, |(count, datatype)| (*count, datatype));
        let begin = target.displacement.checked_mul(extent.unit as i64);
        let begin = begin.unwrap_or(i64::MAX);
        let access = Access {
            kind,
            blocks: blocks(begin, count, datatype)?,
            bytes: origin.map_or(Ok(Vec::new()), Buffer::packed)?,
        };
        let length = access.length();
        let times = if kind == Kind::CompareAndSwap { 2 } else { 1 };
        let given = origin.map_or(length, |origin| origin.bytes() / times);
        let room = if kind.fetches() {
            received.bytes()
        } else {
            length
        };
        // Fetching without an operation needs no operands.
        let is_right = (given == length || given == 0) && room == length;
        if !is_right {
            let text = format!("{given} and {room} bytes here, {length} at the target");
            return Err(Fault::new(ErrorClass::Type, "target_datatype", text));
        }
        let ends = access
            .blocks
            .iter()
            .map(|(begin, bytes)| begin.saturating_add(*bytes));
        let end = ends.max().unwrap_or(0);
        if !self.is_dynamic && end > extent.bytes {
            let text = format!(
                "byte {} of the {} that rank {rank} has in the window",
                end - 1,
                extent.bytes
            );
            return Err(Fault::new(ErrorClass::RmaRange, "target_disp", text));
        }
        let epoch = self.epochs.lock().access(rank)?.clone();
        match &self.engine {
            Engine::Trigger(trigger) => {
                driver::settle(mpi.device(), &mpi.channel).await;
                if let epoch::Access::Started(_) = epoch {
                    trigger.posted(&mpi.channel, rank, site).await?;
                }
                let fetched = trigger.access(&mpi.channel, rank, &access).await?;
                if let Some(fetched) = fetched {
                    received.unpack(&fetched)?;
                }
                Ok(None)
            }
            Engine::Messages(messages) => {
                let is_fenced = matches!(epoch, epoch::Access::Fence { .. });
                let request = messages.access(rank, access, is_fenced);
                if self.sync == Synchronization::Immediate {
                    mpi.progress().await;
                }
                let launch = |request| Launch::new(Start::Begun(request), Landing::Whole(received));
                Ok(request.map(launch))
            }
        }
    }

    /// The elements of this rank's own memory from displacement `displacement` on.
    ///
    /// # Errors
    /// [`ErrorClass::RmaRange`] outside it.
    pub async fn load<T: Scalar>(&self, displacement: u64, into: &mut [T]) -> Result<(), MpiError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        let place = self.own(displacement, bytes.len());
        let loaded = match (&self.engine, place) {
            (_, Err(fault)) => Err(fault),
            (Engine::Trigger(trigger), Ok(place)) => trigger.load(&self.mpi.channel, place).await,
            (Engine::Messages(messages), Ok((begin, count))) => messages
                .with_memory(|memory| memory.bytes(begin, count).map(|bytes| bytes.to_vec())),
        };
        match loaded {
            Ok(loaded) => {
                bytes.copy_from_slice(&loaded);
                Ok(())
            }
            Err(fault) => Err(self.mpi.error(&self.comm, fault, "a load from a window")),
        }
    }

    /// Stores elements into this rank's own memory from displacement `displacement` on.
    ///
    /// # Errors
    /// [`ErrorClass::RmaRange`] outside it.
    pub async fn store<T: Scalar>(&self, displacement: u64, from: &[T]) -> Result<(), MpiError> {
        let bytes: &[u8] = bytemuck::cast_slice(from);
        let place = self.own(displacement, bytes.len());
        let stored = match (&self.engine, place) {
            (_, Err(fault)) => Err(fault),
            (Engine::Trigger(trigger), Ok((begin, _))) => {
                trigger.store(&self.mpi.channel, begin, bytes).await
            }
            (Engine::Messages(messages), Ok((begin, count))) => messages.with_memory(|memory| {
                memory.bytes(begin, count)?.copy_from_slice(bytes);
                Ok(())
            }),
        };
        stored.map_err(|fault| self.mpi.error(&self.comm, fault, "a store to a window"))
    }

    /// Bytes of the own memory: the first, and how many.
    fn own(&self, displacement: u64, count: usize) -> Result<(u64, u64), Fault> {
        self.check()?;
        let extent = self.extents[self.comm.rank() as usize];
        let begin = displacement.saturating_mul(extent.unit);
        let end = begin.saturating_add(count as u64);
        if !self.is_dynamic && end > extent.bytes {
            let text = format!("{count} bytes from {begin} on of {}", extent.bytes);
            return Err(Fault::new(ErrorClass::RmaRange, "displacement", text));
        }
        Ok((begin, count as u64))
    }

    /// Attaches `bytes` bytes, all 0, to a dynamic window; their address, for others (MPI_Win_attach).
    ///
    /// # Errors
    /// [`ErrorClass::RmaAttach`] if it is not dynamic.
    pub fn attach(&self, bytes: usize) -> Result<u64, MpiError> {
        let attached = match &self.engine {
            Engine::Messages(messages) if self.is_dynamic => {
                Ok(messages.with_memory(|memory| memory.attach(bytes)))
            }
            _ => Err(Fault::new(
                ErrorClass::RmaAttach,
                "win",
                "it is not dynamic",
            )),
        };
        attached.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_attach"))
    }

    /// Detaches what is attached at `address`; its content (MPI_Win_detach).
    ///
    /// # Errors
    /// [`ErrorClass::Base`] if nothing is.
    pub fn detach(&self, address: u64) -> Result<Vec<u8>, MpiError> {
        let detached = match &self.engine {
            Engine::Messages(messages) if self.is_dynamic => {
                messages.with_memory(|memory| memory.detach(address))
            }
            _ => Err(Fault::new(
                ErrorClass::RmaAttach,
                "win",
                "it is not dynamic",
            )),
        };
        detached.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_detach"))
    }

    /// Ends the window of all its ranks; the content of this rank's memory (MPI_Win_free).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if an epoch is open.
    #[track_caller]
    pub fn free(&self) -> impl Future<Output = Result<Vec<u8>, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let mpi = self.mpi;
            let entered = mpi.enter("MPI_Win_free", None, 0).await?;
            let may = self.check().and_then(|()| self.epochs.lock().free());
            let freed = match may {
                Err(fault) => Err(fault),
                Ok(()) => self.end(site).await,
            };
            mpi.close(entered, &self.comm, freed).await
        }
    }

    async fn end(&self, site: Site) -> Result<Vec<u8>, Fault> {
        let mpi = self.mpi;
        let (team, _) = teams(mpi.device(), &self.comm, Call::WinFree, 0);
        let barrier = collective::barrier(team, Algorithm::Dissemination);
        mpi.run(site, Box::pin(barrier)).await?;
        self.comm.set_freed();
        match &self.engine {
            Engine::Messages(messages) => Ok(messages.free()),
            Engine::Trigger(trigger) => {
                let bytes = self.bytes();
                let content = trigger.load(&mpi.channel, (0, bytes)).await;
                trigger.release(&mpi.channel, bytes).await;
                content
            }
        }
    }
}

impl<C> fmt::Debug for Window<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("comm", &self.comm)
            .field("sync", &self.sync)
            .field("extents", &self.extents)
            .finish_non_exhaustive()
    }
}
