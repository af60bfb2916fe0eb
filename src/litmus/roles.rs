//! The roles of a run's simulated threads: those of the test, the one that starts them and looks at
//! memory afterwards, and a crowd whose stores delay others.
//!
//! The starter stands on the first node. It and the threads of the test signal to each other by
//! flags in coherent memory, or in the pool that the nodes share, on lines of their own: initial
//! values are in place, copies are warm, go, the end, everything has been performed. Offsets in
//! bytes of a node's shared partition.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_barrier::Homes;
use sme_fft_demo::litmus::{FinalState, Instruction, MOST_THREADS, Observable, Source, Test};
use sme_memory::{Cacheable, Flag, Flags, Memory, Place, Route, Until, Word};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Spread;
use super::timing::{Lead, Timing};

/// Lines that each of the parts of the shared partition has, but the last.
pub(super) const MOST_LINES: usize = 256;

/// Private lines of a thread: each is stored to once in a run.
pub(super) const MOST_PRIVATE: usize = 16;

/// The first private line; not a multiple of the lines of a level-1 cache behind the locations.
const FIRST_PRIVATE: u64 = 4 * MOST_LINES as u64 + 128;

/// Lines that all parts have together.
pub(super) const LINES: u64 = FIRST_PRIVATE + (MOST_THREADS * MOST_PRIVATE) as u64;

/// The regions of a node's memory, in parts of [`MOST_LINES`] lines.
#[derive(Clone, Copy)]
enum Region {
    /// The locations, each at its home.
    Locations,
    /// Signals of the starter to each thread, at that thread's node.
    Go,
    /// Signals of each thread to the starter.
    Done,
    /// Words to which the crowd stores.
    Crowd,
}

/// The name of the spans, one a thread of the test, that begin when the thread hears of the
/// beginning.
pub(super) const HEARD: &str = "heard";

/// The names of the spans, one a thread of the test, in which a rehearsal loads a line that no
/// cache of the node holds, loads it again, and stores to one that has to be fetched through the
/// engine.
pub(super) const MISS: &str = "miss";
pub(super) const HIT: &str = "hit";
pub(super) const FAR: &str = "far";

/// The distance in time at which the threads of a rehearsal measure: longer than that takes on the
/// built-in machines.
const STAGGER: Time = Time::from_ns(100_000);

/// Signals, in the order in which they are given.
const PREPARED: u8 = 1;
const BEGUN: u8 = 2;
const ENDED: u8 = 3;
const KEPT: u8 = 4;

/// The time for which the crowd stores before the threads of the test begin.
const CROWD_FIRST: Time = Time::from_ns(300);

/// The plan of a run of a litmus test, shared by all its threads.
pub(super) struct LitmusPlan {
    pub(super) test: Arc<Test>,
    pub(super) timing: Timing,
    pub(super) route: Route,
    /// Of each location.
    pub(super) homes: Vec<u32>,
    /// The memory that holds a node's lines that other nodes reach, those of the locations apart.
    pub(super) shared: Homes,
    pub(super) spread: Spread,
    pub(super) nodes: u32,
    /// The core of the starter on node 0; cores of that number idle elsewhere.
    pub(super) starter: u32,
    /// Cores of the crowd on each node.
    pub(super) crowd: u32,
    pub(super) line_bytes: u64,
    /// The time by which a thread begins later than others because it hears of the beginning
    /// earlier.
    pub(super) handicaps: Vec<Time>,
    /// Whether the threads measure what a miss takes, instead of performing the test.
    pub(super) rehearses: bool,
    /// Where registers, and in the end memory, are written down.
    pub(super) reached: Mutex<FinalState>,
}

impl LitmusPlan {
    /// The lines that `node` and others reach: where they begin.
    fn shared(&self, node: u32) -> Place {
        let (node, before) = self.shared.locate(node);
        Place {
            node,
            offset: u64::from(before) * LINES * self.line_bytes,
        }
    }

    fn signal(&self, memory: &ThreadMemory, node: u32, region: Region, line: u64) -> Flag {
        let line = region as u64 * MOST_LINES as u64 + line;
        let place = self.shared(node).plus(line * self.line_bytes);
        memory.flag(place, Route::Nearest)
    }

    fn place(&self, node: u32, region: Region, line: u64) -> Place {
        let line = region as u64 * MOST_LINES as u64 + line;
        Place {
            node,
            offset: line * self.line_bytes,
        }
    }

    /// The name of the variable at `place`, for reports.
    pub(super) fn variable(&self, place: Place) -> Option<String> {
        let most = MOST_LINES as u64;
        let line = place.offset / self.line_bytes;
        let number = line % most;
        let of_thread = |what: &str| {
            (number < u64::from(self.threads())).then(|| format!("thread {number}'s {what}"))
        };
        match line / most {
            region if region == Region::Locations as u64 => {
                let home = self.homes.get(number as usize);
                let is_there = home.is_some_and(|&home| home == place.node);
                is_there.then(|| self.test.name_of(Observable::Location(number as usize)))
            }
            region if region == Region::Go as u64 => of_thread("go"),
            region if region == Region::Done as u64 => of_thread("done"),
            region if region == Region::Crowd as u64 && number == most - 1 => {
                Some(format!("node {}'s crowd's go", place.node))
            }
            _ => None,
        }
    }

    /// The private line `number` of `thread`, on its own node.
    fn private(&self, memory: &ThreadMemory, thread: u32, number: usize, route: Route) -> Word {
        let number = number % MOST_PRIVATE;
        let line = FIRST_PRIVATE + u64::from(thread) * MOST_PRIVATE as u64 + number as u64;
        let (node, _) = self.seat(thread);
        let offset = line * self.line_bytes;
        let place = match route {
            Route::Nearest => Place { node, offset },
            Route::Global | Route::Cached | Route::Tagged => self.shared(node).plus(offset),
        };
        memory.word(place, route)
    }

    fn location(&self, memory: &ThreadMemory, number: usize, route: Route) -> Word {
        let place = self.place(self.homes[number], Region::Locations, number as u64);
        memory.word(place, route)
    }

    /// The node and core of a thread of the test.
    fn seat(&self, thread: u32) -> (u32, u32) {
        match self.spread {
            Spread::OneNode => (0, thread),
            Spread::OnePerNode => (thread, 0),
        }
    }

    /// Which thread of the test sits there.
    fn thread_at(&self, node: u32, core: u32) -> Option<u32> {
        let threads = self.threads();
        match self.spread {
            Spread::OneNode => (node == 0 && core < threads).then_some(core),
            Spread::OnePerNode => (core == 0 && node < threads).then_some(node),
        }
    }

    fn threads(&self) -> u32 {
        self.test.threads.len() as u32
    }

    /// By which the starter reaches `thread`, or a node's crowd.
    fn go(&self, memory: &ThreadMemory, thread: u32) -> Flag {
        let (node, _) = self.seat(thread);
        self.signal(memory, node, Region::Go, thread.into())
    }

    fn crowd_go(&self, memory: &ThreadMemory, node: u32) -> Flag {
        let line = MOST_LINES as u64 - 1;
        self.signal(memory, node, Region::Crowd, line)
    }

    fn done(&self, memory: &ThreadMemory, thread: u32) -> Flag {
        self.signal(memory, 0, Region::Done, thread.into())
    }

    /// The route past the caches: what home says.
    fn past_caches(&self) -> Route {
        match self.route {
            Route::Nearest => Route::Nearest,
            Route::Global | Route::Cached | Route::Tagged => Route::Global,
        }
    }
}

/// The program of `core` on `node`.
pub(super) async fn perform(memory: ThreadMemory, node: u32, core: u32, plan: Arc<LitmusPlan>) {
    if let Some(thread) = plan.thread_at(node, core) {
        test_thread(&memory, thread, &plan).await;
    } else if core == plan.starter && node == 0 {
        starter(&memory, &plan).await;
    } else if core > plan.starter && node < plan.nodes {
        one_of_crowd(&memory, node, core, &plan).await;
    }
}

async fn test_thread(memory: &ThreadMemory, thread: u32, plan: &LitmusPlan) {
    let number = thread as usize;
    let (go, done) = (plan.go(memory, thread), plan.done(memory, thread));
    memory.wait(go, Until::Is(PREPARED)).await;
    for (location, &warm) in plan.timing.warm[number].iter().enumerate() {
        if warm {
            let word = plan.location(memory, location, plan.route);
            memory.load(word).await;
        }
    }
    memory.set(done, PREPARED).await;
    memory.wait(go, Until::Is(BEGUN)).await;
    memory.begin(Span::new(HEARD, thread)).await;
    memory.end(Span::new(HEARD, thread)).await;
    let ahead = match plan.timing.crowd {
        Some(_) => CROWD_FIRST,
        None => Time::ZERO,
    };
    let lag = ahead + plan.handicaps[number] + plan.timing.lags[number];
    memory.delay(lag).await;
    if plan.rehearses {
        measure(memory, thread, plan).await;
    } else {
        perform_instructions(memory, thread, plan).await;
    }
    memory.fence().await;
    memory.set(done, BEGUN).await;
    memory.wait(go, Until::Is(ENDED)).await;

    // Everything is brought home only when no thread of the test has anything to do any more: the
    // final state is memory's, and no outcome depends on how early a thread was done.
    memory.delay(plan.timing.settling[number]).await;
    let (node, core) = plan.seat(thread);
    let brings_home = plan.route == Route::Cached && core == 0;
    if let Some(kept) = plan.timing.kept.as_ref().filter(|_| brings_home) {
        let is_kept = |&location: &usize| kept.get(location) == Some(&(node as usize));
        let (last, first): (Vec<usize>, Vec<usize>) = (0..plan.homes.len()).partition(is_kept);
        bring_home(memory, plan, &first).await;
        memory.set(done, ENDED).await;
        memory.wait(go, Until::Is(KEPT)).await;
        bring_home(memory, plan, &last).await;
        memory.set(done, KEPT).await;
        return;
    }
    if brings_home {
        memory.write_back().await;
    }
    if plan.route != Route::Nearest {
        all_at_home(memory, plan).await;
    }
    memory.set(done, ENDED).await;
    memory.wait(go, Until::Is(KEPT)).await;
    memory.set(done, KEPT).await;
}

/// Writes back the copies that the node has of `locations`, and ends when they are at home.
async fn bring_home(memory: &ThreadMemory, plan: &LitmusPlan, locations: &[usize]) {
    for &location in locations {
        memory
            .flush(plan.location(memory, location, plan.route))
            .await;
    }
    all_at_home(memory, plan).await;
}

/// Ends when everything that the thread has sent to the homes of the locations is performed there.
async fn all_at_home(memory: &ThreadMemory, plan: &LitmusPlan) {
    // A load does not overtake what was stored before on the same way.
    for location in 0..plan.homes.len() {
        let word = plan.location(memory, location, Route::Global);
        memory.load(word).await;
    }
}

/// Performs the instructions of `thread`, each behind what leads to it.
async fn perform_instructions(memory: &ThreadMemory, thread: u32, plan: &LitmusPlan) {
    let number = thread as usize;
    let mut registers = plan.reached.lock().registers[number];
    let mut private = 0;
    let instructions = &plan.test.threads[number];
    for (instruction, lead) in instructions.iter().zip(&plan.timing.leads[number]) {
        let Lead {
            ahead,
            stores,
            halt,
        } = lead;
        if *ahead > Time::ZERO {
            memory.delay(*ahead).await;
        }
        for &route in stores {
            let word = plan.private(memory, thread, private, route);
            memory.store(word, 1).await;
            private += 1;
        }
        if *halt > Time::ZERO {
            memory.delay(*halt).await;
        }
        let value_of = |source| match source {
            Source::Immediate(value) => value,
            Source::Register(register) => registers[register.number()],
        };
        match *instruction {
            Instruction::Load { to, from } => {
                let word = plan.location(memory, from, plan.route);
                registers[to.number()] = memory.load(word).await as i32;
            }
            Instruction::Store { to, value } => {
                let word = plan.location(memory, to, plan.route);
                memory.store(word, as_word(value_of(value))).await;
            }
            Instruction::Move { to, value } => registers[to.number()] = value_of(value),
            Instruction::Fence => memory.fence().await,
        }
    }
    plan.reached.lock().registers[number] = registers;
}

/// Lets one thread after the other load and store what no cache holds.
async fn measure(memory: &ThreadMemory, thread: u32, plan: &LitmusPlan) {
    memory.delay(STAGGER.times(thread.into())).await;
    let near = plan.private(memory, thread, 0, Route::Nearest);
    for name in [MISS, HIT] {
        let span = Span::new(name, thread);
        memory.begin(span).await;
        memory.load(near).await;
        memory.end(span).await;
    }
    let far = plan.private(memory, thread, 1, Route::Cached);
    let span = Span::new(FAR, thread);
    memory.begin(span).await;
    memory.store(far, 1).await;
    memory.fence().await;
    memory.end(span).await;
}

async fn starter(memory: &ThreadMemory, plan: &LitmusPlan) {
    let all_done = Flags {
        first: plan.done(memory, 0),
        stride: plan.line_bytes as u32,
        count: plan.threads(),
    };
    for (number, (_, value)) in plan.test.locations.iter().enumerate() {
        if *value != 0 {
            let word = plan.location(memory, number, plan.past_caches());
            memory.store(word, as_word(*value)).await;
            // It is there before any thread is told.
            memory.load(word).await;
        }
    }
    memory.fence().await;
    for thread in 0..plan.threads() {
        memory.set(plan.go(memory, thread), PREPARED).await;
    }
    memory.wait_all(all_done, Until::Is(PREPARED)).await;
    for thread in 0..plan.threads() {
        memory.set(plan.go(memory, thread), BEGUN).await;
    }
    if plan.crowd > 0 {
        for node in 0..plan.nodes {
            memory.set(plan.crowd_go(memory, node), BEGUN).await;
        }
    }
    memory.wait_all(all_done, Until::Is(BEGUN)).await;
    for thread in 0..plan.threads() {
        memory.set(plan.go(memory, thread), ENDED).await;
    }
    memory.wait_all(all_done, Until::Is(ENDED)).await;
    for thread in 0..plan.threads() {
        memory.set(plan.go(memory, thread), KEPT).await;
    }
    memory.wait_all(all_done, Until::Is(KEPT)).await;
    for number in 0..plan.homes.len() {
        let word = plan.location(memory, number, plan.past_caches());
        let value = memory.load(word).await as i32;
        plan.reached.lock().memory[number] = value;
    }
}

/// Stores to the home of one location, beside it, so often that others have to wait.
async fn one_of_crowd(memory: &ThreadMemory, node: u32, core: u32, plan: &LitmusPlan) {
    let Some(crowd) = plan.timing.crowd else {
        return;
    };
    if !crowd.is_on(node) {
        return;
    }
    memory
        .wait(plan.crowd_go(memory, node), Until::Is(BEGUN))
        .await;
    // The crowds of all nodes begin at the same time, as far as the test's threads there do.
    let handicap = plan.thread_at(node, 0).map(|thread| thread as usize);
    let handicap = handicap.and_then(|thread| plan.handicaps.get(thread));
    memory.delay(handicap.copied().unwrap_or_default()).await;
    let line = u64::from(core - plan.starter - 1);
    let place = plan.place(plan.homes[crowd.beside], Region::Crowd, line);
    let word = memory.word(place, Route::Global);
    for store in 0..crowd.stores {
        memory.store(word, store.into()).await;
    }
}

/// A value as a word of memory holds it.
fn as_word(value: i32) -> u64 {
    i64::from(value) as u64
}
