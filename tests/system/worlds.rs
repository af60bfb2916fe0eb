//! Programs that share a chip under their managers: worlds grow and shrink side by side, cores have
//! one process after the other, and programs find each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme::messages::Measurement;
use sme::messages::infect::Infect;
use sme::messages::job::{Job, Observe};
use sme::messages::programs::{self, Begin, Process};
use sme_memory::Memory as _;
use sme_mpi::error::ErrorClass;
use sme_mpi::process::command::Program;
use sme_mpi::process::lending::MemoryWish;
use sme_mpi::process::manager::Kind;
use sme_mpi::rank::{Source, Tag};
use sme_sim::machine::Machine;
use sme_sim::time::Time;

/// Cores of the chip of these tests.
const CORES: u32 = 48;

/// The programs of a run: the core on which each begins, its processes, and how many come to it in
/// each round, after a rest [ns].
#[derive(Clone, Debug)]
struct Malleable {
    begin: Begin,
    rounds: Vec<(u32, u64)>,
}

/// Machines of which all that has daemons is of this size.
pub const JOBS: usize = 2;

/// The cores of the chip, and as many nodes of the cluster: daemons on all of them.
pub fn jobs() -> [Job; JOBS] {
    let [chip, cluster] = ["scc-800", "sme-prototype"].map(|name| Machine::builtin(name).unwrap());
    [
        Job::managed(Arc::new(chip)),
        Job::managed_cluster(Arc::new(cluster), CORES),
    ]
}

/// A program that begins on a core with so many processes, under the invasive manager.
pub fn begin(core: Program, processes: u32) -> Begin {
    let manager = Kind::Invasive;
    Begin {
        core,
        processes,
        manager,
    }
}

fn malleable() -> impl Strategy<Value = Vec<Malleable>> {
    let rounds = prop::collection::vec((1..30u32, 0..50_000_000u64), 1..4);
    let cores = prop::sample::subsequence((0..CORES as Program).collect::<Vec<_>>(), 1..4);
    let programs = prop::collection::vec((1..6u32, rounds), 3);
    (cores, programs).prop_map(|(cores, programs)| {
        let all = cores.into_iter().zip(programs);
        all.map(|(core, (processes, rounds))| Malleable {
            begin: begin(core, processes),
            rounds,
        })
        .collect()
    })
}

/// Runs them; the times at which their worlds have grown, and at which they could not.
fn grow_and_shrink(job: &Job, programs: &[Malleable]) -> (u32, u32) {
    let begins: Vec<Begin> = programs.iter().map(|program| program.begin).collect();
    let holders: Arc<Mutex<BTreeMap<u32, Program>>> = Arc::default();
    let counts: Arc<Mutex<(u32, u32)>> = Arc::default();
    let (held, counted) = (Arc::clone(&holders), Arc::clone(&counts));
    let programs: Arc<[Malleable]> = programs.into();
    let process = move |process: Arc<Process>| {
        let (held, counted) = (Arc::clone(&held), Arc::clone(&counted));
        let programs = Arc::clone(&programs);
        async move {
            let (mpi, core) = (&process.mpi, process.memory.node());
            let begun = process.member.begun();
            let before = held.lock().insert(core, begun.program);
            assert_eq!(before, None, "core {core} has two processes");
            let came = begun.launch.port.is_some();
            let own = programs.iter().find(|one| one.begin.core == begun.program);
            for &(count, rest_ns) in &own.unwrap().rounds {
                if !came {
                    process.memory.delay(Time::from_ns(rest_ns)).await;
                    match mpi.infect(&process.member, count).await {
                        Ok(()) if mpi.world().rank() == 0 => counted.lock().0 += 1,
                        Ok(()) => {}
                        Err(error) => {
                            assert_eq!(error.class, ErrorClass::Spawn, "{error}");
                            counted.lock().1 += 1;
                            continue;
                        }
                    }
                }
                let world = mpi.world();
                let (mut sum, op) = ([0_u64; 2], sme_mpi::op::Op::Sum);
                let own = [u64::from(begun.program), 1];
                world.allreduce(&own, &mut sum, &op).await?;
                let size = u64::from(world.size());
                assert_eq!(sum, [u64::from(begun.program) * size, size]);
                // A message round all ranks, over sections that other processes have had.
                let (next, last) = ((world.rank() + 1) % world.size(), [world.rank()]);
                let mut got = [0_u32; 1];
                let mut receive = world.ireceive(&mut got, Source::Any, Tag::Is(3)).await?;
                world.send(&last, next, 3).await?;
                receive.wait().await?;
                drop(receive);
                assert_eq!((got[0] + 1) % world.size(), world.rank());
                mpi.retreat(!came).await?;
                if came {
                    break;
                }
            }
            held.lock().remove(&core);
            Ok(())
        }
    };
    programs::run(job, Observe::default(), &begins, process).unwrap();
    assert!(holders.lock().is_empty());
    *counts.lock()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Programs that share a chip, grow and shrink: no core has two processes, what was sent to one
    /// process never reaches a later one, all programs end and all cores are free.
    #[test]
    fn worlds_grow_and_shrink_side_by_side(
        programs in malleable(),
        which in 0..JOBS,
    ) {
        grow_and_shrink(&jobs()[which], &programs);
    }
}

/// One core has many processes, one after the other; a program that wants more cores than there are
/// goes on without.
#[test]
fn a_core_has_one_process_after_the_other() {
    // Cores are free some time after their processes have left the world.
    let rounds = [46, 47, 46, 1, 46].map(|count| (count, 2_000_000)).to_vec();
    let begin = begin(7, 2);
    for job in jobs() {
        let malleable = Malleable {
            begin,
            rounds: rounds.clone(),
        };
        let (grown, refused) = grow_and_shrink(&job, &[malleable]);
        // Both ranks of the program are refused 47 cores.
        assert_eq!((grown, refused), (4, 2));
    }
}

/// Growing costs milliseconds for each process more, shrinking microseconds: at the least a tenth.
#[test]
fn shrinking_is_faster_than_growing() {
    let job = Job::managed(Arc::new(Machine::builtin("scc-800").unwrap()));
    let run = |parents, processes| {
        let job = job.clone();
        let infect = Infect {
            job,
            parents,
            processes,
        };
        infect.run().unwrap()
    };
    for (parents, processes) in [(1, 1), (1, 47), (24, 24), (47, 1)] {
        let outcome = run(parents, processes);
        assert!(outcome.retreats.times(10) < outcome.infects, "{outcome:?}");
        assert_eq!(outcome.infects, outcome.begins + outcome.initializes);
        let more_us = outcome.initializes.as_us() - run(parents, 1).initializes.as_us();
        let expected = 240.0 * f64::from(processes - 1);
        assert!(
            (more_us - expected).abs() < 0.05 * expected + 100.0,
            "{more_us}"
        );
    }
}

/// Two programs: one publishes a port under a name and waits, the other looks the name up and
/// connects. Processes of two parts of a program are started together, and know their parts.
#[test]
fn a_program_finds_another_by_name() {
    for job in jobs() {
        finds_another_by_name(&job);
    }
}

fn finds_another_by_name(job: &Job) {
    let parts: Arc<Mutex<Vec<(u32, u32)>>> = Arc::default();
    let told = Arc::clone(&parts);
    let process = move |process: Arc<Process>| {
        let told = Arc::clone(&told);
        async move {
            let (mpi, names) = (&process.mpi, &process.member);
            let world = mpi.world();
            let begun = names.begun();
            if let Some(parent) = mpi.parent() {
                assert_eq!(
                    (world.size(), parent.handle().remote_group().unwrap().size()),
                    (5, 2)
                );
                told.lock().push((world.rank(), begun.launch.part));
                return Ok(parent.disconnect().await?);
            }
            let is_first = world.rank() == 0;
            let mut port = String::new();
            if begun.program == 3 {
                if is_first {
                    port = mpi.open_port().await?;
                    mpi.publish_name(names, "sums", &port).await?;
                    let twice = mpi.publish_name(names, "sums", &port).await.unwrap_err();
                    assert_eq!(
                        (twice.class, twice.call),
                        (ErrorClass::Service, "MPI_Publish_name")
                    );
                    let none = mpi.lookup_name(names, "products").await.unwrap_err();
                    assert_eq!(
                        (none.class, none.call),
                        (ErrorClass::Name, "MPI_Lookup_name")
                    );
                }
                let client = world.accept(&port, 0).await?;
                if is_first {
                    mpi.unpublish_name(names, "sums", &port).await?;
                    let again = mpi.unpublish_name(names, "sums", &port).await.unwrap_err();
                    assert_eq!(again.class, ErrorClass::Service);
                }
                client.disconnect().await?;
                let children = world.spawn_multiple(names, &[2, 0, 3], 0).await?;
                return Ok(children.disconnect().await?);
            }
            while is_first && port.is_empty() {
                match mpi.lookup_name(names, "sums").await {
                    Ok(found) => port = found,
                    Err(error) => assert_eq!(error.class, ErrorClass::Name),
                }
            }
            let server = world.connect(&port, 0).await?;
            assert_eq!(server.handle().remote_group().unwrap().size(), 2);
            Ok(server.disconnect().await?)
        }
    };
    let begins = [begin(3, 2), begin(20, 3)];
    programs::run(job, Observe::default(), &begins, process).unwrap();
    let mut parts = parts.lock().clone();
    parts.sort_unstable();
    assert_eq!(parts, [(0, 0), (1, 0), (2, 2), (3, 2), (4, 2)]);
}

/// A program that reserves cores and ends without a process on them leaves none reserved; another
/// program cannot have them before.
#[test]
fn what_was_reserved_is_free_at_the_end() {
    for job in jobs() {
        is_free_at_the_end(&job);
    }
}

fn is_free_at_the_end(job: &Job) {
    let process = |process: Arc<Process>| async move {
        let (mpi, member) = (&process.mpi, &process.member);
        match member.begun().program {
            0 => {
                assert_eq!(member.invade(30).await, 30);
                process.memory.delay(Time::from_ns(90_000_000)).await;
            }
            _ => {
                // The other has reserved by now.
                process.memory.delay(Time::from_ns(10_000_000)).await;
                let wish = MemoryWish {
                    least: 1,
                    most: 3,
                    candidates: vec![9],
                };
                assert_eq!(member.invade_memory(&wish).await.len(), 1);
                let refused = mpi.infect(member, 40).await.unwrap_err();
                assert_eq!(refused.class, ErrorClass::Spawn);
                // The memory is still its own.
                let free = member.sigmod.survey_memory(&[8, 9]).await;
                assert_eq!(free[0] - free[1], 3);
                assert_eq!(member.invade(40).await, 16);
                member.release().await;
            }
        }
        Ok(())
    };
    let begins = [begin(0, 1), begin(40, 1)];
    programs::run(job, Observe::default(), &begins, process).unwrap();
}
