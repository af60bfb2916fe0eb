//! Worlds that grow and shrink: MPI_Comm_infect and MPI_Comm_retreat (Comprés et al., Sec. 3.3).
//!
//! Across the change:
//!
//! * Ranks stay the same in a world that grows, and those that come are the last. In one that
//!   shrinks those that stay close up, in their order.
//! * Requests over the world go on. A world does not shrink while one is under way between a rank
//!   that stays and one that leaves.
//! * Receives from any rank also take messages of ranks that come. They go on at ranks that stay.
//! * Derived communicators and windows go on. They end if ranks of both sides are in them.
//! * Attributes, error handler and name stay.
//! * Handles of the world are to be asked for, and persistent requests over it made again.

use std::panic::Location;
use std::sync::Arc;

use super::{Mpi, Worlds};
use crate::channel::Channel;
use crate::collective::Call;
use crate::comm::create::{self, Made, teams};
use crate::comm::ports::Port;
use crate::comm::world::{self, World};
use crate::comm::{Comm, Plane};
use crate::device::driver::Site;
use crate::error::{ErrorClass, Fault, MpiError};
use crate::group::Group;
use crate::rank::{Arrival, Starter};

impl<C: Channel> Mpi<C> {
    /// Lets the world grow by so many processes, which `starter` starts and which
    /// [join](Self::join) it (MPI_Comm_infect). All ranks of the world call it; `starter` and
    /// `count` matter at rank 0 alone.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`] at all ranks if so many cannot be started: the world stays as it is.
    #[track_caller]
    pub fn infect<'a>(
        &'a self,
        starter: &'a impl Starter,
        count: u32,
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let comm = self.changing(Call::Infect)?;
            let entered = self.enter(Call::Infect.name(), None, 0).await?;
            let started = match comm.rank() == 0 {
                true => Some(self.has_started(starter, &[count], Arrival::Joins).await),
                false => None,
            };
            let (opened, port) = started.unzip();
            let (team, _) = teams(self.device(), &comm, Call::Infect, 0);
            let with = (comm.group().clone(), Arc::clone(&self.ports));
            let same = (comm.made_context(), comm.calls());
            let task = world::grow(team, port, with, same);
            let grown = self.run(site, Box::pin(task)).await.and_then(|bytes| {
                let come = Made::from_bytes(&bytes).ranks;
                let ranks = comm.group().world_ranks().chain(come);
                self.changes(&comm, same, ranks.collect())
            });
            self.closes(opened);
            self.close(entered, &comm, grown).await
        }
    }

    /// Joins the world that has had this rank's world started, through the port that it was told:
    /// both are one from then on (a part of MPI_Init). All ranks of the world call it; `port`
    /// matters at rank 0 alone.
    ///
    /// # Errors
    /// [`ErrorClass::Port`] at all ranks if the port is not open.
    #[track_caller]
    pub fn join<'a>(
        &'a self,
        port: &'a str,
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let comm = self.changing(Call::Join)?;
            let entered = self.enter(Call::Join.name(), None, 0).await?;
            let is_first = comm.rank() == 0;
            let port = is_first.then(|| Port::named(port, self.channel.ranks()));
            let (team, _) = teams(self.device(), &comm, Call::Join, 0);
            let with = (comm.group().clone(), Arc::clone(&self.ports));
            let task = world::join(team, port, with);
            let joined = self.run(site, Box::pin(task)).await.and_then(|bytes| {
                let (theirs, there) = world::joined(&bytes);
                let ranks = there.into_iter().chain(comm.group().world_ranks());
                self.changes(&comm, theirs, ranks.collect())
            });
            self.close(entered, &comm, joined).await
        }
    }

    /// Lets the world shrink to the ranks that stay (MPI_Comm_retreat). All ranks of the world call
    /// it. Those that leave have a world of their own from then on, and are to finalize.
    ///
    /// # Errors
    /// At all ranks, and the world stays as it is: [`ErrorClass::Arg`] if no rank stays;
    /// [`ErrorClass::Pending`] if something is under way between a rank that stays and one that
    /// leaves, a message that has not been received included.
    #[track_caller]
    pub fn retreat(&self, stays: bool) -> impl Future<Output = Result<(), MpiError>> + Send {
        let site = Location::caller();
        async move {
            let comm = self.changing(Call::Retreat)?;
            let entered = self.enter(Call::Retreat.name(), None, 0).await?;
            let retreated = self.parts(&comm, site, stays).await;
            self.close(entered, &comm, retreated).await
        }
    }

    async fn parts(&self, comm: &Comm, site: Site, stays: bool) -> Result<(), Fault> {
        // Messages that were sent are on their way to where others can see them.
        self.until(site, || self.device.has_sent()).await;
        let (team, _) = teams(self.device(), comm, Call::Retreat, 0);
        let parted = create::part(team, comm.group().clone(), stays);
        let parted = Made::from_bytes(&self.run(site, Box::pin(parted)).await?);
        let (&count, ranks) = parted.ranks.split_first().unwrap_or((&0, &[]));
        let (stay, leave) = ranks
            .split_at_checked(count as usize)
            .unwrap_or((ranks, &[]));
        if stay.is_empty() {
            return Err(Fault::new(ErrorClass::Arg, "stays", "no rank stays"));
        }
        let (own, others) = match stays {
            true => (stay, leave),
            false => (leave, stay),
        };
        let others = Group::from_world_ranks(others.to_vec())?;
        // All ranks have begun the call: all that they have sent to this one is there.
        self.progress().await;
        let any = (!stays).then(|| comm.context(Plane::Point));
        let unfinished = self.device.unfinished(&others, any, Call::Retreat as u8);
        let (team, _) = teams(self.device(), comm, Call::Retreat, 0);
        self.run(site, Box::pin(world::agree(team, unfinished)))
            .await?;
        Comm::part(&self.existing, &others);
        let world = match stays {
            true => (comm.made_context(), comm.calls()),
            false => (parted.context, 0),
        };
        self.changes(comm, world, own.to_vec())
    }

    /// The world, which is to change in this call.
    fn changing(&self, call: Call) -> Result<Comm, MpiError> {
        let worlds = self.worlds.read();
        match worlds.world.is(&worlds.local) {
            true => Ok(worlds.world.clone()),
            false => {
                let text = "ranks of I/O subsystems are not in the world: it stays as it is";
                let fault = Fault::new(ErrorClass::Comm, "comm", text);
                Err(fault.at(self.device.rank(), call.name()))
            }
        }
    }

    /// From now on these ranks of the job are the world, in the place of `comm`.
    fn changes(&self, comm: &Comm, world: World, ranks: Vec<u32>) -> Result<(), Fault> {
        let group = Group::from_world_ranks(ranks)?;
        let missing = || Fault::new(ErrorClass::Group, "comm", "this rank is not in the world");
        let me = group.rank_of(self.device.rank()).ok_or_else(missing)?;
        let world = comm.replaced(world, group, me);
        let mut worlds = self.worlds.write();
        *worlds = Worlds {
            parent: worlds.parent.take(),
            ..Worlds::alone(world, worlds.own.clone())
        };
        Ok(())
    }
}
