//! Which message of a sender goes to which place that its receiver has told it of, before either
//! has heard of the other: both find the same pairs, each from what it knows.
//!
//! Messages to one rank are numbered. A receiver tells its sender of a place when it posts a receive
//! that names the sender, unless an earlier receive of which it told nobody may take the same
//! messages. With the place it says how many messages of the sender it has seen: the receive did
//! not match any of those. The sender gives each place to the first message that fits, is not among
//! them, and has none; that is the message which the receiver's own matching gives the receive.
//! Messages that need no place, because their data come with them, take places as the others do:
//! the receiver closes those itself.

use std::collections::VecDeque;

use crate::channel::transfers::Ticket;

/// A message that was sent to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Messages to that rank before it, modulo 2^32.
    pub(super) number: u32,
    pub(super) context: u64,
    pub(super) tag: i32,
    /// The request that waits for a place; none if the data went with the message.
    pub(super) request: Option<usize>,
}

/// A place that a rank has told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Messages that the receiver had seen, modulo 2^32.
    pub(super) seen: u32,
    pub(super) context: u64,
    /// The tag of the messages that it is for; any where there is none.
    pub(super) tag: Option<i32>,
    pub(super) ticket: Ticket,
    /// Bytes of room.
    pub(super) most: u64,
    /// The receiver's request.
    pub(super) receive: u32,
}

impl Place {
    fn fits(&self, sent: &Sent) -> bool {
        // Fewer than 2^31 messages are under way.
        let is_later = sent.number.wrapping_sub(self.seen) as i32 >= 0;
        let is_tag = self.tag.is_none_or(|tag| tag == sent.tag);
        is_later && is_tag && self.context == sent.context
    }
}

/// Messages to one rank and places there that have no partner yet, each in their order.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    sent: VecDeque<Sent>,
    places: VecDeque<Place>,
}

impl Pairs {
    /// A message is sent: the place that it takes, if there is one.
    pub(super) fn sends(&mut self, sent: Sent) -> Option<Place> {
        match self.places.iter().position(|place| place.fits(&sent)) {
            Some(found) => self.places.remove(found),
            None => {
                self.sent.push_back(sent);
                None
            }
        }
    }

    /// The receiver tells of a place: the message that takes it, if there is one.
    pub(super) fn hears(&mut self, place: Place) -> Option<Sent> {
        // No later place is for messages that had been seen by then.
        while let Some(first) = self.sent.front()
            && (first.number.wrapping_sub(place.seen) as i32) < 0
        {
            self.sent.pop_front();
        }
        match self.sent.iter().position(|sent| place.fits(sent)) {
            Some(found) => self.sent.remove(found),
            None => {
                self.places.push_back(place);
                None
            }
        }
    }

    /// The receiver takes a place back; whether no message had taken it.
    pub(super) fn takes_back(&mut self, receive: u32) -> bool {
        let before = self.places.len();
        self.places.retain(|place| place.receive != receive);
        self.places.len() < before
    }

    /// A send is over in another way: it needs no place.
    pub(super) fn forgets(&mut self, request: usize) {
        self.sent.retain(|sent| sent.request != Some(request));
    }
}
