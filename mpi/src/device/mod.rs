//! The device of one rank: messages as packets, matching, requests and progress. It knows neither
//! the channel that carries the packets nor datatypes nor communicators: data are bytes, ranks are
//! those of the job, and a context keeps the messages of different communicators apart.
//!
//! A short message goes at once, with its data (*eager*); a longer one asks first and sends its
//! data when the receive is there (*rendezvous*), so that the receiver needs no room for data that
//! no receive wants yet.
//!
//! * `packet`: the packets.
//! * `matching`: which receive gets which message.
//! * `arrival`: the handling of a packet.
//! * `cancel`: requests that are taken back.
//! * `parting`: what is under way when ranks end, or part.
//! * `active`: packets for handlers, which no receive matches.
//! * `direct`: data that go straight to a place of the receiver's, and `pairs`: which go where.
//! * `tasks`: calls of several messages, such as a broadcast, each an `async` function that is
//!   polled when a request of the rank has ended.
//! * `driver`: the sweep over the channel, which is the only place that waits.
//!
//! Starting a request takes no time: the device notes what the work costs ([`Device::take_owed`]),
//! and the driver charges it.

pub(crate) mod active;
mod arrival;
mod cancel;
pub(crate) mod direct;
pub(crate) mod driver;
pub(crate) mod matching;
pub(crate) mod packet;
mod pairs;
pub(crate) mod parting;
mod tasks;

use std::collections::VecDeque;
use std::mem::take;

use parking_lot::Mutex;
use slab::Slab;

use crate::channel::transfers::Abilities;
use crate::error::Fault;
use crate::peers::Peers;
use crate::processor::Work;
use active::Handlers;
use direct::{Direct, Landing, Way};
use matching::{Envelope, Queues, Wanted};
use packet::{HEADER_BYTES, Header, Kind};
pub(crate) use tasks::Task;

/// The condition under which a send is over (MPI-4.1, Sec. 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Its data may be changed: they have left, or the library has a copy.
    Standard,
    /// Its receive has begun, too.
    Synchronous,
    /// At once: the library has a copy of its data in the buffer that the rank attached.
    Buffered,
}

/// The way in which a program waits for a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallForm {
    /// The call that sends ends with it.
    Blocking,
    /// The call returns at once, and another one waits.
    Immediate,
    /// The send or receive is a part of another call. Without data it is a control message, as
    /// those of the library.
    Task,
}

/// The head of a message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) context: u64,
    pub(crate) tag: i32,
    /// The collective call that it belongs to, 0 for none, and that call's root.
    pub(crate) call: u8,
    pub(crate) root: u16,
    /// The simulated address of its data in the rank's own memory, where they have one.
    pub(crate) address: Option<u64>,
}

impl Head {
    fn header(&self, kind: Kind, request: usize, length: u64) -> Header {
        Header {
            kind,
            call: self.call,
            root: self.root,
            context: self.context,
            tag: self.tag,
            sender: request as u32,
            receiver: 0,
            length,
        }
    }
}

/// The end of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The message of a receive.
    pub(crate) envelope: Option<Envelope>,
    /// The data of a receive, as many bytes of them as were wanted, or the result of a task.
    pub(crate) bytes: Vec<u8>,
    /// Whether the request has been cancelled.
    pub(crate) is_cancelled: bool,
    /// The error of a task.
    pub(crate) fault: Option<Fault>,
}

/// The maker of a context: a rank of the job, and the number of its process, of which the last 4096
/// at one rank are told apart.
pub(crate) type Maker = (u32, u32);

/// One rank's device.
pub(crate) struct Device {
    rank: u32,
    ranks: u32,
    birth: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: Slab<Request>,
    queues: Queues,
    /// Messages that have come unexpected, and the part of their data that is there.
    messages: Slab<Message>,
    /// By destination.
    outgoing: Peers<VecDeque<Outgoing>>,
    /// The destinations for which there are packets.
    busy: Vec<u32>,
    /// By source.
    incoming: Peers<Incoming>,
    handlers: Handlers,
    running: Vec<(usize, Task)>,
    /// Whether any activity has ended since the tasks were polled last.
    is_changed: bool,
    owed: Vec<(Work, u32)>,
    /// Contexts that this rank has made.
    contexts: u32,
    buffered: Buffered,
    /// Messages whose sends have begun.
    sends: u64,
    /// The longest message that is sent with its data, where there are such.
    eager_bytes: Option<u64>,
    /// Of a channel that has transfers.
    direct: Option<Direct>,
}

/// The buffer for buffered sends (MPI_Buffer_attach), of which only the size matters.
#[derive(Debug, Default)]
struct Buffered {
    room: u64,
    used: u64,
}

struct Request {
    activity: Activity,
    /// None while it is under way.
    outcome: Option<Outcome>,
    /// Whether the owner has freed the request and does not want to hear of its end.
    is_freed: bool,
}

enum Activity {
    /// The destination, and the data until they have been asked for.
    Send {
        to: u32,
        mode: Mode,
        bytes: u64,
        held: Vec<u8>,
        address: Option<u64>,
        way: Way,
    },
    /// Of so many bytes at most, and the place for them if there is one.
    Receive {
        most: usize,
        address: Option<u64>,
        place: Option<Landing>,
    },
    /// A task.
    Task,
}

/// An unexpected message.
#[derive(Debug)]
struct Message {
    from: u32,
    header: Header,
    bytes: Vec<u8>,
    is_complete: bool,
    /// The receive that has matched it meanwhile.
    receive: Option<usize>,
}

/// A packet that is to be sent.
#[derive(Debug)]
struct Outgoing {
    header: Vec<u8>,
    data: Vec<u8>,
    /// The simulated address of the data, where they have one.
    address: Option<u64>,
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
    /// The simulated address to which they go, where there is one.
    address: Option<u64>,
}

/// The destination of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Receive(usize),
    Message(usize),
    Handler,
}

/// The room of the attached buffer does not suffice for another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferFull {
    /// Bytes that are free.
    pub(crate) free: u64,
}

/// Bytes of the attached buffer that a message takes besides its data (MPI_BSEND_OVERHEAD).
pub const BUFFERED_OVERHEAD: u64 = HEADER_BYTES as u64;

impl Device {
    /// The device of `rank` in a job of so many, on a channel that may have transfers; the longest
    /// message that goes with its data.
    pub(crate) fn new(
        (rank, ranks): (u32, u32),
        eager_bytes: Option<u64>,
        transfers: Option<Abilities>,
    ) -> Self {
        let state = State {
            eager_bytes,
            direct: transfers.map(Direct::new),
            ..State::default()
        };
        let state = Mutex::new(state);
        let birth = 0;
        Self {
            rank,
            ranks,
            birth,
            state,
        }
    }

    /// Makes the device that of the process with this number among those that have had its rank.
    pub(crate) fn born(self, birth: u32) -> Self {
        Self { birth, ..self }
    }

    /// The maker of contexts that it is.
    pub(crate) fn maker(&self) -> Maker {
        (self.rank, self.birth)
    }

    /// Its rank.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// Begins to send `bytes` to rank `to`, as a part of a call.
    ///
    /// # Errors
    /// [`BufferFull`] of a buffered send.
    pub(crate) fn send(
        &self,
        to: u32,
        head: Head,
        bytes: Vec<u8>,
        mode: Mode,
    ) -> Result<usize, BufferFull> {
        self.send_as(to, head, bytes, (mode, CallForm::Task))
    }

    /// The same in a call of this form.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) fn send_as(
        &self,
        to: u32,
        head: Head,
        bytes: Vec<u8>,
        (mode, form): (Mode, CallForm),
    ) -> Result<usize, BufferFull> {
        let mut state = self.state.lock();
        let length = bytes.len() as u64;
        if mode == Mode::Buffered {
            state.buffered.takes(length)?;
        }
        state.owe(Work::Request, 1);
        state.sends += 1;
        let is_eager = state.is_eager(length, form);
        let way = match &state.direct {
            None => Way::Core,
            Some(direct) => direct.way(length, mode, form),
        };
        let (data, held) = match is_eager {
            true => (bytes, Vec::new()),
            false => (Vec::new(), bytes),
        };
        let is_copied = !is_eager && way == Way::Lazy;
        let (held, copied) = match is_copied {
            true => (Vec::new(), held),
            false => (held, Vec::new()),
        };
        let request = state.begin(Activity::Send {
            to,
            mode,
            bytes: length,
            held,
            address: head.address,
            way,
        });
        if is_copied {
            state.copies(request, to, head, copied);
        } else if is_eager {
            state.sends_at_once((to, head, mode), request, data);
        } else {
            state.asks((to, head), (request, length));
        }
        Ok(request)
    }

    /// Begins to receive at most `most` bytes.
    pub(crate) fn receive(&self, wanted: Wanted, most: usize) -> usize {
        self.receive_at(wanted, (most, None), CallForm::Task)
    }

    /// The same to a simulated address in the rank's own memory, in a call of this form.
    pub(crate) fn receive_at(
        &self,
        wanted: Wanted,
        (most, address): (usize, Option<u64>),
        form: CallForm,
    ) -> usize {
        let mut state = self.state.lock();
        state.owe(Work::Request, 1);
        let place = None;
        let request = state.begin(Activity::Receive {
            most,
            address,
            place,
        });
        let (found, compared) = state.queues.post(wanted, request);
        match found {
            Some((_, message)) => state.match_message(message, request),
            None => state.posts(request, most as u64, form),
        }
        state.owe(Work::Match, compared);
        request
    }

    /// Begins to receive a message that [`Device::take_message`] has taken, of which at most `most`
    /// bytes.
    pub(crate) fn receive_message(&self, message: usize, most: usize) -> usize {
        let mut state = self.state.lock();
        let (address, place) = (None, None);
        let request = state.begin(Activity::Receive {
            most,
            address,
            place,
        });
        state.match_message(message, request);
        request
    }

    /// The first message that has come and fits, which stays.
    pub(crate) fn probe(&self, wanted: &Wanted) -> Option<Envelope> {
        self.state.lock().queues.probe(wanted)
    }

    /// The first message that has come and fits, which from now on only its taker can receive.
    pub(crate) fn take_message(&self, wanted: &Wanted) -> Option<(Envelope, usize)> {
        self.state.lock().queues.take(wanted)
    }

    /// The messages of collective calls for which no call was made here.
    pub(crate) fn stray_calls(&self) -> Option<Envelope> {
        let state = self.state.lock();
        let mut unexpected = state.queues.unexpected();
        unexpected.find(|envelope| envelope.call != 0).copied()
    }

    /// The outcome of a request that is over, which then does not exist any more.
    pub(crate) fn take(&self, request: usize) -> Option<Outcome> {
        let mut state = self.state.lock();
        let outcome = state.requests.get_mut(request)?.outcome.take()?;
        state.requests.remove(request);
        Some(outcome)
    }

    /// Returns whether a request is over; it stays.
    pub(crate) fn is_over(&self, request: usize) -> bool {
        let state = self.state.lock();
        let found = state.requests.get(request);
        found.is_none_or(|request| request.outcome.is_some())
    }

    /// A look at the outcome of a request that is over; it stays.
    pub(crate) fn peek<T>(&self, request: usize, look: impl FnOnce(&Outcome) -> T) -> Option<T> {
        let state = self.state.lock();
        state.requests.get(request)?.outcome.as_ref().map(look)
    }

    /// Lets a request go on without an owner.
    pub(crate) fn free(&self, request: usize) {
        let mut state = self.state.lock();
        if let Some(found) = state.requests.get_mut(request) {
            match found.outcome {
                Some(_) => drop(state.requests.remove(request)),
                None => found.is_freed = true,
            }
        }
    }

    /// Attaches room for buffered sends; whether there was none before.
    pub(crate) fn attach(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let was_none = state.buffered.room == 0;
        if was_none {
            state.buffered.room = bytes;
        }
        was_none
    }

    /// Detaches the room for buffered sends if no message is in it; returns its size.
    pub(crate) fn detach(&self) -> Option<u64> {
        let mut state = self.state.lock();
        (state.buffered.used == 0).then(|| take(&mut state.buffered.room))
    }

    /// Messages whose sends have begun.
    pub(crate) fn messages(&self) -> u64 {
        self.state.lock().sends
    }

    /// The number of a context that no call of this rank has had.
    pub(crate) fn next_count(&self) -> u32 {
        let mut state = self.state.lock();
        state.contexts += 1;
        // 0 and 1 are those of the communicators that are there from the beginning.
        state.contexts + 1
    }

    /// Notes work whose cost is still to be charged.
    pub(crate) fn owe(&self, work: Work, times: u32) {
        self.state.lock().owe(work, times);
    }

    /// The work that is still to be charged.
    pub(crate) fn take_owed(&self) -> Vec<(Work, u32)> {
        take(&mut self.state.lock().owed)
    }
}

impl Buffered {
    fn takes(&mut self, bytes: u64) -> Result<(), BufferFull> {
        let free = self.room - self.used;
        let needed = bytes.saturating_add(BUFFERED_OVERHEAD);
        if needed > free {
            return Err(BufferFull { free });
        }
        self.used += needed;
        Ok(())
    }
}

impl State {
    fn owe(&mut self, work: Work, times: u32) {
        match self.owed.iter_mut().find(|(owed, _)| *owed == work) {
            Some((_, owed)) => *owed = owed.saturating_add(times),
            None if times > 0 => self.owed.push((work, times)),
            None => {}
        }
    }

    /// Returns whether a message of so many bytes goes with its data.
    fn is_eager(&self, bytes: u64, form: CallForm) -> bool {
        let is_control = form == CallForm::Task && bytes == 0;
        is_control || self.eager_bytes.is_some_and(|most| bytes <= most)
    }

    fn begin(&mut self, activity: Activity) -> usize {
        self.requests.insert(Request {
            activity,
            outcome: None,
            is_freed: false,
        })
    }

    /// Sends a message with its data.
    fn sends_at_once(
        &mut self,
        (to, head, mode): (u32, Head, Mode),
        request: usize,
        data: Vec<u8>,
    ) {
        let (kind, completes) = match mode {
            Mode::Synchronous => (Kind::EagerSynchronous, None),
            _ => (Kind::Eager, Some(request)),
        };
        self.numbers(to, &head, None);
        let header = head.header(kind, request, data.len() as u64);
        self.queue_data(to, header, (data, head.address), completes);
    }

    /// Sends a message whose data are to follow.
    fn asks(&mut self, (to, head): (u32, Head), (request, length): (usize, u64)) {
        let header = head.header(Kind::RequestToSend, request, length);
        self.queue(to, header, Vec::new(), None);
        self.numbers(to, &head, Some(request));
    }

    fn queue(&mut self, to: u32, header: Header, data: Vec<u8>, completes: Option<usize>) {
        self.queue_data(to, header, (data, None), completes);
    }

    /// The same with data that have an address.
    fn queue_data(
        &mut self,
        to: u32,
        header: Header,
        (data, address): (Vec<u8>, Option<u64>),
        completes: Option<usize>,
    ) {
        let queue = self.outgoing.of(to);
        if queue.is_empty() {
            self.busy.push(to);
        }
        queue.push_back(Outgoing {
            header: match self.direct {
                None => header.to_bytes().to_vec(),
                Some(_) => header.to_short_bytes(),
            },
            data,
            address,
            sent: 0,
            completes,
        });
    }

    /// A request is over.
    fn ends(&mut self, request: usize, outcome: Outcome) {
        let Some(found) = self.requests.get_mut(request) else {
            return;
        };
        if found.outcome.is_some() {
            return;
        }
        if let Activity::Send {
            mode: Mode::Buffered,
            bytes,
            ..
        } = found.activity
        {
            self.buffered.used -= bytes + BUFFERED_OVERHEAD;
        }
        self.is_changed = true;
        match found.is_freed {
            true => drop(self.requests.remove(request)),
            false => found.outcome = Some(outcome),
        }
    }
}
