//! Communicators: made, compared, named, freed.

use std::sync::Arc;

use super::arguments::Arguments;
use super::objects::{Kind, no_such};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::request::Pending;
use super::server::Server;
use crate::channel::Channel;
use crate::comm::Comm;
use crate::error::ErrorClass;
use crate::rank::{Communicator, Comparison};

impl<C: Channel> Server<'_, C> {
    pub(super) async fn communicators(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Comm_dup" | "Comm_dup_with_info" => {
                let (old, object) = a.comm_object()?;
                let info = match a.call.name {
                    "Comm_dup" => object.info.clone(),
                    _ => a.info()?,
                };
                let at = a.address();
                let attributes = self.copies(old, &object.object).await?;
                let made = self.mpi.on(object.comm).dup().await?;
                let handle = self.made(a, at, Some(made), object.object.handler)?;
                let mut objects = self.rank.objects.lock();
                if let Some(new) = objects.comms.get_mut(&handle) {
                    new.object.attributes = attributes;
                    new.info = info;
                }
                SUCCESS
            }
            "Comm_idup" | "Comm_idup_with_info" => {
                let (old, object) = a.comm_object()?;
                if a.call.name != "Comm_idup" {
                    a.info()?;
                }
                let (at, request) = (a.address(), a.address());
                let attributes = self.copies(old, &object.object).await?;
                let begun = self.mpi.on(object.comm.clone()).idup().await?;
                let handler = object.object.handler;
                let handle = a.new_handle(Kind::Comm);
                let mut new = object;
                new.object.attributes = attributes;
                self.rank.objects.lock().comms.insert(handle, new);
                a.put_handle(at, handle)?;
                self.begun(
                    a,
                    request,
                    Pending::Duplicate(Box::new(begun), handle, handler),
                )
            }
            "Comm_create" => {
                let (_, object) = a.comm_object()?;
                let group = a.group()?;
                let made = self.mpi.on(object.comm).create(&group).await?;
                let at = a.address();
                self.made(a, at, made, object.object.handler)?;
                SUCCESS
            }
            "Comm_create_group" => {
                let (_, object) = a.comm_object()?;
                let (group, tag) = (a.group()?, a.tag()?);
                let at = a.address();
                let on = self.mpi.on(object.comm);
                let me = group.rank_of(self.mpi.channel().rank());
                let made = match me {
                    None => None,
                    Some(_) => Some(on.create_group(&group, tag).await?),
                };
                self.made(a, at, made, object.object.handler)?;
                SUCCESS
            }
            "Comm_split" => {
                let (_, object) = a.comm_object()?;
                let (color, key) = (a.number(), a.number() as i32);
                let is_undefined = color == a.interface().constant("UNDEFINED");
                let color = match is_undefined {
                    true => None,
                    false => Some(u32::try_from(color).map_err(|_| {
                        Failure::new(ErrorClass::Arg, format!("color: {color} is negative"))
                    })?),
                };
                self.split(a, (object.comm, object.object.handler), (color, key))
                    .await
            }
            "Comm_split_type" => {
                let (_, object) = a.comm_object()?;
                let (kind, key) = (a.number(), a.number() as i32);
                let info = a.info()?;
                let wants_memory = info.get("mpi_hw_resource_type")? == Some("mpi_shared_memory");
                let of = a.interface();
                let alone = self.mpi.channel().rank();
                let is_guided = ["COMM_TYPE_HW_GUIDED", "COMM_TYPE_RESOURCE_GUIDED"]
                    .iter()
                    .any(|name| kind == of.constant(name));
                let color = match kind {
                    // A window in one memory is for one rank: the processes share none.
                    _ if kind == of.constant("COMM_TYPE_SHARED") => Some(alone),
                    // There is no smaller piece of hardware that ranks could share.
                    _ if kind == of.constant("UNDEFINED") => None,
                    _ if kind == of.constant("COMM_TYPE_HW_UNGUIDED") => None,
                    _ if is_guided => Some(alone).filter(|_| wants_memory),
                    _ => {
                        let text = format!("split_type: {kind} is none");
                        return Err(Failure::new(ErrorClass::Arg, text));
                    }
                };
                self.split(a, (object.comm, object.object.handler), (color, key))
                    .await
            }
            "Comm_free" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                self.free_comm(a, at, handle, false).await
            }
            "Intercomm_create" => {
                let (_, local) = a.comm_object()?;
                let leader = a.peer()?;
                let is_leader = leader == local.comm.rank();
                let peer = a.handle();
                let remote_leader = a.number();
                let tag = a.tag()?;
                let on = self.mpi.on(local.comm);
                let peer = match is_leader {
                    false => None,
                    true => {
                        let objects = self.rank.objects.lock();
                        let found = objects.comms.get(&peer).map(|peer| peer.comm.clone());
                        let comm =
                            found.ok_or_else(|| no_such(ErrorClass::Comm, "communicator", peer))?;
                        Some(self.mpi.on(comm))
                    }
                };
                let remote_leader = u32::try_from(remote_leader);
                let remote_leader = remote_leader.unwrap_or(crate::rank::PROC_NULL);
                let peer = peer.as_ref().map(|peer| (peer, remote_leader));
                let made = on.intercomm(leader, peer, tag).await?;
                let at = a.address();
                self.made(a, at, Some(made), local.object.handler)?;
                SUCCESS
            }
            "Intercomm_merge" => {
                let (_, object) = a.comm_object()?;
                let is_high = a.flag();
                let made = self.mpi.on(object.comm).merge(is_high).await?;
                let at = a.address();
                self.made(a, at, Some(made), object.object.handler)?;
                SUCCESS
            }
            _ => self.rank.of_comm(a),
        }
    }

    async fn split(
        &mut self,
        a: &mut Arguments<'_>,
        (comm, handler): (Comm, u64),
        (color, key): (Option<u32>, i32),
    ) -> Ended {
        let made = self.mpi.on(comm).split(color, key).await?;
        let at = a.address();
        self.made(a, at, made, handler)?;
        SUCCESS
    }

    /// Gives a communicator that has been made a handle, and writes that to an address; that of no
    /// communicator if this rank is in none.
    pub(super) fn made(
        &self,
        a: &Arguments<'_>,
        at: u64,
        made: Option<Communicator<'_, C>>,
        handler: u64,
    ) -> Result<u64, Failure> {
        let handle = match made {
            Some(made) => {
                let comm = made.handle().clone();
                self.rank.objects.lock().add_comm(comm, handler)
            }
            None => a.interface().handle("COMM_NULL"),
        };
        a.put_handle(at, handle)?;
        Ok(handle)
    }

    /// MPI_Comm_free, MPI_Comm_disconnect.
    pub(super) async fn free_comm(
        &mut self,
        a: &Arguments<'_>,
        at: u64,
        handle: u64,
        disconnects: bool,
    ) -> Ended {
        let found = self.rank.objects.lock().comms.get(&handle).cloned();
        let found = found.ok_or_else(|| no_such(ErrorClass::Comm, "communicator", handle))?;
        *self.rank.about.lock() = super::rank::About::Comm(handle);
        let of = a.interface();
        if ["COMM_WORLD", "COMM_SELF"]
            .iter()
            .any(|name| of.handle(name) == handle)
        {
            let text = "comm: a predefined communicator stays to the end";
            return Err(Failure::new(ErrorClass::Comm, text));
        }
        self.deletes(handle, &found.object.attributes).await?;
        let on = self.mpi.on(found.comm);
        match disconnects {
            true => on.disconnect().await?,
            false => on.free().await?,
        }
        self.rank.objects.lock().comms.remove(&handle);
        a.put_null(at, "COMM_NULL")?;
        SUCCESS
    }
}

impl Rank {
    /// The calls about a communicator that need no other rank.
    pub(super) fn of_comm(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Comm_rank" => {
                let (comm, out) = (a.comm()?, a.out());
                a.put(out, comm.rank().into())?;
            }
            "Comm_size" => {
                let (comm, out) = (a.comm()?, a.out());
                a.put(out, comm.size().into())?;
            }
            "Comm_remote_size" => {
                let (comm, out) = (a.comm()?, a.out());
                let group = comm.remote_group().ok_or_else(no_sides)?;
                a.put(out, group.size().into())?;
            }
            "Comm_test_inter" => {
                let (comm, out) = (a.comm()?, a.out());
                a.put(out, comm.remote_group().is_some().into())?;
            }
            "Comm_group" => {
                let (comm, at) = (a.comm()?, a.address());
                let handle = self.objects.lock().add_group(comm.group().clone());
                a.put_handle(at, handle)?;
            }
            "Comm_remote_group" => {
                let (comm, at) = (a.comm()?, a.address());
                let group = comm.remote_group().ok_or_else(no_sides)?;
                let handle = self.objects.lock().add_group(group.clone());
                a.put_handle(at, handle)?;
            }
            "Comm_compare" => {
                let (one, other, out) = (a.comm()?, a.comm()?, a.out());
                let name = match one.compare(&other) {
                    Comparison::Ident => "IDENT",
                    Comparison::Congruent => "CONGRUENT",
                    Comparison::Similar => "SIMILAR",
                    Comparison::Unequal => "UNEQUAL",
                };
                a.put(out, a.interface().constant(name))?;
            }
            "Comm_set_name" => {
                let (handle, _) = a.comm_object()?;
                let name = a.string()?;
                let mut objects = self.objects.lock();
                if let Some(object) = objects.comms.get_mut(&handle) {
                    object.object.name = name;
                }
            }
            "Comm_get_name" => {
                let name = match a.is_null("COMM_NULL") {
                    true => "MPI_COMM_NULL".to_owned(),
                    false => a.comm_object()?.1.object.name,
                };
                self.gives_name(a, &name)?;
            }
            "Comm_set_info" => {
                let (handle, _) = a.comm_object()?;
                let info = a.info()?;
                let mut objects = self.objects.lock();
                if let Some(object) = objects.comms.get_mut(&handle) {
                    object.info = info;
                }
            }
            "Comm_get_info" => {
                let (_, object) = a.comm_object()?;
                let at = a.address();
                let handle = self.objects.lock().add_info(object.info);
                a.put_handle(at, handle)?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    /// Writes the name of an object and its length.
    pub(super) fn gives_name(&self, a: &mut Arguments<'_>, name: &str) -> Result<(), Failure> {
        let (address, length) = (a.address(), a.out());
        let room = a.interface().constant("MAX_OBJECT_NAME") as usize;
        let bytes = self.put_string(address, name, room)?;
        a.put(length, bytes as i64)
    }
}

fn no_sides() -> Failure {
    Failure::new(ErrorClass::Comm, "comm: it is no intercommunicator")
}
