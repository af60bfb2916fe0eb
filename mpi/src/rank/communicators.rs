//! Communicators: made, compared, given names and handlers (MPI-4.1, Ch. 7).

use std::panic::Location;

use super::{Communicator, Mpi, Named, point};
use crate::attributes::{Keyval, Value};
use crate::channel::Channel;
use crate::collective::Call;
use crate::collective::team::Team;
use crate::comm::create::{self, Made, teams};
use crate::comm::{Comm, Plane, Remote};
use crate::device::Task;
use crate::device::driver::Site;
use crate::error::{ErrorClass, ErrorHandler, Fault, MpiError};
use crate::group::{self, Group};
use crate::info::Info;

/// The relation of two communicators (MPI_Comm_compare).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They are one communicator (MPI_IDENT).
    Ident,
    /// They have the same ranks in the same order (MPI_CONGRUENT).
    Congruent,
    /// They have the same ranks (MPI_SIMILAR).
    Similar,
    /// They have not (MPI_UNEQUAL).
    Unequal,
}

/// A duplicate under way.
#[derive(Debug)]
#[must_use = "the duplicate is there when it has been waited for"]
pub struct Duplicating<'m, C> {
    of: Communicator<'m, C>,
    task: usize,
}

impl<'m, C: Channel> Duplicating<'m, C> {
    /// Waits for the duplicate (MPI_Wait).
    ///
    /// # Errors
    /// Those of [`Communicator::dup`].
    #[track_caller]
    pub fn wait(self) -> impl Future<Output = Result<Communicator<'m, C>, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let mpi = self.of.mpi;
            let entered = mpi.enter("MPI_Wait", None, 0).await?;
            let made = self.of.made(site, self.task).await;
            let comm = made.map(|made| self.of.twin(made.context));
            mpi.close(entered, &self.of.comm, comm).await
        }
    }

    /// Returns whether the duplicate is there.
    pub(crate) fn is_over(&self) -> bool {
        self.of.mpi.device().is_over(self.task)
    }

    /// The duplicate, if it is there.
    pub(crate) fn take(&self) -> Option<Result<Communicator<'m, C>, Fault>> {
        let outcome = self.of.mpi.device().take(self.task)?;
        Some(match outcome.fault {
            Some(fault) => Err(fault),
            None => Ok(self.of.twin(Made::from_bytes(&outcome.bytes).context)),
        })
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// A communicator of the same ranks (MPI_Comm_dup).
    ///
    /// # Errors
    /// [`ErrorClass::Comm`] if other ranks make another call.
    #[track_caller]
    pub fn dup(&self) -> impl Future<Output = Result<Self, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let made = self
                .make("MPI_Comm_dup", site, || Ok(self.duplicate()))
                .await?;
            Ok(self.twin(made.context))
        }
    }

    /// Begins the same (MPI_Comm_idup).
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    pub async fn idup(&self) -> Result<Duplicating<'m, C>, MpiError> {
        let entered = self.mpi.enter("MPI_Comm_idup", None, 0).await?;
        let begun = self.comm.check().map(|()| Duplicating {
            of: self.clone(),
            task: self.mpi.device().begin_task(self.duplicate()),
        });
        self.mpi.close(entered, &self.comm, begun).await
    }

    pub(super) fn duplicate(&self) -> Task {
        let (team, local) = teams(self.mpi.device(), &self.comm, Call::Dup, 0);
        Box::pin(create::dup(team, local, self.is_first_side()))
    }

    /// Returns whether this side of an intercommunicator has the lower first rank of the job.
    fn is_first_side(&self) -> bool {
        let other = self.comm.peers().world_rank(0);
        self.comm.group().world_rank(0) < other
    }

    /// The communicator of the same ranks with that context.
    pub(super) fn twin(&self, context: u64) -> Self {
        let comm = &self.comm;
        let twin = Comm::with(
            context,
            comm.group().clone(),
            comm.rank(),
            comm.remote().cloned(),
            comm.topology().cloned(),
        );
        self.mpi.made(twin.duplicating(comm))
    }

    /// The communicator of the ranks that give the same color, in the order of their keys, and of
    /// their ranks where keys are equal; none for a rank without a color (MPI_Comm_split). Of an
    /// intercommunicator the sides are split alike.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    #[track_caller]
    pub fn split(
        &self,
        color: Option<u32>,
        key: i32,
    ) -> impl Future<Output = Result<Option<Self>, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let comm = &self.comm;
            if comm.remote().is_some() {
                let call = ("MPI_Comm_split", Call::Split);
                return self.split_sides(call, site, Ok((color, key))).await;
            }
            let task = || {
                let (team, _) = teams(self.mpi.device(), comm, Call::Split, 0);
                let group = comm.group().clone();
                let task: Task = Box::pin(create::split(team, group, (color, key)));
                Ok(task)
            };
            let made = self.make("MPI_Comm_split", site, task).await?;
            Ok(self.member_of(made))
        }
    }

    /// The communicator of an intercommunicator's ranks with this color on both sides, if both have
    /// any.
    async fn split_sides(
        &self,
        (name, call): (&'static str, Call),
        site: Site,
        with: Result<(Option<u32>, i32), Fault>,
    ) -> Result<Option<Self>, MpiError> {
        let comm = &self.comm;
        let task = || {
            let with = with?;
            let (team, local) = teams(self.mpi.device(), comm, call, 0);
            let groups = (comm.group().clone(), comm.peers().clone());
            let local = local.ok_or_else(no_sides)?;
            let is_first = self.is_first_side();
            let task: Task = Box::pin(create::split_sides((team, local), groups, with, is_first));
            Ok(task)
        };
        let made = self.make(name, site, task).await?;
        let Some((own, other)) = made.sides() else {
            return Ok(None);
        };
        // Both sides may use the context for a communicator of their own: their ranks are not the
        // same.
        let Some(local) = self.member_of(own) else {
            return Ok(None);
        };
        Ok(self.bridged(local.comm, other))
    }

    /// The communicator of the ranks of `group`, which all ranks give alike; none for others
    /// (MPI_Comm_create). Of an intercommunicator each side gives a group of its own ranks, and
    /// there is none if one of them is empty.
    ///
    /// # Errors
    /// [`ErrorClass::Group`] if the group has ranks that this communicator does not have.
    #[track_caller]
    pub fn create<'a>(
        &'a self,
        group: &'a Group,
    ) -> impl Future<Output = Result<Option<Self>, MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let comm = &self.comm;
            if comm.remote().is_some() {
                // Those of the group are what a split would leave, in the order of the group.
                let place = group.rank_of(self.mpi.device().rank());
                let with = (place.map(|_| 0), place.unwrap_or_default() as i32);
                let with = self.check_group(group).map(|()| with);
                let call = ("MPI_Comm_create", Call::Create);
                return self.split_sides(call, site, with).await;
            }
            let task = || {
                self.check_group(group)?;
                let (team, _) = teams(self.mpi.device(), comm, Call::Create, 0);
                let task: Task = Box::pin(create::create(team, group.clone()));
                Ok(task)
            };
            let made = self.make("MPI_Comm_create", site, task).await?;
            Ok(self.member_of(made))
        }
    }

    /// The same as a call of the group's ranks alone; `tag` keeps calls of several threads apart
    /// (MPI_Comm_create_group).
    ///
    /// # Errors
    /// As [`Communicator::create`], and if this rank is not in the group.
    #[track_caller]
    pub fn create_group<'a>(
        &'a self,
        group: &'a Group,
        tag: i32,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let comm = &self.comm;
            let task = || {
                self.check_one_side()?;
                self.check_group(group)?;
                let me = group.rank_of(self.mpi.device().rank());
                let me = me.ok_or_else(|| {
                    Fault::new(ErrorClass::Group, "group", "this rank is not in the group")
                })?;
                let at = (comm.context(Plane::Create), tag);
                let place = (group.clone(), me);
                let team = Team::new(self.mpi.device(), place, at, (Call::Create, 0));
                let task: Task = Box::pin(create::create(team, group.clone()));
                Ok(task)
            };
            let made = self.make("MPI_Comm_create_group", site, task).await?;
            Ok(self.member_of(made).unwrap_or_else(|| self.clone()))
        }
    }

    /// Checks that the communicator is no intercommunicator.
    pub(super) fn check_one_side(&self) -> Result<(), Fault> {
        match self.comm.remote() {
            None => Ok(()),
            Some(_) => Err(Fault::new(
                ErrorClass::Comm,
                "comm",
                "it is an intercommunicator",
            )),
        }
    }

    /// Checks that all ranks of `group` are in the communicator, on this side of it.
    fn check_group(&self, group: &Group) -> Result<(), Fault> {
        let mut ranks = group.world_ranks();
        match ranks.find(|&rank| self.comm.group().rank_of(rank).is_none()) {
            None => Ok(()),
            Some(rank) => {
                let text = format!("rank {rank} of the job is not in the communicator");
                Err(Fault::new(ErrorClass::Group, "group", text))
            }
        }
    }

    /// The intercommunicator of this communicator's ranks and those of the leader's partner:
    /// `leader` is a rank here, and `peer`, which matters at the leader alone, is a communicator of
    /// both leaders with the other's rank there (MPI_Intercomm_create).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] of a wrong leader; [`ErrorClass::Comm`] if a rank is on both sides.
    #[track_caller]
    pub fn intercomm<'a>(
        &'a self,
        leader: u32,
        peer: Option<(&'a Self, u32)>,
        tag: i32,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let comm = &self.comm;
            let task = || {
                point::check_rank(comm, "local_leader", leader)?;
                let is_leader = comm.rank() == leader;
                let bridge = match peer.filter(|_| is_leader) {
                    Some((peer, other)) => {
                        point::check_rank(&peer.comm, "remote_leader", other)?;
                        let place = (peer.comm.peers().clone(), peer.comm.rank());
                        let at = (peer.comm.context(Plane::Create), tag);
                        let call = (Call::IntercommCreate, 0);
                        Some((Team::new(self.mpi.device(), place, at, call), other))
                    }
                    None if is_leader => {
                        return Err(Fault::new(
                            ErrorClass::Comm,
                            "peer_comm",
                            "the leader needs a communicator with the other leader",
                        ));
                    }
                    None => None,
                };
                let call = Call::IntercommCreate;
                let (team, _) = teams(self.mpi.device(), comm, call, leader);
                let group = comm.group().clone();
                let task: Task = Box::pin(create::intercomm(team, (leader, bridge), group));
                Ok(task)
            };
            let made = self.make("MPI_Intercomm_create", site, task).await?;
            let local = Comm::new(made.context, comm.group().clone(), comm.rank());
            Ok(self.bridged(local, made).unwrap_or_else(|| self.clone()))
        }
    }

    /// The communicator of both sides of an intercommunicator: the side that is not `is_high` comes
    /// first (MPI_Intercomm_merge).
    ///
    /// # Errors
    /// [`ErrorClass::Comm`] if it is no intercommunicator.
    #[track_caller]
    pub fn merge(&self, is_high: bool) -> impl Future<Output = Result<Self, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let comm = &self.comm;
            let task = || {
                let call = Call::IntercommMerge;
                let (team, local) = match comm.remote() {
                    Some(_) => teams(self.mpi.device(), comm, call, 0),
                    None => return Err(no_sides()),
                };
                let local = local.ok_or_else(no_sides)?;
                let groups = (comm.group().clone(), comm.peers().clone());
                let task: Task = Box::pin(create::merge(team, local, groups, is_high));
                Ok(task)
            };
            let made = self.make("MPI_Intercomm_merge", site, task).await?;
            Ok(self.member_of(made).unwrap_or_else(|| self.clone()))
        }
    }

    /// The intercommunicator of `local` and the ranks of `other`, whose context both have.
    pub(super) fn bridged(&self, local: Comm, other: Made) -> Option<Self> {
        let group = Group::from_world_ranks(other.ranks).ok()?;
        let own = local.group().clone();
        let rank = local.rank();
        let remote = Some(Remote { group, local });
        let comm = Comm::with(other.context, own, rank, remote, None);
        Some(self.mpi.made(comm))
    }

    /// The communicator that was made, if this rank is in it.
    pub(super) fn member_of(&self, made: Made) -> Option<Self> {
        let group = Group::from_world_ranks(made.ranks).ok()?;
        let me = group.rank_of(self.mpi.device().rank())?;
        let comm = Comm::new(made.context, group, me);
        *comm.handler().lock() = self.comm.handler().lock().clone();
        Some(self.mpi.made(comm))
    }

    /// Makes a call whose task makes a communicator.
    pub(super) async fn make(
        &self,
        call: &'static str,
        site: Site,
        task: impl FnOnce() -> Result<Task, Fault>,
    ) -> Result<Made, MpiError> {
        let call = Named::new(call, site);
        let entered = self.mpi.enter(call.name, None, 0).await?;
        let task = self.comm.check().and_then(|()| task());
        let made = match task {
            Err(fault) => Err(fault),
            Ok(task) => {
                let task = self.mpi.device().begin_task(task);
                self.made(site, task).await
            }
        };
        self.mpi.close(entered, &self.comm, made).await
    }

    pub(super) async fn made(&self, site: Site, task: usize) -> Result<Made, Fault> {
        let mpi: &Mpi<C> = self.mpi;
        let outcome = mpi.until(site, || mpi.device().take(task)).await;
        match outcome.fault {
            Some(fault) => Err(fault),
            None => Ok(Made::from_bytes(&outcome.bytes)),
        }
    }

    /// The relation to another communicator (MPI_Comm_compare).
    pub fn compare(&self, other: &Self) -> Comparison {
        self.comm.compare(&other.comm)
    }

    /// Sets the response to errors of calls over it (MPI_Comm_set_errhandler).
    pub fn set_error_handler(&self, handler: ErrorHandler) {
        *self.comm.handler().lock() = handler;
    }

    /// The response to errors of calls over it (MPI_Comm_get_errhandler).
    pub fn error_handler(&self) -> ErrorHandler {
        self.comm.handler().lock().clone()
    }

    /// Attaches a value under a key (MPI_Comm_set_attr).
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if the key has been freed.
    pub fn set_attribute(&self, key: &Keyval, value: Value) -> Result<(), MpiError> {
        let set = self.comm.attributes().set(key, value);
        set.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Comm_set_attr"))
    }

    /// The value under a key (MPI_Comm_get_attr).
    pub fn attribute(&self, key: &Keyval) -> Option<Value> {
        self.comm.attributes().get(key)
    }

    /// Deletes it (MPI_Comm_delete_attr).
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if nothing is attached under the key.
    pub fn delete_attribute(&self, key: &Keyval) -> Result<(), MpiError> {
        let deleted = self.comm.attributes().delete(key);
        deleted.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Comm_delete_attr"))
    }

    /// Hands it an info object (MPI_Comm_set_info), which it keeps.
    pub fn set_info(&self, info: &Info) {
        *self.comm.info().lock() = info.clone();
    }

    /// The info object that it was handed last (MPI_Comm_get_info).
    pub fn info(&self) -> Info {
        self.comm.info().lock().clone()
    }

    /// Gives it a name (MPI_Comm_set_name).
    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.comm.name().lock());
    }

    /// Its name (MPI_Comm_get_name).
    pub fn name(&self) -> String {
        self.comm.name().lock().clone()
    }

    /// Ends its use by this rank, without waiting for others (MPI_Comm_free). What has been begun
    /// goes on.
    ///
    /// # Errors
    /// [`ErrorClass::Comm`] if it has been freed, or is that of all ranks or of one alone.
    pub async fn free(&self) -> Result<(), MpiError> {
        let entered = self.mpi.enter("MPI_Comm_free", None, 0).await?;
        let ended = self.may_end().map(|()| self.comm.set_freed());
        self.mpi.close(entered, &self.comm, ended).await
    }

    /// Ends its use by all its ranks, when all that was sent over it by this rank has left
    /// (MPI_Comm_disconnect).
    ///
    /// # Errors
    /// As [`Communicator::free`].
    #[track_caller]
    pub fn disconnect(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let site = Location::caller();
        async move {
            let mpi = self.mpi;
            let entered = mpi.enter("MPI_Comm_disconnect", None, 0).await?;
            let ended = match self.may_end() {
                Err(fault) => Err(fault),
                Ok(()) => {
                    let is_drained = || mpi.is_drained();
                    mpi.until(site, is_drained).await;
                    let task = mpi.meeting(&self.comm, Call::Disconnect);
                    let task = mpi.device().begin_task(task);
                    let outcome = mpi.until(site, || mpi.device().take(task)).await;
                    self.comm.set_freed();
                    outcome.fault.map_or(Ok(()), Err)
                }
            };
            mpi.close(entered, &self.comm, ended).await
        }
    }

    fn may_end(&self) -> Result<(), Fault> {
        self.comm.check()?;
        match self.mpi.is_predefined(&self.comm) {
            true => Err(Fault::new(
                ErrorClass::Comm,
                "comm",
                "a predefined communicator stays to the end",
            )),
            false => Ok(()),
        }
    }
}

impl Comm {
    /// The relation to another communicator.
    pub(crate) fn compare(&self, other: &Self) -> Comparison {
        if self.is(other) {
            return Comparison::Ident;
        }
        let own = self.group().compare(other.group());
        let theirs = match (self.remote_group(), other.remote_group()) {
            (None, None) => group::Comparison::Ident,
            (Some(own), Some(theirs)) => own.compare(theirs),
            _ => group::Comparison::Unequal,
        };
        use group::Comparison::{Ident, Unequal};
        match (own, theirs) {
            (Ident, Ident) => Comparison::Congruent,
            (Unequal, _) | (_, Unequal) => Comparison::Unequal,
            _ => Comparison::Similar,
        }
    }
}

fn no_sides() -> Fault {
    Fault::new(ErrorClass::Comm, "comm", "it is no intercommunicator")
}
