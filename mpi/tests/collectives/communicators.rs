//! Communicators out of others.

use std::sync::{Arc, Mutex};

use sme_mpi::attributes::{Keyval, Value};
use sme_mpi::error::{ErrorClass, MpiError};
use sme_mpi::group::Group;
use sme_mpi::info::Info;
use sme_mpi::op::Op;
use sme_mpi::rank::ROOT;
use sme_mpi::rank::{Communicator, Comparison, Mpi, PROC_NULL, Source, Tag};
use sme_mpi::wires::{Setting, Wire, run};

/// Situation 25: a split is stable where keys are equal, and ordered by keys where they are not.
#[test]
fn a_split_is_by_color_key_and_rank() {
    for seed in 0..20 {
        let outcome = run(7, Setting { room: 80, seed }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let rank = world.rank();
            let stable = world.split(Some(rank % 2), 0).await?.unwrap();
            assert_eq!(
                (stable.rank(), stable.size()),
                (rank / 2, if rank % 2 == 0 { 4 } else { 3 })
            );
            let reversed = world.split(Some(rank / 4), -(rank as i32)).await?.unwrap();
            let expected = if rank < 4 { 3 - rank } else { 6 - rank };
            assert_eq!(reversed.rank(), expected);
            let without = world.split((rank != 2).then_some(9), 0).await?;
            assert_eq!(without.is_some(), rank != 2);
            // Messages of one communicator are not received in another.
            let mut sum = [0u32];
            stable.allreduce(&[rank], &mut sum, &Op::Sum).await?;
            assert_eq!(sum, [if rank % 2 == 0 { 12 } else { 9 }]);
            reversed.allreduce(&[1], &mut sum, &Op::Sum).await?;
            assert_eq!(sum, [if rank < 4 { 4 } else { 3 }]);
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 7]), "seed {seed}");
    }
}

/// Situation 25: duplicates that overlap, of different communicators in different orders, are
/// apart.
#[test]
fn overlapping_duplicates_are_apart() {
    for seed in 0..30 {
        let outcome = run(3, Setting { room: 60, seed }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let other = world.dup().await?;
            let (first, second) = match world.rank() {
                0 => {
                    let first = world.idup().await?;
                    (first, other.idup().await?)
                }
                _ => {
                    let second = other.idup().await?;
                    (world.idup().await?, second)
                }
            };
            let (second, first) = (second.wait().await?, first.wait().await?);
            let (to, from) = ((world.rank() + 1) % 3, Source::Rank((world.rank() + 2) % 3));
            let mut came = [[0u8]; 4];
            let comms = [&world, &other, &first, &second];
            for (comm, value) in comms.into_iter().zip(0u8..) {
                comm.isend(&[value], to, 0).await?.free()?;
            }
            for (comm, came) in comms.into_iter().zip(&mut came).rev() {
                comm.receive(came, from, Tag::Any).await?;
            }
            assert_eq!(came, [[0], [1], [2], [3]]);
            assert_eq!(world.compare(&first), Comparison::Congruent);
            assert_eq!(world.compare(&world.clone()), Comparison::Ident);
            first.free().await?;
            assert_eq!(first.barrier().await.unwrap_err().class, ErrorClass::Comm);
            second.disconnect().await?;
            assert!(world.free().await.is_err());
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 3]), "seed {seed}");
    }
}

#[test]
fn communicators_are_made_of_groups() {
    let outcome = run(5, Setting { room: 60, seed: 2 }, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let rank = world.rank();
        let group = Group::from_world_ranks(vec![4, 0, 2]).unwrap();
        let made = world.create(&group).await?;
        assert_eq!(made.map(|comm| comm.rank()), group.rank_of(rank));
        if let Some(own) = group.rank_of(rank) {
            let made = world.create_group(&group, 5).await?;
            let mut root = [rank];
            made.broadcast(&mut root, 0).await?;
            assert_eq!((made.rank(), root), (own, [4]));
        }
        let outside = Group::from_world_ranks(vec![9]).unwrap();
        assert_eq!(
            world.create(&outside).await.unwrap_err().class,
            ErrorClass::Group
        );
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 5]));
}

/// No rank waits for others to free a communicator; what has been begun over it goes on.
#[test]
fn a_communicator_is_freed_by_each_rank_alone() {
    for seed in 0..20 {
        let outcome = run(3, Setting { room: 60, seed }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let rank = world.rank();
            let pair = [world.dup().await?, world.dup().await?];
            let (first, last) = match rank {
                1 => (&pair[1], &pair[0]),
                _ => (&pair[0], &pair[1]),
            };
            let mut word = [0u32];
            if rank == 2 {
                let mut receive = pair[0]
                    .ireceive(&mut word, Source::Rank(0), Tag::Any)
                    .await?;
                first.free().await?;
                assert_eq!(first.free().await.unwrap_err().class, ErrorClass::Comm);
                world.barrier().await?;
                receive.wait().await?;
                drop(receive);
                assert_eq!(word, [5]);
            } else {
                world.barrier().await?;
                if rank == 0 {
                    pair[0].send(&[5u32], 2, 0).await?;
                }
                first.free().await?;
            }
            last.free().await?;
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 3]), "seed {seed}");
    }
}

/// Situation 23: intercommunicators, their collective calls, duplicates, splits and merges.
#[test]
fn two_sides_communicate() {
    for seed in 0..20 {
        let outcome = run(5, Setting { room: 90, seed }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let rank = world.rank();
            // Ranks 0, 2, 4 on one side, 1 and 3 on the other.
            let side = rank % 2;
            let own = world.split(Some(side), 0).await?.unwrap();
            let peer = Some((&world, 1 - side));
            let bridge = own.intercomm(0, peer, 3).await?;
            let duplicate = bridge.dup().await?;
            for inter in [&bridge, &duplicate] {
                let sizes = (inter.size(), inter.handle().remote_group().unwrap().size());
                assert_eq!(sizes, if side == 0 { (3, 2) } else { (2, 3) });
                // A message to the other side.
                let mut came = [9u32];
                if inter.rank() < 2 {
                    inter.isend(&[rank], inter.rank(), 1).await?.free()?;
                    inter.receive(&mut came, Source::Any, Tag::Is(1)).await?;
                    assert_eq!(came, [if side == 0 { rank + 1 } else { rank - 1 }]);
                }
                let mut sum = [0u32];
                inter.allreduce(&[rank], &mut sum, &Op::Sum).await?;
                assert_eq!(sum, [if side == 0 { 4 } else { 6 }]);
                inter.barrier().await?;
                let mut all = vec![0u32; if side == 0 { 2 } else { 3 }];
                inter.allgather(&[rank], &mut all).await?;
                assert_eq!(all, if side == 0 { vec![1, 3] } else { vec![0, 2, 4] });
                let mut word = [rank];
                let root = match rank {
                    3 => ROOT,
                    1 => PROC_NULL,
                    _ => 1,
                };
                inter.broadcast(&mut word, root).await?;
                assert_eq!(word, [if rank == 1 { 1 } else { 3 }]);
                let scan = inter.exscan(&[rank], &mut sum, &Op::Sum).await;
                assert_eq!(scan.unwrap_err().class, ErrorClass::Comm);
            }
            let half = bridge.split((rank < 4).then_some(0), 0).await?;
            assert_eq!(half.is_some(), rank < 4);
            if let Some(half) = half {
                let merged = half.merge(side == 0).await?;
                assert_eq!(merged.rank(), [2, 0, 3, 1][rank as usize]);
                let mut order = vec![0u32; 4];
                merged.allgather(&[rank], &mut order).await?;
                assert_eq!(order, [1, 3, 0, 2]);
            }
            // Each side gives ranks of its own, in another order.
            let (chosen, theirs) = match side {
                0 => (vec![4, 0], 1),
                _ => (vec![3], 2),
            };
            let group = Group::from_world_ranks(chosen).unwrap();
            let made = bridge.create(&group).await?;
            assert_eq!(
                made.as_ref().map(|made| made.rank()),
                group.rank_of(rank),
                "{rank}"
            );
            if let Some(made) = made {
                let mut all = vec![0u32; theirs];
                made.allgather(&[rank], &mut all).await?;
                assert_eq!(all, if side == 0 { vec![3] } else { vec![4, 0] });
            }
            let none = match side {
                0 => Group::empty(),
                _ => group,
            };
            assert!(bridge.create(&none).await?.is_none());
            let merged = bridge.merge(true).await?;
            assert_eq!(merged.rank(), [0, 3, 1, 4, 2][rank as usize]);
            assert!(world.merge(false).await.is_err());
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 5]), "seed {seed}");
    }
}

/// A duplicate gets what the copy function gives it; values are deleted when they are replaced,
/// deleted, and with their communicator, and those of MPI_COMM_SELF at the end, the last one first.
#[test]
fn attributes_are_copied_and_deleted() {
    let outcome = run(2, Setting { room: 50, seed: 1 }, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let deleted: Arc<Mutex<Vec<u32>>> = Arc::default();
        let told = Arc::clone(&deleted);
        let number = |value: &Value| *value.downcast_ref::<u32>().unwrap();
        // Duplicates get the next number, and nothing of an odd one.
        let key = Keyval::new(
            move |value| {
                let even = number(value) % 2 == 0;
                even.then(|| Arc::new(number(value) + 1) as Value)
            },
            move |value| told.lock().unwrap().push(number(value)),
        );
        let get = |comm: &Communicator<'_, Wire>| comm.attribute(&key).map(|value| number(&value));
        assert_eq!(get(&world), None);
        world.set_attribute(&key, Arc::new(3u32))?;
        world.set_attribute(&key, Arc::new(4u32))?;
        assert_eq!(*deleted.lock().unwrap(), [3]);
        let twin = world.dup().await?;
        assert_eq!((get(&world), get(&twin)), (Some(4), Some(5)));
        let third = twin.dup().await?;
        assert_eq!(get(&third), None);
        twin.free().await?;
        assert_eq!(*deleted.lock().unwrap(), [3, 5]);
        world.delete_attribute(&key)?;
        assert_eq!(*deleted.lock().unwrap(), [3, 5, 4]);
        let error = world.delete_attribute(&key).unwrap_err();
        assert_eq!(
            (error.class, error.call),
            (ErrorClass::Keyval, "MPI_Comm_delete_attr")
        );

        let other = Keyval::shared();
        mpi.own().set_attribute(&key, Arc::new(6u32))?;
        mpi.own().set_attribute(&other, Arc::new("stays"))?;
        key.free().unwrap();
        let error = third.set_attribute(&key, Arc::new(1u32)).unwrap_err();
        assert_eq!(
            (error.class, error.argument),
            (ErrorClass::Keyval, "keyval")
        );
        let mut info = Info::new();
        info.set("host", "scc").unwrap();
        third.set_info(&info);
        assert_eq!(third.info(), info);
        third.free().await?;
        mpi.finalize().await?;
        assert_eq!(*deleted.lock().unwrap(), [3, 5, 4, 6]);
        Ok::<(), MpiError>(())
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 2]));
}
