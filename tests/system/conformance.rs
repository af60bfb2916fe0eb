//! The suite of [`sme_memory::conformance`] on native memory and on every kind of simulated
//! machine; memories that are broken on purpose, which it must find out; and the table of
//! docs/conformance.md.

mod faulty;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sme_hdl::blocks::engine::Engine;
use sme_hdl::device::Clocked;
use sme_hdl::rtl_engine::{RtlEngine, Surroundings};
use sme_memory::conformance::{
    Case, Machine as Tested, NODES, Program, THREADS, Whole, cases, check,
};
use sme_memory::native::OnThreads;
use sme_memory::{Capabilities, Capability};
use sme_sim::families::sme;
use sme_sim::families::sme::cluster::{Cluster, Plugged};
use sme_sim::kernel::peers::Alone;
use sme_sim::machine::{Machine, Readable, Setup, family_names};
use sme_sim::parts::contract::ThreadMemory;

use faulty::{Fault, Faulty};

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

const MPPA: Simulated = Simulated::new("mppa256");

/// Simulated machines, as the table calls them.
const SIMULATED: [(&str, Simulated); 10] = [
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
    ("Xeon E5-2650", Simulated::new("xeon-e5-2650")),
    ("Opteron 6272", Simulated::new("opteron-6272")),
    ("MPPA", MPPA),
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

/// Each fault, with a case that must find it.
const FAULTS: [(Fault, &str); 34] = [
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
        "of several threads that compare and exchange one succeeds",
    ),
    (
        Fault::WakesNobody,
        "a thread that sleeps on a word is woken",
    ),
    (
        Fault::SleepsWithoutLooking,
        "a thread does not sleep on a word that has changed",
    ),
    (
        Fault::FindsItClear,
        "of several threads that test a register one finds it clear",
    ),
    (
        Fault::NeverSets,
        "the next holder of a register sees what was done under it",
    ),
    (
        Fault::JoinsAtOnce,
        "a thread that was started sees what was done before, and is waited for",
    ),
    (
        Fault::LosesSignals,
        "signals to a thread queue, and are taken after what was done before",
    ),
    (Fault::CopiesTooLittle, "a block of words arrives whole"),
    (
        Fault::PassesTooLittle,
        "passes over words load, store and copy each",
    ),
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
    (
        Fault::SendsTooLittle,
        "what is sent to a buffer is there when the flag is set",
    ),
    (
        Fault::SetsEventsOnly,
        "what is sent to a buffer is there when the flag is set",
    ),
    (
        Fault::TellsOfEachTransfer,
        "a buffer tells of every so many transfers, from all nodes",
    ),
    (
        Fault::OverwritesMessages,
        "messages of a queue lie in its slots in the order of each sender",
    ),
    (Fault::SendsToOne, "one transfer reaches several nodes"),
    (
        Fault::SetsBits,
        "a mailbox counts what came before and what comes later",
    ),
    (
        Fault::HearsItself,
        "signals of all nodes fill a mailbox, round after round",
    ),
];

/// A machine with such a memory.
struct Broken(Simulated, Fault);

impl Tested for Broken {
    type Memory = Faulty;

    fn capabilities(&self) -> Capabilities {
        Tested::capabilities(&self.0)
    }

    fn run(&self, program: &mut dyn FnMut(Faulty, u32, u32) -> Program) -> Result<(), String> {
        let Self(machine, fault) = *self;
        machine.run(|memory, node, thread| program(Faulty { memory, fault }, node, thread))
    }
}

fn case<M: Whole>(name: &str) -> Case<M> {
    let found = cases().into_iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("there is no case {name:?}"))
}

/// Each case finds a fault of its own, and finds nothing where there is none.
#[test]
fn every_case_finds_a_broken_memory_out() {
    for machine in [IDEAL, MPPA] {
        passed("the same without a fault", &Broken(machine, Fault::None));
    }
    for (fault, name) in FAULTS {
        let case = case(name);
        let machine = match case.needs {
            Capability::Network => MPPA,
            _ => IDEAL,
        };
        let outcome = case.run(&Broken(machine, fault));
        assert!(outcome.is_err(), "{name} does not find {fault:?}");
    }
    let named: BTreeSet<&str> = FAULTS.iter().map(|(_, name)| *name).collect();
    let all: BTreeSet<&str> = cases::<Faulty>().iter().map(|case| case.name).collect();
    assert_eq!(named, all, "every case has a fault to find");
}
