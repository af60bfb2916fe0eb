//! Groups of processes that were started apart and connect to each other (MPI-4.1, Sec. 11.9).

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

/// The one that knows the ports of services by their names: a process manager.
pub trait NameService: Send + Sync {
    /// Writes down the port of a service.
    ///
    /// # Errors
    /// [`ErrorClass::Service`](crate::error::ErrorClass::Service) if it has one.
    fn publish(&self, service: &str, port: &str) -> impl Future<Output = Result<(), Fault>> + Send;

    /// The port of a service.
    ///
    /// # Errors
    /// [`ErrorClass::Name`](crate::error::ErrorClass::Name) if it has none.
    fn look_up(&self, service: &str) -> impl Future<Output = Result<String, Fault>> + Send;

    /// Strikes the port of a service out.
    ///
    /// # Errors
    /// [`ErrorClass::Service`](crate::error::ErrorClass::Service) if it has not this one.
    fn unpublish(
        &self,
        service: &str,
        port: &str,
    ) -> impl Future<Output = Result<(), Fault>> + Send;
}

impl<C: Channel> Mpi<C> {
    /// Publishes a port under the name of a service (MPI_Publish_name).
    ///
    /// # Errors
    /// [`ErrorClass::Service`](crate::error::ErrorClass::Service) if the service has one.
    pub async fn publish_name(
        &self,
        names: &impl NameService,
        service: &str,
        port: &str,
    ) -> Result<(), MpiError> {
        let entered = self.enter("MPI_Publish_name", None, 0).await?;
        let published = names.publish(service, port).await;
        self.close(entered, &self.own_comm(), published).await
    }

    /// The port that is published under the name of a service (MPI_Lookup_name).
    ///
    /// # Errors
    /// [`ErrorClass::Name`](crate::error::ErrorClass::Name) if none is.
    pub async fn lookup_name(
        &self,
        names: &impl NameService,
        service: &str,
    ) -> Result<String, MpiError> {
        let entered = self.enter("MPI_Lookup_name", None, 0).await?;
        let port = names.look_up(service).await;
        self.close(entered, &self.own_comm(), port).await
    }

    /// Takes it back (MPI_Unpublish_name).
    ///
    /// # Errors
    /// [`ErrorClass::Service`](crate::error::ErrorClass::Service) if the service has not this port.
    pub async fn unpublish_name(
        &self,
        names: &impl NameService,
        service: &str,
        port: &str,
    ) -> Result<(), MpiError> {
        let entered = self.enter("MPI_Unpublish_name", None, 0).await?;
        let struck = names.unpublish(service, port).await;
        self.close(entered, &self.own_comm(), struck).await
    }

    /// Opens a port, to which others can connect; its name (MPI_Open_port).
    ///
    /// # Errors
    /// [`ErrorClass::Other`](crate::error::ErrorClass::Other) if another call of the rank is under
    /// way.
    pub async fn open_port(&self) -> Result<String, MpiError> {
        let entered = self.enter("MPI_Open_port", None, 0).await?;
        let number = self.ports.lock().open();
        let rank = self.device().rank();
        let name = Port { rank, number }.name();
        self.close(entered, &self.own_comm(), Ok(name)).await
    }

    /// Closes it again: groups that want to connect are refused (MPI_Close_port).
    ///
    /// # Errors
    /// [`ErrorClass::Port`](crate::error::ErrorClass::Port) if it is not open at this rank.
    pub async fn close_port(&self, name: &str) -> Result<(), MpiError> {
        let entered = self.enter("MPI_Close_port", None, 0).await?;
        let device = self.device();
        let port = Port::named(name, self.channel.ranks());
        let closed = port.and_then(|port| self.ports.lock().close(port, device));
        self.close(entered, &self.own_comm(), closed).await
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// Waits until a group connects to the port of this name, which `root` has opened and which
    /// matters there alone; the intercommunicator with that group (MPI_Comm_accept).
    ///
    /// # Errors
    /// [`ErrorClass::Port`](crate::error::ErrorClass::Port) at all ranks if the port is not open at
    /// `root`; [`ErrorClass::Rank`](crate::error::ErrorClass::Rank) of a wrong root, and
    /// [`ErrorClass::Comm`](crate::error::ErrorClass::Comm) if this is an intercommunicator or a
    /// rank is on both sides.
    #[track_caller]
    pub fn accept<'a>(
        &'a self,
        port: &'a str,
        root: u32,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send + 'a {
        self.meets(Call::Accept, Location::caller(), (port, root))
    }

    /// Connects to the port of this name, which matters at `root` alone; the intercommunicator with
    /// the group that accepts (MPI_Comm_connect). Without one that does the call waits.
    ///
    /// # Errors
    /// As [`Self::accept`]; the port may also be closed while the call waits. A rank that has
    /// finalized does not answer.
    #[track_caller]
    pub fn connect<'a>(
        &'a self,
        port: &'a str,
        root: u32,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send + 'a {
        self.meets(Call::Connect, Location::caller(), (port, root))
    }

    async fn meets(
        &self,
        call: Call,
        site: Site,
        (name, root): (&str, u32),
    ) -> Result<Self, MpiError> {
        let comm = &self.comm;
        let mpi = self.mpi;
        let task = || {
            self.check_one_side()?;
            point::check_rank(comm, "root", root)?;
            let is_root = comm.rank() == root;
            let port = is_root.then(|| Port::named(name, mpi.channel.ranks()));
            let (team, _) = teams(mpi.device(), comm, call, root);
            let with = (comm.group().clone(), Arc::clone(&mpi.ports));
            let task: Task = match call {
                Call::Accept => Box::pin(ports::accept(team, (root, port), with)),
                _ => Box::pin(ports::connect(team, (root, port), with)),
            };
            Ok::<_, Fault>(task)
        };
        let made = self.make(call.name(), site, task).await?;
        let local = Comm::new(made.context, comm.group().clone(), comm.rank());
        Ok(self.bridged(local, made).unwrap_or_else(|| self.clone()))
    }
}
