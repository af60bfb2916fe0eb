//! Operations that layers of messages ask for, beyond words and flags. Each is a trait of its own,
//! as in `contract`.

use std::future::Future;

use crate::{Flags, Memory, Until, Word};

/// Lines that are tagged as message buffers ([`Route::Tagged`](crate::Route::Tagged)), as the Intel
/// SCC has them (type MPBT). A copy of a tagged line is in the first-level cache of its core only,
/// where nothing keeps it coherent; stores gather in a buffer of one line and leave together when a
/// store goes to another line, or at a [`Memory::fence`]. A store that hits a copy updates it too.
///
/// To hand data over: the writer drops its copies, stores, and fences; it notifies; the reader
/// drops its copies and loads.
pub trait Tagged: Memory {
    /// Drops the copies that this thread's core has of all tagged lines (CL1INVMB). The contents of
    /// the buffer stay there.
    fn invalidate_tagged(&self) -> impl Future<Output = ()> + Send;
}

/// An address in a thread's own memory, from 0. It names no data: only the time of a copy depends
/// on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Own(pub u64);

/// Copies of many words between shared memory and a thread's own, as one operation. Words are
/// copied one after the other, in no order that others may rely on.
pub trait Blocks: Memory {
    /// Stores `words` from `to` on, which lie at `from` in the thread's own memory, or in
    /// registers.
    #[track_caller]
    fn put(&self, to: Word, words: &[u64], from: Option<Own>) -> impl Future<Output = ()> + Send {
        let _ = from;
        async move {
            for (word, at) in words.iter().zip((to.0..).step_by(8)) {
                self.store(Word(at), *word).await;
            }
        }
    }

    /// Loads `words` from `from` on, for which there is room at `to` in the thread's own memory, or
    /// in registers.
    #[track_caller]
    fn get(
        &self,
        from: Word,
        words: &mut [u64],
        to: Option<Own>,
    ) -> impl Future<Output = ()> + Send {
        let _ = to;
        async move {
            for (word, at) in words.iter_mut().zip((from.0..).step_by(8)) {
                *word = self.load(Word(at)).await;
            }
        }
    }

    /// Lets memory hold `words` from `at` on: data that the program has there already, though the
    /// host keeps them elsewhere. Where a machine simulates the program's own memory it takes a
    /// picosecond; otherwise it is a [`put`](Self::put).
    #[track_caller]
    fn lay(&self, at: Word, words: &[u64]) -> impl Future<Output = ()> + Send {
        self.put(at, words, None)
    }

    /// Gives the words from `at` on as the program would load them, stale ones in its caches
    /// included. It takes as long as [`lay`](Self::lay).
    #[track_caller]
    fn view(&self, at: Word, words: &mut [u64]) -> impl Future<Output = ()> + Send {
        self.get(at, words, None)
    }

    /// Takes the time in which a program copies so many doubles within the thread's own memory,
    /// from the one address to the other. On a memory whose own side costs nothing it takes none.
    fn copy(&self, from: Own, to: Own, words: u32) -> impl Future<Output = ()> + Send {
        let _ = (from, to, words);
        async {}
    }
}

/// Waits that end with the first of many flags.
pub trait AnyFlag: Memory {
    /// Reads `flags` in turn, and round again, until one holds `until`; returns its index. There
    /// must be at least one.
    #[track_caller]
    fn wait_any(&self, flags: Flags, until: Until) -> impl Future<Output = u32> + Send;

    /// Reads each of `flags` once, from the one at `first` on and round again, until one holds
    /// `until`; returns its index, if any does.
    fn find_any(
        &self,
        flags: Flags,
        first: u32,
        until: Until,
    ) -> impl Future<Output = Option<u32>> + Send;
}

/// Interrupts between nodes.
pub trait Interrupts: Memory {
    /// Interrupts `node`. The thread's earlier stores are visible to the thread that takes the
    /// interrupt, as if a flag had been set. An interrupt that comes while one is pending there is
    /// lost.
    fn interrupt(&self, node: u32) -> impl Future<Output = ()> + Send;

    /// Waits until an interrupt is pending at this node, and takes it.
    #[track_caller]
    fn take_interrupt(&self) -> impl Future<Output = ()> + Send;
}

/// The time.
pub trait Timer: Memory {
    /// Nanoseconds since a time in the past. It is never 0, and each call returns more than the one
    /// before if a nanosecond has passed.
    fn now(&self) -> impl Future<Output = u64> + Send;
}
