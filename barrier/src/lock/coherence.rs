//! Coherence for the data that a lock protects when the lock goes from one node to another, so that
//! the data may be cached (Fröning et al., Sec. VII, do it at a barrier).
//!
//! A protocol of two halves. The thread that gives the lock to another node writes back what its
//! node has changed, and then loads from each home of the data: that load does not overtake what
//! was written there before, so when it ends, everything has been performed. The thread that gets
//! the lock from another node drops its node's copies before it reads.

use std::future::Future;

use sme_memory::{Cacheable, Capabilities, Capability, Place, Route};

/// The actions that let one node after the other use the data under the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coherence {
    /// The nodes whose memory holds the data. Before the lock leaves a node, what this wrote to
    /// them has been performed there, cached or not. None: it may still be on its way.
    pub homes: Vec<u32>,
    /// The action on copies in caches.
    pub copies: Copies,
}

/// Copies in a node's caches that a lock writes back and drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// None. Right for data that is reached past the caches; wrong for cached data.
    #[default]
    Kept,
    /// The lines of these words, one by one ([`Cacheable::flush`]).
    Lines(Vec<Place>),
    /// All, by the operating system ([`Cacheable::write_back_invalidate`]).
    All,
}

impl Coherence {
    /// The nodes whose memory holds the data, copies included.
    pub(super) fn all_homes(&self) -> impl Iterator<Item = u32> {
        let lines = match &self.copies {
            Copies::Lines(words) => words.as_slice(),
            Copies::Kept | Copies::All => &[],
        };
        let homes = self.homes.iter().copied();
        homes.chain(lines.iter().map(|word| word.node))
    }

    /// The capabilities that this protocol takes.
    pub fn needs(&self) -> Capabilities {
        match self.copies {
            Copies::Kept => Capabilities::LEAST,
            Copies::Lines(_) | Copies::All => Capabilities::of(&[Capability::Caching]),
        }
    }

    /// Returns whether it matters which node had the lock before.
    pub(super) fn depends_on_last(&self) -> bool {
        self.copies != Copies::Kept
    }

    /// Another node has had the lock.
    pub(super) fn begin<M: Cacheable>(&self, memory: &M) -> impl Future<Output = ()> + Send {
        async move {
            match &self.copies {
                Copies::Kept => {}
                Copies::Lines(words) => flush(memory, words).await,
                Copies::All => memory.write_back_invalidate().await,
            }
        }
    }

    /// Another node may have the lock next. `word_at` is any word in a home's memory.
    pub(super) fn end<M: Cacheable>(
        &self,
        memory: &M,
        word_at: impl Fn(u32) -> Place + Send,
    ) -> impl Future<Output = ()> + Send {
        async move {
            match &self.copies {
                Copies::Kept => {}
                Copies::Lines(words) => flush(memory, words).await,
                Copies::All => memory.write_back().await,
            }
            memory.fence().await;
            for &home in &self.homes {
                memory.load(memory.word(word_at(home), Route::Global)).await;
            }
        }
    }
}

fn flush<M: Cacheable>(memory: &M, words: &[Place]) -> impl Future<Output = ()> + Send {
    async move {
        for &place in words {
            memory.flush(memory.word(place, Route::Cached)).await;
        }
    }
}
