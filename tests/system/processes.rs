//! Daemons on the cores of a chip, and programs that reserve cores: no core is held twice, none is
//! lost, and who computes is interrupted for no longer than its daemon needs. Worlds that were
//! started apart become one.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme::messages::Measurement;
use sme::messages::connect::Connect;
use sme::messages::invade::Invade;
use sme::messages::job::Job;
use sme::messages::spawn::Spawn;
use sme_memory::{Memory as _, Spawn as _, Timer};
use sme_mpi::process::Board;
use sme_mpi::process::command::{Command, Held, Program};
use sme_mpi::process::daemon::Daemon;
use sme_mpi::process::invade::Wish;
use sme_mpi::process::sigmod::Sigmod;
use sme_mpi::processor::Free;
use sme_sim::machine::{Machine, Setup};
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::command::{sme_in, text};

/// Cores of the chip of these tests, and the nodes of the cluster on which programs are.
const CORES: u32 = 48;

/// Nodes of the cluster: so many that commands say beside them for which program they are.
const NODES: u32 = 64;

/// Segments of the memory of each.
pub const SEGMENTS: u32 = 16;

/// The machines, with what is reserved there.
pub const MACHINES: [(&str, u32); 2] = [("scc-800", CORES), ("sme-prototype", NODES)];

pub type Library = Sigmod<ThreadMemory, Free>;

fn board((_, cores): (&str, u32)) -> Board {
    match cores {
        CORES => Board::at_end(cores, 8192).unwrap(),
        _ => Board::in_memory(cores, 100).unwrap(),
    }
}

/// Runs a daemon on every core of the machine, and `program` on each of `on` beside it, which
/// begins with its own core; when all programs have ended the daemons end. Panics if that is not
/// so.
pub fn run<F: Future<Output = ()> + Send + 'static>(
    on_machine: (&str, u32),
    on: &[u32],
    program: impl Fn(Library, ThreadMemory) -> F + Clone + Send + Sync + 'static,
) {
    let (name, cores) = on_machine;
    let (machine, board) = (Machine::builtin(name).unwrap(), board(on_machine));
    let setup = Setup::new(machine.shape(), cores, 1).with_room(3);
    let running = Arc::new(Mutex::new(on.len()));
    let started = |memory: ThreadMemory, node: u32, _| {
        let (program, running) = (program.clone(), Arc::clone(&running));
        let is_on = on.contains(&node);
        async move {
            let holder = is_on.then_some(node as Program);
            let daemon = Daemon::start(memory.clone(), Free, board, holder).await;
            let daemon = daemon.with_segments(SEGMENTS);
            if is_on {
                let begun = move |memory: ThreadMemory| async move {
                    program(Sigmod::new(memory.clone(), Free, board), memory.clone()).await;
                    let is_last = {
                        let mut running = running.lock();
                        *running -= 1;
                        *running == 0
                    };
                    if is_last {
                        let library = Sigmod::new(memory, Free, board);
                        let all: Vec<u32> = (0..cores).collect();
                        library.all(&all, Command::Stop).await;
                    }
                };
                memory.spawn(None, begun).await;
            }
            daemon.run().await;
        }
    };
    let mut machine = machine.build(setup, started).unwrap();
    machine.run(1, |_| {}).unwrap();
}

/// The holders of all cores as their programs believe.
#[derive(Default)]
struct Believed(Mutex<Vec<(u32, Program)>>);

impl Believed {
    /// `program` believes that it holds `cores`; an error if another does.
    fn takes(&self, program: Program, cores: &[u32]) -> Result<(), String> {
        let mut held = self.0.lock();
        for &core in cores {
            if let Some((_, other)) = held.iter().find(|(of, _)| *of == core) {
                return Err(format!("core {core} is {other}'s and {program}'s"));
            }
            held.push((core, program));
        }
        Ok(())
    }

    fn gives(&self, program: Program, cores: &[u32]) {
        let is_given = |&(core, of): &(u32, Program)| of == program && cores.contains(&core);
        self.0.lock().retain(|held| !is_given(held));
    }
}

/// A program that reserves cores over and over.
#[derive(Clone, Debug)]
struct Invader {
    core: u32,
    rounds: Vec<Round>,
}

#[derive(Clone, Debug)]
struct Round {
    least: u32,
    most: u32,
    first: u32,
    contiguous: bool,
    rests: u64,
    /// It takes all that it has asked for as its own.
    is_wrong: bool,
}

impl Round {
    fn wish(&self, own: u32, cores: u32) -> Wish {
        let candidates = (0..cores).map(|core| (core + self.first) % cores);
        Wish {
            least: self.least,
            most: self.most,
            candidates: candidates.filter(|&core| core != own).collect(),
            contiguous: self.contiguous,
        }
    }
}

fn invaders() -> impl Strategy<Value = Vec<Invader>> {
    let round = (0..30u32, 1..47u32, 0..CORES, any::<bool>(), 0..60_000u64);
    let round = round.prop_map(|(least, most, first, contiguous, rests)| Round {
        least,
        most,
        first,
        contiguous,
        rests,
        is_wrong: false,
    });
    let rounds = prop::collection::vec(round, 1..5);
    let cores = prop::sample::subsequence((0..CORES).collect::<Vec<_>>(), 1..5);
    (cores, prop::collection::vec(rounds, 5)).prop_map(|(cores, rounds)| {
        let invaders = cores.into_iter().zip(rounds);
        invaders
            .map(|(core, rounds)| Invader { core, rounds })
            .collect()
    })
}

/// Lets these programs run, and sees that at the end all cores but theirs are free; what was wrong.
fn conflicts(machine: (&str, u32), invaders: Vec<Invader>) -> Vec<String> {
    let (_, cores) = machine;
    let wrong: Arc<Mutex<Vec<String>>> = Arc::default();
    let believed = Arc::new(Believed::default());
    let on: Vec<u32> = invaders.iter().map(|invader| invader.core).collect();
    for invader in &invaders {
        let own = believed.takes(invader.core as Program, &[invader.core]);
        own.expect("each is on a core of its own");
    }
    let (told, ended) = (Arc::clone(&wrong), Arc::new(Mutex::new(0)));
    let all = invaders.len();
    let starts = Arc::new(on.clone());
    run(machine, &on, move |library, memory| {
        let own = memory.node();
        let invader = invaders.iter().find(|invader| invader.core == own).cloned();
        let invader = invader.expect("an invader on each of these cores");
        let (told, believed, ended) = (told.clone(), believed.clone(), ended.clone());
        let starts = Arc::clone(&starts);
        async move {
            let program = own as Program;
            for round in &invader.rounds {
                let wish = round.wish(own, cores);
                memory.delay(Time::from_ns(round.rests)).await;
                let held = match round.is_wrong {
                    true => {
                        let asked = &wish.candidates[..wish.most as usize];
                        library.all(asked, Command::Reserve(program)).await;
                        asked.to_vec()
                    }
                    false => library.invade(program, &wish).await,
                };
                let count = held.len() as u32;
                if !held.is_empty() && (count < wish.least || count > wish.most) {
                    told.lock().push(format!("{count} cores for {wish:?}"));
                }
                let follow = held.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                if wish.contiguous && !round.is_wrong && !follow {
                    told.lock().push(format!("{held:?} for {wish:?}"));
                }
                if let Err(conflict) = believed.takes(program, &held) {
                    told.lock().push(conflict);
                }
                memory.delay(Time::from_ns(round.rests)).await;
                believed.gives(program, &held);
                library.release(program, &held).await;
            }
            let is_last = {
                let mut ended = ended.lock();
                *ended += 1;
                *ended == all
            };
            if is_last {
                let cores: Vec<u32> = (0..cores).collect();
                for (core, held) in library.survey(&cores).await.into_iter().enumerate() {
                    let own = starts.contains(&(core as u32));
                    let expected = Held(own.then_some(core as Program));
                    if held != expected {
                        told.lock()
                            .push(format!("core {core} is left with {held:?}"));
                    }
                }
            }
        }
    });
    let told = wrong.lock();
    told.clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In any interleaving no core is held twice, none is lost, and all programs end.
    #[test]
    fn no_core_is_held_twice(
        invaders in invaders(),
        machine in prop::sample::select(MACHINES.to_vec()),
    ) {
        prop_assert_eq!(conflicts(machine, invaders), Vec::<String>::new());
    }
}

/// One that does not heed the answers is found out.
#[test]
fn a_program_that_takes_what_it_was_refused_is_found_out() {
    let round = |is_wrong| Round {
        least: 0,
        most: 40,
        first: 0,
        contiguous: false,
        rests: 10_000,
        is_wrong,
    };
    let invader = |core, is_wrong| Invader {
        core,
        rounds: vec![round(is_wrong); 2],
    };
    for machine in MACHINES {
        let heeding = vec![invader(3, false), invader(9, false)];
        assert_eq!(conflicts(machine, heeding), [""; 0]);
        let found = conflicts(machine, vec![invader(3, false), invader(9, true)]);
        assert!(!found.is_empty());
    }
}

/// The daemon of a core whose program computes answers as fast as that of a free one, but for the
/// switch back; the program takes as much longer as that has cost it.
#[test]
fn a_daemon_interrupts_the_program_of_its_core() {
    const SPAN_NS: u64 = 400_000;
    let times: Arc<Mutex<[u64; 4]>> = Arc::default();
    let told = Arc::clone(&times);
    run(MACHINES[0], &[0, 7], move |library, memory| {
        let times = Arc::clone(&told);
        async move {
            if memory.node() == 7 {
                let begin = memory.now().await;
                memory.delay(Time::from_ns(SPAN_NS)).await;
                times.lock()[0] = memory.now().await - begin;
                return;
            }
            // The other has begun.
            memory.delay(Time::from_ns(200_000)).await;
            for (slot, core) in [(1, 7), (2, 6), (3, 7)] {
                let begin = memory.now().await;
                let held = library.command_sync(core, Command::Query).await;
                times.lock()[slot] = memory.now().await - begin;
                assert_eq!(held, Held((core == 7).then_some(7)));
            }
        }
    });
    let [computed, first, free, second] = *times.lock();
    assert_eq!(first, second);
    assert!((free..free + 100).contains(&first), "{first} {free}");
    let longer = computed - SPAN_NS;
    // Twice: interrupt, module, signal, daemon, and the switches.
    assert!((2 * 8_000..2 * 14_000).contains(&longer), "{longer}");
}

/// The rows of `sme mpi invade`, the deterministic ones.
#[test]
fn invading_takes_longer_for_more_cores() {
    let directory = tempfile::tempdir().unwrap();
    let line = "mpi invade --cores 2,24,48 --no-host --format json";
    let output = sme_in(directory.path(), line);
    let said = text(&output.stdout).to_owned();
    let rows: Vec<serde_json::Value> = (said.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let time = |row: usize| rows[row]["time_us"].as_f64().unwrap();
    assert!(time(0) < time(1) && time(1) < time(2), "{said}");
    assert!((21.0..30.0).contains(&time(2)), "{said}");
    let again = sme_in(directory.path(), &format!("{line} --workers 2"));
    assert_eq!(text(&again.stdout), said);
    let refused = sme_in(directory.path(), "mpi invade --machine xeon-e5-2650");
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(why.contains("--machine: a process manager needs"), "{why}");
}

/// A daemon on a node of the cluster has a core to itself: its program computes on, and all that it
/// takes is the way of a bell and of an answer.
#[test]
fn a_daemon_of_a_node_leaves_its_program_alone() {
    const SPAN_NS: u64 = 400_000;
    let computed: Arc<Mutex<u64>> = Arc::default();
    let told = Arc::clone(&computed);
    run(MACHINES[1], &[0, 7], move |library, memory| {
        let told = Arc::clone(&told);
        async move {
            if memory.node() == 7 {
                let begin = memory.now().await;
                memory.delay(Time::from_ns(SPAN_NS)).await;
                *told.lock() = memory.now().await - begin;
                return;
            }
            memory.delay(Time::from_ns(100_000)).await;
            for _ in 0..9 {
                let begin = memory.now().await;
                let held = library.command_sync(7, Command::Query).await;
                assert_eq!(held, Held(Some(7)));
                let took = memory.now().await - begin;
                // Two ways of 2 us between distant nodes, and a thread that is woken.
                assert!((4_000..20_000).contains(&took), "{took}");
            }
        }
    });
    let longer = *computed.lock() - SPAN_NS;
    assert!(longer < 100, "{longer}");
}

/// The time in which a world of so many ranks accepts one of so many others on the SCC, and both
/// are one communicator.
fn joins(parents: u32, children: u32) -> Time {
    let job = Job::managed(Arc::new(Machine::builtin("scc-800").unwrap()));
    let connect = Connect {
        job,
        parents,
        children,
    };
    let outcome = connect.run().unwrap();
    assert_eq!(outcome.ranks, parents + children);
    outcome.connects
}

/// Accept and connect take about as long with the sizes of the groups exchanged (Comprés et al.,
/// Fig. 5): the side that connects hears of the other one message later, and the trees of the two
/// groups may differ by a message in their depth. They take longer for more ranks.
#[test]
fn accepting_and_connecting_are_symmetric() {
    let message_us = 12.0;
    for parents in 1..24 {
        let children = 48 - parents;
        let sizes = [(parents, children), (children, parents)];
        let [one, other] = sizes.map(|(parents, children)| joins(parents, children).as_us());
        // Trees differ in their depth where one group has 17 to 19 ranks.
        let messages = if (17..20).contains(&parents) {
            2.0
        } else {
            1.0
        };
        assert!(
            (one - other).abs() < messages * message_us,
            "{parents} {children}: {one} {other}"
        );
        assert!(one.min(other) > 3.0 * message_us, "{one} {other}");
    }
    assert!(joins(1, 1) < joins(8, 40));
}

/// A program that prefers cores near their memory controllers gets those: none that is free is
/// nearer than one that it has.
#[test]
fn cores_near_memory_are_preferred() {
    let job = Job::managed(Arc::new(Machine::builtin("scc-800").unwrap()));
    let hops = &job.machine.shape().memory_hops;
    // Each controller serves twelve cores in a block of three by two tiles at its corner.
    assert_eq!(hops.iter().sum::<u32>(), 8 * (1 + 2 + 1 + 2 + 3));
    for cores in [2, 5, 9, 24, 48] {
        let run = |near_memory| {
            let invade = Invade {
                job: job.clone(),
                cores,
                contiguous: false,
                near_memory,
            };
            invade.run().unwrap().granted
        };
        let (first, near) = (run(false), run(true));
        assert!(first.iter().copied().eq(1..cores));
        assert_eq!(near.len() as u32, cores - 1);
        let hops_of = |core: &u32| hops[*core as usize];
        let farthest = near.iter().map(hops_of).max().unwrap();
        let free = (1..CORES).filter(|core| !near.contains(core));
        assert!(free.map(|core| hops_of(&core)).all(|hops| hops >= farthest));
    }
}

/// More processes than there are cores are an error of MPI, and nothing stays reserved: the same
/// program then starts as many as there are.
#[test]
fn too_few_cores_are_an_error_and_leave_none_reserved() {
    let job = Job::managed(Arc::new(Machine::builtin("scc-800").unwrap()));
    let spawn = |processes| {
        let job = job.clone();
        Spawn { job, processes }.run()
    };
    let error = spawn(48).unwrap_err().to_string();
    let why = ": MPI_Comm_spawn: maxprocs: 48 cores are not to be had (MPI_ERR_SPAWN); ";
    assert!(error.contains(why), "{error}");
    let outcome = spawn(47).unwrap();
    assert_eq!(outcome.spawns, outcome.begins + outcome.initializes);
}

/// The time of a spawn is that of a fork, a program's execution and MPI_Init, which all processes
/// do at the same time, and a little more for more processes.
#[test]
fn processes_start_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let line = "mpi spawn --processes 1,47 --no-host --format json";
    let output = sme_in(directory.path(), line);
    let said = text(&output.stdout).to_owned();
    let time = |row: usize, key: &str| {
        let row: serde_json::Value = serde_json::from_str(said.lines().nth(row).unwrap()).unwrap();
        row[key].as_f64().unwrap()
    };
    assert!((46_000.0..46_200.0).contains(&time(0, "time_us")), "{said}");
    // The manager serves their requests one after the other.
    let more = time(1, "time_us") - time(0, "time_us");
    assert!((10_000.0..12_000.0).contains(&more), "{said}");
    let begun = time(1, "start_us") - time(0, "start_us");
    assert!((10.0..100.0).contains(&begun), "{said}");
    let shorter = sme_in(
        directory.path(),
        &format!("{line} --set process.exec=10ms --workers 2"),
    );
    let shorter: serde_json::Value =
        serde_json::from_str(text(&shorter.stdout).lines().next().unwrap()).unwrap();
    let saved = time(0, "time_us") - shorter["time_us"].as_f64().unwrap();
    assert!((saved - 21_500.0).abs() < 1.0, "{saved}");
}

/// A manager that logs in on each core takes longer the more processes there are; these then solve
/// as fast with either manager.
#[test]
fn a_manager_that_logs_in_starts_one_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let line = "mpi bt --processes 4,36 --steps 1 --no-host --format json";
    let said = sme_in(directory.path(), line);
    let said = text(&said.stdout);
    let rows: Vec<serde_json::Value> = (said.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let time = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    let [mpd_4, mpd_36, ipm_4, ipm_36] = [0, 1, 2, 3].map(|row| time(row, "start_s"));
    let each = (mpd_36 - mpd_4) / 32.0;
    assert!((0.25..0.27).contains(&each), "{said}");
    assert!(ipm_36 - ipm_4 < 0.02 && ipm_4 > 0.046, "{said}");
    let solve = |row| time(row, "solve_s");
    assert!((solve(1) / solve(3) - 1.0).abs() < 0.01, "{said}");
    assert!((solve(0) / solve(2) - 1.0).abs() < 0.01, "{said}");
    for (flags, why) in [
        (
            "--processes 5",
            "--processes: bt has a square number of ranks, not 5",
        ),
        ("--processes 49", "--processes 49"),
        ("--manager ssh", "--manager: 'ssh' is not known"),
        ("--core-seconds 0", "--core-seconds: 0 is not a number from"),
    ] {
        let refused = sme_in(directory.path(), &format!("mpi bt {flags}"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
}
