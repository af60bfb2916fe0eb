//! Entering and leaving calls: one at a time, and the work of each is charged.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Mpi, PROC_NULL};
use crate::channel::Channel;
use crate::device::driver;
use crate::error::{ErrorClass, Fault, MpiError};
use crate::processor::{Clock, Processor, Work};

/// The state of a rank's calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Whether the rank is inside a call.
    is_inside: AtomicBool,
    /// Whether the rank has finalized: it makes no call from then on.
    is_over: AtomicBool,
    /// Whether calls are left late: see [`Mpi::leave_late`].
    is_late: AtomicBool,
    /// Whether the work of entering the next call has been done.
    is_ahead: AtomicBool,
    /// The call whose result is there, and whose last work has not been charged.
    leaving: Mutex<Option<&'static str>>,
}

/// A call that has been entered and not left. If its future is dropped, the call is over.
pub(crate) struct Entered<'m> {
    pub(crate) call: &'static str,
    is_inside: &'m AtomicBool,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.is_inside.store(false, Ordering::Relaxed);
    }
}

impl<C: Channel> Mpi<C> {
    /// Enters a call.
    ///
    /// # Errors
    /// Another call of the rank is under way, or the rank has [finalized](Mpi::finalize).
    pub(crate) async fn enter(
        &self,
        call: &'static str,
        peer: Option<u32>,
        bytes: u64,
    ) -> Result<Entered<'_>, MpiError> {
        if self.calls.is_over.load(Ordering::Relaxed) {
            let text = "MPI_Finalize has been called before";
            let fault = Fault::new(ErrorClass::Other, "call", text);
            return Err(fault.at(self.device.rank(), call));
        }
        if self.calls.is_inside.swap(true, Ordering::Relaxed) {
            let text =
                "another call of this rank is under way: futures of one rank cannot be joined";
            let fault = Fault::new(ErrorClass::Other, "call", text);
            return Err(fault.at(self.device.rank(), call));
        }
        let entered = Entered {
            call,
            is_inside: &self.calls.is_inside,
        };
        self.has_left().await;
        let peer = peer.filter(|&peer| peer != PROC_NULL);
        self.channel.enters(call, peer, bytes).await;
        if !self.calls.is_ahead.swap(false, Ordering::Relaxed) {
            self.device.owe(Work::Call, 1);
        }
        Ok(entered)
    }

    /// From now on the rank can enter calls only if it has not finalized.
    pub(super) fn set_over(&self, is_over: bool) {
        self.calls.is_over.store(is_over, Ordering::Relaxed);
    }

    /// Leaves a call; the work that it has done is charged.
    pub(crate) async fn leave(&self, entered: Entered<'_>) {
        self.has_left().await;
        // Tasks may call functions of the rank's program, which wants its result.
        self.device.poll_tasks();
        *self.calls.leaving.lock() = Some(entered.call);
        if !self.calls.is_late.load(Ordering::Relaxed) {
            self.has_left().await;
        }
    }

    /// From now on a call has its result before its last work is charged, which [`Self::has_left`]
    /// does, or the next call. Its caller can do other work meanwhile; the simulated times are the
    /// same, as nothing but time is left.
    pub(crate) fn leave_late(&self) {
        self.calls.is_late.store(true, Ordering::Relaxed);
    }

    /// Charges the last work of the call that the rank has left, if that is still to be done;
    /// returns whether it was.
    pub(crate) async fn has_left(&self) -> bool {
        let call = self.calls.leaving.lock().take();
        if let Some(call) = call {
            driver::charge(&self.device, &self.channel).await;
            self.channel.leaves(call).await;
        }
        call.is_some()
    }

    /// Returns whether there is work of entering the next call that can be done now: see
    /// [`Self::enters_ahead`].
    pub(crate) fn works_ahead(&self) -> bool {
        !self.is_ahead() && self.channel.processor().entering_ps() > 0
    }

    fn is_ahead(&self) -> bool {
        self.calls.is_ahead.load(Ordering::Relaxed)
    }

    /// The time that has passed for the next call already, in picoseconds.
    pub(crate) fn ahead_ps(&self) -> u64 {
        match self.is_ahead() {
            true => self.channel.processor().entering_ps(),
            false => 0,
        }
    }

    /// Does the work of entering the next call now, while the rank's program may still compute: it
    /// is the same for all calls, and concerns no other rank. `begins` is told the time before
    /// that.
    pub(crate) async fn enters_ahead(&self, begins: impl FnOnce(Clock)) {
        begins(self.channel.processor().begins_next(false).await);
        self.channel.work(&[(Work::Call, 1)]).await;
        self.calls.is_ahead.store(true, Ordering::Relaxed);
    }

    /// Something of the program's that comes before the next call takes so many picoseconds.
    pub(crate) async fn computes(&self, ps: u64) {
        self.channel.processor().computes(ps).await;
        self.enters_later().await;
    }

    /// The next call begins later, as time has passed for something that comes before it.
    pub(crate) async fn enters_later(&self) {
        if self.is_ahead() {
            self.channel.processor().begins_next(true).await;
        }
    }
}
