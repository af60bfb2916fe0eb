//! The calls that access other ranks' memory (MPI-4.1, Sec. 12.3).

use std::panic::Location;

use super::{Engine, Target, Window};
use crate::buffer::{Buffer, BufferMut, Scalar};
use crate::channel::Channel;
use crate::datatype::Datatype;
use crate::device::driver::{self, Site};
use crate::error::{ErrorClass, Fault, MpiError};
use crate::op::Op;
use crate::rank::request::{Landing, Launch, Start};
use crate::rank::{PROC_NULL, Request, Status};
use crate::window::Synchronization;
use crate::window::access::{Access, Kind, blocks};
use crate::window::epoch;

impl<'m, C: Channel> Window<'m, C> {
    /// Puts elements into the target's memory (MPI_Put).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] outside an access epoch, [`ErrorClass::Rank`] of a wrong target,
    /// [`ErrorClass::RmaRange`] outside its memory, [`ErrorClass::Type`] if there are not as many
    /// bytes.
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
    /// As [`Window::put`]; [`ErrorClass::Op`] of an operation that is not predefined or not for
    /// such elements.
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

    /// The same of elements of any datatype: of `both` the first is compared, the second is new.
    #[track_caller]
    pub(crate) fn compare_and_swap_any<'a, 'b>(
        &'a self,
        both: Buffer<'a>,
        received: BufferMut<'b>,
        target: &'a Target,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let asked = ("MPI_Compare_and_swap", Kind::CompareAndSwap);
        let site = Location::caller();
        async move {
            let asked = (asked.0, asked.1, Some(&both));
            self.access(site, asked, received, target).await
        }
    }

    /// A request of an access that is over here, as one is that gets nothing.
    pub(crate) fn over(&self) -> Request<'m, 'static, C> {
        Request::over(&self.mpi.on(self.comm.clone()), Status::EMPTY)
    }

    /// Lets the accesses to `target`, which is locked, or to all locked ranks leave before the
    /// epoch ends or is flushed: their requests may be waited for at once, as that of MPI_Rget.
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if no lock is held.
    pub fn hasten(&self, target: Option<u32>) -> Result<(), MpiError> {
        let locked = self.epochs.lock().flush(target, self.comm.size());
        let locked =
            locked.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_flush_local"))?;
        if let Engine::Messages(messages) = &self.engine {
            locked.iter().for_each(|&target| messages.hasten(target));
        }
        Ok(())
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
        let is_given = given == length || given == 0 && !kind.has_operands();
        let is_right = is_given && room == length;
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
                if messages.has_own() {
                    let no_own = || (!messages.has_own()).then_some(());
                    driver::until(mpi.device(), &mpi.channel, site, no_own).await;
                }
                let launch = |request| Launch::new(Start::Begun(request), Landing::Whole(received));
                Ok(request.map(launch))
            }
        }
    }
}
