//! The steps of transfers that take time, between which the [driver](crate::device::driver) and the
//! server act: what is to be opened, copied, started or looked at, and what became of it.

use std::mem::take;

use super::{Copy, Direct, Landing, Opening, Opens, Ready, Way};
use crate::channel::transfers::{Outbound, Started, Ticket};
use crate::device::arrival::envelope;
use crate::device::packet::{Header, Kind};
use crate::device::{Activity, CallForm, Device, Head, Mode, Outcome, State};

impl Device {
    /// Takes a list or a queue of the rank's transfers; empty if it has none.
    fn taken<T: Default>(&self, take: impl FnOnce(&mut Direct) -> T) -> T {
        let mut state = self.state.lock();
        state.direct.as_mut().map(take).unwrap_or_default()
    }

    /// A send that is to be copied.
    pub(in crate::device) fn next_copy(&self) -> Option<Copy> {
        self.taken(|direct| direct.copies.pop_front())
    }

    /// Handles the end of a copy to an address of the library's; without an address there is no
    /// room, and the message goes as others do.
    pub(in crate::device) fn copied(&self, copy: Copy, address: Option<u64>) {
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
                let form = CallForm::Task;
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
    pub(in crate::device) fn next_opening(&self) -> Option<Opens> {
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

    /// Handles the opening of a place; without a ticket there was no room.
    pub(in crate::device) fn opened(&self, opens: Opens, ticket: Option<Ticket>) {
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
                state.expects(receive, envelope(to, &header));
                let kind = Kind::Matches;
                Header { kind, ..header }
            }
            _ => {
                let direct = state.direct.as_ref();
                let peer = direct.and_then(|direct| direct.peers.get(to));
                Header {
                    sender: peer.map_or(0, |peer| peer.seen),
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
    pub(in crate::device) fn take_closings(&self) -> Vec<Ticket> {
        self.taken(|direct| take(&mut direct.closings))
    }

    /// The next transfer for the rank to start.
    pub(in crate::device) fn next_ready(&self) -> Option<Ready> {
        self.taken(|direct| direct.ready.pop_front())
    }

    /// The next one for the server.
    pub(in crate::device) fn next_served(&self) -> Option<Ready> {
        self.taken(|direct| direct.served.pop_front())
    }

    /// Returns whether the server is to be woken.
    pub(in crate::device) fn take_wake(&self) -> bool {
        self.taken(|direct| take(&mut direct.is_server_asleep))
    }

    /// The data of a transfer have left for rank `to`, or there was no memory for them: then they
    /// go as a packet.
    pub(in crate::device) fn pushed(&self, to: u32, ready: &Ready, pushed: Result<(), Outbound>) {
        if let Err(data) = pushed {
            return self.goes_as_packet(ready, data);
        }
        let mut state = self.state.lock();
        let shows_arrivals = |direct: &Direct| direct.abilities.shows_arrivals;
        if state.direct.as_ref().is_some_and(shows_arrivals) {
            return state.ends(ready.request, Outcome::default());
        }
        let header = Header {
            receiver: ready.receive,
            ..Header::of(Kind::Landed)
        };
        state.queue(to, header, Vec::new(), Some(ready.request));
    }

    /// The same of one that a DMA channel makes.
    pub(in crate::device) fn started(&self, ready: &Ready, started: Result<Started, Outbound>) {
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
    pub(in crate::device) fn leaving(&self) -> Vec<(usize, Started)> {
        self.taken(|direct| direct.leaving.clone())
    }

    /// The data of one have left.
    pub(in crate::device) fn left(&self, request: usize) {
        let mut state = self.state.lock();
        if let Some(direct) = &mut state.direct {
            direct.leaving.retain(|&(other, _)| other != request);
        }
        state.ends(request, Outcome::default());
    }

    /// The receives whose data are to come to their places.
    pub(in crate::device) fn landings(&self) -> Vec<(usize, Ticket, u64)> {
        self.taken(|direct| direct.landings.clone())
    }

    /// The data of one have come.
    pub(in crate::device) fn lands(&self, receive: usize, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        if let Some(direct) = &mut state.direct {
            direct.landings.retain(|&(other, ..)| other != receive);
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
    pub(in crate::device) fn copies(&mut self, user: usize, to: u32, head: Head, bytes: Vec<u8>) {
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
