//! RCCE, Intel's own message library for the SCC, as a yardstick (T. Mattson, R. van der Wijngaart,
//! *RCCE: a Small Library for Many-Core Communication*, 2010): one-sided put and get, flags, and
//! over them two-sided send and receive and a barrier. Cores are called units of execution (UE).
//!
//! A message goes piece by piece. The sender puts a piece into its own message passing buffer,
//! tells the receiver by a flag in the receiver's buffer, and waits; the receiver gets the piece
//! from there and tells the sender. So both copy each byte, one after the other.
//!
//! In each buffer lie, a line each, a flag `sent` and a flag `ready` for each other UE, the flags
//! of the barrier, and behind them room for a piece. Lengths are in words of eight bytes.

mod barrier;
mod transfer;

use sme_memory::{Blocks, Flag, Memory, Own, Place, Route, Tagged, Until, Word};

/// Bytes of a line, and so of a flag.
const LINE: u64 = 32;

/// Flags of a buffer besides those for each UE: the barrier's release.
const OTHER_FLAGS: u64 = 1;

/// Flags for each UE: sent, ready, and its arrival at the barrier.
const FLAGS_PER_UE: u64 = 3;

/// A reason that keeps RCCE from being set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RcceError {
    /// There is no UE.
    #[error("RCCE needs at least one core")]
    NoCores,
    /// The flags leave no room in the buffers.
    #[error("RCCE's flags for {ues} cores leave no room in buffers of {bytes} bytes")]
    NoRoom {
        /// The UEs.
        ues: u32,
        /// Bytes of each buffer.
        bytes: u64,
    },
}

/// One UE's part of the library.
#[derive(Debug)]
pub struct Rcce<M> {
    memory: M,
    me: u32,
    ues: u32,
    /// Bytes of each buffer.
    bytes: u64,
    /// Barriers that it has left.
    barriers: u8,
}

/// The kinds of flags in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A piece of a message is in the buffer of that UE.
    Sent(u32),
    /// The UE has taken the piece.
    Ready(u32),
    /// The UE has arrived at the barrier.
    Arrived(u32),
    /// All have.
    Release,
}

/// Returns whether so many UEs can have RCCE with buffers of so many `bytes`.
///
/// # Errors
/// [`RcceError`] if there is no UE or no room for a piece of a message.
pub fn check(ues: u32, bytes: u64) -> Result<(), RcceError> {
    match (ues, room(ues, bytes)) {
        (0, _) => Err(RcceError::NoCores),
        (_, 0) => Err(RcceError::NoRoom { ues, bytes }),
        _ => Ok(()),
    }
}

/// Bytes of the flags at the beginning of each buffer.
fn flag_bytes(ues: u32) -> u64 {
    LINE * (FLAGS_PER_UE * u64::from(ues) + OTHER_FLAGS)
}

/// Words of a piece of a message: whole lines of what the flags leave.
fn room(ues: u32, bytes: u64) -> usize {
    (bytes.saturating_sub(flag_bytes(ues)) / LINE * LINE / 8) as usize
}

/// The name of the variable at `place` in the buffers of `ues` UEs, for reports.
pub fn variable(place: Place, ues: u32) -> Option<String> {
    let Place { node, offset } = place;
    if node >= ues {
        return None;
    }
    let flag = offset / LINE;
    let (kind, other) = (flag / u64::from(ues), flag % u64::from(ues));
    Some(match kind {
        0 => format!("UE {other}'s sent flag at UE {node}"),
        1 => format!("UE {other}'s ready flag at UE {node}"),
        2 => format!("UE {other}'s arrival at UE {node}"),
        _ if offset < flag_bytes(ues) => format!("the release at UE {node}"),
        _ => format!("the buffer of UE {node}"),
    })
}

impl<M: Memory + Tagged + Blocks> Rcce<M> {
    /// The part of UE `me` of so many, which runs on the node of that number; each node has a
    /// message passing buffer of so many `bytes` at the beginning of its shared memory.
    ///
    /// # Errors
    /// As [`check`].
    pub fn new(memory: M, me: u32, ues: u32, bytes: u64) -> Result<Self, RcceError> {
        check(ues, bytes)?;
        Ok(Self {
            memory,
            me,
            ues,
            bytes,
            barriers: 0,
        })
    }

    /// This UE's view of memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Words of a piece of a message: whole lines.
    fn room(&self) -> usize {
        room(self.ues, self.bytes)
    }

    /// The flag of this kind in the buffer of UE `ue`.
    fn flag(&self, ue: u32, kind: Kind) -> Flag {
        let ues = u64::from(self.ues);
        let number = match kind {
            Kind::Sent(other) => u64::from(other),
            Kind::Ready(other) => ues + u64::from(other),
            Kind::Arrived(other) => 2 * ues + u64::from(other),
            Kind::Release => FLAGS_PER_UE * ues,
        };
        let place = Place {
            node: ue,
            offset: LINE * number,
        };
        self.memory.flag(place, Route::Global)
    }

    /// Word `index` of the room for pieces in the buffer of UE `ue`.
    fn word(&self, ue: u32, index: usize) -> Word {
        let place = Place {
            node: ue,
            offset: flag_bytes(self.ues) + 8 * index as u64,
        };
        self.memory.word(place, Route::Tagged)
    }

    /// Copies `words`, which lie at `from` in this UE's own memory, into the buffer of UE `ue`,
    /// from word `index` of its room on.
    pub async fn put(&self, ue: u32, index: usize, words: &[u64], from: Option<Own>) {
        self.memory.invalidate_tagged().await;
        self.memory.put(self.word(ue, index), words, from).await;
        self.memory.fence().await;
    }

    /// Copies from there into `words`, which lie at `to`.
    pub async fn get(&self, ue: u32, index: usize, words: &mut [u64], to: Option<Own>) {
        self.memory.invalidate_tagged().await;
        self.memory.get(self.word(ue, index), words, to).await;
    }

    async fn wait_for(&self, kind: Kind, value: u8) {
        let flag = self.flag(self.me, kind);
        self.memory.wait(flag, Until::Is(value)).await;
    }
}
