//! No constant of a machine is without effect: each, halved or doubled, moves the output of some
//! small workload, or is refused, or stands in a list of exceptions with its reason.

mod clocks;
mod coherent;
mod exceptions;
mod networks;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use sme::program::Program;
use sme_fft_demo::Placement;
use sme_memory::{
    Cacheable, Capability, Futex, Interrupts, Memory, Place, Register, Route, Spawn, Tagged,
    TestAndSet, Timer, Until,
};
use sme_sim::machine::{Constant, Machine, Setup, ValueDomain};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use self::exceptions::exceptions;
use crate::command::{sme, text};

/// A value of a constant in place of the machine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    Halved,
    Doubled,
    /// Another word.
    Other,
}

/// Small runs of the program, the quick ones first.
const COMMANDS: [&str; 15] = [
    "barrier --nodes 8 --cores 16 --episodes 3",
    "barrier --nodes 1 --cores 8 --algorithm flag-phase --placement engine --episodes 3",
    "barrier --nodes 1 --cores 8 --algorithm pthread --episodes 3",
    "barrier --nodes 64 --cores 1 --algorithm flat --episodes 2",
    "barrier --nodes 2 --cores 8 --pin compact --episodes 2",
    "barrier --nodes 2 --cores 40 --pin compact --episodes 2",
    "barrier --nodes 2 --cores 100 --episodes 2",
    "lock --lock test-and-set --nodes 2 --cores 2",
    "mpi infect --nodes 3 --parents 2 --processes 1",
    "mpi bt --nodes 4 --manager mpd --processes 4 --class S --steps 1",
    "network --topology mesh:4x4 --load 0.9 --warmup 5us --measure 10us --drain 20us",
    "fft --log2n 8 --nodes 2 --cores 2",
    "fft --log2n 10 --nodes 2 --cores 16 --memory-nodes 2",
    "radix --keys 512 --nodes 2 --cores 2 --memory-nodes 2",
    "fft --log2n 12 --nodes 1 --cores 1 --memory-nodes 1",
];

/// The number of workloads, the last, that take seconds: exceptions are not tried on them.
const SLOW: usize = 3;

/// The outcome of each workload on the machine called `name` with one constant set.
type Workload = dyn Fn(&str, Option<&str>) -> String;

fn workloads(name: &str) -> Vec<Box<Workload>> {
    let plain = machine(name, None);
    if plain.shape().buffer_bytes > 0 {
        return workloads_of_chip();
    }
    if plain.capabilities().has(Capability::Network) {
        return networks::workloads();
    }
    if plain.shape().coherence.is_some() {
        return coherent::workloads();
    }
    let library: [Box<Workload>; 2] = [Box::new(shared_cores), Box::new(large_arrays)];
    let commands = COMMANDS.map(|command| -> Box<Workload> {
        Box::new(move |name, set| of_command(command, name, set))
    });
    library.into_iter().chain(commands).collect()
}

/// Small runs of the program on a chip with message passing buffers, the quick ones first.
const ON_CHIP: [&str; 13] = [
    "barrier --episodes 3",
    "barrier --nodes 2 --episodes 3 --placement memory",
    "barrier --algorithm flag-phase --placement memory --episodes 3",
    "lock --lock test-and-set --nodes 4",
    "mpi pingpong --partner 47 --sizes 64,32768",
    "mpi pingpong --channel sccmpb --sizes 64",
    "mpi infect --parents 2 --processes 2",
    "mpi bt --manager mpd --processes 4 --class S --steps 1",
    "mpi collective allreduce --ranks 4 --sizes 64 --rounds 1",
    "mpi pscw --targets 2 --rounds 3",
    "fft --log2n 8 --nodes 2 --memory cached",
    "fft --log2n 10 --nodes 1 --memory-nodes 1 --memory cached",
    "mpi pingpong --sizes 262144",
];

fn workloads_of_chip() -> Vec<Box<Workload>> {
    let library: [Box<Workload>; 3] = [
        Box::new(parts_of_core),
        Box::new(one_core),
        Box::new(clocks::clocks_and_voltages),
    ];
    let commands = ON_CHIP.map(|command| -> Box<Workload> {
        Box::new(move |name, set| of_command(command, name, set))
    });
    library.into_iter().chain(commands).collect()
}

/// The times of single instructions, and of interrupts.
fn parts_of_core(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let program = |memory: ThreadMemory, node, _| async move {
        let step = |number| Span::new("step", number);
        memory.begin(step(0)).await;
        memory.now().await;
        memory.end(step(0)).await;
        memory.begin(step(1)).await;
        memory.invalidate_tagged().await;
        memory.end(step(1)).await;
        memory.begin(step(2)).await;
        memory.test_and_set(Register { node, number: 0 }).await;
        memory.end(step(2)).await;
        memory.begin(step(3)).await;
        match node {
            0 => memory.interrupt(1).await,
            _ => memory.take_interrupt().await,
        }
        memory.end(step(3)).await;
        memory.begin(step(4)).await;
        memory.write_back_invalidate().await;
        memory.end(step(4)).await;
    };
    let mut machine = machine
        .build(Setup::new(machine.shape(), 2, 1), program)
        .unwrap();
    machine.run(1, |_| {}).unwrap();
    format!("{:?}", machine.spans().called("step"))
}

/// Threads that share a core: the first spins until the second has run, and waits for its end.
fn one_core(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let setup = Setup::new(machine.shape(), 1, 1).with_room(4);
    let program = |memory: ThreadMemory, node, _| async move {
        let all = Span::new("all", 0);
        memory.begin(all).await;
        let flag = memory.flag(Place { node, offset: 128 }, Route::Nearest);
        let setter = move |memory: ThreadMemory| async move {
            memory.set(flag, 1).await;
        };
        let setter = memory.spawn(Some(0), setter).await;
        memory.wait(flag, Until::Is(1)).await;
        memory.join(setter).await;
        let idle = memory.spawn(Some(0), |_| async {}).await;
        memory.give_way().await;
        memory.join(idle).await;
        let late = move |memory: ThreadMemory| async move {
            memory.delay(Time::from_ns(50_000)).await;
        };
        let late = memory.spawn(Some(0), late).await;
        memory.join(late).await;
        memory.end(all).await;
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    format!("{:?}", machine.spans().called("all"))
}

/// Everything that the program prints, apart from the machine's hash, the change itself and
/// figures of this computer.
fn of_command(command: &str, name: &str, set: Option<&str>) -> String {
    let mut command = command.to_owned();
    // The devices of a pool hold the data.
    if let Some(at) = command.find(" --memory-nodes")
        && machine(name, None).shape().pool_devices > 0
    {
        command.truncate(at);
    }
    let mut arguments = format!("{command} --machine {name} --format json");
    if let Some(set) = set {
        write!(arguments, " --set {set}").unwrap();
    }
    let output = sme(&arguments);
    if !output.status.success() {
        let refusal = text(&output.stderr).to_owned();
        // Without coherent stores a thread may wait for ever.
        let may_fail = set == Some("uncached.coherent_stores=no");
        let is_expected = match output.status.code() {
            Some(1) => may_fail,
            status => status == Some(2),
        };
        assert!(is_expected, "{arguments}: {refusal}");
        return refusal;
    }
    let mut all = String::new();
    for line in text(&output.stdout).lines() {
        let mut row: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).unwrap();
        // A line below the rows is about all of them.
        if row.contains_key("machine") {
            for key in ["machine_hash", "set", "host"] {
                let removed = row.remove(key);
                assert!(
                    removed.is_some() || command.starts_with("coherence"),
                    "{command}: {key}"
                );
            }
        }
        // A throughput table has the constants beside the machine's name.
        if command.starts_with("coherence") {
            row.remove("machine");
        }
        writeln!(all, "{}", serde_json::Value::Object(row)).unwrap();
    }
    all
}

fn machine(name: &str, set: Option<&str>) -> Machine {
    let machine = Machine::builtin(name).unwrap();
    let overrides: Vec<_> = set.iter().filter_map(|set| set.split_once('=')).collect();
    machine.with(&overrides).unwrap()
}

/// Threads that share a core: how long the first takes, which spins until the second has run and
/// then wakes a third that sleeps.
fn shared_cores(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let setup = Setup::new(machine.shape(), 1, 1).with_room(4);
    let program = |memory: ThreadMemory, node, _| async move {
        let all = Span::new("all", 0);
        memory.begin(all).await;
        let flag = memory.flag(Place { node, offset: 128 }, Route::Nearest);
        let gate = memory.word(Place { node, offset: 256 }, Route::Nearest);
        let setter = move |memory: ThreadMemory| async move {
            memory.set(flag, 1).await;
        };
        let setter = memory.spawn(Some(0), setter).await;
        memory.wait(flag, Until::Is(1)).await;
        memory.join(setter).await;

        let sleeper = move |memory: ThreadMemory| async move {
            while memory.load(gate).await == 0 {
                memory.futex_wait(gate, 0).await;
            }
        };
        let sleeper = memory.spawn(Some(0), sleeper).await;
        memory.give_way().await;
        memory.store(gate, 1).await;
        memory.fence().await;
        memory.futex_wake(gate, 1).await;
        memory.join(sleeper).await;
        memory.end(all).await;
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    format!("{:?}", machine.spans().called("all"))
}

/// Returns whether arrays of 3 and of 6 GiB for each of its homes fit into the shared memory of
/// one.
fn large_arrays(name: &str, set: Option<&str>) -> String {
    let program = Program {
        page_bytes: 1 << 30,
        ..Program::new(Arc::new(machine(name, set)), 1, 1)
    };
    let fits = [3, 6].map(|gib: u64| {
        let mut pool = program.pool().unwrap();
        let homes = program.homes().len() as u64;
        match pool.array((homes * gib) << 27, Placement::Block) {
            Ok(_) => "fits".to_owned(),
            Err(refusal) => refusal.to_string(),
        }
    });
    fits.join("\n")
}

/// The values that `constant` is changed to, as `--set` takes them, without those outside its own
/// limits.
fn changes(constant: &Constant) -> Vec<(Change, String)> {
    match &constant.domain {
        ValueDomain::Words(words) => {
            let others = words.iter().filter(|word| **word != constant.value);
            others
                .map(|word| (Change::Other, (*word).to_owned()))
                .collect()
        }
        ValueDomain::Quantity(limits) => {
            let now = constant.amount.unwrap();
            // Of a constant that is 0 neither is a change.
            let changes = [(Change::Halved, now / 2), (Change::Doubled, now * 2)];
            (changes.into_iter().filter(|(_, amount)| *amount != now))
                .map(|(change, amount)| (change, limits.dimension.write(amount)))
                .filter(|(_, written)| limits.parse(written).is_ok())
                .map(|(change, written)| (change, written.replace(' ', "")))
                .collect()
        }
    }
}

/// A workload, and what is known of it.
struct Known {
    run: Box<Workload>,
    /// Its outcome on the machine as it is.
    before: Option<String>,
    /// The seconds that it took last, and a guess before that.
    takes_s: f64,
    /// The probability that the next constant moves it, estimated from those before: neighbours
    /// move the same.
    likely: f64,
}

impl Known {
    /// The workload at that place, where the quick ones come first.
    fn new(place: usize, run: Box<Workload>) -> Self {
        Self {
            run,
            before: None,
            takes_s: 0.01 * (place + 1) as f64,
            likely: 0.3,
        }
    }

    /// Returns whether its outcome is another with `set` on the machine called `name`.
    fn moves(&mut self, name: &str, set: &str) -> bool {
        let before = self.before.get_or_insert_with(|| (self.run)(name, None));
        let begins = Instant::now();
        let moves = (self.run)(name, Some(set)) != *before;
        self.takes_s = begins.elapsed().as_secs_f64();
        self.likely += 0.3 * (f64::from(u8::from(moves)) - self.likely);
        moves
    }
}

/// The changes of the machine called `name` that move nothing.
fn without_effect(name: &str) -> Vec<(String, Change)> {
    let exceptions = exceptions();
    let mut workloads: Vec<Known> = (workloads(name).into_iter().enumerate())
        .map(|(place, run)| Known::new(place, run))
        .collect();
    let mut found = Vec::new();
    let machine = Machine::builtin(name).unwrap();
    for constant in machine.constants().iter().chain(machine.left_out()) {
        for (change, value) in changes(constant) {
            let set = format!("{}={value}", constant.name());
            // Several constants together may refuse it.
            if machine.with(&[(constant.name(), &value)]).is_err() {
                continue;
            }
            let is_exception = exceptions.iter().any(|e| {
                e.is_of(name) && (e.constant, e.change) == (constant.name().as_str(), change)
            });
            let tried = workloads.len() - if is_exception { SLOW } else { 0 };
            // Any that moves is enough: the order decides only how soon it is found.
            let mut order: Vec<usize> = (0..tried).collect();
            let effort = |at: &usize| workloads[*at].takes_s / workloads[*at].likely.max(0.05);
            order.sort_by(|a, b| effort(a).total_cmp(&effort(b)));
            if !order.into_iter().any(|at| workloads[at].moves(name, &set)) {
                found.push((constant.name(), change));
            }
        }
    }
    found
}

/// The changes without effect are those that are known to have none, no more and no fewer.
fn every_constant_acts_on(name: &str) {
    let machine = Machine::builtin(name).unwrap();
    let all = || machine.constants().iter().chain(machine.left_out());
    let has = |constant: &str| all().any(|of| of.name() == constant);
    let exceptions = exceptions();
    let known = exceptions
        .iter()
        .filter(|e| e.is_of(name) && has(e.constant));
    let known: HashSet<_> = known.map(|e| (e.constant.to_owned(), e.change)).collect();
    let found: HashSet<_> = without_effect(name).into_iter().collect();
    let more: Vec<_> = found.difference(&known).collect();
    let fewer: Vec<_> = known.difference(&found).collect();
    assert!(
        more.is_empty() && fewer.is_empty(),
        "{name}: without effect are also {more:?}; {fewer:?} have an effect"
    );
}

#[test]
fn every_constant_of_the_prototype_acts() {
    every_constant_acts_on("sme-prototype");
}

#[test]
fn every_constant_of_the_asic_acts() {
    every_constant_acts_on("sme-asic");
}

#[test]
fn every_constant_of_the_exascale_machine_acts() {
    every_constant_acts_on("exascale");
}

#[test]
fn every_constant_of_the_ideal_machine_acts() {
    every_constant_acts_on("ideal");
}

#[test]
fn every_constant_of_the_pool_acts() {
    every_constant_acts_on("cxl-pool");
}

#[test]
fn every_constant_of_the_pod_acts() {
    every_constant_acts_on("ualink");
}

#[test]
fn every_constant_of_the_scc_acts() {
    every_constant_acts_on("scc");
    every_constant_acts_on("scc-800");
}

#[test]
fn every_constant_of_the_mppa_acts() {
    every_constant_acts_on("mppa256");
}

#[test]
fn every_constant_of_the_coherent_machines_acts() {
    every_constant_acts_on("xeon-e5-2650");
}

#[test]
fn every_constant_of_a_machine_with_owned_copies_acts() {
    every_constant_acts_on("opteron-6272");
}

#[test]
fn every_machine_is_tested() {
    let tested = [
        "sme-prototype",
        "sme-asic",
        "exascale",
        "cxl-pool",
        "ualink",
        "scc",
        "scc-800",
        "mppa256",
        "xeon-e5-2650",
        "opteron-6272",
        "ideal",
    ];
    let names = Machine::builtins().iter().map(|builtin| builtin.name);
    assert!(names.eq(tested));
}
