//! Ranks that end, or part: nothing may be under way between them.

use super::packet::{Header, Kind};
use super::{Activity, Device, Outgoing, Request};
use crate::group::Group;

/// Something that is under way, and the other rank of the job where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    Send(u32),
    Receive(u32),
    /// A receive that takes messages of any rank.
    ReceiveAny,
    /// A message that no receive has taken.
    Message(u32),
}

impl Unfinished {
    const BYTES: usize = 8;

    /// Encodes it for other ranks.
    pub(crate) fn to_bytes(found: Option<Self>) -> Vec<u8> {
        let (kind, peer) = match found {
            None => (0, 0),
            Some(Self::Send(peer)) => (1, peer),
            Some(Self::Receive(peer)) => (2, peer),
            Some(Self::ReceiveAny) => (3, 0),
            Some(Self::Message(peer)) => (4, peer),
        };
        [u32::to_le_bytes(kind), peer.to_le_bytes()].concat()
    }

    /// The first of what ranks told, and the number of that rank.
    pub(crate) fn first(told: &[u8]) -> Option<(usize, Self)> {
        let (words, _) = told.as_chunks::<4>();
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        (0..told.len() / Self::BYTES).find_map(|rank| {
            let peer = word(2 * rank + 1);
            let found = match word(2 * rank) {
                0 => return None,
                1 => Self::Send(peer),
                2 => Self::Receive(peer),
                3 => Self::ReceiveAny,
                _ => Self::Message(peer),
            };
            Some((rank, found))
        })
    }

    /// In words, of rank `rank`.
    pub(crate) fn text(self, rank: usize) -> String {
        match self {
            Self::Send(to) => format!("rank {rank} has a send to rank {to} of the job under way"),
            Self::Receive(from) => {
                format!("rank {rank} has a receive from rank {from} of the job under way")
            }
            Self::ReceiveAny => format!("rank {rank} has a receive from any rank under way"),
            Self::Message(from) => {
                format!("rank {rank} has not received a message of rank {from} of the job")
            }
        }
    }
}

impl Device {
    /// Returns whether nothing of this rank's own waits to leave: no packet, and no send without an
    /// owner. Ranks outside `world` may have ended. None of them waits to hear of a place: packets
    /// that tell of one may stay.
    pub(crate) fn is_drained(&self, world: &Group) -> bool {
        let state = self.state.lock();
        let mut requests = state.requests.iter();
        let waits = |request: &Request| {
            let is_send = matches!(request.activity, Activity::Send { .. });
            is_send && request.is_freed && request.outcome.is_none()
        };
        let tells_of_place = |packet: &Outgoing| {
            let read = Header::read(&packet.header);
            read.is_some_and(|(header, _)| header.kind == Kind::Place)
        };
        let waits_for = |&to: &u32| {
            let mut packets = state.outgoing.get(to).into_iter().flatten();
            world.rank_of(to).is_some() || !packets.all(tells_of_place)
        };
        !state.busy.iter().any(waits_for) && !requests.any(|(_, request)| waits(request))
    }

    /// Something if all packets have left.
    pub(crate) fn has_sent(&self) -> Option<()> {
        self.state.lock().busy.is_empty().then_some(())
    }

    /// Something that is under way with one of `others`, or a receive from any rank in `context`.
    /// Messages of call number `call`, in which the ranks are, do not count.
    pub(crate) fn unfinished(
        &self,
        others: &Group,
        context: Option<u64>,
        call: u8,
    ) -> Option<Unfinished> {
        let is_other = |rank: &u32| others.rank_of(*rank).is_some();
        let state = self.state.lock();
        let mut requests = state.requests.iter();
        let send = requests.find_map(|(_, request)| match request.activity {
            Activity::Send { to, .. } if request.outcome.is_none() => Some(to).filter(is_other),
            _ => None,
        });
        let receive = || {
            state.queues.posted().find_map(|wanted| match wanted.from {
                Some(from) => is_other(&from).then_some(Unfinished::Receive(from)),
                None => (Some(wanted.context) == context).then_some(Unfinished::ReceiveAny),
            })
        };
        let message = || {
            // Others may be ahead of this rank in the call.
            let mut left = (state.queues.unexpected()).filter(|one| one.call != call);
            let left = left.find(|one| is_other(&one.from))?;
            Some(Unfinished::Message(left.from))
        };
        send.map(Unfinished::Send).or_else(receive).or_else(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_with_something_is_found() {
        let all = [
            None,
            None,
            Some(Unfinished::Receive(7)),
            Some(Unfinished::Send(1)),
        ];
        let told: Vec<u8> = all.into_iter().flat_map(Unfinished::to_bytes).collect();
        assert_eq!(Unfinished::first(&told), Some((2, Unfinished::Receive(7))));
        assert_eq!(Unfinished::first(&told[..16]), None);
        for found in [
            Unfinished::Send(3),
            Unfinished::Receive(0),
            Unfinished::ReceiveAny,
            Unfinished::Message(9),
        ] {
            let told = Unfinished::to_bytes(Some(found));
            assert_eq!(Unfinished::first(&told), Some((0, found)));
        }
    }
}
