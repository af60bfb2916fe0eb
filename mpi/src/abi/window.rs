//! Windows: made, synchronized, asked for what they are, freed. A window's memory is that of the
//! rank's process.

use std::sync::Arc;

use super::arguments::Arguments;
use super::objects::{Kind, Object, no_such};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::request::Pending;
use super::server::Server;
use crate::buffer::Outside;
use crate::channel::Channel;
use crate::comm::Comm;
use crate::error::ErrorClass;
use crate::info::Info;
use crate::rank::{PROC_NULL, Request, Window};
use crate::window::{Memory, Synchronization};

/// An access that gets data.
pub(super) enum Got<'m, C> {
    /// One that the next synchronization of its window waits for.
    Here(Request<'m, 'static, C>),
    /// One whose request the program has: the data are there after that synchronization, too.
    OfProgram(u64),
}

/// A window with what its calls need.
pub(super) struct WindowObject<'m, C> {
    pub(super) window: Window<'m, C>,
    /// Accesses whose data the next synchronization brings, each with its target.
    pub(super) gets: Vec<(u32, Got<'m, C>)>,
    info: Info,
    own: Own,
}

/// A rank's own part of a window.
#[derive(Clone, Copy, Debug)]
struct Own {
    flavor: Flavor,
    /// The first address.
    base: u64,
    bytes: u64,
    /// Bytes of a displacement of one.
    unit: u64,
    /// The address of the numbers that attributes tell.
    numbers: u64,
}

/// The kinds of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavor {
    Create,
    Allocate,
    Shared,
    Dynamic,
}

impl Flavor {
    /// The name of its constant.
    const fn name(self) -> &'static str {
        match self {
            Self::Create => "WIN_FLAVOR_CREATE",
            Self::Allocate => "WIN_FLAVOR_ALLOCATE",
            Self::Shared => "WIN_FLAVOR_SHARED",
            Self::Dynamic => "WIN_FLAVOR_DYNAMIC",
        }
    }

    /// Returns whether the library has allocated the memory.
    fn is_allocated(self) -> bool {
        matches!(self, Self::Allocate | Self::Shared)
    }
}

/// Words of the block of memory that has a window's numbers.
const NUMBERS: u64 = 4;

impl<'m, C: Channel> Server<'m, C> {
    /// The calls about windows.
    pub(super) async fn windows(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Win_create" => {
                let base = a.address();
                self.makes_window(a, Flavor::Create, base).await
            }
            "Win_allocate" => self.makes_window(a, Flavor::Allocate, 0).await,
            "Win_allocate_shared" => self.makes_window(a, Flavor::Shared, 0).await,
            "Win_create_dynamic" => self.makes_window(a, Flavor::Dynamic, 0).await,
            "Win_free" => self.free_window(a).await,
            "Win_set_attr" | "Win_delete_attr" => self.attributes(a).await,
            "Win_attach" => {
                let (handle, base, bytes) = (a.window()?, a.address(), size(a)?);
                let memory = self.memory(base, bytes);
                self.window(handle)?.window.attach_memory(memory)?;
                SUCCESS
            }
            "Win_detach" => {
                let (handle, base) = (a.window()?, a.address());
                self.window(handle)?.window.detach(base)?;
                SUCCESS
            }
            "Win_get_group" => {
                let (handle, at) = (a.window()?, a.address());
                let group = self.window(handle)?.window.group().clone();
                let group = self.rank.objects.lock().add_group(group);
                a.put_handle(at, group)?;
                SUCCESS
            }
            "Win_set_info" => {
                let (handle, info) = (a.window()?, a.info()?);
                self.window_mut(handle)?.info = info;
                SUCCESS
            }
            "Win_get_info" => {
                let handle = a.window()?;
                let info = self.window(handle)?.info.clone();
                self.rank.gives_info(a, info)?;
                SUCCESS
            }
            "Win_shared_query" => self.shared(a),
            name if name.starts_with("Win_") => self.synchronizes(a).await,
            _ => self.accesses(a).await,
        }
    }

    /// The window behind a handle.
    pub(super) fn window(&self, handle: u64) -> Result<&WindowObject<'m, C>, Failure> {
        let found = self.windows.get(&handle);
        found.ok_or_else(|| no_such(ErrorClass::Win, "window", handle))
    }

    /// The same, to change.
    pub(super) fn window_mut(&mut self, handle: u64) -> Result<&mut WindowObject<'m, C>, Failure> {
        let found = self.windows.get_mut(&handle);
        found.ok_or_else(|| no_such(ErrorClass::Win, "window", handle))
    }

    /// Memory of the process.
    fn memory(&self, address: u64, bytes: u64) -> Memory {
        Memory::Outside {
            process: Arc::clone(&self.rank.program) as Arc<dyn Outside>,
            address,
            bytes,
        }
    }

    /// Makes a window, from its size on: all calls have the same arguments in the same order, if
    /// they have them at all.
    async fn makes_window(&mut self, a: &mut Arguments<'_>, flavor: Flavor, base: u64) -> Ended {
        let (bytes, unit) = match flavor {
            Flavor::Dynamic => (0, 1),
            _ => (size(a)?, a.number()),
        };
        let unit = u64::try_from(unit).ok().filter(|&unit| unit > 0);
        let unit =
            unit.ok_or_else(|| Failure::new(ErrorClass::Disp, "disp_unit: it is not positive"))?;
        let (info, comm) = (a.info()?, a.comm()?);
        if flavor == Flavor::Shared && comm.size() > 1 {
            let text = "comm: processes do not share memory on these machines";
            return Err(Failure::new(ErrorClass::RmaShared, text));
        }
        let (base, pointer) = match flavor.is_allocated() {
            true => (self.allocates(bytes)?, Some(a.address())),
            false => (base, None),
        };
        let numbers = self.allocates(8 * NUMBERS)?;
        let own = Own {
            flavor,
            base,
            bytes,
            unit,
            numbers,
        };
        let made = self.make_window(comm, own).await;
        let window = match made {
            Ok(window) => window,
            Err(failure) => {
                self.gives_back(own)?;
                return Err(failure);
            }
        };
        let object = self.described(own)?;
        let handle = a.new_handle(Kind::Window);
        self.rank.objects.lock().windows.insert(handle, object);
        let gets = Vec::new();
        let object = WindowObject {
            window,
            gets,
            info,
            own,
        };
        self.windows.insert(handle, object);
        if let Some(pointer) = pointer {
            self.rank.put_numbers(pointer, &[base as i64], 8)?;
        }
        let at = a.address();
        a.put_handle(at, handle)?;
        SUCCESS
    }

    async fn make_window(&self, comm: Comm, own: Own) -> Result<Window<'m, C>, Failure> {
        let (on, sync) = (self.mpi.on(comm), Synchronization::default());
        let made = match own.flavor {
            Flavor::Dynamic => on.dynamic_window(sync).await,
            _ => {
                let memory = self.memory(own.base, own.bytes);
                on.create_window(memory, own.unit, sync).await
            }
        };
        Ok(made?)
    }

    /// Allocates memory in the process.
    fn allocates(&self, bytes: u64) -> Result<u64, Failure> {
        match self.rank.allocate(bytes)? {
            0 => {
                let text = format!("size: there is no room for {bytes} bytes");
                Err(Failure::new(ErrorClass::NoMem, text))
            }
            address => Ok(address),
        }
    }

    /// Frees what was allocated for a window.
    fn gives_back(&self, own: Own) -> Result<(), Failure> {
        self.rank.free(own.numbers)?;
        match own.flavor.is_allocated() {
            true => self.rank.free(own.base),
            false => Ok(()),
        }
    }

    /// A new window as other calls see it, with its predefined attributes.
    fn described(&self, own: Own) -> Result<Object, Failure> {
        let of = self.rank.interface;
        let at = |place: u64| own.numbers + 8 * place;
        let numbers: [(_, i64); NUMBERS as usize] = [
            ("WIN_SIZE", own.bytes as i64),
            ("WIN_DISP_UNIT", own.unit as i64),
            ("WIN_CREATE_FLAVOR", of.constant(own.flavor.name())),
            ("WIN_MODEL", of.constant("WIN_UNIFIED")),
        ];
        // An int is the first half of a word.
        let values = numbers.map(|(_, value)| value);
        self.rank.put_numbers(own.numbers, &values, 8)?;
        let numbers = (0..)
            .zip(numbers)
            .map(|(place, (name, _))| (name, at(place)));
        let predefined = [("WIN_BASE", own.base)].into_iter().chain(numbers);
        Ok(Object {
            handler: of.handle("ERRORS_ARE_FATAL"),
            predefined: predefined.collect(),
            ..Object::default()
        })
    }

    async fn free_window(&mut self, a: &mut Arguments<'_>) -> Ended {
        let at = a.address();
        let handle = a.handle_at(at)?;
        a.is_window(handle)?;
        let attributes = {
            let objects = self.rank.objects.lock();
            let object = objects.windows.get(&handle);
            object.map(|object| object.attributes.clone())
        };
        self.deletes(handle, &attributes.unwrap_or_default())
            .await?;
        let object = self.window(handle)?;
        object.window.free().await?;
        let own = object.own;
        self.windows.remove(&handle);
        self.rank.objects.lock().windows.remove(&handle);
        self.gives_back(own)?;
        a.put_null(at, "WIN_NULL")?;
        SUCCESS
    }

    /// MPI_Win_shared_query: a rank shares memory with itself alone.
    fn shared(&self, a: &mut Arguments<'_>) -> Ended {
        let (handle, rank) = (a.window()?, a.peer()?);
        let WindowObject { window, own, .. } = self.window(handle)?;
        if own.flavor == Flavor::Dynamic {
            let text = "win: a dynamic window has no memory of its own";
            return Err(Failure::new(ErrorClass::RmaFlavor, text));
        }
        let ranks = window.group().size();
        let rank = match rank {
            // The first one that has memory.
            PROC_NULL => (0..ranks).find(|&rank| window.bytes_of(rank) > 0),
            rank if rank < ranks => Some(rank),
            rank => {
                let text = format!("rank: there is no rank {rank}");
                return Err(Failure::new(ErrorClass::Rank, text));
            }
        };
        let is_own = rank == Some(window.rank());
        let told = match is_own {
            true => [own.bytes, own.unit, own.base],
            false => [0, 1, 0],
        };
        let [bytes, unit, base] = told.map(|number| number as i64);
        let (size, units, pointer) = (a.out(), a.out(), a.address());
        a.put(size, bytes)?;
        a.put(units, unit)?;
        self.rank.put_numbers(pointer, &[base], 8)?;
        SUCCESS
    }

    /// The calls that say when windows may be accessed. Assertions change nothing.
    async fn synchronizes(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Win_fence" => {
                a.skip();
                let handle = a.window()?;
                self.window(handle)?.window.fence().await?;
                self.lands("MPI_Win_fence", handle, None).await
            }
            "Win_start" | "Win_post" => {
                let group = a.group()?;
                a.skip();
                let handle = a.window()?;
                let window = &self.window(handle)?.window;
                match a.call.name {
                    "Win_start" => window.start(&group).await?,
                    _ => window.post(&group).await?,
                }
                SUCCESS
            }
            "Win_complete" => {
                let handle = a.window()?;
                self.window(handle)?.window.complete().await?;
                self.lands("MPI_Win_complete", handle, None).await
            }
            "Win_wait" => {
                let handle = a.window()?;
                self.window(handle)?.window.wait().await?;
                SUCCESS
            }
            "Win_test" => {
                let (handle, flag) = (a.window()?, a.out());
                let is_over = self.window(handle)?.window.test().await?;
                a.put(flag, is_over.into())?;
                SUCCESS
            }
            "Win_lock" => {
                let is_exclusive = is_exclusive(a)?;
                let rank = a.peer()?;
                a.skip();
                let handle = a.window()?;
                if rank != PROC_NULL {
                    let window = &self.window(handle)?.window;
                    window.lock(rank, is_exclusive).await?;
                    window.hasten(Some(rank))?;
                }
                SUCCESS
            }
            "Win_lock_all" => {
                a.skip();
                let handle = a.window()?;
                let window = &self.window(handle)?.window;
                window.lock_all().await?;
                // A program may wait for what its accesses bring about without ending them
                // (MPI-4.1, Sec. 12.7.3).
                window.hasten(None)?;
                SUCCESS
            }
            "Win_unlock" => {
                let (rank, handle) = (a.peer()?, a.window()?);
                if rank == PROC_NULL {
                    return SUCCESS;
                }
                self.window(handle)?.window.unlock(rank).await?;
                self.lands("MPI_Win_unlock", handle, Some(rank)).await
            }
            "Win_unlock_all" => {
                let handle = a.window()?;
                self.window(handle)?.window.unlock_all().await?;
                self.lands("MPI_Win_unlock_all", handle, None).await
            }
            // An access that is over at the target is over here.
            "Win_flush" | "Win_flush_local" => {
                let (rank, handle) = (a.peer()?, a.window()?);
                if rank == PROC_NULL {
                    return SUCCESS;
                }
                self.window(handle)?.window.flush(Some(rank)).await?;
                self.lands("MPI_Win_flush", handle, Some(rank)).await
            }
            "Win_flush_all" | "Win_flush_local_all" => {
                let handle = a.window()?;
                self.window(handle)?.window.flush(None).await?;
                self.lands("MPI_Win_flush_all", handle, None).await
            }
            "Win_sync" => {
                // A program that looks at its memory between such calls waits for accesses.
                self.progress("MPI_Win_sync").await?;
                SUCCESS
            }
            _ => self.rank.of_window(a),
        }
    }

    /// Ends the accesses whose data a synchronization has brought: those to this target, or all.
    async fn lands(&mut self, call: &'static str, handle: u64, target: Option<u32>) -> Ended {
        let all = std::mem::take(&mut self.window_mut(handle)?.gets);
        let mut outcome = SUCCESS;
        for (rank, mut got) in all {
            if target.is_some_and(|target| target != rank) {
                self.window_mut(handle)?.gets.push((rank, got));
                continue;
            }
            let request = match &mut got {
                Got::Here(request) => request,
                Got::OfProgram(request) => match self.requests.get_mut(request) {
                    Some(Pending::Call(request)) => request,
                    // The program has waited for it.
                    _ => continue,
                },
            };
            let ended = match request.end(call) {
                Some(ended) => ended,
                None => request.wait().await,
            };
            outcome = outcome.and(ended.map(|_| 0).map_err(Failure::from));
        }
        outcome
    }
}

impl Rank {
    /// The calls about a window that need no other rank.
    pub(super) fn of_window(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Win_create_keyval" | "Win_free_keyval" | "Win_get_attr" | "Win_set_attr"
            | "Win_delete_attr" => return self.attributes(a),
            "Win_set_name" => {
                let (handle, name) = (a.window()?, a.string()?);
                let mut objects = self.objects.lock();
                if let Some(object) = objects.windows.get_mut(&handle) {
                    object.name = name;
                }
            }
            "Win_get_name" => {
                let name = match a.is_null("WIN_NULL") {
                    true => "MPI_WIN_NULL".to_owned(),
                    false => {
                        let handle = a.window()?;
                        let objects = self.objects.lock();
                        let object = objects.windows.get(&handle);
                        object.map(|object| object.name.clone()).unwrap_or_default()
                    }
                };
                self.gives_name(a, &name)?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }
}

/// A size in bytes.
fn size(a: &mut Arguments<'_>) -> Result<u64, Failure> {
    let bytes = a.number();
    u64::try_from(bytes)
        .map_err(|_| Failure::new(ErrorClass::Size, format!("size: {bytes} is negative")))
}

/// Returns whether a lock is for one rank alone.
fn is_exclusive(a: &mut Arguments<'_>) -> Result<bool, Failure> {
    let (of, kind) = (a.interface(), a.number());
    match kind {
        _ if kind == of.constant("LOCK_EXCLUSIVE") => Ok(true),
        _ if kind == of.constant("LOCK_SHARED") => Ok(false),
        _ => {
            let text = format!("lock_type: {kind} is none");
            Err(Failure::new(ErrorClass::LockType, text))
        }
    }
}
