//! The state of a core.

use std::ops::{Index, IndexMut};

use sme_memory::Until;

use crate::parts::contract::Operation;
use crate::parts::line::Bytes;

/// The reason why a core's thread is not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The thread runs: its next event is on the agenda.
    Nothing,
    /// For a line to be fetched, or for a cached copy on which it spins to change.
    Cache,
    /// For its socket's slot, or for the answer to its uncached load.
    Uncached,
    /// For its store buffer to have a place for this operation's store.
    StoreBuffer,
    /// For its store buffer to be empty.
    Drained,
    /// For what its node has posted to leave it.
    Posted,
    /// For a line of its own to update a word in.
    Update,
    /// Asleep, until another thread wakes it.
    Asleep,
    /// For ever: its access faulted.
    Fault,
    /// For nothing more: its program has ended.
    Finished,
}

/// The reason for which a core asks for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// To perform its thread's load.
    Load,
    /// To perform its oldest buffered store.
    Store,
    /// To flush it.
    Flush,
}

/// A core wants the line that holds an address.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The core.
    pub core: u16,
    /// The reason.
    pub wants: Wants,
    /// The address, as the program gave it.
    pub address: u64,
}

/// One core with one thread.
#[derive(Debug)]
pub struct Core {
    /// The operation that its thread asked for; of a [`Operation::WaitAll`], the rest still to be
    /// seen.
    pub operation: Operation,
    /// The answer to the thread when it resumes.
    pub answer: u64,
    /// The number of uncached loads of this operation that have been answered.
    pub looks: u32,
    /// Socket it stands on.
    pub socket: u8,
    /// The reason why its thread is not running.
    pub waiting: Waiting,
    /// The oldest store waits for its line.
    pub store_under_way: bool,
    /// Its accesses count: the warm-up is over.
    pub counted: bool,
}

impl Core {
    /// An idle core on `socket`.
    pub fn new(socket: u8) -> Self {
        Self {
            operation: Operation::Fence,
            answer: 0,
            looks: 0,
            socket,
            waiting: Waiting::Nothing,
            store_under_way: false,
            counted: false,
        }
    }

    /// The address that the operation is about, for loads and waits.
    pub fn awaited(&self) -> Option<(u64, Bytes, Option<Until>)> {
        match self.operation {
            Operation::Read(flag) => Some((flag.0, Bytes::byte(flag.0), None)),
            Operation::Wait(flag, until, _) => Some((flag.0, Bytes::byte(flag.0), Some(until))),
            Operation::Load(word, _) => Some((word.0, Bytes::word(word.0), None)),
            Operation::WaitAll(flags, until, _) if flags.count > 0 => {
                let flag = flags.first.0;
                Some((flag, Bytes::byte(flag), Some(until)))
            }
            Operation::FutexWait(word, ..) => Some((word.0, Bytes::word(word.0), None)),
            _ => None,
        }
    }
}

/// The cores of a node, by number.
#[derive(Debug)]
pub struct Cores {
    all: Vec<Core>,
}

impl Cores {
    /// Idle cores, one on each of `sockets`.
    pub fn new(sockets: &[u8]) -> Self {
        Self {
            all: sockets.iter().map(|&socket| Core::new(socket)).collect(),
        }
    }

    /// The number of cores.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Core> {
        self.all.iter()
    }

    /// One core more.
    pub fn push(&mut self, core: Core) {
        self.all.push(core);
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Core>()
    }
}

impl Index<u16> for Cores {
    type Output = Core;

    #[inline]
    fn index(&self, core: u16) -> &Core {
        &self.all[usize::from(core)]
    }
}

impl IndexMut<u16> for Cores {
    #[inline]
    fn index_mut(&mut self, core: u16) -> &mut Core {
        &mut self.all[usize::from(core)]
    }
}
