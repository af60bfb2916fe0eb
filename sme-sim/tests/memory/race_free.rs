//! Programs without races, with the flushes that they need, notice nothing of caches on any
//! machine; with one flush left out they compute the same or the checker of stale reads says so.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::Config;
use sme_memory::{Cacheable, Memory, Place, Route, Until};

use sme_sim::machine::{Readable, System};
use sme_sim::observe::staleness::StaleReport;
use sme_sim::observe::traffic::CacheTraffic;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::machines::{Program, Shape, cluster, flag, ns, place, read_back, shapes};

const LINES: u64 = 6;
const WORDS: u64 = 8 * LINES;
/// Words that are handed over within a phase, each in a line of its own.
const MESSAGES: u64 = 3;

/// The accesses of one thread in one phase.
#[derive(Clone, Debug)]
struct Phase {
    /// Words to load or store, with a delay before.
    acts: Vec<(u64, u64, bool)>,
}

/// One word handed over in a phase from a thread to another.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    to: u32,
    route: Route,
}

/// The flush that a program leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgets {
    Nothing,
    /// The node's write-back between this phase and the next.
    WriteBack(u32, usize),
    /// To drop the copies: it writes back only.
    Invalidate(u32, usize),
    /// To wait for what has been written back.
    ReadBack(u32, usize),
    /// The sender's flush of this phase's message.
    SenderFlush(usize),
    /// The receiver's.
    ReceiverFlush(usize),
}

#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    topology: &'static str,
    nodes: u32,
    threads: u32,
    whole_lines: bool,
    /// By thread, by phase.
    program: Vec<Vec<Phase>>,
    messages: Vec<Vec<Message>>,
    /// A number that decides who stores where.
    owners: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let machine = prop_oneof![
        Just(("mesh:2x1", 2u32)),
        Just(("mesh:2x2", 3)),
        Just(("torus:2x2", 4)),
        Just(("mesh:3x1", 3)),
        Just(("mesh:2x1", 1)),
    ];
    let sizes = (machine, 1..=3u32, 2..=4usize);
    (sizes, shapes(true)).prop_flat_map(|(((topology, nodes), threads, phases), shape)| {
        let act = (
            prop_oneof![3 => Just(0u64), 1 => 0..2_000u64],
            0..WORDS,
            any::<bool>(),
        );
        let phase = prop::collection::vec(act, 0..14).prop_map(|acts| Phase { acts });
        let all = nodes * threads;
        let route = prop_oneof![
            4 => Just(Route::Cached),
            1 => Just(Route::Global)
        ];
        let message =
            (0..all, 0..all, route).prop_map(|(from, to, route)| Message { from, to, route });
        let messages = prop::collection::vec(message, 0..=MESSAGES as usize);
        (
            prop::collection::vec(prop::collection::vec(phase, phases), all as usize),
            prop::collection::vec(messages, phases),
            any::<(bool, u64)>(),
        )
            .prop_map(move |(program, messages, (whole_lines, owners))| Case {
                shape: shape.clone(),
                topology,
                nodes,
                threads,
                whole_lines,
                program,
                messages,
                owners: owners >> 16,
            })
    })
}

/// The observations of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Of each thread, what it loaded.
    loads: Vec<Vec<u64>>,
    homes: Vec<u64>,
    end: Time,
    events: u64,
    traffic: CacheTraffic,
    report: StaleReport,
}

fn first(word: u64) -> u64 {
    7_000 + word
}

fn stored(phase: usize, who: u32, number: usize) -> u64 {
    1_000_000 * (phase as u64 + 1) + 1_000 * u64::from(who) + number as u64
}

impl Case {
    fn phases(&self) -> usize {
        self.messages.len()
    }

    fn at(&self, word: u64) -> Place {
        let line = word / 8;
        place((line % u64::from(self.nodes)) as u32, 8 * word)
    }

    fn message_at(&self, number: usize) -> Place {
        let home = (number as u32 + 1) % self.nodes;
        place(home, 64 * (LINES + 2 + number as u64))
    }

    /// Returns the thread that may store to a word in a phase; the others may load it unless it
    /// does. Of a line that is written back as a whole, all words are one node's.
    fn owner(&self, phase: usize, word: u64) -> u32 {
        let mix = |x: u64| (x ^ self.owners).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let phase = phase as u64;
        let all = u64::from(self.nodes * self.threads);
        if self.whole_lines {
            let line = 8 * word / self.shape.line_bytes;
            let node = mix(phase * 64 + line) % u64::from(self.nodes);
            let thread = mix(phase * 1024 + word) % u64::from(self.threads);
            (node * u64::from(self.threads) + thread) as u32
        } else {
            (mix(phase * 1024 + word) % all) as u32
        }
    }

    fn stores(&self, phase: usize, who: u32, act: (u64, u64, bool)) -> bool {
        act.2 && self.owner(phase, act.1) == who
    }

    /// Returns whether any thread stores to the word in the phase.
    fn is_stored(&self, phase: usize, word: u64) -> bool {
        let owner = self.owner(phase, word);
        let acts = &self.program[owner as usize][phase].acts;
        acts.iter().any(|act| act.1 == word && act.2)
    }

    /// Returns whether it may load the word in the phase.
    fn may_load(&self, phase: usize, who: u32, word: u64) -> bool {
        self.owner(phase, word) == who || !self.is_stored(phase, word)
    }

    async fn thread(
        self,
        memory: ThreadMemory,
        who: u32,
        forgets: Forgets,
        loads: Arc<Mutex<Vec<Vec<u64>>>>,
    ) {
        let tell = |value| loads.lock().unwrap()[who as usize].push(value);
        for phase in 0..self.phases() {
            for (number, &act) in self.program[who as usize][phase].acts.iter().enumerate() {
                if act.0 > 0 {
                    memory.delay(ns(act.0)).await;
                }
                let word = memory.word(self.at(act.1), Route::Cached);
                if self.stores(phase, who, act) {
                    memory.store(word, stored(phase, who, number)).await;
                } else if self.may_load(phase, who, act.1) {
                    tell(memory.load(word).await);
                }
            }
            for (number, &message) in self.messages[phase].iter().enumerate() {
                self.pass(&memory, who, (phase, number), message, forgets, &tell)
                    .await;
            }
            self.barrier(&memory, who, phase, forgets).await;
        }
    }

    /// A thread's part in a message, if it has any.
    async fn pass(
        &self,
        memory: &ThreadMemory,
        who: u32,
        (phase, number): (usize, usize),
        message: Message,
        forgets: Forgets,
        tell: &impl Fn(u64),
    ) {
        let place = self.message_at(number);
        let word = memory.word(place, message.route);
        let ready = flag(memory, message.to / self.threads, 200 + number as u32);
        if who == message.from {
            memory.store(word, stored(phase, 99, number)).await;
            if forgets != Forgets::SenderFlush(phase) {
                memory.flush(word).await;
            }
            memory
                .load(memory.word(crate::machines::place(place.node, 0x20000), Route::Global))
                .await;
            memory.set(ready, phase as u8 + 1).await;
        }
        if who == message.to {
            memory.wait(ready, Until::Is(phase as u8 + 1)).await;
            if forgets != Forgets::ReceiverFlush(phase) {
                memory.flush(word).await;
            }
            tell(memory.load(word).await);
        }
    }

    /// A barrier with its coherence point: a node's threads gather, the first of them brings memory
    /// up to date, and the first of all releases the others.
    async fn barrier(&self, memory: &ThreadMemory, who: u32, phase: usize, forgets: Forgets) {
        let turn = phase as u8 + 1;
        let (node, core) = (who / self.threads, who % self.threads);
        let released = |node, core| flag(memory, node, 100 + core);
        if core > 0 {
            memory.set(flag(memory, node, core), turn).await;
            memory.wait(released(node, core), Until::Is(turn)).await;
            return;
        }
        for other in 1..self.threads {
            memory
                .wait(flag(memory, node, other), Until::Is(turn))
                .await;
        }
        let is = |forgotten| forgets == forgotten;
        if is(Forgets::Invalidate(node, phase)) {
            memory.write_back().await;
        } else if !is(Forgets::WriteBack(node, phase)) {
            memory.write_back_invalidate().await;
        }
        if !is(Forgets::ReadBack(node, phase)) {
            read_back(memory, self.nodes).await;
        }
        if node > 0 {
            memory.set(flag(memory, 0, 50 + node), turn).await;
            memory.wait(released(node, 0), Until::Is(turn)).await;
        } else {
            for other in 1..self.nodes {
                memory
                    .wait(flag(memory, 0, 50 + other), Until::Is(turn))
                    .await;
            }
            for other in 1..self.nodes {
                memory.set(released(other, 0), turn).await;
            }
        }
        for other in 1..self.threads {
            memory.set(released(node, other), turn).await;
        }
    }

    /// Returns the values that every thread must load, and those left at home.
    fn expected(&self) -> (Vec<Vec<u64>>, Vec<u64>) {
        let mut memory: Vec<u64> = (0..WORDS).map(first).collect();
        let mut loads = vec![Vec::new(); self.program.len()];
        for phase in 0..self.phases() {
            for who in 0..self.program.len() as u32 {
                let acts = &self.program[who as usize][phase].acts;
                for (number, &act) in acts.iter().enumerate() {
                    if self.stores(phase, who, act) {
                        memory[act.1 as usize] = stored(phase, who, number);
                    } else if self.may_load(phase, who, act.1) {
                        loads[who as usize].push(memory[act.1 as usize]);
                    }
                }
                for (number, message) in self.messages[phase].iter().enumerate() {
                    if message.to == who {
                        loads[who as usize].push(stored(phase, 99, number));
                    }
                }
            }
        }
        (loads, memory)
    }

    fn run(&self, workers: usize, forgets: Forgets) -> Result<Seen, TestCaseError> {
        let writes = if self.whole_lines { "line" } else { "mask" };
        let shape = self.shape.clone().and("cache.writeback", writes);
        let setup = shape.setup(self.topology, self.nodes, self.threads);
        let loads = Arc::new(Mutex::new(vec![Vec::new(); self.program.len()]));
        let mut cluster = cluster(setup, |memory, node, core| -> Program {
            let who = node * self.threads + core;
            let loads = Arc::clone(&loads);
            Box::pin(self.clone().thread(memory, who, forgets, loads))
        })
        .unwrap();
        cluster.check_loads().unwrap();
        for word in 0..WORDS {
            cluster.preset(self.at(word), first(word));
        }
        prop_assert_eq!(cluster.run(workers, |_| {}), Ok(()));
        prop_assert!(cluster.is_quiet(), "something is still under way");
        let homes = (0..WORDS).map(|word| cluster.at_home(self.at(word)));
        let loads = loads.lock().unwrap().clone();
        Ok(Seen {
            loads,
            homes: homes.collect(),
            end: cluster.end(),
            events: cluster.events(),
            traffic: cluster.cache_traffic(),
            report: cluster.stale_reads().unwrap(),
        })
    }
}

/// Picks the `which`th flush of `case` to leave out.
fn something(case: &Case, which: usize) -> Forgets {
    let phase = which / 8 % case.phases();
    let node = (which / 64) as u32 % case.nodes;
    match which % 5 {
        0 => Forgets::WriteBack(node, phase),
        1 => Forgets::Invalidate(node, phase),
        2 => Forgets::ReadBack(node, phase),
        3 => Forgets::SenderFlush(phase),
        _ => Forgets::ReceiverFlush(phase),
    }
}

proptest! {
    #![proptest_config(Config { cases: 150, ..Config::default() })]

    #[test]
    fn race_free_programs_notice_nothing(case in cases(), workers in 2..=3usize) {
        let seen = case.run(1, Forgets::Nothing)?;
        let (loads, homes) = case.expected();
        prop_assert_eq!(&seen.loads, &loads);
        prop_assert_eq!(&seen.homes, &homes);
        prop_assert!(seen.report.is_clean(), "{}", seen.report);
        prop_assert_eq!(seen.report.racing_loads, 0, "{}", seen.report);
        prop_assert_eq!(case.run(workers, Forgets::Nothing)?, seen);
    }

    #[test]
    fn what_is_forgotten_is_reported_or_harmless(case in cases(), which in 0..4096usize) {
        let forgets = something(&case, which);
        let seen = case.run(1, forgets)?;
        if seen.report.is_clean() {
            let (loads, _) = case.expected();
            prop_assert_eq!(&seen.loads, &loads, "{:?}", forgets);
        }
    }
}
