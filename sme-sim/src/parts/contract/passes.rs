//! Passes over many words ([`sme_memory::Passes`]) as questions.

use std::future::Future;

use sme_memory::{Passes, Stores, Word, word_by_word};

use super::{Operation, ThreadMemory};
use crate::kernel::site::WaitSite;
use crate::kernel::thread::ask;

impl Passes for ThreadMemory {
    #[track_caller]
    fn sum(&self, from: Word, words: u32) -> impl Future<Output = u64> + Send {
        let pass = Operation::Sum(from, words, WaitSite::caller());
        async move {
            match self.space.makes_passes() {
                true => ask(move || pass).await,
                false => word_by_word::sum(self, from, words).await,
            }
        }
    }

    #[track_caller]
    fn fill(
        &self,
        to: Word,
        words: u32,
        value: u64,
        stores: Stores,
    ) -> impl Future<Output = ()> + Send {
        let site = WaitSite::caller();
        let pass = match stores {
            Stores::Cached => Operation::Fill(to, value, words, site),
            Stores::NonTemporal => Operation::FillPast(to, value, words, site),
        };
        async move {
            match self.space.makes_passes() {
                true => ask(move || pass).await,
                false => word_by_word::fill(self, to, words, value).await,
            }
        }
    }

    #[track_caller]
    fn copy_words(
        &self,
        from: Word,
        to: Word,
        words: u32,
        stores: Stores,
    ) -> impl Future<Output = ()> + Send {
        let site = WaitSite::caller();
        let pass = match stores {
            Stores::Cached => Operation::CopyWords(from, to, words, site),
            Stores::NonTemporal => Operation::CopyPast(from, to, words, site),
        };
        async move {
            match self.space.makes_passes() {
                true => ask(move || pass).await,
                false => word_by_word::copy(self, from, to, words).await,
            }
        }
    }

    #[track_caller]
    fn flush_words(&self, at: Word, words: u32) -> impl Future<Output = ()> + Send {
        let pass = Operation::FlushWords(at, words, WaitSite::caller());
        async move {
            match self.space.makes_passes() {
                true => ask(move || pass).await,
                false => word_by_word::flush(self, at, words).await,
            }
        }
    }
}
