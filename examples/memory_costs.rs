//! The cost of accesses, flushes, coherence points and hand-overs of the lock on the simulated
//! cluster: the tables of docs/programs.md.
//!
//! `cargo run --release --example memory_costs`

use std::error::Error;
use std::process::ExitCode;

use sme::barrier::lock::LockKind;
use sme::lock::{Data, LockPlan};
use sme::prelude::*;
use sme::sim::machine::Setup;
use sme::sim::parts::contract::{Span, ThreadMemory};

const LINE: u64 = 64;
/// Times that an access is repeated.
const TIMES: u64 = 48;

/// What one thread of node 0 does, alone, to the memory of `home`.
#[derive(Clone, Copy)]
enum Step {
    /// Loads a line that its first level has.
    FirstLevel,
    /// Loads a line that its second level has and its first has not.
    SecondLevel,
    /// Loads a line that no cache of the node has.
    Fill { home: u32 },
    /// Loads a word past the caches.
    Uncached { home: u32 },
    /// Stores a word past the caches.
    Posted,
    /// Flushes a line, modified or not.
    Flush { modified: bool },
    /// Flushes a modified line and loads from its home: then it is there.
    FlushHome,
    /// Writes everything back and drops it, of which so many lines are modified, and loads from
    /// their home.
    All { modified: u64 },
}

const STEPS: [(&str, Step); 12] = [
    ("load, hit in the first level", Step::FirstLevel),
    ("load, hit in the second level", Step::SecondLevel),
    (
        "load, line filled from the own node",
        Step::Fill { home: 0 },
    ),
    ("load, line filled from a neighbour", Step::Fill { home: 1 }),
    ("uncached load from a neighbour", Step::Uncached { home: 1 }),
    ("uncached store, until it is posted", Step::Posted),
    ("`flush` of a clean line", Step::Flush { modified: false }),
    (
        "`flush` of a modified line, until it is posted",
        Step::Flush { modified: true },
    ),
    ("the same and the read-back", Step::FlushHome),
    (
        "`write_back_invalidate` of nothing and the read-back",
        Step::All { modified: 0 },
    ),
    ("of 64 modified lines", Step::All { modified: 64 }),
    ("of 1024 modified lines", Step::All { modified: 1024 }),
];

impl Step {
    /// The word of the access `index`.
    fn word(self, memory: &ThreadMemory, index: u64) -> Word {
        // Three lines that contend for two ways of the first level, and not of the second.
        let (route, home, line) = match self {
            Step::FirstLevel => (Route::Cached, 1, 0),
            Step::SecondLevel => (Route::Cached, 1, index % 3 * 512),
            Step::Fill { home } => (Route::Cached, home, index),
            Step::Uncached { home } => (Route::Global, home, index),
            Step::Posted => (Route::Global, 1, index),
            Step::Flush { .. } | Step::FlushHome | Step::All { .. } => (Route::Cached, 1, index),
        };
        let offset = LINE * (1 + line);
        memory.word(Place { node: home, offset }, route)
    }

    /// What must be so before it is measured.
    async fn prepare(self, memory: &ThreadMemory) {
        let (lines, modified) = match self {
            Step::FirstLevel | Step::SecondLevel => (3, false),
            Step::Fill { .. } | Step::Uncached { .. } | Step::Posted => (0, false),
            Step::Flush { modified } => (TIMES, modified),
            Step::FlushHome => (TIMES, true),
            Step::All { modified } => (modified, true),
        };
        for index in 0..lines {
            let word = self.word(memory, index);
            match modified {
                true => memory.store(word, index).await,
                false => drop(memory.load(word).await),
            }
        }
        // What was prepared is not to get in the way.
        memory.fence().await;
        memory.delay(Time::from_ns(20_000)).await;
    }

    /// How often it is done.
    fn times(self) -> u64 {
        match self {
            Step::All { .. } => 1,
            _ => TIMES,
        }
    }

    async fn once(self, memory: &ThreadMemory, index: u64) {
        let word = self.word(memory, index);
        match self {
            Step::Posted => {
                memory.store(word, index).await;
                memory.fence().await;
            }
            Step::Flush { .. } => memory.flush(word).await,
            Step::FlushHome => {
                memory.flush(word).await;
                read_back(memory).await;
            }
            Step::All { .. } => {
                memory.write_back_invalidate().await;
                read_back(memory).await;
            }
            _ => drop(memory.load(word).await),
        }
    }

    /// How long it takes, in ns.
    fn measured(self, machine: &Machine) -> Result<f64, Box<dyn Error>> {
        let timed = Span::new("timed", 0);
        let setup = Setup::new(machine.shape(), 2, 1);
        let mut machine = machine.build(setup, |memory, node, _| async move {
            if node == 0 {
                self.prepare(&memory).await;
                memory.begin(timed).await;
                for index in 0..self.times() {
                    self.once(&memory, index).await;
                }
                memory.end(timed).await;
            }
        })?;
        machine.run(1, |_| {})?;
        let times = machine.spans().called(timed.name)[0];
        Ok(times.last_end.since(times.first_begin).as_ns() / self.times() as f64)
    }
}

/// Ends when everything posted to node 1 has been performed there.
async fn read_back(memory: &ThreadMemory) {
    let place = Place { node: 1, offset: 0 };
    memory.load(memory.word(place, Route::Global)).await;
}

/// Threads that modify lines, and meet at barriers.
struct Meet {
    data: Array,
    /// Lines that each thread modifies before each barrier.
    lines: u64,
}

impl Kernel for Meet {
    fn phases(&self) -> Vec<&'static str> {
        vec!["begin", "first", "second", "third"]
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        Box::new(std::iter::empty())
    }

    async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
        for round in 0..4 {
            for line in 0..self.lines {
                let index = (u64::from(team.number()) * self.lines + line) * (LINE / 8);
                let word = self.data.word(team.memory(), index, Route::Cached);
                team.memory().store(word, round).await;
            }
            team.barrier().await;
        }
    }
}

/// From the last arrival to the last departure, in us: the mean of three barriers.
fn barrier(on: &Program, point: CoherencePoint, lines: u64) -> Result<f64, Box<dyn Error>> {
    let program = Program {
        point,
        ..on.clone()
    };
    let words = u64::from(program.threads()) * lines.max(1) * (LINE / 8);
    let data = program.pool()?.array(words, Placement::Random)?;
    let (outcome, ()) = program.run(&Arc::new(Meet { data, lines }), |_, _| {})?;
    let total: f64 = outcome
        .phases
        .iter()
        .map(|phase| phase.barrier.as_us())
        .sum();
    Ok(total / outcome.phases.len() as f64)
}

/// A hand-over of the lock within a node and between nodes, in us.
fn lock(on: &Program, data: Data) -> Result<(f64, f64), Box<dyn Error>> {
    let plan = LockPlan {
        machine: Arc::clone(&on.machine),
        topology: on.topology.clone(),
        nodes: on.nodes,
        cores: on.cores,
        lock: LockKind::Cohort,
        acquisitions: 2,
        passes: 3,
        data,
        seed: 1,
        workers: 1,
    };
    let report = plan.run()?;
    let mean = |of: Option<Time>| of.map(Time::as_us).ok_or("there was no hand-over");
    Ok((mean(report.within.mean())?, mean(report.across.mean())?))
}

fn main() -> ExitCode {
    exit_code(tables())
}

fn tables() -> Result<(), Box<dyn Error>> {
    let machine = Arc::new(Machine::builtin("sme-prototype")?);
    println!("| one thread, alone | ns |\n|---|---:|");
    for (name, step) in STEPS {
        println!("| {name} | {:.1} |", step.measured(&machine)?);
    }

    println!(
        "\n| nodes × 4 threads | barrier alone [us] | nothing modified [us] | 64 lines per node modified [us] |"
    );
    println!("|---|---:|---:|---:|");
    let sizes = [4, 16, 64].map(|nodes| Program::new(Arc::clone(&machine), nodes, 4));
    for on in &sizes {
        let alone = barrier(on, CoherencePoint::None, 0)?;
        let clean = barrier(on, CoherencePoint::Barrier, 0)?;
        let modified = barrier(on, CoherencePoint::Barrier, 16)?;
        println!("| {} | {alone:.1} | {clean:.1} | {modified:.1} |", on.nodes);
    }

    println!(
        "\n| nodes × 4 threads | data under the lock | within a node [us] | between nodes [us] |"
    );
    println!("|---|---|---:|---:|");
    for on in &sizes {
        for &data in Data::ALL {
            let (within, across) = lock(on, data)?;
            println!("| {} | {data} | {within:.2} | {across:.2} |", on.nodes);
        }
    }
    Ok(())
}
