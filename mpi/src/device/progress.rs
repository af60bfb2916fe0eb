//! The sweep: everything that can be written, and everything that has arrived.

use super::packet::{HEADER_BYTES, Header, Kind};
use super::{Body, Device, Envelope, Message, Outgoing, Request, State, To};
use crate::channel::{Channel, Segment, Work};

impl<C: Channel> Device<C> {
    /// Makes what progress can be made; returns the destinations for which the channel has no room.
    pub(super) async fn progress(&self) -> Vec<u32> {
        self.write_all().await;
        while let Some(from) = self.channel.arrived().await {
            self.handle(from).await;
        }
        // Handling a packet may have queued answers.
        self.write_all().await
    }

    async fn write_all(&self) -> Vec<u32> {
        let busy = std::mem::take(&mut self.state.lock().busy);
        let mut full = Vec::new();
        for to in busy {
            // Nothing else of this rank runs meanwhile: a packet that is taken out is put back.
            while let Some(mut packet) = self.next_to(to) {
                let is_sent = self.write(to, &mut packet).await;
                let mut state = self.state.lock();
                if !is_sent {
                    state.outgoing[to as usize].push_front(packet);
                    full.push(to);
                    break;
                }
                if let Some(send) = packet.completes {
                    state.completes(send);
                }
            }
        }
        self.state.lock().busy.extend_from_slice(&full);
        full
    }

    fn next_to(&self, to: u32) -> Option<Outgoing> {
        self.state.lock().outgoing[to as usize].pop_front()
    }

    /// Writes what is left of `packet`; whether all of it was taken.
    async fn write(&self, to: u32, packet: &mut Outgoing) -> bool {
        loop {
            let header = packet.header.get(packet.sent..).unwrap_or_default();
            let from = packet.sent.saturating_sub(HEADER_BYTES);
            let segments = [header, &packet.data[from..]];
            if segments.iter().all(|segment| segment.is_empty()) {
                return true;
            }
            let segments = segments.map(|bytes| Segment {
                bytes,
                address: None,
            });
            let taken = self.channel.write(to, &segments).await;
            if taken == 0 {
                return false;
            }
            packet.sent += taken;
        }
    }

    /// Reads what has arrived `from` a rank, to the end of one packet at most.
    async fn handle(&self, from: u32) {
        let mut incoming = std::mem::take(&mut self.state.lock().incoming[from as usize]);
        if incoming.body.is_none() {
            let missing = HEADER_BYTES - incoming.header.len();
            self.channel
                .read(from, missing, None, &mut incoming.header)
                .await;
            if let Ok(bytes) = incoming.header.as_slice().try_into()
                && let Some(header) = Header::from_bytes(bytes)
            {
                incoming.header.clear();
                self.channel.work(Work::Packet, 1).await;
                let (body, compared) = self.state.lock().begins(from, header);
                self.channel.work(Work::Match, compared).await;
                incoming.body = body;
            }
        } else if let Some(body) = &mut incoming.body {
            let missing = body.header.length as usize - body.bytes.len();
            self.channel
                .read(from, missing, None, &mut body.bytes)
                .await;
        }
        let mut state = self.state.lock();
        let is_complete = |body: &mut Body| body.bytes.len() as u64 == body.header.length;
        if let Some(body) = incoming.body.take_if(is_complete) {
            state.ends(from, body);
        }
        state.incoming[from as usize] = incoming;
    }
}

impl State {
    /// The header of a packet has come `from` a rank; its body, if data are to follow. Also returns how many
    /// receives were compared.
    fn begins(&mut self, from: u32, header: Header) -> (Option<Body>, u32) {
        let body = |to| {
            let bytes = Vec::with_capacity(header.data_bytes() as usize);
            Some(Body { header, to, bytes })
        };
        match header.kind {
            Kind::Data => (body(To::Receive(header.receiver as usize)), 0),
            Kind::Matched => {
                self.completes(header.sender as usize);
                (None, 0)
            }
            Kind::ClearToSend => {
                let send = header.sender as usize;
                if let Some(Request::Send { held, .. }) = self.requests.get_mut(send) {
                    let data = std::mem::take(held);
                    let kind = Kind::Data;
                    self.queue(from, Header { kind, ..header }, data, Some(send));
                }
                (None, 0)
            }
            Kind::Eager | Kind::EagerSynchronous | Kind::RequestToSend => {
                let envelope = envelope(from, &header);
                let (receive, compared) = self.queues.come(&envelope);
                let is_asked = header.kind == Kind::RequestToSend;
                let to = match receive {
                    Some(receive) if is_asked => {
                        self.clears(from, header, receive);
                        return (None, compared);
                    }
                    Some(receive) => {
                        if header.kind == Kind::EagerSynchronous {
                            self.tells_matched(from, header);
                        }
                        To::Receive(receive)
                    }
                    None => {
                        let message = self.messages.insert(Message {
                            header,
                            bytes: Vec::new(),
                            is_complete: is_asked,
                            receive: None,
                        });
                        self.queues.keep(envelope, message);
                        if is_asked {
                            return (None, compared);
                        }
                        To::Message(message)
                    }
                };
                (body(to), compared)
            }
        }
    }

    /// All of a packet's data have come `from` a rank.
    fn ends(&mut self, from: u32, body: Body) {
        let envelope = envelope(from, &body.header);
        match body.to {
            To::Receive(receive) => self.delivers(receive, envelope, body.bytes),
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
}

fn envelope(from: u32, header: &Header) -> Envelope {
    Envelope {
        context: header.context,
        from,
        tag: header.tag,
        length: header.length,
    }
}
