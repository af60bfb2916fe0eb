//! The calls that say when windows may be accessed (MPI-4.1, Sec. 12.5).

use std::panic::Location;
use std::sync::Arc;

use super::{Engine, Window};
use crate::channel::Channel;
use crate::collective::Call;
use crate::device::Task;
use crate::device::driver::{self, Site};
#[cfg(doc)]
use crate::error::ErrorClass;
use crate::error::{Fault, MpiError};
use crate::group::Group;
use crate::processor::Work;
use crate::window::epoch::Epochs;

/// A synchronizing call.
#[derive(Clone, Debug)]
enum Synchronizes {
    Fence,
    Start(Vec<u32>),
    Complete(Vec<u32>),
    Post(Vec<u32>),
    Wait,
    Lock(Vec<u32>, bool),
    Unlock(Vec<u32>, bool),
    Flush(Vec<u32>),
}

impl<'m, C: Channel> Window<'m, C> {
    /// Makes a synchronizing call, whose epochs `begins` looks after.
    async fn synchronize(
        &self,
        (call, site): (&'static str, Site),
        begins: impl FnOnce(&mut Epochs) -> Result<Synchronizes, Fault>,
    ) -> Result<(), MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter(call, None, 0).await?;
        let begun = self.check().and_then(|()| begins(&mut self.epochs.lock()));
        let ended = match begun {
            Ok(what) => self.performs(site, what).await,
            Err(fault) => Err(fault),
        };
        mpi.close(entered, &self.comm, ended).await
    }

    async fn performs(&self, site: Site, what: Synchronizes) -> Result<(), Fault> {
        let mpi = self.mpi;
        match &self.engine {
            Engine::Messages(messages) => {
                if let Synchronizes::Start(_) | Synchronizes::Post(_) = what {
                    mpi.device().owe(Work::Group, 1);
                }
                let messages = Arc::clone(messages);
                let task: Task = match what {
                    Synchronizes::Fence => Box::pin(messages.fence()),
                    Synchronizes::Start(targets) => Box::pin(messages.start(targets)),
                    Synchronizes::Complete(targets) => Box::pin(messages.complete(targets)),
                    Synchronizes::Post(origins) => Box::pin(messages.post(origins)),
                    Synchronizes::Wait => Box::pin(messages.wait()),
                    Synchronizes::Lock(targets, is_exclusive) => {
                        Box::pin(messages.lock(targets, is_exclusive))
                    }
                    Synchronizes::Unlock(targets, _) => Box::pin(messages.flush(targets, true)),
                    Synchronizes::Flush(targets) => Box::pin(messages.flush(targets, false)),
                };
                mpi.run(site, task).await.map(drop)
            }
            Engine::Trigger(trigger) => {
                let channel = &mpi.channel;
                driver::settle(mpi.device(), channel).await;
                match what {
                    Synchronizes::Fence => {
                        let meeting = mpi.meeting(&self.comm, Call::WinFence);
                        mpi.run(site, meeting).await.map(drop)
                    }
                    Synchronizes::Start(_) | Synchronizes::Flush(_) => Ok(()),
                    Synchronizes::Complete(targets) => {
                        trigger.complete(channel, &targets, site).await
                    }
                    Synchronizes::Post(origins) => trigger.post(channel, &origins).await,
                    Synchronizes::Wait => trigger.wait(channel, site).await,
                    Synchronizes::Lock(targets, is_exclusive) => {
                        for target in targets {
                            trigger.lock(channel, (target, is_exclusive), site).await?;
                        }
                        Ok(())
                    }
                    Synchronizes::Unlock(targets, is_exclusive) => {
                        for target in targets {
                            trigger.unlock(channel, (target, is_exclusive)).await?;
                        }
                        Ok(())
                    }
                }
            }
        }
    }

    /// Ends an epoch of all ranks and begins the next (MPI_Win_fence).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if another kind of epoch is open, [`ErrorClass::RmaRange`] if an
    /// access that came was outside.
    #[track_caller]
    pub fn fence(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_fence", Location::caller());
        self.synchronize(call, |epochs| epochs.fence().map(|()| Synchronizes::Fence))
    }

    /// Begins an access epoch to the ranks of `group` (MPI_Win_start).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if one is open, [`ErrorClass::Group`] of ranks that the window does
    /// not have.
    #[track_caller]
    pub fn start(&self, group: &Group) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_start", Location::caller());
        let targets = self.ranks(group);
        self.synchronize(call, |epochs| {
            let targets = targets?;
            epochs.start(targets.clone())?;
            Ok(Synchronizes::Start(targets))
        })
    }

    /// Ends the access epoch (MPI_Win_complete).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if none is open.
    #[track_caller]
    pub fn complete(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_complete", Location::caller());
        self.synchronize(call, |epochs| epochs.complete().map(Synchronizes::Complete))
    }

    /// Begins an exposure epoch for the ranks of `group` (MPI_Win_post).
    ///
    /// # Errors
    /// As [`Window::start`].
    #[track_caller]
    pub fn post(&self, group: &Group) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_post", Location::caller());
        let origins = self.ranks(group);
        self.synchronize(call, |epochs| {
            let origins = origins?;
            epochs.post(origins.clone())?;
            Ok(Synchronizes::Post(origins))
        })
    }

    /// Waits until all origins of the exposure epoch have completed (MPI_Win_wait).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if none is open, [`ErrorClass::RmaRange`] if an access that came was
    /// outside.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_wait", Location::caller());
        async move {
            let begins = |epochs: &mut Epochs| epochs.is_exposed().map(|()| Synchronizes::Wait);
            let ended = self.synchronize(call, begins).await;
            self.epochs.lock().ends_exposure();
            ended
        }
    }

    /// Returns whether they have; the epoch is over then (MPI_Win_test).
    ///
    /// # Errors
    /// As [`Window::wait`].
    pub async fn test(&self) -> Result<bool, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter("MPI_Win_test", None, 0).await?;
        let may = self.check().and_then(|()| self.epochs.lock().is_exposed());
        let is_over = match (&self.engine, may) {
            (_, Err(fault)) => Err(fault),
            (Engine::Trigger(trigger), Ok(())) => trigger.is_completed(&mpi.channel).await,
            (Engine::Messages(messages), Ok(())) => {
                mpi.progress().await;
                Ok(messages.is_completed())
            }
        };
        if is_over == Ok(true) {
            self.epochs.lock().ends_exposure();
        }
        mpi.close(entered, &self.comm, is_over).await
    }

    /// Locks `target`'s memory, for this rank alone if `is_exclusive` (MPI_Win_lock).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] of a wrong target, [`ErrorClass::RmaSync`] if it is locked already or
    /// another kind of epoch is open.
    #[track_caller]
    pub fn lock(
        &self,
        target: u32,
        is_exclusive: bool,
    ) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_lock", Location::caller());
        self.synchronize(call, move |epochs| {
            let target = self.target(target, "rank")?;
            epochs.lock(target, is_exclusive)?;
            Ok(Synchronizes::Lock(vec![target], is_exclusive))
        })
    }

    /// Gives the lock back; all accesses to `target` are done (MPI_Win_unlock).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if it is not locked.
    #[track_caller]
    pub fn unlock(&self, target: u32) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_unlock", Location::caller());
        self.synchronize(call, move |epochs| {
            let is_exclusive = epochs.unlock(target)?;
            Ok(Synchronizes::Unlock(vec![target], is_exclusive))
        })
    }

    /// Locks the memory of all ranks, shared (MPI_Win_lock_all).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if an epoch is open.
    #[track_caller]
    pub fn lock_all(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_lock_all", Location::caller());
        let all = (0..self.comm.size()).collect();
        self.synchronize(call, move |epochs| {
            epochs.lock_all()?;
            Ok(Synchronizes::Lock(all, false))
        })
    }

    /// Gives these locks back (MPI_Win_unlock_all).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if they are not held.
    #[track_caller]
    pub fn unlock_all(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = ("MPI_Win_unlock_all", Location::caller());
        let all = (0..self.comm.size()).collect();
        self.synchronize(call, move |epochs| {
            epochs.unlock_all()?;
            Ok(Synchronizes::Unlock(all, false))
        })
    }

    /// Waits until all accesses to `target`, which is locked, or to all locked ranks are done
    /// (MPI_Win_flush, MPI_Win_flush_all).
    ///
    /// # Errors
    /// [`ErrorClass::RmaSync`] if no lock is held.
    #[track_caller]
    pub fn flush(&self, target: Option<u32>) -> impl Future<Output = Result<(), MpiError>> + Send {
        let name = match target {
            Some(_) => "MPI_Win_flush",
            None => "MPI_Win_flush_all",
        };
        self.synchronize((name, Location::caller()), move |epochs| {
            let flushed = epochs.flush(target, self.comm.size());
            flushed.map(Synchronizes::Flush)
        })
    }
}
