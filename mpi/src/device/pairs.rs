//! The pairing of a sender's messages with the places that their receiver has told it of, before
//! either has heard of the other: both find the same pairs, each from what it knows.
//!
//! Messages to one rank are numbered. A receiver tells its sender of a place when it posts a
//! receive that names the sender, unless an earlier receive that it kept to itself may take the
//! same messages. With the place it says how many messages of the sender it has seen: the receive
//! did not match any of those. The sender gives each place to the first message that fits, is not
//! among them, and has none; that is the message which the receiver's own matching gives the
//! receive. Messages that need no place, because their data come with them, take places as the
//! others do: the receiver closes those itself.

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

/// A place for a message that a receiver has announced to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnnouncedPlace {
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

impl AnnouncedPlace {
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
    places: VecDeque<AnnouncedPlace>,
}

impl Pairs {
    /// A message is sent: the place that it takes, if there is one.
    pub(super) fn sends(&mut self, sent: Sent) -> Option<AnnouncedPlace> {
        match self.places.iter().position(|place| place.fits(&sent)) {
            Some(found) => self.places.remove(found),
            None => {
                self.sent.push_back(sent);
                None
            }
        }
    }

    /// The receiver tells of a place: the message that takes it, if there is one.
    pub(super) fn hears(&mut self, place: AnnouncedPlace) -> Option<Sent> {
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

    /// The receiver has a place for the message of this request and has said so: it has seen all up
    /// to that, and tells of no place for them any more.
    pub(super) fn forgets(&mut self, request: usize) {
        let its = |sent: &Sent| sent.request == Some(request);
        if let Some(place) = self.sent.iter().position(its) {
            self.sent.drain(..=place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::matching::{Envelope, Queues, Wanted};
    use super::*;

    /// A step of a sender and a receiver, or of what is under way between them.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A message of this tag; whether its data go with it.
        Sends(i32, bool),
        /// A receive: whether it names the sender, which tag, and whether messages that need a
        /// place fit into it.
        Posts(bool, Option<i32>, bool),
        /// The oldest packet to the receiver arrives, or to the sender.
        ToReceiver,
        ToSender,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let tag = || prop::option::weighted(0.7, 0..2);
        let step = prop_oneof![
            (0..2, any::<bool>()).prop_map(|(tag, eager)| Step::Sends(tag, eager)),
            (any::<bool>(), tag(), any::<bool>())
                .prop_map(|(named, tag, large)| { Step::Posts(named, tag, large) }),
            Just(Step::ToReceiver),
            Just(Step::ToSender),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// The mistakes that a broken variant makes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Mistake {
        None,
        /// The receiver tells of a receive though an earlier one may take its messages.
        TellsOfAll,
        /// The receiver does not say what it has seen.
        ForgetsSeen,
    }

    /// Messages and their receives.
    type Found = BTreeSet<(u32, u32)>;

    /// The pairs of a message that needs a place and the receive that was told of, as the receiver
    /// matches them and as the sender does.
    fn pairs(steps: &[Step], mistake: Mistake) -> (Found, Found) {
        let (mut by_receiver, mut by_sender) = (BTreeSet::new(), BTreeSet::new());
        let (mut queues, mut pairs) = (Queues::default(), Pairs::default());
        let (mut to_receiver, mut to_sender) = (VecDeque::new(), VecDeque::new());
        let (mut sent, mut seen, mut posted) = (0, 0, 0);
        let mut told = BTreeSet::new();
        // In the end all that is under way arrives.
        let ends = [Step::ToReceiver, Step::ToSender].repeat(steps.len());
        for step in steps.iter().copied().chain(ends) {
            match step {
                Step::Sends(tag, eager) => {
                    let message = Sent {
                        number: sent,
                        context: 0,
                        tag,
                        request: (!eager).then_some(sent as usize),
                    };
                    sent += 1;
                    to_receiver.push_back(message);
                    if let Some(place) = pairs.sends(message) {
                        by_sender.extend(message.request.map(|_| (message.number, place.receive)));
                    }
                }
                Step::Posts(named, tag, large) => {
                    let wanted = Wanted {
                        context: 0,
                        from: named.then_some(0),
                        tag,
                    };
                    posted += 1;
                    let (found, _) = queues.post(wanted, posted);
                    let may = match mistake {
                        Mistake::TellsOfAll => named.then_some(()),
                        _ => queues.may_tell(posted, |id| told.contains(&id)).map(drop),
                    };
                    if found.is_none() && large && may.is_some() {
                        told.insert(posted);
                        let seen = if mistake == Mistake::ForgetsSeen {
                            0
                        } else {
                            seen
                        };
                        to_sender.push_back(AnnouncedPlace {
                            seen,
                            context: 0,
                            tag,
                            ticket: 0,
                            most: u64::MAX,
                            receive: posted as u32,
                        });
                    }
                }
                Step::ToReceiver => {
                    let Some(message) = to_receiver.pop_front() else {
                        continue;
                    };
                    seen += 1;
                    let envelope = Envelope {
                        context: 0,
                        from: 0,
                        tag: message.tag,
                        length: 0,
                        call: 0,
                        root: 0,
                    };
                    match queues.come(&envelope).0 {
                        Some(receive) if told.contains(&receive) && message.request.is_some() => {
                            by_receiver.insert((message.number, receive as u32));
                        }
                        Some(_) => {}
                        None => queues.keep(envelope, message.number as usize),
                    }
                }
                Step::ToSender => {
                    let Some(place) = to_sender.pop_front() else {
                        continue;
                    };
                    if let Some(message) = pairs.hears(place) {
                        by_sender.extend(message.request.map(|_| (message.number, place.receive)));
                    }
                }
            }
        }
        (by_receiver, by_sender)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        /// Both find the same pairs in every order of arrival: none is lost, and no message
        /// goes to two places.
        #[test]
        fn sender_and_receiver_find_the_same_pairs(steps in steps()) {
            let (by_receiver, by_sender) = pairs(&steps, Mistake::None);
            prop_assert_eq!(by_receiver, by_sender);
        }
    }

    #[test]
    fn mistakes_are_found_out() {
        let differ = |steps: &[Step], mistake| {
            let (by_receiver, by_sender) = pairs(steps, mistake);
            by_receiver != by_sender
        };
        let any = Step::Posts(false, None, true);
        let named = Step::Posts(true, None, true);
        // The first receive takes the message, and the sender was told of the second.
        let steps = [any, named, Step::ToSender, Step::Sends(0, false)];
        assert!(!differ(&steps, Mistake::None));
        assert!(differ(&steps, Mistake::TellsOfAll));
        // A receive has taken the message before the second is posted.
        let steps = [
            any,
            Step::Sends(0, false),
            Step::ToReceiver,
            named,
            Step::ToSender,
        ];
        assert!(!differ(&steps, Mistake::None));
        assert!(differ(&steps, Mistake::ForgetsSeen));
    }

    #[test]
    fn numbers_wrap_around() {
        let mut pairs = Pairs::default();
        let message = |number, request| Sent {
            number,
            context: 0,
            tag: 0,
            request: Some(request),
        };
        let place = AnnouncedPlace {
            seen: u32::MAX,
            context: 0,
            tag: None,
            ticket: 0,
            most: 0,
            receive: 0,
        };
        for (number, request) in [(u32::MAX - 1, 0), (u32::MAX, 1), (0, 2)] {
            assert_eq!(pairs.sends(message(number, request)), None);
        }
        assert_eq!(pairs.hears(place), Some(message(u32::MAX, 1)));
        assert_eq!(pairs.hears(place), Some(message(0, 2)));
        assert_eq!(pairs.hears(place), None);
        assert!(pairs.takes_back(0) && !pairs.takes_back(0));
    }
}
