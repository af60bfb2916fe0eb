//! The messages that a block's nodes are given in a window: sorted by node, and to each in the order in
//! which they arrive.

use std::ops::Range;

use super::Node;
use super::block::{BLOCK, Kept};
use crate::kernel::queue::Key;
use crate::time::Time;

/// Messages to nodes of a block that arrive before the end of a window. A worker has one, empty between
/// blocks.
pub(super) struct Due<M> {
    /// In any order.
    messages: Vec<Option<Kept<M>>>,
    /// Places in `messages`, node by node.
    by_node: Vec<u32>,
    /// Where in `by_node` those of each node end; as it is filled, how many there are of each.
    ends: [u32; BLOCK],
}

impl<M> Due<M> {
    pub(super) fn new() -> Self {
        Self {
            messages: Vec::new(),
            by_node: Vec::new(),
            ends: [0; BLOCK],
        }
    }

    #[inline]
    pub(super) fn push(&mut self, kept: Kept<M>) {
        self.ends[usize::from(kept.bit)] += 1;
        self.messages.push(Some(kept));
    }

    /// All are in.
    pub(super) fn sort(&mut self) {
        let mut sum = 0;
        for count in &mut self.ends {
            // The beginning of its node's; the end, once all are in.
            sum += std::mem::replace(count, sum);
        }
        self.by_node.resize(self.messages.len(), 0);
        for (number, kept) in self.messages.iter().enumerate() {
            let Some(kept) = kept else { continue };
            let place = &mut self.ends[usize::from(kept.bit)];
            self.by_node[*place as usize] = number as u32;
            *place += 1;
        }
    }

    /// Where in `by_node` those of the node of `bit` are.
    #[inline]
    fn places(&self, bit: usize) -> Range<usize> {
        let first = bit.checked_sub(1).map_or(0, |before| self.ends[before]);
        first as usize..self.ends[bit] as usize
    }

    /// The messages to the node of `bit`.
    #[inline]
    pub(super) fn messages(&self, bit: usize) -> impl Iterator<Item = &M> {
        let numbers = self.by_node[self.places(bit)].iter();
        numbers.filter_map(|&number| Some(&self.messages[number as usize].as_ref()?.message))
    }

    /// Hands over to `node`, that of `bit`, its messages that can wait, when nothing before `start` is
    /// still to happen; and opens what remains.
    #[inline]
    pub(super) fn open<N: Node<Message = M>>(
        &mut self,
        bit: usize,
        node: &mut N,
        start: Time,
    ) -> Inbox<'_, M> {
        let places = self.places(bit);
        let numbers = &mut self.by_node[places];
        let mut remain = 0;
        for place in 0..numbers.len() {
            let number = numbers[place];
            let message = &mut self.messages[number as usize];
            match message.take_if(|kept| N::can_wait(&kept.message)) {
                Some(kept) if kept.at < start => {
                    node.deliver_late(kept.at, kept.from, kept.sequence, kept.message);
                }
                Some(kept) => node.deliver(kept.at, kept.from, kept.sequence, kept.message),
                None => {
                    numbers[remain] = number;
                    remain += 1;
                }
            }
        }
        Inbox::new(&mut self.messages, &mut numbers[..remain])
    }

    /// Hands over to `node`, that of `bit`, all its messages.
    pub(super) fn hand_over<N: Node<Message = M>>(&mut self, bit: usize, node: &mut N) {
        self.open(bit, node, Time::ZERO).hand_over(node);
    }

    /// All of them have been handed over.
    pub(super) fn clear(&mut self) {
        debug_assert!(self.messages.iter().all(Option::is_none));
        self.messages.clear();
        self.ends = [0; BLOCK];
    }
}

/// What arrives at a node in a window, in the order in which it does.
pub struct Inbox<'a, M> {
    messages: &'a mut [Option<Kept<M>>],
    /// Places in `messages`, in order.
    numbers: &'a [u32],
    /// Of the first.
    key: Key,
}

impl<'a, M> Inbox<'a, M> {
    /// With the messages at these places.
    #[inline]
    fn new(messages: &'a mut [Option<Kept<M>>], numbers: &'a mut [u32]) -> Self {
        if numbers.len() > 1 {
            numbers.sort_unstable_by_key(|&number| key(messages, number));
        }
        let mut inbox = Self {
            messages,
            numbers,
            key: Key::NEVER,
        };
        inbox.look();
        inbox
    }

    /// With nothing in it.
    pub(super) fn empty() -> Self {
        Self {
            messages: &mut [],
            numbers: &[],
            key: Key::NEVER,
        }
    }

    #[inline]
    fn look(&mut self) {
        let first = self.numbers.first();
        self.key = first.map_or(Key::NEVER, |&number| key(self.messages, number));
    }

    /// Whether nothing arrives any more.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Where the next message stands in the order of what happens at the node; [`Key::NEVER`] where there
    /// is none.
    #[inline]
    pub fn next_key(&self) -> Key {
        self.key
    }

    /// Takes the next message.
    #[inline]
    pub fn pop(&mut self) -> Option<M> {
        self.take().map(|kept| kept.message)
    }

    #[inline]
    fn take(&mut self) -> Option<Kept<M>> {
        let (&number, rest) = self.numbers.split_first()?;
        self.numbers = rest;
        self.look();
        self.messages[number as usize].take()
    }

    /// Delivers all messages to `node`, for it to keep until they arrive.
    pub fn hand_over<N: Node<Message = M>>(&mut self, node: &mut N) {
        while let Some(kept) = self.take() {
            node.deliver(kept.at, kept.from, kept.sequence, kept.message);
        }
    }
}

#[inline]
fn key<M>(messages: &[Option<Kept<M>>], number: u32) -> Key {
    let kept = messages[number as usize].as_ref();
    kept.map_or(Key::NEVER, |kept| {
        Key::new(kept.at, kept.from, kept.sequence)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{NoTask, Outbox};
    use super::*;
    use proptest::prelude::*;

    /// Takes note of what it is given.
    #[derive(Default)]
    struct Pupil {
        late: Vec<u32>,
        delivered: Vec<u32>,
    }

    impl Node for Pupil {
        type Message = u32;
        type Workspace = ();
        type Task = NoTask;

        fn next(&self) -> Time {
            Time::NEVER
        }

        fn advance(
            &mut self,
            _: Time,
            _: &mut Inbox<'_, u32>,
            _: &mut Outbox<u32>,
            (): &mut (),
        ) -> Option<NoTask> {
            None
        }

        fn can_wait(&message: &u32) -> bool {
            message.is_multiple_of(3)
        }

        fn deliver(&mut self, _: Time, _: u32, _: u64, message: u32) {
            self.delivered.push(message);
        }

        fn deliver_late(&mut self, _: Time, _: u32, _: u64, message: u32) {
            self.late.push(message);
        }
    }

    proptest! {
        #[test]
        fn each_node_gets_its_own_in_order_and_what_can_wait_at_once(
            sent in prop::collection::vec((0u8..4, 0u64..9, 0u32..3, 0u64..9), 0..60),
            start in 0u64..9,
        ) {
            let start = Time::from_ps(start);
            let mut due = Due::new();
            for (&(bit, at, from, sequence), message) in sent.iter().zip(0..) {
                due.push(Kept { at: Time::from_ps(at), sequence, from, bit: bit * 21, message });
            }
            due.sort();
            for node in 0..4u8 {
                let bit = usize::from(node) * 21;
                let mut own: Vec<_> = (sent.iter().zip(0u32..))
                    .filter(|((to, ..), _)| *to == node)
                    .map(|(&(_, at, from, sequence), message)| (at, from, sequence, message))
                    .collect();
                prop_assert!(due.messages(bit).eq(own.iter().map(|(.., message)| message)));
                let mut pupil = Pupil::default();
                let mut inbox = due.open(bit, &mut pupil, start);
                let mut got = Vec::new();
                loop {
                    let key = inbox.next_key();
                    let Some(message) = inbox.pop() else {
                        prop_assert_eq!(key, Key::NEVER);
                        break;
                    };
                    let (_, at, from, sequence) = {
                        let (to, at, from, sequence) = sent[message as usize];
                        (to, Time::from_ps(at), from, sequence)
                    };
                    prop_assert_eq!(key, Key::new(at, from, sequence));
                    got.push((at.as_ps(), from, sequence));
                }
                let waits = |late: bool| own.iter()
                    .filter(move |(at, .., message)| message.is_multiple_of(3) && (Time::from_ps(*at) < start) == late)
                    .map(|(.., message)| *message)
                    .collect::<Vec<_>>();
                prop_assert_eq!(&pupil.late, &waits(true));
                prop_assert_eq!(&pupil.delivered, &waits(false));
                own.retain(|(.., message)| !message.is_multiple_of(3));
                own.sort_unstable();
                prop_assert!(got.into_iter().eq(own.iter().map(|&(at, from, sequence, _)| (at, from, sequence))));
            }
            due.clear();
        }
    }
}
