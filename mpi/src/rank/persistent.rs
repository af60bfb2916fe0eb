//! Persistent requests (MPI-4.1, Sec. 3.9 and 6.13): a call whose arguments are checked once, and
//! which is started as often as the program likes. Its buffers are given to it at each start.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::given::{Given, Sent};
use super::request::{Launch, Request};
use super::{Communicator, Named, Source, Tag, point};
use crate::buffer::BufferMut;
use crate::channel::Channel;
use crate::device::Mode;
use crate::error::{ErrorClass, Fault, MpiError};

/// A function that prepares one start of the call.
type Starter = dyn for<'b> Fn(Given<'b>) -> Result<Launch<'b>, Fault> + Send + Sync;

/// A persistent request.
pub struct Persistent<'m, C> {
    communicator: Communicator<'m, C>,
    call: &'static str,
    starter: Box<Starter>,
    is_active: Arc<AtomicBool>,
}

impl<C> fmt::Debug for Persistent<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Persistent")
            .field("call", &self.call)
            .field("is_active", &self.is_active)
            .finish_non_exhaustive()
    }
}

impl<'m, C: Channel> Persistent<'m, C> {
    pub(super) fn new(
        communicator: &Communicator<'m, C>,
        call: &'static str,
        starter: impl for<'b> Fn(Given<'b>) -> Result<Launch<'b>, Fault> + Send + Sync + 'static,
    ) -> Self {
        Self {
            communicator: communicator.clone(),
            call,
            starter: Box::new(starter),
            is_active: Arc::default(),
        }
    }

    /// The request before its first start: inactive, so that waiting for it ends at once.
    pub fn request<'b>(&self) -> Request<'m, 'b, C> {
        Request::inactive(self.communicator.mpi)
    }

    /// Starts a call that sends (MPI_Start).
    ///
    /// # Errors
    /// [`ErrorClass::Request`] if it is active, and those of the call.
    #[track_caller]
    pub fn start<'a, 'b>(
        &'a self,
        sent: impl Into<Sent<'b>>,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let received = BufferMut::empty();
        let sent = sent.into();
        self.start_with(Location::caller(), Given { sent, received })
    }

    /// Starts a call that receives (MPI_Start).
    ///
    /// # Errors
    /// As [`Persistent::start`].
    #[track_caller]
    pub fn start_receive<'a, 'b>(
        &'a self,
        received: impl Into<BufferMut<'b>>,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let received = received.into();
        let sent = Sent::InPlace;
        self.start_with(Location::caller(), Given { sent, received })
    }

    /// Starts a call that sends and receives (MPI_Start).
    ///
    /// # Errors
    /// As [`Persistent::start`].
    #[track_caller]
    pub fn start_both<'a, 'b>(
        &'a self,
        sent: impl Into<Sent<'b>>,
        received: impl Into<BufferMut<'b>>,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let (sent, received) = (sent.into(), received.into());
        self.start_with(Location::caller(), Given { sent, received })
    }

    async fn start_with<'b>(
        &self,
        site: &'static Location<'static>,
        given: Given<'b>,
    ) -> Result<Request<'m, 'b, C>, MpiError> {
        let (mpi, comm) = (self.communicator.mpi, &self.communicator.comm);
        let call = Named::new("MPI_Start", site);
        let entered = mpi.enter(call.name, None, 0).await?;
        let begun = match self.is_active.swap(true, Ordering::Relaxed) {
            true => Err(Fault::new(
                ErrorClass::Request,
                "request",
                format!("the {} is active already", self.call),
            )),
            false => {
                let launch = comm.check().and_then(|()| (self.starter)(given));
                let is_active = Arc::clone(&self.is_active);
                let begun = launch.and_then(|launch| {
                    Request::begin_of(&self.communicator, launch, Some(is_active))
                });
                if begun.is_err() {
                    self.is_active.store(false, Ordering::Relaxed);
                }
                begun
            }
        };
        mpi.starts().await;
        mpi.close(entered, comm, begun).await
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// A persistent standard send (MPI_Send_init).
    pub fn send_init(&self, to: u32, tag: i32) -> Persistent<'m, C> {
        self.persistent_send("MPI_Send_init", (to, tag), Mode::Standard)
    }

    /// A persistent synchronous send (MPI_Ssend_init).
    pub fn ssend_init(&self, to: u32, tag: i32) -> Persistent<'m, C> {
        self.persistent_send("MPI_Ssend_init", (to, tag), Mode::Synchronous)
    }

    /// A persistent buffered send (MPI_Bsend_init).
    pub fn bsend_init(&self, to: u32, tag: i32) -> Persistent<'m, C> {
        self.persistent_send("MPI_Bsend_init", (to, tag), Mode::Buffered)
    }

    /// A persistent ready send (MPI_Rsend_init).
    pub fn rsend_init(&self, to: u32, tag: i32) -> Persistent<'m, C> {
        self.persistent_send("MPI_Rsend_init", (to, tag), Mode::Standard)
    }

    fn persistent_send(&self, call: &'static str, at: (u32, i32), mode: Mode) -> Persistent<'m, C> {
        let comm = self.comm.clone();
        Persistent::new(self, call, move |given| {
            point::send(&comm, given.contribution()?, at, mode)
        })
    }

    /// A persistent receive (MPI_Recv_init).
    pub fn receive_init(&self, from: Source, tag: Tag) -> Persistent<'m, C> {
        let comm = self.comm.clone();
        Persistent::new(self, "MPI_Recv_init", move |given| {
            point::receive(&comm, given.received, (from, tag))
        })
    }
}
