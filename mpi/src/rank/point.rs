//! Point-to-point communication (MPI-4.1, Ch. 3): sends in four modes, receives, probes.

use std::panic::Location;

use super::request::{Landing, Launch, Request, Start};
use super::{Communicator, Named, PROC_NULL, Source, Status, Tag, status};
use crate::buffer::{Buffer, BufferMut};
use crate::channel::Channel;
use crate::collective::Call;
use crate::comm::{Comm, Plane};
use crate::device::matching::Wanted;
use crate::device::{CallForm, Head, Mode};
use crate::error::{ErrorClass, Fault, MpiError};

/// A message that a matched probe has taken (MPI_Message): only its owner can receive it.
#[derive(Debug)]
#[must_use = "the message is lost if it is not received"]
pub struct Message {
    /// None of one from [`PROC_NULL`].
    number: Option<usize>,
    /// Its properties.
    pub status: Status,
}

/// Checks a rank that a message goes to or comes from.
pub(super) fn check_rank(comm: &Comm, argument: &'static str, rank: u32) -> Result<u32, Fault> {
    let size = comm.peers().size();
    comm.peers().world_rank(rank).ok_or_else(|| {
        let text = format!("there is no rank {rank} among {size}");
        Fault::new(ErrorClass::Rank, argument, text)
    })
}

pub(super) fn check_tag(tag: i32) -> Result<(), Fault> {
    match tag >= 0 {
        true => Ok(()),
        false => Err(Fault::new(
            ErrorClass::Tag,
            "tag",
            format!("{tag} is negative"),
        )),
    }
}

/// A send that has not begun.
pub(super) fn send<'b>(
    comm: &Comm,
    buffer: &Buffer<'_>,
    (to, tag): (u32, i32),
    mode: Mode,
) -> Result<Launch<'b>, Fault> {
    check_tag(tag)?;
    if to == PROC_NULL {
        return Ok(Launch::nothing(Status::EMPTY));
    }
    let to = check_rank(comm, "dest", to)?;
    let start = Start::Send {
        to,
        head: Head {
            context: comm.context(Plane::Point),
            tag,
            call: Call::Send as u8,
            root: 0,
            // The program may use its buffer again at once, and then the data are elsewhere.
            address: buffer.address().filter(|_| mode != Mode::Buffered),
        },
        bytes: buffer.packed()?,
        mode,
    };
    Ok(Launch::new(start, Landing::Nowhere))
}

/// The messages that a receive from there wants; none from [`PROC_NULL`].
fn wanted(comm: &Comm, from: Source, tag: Tag) -> Result<Option<Wanted>, Fault> {
    let tag = match tag {
        Tag::Any => None,
        Tag::Is(tag) => {
            check_tag(tag)?;
            Some(tag)
        }
    };
    let from = match from {
        Source::Rank(PROC_NULL) => return Ok(None),
        Source::Any => None,
        Source::Rank(rank) => Some(check_rank(comm, "source", rank)?),
    };
    let context = comm.context(Plane::Point);
    Ok(Some(Wanted { context, from, tag }))
}

/// A receive that has not begun.
pub(super) fn receive<'b>(
    comm: &Comm,
    buffer: BufferMut<'b>,
    (from, tag): (Source, Tag),
) -> Result<Launch<'b>, Fault> {
    let Some(wanted) = wanted(comm, from, tag)? else {
        return Ok(Launch::nothing(Status::NO_PROCESS));
    };
    let most = usize::try_from(buffer.bytes()).unwrap_or(usize::MAX);
    let address = buffer.shared().address();
    let start = Start::Receive {
        wanted,
        most,
        address,
    };
    Ok(Launch::new(start, Landing::Whole(buffer)))
}

/// The peer of a receive, for timelines.
fn peer(from: Source) -> Option<u32> {
    match from {
        Source::Rank(rank) => Some(rank),
        Source::Any => None,
    }
}

macro_rules! sends {
    ($($(#[$doc:meta])* $whole:ident $whole_name:literal, $(#[$begun_doc:meta])* $begun:ident $begun_name:literal, $mode:ident;)*) => {
        impl<'m, C: Channel> Communicator<'m, C> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`ErrorClass::Rank`], [`ErrorClass::Tag`] or [`ErrorClass::Buffer`] of a wrong
                /// argument.
                #[track_caller]
                pub fn $whole<'a>(
                    &'a self,
                    buffer: impl Into<Buffer<'a>>,
                    to: u32,
                    tag: i32,
                ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
                    let site = Location::caller();
                    let buffer = buffer.into();
                    async move {
                        let (peer, bytes) = (Some(to), buffer.bytes());
                        let call = Named { peer, bytes, ..Named::new($whole_name, site) };
                        let launch = send(&self.comm, &buffer, (to, tag), Mode::$mode);
                        self.whole(call, launch).await.map(drop)
                    }
                }

                $(#[$begun_doc])*
                ///
                /// # Errors
                /// As of the call that does not return before its end.
                #[track_caller]
                pub fn $begun<'a, 'b>(
                    &'a self,
                    buffer: impl Into<Buffer<'b>>,
                    to: u32,
                    tag: i32,
                ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
                where
                    'b: 'a,
                {
                    let site = Location::caller();
                    let buffer = buffer.into();
                    async move {
                        let (peer, bytes) = (Some(to), buffer.bytes());
                        let call = Named { peer, bytes, ..Named::new($begun_name, site) };
                        let launch = send(&self.comm, &buffer, (to, tag), Mode::$mode);
                        self.begun(call, launch).await
                    }
                }
            )*
        }
    };
}

sends! {
    /// Sends (MPI_Send).
    send "MPI_Send",
    /// Begins to send (MPI_Isend).
    isend "MPI_Isend", Standard;
    /// Sends; ends when the receive has begun, too (MPI_Ssend).
    ssend "MPI_Ssend",
    /// Begins to send; is over when the receive has begun, too (MPI_Issend).
    issend "MPI_Issend", Synchronous;
    /// Sends out of the attached buffer, and ends at once (MPI_Bsend).
    bsend "MPI_Bsend",
    /// Begins to send out of the attached buffer (MPI_Ibsend).
    ibsend "MPI_Ibsend", Buffered;
    /// Sends to a receive that has begun (MPI_Rsend): as a standard send, as the standard allows.
    rsend "MPI_Rsend",
    /// Begins to send to a receive that has begun (MPI_Irsend).
    irsend "MPI_Irsend", Standard;
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// Receives (MPI_Recv).
    ///
    /// # Errors
    /// [`ErrorClass::Truncate`] if the message is longer than the buffer, which then has its
    /// beginning; [`ErrorClass::Rank`], [`ErrorClass::Tag`] or [`ErrorClass::Buffer`] of a wrong
    /// argument.
    #[track_caller]
    pub fn receive<'a>(
        &'a self,
        buffer: impl Into<BufferMut<'a>>,
        from: Source,
        tag: Tag,
    ) -> impl Future<Output = Result<Status, MpiError>> + Send + 'a {
        let site = Location::caller();
        let buffer = buffer.into();
        async move {
            let bytes = buffer.bytes();
            let call = Named {
                peer: peer(from),
                bytes,
                ..Named::new("MPI_Recv", site)
            };
            let launch = receive(&self.comm, buffer, (from, tag));
            self.whole(call, launch).await
        }
    }

    /// Begins to receive (MPI_Irecv).
    ///
    /// # Errors
    /// As [`Communicator::receive`]; truncation is an error of the wait.
    #[track_caller]
    pub fn ireceive<'a, 'b>(
        &'a self,
        buffer: impl Into<BufferMut<'b>>,
        from: Source,
        tag: Tag,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let site = Location::caller();
        let buffer = buffer.into();
        async move {
            let bytes = buffer.bytes();
            let call = Named {
                peer: peer(from),
                bytes,
                ..Named::new("MPI_Irecv", site)
            };
            let launch = receive(&self.comm, buffer, (from, tag));
            self.begun(call, launch).await
        }
    }

    /// Sends and receives at the same time (MPI_Sendrecv).
    ///
    /// # Errors
    /// As [`Communicator::send`] and [`Communicator::receive`].
    #[track_caller]
    pub fn send_receive<'a>(
        &'a self,
        (sent, to, send_tag): (impl Into<Buffer<'a>>, u32, i32),
        (came, from, receive_tag): (impl Into<BufferMut<'a>>, Source, Tag),
    ) -> impl Future<Output = Result<Status, MpiError>> + Send + 'a {
        let site = Location::caller();
        let (sent, came) = (sent.into(), came.into());
        async move {
            let bytes = sent.bytes();
            let call = Named {
                peer: Some(to),
                bytes,
                ..Named::new("MPI_Sendrecv", site)
            };
            let send = send(&self.comm, &sent, (to, send_tag), Mode::Standard);
            let receive = receive(&self.comm, came, (from, receive_tag));
            self.both(call, send, receive).await
        }
    }

    /// The same with one buffer, which has what was received in the end (MPI_Sendrecv_replace).
    ///
    /// # Errors
    /// As [`Communicator::send_receive`].
    #[track_caller]
    pub fn send_receive_replace<'a>(
        &'a self,
        buffer: impl Into<BufferMut<'a>>,
        (to, send_tag): (u32, i32),
        (from, receive_tag): (Source, Tag),
    ) -> impl Future<Output = Result<Status, MpiError>> + Send + 'a {
        let site = Location::caller();
        let buffer = buffer.into();
        async move {
            let bytes = buffer.bytes();
            let call = Named {
                peer: Some(to),
                bytes,
                ..Named::new("MPI_Sendrecv_replace", site)
            };
            // Data that come straight into the buffer must not lie where others still leave from.
            let sent = match self.mpi.channel().transfers() {
                None => buffer.shared(),
                Some(_) => buffer.shared().anywhere(),
            };
            let send = send(&self.comm, &sent, (to, send_tag), Mode::Standard);
            let receive = receive(&self.comm, buffer, (from, receive_tag));
            self.both(call, send, receive).await
        }
    }

    async fn both(
        &self,
        call: Named,
        send: Result<Launch<'_>, Fault>,
        receive: Result<Launch<'_>, Fault>,
    ) -> Result<Status, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter(call.name, call.peer, call.bytes).await?;
        let device = mpi.device();
        let launches = self
            .comm
            .check()
            .and(receive)
            .and_then(|receive| Ok((receive, send?)));
        let begun = launches.and_then(|(receive, send)| {
            let form = CallForm::Task;
            Ok((receive.begin(device, form)?, send.begin(device, form)?))
        });
        let result = match begun {
            Err(fault) => Err(fault),
            Ok((mut receive, send)) => {
                if let Some(request) = send.request {
                    // Its outcome says nothing more.
                    let over = || device.is_over(request).then_some(());
                    mpi.until(call.site, over).await;
                    device.take(request);
                }
                match receive.request {
                    None => Ok(receive.ends_at_once),
                    Some(request) => {
                        let outcome = mpi.until_last(call.site, || device.take(request)).await;
                        super::landed(&self.comm, outcome, &mut receive.landing)
                    }
                }
            }
        };
        mpi.close(entered, &self.comm, result).await
    }

    /// Waits until a message that fits has come, and leaves it (MPI_Probe).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] or [`ErrorClass::Tag`] of a wrong argument.
    #[track_caller]
    pub fn probe(
        &self,
        from: Source,
        tag: Tag,
    ) -> impl Future<Output = Result<Status, MpiError>> + Send {
        let call = Named {
            peer: peer(from),
            ..Named::new("MPI_Probe", Location::caller())
        };
        async move {
            let entered = self.mpi.enter(call.name, call.peer, 0).await?;
            let device = self.mpi.device();
            let found = match self
                .comm
                .check()
                .and_then(|()| wanted(&self.comm, from, tag))
            {
                Err(fault) => Err(fault),
                Ok(None) => Ok(Status::NO_PROCESS),
                Ok(Some(wanted)) => {
                    let found = || device.probe(&wanted);
                    let envelope = self.mpi.until_last(call.site, found).await;
                    Ok(status(&self.comm, &envelope))
                }
            };
            self.mpi.close(entered, &self.comm, found).await
        }
    }

    /// Makes progress; the status of a message that fits and has come, which stays (MPI_Iprobe).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub async fn iprobe(&self, from: Source, tag: Tag) -> Result<Option<Status>, MpiError> {
        let entered = self.mpi.enter("MPI_Iprobe", peer(from), 0).await?;
        let found = match self
            .comm
            .check()
            .and_then(|()| wanted(&self.comm, from, tag))
        {
            Err(fault) => Err(fault),
            Ok(None) => Ok(Some(Status::NO_PROCESS)),
            Ok(Some(wanted)) => {
                self.mpi.progress().await;
                let found = self.mpi.device().probe(&wanted);
                Ok(found.map(|envelope| status(&self.comm, &envelope)))
            }
        };
        self.mpi.close(entered, &self.comm, found).await
    }

    /// Waits until a message that fits has come, and takes it (MPI_Mprobe).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    #[track_caller]
    pub fn matched_probe(
        &self,
        from: Source,
        tag: Tag,
    ) -> impl Future<Output = Result<Message, MpiError>> + Send {
        let call = Named {
            peer: peer(from),
            ..Named::new("MPI_Mprobe", Location::caller())
        };
        async move {
            let entered = self.mpi.enter(call.name, call.peer, 0).await?;
            let found = match self
                .comm
                .check()
                .and_then(|()| wanted(&self.comm, from, tag))
            {
                Err(fault) => Err(fault),
                Ok(None) => Ok(Message::NO_PROCESS),
                Ok(Some(wanted)) => {
                    let taken = || self.taken(&wanted);
                    Ok(self.mpi.until_last(call.site, taken).await)
                }
            };
            self.mpi.close(entered, &self.comm, found).await
        }
    }

    /// Makes progress; takes a message that fits and has come (MPI_Improbe).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub async fn try_matched_probe(
        &self,
        from: Source,
        tag: Tag,
    ) -> Result<Option<Message>, MpiError> {
        let entered = self.mpi.enter("MPI_Improbe", peer(from), 0).await?;
        let found = match self
            .comm
            .check()
            .and_then(|()| wanted(&self.comm, from, tag))
        {
            Err(fault) => Err(fault),
            Ok(None) => Ok(Some(Message::NO_PROCESS)),
            Ok(Some(wanted)) => {
                self.mpi.progress().await;
                Ok(self.taken(&wanted))
            }
        };
        self.mpi.close(entered, &self.comm, found).await
    }

    fn taken(&self, wanted: &Wanted) -> Option<Message> {
        let (envelope, number) = self.mpi.device().take_message(wanted)?;
        Some(Message {
            number: Some(number),
            status: status(&self.comm, &envelope),
        })
    }

    /// Receives a message that a matched probe has taken (MPI_Mrecv).
    ///
    /// # Errors
    /// As [`Communicator::receive`].
    #[track_caller]
    pub fn receive_message<'a>(
        &'a self,
        message: Message,
        buffer: impl Into<BufferMut<'a>>,
    ) -> impl Future<Output = Result<Status, MpiError>> + Send + 'a {
        let call = message.named("MPI_Mrecv", Location::caller());
        let buffer = buffer.into();
        async move { self.whole(call, Ok(message.launch(buffer))).await }
    }

    /// Begins to receive a message that a matched probe has taken (MPI_Imrecv).
    ///
    /// # Errors
    /// As [`Communicator::ireceive`].
    #[track_caller]
    pub fn ireceive_message<'a, 'b>(
        &'a self,
        message: Message,
        buffer: impl Into<BufferMut<'b>>,
    ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
    where
        'b: 'a,
    {
        let call = message.named("MPI_Imrecv", Location::caller());
        let buffer = buffer.into();
        async move { self.begun(call, Ok(message.launch(buffer))).await }
    }
}

impl Message {
    /// A message from [`PROC_NULL`] (MPI_MESSAGE_NO_PROC).
    pub const NO_PROCESS: Self = Self {
        number: None,
        status: Status::NO_PROCESS,
    };

    fn named(&self, name: &'static str, site: &'static Location<'static>) -> Named {
        Named {
            peer: Some(self.status.source),
            bytes: self.status.bytes,
            ..Named::new(name, site)
        }
    }

    fn launch(self, buffer: BufferMut<'_>) -> Launch<'_> {
        let Some(message) = self.number else {
            return Launch::nothing(Status::NO_PROCESS);
        };
        let most = usize::try_from(buffer.bytes()).unwrap_or(usize::MAX);
        Launch::new(Start::Message { message, most }, Landing::Whole(buffer))
    }
}
