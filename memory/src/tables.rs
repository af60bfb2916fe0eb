//! Look-up tables with which nodes map each other's memory into their own, as on the Intel SCC. A
//! node's own memory consists of *segments*; each entry of its table says where the addresses of
//! one segment lead. Machines whose nodes reach all memory at fixed addresses do not have them.

use std::future::Future;

use crate::{Memory, Own, Word};

/// The segments of the memory that a node has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Bytes of each.
    pub bytes: u64,
    /// Segments of a node, to which the first entries of its table lead at the begin.
    pub count: u32,
    /// Entries behind them that lead nowhere at the begin.
    pub unused: u32,
}

/// Tables that programs change. A copy that a cache has of a segment stays there when its entry is
/// changed: a node writes its copies back before it gives a segment away, and drops them.
pub trait Tables: Memory {
    /// Lets an entry of the own node's table lead where entry `its` of the table of `node` leads.
    fn map(&self, entry: u32, node: u32, its: u32) -> impl Future<Output = ()> + Send;

    /// Lets an entry of the own node's table lead nowhere.
    fn unmap(&self, entry: u32) -> impl Future<Output = ()> + Send;

    /// The word at an address in the own node's memory, segment after segment from 0, through its
    /// caches.
    fn own_word(&self, at: Own) -> Word;
}
