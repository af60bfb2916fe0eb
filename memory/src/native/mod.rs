//! The contract on real threads: every operation completes in place, so that a program over
//! [`Memory`] compiles to the loop one would have written by hand. Used by the native barriers and
//! by shared-memory programs that run on this computer. Nodes are regions of one arena:
//! the host is one coherent machine, a node is only a number. Addresses in bytes.
//!
//! A waiter spins for a bounded time ([`Patience`]) and then sleeps. The flag's own eighth bit says
//! that a thread sleeps on it, so that a writer learns it from the value that its exchange returns,
//! and pays nothing for sleepers that are not there:
//!
//! * waiter: sees a value `v` that does not end the wait; puts the bit beside it by a
//!   compare-and-exchange; under the lock of the address's bucket, sleeps if the flag is still
//!   `v` with the bit; looks again when woken.
//! * writer: exchanges the value (which clears the bit); if the old value had the bit, locks the
//!   bucket and wakes who sleeps on the flag.
//!
//! The bit is set on the current value or not at all, and the writer's exchange returns it if it
//! was set before; what is between the waiter's setting the bit and its sleeping is settled by the
//! bucket's lock. `tests/native_loom.rs` checks this exhaustively.

mod arena;
#[cfg(not(loom))]
mod conformance;
mod messages;
mod network;
mod parking;
mod patience;
mod registers;
mod sync;
mod threads;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use crate::{
    Atomic, Cacheable, Capabilities, Capability, Flag, Flags, Futex, Memory, Place, Route, Until,
    Word,
};
use arena::Arena;
pub use arena::LINE;
#[cfg(not(loom))]
pub use conformance::OnThreads;
use messages::Pending;
use network::Tags;
use parking::Parking;
pub use patience::Patience;
use patience::{Experience, Turns};
use registers::Registers;
use threads::Started;

/// The bit of a flag's byte that says that a thread sleeps on it.
const SLEEPER: u8 = 0x80;

/// The parts of the flag protocol that a checker must be able to break. [`Sound`] is the only
/// one for use; the loom tests define others and must find each of them wrong. All are constants,
/// so the choice costs nothing.
pub trait Protocol: Send + Sync + 'static {
    /// The order of the exchange in [`Memory::set`].
    const SET: Ordering;
    /// The order of the loads in [`Memory::wait`] and [`Memory::wait_all`].
    const WAIT: Ordering;
    /// Whether a writer wakes the sleepers it finds.
    const WAKE: bool;
}

/// The protocol as it is meant.
#[derive(Clone, Copy, Debug)]
pub struct Sound;

impl Protocol for Sound {
    // Release: what the writer did before is before what follows the wait that sees the value. Not
    // acquire: the writer learns from the old value only whether a thread sleeps, and touches
    // nothing the sleeper wrote except under the bucket's lock.
    const SET: Ordering = Ordering::Release;
    // Acquire: the other half. A waiter that sees the value through another waiter's bit is
    // served too: setting the bit is a read-modify-write and continues the release sequence.
    const WAIT: Ordering = Ordering::Acquire;
    const WAKE: bool = true;
}

/// The size of the nodes' memory. Flags and words are kept apart: a flag and a word of the same
/// [`Place`] are different cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of nodes.
    pub nodes: u32,
    /// Bytes of flags in each node (rounded up to whole lines).
    pub flag_bytes: u64,
    /// Bytes of words in each node (rounded up to whole lines).
    pub word_bytes: u64,
}

/// The memory that a group of real threads shares.
///
/// ```
/// use sme_memory::native::{Native, Patience, Size, run};
/// use sme_memory::{Memory, Place, Route, Until};
///
/// let size = Size { nodes: 1, flag_bytes: 1, word_bytes: 8 };
/// let memory = Native::new(size, Patience::for_threads(2));
/// let place = Place { node: 0, offset: 0 };
/// let (writer, reader) = (memory.thread(0), memory.thread(0));
/// std::thread::scope(|scope| {
///     scope.spawn(|| run(async {
///         writer.store(writer.word(place, Route::Nearest), 42).await;
///         writer.set(writer.flag(place, Route::Nearest), 1).await;
///     }));
///     scope.spawn(|| run(async {
///         reader.wait(reader.flag(place, Route::Nearest), Until::Is(1)).await;
///         assert_eq!(reader.load(reader.word(place, Route::Nearest)).await, 42);
///     }));
/// });
/// ```
pub struct Native<P: Protocol = Sound> {
    shared: Arc<Shared<P>>,
}

struct Shared<P> {
    arena: Arena,
    registers: Registers,
    started: Started,
    pending: Pending,
    tags: Tags,
    parking: Parking,
    patience: Patience,
    protocol: std::marker::PhantomData<P>,
}

impl Native {
    /// Its capabilities: all. (Caching has no effect where the host is coherent.)
    pub const CAPABILITIES: Capabilities = Capabilities::of(Capability::ALL);

    /// Memory of the given size, all zero, in which waiters are patient as told.
    ///
    /// # Panics
    ///
    /// If the size is more than the host can address.
    pub fn new(size: Size, patience: Patience) -> Self {
        Self::with_protocol(size, patience)
    }
}

impl<P: Protocol> Native<P> {
    /// Does the same as [`Native::new`], for a checker that breaks the [`Protocol`].
    ///
    /// # Panics
    ///
    /// If the size is more than the host can address.
    pub fn with_protocol(size: Size, patience: Patience) -> Self {
        Self {
            shared: Arc::new(Shared {
                arena: Arena::new(size.nodes, size.flag_bytes, size.word_bytes),
                registers: Registers::new(size.nodes),
                started: Started::new(),
                pending: Pending::new(size.nodes),
                tags: Tags::default(),
                parking: Parking::new(),
                patience,
                protocol: std::marker::PhantomData,
            }),
        }
    }

    /// The view of a thread on `node`.
    pub fn thread(&self, node: u32) -> Thread<P> {
        Thread {
            number: self.shared.started.add(),
            shared: Arc::clone(&self.shared),
            node,
            experience: Experience::default(),
        }
    }
}

/// One thread's view of a [`Native`] memory.
///
/// An address that [`Memory::flag`] or [`Memory::word`] did not return, or a [`Place`] outside the
/// [`Size`], is a mistake of the program and panics.
///
/// Order, beyond what the contract asks: loads of words and single reads of flags acquire, stores
/// of words release, atomic operations do both. That is the weakest that keeps a thread's stores
/// to a node in order for all who look, as the processors of the simulated nodes do; a lock over
/// words, or a barrier that releases its sleepers through a word, relies on it.
pub struct Thread<P: Protocol = Sound> {
    shared: Arc<Shared<P>>,
    node: u32,
    number: u32,
    experience: Experience,
}

impl<P: Protocol> Clone for Thread<P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            node: self.node,
            number: self.number,
            experience: Experience::default(),
        }
    }
}

impl<P: Protocol> Thread<P> {
    #[inline]
    fn wait_in_place(&self, flag: Flag, until: Until) -> u8 {
        let cell = self.shared.arena.flag(flag);
        let mut turns = Turns::begin(self.shared.patience, &self.experience);
        let mut seen = cell.load(P::WAIT);
        loop {
            let value = seen & !SLEEPER;
            if until.holds(value) {
                turns.end();
                return value;
            }
            seen = if turns.pass() {
                cell.load(P::WAIT)
            } else {
                self.sleep_on(flag, seen)
            };
        }
    }

    /// Sleeps until `flag` has been written after it held `seen`; returns what it holds then. May
    /// return without reason.
    #[cold]
    fn sleep_on(&self, flag: Flag, seen: u8) -> u8 {
        let cell = self.shared.arena.flag(flag);
        let asleep = seen | SLEEPER;
        if seen != asleep {
            // Relaxed where it succeeds: the bit carries no data, and being a read-modify-write
            // it does not end the writer's release sequence. Where it fails, it is the load of
            // the value that may end the wait.
            if let Err(now) = cell.compare_exchange(seen, asleep, Ordering::Relaxed, P::WAIT) {
                return now;
            }
        }
        // Relaxed: if the writer has had the bucket's lock before us, its exchange happened before
        // this load, which then cannot return the older value.
        self.shared
            .parking
            .sleep_if(flag.0, || cell.load(Ordering::Relaxed) == asleep);
        cell.load(P::WAIT)
    }
}

impl<P: Protocol> Memory for Thread<P> {
    fn node(&self) -> u32 {
        self.node
    }

    /// All routes lead to the same cell.
    #[inline]
    fn flag(&self, place: Place, _route: Route) -> Flag {
        self.shared.arena.flag_at(place)
    }

    /// All routes lead to the same cell.
    #[inline]
    fn word(&self, place: Place, _route: Route) -> Word {
        self.shared.arena.word_at(place)
    }

    #[inline]
    async fn read(&self, flag: Flag) -> u8 {
        self.shared.arena.flag(flag).load(Ordering::Acquire) & !SLEEPER
    }

    #[inline]
    async fn set(&self, flag: Flag, value: u8) {
        debug_assert!(value < SLEEPER, "flags have seven bits, not {value:#x}");
        let before = self.shared.arena.flag(flag).swap(value & !SLEEPER, P::SET);
        if before & SLEEPER != 0 && P::WAKE {
            self.shared.parking.wake(flag.0, u32::MAX);
        }
    }

    #[inline]
    async fn wait(&self, flag: Flag, until: Until) -> u8 {
        self.wait_in_place(flag, until)
    }

    #[inline]
    async fn wait_all(&self, flags: Flags, until: Until) {
        for index in 0..flags.count {
            self.wait_in_place(flags.at(index), until);
        }
    }

    #[inline]
    async fn load(&self, word: Word) -> u64 {
        self.shared.arena.word(word).load(Ordering::Acquire)
    }

    #[inline]
    async fn store(&self, word: Word, value: u64) {
        self.shared.arena.word(word).store(value, Ordering::Release);
    }

    #[inline]
    async fn fence(&self) {
        // Sequentially consistent: nothing weaker makes earlier stores visible before later loads.
        sync::fence(Ordering::SeqCst);
    }
}

/// The host is coherent: there is nothing to drop and nothing to write back.
impl<P: Protocol> Cacheable for Thread<P> {
    #[inline]
    async fn flush(&self, _: Word) {}

    #[inline]
    async fn write_back(&self) {}

    #[inline]
    async fn write_back_invalidate(&self) {}
}

impl<P: Protocol> Atomic for Thread<P> {
    #[inline]
    async fn fetch_add(&self, word: Word, amount: u64) -> u64 {
        // Acquire and release here and below: one operation may take a lock, another gives it back.
        let cell = self.shared.arena.word(word);
        cell.fetch_add(amount, Ordering::AcqRel)
    }

    #[inline]
    async fn swap(&self, word: Word, value: u64) -> u64 {
        self.shared.arena.word(word).swap(value, Ordering::AcqRel)
    }

    #[inline]
    async fn compare_exchange(&self, word: Word, expected: u64, new: u64) -> u64 {
        let cell = self.shared.arena.word(word);
        match cell.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(before) | Err(before) => before,
        }
    }
}

impl<P: Protocol> Futex for Thread<P> {
    async fn futex_wait(&self, word: Word, expected: u64) {
        let cell = self.shared.arena.word(word);
        // Relaxed, for the same reason as in `sleep_on`; the caller checks again.
        self.shared
            .parking
            .sleep_if(FUTEX | word.0, || cell.load(Ordering::Relaxed) == expected);
    }

    async fn futex_wake(&self, word: Word, count: u32) -> u32 {
        self.shared.parking.wake(FUTEX | word.0, count)
    }
}

/// Marks a sleeper's address as a word's: flags and words are numbered separately.
const FUTEX: u64 = 1 << 63;

/// Runs a program over [`Thread`] to its end on the calling thread.
///
/// # Panics
///
/// If the program awaits anything that does not complete in place. No operation of this memory
/// does; a future from elsewhere (a timer, a channel) has nothing here to wake it.
#[inline]
pub fn run<F: Future>(program: F) -> F::Output {
    match pin!(program).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!(
            "a native program has awaited something other than an operation of the native memory: \
             nothing would ever wake it"
        ),
    }
}
