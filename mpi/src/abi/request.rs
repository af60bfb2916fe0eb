//! Requests: what has begun and has not been waited for, in all forms of waiting.

use std::panic::Location;

use super::arguments::{Arguments, Given};
use super::objects::{Kind, no_such};
use super::partitioned::Partitioned;
use super::rank::{About, Ended, Failure, SUCCESS};
use super::server::Server;
use super::status::Fields;
use crate::buffer::BufferMut;
use crate::channel::Channel;
use crate::error::ErrorClass;
use crate::rank::communicators::Duplicating;
use crate::rank::persistent::Persistent;
use crate::rank::{Request, Sent, Status};

/// The call, or calls, behind the handle of a request.
pub(super) enum Pending<'m, C> {
    /// A call that has begun.
    Call(Request<'m, 'static, C>),
    /// A receive and a send that have begun together: the receive's status is that of both.
    Both(Box<[Request<'m, 'static, C>; 2]>),
    /// A persistent request.
    Persistent(Box<Standing<'m, C>>),
    /// A send or a receive in partitions.
    Partitioned(Box<Partitioned<'m, C>>),
    /// A duplicate of a communicator, which will have this handle and error handler.
    Duplicate(Box<Duplicating<'m, C>>, u64, u64),
    /// A request of the program's own.
    General(General),
}

/// A persistent request with its buffers.
pub(super) struct Standing<'m, C> {
    pub(super) persistent: Persistent<'m, C>,
    pub(super) sent: Sent<'static>,
    pub(super) room: Option<Given>,
    pub(super) request: Request<'m, 'static, C>,
}

/// A generalized request: its functions, their argument, and whether it is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct General {
    pub(super) query: u64,
    pub(super) free: u64,
    pub(super) cancel: u64,
    pub(super) extra: u64,
    pub(super) is_complete: bool,
}

impl<C: Channel> Pending<'_, C> {
    fn is_active(&self) -> bool {
        match self {
            Self::Call(request) => request.is_active(),
            Self::Both(both) => both.iter().any(Request::is_active),
            Self::Persistent(standing) => standing.request.is_active(),
            Self::Partitioned(parts) => parts.is_active(),
            Self::Duplicate(..) | Self::General(_) => true,
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Call(request) => request.is_over(),
            Self::Both(both) => both.iter().all(Request::is_over),
            Self::Persistent(standing) => standing.request.is_over(),
            Self::Partitioned(parts) => parts.is_over(),
            Self::Duplicate(duplicating, ..) => duplicating.is_over(),
            Self::General(general) => general.is_complete,
        }
    }
}

impl<C: Channel> Pending<'_, C> {
    /// The status of one that is over, which stays as it is.
    async fn look(&self) -> Result<Option<Status>, Failure> {
        Ok(match self {
            Self::Call(request) => request.look().await?,
            Self::Both(both) if !both[1].is_over() => None,
            Self::Both(both) => both[0].look().await?,
            Self::Persistent(standing) => standing.request.look().await?,
            Self::Partitioned(parts) => parts.look(),
            Self::Duplicate(..) | Self::General(_) => self.is_over().then_some(Status::EMPTY),
        })
    }
}

/// Which of several requests a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    All,
    Any,
}

impl<'m, C: Channel> Server<'m, C> {
    /// Gives a request a handle, and writes that to an address.
    pub(super) fn begun(&mut self, a: &Arguments<'_>, at: u64, pending: Pending<'m, C>) -> Ended {
        self.begins_request(a, at, pending)?;
        SUCCESS
    }

    /// The same; the handle.
    pub(super) fn begins_request(
        &mut self,
        a: &Arguments<'_>,
        at: u64,
        pending: Pending<'m, C>,
    ) -> Result<u64, Failure> {
        let handle = a.new_handle(Kind::Request);
        self.requests.insert(handle, pending);
        self.subjects.insert(handle, *self.rank.about.lock());
        a.put_handle(at, handle)?;
        Ok(handle)
    }

    /// Makes a call that is about nothing else one about the communicator, the window or the file
    /// of a request or message: that raises its error.
    pub(super) fn is_about_subject(&self, handle: u64) {
        let mut about = self.rank.about.lock();
        if *about == About::Nothing {
            *about = self.subjects.get(&handle).copied().unwrap_or_default();
        }
    }

    /// Gives a persistent request a handle.
    pub(super) fn stands(
        &mut self,
        a: &Arguments<'_>,
        at: u64,
        persistent: Persistent<'m, C>,
        (sent, room): (Sent<'static>, Option<Given>),
    ) -> Ended {
        let request = persistent.request();
        let standing = Standing {
            persistent,
            sent,
            room,
            request,
        };
        self.begun(a, at, Pending::Persistent(Box::new(standing)))
    }

    fn null(&self) -> u64 {
        self.rank.interface.handle("REQUEST_NULL")
    }

    /// Checks that these are requests, or null.
    fn check(&self, handles: &[u64]) -> Result<(), Failure> {
        let null = self.null();
        let is_known = |handle: &&u64| **handle == null || self.requests.contains_key(handle);
        match handles.iter().find(|handle| !is_known(handle)) {
            Some(&handle) => Err(no_such(ErrorClass::Request, "request", handle)),
            None => Ok(()),
        }
    }

    fn is_active(&self, handle: u64) -> bool {
        self.requests.get(&handle).is_some_and(Pending::is_active)
    }

    fn is_over(&self, handle: u64) -> bool {
        self.requests.get(&handle).is_none_or(Pending::is_over)
    }

    /// Waits until all of these are over, or any that is active, in the call of this name.
    async fn until(
        &self,
        call: &'static str,
        handles: &[u64],
        until: Until,
    ) -> Result<(), Failure> {
        let mpi = self.mpi;
        let entered = mpi.enter(call, None, 0).await?;
        let ready = || {
            let mut handles = handles.iter();
            let is_ready = match until {
                Until::All => handles.all(|&handle| self.is_over(handle)),
                Until::Any => handles.any(|&handle| self.is_active(handle) && self.is_over(handle)),
            };
            is_ready.then_some(())
        };
        mpi.until_last(Location::caller(), ready).await;
        mpi.leave(entered).await;
        Ok(())
    }

    /// Makes the progress that can be made at once.
    pub(super) async fn progress(&self, call: &'static str) -> Result<(), Failure> {
        let entered = self.mpi.enter(call, None, 0).await?;
        self.mpi.progress().await;
        self.mpi.leave(entered).await;
        Ok(())
    }

    /// Ends a request that is over, and makes the call about its subject if it has failed; its
    /// handle from now on.
    fn end(&mut self, call: &'static str, handle: u64) -> (Result<Status, Failure>, u64) {
        let (outcome, now) = self.end_of(call, handle);
        if outcome.is_err() {
            self.is_about_subject(handle);
        }
        if now != handle {
            self.subjects.remove(&handle);
        }
        (outcome, now)
    }

    /// The outcome of a request that is over; its handle from now on.
    fn end_of(&mut self, call: &'static str, handle: u64) -> (Result<Status, Failure>, u64) {
        let null = self.null();
        let Some(pending) = self.requests.get_mut(&handle) else {
            return (Ok(Status::EMPTY), null);
        };
        let ended = match pending {
            Pending::Call(request) => request.end(call).map(|ended| ended.map_err(Failure::from)),
            Pending::Both(both) => {
                let [receive, send] = &mut **both;
                let sent = send.end(call).and_then(Result::err);
                let ended = receive.end(call).unwrap_or(Ok(Status::EMPTY));
                let ended = sent.map_or(ended, Err);
                Some(ended.map_err(Failure::from))
            }
            Pending::Persistent(standing) => {
                let ended = standing.request.end(call);
                let outcome = ended.unwrap_or(Ok(Status::EMPTY)).map_err(Failure::from);
                return (outcome, handle);
            }
            Pending::Partitioned(parts) => return (parts.end(call), handle),
            Pending::Duplicate(duplicating, place, handler) => duplicating.take().map(|made| {
                let comm = made.map_err(Failure::from)?.handle().clone();
                let mut objects = self.rank.objects.lock();
                let attributes = objects
                    .comms
                    .get(place)
                    .map(|old| old.object.attributes.clone());
                objects.set_comm(*place, comm, ("", *handler));
                if let (Some(object), Some(attributes)) = (objects.comms.get_mut(place), attributes)
                {
                    object.object.attributes = attributes;
                }
                Ok(Status::EMPTY)
            }),
            Pending::General(general) => {
                let general = *general;
                Some(self.general_ends(&general))
            }
        };
        self.requests.remove(&handle);
        let outcome = ended.unwrap_or(Ok(Status::EMPTY));
        (outcome, null)
    }

    /// A generalized request ends: its status, as its function tells it.
    fn general_ends(&self, general: &General) -> Result<Status, Failure> {
        let rank = &self.rank;
        let at = rank.gives(&[0; 4]);
        let code = rank.invoke(general.query, &[general.extra, at])? as i32;
        let told = rank.status(at)?;
        let freed = rank.invoke(general.free, &[general.extra])? as i32;
        match if code == 0 { freed } else { code } {
            0 => Ok(Status {
                source: told.source as u32,
                tag: told.tag,
                bytes: told.bytes,
                is_cancelled: told.is_cancelled,
            }),
            code => Err(Failure::Code(code)),
        }
    }

    /// MPI_Wait, MPI_Test.
    pub(super) async fn one(&mut self, a: &mut Arguments<'_>, waits: bool) -> Ended {
        let at = a.address();
        let handle = a.handle_at(at)?;
        self.check(&[handle])?;
        let flag = match waits {
            true => {
                if self.is_active(handle) {
                    self.until("MPI_Wait", &[handle], Until::All).await?;
                }
                None
            }
            false => {
                let flag = a.out();
                self.progress("MPI_Test").await?;
                if !self.is_over(handle) {
                    a.put_found(flag, false)?;
                    return SUCCESS;
                }
                Some(flag)
            }
        };
        let status = a.address();
        let call = if waits { "MPI_Wait" } else { "MPI_Test" };
        let (ended, handle) = self.end(call, handle);
        a.put_handle(at, handle)?;
        if let Some(flag) = flag {
            a.put(flag, 1)?;
        }
        self.rank.put_end(status, ended)?;
        SUCCESS
    }

    /// MPI_Waitall, MPI_Testall.
    pub(super) async fn all(&mut self, a: &mut Arguments<'_>, waits: bool) -> Ended {
        let count = a.length()?;
        let at = a.address();
        let mut handles = a.handles_at(at, count)?;
        self.check(&handles)?;
        let call = if waits { "MPI_Waitall" } else { "MPI_Testall" };
        let flag = if waits { None } else { Some(a.out()) };
        let statuses = a.address();
        if let Some(flag) = flag {
            self.progress(call).await?;
            let are_over = handles.iter().all(|&handle| self.is_over(handle));
            a.put_found(flag, are_over)?;
            if !are_over {
                return SUCCESS;
            }
        } else if handles.iter().any(|&handle| self.is_active(handle)) {
            self.until(call, &handles, Until::All).await?;
        }
        let mut ends = Vec::with_capacity(count);
        for handle in &mut handles {
            let (ended, now) = self.end(call, *handle);
            *handle = now;
            ends.push(ended);
        }
        a.put_handles(at, &handles)?;
        self.put_statuses(statuses, ends)
    }

    /// Writes the statuses of several requests; MPI_ERR_IN_STATUS if any has failed.
    fn put_statuses(&self, at: u64, ends: Vec<Result<Status, Failure>>) -> Ended {
        let rank = &self.rank;
        let has_failed = ends.iter().any(Result::is_err);
        let mut first = None;
        let step = super::status::bytes_of(rank.interface);
        for (place, outcome) in (0..).zip(ends) {
            let ignored = at == rank.interface.handle("STATUSES_IGNORE") || at == 0;
            let (status, error) = match outcome {
                Ok(status) => (status, 0),
                Err(Failure::Gone) => return Err(Failure::Gone),
                Err(Failure::Code(code)) => (Status::EMPTY, code),
                Err(Failure::Wrong {
                    class,
                    text,
                    truncated,
                }) => {
                    first.get_or_insert(text);
                    let status = truncated.map_or(Status::EMPTY, Status::from);
                    (status, rank.code(class) as i32)
                }
            };
            if ignored {
                continue;
            }
            let at = at + place * step;
            match has_failed {
                false => rank.put_message(at, &status)?,
                true => {
                    let fields = Fields::of(&status, rank.interface);
                    rank.put_status(at, Fields { error, ..fields })?;
                }
            }
        }
        match has_failed {
            false => SUCCESS,
            true => Err(Failure::new(
                ErrorClass::InStatus,
                first.unwrap_or_else(|| "a request has failed".to_owned()),
            )),
        }
    }

    /// MPI_Waitany, MPI_Testany.
    pub(super) async fn any(&mut self, a: &mut Arguments<'_>, waits: bool) -> Ended {
        let count = a.length()?;
        let at = a.address();
        let handles = a.handles_at(at, count)?;
        self.check(&handles)?;
        let call = if waits { "MPI_Waitany" } else { "MPI_Testany" };
        let index = a.out();
        let flag = if waits { None } else { Some(a.out()) };
        let status = a.address();
        let is_any_active = handles.iter().any(|&handle| self.is_active(handle));
        match waits {
            true if is_any_active => self.until(call, &handles, Until::Any).await?,
            true => {}
            false => self.progress(call).await?,
        }
        let mut places = 0..count;
        let over = places.find(|&place| {
            let handle = handles[place];
            self.is_active(handle) && self.is_over(handle)
        });
        if let Some(flag) = flag {
            a.put_found(flag, over.is_some() || !is_any_active)?;
        }
        a.put_or_undefined(index, over.map(|place| place as i64))?;
        let Some(place) = over else {
            if !is_any_active {
                self.rank.put_message(status, &Status::EMPTY)?;
            }
            return SUCCESS;
        };
        let (ended, handle) = self.end(call, handles[place]);
        let step = a.interface().handle_bytes() as u64;
        a.put_handle(at + place as u64 * step, handle)?;
        self.rank.put_end(status, ended)?;
        SUCCESS
    }

    /// MPI_Waitsome, MPI_Testsome.
    pub(super) async fn some(&mut self, a: &mut Arguments<'_>, waits: bool) -> Ended {
        let count = a.length()?;
        let at = a.address();
        let mut handles = a.handles_at(at, count)?;
        self.check(&handles)?;
        let call = if waits {
            "MPI_Waitsome"
        } else {
            "MPI_Testsome"
        };
        let (number, indices, statuses) = (a.out(), a.out(), a.address());
        if !handles.iter().any(|&handle| self.is_active(handle)) {
            a.put_or_undefined(number, None)?;
            return SUCCESS;
        }
        match waits {
            true => self.until(call, &handles, Until::Any).await?,
            false => self.progress(call).await?,
        }
        let (mut places, mut ends) = (Vec::new(), Vec::new());
        for (place, handle) in (0..).zip(&mut handles) {
            if !self.is_active(*handle) || !self.is_over(*handle) {
                continue;
            }
            let (ended, now) = self.end(call, *handle);
            *handle = now;
            places.push(place);
            ends.push(ended);
        }
        a.has_found = Some(!places.is_empty());
        a.put_handles(at, &handles)?;
        a.put(number, places.len() as i64)?;
        a.put_all(indices, &places)?;
        self.put_statuses(statuses, ends)
    }

    /// MPI_Request_get_status.
    pub(super) async fn look(&mut self, a: &mut Arguments<'_>) -> Ended {
        let handle = a.handle();
        self.check(&[handle])?;
        let (flag, status) = (a.out(), a.address());
        self.progress("MPI_Request_get_status").await?;
        let seen = match self.requests.get(&handle) {
            Some(pending) => pending.look().await?,
            None => Some(Status::EMPTY),
        };
        a.put(flag, seen.is_some().into())?;
        if let Some(seen) = seen {
            self.rank.put_message(status, &seen)?;
        }
        SUCCESS
    }

    /// MPI_Request_get_status_all, MPI_Request_get_status_any, MPI_Request_get_status_some.
    pub(super) async fn look_at_several(&mut self, a: &mut Arguments<'_>) -> Ended {
        let count = a.length()?;
        let at = a.address();
        let handles = a.handles_at(at, count)?;
        self.check(&handles)?;
        self.progress("MPI_Request_get_status").await?;
        let mut seen = Vec::new();
        for (place, handle) in (0..).zip(&handles) {
            let looked = match self.requests.get(handle) {
                Some(pending) => pending.look().await?,
                None => Some(Status::EMPTY),
            };
            seen.push((place, self.is_active(*handle), looked));
        }
        let is_any_active = seen.iter().any(|(_, is_active, _)| *is_active);
        let over = |(place, is_active, looked): &(i64, bool, Option<Status>)| {
            looked.filter(|_| *is_active).map(|status| (*place, status))
        };
        let step = super::status::bytes_of(a.interface());
        match a.call.name {
            "Request_get_status_all" => {
                let (flag, statuses) = (a.out(), a.address());
                let all: Option<Vec<Status>> = seen.iter().map(|(_, _, looked)| *looked).collect();
                a.put(flag, all.is_some().into())?;
                return match all {
                    Some(all) => self.put_statuses(statuses, all.into_iter().map(Ok).collect()),
                    None => SUCCESS,
                };
            }
            "Request_get_status_any" => {
                let (index, flag, status) = (a.out(), a.out(), a.address());
                let first = seen.iter().find_map(over);
                a.put_or_undefined(index, first.map(|(place, _)| place))?;
                a.put(flag, (first.is_some() || !is_any_active).into())?;
                if first.is_some() || !is_any_active {
                    let shown = first.map_or(Status::EMPTY, |(_, status)| status);
                    self.rank.put_message(status, &shown)?;
                }
            }
            _ => {
                let (number, indices, statuses) = (a.out(), a.out(), a.address());
                let some: Vec<(i64, Status)> = seen.iter().filter_map(over).collect();
                let count = Some(some.len() as i64).filter(|_| is_any_active);
                a.put_or_undefined(number, count)?;
                let places: Vec<i64> = some.iter().map(|(place, _)| *place).collect();
                a.put_all(indices, &places)?;
                for (place, (_, status)) in (0..).zip(&some) {
                    if statuses != a.interface().handle("STATUSES_IGNORE") {
                        self.rank.put_message(statuses + place * step, status)?;
                    }
                }
            }
        }
        SUCCESS
    }

    /// MPI_Start of the request with this handle.
    pub(super) async fn start(&mut self, handle: u64) -> Result<(), Failure> {
        self.is_about_subject(handle);
        let standing = match self.requests.get_mut(&handle) {
            Some(Pending::Persistent(standing)) => standing,
            Some(Pending::Partitioned(parts)) => return parts.start().await,
            _ => return Err(no_such(ErrorClass::Request, "persistent request", handle)),
        };
        let room = match &standing.room {
            Some(given) => given.room(),
            None => BufferMut::empty(),
        };
        let sent = standing.sent.clone();
        standing.request = standing.persistent.start_both(sent, room).await?;
        Ok(())
    }

    /// MPI_Cancel.
    pub(super) fn cancel(&mut self, handle: u64) -> Ended {
        self.is_about_subject(handle);
        match self.requests.get_mut(&handle) {
            Some(Pending::Call(request)) => request.cancel()?,
            Some(Pending::Both(both)) => both[0].cancel()?,
            Some(Pending::Persistent(standing)) => standing.request.cancel()?,
            Some(Pending::General(general)) => {
                let general = *general;
                let is_complete = general.is_complete.into();
                let code = self
                    .rank
                    .invoke(general.cancel, &[general.extra, is_complete])?;
                if code as i32 != 0 {
                    return Err(Failure::Code(code as i32));
                }
            }
            _ => return Err(no_such(ErrorClass::Request, "request", handle)),
        }
        SUCCESS
    }

    /// MPI_Request_free.
    pub(super) fn free_request(&mut self, a: &mut Arguments<'_>) -> Ended {
        let at = a.address();
        let handle = a.handle_at(at)?;
        self.is_about_subject(handle);
        if let Some(Pending::Partitioned(parts)) = self.requests.get(&handle) {
            parts.free()?;
        }
        self.subjects.remove(&handle);
        match self.requests.remove(&handle) {
            Some(Pending::Call(mut request)) => request.free()?,
            Some(Pending::Both(mut both)) => both.iter_mut().try_for_each(Request::free)?,
            Some(Pending::Persistent(mut standing)) => {
                if standing.request.is_active() {
                    standing.request.free()?;
                }
            }
            Some(Pending::General(general)) => {
                let code = self.rank.invoke(general.free, &[general.extra])? as i32;
                if code != 0 {
                    return Err(Failure::Code(code));
                }
            }
            Some(Pending::Partitioned(_) | Pending::Duplicate(..)) => {}
            None => return Err(no_such(ErrorClass::Request, "request", handle)),
        }
        a.put_handle(at, self.null())?;
        SUCCESS
    }
}
