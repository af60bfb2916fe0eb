//! Requests that are cancelled (MPI-4.1, Sec. 3.8.4): a receive that has matched no message is
//! withdrawn, a send is asked back. Either may turn out to have been matched meanwhile.

use super::packet::{Header, Kind};
use super::{Activity, Device, Message, Outcome, Outgoing, State};

impl Device {
    /// Cancels a request if it has not been matched; its end says whether it was.
    pub(crate) fn cancel(&self, request: usize) {
        let mut state = self.state.lock();
        let Some(found) = state.requests.get(request) else {
            return;
        };
        if found.outcome.is_some() {
            return;
        }
        match found.activity {
            Activity::Receive { .. } => {
                if !state.takes_back(request) && state.queues.withdraw(request) {
                    state.ends_cancelled(request);
                }
            }
            // Nothing is under way between the rank and itself.
            Activity::Send { to, .. } => {
                let is_own = to == self.rank;
                match is_own && state.gives_back(to, request) {
                    true => state.ends_cancelled(request),
                    false => state.cancel_send(request, to),
                }
            }
            Activity::Task => {}
        }
    }
}

impl State {
    /// Takes back a send that has not left, or asks its receiver to give it back.
    pub(super) fn cancel_send(&mut self, request: usize, to: u32) {
        // Where messages are numbered each one that was counted leaves.
        let is_kept = self.direct.is_some();
        let queue = self.outgoing.of(to);
        let is_its = |packet: &Outgoing| {
            !is_kept
                && packet.sent == 0
                && Header::read(&packet.header).is_some_and(|(header, _)| {
                    let kinds = [Kind::Eager, Kind::EagerSynchronous, Kind::RequestToSend];
                    header.sender == request as u32 && kinds.contains(&header.kind)
                })
        };
        if let Some(place) = queue.iter().position(is_its) {
            queue.remove(place);
            if queue.is_empty() {
                self.busy.retain(|&busy| busy != to);
            }
            return self.ends_cancelled(request);
        }
        // Its data go with the message: the send is over when they have left.
        let is_leaving = |packet: &Outgoing| packet.completes == Some(request);
        if self.outgoing.of(to).iter().any(is_leaving) {
            return;
        }
        let header = Header {
            sender: request as u32,
            ..Header::of(Kind::Withdraw)
        };
        self.queue(to, header, Vec::new(), None);
    }

    pub(super) fn ends_cancelled(&mut self, request: usize) {
        let outcome = Outcome {
            is_cancelled: true,
            ..Outcome::default()
        };
        self.ends(request, outcome);
    }

    /// The sender wants a message back.
    pub(super) fn withdraws(&mut self, from: u32, header: Header) {
        if self.gives_back(from, header.sender as usize) {
            let kind = Kind::Withdrawn;
            self.queue(from, Header { kind, ..header }, Vec::new(), None);
        }
    }

    /// Gives the message of that request of its sender's back, if it has come and no receive has
    /// matched it; whether that is so.
    fn gives_back(&mut self, from: u32, request: usize) -> bool {
        // Requests of other messages do not live until they are answered: their numbers come again.
        let kinds = [Kind::EagerSynchronous, Kind::RequestToSend];
        let is_its = |message: &Message| {
            let of_sender = (message.from, message.header.sender) == (from, request as u32);
            of_sender && kinds.contains(&message.header.kind)
        };
        let mut messages = self.messages.iter();
        let Some((message, _)) = messages.find(|(_, message)| is_its(message)) else {
            return false;
        };
        let is_free = self.queues.take_back(message);
        if is_free {
            self.messages.remove(message);
        }
        is_free
    }

    /// A receive whose sender has forgotten its place is cancelled.
    pub(super) fn receive_cancelled(&mut self, receive: usize) {
        if self.queues.withdraw(receive) {
            self.abandons(receive);
            self.ends_cancelled(receive);
        }
    }

    /// Asks the sender that was told of a receive's place to forget it; whether it has been told.
    fn takes_back(&mut self, receive: usize) -> bool {
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
}
