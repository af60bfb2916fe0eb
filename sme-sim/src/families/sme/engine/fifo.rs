//! FIFOs with registered full and empty, several of them over one store of places.
//!
//! Every wire between two blocks ends in such a FIFO, which belongs to the block that reads it:
//! its *ready* is "not full", its *valid* is "not empty", both as they stood at the beginning of
//! the cycle. A packet written in a cycle is thus seen in the next, and a place freed in a cycle
//! can be written in the next: a FIFO of depth two carries a packet every cycle, one of depth one
//! every other.
//!
//! The hardware has one memory for each FIFO. Here they are lists in a common store, which only
//! grows to what was ever in use at once, and so do the lists: an engine has over fifty FIFOs and
//! rarely more than a few packets. A few stand in the engine itself, near the data that is used
//! with them, and others are used only while there are more: in a large machine the time goes into
//! fetching its state. Beside each packet a FIFO keeps a 16-bit `side` word, decided when it is
//! written.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::parts::inline::{Few, heap_bytes};

/// End of a list.
const NONE: u16 = u16::MAX;

/// Most places of all FIFOs of a bank together.
pub const MAX_PLACES: usize = NONE as usize;

/// `N` FIFOs of `T`, at most 64.
#[derive(Clone, Debug)]
pub struct Fifos<T, const N: usize> {
    /// Not empty, at the beginning of the cycle.
    valid: u64,
    /// Full, at the beginning of the cycle.
    full: u64,
    /// Not empty, as it will be registered at the end of the cycle.
    next_valid: u64,
    /// Full, as it will be registered at the end of the cycle.
    next_full: u64,
    /// The FIFOs that have packets, in any order.
    lists: SmallVec<[List; 3]>,
    /// Places of each FIFO.
    depths: Arc<[u16; N]>,
    places: Few<StorePlace<T>, 2>,
}

/// The packets of a FIFO that is not empty.
#[derive(Clone, Copy, Debug)]
struct List {
    fifo: u8,
    length: u16,
    head: u16,
    tail: u16,
}

/// A place of the store: a packet with its side word, and the place of the next one.
#[derive(Clone, Copy, Debug)]
struct StorePlace<T> {
    item: T,
    side: u16,
    next: u16,
}

/// A place taken out of its FIFO, but still holding its packet.
#[derive(Debug, PartialEq, Eq)]
pub struct Held(u16);

impl<T: Copy, const N: usize> Fifos<T, N> {
    /// Empty FIFOs of these depths, each at least 1.
    pub fn new(depths: &[u16; N]) -> Self {
        Self::sharing(&Arc::new(*depths))
    }

    /// Empty FIFOs of these depths, which many banks have in common.
    pub fn sharing(depths: &Arc<[u16; N]>) -> Self {
        const { assert!(N <= 64) };
        Self {
            valid: 0,
            full: 0,
            next_valid: 0,
            next_full: 0,
            lists: SmallVec::new(),
            depths: Arc::clone(depths),
            places: Few::default(),
        }
    }

    /// Begins a cycle: what the last one left is now registered.
    pub fn latch(&mut self) {
        self.valid = self.next_valid;
        self.full = self.next_full;
    }

    /// The FIFOs that are not empty, bit by bit.
    pub fn valid(&self) -> u64 {
        self.valid
    }

    /// Returns whether FIFO `index` offers a packet.
    pub fn is_valid(&self, index: usize) -> bool {
        self.valid >> index & 1 == 1
    }

    /// Returns whether FIFO `index` takes a packet.
    pub fn is_ready(&self, index: usize) -> bool {
        self.full >> index & 1 == 0
    }

    /// The FIFOs that will not be empty in the next cycle, bit by bit.
    pub fn next_valid(&self) -> u64 {
        self.next_valid
    }

    /// The first packet of a FIFO that is valid.
    pub fn head(&self, index: usize) -> &T {
        &self.places[self.list(index).head.into()].item
    }

    /// The side word of the first packet of a FIFO that is valid.
    pub fn side(&self, index: usize) -> u16 {
        self.places[self.list(index).head.into()].side
    }

    /// Writes a packet with its side word at the end of the cycle.
    ///
    /// # Panics
    /// If the FIFO has no place (the writer ignored *ready* or a credit), or the bank
    /// [no more](MAX_PLACES).
    pub fn push(&mut self, index: usize, item: T, side: u16) {
        let place = StorePlace {
            item,
            side,
            next: NONE,
        };
        let slot = self.places.insert(place) as usize;
        assert!(slot < MAX_PLACES, "the store of places is exhausted");
        let slot = slot as u16;
        self.append(index, slot);
    }

    /// Takes the first packet of a FIFO that is valid.
    pub fn pop(&mut self, index: usize) -> T {
        let held = self.hold(index);
        let item = *self.held(&held);
        self.release(held);
        item
    }

    /// Moves the first packet of FIFO `from`, which is valid, into FIFO `to`, which is ready.
    ///
    /// # Panics
    /// If `to` has no place.
    pub fn transfer(&mut self, from: usize, to: usize, side: u16) {
        let Held(slot) = self.hold(from);
        let place = &mut self.places[slot.into()];
        place.side = side;
        place.next = NONE;
        self.append(to, slot);
    }

    /// Takes the first packet out of a FIFO that is valid, but keeps it where it is.
    pub fn hold(&mut self, index: usize) -> Held {
        let number = self.find(index);
        let list = &mut self.lists[number];
        let slot = list.head;
        list.head = self.places[slot.into()].next;
        list.length -= 1;
        self.next_full &= !(1 << index);
        if list.length == 0 {
            self.lists.swap_remove(number);
            self.next_valid &= !(1 << index);
        }
        Held(slot)
    }

    /// A held packet.
    pub fn held(&self, held: &Held) -> &T {
        &self.places[held.0.into()].item
    }

    /// Lets go of a held packet.
    pub fn release(&mut self, held: Held) {
        self.places.remove(held.0.into());
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.places.heap_bytes() + heap_bytes(&self.lists)
    }

    /// Returns the place of the list of a FIFO that has packets.
    #[inline]
    fn find(&self, index: usize) -> usize {
        let is_it = |list: &List| usize::from(list.fifo) == index;
        let found = self.lists.iter().position(is_it);
        found.unwrap_or_else(|| panic!("FIFO {index} is empty: its reader ignored valid"))
    }

    #[inline]
    fn list(&self, index: usize) -> &List {
        &self.lists[self.find(index)]
    }

    fn append(&mut self, index: usize, slot: u16) {
        let depth = self.depths[index];
        let length = if self.next_valid >> index & 1 == 0 {
            self.next_valid |= 1 << index;
            if self.lists.len() == self.lists.capacity() {
                self.lists.reserve_exact(2);
            }
            self.lists.push(List {
                fifo: index as u8,
                length: 1,
                head: slot,
                tail: slot,
            });
            1
        } else {
            let number = self.find(index);
            let list = &mut self.lists[number];
            assert!(
                list.length < depth,
                "FIFO {index} is full: its writer ignored ready or a credit"
            );
            list.length += 1;
            self.places[list.tail.into()].next = slot;
            list.tail = slot;
            list.length
        };
        if length == depth {
            self.next_full |= 1 << index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn depth_two_carries_a_packet_every_cycle_and_depth_one_every_other() {
        let carried = |depth: u16| {
            let mut fifo = Fifos::<u32, 1>::new(&[depth]);
            let mut taken = Vec::new();
            for cycle in 0..100 {
                fifo.latch();
                let (valid, ready) = (fifo.is_valid(0), fifo.is_ready(0));
                if valid {
                    taken.push(fifo.pop(0));
                }
                if ready {
                    fifo.push(0, cycle, 0);
                }
            }
            taken.len()
        };
        assert_eq!(carried(2), 99);
        assert_eq!(carried(1), 50);
    }

    #[test]
    #[should_panic(expected = "ignored ready")]
    fn writing_into_a_full_fifo_is_found_out() {
        let mut fifo = Fifos::<u32, 1>::new(&[1]);
        fifo.push(0, 1, 0);
        fifo.push(0, 2, 0);
    }

    proptest! {
        /// Three FIFOs against three queues, where the oracle registers its flags explicitly.
        #[test]
        fn they_are_queues_with_registered_flags(
            depths in prop::array::uniform3(1u16..5),
            cycles in prop::collection::vec((0u8..8, 0u8..8, 0u8..4, any::<u16>()), 1..300),
        ) {
            let mut fifos = Fifos::<u32, 3>::new(&depths);
            let mut oracle: [VecDeque<(u32, u16)>; 3] = Default::default();
            let mut held: Option<(Held, u32)> = None;
            let mut most = 0;
            for (cycle, (pops, pushes, action, side)) in cycles.into_iter().enumerate() {
                fifos.latch();
                let start: Vec<usize> = oracle.iter().map(VecDeque::len).collect();
                let mut popped = [false; 3];
                let mut pushed = [false; 3];
                for i in 0..3 {
                    prop_assert_eq!(fifos.is_valid(i), start[i] > 0);
                    prop_assert_eq!(fifos.is_ready(i), start[i] < usize::from(depths[i]));
                }
                if action == 1 && start[0] > 0 && start[1] < usize::from(depths[1]) {
                    fifos.transfer(0, 1, side);
                    let (item, _) = oracle[0].pop_front().unwrap();
                    oracle[1].push_back((item, side));
                    (popped[0], pushed[1]) = (true, true);
                }
                if let Some((place, item)) = held.take() {
                    prop_assert_eq!(*fifos.held(&place), item);
                    fifos.release(place);
                } else if action == 2 && start[2] > 0 {
                    held = Some((fifos.hold(2), oracle[2].pop_front().unwrap().0));
                    popped[2] = true;
                }
                for i in 0..3 {
                    if pops >> i & 1 == 1 && start[i] > 0 && !popped[i] {
                        let expected = oracle[i].pop_front().unwrap();
                        prop_assert_eq!((*fifos.head(i), fifos.side(i)), expected);
                        prop_assert_eq!(fifos.pop(i), expected.0);
                    }
                    if pushes >> i & 1 == 1 && start[i] < usize::from(depths[i]) && !pushed[i] {
                        let item = (cycle * 3 + i) as u32;
                        fifos.push(i, item, side);
                        oracle[i].push_back((item, side));
                    }
                }
                for i in 0..3 {
                    prop_assert_eq!(fifos.is_valid(i), start[i] > 0, "registered");
                    prop_assert_eq!(fifos.is_ready(i), start[i] < usize::from(depths[i]), "registered");
                }
                most = most.max(oracle.iter().map(VecDeque::len).sum::<usize>() + 1);
                let last = fifos.lists.iter().map(|list| usize::from(list.tail)).max();
                prop_assert!(last.is_none_or(|last| last < most), "places are used again");
            }
        }
    }
}
