//! Nodes between which there is no smallest latency, as one node of the kernel: the cores of a
//! chip, whose hops are too short to be windows. They take turns in the order of time.
//!
//! At each time that anything happens, the nodes run one after the other, the lowest first, and a
//! message is with its receiver before the next node runs. It may arrive at the time at which it is
//! sent.

use serde::{Deserialize, Serialize};

use super::{Inbox, Locality, NoLate, NoTask, Node, Outbox};
use crate::time::Time;

/// Nodes that run as one.
#[derive(Debug)]
pub struct Joint<N: Node> {
    nodes: Vec<N>,
    order: Order,
    outbox: Outbox<N::Message>,
}

/// The message between joint nodes and others, of which there are none.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum NoMessage {}

impl<N: Node> Joint<N> {
    /// All nodes of a machine, numbered from 0.
    pub fn new(nodes: Vec<N>) -> Self {
        let mut order = Order::new(nodes.len());
        for (number, node) in nodes.iter().enumerate() {
            order.set(number, node.next());
        }
        Self {
            order,
            nodes,
            outbox: Outbox::new(),
        }
    }

    /// The nodes.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// The nodes, when the run is over.
    pub fn into_nodes(self) -> Vec<N> {
        self.nodes
    }
}

/// The node that is next to do something: the first of all nodes in the order of time, the lowest
/// at equal times.
///
/// The times of the nodes stand in groups. Above them stand the first of each group, in groups
/// again, up to a single one: there are few steps to that, and none of them branches.
#[derive(Debug)]
struct Order {
    levels: Vec<Vec<Group>>,
}

/// Nodes, or groups, in a group.
const WIDTH: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Group {
    times: [Time; WIDTH],
    /// The place of the first of them.
    first: usize,
}

impl Group {
    const NEVER: Self = Self {
        times: [Time::NEVER; WIDTH],
        first: 0,
    };

    /// Sets the time at `place`, below [`WIDTH`], to another; returns that of the first.
    #[inline]
    fn set(&mut self, place: usize, at: Time) -> Time {
        self.times[place % WIDTH] = at;
        // In pairs, which the host compares side by side.
        let one = |place: usize| (self.times[place], place);
        let two = |place| sooner(one(place), one(place + 1));
        let four = |place| sooner(two(place), two(place + 2));
        let (first, place) = sooner(four(0), four(4));
        self.first = place;
        first
    }
}

/// The sooner of two; the one on the left at equal times.
#[inline]
fn sooner(left: (Time, usize), right: (Time, usize)) -> (Time, usize) {
    let is_right = right.0 < left.0;
    let at = if is_right { right.0 } else { left.0 };
    (at, if is_right { right.1 } else { left.1 })
}

impl Order {
    /// Of so many nodes, none of which has anything to do.
    fn new(count: usize) -> Self {
        let mut levels = Vec::new();
        let mut groups = count;
        loop {
            groups = groups.div_ceil(WIDTH).max(1);
            levels.push(vec![Group::NEVER; groups]);
            if groups == 1 {
                return Self { levels };
            }
        }
    }

    /// Node `number` will next do something at `at`.
    #[inline]
    fn set(&mut self, mut number: usize, mut at: Time) {
        for level in &mut self.levels {
            let (place, group) = (number % WIDTH, &mut level[number / WIDTH]);
            // Then nothing changes above, either.
            if group.times[place] == at {
                return;
            }
            at = group.set(place, at);
            number /= WIDTH;
        }
    }

    /// The first node, and when it will do something.
    #[inline]
    fn first(&self) -> (usize, Time) {
        let mut number = 0;
        let mut at = Time::NEVER;
        for level in self.levels.iter().rev() {
            let group = &level[number];
            at = group.times[group.first % WIDTH];
            number = WIDTH * number + group.first;
        }
        (number, at)
    }
}

impl<N: Node<Task = NoTask>> Node for Joint<N> {
    type Message = NoMessage;
    type Late = NoLate;
    type Workspace = N::Workspace;
    type Task = NoTask;

    fn next(&self) -> Time {
        self.order.first().1
    }

    fn advance(
        &mut self,
        end: Time,
        _: &mut Inbox<'_, NoMessage>,
        _: &mut Outbox<NoMessage>,
        workspace: &mut N::Workspace,
    ) -> Option<NoTask> {
        loop {
            let (number, now) = self.order.first();
            if now >= end {
                return None;
            }
            let node = &mut self.nodes[number];
            let after = now + Time::from_ps(1);
            let no_task = node.advance(after, &mut Inbox::empty(), &mut self.outbox, workspace);
            debug_assert!(no_task.is_none());
            self.order.set(number, node.next());
            for sent in self.outbox.messages.drain(..) {
                let to = sent.to as usize;
                let node = &mut self.nodes[to];
                node.deliver(sent.at, sent.from, sent.sequence, sent.message);
                self.order.set(to, node.next());
            }
        }
    }

    fn deliver(&mut self, _: Time, _: u32, _: u64, message: NoMessage) {
        match message {}
    }

    fn take_late(&mut self, _: Time, late: NoLate, _: Time) {
        match late {}
    }
}

impl<N: Node<Task = NoTask>> Locality for Joint<N> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::queue::EventQueue;
    use crate::kernel::window::{Verdict, run};
    use proptest::prelude::*;

    /// Passes each message on as its plan says, and takes note of when it came.
    struct Relay {
        me: u32,
        queue: EventQueue<u32>,
        sequence: u64,
        /// For each message: to which node it goes next, and after how long.
        plan: Vec<(u32, u64)>,
        seen: Vec<(Time, u32)>,
    }

    impl Node for Relay {
        type Message = u32;
        type Late = NoLate;
        type Workspace = ();
        type Task = NoTask;

        fn next(&self) -> Time {
            self.queue.next()
        }

        fn advance(
            &mut self,
            end: Time,
            _: &mut Inbox<'_, u32>,
            outbox: &mut Outbox<u32>,
            (): &mut (),
        ) -> Option<NoTask> {
            while self.next() < end {
                let (now, message) = self.queue.pop()?;
                self.seen.push((now, message));
                if let Some(&(to, after)) = self.plan.get(message as usize) {
                    self.sequence += 1;
                    let at = now + Time::from_ps(after);
                    outbox.send(self.me, self.sequence, to, at, message + 1);
                }
            }
            None
        }

        fn deliver(&mut self, at: Time, from: u32, sequence: u64, message: u32) {
            assert!(
                self.seen.last().is_none_or(|&(last, _)| at >= last),
                "in the past"
            );
            self.queue.push(at, from, sequence, message);
        }

        fn take_late(&mut self, _: Time, late: NoLate, _: Time) {
            match late {}
        }
    }

    proptest! {
        /// The first of all nodes is the one that a search finds, at one level, two and three.
        #[test]
        fn the_first_of_many_nodes_is_next(
            count in prop::sample::select(vec![1usize, 2, 8, 9, 64, 65, 300]),
            sets in prop::collection::vec((any::<usize>(), 0u64..20), 1..200),
        ) {
            let mut order = Order::new(count);
            let mut times = vec![Time::NEVER; count];
            prop_assert_eq!(order.first().1, Time::NEVER);
            for (number, ps) in sets {
                let at = if ps == 0 { Time::NEVER } else { Time::from_ps(ps) };
                order.set(number % count, at);
                times[number % count] = at;
                let at = times.iter().min().copied().unwrap_or(Time::NEVER);
                let number = times.iter().position(|&time| time == at).unwrap_or(0);
                prop_assert_eq!(order.first(), (number, at));
            }
        }

        /// One message goes round; where it is when follows from the plan alone, however short the
        /// latencies, those of zero included.
        #[test]
        fn a_message_is_where_its_plan_says(
            plan in prop::collection::vec((0u32..5, 0u64..3), 0..60),
            window in 1u64..40,
        ) {
            let relay = |me| Relay {
                me,
                queue: EventQueue::new(),
                sequence: 0,
                plan: plan.clone(),
                seen: Vec::new(),
            };
            let mut nodes: Vec<Relay> = (0..5).map(relay).collect();
            nodes[0].deliver(Time::ZERO, 0, 0, 0);
            let mut joint = [Joint::new(nodes)];
            run(&mut joint, Time::from_ps(window), 1, |now, _| (Verdict::Continue, now));
            let [joint] = joint;
            let mut seen: Vec<(Time, u32, u32)> = Vec::new();
            for node in joint.into_nodes() {
                seen.extend(node.seen.iter().map(|&(at, message)| (at, message, node.me)));
            }
            seen.sort_by_key(|&(_, message, _)| message);
            let (mut now, mut at) = (0, 0);
            let mut expected = vec![(Time::ZERO, 0, 0)];
            for (&(to, after), message) in plan.iter().zip(1..) {
                (now, at) = (now + after, to);
                expected.push((Time::from_ps(now), message, at));
            }
            let _ = at;
            prop_assert_eq!(seen, expected);
        }
    }
}
