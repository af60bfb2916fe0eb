//! The end of a rank's part.

use std::panic::Location;

use super::Mpi;
use crate::channel::Channel;
use crate::collective::{Call, Calls};
use crate::device::matching::Envelope;
use crate::error::{ErrorClass, Fault, MpiError};

impl<C: Channel> Mpi<C> {
    /// Waits until nothing that this rank has sent without waiting for it is still to leave, as
    /// [`Mpi::finalize`] does.
    #[track_caller]
    pub fn drain(&self) -> impl Future<Output = ()> + Send {
        let site = Location::caller();
        self.until(site, || self.is_drained())
    }

    /// Ends the rank's part when all ranks do (MPI_Finalize). Messages that were sent and not
    /// waited for have left. From then on every call is an error, also this one.
    ///
    /// # Errors
    /// [`ErrorClass::Other`] if a message of a collective call is left that this rank did not make,
    /// or if the rank has finalized before.
    #[track_caller]
    pub fn finalize(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let finishes = self.finishes();
        async move {
            finishes.await?;
            self.set_over(true);
            Ok(())
        }
    }

    /// The same, and calls can follow: who calls it says which.
    #[track_caller]
    pub(crate) fn finishes(&self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let site = Location::caller();
        async move {
            let entered = self.enter("MPI_Finalize", None, 0).await?;
            self.own_comm().attributes().delete_all();
            self.ports.lock().close_all(&self.device);
            let is_drained = || self.is_drained();
            self.until(site, is_drained).await;
            let local = self.local_comm();
            let task = self.meeting(&local, Call::Finalize);
            let task = self.device.begin_task(task);
            let outcome = self.until(site, || self.device.take(task)).await;
            self.until(site, is_drained).await;
            let left = self.device.stray_calls().map(|envelope| stray(&envelope));
            let ended = outcome.fault.or(left).map_or(Ok(()), Err);
            self.close(entered, &local, ended).await
        }
    }

    /// Waits until others have read all that this rank has sent. After that another process may
    /// have this rank's place in the channel.
    #[track_caller]
    pub fn vacate(&self) -> impl Future<Output = ()> + Send {
        let site = Location::caller();
        async move {
            loop {
                self.progress().await;
                if self.channel.unread().is_empty() {
                    return;
                }
                self.channel.wait_until_read(site).await;
            }
        }
    }

    /// Something if all that this rank has to send has left.
    pub(crate) fn is_drained(&self) -> Option<()> {
        let is_drained = self.device.is_drained(self.worlds.read().local.group());
        is_drained.then_some(())
    }
}

fn stray(envelope: &Envelope) -> Fault {
    let text = format!(
        "rank {} of the job called {}, which this rank did not",
        envelope.from,
        Calls::name(envelope.call)
    );
    Fault::new(ErrorClass::Other, "comm", text)
}
