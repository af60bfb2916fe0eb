//! The memory of a node, which its cores and its network interface share: banks that serve one
//! access after the other, or the memory behind a subsystem's controller.

use crate::parts::line::Bytes;
use crate::parts::memory::{Words, Writer};
use crate::time::Time;

/// The size and the service times of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Serving {
    /// Bytes that there are.
    pub bytes: u64,
    /// A word, from when it is asked for until it is there.
    pub access: Time,
    /// The time for which a word occupies its bank.
    pub busy: Time,
    /// Banks, between which words are interleaved.
    pub banks: u32,
}

/// The memory.
#[derive(Debug)]
pub(super) struct Store {
    pub serving: Serving,
    pub words: Words,
    /// The time until which each bank is busy.
    banks: Vec<Time>,
}

impl Store {
    /// All of it is zero.
    pub fn new(serving: Serving) -> Self {
        Self {
            serving,
            words: Words::default(),
            banks: vec![Time::ZERO; serving.banks as usize],
        }
    }

    /// The time at which so many words from `offset` on are there that are asked for at `at`, now
    /// or later. They occupy their banks as if it was now: a core that loads word after word asks
    /// for all of them in one event, and must not keep others from what is idle.
    pub fn serves(&mut self, now: Time, at: Time, offset: u64, words: u64) -> Time {
        let mut last = at;
        for word in 0..words {
            let banks = self.banks.len() as u64;
            let bank = &mut self.banks[((offset / 8 + word) % banks) as usize];
            last = last.max(at.max(*bank));
            *bank = now.max(*bank) + self.serving.busy;
        }
        last + self.serving.access
    }

    /// Writes bytes of a word.
    pub fn write(&mut self, offset: u64, bytes: Bytes, value: u64, by: Writer) {
        self.words.write(offset, bytes, value, Some(by));
    }
}
