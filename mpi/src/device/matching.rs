//! Matching: which receive gets which message (MPI-4.1, Sec. 3.5). Receives match in the order in
//! which they were posted, messages of one sender in the order in which it sent them.

use std::collections::VecDeque;

/// The messages that a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The communicator's context.
    pub(crate) context: u64,
    /// The sender; any where there is none.
    pub(crate) from: Option<u32>,
    /// The tag; any where there is none.
    pub(crate) tag: Option<i32>,
}

impl Wanted {
    /// Returns whether there may be a message that both accept.
    fn overlaps(&self, other: &Self) -> bool {
        let may_be = |one: bool, other: bool, equal: bool| one || other || equal;
        let (from, tag) = (self.from == other.from, self.tag == other.tag);
        self.context == other.context
            && may_be(self.from.is_none(), other.from.is_none(), from)
            && may_be(self.tag.is_none(), other.tag.is_none(), tag)
    }

    fn fits(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.from.is_none_or(|from| from == envelope.from)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

/// The properties of a message that matching looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) context: u64,
    pub(crate) from: u32,
    pub(crate) tag: i32,
    /// Bytes.
    pub(crate) length: u64,
    /// The collective call and the low bits of its root, which matching leaves aside: a receive of
    /// another call is told of the mismatch.
    pub(crate) call: u8,
    pub(crate) root: u16,
}

/// Receives without a message, and messages without a receive; each known by a number of its
/// owner's.
#[derive(Debug, Default)]
pub(super) struct Queues {
    posted: VecDeque<(Wanted, usize)>,
    unexpected: VecDeque<(Envelope, usize)>,
}

impl Queues {
    /// A receive is posted: takes the first message that fits, or keeps it. Also returns how many
    /// messages were compared.
    pub(super) fn post(
        &mut self,
        wanted: Wanted,
        receive: usize,
    ) -> (Option<(Envelope, usize)>, u32) {
        let place = self
            .unexpected
            .iter()
            .position(|(envelope, _)| wanted.fits(envelope));
        match place {
            Some(place) => (self.unexpected.remove(place), place as u32 + 1),
            None => {
                self.posted.push_back((wanted, receive));
                (None, self.unexpected.len() as u32)
            }
        }
    }

    /// A message has come: takes the first receive that it fits, if there is one. Also returns how
    /// many were compared.
    pub(super) fn come(&mut self, envelope: &Envelope) -> (Option<usize>, u32) {
        let place = self
            .posted
            .iter()
            .position(|(wanted, _)| wanted.fits(envelope));
        match place {
            Some(place) => {
                let taken = self.posted.remove(place);
                (taken.map(|(_, receive)| receive), place as u32 + 1)
            }
            None => (None, self.posted.len() as u32),
        }
    }

    /// Keeps a message that has found no receive.
    pub(super) fn keep(&mut self, envelope: Envelope, message: usize) {
        self.unexpected.push_back((envelope, message));
    }

    /// The first message that fits, which stays.
    pub(super) fn probe(&self, wanted: &Wanted) -> Option<Envelope> {
        let found = self
            .unexpected
            .iter()
            .find(|(envelope, _)| wanted.fits(envelope));
        found.map(|(envelope, _)| *envelope)
    }

    /// The first message that fits, which no receive gets any more.
    pub(super) fn take(&mut self, wanted: &Wanted) -> Option<(Envelope, usize)> {
        let fits = |(envelope, _): &(Envelope, usize)| wanted.fits(envelope);
        let place = self.unexpected.iter().position(fits)?;
        self.unexpected.remove(place)
    }

    /// Takes back a message; whether it was still without a receive.
    pub(super) fn take_back(&mut self, message: usize) -> bool {
        let before = self.unexpected.len();
        self.unexpected.retain(|&(_, kept)| kept != message);
        self.unexpected.len() < before
    }

    /// The messages without a receive, the oldest first.
    pub(super) fn unexpected(&self) -> impl Iterator<Item = &Envelope> {
        self.unexpected.iter().map(|(envelope, _)| envelope)
    }

    /// The messages that posted receives want, the oldest receive first.
    pub(super) fn posted(&self) -> impl Iterator<Item = &Wanted> {
        self.posted.iter().map(|(wanted, _)| wanted)
    }

    /// The messages that a posted receive wants, if it names their sender and the sender may be
    /// told of it: no earlier receive that is kept from its sender may get one of them.
    pub(super) fn may_tell(
        &self,
        receive: usize,
        is_told: impl Fn(usize) -> bool,
    ) -> Option<(u32, Wanted)> {
        let place = self.posted.iter().position(|&(_, id)| id == receive)?;
        let (wanted, _) = self.posted[place];
        let mut earlier = self.posted.range(..place);
        let is_free = earlier.all(|(other, id)| !other.overlaps(&wanted) || is_told(*id));
        wanted.from.filter(|_| is_free).map(|from| (from, wanted))
    }

    /// The messages that a posted receive wants.
    pub(super) fn wanted(&self, receive: usize) -> Option<Wanted> {
        let mut posted = self.posted.iter();
        let found = posted.find(|&&(_, id)| id == receive)?;
        Some(found.0)
    }

    /// Withdraws a receive; whether it was still without a message.
    pub(super) fn withdraw(&mut self, receive: usize) -> bool {
        let before = self.posted.len();
        self.posted.retain(|&(_, posted)| posted != receive);
        self.posted.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event at a rank: a receive is posted, or a message comes.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Posts(Wanted),
        Comes(Envelope),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let small = || prop::option::weighted(0.6, 0u32..3);
        let wanted = (0u64..2, small(), small()).prop_map(|(context, from, tag)| {
            let tag = tag.map(|tag| tag as i32);
            Event::Posts(Wanted { context, from, tag })
        });
        let envelope = (0u64..2, 0u32..3, 0i32..3).prop_map(|(context, from, tag)| {
            let length = 0;
            Event::Comes(Envelope {
                context,
                from,
                tag,
                length,
                call: 0,
                root: 0,
            })
        });
        prop::collection::vec(prop_oneof![wanted, envelope], 0..40)
    }

    /// The standard's rule, said once more: the second of a pair takes the oldest free partner.
    fn pairs(events: &[Event]) -> Vec<(usize, usize)> {
        let mut taken = vec![false; events.len()];
        let mut pairs = Vec::new();
        for (now, event) in events.iter().enumerate() {
            let partner = (0..now).find(|&before| {
                let fits = match (event, &events[before]) {
                    (Event::Posts(w), Event::Comes(e)) | (Event::Comes(e), Event::Posts(w)) => {
                        let from = w.from == Some(e.from) || w.from.is_none();
                        let tag = w.tag == Some(e.tag) || w.tag.is_none();
                        w.context == e.context && from && tag
                    }
                    _ => false,
                };
                fits && !taken[before]
            });
            if let Some(before) = partner {
                (taken[now], taken[before]) = (true, true);
                pairs.push((before, now));
            }
        }
        pairs
    }

    /// The pairs that the queues form; with `newest` a receive takes the newest message, which is
    /// wrong.
    fn paired(events: &[Event], newest: bool) -> Vec<(usize, usize)> {
        let mut queues = Queues::default();
        let mut pairs = Vec::new();
        for (now, event) in events.iter().enumerate() {
            match event {
                Event::Posts(wanted) => {
                    if newest {
                        queues.unexpected.make_contiguous().reverse();
                    }
                    let (found, _) = queues.post(*wanted, now);
                    if newest {
                        queues.unexpected.make_contiguous().reverse();
                    }
                    pairs.extend(found.map(|(_, message)| (message, now)));
                }
                Event::Comes(envelope) => match queues.come(envelope).0 {
                    Some(receive) => pairs.push((receive, now)),
                    None => queues.keep(*envelope, now),
                },
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn queues_pair_as_the_standard_says(events in events()) {
            prop_assert_eq!(paired(&events, false), pairs(&events));
        }
    }

    #[test]
    fn a_receive_that_takes_the_newest_message_is_found_out() {
        let any = Event::Posts(Wanted {
            context: 0,
            from: None,
            tag: None,
        });
        let message = |tag| {
            Event::Comes(Envelope {
                context: 0,
                from: 1,
                tag,
                length: 0,
                call: 0,
                root: 0,
            })
        };
        let events = [message(1), message(2), any];
        assert_eq!(paired(&events, false), pairs(&events));
        assert_ne!(paired(&events, true), pairs(&events));
    }
}
