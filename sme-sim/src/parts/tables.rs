//! The growth of a node's tables: to about what is in use at once, not to twice as much. There are
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

/// Adds `item` to a row that seldom grows.
pub fn grow<T>(row: &mut Box<[T]>, item: T) {
    let mut items = std::mem::take(row).into_vec();
    items.push(item);
    *row = items.into();
}
