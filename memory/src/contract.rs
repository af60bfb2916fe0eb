//! The operations. The machine decides the cost of each; its meaning is defined here.
//!
//! Order: a thread's own operations appear to it in program order. Others may see a store later,
//! and stores to different nodes in any order, until a [`Memory::fence`]. `set` of a flag is seen
//! only after the thread's earlier stores to the coherent memory of its own node and to the node of
//! the flag, and a `wait` or `wait_all` that has ended is before everything that follows it in the
//! thread (release and acquire). Atomic operations are both.
//!
//! A thread has one operation under way: it awaits each before it begins the next, and awaits
//! nothing else. On simulated memory it is a fault of the thread if two are polled together, as by
//! `join!` or `select!`, if one is begun and dropped, or if the program awaits another future that
//! is not ready at once, such as a channel or a timer of an async runtime.

use std::future::Future;

use crate::{Flag, Flags, Place, Register, Route, Word};

/// The condition that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// The flag holds this value.
    Is(u8),
    /// The flag holds any other value than this.
    IsNot(u8),
}

impl Until {
    /// Returns whether `value` ends the wait.
    #[inline]
    pub const fn holds(self, value: u8) -> bool {
        match self {
            Until::Is(wanted) => value == wanted,
            Until::IsNot(old) => value != old,
        }
    }
}

/// One thread's view of memory. Cheap to clone a reference to; one value per thread.
pub trait Memory: Send + Sync {
    /// The node this thread runs on.
    fn node(&self) -> u32;

    /// The address by which this thread reaches the flag at `place`.
    fn flag(&self, place: Place, route: Route) -> Flag;

    /// The address by which this thread reaches the word at `place` (a multiple of 8).
    fn word(&self, place: Place, route: Route) -> Word;

    /// Reads a flag once.
    fn read(&self, flag: Flag) -> impl Future<Output = u8> + Send;

    /// Writes a flag (its value below 128) and ends the waits that the value satisfies.
    fn set(&self, flag: Flag, value: u8) -> impl Future<Output = ()> + Send;

    /// `while !until(*flag) {}`: returns the value that ended the wait. The report of a deadlock is
    /// told from where it was called.
    #[track_caller]
    fn wait(&self, flag: Flag, until: Until) -> impl Future<Output = u8> + Send;

    /// `for f in flags { while !until(*f) {} }`, whose loads an out-of-order core overlaps.
    #[track_caller]
    fn wait_all(&self, flags: Flags, until: Until) -> impl Future<Output = ()> + Send;

    /// Loads a word. A checker of the program is told from where it was called.
    #[track_caller]
    fn load(&self, word: Word) -> impl Future<Output = u64> + Send;

    /// Stores a word. A checker of the program is told from where it was called.
    #[track_caller]
    fn store(&self, word: Word, value: u64) -> impl Future<Output = ()> + Send;

    /// Ends when all earlier stores of this thread have left its core: to coherent memory they
    /// are performed, to remote memory they are posted, without an acknowledgement.
    fn fence(&self) -> impl Future<Output = ()> + Send;
}

/// Memory that may be reached through caches which nothing keeps coherent between nodes
/// ([`Route::Cached`]). Within a node all threads see the same copies; what another node stores
/// is seen when the copy here has been dropped and the other's has been written back.
///
/// A word that a thread reaches by two routes is two words to its node until the copy is flushed: a
/// store by the one is not seen by a load by the other.
///
/// To hand data over: the writer's node writes back; it then loads from each home that it may have
/// written to, by [`Route::Global`], which ends when what was written before has been performed
/// there (a load does not overtake a posted store on the same way); it notifies; the reader's node
/// drops its copies before it reads.
pub trait Cacheable: Memory {
    /// Drops the copies that the caches of this node have of the line of `word`, and writes it back
    /// first if one was newer than memory (CLFLUSH). Ends when the write-back has been posted.
    fn flush(&self, word: Word) -> impl Future<Output = ()> + Send;

    /// Writes back every line of which a cache of this node has a newer copy than memory, and keeps
    /// the copies. The operating system does it, for all caches of the node. Ends when all has been
    /// posted.
    fn write_back(&self) -> impl Future<Output = ()> + Send;

    /// The same, and drops all copies (WBINVD; Fröning et al., Sec. VII).
    fn write_back_invalidate(&self) -> impl Future<Output = ()> + Send;
}

/// Memory with atomic operations: coherent memory only, for there is no atomic transaction over
/// the engine (Fröning et al., Sec. IV).
pub trait Atomic: Memory {
    /// Adds `amount` (wrapping) and returns the value before.
    fn fetch_add(&self, word: Word, amount: u64) -> impl Future<Output = u64> + Send;

    /// Writes `value` and returns the value before.
    fn swap(&self, word: Word, value: u64) -> impl Future<Output = u64> + Send;

    /// Writes `new` if the word holds `expected`; returns the value before.
    fn compare_exchange(
        &self,
        word: Word,
        expected: u64,
        new: u64,
    ) -> impl Future<Output = u64> + Send;
}

/// Memory on which the operating system lets threads sleep (Linux `futex(2)`).
pub trait Futex: Atomic {
    /// Sleeps if the word holds `expected`, until woken; returns at once if it does not. May
    /// return without reason: callers check their condition again.
    #[track_caller]
    fn futex_wait(&self, word: Word, expected: u64) -> impl Future<Output = ()> + Send;

    /// Wakes at most `count` sleepers; returns how many.
    fn futex_wake(&self, word: Word, count: u32) -> impl Future<Output = u32> + Send;
}

/// Registers of one bit, a few in each node, of which reading one sets it: the only
/// read-modify-write of machines whose memory has none, such as the Intel SCC. Taking one is an
/// acquire, clearing it a release.
pub trait TestAndSet: Memory {
    /// Returns the number of registers of each node.
    fn registers(&self) -> u32;

    /// Reads `register`, which sets it; whether it was clear before, and is the caller's now.
    fn test_and_set(&self, register: Register) -> impl Future<Output = bool> + Send;

    /// `while !test_and_set(register) {}`
    #[track_caller]
    fn take(&self, register: Register) -> impl Future<Output = ()> + Send;

    /// Clears `register`. The thread's earlier accesses are visible to the next thread that takes
    /// it, as if a flag had been set.
    fn clear(&self, register: Register) -> impl Future<Output = ()> + Send;
}

/// A thread of a node, as [`Spawn::spawn`] names it: its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(pub u32);

/// Machines on which threads start others, which share the cores of their node with them: the
/// operating system gives each core to one of its threads at a time.
pub trait Spawn: Memory + Sized {
    /// Starts a thread on this thread's node that runs `program` with its own view of memory: on
    /// `core`, or on that of the node's cores which has the fewest threads. The new thread sees all
    /// that this one has done before.
    fn spawn<P, F>(&self, core: Option<u32>, program: P) -> impl Future<Output = ThreadId> + Send
    where
        P: FnOnce(Self) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static;

    /// Ends when `thread`, which a thread of this node has started, has ended; what it did is seen
    /// from then on.
    #[track_caller]
    fn join(&self, thread: ThreadId) -> impl Future<Output = ()> + Send;

    /// Lets the other threads of this core run first.
    fn give_way(&self) -> impl Future<Output = ()> + Send;

    /// This thread.
    fn id(&self) -> ThreadId;

    /// Sends `thread` of this node a signal with a value (a POSIX real-time signal, `sigqueue(3)`):
    /// signals queue. The thread that takes it sees all that this one did before. That there is no
    /// such thread is a mistake of the program: a fault of simulated memory, a panic on real
    /// threads.
    fn send_signal(&self, thread: ThreadId, value: u64) -> impl Future<Output = ()> + Send;

    /// Sleeps until there is a signal for this thread, and takes the oldest; returns its value
    /// (`sigwaitinfo(2)`). A thread that a signal has woken has its core at once.
    #[track_caller]
    fn take_signal(&self) -> impl Future<Output = u64> + Send;
}

/// Machines whose operating system ends threads, and sends signals at a time.
pub trait Processes: Spawn {
    /// Ends `thread` of this node, if it has not ended (`kill(2)` with SIGKILL): an access that it
    /// has begun is performed, and nothing after it. A thread that waits for something waits no
    /// longer. It may end after this call, but before one that [joins](Spawn::join) it. That there
    /// is no such thread is a mistake of the program: a fault of simulated memory.
    fn kill(&self, thread: ThreadId) -> impl Future<Output = ()> + Send;

    /// Sends this thread a signal with that value after so many nanoseconds (`timer_settime(2)`).
    fn alarm(&self, nanoseconds: u64, value: u64) -> impl Future<Output = ()> + Send;
}
