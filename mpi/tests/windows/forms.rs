//! The fetching forms, derived datatypes, locks that exclude, and what a window's calls do beside
//! messages.

use sme_mpi::buffer::Buffer;
use sme_mpi::datatype::{Basic, Datatype};
use sme_mpi::error::ErrorClass;
use sme_mpi::group::Group;
use sme_mpi::op::Op;
use sme_mpi::rank::{Mpi, PROC_NULL, Source, Tag, Target};
use sme_mpi::window::Synchronization;
use sme_mpi::wires::{Setting, run};

/// All take tickets from rank 0, by fetch-and-add and by compare-and-swap: no ticket is handed out
/// twice.
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

fn only(rank: u32) -> Group {
    Group::from_world_ranks(vec![rank]).unwrap()
}

/// Situation 1: a post from a process outside the start group does not count for it. Situation 2:
/// one that comes late is not taken for that of the next epoch. Rank 1 posts early and twice, rank
/// 2 late.
#[test]
fn each_post_counts_for_its_own_epoch() {
    for sync in Synchronization::ALL {
        for seed in 0..30 {
            let outcome = run(3, Setting { room: 60, seed }, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let window = world.allocate_window(16, 8, sync).await?;
                match world.rank() {
                    0 => {
                        // Rank 1 has posted, and rank 2 has not.
                        world.receive(&mut [0u8], Source::Rank(1), Tag::Any).await?;
                        world.send(&[0u8], 2, 0).await?;
                        window.start(&only(2)).await?;
                        window.put(&[7u64], &Target::at(2, 0)).await?;
                        window.complete().await?;
                        for value in [1u64, 2] {
                            window.start(&only(1)).await?;
                            window.put(&[value], &Target::at(1, value - 1)).await?;
                            window.complete().await?;
                        }
                    }
                    1 => {
                        window.post(&only(0)).await?;
                        world.send(&[0u8], 0, 0).await?;
                        window.wait().await?;
                        let mut words = [9u64; 2];
                        window.load(0, &mut words).await?;
                        assert_eq!(words, [1, 0], "the second put waits for the second post");
                        window.post(&only(0)).await?;
                        window.wait().await?;
                        window.load(0, &mut words).await?;
                        assert_eq!(words, [1, 2]);
                    }
                    _ => {
                        world.receive(&mut [0u8], Source::Rank(0), Tag::Any).await?;
                        window.post(&only(0)).await?;
                        window.wait().await?;
                        let mut words = [9u64; 2];
                        window.load(0, &mut words).await?;
                        assert_eq!(words, [7, 0]);
                    }
                }
                window.free().await?;
                mpi.finalize().await
            });
            assert_eq!(outcome, Ok(vec![Ok(()); 3]), "{sync}, seed {seed}");
        }
    }
}

/// Situation 3: empty groups. Situation 7: a rank that waits for one window answers for another,
/// and for its messages. Trigger-only windows need no answers.
#[test]
fn one_window_makes_progress_for_another() {
    for sync in Synchronization::ALL {
        let outcome = run(2, Setting { room: 60, seed: 2 }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let first = world.allocate_window(8, 8, sync).await?;
            let second = world.allocate_window(8, 8, sync).await?;
            first.post(&Group::empty()).await?;
            first.start(&Group::empty()).await?;
            first.complete().await?;
            first.wait().await?;
            if world.rank() == 0 {
                first.post(&only(1)).await?;
                // Rank 1 gets from the second window before it completes the first.
                first.wait().await?;
            } else {
                second.lock(0, false).await?;
                let mut word = [5u64];
                let mut got = second.get(&mut word, &Target::at(0, 0)).await?;
                second.unlock(0).await?;
                got.wait().await?;
                drop(got);
                assert_eq!(word, [0]);
                first.start(&only(0)).await?;
                first.complete().await?;
            }
            first.free().await?;
            second.free().await?;
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 2]), "{sync}");
    }
}

/// A get is waited for while its lock is held, once its access may leave; others wait for the end.
#[test]
fn hastened_accesses_need_no_end_of_their_epoch() {
    for sync in Synchronization::ALL {
        let outcome = run(3, Setting { room: 60, seed: 6 }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let window = world.allocate_window(16, 8, sync).await?;
            window.store(1, &[u64::from(world.rank())]).await?;
            world.barrier().await?;
            let other = (world.rank() + 1) % 3;
            let refused = window.hasten(Some(other)).map_err(|error| error.class);
            assert_eq!(refused, Err(ErrorClass::RmaSync));
            for round in 0..2 {
                window.lock(other, true).await?;
                // Accesses that were begun before leave with it.
                let value = [u64::from(10 * other + round)];
                window.put(&value, &Target::at(other, 0)).await?;
                window.hasten(Some(other))?;
                let mut words = [0u64; 2];
                let mut got = window.get(&mut words, &Target::at(other, 0)).await?;
                got.wait().await?;
                drop(got);
                assert_eq!(words, [value[0], u64::from(other)], "{sync}");
                window.unlock(other).await?;
            }
            window.free().await?;
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 3]), "{sync}");
    }
}

/// Targets are ranks of the window, not of the job.
#[test]
fn windows_over_a_part_of_the_ranks_have_ranks_of_their_own() {
    for sync in Synchronization::ALL {
        let outcome = run(5, Setting { room: 60, seed: 7 }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            // 4, 2, 0 and 3, 1.
            let key = -(world.rank() as i32);
            let half = world.split(Some(world.rank() % 2), key).await?.unwrap();
            let window = half.allocate_window(8, 8, sync).await?;
            let other = (half.rank() + 1) % half.size();
            window.lock(other, false).await?;
            let value = [u64::from(world.rank())];
            window.put(&value, &Target::at(other, 0)).await?;
            window.unlock(other).await?;
            half.barrier().await?;
            let mut word = [0u64];
            window.load(0, &mut word).await?;
            let from = [2, 3, 4, 1, 0][world.rank() as usize];
            assert_eq!(word, [from], "{sync}");
            window.free().await?;
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 5]), "{sync}");
    }
}

/// Situation 8: a fetch without an operation has no operands; an access to `PROC_NULL` has none
/// either. Situation 9: an accumulate through a derived datatype operates where its elements are.
/// Situation 10: displacements of dynamic windows may be beyond 2^63, where nothing is.
#[test]
fn accesses_without_operands_and_through_datatypes() {
    for sync in Synchronization::ALL {
        let outcome = run(2, Setting { room: 60, seed: 3 }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let window = world.allocate_window(48, 8, sync).await?;
            let own = [1u64, 2, 3, 4, 5, 6].map(|value| value * 10);
            window.store(0, &own).await?;
            window.fence().await?;
            let long = Datatype::from(Basic::Uint64);
            // Elements 1 and 3 behind the displacement: its true lower bound is 8.
            let spread = Datatype::indexed(&[1, 1], &[1, 3], &long).unwrap();
            let other = 1 - world.rank();
            let target = Target::at(other, 1).with(1, &spread);
            window.accumulate(&[1u64, 2], &target, &Op::Sum).await?;
            window.fence().await?;
            let mut now = [0u64; 6];
            window.load(0, &mut now).await?;
            assert_eq!(now, [10, 20, 31, 40, 52, 60]);

            let one = Target::at(other, 2).with(1, &long);
            let mut fetched = [0u64];
            let mut got = window
                .get_accumulate(Buffer::empty(), &mut fetched, &one, &Op::NoOp)
                .await?;
            let no_rank = Target::at(PROC_NULL, 0);
            window.put(Buffer::empty(), &no_rank).await?;
            let mut kept = [8u64];
            let mut none = window.get(&mut kept, &no_rank).await?;
            none.wait().await?;
            drop(none);
            window.fence().await?;
            got.wait().await?;
            drop(got);
            assert_eq!((fetched, kept), ([31], [8]));
            window.free().await?;
            if sync != Synchronization::TriggerOnly {
                let dynamic = world.dynamic_window(sync).await?;
                dynamic.fence().await?;
                for far in [1 << 62, 1 << 63, u64::MAX] {
                    let put = dynamic.put(&[1u8; 0], &Target::at(other, far)).await;
                    assert_eq!(put, Ok(()), "nothing is put there");
                }
                dynamic.put(&[1u8], &Target::at(other, u64::MAX)).await?;
                let fence = dynamic.fence().await.unwrap_err();
                assert_eq!(fence.class, ErrorClass::RmaRange);
                dynamic.free().await?;
            }
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 2]), "{sync}");
    }
}

/// Situation 11: locks are granted in the order in which they are asked for, so that exclusive and
/// shared ones do not starve each other, and several locks of a rank do not deadlock.
#[test]
fn exclusive_and_shared_locks_all_end() {
    for sync in Synchronization::ALL {
        for seed in 0..20 {
            let outcome = run(5, Setting { room: 60, seed }, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let window = world.allocate_window(8, 8, sync).await?;
                let rank = world.rank();
                for round in 0..6 {
                    let target = (rank + round) % 3;
                    window.lock(target, (rank + round) % 2 == 0).await?;
                    window
                        .accumulate(&[1u64], &Target::at(target, 0), &Op::Sum)
                        .await?;
                    window.unlock(target).await?;
                }
                window.lock(3, false).await?;
                window.lock(4, false).await?;
                window
                    .accumulate(&[1u64], &Target::at(4, 0), &Op::Sum)
                    .await?;
                window.unlock(4).await?;
                window.unlock(3).await?;
                world.barrier().await?;
                let mut sum = [0u64];
                window.load(0, &mut sum).await?;
                assert_eq!(sum[0], [10, 10, 10, 0, 5][rank as usize]);
                window.free().await?;
                mpi.finalize().await
            });
            assert_eq!(outcome, Ok(vec![Ok(()); 5]), "{sync}, seed {seed}");
        }
    }
}
