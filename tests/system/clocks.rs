//! Clocks and voltages that programs invade with their cores: none changes those of cores that it
//! does not hold, and cores that are given back are as they were at the begin.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme_memory::{Domains, Memory as _, Scaling as _, Spawn as _, Timer as _};
use sme_mpi::process::Board;
use sme_mpi::process::clocks::NotSet;
use sme_mpi::process::command::{Command, Program};
use sme_mpi::process::daemon::Daemon;
use sme_mpi::process::invade::Wish;
use sme_mpi::process::sigmod::Sigmod;
use sme_mpi::processor::Free;
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::energy::Energy;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::command::{sme_in, text};

const CORES: u32 = 48;

/// Cores whose tiles and islands the programs want: those of two islands.
const WANTED: [u32; 16] = [0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19];

type Library = Sigmod<ThreadMemory, Free>;

/// A program's doings, in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// It holds this core from then on at the latest.
    Holds(u32, u64),
    /// It has given it back by then at the latest.
    Gave(u32, u64),
    /// It has begun and ended to command these cores' clocks or voltages.
    Commands(u32, u64, u64),
}

type Deeds = Arc<Mutex<Vec<(Program, Deed)>>>;

/// One turn of a program.
#[derive(Clone, Debug)]
struct Turn {
    first: usize,
    most: u32,
    dividers: Vec<(u32, Option<u32>)>,
    voltage: Option<(u32, Option<u32>)>,
    rests_ns: u64,
    /// It commands clocks past the daemons.
    is_wrong: bool,
}

fn domains(machine: &Machine) -> Domains {
    machine.shape().domains.clone().unwrap()
}

/// Runs `turns` of programs on cores of their own, the last of the chip; what they did, and the
/// changes.
fn run(programs: &[Vec<Turn>]) -> (Vec<(Program, Deed)>, Energy) {
    let machine = Machine::builtin("scc-800").unwrap();
    let board = Board::at_end(CORES, 8192).unwrap();
    let of = Arc::new(domains(&machine));
    let deeds: Deeds = Arc::default();
    let running = Arc::new(Mutex::new(programs.len()));
    let started = |memory: ThreadMemory, node: u32, _| {
        let turns = programs.get((CORES - 1 - node) as usize).cloned();
        let (of, deeds, running) = (Arc::clone(&of), Arc::clone(&deeds), Arc::clone(&running));
        async move {
            let holder = turns.is_some().then_some(node as Program);
            let daemon = Daemon::start(memory.clone(), Free, board, holder).await;
            let daemon = daemon.with_domains(Arc::clone(&of));
            if let Some(turns) = turns {
                let program = move |memory: ThreadMemory| async move {
                    for turn in turns {
                        let library = Sigmod::new(memory.clone(), Free, board);
                        takes_turn(&library, &memory, (&of, &deeds), turn).await;
                    }
                    let left = {
                        let mut running = running.lock();
                        *running -= 1;
                        *running
                    };
                    if left == 0 {
                        let library = Sigmod::new(memory, Free, board);
                        let all: Vec<u32> = (0..CORES).collect();
                        library.all(&all, Command::Stop).await;
                    }
                };
                memory.spawn(None, program).await;
            }
            daemon.run().await;
        }
    };
    let setup = Setup::new(machine.shape(), CORES, 1).with_room(3);
    let mut built = machine.build(setup, started).unwrap();
    built.run(1, |_| {}).unwrap();
    let deeds = std::mem::take(&mut *deeds.lock());
    (deeds, built.energy().unwrap())
}

async fn takes_turn(
    library: &Library,
    memory: &ThreadMemory,
    (domains, deeds): (&Domains, &Deeds),
    turn: Turn,
) {
    let program = memory.node() as Program;
    let mut candidates = WANTED.to_vec();
    candidates.rotate_left(turn.first);
    let wish = Wish {
        least: 1,
        most: turn.most,
        candidates,
        contiguous: false,
    };
    let cores = library.invade(program, &wish).await;
    let at = memory.now().await;
    let holds = cores.iter().map(|&core| (program, Deed::Holds(core, at)));
    deeds.lock().extend(holds);
    for &(tile, divider) in &turn.dividers {
        let begin = memory.now().await;
        let set = library
            .set_frequency(program, domains, (tile, divider))
            .await;
        let end = memory.now().await;
        let all = in_domain(&domains.tiles, tile);
        expects(set, &all, &cores);
        let commands = all.map(|core| (program, Deed::Commands(core, begin, end)));
        deeds.lock().extend(commands);
    }
    if let Some((island, millivolts)) = turn.voltage {
        let begin = memory.now().await;
        let set = library
            .set_voltage(program, domains, (island, millivolts))
            .await;
        let end = memory.now().await;
        let all = in_domain(&domains.islands, island);
        expects(set, &all, &cores);
        let commands = all.map(|core| (program, Deed::Commands(core, begin, end)));
        deeds.lock().extend(commands);
    }
    if turn.is_wrong {
        memory.set_divider(8).await.unwrap();
    }
    memory.delay(Time::from_ns(turn.rests_ns)).await;
    library.release(program, &cores).await;
    let at = memory.now().await;
    let gave = cores.iter().map(|&core| (program, Deed::Gave(core, at)));
    deeds.lock().extend(gave);
}

fn in_domain(domains: &[u32], domain: u32) -> impl Iterator<Item = u32> + Clone {
    let cores = (0..).zip(domains);
    cores
        .filter(move |&(_, &of)| of == domain)
        .map(|(core, _)| core)
}

/// A command succeeds only if the program holds all cores; which it knows.
fn expects(set: Result<(), NotSet>, all: &(impl Iterator<Item = u32> + Clone), own: &[u32]) {
    let lacks = all.clone().find(|core| !own.contains(core));
    match set {
        Ok(()) => assert_eq!(lacks, None),
        Err(NotSet::NotHeld { core, .. }) => assert!(!own.contains(&core)),
        Err(NotSet::TooFast { .. }) => assert_eq!(lacks, None),
        Err(NotSet::NoSuch) => panic!("there is"),
    }
}

/// The first violation: a change away from the begin outside a command of a program that holds all
/// cores of the domain, or one that outlasts that.
fn check(deeds: &[(Program, Deed)], energy: &Energy) -> Result<(), String> {
    let machine = Machine::builtin("scc-800").unwrap();
    let of = domains(&machine);
    // From the last time before `at` at which `program` came to hold `core` until it gave it back.
    let held = |program: Program, core: u32, at: u64| {
        let mut since = None;
        for &(_, deed) in deeds.iter().filter(|(by, _)| *by == program) {
            match deed {
                Deed::Holds(of, from) if of == core && from <= at => since = Some(from),
                Deed::Gave(of, until)
                    if of == core && since.is_some_and(|since| since <= until) =>
                {
                    if at <= until {
                        return Some(until);
                    }
                    since = None;
                }
                _ => {}
            }
        }
        None
    };
    for (is_clock, domains) in [(true, &of.tiles), (false, &of.islands)] {
        for core in 0..CORES {
            let is_away = |divider: u32, millivolts: u32| match is_clock {
                true => divider != of.divider,
                false => millivolts != of.millivolts,
            };
            let changes = energy.changes.iter().filter(|change| change.core == core);
            let mut until = None;
            let mut was_away = false;
            for change in changes {
                let at = change.at.as_ps() / 1_000;
                let away = is_away(change.divider, change.millivolts);
                if let Some(until) = until.filter(|&until| at > until) {
                    return Err(format!(
                        "core {core} is as it was at {at} ns, after {until} ns"
                    ));
                }
                if away && !was_away {
                    let all: Vec<u32> = in_domain(domains, domains[core as usize]).collect();
                    let commands = deeds.iter().find_map(|&(program, deed)| match deed {
                        Deed::Commands(of, begin, end)
                            if of == core && begin <= at && at <= end =>
                        {
                            let ends = all.iter().map(|&core| held(program, core, at));
                            ends.collect::<Option<Vec<u64>>>()?.into_iter().min()
                        }
                        _ => None,
                    });
                    until = Some(commands.ok_or_else(|| {
                        format!("no holder of {all:?} commands core {core} at {at} ns")
                    })?);
                }
                if !away {
                    until = None;
                }
                was_away = away;
            }
            if was_away {
                return Err(format!("core {core} is not as it was at the end"));
            }
        }
    }
    Ok(())
}

fn turn() -> impl Strategy<Value = Turn> {
    let divider = prop_oneof![Just(None), (2..17_u32).prop_map(Some)];
    let tile = prop::sample::select(vec![0, 1, 6, 7, 2, 3, 8, 9_u32]);
    let voltage = prop_oneof![
        Just(None),
        (7..12_u32).prop_map(|tenths| Some(100 * tenths))
    ];
    (
        0..16_usize,
        prop_oneof![1..17_u32, Just(8), Just(16)],
        prop::collection::vec((tile, divider), 0..5),
        prop::option::of((0..2_u32, voltage)),
        0..300_000_u64,
    )
        .prop_map(|(first, most, dividers, voltage, rests_ns)| Turn {
            first,
            most,
            dividers,
            voltage,
            rests_ns,
            is_wrong: false,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nobody_changes_the_clock_of_cores_that_it_does_not_hold(
        programs in prop::collection::vec(prop::collection::vec(turn(), 1..5), 1..4),
    ) {
        let (deeds, energy) = run(&programs);
        let checked = check(&deeds, &energy);
        prop_assert_eq!(checked, Ok(()));
        // The same again.
        let (_, again) = run(&programs);
        prop_assert_eq!(energy, again);
    }
}

/// A whole island at a lower clock and voltage, given back at once.
#[test]
fn an_island_is_slowed_and_comes_back() {
    let turn = Turn {
        first: 0,
        most: 8,
        dividers: [0, 1, 6, 7].map(|tile| (tile, Some(4))).to_vec(),
        voltage: Some((0, Some(700))),
        rests_ns: 5_000_000,
        is_wrong: false,
    };
    let (deeds, energy) = run(&[vec![turn]]);
    check(&deeds, &energy).unwrap();
    let low = energy
        .changes
        .iter()
        .filter(|change| change.millivolts == 700);
    assert_eq!(low.clone().count(), 8);
    assert!(low.clone().all(|change| change.divider == 4));
    // 5 ms at 0.7 V, and a millisecond until the voltage is back.
    let lowered = energy.lowered.as_us() / 8.0;
    assert!((6_000.0..6_200.0).contains(&lowered), "{lowered}");
}

/// The checker finds a program that commands a clock past the daemons.
#[test]
fn a_command_past_the_daemons_is_found() {
    let turn = Turn {
        first: 0,
        most: 1,
        dividers: Vec::new(),
        voltage: None,
        rests_ns: 1_000,
        is_wrong: true,
    };
    let (deeds, energy) = run(&[vec![turn]]);
    let found = check(&deeds, &energy).unwrap_err();
    assert!(found.contains("no holder of [46, 47]"), "{found}");
}

/// `sme mpi power`: with the divider of the begin the run of `sme mpi simpson`; slower cores take
/// less energy and leave the result as it is; whole islands go to a lower voltage where all their
/// cores wait; wrong flags.
#[test]
fn the_command_shows_what_slower_cores_save() {
    let directory = tempfile::tempdir().unwrap();
    let rows = |line: &str| -> Vec<serde_json::Value> {
        let ran = sme_in(directory.path(), &format!("{line} --no-host --format json"));
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        let lines = text(&ran.stdout).lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    let flags = "--tolerance 0.0001 --points 200000";
    let slowed = rows(&format!("mpi power {flags} --dividers 2,4,16"));
    let kept = rows(&format!("mpi power {flags} --dividers 4 --keep-voltage"));
    let plain = rows(&format!("mpi simpson {flags} --variant invasive"));
    for key in ["energy_j", "time_s", "messages"] {
        assert_eq!(slowed[0][key], plain[0][key], "{key}");
    }
    let energies: Vec<f64> = slowed.iter().map(|row| number(row, "energy_j")).collect();
    assert!(
        energies.is_sorted_by(|one, next| one > next),
        "{energies:?}"
    );
    assert_eq!(slowed[1]["frequency_mhz"], 400.0);
    assert_eq!(slowed[1]["voltage_v"], 0.7);
    assert!(number(&slowed[1], "slowed_core_s") > 0.0);
    assert!(number(&slowed[2], "lowered_core_s") > 0.0);
    assert_eq!(number(&slowed[0], "slowed_core_s"), 0.0);
    assert_eq!(number(&kept[0], "lowered_core_s"), 0.0);
    for row in &slowed {
        let parts = ["cores_j", "mesh_j", "memory_j", "clock_j"].map(|key| number(row, key));
        let all: f64 = parts.iter().sum();
        assert!((all - number(row, "energy_j")).abs() < 1e-5, "{row}");
        let delay = number(row, "energy_j") * number(row, "run_s");
        assert!(
            (delay - number(row, "energy_delay_js")).abs() < 1e-4,
            "{row}"
        );
    }
    for (flags, why) in [
        ("--dividers 1", "--dividers 1: 1 is too small"),
        ("--dividers 17", "--dividers 17: 17 is too large"),
        ("--machine mppa256", "--machine: a process manager needs"),
        (
            "--set power.fast_cores=1W",
            "the two operating points make a part of the power negative",
        ),
    ] {
        let refused = sme_in(directory.path(), &format!("mpi power {flags}"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        let said = text(&refused.stderr);
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
}
