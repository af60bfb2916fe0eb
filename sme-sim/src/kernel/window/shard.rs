//! The nodes of one worker, with the time of each one's next event side by side, and the least of
//! each block of them: in most windows few nodes have anything to do, and the others cost nothing.
//!
//! Nodes are dealt out to workers in stripes, in turn: what happens moves through a machine, and a
//! contiguous share would have its worker idle until it comes there.

use super::{Envelope, Node, Outbox};
use crate::time::Time;

/// Nodes of which one time is kept: as many times as a few cache lines hold.
const BLOCK: usize = 64;
/// The longest and the shortest stripe, in nodes.
const MOST: usize = 1024;
const LEAST: usize = 8;
/// Stripes that a worker has if these bounds allow it.
const STRIPES: usize = 32;

/// How the nodes of a process are dealt out to its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    stripe: u32,
    workers: u32,
}

impl Deal {
    /// `nodes` nodes to `workers` workers, at least one.
    pub(super) fn new(nodes: usize, workers: usize) -> Self {
        let stripe = match workers {
            0 | 1 => nodes.max(1),
            _ => (nodes / (workers * STRIPES)).clamp(LEAST, MOST),
        };
        Self {
            stripe: stripe as u32,
            workers: workers.max(1) as u32,
        }
    }

    /// Which worker has the node with this `index` in the process.
    #[inline]
    pub(super) fn worker(self, index: u32) -> usize {
        (index / self.stripe % self.workers) as usize
    }

    /// The stripe and the place in it where that worker has it.
    #[inline]
    fn place(self, index: u32) -> (usize, usize) {
        let stripe = index / self.stripe / self.workers;
        (stripe as usize, (index % self.stripe) as usize)
    }
}

/// Neighbouring nodes.
struct Stripe<'a, N> {
    nodes: &'a mut [N],
    next: &'a mut [Time],
    /// No later than the earliest in its block of `next`.
    blocks: Vec<Time>,
}

/// A worker's share of the nodes.
pub(super) struct Shard<'a, N: Node> {
    me: usize,
    deal: Deal,
    /// The number of the process's first node.
    first: u32,
    stripes: Vec<Stripe<'a, N>>,
    outbox: Outbox<N::Message>,
    workspace: N::Workspace,
}

/// The shares of all workers in `nodes`, the first of which has the number `first`; `next` is what
/// each says of itself.
pub(super) fn dealt<'a, N: Node>(
    deal: Deal,
    nodes: &'a mut [N],
    next: &'a mut [Time],
    first: u32,
) -> Vec<Shard<'a, N>> {
    let mut shards: Vec<Shard<'a, N>> = (0..deal.workers as usize)
        .map(|me| Shard {
            me,
            deal,
            first,
            stripes: Vec::new(),
            outbox: Outbox::new(),
            workspace: N::Workspace::default(),
        })
        .collect();
    let stripe = deal.stripe as usize;
    let stripes = nodes.chunks_mut(stripe).zip(next.chunks_mut(stripe));
    for (number, (nodes, next)) in stripes.enumerate() {
        let worker = number % shards.len();
        shards[worker].stripes.push(Stripe {
            nodes,
            blocks: next.chunks(BLOCK).map(earliest).collect(),
            next,
        });
    }
    shards
}

impl<N: Node> Shard<'_, N> {
    /// When anything happens next.
    pub(super) fn next(&self) -> Time {
        let stripes = self.stripes.iter().map(|stripe| earliest(&stripe.blocks));
        stripes.min().unwrap_or(Time::NEVER)
    }

    /// Runs every node to `end`. Messages to one's own nodes are delivered at once (they arrive
    /// in a later window), the others are given to `elsewhere`.
    pub(super) fn advance(&mut self, end: Time, mut elsewhere: impl FnMut(Envelope<N::Message>)) {
        for stripe in 0..self.stripes.len() {
            for block in 0..self.stripes[stripe].blocks.len() {
                if self.stripes[stripe].blocks[block] < end {
                    self.advance_block(end, stripe, block, &mut elsewhere);
                }
            }
        }
    }

    fn advance_block(
        &mut self,
        end: Time,
        stripe: usize,
        block: usize,
        elsewhere: &mut impl FnMut(Envelope<N::Message>),
    ) {
        let most = self.stripes[stripe].nodes.len();
        let numbers = block * BLOCK..most.min((block + 1) * BLOCK);
        for number in numbers.clone() {
            let Stripe { nodes, next, .. } = &mut self.stripes[stripe];
            if next[number] >= end {
                continue;
            }
            nodes[number].advance(end, &mut self.outbox, &mut self.workspace);
            next[number] = nodes[number].next();
            while let Some(envelope) = self.outbox.messages.pop() {
                debug_assert!(envelope.at >= end, "a message within the window");
                match self.index(envelope.to) {
                    Some(index) => self.deliver_at(index, envelope),
                    None => elsewhere(envelope),
                }
            }
        }
        let Stripe { next, blocks, .. } = &mut self.stripes[stripe];
        blocks[block] = earliest(&next[numbers]);
    }

    /// Hands over a message from elsewhere.
    pub(super) fn deliver(&mut self, envelope: Envelope<N::Message>) {
        match self.index(envelope.to) {
            Some(index) => self.deliver_at(index, envelope),
            None => debug_assert!(false, "a message to a node of another worker"),
        }
    }

    /// The index in the process of node `number`, if this worker has it.
    #[inline]
    fn index(&self, number: u32) -> Option<u32> {
        let index = number.wrapping_sub(self.first);
        let (stripe, place) = self.deal.place(index);
        let mine = self.deal.worker(index) == self.me;
        let there = self.stripes.get(stripe)?;
        (mine && place < there.nodes.len()).then_some(index)
    }

    #[inline]
    fn deliver_at(&mut self, index: u32, envelope: Envelope<N::Message>) {
        let Envelope {
            at,
            from,
            sequence,
            message,
            ..
        } = envelope;
        let (stripe, place) = self.deal.place(index);
        let Stripe {
            nodes,
            next,
            blocks,
        } = &mut self.stripes[stripe];
        nodes[place].deliver(at, from, sequence, message);
        next[place] = next[place].min(at);
        let block = &mut blocks[place / BLOCK];
        *block = (*block).min(at);
    }
}

fn earliest(times: &[Time]) -> Time {
    times.iter().copied().min().unwrap_or(Time::NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_node_is_one_workers_and_has_one_place(nodes in 1usize..9_000, workers in 1usize..7) {
            let deal = Deal::new(nodes, workers);
            let mut seen = std::collections::HashSet::new();
            for index in 0..nodes as u32 {
                let worker = deal.worker(index);
                prop_assert!(worker < workers);
                prop_assert!(seen.insert((worker, deal.place(index))));
            }
        }
    }

    #[test]
    fn workers_have_about_the_same_of_every_part() {
        let deal = Deal::new(226_981, 2);
        for part in 0..8u32 {
            let own = (part * 28_000..(part + 1) * 28_000).filter(|&n| deal.worker(n) == 0);
            assert!((12_900..15_100).contains(&own.count()));
        }
    }
}
