//! Reports of programs, barriers and locks of one's own that wait for ever: the place in the
//! source, the variable by its name, and its last write.

use std::sync::Arc;

use sme::experiment::{Algorithm, Error, Observe, VariablePlacement as Where};
use sme::messages::job::{self, Job, Library};
use sme::messages::processor::Core;
use sme::program::{Kernel, Mapped, Program};
use sme::progress::Silent;
use sme::validate::papers::sme::points::Variant;
use sme::validate::papers::sme::simulator::Simulator;
use sme_barrier::{Barrier, Member};
use sme_fft_demo::{Array, Placement, Team};
use sme_memory::{Atomic, Memory, Place, Route, Until};
use sme_mpi::channel::layout::Layout;
use sme_mpi::channel::sections::Sections;
use sme_mpi::group::Group;
use sme_mpi::rank::{Mpi, Source, Tag};
use sme_mpi::window::{Flaw, Synchronization};
use sme_sim::machine::{Machine, Setup};
use sme_sim::parts::contract::ThreadMemory;

/// The line of this file that ends with the comment `marker`.
fn line_of(marker: &str) -> usize {
    let mut lines = include_str!("deadlocks.rs").lines();
    let found = lines.position(|line| line.ends_with(&format!("// {marker}")));
    1 + found.expect("a line with this comment")
}

fn machine(name: &str) -> Arc<Machine> {
    Arc::new(Machine::builtin(name).expect("a built-in machine"))
}

/// The mistake in a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// The writer stores through its cache and does not write back.
    StaysInCache,
    /// The flag is set before it is cleared.
    Cleared,
    /// The last thread leaves out the barrier.
    LeavesEarly,
}

/// Thread 0 tells thread 1 by a flag, the first byte of an element, that something is ready.
struct HandOver {
    ready: Array,
    wrong: Wrong,
}

impl Kernel for HandOver {
    fn phases(&self) -> Vec<&'static str> {
        vec!["begin", "hand over"]
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        Box::new(std::iter::empty())
    }

    fn arrays(&self) -> Vec<(&'static str, &Array)> {
        vec![("ready", &self.ready)]
    }

    async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
        team.barrier().await;
        let place = self.ready.place(3);
        let flag = team.memory().flag(place, Route::Nearest);
        match (team.number(), self.wrong) {
            (0, Wrong::StaysInCache) => {
                let word = team.memory().word(place, Route::Cached);
                team.memory().store(word, 1).await;
            }
            (0, Wrong::Cleared) => {
                team.memory().set(flag, 1).await;
                team.memory().set(flag, 0).await;
            }
            (0, _) => team.memory().set(flag, 1).await,
            (1, Wrong::Cleared) => {
                team.compute(10_000).await;
                team.memory().wait(flag, Until::Is(1)).await; // cleared
            }
            (1, _) => drop(team.memory().wait(flag, Until::Is(1)).await), // handed over
            _ => {}
        }
        if self.wrong != Wrong::LeavesEarly || team.number() + 1 < team.size() {
            team.barrier().await;
        }
    }
}

/// The failure of the program on that machine, by two threads on a node each.
fn hands_over(name: &str, wrong: Wrong) -> Result<(), String> {
    let program = Program {
        mapped: Mapped::Uncached,
        ..Program::new(machine(name), 2, 1)
    };
    let mut pool = program.pool().expect("room");
    let ready = pool.array(8, Placement::Block).expect("room");
    let kernel = Arc::new(HandOver { ready, wrong });
    let outcome = program.run(&kernel, |_, _| ());
    outcome
        .map(drop)
        .map_err(|error| without_lines(&error.to_string(), "barrier/src/tree.rs:"))
}

/// `report` without the numbers of lines behind `file`.
fn without_lines(report: &str, file: &str) -> String {
    let mut parts = report.split(file);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        text + file + "LINE" + rest
    })
}

#[test]
fn a_value_that_stays_in_a_cache_is_named_with_its_variable_and_the_wait() {
    assert_eq!(hands_over("sme-prototype", Wrong::Nothing), Ok(()));
    let report = hands_over("sme-prototype", Wrong::StaysInCache).expect_err("a deadlock");
    let expected = format!(
        "\
deadlock: at 2003942.308 ns nothing can happen any more, and 2 threads wait
  node 1 core 0 polls through the engine at ready[3], byte 216 of node 0 (0x100000000d8), until it is 1, in \
tests/system/deadlocks.rs:{}: memory at home holds 0, its cache nothing; never written; the cache of node 0 \
core 0 holds 1, which is not written back
behind them, for what threads above wrote last:
  node 0 core 0 spins in its cache at node 1's flag, byte 64 of node 0 (0x200000040), until it is not 1, in \
barrier/src/tree.rs:LINE: memory at home holds 1, its cache 1; last written by node 1 core 0 at 4255.706 ns",
        line_of("handed over")
    );
    assert_eq!(report, expected);
}

#[test]
fn the_last_write_of_a_flag_that_was_set_too_early_has_a_time() {
    let report = hands_over("sme-prototype", Wrong::Cleared).expect_err("a deadlock");
    let expected = format!(
        "\
deadlock: at 2004134.616 ns nothing can happen any more, and 2 threads wait
  node 0 core 0 spins in its cache at node 1's flag, byte 64 of node 0 (0x200000040), until it is not 1, in \
barrier/src/tree.rs:LINE: memory at home holds 1, its cache 1; last written by node 1 core 0 at 4255.706 ns
  node 1 core 0 polls through the engine at ready[3], byte 216 of node 0 (0x100000000d8), until it is 1, in \
tests/system/deadlocks.rs:{}: memory at home holds 0, its cache nothing; last written by node 0 core 0 at \
4566.254 ns",
        line_of("cleared")
    );
    assert_eq!(report, expected);
}

#[test]
fn the_variables_of_a_programs_barrier_have_their_names() {
    let report = hands_over("sme-prototype", Wrong::LeavesEarly).expect_err("a deadlock");
    let expected = "\
deadlock: at 7967.949 ns nothing can happen any more, and 1 thread waits
  node 0 core 0 spins in its cache at node 1's flag, byte 64 of node 0 (0x200000040), until it is not 1, in \
barrier/src/tree.rs:LINE: memory at home holds 1, its cache 1; last written by node 1 core 0 at 4255.706 ns";
    assert_eq!(report, expected);
}

#[test]
fn a_machine_of_another_family_says_the_same() {
    assert_eq!(hands_over("ideal", Wrong::Nothing), Ok(()));
    let report = hands_over("ideal", Wrong::Cleared).expect_err("a deadlock");
    let expected = format!(
        "\
deadlock: at 2003716.000 ns nothing can happen any more, and 2 threads wait
  node 0 core 0 spins in its cache at node 1's flag, byte 64 of node 0 (0x40), until it is not 1, in \
barrier/src/tree.rs:LINE: memory at home holds 1, its cache nothing; last written by node 1 core 0 at \
1612.000 ns
  node 1 core 0 polls another node at ready[3], byte 216 of node 0 (0xd8), until it is 1, in \
tests/system/deadlocks.rs:{}: memory at home holds 0, its cache nothing; last written by node 0 core 0 at \
1770.000 ns",
        line_of("cleared")
    );
    assert_eq!(report, expected);
}

/// A chain in which one thread sets the flag of a wrong one.
struct Astray;

impl<M: Memory> Barrier<M> for Astray {
    type Local = ();

    async fn wait(&self, memory: &M, me: Member, (): &mut ()) {
        let flag = |core: u32| {
            let offset = 64 * u64::from(core);
            memory.flag(Place { node: 0, offset }, Route::Nearest)
        };
        if me.core > 0 {
            memory.wait(flag(me.core), Until::Is(1)).await; // chain
        }
        let next = if me.core == 1 { 3 } else { me.core + 1 };
        memory.set(flag(next), 1).await;
    }

    fn variable(&self, place: Place) -> Option<String> {
        Some(format!("the turn of core {}", place.offset / 64))
    }
}

#[test]
fn a_flag_set_by_a_wrong_thread_is_missed_where_it_is_due() {
    let simulator = Simulator::new(machine("sme-prototype"), 1, 1).expect("a machine");
    let tree = simulator.experiment(Variant::Prototype, Algorithm::Tree, Where::Local, 1, 4);
    let ended = tree.simulate(Astray, &Observe::default(), &Silent);
    let Err(Error::Failure(failure)) = ended else {
        panic!("no deadlock: {ended:?}");
    };
    let expected = format!(
        "\
deadlock: at 633.456 ns nothing can happen any more, and 1 thread waits
  node 0 core 2 spins in its cache at the turn of core 2, byte 128 of node 0 (0x200000080), until it is 1, in \
tests/system/deadlocks.rs:{}: memory at home holds 0, its cache 0; never written",
        line_of("chain")
    );
    assert_eq!(failure.to_string(), expected);
}

/// Runs `program` as each of two ranks on cores of the SCC; the report of its deadlock, without the
/// lines of the channel's source.
fn stuck_ranks<F>(program: impl Fn(Mpi<Sections<ThreadMemory, Core>>) -> F) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let scc = machine("scc");
    let shape = scc.shape();
    let layout = Layout::of_buffers(2, shape.buffer_bytes);
    let rank = |memory: ThreadMemory, rank, _| {
        let core = Core::new(memory.clone(), shape.software);
        let channel = Sections::new(memory, core, rank, layout);
        program(Mpi::new(channel.expect("room")))
    };
    let mut machine = scc.build(Setup::new(shape, 2, 1), rank).expect("a machine");
    let failure = machine.run(1, |_| {}).expect_err("a deadlock");
    let failure = failure.named(&|place| layout.variable(place));
    without_lines(&failure.to_string(), "mpi/src/channel/sections/mod.rs:")
}

#[test]
fn ranks_that_wait_for_each_other_are_named_with_their_calls() {
    let report = stuck_ranks(|mpi| async move {
        let world = mpi.world();
        let other = 1 - world.rank();
        let mut values = [0_u64; 4];
        // The first message arrives, and its calls are over.
        match world.rank() {
            0 => world.send(&values, other, 0).await.expect("a rank"),
            _ => drop(world.receive(&mut values, Source::Any, Tag::Any).await),
        }
        let cycle = world.receive(&mut values, Source::Rank(other), Tag::Is(7)); // cycle
        drop(cycle.await);
    });
    let line = line_of("cycle");
    let expected = format!(
        "\
deadlock: at 10988.820 ns nothing can happen any more, and 2 threads wait
  node 0 core 0 polls its own memory for any of several flags, the first at rank 0's full flag at rank 0, \
byte 0 of node 0 (0xc0000000), until it is not 0, in MPI_Recv from rank 1 at tests/system/deadlocks.rs:{line}, in mpi/src/channel/sections/mod.rs:LINE: memory at home holds 0, its cache \
nothing; never written
  node 1 core 0 polls its own memory for any of several flags, the first at rank 0's full flag at rank 1, \
byte 0 of node 1 (0xc0002000), until it is not 0, in MPI_Recv from rank 0 at tests/system/deadlocks.rs:{line}, in mpi/src/channel/sections/mod.rs:LINE: memory at home holds 0, its cache \
nothing; last written by node 1 core 0"
    );
    assert_eq!(report, expected);
}

/// On a cluster a rank waits for what its server tells it, and the server for messages.
#[test]
fn ranks_on_clusters_that_wait_for_each_other_are_named_with_their_calls() {
    let job = Job::new(machine("mppa256"), Library::Queues, 2);
    let ended = job.run_mpi(job::Observe::default(), |mpi, _| async move {
        let world = mpi.world();
        let other = Source::Rank(1 - world.rank());
        world.receive(&mut [0_u64; 4], other, Tag::Is(7)).await?; // clusters
        mpi.finalize().await
    });
    let Err(job::Error::Failure(failure)) = ended else {
        panic!("no deadlock");
    };
    let report = failure.to_string();
    let line = line_of("clusters");
    for (node, other) in [(0, 1), (1, 0)] {
        let rank = format!("node {node} core 0 polls its own memory");
        let call = format!("in MPI_Recv from rank {other} at tests/system/deadlocks.rs:{line}");
        let is_told = |told: &str| told.contains(&rank) && told.contains(&call);
        assert!(report.lines().any(is_told), "{report}");
        let server = format!("node {node} core 1 polls its own memory");
        assert!(report.contains(&server), "{report}");
    }
}

/// The deadlock that Christgau and Schnor predict (Sec. IV-B2): the origin keeps its match vector
/// in its caches. It takes back the bit of target 1; target 2 posts; the origin's computation
/// drives the line out of its caches, and what it writes back has no bit of target 2.
#[test]
fn a_cached_match_vector_loses_a_post() {
    let scc = machine("scc");
    let run = |sync: Synchronization| {
        let job = Job::new(Arc::clone(&scc), Library::Sccmpb, 3);
        job.run_mpi(job::Observe::default(), move |mpi, memory| async move {
            let window = mpi.world().allocate_window(0, 1, sync).await?;
            let group = |rank| Group::from_world_ranks(vec![rank]).expect("one rank");
            let world = mpi.world();
            if world.rank() == 0 {
                // Target 1 has posted: a copy that was made before would never show it.
                world
                    .receive(&mut [0_u8], Source::Rank(1), Tag::Any)
                    .await?;
                window.start(&group(1)).await?;
                window.complete().await?;
                // Target 2 posts.
                world.send(&[1_u8], 2, 0).await?;
                world
                    .receive(&mut [0_u8], Source::Rank(2), Tag::Any)
                    .await?;
                // Twice as much as the caches hold.
                for offset in (0..512 << 10).step_by(32) {
                    let place = Place {
                        node: 0,
                        offset: (4 << 20) + offset,
                    };
                    memory.load(memory.word(place, Route::Cached)).await;
                }
                window.start(&group(2)).await?;
                window.complete().await?; // never
            } else {
                if world.rank() == 2 {
                    world
                        .receive(&mut [0_u8], Source::Rank(0), Tag::Any)
                        .await?;
                }
                window.post(&group(0)).await?;
                world.send(&[1_u8], 0, 0).await?;
                window.wait().await?;
            }
            window.free().await?;
            mpi.finalize().await
        })
    };
    assert!(run(Synchronization::TriggerOnly).is_ok());
    let Err(job::Error::Failure(failure)) = run(Synchronization::Flawed(Flaw::CachesVector)) else {
        panic!("the post is not lost");
    };
    let report = without_lines(&failure.to_string(), "mpi/src/channel/shared.rs:");
    let origin = report.lines().find(|line| line.contains("node 0 core 0"));
    let origin = origin.expect("the origin waits");
    for part in [
        "rank 0's match vector",
        &format!(
            "in MPI_Win_complete at tests/system/deadlocks.rs:{}",
            line_of("never")
        ),
        "memory at home holds 0, its cache 0",
    ] {
        assert!(origin.contains(part), "{part}: {report}");
    }
    assert!(report.contains("rank 2's completion counter"), "{report}");
}
