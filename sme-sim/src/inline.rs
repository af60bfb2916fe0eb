//! Lists and tables of which a few items stand where they themselves stand. There are as many of them
//! as nodes, and in a large machine what takes time is to fetch a node's state: the fewer places it
//! lies in, the better.

use std::ops::{Index, IndexMut};

use smallvec::{Array, SmallVec};

use crate::fabric::LINK_PORTS;
use crate::prefetch::prefetch;

/// A table with numbered places of which `N` are in the table itself. The others are used only while
/// there are more items, and are kept then.
#[derive(Clone, Debug)]
pub struct Near<T, const N: usize> {
    near: [Option<T>; N],
    /// The unused ones among them, bit by bit.
    free: u16,
    far: Vec<T>,
    /// Numbers in `far` that are not in use.
    unused: Vec<u16>,
}

impl<T, const N: usize> Near<T, N> {
    /// Most items.
    pub const MOST: usize = u16::MAX as usize - N;

    /// With nothing in it.
    pub fn new() -> Self {
        const { assert!(N <= 16) };
        Self {
            near: [const { None }; N],
            free: ((1u32 << N) - 1) as u16,
            far: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Puts `item` in; its number.
    ///
    /// # Panics
    /// If there are [`Self::MOST`] others.
    #[inline]
    pub fn insert(&mut self, item: T) -> u16 {
        if self.free != 0 {
            let number = self.free.trailing_zeros() as u16;
            self.free &= self.free - 1;
            self.near[usize::from(number)] = Some(item);
            return number;
        }
        if let Some(number) = self.unused.pop() {
            self.far[usize::from(number)] = item;
            return number + N as u16;
        }
        let number = self.far.len();
        assert!(number < Self::MOST, "the store of places is exhausted");
        if number == self.far.capacity() {
            self.far.reserve_exact((number / 4).max(2));
        }
        self.far.push(item);
        number as u16 + N as u16
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.free.count_ones() as usize == N && self.unused.len() == self.far.len()
    }

    /// Gives up the place with this number.
    #[inline]
    pub fn remove(&mut self, number: u16) {
        match number.checked_sub(N as u16) {
            None => self.free |= 1 << number,
            Some(number) => self.unused.push(number),
        }
    }

    /// Places that there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        N + self.far.len()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.far.capacity() * size_of::<T>() + self.unused.capacity() * size_of::<u16>()
    }
}

impl<T, const N: usize> Index<u16> for Near<T, N> {
    type Output = T;

    #[inline]
    fn index(&self, number: u16) -> &T {
        match self.near.get(usize::from(number)) {
            Some(near) => near.as_ref().unwrap_or_else(|| never_used(number)),
            None => &self.far[usize::from(number) - N],
        }
    }
}

impl<T, const N: usize> IndexMut<u16> for Near<T, N> {
    #[inline]
    fn index_mut(&mut self, number: u16) -> &mut T {
        match self.near.get_mut(usize::from(number)) {
            Some(near) => near.as_mut().unwrap_or_else(|| never_used(number)),
            None => &mut self.far[usize::from(number) - N],
        }
    }
}

#[cold]
fn never_used(number: u16) -> ! {
    panic!("place {number} has never been used");
}

/// A queue of which the first item stands in the queue itself: other memory is used only while there
/// are more.
#[derive(Debug)]
pub struct Single<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Single<T> {
    /// With nothing in it.
    pub fn new() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Puts `item` at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
            return;
        }
        if self.more.len() == self.more.capacity() {
            self.more.reserve_exact((self.more.len() / 4).max(1));
        }
        self.more.push(item);
    }

    /// All of them, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }

    /// Takes out the first of them that `is_due`.
    #[inline]
    pub fn take(&mut self, is_due: impl Fn(&T) -> bool) -> Option<T> {
        if is_due(self.first.as_ref()?) {
            let next = (!self.more.is_empty()).then(|| self.more.remove(0));
            return std::mem::replace(&mut self.first, next);
        }
        let place = self.more.iter().position(is_due)?;
        Some(self.more.remove(place))
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.more.capacity() * size_of::<T>()
    }
}

/// What is kept for link ports and virtual channels, of those that have ever been used: few are, and `N`
/// of them stand here.
#[derive(Clone, Debug)]
pub struct ByChannel<T, const N: usize> {
    /// Port and channel of each. An engine's links have so many for requests.
    keys: SmallVec<[u16; 2 * LINK_PORTS]>,
    kept: SmallVec<[T; N]>,
}

impl<T: Default, const N: usize> ByChannel<T, N> {
    /// Of none.
    pub fn new() -> Self {
        Self {
            keys: SmallVec::new(),
            kept: SmallVec::new(),
        }
    }

    /// What is kept for `channel` of `port`; it is there from now on.
    #[inline]
    pub fn at(&mut self, port: u8, channel: u8) -> &mut T {
        let key = key(port, channel);
        let place = self.keys.iter().position(|&of| of == key);
        let place = place.unwrap_or_else(|| {
            self.keys.push(key);
            if self.kept.len() == self.kept.capacity() {
                self.kept.reserve_exact(2);
            }
            self.kept.push(T::default());
            self.kept.len() - 1
        });
        &mut self.kept[place]
    }

    /// Prefetches what is kept for `channel` of `port`.
    #[inline]
    pub fn prefetch(&self, port: u8, channel: u8) {
        if let Some(kept) = self.get(port, channel) {
            prefetch(kept);
        }
    }

    /// The same, if it is there.
    pub fn get(&self, port: u8, channel: u8) -> Option<&T> {
        let key = key(port, channel);
        let place = self.keys.iter().position(|&of| of == key)?;
        self.kept.get(place)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.keys) + heap_bytes(&self.kept)
    }
}

fn key(port: u8, channel: u8) -> u16 {
    u16::from(port) << 8 | u16::from(channel)
}

/// Bytes on the heap.
pub fn heap_bytes<A: Array>(list: &SmallVec<A>) -> usize {
    if list.spilled() {
        list.capacity() * size_of::<A::Item>()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    proptest! {
        #[test]
        fn a_table_keeps_what_is_put_in_under_its_number(actions in prop::collection::vec((any::<bool>(), any::<u32>()), 0..200)) {
            let mut table = Near::<u32, 3>::new();
            let mut oracle = BTreeMap::new();
            let mut most = 0;
            for (inserts, value) in actions {
                if inserts || oracle.is_empty() {
                    let number = table.insert(value);
                    prop_assert_eq!(oracle.insert(number, value), None, "a number twice");
                } else {
                    let nth = value as usize % oracle.len();
                    let number = *oracle.keys().nth(nth).unwrap();
                    table[number] ^= 1;
                    prop_assert_eq!(Some(table[number] ^ 1), oracle.remove(&number));
                    table.remove(number);
                }
                most = most.max(oracle.len());
                for (&number, &value) in &oracle {
                    prop_assert_eq!(table[number], value);
                }
                prop_assert_eq!(table.is_empty(), oracle.is_empty());
                prop_assert!(table.len() <= most.max(3), "places are used again");
            }
        }

        #[test]
        fn what_is_due_is_taken_in_order(actions in prop::collection::vec((any::<bool>(), 0u32..8), 0..100)) {
            let mut queue = Single::new();
            let mut oracle = VecDeque::new();
            for (pushes, value) in actions {
                if pushes {
                    queue.push(value);
                    oracle.push_back(value);
                } else {
                    let due = oracle.iter().position(|&of| of <= value);
                    let expected = due.and_then(|due| oracle.remove(due));
                    prop_assert_eq!(queue.take(|&of| of <= value), expected);
                }
                prop_assert!(queue.iter().eq(&oracle));
                prop_assert_eq!(queue.is_empty(), oracle.is_empty());
            }
        }

        #[test]
        fn each_channel_has_its_own(sent in prop::collection::vec((0u8..9, 0u8..4, any::<u8>()), 0..60)) {
            let mut sums = ByChannel::<u64, 3>::new();
            let mut oracle = BTreeMap::new();
            for (port, channel, bytes) in sent {
                *sums.at(port, channel) += u64::from(bytes);
                *oracle.entry((port, channel)).or_insert(0) += u64::from(bytes);
            }
            for (port, channel) in (0..9).flat_map(|port| (0..4).map(move |channel| (port, channel))) {
                prop_assert_eq!(sums.get(port, channel), oracle.get(&(port, channel)));
            }
        }
    }
}
