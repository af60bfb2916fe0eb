//! A machine whose every move is chosen by its caller: threads, store buffers, ways between nodes.
//!
//! * A store waits in its core's buffer, which empties in order; loads pass it, but see the newest
//!   store of their own core to the same word. A fence empties the buffer.
//! * A store that leaves the buffer for the node's own coherent memory is performed; one that goes
//!   through the engine joins the way from its node to its home, which is first in, first out, and
//!   arrives there whenever it is chosen to. Ways to different homes know nothing of each other.
//! * A load through the engine first performs all that is on its way. It does not empty its core's
//!   buffer, which is weaker than what the contract promises.
//! * Copies of words reached by `Route::Cached` are kept by the node until they are dropped.
//! * A test-and-set register is read at once, and cleared by what joins the way to its node.
//!
//! Written for these tests only: no code is shared with the simulator or the native memory.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use sme_memory::{
    Atomic, Cacheable, Flag, Flags, Memory, Place, Register, Route, TestAndSet, Until, Word,
};

const GLOBAL: u64 = 1 << 62;
const CACHED: u64 = 1 << 63;
const NODE_SHIFT: u32 = 40;
/// The offset of registers in the memory of their node; a word that is 1 is a register that is set.
const REGISTERS: u64 = 1 << 39;

/// A failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A thread entered while another was inside.
    Overlap { inside: u32, entered: u32 },
    /// Nothing can move, but threads have not finished.
    Deadlock { waiting: Vec<u32> },
    /// A word has another value at the end than it must have.
    Lost { found: u64, expected: u64 },
    /// An atomic operation through the engine, or eight bits for a flag.
    Illegal(&'static str),
}

/// A move of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A thread performs its operation.
    Run(u32),
    /// The oldest store of a thread leaves its buffer.
    Drain(u32),
    /// The oldest store on the way from one node to another arrives.
    Deliver(u32, u32),
}

/// An event, for tests that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store of this value has been performed.
    Performed(Place, u64),
    /// A thread has the lock.
    Entered(u32),
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Load(u64),
    /// A load through the engine that overtakes what is on its way: no machine has it.
    Overtake(u64),
    Wait(u64, Until),
    Store(u64, u64),
    Fence,
    Add(u64, u64),
    Swap(u64, u64),
    CompareExchange(u64, u64, u64),
    TestAndSet(u64),
    /// [`Self::TestAndSet`] that waits until the register is clear.
    Take(u64),
    Clear(u64),
    Flush(u64),
    WriteBack {
        invalidate: bool,
    },
    Enter,
    Leave,
}

#[derive(Clone, Copy, Debug, Hash)]
struct Store {
    address: u64,
    value: u64,
}

/// Everything but the threads' own states, which follow from what they have been answered.
#[derive(Default)]
struct World {
    node_of: Vec<u32>,
    cells: BTreeMap<Place, u64>,
    buffers: Vec<VecDeque<Store>>,
    ways: BTreeMap<(u32, u32), VecDeque<Store>>,
    /// By node: copies, and whether they are newer than memory.
    copies: Vec<BTreeMap<Place, (u64, bool)>>,
    asked: Vec<Option<Operation>>,
    answer: Vec<u64>,
    /// By thread: a hash of all answers so far.
    history: Vec<u64>,
    inside: Option<u32>,
    events: Vec<Event>,
}

fn place(address: u64) -> Place {
    Place {
        node: (address >> NODE_SHIFT & 0xffff) as u32,
        offset: address & ((1 << NODE_SHIFT) - 1),
    }
}

impl World {
    /// The way that an access of `thread` takes, if it goes through the engine.
    fn way(&self, thread: u32, address: u64) -> Option<(u32, u32)> {
        let (node, home) = (self.node_of[thread as usize], place(address).node);
        (node != home || address & GLOBAL != 0).then_some((node, home))
    }

    fn memory(&self, place: Place) -> u64 {
        self.cells.get(&place).copied().unwrap_or(0)
    }

    fn buffered(&self, thread: u32, address: u64) -> Option<u64> {
        let newest = self.buffers[thread as usize].iter().rev();
        let mut same = newest.filter(|store| place(store.address) == place(address));
        same.next().map(|store| store.value)
    }

    fn perform(&mut self, store: Store) {
        let place = place(store.address);
        self.cells.insert(place, store.value);
        self.events.push(Event::Performed(place, store.value));
    }

    fn deliver(&mut self, way: (u32, u32)) {
        let queue = self.ways.get_mut(&way);
        if let Some(store) = queue.and_then(VecDeque::pop_front) {
            self.perform(store);
        }
    }

    fn arrive_all(&mut self, way: (u32, u32)) {
        while self.ways.get(&way).is_some_and(|queue| !queue.is_empty()) {
            self.deliver(way);
        }
    }

    fn drain(&mut self, thread: u32) {
        if let Some(store) = self.buffers[thread as usize].pop_front() {
            self.post(thread, store);
        }
    }

    fn post(&mut self, thread: u32, store: Store) {
        match self.way(thread, store.address) {
            Some(way) => self.ways.entry(way).or_default().push_back(store),
            None => self.perform(store),
        }
    }

    fn drain_all(&mut self, thread: u32) {
        while !self.buffers[thread as usize].is_empty() {
            self.drain(thread);
        }
    }

    fn load(&mut self, thread: u32, address: u64) -> u64 {
        if let Some(value) = self.buffered(thread, address) {
            return value;
        }
        let node = self.node_of[thread as usize];
        if let Some(way) = self.way(thread, address) {
            if address & CACHED != 0
                && let Some(&(value, _)) = self.copies[node as usize].get(&place(address))
            {
                return value;
            }
            self.arrive_all(way);
        }
        let value = self.memory(place(address));
        if address & CACHED != 0 {
            self.copies[node as usize].insert(place(address), (value, false));
        }
        value
    }

    fn write_back(&mut self, thread: u32, only: Option<Place>, invalidate: bool) {
        let node = self.node_of[thread as usize] as usize;
        let mut copies = std::mem::take(&mut self.copies[node]);
        copies.retain(|&place, (value, newer)| {
            if only.is_some_and(|only| only != place) {
                return true;
            }
            if std::mem::take(newer) {
                let store = Store {
                    address: GLOBAL | u64::from(place.node) << NODE_SHIFT | place.offset,
                    value: *value,
                };
                self.post(thread, store);
            }
            !invalidate
        });
        self.copies[node] = copies;
    }

    fn atomic(&mut self, thread: u32, address: u64, new: impl FnOnce(u64) -> u64) -> Answer {
        if self.way(thread, address).is_some() {
            return Err(Failure::Illegal("an atomic operation through the engine"));
        }
        self.drain_all(thread);
        let before = self.memory(place(address));
        let value = new(before);
        self.perform(Store { address, value });
        Ok(before)
    }

    /// Returns whether the operation that `thread` has asked for can be performed now.
    fn is_ready(&self, thread: u32) -> bool {
        match self.asked[thread as usize] {
            None => false,
            Some(Operation::Wait(flag, until)) => {
                let seen = self.buffered(thread, flag);
                until.holds(seen.unwrap_or_else(|| self.memory(place(flag))) as u8)
            }
            Some(Operation::Take(register)) => self.memory(place(register)) == 0,
            Some(_) => true,
        }
    }

    fn operate(&mut self, thread: u32) -> Answer {
        let Some(operation) = self.asked[thread as usize].take() else {
            return Ok(0);
        };
        match operation {
            Operation::Load(address) | Operation::Wait(address, _) => {
                return Ok(self.load(thread, address));
            }
            Operation::Overtake(address) => {
                let seen = self.buffered(thread, address);
                return Ok(seen.unwrap_or_else(|| self.memory(place(address))));
            }
            Operation::Store(address, value) if address & CACHED != 0 => {
                let node = self.node_of[thread as usize] as usize;
                self.copies[node].insert(place(address), (value, true));
            }
            Operation::Store(address, value) => {
                self.buffers[thread as usize].push_back(Store { address, value });
            }
            Operation::Fence => self.drain_all(thread),
            Operation::Add(at, amount) => {
                return self.atomic(thread, at, |old| old.wrapping_add(amount));
            }
            Operation::Swap(at, value) => return self.atomic(thread, at, |_| value),
            Operation::CompareExchange(at, expected, new) => {
                let swap = |old| if old == expected { new } else { old };
                return self.atomic(thread, at, swap);
            }
            Operation::TestAndSet(register) | Operation::Take(register) => {
                return Ok(self.cells.insert(place(register), 1).unwrap_or(0));
            }
            Operation::Clear(address) => {
                self.drain_all(thread);
                self.post(thread, Store { address, value: 0 });
            }
            Operation::Flush(address) => {
                self.drain_all(thread);
                self.write_back(thread, Some(place(address)), true);
            }
            Operation::WriteBack { invalidate } => {
                self.drain_all(thread);
                self.write_back(thread, None, invalidate);
            }
            Operation::Enter => {
                if let Some(inside) = self.inside.replace(thread) {
                    let entered = thread;
                    return Err(Failure::Overlap { inside, entered });
                }
                self.events.push(Event::Entered(thread));
            }
            Operation::Leave => self.inside = None,
        }
        Ok(0)
    }
}

type Answer = Result<u64, Failure>;

/// Memory, and the threads on it.
pub struct Machine<'p> {
    world: Arc<Mutex<World>>,
    programs: Vec<Option<Pin<Box<dyn Future<Output = ()> + Send + 'p>>>>,
}

impl<'p> Machine<'p> {
    /// Makes a machine of `threads[node]` threads per node; `program` is given a thread's memory
    /// and its number there.
    pub fn new<F>(threads: &[u32], program: impl Fn(TestMemory, u32) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'p,
    {
        let of = |(node, &cores): (u32, &u32)| (0..cores).map(move |core| (node, core));
        let members: Vec<(u32, u32)> = (0..).zip(threads).flat_map(of).collect();
        let world = Arc::new(Mutex::new(World {
            node_of: members.iter().map(|&(node, _)| node).collect(),
            buffers: vec![VecDeque::new(); members.len()],
            copies: vec![BTreeMap::new(); threads.len()],
            asked: vec![None; members.len()],
            answer: vec![0; members.len()],
            history: vec![0; members.len()],
            ..World::default()
        }));
        let mut machine = Self {
            world: Arc::clone(&world),
            programs: Vec::new(),
        };
        for (thread, (node, core)) in (0..).zip(members) {
            let world = Arc::clone(&world);
            let memory = TestMemory {
                world,
                thread,
                node,
            };
            machine.programs.push(Some(Box::pin(program(memory, core))));
            machine.resume(thread);
        }
        machine
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn resume(&mut self, thread: u32) {
        let program = &mut self.programs[thread as usize];
        let mut context = Context::from_waker(Waker::noop());
        if let Some(running) = program
            && running.as_mut().poll(&mut context).is_ready()
        {
            *program = None;
        }
    }

    /// Returns the possible next moves.
    pub fn choices(&self) -> Vec<Choice> {
        let world = self.world();
        let threads = 0..self.programs.len() as u32;
        let runs = threads.clone().filter(|&thread| world.is_ready(thread));
        let drains = threads.filter(|&thread| !world.buffers[thread as usize].is_empty());
        let ways = world.ways.iter().filter(|(_, queue)| !queue.is_empty());
        let delivers = ways.map(|(&(from, to), _)| Choice::Deliver(from, to));
        let runs = runs.map(Choice::Run);
        runs.chain(drains.map(Choice::Drain))
            .chain(delivers)
            .collect()
    }

    /// Lets it happen.
    pub fn take(&mut self, choice: Choice) -> Result<(), Failure> {
        match choice {
            Choice::Drain(thread) => self.world().drain(thread),
            Choice::Deliver(from, to) => self.world().deliver((from, to)),
            Choice::Run(thread) => {
                let mut world = self.world();
                let answer = world.operate(thread)?;
                let mut hasher = DefaultHasher::new();
                (world.history[thread as usize], answer).hash(&mut hasher);
                world.history[thread as usize] = hasher.finish();
                world.answer[thread as usize] = answer;
                drop(world);
                self.resume(thread);
            }
        }
        Ok(())
    }

    /// Nothing can happen any more: whether that is the end of all threads.
    pub fn end(&self) -> Result<(), Failure> {
        let threads = 0..self.programs.len() as u32;
        let waiting: Vec<u32> = threads
            .filter(|&thread| self.programs[thread as usize].is_some())
            .collect();
        match waiting[..] {
            [] => Ok(()),
            _ => Err(Failure::Deadlock { waiting }),
        }
    }

    /// The word at `place`, as it is at its home.
    pub fn at_home(&self, place: Place) -> u64 {
        self.world().memory(place)
    }

    /// Returns the events so far.
    pub fn events(&self) -> Vec<Event> {
        self.world().events.clone()
    }

    /// The same for two machines that have come to the same state: threads do what their answers
    /// so far make them do.
    pub fn state(&self) -> u64 {
        let world = self.world();
        let mut hasher = DefaultHasher::new();
        world.cells.hash(&mut hasher);
        world.buffers.hash(&mut hasher);
        let ways = world.ways.iter().filter(|(_, queue)| !queue.is_empty());
        ways.for_each(|way| way.hash(&mut hasher));
        world.copies.hash(&mut hasher);
        world.history.hash(&mut hasher);
        world.inside.hash(&mut hasher);
        hasher.finish()
    }
}

/// One thread's view.
pub struct TestMemory {
    world: Arc<Mutex<World>>,
    thread: u32,
    node: u32,
}

impl TestMemory {
    /// The thread has the lock.
    pub fn enter(&self) -> impl Future<Output = u64> + Send {
        self.ask(Operation::Enter)
    }

    /// Notes that the thread is about to give the lock back.
    pub fn leave(&self) -> impl Future<Output = u64> + Send {
        self.ask(Operation::Leave)
    }

    /// A load that does not wait for what is on the same way.
    pub fn overtake(&self, word: Word) -> impl Future<Output = u64> + Send {
        self.ask(Operation::Overtake(word.0))
    }

    /// Returns the place to which an address leads.
    pub fn place(address: u64) -> Place {
        place(address)
    }

    fn ask(&self, operation: Operation) -> impl Future<Output = u64> + Send {
        let mut asked = false;
        poll_fn(move |_| {
            let mut world = self.world.lock().unwrap();
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(world.answer[self.thread as usize]);
            }
            world.asked[self.thread as usize] = Some(operation);
            Poll::Pending
        })
    }

    fn address(&self, place: Place, route: Route) -> u64 {
        let kind = match route {
            Route::Nearest => 0,
            Route::Global | Route::Tagged => GLOBAL,
            Route::Cached => GLOBAL | CACHED,
        };
        kind | u64::from(place.node) << NODE_SHIFT | place.offset
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

    async fn read(&self, flag: Flag) -> u8 {
        self.ask(Operation::Load(flag.0)).await as u8
    }

    async fn set(&self, flag: Flag, value: u8) {
        assert!(value < 128, "a flag of eight bits");
        self.ask(Operation::Store(flag.0, value.into())).await;
    }

    async fn wait(&self, flag: Flag, until: Until) -> u8 {
        self.ask(Operation::Wait(flag.0, until)).await as u8
    }

    async fn wait_all(&self, flags: Flags, until: Until) {
        for index in 0..flags.count {
            self.wait(flags.at(index), until).await;
        }
    }

    async fn load(&self, word: Word) -> u64 {
        self.ask(Operation::Load(word.0)).await
    }

    async fn store(&self, word: Word, value: u64) {
        self.ask(Operation::Store(word.0, value)).await;
    }

    async fn fence(&self) {
        self.ask(Operation::Fence).await;
    }
}

impl Atomic for TestMemory {
    fn fetch_add(&self, word: Word, amount: u64) -> impl Future<Output = u64> + Send {
        self.ask(Operation::Add(word.0, amount))
    }

    fn swap(&self, word: Word, value: u64) -> impl Future<Output = u64> + Send {
        self.ask(Operation::Swap(word.0, value))
    }

    fn compare_exchange(
        &self,
        word: Word,
        expected: u64,
        new: u64,
    ) -> impl Future<Output = u64> + Send {
        self.ask(Operation::CompareExchange(word.0, expected, new))
    }
}

impl TestAndSet for TestMemory {
    fn registers(&self) -> u32 {
        1
    }

    async fn test_and_set(&self, register: Register) -> bool {
        self.ask(Operation::TestAndSet(address_of(register))).await == 0
    }

    async fn take(&self, register: Register) {
        self.ask(Operation::Take(address_of(register))).await;
    }

    async fn clear(&self, register: Register) {
        self.ask(Operation::Clear(address_of(register))).await;
    }
}

fn address_of(register: Register) -> u64 {
    let Register { node, number } = register;
    u64::from(node) << NODE_SHIFT | REGISTERS | (8 * u64::from(number))
}

impl Cacheable for TestMemory {
    async fn flush(&self, word: Word) {
        self.ask(Operation::Flush(word.0)).await;
    }

    async fn write_back(&self) {
        self.ask(Operation::WriteBack { invalidate: false }).await;
    }

    async fn write_back_invalidate(&self) {
        self.ask(Operation::WriteBack { invalidate: true }).await;
    }
}
