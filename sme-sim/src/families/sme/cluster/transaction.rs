//! Transactions on the lines of a node's memory, by a core or by the bridge.

use crate::parts::line::Bytes;

/// The agent of the bridge's transactions; a core's is its number.
pub const BRIDGE: u16 = u16::MAX;
/// No line, no transaction, no writer.
pub const NONE: u32 = u32::MAX;

/// An atomic update of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Adds.
    Add,
    /// Replaces.
    Swap,
    /// Replaces if the word holds what the core [expects](super::domain::Domain::expect).
    CompareExchange,
}

impl Update {
    /// Returns whether it writes a word that held `before`, where the core expected `expected`.
    pub fn writes(self, before: u64, expected: u64) -> bool {
        self != Update::CompareExchange || before == expected
    }
}

/// The kinds of transactions on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A core fetches a copy to read.
    Read,
    /// A core takes the line for itself and writes.
    Own,
    /// A core takes the line for itself and updates a word.
    Update(Update),
    /// The bridge writes; whether it probes is the packet's *coherent* bit.
    Write {
        /// Invalidates the copies.
        coherent: bool,
    },
    /// The bridge reads the newest bytes.
    Fetch {
        /// Words read besides, those after that of these bytes in the same line.
        extra_words: u8,
    },
}

/// One transaction on a line.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    /// Index of the line.
    pub line: u32,
    /// Core number or [`BRIDGE`].
    pub agent: u16,
    /// Its kind.
    pub kind: Kind,
    /// To which bytes.
    pub bytes: Bytes,
    /// The value to write; after the start, the value that was read.
    pub value: u64,
    /// The thread that caused it, as the machine's traces name it.
    pub origin: u32,
    pub(super) next: u32,
}

// Every core may have one under way.
const _: () = assert!(size_of::<Transaction>() == 32);
