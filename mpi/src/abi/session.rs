//! Sessions (MPI-4.1, Sec. 11.3): sets of processes, and communicators made from groups of them.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::arguments::Arguments;
use super::objects::{Kind, Object, no_such};
use super::rank::{About, Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::error::ErrorClass;
use crate::group::Group;
use crate::info::Info;
use crate::rank::Communicator;

/// The sets of processes that there are.
const SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// The place of a set among these; MPICH compares their names without regard to case.
fn place_of(name: &str) -> Option<usize> {
    SETS.iter().position(|set| set.eq_ignore_ascii_case(name))
}

impl<'m, C: Channel> Server<'m, C> {
    /// The calls about sessions.
    pub(super) async fn sessions(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Session_init" => {
                let (_, handler, at) = (a.info()?, a.handle(), a.address());
                self.meets_parent().await?;
                let handle = a.new_handle(Kind::Session);
                let object = Object {
                    handler,
                    ..Object::default()
                };
                self.rank.objects.lock().sessions.insert(handle, object);
                a.put_handle(at, handle)?;
            }
            "Session_finalize" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                let ended = self.rank.objects.lock().sessions.remove(&handle);
                ended.ok_or_else(|| no_such(ErrorClass::Session, "session", handle))?;
                a.put_null(at, "SESSION_NULL")?;
            }
            "Group_from_session_pset" => {
                session(a)?;
                let (name, at) = (a.string()?, a.address());
                let communicator = match place_of(&name) {
                    Some(0) => self.mpi.world(),
                    Some(_) => self.mpi.own(),
                    None => return Err(no_set(&name)),
                };
                let group = communicator.handle().group().clone();
                let handle = self.rank.objects.lock().add_group(group);
                a.put_handle(at, handle)?;
            }
            "Session_get_pset_info" => {
                session(a)?;
                let name = a.string()?;
                let size = match place_of(&name) {
                    Some(0) => self.mpi.world().size(),
                    Some(_) => 1,
                    None => return Err(no_set(&name)),
                };
                let mut info = Info::new();
                info.set("mpi_size", &size.to_string())?;
                self.rank.gives_info(a, info)?;
            }
            "Comm_create_from_group" => {
                let (group, tag) = (a.group()?, tag(&a.string()?));
                let (_, handler, at) = (a.info()?, a.handle(), a.address());
                let made = match group.rank_of(self.mpi.channel().rank()) {
                    Some(_) => Some(self.mpi.world().create_group(&group, tag).await?),
                    None => None,
                };
                self.made(a, at, made, handler)?;
            }
            "Intercomm_create_from_groups" => {
                let (local, leader) = (a.group()?, a.peer()?);
                let (remote, remote_leader) = (a.group()?, a.peer()?);
                let tag = tag(&a.string()?);
                let (_, handler, at) = (a.info()?, a.handle(), a.address());
                let leaders = (leader, remote.world_rank(remote_leader));
                let made = self.between(&local, leaders, tag).await?;
                self.made(a, at, Some(made), handler)?;
            }
            name if name.ends_with("buffer") => return self.point(a).await,
            _ => return self.rank.sessions(a),
        }
        SUCCESS
    }

    /// Makes an intercommunicator of the ranks of `local`, of which `leader` leads, and those that
    /// the other leader, a rank of the job, leads.
    async fn between(
        &self,
        local: &Group,
        (leader, other): (u32, Option<u32>),
        tag: i32,
    ) -> Result<Communicator<'m, C>, Failure> {
        let world = self.mpi.world();
        let other = other.and_then(|other| world.handle().group().rank_of(other));
        let other = other.ok_or_else(|| {
            let text = "remote_leader: there is no such rank in remote_group";
            Failure::new(ErrorClass::Rank, text)
        })?;
        let side = world.create_group(local, tag).await?;
        let made = side.intercomm(leader, Some((&world, other)), tag).await;
        side.free().await?;
        Ok(made?)
    }
}

impl Rank {
    /// The calls about sessions that need no other rank.
    fn sessions(&self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Session_get_num_psets" => {
                session(a)?;
                a.info()?;
                let out = a.out();
                a.put(out, SETS.len() as i64)?;
            }
            "Session_get_nth_pset" => {
                session(a)?;
                a.info()?;
                let (number, length, at) = (a.number(), a.out(), a.address());
                let set = usize::try_from(number)
                    .ok()
                    .and_then(|number| SETS.get(number));
                let set = set.ok_or_else(|| {
                    Failure::new(ErrorClass::Arg, format!("n: there is no set {number}"))
                })?;
                let room = self.numbers(length.address, 1, 4)?[0].max(0) as usize;
                if room > 0 {
                    self.put_string(at, set, room)?;
                }
                a.put(length, set.len() as i64 + 1)?;
            }
            "Session_get_info" => {
                session(a)?;
                // Every session supports this level (MPI-4.1, Sec. 11.3.1).
                let mut info = Info::new();
                info.set("thread_level", "MPI_THREAD_SERIALIZED")?;
                self.gives_info(a, info)?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }
}

impl Arguments<'_> {
    /// Makes the call one about the session among its arguments, or about what it is to make, whose
    /// error handler is given (MPI-4.1, Sec. 11.3.1).
    pub(super) fn is_about_session(&mut self) {
        let kinds = &self.call.kinds;
        let place = |of| kinds.iter().position(|kind| *kind == of);
        let about = match (place("session"), place("errhandler")) {
            (Some(place), _) => About::Session(self.ahead(place, Self::handle)),
            (None, Some(place)) => {
                let told = match self.call.name {
                    "Session_init" => "SESSION_NULL",
                    _ => "COMM_SELF",
                };
                let object = self.interface().handle(told);
                About::Made(object, self.ahead(place, Self::handle))
            }
            (None, None) => return,
        };
        *self.rank.about.lock() = about;
    }
}

/// Checks that the next argument is a session.
fn session(a: &mut Arguments<'_>) -> Result<(), Failure> {
    let handle = a.handle();
    match a.rank.objects.lock().sessions.contains_key(&handle) {
        true => Ok(()),
        false => Err(no_such(ErrorClass::Session, "session", handle)),
    }
}

fn no_set(name: &str) -> Failure {
    Failure::new(ErrorClass::Arg, format!("pset_name: there is no {name}"))
}

/// The tag that a string stands for.
fn tag(text: &str) -> i32 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    (hasher.finish() & i32::MAX as u64) as i32
}
