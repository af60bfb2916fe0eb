//! A small machine for tests: memory that is not coherent between nodes, and threads of which one
//! takes one step at a time, drawn by a seed. A mistake in a program is found by running it with
//! some seeds, the same mistake with the same seed every time.
//!
//! * [`Machine`] has nodes with memory and one cache each, of finite capacity, that nothing keeps
//!   coherent ([`Route::Cached`]); the other routes go to memory. It knows no time.
//! * [`Thread`] is a view of it: [`Memory`], [`Cacheable`] and [`Atomic`]. Every operation lets
//!   others run before it happens. Stores are performed in program order.
//! * [`Member`] is a [`Team`] around it whose barrier is perfect and is the coherence point, as far
//!   as the [`Spec`] says, and can be left out once, for all.
//! * [`Machine::run`] runs programs to their end, or finds that nothing happens any more.
//! * [`Report`] counts, and tells where threads break the rules that kernels keep between two
//!   barriers, whether or not it shows in this order of steps: [`Report::races`],
//!   [`Report::false_sharing`].
//!
//! ```ignore
//! let machine = Machine::new(Spec { nodes: 2, cores: 2, ..Spec::of(seed) });
//! for (place, value) in kernel.initial(&input) {
//!     machine.write(place, value);
//! }
//! machine.run(machine.members().map(|mut member| {
//!     let kernel = &kernel;
//!     async move { kernel.run(&mut member).await }
//! }))?;
//! let output = kernel.result(|place| machine.read(place));
//! assert!(machine.report().races.is_empty());
//! ```

#![allow(dead_code, reason = "every test uses what it needs")]

mod audit;
mod caches;

use std::collections::{BTreeSet, HashMap};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_fft_demo::Team;
use sme_memory::{Atomic, Cacheable, Flag, Flags, Memory, Place, Route, Until, Word};

pub use audit::Report;
use caches::Caches;
pub use caches::WriteBack;

/// The action of the team's barrier on the caches of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// Writes them back and drops their copies.
    Full,
    /// Writes them back.
    WriteBackOnly,
    /// Nothing.
    None,
}

/// Description of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub nodes: u32,
    /// Threads of each node.
    pub cores: u32,
    /// Bytes of each node's memory.
    pub bytes: u64,
    /// Lines that a node's cache has room for; at least 1.
    pub lines: usize,
    pub write_back: WriteBack,
    pub coherence: Coherence,
    /// The barrier, counted from 0, that all threads pass as if it were not there.
    pub skipped: Option<u64>,
    /// Steps after which [`Machine::run`] gives up.
    pub most_steps: u64,
    /// Decides whose step is next and which line a full cache loses.
    pub seed: u64,
}

impl Spec {
    /// One node of one thread, coherent barriers, dirty bytes only.
    pub fn of(seed: u64) -> Self {
        Self {
            nodes: 1,
            cores: 1,
            bytes: 1 << 16,
            lines: 64,
            write_back: WriteBack::Mask,
            coherence: Coherence::Full,
            skipped: None,
            most_steps: 50_000_000,
            seed,
        }
    }
}

/// The reason why programs did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// All threads that have not ended wait, and none can be served: what each waits for.
    Deadlock(Vec<(usize, String)>),
    /// They still run after [`Spec::most_steps`].
    Endless,
}

/// The machine.
#[derive(Clone)]
pub struct Machine {
    spec: Spec,
    state: Arc<Mutex<State>>,
}

struct State {
    spec: Spec,
    random: Pcg32,
    memory: Vec<Vec<u64>>,
    caches: Caches,
    flags: HashMap<Flag, u8>,
    /// Threads that have come to the barrier, and how many times all have left it.
    arrived: u32,
    episode: u64,
    /// Grows with every step of a thread except a wait in vain.
    progress: u64,
    waiting: HashMap<u32, String>,
    audit: audit::Audit,
}

impl Machine {
    /// A machine whose memory is all zero.
    pub fn new(spec: Spec) -> Self {
        let words = spec.bytes.next_multiple_of(caches::LINE_BYTES) / 8;
        Self {
            spec,
            state: Arc::new(Mutex::new(State {
                spec,
                random: Pcg32::new(spec.seed, 0x11),
                memory: vec![vec![0; words as usize]; spec.nodes as usize],
                caches: Caches::new(spec.nodes, spec.lines, spec.write_back),
                flags: HashMap::new(),
                arrived: 0,
                episode: 0,
                progress: 0,
                waiting: HashMap::new(),
                audit: audit::Audit::default(),
            })),
        }
    }

    /// The view of thread `number`, which is on node `number / cores`.
    pub fn thread(&self, number: u32) -> Thread {
        Thread {
            state: Arc::clone(&self.state),
            number,
            node: number / self.spec.cores,
        }
    }

    /// All threads, as a team.
    pub fn members(&self) -> impl Iterator<Item = Member> + use<> {
        let machine = self.clone();
        let size = self.spec.nodes * self.spec.cores;
        (0..size).map(move |number| Member {
            thread: machine.thread(number),
            size,
            barriers: 0,
        })
    }

    /// Returns the value in memory, without regard to the caches.
    pub fn read(&self, place: Place) -> u64 {
        lock(&self.state).memory[place.node as usize][place.offset as usize / 8]
    }

    /// Changes memory under the caches.
    pub fn write(&self, place: Place, value: u64) {
        lock(&self.state).memory[place.node as usize][place.offset as usize / 8] = value;
    }

    /// Returns the counts and findings so far.
    pub fn report(&self) -> Report {
        lock(&self.state).audit.report.clone()
    }

    /// Runs one program for each thread, thread 0's first, step by step.
    pub fn run<F>(&self, programs: impl IntoIterator<Item = F>) -> Result<(), Stuck>
    where
        F: Future<Output = ()>,
    {
        let mut live: Vec<(usize, Pin<Box<F>>)> =
            programs.into_iter().map(Box::pin).enumerate().collect();
        let mut schedule = Schedule::new(self.spec.seed);
        let mut idle = BTreeSet::new();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..self.spec.most_steps {
            if live.is_empty() {
                return Ok(());
            }
            let before = lock(&self.state).progress;
            let at = schedule.next(live.len());
            let (number, program) = &mut live[at];
            let number = *number;
            if program.as_mut().poll(&mut context).is_ready() {
                live.swap_remove(at);
                idle.clear();
            } else if lock(&self.state).progress != before {
                idle.clear();
            } else {
                idle.insert(number);
                if idle.len() == live.len() {
                    let mut waiting = std::mem::take(&mut lock(&self.state).waiting);
                    let mut wait =
                        |number: usize| waiting.remove(&(number as u32)).unwrap_or_default();
                    return Err(Stuck::Deadlock(
                        idle.into_iter().map(|n| (n, wait(n))).collect(),
                    ));
                }
                // Another has to act before this one can.
                schedule.leave();
            }
        }
        Err(Stuck::Endless)
    }
}

/// The order of threads' steps: with some seeds another thread is next after nearly every step,
/// with others one runs far ahead.
struct Schedule {
    random: Pcg32,
    last: usize,
    /// Of 128 steps, how many are of the thread whose the step before was.
    stays: u64,
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut random = Pcg32::new(seed, 0x12);
        let stays = [0, 64, 120, 127][random.next_u64() as usize % 4];
        Self {
            random,
            last: usize::MAX,
            stays,
        }
    }

    fn next(&mut self, threads: usize) -> usize {
        let draw = self.random.next_u64();
        if self.last >= threads || draw % 128 >= self.stays {
            self.last = (draw >> 7) as usize % threads;
        }
        self.last
    }

    fn leave(&mut self) {
        self.last = usize::MAX;
    }
}

impl State {
    fn load(&mut self, thread: &Thread, word: Word) -> u64 {
        let (place, cached) = split(word);
        self.audit.load(self.episode, thread.number, place);
        let memory = &mut self.memory;
        if cached {
            let caches = &mut self.caches;
            *caches.word(thread.node, place, false, memory, &mut self.random)
        } else {
            memory[place.node as usize][place.offset as usize / 8]
        }
    }

    fn store(&mut self, thread: &Thread, word: Word, value: u64) {
        let (place, cached) = split(word);
        let from = (thread.number, thread.node);
        self.audit.store(self.episode, from, place, cached);
        let memory = &mut self.memory;
        if cached {
            let caches = &mut self.caches;
            *caches.word(thread.node, place, true, memory, &mut self.random) = value;
        } else {
            memory[place.node as usize][place.offset as usize / 8] = value;
        }
    }

    /// Reads, decides, and writes in one step. Memory that is not coherent has nothing like it.
    fn update(&mut self, thread: &Thread, word: Word, new: impl FnOnce(u64) -> Option<u64>) -> u64 {
        assert!(
            !split(word).1,
            "an atomic operation on memory that is not coherent: {word:?}"
        );
        let before = self.load(thread, word);
        if let Some(value) = new(before) {
            self.store(thread, word, value);
        }
        before
    }

    /// One more thread has come to the barrier.
    fn arrive(&mut self) {
        self.arrived += 1;
        if self.arrived < self.spec.nodes * self.spec.cores {
            return;
        }
        self.arrived = 0;
        self.episode += 1;
        let (memory, drop) = (&mut self.memory, self.spec.coherence == Coherence::Full);
        if self.spec.coherence != Coherence::None {
            for node in 0..self.spec.nodes {
                self.caches.write_back(node, drop, memory);
            }
        }
    }
}

/// One thread's view of a [`Machine`].
#[derive(Clone)]
pub struct Thread {
    state: Arc<Mutex<State>>,
    number: u32,
    node: u32,
}

impl Thread {
    /// Lets others run once.
    async fn turn(&self) {
        let mut had = false;
        poll_fn(|_| {
            if std::mem::replace(&mut had, true) {
                return Poll::Ready(());
            }
            lock(&self.state).progress += 1;
            Poll::Pending
        })
        .await;
    }

    /// Lets others run until `ready` finds what it wants.
    async fn until<V>(&self, what: String, ready: impl Fn(&State) -> Option<V>) -> V {
        self.turn().await;
        poll_fn(|_| {
            let mut state = lock(&self.state);
            match ready(&state) {
                Some(value) => {
                    state.progress += 1;
                    Poll::Ready(value)
                }
                None => {
                    state.waiting.insert(self.number, what.clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Memory for Thread {
    fn node(&self) -> u32 {
        self.node
    }

    fn flag(&self, place: Place, _: Route) -> Flag {
        Flag(join(place))
    }

    fn word(&self, place: Place, route: Route) -> Word {
        assert!(place.offset.is_multiple_of(8), "{place:?} is not aligned");
        // The lowest bit, which an aligned address leaves free, says that it is cached.
        Word(join(place) | u64::from(route == Route::Cached))
    }

    async fn read(&self, flag: Flag) -> u8 {
        self.turn().await;
        flag_value(&lock(&self.state), flag)
    }

    async fn set(&self, flag: Flag, value: u8) {
        assert!(value < 128, "flags have seven bits, not {value:#x}");
        self.turn().await;
        lock(&self.state).flags.insert(flag, value);
    }

    async fn wait(&self, flag: Flag, until: Until) -> u8 {
        let ready = |state: &State| Some(flag_value(state, flag)).filter(|&v| until.holds(v));
        self.until(format!("{flag:?} {until:?}"), ready).await
    }

    async fn wait_all(&self, flags: Flags, until: Until) {
        for index in 0..flags.count {
            self.wait(flags.at(index), until).await;
        }
    }

    async fn load(&self, word: Word) -> u64 {
        self.turn().await;
        lock(&self.state).load(self, word)
    }

    async fn store(&self, word: Word, value: u64) {
        self.turn().await;
        lock(&self.state).store(self, word, value);
    }

    async fn fence(&self) {
        self.turn().await;
    }
}

impl Cacheable for Thread {
    async fn flush(&self, word: Word) {
        self.turn().await;
        let state = &mut *lock(&self.state);
        let (place, _) = split(word);
        state.caches.flush(self.node, place, &mut state.memory);
    }

    async fn write_back(&self) {
        self.turn().await;
        let state = &mut *lock(&self.state);
        state.caches.write_back(self.node, false, &mut state.memory);
    }

    async fn write_back_invalidate(&self) {
        self.turn().await;
        let state = &mut *lock(&self.state);
        state.caches.write_back(self.node, true, &mut state.memory);
    }
}

impl Atomic for Thread {
    async fn fetch_add(&self, word: Word, amount: u64) -> u64 {
        self.turn().await;
        lock(&self.state).update(self, word, |value| Some(value.wrapping_add(amount)))
    }

    async fn swap(&self, word: Word, value: u64) -> u64 {
        self.turn().await;
        lock(&self.state).update(self, word, |_| Some(value))
    }

    async fn compare_exchange(&self, word: Word, expected: u64, new: u64) -> u64 {
        self.turn().await;
        let update = |value| (value == expected).then_some(new);
        lock(&self.state).update(self, word, update)
    }
}

/// One thread of the team of all threads of a [`Machine`].
pub struct Member {
    thread: Thread,
    size: u32,
    barriers: u64,
}

impl Team for Member {
    type Memory = Thread;

    fn memory(&self) -> &Thread {
        &self.thread
    }

    fn number(&self) -> u32 {
        self.thread.number
    }

    fn size(&self) -> u32 {
        self.size
    }

    async fn barrier(&mut self) {
        self.thread.turn().await;
        let barrier = self.barriers;
        self.barriers += 1;
        let state = &self.thread.state;
        if lock(state).spec.skipped == Some(barrier) {
            return;
        }
        let episode = lock(state).episode;
        lock(state).arrive();
        let left = |state: &State| (state.episode > episode).then_some(());
        self.thread.until(format!("barrier {barrier}"), left).await;
    }

    async fn compute(&mut self, operations: u32) {
        self.thread.turn().await;
        lock(&self.thread.state).audit.report.operations += u64::from(operations);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn flag_value(state: &State, flag: Flag) -> u8 {
    state.flags.get(&flag).copied().unwrap_or(0)
}

/// The node stands above 40 bits of offset.
fn join(place: Place) -> u64 {
    assert!(place.offset < 1 << 40, "{place:?}");
    u64::from(place.node) << 40 | place.offset
}

/// The place that a word's address names, and whether it is cached.
fn split(word: Word) -> (Place, bool) {
    let place = Place {
        node: (word.0 >> 40) as u32,
        offset: word.0 & ((1 << 40) - 1) & !7,
    };
    (place, word.0 & 1 == 1)
}
