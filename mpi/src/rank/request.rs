//! Requests: calls that have begun, and the forms of waiting for them and of testing them (MPI-4.1,
//! Sec. 3.7).

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Communicator, Mpi, Named, Status, landed, status};
use crate::buffer::{BufferMut, Piece};
use crate::channel::Channel;
use crate::comm::Comm;
use crate::device::matching::Wanted;
use crate::device::{BufferFull, CallForm, Device, Head, Mode, Task};
use crate::error::{ErrorClass, Fault, MpiError};

/// A call that has been checked and has not begun: how it begins, and the destination of its data.
pub(crate) struct Launch<'b> {
    pub(crate) start: Start,
    pub(crate) landing: Landing<'b>,
    /// The status of a call that is over at once.
    pub(crate) ends_at_once: Status,
}

/// The beginning of a call.
pub(crate) enum Start {
    /// The call ends at once.
    Nothing,
    Send {
        to: u32,
        head: Head,
        bytes: Vec<u8>,
        mode: Mode,
    },
    Receive {
        wanted: Wanted,
        most: usize,
        address: Option<u64>,
    },
    /// Of a message that has been taken.
    Message {
        message: usize,
        most: usize,
    },
    Task(Task),
    /// The call has begun: its request.
    Begun(usize),
}

/// The destination of the data of a call.
#[derive(Debug)]
pub(crate) enum Landing<'b> {
    Nowhere,
    Whole(BufferMut<'b>),
    /// One piece after the other.
    Pieces(BufferMut<'b>, Vec<Piece>),
}

impl Landing<'_> {
    /// Bytes that it has room for.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Nowhere => 0,
            Self::Whole(buffer) => buffer.bytes(),
            Self::Pieces(_, pieces) => pieces.iter().map(|piece| piece.bytes() as u64).sum(),
        }
    }

    /// Takes the packed data.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Whole(buffer) => buffer.unpack(bytes),
            Self::Pieces(buffer, pieces) => {
                let mut rest = bytes;
                for piece in pieces {
                    let (own, later) = rest.split_at(piece.bytes().min(rest.len()));
                    buffer.unpack_piece(piece, own)?;
                    rest = later;
                }
                Ok(())
            }
        }
    }
}

impl<'b> Launch<'b> {
    /// A call whose data end in `landing`.
    pub(crate) fn new(start: Start, landing: Landing<'b>) -> Self {
        Self {
            start,
            landing,
            ends_at_once: Status::EMPTY,
        }
    }

    /// A collective call.
    pub(crate) fn task(
        task: impl Future<Output = Result<Vec<u8>, Fault>> + Send + 'static,
        landing: Landing<'b>,
    ) -> Self {
        Self::new(Start::Task(Box::pin(task)), landing)
    }

    /// A call that has nothing to do.
    pub(crate) fn nothing(ends_at_once: Status) -> Self {
        Self {
            start: Start::Nothing,
            landing: Landing::Nowhere,
            ends_at_once,
        }
    }

    /// Begins it, in a call of this form.
    ///
    /// # Errors
    /// The buffer that the rank attached has no room for a buffered send.
    pub(crate) fn begin(self, device: &Device, form: CallForm) -> Result<Begun<'b>, Fault> {
        let request = match self.start {
            Start::Nothing => None,
            Start::Send {
                to,
                head,
                bytes,
                mode,
            } => {
                let sent = device.send_as(to, head, bytes, (mode, form));
                let request = sent.map_err(|BufferFull { free }| {
                    let text = format!("the attached buffer has only {free} bytes free");
                    Fault::new(ErrorClass::Buffer, "buf", text)
                })?;
                if mode == Mode::Buffered {
                    device.free(request);
                }
                (mode != Mode::Buffered).then_some(request)
            }
            Start::Receive {
                wanted,
                most,
                address,
            } => Some(device.receive_at(wanted, (most, address), form)),
            Start::Message { message, most } => Some(device.receive_message(message, most)),
            Start::Task(task) => Some(device.begin_task(task)),
            Start::Begun(request) => Some(request),
        };
        Ok(Begun {
            request,
            landing: self.landing,
            ends_at_once: self.ends_at_once,
        })
    }
}

/// A call that has begun.
pub(crate) struct Begun<'b> {
    /// None of a call that is over.
    pub(crate) request: Option<usize>,
    pub(crate) landing: Landing<'b>,
    pub(crate) ends_at_once: Status,
}

/// A request. One that is over, or was never begun, is null, or inactive if it is persistent.
pub struct Request<'m, 'b, C> {
    mpi: &'m Mpi<C>,
    state: State<'b>,
}

enum State<'b> {
    Null,
    /// A persistent request that has not been started.
    Inactive,
    Active(Active<'b>),
}

struct Active<'b> {
    begun: Begun<'b>,
    comm: Comm,
    /// The flag of the persistent request that was started: whether it is active.
    of: Option<Arc<AtomicBool>>,
}

impl<C> fmt::Debug for Request<'_, '_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Null => "Request(null)",
            State::Inactive => "Request(inactive)",
            State::Active(_) => "Request(active)",
        })
    }
}

/// The outcome of a test of several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested<T> {
    /// None of them is over.
    No,
    /// None of them is active (the index MPI_UNDEFINED).
    NoneActive,
    /// This.
    Yes(T),
}

/// Errors of several requests (MPI_ERR_IN_STATUS).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct InStatus {
    /// The error of the call.
    pub error: MpiError,
    /// The outcome of each request.
    pub statuses: Vec<Result<Status, MpiError>>,
}

impl<'m, 'b, C: Channel> Request<'m, 'b, C> {
    /// The null request (MPI_REQUEST_NULL).
    pub fn null(mpi: &'m Mpi<C>) -> Self {
        let state = State::Null;
        Self { mpi, state }
    }

    /// The request of a call over `communicator` that is over, with this status.
    pub(crate) fn over(communicator: &Communicator<'m, C>, status: Status) -> Self {
        let begun = Begun {
            request: None,
            landing: Landing::Nowhere,
            ends_at_once: status,
        };
        let (comm, of) = (communicator.comm.clone(), None);
        Self {
            mpi: communicator.mpi,
            state: State::Active(Active { begun, comm, of }),
        }
    }

    /// A persistent request that has not been started.
    pub(super) fn inactive(mpi: &'m Mpi<C>) -> Self {
        let state = State::Inactive;
        Self { mpi, state }
    }

    /// Begins a call over `communicator`.
    pub(super) fn begin(
        communicator: &Communicator<'m, C>,
        launch: Launch<'b>,
    ) -> Result<Self, Fault> {
        Self::begin_of(communicator, launch, None)
    }

    /// The same, of a persistent request.
    pub(super) fn begin_of(
        communicator: &Communicator<'m, C>,
        launch: Launch<'b>,
        of: Option<Arc<AtomicBool>>,
    ) -> Result<Self, Fault> {
        let begun = launch.begin(communicator.mpi.device(), CallForm::Immediate)?;
        let comm = communicator.comm.clone();
        Ok(Self {
            mpi: communicator.mpi,
            state: State::Active(Active { begun, comm, of }),
        })
    }

    /// Returns whether it has begun and has not been waited for.
    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Active(_))
    }

    /// Returns whether it is over, or not active.
    pub(crate) fn is_over(&self) -> bool {
        match &self.state {
            State::Active(active) => {
                let device = self.mpi.device();
                let request = active.begun.request;
                request.is_none_or(|request| device.is_over(request))
            }
            _ => true,
        }
    }

    /// Ends it if it is over; the status of one that is not active is empty.
    pub(crate) fn end(&mut self, call: &'static str) -> Option<Result<Status, MpiError>> {
        let State::Active(active) = &mut self.state else {
            return Some(Ok(Status::EMPTY));
        };
        let ended = match active.begun.request {
            None => Ok(active.begun.ends_at_once),
            Some(request) => {
                let outcome = self.mpi.device().take(request)?;
                landed(&active.comm, outcome, &mut active.begun.landing)
            }
        };
        let ended = ended.map_err(|fault| self.mpi.error(&active.comm, fault, call));
        self.state = match &active.of {
            Some(is_active) => {
                is_active.store(false, Ordering::Relaxed);
                State::Inactive
            }
            None => State::Null,
        };
        Some(ended)
    }

    /// Waits until it is over (MPI_Wait).
    ///
    /// # Errors
    /// Those of the call that it is; [`ErrorClass::Truncate`] if the message is longer than the
    /// buffer, which then has its beginning.
    #[track_caller]
    pub fn wait(&mut self) -> impl Future<Output = Result<Status, MpiError>> + Send {
        let call = Named::new("MPI_Wait", Location::caller());
        async move {
            let mpi = self.mpi;
            if !self.is_active() {
                return Ok(Status::EMPTY);
            }
            let entered = mpi.enter(call.name, None, 0).await?;
            let ended = mpi.until_last(call.site, || self.end(call.name)).await;
            mpi.leave(entered).await;
            ended
        }
    }

    /// Makes progress, and ends it if it is over (MPI_Test).
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub async fn test(&mut self) -> Result<Option<Status>, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter("MPI_Test", None, 0).await?;
        mpi.progress().await;
        let ended = self.end(entered.call);
        mpi.leave(entered).await;
        ended.transpose()
    }

    /// Makes progress; the status if it is over, which it then still has to be told
    /// (MPI_Request_get_status).
    ///
    /// # Errors
    /// If another call of the rank is under way.
    pub async fn look(&self) -> Result<Option<Status>, MpiError> {
        let mpi = self.mpi;
        let entered = mpi.enter("MPI_Request_get_status", None, 0).await?;
        mpi.progress().await;
        let State::Active(active) = &self.state else {
            mpi.leave(entered).await;
            return Ok(Some(Status::EMPTY));
        };
        let status = match active.begun.request {
            None => Some(active.begun.ends_at_once),
            Some(request) => mpi.device().peek(request, |outcome| {
                let envelope = outcome.envelope.as_ref();
                let is_cancelled = outcome.is_cancelled;
                envelope.map_or(
                    Status {
                        is_cancelled,
                        ..Status::EMPTY
                    },
                    |envelope| status(&active.comm, envelope),
                )
            }),
        };
        mpi.leave(entered).await;
        Ok(status)
    }

    /// Cancels it unless it has been matched; it must still be waited for, and its status says
    /// whether it was cancelled (MPI_Cancel).
    ///
    /// # Errors
    /// [`ErrorClass::Request`] if it is not active.
    pub fn cancel(&mut self) -> Result<(), MpiError> {
        let State::Active(active) = &self.state else {
            return Err(self.wrong("MPI_Cancel", "it is not active"));
        };
        if let Some(request) = active.begun.request {
            self.mpi.device().cancel(request);
        }
        Ok(())
    }

    /// Lets it go on without an owner (MPI_Request_free). The data of a receive are lost.
    ///
    /// # Errors
    /// [`ErrorClass::Request`] if it is null.
    pub fn free(&mut self) -> Result<(), MpiError> {
        let state = std::mem::replace(&mut self.state, State::Null);
        match state {
            State::Null => return Err(self.wrong("MPI_Request_free", "it is null")),
            State::Inactive => {}
            State::Active(active) => {
                if let Some(is_active) = active.of {
                    is_active.store(false, Ordering::Relaxed);
                }
                if let Some(request) = active.begun.request {
                    self.mpi.device().free(request);
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, call: &'static str, text: &'static str) -> MpiError {
        let rank = self.mpi.device().rank();
        Fault::new(ErrorClass::Request, "request", text).at(rank, call)
    }
}

/// Waits for all `requests` (MPI_Waitall). All must be of one rank.
///
/// # Errors
/// [`InStatus`] if any of them has failed; the others are over all the same.
#[track_caller]
pub fn wait_all<'r, 'm, 'b, C: Channel>(
    requests: &'r mut [Request<'m, 'b, C>],
) -> impl Future<Output = Result<Vec<Status>, Box<InStatus>>> + Send {
    let call = Named::new("MPI_Waitall", Location::caller());
    async move {
        let Some(mpi) = requests.first().map(|request| request.mpi) else {
            return Ok(Vec::new());
        };
        let entered = mpi.enter(call.name, None, 0).await.map_err(alone)?;
        let all_over = || requests.iter().all(Request::is_over).then_some(());
        mpi.until_last(call.site, all_over).await;
        let ended = end_all(requests, call.name);
        mpi.leave(entered).await;
        ended
    }
}

/// Makes progress, and ends all `requests` if all are over (MPI_Testall).
///
/// # Errors
/// As [`wait_all`].
pub async fn test_all<C: Channel>(
    requests: &mut [Request<'_, '_, C>],
) -> Result<Option<Vec<Status>>, Box<InStatus>> {
    let Some(mpi) = requests.first().map(|request| request.mpi) else {
        return Ok(Some(Vec::new()));
    };
    let entered = mpi.enter("MPI_Testall", None, 0).await.map_err(alone)?;
    mpi.progress().await;
    let all_over = requests.iter().all(Request::is_over);
    let ended = all_over.then(|| end_all(requests, entered.call));
    mpi.leave(entered).await;
    ended.transpose()
}

fn alone(error: MpiError) -> Box<InStatus> {
    let statuses = Vec::new();
    Box::new(InStatus { error, statuses })
}

fn end_all<C: Channel>(
    requests: &mut [Request<'_, '_, C>],
    call: &'static str,
) -> Result<Vec<Status>, Box<InStatus>> {
    let ended = requests.iter_mut().map(|request| request.end(call));
    let statuses: Vec<Result<Status, MpiError>> = ended.flatten().collect();
    in_status(call, statuses)
}

fn in_status(
    call: &'static str,
    statuses: Vec<Result<Status, MpiError>>,
) -> Result<Vec<Status>, Box<InStatus>> {
    let mut failed = statuses.iter().filter_map(|status| status.as_ref().err());
    let Some(first) = failed.next() else {
        return Ok(statuses.into_iter().flatten().collect());
    };
    let text = format!(
        "{} of them failed, the first because {}",
        1 + failed.count(),
        first.text
    );
    let error = Fault::new(ErrorClass::InStatus, "array_of_requests", text).at(first.rank, call);
    Err(Box::new(InStatus { error, statuses }))
}

/// Ends the first of `requests` that is over, if one is.
fn end_one<C: Channel>(
    requests: &mut [Request<'_, '_, C>],
    call: &'static str,
) -> Tested<(usize, Result<Status, MpiError>)> {
    if !requests.iter().any(Request::is_active) {
        return Tested::NoneActive;
    }
    let mut active = (0..)
        .zip(requests)
        .filter(|(_, request)| request.is_active());
    let ended = active.find_map(|(index, request)| Some((index, request.end(call)?)));
    ended.map_or(Tested::No, Tested::Yes)
}

/// Waits for one of `requests`: its index and status; none if none of them is active (MPI_Waitany).
///
/// # Errors
/// As [`Request::wait`].
#[track_caller]
pub fn wait_any<'r, 'm, 'b, C: Channel>(
    requests: &'r mut [Request<'m, 'b, C>],
) -> impl Future<Output = Result<Option<(usize, Status)>, MpiError>> + Send {
    let call = Named::new("MPI_Waitany", Location::caller());
    async move {
        let active = requests.iter().find(|request| request.is_active());
        let Some(mpi) = active.map(|request| request.mpi) else {
            return Ok(None);
        };
        let entered = mpi.enter(call.name, None, 0).await?;
        let one = || match end_one(requests, call.name) {
            Tested::Yes(ended) => Some(ended),
            _ => None,
        };
        let (index, ended) = mpi.until_last(call.site, one).await;
        mpi.leave(entered).await;
        ended.map(|status| Some((index, status)))
    }
}

/// Makes progress, and ends one of `requests` if one is over (MPI_Testany).
///
/// # Errors
/// As [`Request::wait`].
pub async fn test_any<C: Channel>(
    requests: &mut [Request<'_, '_, C>],
) -> Result<Tested<(usize, Status)>, MpiError> {
    let active = requests.iter().find(|request| request.is_active());
    let Some(mpi) = active.map(|request| request.mpi) else {
        return Ok(Tested::NoneActive);
    };
    let entered = mpi.enter("MPI_Testany", None, 0).await?;
    mpi.progress().await;
    let tested = end_one(requests, entered.call);
    mpi.leave(entered).await;
    Ok(match tested {
        Tested::Yes((index, ended)) => Tested::Yes((index, ended?)),
        Tested::No => Tested::No,
        Tested::NoneActive => Tested::NoneActive,
    })
}

/// The outcomes of those requests that have ended, by their indices.
pub type Several = Vec<(usize, Result<Status, MpiError>)>;

fn end_some<C: Channel>(requests: &mut [Request<'_, '_, C>], call: &'static str) -> Several {
    let active = (0..)
        .zip(requests)
        .filter(|(_, request)| request.is_active());
    active
        .filter_map(|(index, request)| Some((index, request.end(call)?)))
        .collect()
}

/// Waits for at least one of `requests`, and ends all that are over; none if none of them is active
/// (MPI_Waitsome).
///
/// # Errors
/// If another call of the rank is under way; errors of the requests are in the result.
#[track_caller]
pub fn wait_some<'r, 'm, 'b, C: Channel>(
    requests: &'r mut [Request<'m, 'b, C>],
) -> impl Future<Output = Result<Option<Several>, MpiError>> + Send {
    let call = Named::new("MPI_Waitsome", Location::caller());
    async move {
        let active = requests.iter().find(|request| request.is_active());
        let Some(mpi) = active.map(|request| request.mpi) else {
            return Ok(None);
        };
        let entered = mpi.enter(call.name, None, 0).await?;
        let some = || {
            let some = end_some(requests, call.name);
            (!some.is_empty()).then_some(some)
        };
        let some = mpi.until_last(call.site, some).await;
        mpi.leave(entered).await;
        Ok(Some(some))
    }
}

/// Makes progress, and ends all of `requests` that are over (MPI_Testsome).
///
/// # Errors
/// As [`wait_some`].
pub async fn test_some<C: Channel>(
    requests: &mut [Request<'_, '_, C>],
) -> Result<Tested<Several>, MpiError> {
    let active = requests.iter().find(|request| request.is_active());
    let Some(mpi) = active.map(|request| request.mpi) else {
        return Ok(Tested::NoneActive);
    };
    let entered = mpi.enter("MPI_Testsome", None, 0).await?;
    mpi.progress().await;
    let some = end_some(requests, entered.call);
    mpi.leave(entered).await;
    Ok(match some.is_empty() {
        true => Tested::No,
        false => Tested::Yes(some),
    })
}
