//! The nodes of one worker, with the time of each one's next event side by side, and the least of
//! each block of them: in most windows few nodes have anything to do, and the others cost nothing.

use super::{Envelope, Node, Outbox};
use crate::time::Time;

/// Nodes of which one time is kept: as many times as a few cache lines hold.
const BLOCK: usize = 64;

/// A contiguous share of the nodes.
pub(super) struct Shard<'a, N: Node> {
    nodes: &'a mut [N],
    /// The number of the first node.
    first: u32,
    next: Vec<Time>,
    /// No later than the earliest in its block of `next`.
    blocks: Vec<Time>,
    outbox: Outbox<N::Message>,
    workspace: N::Workspace,
}

impl<'a, N: Node> Shard<'a, N> {
    /// Of `nodes`, the first of which has the number `first`.
    pub(super) fn new(nodes: &'a mut [N], first: u32) -> Self {
        let next: Vec<Time> = nodes.iter().map(Node::next).collect();
        Self {
            nodes,
            first,
            blocks: next.chunks(BLOCK).map(earliest).collect(),
            next,
            outbox: Outbox::new(),
            workspace: N::Workspace::default(),
        }
    }

    /// When anything happens next.
    pub(super) fn next(&self) -> Time {
        earliest(&self.blocks)
    }

    /// Runs every node to `end`. Messages to one's own nodes are delivered at once (they arrive
    /// in a later window), the others are given to `elsewhere`.
    pub(super) fn advance(&mut self, end: Time, mut elsewhere: impl FnMut(Envelope<N::Message>)) {
        for block in 0..self.blocks.len() {
            if self.blocks[block] >= end {
                continue;
            }
            let numbers = block * BLOCK..self.nodes.len().min((block + 1) * BLOCK);
            for number in numbers.clone() {
                if self.next[number] >= end {
                    continue;
                }
                self.nodes[number].advance(end, &mut self.outbox, &mut self.workspace);
                self.next[number] = self.nodes[number].next();
                while let Some(envelope) = self.outbox.messages.pop() {
                    debug_assert!(envelope.at >= end, "a message within the window");
                    match self.position(envelope.to) {
                        Some(position) => self.deliver_at(position, envelope),
                        None => elsewhere(envelope),
                    }
                }
            }
            self.blocks[block] = earliest(&self.next[numbers]);
        }
    }

    /// Hands over a message from elsewhere.
    pub(super) fn deliver(&mut self, envelope: Envelope<N::Message>) {
        match self.position(envelope.to) {
            Some(position) => self.deliver_at(position, envelope),
            None => debug_assert!(false, "a message to a node of another worker"),
        }
    }

    #[inline]
    fn position(&self, number: u32) -> Option<usize> {
        let position = number.wrapping_sub(self.first) as usize;
        (position < self.nodes.len()).then_some(position)
    }

    #[inline]
    fn deliver_at(&mut self, position: usize, envelope: Envelope<N::Message>) {
        let Envelope {
            at,
            from,
            sequence,
            message,
            ..
        } = envelope;
        self.nodes[position].deliver(at, from, sequence, message);
        self.next[position] = self.next[position].min(at);
        let block = &mut self.blocks[position / BLOCK];
        *block = (*block).min(at);
    }
}

fn earliest(times: &[Time]) -> Time {
    times.iter().copied().min().unwrap_or(Time::NEVER)
}
