//! Why a barrier cannot be built from its description. Each message says what to change.

use thiserror::Error;

/// A description from which no barrier can be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No node takes part.
    #[error("a barrier needs a node: give at least 1")]
    NoNodes,
    /// A pool without memory.
    #[error("a pool needs a node with memory: give at least 1")]
    NoHomes,
    /// No thread takes part, or a node takes part without one.
    #[error("a barrier needs a thread in each of its nodes: give at least 1 a node")]
    NoThreads,
    /// More threads than can be numbered.
    #[error("a barrier numbers its threads with 32 bits: give fewer than 4294967296 in all")]
    TooManyThreads,
    /// A tree in which a node has at most one child has no use for masters.
    #[error("a tree's fan-in is at least 2, not {fan_in}: give 2 or more (the paper has 8)")]
    FanIn {
        /// The fan-in that was given.
        fan_in: u32,
    },
    /// The nodes do not fit the mesh.
    #[error(
        "{nodes} nodes do not stand on {positions} positions: give fewer nodes or a larger mesh"
    )]
    TooManyNodes {
        /// Nodes that take part.
        nodes: u32,
        /// Positions of the mesh.
        positions: u64,
    },
    /// A table of ranks in which a node is missing, twice, or does not exist.
    #[error(
        "node {node} at rank {rank} stands there twice or is not below {nodes}: \
         give each node one rank"
    )]
    NotAPermutation {
        /// The first rank at which the table is wrong.
        rank: u32,
        /// The node it names.
        node: u32,
        /// Nodes that take part.
        nodes: u32,
    },
    /// A cache line of no use.
    #[error("a cache line of {line_bytes} bytes: give a power of two, at least 8")]
    LineBytes {
        /// The size that was given, in bytes.
        line_bytes: u32,
    },
    /// The data would begin inside a cache line.
    #[error("the barrier's data begins at byte {base}: give a multiple of the line, {line_bytes}")]
    Base {
        /// The offset that was given, in bytes.
        base: u64,
        /// The size of a cache line, in bytes.
        line_bytes: u32,
    },
    /// The data would end beyond the last address.
    #[error(
        "the barrier's data does not fit into 2^64 bytes: give a lower base, fewer threads, \
         or packed flags"
    )]
    TooLarge,
}
