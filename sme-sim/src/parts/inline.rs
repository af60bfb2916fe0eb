//! Lists and tables of which a few items stand where they themselves stand. There are as many of
//! them as nodes, and in a large machine what takes time is to fetch a node's state: the fewer
//! places it lies in, the better.

use std::ops::{Index, IndexMut};

use slab::Slab;
use smallvec::{Array, SmallVec};

use crate::parts::tables;

/// A table of which `N` items stand in the table itself: many never have more at once.
#[derive(Clone, Debug)]
pub struct Few<T, const N: usize> {
    near: [Option<T>; N],
    /// The others, if there have ever been any.
    far: Option<Box<Slab<T>>>,
}

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self {
            near: [const { None }; N],
            far: None,
        }
    }
}

impl<T, const N: usize> Few<T, N> {
    /// Returns whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.near.iter().all(Option::is_none) && self.far.iter().all(|far| far.is_empty())
    }

    /// Puts `item` in; its number.
    #[inline]
    pub fn insert(&mut self, item: T) -> u32 {
        let mut near = self.near.iter_mut().zip(0..);
        if let Some((place, number)) = near.find(|(place, _)| place.is_none()) {
            *place = Some(item);
            return number;
        }
        let far = self.far.get_or_insert_with(|| Box::new(Slab::new()));
        N as u32 + tables::insert(far, item)
    }

    /// Takes the item with this number out.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn remove(&mut self, number: u32) -> T {
        match self.near.get_mut(number as usize) {
            Some(near) => near.take().expect(IS_THERE),
            None => {
                let far = self.far.as_mut().expect(IS_THERE);
                far.remove(number as usize - N)
            }
        }
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        self.far.as_deref().map_or(0, |far| {
            size_of::<Slab<T>>() + far.capacity() * size_of::<T>()
        })
    }
}

/// The invariant that a table's owner upholds.
const IS_THERE: &str = "an item with this number";

impl<T, const N: usize> Index<u32> for Few<T, N> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        match self.near.get(number as usize) {
            Some(near) => near.as_ref().expect(IS_THERE),
            None => &self.far.as_ref().expect(IS_THERE)[number as usize - N],
        }
    }
}

impl<T, const N: usize> IndexMut<u32> for Few<T, N> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        match self.near.get_mut(number as usize) {
            Some(near) => near.as_mut().expect(IS_THERE),
            None => &mut self.far.as_mut().expect(IS_THERE)[number as usize - N],
        }
    }
}

/// A queue of which the first item stands in the queue itself: other memory is used only while
/// there are more.
#[derive(Debug)]
pub struct Single<T> {
    first: Option<T>,
    /// The number of further ones: kept here, for the others are far away.
    others: u32,
    /// The others, if there have ever been any.
    #[allow(clippy::box_collection, reason = "a word where there are none")]
    more: Option<Box<Vec<T>>>,
}

impl<T> Default for Single<T> {
    fn default() -> Self {
        Self {
            first: None,
            others: 0,
            more: None,
        }
    }
}

impl<T> Single<T> {
    /// Returns whether nothing is in it.
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
        let more = self.more.get_or_insert_default();
        if more.len() == more.capacity() {
            more.reserve_exact((more.len() / 4).max(1));
        }
        more.push(item);
        self.others += 1;
    }

    /// All of them, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let more = self.more.iter().filter(|_| self.others > 0);
        self.first.iter().chain(more.flat_map(|more| more.iter()))
    }

    /// Takes out the first of them that `is_due`.
    #[inline]
    pub fn take(&mut self, is_due: impl Fn(&T) -> bool) -> Option<T> {
        let more = self.more.as_deref_mut().filter(|_| self.others > 0);
        if is_due(self.first.as_ref()?) {
            let next = more.map(|more| more.remove(0));
            self.others -= u32::from(next.is_some());
            return std::mem::replace(&mut self.first, next);
        }
        let more = more?;
        let place = more.iter().position(is_due)?;
        self.others -= 1;
        Some(more.remove(place))
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let more = |more: &Vec<T>| size_of::<Vec<T>>() + more.capacity() * size_of::<T>();
        self.more.as_deref().map_or(0, more)
    }
}

/// Values for the link ports and virtual channels that have ever been used: few are, and `N` of
/// them stand here.
#[derive(Clone, Debug)]
pub struct ByChannel<T, const N: usize> {
    /// Port and channel of each.
    keys: SmallVec<[u16; 8]>,
    kept: SmallVec<[T; N]>,
}

impl<T, const N: usize> Default for ByChannel<T, N> {
    fn default() -> Self {
        Self {
            keys: SmallVec::new(),
            kept: SmallVec::new(),
        }
    }
}

impl<T: Default, const N: usize> ByChannel<T, N> {
    /// Returns the value for `channel` of `port`, and makes it first if there is none.
    #[inline]
    pub fn at(&mut self, port: u16, channel: u8) -> &mut T {
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

    /// Returns the value for `channel` of `port`, if there is one.
    pub fn get(&self, port: u16, channel: u8) -> Option<&T> {
        let key = key(port, channel);
        let place = self.keys.iter().position(|&of| of == key)?;
        self.kept.get(place)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.keys) + heap_bytes(&self.kept)
    }
}

/// Ports are below 4096 and channels below 16.
fn key(port: u16, channel: u8) -> u16 {
    debug_assert!(port < 1 << 12 && channel < 1 << 4);
    port << 4 | u16::from(channel)
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
            let mut table = Few::<u32, 3>::default();
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
                    prop_assert_eq!(Some(table.remove(number) ^ 1), oracle.remove(&number));
                }
                most = most.max(oracle.len());
                for (&number, &value) in &oracle {
                    prop_assert_eq!(table[number], value);
                    prop_assert!((number as usize) < most.max(3), "places are used again");
                }
                prop_assert_eq!(table.is_empty(), oracle.is_empty());
            }
        }

        #[test]
        fn what_is_due_is_taken_in_order(actions in prop::collection::vec((any::<bool>(), 0u32..8), 0..100)) {
            let mut queue = Single::default();
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
        fn each_channel_has_its_own(sent in prop::collection::vec((0u16..9, 0u8..4, any::<u8>()), 0..60)) {
            let mut sums = ByChannel::<u64, 3>::default();
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
