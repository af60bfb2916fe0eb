//! The messages between nodes: inputs of engines, and the extra words of long reads.
//!
//! A packet holds one word of data. The extra words of the answer to a long read
//! ([`packet`](crate::families::sme::engine::packet)) are sent by the node that answers straight to
//! the node that reads, when the answer sets out. They are there a lookahead later, before the
//! packet, which has two host links and a network link to pass; the line is used when the packet
//! has come.

use serde::{Deserialize, Serialize};

use crate::families::sme::engine::Input;

/// A message from node to node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// An input that the engine samples at the edge at which it arrives.
    Engine(Input),
    /// Extra words, which the simulator carries apart.
    Words(Words),
}

// All messages that are under way are kept by the node to which they go.
const _: () = assert!(size_of::<Message>() == size_of::<Input>());

impl From<Input> for Message {
    #[inline]
    fn from(input: Input) -> Self {
        Self::Engine(input)
    }
}

/// The extra words of an answer to one read of a line fill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// The line, by the global addresses of its bytes.
    pub line: u64,
    /// Place of the first of them in the block of 64 bytes around the line, in words.
    pub first: u8,
    /// Their data.
    pub words: Box<[u64]>,
}
