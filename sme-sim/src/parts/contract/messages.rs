//! The operations of message layers ([`sme_memory::Blocks`] and its neighbours) as questions. A
//! block of words goes beside its question, in a place of the host's thread.

use std::cell::RefCell;
use std::future::Future;

use sme_memory::{
    AnyFlag, Blocks, Flags, Interrupts, Memory, Own, Refused, Scaling, Tables, Tagged, Timer,
    Until, Word,
};

use super::{Operation, ThreadMemory};
use crate::kernel::site::WaitSite;
use crate::kernel::thread::{Answer, ask};
use crate::parts::address::CACHEABLE;

/// The place of a block in its thread's own memory, in an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near(u32);

impl Near {
    const REGISTERS: Self = Self(u32::MAX);

    /// The words are data of the program that lie where it names them.
    const IN_PLACE: Self = Self(u32::MAX - 1);

    /// Of the word at that address, of the first 32 GiB.
    fn at(Own(address): Own) -> Self {
        Self(u32::try_from(address / 8).map_or(u32::MAX - 2, |word| word.min(u32::MAX - 2)))
    }

    /// Returns whether the block is the program's data already and takes no time.
    pub fn is_in_place(self) -> bool {
        self == Self::IN_PLACE
    }

    fn new(own: Option<Own>) -> Self {
        own.map_or(Self::REGISTERS, Self::at)
    }

    /// The address, where it has one.
    pub fn own(self) -> Option<Own> {
        let has_one = self != Self::REGISTERS && self != Self::IN_PLACE;
        has_one.then_some(Own(8 * u64::from(self.0)))
    }
}

thread_local! {
    /// The words that belong to the [`Operation::Put`] in the mailbox, or to the answer of an
    /// [`Operation::Get`].
    static BLOCK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Swaps `words` with those beside the mailbox: for an [`Operation::Put`] just asked for, and
/// before the program of an [`Operation::Get`] is polled.
pub fn swap_block(words: &mut Vec<u64>) {
    BLOCK.with_borrow_mut(|block| std::mem::swap(block, words));
}

impl Blocks for ThreadMemory {
    #[track_caller]
    fn put(&self, to: Word, words: &[u64], from: Option<Own>) -> impl Future<Output = ()> + Send {
        self.stores(to, words, Near::new(from), WaitSite::caller())
    }

    #[track_caller]
    fn get(
        &self,
        from: Word,
        words: &mut [u64],
        to: Option<Own>,
    ) -> impl Future<Output = ()> + Send {
        self.loads(from, words, Near::new(to), WaitSite::caller())
    }

    #[track_caller]
    fn lay(&self, at: Word, words: &[u64]) -> impl Future<Output = ()> + Send {
        self.stores(at, words, Near::IN_PLACE, WaitSite::caller())
    }

    #[track_caller]
    fn view(&self, at: Word, words: &mut [u64]) -> impl Future<Output = ()> + Send {
        self.loads(at, words, Near::IN_PLACE, WaitSite::caller())
    }

    async fn copy(&self, from: Own, to: Own, words: u32) {
        if self.space.moves_blocks() {
            ask(move || Operation::Copy(Near::at(from), Near::at(to), words)).await
        }
    }
}

impl ThreadMemory {
    async fn stores(&self, to: Word, words: &[u64], near: Near, site: WaitSite) {
        if !self.space.moves_blocks() {
            let site = site.site();
            for (&word, at) in words.iter().zip((to.0..).step_by(8)) {
                ask(move || Operation::Store(Word(at), word, site)).await
            }
            return;
        }
        let put = Operation::Put(to, words.len() as u32, near, site);
        ask(move || {
            BLOCK.with_borrow_mut(|block| {
                block.clear();
                block.extend_from_slice(words);
            });
            put
        })
        .await
    }

    async fn loads(&self, from: Word, words: &mut [u64], near: Near, site: WaitSite) {
        if !self.space.moves_blocks() {
            let site = site.site();
            for (word, at) in words.iter_mut().zip((from.0..).step_by(8)) {
                *word = ask(move || Operation::Load(Word(at), site)).await;
            }
            return;
        }
        let get = Operation::Get(from, words.len() as u32, near, site);
        let () = ask(move || get).await;
        BLOCK.with_borrow(|block| {
            for (word, came) in words.iter_mut().zip(block) {
                *word = *came;
            }
        });
    }
}

/// The answer to an [`Operation::FindAny`] that has found none.
pub const NONE_FOUND: u64 = u64::MAX;

impl AnyFlag for ThreadMemory {
    async fn find_any(&self, flags: Flags, first: u32, until: Until) -> Option<u32> {
        if flags.count == 0 {
            return None;
        }
        let found: u64 = ask(move || Operation::FindAny(flags, first, until)).await;
        (found != NONE_FOUND).then_some(found as u32)
    }

    fn wait_any(&self, flags: Flags, until: Until) -> impl Future<Output = u32> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::WaitAny(flags, until, site))
    }
}

impl Tagged for ThreadMemory {
    fn invalidate_tagged(&self) -> impl Future<Output = ()> + Send {
        ask(|| Operation::InvalidateTagged)
    }
}

impl Interrupts for ThreadMemory {
    fn interrupt(&self, node: u32) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Interrupt(node))
    }

    fn take_interrupt(&self) -> impl Future<Output = ()> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::TakeInterrupt(site))
    }
}

impl Timer for ThreadMemory {
    fn now(&self) -> impl Future<Output = u64> + Send {
        ask(|| Operation::Now)
    }
}

impl Tables for ThreadMemory {
    async fn map(&self, entry: u32, node: u32, its: u32) {
        if let Some(from) = self.space.get().table_entry(node, its) {
            let leads = self.load(Word(from)).await;
            self.leads(entry, leads).await;
        }
    }

    async fn unmap(&self, entry: u32) {
        let nowhere = self.space.get().unused_entry();
        self.leads(entry, nowhere).await;
    }

    fn own_word(&self, Own(at): Own) -> Word {
        Word(CACHEABLE | at)
    }
}

impl ThreadMemory {
    /// Writes an entry of the own node's table; later accesses go where it says.
    async fn leads(&self, entry: u32, content: u64) {
        if let Some(to) = self.space.get().table_entry(self.node, entry) {
            self.store(Word(to), content).await;
            self.fence().await;
        }
    }
}

/// The answer to an [`Operation::SetDivider`] or an [`Operation::SetVoltage`].
impl Answer for Result<(), Refused> {
    fn from_mailbox(answer: u64) -> Self {
        Refused::from_answer(answer)
    }
}

impl Scaling for ThreadMemory {
    fn set_divider(&self, divider: u32) -> impl Future<Output = Result<(), Refused>> + Send {
        ask(move || Operation::SetDivider(divider))
    }

    fn set_voltage(&self, millivolts: u32) -> impl Future<Output = Result<(), Refused>> + Send {
        ask(move || Operation::SetVoltage(millivolts))
    }
}
