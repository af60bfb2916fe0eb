//! The fetching forms, derived datatypes, locks that exclude, and what a window's calls do beside
//! messages.

use sme_mpi::datatype::{Basic, Datatype};
use sme_mpi::group::Group;
use sme_mpi::op::Op;
use sme_mpi::rank::{Mpi, Source, Tag, Target};
use sme_mpi::window::Synchronization;
use sme_mpi::wires::{Setting, run};

/// All take tickets from rank 0, by fetch-and-add and by compare-and-swap: nobody gets one twice.
#[test]
fn tickets_are_given_once() {
    for sync in Synchronization::ALL {
        for seed in 0..20 {
            let outcome = run(5, Setting { room: 60, seed }, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let window = world.allocate_window(16, 8, sync).await.unwrap();
                let mut tickets = Vec::new();
                let (added, swapped) = (Target::at(0, 0), Target::at(0, 1));
                for _ in 0..4 {
                    window.lock(0, false).await.unwrap();
                    let mut ticket = [0u64];
                    let mut got = window
                        .get_accumulate(&[1u64], &mut ticket, &added, &Op::Sum)
                        .await
                        .unwrap();
                    window.unlock(0).await.unwrap();
                    got.wait().await.unwrap();
                    drop(got);
                    tickets.push(ticket[0]);
                }
                let mut guess = 0u64;
                loop {
                    window.lock(0, false).await.unwrap();
                    let mut found = [0u64];
                    let new = (guess, guess + 1);
                    let mut got = window
                        .compare_and_swap(new, &mut found, &swapped)
                        .await
                        .unwrap();
                    window.flush(Some(0)).await.unwrap();
                    got.wait().await.unwrap();
                    drop(got);
                    window.unlock(0).await.unwrap();
                    if found[0] == guess {
                        break;
                    }
                    guess = found[0];
                }
                tickets.push(100 + guess);
                window.free().await.unwrap();
                mpi.finalize().await.unwrap();
                tickets
            });
            let mut all: Vec<u64> = outcome.unwrap().concat();
            all.sort_unstable();
            let wanted: Vec<u64> = (0..20).chain(100..105).collect();
            assert_eq!(all, wanted, "{sync}, seed {seed}");
        }
    }
}

/// An exclusive lock keeps others out between a get and the put that depends on it.
#[test]
fn an_exclusive_lock_excludes() {
    for sync in Synchronization::ALL {
        for seed in 0..20 {
            let outcome = run(4, Setting { room: 60, seed }, |wire| async move {
                let mpi = Mpi::new(wire);
                let window = mpi.world().allocate_window(8, 8, sync).await?;
                let counter = Target::at(2, 0);
                for _ in 0..3 {
                    window.lock(2, true).await?;
                    let mut value = [0u64];
                    let mut got = window.get(&mut value, &counter).await?;
                    window.flush(Some(2)).await?;
                    got.wait().await?;
                    drop(got);
                    window.put(&[value[0] + 1], &counter).await?;
                    window.unlock(2).await?;
                }
                mpi.world().barrier().await?;
                let mut value = [0u64];
                window.load(0, &mut value).await?;
                assert_eq!(value[0], if window.rank() == 2 { 12 } else { 0 });
                window.free().await?;
                mpi.finalize().await
            });
            assert_eq!(outcome, Ok(vec![Ok(()); 4]), "{sync}, seed {seed}");
        }
    }
}

/// A row is put where a column is, and odd bytes beside others' odd bytes.
#[test]
fn targets_have_datatypes_of_their_own() {
    for sync in Synchronization::ALL {
        for seed in 0..10 {
            let outcome = run(3, Setting { room: 60, seed }, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let rank = world.rank();
                let window = world.allocate_window(36, 4, sync).await?;
                let column = Datatype::vector(3, 1, 3, &Datatype::from(Basic::Int32)).unwrap();
                window.fence().await?;
                let row = [1i32, 2, 3].map(|value| 10 * rank as i32 + value);
                let target = Target::at(0, rank.into()).with(1, &column);
                window.put(&row, &target).await?;
                window.fence().await?;
                if rank == 0 {
                    let mut matrix = [0i32; 9];
                    window.load(0, &mut matrix).await?;
                    assert_eq!(matrix, [1, 11, 21, 2, 12, 22, 3, 13, 23]);
                }
                let bytes = world.allocate_window(9, 1, sync).await?;
                bytes.fence().await?;
                let own = [rank as u8; 3];
                let place = Target::at(1, 3 * u64::from(rank));
                bytes.put(&own, &place).await?;
                bytes.fence().await?;
                if rank == 1 {
                    let mut all = [9u8; 9];
                    bytes.load(0, &mut all).await?;
                    assert_eq!(all, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
                }
                bytes.free().await?;
                window.free().await?;
                mpi.finalize().await
            });
            assert_eq!(outcome, Ok(vec![Ok(()); 3]), "{sync}, seed {seed}");
        }
    }
}

/// A target looks whether its epoch is over while messages come and go.
#[test]
fn a_test_of_an_epoch_says_when_it_is_over() {
    for sync in Synchronization::ALL {
        for seed in 0..20 {
            let outcome = run(3, Setting { room: 60, seed }, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let window = world.allocate_window(24, 8, sync).await?;
                let others = |rank: u32| {
                    let others = (0..3).filter(|&other| other != rank).collect();
                    Group::from_world_ranks(others).unwrap()
                };
                if world.rank() == 0 {
                    window.post(&others(0)).await?;
                    let mut word = [0u64];
                    for source in 1..3 {
                        world
                            .receive(&mut word, Source::Rank(source), Tag::Is(1))
                            .await?;
                    }
                    while !window.test().await? {}
                    let mut all = [0u64; 3];
                    window.load(0, &mut all).await?;
                    assert_eq!(all, [0, 1, 2]);
                } else {
                    let rank = world.rank();
                    window
                        .start(&Group::from_world_ranks(vec![0]).unwrap())
                        .await?;
                    window
                        .put(&[u64::from(rank)], &Target::at(0, rank.into()))
                        .await?;
                    world.send(&[1u64], 0, 1).await?;
                    window.complete().await?;
                }
                window.free().await?;
                mpi.finalize().await
            });
            assert_eq!(outcome, Ok(vec![Ok(()); 3]), "{sync}, seed {seed}");
        }
    }
}
