//! Memory that daemons lend apart from cores: no segment is lent twice, none is lost, and what a
//! program writes to it stays until the program returns it.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme::messages::borrow::Map;
use sme::messages::job::{Error, Job, Kill, Observe};
use sme::messages::programs::{self, Process};
use sme_memory::{Cacheable as _, Memory as _};
use sme_mpi::process::command::{Command, Held, Program};
use sme_mpi::process::lending::{KEPT, Lease, MemoryWish};
use sme_sim::machine::Machine;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::command::{sme_in, text};
use crate::processes::{Library, MACHINES, SEGMENTS, run};
use crate::worlds;

/// Cores that programs are on, and whose memory they want.
const CORES: u32 = 8;

/// Segments of a core that it lends.
const LENT: u32 = SEGMENTS - KEPT;

/// A program that borrows over and over.
#[derive(Clone, Debug)]
struct Borrower {
    core: u32,
    rounds: Vec<Round>,
}

#[derive(Clone, Debug)]
struct Round {
    least: u32,
    most: u32,
    first: u32,
    rests: u64,
    /// It uses memory for which it has not asked.
    is_wrong: bool,
}

fn borrowers() -> impl Strategy<Value = Vec<Borrower>> {
    let round = (0..20u32, 1..40u32, 0..CORES, 0..60_000u64);
    let round = round.prop_map(|(least, most, first, rests)| Round {
        least,
        most,
        first,
        rests,
        is_wrong: false,
    });
    let rounds = prop::collection::vec(round, 1..4);
    let cores = prop::sample::subsequence((0..CORES).collect::<Vec<_>>(), 1..5);
    (cores, prop::collection::vec(rounds, 5)).prop_map(|(cores, rounds)| {
        let borrowers = cores.into_iter().zip(rounds);
        borrowers
            .map(|(core, rounds)| Borrower { core, rounds })
            .collect()
    })
}

/// The leases, those that follow each other as one: the machine maps them so.
async fn borrows(library: &Library, program: Program, round: &Round) -> Vec<Lease> {
    let wish = MemoryWish {
        least: round.least,
        most: round.most,
        candidates: (0..CORES)
            .map(|core| (core + round.first) % CORES)
            .collect(),
    };
    let leases = match round.is_wrong {
        true => vec![Lease {
            core: round.first,
            first: KEPT,
            count: 2,
        }],
        false => library.invade_memory(program, &wish).await,
    };
    let count: u32 = leases.iter().map(|lease| lease.count).sum();
    let is_granted = round.is_wrong || leases.is_empty() || count >= round.least;
    assert!(
        is_granted && count <= round.most.max(2),
        "{leases:?} for {wish:?}"
    );
    leases
}

/// The number in the first words of segments that a program has.
fn value(program: Program, round: usize, lease: usize) -> u64 {
    u64::from(program) << 32 | (round << 16) as u64 | (lease + 1) as u64
}

/// Lets these programs run; what was wrong: memory that two had, that had changed, or that is lent
/// at the end.
fn conflicts(on_machine: (&str, u32), borrowers: Vec<Borrower>) -> Vec<String> {
    let (name, _) = on_machine;
    let shape = Arc::new(Machine::builtin(name).unwrap().shape().clone());
    let wrong: Arc<Mutex<Vec<String>>> = Arc::default();
    let on: Vec<u32> = borrowers.iter().map(|borrower| borrower.core).collect();
    let had: Arc<Mutex<Vec<(Program, Lease)>>> = Arc::default();
    let (told, all, ended) = (Arc::clone(&wrong), on.len(), Arc::new(Mutex::new(0)));
    run(on_machine, &on, move |library, memory: ThreadMemory| {
        let own = memory.node();
        let borrower = borrowers
            .iter()
            .find(|borrower| borrower.core == own)
            .cloned();
        let borrower = borrower.expect("a borrower on each of these cores");
        let (told, had, ended) = (Arc::clone(&told), Arc::clone(&had), Arc::clone(&ended));
        let shape = Arc::clone(&shape);
        async move {
            let program = own as Program;
            for (number, round) in borrower.rounds.iter().enumerate() {
                memory.delay(Time::from_ns(round.rests)).await;
                let leases = borrows(&library, program, round).await;
                for lease in &leases {
                    let segments = lease.segments();
                    let both = |other: &Lease| {
                        let mut segments = segments.clone();
                        other.core == lease.core
                            && segments.any(|at| other.segments().contains(&at))
                    };
                    if let Some((other, _)) = had.lock().iter().find(|(_, other)| both(other)) {
                        told.lock()
                            .push(format!("{lease:?} is {other}'s and {program}'s"));
                    }
                }
                had.lock()
                    .extend(leases.iter().map(|&lease| (program, lease)));
                let map = Map::of(&shape, &memory, &leases).await;
                for lease in 0..leases.len() {
                    let word = map.word(&memory, lease, 0);
                    memory.store(word, value(program, number, lease)).await;
                }
                memory.delay(Time::from_ns(round.rests)).await;
                memory.write_back_invalidate().await;
                for (number_of, lease) in leases.iter().enumerate() {
                    let found = memory.load(map.word(&memory, number_of, 0)).await;
                    if found != value(program, number, number_of) {
                        told.lock().push(format!("{lease:?} holds {found:x}"));
                    }
                }
                map.drops(&memory).await;
                had.lock().retain(|(of, _)| *of != program);
                if !round.is_wrong {
                    library.return_memory(program, &leases).await;
                }
            }
            let is_last = {
                let mut ended = ended.lock();
                *ended += 1;
                *ended == all
            };
            if is_last {
                let cores: Vec<u32> = (0..CORES).collect();
                let free = library.survey_memory(&cores).await;
                if free.iter().any(|&free| free != LENT) {
                    told.lock().push(format!("{free:?} segments are left"));
                }
            }
        }
    });
    let told = wrong.lock();
    told.clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// In any interleaving no segment is lent twice, all hold what was written to them, and all
    /// come back.
    #[test]
    fn no_segment_is_lent_twice(
        borrowers in borrowers(),
        machine in prop::sample::select(MACHINES.to_vec()),
    ) {
        prop_assert_eq!(conflicts(machine, borrowers), Vec::<String>::new());
    }
}

/// A program that uses memory for which it has not asked is found out.
#[test]
fn a_program_that_does_not_ask_is_found_out() {
    let borrower = |core, is_wrong| Borrower {
        core,
        rounds: vec![
            Round {
                least: 2,
                most: 8,
                first: 5,
                rests: 20_000,
                is_wrong,
            };
            2
        ],
    };
    for machine in MACHINES {
        let asking = vec![borrower(1, false), borrower(3, false)];
        assert_eq!(conflicts(machine, asking), [""; 0]);
        let found = conflicts(machine, vec![borrower(1, false), borrower(3, true)]);
        assert!(!found.is_empty());
    }
}

/// Memory that is returned before the caches have written it back is overwritten later, in the
/// hands of the next program.
#[test]
fn what_is_left_in_caches_spoils_the_memory_of_the_next() {
    for machine in MACHINES {
        let shape = Arc::new(Machine::builtin(machine.0).unwrap().shape().clone());
        for writes_back in [true, false] {
            let found: Arc<Mutex<u64>> = Arc::default();
            let (shape, told) = (Arc::clone(&shape), Arc::clone(&found));
            run(machine, &[0, 3], move |library, memory: ThreadMemory| {
                let (shape, told) = (Arc::clone(&shape), Arc::clone(&told));
                async move {
                    let program = memory.node() as Program;
                    let wish = MemoryWish {
                        least: 1,
                        most: 1,
                        candidates: vec![5],
                    };
                    // The second comes when the first has returned its segment, the same one.
                    memory
                        .delay(Time::from_ns(u64::from(program) * 2_000_000))
                        .await;
                    let leases = library.invade_memory(program, &wish).await;
                    assert_eq!(leases[0].first, KEPT);
                    let map = Map::of(&shape, &memory, &leases).await;
                    // A store that finds no copy in a cache goes to memory.
                    memory.load(map.word(&memory, 0, 0)).await;
                    memory
                        .store(map.word(&memory, 0, 0), u64::from(program) + 7)
                        .await;
                    if program == 0 {
                        // Its own entry of the table is there until it has written back.
                        if writes_back {
                            memory.write_back_invalidate().await;
                        }
                        library.return_memory(program, &leases).await;
                        memory.delay(Time::from_ns(15_000_000)).await;
                        return map.drops(&memory).await;
                    }
                    memory.write_back_invalidate().await;
                    memory.delay(Time::from_ns(20_000_000)).await;
                    *told.lock() = memory.load(map.word(&memory, 0, 0)).await;
                    map.drops(&memory).await;
                    library.return_memory(program, &leases).await;
                }
            });
            let expected = if writes_back { 3 + 7 } else { 7 };
            assert_eq!(*found.lock(), expected, "{machine:?}");
        }
    }
}

/// Memory of a core is lent independent of the core's holder, and the core is reserved though its
/// memory is lent.
#[test]
fn cores_and_memory_are_separate() {
    for machine in MACHINES {
        run(
            machine,
            &[0, 3],
            |library, memory: ThreadMemory| async move {
                let program = memory.node() as Program;
                if program == 3 {
                    return memory.delay(Time::from_ns(1_000_000)).await;
                }
                let all = MemoryWish {
                    least: 2 * LENT,
                    most: 2 * LENT,
                    candidates: vec![3, 4],
                };
                let leases = library.invade_memory(program, &all).await;
                let cores: Vec<u32> = leases.iter().map(|lease| lease.core).collect();
                assert_eq!(cores, [3, 4]);
                assert_eq!(library.survey_memory(&[2, 3, 4]).await, [LENT, 0, 0]);
                assert_eq!(library.survey(&[3, 4]).await, [Held(Some(3)), Held(None)]);
                let reserved = library.all(&[4], Command::Reserve(program)).await;
                assert_eq!(reserved, [Held(Some(program))]);
                // One segment more than there are, of these cores, and nothing stays borrowed.
                let more = MemoryWish {
                    least: LENT + 1,
                    most: 40,
                    candidates: vec![2, 3, 4],
                };
                assert_eq!(library.invade_memory(program, &more).await, []);
                assert_eq!(library.survey_memory(&[2]).await, [LENT]);
                library.return_memory(program, &leases[..1]).await;
                assert_eq!(library.survey_memory(&[3, 4]).await, [LENT, 0]);
                library.return_all(program, &[3, 4]).await;
                assert_eq!(library.survey_memory(&[3, 4]).await, [LENT, LENT]);
                library.release(program, &[4]).await;
            },
        );
    }
}

/// The writes of a process to borrowed memory are there when it has been killed, and not later,
/// over the data of the next.
#[test]
fn a_killed_borrower_leaves_nothing_in_caches() {
    for job in worlds::jobs() {
        let shape = Arc::new(job.machine.shape().clone());
        let at = Time::from_ns(200_000_000);
        let job = Job {
            kill: Some(Kill { core: 1, at }),
            ..job
        };
        let process = move |process: Arc<Process>| {
            let shape = Arc::clone(&shape);
            async move {
                let (memory, member) = (&process.memory, &process.member);
                let wish = MemoryWish {
                    least: 1,
                    most: 1,
                    candidates: vec![5],
                };
                let borrows_first = member.begun().program == 0;
                match (borrows_first, process.mpi.world().rank()) {
                    // Until the other has been killed, and its manager has returned its memory.
                    (false, _) => memory.delay(Time::from_ns(400_000_000)).await,
                    (true, 0) => {
                        memory.delay(Time::from_ns(900_000_000)).await;
                        return Ok(());
                    }
                    _ => {}
                }
                let leases = member.invade_memory(&wish).await;
                assert_eq!(leases[0].first, KEPT);
                let map = Map::of(&shape, memory, &leases).await;
                let word = map.word(memory, 0, 0);
                let found = memory.load(word).await;
                assert_eq!(found, if borrows_first { 0 } else { 7 });
                memory.store(word, 7).await;
                if borrows_first {
                    memory.delay(Time::from_ns(900_000_000)).await;
                }
                Ok(())
            }
        };
        let begins = [worlds::begin(0, 2), worlds::begin(20, 1)];
        let ran = programs::run(&job, Observe::default(), &begins, process);
        assert!(
            matches!(ran, Err(Error::Died { then: None, .. })),
            "{ran:?}"
        );
    }
}

/// The command: farther memory is slower, more lenders take longer, and the bytes do not depend on
/// workers.
#[test]
fn borrowing_takes_longer_from_more_and_farther_cores() {
    let directory = tempfile::tempdir().unwrap();
    let rows = |flags: &str| -> Vec<serde_json::Value> {
        let line = format!("mpi borrow {flags} --no-host --format json");
        let once = sme_in(directory.path(), &line);
        let again = sme_in(directory.path(), &format!("{line} --workers 2"));
        assert_eq!(
            text(&once.stdout),
            text(&again.stdout),
            "{}",
            text(&once.stderr)
        );
        let lines = text(&once.stdout).lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    for machine in ["scc-800", "sme-prototype"] {
        let rows = rows(&format!("--machine {machine} --segments 12,13 --from 1,47"));
        let [near, near_more, far, _] = &rows[..] else {
            panic!("{rows:?}");
        };
        for key in ["time_us", "borrowed_load_ns"] {
            assert!(number(far, key) > number(near, key), "{machine}: {key}");
        }
        assert!(number(near_more, "time_us") > number(near, "time_us"));
        assert_eq!(
            (near["lenders"].clone(), near_more["lenders"].clone()),
            (1.into(), 2.into())
        );
    }
    for (flags, why) in [
        (
            "--segments 113",
            "--segments 113: 113 is too large; at most 112",
        ),
        ("--from 48", "--from 48: 48 is too large; at most 47"),
        ("--from 0", "--from 0:"),
        (
            "--machine sme-prototype --set node.shared_memory=256KiB",
            "--machine: MPI and the daemons leave no memory",
        ),
        ("--machine mppa256", "--machine: a process manager needs"),
    ] {
        let refused = sme_in(directory.path(), &format!("mpi borrow {flags}"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        let told = text(&refused.stderr);
        assert!(told.contains(why), "{told}");
    }
}
