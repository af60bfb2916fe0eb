//! A memory as weak as the contract allows, and the scheduler that runs threads on it.
//!
//! Every store waits in a queue of its thread and target node and is performed at a random time:
//! in order to the same node, in any order to different ones, to one's own node as well (a store
//! buffer). A thread sees its own stores at once. Every operation is one step of the scheduler,
//! which picks threads and deliveries at random from a seed, with a random preference for running
//! the same thread on, for leaving chosen threads behind and for delivering late.
//!
//! It also checks what programs owe: addresses within the shared partition, seven bits per flag,
//! one writer per flag, or one at a time under a register, no atomic operation on another node's
//! memory, nothing in the memory of another node with threads where there is a pool.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use sme_memory::{
    Atomic, Flag, Flags, Futex, Memory, Place, Register, Route, TestAndSet, Until, Word,
};

/// Bit of a flag's or word's address that says "through the engine".
const GLOBAL: u64 = 1 << 63;
/// The lowest bit of the node in an address.
const NODE_SHIFT: u32 = 40;
/// Steps after which a run counts as endless.
const MOST_STEPS: u64 = 20_000_000;

/// A failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A thread left an episode in which not all had arrived.
    LeftEarly { thread: u32, episode: u32 },
    /// Nothing can happen any more, but threads wait.
    Deadlock { waiting: Vec<u32> },
    /// Threads go on and on.
    Endless,
    /// A second thread wrote a flag, without holding a register or while the first's store was on
    /// its way.
    TwoWriters { place: Place, threads: [u32; 2] },
    /// An address outside, a value of eight bits, an atomic operation on remote memory.
    Illegal(&'static str),
}

/// The memory traffic of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Flags set in other nodes' memory, or in one's own through the engine.
    pub remote_sets: u64,
    /// Operations that read or wait for a flag there.
    pub remote_reads: u64,
    /// Flags set in one's own memory directly.
    pub local_sets: u64,
}

/// Pseudo-random numbers (Steele, Lea, Flood 2014, SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, of_16: u64) -> bool {
        self.next() % 16 < of_16
    }
}

/// A store on its way.
struct Store {
    place: Place,
    value: u64,
}

/// Memory, threads and what is on its way.
pub struct World {
    nodes: u32,
    /// Those of them that are a pool: the last.
    pool: u32,
    bytes: u64,
    cells: BTreeMap<Place, u64>,
    writers: BTreeMap<Place, u32>,
    /// Threads that hold a register.
    holders: BTreeSet<u32>,
    /// By thread and target node.
    queues: BTreeMap<(u32, u32), VecDeque<Store>>,
    /// One entry for each store in a queue.
    on_the_way: Vec<(u32, u32)>,
    waiters: BTreeMap<Place, Vec<u32>>,
    sleepers: BTreeMap<Place, VecDeque<u32>>,
    runnable: Vec<u32>,
    /// Threads that are left behind.
    slow: Vec<bool>,
    deliver_of_16: u64,
    run_on_of_16: u64,
    random: Random,
    traffic: Traffic,
    failure: Option<Failure>,
}

impl World {
    fn new((nodes, pool): (u32, u32), threads: u32, bytes: u64, seed: u64) -> Self {
        let mut random = Random(seed);
        let choices = [1, 2, 8, 14, 15];
        let deliver_of_16 = choices[random.below(choices.len())];
        let run_on_of_16 = [0, 0, 8, 15][random.below(4)];
        let slow_of_16 = [0, 1, 8][random.below(3)];
        Self {
            nodes,
            pool,
            bytes,
            cells: BTreeMap::new(),
            writers: BTreeMap::new(),
            holders: BTreeSet::new(),
            queues: BTreeMap::new(),
            on_the_way: Vec::new(),
            waiters: BTreeMap::new(),
            sleepers: BTreeMap::new(),
            runnable: (0..threads).collect(),
            slow: (0..threads).map(|_| random.chance(slow_of_16)).collect(),
            deliver_of_16,
            run_on_of_16,
            random,
            traffic: Traffic::default(),
            failure: None,
        }
    }

    pub fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Returns the place to which an address leads.
    fn place(&mut self, address: u64) -> Place {
        let node = (address & !GLOBAL) >> NODE_SHIFT;
        let offset = address & ((1 << NODE_SHIFT) - 1);
        if node >= u64::from(self.nodes) || offset >= self.bytes {
            self.fail(Failure::Illegal("an address outside the shared partition"));
        }
        Place {
            node: node as u32,
            offset,
        }
    }

    /// Returns the value that a thread sees at a place: its own latest store, or what has been
    /// performed.
    fn seen(&self, thread: u32, place: Place) -> u64 {
        let queue = self.queues.get(&(thread, place.node));
        let own = queue.and_then(|queue| queue.iter().rev().find(|store| store.place == place));
        match own {
            Some(store) => store.value,
            None => self.cells.get(&place).copied().unwrap_or(0),
        }
    }

    fn post(&mut self, thread: u32, place: Place, value: u64) {
        let store = Store { place, value };
        let target = (thread, place.node);
        self.queues.entry(target).or_default().push_back(store);
        self.on_the_way.push(target);
    }

    fn perform(&mut self, place: Place, value: u64) {
        self.cells.insert(place, value);
        if let Some(waiters) = self.waiters.remove(&place) {
            self.runnable.extend(waiters);
        }
    }

    fn deliver(&mut self, index: usize) {
        let target = self.on_the_way.swap_remove(index);
        let store = self.queues.get_mut(&target).and_then(VecDeque::pop_front);
        let store = store.expect("a store for each entry");
        self.perform(store.place, store.value);
    }

    /// Performs all of a thread's stores to its own node.
    fn drain(&mut self, thread: u32, node: u32) {
        while let Some(index) = self.on_the_way.iter().position(|&to| to == (thread, node)) {
            self.deliver(index);
        }
    }

    /// The next thread to run, unless a delivery happens instead.
    fn schedule(&mut self) -> Option<u32> {
        let stores = self.on_the_way.len();
        if stores > 0 && (self.runnable.is_empty() || self.random.chance(self.deliver_of_16)) {
            let index = self.random.below(stores);
            self.deliver(index);
            return None;
        }
        let last = self.runnable.len() - 1;
        let mut index = self.random.below(last + 1);
        if self.random.chance(self.run_on_of_16) {
            index = last;
        } else if self.slow[self.runnable[index] as usize] && self.random.chance(15) {
            index = self.random.below(last + 1);
        }
        Some(self.runnable.swap_remove(index))
    }
}

/// One thread's view.
pub struct TestMemory {
    world: Arc<Mutex<World>>,
    thread: u32,
    node: u32,
}

impl TestMemory {
    pub fn thread(&self) -> u32 {
        self.thread
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("the scheduler is one thread")
    }

    /// Does nothing for up to `most` steps.
    pub async fn idle(&self, most: usize) {
        let steps = self.world().random.below(most + 1);
        for _ in 0..steps {
            self.step(|_| Poll::Ready(())).await;
        }
    }

    /// An operation: lets others run, then acts. Where the act is not ready it has noted what the
    /// thread waits for.
    fn step<T>(
        &self,
        mut act: impl FnMut(&mut World) -> Poll<T> + Send,
    ) -> impl Future<Output = T> + Send {
        let mut scheduled = false;
        poll_fn(move |_| {
            let mut world = self.world();
            if !scheduled {
                scheduled = true;
                world.runnable.push(self.thread);
                return Poll::Pending;
            }
            act(&mut world)
        })
    }

    fn count_read(&self, world: &mut World, flag: Flag, place: Place) {
        if place.node != self.node || flag.0 & GLOBAL != 0 {
            world.traffic.remote_reads += 1;
        }
    }

    /// An atomic operation: `change` gives the new value for the old.
    fn atomic(
        &self,
        word: Word,
        change: impl Fn(u64) -> u64 + Send,
    ) -> impl Future<Output = u64> + Send {
        self.step(move |world| {
            let place = world.place(word.0);
            if place.node != self.node || word.0 & GLOBAL != 0 {
                world.fail(Failure::Illegal("an atomic operation over the engine"));
            }
            world.drain(self.thread, self.node);
            let old = world.seen(self.thread, place);
            world.perform(place, change(old));
            Poll::Ready(old)
        })
    }

    fn address(&self, place: Place, route: Route) -> u64 {
        let mut world = self.world();
        let is_hosts = place.node < world.nodes - world.pool;
        if world.pool > 0 && is_hosts && place.node != self.node {
            world.fail(Failure::Illegal("the memory of another host"));
        }
        drop(world);
        let through = place.node != self.node || route == Route::Global;
        let global = if through { GLOBAL } else { 0 };
        global | u64::from(place.node) << NODE_SHIFT | place.offset
    }
}

impl Memory for TestMemory {
    fn node(&self) -> u32 {
        self.node
    }

    fn flag(&self, place: Place, route: Route) -> Flag {
        Flag(self.address(place, route))
    }

    fn word(&self, place: Place, route: Route) -> Word {
        Word(self.address(place, route))
    }

    fn read(&self, flag: Flag) -> impl Future<Output = u8> + Send {
        self.step(move |world| {
            let place = world.place(flag.0);
            self.count_read(world, flag, place);
            Poll::Ready(world.seen(self.thread, place) as u8)
        })
    }

    fn set(&self, flag: Flag, value: u8) -> impl Future<Output = ()> + Send {
        self.step(move |world| {
            let place = world.place(flag.0);
            if value > 127 {
                world.fail(Failure::Illegal("a flag of eight bits"));
            }
            let writer = world.writers.insert(place, self.thread);
            if let Some(writer) = writer.filter(|&writer| writer != self.thread) {
                // They may take turns under a lock, when the other's store is no longer on its way.
                let queue = world.queues.get(&(writer, place.node));
                let is_late = queue.is_some_and(|q| q.iter().any(|store| store.place == place));
                if is_late || !world.holders.contains(&self.thread) {
                    let threads = [writer, self.thread];
                    world.fail(Failure::TwoWriters { place, threads });
                }
            }
            if flag.0 & GLOBAL != 0 {
                world.traffic.remote_sets += 1;
            } else {
                world.traffic.local_sets += 1;
            }
            world.post(self.thread, place, u64::from(value));
            Poll::Ready(())
        })
    }

    fn wait(&self, flag: Flag, until: Until) -> impl Future<Output = u8> + Send {
        self.step(move |world| {
            let place = world.place(flag.0);
            self.count_read(world, flag, place);
            let value = world.seen(self.thread, place) as u8;
            if until.holds(value) {
                return Poll::Ready(value);
            }
            world.waiters.entry(place).or_default().push(self.thread);
            Poll::Pending
        })
    }

    async fn wait_all(&self, flags: Flags, until: Until) {
        for index in 0..flags.count {
            self.wait(flags.at(index), until).await;
        }
    }

    fn load(&self, word: Word) -> impl Future<Output = u64> + Send {
        self.step(move |world| {
            let place = world.place(word.0);
            Poll::Ready(world.seen(self.thread, place))
        })
    }

    fn store(&self, word: Word, value: u64) -> impl Future<Output = ()> + Send {
        self.step(move |world| {
            let place = world.place(word.0);
            world.post(self.thread, place, value);
            Poll::Ready(())
        })
    }

    fn fence(&self) -> impl Future<Output = ()> + Send {
        self.step(move |world| {
            world.drain(self.thread, self.node);
            Poll::Ready(())
        })
    }
}

impl Atomic for TestMemory {
    fn fetch_add(&self, word: Word, amount: u64) -> impl Future<Output = u64> + Send {
        self.atomic(word, move |old| old.wrapping_add(amount))
    }

    fn swap(&self, word: Word, value: u64) -> impl Future<Output = u64> + Send {
        self.atomic(word, move |_| value)
    }

    fn compare_exchange(
        &self,
        word: Word,
        expected: u64,
        new: u64,
    ) -> impl Future<Output = u64> + Send {
        self.atomic(word, move |old| if old == expected { new } else { old })
    }
}

impl TestMemory {
    /// Reads a register when the thread's earlier stores to its node have been performed, and sets
    /// it; whether it was clear.
    fn test(&self, world: &mut World, register: Register) -> bool {
        world.drain(self.thread, register.node);
        let place = register_at(register);
        let was_clear = world.cells.get(&place).is_none_or(|&value| value == 0);
        world.cells.insert(place, 1);
        if was_clear {
            world.holders.insert(self.thread);
        }
        was_clear
    }
}

/// The place that stands for a register: beyond all memory.
fn register_at(register: Register) -> Place {
    Place {
        node: register.node,
        offset: (1 << (NODE_SHIFT - 1)) + u64::from(register.number),
    }
}

impl TestAndSet for TestMemory {
    fn registers(&self) -> u32 {
        1
    }

    fn test_and_set(&self, register: Register) -> impl Future<Output = bool> + Send {
        self.step(move |world| Poll::Ready(self.test(world, register)))
    }

    fn take(&self, register: Register) -> impl Future<Output = ()> + Send {
        self.step(move |world| {
            if self.test(world, register) {
                return Poll::Ready(());
            }
            let waiters = world.waiters.entry(register_at(register)).or_default();
            waiters.push(self.thread);
            Poll::Pending
        })
    }

    fn clear(&self, register: Register) -> impl Future<Output = ()> + Send {
        self.step(move |world| {
            world.holders.remove(&self.thread);
            world.post(self.thread, register_at(register), 0);
            Poll::Ready(())
        })
    }
}

impl Futex for TestMemory {
    fn futex_wait(&self, word: Word, expected: u64) -> impl Future<Output = ()> + Send {
        let mut slept = false;
        self.step(move |world| {
            let place = world.place(word.0);
            world.drain(self.thread, self.node);
            let without_reason = world.random.chance(2);
            if slept || without_reason || world.seen(self.thread, place) != expected {
                return Poll::Ready(());
            }
            slept = true;
            let sleepers = world.sleepers.entry(place).or_default();
            sleepers.push_back(self.thread);
            Poll::Pending
        })
    }

    fn futex_wake(&self, word: Word, count: u32) -> impl Future<Output = u32> + Send {
        self.step(move |world| {
            let place = world.place(word.0);
            world.drain(self.thread, self.node);
            let mut woken = 0;
            while woken < count {
                let sleepers = world.sleepers.get_mut(&place);
                let Some(thread) = sleepers.and_then(VecDeque::pop_front) else {
                    break;
                };
                world.runnable.push(thread);
                woken += 1;
            }
            Poll::Ready(woken)
        })
    }
}

/// Runs a program in each of `threads[node]` threads per node, beside a pool of `pool` nodes, to
/// the end or the first failure. `program` is given the thread's memory and its number in its node.
pub fn run<'p, P, F>(
    (threads, pool): (&[u32], u32),
    bytes: u64,
    seed: u64,
    program: P,
) -> Result<Traffic, Failure>
where
    P: Fn(TestMemory, u32) -> F,
    F: Future<Output = ()> + Send + 'p,
{
    let count = threads.iter().sum();
    let nodes = threads.len() as u32 + pool;
    let world = Arc::new(Mutex::new(World::new((nodes, pool), count, bytes, seed)));
    let mut programs: Vec<Option<Pin<Box<F>>>> = Vec::new();
    for (node, &cores) in (0..).zip(threads) {
        for core in 0..cores {
            let thread = programs.len() as u32;
            let world = Arc::clone(&world);
            let memory = TestMemory {
                world,
                thread,
                node,
            };
            programs.push(Some(Box::pin(program(memory, core))));
        }
    }

    let world = || world.lock().expect("the scheduler is one thread");
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..MOST_STEPS {
        let next = {
            let mut world = world();
            if let Some(failure) = world.failure.take() {
                return Err(failure);
            }
            if world.runnable.is_empty() && world.on_the_way.is_empty() {
                let waiting = (0..count).filter(|&thread| programs[thread as usize].is_some());
                let waiting: Vec<_> = waiting.collect();
                return match waiting[..] {
                    [] => Ok(world.traffic),
                    _ => Err(Failure::Deadlock { waiting }),
                };
            }
            world.schedule()
        };
        let Some(program) = next.map(|thread| &mut programs[thread as usize]) else {
            continue;
        };
        if let Some(running) = program
            && running.as_mut().poll(&mut context).is_ready()
        {
            *program = None;
        }
    }
    Err(Failure::Endless)
}
