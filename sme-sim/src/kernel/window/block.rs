//! A block of neighbouring nodes of one worker: when anything happens there, and the messages that
//! its nodes do not have yet.
//!
//! A large machine's nodes are not in the caches. So messages stay here until they are due, and
//! those that can wait until their node has something to do, if it does not wait for them; then
//! they are sorted by node, and a node is fetched once for a window's messages and what it does in
//! that window.

use super::inbox::Due;
use super::{Envelope, Node};
use crate::time::Time;

/// Nodes of a block: as many times as a few cache lines hold, and a bit of a word for each.
pub(super) const BLOCK: usize = 64;

/// The bookkeeping of [`BLOCK`] nodes, or fewer at the end of a stripe.
pub(super) struct Block<N: Node> {
    /// The time at which the first of them has something to do.
    earliest: Time,
    /// Messages to them.
    inbox: Vec<Kept<N::Message>>,
    /// The time at which the first of those arrives, or of those that can wait and are waited for.
    arrives: Time,
    /// The nodes that wait for what can wait, bit by bit.
    waiting: u64,
    /// Messages that can wait.
    late: Vec<Late<N::Late>>,
    /// The arrival of the first message that no node waits for and that has not arrived in a window
    /// before. Nothing is done about it; but where windows start must not depend on who has sent a
    /// message, and a sender does not know whether a node waits.
    late_arrives: Time,
}

/// A message to a node of the block.
pub(super) struct Kept<M> {
    pub(super) at: Time,
    pub(super) sequence: u64,
    pub(super) from: u32,
    /// The number of its node in the block.
    pub(super) bit: u8,
    pub(super) message: M,
}

/// One that can wait.
#[derive(Clone, Copy)]
pub(super) struct Late<L> {
    pub(super) at: Time,
    /// The number of its node in the block.
    pub(super) bit: u8,
    pub(super) late: L,
}

impl<N: Node> Block<N> {
    /// Of `nodes`, whose times are `next`.
    pub(super) fn new(nodes: &[N], next: &[Time]) -> Self {
        debug_assert!(nodes.len() <= BLOCK);
        let bits = nodes.iter().enumerate();
        Self {
            earliest: earliest(next),
            inbox: Vec::new(),
            arrives: Time::NEVER,
            waiting: bits.fold(0, |bits, (bit, node)| bits | u64::from(node.waits()) << bit),
            late: Vec::new(),
            late_arrives: Time::NEVER,
        }
    }

    /// Returns the time of the next event of the block.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.earliest.min(self.arrives).min(self.late_arrives)
    }

    /// Finds out anew when the first of its nodes, whose times are `next`, has something to do.
    #[inline]
    pub(super) fn look_at(&mut self, next: &[Time]) {
        self.earliest = earliest(next);
    }

    /// Keeps a message to the node of that bit.
    #[inline]
    pub(super) fn keep(&mut self, bit: usize, envelope: Envelope<N::Message>) {
        let at = envelope.at;
        match N::can_wait(&envelope.message) {
            Some(late) => {
                let bit = bit as u8;
                self.late.push(Late { at, bit, late });
                let arrives = match self.waiting >> bit & 1 {
                    0 => &mut self.late_arrives,
                    _ => &mut self.arrives,
                };
                *arrives = (*arrives).min(at);
            }
            None => {
                self.arrives = self.arrives.min(at);
                self.inbox.push(Kept {
                    at,
                    sequence: envelope.sequence,
                    from: envelope.from,
                    bit: bit as u8,
                    message: envelope.message,
                });
            }
        }
    }

    /// Notes whether the node of that bit waits.
    #[inline]
    pub(super) fn set_waiting(&mut self, bit: usize, waits: bool) {
        let before = self.waiting >> bit & 1 == 1;
        if before == waits {
            return;
        }
        self.waiting ^= 1 << bit;
        if waits {
            let own = self.late.iter().filter(|late| usize::from(late.bit) == bit);
            let first = own.map(|late| late.at).min();
            self.arrives = self.arrives.min(first.unwrap_or(Time::NEVER));
        }
    }

    /// Puts into `due` the messages that arrive before `end`, of those that can wait only what is
    /// for nodes that wait or have something to do before then. Which nodes have, by these messages
    /// or by their times `next`, bit by bit.
    pub(super) fn take_due(&mut self, end: Time, next: &[Time], due: &mut Due<N>) -> u64 {
        let bits = next.iter().enumerate();
        let mut nodes = bits.fold(0, |bits, (bit, &next)| bits | u64::from(next < end) << bit);
        self.arrives = Time::NEVER;
        let mut number = 0;
        while let Some(kept) = self.inbox.get(number) {
            if kept.at < end {
                nodes |= 1 << kept.bit;
                due.push(self.inbox.swap_remove(number));
            } else {
                self.arrives = self.arrives.min(kept.at);
                number += 1;
            }
        }
        self.late_arrives = Time::NEVER;
        let mut number = 0;
        while let Some(&late) = self.late.get(number) {
            let waits = self.waiting >> late.bit & 1 == 1;
            if late.at >= end {
                let arrives = match waits {
                    false => &mut self.late_arrives,
                    true => &mut self.arrives,
                };
                *arrives = (*arrives).min(late.at);
                number += 1;
            } else if waits || nodes >> late.bit & 1 == 1 {
                nodes |= 1 << late.bit;
                due.push_late(self.late.swap_remove(number));
            } else {
                number += 1;
            }
        }
        due.sort();
        nodes
    }

    /// Puts all messages into `due`; whose they are, bit by bit.
    pub(super) fn take_all(&mut self, due: &mut Due<N>) -> u64 {
        self.waiting = u64::MAX;
        self.take_due(Time::NEVER, &[], due)
    }
}

fn earliest(times: &[Time]) -> Time {
    times.iter().copied().min().unwrap_or(Time::NEVER)
}
