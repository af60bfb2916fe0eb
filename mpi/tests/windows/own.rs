//! Accesses of ranks to their own memory, which others access meanwhile.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sme_mpi::error::MpiError;
use sme_mpi::op::Op;
use sme_mpi::rank::{Mpi, Source, Tag, Target, Window};
use sme_mpi::window::Synchronization;
use sme_mpi::wires::{Setting, Wire, run};

const LONG: u64 = size_of::<u64>() as u64;

/// Accumulates of one rank and the next to one element of the first: each is made after the other
/// has been told of the one before, and those to others are flushed.
#[derive(Clone, Debug)]
struct Case {
    sync: Synchronization,
    /// The lock is one of all, or of the one target.
    locks_all: bool,
    is_hasty: bool,
    setting: Setting,
    /// Whether the owner makes it, whether it replaces what is there, and its operand.
    deeds: Vec<(bool, bool, u64)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let deeds = prop::collection::vec(any::<(bool, bool, u64)>(), 1..10);
    let setting = (any::<u64>(), 1usize..200);
    let sync = prop::sample::select(&Synchronization::ALL[..]);
    (sync, any::<(bool, bool)>(), setting, deeds).prop_map(
        |(sync, (locks_all, is_hasty), (seed, room), deeds)| Case {
            sync,
            locks_all,
            is_hasty,
            setting: Setting { room, seed },
            deeds,
        },
    )
}

/// Does the deeds as rank 0, the owner, or rank 1; the element at the end.
async fn does(mpi: &Mpi<Wire>, window: &Window<'_, Wire>, case: &Case) -> Result<u64, MpiError> {
    let world = mpi.world();
    let is_owner = world.rank() == 0;
    let other = 1 - world.rank();
    match case.locks_all {
        true => window.lock_all().await?,
        false => window.lock(0, false).await?,
    }
    if case.is_hasty {
        window.hasten(None)?;
    }
    let target = Target::at(0, 0);
    for &(by_owner, replaces, value) in &case.deeds {
        if by_owner != is_owner {
            let told = &mut [0u8];
            world.receive(told, Source::Rank(other), Tag::Any).await?;
            continue;
        }
        let op = if replaces { Op::Replace } else { Op::Sum };
        window.accumulate(&[value], &target, &op).await?;
        if !is_owner {
            window.flush(Some(0)).await?;
        }
        world.send(&[0u8], other, 0).await?;
    }
    match case.locks_all {
        true => window.unlock_all().await?,
        false => window.unlock(0).await?,
    }
    world.barrier().await?;
    let mut word = [0u64];
    window.load(0, &mut word).await?;
    Ok(word[0])
}

/// An accumulate of a rank to its own memory is there when the call returns: others that follow
/// act on it.
#[test]
fn accumulates_to_oneself_come_before_what_follows_them() {
    let mut runner = TestRunner::new(Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    });
    let check = |case: Case| {
        let outcome = run(2, case.setting, |wire| {
            let case = case.clone();
            async move {
                let mpi = Mpi::new(wire);
                let window = mpi.world().allocate_window(LONG, LONG, case.sync).await?;
                let word = does(&mpi, &window, &case).await?;
                window.free().await?;
                mpi.finalize().await?;
                Ok::<u64, MpiError>(word)
            }
        });
        let combine = |word: u64, &(_, replaces, value): &(bool, bool, u64)| match replaces {
            true => value,
            false => word.wrapping_add(value),
        };
        let expected = case.deeds.iter().fold(0, combine);
        let outcome = outcome.map_err(|stuck| TestCaseError::fail(format!("{stuck:?}")))?;
        prop_assert_eq!(&outcome[0], &Ok(expected));
        Ok(())
    };
    runner.run(&cases(), check).unwrap();
}

/// The element in which a rank is told that it has the lock, the one with its successor, and that
/// with the last of the queue, which rank 0 has.
const HELD: u64 = 0;
const NEXT: u64 = 1;
const TAIL: u64 = 2;

const NO_RANK: u64 = u64::MAX;

/// Replaces an element of `target`.
async fn set(
    window: &Window<'_, Wire>,
    target: u32,
    (element, value): (u64, u64),
) -> Result<(), MpiError> {
    let target = Target::at(target, element);
    window.accumulate(&[value], &target, &Op::Replace).await
}

/// Waits until an element of the own memory is not `no_value`.
async fn spin(window: &Window<'_, Wire>, (element, no_value): (u64, u64)) -> Result<u64, MpiError> {
    let own = Target::at(window.rank(), element);
    loop {
        let mut word = [0u64];
        let mut got = window
            .get_accumulate(&[0u64], &mut word, &own, &Op::NoOp)
            .await?;
        window.flush(Some(window.rank())).await?;
        got.wait().await?;
        drop(got);
        if word[0] != no_value {
            return Ok(word[0]);
        }
    }
}

/// Takes the lock of Mellor-Crummey and Scott: the own fields are set without a flush.
async fn acquire(window: &Window<'_, Wire>) -> Result<(), MpiError> {
    let rank = u64::from(window.rank());
    window.lock_all().await?;
    window.hasten(None)?;
    set(window, window.rank(), (NEXT, NO_RANK)).await?;
    let mut before = [NO_RANK];
    let tail = Target::at(0, TAIL);
    let mut got = window
        .get_accumulate(&[rank], &mut before, &tail, &Op::Replace)
        .await?;
    window.flush(Some(0)).await?;
    got.wait().await?;
    drop(got);
    if before[0] != NO_RANK {
        set(window, before[0] as u32, (NEXT, rank)).await?;
        spin(window, (HELD, 0)).await?;
    }
    set(window, window.rank(), (HELD, 1)).await?;
    window.unlock_all().await
}

/// Gives it to the successor, if there is one.
async fn release(window: &Window<'_, Wire>) -> Result<(), MpiError> {
    let rank = u64::from(window.rank());
    window.lock_all().await?;
    window.hasten(None)?;
    let mut last = [NO_RANK];
    let tail = Target::at(0, TAIL);
    let mut got = window
        .compare_and_swap((rank, NO_RANK), &mut last, &tail)
        .await?;
    window.flush(Some(0)).await?;
    got.wait().await?;
    drop(got);
    if last[0] != rank {
        let next = spin(window, (NEXT, NO_RANK)).await?;
        set(window, next as u32, (HELD, 1)).await?;
    }
    set(window, window.rank(), (HELD, 0)).await?;
    window.unlock_all().await
}

/// Adds one to an element, which no one else accesses meanwhile, by a get and a put.
async fn add_one(window: &Window<'_, Wire>, cell: &Target) -> Result<(), MpiError> {
    let mut count = [0u64];
    let mut got = window.get(&mut count, cell).await?;
    window.flush(None).await?;
    got.wait().await?;
    drop(got);
    window.put(&[count[0] + 1], cell).await
}

/// A queue of ranks that wait, each for an element of its own, as `mpi4py.util.sync` builds it:
/// each rank sets that without a flush before it joins the queue.
#[test]
fn a_queueing_lock_is_passed_on() {
    for sync in Synchronization::ALL {
        for seed in 0..60 {
            let setting = Setting { room: 60, seed };
            let outcome = run(4, setting, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let window = world.allocate_window(4 * LONG, LONG, sync).await?;
                window.store(0, &[0, NO_RANK, NO_RANK, 0u64]).await?;
                world.barrier().await?;
                let counter = Target::at(0, TAIL + 1);
                for _ in 0..3 {
                    acquire(&window).await?;
                    window.lock(0, false).await?;
                    add_one(&window, &counter).await?;
                    window.unlock(0).await?;
                    release(&window).await?;
                }
                world.barrier().await?;
                let mut count = [0u64];
                window.load(TAIL + 1, &mut count).await?;
                window.free().await?;
                mpi.finalize().await?;
                Ok::<u64, MpiError>(count[0])
            });
            let counts = outcome.unwrap_or_else(|stuck| panic!("{sync}, {seed}: {stuck:?}"));
            assert_eq!(counts[0], Ok(12), "{sync}, seed {seed}");
        }
    }
}

/// The lock of the own memory is held when the call returns, as loads and stores rely on it.
#[test]
fn the_own_lock_is_held_when_the_call_returns() {
    for sync in Synchronization::ALL {
        for seed in 0..60 {
            let setting = Setting { room: 60, seed };
            let outcome = run(3, setting, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let window = world.allocate_window(LONG, LONG, sync).await?;
                let cell = Target::at(0, 0);
                for _ in 0..4 {
                    window.lock(0, true).await?;
                    if world.rank() == 0 {
                        let mut count = [0u64];
                        window.load(0, &mut count).await?;
                        world.iprobe(Source::Any, Tag::Any).await?;
                        window.store(0, &[count[0] + 1]).await?;
                    } else {
                        add_one(&window, &cell).await?;
                    }
                    window.unlock(0).await?;
                }
                world.barrier().await?;
                let mut count = [0u64];
                window.load(0, &mut count).await?;
                window.free().await?;
                mpi.finalize().await?;
                Ok::<u64, MpiError>(count[0])
            });
            let counts = outcome.unwrap_or_else(|stuck| panic!("{sync}, {seed}: {stuck:?}"));
            assert_eq!(counts[0], Ok(12), "{sync}, seed {seed}");
        }
    }
}
