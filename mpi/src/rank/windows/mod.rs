//! Windows: one-sided communication (MPI-4.1, Ch. 12).
//!
//! The library has the memory of a window, unless a process outside has it; a rank reaches its own
//! by [`Window::load`] and [`Window::store`]. A call that gets data returns a request: the data are
//! in the buffer when it has been waited for, which a rank does when its epoch has ended, after a
//! flush, or after [`Window::hasten`].

mod access;
mod create;
mod synchronize;

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Mpi, point};
use crate::attributes::{Keyval, Value};
use crate::buffer::Scalar;
use crate::channel::Channel;
use crate::collective::{Call, words};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::device::driver::Site;
use crate::error::{ErrorClass, ErrorHandler, Fault, MpiError};
use crate::group::Group;
use crate::window::Memory;
use crate::window::Synchronization;
use crate::window::epoch::Epochs;
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
    /// The offset of the part in a trigger-only window.
    offset: u64,
}

impl Extent {
    const BYTES: usize = 24;

    /// The offset of a rank that could not have its memory.
    const NONE: u64 = u64::MAX;

    fn to_bytes(self) -> Vec<u8> {
        words::to_bytes(&[self.bytes, self.unit, self.offset])
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let [bytes, unit, offset] = words::first(bytes);
        Self {
            bytes,
            unit,
            offset,
        }
    }
}

/// The place of an access: a rank of the window, and the displacement in its memory in the units
/// that it has chosen. Without a shape it has as many elements of the same datatype as the origin.
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
impl<'m, C: Channel> Window<'m, C> {
    /// This rank's number in it.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Its ranks (MPI_Win_get_group).
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// Returns the way in which the window's synchronizing calls work.
    pub fn sync(&self) -> Synchronization {
        self.sync
    }

    /// Bytes of this rank's memory (MPI_WIN_SIZE).
    pub fn bytes(&self) -> u64 {
        self.extents[self.comm.rank() as usize].bytes
    }

    /// Bytes of the memory of a rank of the window.
    pub(crate) fn bytes_of(&self, rank: u32) -> u64 {
        let extent = self.extents.get(rank as usize);
        extent.map_or(0, |extent| extent.bytes)
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
        let of_window = |fault: Fault| {
            let text = fault.text.replace("communicator", "window");
            Fault::new(ErrorClass::Win, "win", text)
        };
        self.comm.check().map_err(of_window)
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

    /// A target, which must be a rank of the window.
    fn target(&self, rank: u32, argument: &'static str) -> Result<u32, Fault> {
        point::check_rank(&self.comm, argument, rank).map(|_| rank)
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
            (Engine::Messages(messages), Ok((begin, count))) => messages.with_memory(|memory| {
                let mut loaded = Vec::new();
                memory.read((begin, count), &mut loaded)?;
                Ok(loaded)
            }),
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
            (Engine::Messages(messages), Ok((begin, _))) => {
                messages.with_memory(|memory| memory.write(begin, bytes))
            }
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

    /// Attaches `bytes` bytes, all 0, to a dynamic window; their address, for others
    /// (MPI_Win_attach).
    ///
    /// # Errors
    /// [`ErrorClass::RmaAttach`] if it is not dynamic.
    pub fn attach(&self, bytes: usize) -> Result<u64, MpiError> {
        self.attach_memory(vec![0; bytes])
    }

    /// The same of memory that may be a process's, whose address is there the one for others.
    ///
    /// # Errors
    /// [`ErrorClass::RmaAttach`] if it is not dynamic, or the memory overlaps what is attached.
    pub fn attach_memory(&self, memory: impl Into<Memory>) -> Result<u64, MpiError> {
        let attached = match &self.engine {
            Engine::Messages(messages) if self.is_dynamic => {
                messages.with_memory(|regions| regions.attach(memory.into()))
            }
            _ => Err(Fault::new(
                ErrorClass::RmaAttach,
                "win",
                "it is not dynamic",
            )),
        };
        attached.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_attach"))
    }

    /// Detaches what is attached at `address`; its content, if the library has it (MPI_Win_detach).
    ///
    /// # Errors
    /// [`ErrorClass::Base`] if nothing is.
    pub fn detach(&self, address: u64) -> Result<Vec<u8>, MpiError> {
        let detached = match &self.engine {
            Engine::Messages(messages) if self.is_dynamic => {
                messages.with_memory(|regions| regions.detach(address).map(Memory::into_content))
            }
            _ => Err(Fault::new(
                ErrorClass::RmaAttach,
                "win",
                "it is not dynamic",
            )),
        };
        detached.map_err(|fault| self.mpi.error(&self.comm, fault, "MPI_Win_detach"))
    }

    /// Ends the window of all its ranks; the content of this rank's memory, if the library has it
    /// (MPI_Win_free).
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
        mpi.run(site, mpi.meeting(&self.comm, Call::WinFree))
            .await?;
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
