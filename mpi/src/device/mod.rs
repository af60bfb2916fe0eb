//! The device: messages as packets over a channel, matching, and progress.
//!
//! A short message goes at once, with its data (*eager*); a longer one asks first and sends its data
//! when the receive is there (*rendezvous*), so that the receiver needs no room for data that no
//! receive wants yet. Progress is made inside calls only: one sweep writes all that the channel takes
//! and handles all that has arrived, for all requests of the rank.
//!
//! * `packet`: what goes over the channel.
//! * `matching`: which receive gets which message.
//! * `progress`: the sweep.
//!
//! Requests are known by their numbers. Data are bytes; nothing here knows a datatype or a communicator.

pub(crate) mod matching;
mod packet;
mod progress;

use std::collections::VecDeque;
use std::panic::Location;

use parking_lot::Mutex;
use slab::Slab;

use crate::channel::{Channel, Work};
use matching::{Envelope, Queues, Wanted};
use packet::{HEADER_BYTES, Header, Kind};

/// The longest message that is sent without asking, in bytes.
pub const EAGER_BYTES: usize = 16 << 10;

/// A place in a rank's program.
pub(crate) type Site = &'static Location<'static>;

/// The condition under which a send is over (MPI-4.1, Sec. 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its data may be changed: they have left, or the library has a copy.
    Standard,
    /// Its receive has begun, too.
    Synchronous,
}

/// A message that has been received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) envelope: Envelope,
    /// Its data, as many bytes of them as were wanted.
    pub(crate) bytes: Vec<u8>,
}

/// One rank's device.
#[derive(Debug)]
pub(crate) struct Device<C> {
    pub(crate) channel: C,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    requests: Slab<Request>,
    queues: Queues,
    /// Messages that have come unexpected, and what is there of their data.
    messages: Slab<Message>,
    /// By destination.
    outgoing: Vec<VecDeque<Outgoing>>,
    /// The destinations for which there are packets.
    busy: Vec<u32>,
    /// By source.
    incoming: Vec<Incoming>,
}

#[derive(Debug)]
enum Request {
    /// A send; whether it is over, and its data until they have been asked for.
    Send { is_over: bool, held: Vec<u8> },
    /// A receive of so many bytes at most.
    Receive {
        most: usize,
        received: Option<Received>,
    },
}

/// An unexpected message.
#[derive(Debug)]
struct Message {
    header: Header,
    bytes: Vec<u8>,
    is_complete: bool,
    /// The receive that has matched it meanwhile.
    receive: Option<usize>,
}

/// A packet that is to be sent.
#[derive(Debug)]
struct Outgoing {
    header: [u8; HEADER_BYTES],
    data: Vec<u8>,
    /// Bytes of both that the channel has taken.
    sent: usize,
    /// The request that is over when all has been.
    completes: Option<usize>,
}

/// A packet that is arriving.
#[derive(Debug, Default)]
struct Incoming {
    header: Vec<u8>,
    body: Option<Body>,
}

#[derive(Debug)]
struct Body {
    header: Header,
    to: To,
    bytes: Vec<u8>,
}

/// The destination of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Receive(usize),
    Message(usize),
}

impl<C: Channel> Device<C> {
    /// On `channel`.
    pub(crate) fn new(channel: C) -> Self {
        let ranks = channel.ranks() as usize;
        Self {
            channel,
            state: Mutex::new(State {
                requests: Slab::new(),
                queues: Queues::default(),
                messages: Slab::new(),
                busy: Vec::new(),
                outgoing: (0..ranks).map(|_| VecDeque::new()).collect(),
                incoming: (0..ranks).map(|_| Incoming::default()).collect(),
            }),
        }
    }

    /// Begins to send `bytes` to rank `to`.
    pub(crate) async fn send(
        &self,
        to: u32,
        (context, tag): (u32, i32),
        bytes: &[u8],
        mode: Mode,
    ) -> usize {
        self.channel.work(Work::Send, 1).await;
        let mut state = self.state.lock();
        let is_eager = bytes.len() <= EAGER_BYTES;
        let held = if is_eager { Vec::new() } else { bytes.to_vec() };
        let is_over = false;
        let request = state.requests.insert(Request::Send { is_over, held });
        let (kind, completes) = match (is_eager, mode) {
            (false, _) => (Kind::RequestToSend, None),
            (true, Mode::Synchronous) => (Kind::EagerSynchronous, None),
            (true, Mode::Standard) => (Kind::Eager, Some(request)),
        };
        let header = Header {
            kind,
            context,
            tag,
            sender: request as u32,
            receiver: 0,
            length: bytes.len() as u64,
        };
        let data = if is_eager { bytes.to_vec() } else { Vec::new() };
        state.queue(to, header, data, completes);
        request
    }

    /// Begins to receive at most `most` bytes.
    pub(crate) async fn receive(&self, wanted: Wanted, most: usize) -> usize {
        let (request, compared) = {
            let mut state = self.state.lock();
            let received = None;
            let request = state.requests.insert(Request::Receive { most, received });
            let (found, compared) = state.queues.post(wanted, request);
            if let Some((envelope, message)) = found {
                state.match_message(envelope, message, request);
            }
            (request, compared)
        };
        self.channel.work(Work::Match, compared).await;
        request
    }

    /// The first message that has come and fits, which stays.
    pub(crate) fn probe(&self, wanted: &Wanted) -> Option<Envelope> {
        self.state.lock().queues.probe(wanted)
    }

    /// Withdraws a receive; whether no message had matched it. Then the request is gone.
    pub(crate) fn cancel(&self, request: usize) -> bool {
        let mut state = self.state.lock();
        let withdrawn = state.queues.withdraw(request);
        if withdrawn {
            state.requests.try_remove(request);
        }
        withdrawn
    }

    /// Takes the outcome of a request that is over: the message of a receive, nothing of a send.
    pub(crate) fn take(&self, request: usize) -> Option<Option<Received>> {
        let mut state = self.state.lock();
        let is_over = match state.requests.get(request)? {
            Request::Send { is_over, .. } => *is_over,
            Request::Receive { received, .. } => received.is_some(),
        };
        if !is_over {
            return None;
        }
        match state.requests.try_remove(request)? {
            Request::Send { .. } => Some(None),
            Request::Receive { received, .. } => Some(received),
        }
    }

    /// Makes progress until `done` gives something; `site` is where the rank's program waits.
    pub(crate) async fn until<T>(
        &self,
        site: Site,
        mut done: impl FnMut() -> Option<T> + Send,
    ) -> T {
        loop {
            if let Some(outcome) = done() {
                return outcome;
            }
            let full = self.progress().await;
            if let Some(outcome) = done() {
                return outcome;
            }
            self.channel.wait(&full, site).await;
        }
    }

    /// Makes progress until all that was queued has been taken by the channel.
    pub(crate) async fn drain(&self, site: Site) {
        let is_empty = || self.state.lock().busy.is_empty().then_some(());
        self.until(site, is_empty).await;
    }
}

impl State {
    fn queue(&mut self, to: u32, header: Header, data: Vec<u8>, completes: Option<usize>) {
        let queue = &mut self.outgoing[to as usize];
        if queue.is_empty() {
            self.busy.push(to);
        }
        queue.push_back(Outgoing {
            header: header.to_bytes(),
            data,
            sent: 0,
            completes,
        });
    }

    /// `receive` has matched the unexpected `message`.
    fn match_message(&mut self, envelope: Envelope, message: usize, receive: usize) {
        let Some(found) = self.messages.get_mut(message) else {
            return;
        };
        let header = found.header;
        if header.kind == Kind::RequestToSend {
            self.messages.remove(message);
            return self.clears(envelope.from, header, receive);
        }
        if header.kind == Kind::EagerSynchronous {
            self.tells_matched(envelope.from, header);
        }
        let Some(found) = self.messages.get_mut(message) else {
            return;
        };
        match found.is_complete {
            true => {
                let bytes = std::mem::take(&mut found.bytes);
                self.messages.remove(message);
                self.delivers(receive, envelope, bytes);
            }
            false => found.receive = Some(receive),
        }
    }

    /// Tells rank `to` that the data of its message may come for `receive`.
    fn clears(&mut self, to: u32, header: Header, receive: usize) {
        let header = Header {
            kind: Kind::ClearToSend,
            receiver: receive as u32,
            ..header
        };
        self.queue(to, header, Vec::new(), None);
    }

    fn tells_matched(&mut self, to: u32, header: Header) {
        let kind = Kind::Matched;
        self.queue(to, Header { kind, ..header }, Vec::new(), None);
    }

    /// All of a message is there for `receive`.
    fn delivers(&mut self, receive: usize, envelope: Envelope, mut bytes: Vec<u8>) {
        if let Some(Request::Receive { most, received }) = self.requests.get_mut(receive) {
            bytes.truncate(*most);
            *received = Some(Received { envelope, bytes });
        }
    }

    fn completes(&mut self, send: usize) {
        if let Some(Request::Send { is_over, .. }) = self.requests.get_mut(send) {
            *is_over = true;
        }
    }
}
