//! Sends, receives, probes; statuses; the room for buffered sends.

use super::arguments::Arguments;
use super::objects::{Kind, no_such};
use super::rank::{Ended, Failure, SUCCESS};
use super::request::{General, Pending};
use super::server::Server;
use super::status::Fields;
use crate::buffer::Buffer;
use crate::channel::Channel;
use crate::comm::Comm;
use crate::error::ErrorClass;
use crate::rank::point::Message;
use crate::rank::{PROC_NULL, Request, Sent};

/// Calls a form of a send.
macro_rules! send {
    ($server:ident, $a:ident, $form:ident) => {{
        let (given, to, tag, comm) = ($a.buffer()?, $a.peer()?, $a.tag()?, $a.comm()?);
        $server.mpi.on(comm).$form(given.buffer(), to, tag).await?
    }};
}

/// Begins a form of a send.
macro_rules! isend {
    ($server:ident, $a:ident, $form:ident) => {{
        let request = send!($server, $a, $form);
        let at = $a.address();
        $server.begun($a, at, Pending::Call(request))
    }};
}

/// Makes a form of a persistent send.
macro_rules! send_init {
    ($server:ident, $a:ident, $form:ident) => {{
        let (given, to, tag, comm) = ($a.buffer()?, $a.peer()?, $a.tag()?, $a.comm()?);
        let persistent = $server.mpi.on(comm).$form(to, tag);
        let at = $a.address();
        $server.stands($a, at, persistent, (given.sent(), None))
    }};
}

impl<'m, C: Channel> Server<'m, C> {
    pub(super) async fn point(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Send" => send!(self, a, send),
            "Ssend" => send!(self, a, ssend),
            "Bsend" => send!(self, a, bsend),
            "Rsend" => send!(self, a, rsend),
            "Isend" => return isend!(self, a, isend),
            "Issend" => return isend!(self, a, issend),
            "Ibsend" => return isend!(self, a, ibsend),
            "Irsend" => return isend!(self, a, irsend),
            "Send_init" => return send_init!(self, a, send_init),
            "Ssend_init" => return send_init!(self, a, ssend_init),
            "Bsend_init" => return send_init!(self, a, bsend_init),
            "Rsend_init" => return send_init!(self, a, rsend_init),
            "Recv" => return self.receive(a).await,
            "Irecv" => {
                let (given, source, tag, comm) =
                    (a.buffer()?, a.source()?, a.wanted_tag()?, a.comm()?);
                let on = self.mpi.on(comm);
                let request = on.ireceive(given.room(), source, tag).await?;
                let at = a.address();
                return self.begun(a, at, Pending::Call(request));
            }
            "Recv_init" => {
                let (given, source, tag, comm) =
                    (a.buffer()?, a.source()?, a.wanted_tag()?, a.comm()?);
                let persistent = self.mpi.on(comm).receive_init(source, tag);
                let at = a.address();
                let nothing = Sent::Buffer(Buffer::empty());
                return self.stands(a, at, persistent, (nothing, Some(given)));
            }
            "Sendrecv" => return self.send_receive(a).await,
            "Sendrecv_replace" => return self.send_receive_replace(a).await,
            "Probe" => {
                let (source, tag, comm) = (a.source()?, a.wanted_tag()?, a.comm()?);
                let found = self.mpi.on(comm).probe(source, tag).await?;
                self.rank.put_message(a.address(), &found)?;
            }
            "Iprobe" => {
                let (source, tag, comm) = (a.source()?, a.wanted_tag()?, a.comm()?);
                let found = self.mpi.on(comm).iprobe(source, tag).await?;
                let (flag, status) = (a.out(), a.address());
                a.put_found(flag, found.is_some())?;
                if let Some(found) = found {
                    self.rank.put_message(status, &found)?;
                }
            }
            "Mprobe" => {
                let (source, tag, comm) = (a.source()?, a.wanted_tag()?, a.comm()?);
                let on = self.mpi.on(comm.clone());
                let message = on.matched_probe(source, tag).await?;
                let (at, status) = (a.address(), a.address());
                self.takes(a, (at, status), message, comm)?;
            }
            "Improbe" => {
                let (source, tag, comm) = (a.source()?, a.wanted_tag()?, a.comm()?);
                let on = self.mpi.on(comm.clone());
                let message = on.try_matched_probe(source, tag).await?;
                let (flag, at, status) = (a.out(), a.address(), a.address());
                a.put(flag, message.is_some().into())?;
                match message {
                    Some(message) => self.takes(a, (at, status), message, comm)?,
                    None => a.put_null(at, "MESSAGE_NULL")?,
                }
            }
            "Mrecv" | "Imrecv" => return self.receive_message(a).await,
            "Wait" => return self.one(a, true).await,
            "Test" => return self.one(a, false).await,
            "Waitall" => return self.all(a, true).await,
            "Testall" => return self.all(a, false).await,
            "Waitany" => return self.any(a, true).await,
            "Testany" => return self.any(a, false).await,
            "Waitsome" => return self.some(a, true).await,
            "Testsome" => return self.some(a, false).await,
            "Request_get_status" => return self.look(a).await,
            "Request_get_status_all" | "Request_get_status_any" | "Request_get_status_some" => {
                return self.look_at_several(a).await;
            }
            "Isendrecv" | "Isendrecv_replace" => return self.begins_both(a).await,
            "Request_free" => return self.free_request(a),
            "Start" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                self.start(handle).await?;
            }
            "Startall" => {
                let count = a.length()?;
                let at = a.address();
                for handle in a.handles_at(at, count)? {
                    self.start(handle).await?;
                }
            }
            "Cancel" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                return self.cancel(handle);
            }
            "Grequest_start" => {
                let general = General {
                    query: a.address(),
                    free: a.address(),
                    cancel: a.address(),
                    extra: a.address(),
                    is_complete: false,
                };
                let at = a.address();
                return self.begun(a, at, Pending::General(general));
            }
            "Grequest_complete" => {
                let handle = a.handle();
                match self.requests.get_mut(&handle) {
                    Some(Pending::General(general)) => general.is_complete = true,
                    _ => return Err(no_such(ErrorClass::Request, "generalized request", handle)),
                }
            }
            "Buffer_attach" => return self.attach(a, 0).await,
            "Buffer_detach" => return self.detach(a, 0).await,
            "Comm_attach_buffer" | "Session_attach_buffer" => {
                let to = a.handle();
                return self.attach(a, to).await;
            }
            "Comm_detach_buffer" | "Session_detach_buffer" => {
                let from = a.handle();
                return self.detach(a, from).await;
            }
            "Buffer_iflush" | "Comm_iflush_buffer" | "Session_iflush_buffer" => {
                if a.call.name != "Buffer_iflush" {
                    a.skip();
                }
                // The messages in the buffer leave at once: there is nothing to wait for.
                self.mpi.drain().await;
                let over = Pending::Call(Request::null(self.mpi));
                let at = a.address();
                return self.begun(a, at, over);
            }
            "Buffer_flush" | "Comm_flush_buffer" | "Session_flush_buffer" => self.mpi.drain().await,
            _ => return self.rank.statuses(a),
        }
        SUCCESS
    }

    /// Attaches room for buffered sends to an object. There is one room, as large as all of these
    /// together.
    async fn attach(&mut self, a: &mut Arguments<'_>, to: u64) -> Ended {
        let (address, bytes) = (a.address(), a.count()? as u64);
        if self.attached.contains_key(&to) {
            let text = "buffer: a buffer is attached already";
            return Err(Failure::new(ErrorClass::Buffer, text));
        }
        let before: u64 = self.attached.values().map(|(_, bytes)| bytes).sum();
        if before > 0 {
            self.mpi.detach_buffer().await?;
        }
        self.mpi.attach_buffer(before.saturating_add(bytes))?;
        self.attached.insert(to, (address, bytes));
        SUCCESS
    }

    /// Detaches the room of an object when all that is in it has left.
    async fn detach(&mut self, a: &mut Arguments<'_>, from: u64) -> Ended {
        let (address, size) = (a.address(), a.out());
        let Some((begin, bytes)) = self.attached.remove(&from) else {
            let text = "buffer: no buffer is attached";
            return Err(Failure::new(ErrorClass::Buffer, text));
        };
        self.mpi.detach_buffer().await?;
        let left: u64 = self.attached.values().map(|(_, bytes)| bytes).sum();
        if left > 0 {
            self.mpi.attach_buffer(left)?;
        }
        self.rank.put_numbers(address, &[begin as i64], 8)?;
        a.put(size, bytes as i64)?;
        SUCCESS
    }

    async fn receive(&mut self, a: &mut Arguments<'_>) -> Ended {
        let (given, source, tag, comm) = (a.buffer()?, a.source()?, a.wanted_tag()?, a.comm()?);
        let ended = self.mpi.on(comm).receive(given.room(), source, tag).await;
        self.rank.put_end(a.address(), ended)?;
        SUCCESS
    }

    async fn send_receive(&mut self, a: &mut Arguments<'_>) -> Ended {
        let sent = (a.buffer()?, a.peer()?, a.tag()?);
        let came = (a.buffer()?, a.source()?, a.wanted_tag()?);
        let on = self.mpi.on(a.comm()?);
        let ended = on
            .send_receive(
                (sent.0.buffer(), sent.1, sent.2),
                (came.0.room(), came.1, came.2),
            )
            .await;
        self.rank.put_end(a.address(), ended)?;
        SUCCESS
    }

    async fn send_receive_replace(&mut self, a: &mut Arguments<'_>) -> Ended {
        let given = a.buffer()?;
        let (to, from) = ((a.peer()?, a.tag()?), (a.source()?, a.wanted_tag()?));
        let on = self.mpi.on(a.comm()?);
        let ended = on.send_receive_replace(given.room(), to, from).await;
        self.rank.put_end(a.address(), ended)?;
        SUCCESS
    }

    /// MPI_Isendrecv, MPI_Isendrecv_replace.
    async fn begins_both(&mut self, a: &mut Arguments<'_>) -> Ended {
        let sent = a.buffer()?;
        let to = (a.peer()?, a.tag()?);
        let came = match a.call.name {
            "Isendrecv" => a.buffer()?,
            _ => sent.clone(),
        };
        let from = (a.source()?, a.wanted_tag()?);
        let on = self.mpi.on(a.comm()?);
        // The data to send are taken before any come.
        let send = on.isend(sent.buffer(), to.0, to.1).await?;
        let receive = on.ireceive(came.room(), from.0, from.1).await?;
        let at = a.address();
        self.begun(a, at, Pending::Both(Box::new([receive, send])))
    }

    /// Gives a message that a probe has taken a handle.
    fn takes(
        &mut self,
        a: &Arguments<'_>,
        (at, status): (u64, u64),
        message: Message,
        comm: Comm,
    ) -> Result<(), Failure> {
        self.rank.put_message(status, &message.status)?;
        if message.status.source == PROC_NULL {
            return a.put_null(at, "MESSAGE_NO_PROC");
        }
        let handle = a.new_handle(Kind::Message);
        self.messages.insert(handle, (message, comm));
        self.subjects.insert(handle, *self.rank.about.lock());
        a.put_handle(at, handle)
    }

    async fn receive_message(&mut self, a: &mut Arguments<'_>) -> Ended {
        let given = a.buffer()?;
        let at = a.address();
        let handle = a.handle_at(at)?;
        let is_no_process = handle == a.interface().handle("MESSAGE_NO_PROC");
        let (message, comm) = match is_no_process {
            true => (Message::NO_PROCESS, self.mpi.own().handle().clone()),
            false => {
                self.is_about_subject(handle);
                self.subjects.remove(&handle);
                let taken = self.messages.remove(&handle);
                taken.ok_or_else(|| no_such(ErrorClass::Request, "message", handle))?
            }
        };
        a.put_null(at, "MESSAGE_NULL")?;
        let on = self.mpi.on(comm);
        if a.call.name == "Imrecv" {
            let request = on.ireceive_message(message, given.room()).await?;
            let at = a.address();
            return self.begun(a, at, Pending::Call(request));
        }
        let ended = on.receive_message(message, given.room()).await;
        self.rank.put_end(a.address(), ended)?;
        SUCCESS
    }
}

impl super::rank::Rank {
    /// The calls about a status.
    pub(super) fn statuses(&self, a: &mut Arguments<'_>) -> Ended {
        let name = a.call.name;
        let at = a.address();
        if !name.starts_with("Status_") && name != "Test_cancelled" {
            return self.unsupported(a);
        }
        if name.contains("2c") || name.contains("2f") {
            // A status in Fortran is laid out as one in C.
            let to = a.address();
            let bytes = self.read(at, super::status::bytes_of(self.interface) as usize)?;
            self.write(to, &bytes)?;
            return SUCCESS;
        }
        let fields = self.status(at)?;
        match name {
            "Test_cancelled" => {
                let flag = a.out();
                a.put(flag, fields.is_cancelled.into())?;
            }
            "Status_get_source" => {
                let out = a.out();
                a.put(out, fields.source.into())?;
            }
            "Status_get_tag" => {
                let out = a.out();
                a.put(out, fields.tag.into())?;
            }
            "Status_get_error" => {
                let out = a.out();
                a.put(out, fields.error.into())?;
            }
            "Status_set_source" => {
                let source = a.number() as i32;
                self.put_status(at, Fields { source, ..fields })?;
            }
            "Status_set_tag" => {
                let tag = a.number() as i32;
                self.put_status(at, Fields { tag, ..fields })?;
            }
            "Status_set_error" => {
                let error = a.number() as i32;
                self.put_status(at, Fields { error, ..fields })?;
            }
            "Status_set_cancelled" => {
                let is_cancelled = a.flag();
                self.put_status(
                    at,
                    Fields {
                        is_cancelled,
                        ..fields
                    },
                )?;
            }
            "Status_set_elements" | "Status_set_elements_x" => {
                let (datatype, count) = (a.datatype()?, a.count()?);
                // Basic elements of a datatype of one type.
                let size = datatype
                    .basic()
                    .map_or(datatype.size(), |basic| basic.size() as i64);
                let bytes = (count.saturating_mul(size)) as u64;
                self.put_status(at, Fields { bytes, ..fields })?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }
}
