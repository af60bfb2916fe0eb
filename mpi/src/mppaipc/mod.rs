//! MPPAIPC, Kalray's library for processes on the MPPA: connectors between nodes over the two
//! networks on chip, each opened by a path name (Ho et al., Sec. I-B, Tables I and II).
//!
//! | Connector | What it does |
//! |---|---|
//! | [`sync`] | barriers by 64-bit messages, from some nodes to some |
//! | [`portal`] | one-sided writes into a buffer, by a core or by a DMA channel |
//! | [`rqueue`] | messages of fixed size from many nodes to one, under credits |
//! | [`channel`] | messages from one node to one, which meet (rendezvous) |
//!
//! Buffers are addresses in a node's memory. Threads of a node share its [`Resources`]: tags,
//! channels and room in memory; each has an [`Ipc`] of its own. The library's own work takes the
//! time that the machine says, one for each primitive ([`Work`](crate::processor::Work)).

pub mod channel;
pub mod path;
pub mod portal;
mod resources;
pub mod rqueue;
pub mod sync;

use std::sync::Arc;

pub use resources::{Hardware, Resources, Room};
use sme_memory::{AnyFlag, Blocks, Flag, Network, Own, Place, Route, Until, Word};

use crate::processor::Processor;
use path::{BadPath, End, Path};

/// A call that the library refuses. The message says what was asked for, the number is that of the
/// C library's `errno`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpcError {
    /// The path names no connector.
    #[error(transparent)]
    BadPath(#[from] BadPath),
    /// The path is that of another connector, or this node is not among its ends.
    #[error("{path} is no {wanted} that node {node} can open")]
    WrongEnd {
        /// The path.
        path: String,
        /// The connector and the end.
        wanted: &'static str,
        /// The node.
        node: u32,
    },
    /// The tag is in use on this node.
    #[error("tag {0} of the {1} network is in use")]
    TagInUse(u16, &'static str),
    /// All receive tags are in use.
    #[error("all {0} receive tags are in use")]
    NoTag(u16),
    /// No DMA channel is free, or no credit is left; later there may be.
    #[error("no {0} is free at the moment")]
    TryAgain(&'static str),
    /// More bytes than the connector carries.
    #[error("{bytes} bytes are more than the {most} that fit")]
    TooLong {
        /// The bytes.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// The node's memory has no room.
    #[error("{what} of {bytes} bytes: {free} bytes of the node's memory are free")]
    NoMemory {
        /// The purpose.
        what: &'static str,
        /// The bytes it needs.
        bytes: u64,
        /// The bytes that are left.
        free: u64,
    },
}

impl IpcError {
    /// The number of the error in POSIX, as Linux has it.
    pub fn errno(&self) -> i32 {
        match self {
            Self::BadPath(_) => 22,
            Self::WrongEnd { .. } => 1,
            Self::TagInUse(..) => 16,
            Self::NoTag(_) => 28,
            Self::TryAgain(_) => 11,
            Self::TooLong { .. } => 90,
            Self::NoMemory { .. } => 12,
        }
    }
}

/// A memory on which the library runs.
pub trait Fabric: Network + Blocks + AnyFlag + Clone {}

impl<M: Network + Blocks + AnyFlag + Clone> Fabric for M {}

/// The library as one thread of a node has it.
#[derive(Clone, Debug)]
pub struct Ipc<M, P> {
    memory: M,
    core: P,
    resources: Arc<Resources>,
    /// The network interface that the thread sends through.
    interface: u16,
    /// The event of what it opens and starts.
    event: Option<Flag>,
}

impl<M: Fabric, P: Processor + Clone> Ipc<M, P> {
    /// Makes the library's state of a thread with `memory`, on `core`, which sends through its
    /// node's interface of this number.
    pub fn new(memory: M, core: P, resources: Arc<Resources>, interface: u16) -> Self {
        Self {
            memory,
            core,
            resources,
            interface,
            event: None,
        }
    }

    /// The same; `event` is set to 1 whenever a read, a message of a queue, a credit or a write of
    /// this thread's has come to its end, for a thread that waits for any of them.
    #[must_use]
    pub fn with_event(self, event: Flag) -> Self {
        let event = Some(event);
        Self { event, ..self }
    }

    /// The node.
    pub fn node(&self) -> u32 {
        self.memory.node()
    }

    /// The thread's view of memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The thread's processor.
    pub fn core(&self) -> &P {
        &self.core
    }

    /// The resources that the node's threads share.
    pub fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// Reserves memory of the node for `what`, whole lines.
    ///
    /// # Errors
    /// [`IpcError::NoMemory`]
    pub fn reserve(&self, what: &'static str, bytes: u64) -> Result<Word, IpcError> {
        let offset = self.resources.reserve(what, bytes)?;
        Ok(self.word(offset))
    }

    /// The same, as an address for copies within the node's memory.
    ///
    /// # Errors
    /// [`IpcError::NoMemory`]
    pub fn reserve_own(&self, what: &'static str, bytes: u64) -> Result<Own, IpcError> {
        Ok(Own(self.resources.reserve(what, bytes)?))
    }

    /// A flag of the node's memory, which is 0.
    ///
    /// # Errors
    /// [`IpcError::NoMemory`]
    pub fn new_flag(&self) -> Result<Flag, IpcError> {
        Ok(self.flag(self.resources.take_flag()?))
    }

    /// The word at an offset in the node's memory, through this core's cache.
    pub fn cached(&self, offset: u64) -> Word {
        let node = self.node();
        self.memory.word(Place { node, offset }, Route::Cached)
    }

    /// The word at an offset in the node's memory.
    pub fn word(&self, offset: u64) -> Word {
        let node = self.node();
        self.memory.word(Place { node, offset }, Route::Nearest)
    }

    fn flag(&self, offset: u64) -> Flag {
        let node = self.node();
        self.memory.flag(Place { node, offset }, Route::Nearest)
    }

    /// Waits for a flag and clears it.
    async fn takes(&self, flag: Flag) {
        self.memory.wait(flag, Until::Is(1)).await;
        self.memory.set(flag, 0).await;
    }

    fn parse(&self, path: &str) -> Result<Path, IpcError> {
        Ok(Path::parse(path, self.resources.hardware())?)
    }

    fn wrong(&self, path: &str, wanted: &'static str) -> IpcError {
        IpcError::WrongEnd {
            path: path.to_owned(),
            wanted,
            node: self.node(),
        }
    }

    /// Returns whether `end` is this thread's node.
    fn is_here(&self, end: &End) -> bool {
        end.nodes.0 & 1 << self.node() != 0
    }
}
