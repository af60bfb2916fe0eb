//! The nodes of one worker, with the time of each one's next event side by side, and the least of
//! each block of them: in most windows few nodes have anything to do, and the others cost nothing.
//!
//! Nodes are dealt out to workers in stripes, in turn: what happens moves through a machine, and a
//! contiguous share would have its worker idle until it comes there.

use std::ops::Range;

use super::block::{BLOCK, Block};
use super::inbox::{Due, Inbox};
use super::{Envelope, Locality, Node, Outbox, Task};
use crate::time::Time;

/// The longest and the shortest stripe, in nodes.
const MOST: usize = 1024;
const LEAST: usize = 8;
/// The distance, in nodes, at which a node's memory is prefetched.
const AHEAD: usize = 2;
/// Bytes of nodes that a core has in its caches anyhow.
const NEAR: usize = 1 << 20;
/// Stripes that a worker has if these bounds allow it.
const STRIPES: usize = 32;

/// The division of a process's nodes among its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    /// The logarithm of a stripe's nodes: whose a node is is asked for every message.
    stripe_bits: u32,
    workers: u32,
}

/// The seat of a node: its worker, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    pub(super) worker: usize,
    /// The stripe of the worker.
    stripe: usize,
    /// The node's number there.
    number: usize,
}

impl Deal {
    /// `nodes` nodes to `workers` workers, at least one.
    pub(super) fn new(nodes: usize, workers: usize) -> Self {
        let stripe = match workers {
            0 | 1 => nodes.max(1),
            _ => (nodes / (workers * STRIPES)).clamp(LEAST, MOST),
        };
        Self {
            stripe_bits: stripe.next_power_of_two().trailing_zeros(),
            workers: workers.max(1) as u32,
        }
    }

    /// Returns whether there is more than one worker.
    #[inline]
    pub(super) fn has_helpers(self) -> bool {
        self.workers > 1
    }

    /// Nodes of a stripe, except maybe the last.
    fn stripe(self) -> usize {
        1 << self.stripe_bits
    }

    /// Returns the seat of the node with this `index` in the process.
    #[inline]
    pub(super) fn seat(self, index: u32) -> Seat {
        let stripe = index >> self.stripe_bits;
        Seat {
            worker: (stripe % self.workers) as usize,
            stripe: (stripe / self.workers) as usize,
            number: index as usize & (self.stripe() - 1),
        }
    }
}

/// Neighbouring nodes.
struct Stripe<'a, N: Node> {
    nodes: &'a mut [N],
    next: &'a mut [Time],
    blocks: Vec<Block<N>>,
}

impl<N: Locality> Stripe<'_, N> {
    /// Returns the answer of [`Block::take_due`] for a block.
    #[inline]
    fn take_due(&mut self, block: usize, end: Time, due: &mut Due<N>) -> u64 {
        let numbers = self.numbers(block);
        self.blocks[block].take_due(end, &self.next[numbers], due)
    }

    /// Finds out anew when the first of a block's nodes has something to do.
    #[inline]
    fn look_at(&mut self, block: usize) {
        let numbers = self.numbers(block);
        self.blocks[block].look_at(&self.next[numbers]);
    }

    /// The numbers of a block's nodes.
    #[inline]
    fn numbers(&self, block: usize) -> Range<usize> {
        block * BLOCK..self.next.len().min((block + 1) * BLOCK)
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
    /// Messages that are being handed over.
    due: Due<N>,
    /// The tasks that nodes wait for in this window, with the place (stripe, and node in it) of
    /// each.
    tasks: Vec<Waits<N>>,
}

/// A task, and the place of the node that waits for it: its stripe, and its number there.
pub(super) type Waits<N> = ((usize, usize), <N as Node>::Task);

/// The shares of all workers in `nodes`, the first of which has the number `first`; `next` is what
/// each says of itself.
pub(super) fn dealt<'a, N: Locality>(
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
            due: Due::new(),
            tasks: Vec::new(),
        })
        .collect();
    let stripe = deal.stripe();
    let stripes = nodes.chunks_mut(stripe).zip(next.chunks_mut(stripe));
    for (number, (nodes, next)) in stripes.enumerate() {
        let worker = number % shards.len();
        shards[worker].stripes.push(Stripe {
            blocks: (nodes.chunks(BLOCK).zip(next.chunks(BLOCK)))
                .map(|(nodes, next)| Block::new(nodes, next))
                .collect(),
            nodes,
            next,
        });
    }
    shards
}

impl<N: Locality> Shard<'_, N> {
    /// Returns the time of the next event of the worker's nodes.
    pub(super) fn next(&self) -> Time {
        let blocks = self.stripes.iter().flat_map(|stripe| &stripe.blocks);
        blocks.map(Block::next).min().unwrap_or(Time::NEVER)
    }

    /// Runs every node through `window`, or to where it waits for a task if others can help with
    /// it. Messages to one's own nodes are kept (they arrive in a later window), the others are
    /// given to `elsewhere`.
    pub(super) fn advance(
        &mut self,
        window: Range<Time>,
        mut elsewhere: impl FnMut(Envelope<N::Message>),
    ) {
        let mut due = std::mem::replace(&mut self.due, Due::new());
        for stripe in 0..self.stripes.len() {
            for block in 0..self.stripes[stripe].blocks.len() {
                if self.stripes[stripe].blocks[block].next() < window.end {
                    let place = (stripe, block);
                    self.advance_block(window.clone(), place, &mut due, &mut elsewhere);
                }
            }
        }
        self.due = due;
    }

    fn advance_block(
        &mut self,
        Range { start, end }: Range<Time>,
        (stripe, block): (usize, usize),
        due: &mut Due<N>,
        elsewhere: &mut impl FnMut(Envelope<N::Message>),
    ) {
        // Nodes of the block, bit by bit.
        let mut bits = self.stripes[stripe].take_due(block, end, due);
        // Those that are not asked for yet.
        let mut ahead = bits;
        if self.far {
            (0..AHEAD).for_each(|_| self.ask_for(stripe, block, &mut ahead));
        }
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let number = block * BLOCK + bit;
            if self.far {
                self.ask_for(stripe, block, &mut ahead);
                if bits != 0 {
                    let soon = bits.trailing_zeros() as usize;
                    let node = &self.stripes[stripe].nodes[block * BLOCK + soon];
                    let late = due.late(soon).map(|(_, late)| late);
                    node.prefetch_far(due.messages(soon), late);
                }
            }
            let Stripe { nodes, next, .. } = &mut self.stripes[stripe];
            let mut inbox = due.open(bit, &mut nodes[number], start);
            if !inbox.is_empty() || next[number] < end {
                self.advance_node(end, (stripe, number), &mut inbox, elsewhere);
            } else {
                next[number] = nodes[number].next();
            }
        }
        due.clear();
        self.stripes[stripe].look_at(block);
    }

    /// Asks for the first of `ahead`, nodes of a block bit by bit, and takes it out.
    #[inline]
    fn ask_for(&self, stripe: usize, block: usize, ahead: &mut u64) {
        if *ahead != 0 {
            let number = block * BLOCK + ahead.trailing_zeros() as usize;
            *ahead &= *ahead - 1;
            self.stripes[stripe].nodes[number].prefetch();
        }
    }

    /// Hands over everything that is kept back: the run ends or pauses, and its nodes are looked
    /// at.
    pub(super) fn put_down(&mut self) {
        for stripe in &mut self.stripes {
            for (number, block) in stripe.blocks.iter_mut().enumerate() {
                let mut whose = block.take_all(&mut self.due);
                while whose != 0 {
                    let bit = whose.trailing_zeros() as usize;
                    whose &= whose - 1;
                    let number = number * BLOCK + bit;
                    self.due.hand_over(bit, &mut stripe.nodes[number]);
                    stripe.next[number] = stripe.nodes[number].next();
                }
                self.due.clear();
            }
        }
    }

    #[inline]
    fn advance_node(
        &mut self,
        end: Time,
        (stripe, number): (usize, usize),
        inbox: &mut Inbox<'_, N::Message>,
        elsewhere: &mut impl FnMut(Envelope<N::Message>),
    ) {
        let Stripe {
            nodes,
            next,
            blocks,
        } = &mut self.stripes[stripe];
        let node = &mut nodes[number];
        while let Some(mut task) = node.advance(end, inbox, &mut self.outbox, &mut self.workspace) {
            if self.deal.has_helpers() {
                inbox.hand_over(node);
                self.tasks.push(((stripe, number), task));
                break;
            }
            task.perform(&mut self.workspace);
            node.take_back(task);
        }
        next[number] = node.next();
        blocks[number / BLOCK].set_waiting(number % BLOCK, node.waits());
        while let Some(envelope) = self.outbox.messages.pop() {
            debug_assert!(envelope.at >= end, "a message within the window");
            match self.seat(envelope.to) {
                Some(seat) => self.keep(seat, envelope),
                None => elsewhere(envelope),
            }
        }
    }

    /// Returns the tasks that own nodes wait for.
    pub(super) fn tasks(&mut self) -> &mut Vec<Waits<N>> {
        &mut self.tasks
    }

    /// Asks for what the next task but one, last but one of `tasks`, has to do with.
    pub(super) fn ask_for_tasks(tasks: &[Waits<N>]) {
        if let [.., (_, soon), _] = tasks {
            soon.prefetch();
        }
    }

    /// Asks for own nodes that wait for `tasks`, the last of them first.
    pub(super) fn ask_for_waiting(&self, tasks: &[Waits<N>]) {
        let node = |(stripe, number): (usize, usize)| &self.stripes[stripe].nodes[number];
        if let [.., (next, _)] = tasks {
            node(*next).prefetch_far(std::iter::empty(), std::iter::empty());
        }
        if let [.., (soon, task), _] = tasks {
            node(*soon).prefetch();
            task.prefetch();
        }
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
        self.advance_node(end, place, &mut Inbox::empty(), &mut elsewhere);
        self.stripes[stripe].look_at(number / BLOCK);
    }

    /// Keeps a message from elsewhere.
    pub(super) fn deliver(&mut self, envelope: Envelope<N::Message>) {
        match self.seat(envelope.to) {
            Some(seat) => self.keep(seat, envelope),
            None => debug_assert!(false, "a message to a node of another worker"),
        }
    }

    /// Returns the seat of node `number`, if this worker has it.
    #[inline]
    fn seat(&self, number: u32) -> Option<Seat> {
        let seat = self.deal.seat(number.wrapping_sub(self.first));
        let there = self.stripes.get(seat.stripe)?;
        (seat.worker == self.me && seat.number < there.nodes.len()).then_some(seat)
    }

    #[inline]
    fn keep(&mut self, seat: Seat, envelope: Envelope<N::Message>) {
        let block = &mut self.stripes[seat.stripe].blocks[seat.number / BLOCK];
        block.keep(seat.number % BLOCK, envelope);
    }
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
                let seat = deal.seat(index);
                prop_assert!(seat.worker < workers && seat.number < deal.stripe());
                prop_assert!(seen.insert(seat));
            }
        }
    }

    #[test]
    fn workers_have_about_the_same_of_every_part() {
        let deal = Deal::new(226_981, 2);
        for part in 0..8u32 {
            let own = (part * 28_000..(part + 1) * 28_000).filter(|&n| deal.seat(n).worker == 0);
            assert!((12_900..15_100).contains(&own.count()));
        }
    }
}
