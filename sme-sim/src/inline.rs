//! Lists of which the first few items stand where the list itself stands. There are as many of them
//! as nodes, and in a large machine what takes time is to fetch a node's state: the fewer places it
//! lies in, the better.

use smallvec::{Array, SmallVec};

use crate::prefetch::prefetch;

/// Asks for those items that stand elsewhere.
#[inline]
pub fn prefetch_list<A: Array>(list: &SmallVec<A>) {
    if list.spilled() {
        prefetch(list.as_slice());
    }
}

/// Bytes on the heap.
pub fn heap_bytes<A: Array>(list: &SmallVec<A>) -> usize {
    if list.spilled() {
        list.capacity() * size_of::<A::Item>()
    } else {
        0
    }
}
