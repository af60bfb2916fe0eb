//! A rank's view of its job, for programs in Rust: point-to-point communication on the world of all ranks.
//!
//! ```
//! use sme_mpi::rank::{Mpi, Source, Tag};
//! use sme_mpi::wires::{Setting, run};
//!
//! let outcome = run(2, Setting { room: 64, seed: 1 }, |wire| async move {
//!     let mpi = Mpi::new(wire);
//!     if mpi.rank() == 0 {
//!         mpi.send(&[1.5, 2.5], 1, 7).await.expect("rank 1 exists");
//!     } else {
//!         let mut values = [0.0; 2];
//!         let status = mpi.receive(&mut values, Source::Any, Tag::Any).await.expect("it fits");
//!         assert_eq!((status.source, status.tag, values), (0, 7, [1.5, 2.5]));
//!     }
//!     mpi.finalize().await;
//! });
//! assert_eq!(outcome, Ok(()));
//! ```

use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;

use crate::channel::{Channel, Work};
use crate::device::matching::{Envelope, Wanted};
use crate::device::{Device, Mode, Received, Site};
use crate::error::{ErrorClass, MpiError};
use crate::scalar::{self, Scalar};

/// The context of the world's point-to-point messages.
const WORLD: u32 = 0;

/// The largest tag (MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// The sender that a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This rank.
    Rank(u32),
    /// Any rank (MPI_ANY_SOURCE).
    Any,
}

/// The tag that a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// This tag.
    Is(i32),
    /// Any tag (MPI_ANY_TAG).
    Any,
}

/// The known properties of a message (MPI_Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its sender.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: u64,
}

impl From<Envelope> for Status {
    fn from(envelope: Envelope) -> Self {
        Self {
            source: envelope.from,
            tag: envelope.tag,
            bytes: envelope.length,
        }
    }
}

/// A rank.
#[derive(Debug)]
pub struct Mpi<C> {
    device: Device<C>,
}

/// A send under way.
#[derive(Debug)]
#[must_use = "a send is over when it has been waited for"]
pub struct SendRequest<'m, C> {
    mpi: &'m Mpi<C>,
    request: usize,
}

/// A receive under way; its values come into the buffer when it has been waited for.
#[derive(Debug)]
#[must_use = "a receive is over when it has been waited for"]
pub struct ReceiveRequest<'m, 'b, C, T> {
    mpi: &'m Mpi<C>,
    request: usize,
    buffer: &'b mut [T],
    values: PhantomData<T>,
}

impl<C: Channel> Mpi<C> {
    /// The rank that has `channel`.
    pub fn new(channel: C) -> Self {
        Self {
            device: Device::new(channel),
        }
    }

    /// Its number (MPI_Comm_rank).
    pub fn rank(&self) -> u32 {
        self.device.channel.rank()
    }

    /// Ranks of the job (MPI_Comm_size).
    pub fn size(&self) -> u32 {
        self.device.channel.ranks()
    }

    /// Sends `values` (MPI_Send).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] or [`ErrorClass::Tag`] if there is no such rank, or tag.
    #[track_caller]
    pub fn send<'a, T: Scalar>(
        &'a self,
        values: &'a [T],
        to: u32,
        tag: i32,
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        self.send_in(
            "MPI_Send",
            values,
            (to, tag),
            Mode::Standard,
            Location::caller(),
        )
    }

    /// The same; ends when the receive has begun, too (MPI_Ssend).
    ///
    /// # Errors
    /// As [`Self::send`].
    #[track_caller]
    pub fn send_synchronous<'a, T: Scalar>(
        &'a self,
        values: &'a [T],
        to: u32,
        tag: i32,
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        self.send_in(
            "MPI_Ssend",
            values,
            (to, tag),
            Mode::Synchronous,
            Location::caller(),
        )
    }

    async fn send_in<T: Scalar>(
        &self,
        call: &'static str,
        values: &[T],
        (to, tag): (u32, i32),
        mode: Mode,
        site: Site,
    ) -> Result<(), MpiError> {
        let bytes = size_of_val(values) as u64;
        self.enters(call, Some(to), bytes).await;
        let request = self.begin_send(call, values, (to, tag), mode).await;
        let sent = match request {
            Ok(request) => {
                self.device.until(site, || self.device.take(request)).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        self.device.channel.leaves(call).await;
        sent
    }

    /// Begins to send `values` (MPI_Isend).
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn begin_to_send<T: Scalar>(
        &self,
        values: &[T],
        to: u32,
        tag: i32,
    ) -> Result<SendRequest<'_, C>, MpiError> {
        let call = "MPI_Isend";
        self.enters(call, Some(to), size_of_val(values) as u64)
            .await;
        let request = self
            .begin_send(call, values, (to, tag), Mode::Standard)
            .await;
        self.device.channel.leaves(call).await;
        Ok(SendRequest {
            mpi: self,
            request: request?,
        })
    }

    async fn begin_send<T: Scalar>(
        &self,
        call: &'static str,
        values: &[T],
        (to, tag): (u32, i32),
        mode: Mode,
    ) -> Result<usize, MpiError> {
        self.check_rank(call, "dest", to)?;
        self.check_tag(call, tag)?;
        let bytes = scalar::to_bytes(values);
        Ok(self.device.send(to, (WORLD, tag), &bytes, mode).await)
    }

    /// Receives into `values` (MPI_Recv).
    ///
    /// # Errors
    /// [`ErrorClass::Truncate`] if the message is longer than `values`, which then have its beginning;
    /// [`ErrorClass::Rank`] or [`ErrorClass::Tag`] if there is no such rank, or tag.
    #[track_caller]
    pub fn receive<'a, T: Scalar>(
        &'a self,
        values: &'a mut [T],
        from: Source,
        tag: Tag,
    ) -> impl Future<Output = Result<Status, MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let call = "MPI_Recv";
            let peer = match from {
                Source::Rank(rank) => Some(rank),
                Source::Any => None,
            };
            self.enters(call, peer, size_of_val(values) as u64).await;
            let received = match self.wanted(call, from, tag) {
                Ok(wanted) => {
                    let request = self.device.receive(wanted, size_of_val(values)).await;
                    let received = self.device.until(site, || self.device.take(request)).await;
                    self.takes(call, received, values)
                }
                Err(error) => Err(error),
            };
            self.device.channel.leaves(call).await;
            received
        }
    }

    /// Begins to receive into `values` (MPI_Irecv).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] or [`ErrorClass::Tag`] if there is no such rank, or tag.
    pub async fn begin_to_receive<'b, T: Scalar>(
        &self,
        values: &'b mut [T],
        from: Source,
        tag: Tag,
    ) -> Result<ReceiveRequest<'_, 'b, C, T>, MpiError> {
        let call = "MPI_Irecv";
        let wanted = self.wanted(call, from, tag)?;
        let request = self.device.receive(wanted, size_of_val(values)).await;
        Ok(ReceiveRequest {
            mpi: self,
            request,
            buffer: values,
            values: PhantomData,
        })
    }

    /// Waits until a message that fits has come, and leaves it (MPI_Probe).
    ///
    /// # Errors
    /// As [`Self::begin_to_receive`].
    #[track_caller]
    pub fn probe(
        &self,
        from: Source,
        tag: Tag,
    ) -> impl Future<Output = Result<Status, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let wanted = self.wanted("MPI_Probe", from, tag)?;
            let found = self.device.until(site, || self.device.probe(&wanted)).await;
            Ok(found.into())
        }
    }

    /// Ends the rank's part: all that it has sent is on its way (MPI_Finalize). Questions of
    /// other ranks that it has not answered yet stay unanswered.
    #[track_caller]
    pub fn finalize(&self) -> impl Future<Output = ()> + Send {
        self.device.drain(Location::caller())
    }

    async fn enters(&self, call: &'static str, peer: Option<u32>, bytes: u64) {
        self.device.channel.enters(call, peer, bytes).await;
        self.device.channel.work(Work::Call, 1).await;
    }

    fn wanted(&self, call: &'static str, from: Source, tag: Tag) -> Result<Wanted, MpiError> {
        let from = match from {
            Source::Any => None,
            Source::Rank(rank) => {
                self.check_rank(call, "source", rank)?;
                Some(rank)
            }
        };
        let tag = match tag {
            Tag::Any => None,
            Tag::Is(tag) => {
                self.check_tag(call, tag)?;
                Some(tag)
            }
        };
        let context = WORLD;
        Ok(Wanted { context, from, tag })
    }

    /// Puts what was received into `values`.
    fn takes<T: Scalar>(
        &self,
        call: &'static str,
        received: Option<Received>,
        values: &mut [T],
    ) -> Result<Status, MpiError> {
        let Some(Received { envelope, bytes }) = received else {
            return Err(self.error(
                ErrorClass::Intern,
                call,
                "request",
                "it is no receive".to_owned(),
            ));
        };
        scalar::from_bytes(&bytes, values);
        let room = size_of_val(values) as u64;
        if envelope.length > room {
            let text = format!(
                "the message of {} bytes from rank {} with tag {} is longer than {room} bytes",
                envelope.length, envelope.from, envelope.tag
            );
            return Err(self.error(ErrorClass::Truncate, call, "count", text));
        }
        Ok(envelope.into())
    }

    fn check_rank(
        &self,
        call: &'static str,
        argument: &'static str,
        rank: u32,
    ) -> Result<(), MpiError> {
        if rank < self.size() {
            return Ok(());
        }
        let text = format!("there is no rank {rank} among {}", self.size());
        Err(self.error(ErrorClass::Rank, call, argument, text))
    }

    fn check_tag(&self, call: &'static str, tag: i32) -> Result<(), MpiError> {
        if tag >= 0 {
            return Ok(());
        }
        let text = format!("{tag} is negative");
        Err(self.error(ErrorClass::Tag, call, "tag", text))
    }

    fn error(
        &self,
        class: ErrorClass,
        call: &'static str,
        argument: &'static str,
        text: String,
    ) -> MpiError {
        MpiError {
            class,
            rank: self.rank(),
            call,
            argument,
            text: text.into(),
        }
    }
}

impl<C: Channel> SendRequest<'_, C> {
    /// Waits until the send is over (MPI_Wait).
    #[track_caller]
    pub fn wait(self) -> impl Future<Output = ()> + Send
    where
        C: Channel,
    {
        let site = Location::caller();
        async move {
            let device = &self.mpi.device;
            device.until(site, || device.take(self.request)).await;
        }
    }
}

impl<C: Channel, T: Scalar> ReceiveRequest<'_, '_, C, T> {
    /// Waits until the message has come, and takes it into the buffer (MPI_Wait).
    ///
    /// # Errors
    /// [`ErrorClass::Truncate`] if it is longer than the buffer.
    #[track_caller]
    pub fn wait(self) -> impl Future<Output = Result<Status, MpiError>> + Send {
        let site = Location::caller();
        async move {
            let device = &self.mpi.device;
            let received = device.until(site, || device.take(self.request)).await;
            self.mpi.takes("MPI_Wait", received, self.buffer)
        }
    }

    /// Withdraws the receive if no message has matched it (MPI_Cancel); otherwise it goes on.
    pub fn cancel(self) -> Option<Self> {
        match self.mpi.device.cancel(self.request) {
            true => None,
            false => Some(self),
        }
    }
}
