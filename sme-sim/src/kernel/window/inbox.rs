//! The messages that a block's nodes are given in a window: sorted by node, and to each in the
//! order in which they arrive.

use std::ops::Range;

use super::Node;
use super::block::{BLOCK, Kept, Late};
use crate::kernel::queue::Key;
use crate::time::Time;

/// Messages to nodes of a block that arrive before the end of a window. A worker has one, empty
/// between blocks.
pub(super) struct Due<N: Node> {
    /// In any order.
    messages: Vec<Option<Kept<N::Message>>>,
    /// Places in `messages`, node by node.
    by_node: Vec<u32>,
    /// Where in `by_node` those of each node end; as it is filled, how many there are of each.
    ends: [u32; BLOCK],
    /// Those that can wait, each with the place of the one before of its node.
    late: Vec<(Late<N::Late>, u32)>,
    /// The place of each node's last, behind it.
    last: [u32; BLOCK],
}

impl<N: Node> Due<N> {
    pub(super) fn new() -> Self {
        Self {
            messages: Vec::new(),
            by_node: Vec::new(),
            ends: [0; BLOCK],
            late: Vec::new(),
            last: [0; BLOCK],
        }
    }

    #[inline]
    pub(super) fn push(&mut self, kept: Kept<N::Message>) {
        self.ends[usize::from(kept.bit)] += 1;
        self.messages.push(Some(kept));
    }

    #[inline]
    pub(super) fn push_late(&mut self, late: Late<N::Late>) {
        let last = &mut self.last[usize::from(late.bit)];
        self.late.push((late, *last));
        *last = self.late.len() as u32;
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

    /// Returns the places in `by_node` of those of the node of `bit`.
    #[inline]
    fn places(&self, bit: usize) -> Range<usize> {
        let first = bit.checked_sub(1).map_or(0, |before| self.ends[before]);
        first as usize..self.ends[bit] as usize
    }

    /// The messages to the node of `bit`.
    #[inline]
    pub(super) fn messages(&self, bit: usize) -> impl Iterator<Item = &N::Message> {
        let numbers = self.by_node[self.places(bit)].iter();
        numbers.filter_map(|&number| Some(&self.messages[number as usize].as_ref()?.message))
    }

    /// Those to it that can wait, and when they arrive.
    #[inline]
    pub(super) fn late(&self, bit: usize) -> impl Iterator<Item = (Time, N::Late)> {
        let mut place = self.last[bit];
        std::iter::from_fn(move || {
            let &(Late { at, late, .. }, before) =
                self.late.get((place as usize).checked_sub(1)?)?;
            place = before;
            Some((at, late))
        })
    }

    /// Hands over to `node`, that of `bit`, its messages that can wait, when nothing before `start`
    /// is still to happen; and opens the others.
    #[inline]
    pub(super) fn open(&mut self, bit: usize, node: &mut N, start: Time) -> Inbox<'_, N::Message> {
        for (at, late) in self.late(bit) {
            node.take_late(at, late, start);
        }
        let places = self.places(bit);
        Inbox::new(&mut self.messages, &mut self.by_node[places])
    }

    /// Hands over to `node`, that of `bit`, all its messages.
    pub(super) fn hand_over(&mut self, bit: usize, node: &mut N) {
        self.open(bit, node, Time::ZERO).hand_over(node);
    }

    /// All of them have been handed over.
    pub(super) fn clear(&mut self) {
        debug_assert!(self.messages.iter().all(Option::is_none));
        self.messages.clear();
        self.ends = [0; BLOCK];
        self.late.clear();
        self.last = [0; BLOCK];
    }
}

/// The messages that arrive at a node in a window, in the order of their arrival.
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

    /// Returns whether nothing arrives any more.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the place of the next message in the order of the node's events; [`Key::NEVER`]
    /// where there is none.
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
    #[inline]
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

    /// Takes note of what can wait.
    #[derive(Default)]
    struct Pupil {
        late: Vec<(Time, u32, Time)>,
    }

    impl Node for Pupil {
        type Message = u32;
        type Late = u32;
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

        fn deliver(&mut self, _: Time, _: u32, _: u64, _: u32) {}

        fn take_late(&mut self, at: Time, late: u32, start: Time) {
            self.late.push((at, late, start));
        }
    }

    proptest! {
        #[test]
        fn each_node_gets_its_own_in_order_and_what_can_wait_at_once(
            sent in prop::collection::vec((0u8..4, 0u64..9, 0u32..3, 0u64..9, any::<bool>()), 0..60),
        ) {
            let start = Time::from_ps(5);
            let mut due = Due::<Pupil>::new();
            // Twice: it is empty again after the first time.
            for _ in 0..2 {
                for (&(node, at, from, sequence, waits), message) in sent.iter().zip(0..) {
                    let (at, bit) = (Time::from_ps(at), node * 21);
                    match waits {
                        true => due.push_late(Late { at, bit, late: message }),
                        false => due.push(Kept { at, sequence, from, bit, message }),
                    }
                }
                due.sort();
                for node in 0..4u8 {
                    let bit = usize::from(node) * 21;
                    let own = |can_wait| (sent.iter().zip(0u32..))
                        .filter(move |((to, .., waits), _)| *to == node && *waits == can_wait)
                        .map(|(&(_, at, from, sequence, _), message)| (Key::new(Time::from_ps(at), from, sequence), message));
                    prop_assert!(due.messages(bit).copied().eq(own(false).map(|(_, message)| message)));
                    let mut pupil = Pupil::default();
                    let mut inbox = due.open(bit, &mut pupil, start);
                    let mut got = Vec::new();
                    loop {
                        let key = inbox.next_key();
                        let Some(message) = inbox.pop() else {
                            prop_assert_eq!(key, Key::NEVER);
                            break;
                        };
                        prop_assert!(own(false).any(|its| its == (key, message)));
                        got.push((key, message));
                    }
                    prop_assert!(got.is_sorted_by_key(|&(key, _)| key));
                    let mut expected: Vec<_> = own(false).collect();
                    expected.sort_unstable();
                    got.sort_unstable();
                    prop_assert_eq!(got, expected);
                    let mut late: Vec<_> = own(true).map(|(key, late)| (key.at(), late, start)).collect();
                    late.reverse();
                    prop_assert_eq!(pupil.late, late);
                }
                due.clear();
            }
        }
    }
}
