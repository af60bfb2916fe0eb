//! One direction of a link with credits. Packets wait in a queue for each channel; one enters the
//! link when the link is free and its channel has a credit, which comes back when the other side
//! has taken it.

use std::collections::VecDeque;

use super::tables;
use crate::time::Time;

/// A direction of a link: the sender's side of it, for packets `P` of so many channels.
#[derive(Debug)]
pub struct CreditLink<P, const CHANNELS: usize> {
    queues: [VecDeque<P>; CHANNELS],
    credits: [u32; CHANNELS],
    /// A packet is entering it until then.
    free_at: Time,
    /// Whether the sender knows that it has to return at that time.
    is_awaited: bool,
}

/// The result of [`CreditLink::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<P> {
    /// The packet has begun to enter the link.
    Enters(P),
    /// The link is busy until then, which the sender has not been told before.
    BusyUntil(Time),
    /// The link is busy, as the sender knows.
    Busy,
}

impl<P, const CHANNELS: usize> CreditLink<P, CHANNELS> {
    /// An idle link with so many credits for each channel.
    pub fn new(credits: [u32; CHANNELS]) -> Self {
        Self {
            queues: std::array::from_fn(|_| VecDeque::new()),
            credits,
            free_at: Time::ZERO,
            is_awaited: false,
        }
    }

    /// `packet` waits in the queue of `channel`.
    pub fn enqueue(&mut self, channel: usize, packet: P) {
        tables::push_back(&mut self.queues[channel], packet);
    }

    /// A credit of `channel` has come back.
    pub fn credit(&mut self, channel: usize) {
        self.credits[channel] += 1;
    }

    /// The time has come until which the link was [busy](Sent::BusyUntil).
    pub fn is_free(&mut self) {
        self.is_awaited = false;
    }

    /// Returns whether a packet of `channel` waits.
    pub fn waits(&self, channel: usize) -> bool {
        !self.queues[channel].is_empty()
    }

    /// Returns whether a packet of `channel` waits and has a credit.
    pub fn may_send(&self, channel: usize) -> bool {
        self.credits[channel] > 0 && self.waits(channel)
    }

    /// Sends the oldest packet of `channel`, which [may go](Self::may_send), if the link is free;
    /// the packet occupies it for as long as `takes` says.
    pub fn send(&mut self, now: Time, channel: usize, takes: impl FnOnce(&P) -> Time) -> Sent<P> {
        if self.free_at > now {
            if std::mem::replace(&mut self.is_awaited, true) {
                return Sent::Busy;
            }
            return Sent::BusyUntil(self.free_at);
        }
        debug_assert!(
            self.may_send(channel),
            "channel {channel} has nothing to send"
        );
        let Some(packet) = self.queues[channel].pop_front() else {
            return Sent::Busy;
        };
        self.credits[channel] -= 1;
        self.free_at = now + takes(&packet);
        Sent::Enters(packet)
    }

    /// The time at which the packet that was sent last has entered the link.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns whether no packet waits and every channel has its `credits` back.
    pub fn is_quiet(&self, credits: [u32; CHANNELS]) -> bool {
        self.queues.iter().all(VecDeque::is_empty) && self.credits == credits
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.queues.iter().map(tables::queue_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Enqueue(usize),
        Credit(usize),
        Send(usize),
        Wait(u64),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let channel = || 0..2usize;
        let act = prop_oneof![
            3 => channel().prop_map(Act::Enqueue),
            2 => channel().prop_map(Act::Credit),
            4 => channel().prop_map(Act::Send),
            1 => (1..20u64).prop_map(Act::Wait),
        ];
        prop::collection::vec(act, 0..80)
    }

    proptest! {
        /// Packets of a channel keep their order and take a credit each, and none begins before the
        /// one before it has ended.
        #[test]
        fn packets_take_turns(acts in acts(), credits in prop::array::uniform2(0..4u32)) {
            const TAKES: Time = Time::from_ns(7);
            let mut link = CreditLink::new(credits);
            let (mut now, mut free_at, mut told) = (Time::ZERO, Time::ZERO, false);
            let (mut put, mut sent, mut left) = ([0u32; 2], [0u32; 2], credits);
            for act in acts {
                match act {
                    Act::Enqueue(channel) => {
                        link.enqueue(channel, put[channel]);
                        put[channel] += 1;
                    }
                    Act::Credit(channel) => {
                        link.credit(channel);
                        left[channel] += 1;
                    }
                    Act::Wait(ns) => {
                        now += Time::from_ns(ns);
                        if told && free_at <= now {
                            link.is_free();
                            told = false;
                        }
                    }
                    Act::Send(channel) => {
                        let may = left[channel] > 0 && put[channel] > sent[channel];
                        prop_assert_eq!(link.may_send(channel), may);
                        if !may {
                            continue;
                        }
                        let expected = match (free_at > now, told) {
                            (false, _) => Sent::Enters(sent[channel]),
                            (true, false) => Sent::BusyUntil(free_at),
                            (true, true) => Sent::Busy,
                        };
                        prop_assert_eq!(link.send(now, channel, |_| TAKES), expected);
                        if free_at > now {
                            told = true;
                            continue;
                        }
                        sent[channel] += 1;
                        left[channel] -= 1;
                        free_at = now + TAKES;
                        prop_assert_eq!(link.free_at(), free_at);
                    }
                }
                prop_assert_eq!(link.is_quiet(left), put == sent);
            }
        }
    }
}
