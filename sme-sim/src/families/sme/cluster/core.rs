//! What a core is doing.

use crate::parts::contract::Operation;

/// Why a core's thread is not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It is: its next event is on the agenda.
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

/// One core with one thread.
#[derive(Debug)]
pub struct Core {
    /// What its thread asked for; of a [`Operation::WaitAll`], what is still to be seen.
    pub operation: Operation,
    /// What the thread is told when it resumes.
    pub answer: u64,
    /// How many uncached loads of this operation have been answered.
    pub looks: u32,
    /// Socket it stands on.
    pub socket: u8,
    /// Why its thread is not running.
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
}
