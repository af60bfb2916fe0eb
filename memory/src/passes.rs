//! Passes over many words, each as one loop of a program: what a core executes out of order, with
//! loads and stores of several lines under way.

use std::future::Future;

use crate::{Cacheable, Word};

/// The kind of a pass's stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stores {
    /// Through the caches.
    Cached,
    /// Past the caches, to memory (`MOVNTDQ`): no cache has the lines afterwards.
    NonTemporal,
}

/// Passes over words that follow one another. Words are accessed in no order that others may rely
/// on; a pass ends when all its loads have their data and all its stores are performed, as behind a
/// fence. Where the machine has no such thing it is a loop of [single accesses](word_by_word).
pub trait Passes: Cacheable {
    /// Loads `words` words from `from` on; returns their wrapping sum.
    #[track_caller]
    fn sum(&self, from: Word, words: u32) -> impl Future<Output = u64> + Send {
        word_by_word::sum(self, from, words)
    }

    /// Stores `value` into `words` words from `to` on.
    #[track_caller]
    fn fill(
        &self,
        to: Word,
        words: u32,
        value: u64,
        stores: Stores,
    ) -> impl Future<Output = ()> + Send {
        let _ = stores;
        word_by_word::fill(self, to, words, value)
    }

    /// Loads `words` words from `from` on and stores them from `to` on, which lies elsewhere.
    #[track_caller]
    fn copy_words(
        &self,
        from: Word,
        to: Word,
        words: u32,
        stores: Stores,
    ) -> impl Future<Output = ()> + Send {
        let _ = stores;
        word_by_word::copy(self, from, to, words)
    }

    /// [Flushes](Cacheable::flush) every line of `words` words from `at` on.
    #[track_caller]
    fn flush_words(&self, at: Word, words: u32) -> impl Future<Output = ()> + Send {
        word_by_word::flush(self, at, words)
    }
}

/// Passes as loops of single accesses.
pub mod word_by_word {
    use crate::{Cacheable, Word};

    /// So many words from the first on.
    fn following(first: Word, words: u32) -> impl Iterator<Item = Word> + Send {
        (first.0..).step_by(8).take(words as usize).map(Word)
    }

    /// [`Passes::sum`](super::Passes::sum)
    pub async fn sum<M: Cacheable + ?Sized>(memory: &M, from: Word, words: u32) -> u64 {
        let mut sum = 0_u64;
        for word in following(from, words) {
            sum = sum.wrapping_add(memory.load(word).await);
        }
        sum
    }

    /// [`Passes::fill`](super::Passes::fill)
    pub async fn fill<M: Cacheable + ?Sized>(memory: &M, to: Word, words: u32, value: u64) {
        for word in following(to, words) {
            memory.store(word, value).await;
        }
        memory.fence().await;
    }

    /// [`Passes::copy_words`](super::Passes::copy_words)
    pub async fn copy<M: Cacheable + ?Sized>(memory: &M, from: Word, to: Word, words: u32) {
        for (from, to) in following(from, words).zip(following(to, words)) {
            let value = memory.load(from).await;
            memory.store(to, value).await;
        }
        memory.fence().await;
    }

    /// [`Passes::flush_words`](super::Passes::flush_words)
    pub async fn flush<M: Cacheable + ?Sized>(memory: &M, at: Word, words: u32) {
        for word in following(at, words) {
            memory.flush(word).await;
        }
    }
}
