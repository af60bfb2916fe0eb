//! The cores' store buffers: stores wait here for their line while the program goes on, and leave
//! in program order. Loads pass them, and see those of their own core.

use slab::Slab;

use super::line::Bytes;
use crate::parts::tables;
use crate::time::Time;

const NONE: u32 = u32::MAX;

/// A store that has not left its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// To where, as the program gave it.
    pub address: u64,
    /// The bytes of that word that are stored.
    pub bytes: Bytes,
    /// Right-aligned.
    pub value: u64,
    /// The thread, as the machine's traces name it.
    pub origin: u32,
}

/// The time until which a core posts no further store.
#[derive(Clone, Copy, Debug)]
struct Gap {
    core: u16,
    /// A store waits for its end.
    is_awaited: bool,
    until: Time,
}

/// The store buffers of all cores of a node.
#[derive(Debug)]
pub struct StoreBuffers {
    /// Each with the next newer of its core; the newest with the oldest.
    stores: Slab<(Store, u32)>,
    /// The newest of each core's stores, and how many there are.
    queues: Box<[(u32, u32)]>,
    /// Those of the cores that ever posted a store: one core in many does.
    gaps: Vec<Gap>,
    capacity: u32,
}

impl StoreBuffers {
    /// Empty buffers of `capacity` stores each.
    pub fn new(cores: usize, capacity: u32) -> Self {
        Self {
            stores: Slab::new(),
            queues: vec![(NONE, 0); cores].into(),
            gaps: Vec::new(),
            capacity,
        }
    }

    /// One core more, whose buffer is empty.
    pub fn grow(&mut self) {
        tables::grow(&mut self.queues, (NONE, 0));
    }

    /// Returns whether `core` can buffer no further store.
    #[inline]
    pub fn is_full(&self, core: u16) -> bool {
        self.queues[usize::from(core)].1 >= self.capacity
    }

    /// Returns whether every store of `core` has left.
    #[inline]
    pub fn is_empty(&self, core: u16) -> bool {
        self.queues[usize::from(core)].1 == 0
    }

    /// Adds the newest store of `core`.
    #[inline]
    pub fn push(&mut self, core: u16, store: Store) {
        let number = tables::insert(&mut self.stores, (store, NONE));
        let (newest, count) = &mut self.queues[usize::from(core)];
        let before = std::mem::replace(newest, number);
        let before = if *count == 0 { number } else { before };
        *count += 1;
        self.stores[number as usize].1 = self.stores[before as usize].1;
        self.stores[before as usize].1 = number;
    }

    /// The oldest store of `core`.
    #[inline]
    pub fn oldest(&self, core: u16) -> Option<Store> {
        self.of(core).next()
    }

    /// Lets the oldest store of `core` go.
    #[inline]
    pub fn pop(&mut self, core: u16) {
        let (newest, count) = &mut self.queues[usize::from(core)];
        if *count == 0 {
            return;
        }
        let oldest = self.stores[*newest as usize].1;
        let (_, next) = self.stores.remove(oldest as usize);
        *count -= 1;
        if *count > 0 {
            self.stores[*newest as usize].1 = next;
        }
    }

    /// The stores of `core`, the oldest first.
    #[inline]
    fn of(&self, core: u16) -> impl Iterator<Item = Store> + '_ {
        let (mut number, count) = self.queues[usize::from(core)];
        (0..count).map(move |_| {
            number = self.stores[number as usize].1;
            self.stores[number as usize].0
        })
    }

    /// The value that a load of exactly these bytes must see: the newest buffered one.
    #[inline]
    pub fn forwarded(&self, core: u16, address: u64, bytes: Bytes) -> Option<u64> {
        let mut found = None;
        for store in self.of(core) {
            if store.address == address && store.bytes == bytes {
                found = Some(store.value);
            }
        }
        found
    }

    /// Returns whether the newest store of `core` that writes some of these bytes writes others
    /// too, or not all of them: then a load of them must wait until it has left.
    #[inline]
    pub fn hold_back(&self, core: u16, address: u64, bytes: Bytes) -> bool {
        let mut partly = false;
        for store in self.of(core) {
            if store.address / 8 == address / 8 && store.bytes.enables & bytes.enables != 0 {
                partly = store.address != address || store.bytes != bytes;
            }
        }
        partly
    }

    /// Before this time `core` posts no further store.
    #[inline]
    pub fn gap_until(&self, core: u16) -> Time {
        let gap = self.gaps.iter().find(|gap| gap.core == core);
        gap.map_or(Time::ZERO, |gap| gap.until)
    }

    /// The oldest store of `core` waits for that time; whether it did not yet.
    #[inline]
    pub fn awaits_gap(&mut self, core: u16) -> bool {
        let gap = self.gaps.iter_mut().find(|gap| gap.core == core);
        gap.is_some_and(|gap| !std::mem::replace(&mut gap.is_awaited, true))
    }

    /// `core` has posted a store, and posts no further one before `until`.
    #[inline]
    pub fn begin_gap(&mut self, core: u16, until: Time) {
        let next = Gap {
            core,
            is_awaited: false,
            until,
        };
        match self.gaps.iter_mut().find(|gap| gap.core == core) {
            Some(gap) => *gap = next,
            None => tables::push(&mut self.gaps, next),
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.stores.capacity() * size_of::<(Store, u32)>()
            + size_of_val(&*self.queues)
            + self.gaps.capacity() * size_of::<Gap>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn each_core_has_a_queue_of_its_own(
            acts in proptest::collection::vec((0u16..3, 0u64..4, any::<bool>()), 0..60),
        ) {
            let mut buffers = StoreBuffers::new(3, 4);
            let mut plain: Vec<VecDeque<Store>> = vec![VecDeque::new(); 3];
            for (n, (core, at, push)) in acts.into_iter().enumerate() {
                let queue = &mut plain[usize::from(core)];
                prop_assert_eq!(buffers.is_full(core), queue.len() == 4);
                if push && queue.len() < 4 {
                    let store = Store { address: at, bytes: Bytes::byte(at), value: n as u64, origin: 0 };
                    buffers.push(core, store);
                    queue.push_back(store);
                } else {
                    buffers.pop(core);
                    queue.pop_front();
                }
                prop_assert_eq!(buffers.oldest(core), queue.front().copied());
                prop_assert_eq!(buffers.is_empty(core), queue.is_empty());
                let newest = queue.iter().rev().find(|s| s.address == at).map(|s| s.value);
                prop_assert_eq!(buffers.forwarded(core, at, Bytes::byte(at)), newest);
            }
        }

        /// Byte by byte: what a load sees of its core's buffered stores, and when it has to wait.
        #[test]
        fn a_load_sees_the_newest_store_of_its_bytes(
            stores in proptest::collection::vec(access(), 0..8),
            (address, bytes) in access(),
        ) {
            let mut buffers = StoreBuffers::new(1, 8);
            // Which store each byte of the two words is from.
            let mut from = [None; 16];
            let covered = |address: u64, bytes: Bytes| {
                let first = address as usize / 8 * 8;
                (0..8usize).filter(move |bit| bytes.enables >> bit & 1 == 1).map(move |bit| first + bit)
            };
            for (value, &(address, bytes)) in stores.iter().enumerate() {
                covered(address, bytes).for_each(|byte| from[byte] = Some(value));
                buffers.push(0, Store { address, bytes, value: value as u64, origin: 0 });
            }
            let newest = covered(address, bytes).filter_map(|byte| from[byte]).max();
            let exact = newest.filter(|&store| stores[store] == (address, bytes));
            let waits = newest.is_some() && exact.is_none();
            prop_assert_eq!(buffers.hold_back(0, address, bytes), waits);
            if !waits {
                let forwarded = buffers.forwarded(0, address, bytes);
                prop_assert_eq!(forwarded, exact.map(|store| store as u64));
            }
        }
    }

    /// A byte of two words, or one of the words.
    fn access() -> impl Strategy<Value = (u64, Bytes)> {
        prop_oneof![
            3 => (0u64..16).prop_map(|address| (address, Bytes::byte(address))),
            1 => (0u64..2).prop_map(|word| (8 * word, Bytes::word(8 * word))),
        ]
    }
}
