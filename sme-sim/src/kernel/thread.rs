//! Simulated programs: futures over the memory contract, and the operations they ask for.
//!
//! A program is polled only when what it asked for has been done. Question and answer pass
//! through a mailbox of the host thread that polls, so a suspended program holds nothing but its
//! own state, and needs neither locks nor wakers.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sme_memory::{Atomic, Cacheable, Flag, Flags, Futex, Memory, Place, Route, Until, Word};

use crate::families::sme::address::{AddressMap, CACHEABLE};
use crate::parts::cache::ahead::Ahead;
use crate::time::Time;

/// A place in a program.
pub type Site = &'static Location<'static>;

/// What a program asks the machine to do for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Memory::read`]
    Read(Flag),
    /// [`Memory::set`]
    Set(Flag, u8),
    /// [`Memory::wait`]
    Wait(Flag, Until),
    /// [`Memory::wait_all`]
    WaitAll(Flags, Until),
    /// [`Memory::load`]
    Load(Word, Site),
    /// [`Memory::store`]
    Store(Word, u64, Site),
    /// [`Memory::fence`]
    Fence,
    /// [`Atomic::fetch_add`]
    FetchAdd(Word, u64),
    /// [`Atomic::swap`]
    Swap(Word, u64),
    /// [`Atomic::compare_exchange`]: expected, new.
    CompareExchange(Word, u64, u64),
    /// [`Futex::futex_wait`]
    FutexWait(Word, u64),
    /// [`Futex::futex_wake`]
    FutexWake(Word, u32),
    /// [`Cacheable::flush`]
    Flush(Word),
    /// [`Cacheable::write_back`], or [`Cacheable::write_back_invalidate`].
    WriteBack {
        /// Whether copies are dropped.
        invalidate: bool,
    },
    /// Computes for a while.
    Delay(Time),
    /// Tells the observer something; takes no time.
    Note(Note),
}

/// What a program tells about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Enters the barrier of this episode.
    Arrive(u32),
    /// Has left it.
    Leave(u32),
}

impl Note {
    /// Whether what the thread does from here on counts: it has left the warm-up, episode 0.
    pub fn counts(self) -> bool {
        match self {
            Note::Arrive(episode) => episode > 0,
            Note::Leave(_) => true,
        }
    }
}

struct Mailbox {
    question: Cell<Option<Operation>>,
    answer: Cell<u64>,
}

/// The answer to `operation`, if the program can have it in place.
#[inline]
fn in_place(operation: &Operation) -> Option<u64> {
    match *operation {
        Operation::Load(word, site) if word.0 & CACHEABLE != 0 => {
            AHEAD.with_borrow_mut(|ahead| ahead.as_mut()?.load(word.0, site))
        }
        Operation::Store(word, value, site) if word.0 & CACHEABLE != 0 => {
            AHEAD.with_borrow_mut(|ahead| {
                let stored = ahead.as_mut()?.store(word.0, value, site);
                stored.then_some(0)
            })
        }
        Operation::Delay(span) => {
            AHEAD.with_borrow_mut(|ahead| ahead.as_mut()?.delay(span).then_some(0))
        }
        _ => None,
    }
}

/// Until [`take_back`], programs polled by this thread of the host use `ahead` in place.
pub fn lend(ahead: Box<Ahead>) {
    AHEAD.set(Some(ahead));
}

/// What was [lent](lend).
pub fn take_back() -> Option<Box<Ahead>> {
    AHEAD.take()
}

thread_local! {
    static MAILBOX: Mailbox = const {
        Mailbox { question: Cell::new(None), answer: Cell::new(0) }
    };
    /// The caches of the core whose program is being polled. Not in the mailbox: that would give it
    /// a destructor, which every question would pay for.
    static AHEAD: RefCell<Option<Box<Ahead>>> = const { RefCell::new(None) };
}

/// One operation of a program: asks when first polled (or is performed there and then, in its core's
/// private caches), has its answer when polled again. `Q` makes
/// the question and is no larger than what this one operation is about: a waiting program keeps it.
struct Asked<Q, T> {
    question: Option<Q>,
    answer: PhantomData<fn() -> T>,
}

impl<Q: FnOnce() -> Operation + Unpin, T: Answer> Future for Asked<Q, T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        MAILBOX.with(|mailbox| match self.question.take() {
            Some(question) => {
                let operation = question();
                if let Some(answer) = in_place(&operation) {
                    return Poll::Ready(T::from_mailbox(answer));
                }
                mailbox.question.set(Some(operation));
                Poll::Pending
            }
            None => Poll::Ready(T::from_mailbox(mailbox.answer.get())),
        })
    }
}

/// What an operation can answer.
trait Answer {
    fn from_mailbox(answer: u64) -> Self;
}

impl Answer for () {
    fn from_mailbox(_: u64) {}
}

impl Answer for u8 {
    fn from_mailbox(answer: u64) -> u8 {
        answer as u8
    }
}

impl Answer for u32 {
    fn from_mailbox(answer: u64) -> u32 {
        answer as u32
    }
}

impl Answer for u64 {
    fn from_mailbox(answer: u64) -> u64 {
        answer
    }
}

/// Not an `async fn`: that would keep the operation twice in every waiting program.
#[inline]
fn ask<Q: FnOnce() -> Operation, T>(question: Q) -> Asked<Q, T> {
    Asked {
        question: Some(question),
        answer: PhantomData,
    }
}

/// A simulated thread's view of memory.
#[derive(Clone, Debug)]
pub struct ThreadMemory {
    map: Arc<AddressMap>,
    node: u32,
    thread: u32,
}

impl ThreadMemory {
    /// The view of the thread numbered `thread` on `node`.
    pub fn new(map: Arc<AddressMap>, node: u32, thread: u32) -> Self {
        Self { map, node, thread }
    }

    /// The thread's number in its node.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Computes for `span`.
    pub fn delay(&self, span: Time) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Delay(span))
    }

    /// Tells the observer `note`; takes no simulated time.
    pub fn note(&self, note: Note) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Note(note))
    }
}

#[allow(
    clippy::manual_async_fn,
    reason = "an `async fn` keeps its arguments twice, and there are millions of them"
)]
impl Memory for ThreadMemory {
    fn node(&self) -> u32 {
        self.node
    }

    #[inline]
    fn flag(&self, place: Place, route: Route) -> Flag {
        Flag(self.map.address(self.node, place, route))
    }

    #[inline]
    fn word(&self, place: Place, route: Route) -> Word {
        Word(self.map.address(self.node, place, route))
    }

    fn read(&self, flag: Flag) -> impl Future<Output = u8> + Send {
        ask(move || Operation::Read(flag))
    }

    fn set(&self, flag: Flag, value: u8) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Set(flag, value))
    }

    fn wait(&self, flag: Flag, until: Until) -> impl Future<Output = u8> + Send {
        ask(move || Operation::Wait(flag, until))
    }

    fn wait_all(&self, flags: Flags, until: Until) -> impl Future<Output = ()> + Send {
        ask(move || Operation::WaitAll(flags, until))
    }

    #[inline]
    fn load(&self, word: Word) -> impl Future<Output = u64> + Send {
        let site = Location::caller();
        ask(move || Operation::Load(word, site))
    }

    #[inline]
    fn store(&self, word: Word, value: u64) -> impl Future<Output = ()> + Send {
        let site = Location::caller();
        ask(move || Operation::Store(word, value, site))
    }

    fn fence(&self) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Fence)
    }
}

impl Cacheable for ThreadMemory {
    fn flush(&self, word: Word) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Flush(word))
    }

    fn write_back(&self) -> impl Future<Output = ()> + Send {
        ask(move || Operation::WriteBack { invalidate: false })
    }

    fn write_back_invalidate(&self) -> impl Future<Output = ()> + Send {
        ask(move || Operation::WriteBack { invalidate: true })
    }
}

impl Atomic for ThreadMemory {
    fn fetch_add(&self, word: Word, amount: u64) -> impl Future<Output = u64> + Send {
        ask(move || Operation::FetchAdd(word, amount))
    }

    fn swap(&self, word: Word, value: u64) -> impl Future<Output = u64> + Send {
        ask(move || Operation::Swap(word, value))
    }

    fn compare_exchange(
        &self,
        word: Word,
        expected: u64,
        new: u64,
    ) -> impl Future<Output = u64> + Send {
        ask(move || Operation::CompareExchange(word, expected, new))
    }
}

impl Futex for ThreadMemory {
    fn futex_wait(&self, word: Word, expected: u64) -> impl Future<Output = ()> + Send {
        ask(move || Operation::FutexWait(word, expected))
    }

    fn futex_wake(&self, word: Word, count: u32) -> impl Future<Output = u32> + Send {
        ask(move || Operation::FutexWake(word, count))
    }
}

/// What a thread runs. Its type is erased, so that a machine is compiled once and not once for each
/// program; a program is polled through one pointer and compiled as a whole.
pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The programs of one node, numbered from 0.
pub struct Threads {
    programs: Vec<Option<Program>>,
    unfinished: u32,
    /// What all programs take together; a program is given back when it ends.
    program_bytes: usize,
}

impl Threads {
    /// One thread for each program.
    pub fn new(programs: impl IntoIterator<Item = Program>) -> Self {
        let programs: Vec<_> = programs.into_iter().map(Some).collect();
        let unfinished = programs.len() as u32;
        let bytes = programs
            .iter()
            .flatten()
            .map(|program| size_of_val(&**program));
        Self {
            program_bytes: bytes.sum(),
            programs,
            unfinished,
        }
    }

    /// Hands `answer` to thread `number`; returns what it asks for next, `None` when it has
    /// finished. A program that suspends itself in any other way than by a memory operation can
    /// never be woken: that is a mistake in the program, and it counts as finished.
    #[inline]
    pub fn resume(&mut self, number: usize, answer: u64) -> Option<Operation> {
        let program = self.programs[number].as_mut()?;
        let question = MAILBOX.with(|mailbox| {
            mailbox.answer.set(answer);
            mailbox.question.set(None);
            match program
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(()) => None,
                Poll::Pending => mailbox.question.take(),
            }
        });
        if question.is_none() {
            self.programs[number] = None;
            self.unfinished -= 1;
        }
        question
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// How many have not finished.
    pub fn unfinished(&self) -> u32 {
        self.unfinished
    }

    /// Bytes of memory held at most, allocator overhead not counted.
    pub fn bytes(&self) -> usize {
        self.programs.capacity() * size_of::<Option<Program>>() + self.program_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_asks_and_is_answered_in_turn() {
        let map = Arc::new(AddressMap {
            nodes: 1,
            private_bytes: 64,
            shared_bytes: 64,
            global_base: 1 << 40,
        });
        let memory = ThreadMemory::new(map, 0, 0);
        let program: Program = Box::pin(async move {
            let value = memory.load(Word(8)).await;
            memory.store(Word(16), value + 1).await;
        });
        let mut threads = Threads::new([program]);
        let file = |site: Site| site.file() == file!();
        let loads = threads.resume(0, 0);
        assert!(matches!(loads, Some(Operation::Load(Word(8), site)) if file(site)));
        let stores = threads.resume(0, 41);
        assert!(matches!(stores, Some(Operation::Store(Word(16), 42, site)) if file(site)));
        assert_eq!(threads.resume(0, 0), None);
        assert_eq!(threads.unfinished(), 0);
        assert_eq!(threads.resume(0, 0), None);
    }
}
