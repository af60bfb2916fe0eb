//! The contract between programs and memory ([`sme_memory`]) as questions to a machine: each
//! capability of the contract is a few variants of [`Operation`], and [`ThreadMemory`] asks them.
//!
//! A machine performs those of the capabilities that it has. The program performs hits in its
//! core's private caches itself, without asking ([`lend`]).

mod aside;
mod calls;
mod messages;
mod network;
mod passes;

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::thread::LocalKey;

use sme_memory::{
    Atomic, Cacheable, Flag, Flags, Futex, Memory, Place, Processes, Register, Route, Spawn,
    TestAndSet, ThreadId, Until, Word,
};

pub use aside::Aside;
pub use calls::{Call, Toward};
pub use messages::{NONE_FOUND, Near, swap_block};
pub use network::{NetworkCall, take_network_call};

use super::address::{CACHEABLE, Space};
use super::cache::ahead::Ahead;
use crate::kernel::site::WaitSite;
use crate::kernel::thread::{Answer, Mailbox, Program, Question, Site, ask};
use crate::time::Time;

/// An operation that a program asks the machine to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Memory::read`]
    Read(Flag),
    /// [`Memory::set`]
    Set(Flag, u8),
    /// [`Memory::wait`]
    Wait(Flag, Until, WaitSite),
    /// [`Memory::wait_all`]
    WaitAll(Flags, Until, WaitSite),
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
    FutexWait(Word, u64, WaitSite),
    /// [`Futex::futex_wake`]
    FutexWake(Word, u32),
    /// [`Cacheable::flush`]
    Flush(Word),
    /// [`Cacheable::write_back`], or [`Cacheable::write_back_invalidate`].
    WriteBack {
        /// Whether the flush drops copies.
        invalidate: bool,
    },
    /// [`TestAndSet::test_and_set`]
    TestAndSet(Register),
    /// [`TestAndSet::take`]
    Take(Register, WaitSite),
    /// [`TestAndSet::clear`]
    Clear(Register),
    /// [`Spawn::spawn`] on this core, or on any: the machine finds [what is to run](take_start)
    /// besides.
    Spawn(Option<u32>),
    /// [`Spawn::join`]
    Join(ThreadId, WaitSite),
    /// [`Spawn::give_way`]
    GiveWay,
    /// [`Spawn::send_signal`]: to that thread, with a value.
    SendSignal(ThreadId, u64),
    /// [`Spawn::take_signal`]
    TakeSignal(WaitSite),
    /// [`Processes::kill`]
    Kill(ThreadId),
    /// [`Processes::alarm`]: after so many nanoseconds, with a value.
    Alarm(u64, u64),
    /// [`Blocks::put`](sme_memory::Blocks::put): the machine finds [the words](swap_block) besides.
    Put(Word, u32, Near, WaitSite),
    /// [`Blocks::get`](sme_memory::Blocks::get): the program finds the words in the same place.
    Get(Word, u32, Near, WaitSite),
    /// [`Blocks::copy`](sme_memory::Blocks::copy): from the one place, to the other.
    Copy(Near, Near, u32),
    /// [`Passes::sum`](sme_memory::Passes::sum)
    Sum(Word, u32, WaitSite),
    /// [`Passes::fill`](sme_memory::Passes::fill): to, with that value, through the caches.
    Fill(Word, u64, u32, WaitSite),
    /// The same past the caches.
    FillPast(Word, u64, u32, WaitSite),
    /// [`Passes::copy_words`](sme_memory::Passes::copy_words): from the one place, to the other,
    /// through the caches.
    CopyWords(Word, Word, u32, WaitSite),
    /// The same with stores past the caches.
    CopyPast(Word, Word, u32, WaitSite),
    /// [`Passes::flush_words`](sme_memory::Passes::flush_words)
    FlushWords(Word, u32, WaitSite),
    /// [`AnyFlag::wait_any`](sme_memory::AnyFlag::wait_any)
    WaitAny(Flags, Until, WaitSite),
    /// [`AnyFlag::find_any`](sme_memory::AnyFlag::find_any)
    FindAny(Flags, u32, Until),
    /// [`Tagged::invalidate_tagged`](sme_memory::Tagged::invalidate_tagged)
    InvalidateTagged,
    /// [`Interrupts::interrupt`](sme_memory::Interrupts::interrupt)
    Interrupt(u32),
    /// [`Interrupts::take_interrupt`](sme_memory::Interrupts::take_interrupt)
    TakeInterrupt(WaitSite),
    /// [`Timer::now`](sme_memory::Timer::now)
    Now,
    /// Something of [`Network`](sme_memory::Network): the machine finds [what](take_network_call)
    /// besides.
    Network,
    /// [`Scaling::set_divider`](sme_memory::Scaling::set_divider)
    SetDivider(u32),
    /// [`Scaling::set_voltage`](sme_memory::Scaling::set_voltage), in millivolts.
    SetVoltage(u32),
    /// Computes for a while.
    Delay(Time),
    /// Tells the observers something; takes no time.
    Mark(Mark),
}

// A thread at rest keeps one, and there are millions of them.
const _: () = assert!(size_of::<Operation>() == 32);

impl Operation {
    /// The place in the program from which the operation was asked for, if it is a wait.
    pub fn wait_site(&self) -> Option<Site> {
        match *self {
            Operation::Wait(_, _, site)
            | Operation::WaitAll(_, _, site)
            | Operation::FutexWait(_, _, site)
            | Operation::WaitAny(_, _, site)
            | Operation::Take(_, site)
            | Operation::TakeInterrupt(site)
            | Operation::TakeSignal(site)
            | Operation::Join(_, site) => Some(site.site()),
            _ => None,
        }
    }

    /// The value that the operation leaves in a word that held `before`; only atomic ones change
    /// it.
    pub fn updates(&self, before: u64) -> u64 {
        match *self {
            Operation::FetchAdd(_, amount) => before.wrapping_add(amount),
            Operation::Swap(_, value) => value,
            Operation::CompareExchange(_, expected, new) if before == expected => new,
            _ => before,
        }
    }
}

/// A named stretch of what a thread does: an episode of a barrier, a phase, a call. Threads that do
/// the same thing together give it the same name and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The kind of stretch, for instance an episode.
    pub name: &'static str,
    /// The number of the stretch among those of this kind, from 0.
    pub number: u32,
}

impl Span {
    /// The span called `name` with this number.
    pub const fn new(name: &'static str, number: u32) -> Self {
        Self { name, number }
    }
}

/// A remark of a program about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The program is in a span from here on.
    Begin(Span),
    /// The program has left the span.
    End(Span),
    /// The warm-up is over: the program's actions from here on count in the run's traffic.
    Counts,
    /// The call of a library that the program enters next has begun so long ago: the first work of
    /// any call can be done before it is known which one it is. The answer is the time, in
    /// picoseconds.
    Ahead(Time),
    /// The program enters a call of a library, within the calls that it is in already.
    Enters(Call),
    /// In the call that it entered last it waits on behalf of this place in its program.
    At(Site),
    /// The program leaves the call that it entered last.
    Leaves,
}

impl Question for Operation {
    #[inline]
    fn mailbox() -> &'static LocalKey<Mailbox<Self>> {
        thread_local!(static MAILBOX: Mailbox<Operation> = const { Mailbox::new() });
        &MAILBOX
    }

    #[inline]
    fn in_place(&self) -> Option<u64> {
        match *self {
            Operation::Load(word, site) if word.0 & CACHEABLE != 0 => {
                AHEAD.with_borrow_mut(|ahead| ahead.as_mut()?.load(word.0, site))
            }
            Operation::Store(word, value, site) if word.0 & CACHEABLE != 0 => AHEAD
                .with_borrow_mut(|ahead| {
                    let stored = ahead.as_mut()?.store(word.0, value, site);
                    stored.then_some(0)
                }),
            Operation::Delay(span) => {
                AHEAD.with_borrow_mut(|ahead| ahead.as_mut()?.delay(span).then_some(0))
            }
            _ => None,
        }
    }
}

thread_local! {
    /// The caches of the core whose program is being polled. Not in the mailbox: that would give it
    /// a destructor, which every question would pay for.
    static AHEAD: RefCell<Option<Box<Ahead>>> = const { RefCell::new(None) };
}

/// Until [`take_back`], programs polled by this thread of the host use `ahead` in place.
pub fn lend(ahead: Box<Ahead>) {
    AHEAD.set(Some(ahead));
}

/// Takes back what was [lent](lend).
pub fn take_back() -> Option<Box<Ahead>> {
    AHEAD.take()
}

/// The program of a new thread, as a function of the thread's number.
pub type Start = Box<dyn FnOnce(u32) -> Program + Send>;

thread_local! {
    /// The program that belongs to the [`Operation::Spawn`] in the mailbox.
    static START: RefCell<Option<Start>> = const { RefCell::new(None) };
}

/// Takes the program that belongs to the [`Operation::Spawn`] just asked for. Must be called before
/// another program is polled.
pub fn take_start() -> Option<Start> {
    START.take()
}

/// A simulated thread's view of memory.
#[derive(Clone)]
pub struct ThreadMemory {
    space: Arc<Space>,
    node: u32,
    thread: u32,
}

impl ThreadMemory {
    /// The view of the thread numbered `thread` on `node`.
    pub fn new(space: Arc<Space>, node: u32, thread: u32) -> Self {
        Self {
            space,
            node,
            thread,
        }
    }

    /// The thread's number in its node.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Computes for `span`.
    pub fn delay(&self, span: Time) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Delay(span))
    }

    /// Is in `span` from here on; takes no simulated time.
    pub fn begin(&self, span: Span) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Mark(Mark::Begin(span)))
    }

    /// Is in `span` no longer; takes no simulated time.
    pub fn end(&self, span: Span) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Mark(Mark::End(span)))
    }

    /// The warm-up is over: what the thread does from here on counts. Takes no simulated time.
    pub fn counts(&self) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Mark(Mark::Counts))
    }

    /// The call that it [enters](Self::enters) next has begun so long `ago`; returns the time, in
    /// picoseconds. Takes no simulated time.
    pub fn begins_next(&self, ago: Time) -> impl Future<Output = u64> + Send + use<> {
        ask(move || Operation::Mark(Mark::Ahead(ago)))
    }

    /// Is in `call` from here on, within the calls that it is in already; takes no simulated time.
    pub fn enters(&self, call: Call) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Mark(Mark::Enters(call)))
    }

    /// In the call that it entered last it waits from here on on behalf of `site`, for the report
    /// of a deadlock; takes no simulated time.
    pub fn at(&self, site: Site) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Mark(Mark::At(site)))
    }

    /// Leaves the call that it entered last; takes no simulated time.
    pub fn leaves(&self) -> impl Future<Output = ()> + Send + use<> {
        ask(move || Operation::Mark(Mark::Leaves))
    }
}

impl fmt::Debug for ThreadMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, thread, .. } = self;
        write!(f, "ThreadMemory {{ node: {node}, thread: {thread} }}")
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
        Flag(self.space.address(self.node, place, route))
    }

    #[inline]
    fn word(&self, place: Place, route: Route) -> Word {
        Word(self.space.address(self.node, place, route))
    }

    fn read(&self, flag: Flag) -> impl Future<Output = u8> + Send {
        ask(move || Operation::Read(flag))
    }

    fn set(&self, flag: Flag, value: u8) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Set(flag, value))
    }

    fn wait(&self, flag: Flag, until: Until) -> impl Future<Output = u8> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::Wait(flag, until, site))
    }

    fn wait_all(&self, flags: Flags, until: Until) -> impl Future<Output = ()> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::WaitAll(flags, until, site))
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
        let site = WaitSite::caller();
        ask(move || Operation::FutexWait(word, expected, site))
    }

    fn futex_wake(&self, word: Word, count: u32) -> impl Future<Output = u32> + Send {
        ask(move || Operation::FutexWake(word, count))
    }
}

impl TestAndSet for ThreadMemory {
    fn registers(&self) -> u32 {
        self.space.registers()
    }

    fn test_and_set(&self, register: Register) -> impl Future<Output = bool> + Send {
        ask(move || Operation::TestAndSet(register))
    }

    fn take(&self, register: Register) -> impl Future<Output = ()> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::Take(register, site))
    }

    fn clear(&self, register: Register) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Clear(register))
    }
}

impl Answer for ThreadId {
    fn from_mailbox(answer: u64) -> ThreadId {
        ThreadId(answer as u32)
    }
}

impl Spawn for ThreadMemory {
    fn spawn<P, F>(&self, core: Option<u32>, program: P) -> impl Future<Output = ThreadId> + Send
    where
        P: FnOnce(Self) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let space = Arc::clone(&self.space);
        let node = self.node;
        let start: Start =
            Box::new(move |thread| Box::pin(program(ThreadMemory::new(space, node, thread))));
        ask(move || {
            START.set(Some(start));
            Operation::Spawn(core)
        })
    }

    fn join(&self, thread: ThreadId) -> impl Future<Output = ()> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::Join(thread, site))
    }

    fn give_way(&self) -> impl Future<Output = ()> + Send {
        ask(|| Operation::GiveWay)
    }

    fn id(&self) -> ThreadId {
        ThreadId(self.thread)
    }

    fn send_signal(&self, thread: ThreadId, value: u64) -> impl Future<Output = ()> + Send {
        ask(move || Operation::SendSignal(thread, value))
    }

    fn take_signal(&self) -> impl Future<Output = u64> + Send {
        let site = WaitSite::caller();
        ask(move || Operation::TakeSignal(site))
    }
}

impl Processes for ThreadMemory {
    fn kill(&self, thread: ThreadId) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Kill(thread))
    }

    fn alarm(&self, nanoseconds: u64, value: u64) -> impl Future<Output = ()> + Send {
        ask(move || Operation::Alarm(nanoseconds, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::thread::{Threads, programs};
    use crate::parts::address::{AddressSpace, Way};
    use crate::parts::line_size::LineSize;

    #[test]
    fn a_program_asks_and_is_answered_in_turn() {
        struct Nowhere;
        impl AddressSpace for Nowhere {
            fn line(&self) -> LineSize {
                LineSize::B64
            }

            fn address(&self, _: u32, place: Place, _: Route) -> u64 {
                place.offset
            }

            fn cached_place(&self, _: u64) -> Option<Place> {
                None
            }

            fn shared(&self, _: u32, _: u64) -> Option<(Place, Way)> {
                None
            }
        }
        let memory = ThreadMemory::new(Space::new(Nowhere), 0, 0);
        let mut threads = Threads::new(programs([async move {
            let value = memory.load(Word(8)).await;
            memory.store(Word(16), value + 1).await;
        }]));
        let file = |site: Site| site.file() == file!();
        let loads = threads.resume(0, 0);
        assert!(matches!(loads, Ok(Some(Operation::Load(Word(8), site))) if file(site)));
        let stores = threads.resume(0, 41);
        assert!(matches!(stores, Ok(Some(Operation::Store(Word(16), 42, site))) if file(site)));
        assert_eq!(threads.resume::<Operation>(0, 0), Ok(None));
        assert_eq!(threads.resume::<Operation>(0, 0), Ok(None));
    }
}
