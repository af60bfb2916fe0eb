//! The suite of [`sme_memory::conformance`] on native memory and on every kind of simulated
//! machine; memories that are broken on purpose, which it must find out; and the table of
//! docs/conformance.md.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use sme_hdl::blocks::engine::Engine;
use sme_hdl::device::Clocked;
use sme_hdl::rtl_engine::{RtlEngine, Surroundings};
use sme_memory::conformance::{
    Case, Machine as Tested, NODES, Program, THREADS, Whole, cases, check,
};
use sme_memory::native::OnThreads;
use sme_memory::{
    AnyFlag, Atomic, Blocks, Cacheable, Capabilities, Flag, Flags, Futex, Interrupts, Memory, Own,
    Place, Register, Route, Spawn, Tagged, TestAndSet, ThreadId, Timer, Until, Word,
};
use sme_sim::families::sme;
use sme_sim::families::sme::cluster::{Cluster, Plugged};
use sme_sim::kernel::peers::Alone;
use sme_sim::machine::{Machine, Readable, Setup, family_names};
use sme_sim::parts::contract::ThreadMemory;

/// A simulated machine.
#[derive(Clone, Copy)]
struct Simulated {
    name: &'static str,
    constants: &'static [(&'static str, &'static str)],
    /// With engines in RTL.
    rtl: bool,
}

impl Simulated {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            constants: &[],
            rtl: false,
        }
    }

    fn machine(&self) -> Machine {
        let machine = Machine::builtin(self.name).unwrap();
        machine.with(self.constants).unwrap()
    }

    /// With room for a child of each thread.
    fn setup(machine: &Machine) -> Setup {
        Setup::new(machine.shape(), NODES, THREADS).with_room(2 * THREADS)
    }

    fn run(&self, program: impl FnMut(ThreadMemory, u32, u32) -> Program) -> Result<(), String> {
        let machine = self.machine();
        let setup = Self::setup(&machine);
        let mut built: Box<dyn Readable> = match self.rtl {
            false => machine.build(setup, program).unwrap(),
            true => {
                let spec = sme::of(&machine).unwrap();
                let topology = setup.topology.clone();
                let surroundings = Arc::new(Surroundings::new(spec, &topology, NODES));
                let engine = |node| {
                    let engine = Clocked::new(Engine::new(spec, &topology, NODES).unwrap());
                    Plugged::Other(Box::new(RtlEngine::new(engine, &surroundings, node)))
                };
                Box::new(Cluster::among(&Alone, (spec, setup), program, engine))
            }
        };
        built.run(1, |_| {}).map_err(|failure| failure.to_string())
    }
}

impl Tested for Simulated {
    type Memory = ThreadMemory;

    fn capabilities(&self) -> Capabilities {
        self.machine().capabilities()
    }

    fn run(
        &self,
        program: &mut dyn FnMut(ThreadMemory, u32, u32) -> Program,
    ) -> Result<(), String> {
        self.run(program)
    }
}

const IDEAL: Simulated = Simulated::new("ideal");

/// Simulated machines, as the table calls them.
const SIMULATED: [(&str, Simulated); 7] = [
    ("SME", Simulated::new("sme-prototype")),
    (
        "SME, bytes written back",
        Simulated {
            constants: &[("cache.writeback", "mask")],
            ..Simulated::new("sme-prototype")
        },
    ),
    (
        "SME, lines of 32 B",
        Simulated {
            constants: &[("cache.line", "32 B"), ("coherence.homes", "lines")],
            ..Simulated::new("sme-prototype")
        },
    ),
    (
        "SME, engines in RTL",
        Simulated {
            rtl: true,
            ..Simulated::new("sme-prototype")
        },
    ),
    ("SCC", Simulated::new("scc")),
    ("ideal", IDEAL),
    (
        "ideal, lines of 32 B",
        Simulated {
            constants: &[("node.line", "32 B")],
            ..IDEAL
        },
    ),
];

/// The names of the cases that `machine` runs, all of which it must pass.
fn passed(name: &str, machine: &impl Tested) -> BTreeSet<&'static str> {
    let outcomes = check(machine);
    for (case, outcome) in &outcomes {
        assert_eq!(outcome, &Ok(()), "{name}: {}", case.name);
    }
    outcomes.iter().map(|(case, _)| case.name).collect()
}

/// Every machine conforms, and the document says for what each is tested.
#[test]
fn every_machine_conforms_as_the_table_says() {
    let native = ("native", passed("native", &OnThreads));
    let simulated = SIMULATED.map(|(name, machine)| (name, passed(name, &machine)));
    let tested = SIMULATED.map(|(_, simulated)| simulated.machine().family_name().to_owned());
    assert!(family_names().all(|family| tested.iter().any(|tested| tested == family)));
    let columns: Vec<_> = [native].into_iter().chain(simulated).collect();
    let mut table = String::from("| Property | Capability |");
    for (name, _) in &columns {
        write!(table, " {name} |").unwrap();
    }
    table += "\n|---|---|";
    table += &"---|".repeat(columns.len());
    table.push('\n');
    for case in cases::<ThreadMemory>() {
        write!(table, "| {} | {} |", case.name, case.needs).unwrap();
        for (_, passed) in &columns {
            let mark = if passed.contains(case.name) {
                "yes"
            } else {
                "–"
            };
            write!(table, " {mark} |").unwrap();
        }
        table.push('\n');
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/conformance.md");
    let document = fs::read_to_string(&file).unwrap();
    let (before, rest) = document.split_once("| Property").unwrap();
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let present = format!("{before}{table}\n{after}");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &present).unwrap();
    } else {
        assert!(
            document == present,
            "docs/conformance.md: run .ci/refresh\n{table}"
        );
    }
}

// ---------------------------------------------------------------------------- broken on purpose

/// A defect of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    LosesStores,
    WritesNeighbour,
    SetsBeforeStores,
    SetsWholeWord,
    WaitsForTheFirst,
    ReturnsWhatIsAwaited,
    KeepsCopies,
    DropsWithoutWritingBack,
    WritesNothingBack,
    DropsNothing,
    AddsInTwoSteps,
    SwapReturnsTheNew,
    ExchangesAlways,
    WakesNobody,
    SleepsWithoutLooking,
    FindsItClear,
    NeverSets,
    JoinsAtOnce,
    CopiesTooLittle,
    ReturnsTheFirst,
    KeepsTaggedCopies,
    StoresWholeLines,
    TakesNoInterrupt,
    StandsStill,
    FindsNothing,
}

/// Each fault, with a case that must find it.
const FAULTS: [(Fault, &str); 25] = [
    (
        Fault::LosesStores,
        "a thread loads what it has stored at another node",
    ),
    (
        Fault::WritesNeighbour,
        "a thread loads what it has stored, and nothing beside it has changed",
    ),
    (
        Fault::SetsBeforeStores,
        "a flag is seen only after earlier stores to its node",
    ),
    (
        Fault::SetsWholeWord,
        "flags side by side are written by different threads",
    ),
    (
        Fault::WaitsForTheFirst,
        "a wait for many flags ends when all of them hold",
    ),
    (
        Fault::ReturnsWhatIsAwaited,
        "a wait for another value returns the one that ended it",
    ),
    (
        Fault::KeepsCopies,
        "a copy that was dropped comes again as it is at home",
    ),
    (
        Fault::DropsWithoutWritingBack,
        "what is stored into a copy gets home when it is flushed",
    ),
    (
        Fault::WritesNothingBack,
        "writing all back keeps what the copies hold",
    ),
    (
        Fault::DropsNothing,
        "dropping all copies lets another node's writes be seen",
    ),
    (
        Fault::AddsInTwoSteps,
        "no addition is lost, and no two return the same",
    ),
    (
        Fault::SwapReturnsTheNew,
        "a swap returns what the one before it has written",
    ),
    (
        Fault::ExchangesAlways,
        "of those who compare and exchange one wins",
    ),
    (Fault::WakesNobody, "who sleeps on a word is woken"),
    (
        Fault::SleepsWithoutLooking,
        "a thread does not sleep on a word that has changed",
    ),
    (
        Fault::FindsItClear,
        "of those who test a register one finds it clear",
    ),
    (
        Fault::NeverSets,
        "what was done under a register is seen by who takes it next",
    ),
    (
        Fault::JoinsAtOnce,
        "a thread that was started sees what was done before, and is waited for",
    ),
    (Fault::CopiesTooLittle, "a block of words arrives whole"),
    (
        Fault::ReturnsTheFirst,
        "a wait for any of many flags returns one that holds",
    ),
    (
        Fault::FindsNothing,
        "a look at many flags finds one that holds, and none where none does",
    ),
    (
        Fault::KeepsTaggedCopies,
        "tagged stores are seen after a fence, once copies are dropped",
    ),
    (
        Fault::StoresWholeLines,
        "tagged stores to some bytes of a line leave the others alone",
    ),
    (
        Fault::TakesNoInterrupt,
        "an interrupt is taken once, after what was done before it",
    ),
    (
        Fault::StandsStill,
        "the time advances, and does not begin at zero",
    ),
];

/// The ideal machine's memory with a fault.
#[derive(Clone)]
struct Faulty {
    memory: ThreadMemory,
    fault: Fault,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn at_another_node(&self, word: Word) -> bool {
        // The ideal machine's addresses: a node's memory of 4 GiB after the other's.
        (word.0 & (u64::MAX >> 1)) >> 32 != u64::from(self.memory.node())
    }
}

impl Memory for Faulty {
    fn node(&self) -> u32 {
        self.memory.node()
    }

    fn flag(&self, place: Place, route: Route) -> Flag {
        self.memory.flag(place, route)
    }

    fn word(&self, place: Place, route: Route) -> Word {
        // The ideal machine keeps no copies of tagged lines: cached ones take their place.
        let route = match route {
            Route::Tagged if self.is(Fault::KeepsTaggedCopies) => Route::Cached,
            _ => route,
        };
        self.memory.word(place, route)
    }

    async fn read(&self, flag: Flag) -> u8 {
        self.memory.read(flag).await
    }

    async fn set(&self, flag: Flag, value: u8) {
        if self.is(Fault::SetsWholeWord) {
            let word = Word(flag.0 & !7);
            let value = u64::from(value) << (8 * (flag.0 % 8));
            self.memory.store(word, value).await;
        } else {
            self.memory.set(flag, value).await;
        }
    }

    async fn wait(&self, flag: Flag, until: Until) -> u8 {
        match (self.is(Fault::ReturnsWhatIsAwaited), until) {
            (true, Until::IsNot(old)) => {
                self.memory.wait(flag, until).await;
                old
            }
            _ => self.memory.wait(flag, until).await,
        }
    }

    async fn wait_all(&self, flags: Flags, until: Until) {
        let count = match self.is(Fault::WaitsForTheFirst) {
            true => flags.count.min(1),
            false => flags.count,
        };
        // The last is set first: so that the wait does end too early, it looks at that one.
        let first =
            flags.first.0 + u64::from(flags.stride * (flags.count - count.min(flags.count)));
        let first = Flag(first);
        self.memory
            .wait_all(
                Flags {
                    first,
                    count,
                    ..flags
                },
                until,
            )
            .await;
    }

    async fn load(&self, word: Word) -> u64 {
        self.memory.load(word).await
    }

    async fn store(&self, word: Word, value: u64) {
        match self.fault {
            Fault::LosesStores if self.at_another_node(word) => {}
            Fault::WritesNeighbour => {
                self.memory.store(word, value).await;
                self.memory.store(Word(word.0 ^ 8), value).await;
            }
            Fault::StoresWholeLines => {
                self.memory.store(word, value).await;
                for other in [8, 16, 24] {
                    self.memory.store(Word(word.0 ^ other), 0).await;
                }
            }
            Fault::SetsBeforeStores if self.at_another_node(word) => {
                // The store leaves later than the thread's next operation.
                let (memory, late) = (self.memory.clone(), self.memory.clone());
                let store = move |_| async move {
                    late.store(word, value).await;
                };
                memory.spawn(None, store).await;
            }
            _ => self.memory.store(word, value).await,
        }
    }

    async fn fence(&self) {
        self.memory.fence().await;
    }
}

impl Cacheable for Faulty {
    async fn flush(&self, word: Word) {
        match self.fault {
            Fault::KeepsCopies | Fault::DropsWithoutWritingBack => {}
            _ => self.memory.flush(word).await,
        }
    }

    async fn write_back(&self) {
        if !self.is(Fault::WritesNothingBack) {
            self.memory.write_back().await;
        }
    }

    async fn write_back_invalidate(&self) {
        match self.is(Fault::DropsNothing) {
            true => self.memory.write_back().await,
            false => self.memory.write_back_invalidate().await,
        }
    }
}

impl Atomic for Faulty {
    async fn fetch_add(&self, word: Word, amount: u64) -> u64 {
        if self.is(Fault::AddsInTwoSteps) {
            let value = self.memory.load(word).await;
            self.memory.store(word, value + amount).await;
            return value;
        }
        self.memory.fetch_add(word, amount).await
    }

    async fn swap(&self, word: Word, value: u64) -> u64 {
        let before = self.memory.swap(word, value).await;
        match self.is(Fault::SwapReturnsTheNew) {
            true => value,
            false => before,
        }
    }

    async fn compare_exchange(&self, word: Word, expected: u64, new: u64) -> u64 {
        if self.is(Fault::ExchangesAlways) {
            self.memory.swap(word, new).await;
            return expected;
        }
        self.memory.compare_exchange(word, expected, new).await
    }
}

impl Futex for Faulty {
    async fn futex_wait(&self, word: Word, expected: u64) {
        let expected = match self.is(Fault::SleepsWithoutLooking) {
            true => self.memory.load(word).await,
            false => expected,
        };
        self.memory.futex_wait(word, expected).await;
    }

    async fn futex_wake(&self, word: Word, count: u32) -> u32 {
        match self.is(Fault::WakesNobody) {
            true => 0,
            false => self.memory.futex_wake(word, count).await,
        }
    }
}

impl TestAndSet for Faulty {
    fn registers(&self) -> u32 {
        self.memory.registers()
    }

    async fn test_and_set(&self, register: Register) -> bool {
        let was_clear = self.memory.test_and_set(register).await;
        was_clear || self.is(Fault::FindsItClear)
    }

    async fn take(&self, register: Register) {
        if !self.is(Fault::NeverSets) {
            self.memory.take(register).await;
        }
    }

    async fn clear(&self, register: Register) {
        self.memory.clear(register).await;
    }
}

impl Spawn for Faulty {
    async fn spawn<P, F>(&self, core: Option<u32>, program: P) -> ThreadId
    where
        P: FnOnce(Self) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let fault = self.fault;
        let program = move |memory| program(Faulty { memory, fault });
        self.memory.spawn(core, program).await
    }

    async fn join(&self, thread: ThreadId) {
        if !self.is(Fault::JoinsAtOnce) {
            self.memory.join(thread).await;
        }
    }

    async fn give_way(&self) {}
}

impl Blocks for Faulty {
    async fn put(&self, to: Word, words: &[u64], from: Option<Own>) {
        let count = words.len() - usize::from(self.is(Fault::CopiesTooLittle));
        self.memory.put(to, &words[..count], from).await;
    }

    async fn get(&self, from: Word, words: &mut [u64], to: Option<Own>) {
        self.memory.get(from, words, to).await;
    }
}

impl AnyFlag for Faulty {
    async fn find_any(&self, flags: Flags, first: u32, until: Until) -> Option<u32> {
        let found = self.memory.find_any(flags, first, until).await;
        match self.is(Fault::FindsNothing) {
            true => None,
            false => found,
        }
    }

    async fn wait_any(&self, flags: Flags, until: Until) -> u32 {
        let index = self.memory.wait_any(flags, until).await;
        match self.is(Fault::ReturnsTheFirst) {
            true => 0,
            false => index,
        }
    }
}

impl Tagged for Faulty {
    async fn invalidate_tagged(&self) {
        self.memory.invalidate_tagged().await;
    }
}

impl Interrupts for Faulty {
    async fn interrupt(&self, node: u32) {
        self.memory.interrupt(node).await;
    }

    async fn take_interrupt(&self) {
        if !self.is(Fault::TakesNoInterrupt) {
            self.memory.take_interrupt().await;
        }
    }
}

impl Timer for Faulty {
    async fn now(&self) -> u64 {
        match self.is(Fault::StandsStill) {
            true => 1,
            false => self.memory.now().await,
        }
    }
}

/// The ideal machine with such a memory.
struct Broken(Fault);

impl Tested for Broken {
    type Memory = Faulty;

    fn capabilities(&self) -> Capabilities {
        Tested::capabilities(&IDEAL)
    }

    fn run(&self, program: &mut dyn FnMut(Faulty, u32, u32) -> Program) -> Result<(), String> {
        let fault = self.0;
        IDEAL.run(|memory, node, thread| program(Faulty { memory, fault }, node, thread))
    }
}

fn case<M: Whole>(name: &str) -> Case<M> {
    let found = cases().into_iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("there is no case {name:?}"))
}

/// Each case finds a fault of its own, and finds nothing where there is none.
#[test]
fn every_case_finds_a_broken_memory_out() {
    passed("the same without a fault", &Broken(Fault::None));
    for (fault, name) in FAULTS {
        let outcome = case(name).run(&Broken(fault));
        assert!(outcome.is_err(), "{name} does not find {fault:?}");
    }
    let named: BTreeSet<&str> = FAULTS.iter().map(|(_, name)| *name).collect();
    let all: BTreeSet<&str> = cases::<Faulty>().iter().map(|case| case.name).collect();
    assert_eq!(named, all, "every case has a fault to find");
}
