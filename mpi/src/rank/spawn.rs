//! Processes that a group starts (MPI-4.1, Sec. 11.8).

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use super::{Communicator, Mpi, point};
use crate::channel::Channel;
use crate::collective::Call;
use crate::comm::Comm;
use crate::comm::create::teams;
use crate::comm::ports::{self, Port};
use crate::device::Task;
use crate::device::driver::Site;
use crate::error::{Fault, MpiError};

/// The way in which processes that were started come to those that had them started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// They have a world of their own, which connects (MPI_Comm_spawn).
    Connects,
    /// They join the others' world (MPI_Comm_infect).
    Joins,
}

/// The one that starts processes: a process manager.
pub trait Starter: Send + Sync {
    /// Starts so many processes of each part of a program, all with one world in the order of the
    /// parts, which are expected at `port` for that purpose.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`](crate::error::ErrorClass::Spawn) if so many cannot be started; none is
    /// then.
    fn start(
        &self,
        counts: &[u32],
        arrival: Arrival,
        port: &str,
    ) -> impl Future<Output = Result<(), Fault>> + Send;
}

impl<C: Channel> Mpi<C> {
    /// Has so many processes of each part of a program started. They are expected at a port of this
    /// rank's, which is opened for them: that port, and again if they were started.
    pub(super) async fn has_started(
        &self,
        starter: &impl Starter,
        counts: &[u32],
        arrival: Arrival,
    ) -> (Port, Result<Port, Fault>) {
        let (rank, number) = (self.device().rank(), self.ports.lock().open());
        let own = Port { rank, number };
        let started = starter.start(counts, arrival, &own.name()).await;
        (own, started.map(|()| own))
    }

    /// Closes the port that was opened for them, if this rank has one.
    pub(super) fn closes(&self, opened: Option<Port>) {
        if let Some(own) = opened {
            // It is open, and so it can be closed.
            let _ = self.ports.lock().close(own, self.device());
        }
    }

    /// Connects the world to the group that has had it started, at this port, which matters at rank
    /// 0 alone (a part of MPI_Init).
    ///
    /// # Errors
    /// Those of [`Communicator::connect`].
    pub async fn has_parent(&self, port: &str) -> Result<(), MpiError> {
        let both = self.world().connect(port, 0).await?;
        self.worlds.write().parent = Some(both.comm.clone());
        Ok(())
    }

    /// The intercommunicator with the group that has had this world started, if one has
    /// (MPI_Comm_get_parent).
    pub fn parent(&self) -> Option<Communicator<'_, C>> {
        let parent = self.worlds.read().parent.clone();
        parent.map(|comm| self.on(comm))
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// Starts so many processes, which have a world of their own; the intercommunicator with them
    /// (MPI_Comm_spawn). `starter` and `count` matter at `root` alone. To the processes this group
    /// is the [parent](Mpi::parent).
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`](crate::error::ErrorClass::Spawn) at all ranks if so many cannot be
    /// started.
    #[track_caller]
    pub fn spawn<'a>(
        &'a self,
        starter: &'a impl Starter,
        count: u32,
        root: u32,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send + 'a {
        self.starts(
            (Call::Spawn, Location::caller()),
            (starter, vec![count]),
            root,
        )
    }

    /// The same of so many processes of each part of a program, in one world, of which each is told
    /// the number of its part (MPI_Comm_spawn_multiple).
    ///
    /// # Errors
    /// As [`Self::spawn`].
    #[track_caller]
    pub fn spawn_multiple<'a>(
        &'a self,
        starter: &'a impl Starter,
        counts: &[u32],
        root: u32,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send + 'a {
        let call = (Call::SpawnMultiple, Location::caller());
        self.starts(call, (starter, counts.to_vec()), root)
    }

    async fn starts(
        &self,
        (call, site): (Call, Site),
        (starter, counts): (&impl Starter, Vec<u32>),
        root: u32,
    ) -> Result<Self, MpiError> {
        let (comm, mpi) = (&self.comm, self.mpi);
        let entered = mpi.enter(call.name(), None, 0).await?;
        let checked = comm
            .check()
            .and_then(|()| self.check_one_side())
            .and_then(|()| point::check_rank(comm, "root", root));
        if let Err(fault) = checked {
            return mpi.close(entered, comm, Err(fault)).await;
        }
        let started = match comm.rank() == root {
            true => Some(mpi.has_started(starter, &counts, Arrival::Connects).await),
            false => None,
        };
        let (opened, port) = started.unzip();
        let (team, _) = teams(mpi.device(), comm, call, root);
        let with = (comm.group().clone(), Arc::clone(&mpi.ports));
        let task: Task = Box::pin(ports::accept(team, (root, port), with));
        let task = mpi.device().begin_task(task);
        let made = self.made(site, task).await;
        mpi.closes(opened);
        let made = mpi.close(entered, comm, made).await?;
        let local = Comm::new(made.context, comm.group().clone(), comm.rank());
        Ok(self.bridged(local, made).unwrap_or_else(|| self.clone()))
    }
}
