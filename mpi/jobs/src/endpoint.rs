//! A rank's end of a message library, whichever it is: RCCE, whose calls wait for each other, or
//! MPI.

use std::sync::Arc;

use sme_memory::Own;
use sme_mpi::buffer::{Buffer, BufferMut};
use sme_mpi::error::MpiError;
use sme_mpi::processor::Processor;
use sme_mpi::rank::{Source, Tag};
use sme_mpi::rcce::Rcce;
use sme_sim::parts::contract::ThreadMemory;

use super::job::{Error, Job, Library, SimulatedMpi};
use super::processor::Core;

/// The end.
pub(super) enum Endpoint {
    /// RCCE, on this core.
    Rcce(Box<Rcce<ThreadMemory>>, Core),
    /// MPI.
    Mpi(Arc<SimulatedMpi>),
}

/// A message that is sent.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'w> {
    pub to: u32,
    pub words: &'w [u64],
    /// The places where the words lie in the rank's own memory.
    pub at: Own,
}

/// A message that is received.
pub(super) struct Incoming<'w> {
    pub from: u32,
    pub words: &'w mut [u64],
    /// The places where the words shall lie in the rank's own memory.
    pub at: Own,
}

/// The call by which a rank sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendCall {
    /// MPI_Send.
    Send,
    /// MPI_Isend, and MPI_Wait.
    Isend,
}

sme_barrier::names!(SendCall, "call", {
    Send => "send",
    Isend => "isend",
});

/// The tag of all messages.
const TAG: i32 = 0;

impl Endpoint {
    /// That of rank `rank` of `job`.
    ///
    /// # Errors
    /// As [`Job::check`].
    pub(super) async fn new(job: &Job, memory: &ThreadMemory, rank: u32) -> Result<Self, Error> {
        if job.library != Library::Rcce {
            return Ok(Self::Mpi(Arc::new(job.mpi(memory, rank).await?)));
        }
        let bytes = job.machine.shape().buffer_bytes;
        let rcce = Rcce::new(memory.clone(), rank, job.ranks, bytes)?;
        Ok(Self::Rcce(Box::new(rcce), job.core(memory)))
    }

    /// Sends.
    ///
    /// # Errors
    /// [`MpiError`] of a rank that does not exist; RCCE waits for it.
    pub(super) async fn send(&self, message: Outgoing<'_>) -> Result<(), MpiError> {
        self.send_by(message, SendCall::Send).await
    }

    /// The same by a call that returns at once, and one that waits; RCCE has no such calls.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(super) async fn send_by(
        &self,
        message: Outgoing<'_>,
        call: SendCall,
    ) -> Result<(), MpiError> {
        match self {
            Self::Rcce(rcce, core) => {
                let of = ("RCCE_send", message.to, size_of_val(message.words));
                let send = rcce.send(message.to, message.words, Some(message.at));
                told(core, of, send).await;
                Ok(())
            }
            Self::Mpi(mpi) => {
                let words = Buffer::from(message.words).at(message.at.0);
                let ranks = mpi.local();
                match call {
                    SendCall::Send => ranks.send(words, message.to, TAG).await,
                    SendCall::Isend => {
                        let mut request = ranks.isend(words, message.to, TAG).await?;
                        request.wait().await.map(drop)
                    }
                }
            }
        }
    }

    /// Receives.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(super) async fn receive(&self, message: Incoming<'_>) -> Result<(), MpiError> {
        match self {
            Self::Rcce(rcce, core) => {
                let of = ("RCCE_recv", message.from, size_of_val(message.words));
                let receive = rcce.receive(message.from, message.words, Some(message.at));
                told(core, of, receive).await;
                Ok(())
            }
            Self::Mpi(mpi) => {
                let words = BufferMut::from(message.words).at(message.at.0);
                let source = Source::Rank(message.from);
                let received = mpi.local().receive(words, source, Tag::Is(TAG)).await;
                received.map(|_| ())
            }
        }
    }

    /// Sends and receives: with MPI at once, with RCCE one after the other, the send first or the
    /// receive.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(super) async fn exchange(
        &self,
        (out, into): (Outgoing<'_>, Incoming<'_>),
        sends_first: bool,
    ) -> Result<(), MpiError> {
        match self {
            Self::Rcce(..) if sends_first => {
                self.send(out).await?;
                self.receive(into).await
            }
            Self::Rcce(..) => {
                self.receive(into).await?;
                self.send(out).await
            }
            Self::Mpi(mpi) => {
                let sent = Buffer::from(out.words).at(out.at.0);
                let came = BufferMut::from(into.words).at(into.at.0);
                let source = Source::Rank(into.from);
                let world = mpi.world();
                let both = world.send_receive((sent, out.to, TAG), (came, source, Tag::Is(TAG)));
                both.await.map(|_| ())
            }
        }
    }

    /// Ends the use of the library.
    ///
    /// # Errors
    /// [`MpiError`] if something is under way.
    pub(super) async fn finalize(&self) -> Result<(), MpiError> {
        if let Self::Mpi(mpi) = self {
            mpi.finalize().await?;
        }
        self.stop().await;
        Ok(())
    }

    /// The same without a word to other ranks; what was sent leaves.
    pub(super) async fn stop(&self) {
        if let Self::Mpi(mpi) = self {
            mpi.drain().await;
            mpi.channel().stop().await;
        }
    }
}

/// Makes a call of RCCE, with its name, the other rank and the bytes, and tells of it.
async fn told(core: &Core, (name, other, bytes): (&'static str, u32, usize), call: impl Future) {
    core.enters(name, Some(other), bytes as u64).await;
    call.await;
    core.leaves(name).await;
}
