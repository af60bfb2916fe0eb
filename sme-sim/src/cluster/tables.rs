//! How the tables of a node grow: to about what is in use at once, not to twice as much. There are
//! as many of them as nodes, and they are small.

use std::collections::VecDeque;

use slab::Slab;

/// Puts `item` into `table`; its number there.
#[inline]
pub fn insert<T>(table: &mut Slab<T>, item: T) -> u32 {
    if table.len() == table.capacity() {
        table.reserve_exact(growth(table.len()));
    }
    table.insert(item) as u32
}

/// A table of which one item stands in the table itself: many never have more at once.
#[derive(Debug)]
pub struct Few<T> {
    one: Option<T>,
    more: Slab<T>,
}

impl<T> Few<T> {
    /// With nothing in it.
    pub fn new() -> Self {
        Self {
            one: None,
            more: Slab::new(),
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.one.is_none() && self.more.is_empty()
    }

    /// Puts `item` in; its number there.
    #[inline]
    pub fn insert(&mut self, item: T) -> u32 {
        if self.one.is_none() {
            self.one = Some(item);
            return 0;
        }
        insert(&mut self.more, item) + 1
    }

    /// Takes the item with this number out.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn remove(&mut self, number: u32) -> T {
        match number.checked_sub(1) {
            Some(number) => self.more.remove(number as usize),
            None => self.one.take().expect("an item with this number"),
        }
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        self.more.capacity() * size_of::<T>()
    }
}

/// Puts `item` at the end of `list`.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(growth(list.len()));
    }
    list.push(item);
}

/// Puts `item` at the end of `queue`.
#[inline]
pub fn push_back<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(growth(queue.len()));
    }
    queue.push_back(item);
}

/// Bytes of a queue on the heap.
pub fn queue_bytes<T>(queue: &VecDeque<T>) -> usize {
    queue.capacity() * size_of::<T>()
}

fn growth(length: usize) -> usize {
    (length / 8).max(1)
}
