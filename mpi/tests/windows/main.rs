//! Windows: random epochs of every kind against memory that is kept in one place, on every kind of
//! synchronization, and what must be refused.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod errors;
mod forms;
mod own;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sme_mpi::error::MpiError;
use sme_mpi::group::Group;
use sme_mpi::op::Op;
use sme_mpi::rank::{Mpi, Target, Window};
use sme_mpi::window::{Flaw, Synchronization};
use sme_mpi::wires::{Setting, Stuck, Wire, run};

/// Elements that each origin may put to at each target.
const SLOT: usize = 3;

/// Elements of each rank's window: a slot for each origin, one that all add to, and one that stays
/// unchanged.
fn elements(ranks: u32) -> usize {
    SLOT * ranks as usize + 2
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fence,
    Pscw,
    Lock { is_exclusive: bool },
    LockAll,
}

/// The accesses of one origin to one target in a round.
#[derive(Clone, Copy, Debug)]
struct Deed {
    origin: u32,
    target: u32,
    /// The elements that it puts: the first, and their number.
    put: (usize, usize),
    value: u64,
    adds: bool,
    gets: bool,
}

#[derive(Clone, Debug)]
struct Round {
    kind: Kind,
    deeds: Vec<Deed>,
}

#[derive(Clone, Debug)]
struct Case {
    sync: Synchronization,
    ranks: u32,
    setting: Setting,
    rounds: Vec<Round>,
}

fn deeds(ranks: u32) -> impl Strategy<Value = Vec<Deed>> {
    let deed = (
        0..ranks,
        0..ranks,
        0usize..SLOT,
        0usize..=SLOT,
        any::<u64>(),
        any::<(bool, bool)>(),
    );
    let deed = deed.prop_map(|(origin, target, begin, count, value, (adds, gets))| Deed {
        origin,
        target,
        put: (begin, count.min(SLOT - begin)),
        value,
        adds,
        gets,
    });
    prop::collection::vec(deed, 0..12)
}

fn cases() -> impl Strategy<Value = Case> {
    let kinds = [
        Kind::Fence,
        Kind::Pscw,
        Kind::Pscw,
        Kind::Lock { is_exclusive: true },
        Kind::Lock {
            is_exclusive: false,
        },
        Kind::LockAll,
    ];
    (1u32..7, any::<u64>(), 1usize..200).prop_flat_map(move |(ranks, seed, room)| {
        let round = (prop::sample::select(kinds.to_vec()), deeds(ranks));
        let round = round.prop_map(|(kind, deeds)| Round { kind, deeds });
        let rounds = prop::collection::vec(round, 1..8);
        (prop::sample::select(&Synchronization::ALL[..]), rounds).prop_map(move |(sync, rounds)| {
            Case {
                sync,
                ranks,
                setting: Setting { room, seed },
                rounds,
            }
        })
    })
}

/// The windows of all ranks after each round.
fn expected(case: &Case) -> Vec<Vec<Vec<u64>>> {
    let mut windows: Vec<Vec<u64>> = (0..case.ranks)
        .map(|rank| content(case.ranks, rank))
        .collect();
    let rounds = case.rounds.iter();
    rounds
        .map(|round| {
            for deed in &round.deeds {
                let window = &mut windows[deed.target as usize];
                let (begin, count) = deed.put;
                let slot = SLOT * deed.origin as usize + begin;
                window[slot..slot + count].fill(deed.value);
                if deed.adds {
                    let sum = &mut window[elements(case.ranks) - 2];
                    *sum = sum.wrapping_add(deed.value);
                }
            }
            windows.clone()
        })
        .collect()
}

/// The content of a rank's window at the beginning.
fn content(ranks: u32, rank: u32) -> Vec<u64> {
    let all = 0..elements(ranks) as u64;
    all.map(|place| u64::from(rank) << 32 | place).collect()
}

/// Does what `round` has for this rank; whether what it gets is right.
async fn does(window: &Window<'_, Wire>, case: &Case, deeds: &[Deed]) -> Result<(), MpiError> {
    let ranks = case.ranks;
    for deed in deeds {
        let slot = (SLOT * deed.origin as usize + deed.put.0) as u64;
        let values = vec![deed.value; deed.put.1];
        window.put(&values, &Target::at(deed.target, slot)).await?;
        if deed.adds {
            let sum = Target::at(deed.target, elements(ranks) as u64 - 2);
            window.accumulate(&[deed.value], &sum, &Op::Sum).await?;
        }
    }
    Ok(())
}

async fn round(
    mpi: &Mpi<Wire>,
    window: &Window<'_, Wire>,
    case: &Case,
    round: &Round,
) -> Result<bool, MpiError> {
    let me = window.rank();
    let of = |deed: &&Deed| deed.origin == me;
    let own: Vec<Deed> = round.deeds.iter().filter(of).copied().collect();
    let mut targets: Vec<u32> = own.iter().map(|deed| deed.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let to = |deed: &&Deed| deed.target == me;
    let mut origins: Vec<u32> = round
        .deeds
        .iter()
        .filter(to)
        .map(|deed| deed.origin)
        .collect();
    origins.sort_unstable();
    origins.dedup();
    let group = |ranks: &[u32]| Group::from_world_ranks(ranks.to_vec()).unwrap();
    let constant = elements(case.ranks) as u64 - 1;
    let got: Vec<Deed> = own.iter().filter(|deed| deed.gets).copied().collect();
    let mut gotten = vec![[0u64]; got.len()];
    match round.kind {
        Kind::Fence | Kind::Pscw | Kind::LockAll => {
            match round.kind {
                Kind::Fence => window.fence().await?,
                Kind::Pscw => {
                    window.post(&group(&origins)).await?;
                    window.start(&group(&targets)).await?;
                }
                _ => window.lock_all().await?,
            }
            does(window, case, &own).await?;
            let mut requests = Vec::new();
            for (deed, into) in got.iter().zip(&mut gotten) {
                requests.push(window.get(into, &Target::at(deed.target, constant)).await?);
            }
            match round.kind {
                Kind::Fence => window.fence().await?,
                Kind::Pscw => {
                    window.complete().await?;
                    window.wait().await?;
                }
                _ => {
                    window.flush(None).await?;
                    window.unlock_all().await?;
                }
            }
            for request in &mut requests {
                request.wait().await?;
            }
        }
        Kind::Lock { is_exclusive } => {
            for &target in &targets {
                window.lock(target, is_exclusive).await?;
                let to = |deed: &&Deed| deed.target == target;
                let deeds: Vec<Deed> = own.iter().filter(to).copied().collect();
                does(window, case, &deeds).await?;
                let mut requests = Vec::new();
                for (deed, into) in got.iter().zip(&mut gotten) {
                    if deed.target == target {
                        requests.push(window.get(into, &Target::at(target, constant)).await?);
                    }
                }
                window.unlock(target).await?;
                for request in &mut requests {
                    request.wait().await?;
                }
            }
        }
    }
    mpi.world().barrier().await?;
    let right = got.iter().zip(&gotten);
    let mut right = right.map(|(deed, got)| got[0] == u64::from(deed.target) << 32 | constant);
    Ok(right.all(|right| right))
}

type Seen = Result<Vec<Vec<u64>>, MpiError>;

/// The content of each rank's window after each round, as the rank loads it.
fn seen(case: &Case) -> Result<Vec<Seen>, Stuck> {
    run(case.ranks, case.setting, |wire| async move {
        let mpi = Mpi::new(wire);
        let memory = content(case.ranks, mpi.world().rank());
        let memory: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
        let window = mpi.world().create_window(memory, 8, case.sync).await?;
        let mut all = Vec::new();
        for one in &case.rounds {
            let is_right = round(&mpi, &window, case, one).await?;
            assert!(is_right, "what was got is what was there");
            let mut own = vec![0; elements(case.ranks)];
            window.load(0, &mut own).await?;
            all.push(own);
            mpi.world().barrier().await?;
        }
        let last = window.free().await?;
        let last: Vec<u64> = last
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        assert_eq!(Some(&last), all.last());
        mpi.finalize().await?;
        Ok(all)
    })
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let expected = expected(case);
    let seen = match seen(case) {
        Ok(seen) => seen,
        Err(stuck) => return Err(TestCaseError::fail(format!("{stuck:?}"))),
    };
    for (rank, seen) in seen.into_iter().enumerate() {
        let seen = seen.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let own: Vec<&Vec<u64>> = expected.iter().map(|windows| &windows[rank]).collect();
        prop_assert_eq!(seen.iter().collect::<Vec<_>>(), own);
    }
    Ok(())
}

#[test]
fn windows_hold_what_was_put_into_them() {
    let mut runner = TestRunner::new(Config {
        cases: 600,
        failure_persistence: None,
        ..Config::default()
    });
    runner.run(&cases(), |case| check(&case)).unwrap();
}

/// Rounds without accesses, of one origin and the others as its targets (Algorithm 3).
fn rounds_of_one_origin(
    sync: Synchronization,
    seed: u64,
) -> Result<Vec<Result<(), MpiError>>, Stuck> {
    run(4, Setting { room: 60, seed }, |wire| async move {
        let mpi = Mpi::new(wire);
        let window = mpi.world().allocate_window(0, 1, sync).await?;
        let group = |ranks: Vec<u32>| Group::from_world_ranks(ranks).unwrap();
        for _ in 0..10 {
            if window.rank() == 0 {
                window.start(&group(vec![1, 2, 3])).await?;
                window.complete().await?;
            } else {
                window.post(&group(vec![0])).await?;
                window.wait().await?;
            }
        }
        window.free().await?;
        mpi.finalize().await
    })
}

#[test]
fn epochs_follow_each_other_without_a_barrier() {
    for sync in Synchronization::ALL {
        for seed in 0..100 {
            assert_eq!(
                rounds_of_one_origin(sync, seed),
                Ok(vec![Ok(()); 4]),
                "{sync}, {seed}"
            );
        }
    }
}

#[test]
fn a_reset_without_the_lock_loses_a_post() {
    let flawed = Synchronization::Flawed(Flaw::ResetsUnlocked);
    let stuck = (0..100).filter(|&seed| rounds_of_one_origin(flawed, seed).is_err());
    assert!(stuck.count() > 10, "a lost post goes unnoticed");
}
