//! The nodes of one worker, with the time of each one's next event side by side, and the least of
//! each block of them: in most windows few nodes have anything to do, and the others cost nothing.
//!
//! Nodes are dealt out to workers in stripes, in turn: what happens moves through a machine, and a
//! contiguous share would have its worker idle until it comes there.
//!
//! Messages wait at their block until something happens in it: a large machine's nodes are not in the
//! caches, and each is fetched once for a window's messages and what it does in that window.

use super::{Envelope, Node, Outbox, Task};
use crate::prefetch::prefetch;
use crate::time::Time;

/// Nodes of which one time is kept: as many times as a few cache lines hold.
const BLOCK: usize = 64;
/// The longest and the shortest stripe, in nodes.
const MOST: usize = 1024;
const LEAST: usize = 8;
/// How many nodes ahead memory is asked for.
const AHEAD: usize = 2;
/// Bytes of nodes that a core has in its caches anyhow.
const NEAR: usize = 1 << 20;
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

    /// Whether there is more than one worker.
    #[inline]
    pub(super) fn has_helpers(self) -> bool {
        self.workers > 1
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
struct Stripe<'a, N: Node> {
    nodes: &'a mut [N],
    next: &'a mut [Time],
    blocks: Vec<Block<N::Message>>,
}

/// What is kept of [`BLOCK`] nodes of a stripe.
struct Block<M> {
    /// When the first of them has something to do.
    earliest: Time,
    /// Messages that their nodes do not have yet.
    inbox: Vec<Envelope<M>>,
    /// When the first of those arrives.
    arrives: Time,
}

impl<M> Block<M> {
    /// Of nodes whose times are `next`.
    fn new(next: &[Time]) -> Self {
        Self {
            earliest: earliest(next),
            inbox: Vec::new(),
            arrives: Time::NEVER,
        }
    }

    /// When anything happens next.
    #[inline]
    fn next(&self) -> Time {
        self.earliest.min(self.arrives)
    }

    #[inline]
    fn keep(&mut self, envelope: Envelope<M>) {
        self.arrives = self.arrives.min(envelope.at);
        self.inbox.push(envelope);
    }
}

impl<N: Node> Stripe<'_, N> {
    /// Finds the earliest in a block anew.
    #[inline]
    fn look_at(&mut self, block: usize) {
        let numbers = block * BLOCK..self.next.len().min((block + 1) * BLOCK);
        self.blocks[block].earliest = earliest(&self.next[numbers]);
    }

    /// Asks for what is far from node `number`, and for the node some way behind it, if they have
    /// something to do before `end`.
    #[inline]
    fn ask_for(&self, number: usize, end: Time) {
        let due = |&number: &usize| self.next.get(number).is_some_and(|&next| next < end);
        if let Some(number) = Some(number + AHEAD).filter(due) {
            prefetch(&self.nodes[number]);
        }
        if let Some(number) = Some(number).filter(due) {
            self.nodes[number].prefetch();
        }
    }

    /// Hands over the messages of a block; `place` tells where in the stripe a node is, `far` whether
    /// they are asked for.
    fn hand_over(&mut self, block: usize, far: bool, place: impl Fn(u32) -> usize) {
        let block = &mut self.blocks[block];
        block.arrives = Time::NEVER;
        let mut messages = block.inbox.drain(..);
        while let Some(envelope) = messages.next() {
            if far && let Some(later) = messages.as_slice().get(AHEAD) {
                prefetch(&self.nodes[place(later.to)]);
            }
            let Envelope {
                to,
                at,
                from,
                sequence,
                message,
            } = envelope;
            let place = place(to);
            self.nodes[place].deliver(at, from, sequence, message);
            self.next[place] = self.nodes[place].next();
        }
    }
}

/// A worker's share of the nodes.
pub(super) struct Shard<'a, N: Node> {
    me: usize,
    deal: Deal,
    /// The number of the process's first node.
    first: u32,
    /// Nodes are in no cache, and asked for before they are needed.
    far: bool,
    stripes: Vec<Stripe<'a, N>>,
    outbox: Outbox<N::Message>,
    workspace: N::Workspace,
    /// What nodes wait for in this window, with the place (stripe, and node in it) of each.
    tasks: Vec<Waits<N>>,
}

/// A task, and the place of the node that waits for it: its stripe, and its number there.
pub(super) type Waits<N> = ((usize, usize), <N as Node>::Task);

/// The shares of all workers in `nodes`, the first of which has the number `first`; `next` is what
/// each says of itself.
pub(super) fn dealt<'a, N: Node>(
    deal: Deal,
    nodes: &'a mut [N],
    next: &'a mut [Time],
    first: u32,
) -> Vec<Shard<'a, N>> {
    let far = size_of_val(nodes) > NEAR;
    let mut shards: Vec<Shard<'a, N>> = (0..deal.workers as usize)
        .map(|me| Shard {
            me,
            deal,
            first,
            far,
            stripes: Vec::new(),
            outbox: Outbox::new(),
            workspace: N::Workspace::default(),
            tasks: Vec::new(),
        })
        .collect();
    let stripe = deal.stripe as usize;
    let stripes = nodes.chunks_mut(stripe).zip(next.chunks_mut(stripe));
    for (number, (nodes, next)) in stripes.enumerate() {
        let worker = number % shards.len();
        shards[worker].stripes.push(Stripe {
            nodes,
            blocks: next.chunks(BLOCK).map(Block::new).collect(),
            next,
        });
    }
    shards
}

impl<N: Node> Shard<'_, N> {
    /// When anything happens next.
    pub(super) fn next(&self) -> Time {
        let blocks = self.stripes.iter().flat_map(|stripe| &stripe.blocks);
        blocks.map(Block::next).min().unwrap_or(Time::NEVER)
    }

    /// Runs every node to `end`, or to where it waits for a task if others can help with it.
    /// Messages to one's own nodes are kept (they arrive in a later window), the others are given to
    /// `elsewhere`.
    pub(super) fn advance(&mut self, end: Time, mut elsewhere: impl FnMut(Envelope<N::Message>)) {
        for stripe in 0..self.stripes.len() {
            for block in 0..self.stripes[stripe].blocks.len() {
                if self.stripes[stripe].blocks[block].next() < end {
                    self.advance_block(end, (stripe, block), &mut elsewhere);
                }
            }
        }
    }

    fn advance_block(
        &mut self,
        end: Time,
        (stripe, block): (usize, usize),
        elsewhere: &mut impl FnMut(Envelope<N::Message>),
    ) {
        self.hand_over(stripe, block);
        let most = self.stripes[stripe].nodes.len();
        for number in block * BLOCK..most.min((block + 1) * BLOCK) {
            if self.far {
                self.stripes[stripe].ask_for(number + AHEAD, end);
            }
            if self.stripes[stripe].next[number] < end {
                self.advance_node(end, (stripe, number), elsewhere);
            }
        }
        self.stripes[stripe].look_at(block);
    }

    #[inline]
    fn hand_over(&mut self, stripe: usize, block: usize) {
        let (deal, first) = (self.deal, self.first);
        self.stripes[stripe].hand_over(block, self.far, |node| deal.place(node - first).1);
    }

    /// Hands over whatever is kept: the run ends or pauses, and its nodes are looked at.
    pub(super) fn put_down(&mut self) {
        for stripe in 0..self.stripes.len() {
            for block in 0..self.stripes[stripe].blocks.len() {
                self.hand_over(stripe, block);
            }
        }
    }

    #[inline]
    fn advance_node(
        &mut self,
        end: Time,
        (stripe, number): (usize, usize),
        elsewhere: &mut impl FnMut(Envelope<N::Message>),
    ) {
        let Stripe { nodes, next, .. } = &mut self.stripes[stripe];
        let node = &mut nodes[number];
        while let Some(mut task) = node.advance(end, &mut self.outbox, &mut self.workspace) {
            if self.deal.has_helpers() {
                self.tasks.push(((stripe, number), task));
                break;
            }
            task.perform(&mut self.workspace);
            node.take_back(task);
        }
        next[number] = node.next();
        while let Some(envelope) = self.outbox.messages.pop() {
            debug_assert!(envelope.at >= end, "a message within the window");
            match self.index(envelope.to) {
                Some(index) => self.keep(index, envelope),
                None => elsewhere(envelope),
            }
        }
    }

    /// What own nodes wait for.
    pub(super) fn tasks(&mut self) -> &mut Vec<Waits<N>> {
        &mut self.tasks
    }

    /// Does what some node, own or not, waits for.
    pub(super) fn perform(&mut self, task: &mut N::Task) {
        task.perform(&mut self.workspace);
    }

    /// Runs on an own node, whose task is done.
    pub(super) fn goes_on(
        &mut self,
        end: Time,
        (place, task): Waits<N>,
        mut elsewhere: impl FnMut(Envelope<N::Message>),
    ) {
        let (stripe, number) = place;
        self.stripes[stripe].nodes[number].take_back(task);
        self.advance_node(end, place, &mut elsewhere);
        self.stripes[stripe].look_at(number / BLOCK);
    }

    /// Keeps a message from elsewhere.
    pub(super) fn deliver(&mut self, envelope: Envelope<N::Message>) {
        match self.index(envelope.to) {
            Some(index) => self.keep(index, envelope),
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
    fn keep(&mut self, index: u32, envelope: Envelope<N::Message>) {
        let (stripe, place) = self.deal.place(index);
        self.stripes[stripe].blocks[place / BLOCK].keep(envelope);
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
