//! Programs without races on cores without coherence: with the flushes that they need they compute
//! what a plain model does, however their data are mapped; with one left out they compute the same,
//! or the checker of stale reads says so.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_memory::{Cacheable, Memory, Place, Route, Tagged, Until};
use sme_sim::observe::staleness::StaleReport;
use sme_sim::parts::contract::ThreadMemory;

use crate::chip::{MEMORY, chip, flag, place};

/// Lines of data, each mapped in one way and at one core.
const LINES: u64 = 6;
const WORDS: u64 = 4 * LINES;

#[derive(Clone, Copy, Debug)]
struct Line {
    home: u32,
    in_buffer: bool,
    route: Route,
}

/// A step that a thread leaves out in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgets {
    WritesBack,
    Drops,
}

#[derive(Clone, Debug)]
struct Case {
    cores: u32,
    lines: Vec<Line>,
    /// By phase, by core: words, of which those that it owns are stored to and others loaded.
    phases: Vec<Vec<Vec<u64>>>,
    /// Decides who owns which word in which phase.
    owners: u64,
    forgets: Vec<(usize, u32, Forgets)>,
    /// Caches of a few lines.
    small: bool,
}

impl Case {
    fn owner(&self, word: u64, phase: usize) -> u32 {
        let mixed = (self.owners ^ (word << 20) ^ phase as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as u32 % self.cores
    }

    fn at(&self, word: u64) -> (Place, Route) {
        let line = self.lines[(word / 4) as usize];
        let base = if line.in_buffer { 0 } else { MEMORY };
        (
            place(line.home, base + 32 * (word / 4) + 8 * (word % 4)),
            line.route,
        )
    }

    fn leaves_out(&self, phase: usize, core: u32, what: Forgets) -> bool {
        self.forgets.contains(&(phase, core, what))
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let route = prop_oneof![
        Just(Route::Cached),
        Just(Route::Tagged),
        Just(Route::Global)
    ];
    let line = (0u32..48, any::<bool>(), route).prop_map(|(home, in_buffer, route)| Line {
        home,
        in_buffer,
        route,
    });
    (2u32..5, 1usize..4).prop_flat_map(move |(cores, phases)| {
        let acts = prop::collection::vec(0..WORDS, 0..12);
        let phase = prop::collection::vec(acts, cores as usize);
        let forgets = (
            0..phases,
            0..cores,
            prop_oneof![Just(Forgets::WritesBack), Just(Forgets::Drops)],
        );
        (
            prop::collection::vec(line.clone(), LINES as usize),
            prop::collection::vec(phase, phases),
            any::<u64>(),
            prop::collection::vec(forgets, 0..3),
            any::<bool>(),
        )
            .prop_map(move |(lines, phases, owners, forgets, small)| Case {
                cores,
                lines,
                phases,
                owners,
                forgets,
                small,
            })
    })
}

/// The value that is stored to `word` in `phase`.
fn value(word: u64, phase: usize) -> u64 {
    1_000_000 * (phase as u64 + 1) + word
}

/// All cores have come here for the `episode`-th time.
async fn meet(memory: &ThreadMemory, core: u32, cores: u32, episode: u8) {
    memory.set(flag(memory, 0, core.into()), episode).await;
    if core == 0 {
        for other in 0..cores {
            memory
                .wait(flag(memory, 0, other.into()), Until::Is(episode))
                .await;
        }
        for other in 0..cores {
            memory.set(flag(memory, other, 100), episode).await;
        }
    }
    memory
        .wait(flag(memory, core, 100), Until::Is(episode))
        .await;
}

type Loads = Arc<Mutex<Vec<(u32, usize, u64, u64)>>>;

async fn program(memory: ThreadMemory, core: u32, case: Arc<Case>, loads: Loads) {
    for (phase, of_cores) in case.phases.iter().enumerate() {
        if !case.leaves_out(phase, core, Forgets::Drops) {
            for word in (0..WORDS).step_by(4) {
                let (at, route) = case.at(word);
                if route == Route::Cached {
                    memory.flush(memory.word(at, route)).await;
                }
            }
            memory.invalidate_tagged().await;
        }
        for &word in &of_cores[core as usize] {
            let (at, route) = case.at(word);
            let address = memory.word(at, route);
            if case.owner(word, phase) == core {
                memory.store(address, value(word, phase)).await;
            } else if !of_cores[case.owner(word, phase) as usize].contains(&word) {
                // No core stores to it in this phase.
                let loaded = memory.load(address).await;
                loads.lock().unwrap().push((core, phase, word, loaded));
            }
        }
        if !case.leaves_out(phase, core, Forgets::WritesBack) {
            for word in (0..WORDS).step_by(4) {
                let (at, route) = case.at(word);
                if route == Route::Cached {
                    memory.flush(memory.word(at, route)).await;
                    // Ends when what was written back has been performed.
                    memory.load(memory.word(at, Route::Global)).await;
                }
            }
            memory.fence().await;
        }
        meet(&memory, core, case.cores, phase as u8 + 1).await;
    }
}

/// The loads of a run that were wrong, and what the checker says.
fn run(case: &Case) -> (Vec<(u32, usize, u64, u64)>, StaleReport) {
    let sizes = [
        ("cache.l1_size", "1 KiB"),
        ("cache.l1_ways", "1"),
        ("cache.l2_size", "1 KiB"),
        ("cache.l2_ways", "1"),
    ];
    let constants: &[_] = if case.small { &sizes } else { &[] };
    let loads = Loads::default();
    let shared = Arc::new(case.clone());
    let mut machine = chip(constants, case.cores, |memory, core| {
        program(memory, core, Arc::clone(&shared), Arc::clone(&loads))
    });
    machine.check_loads().unwrap();
    machine.run(1, |_| {}).unwrap();
    let report = machine.stale_reads().unwrap();
    let expected = |phase: usize, word: u64| {
        let stored = (0..phase)
            .rev()
            .find(|&phase| case.phases[phase][case.owner(word, phase) as usize].contains(&word));
        stored.map_or(0, |phase| value(word, phase))
    };
    let mut loads = std::mem::take(&mut *loads.lock().unwrap());
    loads.retain(|&(_, phase, word, loaded)| loaded != expected(phase, word));
    (loads, report)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_is_flushed_is_right_and_what_is_not_is_found(case in cases()) {
        let (wrong, report) = run(&case);
        if case.forgets.is_empty() {
            prop_assert_eq!(&wrong, &[]);
            prop_assert_eq!(report.stale_reads, 0, "{}", report);
        }
        prop_assert_eq!(report.stale_reads > 0, !wrong.is_empty(), "{:?}\n{}", wrong, report);
    }
}

/// The checker finds what the property above leaves out at random, in each mapping that has copies.
#[test]
fn a_forgotten_flush_is_found() {
    let word = 1;
    for route in [Route::Cached, Route::Tagged] {
        let line = Line {
            home: 9,
            in_buffer: route == Route::Tagged,
            route,
        };
        let mut case = Case {
            cores: 2,
            lines: vec![line; LINES as usize],
            // Core 1 has a copy before core 0 stores.
            phases: vec![
                vec![vec![], vec![word]],
                // Core 0 has a copy of the line when it stores.
                vec![vec![word + 1, word], vec![]],
                vec![vec![], vec![word]],
            ],
            owners: 0,
            forgets: Vec::new(),
            small: false,
        };
        while (0..3).any(|phase| case.owner(word, phase) != 0) || case.owner(word + 1, 1) == 0 {
            case.owners += 1;
        }
        assert_eq!(run(&case).0, []);
        // A line that core 1 has a copy of; one that core 0 has not written back.
        let keeps = (0..3)
            .flat_map(|phase| [Forgets::WritesBack, Forgets::Drops].map(|what| (phase, 1, what)));
        let leaves = [
            (1, 0, Forgets::WritesBack),
            (2, 0, Forgets::Drops),
            (2, 0, Forgets::WritesBack),
        ];
        for forgets in [keeps.collect(), leaves.to_vec()] {
            // A store to a tagged line leaves with the next store, which is that of a flag.
            if route == Route::Tagged && forgets.len() == leaves.len() {
                continue;
            }
            let case = Case {
                forgets: forgets.clone(),
                ..case.clone()
            };
            let (wrong, report) = run(&case);
            assert_eq!(wrong, [(1, 2, word, 0)], "{forgets:?}");
            assert_eq!(report.stale_reads, 1, "{forgets:?}\n{report}");
        }
    }
}
