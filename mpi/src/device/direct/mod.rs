//! The device's part in [transfers](crate::channel::transfers): data that go straight to a place of
//! the receiver's.
//!
//! Every message is announced by a packet, with its data where it is short, and so the receiver
//! sees the messages of each sender in their order. A receive that names its sender opens a place
//! and tells of it at once, without waiting for the message; others open theirs when they have
//! matched one that waits. [`Pairs`] says which message goes to which place. The rank that sends,
//! or the server that hears of the place, finds the pair and takes the send out of the waiting ones
//! under the device's lock: each is started exactly once.

mod pending;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem::take;

use super::matching::Envelope;
pub use pending::Pending;

use super::packet::{Header, Kind};
use super::pairs::{AnnouncedPlace, Pairs, Sent};
use super::{Activity, CallForm, Head, Mode, State};
use crate::channel::transfers::{Abilities, Outbound, Started, Ticket};
use crate::peers::Peers;
use crate::processor::Work;

/// The transfers of one rank.
#[derive(Debug)]
pub(super) struct Direct {
    abilities: Abilities,
    peers: Peers<Peer>,
    /// Places to open, in this order.
    openings: VecDeque<Opening>,
    /// Places to which nothing comes.
    closings: Vec<Ticket>,
    /// Sends to copy before they begin.
    copies: VecDeque<Copy>,
    /// Transfers to start: by the rank, and by its server.
    ready: VecDeque<Ready>,
    served: VecDeque<Ready>,
    /// Whether the server has to be woken for the next transfer.
    is_server_asleep: bool,
    /// Sends whose data are leaving.
    leaving: Vec<(usize, Started)>,
    /// Receives whose messages have come, and whose data come to their places, or have where they
    /// say so, with the bytes of the message.
    landings: Vec<(usize, Ticket, u64)>,
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
    /// Returns whether a DMA channel is to make it.
    pub(crate) fn is_for_engine(&self) -> bool {
        matches!(self.way, Way::Engine | Way::Server)
    }
}

impl Direct {
    /// Makes the state of a rank whose channel has these abilities.
    pub(super) fn new(abilities: Abilities) -> Self {
        Self {
            abilities,
            peers: Peers::default(),
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

    /// Returns whether there is something to do that waits for nothing.
    pub(super) fn has_work(&self) -> bool {
        !self.openings.is_empty()
            || !self.closings.is_empty()
            || !self.copies.is_empty()
            || !self.ready.is_empty()
            || self.is_server_asleep
    }

    /// The way of a message of so many bytes that does not go at once. Where a packet says that
    /// data have come, the core sends them, and the packet behind them.
    pub(super) fn way(&self, bytes: u64, mode: Mode, form: CallForm) -> Way {
        let Abilities {
            modes,
            shows_arrivals,
            ..
        } = self.abilities;
        if !shows_arrivals {
            return Way::Core;
        }
        let reaches = |least: Option<u64>| least.is_some_and(|least| bytes >= least);
        let is_short = modes.lazy_bytes.is_some_and(|most| bytes <= most);
        match (form, mode) {
            (_, Mode::Buffered) | (CallForm::Immediate, _) => Way::Server,
            (CallForm::Blocking, Mode::Standard) if is_short => Way::Lazy,
            _ if reaches(modes.engine_bytes) => Way::Engine,
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
        let peer = direct.peers.of(to);
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
            let seen = &mut direct.peers.of(from).seen;
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
            Way::Lazy if direct.abilities.has_server => {
                direct.served.push_back(ready);
                direct.is_server_asleep |= !by_server;
            }
            Way::Server if by_server => direct.served.push_back(ready),
            _ => direct.ready.push_back(ready),
        }
    }

    /// A receive that has been posted is to have a place of which its sender is told at once,
    /// unless all messages that it accepts come with their data.
    pub(super) fn posts(&mut self, receive: usize, most: u64, form: CallForm) {
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
        if let Some(direct) = &mut self.direct
            && direct.abilities.shows_arrivals
        {
            direct.landings.push((receive, ticket, envelope.length));
        }
        true
    }

    /// The data of a receive have come to its place, says their sender.
    pub(super) fn is_told_of_landing(&mut self, receive: usize) {
        let Some(Activity::Receive {
            place:
                Some(Landing {
                    ticket,
                    message: Some(message),
                }),
            ..
        }) = self.activity(receive)
        else {
            return;
        };
        let landing = (receive, *ticket, message.length);
        if let Some(direct) = &mut self.direct {
            direct.landings.push(landing);
        }
    }

    /// The data of a receive come another way than to its place, if it has one; the message, where
    /// it is known.
    pub(super) fn abandons(&mut self, receive: usize) -> Option<Envelope> {
        let Some(Activity::Receive { place, .. }) = self.activity(receive) else {
            return None;
        };
        let place = place.take()?;
        if let Some(direct) = &mut self.direct {
            direct.landings.retain(|&(other, ..)| other != receive);
            direct.closings.push(place.ticket);
        }
        place.message
    }

    /// Rank `from` tells of a place, or takes one back.
    pub(super) fn hears(&mut self, from: u32, header: Header, by_server: bool) {
        let Some(direct) = &mut self.direct else {
            return;
        };
        let pairs = &mut direct.peers.of(from).pairs;
        match header.kind {
            Kind::Place => {
                let place = AnnouncedPlace {
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

    /// Returns whether a sender has been told of the place of a receive.
    pub(super) fn is_told(&self, receive: usize) -> bool {
        let found = self.requests.get(receive).map(|found| &found.activity);
        matches!(found, Some(Activity::Receive { place: Some(_), .. }))
    }

    fn activity(&mut self, request: usize) -> Option<&mut Activity> {
        Some(&mut self.requests.get_mut(request)?.activity)
    }
}
