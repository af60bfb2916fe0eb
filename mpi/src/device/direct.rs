//! The device's part in [transfers](crate::channel::transfers): data that go straight to a place of
//! the receiver's.
//!
//! Every message is announced by a packet, with its data where it is short, and so the receiver
//! sees the messages of each sender in their order. A receive that names its sender opens a place
//! and tells of it at once, without waiting for the message; others open theirs when they have
//! matched one that waits. [`Pairs`] says which message goes to which place. Whoever finds a pair,
//! the rank that sends or the server that hears of the place, takes the send out of the waiting
//! ones under the device's lock: each is started exactly once.

use std::collections::VecDeque;
use std::mem::take;

use super::matching::Envelope;
use super::packet::{Header, Kind};
use super::pairs::{Pairs, Place, Sent};
use super::{Activity, Device, Form, Head, Mode, Outcome, State};
use crate::channel::Work;
use crate::channel::transfers::{Modes, Outbound, Started, Ticket};

/// The transfers of one rank.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) modes: Modes,
    has_server: bool,
    peers: Vec<Peer>,
    /// Places to open, in this order.
    openings: VecDeque<Opening>,
    /// Places to which nothing comes.
    closings: Vec<Ticket>,
    /// Sends to copy before they begin.
    copies: VecDeque<Copy>,
    /// Transfers to start: by the rank, and by its server.
    ready: VecDeque<Ready>,
    served: VecDeque<Ready>,
    /// Whether the server is to be told of one.
    is_server_asleep: bool,
    /// Sends whose data are leaving.
    leaving: Vec<(usize, Started)>,
    /// Receives whose messages have come, and whose data come to their places.
    landings: Vec<(usize, Ticket)>,
}

/// The messages between this rank and another one.
#[derive(Debug, Default)]
struct Peer {
    /// To it, modulo 2^32.
    sent: u32,
    /// From it, modulo 2^32.
    seen: u32,
    /// Those to it, and its places.
    pairs: Pairs,
}

/// The way in which the data of a send go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The core pushes them when it finds the place.
    Core,
    /// The core lets a DMA channel send them then.
    Engine,
    /// The same, and the server does so if it hears of the place first.
    Server,
    /// They have been copied; the server pushes them.
    Lazy,
}

/// A place to open for a receive.
#[derive(Clone, Copy, Debug)]
enum Opening {
    /// Of which its sender is told at once.
    Posted(usize),
    /// For a message that waits, of which this is the header.
    Matched(usize, u32, Header),
}

/// A place that is being opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opens {
    pub(super) bytes: u64,
    pub(super) address: Option<u64>,
    receive: usize,
    to: u32,
    header: Header,
}

/// The place of a receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    ticket: Ticket,
    /// The message whose data come there, when it is known.
    message: Option<Envelope>,
}

/// A send that is copied before it begins, and the request that is over then.
#[derive(Debug)]
pub(super) struct Copy {
    user: usize,
    to: u32,
    head: Head,
    pub(super) bytes: Vec<u8>,
}

impl Copy {
    /// The address of its data.
    pub(super) fn address(&self) -> Option<u64> {
        self.head.address
    }
}

/// A transfer to start.
#[derive(Debug)]
pub(crate) struct Ready {
    request: usize,
    receive: u32,
    way: Way,
    pub(crate) data: Outbound,
}

impl Ready {
    /// Whether a DMA channel is to make it.
    pub(crate) fn is_for_engine(&self) -> bool {
        matches!(self.way, Way::Engine | Way::Server)
    }
}

impl Direct {
    /// That of a job of so many ranks.
    pub(super) fn new(ranks: u32, modes: Modes, has_server: bool) -> Self {
        let count = ranks as usize;
        Self {
            modes,
            has_server,
            peers: (0..count).map(|_| Peer::default()).collect(),
            openings: VecDeque::new(),
            closings: Vec::new(),
            copies: VecDeque::new(),
            ready: VecDeque::new(),
            served: VecDeque::new(),
            is_server_asleep: false,
            leaving: Vec::new(),
            landings: Vec::new(),
        }
    }

    /// Whether there is something to do that waits for nothing.
    pub(super) fn has_work(&self) -> bool {
        !self.openings.is_empty()
            || !self.closings.is_empty()
            || !self.copies.is_empty()
            || !self.ready.is_empty()
            || self.is_server_asleep
    }

    /// The way of a message of so many bytes that does not go at once.
    pub(super) fn way(&self, bytes: u64, mode: Mode, form: Form) -> Way {
        let reaches = |least: Option<u64>| least.is_some_and(|least| bytes >= least);
        let is_short = self.modes.lazy_bytes.is_some_and(|most| bytes <= most);
        match (form, mode) {
            (_, Mode::Buffered) | (Form::Immediate, _) => Way::Server,
            (Form::Blocking, Mode::Standard) if is_short => Way::Lazy,
            _ if reaches(self.modes.engine_bytes) => Way::Engine,
            _ => Way::Core,
        }
    }
}

impl State {
    /// Counts a message to rank `to`, and finds its place.
    pub(super) fn numbers(&mut self, to: u32, head: &Head, request: Option<usize>) {
        let Some(direct) = &mut self.direct else {
            return;
        };
        let peer = &mut direct.peers[to as usize];
        let sent = Sent {
            number: peer.sent,
            context: head.context,
            tag: head.tag,
            request,
        };
        peer.sent = peer.sent.wrapping_add(1);
        if let Some(place) = peer.pairs.sends(sent)
            && let Some(request) = request
        {
            self.readies(
                request,
                to,
                (place.ticket, place.most, place.receive),
                false,
            );
        }
    }

    /// Counts a message `from` a rank that has come.
    pub(super) fn sees(&mut self, from: u32) {
        if let Some(direct) = &mut self.direct {
            let seen = &mut direct.peers[from as usize].seen;
            *seen = seen.wrapping_add(1);
        }
    }

    /// The rank has looked a message up among those that its server has left.
    pub(super) fn looks_up(&mut self) {
        if self.direct.is_some() {
            self.owe(Work::Find, 1);
        }
    }

    /// A send has its place: it is to be started.
    fn readies(
        &mut self,
        request: usize,
        to: u32,
        (ticket, most, receive): (Ticket, u64, u32),
        by_server: bool,
    ) {
        let found = self.requests.get_mut(request);
        let Some(Activity::Send {
            held, address, way, ..
        }) = found.map(|request| &mut request.activity)
        else {
            return;
        };
        let mut bytes = take(held);
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let (way, address) = (*way, *address);
        let ready = Ready {
            request,
            receive,
            way,
            data: Outbound {
                to,
                ticket,
                bytes,
                address,
            },
        };
        let Some(direct) = &mut self.direct else {
            return;
        };
        match way {
            Way::Lazy if direct.has_server => {
                direct.served.push_back(ready);
                direct.is_server_asleep |= !by_server;
            }
            Way::Server if by_server => direct.served.push_back(ready),
            _ => direct.ready.push_back(ready),
        }
    }

    /// A receive that has been posted is to have a place of which its sender is told at once, unless
    /// all messages that it accepts come with their data.
    pub(super) fn posts(&mut self, receive: usize, most: u64, form: Form) {
        let is_eager = self.is_eager(most, form);
        if let Some(direct) = self.direct.as_mut().filter(|_| !is_eager) {
            direct.openings.push_back(Opening::Posted(receive));
        }
    }

    /// A receive that has matched a message of rank `to` is to have a place; whether it will.
    pub(super) fn matches(&mut self, receive: usize, to: u32, header: Header) -> bool {
        match &mut self.direct {
            None => false,
            Some(direct) => {
                let opening = Opening::Matched(receive, to, header);
                direct.openings.push_back(opening);
                true
            }
        }
    }

    /// A message whose data come apart has matched a receive that has a place; whether it has one.
    pub(super) fn expects(&mut self, receive: usize, envelope: Envelope) -> bool {
        let Some(Activity::Receive {
            place: Some(place), ..
        }) = self.activity(receive)
        else {
            return false;
        };
        place.message = Some(envelope);
        let ticket = place.ticket;
        if let Some(direct) = &mut self.direct {
            direct.landings.push((receive, ticket));
        }
        true
    }

    /// The data of a receive come another way than to its place, if it has one; the message, where
    /// it is known.
    pub(super) fn abandons(&mut self, receive: usize) -> Option<Envelope> {
        let Some(Activity::Receive { place, .. }) = self.activity(receive) else {
            return None;
        };
        let place = place.take()?;
        if let Some(direct) = &mut self.direct {
            direct.landings.retain(|&(other, _)| other != receive);
            direct.closings.push(place.ticket);
        }
        place.message
    }

    /// Rank `from` tells of a place, or takes one back.
    pub(super) fn hears(&mut self, from: u32, header: Header, by_server: bool) {
        let Some(direct) = &mut self.direct else {
            return;
        };
        let pairs = &mut direct.peers[from as usize].pairs;
        match header.kind {
            Kind::Place => {
                let place = Place {
                    seen: header.sender,
                    context: header.context,
                    tag: (header.call == 0).then_some(header.tag),
                    ticket: header.root,
                    most: header.length,
                    receive: header.receiver,
                };
                let paired = pairs.hears(place).and_then(|sent| sent.request);
                if let Some(request) = paired {
                    let place = (place.ticket, place.most, place.receive);
                    self.readies(request, from, place, by_server);
                }
            }
            Kind::Matches => {
                let request = header.sender as usize;
                pairs.forgets(request);
                let place = (header.root, header.length, header.receiver);
                self.readies(request, from, place, by_server);
            }
            Kind::TakeBack if pairs.takes_back(header.receiver) => {
                let kind = Kind::TakenBack;
                self.queue(from, Header { kind, ..header }, Vec::new(), None);
            }
            _ => {}
        }
    }

    /// Asks the sender that was told of a receive's place to forget it; whether it has been told.
    pub(super) fn takes_back(&mut self, receive: usize) -> bool {
        let posted = self.queues.wanted(receive);
        let from = posted.and_then(|wanted| wanted.from);
        let (Some(from), true) = (from, self.is_told(receive)) else {
            return false;
        };
        let header = Header {
            receiver: receive as u32,
            ..Header::of(Kind::TakeBack)
        };
        self.queue(from, header, Vec::new(), None);
        true
    }

    /// Whether a sender has been told of the place of a receive.
    fn is_told(&self, receive: usize) -> bool {
        let found = self.requests.get(receive).map(|found| &found.activity);
        matches!(found, Some(Activity::Receive { place: Some(_), .. }))
    }

    fn activity(&mut self, request: usize) -> Option<&mut Activity> {
        Some(&mut self.requests.get_mut(request)?.activity)
    }
}

/// The steps of the rank and of its server that take time.
impl Device {
    /// Takes a list or a queue of the rank's transfers; empty if it has none.
    fn taken<T: Default>(&self, take: impl FnOnce(&mut Direct) -> T) -> T {
        let mut state = self.state.lock();
        state.direct.as_mut().map(take).unwrap_or_default()
    }

    /// A send that is to be copied.
    pub(super) fn next_copy(&self) -> Option<Copy> {
        self.taken(|direct| direct.copies.pop_front())
    }

    /// It has been, to an address of the library's; or there is no room, and it goes as others do.
    pub(super) fn copied(&self, copy: Copy, address: Option<u64>) {
        let mut state = self.state.lock();
        let Copy {
            user,
            to,
            head,
            bytes,
        } = copy;
        let length = bytes.len() as u64;
        let Some(address) = address else {
            let way = state.direct.as_ref().map(|direct| {
                let form = Form::Task;
                direct.way(length, Mode::Standard, form)
            });
            if let Some(Activity::Send { held, way: old, .. }) = state.activity(user) {
                *held = bytes;
                *old = way.unwrap_or(Way::Core);
            }
            return state.asks((to, head), (user, length));
        };
        let request = state.begin(Activity::Send {
            to,
            mode: Mode::Standard,
            bytes: length,
            held: bytes,
            address: Some(address),
            way: Way::Lazy,
        });
        if let Some(found) = state.requests.get_mut(request) {
            found.is_freed = true;
        }
        state.asks((to, head), (request, length));
        state.ends(user, Outcome::default());
    }

    /// The next place to open.
    pub(super) fn next_opening(&self) -> Option<Opens> {
        let mut state = self.state.lock();
        loop {
            let opening = state.direct.as_mut()?.openings.pop_front()?;
            let opens = match opening {
                Opening::Posted(receive) => state.opens_posted(receive),
                Opening::Matched(receive, to, header) => {
                    state.room_of(receive).map(|(most, address)| Opens {
                        bytes: most.min(header.length),
                        address,
                        receive,
                        to,
                        header,
                    })
                }
            };
            if opens.is_some() {
                return opens;
            }
        }
    }

    /// It is open, or there was no room.
    pub(super) fn opened(&self, opens: Opens, ticket: Option<Ticket>) {
        let mut state = self.state.lock();
        let Opens {
            bytes,
            receive,
            to,
            header,
            ..
        } = opens;
        let Some(ticket) = ticket else {
            if header.kind == Kind::RequestToSend {
                state.clears_stream(to, header, receive);
            }
            return;
        };
        let message = None;
        if let Some(Activity::Receive { place, .. }) = state.activity(receive) {
            *place = Some(Landing { ticket, message });
        }
        let header = match header.kind {
            Kind::RequestToSend => {
                state.expects(receive, super::arrival::envelope(to, &header));
                let kind = Kind::Matches;
                Header { kind, ..header }
            }
            _ => {
                let seen = state.direct.as_ref().map(|direct| &direct.peers);
                Header {
                    sender: seen.map_or(0, |peers| peers[to as usize].seen),
                    ..header
                }
            }
        };
        let header = Header {
            root: ticket,
            receiver: receive as u32,
            length: bytes,
            ..header
        };
        state.queue(to, header, Vec::new(), None);
    }

    /// The places to close.
    pub(super) fn take_closings(&self) -> Vec<Ticket> {
        self.taken(|direct| take(&mut direct.closings))
    }

    /// The next transfer for the rank to start.
    pub(super) fn next_ready(&self) -> Option<Ready> {
        self.taken(|direct| direct.ready.pop_front())
    }

    /// The next one for the server.
    pub(super) fn next_served(&self) -> Option<Ready> {
        self.taken(|direct| direct.served.pop_front())
    }

    /// Whether the server is to be woken.
    pub(super) fn take_wake(&self) -> bool {
        self.taken(|direct| take(&mut direct.is_server_asleep))
    }

    /// The data of a transfer have left, or there was no memory for them: then they go as a packet.
    pub(super) fn pushed(&self, ready: &Ready, pushed: Result<(), Outbound>) {
        match pushed {
            Ok(()) => self.state.lock().ends(ready.request, Outcome::default()),
            Err(data) => self.goes_as_packet(ready, data),
        }
    }

    /// The same of one that a DMA channel makes.
    pub(super) fn started(&self, ready: &Ready, started: Result<Started, Outbound>) {
        match started {
            Ok(started) => self.taken(|direct| direct.leaving.push((ready.request, started))),
            Err(data) => self.goes_as_packet(ready, data),
        }
    }

    fn goes_as_packet(&self, ready: &Ready, data: Outbound) {
        let header = Header {
            sender: ready.request as u32,
            receiver: ready.receive,
            length: data.bytes.len() as u64,
            ..Header::of(Kind::Data)
        };
        let mut state = self.state.lock();
        let of = (data.bytes, data.address);
        state.queue_data(data.to, header, of, Some(ready.request));
    }

    /// The sends whose data are leaving.
    pub(super) fn leaving(&self) -> Vec<(usize, Started)> {
        self.taken(|direct| direct.leaving.clone())
    }

    /// The data of one have left.
    pub(super) fn left(&self, request: usize) {
        let mut state = self.state.lock();
        if let Some(direct) = &mut state.direct {
            direct.leaving.retain(|&(other, _)| other != request);
        }
        state.ends(request, Outcome::default());
    }

    /// The receives whose data are to come to their places.
    pub(super) fn landings(&self) -> Vec<(usize, Ticket)> {
        self.taken(|direct| direct.landings.clone())
    }

    /// The data of one have come.
    pub(super) fn lands(&self, receive: usize, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        if let Some(direct) = &mut state.direct {
            direct.landings.retain(|&(other, _)| other != receive);
        }
        if let Some(Activity::Receive { place, .. }) = state.activity(receive)
            && let Some(place) = place.take()
            && let Some(envelope) = place.message
        {
            state.delivers(receive, envelope, bytes);
        }
    }
}

impl State {
    /// Takes note of a send that is to be copied before it begins.
    pub(super) fn copies(&mut self, user: usize, to: u32, head: Head, bytes: Vec<u8>) {
        if let Some(direct) = &mut self.direct {
            direct.copies.push_back(Copy {
                user,
                to,
                head,
                bytes,
            });
        }
    }

    /// The place of a posted receive, if its sender may be told.
    fn opens_posted(&self, receive: usize) -> Option<Opens> {
        // One that has been told of may have the number of an earlier one, which was matched first.
        if self.is_told(receive) {
            return None;
        }
        let (from, wanted) = self.queues.may_tell(receive, |id| self.is_told(id))?;
        let (bytes, address) = self.room_of(receive)?;
        let header = Header {
            context: wanted.context,
            tag: wanted.tag.unwrap_or(0),
            // 1: any tag.
            call: u8::from(wanted.tag.is_none()),
            ..Header::of(Kind::Place)
        };
        Some(Opens {
            bytes,
            address,
            receive,
            to: from,
            header,
        })
    }

    /// Bytes that a receive has room for, and their address.
    fn room_of(&self, receive: usize) -> Option<(u64, Option<u64>)> {
        match self.requests.get(receive)?.activity {
            Activity::Receive { most, address, .. } => Some((most as u64, address)),
            _ => None,
        }
    }
}

/// The sends of a rank that wait for places, as its server has them.
#[derive(Clone, Debug)]
pub struct Pending(pub(crate) std::sync::Arc<Device>);

impl Pending {
    /// A packet has come `from` a rank; whether it tells of a place, and the rank itself need not
    /// see it.
    pub(crate) fn hears(&self, from: u32, header: Header) -> bool {
        let is_told = matches!(header.kind, Kind::Place | Kind::Matches | Kind::TakeBack);
        if is_told {
            self.0.state.lock().hears(from, header, true);
        }
        is_told
    }

    /// The next transfer to start.
    pub(crate) fn next(&self) -> Option<Ready> {
        self.0.next_served()
    }

    /// The data of one have left.
    pub(crate) fn pushed(&self, ready: &Ready, pushed: Result<(), Outbound>) {
        self.0.pushed(ready, pushed);
    }

    /// A DMA channel sends them.
    pub(crate) fn started(&self, ready: &Ready, started: Result<Started, Outbound>) {
        self.0.started(ready, started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::matching::Wanted;

    const MODES: Modes = Modes {
        eager_bytes: None,
        lazy_bytes: None,
        engine_bytes: None,
    };

    /// What happens to a rank: it begins to send, or hears of a place, by its server or itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Event {
        Sends,
        Hears { by_server: bool },
    }

    /// All orders of so many sends and as many places, of which the server hears of those whose bit
    /// is set.
    fn orders(count: usize, by_server: u32) -> Vec<Vec<Event>> {
        let mut orders = Vec::new();
        for choice in 0..1_u32 << (2 * count) {
            if choice.count_ones() as usize != count {
                continue;
            }
            let mut heard = 0;
            let order = (0..2 * count).map(|at| match choice >> at & 1 {
                1 => Event::Sends,
                _ => {
                    heard += 1;
                    let by_server = by_server >> (heard - 1) & 1 == 1;
                    Event::Hears { by_server }
                }
            });
            orders.push(order.collect());
        }
        orders
    }

    /// A send that is pending is started exactly once, in every order in which sends begin and
    /// places are heard of, whoever hears of them and whoever looks first (Ho et al., Algorithms 3
    /// and 4).
    #[test]
    fn a_pending_send_is_started_exactly_once() {
        const COUNT: usize = 3;
        let head = Head {
            context: 0,
            tag: 7,
            call: 0,
            root: 0,
            address: None,
        };
        for by_server in 0..1 << COUNT {
            for order in orders(COUNT, by_server) {
                let device = std::sync::Arc::new(Device::new((0, 2), None, Some((MODES, true))));
                let server = Pending(std::sync::Arc::clone(&device));
                let (mut requests, mut started, mut places) = (Vec::new(), Vec::new(), 0);
                for &event in &order {
                    match event {
                        Event::Sends => {
                            let form = (Mode::Standard, Form::Immediate);
                            let send = device.send_as(1, head, vec![1; 8], form);
                            requests.push(send.unwrap());
                        }
                        Event::Hears { by_server } => {
                            let header = Header {
                                context: head.context,
                                tag: head.tag,
                                root: places,
                                receiver: u32::from(places),
                                length: 8,
                                ..Header::of(Kind::Place)
                            };
                            places += 1;
                            match by_server {
                                true => assert!(server.hears(1, header)),
                                false => device.state.lock().hears(1, header, false),
                            }
                        }
                    }
                    // Both look after every event.
                    for ready in [device.next_ready(), server.next(), server.next()] {
                        started.extend(ready.map(|one| (one.request, one.data.ticket)));
                    }
                }
                assert!(device.next_ready().is_none() && server.next().is_none());
                // The first send to the first place, and so on.
                let expected: Vec<(usize, Ticket)> = requests.into_iter().zip(0..).collect();
                assert_eq!(started, expected, "{order:?}");
            }
        }
    }

    /// A server hears of places and nothing else.
    #[test]
    fn a_server_leaves_other_packets_to_the_rank() {
        let device = std::sync::Arc::new(Device::new((0, 2), None, Some((MODES, true))));
        let server = Pending(device);
        for kind in [
            Kind::Eager,
            Kind::RequestToSend,
            Kind::ClearToSend,
            Kind::TakenBack,
        ] {
            assert!(!server.hears(1, Header::of(kind)));
        }
    }

    /// A receive that may get a message which an earlier one may get, too, is not told of, and is
    /// when that one is gone.
    #[test]
    fn places_are_opened_for_receives_that_name_their_sender() {
        let device = Device::new((0, 2), None, Some((MODES, false)));
        let wanted = |from, tag| Wanted {
            context: 0,
            from,
            tag,
        };
        device.receive_at(wanted(None, Some(1)), (8, None), Form::Immediate);
        device.receive_at(wanted(Some(1), Some(1)), (8, None), Form::Immediate);
        device.receive_at(wanted(Some(1), Some(2)), (8, None), Form::Immediate);
        let opens = device.next_opening().unwrap();
        assert_eq!((opens.to, opens.receive), (1, 2));
        device.opened(opens, Some(5));
        assert!(device.next_opening().is_none());
    }
}
