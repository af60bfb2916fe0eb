//! Processes that die under their managers: their program is ended everywhere, nothing stays
//! reserved, the report says who died and why, and other programs, also later ones on the same
//! cores, go on.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme::messages::job::{Error, Job, Kill, Observe};
use sme::messages::programs::{self, Process};
use sme_memory::Memory as _;
use sme_mpi::op::Op;
use sme_mpi::process::death::Cause;
use sme_mpi::process::lending::MemoryWish;
use sme_mpi::rank::{Source, Tag};
use sme_sim::time::Time;

use crate::command::{sme, text};
use crate::worlds::{self, JOBS, begin};

/// Managed jobs on the SCC and on the SME cluster, with quick starts: deaths fall into all parts of
/// a short run. A core that writes its caches back ends then, and small caches are soon written
/// back.
fn jobs(kill: Option<Kill>) -> [Job; JOBS] {
    let quick = [
        ("process.exec", "200us"),
        ("process.fork", "100us"),
        ("process.init", "100us"),
        ("cache.l1_size", "16KiB"),
        ("cache.l2_size", "32KiB"),
    ];
    worlds::jobs().map(|job| Job {
        kill,
        machine: Arc::new(job.machine.with(&quick).unwrap()),
        ..job
    })
}

fn kill(core: u32, at_us: u64) -> Option<Kill> {
    let at = Time::from_ns(1_000 * at_us);
    Some(Kill { core, at })
}

/// Grows by some processes, exchanges messages with all of them, shrinks, several times; cores are
/// reserved beside.
async fn grows_and_shrinks(process: Arc<Process>, rounds: u32) -> Result<(), Error> {
    let mpi = &process.mpi;
    let came = process.member.begun().launch.port.is_some();
    for round in 0..rounds {
        if !came {
            let mut reserved = [0];
            if mpi.world().rank() == 0 {
                reserved[0] = process.member.invade(3).await;
                let wish = MemoryWish {
                    least: 1,
                    most: 20,
                    candidates: vec![1, 2, 21, 22],
                };
                process.member.invade_memory(&wish).await;
            }
            mpi.world().broadcast(&mut reserved, 0).await?;
            mpi.infect(&process.member, reserved[0].min(2)).await?;
        }
        let world = mpi.world();
        let mut sum = [0_u64];
        world.allreduce(&[1_u64], &mut sum, &Op::Sum).await?;
        assert_eq!(sum[0], u64::from(world.size()));
        let (next, own) = ((world.rank() + 1) % world.size(), [round; 200]);
        let mut got = [0_u32; 200];
        let mut receive = world.ireceive(&mut got, Source::Any, Tag::Any).await?;
        world.send(&own, next, 3).await?;
        receive.wait().await?;
        drop(receive);
        mpi.retreat(!came).await?;
        if came {
            break;
        }
        process.member.release().await;
    }
    Ok(())
}

/// Two such programs on the machine of that number, of which a process is killed; whether there was
/// one.
fn one_is_killed(which: usize, kill: Kill) -> bool {
    let done: Arc<Mutex<Vec<u32>>> = Arc::default();
    let ended = Arc::clone(&done);
    let process = move |process: Arc<Process>| {
        let done = Arc::clone(&done);
        async move {
            let (program, core) = (process.member.begun().program, process.memory.node());
            grows_and_shrinks(process, 4).await?;
            if u32::from(program) == core {
                done.lock().push(core);
            }
            Ok(())
        }
    };
    let begins = [begin(0, 2), begin(20, 3)];
    let job = &jobs(Some(kill))[which];
    let ran = programs::run(job, Observe::default(), &begins, process);
    let mut ended = ended.lock().clone();
    ended.sort_unstable();
    match ran.unwrap_err() {
        Error::Spared(spared, _) => {
            assert_eq!((spared, ended), (kill, vec![0, 20]));
            false
        }
        Error::Died {
            death,
            why: None,
            ending,
            then: None,
        } => {
            assert_eq!((death.core, death.cause), (kill.core, Cause::Killed));
            assert_eq!(ending.core, kill.core);
            // A moment after the time that was wanted: its core commanded others then.
            let late_ns = death.at_ns - kill.at.as_ps() / 1_000;
            assert!(late_ns < 1_000_000, "{late_ns} ns late");
            // The other program has gone on to its end.
            let other = if death.program == 0 { 20 } else { 0 };
            assert!(ended.contains(&other), "{ended:?}");
            true
        }
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// At any time, in any call, a death ends the rest of the program, all cores are
    /// free, and another program on the chip goes on.
    #[test]
    fn a_death_ends_its_program_and_no_other(
        core in 0..6_u32,
        at_us in 400..12_000_u64,
        which in 0..JOBS,
    ) {
        one_is_killed(which, kill(core, at_us).unwrap());
    }
}

/// Deaths are found at all: of the process on core 0 while it runs, of none on a core that is never
/// used.
#[test]
fn some_are_killed_and_some_are_spared() {
    for which in 0..JOBS {
        let killed = [(0, 1_000), (20, 1_000), (47, 1_000), (0, 1)]
            .map(|(core, at_us)| one_is_killed(which, kill(core, at_us).unwrap()));
        assert_eq!(killed, [true, true, false, false]);
    }
}

/// The report names rank, core, cause and what the program held.
#[test]
fn the_report_says_who_died_why_and_what_it_held() {
    let process = |process: Arc<Process>| async move {
        let world = process.mpi.world();
        if world.rank() == 1 {
            assert_eq!(process.member.invade(2).await, 2);
            // To a rank that there is not.
            world.send(&[1_u8], 9, 0).await?;
        }
        // The others wait for what does not come.
        let mut got = [0_u8];
        world.receive(&mut got, Source::Rank(1), Tag::Any).await?;
        Ok(())
    };
    for (job, unit) in jobs(None).into_iter().zip(["core", "node"]) {
        let ran = programs::run(&job, Observe::default(), &[begin(5, 3)], process);
        let text = ran.unwrap_err().to_string();
        let begin = format!("rank 1 of program 5, on {unit} 0, ended with an error at ");
        assert!(text.starts_with(&begin), "{text}");
        let end = format!(
            "; the program held {unit}s 2, 3 without a process; its manager has ended the other 2 \
             processes"
        );
        assert!(text.ends_with(&end), "{text}");
        let why = " ms: MPI_Send: dest: there is no rank 9 among 3 (MPI_ERR_RANK)";
        assert!(text.contains(why), "{text}");
    }
}

/// A process that computes, or waits for a message, is killed at the time that was wanted.
#[test]
fn a_process_that_computes_is_killed_at_once() {
    for (which, computes) in [(0, false), (0, true), (1, false), (1, true)] {
        let process = move |process: Arc<Process>| async move {
            if computes {
                process.memory.delay(Time::from_ns(1_000_000_000)).await;
            }
            let mut got = [0_u8];
            let world = process.mpi.world();
            world.receive(&mut got, Source::Any, Tag::Any).await?;
            Ok(())
        };
        let wanted = kill(1, 20_000);
        let job = &jobs(wanted)[which];
        let ran = programs::run(job, Observe::default(), &[begin(0, 4)], process);
        let Err(Error::Died { death, ending, .. }) = ran else {
            panic!("the process on core 1 should have died");
        };
        assert_eq!((death.rank, ending.ended), (1, 3));
        assert!(
            (20_000_000..20_100_000).contains(&death.at_ns),
            "{}",
            death.at_ns
        );
    }
}

/// A program that begins where another has died, with messages under way, does not get them.
#[test]
fn later_processes_do_not_get_messages_of_the_dead() {
    for job in jobs(kill(2, 20_000)) {
        sends_to_later_processes(&job);
    }
}

fn sends_to_later_processes(job: &Job) {
    let process = |process: Arc<Process>| async move {
        let (mpi, program) = (&process.mpi, process.member.begun().program);
        let world = mpi.world();
        if program == 0 {
            // All send to all, and no rank receives.
            for other in 0..world.size() {
                if other != world.rank() {
                    drop(world.isend(&[7_u8; 64], other, 1).await?);
                }
            }
            process.memory.delay(Time::from_ns(1_000_000_000)).await;
            return Ok(());
        }
        if process.member.begun().launch.port.is_none() {
            // The others die meanwhile.
            process.memory.delay(Time::from_ns(30_000_000)).await;
            mpi.infect(&process.member, 6).await?;
        }
        let (world, mut sum) = (mpi.world(), [0_u32]);
        assert_eq!(world.size(), 7);
        let none = world.iprobe(Source::Any, Tag::Is(1)).await?;
        assert!(none.is_none());
        for _ in 0..20 {
            world.allreduce(&[1_u32], &mut sum, &Op::Sum).await?;
            assert_eq!(sum, [7]);
        }
        Ok(())
    };
    let begins = [begin(0, 5), begin(40, 1)];
    let ran = programs::run(job, Observe::default(), &begins, process);
    match ran {
        Err(Error::Died { death, ending, .. }) => {
            assert_eq!((death.program, death.core, ending.ended), (0, 2, 4));
        }
        other => panic!("{other:?}"),
    }
}

/// The command tells of the death with status 1, and of what cannot be with status 2.
#[test]
fn the_command_tells_of_the_death() {
    let died = "sme: rank 0 of program 0, on core 0, was killed at 50.";
    for (flags, status, begin) in [
        ("cg --kill 0@50ms --side 48", 1, died),
        (
            "cg --kill 47@50ms --side 48",
            2,
            "sme: no process runs on core 47 at 50 ms",
        ),
        (
            "cg --kill 48@50ms",
            2,
            "sme: --kill 48: 48 is too large; at most 47",
        ),
        (
            "bt --kill 3",
            2,
            "sme: --kill: needs a core and a time, as in 7@50ms",
        ),
        (
            "infect --machine sme-prototype --nodes 4 --kill 3@1s",
            2,
            "sme: no process runs on node 3 at 1000 ms",
        ),
        ("spawn --kill 3@5", 2, "sme: --kill: "),
        ("simpson --kill 3@1h", 2, "sme: --kill: "),
        (
            "invade --kill 3@1s",
            2,
            "sme: unexpected argument '--kill' found",
        ),
    ] {
        let ran = sme(&format!("mpi {flags} --no-host"));
        let told = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(status), "{flags}: {told}");
        assert!(told.starts_with(begin), "{flags}: {told}");
        assert!(ran.stdout.is_empty(), "{flags}");
    }
}
