//! A barrier as explicit steps: what its threads ask of memory, one thing after the other, without
//! a future to keep them in.
//!
//! Where there are a hundred million threads, a future for each is too much. Most of them do the
//! same: read the phase of their node, set their own flag, wait for the phase to change
//! ([`Followers`]). Only the first thread of each node does what the algorithm is about, and that
//! is a [`Leader`]: a small state from which follows what is asked for next. Offsets are bytes of
//! the shared partition of a node, and all flags hold 0 or 1.

use crate::{Place, Until};

/// The next request of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads the flag at this offset in its own node.
    Read(u64),
    /// Writes a flag, anywhere.
    Set(Place, u8),
    /// Waits for the flag at this offset in its own node.
    Wait(u64, Until),
    /// Waits for a row of flags in its own node.
    WaitAll(FlagRow, Until),
    /// The episode is over.
    Leave,
}

/// Flags at equal distances in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagRow {
    /// Offset of the first, in bytes.
    pub first: u64,
    /// From one to the next, in bytes.
    pub stride: u32,
    /// The number of flags.
    pub count: u32,
}

/// The flags of those threads of a node that only follow, thread 1 the first of them. All nodes
/// have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followers {
    /// Offset of the phase for which they wait, in bytes.
    pub phase: u64,
    /// Their flags, by which they say that they have arrived.
    pub flags: FlagRow,
}

/// A barrier whose nodes have one thread that leads, number 0, and others that follow it.
pub trait Leader: Send + Sync {
    /// The state of a leader, within an episode and from one to the next.
    type State: Copy + Default + Send;

    /// Returns the next request of the leader of `node`, given the `answer` that its last
    /// [`Step::Read`] or [`Step::Wait`] saw. After [`Step::Leave`] the next episode begins.
    fn next(&self, node: u32, state: &mut Self::State, answer: u8) -> Step;

    /// Returns the part of the other threads.
    fn followers(&self) -> Followers;

    /// Bytes of each shared partition, from its beginning, in which all flags lie.
    fn bytes(&self) -> u64;
}
