//! Windows are made (MPI-4.1, Sec. 12.2).

use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Engine, Extent, Window};
use crate::channel::Channel;
use crate::collective::choice::Algorithm;
use crate::collective::{self, Call};
use crate::comm::Comm;
use crate::comm::create::{self, Made, teams};
use crate::device::driver::Site;
use crate::error::{ErrorClass, Fault, MpiError};
use crate::rank::Communicator;
use crate::window::memory::Regions;
use crate::window::messages::Messages;
use crate::window::trigger::Trigger;
use crate::window::{Memory, Synchronization};

/// The memory that a rank gives to a window.
enum Given {
    Allocated(u64),
    Created(Memory),
    Dynamic,
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// A window of `bytes` bytes of this rank, all 0; a displacement counts `unit` bytes
    /// (MPI_Win_allocate).
    ///
    /// # Errors
    /// [`ErrorClass::NoMem`] at all ranks if one of them has no room; [`ErrorClass::Disp`] of a
    /// unit of 0; [`ErrorClass::Comm`] of an intercommunicator, or if other ranks make another
    /// call.
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

    /// The same of this memory: of bytes with this content, or of a process's (MPI_Win_create).
    ///
    /// # Errors
    /// As [`Communicator::allocate_window`]; [`ErrorClass::Win`] of a process's memory if it is
    /// trigger-only.
    #[track_caller]
    pub fn create_window(
        &self,
        memory: impl Into<Memory>,
        unit: u64,
        sync: Synchronization,
    ) -> impl Future<Output = Result<Window<'m, C>, MpiError>> + Send {
        let site = Location::caller();
        let given = Given::Created(memory.into());
        self.window(("MPI_Win_create", site), given, unit, sync)
    }

    /// A window to which memory is attached later (MPI_Win_create_dynamic). Its displacements are
    /// addresses.
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
        let is_outside = matches!(given, Given::Created(Memory::Outside { .. }));
        let wrong = match sync {
            _ if unit == 0 => Some((ErrorClass::Disp, "disp_unit", "it is 0")),
            Synchronization::TriggerOnly | Synchronization::Flawed(_) if is_dynamic => {
                let text = "a trigger-only window cannot be dynamic";
                Some((ErrorClass::Win, "info", text))
            }
            Synchronization::TriggerOnly | Synchronization::Flawed(_) if is_outside => {
                let text = "a trigger-only window cannot have the memory of a process";
                Some((ErrorClass::Win, "base", text))
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
        mpi.existing.is_made(&own);
        let bytes = match &given {
            Given::Allocated(bytes) => *bytes,
            Given::Created(memory) => memory.bytes(),
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
                    Given::Created(memory) => memory.into_content(),
                    // Earlier windows may have left something there.
                    _ => vec![0; bytes as usize],
                };
                trigger.store(&mpi.channel, 0, &content).await?;
                mpi.run(site, mpi.meeting(&own, Call::WinCreate)).await?;
                Engine::Trigger(trigger)
            }
            None => {
                let regions = match given {
                    Given::Allocated(bytes) => Regions::one(vec![0; bytes as usize].into()),
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
