//! Wrong use of windows: an error that names rank, call and argument.

use sme_mpi::buffer::Buffer;
use sme_mpi::datatype::{Basic, Datatype};
use sme_mpi::error::ErrorClass::{self, Disp, Group as NotThere, NoMem, Op as WrongOp, Rank};
use sme_mpi::error::ErrorClass::{RmaAttach, RmaRange, RmaSync, Type, Win};
use sme_mpi::error::MpiError;
use sme_mpi::group::Group;
use sme_mpi::op::Op;
use sme_mpi::rank::{Mpi, PROC_NULL, Target};
use sme_mpi::window::Synchronization;
use sme_mpi::wires::{Setting, run};

fn is(result: Result<(), MpiError>, class: ErrorClass, call: &str, argument: &str) {
    let error = result.unwrap_err();
    let told = (error.class, error.call, error.argument);
    assert_eq!(told, (class, call, argument), "{error}");
}

#[test]
fn wrong_calls_end_with_an_error_that_says_why() {
    for sync in Synchronization::ALL {
        let setting = Setting { room: 100, seed: 3 };
        let outcome = run(2, setting, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let window = world.allocate_window(16, 8, sync).await?;
            let put = |target: Target| {
                let window = &window;
                async move { window.put(&[1u64], &target).await }
            };
            is(
                put(Target::at(1, 0)).await,
                RmaSync,
                "MPI_Put",
                "target_rank",
            );
            is(window.complete().await, RmaSync, "MPI_Win_complete", "win");
            is(window.wait().await, RmaSync, "MPI_Win_wait", "win");
            is(
                window.test().await.map(drop),
                RmaSync,
                "MPI_Win_test",
                "win",
            );
            is(window.unlock(1).await, RmaSync, "MPI_Win_unlock", "win");
            is(
                window.flush(None).await,
                RmaSync,
                "MPI_Win_flush_all",
                "win",
            );
            is(window.lock(2, true).await, Rank, "MPI_Win_lock", "rank");
            let stranger = Group::from_world_ranks(vec![7]).unwrap();
            is(
                window.start(&stranger).await,
                NotThere,
                "MPI_Win_start",
                "group",
            );

            window.lock_all().await?;
            is(put(Target::at(2, 0)).await, Rank, "MPI_Put", "target_rank");
            is(
                put(Target::at(1, 2)).await,
                RmaRange,
                "MPI_Put",
                "target_disp",
            );
            is(
                put(Target::at(1, u64::MAX)).await,
                RmaRange,
                "MPI_Put",
                "target_disp",
            );
            let short = Target::at(1, 0).with(1, &Datatype::from(Basic::Int));
            is(put(short).await, Type, "MPI_Put", "target_datatype");
            let long = Target::at(1, 0).with(1, &Datatype::from(Basic::Uint64));
            let nothing = window.put(Buffer::empty(), &long).await;
            is(nothing, Type, "MPI_Put", "target_datatype");
            let nothing = window
                .accumulate(Buffer::empty(), &long, &Op::Replace)
                .await;
            is(nothing, Type, "MPI_Accumulate", "target_datatype");
            put(Target::at(PROC_NULL, 0)).await?;
            let target = Target::at(1, 0);
            let or = window.accumulate(&[1.5f64], &target, &Op::Bor).await;
            is(or, WrongOp, "MPI_Accumulate", "op");
            let own = Op::user(true, std::sync::Arc::new(|_, _, _| {}));
            let own = window.accumulate(&[1u64], &target, &own).await;
            is(own, WrongOp, "MPI_Accumulate", "op");
            is(window.fence().await, RmaSync, "MPI_Win_fence", "win");
            is(
                window.free().await.map(drop),
                RmaSync,
                "MPI_Win_free",
                "win",
            );
            window.unlock_all().await?;
            let far = window.load(1, &mut [0u64; 2]).await;
            is(far, RmaRange, "a load from a window", "displacement");
            is(
                window.attach(8).map(drop),
                RmaAttach,
                "MPI_Win_attach",
                "win",
            );
            window.free().await?;
            is(window.fence().await, Win, "MPI_Win_fence", "win");

            let none = world.allocate_window(8, 0, sync).await.map(drop);
            is(none, Disp, "MPI_Win_allocate", "disp_unit");
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 2]), "{sync}");
    }
}

/// One rank asks for more than its area has: all are told, and the others' room is still good.
#[test]
fn a_rank_without_room_fails_the_call_of_all() {
    let outcome = run(3, Setting { room: 100, seed: 5 }, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let bytes = if world.rank() == 1 { 1 << 20 } else { 64 };
        let made = world
            .allocate_window(bytes, 1, Synchronization::TriggerOnly)
            .await;
        is(made.map(drop), NoMem, "MPI_Win_allocate", "size");
        let window = world
            .allocate_window(64, 1, Synchronization::TriggerOnly)
            .await?;
        window.free().await?;
        let dynamic = world.dynamic_window(Synchronization::TriggerOnly).await;
        is(dynamic.map(drop), Win, "MPI_Win_create_dynamic", "info");
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 3]));
}

/// An access outside what is attached: the target is told when it synchronizes.
#[test]
fn an_access_outside_dynamic_memory_is_an_error_at_its_target() {
    let outcome = run(2, Setting { room: 100, seed: 1 }, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let window = world.dynamic_window(Synchronization::Deferred).await?;
        let mut address = [window.attach(16)?];
        world.broadcast(&mut address, 1).await?;
        window.fence().await?;
        if world.rank() == 0 {
            window.put(&[7u64], &Target::at(1, address[0] + 8)).await?;
        }
        window.fence().await?;
        if world.rank() == 0 {
            window.put(&[7u64], &Target::at(1, address[0] + 16)).await?;
        }
        let fence = window.fence().await;
        if world.rank() == 1 {
            is(fence, RmaRange, "MPI_Win_fence", "target_disp");
            let mut there = [0u64; 2];
            window.load(address[0], &mut there).await?;
            assert_eq!(there, [0, 7]);
            let content = window.detach(address[0])?;
            assert_eq!(content.len(), 16);
            is(
                window.detach(1).map(drop),
                ErrorClass::Base,
                "MPI_Win_detach",
                "base",
            );
        } else {
            fence?;
        }
        window.free().await?;
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 2]));
}
