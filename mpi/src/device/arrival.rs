//! The handling of a packet: at its header ([`Device::begins`]), and when all of its data are there
//! ([`Device::arrives`]).

use std::mem::take;

use super::packet::{Header, Kind};
use super::{Activity, Body, Device, Envelope, Incoming, Message, Outcome, State, To};
use crate::processor::Work;

impl Device {
    /// The packet that is arriving `from` a rank, to be put back by [`Device::arrives`].
    pub(super) fn arriving(&self, from: u32) -> Incoming {
        take(self.state.lock().incoming.of(from))
    }

    /// Takes note of the header that has arrived `from` a rank, if it is complete.
    pub(super) fn begins(&self, from: u32, incoming: &mut Incoming) {
        let Some((header, _)) = Header::read(&incoming.header) else {
            return;
        };
        incoming.header.clear();
        let mut state = self.state.lock();
        state.owe(Work::Packet, 1);
        incoming.body = state.begins(from, header);
    }

    /// Puts back the packet that is arriving `from` a rank, or ends it if all of it is there.
    pub(super) fn arrives(&self, from: u32, mut incoming: Incoming) {
        let is_complete = |body: &mut Body| body.bytes.len() as u64 == body.header.length;
        let body = incoming.body.take_if(is_complete);
        let mut state = self.state.lock();
        *state.incoming.of(from) = incoming;
        let Some(body) = body else { return };
        if body.to != To::Handler {
            return state.arrives(from, body);
        }
        drop(state);
        self.hands_over(body.header.context, from, body.bytes);
    }
}

impl State {
    /// The header of a packet has come `from` a rank; its body, if data are to follow.
    fn begins(&mut self, from: u32, header: Header) -> Option<Body> {
        let to = match header.kind {
            Kind::Data => To::Receive(header.receiver as usize),
            Kind::Active => To::Handler,
            Kind::Matched => {
                self.ends(header.sender as usize, Outcome::default());
                return None;
            }
            Kind::ClearToSend => {
                self.sends_data(from, header);
                return None;
            }
            Kind::Matches | Kind::Place | Kind::TakeBack => {
                self.hears(from, header, false);
                return None;
            }
            Kind::TakenBack => {
                self.receive_cancelled(header.receiver as usize);
                return None;
            }
            Kind::Landed => {
                self.is_told_of_landing(header.receiver as usize);
                return None;
            }
            Kind::Withdraw => {
                self.withdraws(from, header);
                return None;
            }
            Kind::Withdrawn => {
                self.ends_cancelled(header.sender as usize);
                return None;
            }
            Kind::Eager | Kind::EagerSynchronous | Kind::RequestToSend => {
                self.message_begins(from, header)?
            }
        };
        let address = match to {
            To::Receive(receive) => self.address_of(receive),
            To::Message(_) | To::Handler => None,
        };
        Some(Body {
            header,
            to,
            bytes: Vec::with_capacity(header.data_bytes() as usize),
            address,
        })
    }

    /// The simulated address of a receive's buffer, where it has one.
    fn address_of(&self, receive: usize) -> Option<u64> {
        match self.requests.get(receive)?.activity {
            Activity::Receive { address, .. } => address,
            _ => None,
        }
    }

    /// The destination of the data of a message, if they follow.
    fn message_begins(&mut self, from: u32, header: Header) -> Option<To> {
        self.sees(from);
        let (receive, compared) = self.queues.come(&envelope(from, &header));
        self.owe(Work::Match, compared);
        let is_asked = header.kind == Kind::RequestToSend;
        let Some(receive) = receive else {
            let message = self.messages.insert(Message {
                from,
                header,
                bytes: Vec::new(),
                is_complete: is_asked,
                receive: None,
            });
            self.queues.keep(envelope(from, &header), message);
            return (!is_asked).then_some(To::Message(message));
        };
        if is_asked {
            if !self.expects(receive, envelope(from, &header)) {
                self.looks_up();
                self.clears(from, header, receive);
            }
            return None;
        }
        self.abandons(receive);
        self.looks_up();
        if header.kind == Kind::EagerSynchronous {
            self.tells_matched(from, header);
        }
        Some(To::Receive(receive))
    }

    /// The receive of this rank's message waits for its data.
    fn sends_data(&mut self, to: u32, header: Header) {
        let send = header.sender as usize;
        let found = self.requests.get_mut(send);
        if let Some(Activity::Send { held, address, .. }) =
            found.map(|request| &mut request.activity)
        {
            let data = (take(held), *address);
            let kind = Kind::Data;
            self.queue_data(to, Header { kind, ..header }, data, Some(send));
        }
    }

    /// `receive` has matched the unexpected `message`.
    pub(super) fn match_message(&mut self, message: usize, receive: usize) {
        let Some(found) = self.messages.get_mut(message) else {
            return;
        };
        let (from, header) = (found.from, found.header);
        self.looks_up();
        let Some(found) = self.messages.get_mut(message) else {
            return;
        };
        if header.kind == Kind::RequestToSend {
            self.messages.remove(message);
            return self.clears(from, header, receive);
        }
        if found.is_complete {
            let bytes = take(&mut found.bytes);
            self.messages.remove(message);
            self.delivers(receive, envelope(from, &header), bytes);
        } else {
            found.receive = Some(receive);
        }
        if header.kind == Kind::EagerSynchronous {
            self.tells_matched(from, header);
        }
    }

    /// Tells rank `to` that the data of its message may come for `receive`, when it has a place for
    /// them where the channel has transfers.
    fn clears(&mut self, to: u32, header: Header, receive: usize) {
        if !self.matches(receive, to, header) {
            self.clears_stream(to, header, receive);
        }
    }

    /// Tells rank `to` that they may come as a packet.
    pub(super) fn clears_stream(&mut self, to: u32, header: Header, receive: usize) {
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

    /// All of a packet's data have come `from` a rank.
    fn arrives(&mut self, from: u32, body: Body) {
        let envelope = envelope(from, &body.header);
        match body.to {
            // Handlers are called without the device's lock.
            To::Handler => {}
            To::Receive(receive) => {
                // Data that should have come to a place say less of their message.
                let envelope = self.abandons(receive).unwrap_or(envelope);
                self.delivers(receive, envelope, body.bytes);
            }
            To::Message(message) => {
                let Some(found) = self.messages.get_mut(message) else {
                    return;
                };
                match found.receive {
                    Some(receive) => {
                        self.messages.remove(message);
                        self.delivers(receive, envelope, body.bytes);
                    }
                    None => {
                        found.bytes = body.bytes;
                        found.is_complete = true;
                    }
                }
            }
        }
    }

    /// All of a message is there for `receive`.
    pub(super) fn delivers(&mut self, receive: usize, envelope: Envelope, mut bytes: Vec<u8>) {
        let Some(found) = self.requests.get(receive) else {
            return;
        };
        if let Activity::Receive { most, .. } = found.activity {
            bytes.truncate(most);
            let outcome = Outcome {
                envelope: Some(envelope),
                bytes,
                ..Outcome::default()
            };
            self.ends(receive, outcome);
        }
    }
}

/// The envelope of a message `from` a rank with this header.
pub(super) fn envelope(from: u32, header: &Header) -> Envelope {
    Envelope {
        context: header.context,
        from,
        tag: header.tag,
        length: header.length,
        call: header.call,
        root: header.root,
    }
}
