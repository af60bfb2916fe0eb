//! Networks on chip that carry bytes into the memory of nodes which loads and stores do not reach,
//! as the Kalray MPPA-256 has them: a data network, whose transfers name a receive tag and an
//! offset, and a control network, whose messages are 64 bits (Ho et al., Sec. I).
//!
//! The network tells a node of what has come by setting a flag in its memory, with the same meaning
//! as if a thread had set it; an event, a second flag that several tags and channels may share, is
//! for threads that wait for any of them. The network writes memory past all caches: copies go
//! stale.

use std::future::Future;

use crate::{Flag, Flags, Memory, Word};

/// Nodes, a bit each: node `n` is bit `n`. Networks on chip have no more than 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeSet(pub u64);

impl NodeSet {
    /// One node, below 64.
    pub const fn one(node: u32) -> Self {
        Self(1 << (node % 64))
    }

    /// The nodes, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |node| self.0 & 1 << node != 0)
    }
}

/// The destination of transfers that name a receive tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receives {
    /// Transfers go where their offset says. After so many of them, and again after as many more,
    /// the flag is set to 1.
    Buffer {
        /// The first byte, in the memory of the tag's node.
        at: Word,
        /// Bytes from there on.
        bytes: u32,
        /// Transfers until the flag is set, at least 1.
        transfers: u32,
        /// The flag.
        tells: Flag,
        /// The event, which is set to 1 after the flag.
        event: Option<Flag>,
    },
    /// Each transfer gets the next of a ring of slots, whose flag is set to 1 when it is whole. A
    /// flag of 0 gives the slot back; transfers that find none are a fault.
    Queue {
        /// The first slot, in the memory of the tag's node.
        at: Word,
        /// Bytes of a slot, a multiple of eight.
        slot_bytes: u32,
        /// A flag for each slot.
        tells: Flags,
        /// The event, which is set to 1 after each of them.
        event: Option<Flag>,
    },
}

/// Bytes that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The nodes to which they go; where there are several, they are copied on the way.
    pub to: NodeSet,
    /// The receive tag there.
    pub tag: u16,
    /// The place where they go in the buffer of the tag, or in the slot of its queue; a multiple of
    /// eight.
    pub offset: u32,
    /// The first of them in the sender's memory.
    pub from: Word,
    /// The length in bytes; 0 sends an empty transfer.
    pub bytes: u32,
}

/// The place where messages of the control network that name a tag are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// The word in which they are.
    pub word: Word,
    /// The way in which it takes them in.
    pub gathers: Gathers,
    /// The flag that is set to 1.
    pub tells: Flag,
}

/// The way in which a mailbox takes messages in, and when it tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathers {
    /// Sets the bits of each message. When all of these bits are set, the mailbox clears them and
    /// tells; not 0.
    AllOf(u64),
    /// Adds each message, wrapping around, and tells each time.
    Sum,
}

impl Gathers {
    /// Gives the new content of a mailbox that held `before`, when `bits` have come, and whether it
    /// tells.
    pub const fn add(self, before: u64, bits: u64) -> (u64, bool) {
        match self {
            Self::Sum => (before.wrapping_add(bits), true),
            Self::AllOf(mask) => {
                let all = before | bits;
                let is_full = all & mask == mask;
                (if is_full { all & !mask } else { all }, is_full)
            }
        }
    }
}

/// Threads of nodes that such networks join. A tag belongs to the node that has opened it.
pub trait Network: Memory {
    /// Opens receive tag `tag` of this thread's node, which is not open.
    fn open(&self, tag: u16, receives: Receives) -> impl Future<Output = ()> + Send;

    /// Closes it. A later arrival is a fault.
    fn close(&self, tag: u16) -> impl Future<Output = ()> + Send;

    /// Sends bytes by this thread's own core, word by word. Ends when the last has left the node.
    fn push(&self, transfer: Transfer) -> impl Future<Output = ()> + Send;

    /// Lets channel `channel` of the node's DMA engine, which is idle, send bytes. Ends at once;
    /// the flag, and then the event, is set to 1 when the last has left the node.
    fn start(
        &self,
        channel: u16,
        transfer: Transfer,
        tells: (Flag, Option<Flag>),
    ) -> impl Future<Output = ()> + Send;

    /// Gathers the messages of the control network that name `tag` of this thread's node, those
    /// included that have come already.
    fn listen(&self, tag: u16, mailbox: Mailbox) -> impl Future<Output = ()> + Send;

    /// Sends a message to tag `tag` of each of `nodes` over the control network. Ends when they
    /// have left the node.
    fn signal(&self, nodes: NodeSet, tag: u16, bits: u64) -> impl Future<Output = ()> + Send;
}
